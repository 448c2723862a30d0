//! Arenas at multiples of their own size, through the file's public hook.
//!
//! The file's own arenas come from mmap as it gives them, at any OS page. Where pools are larger than an OS page most
//! arenas then lose one pool, and how many do so changes from run to run.

use crate::variant::ArenaHook;
use core::ffi::c_void;
use core::ptr;

/// The hook. Its `size` is a power of two and a multiple of the OS page.
pub const ALIGNED: ArenaHook = ArenaHook {
    ctx: ptr::null_mut(),
    alloc,
    free,
};

/// No OS page is smaller.
const SMALLEST_PAGE: usize = 4096;

/// Maps enough for an aligned arena to lie in it and gives back what lies around.
unsafe extern "C" fn alloc(_ctx: *mut c_void, size: usize) -> *mut c_void {
    let whole = 2 * size - SMALLEST_PAGE;
    // SAFETY: an anonymous mapping at no fixed address has no preconditions.
    let base = unsafe {
        libc::mmap(
            ptr::null_mut(),
            whole,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    let before = base.addr().next_multiple_of(size) - base.addr();
    let after = whole - size - before;
    // SAFETY: the three parts make up the mapping just made, and nobody knows of the outer two.
    unsafe {
        let arena = base.byte_add(before);
        if before > 0 {
            libc::munmap(base, before);
        }
        if after > 0 {
            libc::munmap(arena.byte_add(size), after);
        }
        arena
    }
}

unsafe extern "C" fn free(_ctx: *mut c_void, p: *mut c_void, size: usize) {
    // SAFETY: the file gives back what it was given, whole, when no block of it is live.
    unsafe { libc::munmap(p, size) };
}
