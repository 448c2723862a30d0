//! The arm is gperftools' tcmalloc, and the C library's malloc is still the C library's.
//!
//! gperftools takes memory by moving the program break, which glibc's own heap uses too. glibc does not notice until it
//! moves the break itself, and then counts all that lies between as its own: after 64 MB of gperftools' blocks and
//! 10 MB of malloc's its books said 84.5 MB. Here they do not move it between the two readings; a process that is
//! measured must not either.
#![cfg(gperftools)]

use contract::suite::{alone, identity};
use contract::{Arm, Heap, Refused};
use tcmalloc_sys::Gperftools;

fn glibc() -> u64 {
    // SAFETY: no preconditions.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}

#[test]
fn its_own_books_see_the_blocks_and_glibcs_do_not() {
    let _turn = alone();
    let heap = Gperftools::open("tcmalloc-gperftools", &[]).expect("the arm opens");
    let found = identity(
        &heap,
        |heap| heap.stats().allocated.expect("a figure"),
        glibc,
    )
    .expect("blocks");
    assert!(found.own_saw_them() && found.foreign_did_not(), "{found}");
}

#[test]
fn malloc_is_not_taken_over() {
    let _turn = alone();
    let heap = Gperftools::open("tcmalloc-gperftools", &[]).expect("the arm opens");
    let own = || heap.stats().allocated.expect("a figure");
    let (own_before, glibc_before) = (own(), glibc());
    let blocks: Vec<Box<[u8]>> = (0..100)
        .map(|_| vec![1u8; 1 << 20].into_boxed_slice())
        .collect();
    let (own_after, glibc_after) = (own(), glibc());
    assert_eq!(blocks.len(), 100);
    assert!(
        glibc_after >= glibc_before + (100 << 20),
        "{glibc_before} {glibc_after}"
    );
    // Other tests of this file use the heap at the same time, so the comparison is with what they use at most.
    assert!(
        own_after < own_before + (80 << 20),
        "{own_before} {own_after}"
    );
}

#[test]
fn knobs_read_back_and_show_in_the_receipt() {
    let _turn = alone();
    let knobs = [("release_rate", "3.5"), ("aggressive_decommit", "1")]
        .map(|(k, v)| (k.to_string(), v.to_string()));
    let heap = Gperftools::open("tcmalloc-gperftools", &knobs).expect("the arm opens");
    let receipt = heap.receipt();
    assert!(
        receipt.version.starts_with("gperftools 2."),
        "{}",
        receipt.version
    );
    assert_eq!(receipt.knobs, knobs);
    let wrong = [("aggressive_decommit".to_string(), "2".to_string())];
    assert!(matches!(
        Gperftools::open("tcmalloc-gperftools", &wrong),
        Err(Refused::Knob(_))
    ));
}
