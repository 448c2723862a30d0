//! What an arm's heap asks: the C library, or another heap in the place of its malloc.

use crate::os::{Libc, Os, Source};
use contract::backing::Entries;
use contract::{Arm, Backed};
use core::ffi::c_void;
use core::ptr::NonNull;

/// A backing, whatever its type.
///
/// Invariant BACKED: while a heap asks it, what it points at lives and stays where it is: it is in the open arm's box, which
/// outlives the heap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behind {
    at: NonNull<c_void>,
    entries: &'static Entries,
}

impl Behind {
    /// # Safety
    /// BACKED, of `backed`.
    pub(crate) unsafe fn new<H: Arm>(backed: &Backed<H>) -> Behind {
        Behind {
            at: NonNull::from(backed).cast(),
            entries: Backed::<H>::ENTRIES,
        }
    }
}

/// The C library, its malloc perhaps replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Over {
    pub(crate) libc: Libc,
    pub(crate) behind: Option<Behind>,
}

// SAFETY: the C library, whose contract is the trait's; or by BACKED a `Heap`, which promises as much. All of those that are
// linked align to 16 bytes what has 16 and more, and the books of our heap need no more than 8.
unsafe impl Os for Over {
    fn map(&self, bytes: usize) -> Option<NonNull<u8>> {
        match (self.libc.source, self.libc.aligned_arenas) {
            (Source::Mmap, _) => self.libc.map(bytes),
            (Source::Malloc, false) => NonNull::new(self.malloc(bytes)),
            (Source::Malloc, true) => NonNull::new(self.aligned(bytes, bytes)),
        }
    }

    unsafe fn unmap(&self, at: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.libc.source {
                Source::Mmap => self.libc.unmap(at, bytes),
                Source::Malloc => self.free(at.as_ptr()),
            }
        }
    }

    #[inline]
    fn malloc(&self, size: usize) -> *mut u8 {
        match &self.behind {
            Some(behind) => malloc_behind(size, behind),
            None => self.libc.malloc(size),
        }
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        match &self.behind {
            Some(behind) => calloc_behind(count, size, behind),
            None => self.libc.calloc(count, size),
        }
    }

    #[inline]
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        match &self.behind {
            Some(behind) => aligned_behind(align, size, behind),
            None => self.libc.aligned(align, size),
        }
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe {
            match &self.behind {
                Some(behind) => realloc_behind(p, new, behind),
                None => self.libc.realloc(p, new),
            }
        }
    }

    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe {
            match &self.behind {
                Some(behind) => free_behind(p, behind),
                None => self.libc.free(p),
            }
        }
    }

    #[inline]
    unsafe fn usable(&self, p: *mut u8) -> usize {
        // SAFETY: the caller's promise.
        unsafe {
            match &self.behind {
                Some(behind) => usable_behind(p, behind),
                None => self.libc.usable(p),
            }
        }
    }
}

// Apart, with the arguments in the registers in which the heap got them: so what the heap does without a backing, and for
// blocks of pools, is compiled as if there were no such thing.

#[inline(never)]
extern "C" fn malloc_behind(size: usize, behind: &Behind) -> *mut u8 {
    // SAFETY: BACKED.
    unsafe { (behind.entries.malloc)(behind.at.as_ptr(), size).cast() }
}

#[inline(never)]
extern "C" fn calloc_behind(count: usize, size: usize, behind: &Behind) -> *mut u8 {
    // SAFETY: BACKED.
    unsafe { (behind.entries.calloc)(behind.at.as_ptr(), count, size).cast() }
}

#[inline(never)]
extern "C" fn aligned_behind(align: usize, size: usize, behind: &Behind) -> *mut u8 {
    // SAFETY: BACKED.
    unsafe { (behind.entries.aligned)(behind.at.as_ptr(), align, size).cast() }
}

/// # Safety
/// As [`Os::realloc`].
#[inline(never)]
unsafe extern "C" fn realloc_behind(p: *mut u8, new: usize, behind: &Behind) -> *mut u8 {
    // SAFETY: BACKED; the caller's promise.
    unsafe { (behind.entries.realloc)(behind.at.as_ptr(), p.cast(), new).cast() }
}

/// # Safety
/// As [`Os::free`].
#[inline(never)]
unsafe extern "C" fn free_behind(p: *mut u8, behind: &Behind) {
    // SAFETY: BACKED; the caller's promise.
    unsafe { (behind.entries.free)(behind.at.as_ptr(), p.cast()) }
}

/// # Safety
/// As [`Os::usable`].
#[inline(never)]
unsafe extern "C" fn usable_behind(p: *mut u8, behind: &Behind) -> usize {
    // SAFETY: BACKED; the caller's promise.
    unsafe { (behind.entries.usable)(behind.at.as_ptr(), p.cast()) }
}
