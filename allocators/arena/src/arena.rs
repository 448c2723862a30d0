//! Arenas: regions got from the operating system, and the table that has them.
//!
//! An arena that is held is **usable** while it has free pools, empty or not yet carved, and **full** otherwise. Which
//! pool is taken next is the affair of the policy's order. From 2.5 on usable arenas are on one list, and pools are taken
//! from the arena at its head, first empty ones, then by carving. Records without an arena are on a list of their own,
//! the last released first. The table starts with 16 records and doubles.
//!
//! Equations, after every operation (`check` counts them out):
//! - `free_pools = empty pools + (total_pools - carved)`
//! - `0 < free_pools` exactly for the arenas on the usable list, if the order keeps one
//! - `total_pools = arena size / pool size`, less one if the arena does not begin at a multiple of the pool size
//! - `reclaimed = allocated_total - current`, `current <= highwater <= allocated_total`
//! - `current + length of the list of unused records = length of the table`

use crate::check::{Fault, expect};
use crate::os::Os;
use crate::policy::{Order, Policy};
use crate::pool::PoolPtr;
use crate::work::{Work, count};
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
    /// Its empty pools, the last emptied first, linked by `next`; `None` if the order lists them elsewhere.
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
/// `len` 0 it is dangling. The first `begun` of them have had an arena.
#[derive(Debug)]
pub struct Table {
    records: NonNull<Record>,
    len: u32,
    begun: usize,
    usable: Option<ArenaId>,
    arena_size: usize,
    pool_size: usize,
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
    const fn new(arena_size: usize, pool_size: usize) -> Table {
        Table {
            records: NonNull::dangling(),
            len: 0,
            begun: 0,
            usable: None,
            arena_size,
            pool_size,
        }
    }

    /// Bytes in a pool.
    #[must_use]
    pub fn pool_size(&self) -> usize {
        self.pool_size
    }

    /// The arena that `address` lies in, by looking at all of them.
    #[must_use]
    pub fn around(&self, address: usize) -> Option<ArenaId> {
        self.held()
            .find(|(_, base, _)| address.wrapping_sub(base.address()) < self.arena_size)
            .map(|(id, _, _)| id)
    }

