//! Runs of mallocs and frees of many small blocks: the loops of a workload that does little else.
//!
//! As with runs of reallocs, a run is a loop that is never inlined, so that around the calls there is no more than in a
//! loop written by hand in C. What the loops would have to ask at each step, whether a place is there and whether an
//! order names each block once, is asked of the tables when they are made.

use super::{Driver, FREE, MALLOC, Mode, OutOfMemory, Place};
use crate::{Block, Heap};
use core::ptr::{self, NonNull};

/// One step of [`Refills`]: which block goes, and the bytes of the one that takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refill {
    /// Index of the block.
    pub slot: u32,
    /// Bytes of the new one.
    pub size: u32,
}

/// Steps that each free a block and put a new one in its place.
///
/// Invariant IN-SLOTS: every `offset` is that of a block in a table of `slots` blocks, and no `size` is 0.
#[derive(Debug, Clone)]
pub struct Refills {
    steps: Vec<Step>,
    slots: usize,
}

/// A [`Refill`] as the loop wants it.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Bytes from the first block's handle: a shift less at each step.
    offset: u32,
    size: u32,
}

impl Step {
    const STRIDE: u32 = size_of::<Block>() as u32;

    fn refill(self) -> Refill {
        Refill {
            slot: self.offset / Step::STRIDE,
            size: self.size,
        }
    }
}

impl Refills {
    /// `steps` over `slots` blocks; `None` if one names a slot that there is not, or one of more than 2^32 bytes of
    /// handles, or a size of 0.
    #[must_use]
    pub fn new(steps: impl IntoIterator<Item = Refill>, slots: usize) -> Option<Self> {
        let checked = |step: Refill| {
            let good = (step.slot as usize) < slots && step.size != 0;
            good.then_some(Step {
                offset: step.slot.checked_mul(Step::STRIDE)?,
                size: step.size,
            })
        };
        let steps = steps.into_iter().map(checked).collect::<Option<_>>()?;
        Some(Refills { steps, slots })
    }

    /// How many steps there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The steps.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = Refill> + '_ {
        self.steps.iter().map(|step| step.refill())
    }
}

/// Sizes of blocks that are made one after the other, none of them 0.
#[derive(Debug, Clone)]
pub struct Sizes(Vec<u32>);

impl Sizes {
    /// `None` if one is 0.
    #[must_use]
    pub fn new(sizes: Vec<u32>) -> Option<Self> {
        (!sizes.contains(&0)).then_some(Sizes(sizes))
    }

    /// The sizes.
    #[must_use]
    pub fn get(&self) -> &[u32] {
        &self.0
    }
}

/// An order in which the last blocks are freed: each by its distance from the last one, which has 0.
///
/// Invariant ONCE: the entries are the numbers below their count, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeOrder(Vec<u32>);

impl FreeOrder {
    /// `None` unless `distances` are the numbers below their count, each once.
    #[must_use]
    pub fn new(distances: Vec<u32>) -> Option<Self> {
        let mut seen = vec![false; distances.len()];
        for distance in &distances {
            let seen = seen.get_mut(*distance as usize)?;
            if std::mem::replace(seen, true) {
                return None;
            }
        }
        Some(FreeOrder(distances))
    }

    /// Last in, first out: `count` blocks from the last one down.
    #[must_use]
    pub fn last_first(count: u32) -> Self {
        FreeOrder((0..count).collect())
    }

    /// The distances, in order.
    #[must_use]
    pub fn distances(&self) -> &[u32] {
        &self.0
    }
}

