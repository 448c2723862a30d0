//! Small blocks are obmalloc's, large ones the backing's, and the receipt says which.

mod common;

use common::{fill, free_all, open};
use contract::Heap;
use contract::suite::{Identity, alone};
use obmalloc::{AsIs, Classic, Eager, OneMibEager, Variant};

const BLOCKS: usize = 200_000;
const BLOCK: usize = 512;

fn glibc() -> i64 {
    // SAFETY: no preconditions.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd).cast_signed() as i64
}

fn small_blocks_are_its_own<V: Variant>() {
    let _turn = alone();
    let Some(heap) = open::<V>(&[]) else { return };
    let read = || (heap.books(), glibc());
    // What is taken at the first use is not counted.
    let first = fill(&heap, 1, BLOCK);
    let before = read();
    let blocks = fill(&heap, BLOCKS, BLOCK);
    let after = read();
    let list = (blocks.capacity() * size_of::<*mut u8>()) as i64;
    let own = (after.0.allocated - before.0.allocated) as i64;
    // The vector of arenas and the radix tree are the backing's, and in the file's books.
    let kept = (after.0.bookkeeping - before.0.bookkeeping) as i64;
    let foreign = after.1 - before.1 - list - kept;
    assert_eq!(own, (BLOCKS * BLOCK) as i64);
    assert!(own >= Identity::OWN_AT_LEAST);
    assert!(foreign < Identity::FOREIGN_BELOW, "{foreign}");
    free_all(&heap, blocks);
    free_all(&heap, first);
}

#[test]
fn as_is() {
    small_blocks_are_its_own::<AsIs>();
}

#[test]
fn one_mib_eager() {
    small_blocks_are_its_own::<OneMibEager>();
}

#[test]
fn classic() {
    small_blocks_are_its_own::<Classic>();
}

#[test]
fn eager() {
    small_blocks_are_its_own::<Eager>();
}

#[test]
fn no_bytes_and_more_than_512_are_the_backings() {
    let _turn = alone();
    let Some(heap) = open::<Classic>(&[]) else {
        return;
    };
    for (size, pools, backing) in [(0, 0, 1), (1, 1, 0), (512, 1, 0), (513, 0, 1)] {
        let p = heap.malloc(size);
        let books = heap.books();
        assert_eq!(
            (books.blocks, books.backing_blocks),
            (pools, backing),
            "{size} bytes"
        );
        // SAFETY: live, and not used afterwards.
        unsafe { heap.free(p) };
    }
    let before = glibc();
    let large = heap.malloc(1 << 20);
    assert!(glibc() - before >= 1 << 20);
    // SAFETY: live, and not used afterwards.
    unsafe { heap.free(large) };
}

/// The same growth as the model's own arm, whose tests have these figures: the backing is told the old size of each
/// block that it resizes.
#[test]
fn the_model_of_2007_sees_what_it_sees_alone() {
    let _turn = alone();
    let Some(heap) = open::<Classic>(&[("backing", "tcmalloc-2007")]) else {
        return;
    };
    let (mut p, mut size) = (heap.malloc(70), 70);
    while size < 4 << 20 {
        // SAFETY: `p` is live and of `size` bytes.
        p = unsafe { heap.realloc(p, size, size + 70) };
        assert!(!p.is_null());
        size += 70;
    }
    // SAFETY: live, and not used afterwards.
    unsafe { heap.free(p) };
    let told = heap.stats().extra;
    for expected in [
        ("rule_moves", 1016),
        ("rule_copied_bytes", 2_149_433_344),
        ("rule_entry_bytes", 32_760),
        ("rule_capacity_bytes", 0),
    ] {
        assert!(told.contains(&expected), "{expected:?} in {told:?}");
    }
    let receipt = heap.receipt();
    let said = |name: &str, value: &str| receipt.knobs.contains(&(name.into(), value.into()));
    assert!(said("backing", "tcmalloc-2007") && said("granule", "4096"));
}

/// While blocks in pools are resized, a new arena makes the vector of arenas come under the model's rule.
#[test]
fn the_vector_of_arenas_survives_the_models_rule() {
    let _turn = alone();
    let Some(heap) = open::<Classic>(&[("backing", "tcmalloc-2007")]) else {
        return;
    };
    let mut blocks = Vec::new();
    while heap.books().arenas_current < 600 {
        for mut p in fill(&heap, 448, 300) {
            // SAFETY: live, of 300 bytes; then of 512.
            unsafe {
                p = heap.realloc(p, 300, 512);
                p.cast::<usize>().write(blocks.len());
            }
            blocks.push(p);
        }
    }
    assert!(heap.books().bookkeeping > 32 << 10);
    let told = heap.stats().extra;
    assert!(told.contains(&("rule_entries", 1)), "{told:?}");
    for (number, p) in blocks.iter().enumerate() {
        // SAFETY: live, aligned to 16.
        assert_eq!(unsafe { p.cast::<usize>().read() }, number);
    }
    free_all(&heap, blocks);
    assert_eq!(heap.books().arenas_current, 1);
}

#[test]
fn receipts_tell_what_was_built() {
    let _turn = alone();
    fn of<V: Variant>(knobs: &[(&str, &str)]) -> Option<[String; 5]> {
        let receipt = open::<V>(knobs)?.receipt();
        Some(
            [
                "arena bytes",
                "pool bytes",
                "address test",
                "an empty last arena",
                "arena_placement",
            ]
            .map(|wanted| {
                let mut facts = receipt.facts.iter();
                let found = facts.find(|(name, _)| name == wanted);
                let value = &found.unwrap_or_else(|| panic!("{wanted}")).1;
                value.split([' ', ':']).next().unwrap_or("").to_owned()
                    + if value.contains("released") {
                        " released"
                    } else {
                        ""
                    }
            }),
        )
    }
    let aligned = &[("aligned", "1")][..];
    for (told, expected) in [
        (of::<AsIs>(&[]), ["1048576", "16384", "radix", "is", "as"]),
        (
            of::<AsIs>(aligned),
            ["1048576", "16384", "radix", "is", "aligned"],
        ),
        (
            of::<OneMibEager>(&[]),
            ["1048576", "16384", "radix", "is released", "as"],
        ),
        (
            of::<Classic>(&[]),
            ["262144", "4096", "pool", "is", "aligned"],
        ),
        (
            of::<Eager>(&[]),
            ["262144", "4096", "pool", "is released", "aligned"],
        ),
    ] {
        assert_eq!(told.unwrap_or_else(|| expected.map(String::from)), expected);
    }
}
