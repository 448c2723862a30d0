//! Arenas: regions got from the operating system, and the table that has them.
//!
//! An arena that is held is **usable** while it has free pools, empty or not yet carved, and **full** otherwise. Usable
//! arenas are on one list, whose order is the policy's affair; pools are taken from the arena at its head, first empty
//! ones, then by carving. Records without an arena are on a list of their own, the last released first. The table
//! starts with 16 records and doubles.
//!
//! Equations, after every operation (`check` counts them out):
//! - `free_pools = length of the list of empty pools + (total_pools - carved)`
//! - `0 < free_pools` exactly for the arenas on the usable list
//! - `total_pools = arena size / pool size`, less one if the arena does not begin at a multiple of the pool size
//! - `reclaimed = allocated_total - current`, `current <= highwater <= allocated_total`
//! - `current + length of the list of unused records = length of the table`

use crate::os::Os;
use crate::policy::{Order, Policy};
use crate::pool::PoolPtr;
use core::num::NonZeroU32;
use core::ops::{Index, IndexMut};
use core::ptr::{self, NonNull};
use core::slice;

/// The table's first length, in records.
pub const FIRST_RECORDS: u32 = 16;

/// The most pools that an arena can be cut into.
pub const MAX_POOLS: usize = 1024;

/// The memory of an arena.
///
/// Invariant HELD: arena-size bytes from [`Os::map`], not given back, and no other arena's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArenaPtr(NonNull<u8>);

impl ArenaPtr {
    /// # Safety
    /// HELD holds of `at`.
    pub(crate) unsafe fn new(at: NonNull<u8>) -> Self {
        ArenaPtr(at)
    }

    pub(crate) fn raw(self) -> NonNull<u8> {
        self.0
    }

    /// Its address, as a number.
    #[must_use]
    pub fn address(self) -> usize {
        self.0.addr().get()
    }

    /// Offset of the first pool.
    #[must_use]
    pub fn first_pool(self, pool_size: usize) -> usize {
        self.address().wrapping_neg() & (pool_size - 1)
    }

    /// Pools that it has room for.
    fn pools(self, arena_size: usize, pool_size: usize) -> u32 {
        ((arena_size - self.first_pool(pool_size)) / pool_size) as u32
    }

    /// Where its pool number `n` lies.
    ///
    /// # Safety
    /// `n` is less than [`pools`](ArenaPtr::pools).
    pub(crate) unsafe fn pool_at(self, n: u32, pool_size: usize) -> NonNull<u8> {
        // SAFETY: HELD and the caller's promise.
        unsafe {
            self.0
                .add(self.first_pool(pool_size) + n as usize * pool_size)
        }
    }
}

/// A record's place in the table, plus one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArenaId(NonZeroU32);

impl ArenaId {
    fn at(index: u32) -> ArenaId {
        ArenaId(NonZeroU32::MIN.saturating_add(index))
    }

    /// Its place in the table, from 0.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// What is known of one arena; or a record without one.
#[derive(Debug)]
pub struct Record {
    /// The arena's memory; `None` if this record has no arena.
    pub base: Option<ArenaPtr>,
    /// Its empty pools, the last emptied first, linked by `next`.
    pub empty: Option<PoolPtr>,
    /// Pools carved so far, from the first on.
    pub carved: u32,
    /// Pools that can be taken: empty ones and those not yet carved.
    pub free_pools: u32,
    /// Pools that it has room for.
    pub total_pools: u32,
    /// The next on the list that it is on, usable or unused.
    pub next: Option<ArenaId>,
    /// The one before it on the list of usable arenas.
    pub prev: Option<ArenaId>,
}

impl Record {
    const fn unused(next: Option<ArenaId>) -> Record {
        Record {
            base: None,
            empty: None,
            carved: 0,
            free_pools: 0,
            total_pools: 0,
            next,
            prev: None,
        }
    }
}

/// The records, and the list of usable arenas through them.
///
/// Invariant TABLE: `records` is a block of the backing of `len` records, all initialised and this table's alone; with
/// `len` 0 it is dangling.
#[derive(Debug)]
pub struct Table {
    records: NonNull<Record>,
    len: u32,
    usable: Option<ArenaId>,
}

impl Index<ArenaId> for Table {
    type Output = Record;
    fn index(&self, id: ArenaId) -> &Record {
        &self.records()[id.index()]
    }
}

impl IndexMut<ArenaId> for Table {
    fn index_mut(&mut self, id: ArenaId) -> &mut Record {
        &mut self.records_mut()[id.index()]
    }
}

impl Table {
    const fn new() -> Table {
        Table {
            records: NonNull::dangling(),
            len: 0,
            usable: None,
        }
    }