impl<H: Heap, M: Mode> Driver<'_, H, M> {
    /// For each step of `from ..`, at most `most` of them: frees the block in its slot, and puts a new one there, whose
    /// first byte is written as the low byte of its size. Tells how many were made.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator returns null. The slot that stays empty is then gone from `blocks`, and the last
    /// block stands in its place.
    ///
    /// # Panics
    /// If there are fewer blocks than the steps were made for.
    #[inline(never)]
    pub fn refill_each(
        &mut self,
        blocks: &mut Vec<Block>,
        refills: &Refills,
        from: usize,
        most: usize,
    ) -> Result<usize, OutOfMemory> {
        assert!(
            blocks.len() >= refills.slots,
            "fewer blocks than the steps were made for"
        );
        let left = refills.steps.get(from..).unwrap_or_default();
        let steps = &left[..most.min(left.len())];
        let mut ops = self.ops;
        let slots = blocks.as_mut_ptr();
        let mut left = steps.iter();
        let mut refused = None;
        for step in left.by_ref() {
            // SAFETY: IN-SLOTS and the check above: the slot is one of `blocks`, which nobody else touches meanwhile.
            let block = unsafe { &mut *slots.byte_add(step.offset as usize) };
            ops = ops.wrapping_add(block.size as u64);
            // SAFETY: LIVE: the block is in the table; its handle is overwritten below, or taken out of the table.
            unsafe { self.give_back(block.at, block.size) };
            let size = step.size as usize;
            ops = ops.wrapping_add(size as u64);
            let Some(at) = NonNull::new(self.heap.malloc(size)) else {
                refused = Some(*step);
                break;
            };
            // SAFETY: the block holds `size` bytes, and IN-SLOTS: at least 1.
            unsafe { self.first_byte(at, size) };
            *block = Block { at, size };
        }
        let tried = (steps.len() - left.len()) as u64;
        self.ops = ops.wrapping_add(tried.wrapping_mul(MALLOC.wrapping_add(FREE)));
        let Some(Refill { slot, size }) = refused.map(Step::refill) else {
            return Ok(steps.len());
        };
        // The handle in the slot names a block that is gone.
        blocks.swap_remove(slot as usize);
        Err(OutOfMemory {
            requested: size as usize,
        })
    }

    /// Makes a block of each of the sizes in `from ..`, at most `most` of them, the first byte of each written as the low
    /// byte of its size, and puts it behind the others. Tells how many were made.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator returns null; those made before are there.
    #[inline(never)]
    pub fn push_each(
        &mut self,
        blocks: &mut Vec<Block>,
        sizes: &Sizes,
        from: usize,
        most: usize,
    ) -> Result<usize, OutOfMemory> {
        let left = sizes.0.get(from..).unwrap_or_default();
        let sizes = &left[..most.min(left.len())];
        blocks.reserve(sizes.len());
        let first = blocks.len();
        let mut ops = self.ops;
        // SAFETY: the end of the table, of which there is room beyond.
        let mut end = unsafe { blocks.as_mut_ptr().add(first) };
        let mut left = sizes.iter();
        let mut refused = None;
        for size in left.by_ref() {
            let size = *size as usize;
            ops = ops.wrapping_add(size as u64);
            let Some(at) = NonNull::new(self.heap.malloc(size)) else {
                refused = Some(OutOfMemory { requested: size });
                break;
            };
            // SAFETY: the block holds `size` bytes, and no size is 0; there is room for as many blocks as there are sizes.
            unsafe {
                self.first_byte(at, size);
                end.write(Block { at, size });
                end = end.add(1);
            }
        }
        let made = sizes.len() - left.len() - usize::from(refused.is_some());
        // SAFETY: so many blocks were written behind the others.
        unsafe { blocks.set_len(first + made) };
        self.ops =
            ops.wrapping_add(((made + usize::from(refused.is_some())) as u64).wrapping_mul(MALLOC));
        refused.map_or(Ok(made), Err)
    }

    /// Frees the last blocks in `order`, which tells by its length how many.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(never)]
    pub fn free_last(&mut self, blocks: &mut Vec<Block>, order: &FreeOrder) {
        let kept = blocks
            .len()
            .checked_sub(order.0.len())
            .expect("as many blocks as the order names");
        let mut ops = self.ops;
        // From here on the table does not have them.
        // SAFETY: fewer blocks than there are; behind the end is what lay there before, `order.0.len()` of them.
        let end = unsafe {
            blocks.set_len(kept);
            blocks.as_mut_ptr().add(kept + order.0.len())
        };
        for distance in &order.0 {
            // SAFETY: ONCE: one of those last blocks, which are still where they were, and each is freed once.
            unsafe {
                let block = ptr::read(end.sub(*distance as usize + 1));
                ops = ops.wrapping_add(block.size as u64);
                self.give_back(block.at, block.size);
            }
        }
        self.ops = ops.wrapping_add((order.0.len() as u64).wrapping_mul(FREE));
    }

    /// free, with the size where the heap is defined so.
    ///
    /// # Safety
    /// LIVE: a live block of this heap of `size` bytes, whose handle is not used afterwards.
    #[inline(always)]
    unsafe fn give_back(&mut self, at: NonNull<u8>, size: usize) {
        let at = at.as_ptr();
        self.mode.freeing(&Place(at), size);
        // SAFETY: LIVE, by the caller's promise; the driver makes no blocks by `aligned`.
        unsafe {
            if H::SIZED_FREE {
                self.heap.free_sized(at, size, 1);
            } else {
                self.heap.free(at);
            }
        }
    }

    /// A block of `size` bytes is new at `at`: its first byte becomes the low byte of its size.
    ///
    /// # Safety
    /// It has as many bytes, at least one.
    #[inline(always)]
    unsafe fn first_byte(&mut self, at: NonNull<u8>, size: usize) {
        self.mode.allocated(&Place(at.as_ptr()), size);
        // SAFETY: the caller's promise.
        unsafe { at.as_ptr().write(size as u8) };
        self.mode.wrote(&Place(at.as_ptr()), 0, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_asked_when_they_are_made() {
        let step = |slot, size| Refill { slot, size };
        assert!(Refills::new([step(0, 1), step(2, 512)], 3).is_some());
        assert!(Refills::new([step(3, 1)], 3).is_none());
        assert!(Refills::new([step(0, 0)], 3).is_none());
        assert!(Sizes::new(vec![1, 2]).is_some());
        assert!(Sizes::new(vec![1, 0]).is_none());
        assert!(FreeOrder::new(vec![2, 0, 1]).is_some());
        assert!(FreeOrder::new(Vec::new()).is_some());
        for wrong in [vec![0, 0], vec![1], vec![0, 1, 3]] {
            assert!(FreeOrder::new(wrong.clone()).is_none(), "{wrong:?}");
        }
        assert_eq!(FreeOrder::last_first(3).distances(), [0, 1, 2]);
    }
}
