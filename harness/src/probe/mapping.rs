//! A private anonymous mapping: memory that comes from no allocator.
//!
//! Inputs, operation streams and tables live here, so that the heap under test holds the workload's blocks alone,
//! and their OS pages are touched before the measured region, so that its page faults are the heap's own.

use core::ptr::{self, NonNull};
use core::slice;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;

/// Bytes to map for `len` bytes of the child's own: whole OS pages, and never a multiple of 2 MiB.
///
/// Linux (seen on 6.18) aligns an anonymous mapping whose length is a multiple of 2 MiB to 2 MiB, even where
/// transparent huge pages are off, and so leaves a hole above it. A block of the heap under test that grows by mremap
/// would then go to and fro between that hole and the space below: 226 moves to 16 MiB were counted where the same
/// growth makes 7 without a hole. The child's own mappings must not do that to the heap it measures.
pub fn mapped_len(len: usize) -> usize {
    const OS_PAGE: usize = 4096;
    const HUGE_PAGE: usize = 2 << 20;
    let whole = len.next_multiple_of(OS_PAGE);
    if whole.is_multiple_of(HUGE_PAGE) {
        whole + OS_PAGE
    } else {
        whole
    }
}

/// Readable and writable anonymous memory, zeroed at first, given back to the OS on drop.
///
/// Invariant MAPPED: while the value lives, `at` is valid for reads and writes of `len` bytes that belong to it
/// alone, in a mapping of [`mapped_len`] bytes. With `len` 0 nothing is mapped and `at` dangles.
#[derive(Debug)]
pub struct Mapping {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: MAPPED: the memory belongs to the value alone, like a boxed slice's.
unsafe impl Send for Mapping {}
// SAFETY: MAPPED, and shared access only reads.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes and touches every OS page, so that later use faults nothing in.
    ///
    /// # Errors
    /// What mmap says, `ENOMEM` for one.
    pub fn new(len: usize) -> io::Result<Mapping> {
        // The smallest page size of any Linux: right, if needlessly fine, where pages are larger.
        const STEP: usize = 4096;
        let mut mapping = Mapping::untouched(len)?;
        for byte in mapping.as_mut_slice().iter_mut().step_by(STEP) {
            let at: *mut u8 = byte;
            // SAFETY: `at` comes from a live exclusive reference. Volatile, so that writing the zero that is there
            // already is not left out. (Reading first would fault each page in twice.)
            unsafe { at.write_volatile(0) };
        }
        Ok(mapping)
    }

    /// Maps `len` bytes whose OS pages come with their first use.
    ///
    /// # Errors
    /// What mmap says, `ENOMEM` for one.
    pub fn untouched(len: usize) -> io::Result<Mapping> {
        if len == 0 {
            return Ok(Mapping {
                at: NonNull::dangling(),
                len,
            });
        }
        if len > isize::MAX as usize {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        // SAFETY: without MAP_FIXED the kernel chooses a free range, so no existing memory is replaced.
        let at = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                mapped_len(len),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { at, len })
    }

    /// Length in bytes, as asked for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: MAPPED; anonymous memory is initialised (zeroed), and `len` is at most `isize::MAX`.
        unsafe { slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    /// The bytes, to write.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`; `&mut self` makes the access exclusive.
        unsafe { slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len != 0 {
            // SAFETY: MAPPED: the range was mapped by us and no reference into it outlives the value.
            // munmap of a whole mapping of our own cannot fail, and there would be nobody to tell.
            let _ = unsafe { munmap(self.at.as_ptr().cast(), mapped_len(self.len)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mapping_is_a_multiple_of_a_huge_page() {
        for len in [1, 4095, 4096, (2 << 20) - 1, 2 << 20, 16 << 20] {
            assert!(
                mapped_len(len) >= len
                    && mapped_len(len).is_multiple_of(4096)
                    && !mapped_len(len).is_multiple_of(2 << 20)
            );
        }
    }
    use crate::probe::usage::Usage;

    #[test]
    fn zeroed_writable_and_of_the_length_asked_for() {
        let mut mapping = Mapping::new(100_001).unwrap();
        assert_eq!(mapping.len(), 100_001);
        assert!(mapping.as_slice().iter().all(|&b| b == 0));
        mapping.as_mut_slice().fill(7);
        assert!(mapping.as_slice().iter().all(|&b| b == 7));
    }

    #[test]
    fn nothing_and_too_much() {
        let mut nothing = Mapping::new(0).unwrap();
        assert!(nothing.is_empty() && nothing.as_mut_slice().is_empty());
        assert!(Mapping::new(usize::MAX).is_err());
        assert!(Mapping::untouched(1 << 60).is_err());
    }

    #[test]
    fn use_after_touching_faults_nothing_in() {
        const PAGES: usize = 4096;
        let mut touched = Mapping::new(PAGES * 4096).unwrap();
        let before = Usage::of_this_thread();
        touched.as_mut_slice().fill(1);
        let after = Usage::of_this_thread().since(&before).minflt;
        // The first access of another part of the program's own code may fault: a handful, never a page of ours.
        assert!(
            after < PAGES as u64 / 64,
            "{after} faults in {PAGES} touched OS pages"
        );
    }
}
