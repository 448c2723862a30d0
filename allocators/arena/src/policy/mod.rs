//! What differs between the generations of CPython's policy, and what a change to it would change.
//!
//! Common to all: size classes, pools, how blocks are carved and linked, the realloc rule. A [`Policy`] is the rest, in
//! one small file each: numbers, the [`Order`] in which free pools are taken, how many usable arenas must be left for an
//! empty one to be released, and the [address test](crate::address_test).
//!
//! | policy | CPython | arena, pool | order | an empty arena | address test |
//! |---|---|---|---|---|---|
//! | [`Python24`] | 2.3, 2.4 | 256 KiB, 4 KiB | [`GlobalPools`] | is never released | pool header |
//! | [`Python25`] | 2.5 to 3.7 | 256 KiB, 4 KiB | [`LinearSlide`] | is released | pool header, arena may be gone |
//! | [`Python38`] | 3.8 | 256 KiB, 4 KiB | [`ByFreePools`] | is released | the same |
//! | [`Python39`] | 3.9 | 256 KiB, 4 KiB | [`ByFreePools`] | is released if a usable one follows | the same |
//! | [`Python310`] | 3.10 and later | 1 MiB, 16 KiB | [`ByFreePools`] | the same | radix tree |
//! | [`Python24Asking`] | none | as [`Python24`] | as there | as there | as [`Python25`] |
//! | [`Tuned`] | none | as asked | as asked | as asked | as asked |
//!
//! All of them have blocks in steps of 16 bytes, up to 512, as CPython from 3.7.4 on and 2.7.18 have, so that they differ
//! in what they do with arenas alone. (Up to 2.7 and 3.2 the line was at 256 bytes, up to 3.7.3 the step was 8: [`Tuned`]
//! has those.)
//!
//! # A policy of one's own
//!
//! What it takes to try out a change: a seventh policy that takes pools from the arena that has the most of them free,
//! and keeps two empty arenas.
//!
//! ```
//! use arena::address_map::AddressMap;
//! use arena::arena::{ArenaId, Table};
//! use arena::check::Fault;
//! use arena::heap::Heap;
//! use arena::os::{Libc, Os};
//! use arena::policy::{Order, Policy};
//! use arena::pool::PoolPtr;
//!
//! struct EmptiestFirst;
//!
//! // SAFETY: pools are put back to the table and taken from it, and an arena that is released has left the list.
//! unsafe impl Order for EmptiestFirst {
//!     fn added(&mut self, table: &mut Table, id: ArenaId) {
//!         table.push_front(id);
//!     }
//!     fn take(&mut self, table: &mut Table) -> Option<PoolPtr> {
//!         let (mut emptiest, mut at) = (table.usable()?, table.usable());
//!         while let Some(id) = at {
//!             if table[id].free_pools > table[emptiest].free_pools {
//!                 emptiest = id;
//!             }
//!             at = table[id].next;
//!         }
//!         let pool = table.take_from(emptiest);
//!         if table[emptiest].free_pools == 0 {
//!             table.unlink(emptiest);
//!         }
//!         pool
//!     }
//!     fn give(&mut self, table: &mut Table, pool: PoolPtr, keep: u32) -> Option<ArenaId> {
//!         let id = table.put_back(pool);
//!         if table.is_released(id, keep) {
//!             table.unlink(id);
//!             return Some(id);
//!         }
//!         if table[id].free_pools == 1 {
//!             table.push_front(id);
//!         }
//!         None
//!     }
//!     fn check(&self, table: &Table) -> Result<(), Fault> {
//!         table.check_usable()
//!     }
//! }
//!
//! struct Mine;
//!
//! // SAFETY: constants, within the limits.
//! unsafe impl Policy for Mine {
//!     type Order = EmptiestFirst;
//!     type Test = AddressMap;
//!     fn order(&self) -> EmptiestFirst {
//!         EmptiestFirst
//!     }
//!     fn test<O: Os>(&self, os: &O) -> Option<AddressMap> {
//!         AddressMap::new(os, self.arena_bits())
//!     }
//!     fn keep(&self) -> u32 {
//!         2
//!     }
//! }
//!
//! let mut heap = Heap::new(Libc::default(), Mine).expect("memory");
//! let blocks: Vec<*mut u8> = (0..100_000).map(|_| heap.malloc(100)).collect();
//! for p in blocks {
//!     // SAFETY: live, once each.
//!     unsafe { heap.free(p) };
//! }
//! assert_eq!(heap.check(), Ok(()));
//! println!("{}", heap.debug_text());
//! ```

