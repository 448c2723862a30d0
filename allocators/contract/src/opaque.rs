//! Keeps the compiler out of the heap under test.

use core::ffi::c_void;

/// Returns `p`, of which the compiler then knows nothing any more. Costs no instruction.
///
/// The compiler knows what functions called `malloc`, `calloc`, `realloc` and `free` do. It may remove a pair whose
/// block nobody reads, and may take for granted that `malloc` succeeds. It knows no such thing of the other allocators,
/// so whoever calls the C library's by its own name passes the result through here, and all are treated alike.
#[inline(always)]
#[must_use]
pub fn opaque(p: *mut c_void) -> *mut u8 {
    let mut address = p;
    // SAFETY: an empty piece of assembly that leaves its register as it is.
    unsafe { core::arch::asm!("/* {0} */", inout(reg) address, options(nostack, preserves_flags)) };
    address.cast()
}
