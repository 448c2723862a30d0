//! The arm is the allocator it says it is.

use contract::suite::{alone, identity};
use contract::{Arm, Heap};
use jemalloc_global::JemallocGlobal;

fn glibc() -> u64 {
    // SAFETY: no preconditions.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}

#[test]
fn its_own_books_see_the_blocks_and_glibcs_do_not() {
    let _turn = alone();
    let heap = JemallocGlobal::open("jemalloc-global", &[]).expect("the arm opens");
    let found = identity(
        &heap,
        |heap| heap.stats().allocated.expect("a figure"),
        glibc,
    )
    .expect("blocks");
    assert!(found.own_saw_them() && found.foreign_did_not(), "{found}");
}

#[test]
fn the_receipt_tells_the_library_the_crate_and_the_layout() {
    let _turn = alone();
    let knobs = [("dirty_decay_ms".to_string(), "0".to_string())];
    let heap = JemallocGlobal::open("jemalloc-global", &knobs).expect("the arm opens");
    let receipt = heap.receipt();
    assert!(receipt.version.starts_with("5."), "{}", receipt.version);
    assert!(receipt.knobs.contains(&knobs[0]), "{receipt:?}");
    let told = |what: &str| {
        let mut facts = receipt.build.iter();
        facts
            .find(|(name, _)| name == what)
            .map_or("", |(_, told)| told.as_str())
    };
    assert!(
        told("entry points").starts_with("GlobalAlloc of tikv-jemallocator 0."),
        "{receipt:?}"
    );
    assert!(told("layout").ends_with("align 8"), "{receipt:?}");
}

/// What the driver calls is `GlobalAlloc`, and that is not the C function: it refuses what no layout can say.
#[test]
fn blocks_are_given_back_by_size() {
    const { assert!(JemallocGlobal::SIZED_FREE) };
    let _turn = alone();
    let heap = JemallocGlobal::open("jemalloc-global", &[]).expect("the arm opens");
    let before = heap.stats().allocated.expect("a figure");
    for size in [0, 1, 7, 8, 24, 5000, 3 << 20] {
        let p = heap.malloc(size);
        assert!(!p.is_null(), "{size}");
        assert!(p.addr().is_multiple_of(8), "{size}: {p:p}");
        // SAFETY: live, of `size` bytes, not by `aligned`; not used afterwards.
        unsafe { heap.free_sized(p, size, 1) };
    }
    let after = heap.stats().allocated.expect("a figure");
    assert!(after.abs_diff(before) < 3 << 20, "{before} {after}");
    assert!(heap.malloc(isize::MAX as usize).is_null());
}
