//! What a heap with the feature `hardened` looks at before it believes a pointer: that it is a block of a pool, that the
//! block is live, and that the pool's free list is as the heap left it. Otherwise it says so and aborts.
//!
//! A pointer outside of all arenas is the backing's affair, which has checks of its own. A block that was freed, handed
//! out again and then freed by its former owner is, to everybody, the new owner's free.

use crate::block::ClientPtr;
use crate::heap::Heap;
use crate::os::{self, Os};
use crate::policy::Policy;
use crate::pool::{HEADER, PoolPtr};

/// Whether the feature is on.
pub(crate) const HARDENED: bool = cfg!(feature = "hardened");

impl<O: Os, P: Policy> Heap<O, P> {
    /// Aborts if `p`, which lies in an arena, is not a live block.
    pub(crate) fn demand_live(&self, p: ClientPtr) {
        let foreign = || -> ! { os::die("not a block of this heap", p.address()) };
        let pool_size = self.policy().pool_size();
        let table = self.arenas().table();
        let Some(id) = table.around(p.address()) else {
            foreign();
        };
        let record = &table[id];
        let Some(base) = record.base else { foreign() };
        let first = base.address() + base.first_pool(pool_size);
        let Some(number) = p.address().checked_sub(first).map(|at| at / pool_size) else {
            foreign();
        };
        if number >= record.carved as usize {
            foreign();
        }
        // SAFETY: it is carved, and its arena is held.
        let pool = unsafe { PoolPtr::carved(base.pool_at(number as u32, pool_size)) };
        if !self.is_block(pool, p.address()) {
            foreign();
        }
        if self.listed(pool, p.address()) {
            os::die("double free, or use after free, of the block", p.address());
        }
    }

    /// Aborts if the block at `p` is not live, or cannot be one that was last asked for with `size` bytes: a block of a pool has a size that
    /// pools serve, and any other such block is a stray, of which there must be one.
    pub(crate) fn demand_size(&self, p: ClientPtr, size: usize) {
        let served = self.class_of(size).is_some();
        let pooled = self.has(p.raw());
        if pooled {
            self.demand_live(p);
        }
        if pooled != served && !(served && self.strays() > 0) {
            os::die("freed with a size that it has not, the block", p.address());
        }
    }

    /// Aborts if the free list of `pool` is not as the heap left it.
    pub(crate) fn demand_sound_list(&self, pool: PoolPtr) {
        self.listed(pool, 0);
    }

    /// Whether a block of the pool that has been handed out, or is next to be, begins at `address`.
    fn is_block(&self, pool: PoolPtr, address: usize) -> bool {
        let Some(class) = pool.class.get() else {
            return false;
        };
        let offset = address.wrapping_sub(pool.address());
        (HEADER..pool.virgin.get() as usize).contains(&offset)
            && (offset - HEADER).is_multiple_of(class.block_size(self.policy().align_bits()))
    }

    /// Whether the block at `address` is on the pool's free list. Aborts if the list leads astray.
    fn listed(&self, pool: PoolPtr, address: usize) -> bool {
        let (mut found, mut next, mut steps) = (false, pool.free.get(), 0);
        while let Some(block) = next {
            // A list that runs in a circle is longer than a pool has blocks.
            if steps > self.policy().pool_size() || !self.is_block(pool, block.address()) {
                os::die("smashed free list of the pool", pool.address());
            }
            found |= block.address() == address;
            steps += 8;
            // SAFETY: LISTED; and if somebody wrote over the links, some block of the pool that was linked once.
            next = unsafe { block.link() };
        }
        found
    }
}
