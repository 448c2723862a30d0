//! What differs between the generations of CPython's policy, and what a change to it would change.
//!
//! Common to all: size classes, pools, how blocks are carved and linked, the realloc rule. A [`Policy`] is the rest, in
//! one small file each: numbers, when an empty arena is released, and the [`Order`] of usable arenas.

mod by_free_pools;
mod python_3_10;
mod tuned;

pub use by_free_pools::ByFreePools;
pub use python_3_10::Python310;
pub use tuned::{Numbers, Tuned, Unfit};

use crate::arena::{ArenaId, Table};
use crate::check::Fault;

/// One generation's policy. Where its numbers are constants they are constants of the compiled code.
///
/// # Safety
/// The numbers never change, and `4096 <= pool size`, `4 * pool size <= arena size <= MAX_POOLS * pool size`,
/// `arena_bits <= 24`, `16 <= threshold <= MAX_THRESHOLD`.
pub unsafe trait Policy {
    /// In which order usable arenas are kept.
    type Order: Order;

    /// Logarithm of the arena size in bytes.
    fn arena_bits(&self) -> u32;

    /// Logarithm of the pool size in bytes.
    fn pool_bits(&self) -> u32;

    /// Largest request, in bytes, that blocks serve.
    fn threshold(&self) -> usize;

    /// Whether an arena all of whose pools are free is given back, when another usable arena follows it on the list or
    /// none does.
    fn releases(&self, another_follows: bool) -> bool;

    /// Bytes in an arena.
    #[inline]
    fn arena_size(&self) -> usize {
        1 << self.arena_bits()
    }

    /// Bytes in a pool.
    #[inline]
    fn pool_size(&self) -> usize {
        1 << self.pool_bits()
    }
}

/// The order of usable arenas. Pools are taken from the first.
pub trait Order {
    /// Before there is any arena.
    const EMPTY: Self;

    /// `id`, all of whose pools are free, has become the only usable arena.
    fn added(&mut self, table: &Table, id: ArenaId);

    /// A pool of `id`, the first usable arena, is about to be taken: its count of free pools is about to fall by one.
    fn taking(&mut self, table: &Table, id: ArenaId);

    /// A pool was given back to `id`, whose count of free pools has risen by one. If it is `released` it leaves the
    /// list; otherwise it is to be where it belongs, which, for an arena that was full, is the list at all.
    fn given(&mut self, table: &mut Table, id: ArenaId, released: bool);

    /// Compares the list, and the order's own books, with its rule.
    ///
    /// # Errors
    /// The first difference.
    fn check(&self, table: &Table) -> Result<(), Fault>;
}
