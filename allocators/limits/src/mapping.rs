//! Address space from the operating system.

use core::ptr::{self, NonNull};

/// A private anonymous mapping, zeroed, of which the operating system reserves nothing before it is touched. Unmapped
/// when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// `bytes` (not 0) of address space, or `None` if the operating system refuses.
    pub fn new(bytes: usize) -> Option<Self> {
        // SAFETY: a new private mapping at an address of the kernel's choice touches nothing that exists.
        let at = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return None;
        }
        NonNull::new(at.cast()).map(|start| Mapping { start, bytes })
    }

    /// Its first address.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes into each OS page, so that none of them faults later.
    pub fn touch(&self) {
        for offset in (0..self.bytes).step_by(4096) {
            // SAFETY: `offset` is inside the mapping, which is ours. Volatile, or it would be optimised away.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and of this size; whoever drops it promises that nobody uses it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
