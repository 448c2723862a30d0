//! What differs between the generations of CPython's policy, and what a change to it would change.
//!
//! Common to all: size classes, pools, how blocks are carved and linked, the realloc rule. A [`Policy`] is the rest, in
//! one small file each, which tells its rule in prose: numbers, the [`Order`] in which free pools are taken, how many usable
//! arenas must be left for an empty one to be released, and the [address test](crate::address_test).
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
//! # History
//!
//! - Up to 2.4 arenas were never released: what a program had held once, it kept. Evan Jones wrote the patch that releases
//!   them, Tim Peters took it up, and 2.5 had it (2006). By the seed of its time, a million empty lists that are deleted, a
//!   process fell from 48 MB to 3 MB on Windows XP; before, it hardly fell at all.
//! - Since 3.3 arenas come from mmap, and since 3.6 `PyMem_Malloc` is served by them too, not objects alone.
//! - 2019 brought three changes. bpo-37029 (3.8): keeping the order of arenas took time in proportion to their number.
//!   bpo-37257 (3.9): an empty arena is kept, for without it a block at the edge of an arena costs an arena each time it
//!   comes and goes. bpo-37448 (3.10): arenas of 1 MiB with pools of 16 KiB, told by a radix tree. Tim Peters then said
//!   what counts: "reclaimed" may only say how often work was done in vain; what was given back is highwater less current.
//! - 3.12 gathered the state in structures, and decides the same. 3.13 can have mimalloc in pymalloc's place, and its
//!   build without the global lock does.
//!
//! That each policy here is its generation's is tested: block by block against CPython's own file, of which a variant
//! stands for each from 2.5 on; and against a model written from the description, for 2.4.
//!
//! # A policy of one's own
//!
//! A policy that differs in numbers or in what it keeps is a few lines, since what it does not say is as in CPython 3.10. One that
//! keeps an eighth of the arenas that it has had at most:
//!
//! ```
//! use arena::address_map::AddressMap;
//! use arena::arena::{ArenaId, Table};
//! use arena::check::Fault;
//! use arena::heap::Heap;
//! use arena::os::Libc;
//! use arena::policy::{ByFreePools, Order, Policy};
//! use arena::pool::PoolPtr;
//!
//! /// CPython's order, and a memory for the most arenas that there were.
//! #[derive(Default)]
//! struct KeepAnEighth {
//!     order: ByFreePools,
//!     highwater: u32,
//! }
//!
//! // SAFETY: as `ByFreePools`, which does all of it.
//! unsafe impl Order for KeepAnEighth {
//!     fn added(&mut self, table: &mut Table, id: ArenaId) {
//!         self.highwater = self.highwater.max(table.held().count() as u32);
//!         self.order.added(table, id);
//!     }
//!     fn take(&mut self, table: &mut Table) -> Option<PoolPtr> {
//!         self.order.take(table)
//!     }
//!     fn give(&mut self, table: &mut Table, pool: PoolPtr, keep: u32) -> Option<ArenaId> {
//!         self.order.give(table, pool, keep.max(self.highwater / 8))
//!     }
//!     fn check(&self, table: &Table) -> Result<(), Fault> {
//!         self.order.check(table)
//!     }
//! }
//!
//! struct Eighth;
//!
//! // SAFETY: constants, within the limits.
//! unsafe impl Policy for Eighth {
//!     type Order = KeepAnEighth;
//!     type Test = AddressMap;
//! }
//!
//! let mut heap = Heap::new(Libc::default(), Eighth).expect("memory");
//! let blocks: Vec<*mut u8> = (0..200_000).map(|_| heap.malloc(500)).collect();
//! for p in blocks {
//!     // SAFETY: live, once each.
//!     unsafe { heap.free(p) };
//! }
//! assert_eq!(heap.check(), Ok(()));
//! let arenas = heap.stats().arenas;
//! assert_eq!(arenas.current, arenas.highwater / 8);
//! ```
//!
//! One with an order of its own is an [`Order`] more: pools are taken from the arena that has the most of them free, and two
//! empty arenas are kept.
//!
//! ```
//! use arena::address_map::AddressMap;
//! use arena::arena::{ArenaId, Table};
//! use arena::check::Fault;
//! use arena::heap::Heap;
//! use arena::os::Libc;
//! use arena::policy::{Order, Policy};
//! use arena::pool::PoolPtr;
//!
//! #[derive(Default)]
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
    type Order: Order + Default;

    /// How addresses are tested.
    type Test: AddressTest;

    /// The order, before there is any arena.
    #[inline]
    fn order(&self) -> Self::Order {
        Self::Order::default()
    }

    /// The test, before there is any arena; `None` if the backing refuses what it takes.
    #[inline]
    fn test<O: Os>(&self, os: &O) -> Option<Self::Test> {
        Self::Test::open(os, self.arena_bits())
    }

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
