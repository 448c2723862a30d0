//! What is known in closed form of the file's policy, and how its two sets of books agree.

mod common;

use common::{Over, arenas, fill, free_all, open};
use contract::Heap;
use contract::suite::{alone, random_stream};
use obmalloc::{AsIs, Classic, Eager, OneMibEager, Variant};

/// The counts of arenas after one block was made and freed a thousand times on an empty heap.
fn thrash<V: Variant>() -> Option<[usize; 4]> {
    let heap = open::<V>(&[])?;
    for _ in 0..1000 {
        let blocks = fill(&heap, 1, 64);
        free_all(&heap, blocks);
    }
    Some(arenas(&heap.books()))
}

#[test]
fn a_block_at_the_edge_costs_an_arena_a_round_only_where_none_is_kept() {
    let _turn = alone();
    let (kept, eager) = ([1, 0, 1, 1], [1000, 1000, 1, 0]);
    for (found, expected) in [
        (thrash::<AsIs>(), kept),
        (thrash::<OneMibEager>(), eager),
        (thrash::<Classic>(), kept),
        (thrash::<Eager>(), eager),
    ] {
        assert_eq!(found.unwrap_or(expected), expected);
    }
}

/// How many arenas a million blocks of `size` bytes take, counted on an empty heap and by hand: a pool has a header of
/// 48 bytes, an arena 64 pools.
fn million<V: Variant>(size: usize, pool: usize) {
    let Some(heap) = open::<V>(&[("aligned", "1")]) else {
        return;
    };
    let by_hand = 1_000_000usize.div_ceil((pool - 48) / size).div_ceil(64);
    let blocks = fill(&heap, 1_000_000, size);
    let full = heap.books();
    assert_eq!(
        arenas(&full),
        [by_hand, 0, by_hand, by_hand],
        "{size} bytes"
    );
    assert_eq!(full.allocated, 1_000_000 * size);
    assert_eq!(full.accounted(), full.arena_bytes());
    free_all(&heap, blocks);
    let left = usize::from(V::KEEPS_ONE);
    assert_eq!(
        arenas(&heap.books()),
        [by_hand, by_hand - left, by_hand, left]
    );
}

#[test]
fn a_million_blocks_take_the_arenas_that_arithmetic_says() {
    let _turn = alone();
    // An empty list was one block of 80 bytes up to CPython 3.7: 20,000 pools, 312.5 arenas.
    assert_eq!(1_000_000usize.div_ceil(50).div_ceil(64), 313);
    // From 3.8 on, one of 64: 15,874 pools, two more than 248 arenas have. (An interpreter has room left in the arenas
    // that its start took, and needed 248 more.)
    assert_eq!(1_000_000usize.div_ceil(63), 248 * 64 + 2);
    million::<Classic>(64, 4096);
    million::<Classic>(80, 4096);
    million::<Eager>(80, 4096);
    million::<AsIs>(64, 16384);
    million::<OneMibEager>(80, 16384);
}

#[test]
fn aligned_arenas_lose_no_pool() {
    let _turn = alone();
    let Some(heap) = open::<AsIs>(&[("aligned", "1")]) else {
        return;
    };
    // 255 blocks of 64 bytes a pool, so the first block of every arena lies 48 bytes behind its beginning.
    let blocks = fill(&heap, 10 * 64 * 255, 64);
    let books = heap.books();
    assert_eq!((books.arenas_current, books.arena_alignment), (10, 0));
    for first in blocks.iter().step_by(64 * 255) {
        assert_eq!(first.addr() % books.arena_size, 48);
    }
    free_all(&heap, blocks);
}

#[test]
fn realloc_stays_while_three_quarters_are_used() {
    let _turn = alone();
    let Some(heap) = open::<AsIs>(&[]) else {
        return;
    };
    for class in (16..=512).step_by(16) {
        for new in 1..=class {
            let p = heap.malloc(class);
            // SAFETY: live, of `class` bytes; then `q` is, and it is not used after the free.
            unsafe {
                let q = heap.realloc(p, class, new);
                assert_eq!(q == p, 4 * new > 3 * class, "{class} to {new} bytes");
                heap.free(q);
            }
        }
    }
}

fn both_books_agree<V: Variant>() {
    let _turn = alone();
    let Some(heap) = open::<V>(&[]) else { return };
    random_stream(&heap, 7, 20_000).expect("the heap keeps its contents");
    let blocks = fill(&heap, 50_000, 48);
    let mut blocks: Vec<_> = blocks.into_iter().enumerate().collect();
    // Every block but each hundredth goes, so that pools are left in every state.
    blocks.retain(|(number, p)| {
        if number % 100 != 0 {
            // SAFETY: live, and not kept.
            unsafe { heap.free(*p) };
        }
        number % 100 == 0
    });
    let books = heap.books();
    assert_eq!(books.allocated, 500 * 48);
    assert_eq!(books.accounted(), books.arena_bytes());
    let text = heap.debug_text().expect("a text");
    let figure = |label: &str| -> usize {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(label));
        let line = lines.next().unwrap_or_else(|| panic!("{label}: {text}"));
        let digits = line.bytes().filter(u8::is_ascii_digit).collect();
        let digits = String::from_utf8(digits).expect("digits");
        digits.parse().expect("a number")
    };
    assert_eq!(
        [
            "# arenas allocated total",
            "# arenas reclaimed",
            "# arenas highwater mark",
            "# arenas allocated current"
        ]
        .map(figure),
        arenas(&books)
    );
    for (label, own) in [
        ("# bytes in allocated blocks", books.allocated),
        ("# bytes in available blocks", books.available),
        ("# bytes lost to pool headers", books.headers),
        ("# bytes lost to quantization", books.quantization),
        ("# bytes lost to arena alignment", books.arena_alignment),
        ("Total", books.arena_bytes()),
    ] {
        assert_eq!(figure(label), own, "{label}");
    }
    assert!(text.starts_with("Small block threshold = 512, in 32 size classes."));
    let totals = text
        .lines()
        .filter(|line| line.starts_with("Total"))
        .count();
    assert_eq!(
        totals,
        1 + books.radix_tree,
        "the arena map has a Total too"
    );
    free_all(&heap, blocks.into_iter().map(|(_, p)| p).collect());
}

#[test]
fn both_books_of_as_is_agree() {
    both_books_agree::<AsIs>();
}

#[test]
fn both_books_of_eager_agree() {
    both_books_agree::<Eager>();
}

fn nothing_is_left<V: Variant>() {
    for _ in 0..3 {
        let Some(heap): Option<Over<V>> = open(&[]) else {
            return;
        };
        let books = heap.books();
        assert_eq!(arenas(&books), [0; 4]);
        assert_eq!((books.blocks, books.backing_blocks), (0, 0));
        let text = heap.debug_text().expect("a text");
        assert!(text.contains("0 arenas * "), "{text}");
        // Left live, in pools and with the backing.
        drop(fill(&heap, 10_000, 400));
        assert!(!heap.malloc(1000).is_null());
        assert!(heap.books().arenas_current > 3);
    }
}

#[test]
fn a_heap_that_is_opened_again_begins_anew() {
    let _turn = alone();
    nothing_is_left::<AsIs>();
    nothing_is_left::<OneMibEager>();
    nothing_is_left::<Classic>();
    nothing_is_left::<Eager>();
}
