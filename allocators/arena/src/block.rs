//! Blocks: what the client gets, seen from both sides of the counter.
//!
//! A block belongs to the client while it is live. While it is free it belongs to the allocator, which keeps the link
//! to the next free block of the pool in its first eight bytes.

use core::ptr::NonNull;

/// A pointer that the client gave. Nothing is known of it until the address map has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientPtr(*mut u8);

impl ClientPtr {
    /// As it came.
    #[inline]
    #[must_use]
    pub fn new(p: *mut u8) -> Self {
        ClientPtr(p)
    }

    /// As it came.
    #[inline]
    #[must_use]
    pub fn raw(self) -> *mut u8 {
        self.0
    }

    /// The address, as a number.
    #[inline]
    #[must_use]
    pub fn address(self) -> usize {
        self.0.addr()
    }

    /// The block, now the allocator's again.
    ///
    /// # Safety
    /// The pointer is that of a live block of a pool, which the client gives up.
    #[inline]
    pub(crate) unsafe fn given_up(self) -> BlockPtr {
        // SAFETY: the caller's promise; a block's address is not null.
        BlockPtr(unsafe { NonNull::new_unchecked(self.0) })
    }
}

/// A free block.
///
/// Invariant FREE: the pointer is that of a whole block of a pool in an arena that is held, aligned to 8 bytes, which is
/// not live: the client has not got it, or has given it up. Handing it out ends the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPtr(NonNull<u8>);

impl BlockPtr {
    /// # Safety
    /// FREE holds of `at`.
    #[inline]
    pub(crate) unsafe fn new(at: NonNull<u8>) -> Self {
        BlockPtr(at)
    }

    /// The next free block of its pool.
    ///
    /// # Safety
    /// The link has been set since the block was last live.
    #[inline]
    pub(crate) unsafe fn link(self) -> Option<BlockPtr> {
        // SAFETY: FREE: 8 bytes or more, aligned, and nobody else's; the caller's promise: what is read was written.
        unsafe { self.0.cast::<Option<BlockPtr>>().read() }
    }

    /// Sets the link.
    #[inline]
    pub(crate) fn set_link(self, next: Option<BlockPtr>) {
        // SAFETY: FREE: 8 bytes or more, aligned, and nobody else's.
        unsafe { self.0.cast::<Option<BlockPtr>>().write(next) };
    }

    /// The address, as a number.
    #[inline]
    pub(crate) fn address(self) -> usize {
        self.0.addr().get()
    }

    /// To the client.
    #[inline]
    pub(crate) fn hand_out(self) -> *mut u8 {
        self.0.as_ptr()
    }
}

// The link fits into the smallest block.
const _: () = assert!(size_of::<Option<BlockPtr>>() == 8);