    /// Where the arena of a record begins, the record named as a pool's header names it; 0 if it has none now; `None` if
    /// no record that has ever had one is so named.
    #[inline]
    pub(crate) fn base_of(&self, word: usize) -> Option<usize> {
        let index = word.wrapping_sub(1);
        if index >= self.begun {
            return None;
        }
        // SAFETY: TABLE: `begun` is `len` at most.
        let record = unsafe { &*self.records.as_ptr().add(index) };
        Some(record.base.map_or(0, ArenaPtr::address))
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

    /// Takes a free pool of an arena: the one last emptied, else one that is carved now. `None` if it is full. The list
    /// of usable arenas is the caller's affair.
    pub fn take_from(&mut self, id: ArenaId) -> Option<PoolPtr> {
        let pool_size = self.pool_size;
        let record = &mut self[id];
        let pool = match (record.empty, record.base) {
            (Some(pool), _) => {
                record.empty = pool.next.get();
                pool
            }
            (None, Some(base)) if record.carved < record.total_pools => {
                let n = record.carved;
                record.carved += 1;
                // SAFETY: the arena has as many pools, and nobody uses pool `n` before it is carved.
                unsafe { PoolPtr::carve(base.pool_at(n, pool_size), id) }
            }
            _ => return None,
        };
        record.free_pools -= 1;
        Some(pool)
    }

    /// Puts an empty pool on its arena's list and returns the arena. The list of usable arenas is the caller's affair.
    pub fn put_back(&mut self, pool: PoolPtr) -> ArenaId {
        let id = pool.arena;
        let record = &mut self[id];
        pool.next.set(record.empty);
        record.empty = Some(pool);
        record.free_pools += 1;
        id
    }

    /// The rule of releasing: all pools of the arena are free, and at least `keep` usable arenas follow it on the list.
    #[must_use]
    pub fn is_released(&self, id: ArenaId, keep: u32) -> bool {
        let record = &self[id];
        if record.free_pools != record.total_pools {
            return false;
        }
        let mut next = record.next;
        for _ in 0..keep {
            let Some(follower) = next else { return false };
            next = self[follower].next;
        }
        true
    }

    /// Puts an arena at the head of the usable ones.
    pub fn push_front(&mut self, id: ArenaId) {
        count(Work::ArenaLinks, 1);
        let first = self.usable.replace(id);
        self[id].next = first;
        self[id].prev = None;
        if let Some(first) = first {
            self[first].prev = Some(id);
        }
    }

    /// Takes an arena off the list of usable ones.
    pub fn unlink(&mut self, id: ArenaId) {
        count(Work::ArenaUnlinks, 1);
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
        count(Work::ArenaLinks, 1);
        let next = self[before].next.replace(id);
        self[id].prev = Some(before);
        self[id].next = next;
        if let Some(next) = next {
            self[next].prev = Some(id);
        }
    }

    /// For orders that keep a list of usable arenas: it has exactly those with free pools, linked both ways, and each
    /// arena's list has exactly its empty pools.
    ///
    /// # Errors
    /// The first fault.
    pub fn check_usable(&self) -> Result<(), Fault> {
        let (mut usable, mut before, mut at) = (0, None, self.usable);
        while let Some(id) = at {
            let (record, index) = (&self[id], id.index());
            expect("a usable arena is held", record.base.is_some(), index)?;
            expect(
                "a usable arena has free pools",
                record.free_pools > 0,
                index,
            )?;
            expect(
                "usable arenas are linked both ways",
                record.prev == before,
                index,
            )?;
            usable += 1;
            expect(
                "the usable list ends",
                usable <= self.records().len(),
                usable,
            )?;
            (before, at) = (at, record.next);
        }
        let mut with_free_pools = 0;
        for (id, base, record) in self.held() {
            with_free_pools += usize::from(record.free_pools > 0);
            let empty = record.free_pools as usize - (record.total_pools - record.carved) as usize;
            let (mut listed, mut next) = (0, record.empty);
            while let Some(pool) = next {
                let at = pool.address();
                expect("a listed empty pool is empty", pool.live.get() == 0, at)?;
                expect("a listed empty pool is of its arena", pool.arena == id, at)?;
                listed += 1;
                expect("the list of empty pools ends", listed <= empty, at)?;
                next = pool.next.get();
            }
            expect(
                "every empty pool is listed",
                listed == empty,
                base.address(),
            )?;
        }
        expect(
            "arenas with free pools are usable",
            with_free_pools == usable,
            usable,
        )
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
    pub(crate) fn new<P: Policy<Order = D>>(policy: &P) -> Self {
        Arenas {
            table: Table::new(policy.arena_size(), policy.pool_size()),
            unused: None,
            order: policy.order(),
            counts: Counts::default(),
        }
    }

    /// The table.
    #[inline]
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
    /// when there is no free pool.
    pub(crate) fn add(&mut self, id: ArenaId, base: ArenaPtr) {
        debug_assert!(self.table.usable.is_none() && self.unused == Some(id));
        self.unused = self.table[id].next;
        let pools = base.pools(self.table.arena_size, self.table.pool_size);
        self.table[id] = Record {
            base: Some(base),
            free_pools: pools,
            total_pools: pools,
            ..Record::unused(None)
        };
        // Records are used in their order until one is released; then that one comes first.
        self.table.begun = self.table.begun.max(id.index() + 1);
        self.order.added(&mut self.table, id);
        self.counts.allocated_total += 1;
        self.counts.current += 1;
        self.counts.highwater = self.counts.highwater.max(self.counts.current);
    }

    /// Takes a free pool; `None` if there is none.
    pub(crate) fn take_pool(&mut self) -> Option<PoolPtr> {
        self.order.take(&mut self.table)
    }

    /// Takes an empty pool back. Returns the arena if it is to be given to the operating system: then it is in no
    /// list any more.
    pub(crate) fn give_pool(&mut self, pool: PoolPtr, keep: u32) -> Option<ArenaPtr> {
        let id = self.order.give(&mut self.table, pool, keep)?;
        let next = self.unused.replace(id);
        let record = core::mem::replace(&mut self.table[id], Record::unused(next));
        self.counts.current -= 1;
        record.base
    }

    /// Gives everything back: the arenas and the table.
    ///
    /// # Safety
    /// Nobody uses these arenas any more, nor a block of them.
    pub(crate) unsafe fn release<O: Os>(&mut self, os: &O) {
        for (_, base, _) in self.table.held() {
            // SAFETY: HELD, and the caller's promise.
            unsafe { os.unmap(base.raw(), self.table.arena_size) };
        }
        if self.table.len > 0 {
            // SAFETY: TABLE: a block of the backing, with nothing in it that would have to be dropped.
            unsafe { os.free(self.table.records.as_ptr().cast()) };
        }
        self.table = Table::new(self.table.arena_size, self.table.pool_size);
    }
}
