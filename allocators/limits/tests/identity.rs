//! `bump` is what it says: its own books see its blocks, the C library's do not. (`null` keeps no books.)

use contract::suite::{alone, identity};
use contract::{Arm, Heap, SelfStats};
use limits::{Bump, Null};

fn glibc() -> u64 {
    // SAFETY: no preconditions.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}

#[test]
fn its_own_books_see_the_blocks_and_glibcs_do_not() {
    let _turn = alone();
    let heap = Bump::open("bump", &[]).expect("the arm opens");
    let found = identity(
        &heap,
        |heap| heap.stats().allocated.expect("a figure"),
        glibc,
    )
    .expect("blocks");
    assert!(found.own_saw_them() && found.foreign_did_not(), "{found}");

    let heap = Null::open("null", &[]).expect("the arm opens");
    assert_eq!(heap.stats(), SelfStats::default());
    let found = identity(&heap, |_| 0, glibc).expect("blocks");
    assert!(found.foreign_did_not(), "{found}");
}
