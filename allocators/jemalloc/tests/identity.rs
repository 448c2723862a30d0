//! The arm is the allocator it says it is.

use contract::suite::{alone, identity};
use contract::{Arm, Capabilities, Heap, Receipt, Refused, SelfStats, opaque};
use jemalloc::Jemalloc;

fn glibc() -> u64 {
    // SAFETY: no preconditions.
    let info = unsafe { libc::mallinfo2() };
    (info.uordblks + info.hblkhd) as u64
}

#[test]
fn its_own_books_see_the_blocks_and_glibcs_do_not() {
    let _turn = alone();
    let heap = Jemalloc::open("jemalloc", &[]).expect("the arm opens");
    let found = identity(
        &heap,
        |heap| heap.stats().allocated.expect("a figure"),
        glibc,
    )
    .expect("blocks");
    assert!(found.own_saw_them() && found.foreign_did_not(), "{found}");
}

/// Serves from the C library and shows jemalloc's books: what a child would be that was linked wrongly.
struct Impostor(Jemalloc);

// SAFETY: the C library's own functions, whose contract is the trait's.
unsafe impl Heap for Impostor {
    const CAPABILITIES: Capabilities = Jemalloc::CAPABILITIES;

    fn malloc(&self, size: usize) -> *mut u8 {
        // SAFETY: no preconditions.
        opaque(unsafe { libc::malloc(size) })
    }
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: no preconditions.
        opaque(unsafe { libc::calloc(count, size) })
    }
    unsafe fn realloc(&self, p: *mut u8, _old: usize, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise: a live block of this heap, so of the C library's.
        opaque(unsafe { libc::realloc(p.cast(), new) })
    }
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: as in `realloc`.
        unsafe { libc::free(p.cast()) }
    }
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        // SAFETY: no preconditions.
        opaque(unsafe { libc::aligned_alloc(align, size) })
    }
    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        // SAFETY: as in `realloc`.
        Some(unsafe { libc::malloc_usable_size(p.cast()) })
    }
    fn trim(&self) -> bool {
        self.0.trim()
    }
    fn stats(&self) -> SelfStats {
        self.0.stats()
    }
    fn receipt(&self) -> Receipt {
        self.0.receipt()
    }
}

#[test]
fn an_impostor_that_forwards_to_malloc_is_caught_by_both_books() {
    let _turn = alone();
    let heap = Impostor(Jemalloc::open("jemalloc", &[]).expect("the arm opens"));
    let found = identity(
        &heap,
        |heap| heap.stats().allocated.expect("a figure"),
        glibc,
    )
    .expect("blocks");
    assert!(!found.own_saw_them(), "{found}");
    assert!(!found.foreign_did_not(), "{found}");
}

#[test]
fn knobs_read_back_as_set_and_show_in_the_receipt() {
    let _turn = alone();
    let pairs = |knobs: &[(&str, &str)]| -> Vec<_> {
        let pair = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        knobs.iter().map(pair).collect()
    };
    let decay = [("dirty_decay_ms", "0"), ("muzzy_decay_ms", "-1")];
    for (asked, told) in [("1", "true"), ("0", "false")] {
        let knobs = pairs(&[decay[0], decay[1], ("background_thread", asked)]);
        let heap = Jemalloc::open("jemalloc", &knobs).expect("the arm opens");
        let knobs = pairs(&[decay[0], decay[1], ("background_thread", told)]);
        assert_eq!(heap.receipt().knobs, knobs);
    }
    for wrong in [
        ("dirty_decay_ms", "-2"),
        ("dirty_decay_ms", "soon"),
        ("background_thread", "2"),
        ("decay_ms", "0"),
    ] {
        let knobs = [(wrong.0.to_string(), wrong.1.to_string())];
        assert!(
            matches!(Jemalloc::open("jemalloc", &knobs), Err(Refused::Knob(_))),
            "{wrong:?}"
        );
    }
}

#[test]
fn the_receipt_is_jemallocs_own() {
    let _turn = alone();
    let receipt = Jemalloc::open("jemalloc", &[])
        .expect("the arm opens")
        .receipt();
    assert!(receipt.version.starts_with("5."), "{}", receipt.version);
    let told = |what: &str| {
        receipt
            .build
            .iter()
            .chain(&receipt.facts)
            .find(|(name, _)| name == what)
            .cloned()
    };
    assert_eq!(
        told("config.debug"),
        Some(("config.debug".into(), "false".into()))
    );
    assert_eq!(
        told("config.stats"),
        Some(("config.stats".into(), "true".into()))
    );
    let unknown = receipt
        .build
        .iter()
        .chain(&receipt.facts)
        .chain(&receipt.knobs)
        .find(|(_, v)| v.contains("unknown"));
    assert_eq!(unknown, None);
}
