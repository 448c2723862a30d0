//! The arm is the C library's heap: its own books are the C library's. (There are no foreign ones to compare with.)

use contract::suite::{alone, identity};
use contract::{Arm, Heap, Refused};
use system::System;

#[test]
fn its_own_books_see_the_blocks() {
    let _turn = alone();
    let heap = System::open("system", &[]).expect("the arm opens");
    let found = identity(
        &heap,
        |heap| heap.stats().allocated.expect("a figure"),
        || 0,
    )
    .expect("blocks");
    assert!(found.own_saw_them(), "{found}");
}

#[test]
fn a_refusal_is_seen_although_the_compiler_knows_malloc() {
    let _turn = alone();
    let heap = System::open("system", &[]).expect("the arm opens");
    // Without a barrier the compiler drops this pair and answers that the pointer is not null.
    let p = heap.malloc(usize::MAX);
    let refused = p.is_null();
    // SAFETY: free takes null, and a live block.
    unsafe { heap.free(p) };
    assert!(refused);
}

#[test]
fn a_threshold_is_accepted_or_refused_and_the_receipt_says_so() {
    let _turn = alone();
    let knobs = [("mmap_threshold".to_string(), "1GiB".to_string())];
    let heap = System::open("system", &knobs).expect("the arm opens");
    let receipt = heap.receipt();
    assert!(receipt.version.starts_with("2."), "{}", receipt.version);
    assert_eq!(
        receipt.knobs[0].1,
        "1073741824 (accepted by mallopt, glibc offers no read-back)"
    );
    assert_eq!(
        receipt.knobs[1].1,
        "the library's default (glibc offers no read-back)"
    );
    let wrong = [("mmap_threshold".to_string(), "4GiB".to_string())];
    assert!(matches!(
        System::open("system", &wrong),
        Err(Refused::Knob(_))
    ));
}

#[test]
fn a_thread_cache_that_is_not_as_asked_is_refused() {
    let _turn = alone();
    // Nobody has set the tunable for this process, and no default is 5.
    let knobs = [("tcache_count".to_string(), "5".to_string())];
    let Err(Refused::Knob(why)) = System::open("system", &knobs) else {
        panic!("not refused");
    };
    assert!(why.contains("glibc.malloc.tcache_count=5"), "{why}");
}
