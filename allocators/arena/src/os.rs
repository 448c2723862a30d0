//! Everything that is asked of somebody else: address space for arenas, and the backing allocator.
//!
//! The one place of the allocator's core that calls `libc`. Tests put an [`Os`] of their own here, which places
//! arenas where they want them and refuses when they say so.

use core::fmt;
use core::ptr::{self, NonNull};

/// The operating system and the backing allocator, as the heap sees them.
///
/// The backing serves what blocks do not, and the heap's own books: the table of arenas and the nodes of the address
/// map, as CPython has them from its raw allocator.
///
/// # Safety
/// What is returned and not null is valid for reads and writes of as many bytes until it is given back, and overlaps
/// nothing else that is. All of them align to 16 bytes at least. An OS page has 4 KiB at least.
pub unsafe trait Os {
    /// `bytes` (a power of two, at least an OS page) for an arena; `None` if they cannot be had.
    fn map(&self, bytes: usize) -> Option<NonNull<u8>>;

    /// Gives an arena's memory back.
    ///
    /// # Safety
    /// `at` is from [`map`](Os::map) with as many bytes, and nobody uses it afterwards.
    unsafe fn unmap(&self, at: NonNull<u8>, bytes: usize);

    /// A block of the backing; null if it refuses. For 0 bytes one with an address of its own.
    fn malloc(&self, size: usize) -> *mut u8;

    /// A block of `count * size` zero bytes; null if the product overflows or the backing refuses.
    fn calloc(&self, count: usize, size: usize) -> *mut u8;

    /// A block of `size` bytes at a multiple of `align`, a power of two; null if the backing refuses.
    fn aligned(&self, align: usize, size: usize) -> *mut u8;

    /// Resizes a block of the backing to `new` bytes, at least 1; on null it is as it was.
    ///
    /// # Safety
    /// `p` is a live block of the backing, or null.
    unsafe fn realloc(&self, p: *mut u8, new: usize) -> *mut u8;

    /// Gives a block of the backing back.
    ///
    /// # Safety
    /// `p` is a live block of the backing, or null; nobody uses it afterwards.
    unsafe fn free(&self, p: *mut u8);

    /// What a block of the backing can hold, in bytes.
    ///
    /// # Safety
    /// `p` is a live block of the backing.
    unsafe fn usable(&self, p: *mut u8) -> usize;
}

/// Where arenas come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// mmap, as CPython has it since 3.3.
    #[default]
    Mmap,
    /// The C library's malloc, as before.
    Malloc,
}

/// The C library: mmap or malloc for arenas, and malloc as the backing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Libc {
    /// Place each arena at a multiple of its size, so that none of its pools is lost. CPython does not.
    pub aligned_arenas: bool,
    /// Where arenas come from.
    pub source: Source,
}

/// Says what is wrong, on the standard error, and aborts. `at` is an address.
pub(crate) fn die(what: &str, at: usize) -> ! {
    /// Writes what fits; the rest is lost.
    struct Line([u8; 200], usize);
    impl fmt::Write for Line {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for byte in text.bytes() {
                if let Some(place) = self.0.get_mut(self.1) {
                    *place = byte;
                    self.1 += 1;
                }
            }
            Ok(())
        }
    }
    let mut line = Line([0; 200], 0);
    // It cannot fail.
    let _ = fmt::Write::write_fmt(&mut line, format_args!("arena: {what}: {at:#x}\n"));
    // SAFETY: the buffer has as many bytes. Nothing is done about a write that fails: this is the end.
    unsafe {
        libc::write(2, line.0.as_ptr().cast(), line.1);
        libc::abort()
    }
}

/// A private anonymous mapping of `bytes` bytes.
fn mmap(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: a new private mapping at an address of the kernel's choice touches nothing that exists.
    let at = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        None
    } else {
        NonNull::new(at.cast())
    }
}

/// Unmaps `bytes` bytes; of none, nothing.
///
/// # Safety
/// They are a mapping or a part of one, of whole OS pages, that nobody uses afterwards.
unsafe fn munmap(at: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller's promise. It can fail only where a mapping is split and the kernel has no room for one
        // more in its table: the pages then stay, which is a leak and nothing worse.
        unsafe { libc::munmap(at.as_ptr().cast(), bytes) };
    }
}

/// `bytes` bytes at a multiple of `bytes`: twice as much is mapped, and what stands out is unmapped.
fn mmap_aligned(bytes: usize) -> Option<NonNull<u8>> {
    let wide = mmap(bytes.checked_mul(2)?)?;
    let before = wide.addr().get().wrapping_neg() & (bytes - 1);
    // SAFETY: `before` is less than `bytes`, so all three parts lie in the mapping of twice as many, and they are
    // whole OS pages because `bytes` is a power of two, at least one.
    unsafe {
        let at = wide.add(before);
        munmap(wide, before);
        munmap(at.add(bytes), bytes - before);
        Some(at)
    }
}

// SAFETY: the C library's own functions, whose contract is the trait's; glibc aligns to 16 bytes, mmap to OS pages.
unsafe impl Os for Libc {
    fn map(&self, bytes: usize) -> Option<NonNull<u8>> {
        match (self.source, self.aligned_arenas) {
            (Source::Mmap, false) => mmap(bytes),
            (Source::Mmap, true) => mmap_aligned(bytes),
            (Source::Malloc, false) => NonNull::new(self.malloc(bytes)),
            (Source::Malloc, true) => NonNull::new(self.aligned(bytes, bytes)),
        }
    }

    unsafe fn unmap(&self, at: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.source {
                Source::Mmap => munmap(at, bytes),
                Source::Malloc => self.free(at.as_ptr()),
            }
        }
    }

    #[inline]
    fn malloc(&self, size: usize) -> *mut u8 {
        // SAFETY: no preconditions. Nothing is asked for as one byte, as CPython does.
        contract::opaque(unsafe { libc::malloc(size.max(1)) })
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        let (count, size) = if count == 0 || size == 0 {
            (1, 1)
        } else {
            (count, size)
        };
        // SAFETY: no preconditions.
        contract::opaque(unsafe { libc::calloc(count, size) })
    }

    #[inline]
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        // SAFETY: no preconditions. aligned_alloc would want a size that is a multiple of the alignment.
        contract::opaque(unsafe { libc::memalign(align, size.max(1)) })
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        contract::opaque(unsafe { libc::realloc(p.cast(), new.max(1)) })
    }

    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { libc::free(p.cast()) }
    }

    #[inline]
    unsafe fn usable(&self, p: *mut u8) -> usize {
        // SAFETY: the caller's promise.
        unsafe { libc::malloc_usable_size(p.cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aligned_arena_is_aligned_and_can_be_used_to_its_end() {
        for source in [Source::Mmap, Source::Malloc] {
            let os = Libc {
                aligned_arenas: true,
                source,
            };
            for bytes in [4096, 1 << 16, 1 << 20, 1 << 22] {
                let at = os.map(bytes).expect("memory");
                assert_eq!(at.addr().get() % bytes, 0);
                // SAFETY: its own, then given back.
                unsafe {
                    at.write(1);
                    at.add(bytes - 1).write(2);
                    os.unmap(at, bytes);
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for source in [Source::Mmap, Source::Malloc] {
            for aligned_arenas in [false, true] {
                let os = Libc {
                    aligned_arenas,
                    source,
                };
                assert!(os.map(1 << 62).is_none());
                assert!(os.map(1 << 63).is_none());
            }
        }
    }
}
