//! The mode of verification: nothing that the allocator does is believed.
//!
//! A shadow model keeps, in its own memory, which blocks are live and what is in each of them. Every block is filled
//! when it is handed out, so that its contents are defined and two blocks never look alike.

use crate::{Mode, Place};
use core::fmt;
use core::ptr;
use std::collections::BTreeMap;

/// How a heap was caught: which rule, which block. Addresses are numbers, sizes are requested bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// A block was handed out that shares bytes with another live one.
    Overlap {
        /// Address of the new block.
        at: usize,
        /// Its size.
        size: usize,
        /// Address of the block that was there before.
        other: usize,
        /// The other's size.
        other_size: usize,
    },
    /// A block was handed out at an address that does not suit every C type of its size.
    Misaligned {
        /// Address of the block.
        at: usize,
        /// Its size.
        size: usize,
        /// The alignment that its size calls for.
        needed: usize,
    },
    /// A block does not hold after realloc what it held before.
    LostByRealloc {
        /// Address before.
        from: usize,
        /// Size before.
        old: usize,
        /// Address after.
        to: usize,
        /// Size after.
        new: usize,
        /// The first byte that differs.
        offset: usize,
        /// What it held.
        expected: u8,
        /// What it holds.
        found: u8,
    },
    /// A block does not hold what was last written into it, and realloc has nothing to do with it.
    Changed {
        /// Address of the block.
        at: usize,
        /// Its size.
        size: usize,
        /// When it was noticed.
        when: Noticed,
        /// The first byte that differs.
        offset: usize,
        /// What was written.
        expected: u8,
        /// What it holds.
        found: u8,
    },
}

/// When a change of contents was noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noticed {
    /// Just before the block was resized.
    BeforeRealloc,
    /// Just after a resize that failed and must leave the block as it was.
    AfterFailedRealloc,
    /// Just before it was freed.
    AtFree,
    /// In [`Canary::check_live`].
    WhileLive,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Broken::Overlap {
                at,
                size,
                other,
                other_size,
            } => write!(
                f,
                "live blocks overlap: {size} bytes were handed out at {at:#x}, where a live block of {other_size} \
                 bytes lies at {other:#x}"
            ),
            Broken::Misaligned { at, size, needed } => write!(
                f,
                "misaligned block: {size} bytes were handed out at {at:#x}, which is not a multiple of {needed}"
            ),
            Broken::LostByRealloc {
                from,
                old,
                to,
                new,
                offset,
                expected,
                found,
            } => write!(
                f,
                "contents lost by realloc: the block of {old} bytes at {from:#x} became {new} bytes at {to:#x}, and \
                 its byte {offset}, which was {expected:#04x}, is {found:#04x}"
            ),
            Broken::Changed {
                at,
                size,
                when,
                offset,
                expected,
                found,
            } => {
                let when = match when {
                    Noticed::BeforeRealloc => "before a realloc",
                    Noticed::AfterFailedRealloc => "after a realloc that failed",
                    Noticed::AtFree => "when it was freed",
                    Noticed::WhileLive => "while it was live",
                };
                write!(
                    f,
                    "contents changed: in the block of {size} bytes at {at:#x}, byte {offset} was written as \
                     {expected:#04x} and was {found:#04x} {when}"
                )
            }
        }
    }
}

impl std::error::Error for Broken {}

/// Mirrors every live block and compares.
///
/// Only the first finding is kept, and nothing is checked after it: what follows from it would only confuse.
///
/// What is compared when: all of a block that realloc has moved, and of a block that is freed; blocks of up to
/// [`Canary::ALWAYS_COMPARED`] bytes before and after every resize. A larger block that is resized in place is not
/// compared then (that would make growth in small steps quadratic), but later, when it moves or is freed.
///
/// Invariant MIRROR: while nothing was found, `live` holds exactly the blocks that the driver has been given and has
/// not given back, so each is valid for reads and writes of its mirror's length.
#[derive(Debug, Default)]
pub struct Canary {
    live: BTreeMap<usize, Vec<u8>>,
    broken: Option<Broken>,
    fills: u64,
    least_alignment: Option<usize>,
    any_alignment: bool,
}

