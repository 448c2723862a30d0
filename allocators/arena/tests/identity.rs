//! The arm is what it says: small blocks raise its own books and not the C library's, large ones the C library's, which
//! is its backing, and not its own.

mod common;

use common::{Arena, SizedArena};
use contract::suite::{alone, identity};
use contract::{Arm, Heap};

fn glibc() -> u64 {
    // SAFETY: no preconditions.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}

fn own(heap: &Arena) -> u64 {
    heap.stats().allocated.expect("a figure")
}

#[test]
fn its_own_books_see_small_blocks_and_glibcs_do_not() {
    let _turn = alone();
    let heap = Arena::open("arena", &[]).expect("the arm opens");
    const BLOCKS: usize = 100_000;
    // Room first, and a first block, so that neither the list nor the map's nodes are counted.
    let mut blocks = Vec::with_capacity(BLOCKS + 1);
    blocks.push(heap.malloc(512));
    let (own_before, glibc_before) = (own(&heap), glibc());
    blocks.extend((0..BLOCKS).map(|_| heap.malloc(512)));
    assert!(blocks.iter().all(|p| !p.is_null()));
    assert_eq!(own(&heap) - own_before, 512 * BLOCKS as u64);
    // The table of arenas has grown once or twice, and a leaf may have been added.
    let foreign = glibc() - glibc_before;
    assert!(foreign < 512 << 10, "{foreign}");
    let held = heap.stats().mapped.expect("a figure");
    assert!(held >= 512 * BLOCKS as u64 && held % (1 << 20) == 0);
    for p in blocks {
        // SAFETY: live, and not used afterwards.
        unsafe { heap.free(p) };
    }
    assert_eq!(own(&heap), 0);
    assert_eq!(heap.stats().mapped, Some(1 << 20), "one arena is kept");
}

#[test]
fn large_blocks_are_the_backings() {
    let _turn = alone();
    let heap = Arena::open("arena", &[]).expect("the arm opens");
    let before = own(&heap);
    let found = identity(&heap, |_| glibc(), || own(&heap)).expect("blocks");
    assert!(found.own_saw_them() && found.foreign_did_not(), "{found}");
    assert_eq!(own(&heap), before);
}

/// The same growth as the model's own arm, whose tests have these figures: it is told the old size of each block that it
/// resizes. Under pools of any generation, and told sizes or not.
#[test]
fn the_model_of_2007_sees_what_it_sees_alone() {
    fn grown<H: Heap>(heap: &H) {
        let (mut p, mut size) = (heap.malloc(70), 70);
        while size < 4 << 20 {
            // SAFETY: `p` is live and of `size` bytes.
            p = unsafe { heap.realloc(p, size, size + 70) };
            assert!(!p.is_null());
            size += 70;
        }
        // SAFETY: live, of `size` bytes, and not used afterwards.
        unsafe { heap.free_sized(p, size, 1) };
        let told = heap.stats().extra;
        for expected in [
            ("rule_moves", 1016),
            ("rule_copied_bytes", 2_149_433_344),
            ("rule_entry_bytes", 32_760),
            ("rule_capacity_bytes", 0),
        ] {
            assert!(told.contains(&expected), "{expected:?} in {told:?}");
        }
    }
    let _turn = alone();
    let knobs = [("backing".to_owned(), "tcmalloc-2007".to_owned())];
    // Those whose own books are not as large as what the model looks at.
    for id in ["arena-2.4", "arena-2.5", "arena-3.8", "arena-3.9"] {
        grown(&Arena::open(id, &knobs).expect("the arm opens"));
        let sized = SizedArena::open(&format!("{id}+sized"), &knobs);
        grown(&sized.expect("the arm opens"));
    }
}

/// What the arm hands on goes to the backing: what is larger than 512 bytes, what is to be aligned to more than blocks are,
/// and arenas, where they come from malloc. The model tells the bytes of its live blocks above 32 KiB; the arm of 3.9
/// keeps no books that are as large.
#[test]
fn the_backing_gets_what_is_handed_on() {
    fn under_the_rule(heap: &Arena) -> u64 {
        let told = heap.stats().extra;
        let mut found = told.iter().filter(|(n, _)| *n == "rule_capacity_bytes");
        found.next().expect("a figure").1
    }
    let _turn = alone();
    for (source, of_an_arena) in [("mmap", 0), ("malloc", 256 << 10)] {
        let knobs = [("backing", "tcmalloc-2007"), ("source", source)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let heap = Arena::open("arena-3.9", &knobs).expect("the arm opens");
        let small = heap.malloc(512);
        assert_eq!(under_the_rule(&heap), of_an_arena);
        let glibcs = glibc();
        let (large, aligned) = (heap.malloc(100 << 10), heap.aligned(4096, 200 << 10));
        assert_eq!(under_the_rule(&heap), of_an_arena + (300 << 10));
        assert!(glibc() - glibcs >= 300 << 10, "the model is over glibc");
        // SAFETY: live, of the sizes that are told; freed last.
        unsafe {
            let large = heap.realloc(large, 100 << 10, 50);
            assert_eq!(heap.usable(large).map(|bytes| bytes >= 50), Some(true));
            heap.free(large);
            heap.free(aligned);
            assert_eq!(under_the_rule(&heap), of_an_arena);
            heap.free(small);
        }
    }
}
