//! The arm is what it says: small blocks raise its own books and not the C library's, large ones the C library's, which
//! is its backing, and not its own.

use arena::Arena;
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
