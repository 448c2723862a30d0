//! The address test: is this block one of a pool, or one of the backing? Asked at every free and realloc.
//!
//! Three answers, of three ages. A test must know all arenas that are held, and may look at whatever it likes.

use crate::address_map::{AddressMap, Levels};
use crate::arena::{ArenaPtr, Table};
use crate::block::ClientPtr;
use crate::check::{Fault, expect};
use crate::os::Os;
use crate::policy::Policy;
use crate::pool;
use crate::work::{Work, count};

/// A way to tell blocks of pools from those of the backing.
///
/// # Safety
/// Of an address in use [`has`](AddressTest::has) says whether it lies in an arena that the table holds, provided that
/// each was marked when it was got and unmarked when it was released.
pub unsafe trait AddressTest: Sized {
    /// The test, before there is any arena; `None` if the backing refuses what it takes.
    fn open<O: Os>(os: &O, arena_bits: u32) -> Option<Self>;

    /// Whether `p` lies in an arena that is held.
    ///
    /// # Safety
    /// `p` is null or a live block of the heap that asks.
    unsafe fn has<P: Policy>(&self, p: ClientPtr, table: &Table, policy: &P) -> bool;

    /// An arena was got. `None`, and it is not marked, if the backing refuses what that takes.
    fn mark<O: Os>(&mut self, os: &O, arena: ArenaPtr, arena_bits: u32) -> Option<()> {
        let _ = (os, arena, arena_bits);
        Some(())
    }

    /// An arena that is marked is about to be released.
    fn unmark<O: Os>(&mut self, os: &O, arena: ArenaPtr, arena_bits: u32) {
        let _ = (os, arena, arena_bits);
    }

    /// The map, if this test has one.
    fn map(&self) -> Option<&AddressMap> {
        None
    }

    /// Gives back whatever it has of the backing's.
    ///
    /// # Safety
    /// The test is not used afterwards.
    unsafe fn release<O: Os>(&mut self, os: &O, arena_bits: u32) {
        let _ = (os, arena_bits);
    }

    /// Compares the test with the table.
    ///
    /// # Errors
    /// The first difference.
    fn check<P: Policy>(&self, table: &Table, policy: &P) -> Result<(), Fault> {
        let _ = (table, policy);
        Ok(())
    }
}

/// All arenas are looked at, one by one, until one has the address. Nobody ever did so: it is what the others save.
#[derive(Debug, Clone, Copy, Default)]
pub struct VectorWalk;

// SAFETY: the table has all arenas.
unsafe impl AddressTest for VectorWalk {
    fn open<O: Os>(_os: &O, _arena_bits: u32) -> Option<Self> {
        Some(VectorWalk)
    }

    #[inline]
    unsafe fn has<P: Policy>(&self, p: ClientPtr, table: &Table, policy: &P) -> bool {
        let held = |record: &crate::arena::Record| {
            count(Work::AddressProbes, 1);
            let covers =
                |base: ArenaPtr| p.address().wrapping_sub(base.address()) < policy.arena_size();
            record.base.is_some_and(covers)
        };
        table.records().iter().any(held)
    }
}

/// The header of the pool that would be there names an arena; whether that arena covers the address decides. The header
/// may be no header at all, but anybody's memory: then what it names does not cover the address. CPython up to 3.9.
///
/// A pool must not be larger than an OS page, or there might be no memory at its start.
///
/// `RELEASED`: arenas can have been released, and a record without one has address 0. 2.5 has added that comparison.
#[derive(Debug, Clone, Copy, Default)]
pub struct PoolHeader<const RELEASED: bool = true>;

// SAFETY: in a pool the header names its arena, which covers it. Outside of all arenas none covers the address. What is
// between an arena's start and its first pool, or behind the last, is no block.
unsafe impl<const RELEASED: bool> AddressTest for PoolHeader<RELEASED> {
    fn open<O: Os>(_os: &O, _arena_bits: u32) -> Option<Self> {
        Some(PoolHeader)
    }

    #[inline]
    unsafe fn has<P: Policy>(&self, p: ClientPtr, table: &Table, policy: &P) -> bool {
        if p.address() == 0 {
            return false;
        }
        count(Work::AddressProbes, 1);
        // SAFETY: a live block is in use, and a policy with this test has pools that are not larger than an OS page.
        let word = unsafe { pool::peek_arena(p, policy.pool_size()) };
        let Some(base) = table.base_of(word) else {
            return false;
        };
        count(Work::AddressProbes, 1);
        if p.address().wrapping_sub(base) >= policy.arena_size() {
            return false;
        }
        if RELEASED && base == 0 {
            unlikely();
            return false;
        }
        true
    }
}

/// Marks a branch that is hardly ever taken, so that it stays a branch: two conditions put together into one take two
/// instructions more. No instruction is what keeps them apart.
#[cold]
#[inline(always)]
fn unlikely() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it does nothing.
    unsafe {
        core::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

// SAFETY: the map has exactly what is marked.
unsafe impl AddressTest for AddressMap {
    fn open<O: Os>(os: &O, arena_bits: u32) -> Option<Self> {
        AddressMap::new(os, arena_bits)
    }

    #[inline]
    unsafe fn has<P: Policy>(&self, p: ClientPtr, _table: &Table, policy: &P) -> bool {
        AddressMap::has(self, p.address(), Levels::of(policy.arena_bits()))
    }

    fn mark<O: Os>(&mut self, os: &O, arena: ArenaPtr, arena_bits: u32) -> Option<()> {
        AddressMap::mark(self, os, arena, Levels::of(arena_bits))
    }

    fn unmark<O: Os>(&mut self, os: &O, arena: ArenaPtr, arena_bits: u32) {
        AddressMap::unmark(self, os, arena, Levels::of(arena_bits));
    }

    fn map(&self) -> Option<&AddressMap> {
        Some(self)
    }

    unsafe fn release<O: Os>(&mut self, os: &O, arena_bits: u32) {
        // SAFETY: the caller's promise.
        unsafe { AddressMap::release(self, os, Levels::of(arena_bits)) };
    }

    fn check<P: Policy>(&self, table: &Table, policy: &P) -> Result<(), Fault> {
        let (levels, size) = (Levels::of(policy.arena_bits()), policy.arena_size());
        for (_, base, _) in table.held() {
            let at = base.address();
            for inside in [at, at + size - 1] {
                let has = AddressMap::has(self, inside, levels);
                expect("the map has what is held", has, inside)?;
            }
            for outside in [at - 1, at + size] {
                let has = AddressMap::has(self, outside, levels);
                let another = table.around(outside).is_some();
                expect("the map has only what is held", has == another, outside)?;
            }
        }
        Ok(())
    }
}
