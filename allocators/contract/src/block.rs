//! A handle to one live block.

use core::ptr::NonNull;

/// One live block of the heap under test.
///
/// It can be had only from a [`Driver`](crate::Driver), is neither `Copy` nor `Clone`, and is given back by value:
/// a workload cannot free twice or use after free. Dropping it without giving it back leaks the block, which is
/// what some workloads are about.
///
/// Invariant LIVE: `at` was returned by the process's one heap for `size` bytes and has not been freed since.
#[derive(Debug)]
pub struct Block {
    pub(crate) at: NonNull<u8>,
    pub(crate) size: usize,
}

// SAFETY: LIVE names the block, not a thread; whether a heap may be used from several threads is for
// `Capabilities::threads` to say and for the harness to respect.
unsafe impl Send for Block {}

impl Block {
    /// Requested bytes of this block (not its usable size).
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The block's address, as a number: for alignment checks and for matching moves with system calls.
    #[inline]
    #[must_use]
    pub fn address(&self) -> usize {
        self.at.as_ptr() as usize
    }
}
