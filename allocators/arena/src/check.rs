//! The checker: walks every list, pool and block and compares what it finds with the equations that stand beside the
//! types. For tests, which call it after every operation or every few; nothing else does.

use crate::address_test::AddressTest;
use crate::arena::{ArenaId, ArenaPtr, Record};
use crate::heap::Heap;
use crate::os::Os;
use crate::policy::{Order, Policy};
use crate::pool::{HEADER, PoolPtr};
use crate::size_class::{self, SizeClass};
use core::fmt;

/// The first thing that was not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What should hold.
    pub rule: &'static str,
    /// Where it does not: an address, an index or a count, as the rule has it.
    pub at: usize,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken at {0:#x} ({0}): {1}", self.at, self.rule)
    }
}

/// `rule`, or a fault `at`.
pub(crate) fn expect(rule: &'static str, holds: bool, at: usize) -> Result<(), Fault> {
    if holds {
        Ok(())
    } else {
        Err(Fault { rule, at })
    }
}

/// What a walk over one arena's pools counts.
#[derive(Default)]
struct Found {
    used: usize,
    empty: u32,
}

impl<O: Os, P: Policy> Heap<O, P> {
    /// Compares everything with the invariants.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), Fault> {
        self.check_table()?;
        let mut used = 0;
        for (id, base, record) in self.arenas().table().held() {
            used += self.check_arena(id, base, record)?.used;
        }
        expect(
            "every used pool is on its class's list, and no other",
            self.check_class_lists()? == used,
            used,
        )?;
        self.arenas().order().check(self.arenas().table())?;
        self.test().check(self.arenas().table(), self.policy())?;
        self.check_stats()
    }

    /// The list of records without an arena, and the counts.
    fn check_table(&self) -> Result<(), Fault> {
        let table = self.arenas().table();
        let len = table.records().len();
        let (mut unused, mut at) = (0, self.arenas().unused());
        while let Some(id) = at {
            expect(
                "an unused record has no arena",
                table[id].base.is_none(),
                id.index(),
            )?;
            unused += 1;
            expect("the unused list ends", unused <= len, unused)?;
            at = table[id].next;
        }
        let held = table.held().count();
        let counts = self.arenas().counts();
        expect("records are held or unused", held + unused == len, len)?;
        expect(
            "held arenas are counted",
            held as u64 == counts.current,
            held,
        )?;
        expect(
            "current <= highwater <= total",
            counts.current <= counts.highwater && counts.highwater <= counts.allocated_total,
            held,
        )
    }

    /// One arena and its pools.
    fn check_arena(&self, id: ArenaId, base: ArenaPtr, record: &Record) -> Result<Found, Fault> {
        let (size, pool_size) = (self.policy().arena_size(), self.policy().pool_size());
        let at = base.address();
        let aligned = base.first_pool(pool_size) == 0;
        expect(
            "pools that an arena has room for",
            record.total_pools as usize == size / pool_size - usize::from(!aligned),
            at,
        )?;
        expect(
            "pools are carved of an arena",
            record.carved <= record.total_pools,
            at,
        )?;

        let mut found = Found::default();
        for n in 0..record.carved {
            // SAFETY: pools up to `carved` are carved, and the arena is held.
            let pool = unsafe { PoolPtr::carved(base.pool_at(n, pool_size)) };
            expect("a pool knows its arena", pool.arena == id, pool.address())?;
            if self.check_pool(pool)? {
                found.used += 1;
            }
            found.empty += u32::from(pool.live.get() == 0);
        }

        expect(
            "free pools = empty + not carved",
            record.free_pools == found.empty + (record.total_pools - record.carved),
            at,
        )?;
        expect(
            "a wholly empty arena is held only if the policy keeps one",
            record.free_pools < record.total_pools || self.policy().keep() > 0,
            at,
        )?;
        Ok(found)
    }

    /// One pool. Returns whether it is used.
    fn check_pool(&self, pool: PoolPtr) -> Result<bool, Fault> {
        let (at, live) = (pool.address(), pool.live.get() as usize);
        let Some(class) = pool.class.get() else {
            expect("a pool without a class has no live block", live == 0, at)?;
            return Ok(false);
        };
        let size = class.block_size(self.policy().align_bits());
        let pool_size = self.policy().pool_size();
        let capacity = size_class::capacity(size, pool_size, HEADER);
        expect(
            "a class is one of the classes",
            self.classes().any(|one| one == class),
            at,
        )?;
        expect(
            "last = pool size - block size",
            pool.last.get() as usize == pool_size - size,
            at,
        )?;
        let virgin = pool.virgin_blocks(size);
        let (mut free, mut next) = (0, pool.free.get());
        while let Some(block) = next {
            let offset = block.address().wrapping_sub(at);
            expect(
                "a free block is a block of its pool that has been handed out or is next to be",
                (HEADER..pool.virgin.get() as usize).contains(&offset)
                    && (offset - HEADER).is_multiple_of(size),
                block.address(),
            )?;
            free += 1;
            expect("a free list ends", free <= capacity, at)?;
            // SAFETY: LISTED.
            next = unsafe { block.link() };
        }
        expect(
            "live + free + virgin = capacity",
            live + free + virgin == capacity,
            at,
        )?;
        expect(
            "a free list is empty in full pools alone",
            (free == 0) == (live == capacity),
            at,
        )?;
        Ok(0 < live && live < capacity)
    }

    /// The class lists. Returns how many pools are on them.
    fn check_class_lists(&self) -> Result<usize, Fault> {
        let most: usize = self
            .arenas()
            .table()
            .held()
            .map(|(_, _, record)| record.carved as usize)
            .sum();
        let served = self.classes().count();
        expect(
            "classes beyond the threshold have no pools",
            self.used()[served..].iter().all(Option::is_none),
            served,
        )?;
        let mut listed = 0;
        for (class, first) in self.classes().zip(self.used()) {
            let (mut before, mut next) = (None, *first);
            while let Some(pool) = next {
                let at = pool.address();
                expect(
                    "a class's pools are of that class",
                    pool.class.get() == Some(class),
                    at,
                )?;
                expect(
                    "used pools are linked both ways",
                    pool.prev.get() == before,
                    at,
                )?;
                expect("a listed pool is not empty", pool.live.get() > 0, at)?;
                expect("a listed pool is not full", pool.free.get().is_some(), at)?;
                listed += 1;
                expect("class lists end", listed <= most, listed)?;
                (before, next) = (next, pool.next.get());
            }
        }
        Ok(listed)
    }

    fn classes(&self) -> impl Iterator<Item = SizeClass> {
        SizeClass::all(self.policy().threshold(), self.policy().align_bits())
    }

    /// The statistics add up.
    fn check_stats(&self) -> Result<(), Fault> {
        let stats = self.stats();
        let held = stats.arenas.current * stats.arenas.size;
        expect(
            "allocated + available + unused + headers + quantization + alignment = arenas * size",
            stats.bytes.total() == held,
            held as usize,
        )
    }
}
