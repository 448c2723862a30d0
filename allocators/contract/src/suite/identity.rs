//! Is the heap the allocator it says it is?

use crate::Heap;
use core::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What two sets of books said around 1000 blocks of 64 KiB. Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// By how much the allocator's own statistic rose.
    pub own_rise: i64,
    /// By how much the C library's (or another foreign one) rose.
    pub foreign_rise: i64,
}

impl Identity {
    /// Blocks that are allocated.
    pub const BLOCKS: usize = 1000;
    /// Bytes in each.
    pub const BLOCK: usize = 64 << 10;
    /// The own statistic must rise by this much at least, of the 65,536,000 bytes that were asked for.
    pub const OWN_AT_LEAST: i64 = 64_000_000;
    /// A foreign one must rise by less.
    pub const FOREIGN_BELOW: i64 = 64 << 10;

    /// Whether the allocator's own books saw the blocks.
    #[must_use]
    pub fn own_saw_them(&self) -> bool {
        self.own_rise >= Self::OWN_AT_LEAST
    }

    /// Whether the foreign books did not.
    #[must_use]
    pub fn foreign_did_not(&self) -> bool {
        self.foreign_rise < Self::FOREIGN_BELOW
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} blocks of {} bytes raised the allocator's own statistic by {} and the foreign one by {}",
            Self::BLOCKS,
            Self::BLOCK,
            self.own_rise,
            self.foreign_rise
        )
    }
}

/// Reads both books, allocates and touches the blocks, reads again, and frees them.
///
/// `own` is the allocator's own statistic of bytes in use, `foreign` that of whoever might be serving the blocks
/// instead, usually the C library's.
///
/// # Errors
/// If the heap gives fewer blocks than asked for.
pub fn identity<H: Heap>(
    heap: &H,
    own: impl Fn(&H) -> u64,
    foreign: impl Fn() -> u64,
) -> Result<Identity, String> {
    // Room first: the list must not show up in anybody's books. A first block, so that what an allocator takes when it
    // is first used is not counted.
    let mut blocks = Vec::with_capacity(Identity::BLOCKS);
    let first = heap.malloc(64);
    let (own_before, foreign_before) = (own(heap), foreign());
    for _ in 0..Identity::BLOCKS {
        let p = heap.malloc(Identity::BLOCK);
        if p.is_null() {
            break;
        }
        for page in (0..Identity::BLOCK).step_by(4096) {
            // SAFETY: the block is live and has as many bytes. Volatile, so that the compiler keeps it.
            unsafe { p.add(page).write_volatile(1) };
        }
        blocks.push(p);
    }
    let (own_after, foreign_after) = (own(heap), foreign());
    let got = blocks.len();
    for p in blocks {
        // SAFETY: live, and not used afterwards.
        unsafe { heap.free(p) };
    }
    if !first.is_null() {
        // SAFETY: live, and not used afterwards.
        unsafe { heap.free(first) };
    }
    if got < Identity::BLOCKS {
        return Err(format!(
            "the heap gave {got} of {} blocks",
            Identity::BLOCKS
        ));
    }
    Ok(Identity {
        own_rise: own_after.wrapping_sub(own_before).cast_signed(),
        foreign_rise: foreign_after.wrapping_sub(foreign_before).cast_signed(),
    })
}

/// Held by a test while it reads books: they are the process's, so those tests take turns.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed has nothing to leave behind.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