mod any;
mod by_free_pools;
mod global_pools;
mod last_usable;
mod linear_slide;
mod python_2_4;
mod python_2_4_asking;
mod python_2_5;
mod python_3_10;
mod python_3_8;
mod python_3_9;
mod tuned;

pub use any::{AnyOrder, AnyTest, OrderKind, TestKind};
pub use by_free_pools::ByFreePools;
pub use global_pools::GlobalPools;
pub use last_usable::LastUsable;
pub use linear_slide::LinearSlide;
pub use python_2_4::Python24;
pub use python_2_4_asking::Python24Asking;
pub use python_2_5::Python25;
pub use python_3_8::Python38;
pub use python_3_9::Python39;
pub use python_3_10::Python310;
pub use tuned::{Settings, Tuned, Unfit};

use crate::address_test::AddressTest;
use crate::arena::{ArenaId, Table};
use crate::check::Fault;
use crate::os::Os;
use crate::pool::PoolPtr;

/// As many usable arenas as never follow: no arena is ever released.
pub const KEEP_ALL: u32 = u32::MAX;

/// One generation's policy. Where its numbers are constants they are constants of the compiled code. What it does not
/// say is as in CPython 3.10 and later.
///
/// # Safety
/// The numbers never change, and `4096 <= pool size`, `4 * pool size <= arena size <= MAX_POOLS * pool size`,
/// `arena_bits <= 24`, `align_bits` is 3 or 4, `1 << align_bits <= threshold <= MAX_THRESHOLD`. With
/// [`PoolHeader`](crate::address_test::PoolHeader) for a test the pool size is 4096; with that test for arenas that are
/// never gone the order never releases one.
pub unsafe trait Policy {
    /// In which order free pools are taken.
    type Order: Order;

    /// How addresses are tested.
    type Test: AddressTest;

    /// The order, before there is any arena.
    fn order(&self) -> Self::Order;

    /// The test, before there is any arena; `None` if the backing refuses what it takes.
    fn test<O: Os>(&self, os: &O) -> Option<Self::Test>;

    /// Logarithm of the arena size in bytes.
    #[inline]
    fn arena_bits(&self) -> u32 {
        20
    }

    /// Logarithm of the pool size in bytes.
    #[inline]
    fn pool_bits(&self) -> u32 {
        14
    }

    /// Logarithm of the step between block sizes, which is the alignment of blocks.
    #[inline]
    fn align_bits(&self) -> u32 {
        4
    }

    /// Largest request, in bytes, that blocks serve: a multiple of the step.
    #[inline]
    fn threshold(&self) -> usize {
        512
    }

    /// How many usable arenas must follow one all of whose pools are free, on the order's list, for it to be given back:
    /// 0 releases at once, 1 is the rule of 3.9, by which the last one stays; [`KEEP_ALL`] never releases.
    #[inline]
    fn keep(&self) -> u32 {
        1
    }

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

/// The order in which free pools are taken, and the list of usable arenas, if it keeps one.
///
/// # Safety
/// Every pool that [`take`](Order::take) returns is free, and is free no more: nothing returns it again before it is
/// given. Of an arena that is returned by [`give`](Order::give) all pools are free, and nothing returns one of them, or
/// the arena, again. Records change by the functions of [`Table`] alone, except that `free_pools` counts what is taken
/// and given.
pub unsafe trait Order {
    /// `id`, all of whose pools are free, has been got, as there was no free pool.
    fn added(&mut self, table: &mut Table, id: ArenaId);

    /// Takes a free pool; `None` if there is none.
    fn take(&mut self, table: &mut Table) -> Option<PoolPtr>;

    /// Takes back a pool that has become empty. Returns its arena if that is released by the rule of
    /// [`keep`](Policy::keep): then it is on no list any more.
    fn give(&mut self, table: &mut Table, pool: PoolPtr, keep: u32) -> Option<ArenaId>;

    /// Compares the lists, and the order's own books, with its rule.
    ///
    /// # Errors
    /// The first difference.
    fn check(&self, table: &Table) -> Result<(), Fault>;
}
