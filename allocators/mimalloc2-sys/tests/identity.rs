//! The arm is the allocator it says it is.

use contract::suite::{alone, identity};
use contract::{Arm, Heap, Refused};
use mimalloc2_sys::MimallocV2;

fn glibc() -> u64 {
    // SAFETY: no preconditions.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}

#[test]
fn its_own_books_see_the_blocks_and_glibcs_do_not() {
    let _turn = alone();
    let heap = MimallocV2::open("mimalloc-v2", &[]).expect("the arm opens");
    let found = identity(
        &heap,
        |heap| heap.stats().allocated.expect("a figure"),
        glibc,
    )
    .expect("blocks");
    assert!(found.own_saw_them() && found.foreign_did_not(), "{found}");
}

#[test]
fn the_receipt_is_mimallocs_own_and_its_knob_reads_back() {
    let _turn = alone();
    let knobs = [("purge_delay".to_string(), "0".to_string())];
    let heap = MimallocV2::open("mimalloc-v2", &knobs).expect("the arm opens");
    let receipt = heap.receipt();
    assert!(
        receipt.version.starts_with("2."),
        "v2 and not v3: {}",
        receipt.version
    );
    assert_eq!(receipt.knobs, knobs);
    let wrong = [("purge_delay".to_string(), "soon".to_string())];
    assert!(matches!(
        MimallocV2::open("mimalloc-v2", &wrong),
        Err(Refused::Knob(_))
    ));
}

#[test]
fn its_books_are_known_in_this_version() {
    let _turn = alone();
    // With another layout or version of the C structure the library would refuse, and these would be None.
    let heap = MimallocV2::open("mimalloc-v2", &[]).expect("the arm opens");
    let p = heap.malloc(1 << 20);
    let stats = heap.stats();
    assert!(stats.allocated >= Some(1 << 20), "{stats:?}");
    assert!(stats.resident >= Some(1 << 20), "{stats:?}");
    assert!(stats.mapped >= stats.resident, "{stats:?}");
    // SAFETY: live; not used afterwards.
    unsafe { heap.free(p) };
}