/// The alignment that every C type of `size` bytes is content with: a type's size is a multiple of its alignment, and
/// no fundamental alignment exceeds 16.
pub(crate) fn needed_alignment(size: usize) -> usize {
    if size >= 16 {
        16
    } else {
        1 << size.max(1).ilog2()
    }
}

/// The first byte in which memory and mirror differ: offset, mirror's, memory's.
///
/// # Safety
/// `at` is valid for reads of as many bytes as the mirror has.
unsafe fn first_difference(at: *const u8, mirror: &[u8]) -> Option<(usize, u8, u8)> {
    let mut buffer = [0u8; 4096];
    for (n, expected) in mirror.chunks(buffer.len()).enumerate() {
        let start = n * 4096;
        let found = &mut buffer[..expected.len()];
        // SAFETY: inside the block by the caller's promise; the buffer is ours. Bytes come out by raw copies, so that
        // an allocator that overlaps blocks gives wrong bytes and not undefined behaviour.
        unsafe { ptr::copy_nonoverlapping(at.add(start), found.as_mut_ptr(), expected.len()) };
        if found != expected {
            let i = found.iter().zip(expected).position(|(a, b)| a != b)?;
            return Some((start + i, expected[i], found[i]));
        }
    }
    None
}

impl Canary {
    /// One that is content with any alignment, which is asked elsewhere, and goes on to look at overlaps and contents.
    #[cfg(feature = "suite")]
    #[must_use]
    pub fn of_contents() -> Self {
        Canary {
            any_alignment: true,
            ..Canary::default()
        }
    }

    /// Bytes up to which a block is compared at every resize.
    pub const ALWAYS_COMPARED: usize = 64 << 10;

    /// What was found first, if anything was.
    #[must_use]
    pub fn broken(&self) -> Option<&Broken> {
        self.broken.as_ref()
    }

    /// The smallest power of two that some block was aligned to and no better: 16 or more unless the heap gives small
    /// blocks less, which it may. `None` before the first block.
    #[must_use]
    pub fn least_alignment(&self) -> Option<usize> {
        self.least_alignment
    }

    /// How many blocks are live.
    #[must_use]
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// Compares every live block: for those that a workload never frees. The heap must still be there.
    pub fn check_live(&mut self) {
        let live = core::mem::take(&mut self.live);
        for (at, mirror) in &live {
            self.compare(
                ptr::with_exposed_provenance(*at),
                mirror,
                mirror.len(),
                Noticed::WhileLive,
            );
        }
        self.live = live;
    }

    fn found(&mut self, broken: Broken) {
        self.broken.get_or_insert(broken);
    }

    /// Compares the block of `size` bytes at `at` with its mirror.
    fn compare(&mut self, at: *const u8, mirror: &[u8], size: usize, when: Noticed) {
        // SAFETY: MIRROR.
        if let Some((offset, expected, found)) = unsafe { first_difference(at, mirror) } {
            self.found(Broken::Changed {
                at: at.addr(),
                size,
                when,
                offset,
                expected,
                found,
            });
        }
    }

    /// Compares the block of `new` bytes at `to` with the mirror of what it was before it was resized.
    fn compare_resized(
        &mut self,
        from: *mut u8,
        old: usize,
        to: *mut u8,
        new: usize,
        mirror: &[u8],
    ) {
        // SAFETY: MIRROR: the block at `to` holds `new` bytes, and the mirror no more than that.
        if let Some((offset, expected, found)) = unsafe { first_difference(to, mirror) } {
            let (from, to) = (from.addr(), to.addr());
            self.found(Broken::LostByRealloc {
                from,
                old,
                to,
                new,
                offset,
                expected,
                found,
            });
        }
    }

    /// Takes what was just written into a block over into its mirror.
    fn mirror_write(&mut self, at: *mut u8, offset: usize, len: usize) {
        let mirror = self.live.get_mut(&at.addr());
        if let Some(target) = mirror.and_then(|mirror| mirror.get_mut(offset..)?.get_mut(..len)) {
            // SAFETY: MIRROR: the block has as many bytes as its mirror, so `offset .. offset + len` lies in it.
            unsafe { ptr::copy_nonoverlapping(at.add(offset), target.as_mut_ptr(), len) };
        }
    }