    /// All records, used or not.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        // SAFETY: TABLE.
        unsafe { slice::from_raw_parts(self.records.as_ptr(), self.len as usize) }
    }

    fn records_mut(&mut self) -> &mut [Record] {
        // SAFETY: TABLE.
        unsafe { slice::from_raw_parts_mut(self.records.as_ptr(), self.len as usize) }
    }

    /// Arenas that are held, with their records.
    pub fn held(&self) -> impl Iterator<Item = (ArenaId, ArenaPtr, &Record)> {
        (0..).zip(self.records()).filter_map(|(index, record)| {
            record.base.map(|base| (ArenaId::at(index), base, record))
        })
    }

    /// Head of the list of usable arenas.
    #[must_use]
    pub fn usable(&self) -> Option<ArenaId> {
        self.usable
    }

    /// Doubles the table and returns the first of the new records, linked with the rest of them; `None`, and nothing
    /// has changed, if the backing refuses.
    fn grow<O: Os>(&mut self, os: &O) -> Option<ArenaId> {
        let old = self.len;
        let new = if old == 0 {
            FIRST_RECORDS
        } else {
            old.checked_mul(2)?
        };
        let bytes = (new as usize).checked_mul(size_of::<Record>())?;
        let from = if old == 0 {
            ptr::null_mut()
        } else {
            self.records.as_ptr().cast()
        };
        // SAFETY: TABLE: a block of the backing, or null.
        let to = NonNull::new(unsafe { os.realloc(from, bytes) })?.cast::<Record>();
        self.records = to;
        for index in old..new {
            let next = (index + 1 < new).then(|| ArenaId::at(index + 1));
            // SAFETY: `index` is below `new`, the length of the block.
            unsafe { to.add(index as usize).write(Record::unused(next)) };
        }
        // TABLE: from here on all of them are initialised.
        self.len = new;
        Some(ArenaId::at(old))
    }

    /// Puts an arena at the head of the usable ones.
    pub fn push_front(&mut self, id: ArenaId) {
        let first = self.usable.replace(id);
        self[id].next = first;
        self[id].prev = None;
        if let Some(first) = first {
            self[first].prev = Some(id);
        }
    }

    /// Takes an arena off the list of usable ones.
    pub fn unlink(&mut self, id: ArenaId) {
        let (prev, next) = (self[id].prev.take(), self[id].next.take());
        match prev {
            Some(prev) => self[prev].next = next,
            None => self.usable = next,
        }
        if let Some(next) = next {
            self[next].prev = prev;
        }
    }

    /// Puts an arena behind another on the list of usable ones.
    pub fn insert_after(&mut self, id: ArenaId, before: ArenaId) {
        let next = self[before].next.replace(id);
        self[id].prev = Some(before);
        self[id].next = next;
        if let Some(next) = next {
            self[next].prev = Some(id);
        }
    }
}

/// How many arenas there are and have been, as CPython counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Got from the operating system, ever.
    pub allocated_total: u64,
    /// Held now.
    pub current: u64,
    /// The most that `current` has been.
    pub highwater: u64,
}

/// All arenas, kept in an order of the policy's.
#[derive(Debug)]
pub struct Arenas<D> {
    table: Table,
    /// Records without an arena.
    unused: Option<ArenaId>,
    order: D,
    counts: Counts,
}

