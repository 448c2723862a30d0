//! Calls and bytes as the suite needs them: nothing the compiler could foresee, and no reference into a block.

use crate::{Heap, suite::Verdict};
use core::hint::black_box;
use core::ptr;

pub(super) fn malloc<H: Heap>(heap: &H, size: usize) -> *mut u8 {
    black_box(heap.malloc(black_box(size)))
}

pub(super) fn calloc<H: Heap>(heap: &H, count: usize, size: usize) -> *mut u8 {
    black_box(heap.calloc(black_box(count), black_box(size)))
}

pub(super) fn aligned<H: Heap>(heap: &H, align: usize, size: usize) -> *mut u8 {
    black_box(heap.aligned(black_box(align), black_box(size)))
}

/// # Safety
/// As [`Heap::realloc`].
pub(super) unsafe fn realloc<H: Heap>(heap: &H, p: *mut u8, old: usize, new: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    black_box(unsafe { heap.realloc(black_box(p), black_box(old), black_box(new)) })
}

/// # Safety
/// As [`Heap::realloc_as_c`].
pub(super) unsafe fn realloc_as_c<H: Heap>(
    heap: &H,
    p: *mut u8,
    old: usize,
    new: usize,
) -> Option<*mut u8> {
    // SAFETY: the caller's promise.
    black_box(unsafe { heap.realloc_as_c(black_box(p), black_box(old), black_box(new)) })
}

/// # Safety
/// As [`Heap::free`].
pub(super) unsafe fn free<H: Heap>(heap: &H, p: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { heap.free(black_box(p)) }
}

/// What errno is set to before a call: no error of that number is ever reported here.
pub(super) const UNTOUCHED: i32 = 4242;

pub(super) fn set_errno(to: i32) {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() = to };
}

pub(super) fn errno() -> i32 {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() }
}

/// The byte that belongs at `offset` in a block filled with `tag`: blocks with different tags differ everywhere in
/// most bytes, and offsets near each other do too.
fn byte(tag: usize, offset: usize) -> u8 {
    (tag.wrapping_mul(151) ^ offset ^ (offset >> 8).wrapping_mul(37)) as u8
}

/// Fills bytes `from .. to` of a block.
///
/// # Safety
/// `p` is valid for writes of `to` bytes.
pub(super) unsafe fn fill(p: *mut u8, from: usize, to: usize, tag: usize) {
    for offset in from..to {
        // SAFETY: the caller's promise.
        unsafe { p.add(offset).write(byte(tag, offset)) };
    }
}

/// The first of bytes `0 .. to` of a block that is not as `fill` left it.
///
/// # Safety
/// `p` is valid for reads of `to` bytes.
pub(super) unsafe fn damage(p: *const u8, to: usize, tag: usize) -> Option<usize> {
    // SAFETY: the caller's promise. Volatile, so that nothing is concluded from what was written.
    (0..to).find(|offset| unsafe { p.add(*offset).read_volatile() } != byte(tag, *offset))
}

/// The first of bytes `0 .. to` that is not 0.
///
/// # Safety
/// `p` is valid for reads of `to` bytes.
pub(super) unsafe fn not_zero(p: *const u8, to: usize) -> Option<usize> {
    // SAFETY: the caller's promise.
    (0..to).find(|offset| unsafe { p.add(*offset).read_volatile() } != 0)
}

/// Makes all of a block the same byte.
///
/// # Safety
/// `p` is valid for writes of `size` bytes.
pub(super) unsafe fn dirty(p: *mut u8, size: usize) {
    // SAFETY: the caller's promise.
    unsafe { ptr::write_bytes(p, 0xA5, size) };
}

/// For `?`-like exits: a rule's helpers say what is broken, the rule turns it into a verdict.
pub(super) fn verdict(answer: Result<(), String>) -> Verdict {
    match answer {
        Ok(()) => Verdict::Held,
        Err(how) => Verdict::Broken(how),
    }
}

/// A block of `size` bytes that must not be null.
pub(super) fn block<H: Heap>(heap: &H, size: usize) -> Result<*mut u8, String> {
    let p = malloc(heap, size);
    if p.is_null() {
        Err(format!("malloc({size}) returned null"))
    } else {
        Ok(p)
    }
}
