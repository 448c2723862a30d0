//! A stack of blocks of one size, from whose top some are taken and put back: what arena-edge and push-pop are made of.

use crate::child::session::{Session, Stop};
use contract::{Block, Driver, FreeOrder, Heap, Mode, OutOfMemory, Sizes};
use xxhash_rust::xxh3::xxh3_64;

/// Pairs of malloc and free between two looks at the clock, at least: around a single one the look would cost more than
/// the pair.
pub(super) const PAIRS_A_LOOK: usize = 1024;

/// The stack, with all that is known of it before anything is measured. It stays from one run to the next if the session
/// says so.
pub(super) struct Stack {
    blocks: Vec<Block>,
    /// Blocks that stand when a round begins.
    live: usize,
    /// Blocks that go or come at once.
    depth: usize,
    /// As many as the larger of the two.
    sizes: Sizes,
    /// The order in which `depth` blocks go.
    some: FreeOrder,
    /// The order in which all go.
    all: FreeOrder,
    /// Hash of the first bytes of `live` blocks.
    expected: u64,
}

impl Stack {
    /// `live` blocks of `size` bytes, of which, or on which, `depth` come and go.
    ///
    /// # Errors
    /// [`Stop`] if a block has no bytes.
    pub(super) fn new(size: u64, live: u64, depth: u64) -> Result<Stack, Stop> {
        let [live, depth] = [live, depth].map(|count| count as usize);
        let sizes = Sizes::new(vec![size as u32; live.max(depth)])
            .ok_or_else(|| Stop::Input("a stack of blocks of no bytes".to_owned()))?;
        Ok(Stack {
            blocks: Vec::with_capacity(live + depth),
            some: FreeOrder::last_first(depth as u32),
            all: FreeOrder::last_first(live as u32),
            expected: xxh3_64(&vec![size as u8; live]),
            live,
            depth,
            sizes,
        })
    }

    /// Bytes that one needs at most if so many blocks are made and none is given back: twice a block for rounding and
    /// a header; and of its own a handle and a size for each, and a place in two orders.
    pub(super) fn footprint(size: u64, blocks: u64) -> u64 {
        let own = size_of::<Block>() as u64 + 3 * size_of::<u32>() as u64;
        blocks.saturating_mul(2 * size + 32 + own)
    }

    /// Makes the live blocks, unless they stand already.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator returns null.
    pub(super) fn stand<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
    ) -> Result<(), OutOfMemory> {
        if self.blocks.is_empty() {
            driver.push_each(&mut self.blocks, &self.sizes, 0, self.live)?;
        }
        Ok(())
    }

    /// Makes `depth` blocks on top.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator returns null.
    pub(super) fn push<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
    ) -> Result<(), OutOfMemory> {
        driver.push_each(&mut self.blocks, &self.sizes, 0, self.depth)?;
        Ok(())
    }

    /// Frees the `depth` newest, the newest first.
    pub(super) fn pop<H: Heap, M: Mode>(&mut self, driver: &mut Driver<H, M>) {
        driver.free_last(&mut self.blocks, &self.some);
    }

    /// Checks the first byte of every block.
    pub(super) fn check<H: Heap, M: Mode>(&self, driver: &Driver<H, M>, session: &mut Session) {
        session.contents_of(self.expected, |sum| {
            let mut bytes = Vec::with_capacity(self.blocks.len());
            for block in &self.blocks {
                driver.read(block, 0, 1, |first| bytes.extend_from_slice(first));
            }
            *sum = sum.wrapping_add(xxh3_64(&bytes));
        });
    }

    /// Frees the live blocks, the newest first.
    pub(super) fn clear<H: Heap, M: Mode>(&mut self, driver: &mut Driver<H, M>) {
        driver.free_last(&mut self.blocks, &self.all);
    }

    /// Frees whatever stands after a run that did not end well.
    pub(super) fn release<H: Heap, M: Mode>(&mut self, driver: &mut Driver<H, M>) {
        while let Some(block) = self.blocks.pop() {
            driver.free(block);
        }
    }
}