impl<D: Order> Arenas<D> {
    pub(crate) const fn new() -> Self {
        Arenas {
            table: Table::new(),
            unused: None,
            order: D::EMPTY,
            counts: Counts {
                allocated_total: 0,
                current: 0,
                highwater: 0,
            },
        }
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The order's own books.
    #[must_use]
    pub fn order(&self) -> &D {
        &self.order
    }

    /// Head of the list of records without an arena.
    #[must_use]
    pub fn unused(&self) -> Option<ArenaId> {
        self.unused
    }

    /// How many there are and have been.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The record for one more arena; `None` if the backing refuses to let the table grow.
    pub(crate) fn room<O: Os>(&mut self, os: &O) -> Option<ArenaId> {
        if self.unused.is_none() {
            self.unused = Some(self.table.grow(os)?);
        }
        self.unused
    }

    /// Takes an arena in, all of whose pools are free, at the record that [`room`](Arenas::room) has just given. Only
    /// when no arena is usable.
    pub(crate) fn add<P: Policy>(&mut self, id: ArenaId, base: ArenaPtr, policy: &P) {
        debug_assert!(self.table.usable.is_none() && self.unused == Some(id));
        self.unused = self.table[id].next;
        let pools = base.pools(policy.arena_size(), policy.pool_size());
        self.table[id] = Record {
            base: Some(base),
            free_pools: pools,
            total_pools: pools,
            ..Record::unused(None)
        };
        self.table.push_front(id);
        self.order.added(&self.table, id);
        self.counts.allocated_total += 1;
        self.counts.current += 1;
        self.counts.highwater = self.counts.highwater.max(self.counts.current);
    }

    /// Takes a pool from the first usable arena; `None` if no arena is usable.
    pub(crate) fn take_pool<P: Policy>(&mut self, policy: &P) -> Option<PoolPtr> {
        let id = self.table.usable?;
        self.order.taking(&self.table, id);
        let record = &mut self.table[id];
        let pool = match (record.empty, record.base) {
            (Some(pool), _) => {
                record.empty = pool.next.get();
                pool
            }
            (None, Some(base)) if record.carved < record.total_pools => {
                let n = record.carved;
                record.carved += 1;
                // SAFETY: the arena has as many pools, and nobody uses pool `n` before it is carved.
                unsafe { PoolPtr::carve(base.pool_at(n, policy.pool_size()), id) }
            }
            _ => return None,
        };
        record.free_pools -= 1;
        if record.free_pools == 0 {
            self.table.unlink(id);
        }
        Some(pool)
    }

    /// Takes an empty pool back. Returns the arena if it is to be given to the operating system: then it is in no
    /// list any more.
    pub(crate) fn give_pool<P: Policy>(&mut self, pool: PoolPtr, policy: &P) -> Option<ArenaPtr> {
        let id = pool.arena;
        let record = &mut self.table[id];
        pool.next.set(record.empty);
        record.empty = Some(pool);
        record.free_pools += 1;
        let empty = record.free_pools == record.total_pools;
        let released = empty && policy.releases(record.next.is_some());
        self.order.given(&mut self.table, id, released);
        if !released {
            return None;
        }
        let next = self.unused.replace(id);
        let record = core::mem::replace(&mut self.table[id], Record::unused(next));
        self.counts.current -= 1;
        record.base
    }

    /// Gives everything back: the arenas and the table.
    ///
    /// # Safety
    /// Nobody uses a block of these arenas any more.
    pub(crate) unsafe fn release<O: Os>(&mut self, os: &O, arena_size: usize) {
        for (_, base, _) in self.table.held() {
            // SAFETY: HELD, and the caller's promise.
            unsafe { os.unmap(base.raw(), arena_size) };
        }
        if self.table.len > 0 {
            // SAFETY: TABLE: a block of the backing, with nothing in it that would have to be dropped.
            unsafe { os.free(self.table.records.as_ptr().cast()) };
        }
        *self = Arenas::new();
    }
}