    /// Looks at the place of a block that was handed out, by malloc or by realloc.
    fn check_place(&mut self, at: *mut u8, size: usize) {
        let address = at.expose_provenance();
        let alignment = 1 << address.trailing_zeros();
        self.least_alignment = Some(
            self.least_alignment
                .map_or(alignment, |least| least.min(alignment)),
        );
        let needed = needed_alignment(size);
        if alignment < needed && !self.any_alignment {
            self.found(Broken::Misaligned {
                at: address,
                size,
                needed,
            });
        }
        // Blocks of no bytes have addresses of their own, so each block takes one byte at least.
        let end = address.saturating_add(size.max(1));
        if let Some((other, mirror)) = self.live.range(..end).next_back()
            && other.saturating_add(mirror.len().max(1)) > address
        {
            let (other, other_size) = (*other, mirror.len());
            self.found(Broken::Overlap {
                at: address,
                size,
                other,
                other_size,
            });
        }
    }

    /// Fills a block from the end of its mirror up to `size`, and the mirror with it. Each fill differs from all others
    /// and each word of it from its neighbours.
    fn fill(&mut self, at: *mut u8, mirror: &mut Vec<u8>, size: usize) {
        let start = mirror.len();
        self.fills += 1;
        let mut word = self.fills.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        while mirror.len() < size {
            word = (word ^ (word >> 29))
                .wrapping_mul(0xBF58_476D_1CE4_E5B9)
                .wrapping_add(1);
            let bytes = word.to_le_bytes();
            let n = bytes.len().min(size - mirror.len());
            mirror.extend_from_slice(&bytes[..n]);
        }
        // SAFETY: the block has just been handed out or resized, and holds `size` bytes; the mirror is ours.
        unsafe {
            ptr::copy_nonoverlapping(mirror.as_ptr().add(start), at.add(start), size - start)
        };
    }
}

// The hooks dereference what they are given: `Mode` says that it is live.
impl Mode for Canary {
    fn allocated(&mut self, at: &Place, size: usize) {
        if self.broken.is_some() {
            return;
        }
        self.check_place(at.0, size);
        let mut mirror = Vec::with_capacity(size);
        self.fill(at.0, &mut mirror, size);
        self.live.insert(at.address(), mirror);
    }

    fn resizing(&mut self, from: &Place, old: usize) {
        if self.broken.is_some() || old > Self::ALWAYS_COMPARED {
            return;
        }
        if let Some(mirror) = self.live.remove(&from.address()) {
            self.compare(from.0, &mirror, old, Noticed::BeforeRealloc);
            self.live.insert(from.address(), mirror);
        }
    }

    fn resized(&mut self, from: &Place, old: usize, to: &Place, new: usize) {
        if self.broken.is_some() {
            return;
        }
        let Some(mut mirror) = self.live.remove(&from.address()) else {
            return;
        };
        mirror.truncate(new);
        self.check_place(to.0, new);
        if from != to || mirror.len() <= Self::ALWAYS_COMPARED {
            self.compare_resized(from.0, old, to.0, new, &mirror);
        }
        self.fill(to.0, &mut mirror, new);
        self.live.insert(to.address(), mirror);
    }

    fn resize_failed(&mut self, from: &Place, old: usize) {
        if self.broken.is_some() {
            return;
        }
        if let Some(mirror) = self.live.remove(&from.address()) {
            self.compare(from.0, &mirror, old, Noticed::AfterFailedRealloc);
            self.live.insert(from.address(), mirror);
        }
    }

    fn wrote(&mut self, at: &Place, offset: usize, len: usize) {
        if self.broken.is_some() {
            return;
        }
        self.mirror_write(at.0, offset, len);
    }

    fn freeing(&mut self, at: &Place, size: usize) {
        if self.broken.is_some() {
            return;
        }
        if let Some(mirror) = self.live.remove(&at.address()) {
            self.compare(at.0, &mirror, size, Noticed::AtFree);
        }
    }
}
