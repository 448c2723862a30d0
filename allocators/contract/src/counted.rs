//! The mode of the census: every call counted.

use crate::{Mode, Place};

/// One block moved by realloc: for matching with the system calls of the same process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// Address before.
    pub from: usize,
    /// Address after.
    pub to: usize,
    /// Requested bytes that moved: the smaller of the old and the new size.
    pub bytes: usize,
}

/// What was counted. Bytes are requested bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Calls of malloc.
    pub malloc_calls: u64,
    /// Calls of realloc, failed ones included.
    pub realloc_calls: u64,
    /// Calls of free.
    pub free_calls: u64,
    /// Calls of realloc that returned another address.
    pub realloc_moves: u64,
    /// Bytes in the blocks that moved: the smaller of old and new size, summed. A move need not be a copy: the C
    /// library moves large blocks by mremap.
    pub moved_bytes: u64,
    /// Bytes that the workload itself copied from block to block.
    pub client_copied_bytes: u64,
    /// Live bytes now.
    pub live_bytes: u64,
    /// The most that `live_bytes` has been.
    pub peak_live_bytes: u64,
}

/// Counts every call, and keeps a list of large moves if asked to.
#[derive(Debug, Default)]
pub struct Counted {
    counts: Counts,
    moves: Vec<Move>,
    log_from: usize,
    overflowed: bool,
}

impl Counted {
    /// Moves of fewer bytes are never logged: below it no known allocator moves by remapping pages (the C library
    /// starts at its mmap threshold, 128 KiB).
    pub const LOGGED_FROM: usize = 64 << 10;

    /// Counts, and logs up to `room` moves of at least [`Counted::LOGGED_FROM`] bytes. The room is taken at once, so
    /// that the log never allocates while something is measured.
    #[must_use]
    pub fn new(room: usize) -> Self {
        let log_from = if room == 0 {
            usize::MAX
        } else {
            Self::LOGGED_FROM
        };
        Counted {
            counts: Counts::default(),
            moves: Vec::with_capacity(room),
            log_from,
            overflowed: false,
        }
    }

    /// The large moves, in order, or `None` if there were more than the log had room for.
    #[must_use]
    pub fn moves(&self) -> Option<&[Move]> {
        (!self.overflowed).then_some(&self.moves)
    }

    fn live(&mut self, more: usize, less: usize) {
        self.counts.live_bytes = self.counts.live_bytes + more as u64 - less as u64;
        self.counts.peak_live_bytes = self.counts.peak_live_bytes.max(self.counts.live_bytes);
    }
}

impl Mode for Counted {
    fn counts(&self) -> Option<Counts> {
        Some(self.counts)
    }

    #[inline]
    fn allocated(&mut self, _at: &Place, size: usize) {
        self.counts.malloc_calls += 1;
        self.live(size, 0);
    }

    #[inline]
    fn resized(&mut self, from: &Place, old: usize, to: &Place, new: usize) {
        self.counts.realloc_calls += 1;
        self.live(new, old);
        if from != to {
            let bytes = old.min(new);
            self.counts.realloc_moves += 1;
            self.counts.moved_bytes += bytes as u64;
            if bytes >= self.log_from {
                if self.moves.len() < self.moves.capacity() {
                    self.moves.push(Move {
                        from: from.address(),
                        to: to.address(),
                        bytes,
                    });
                } else {
                    self.overflowed = true;
                }
            }
        }
    }

    #[inline]
    fn resize_failed(&mut self, _from: &Place, _old: usize) {
        self.counts.realloc_calls += 1;
    }

    #[inline]
    fn copied(&mut self, len: usize) {
        self.counts.client_copied_bytes += len as u64;
    }

    #[inline]
    fn freeing(&mut self, _at: &Place, size: usize) {
        self.counts.free_calls += 1;
        self.live(0, size);
    }
}
