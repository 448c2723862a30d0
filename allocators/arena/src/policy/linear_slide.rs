//! Fullest first, by searching: CPython 2.5 to 3.7 (Evan Jones, Tim Peters, 2006).
//!
//! Usable arenas ascend by their count of free pools. An arena that has got a pool back and has more of them now than
//! its right neighbour slides right, one arena at a time, and stops before the first that has at least as many. With
//! thousands of arenas of equal counts that is thousands of steps (bpo-37029), which 3.8 mended: the place is the same.

use super::Order;
use super::by_free_pools::check_ascends;
use crate::arena::{ArenaId, Table};
use crate::check::Fault;
use crate::pool::PoolPtr;
use crate::work::{Work, count};

/// The order. It has no books but the list.
#[derive(Debug, Default)]
pub struct LinearSlide;

// SAFETY: pools are put back to the table and taken from it, and an arena that is released has left the list.
unsafe impl Order for LinearSlide {
    fn added(&mut self, table: &mut Table, id: ArenaId) {
        table.push_front(id);
    }

    fn take(&mut self, table: &mut Table) -> Option<PoolPtr> {
        take_from_first(table)
    }

    fn give(&mut self, table: &mut Table, pool: PoolPtr, keep: u32) -> Option<ArenaId> {
        let id = table.put_back(pool);
        if table.is_released(id, keep) {
            table.unlink(id);
            return Some(id);
        }
        let n = table[id].free_pools;
        if n == 1 {
            // It was full, so on no list.
            table.push_front(id);
            return None;
        }
        let mut last = id;
        while let Some(next) = table[last].next
            && table[next].free_pools < n
        {
            count(Work::ListSteps, 1);
            last = next;
        }
        if last != id {
            table.unlink(id);
            table.insert_after(id, last);
        }
        None
    }

    fn check(&self, table: &Table) -> Result<(), Fault> {
        table.check_usable()?;
        check_ascends(table, |_, _| ())
    }
}

/// Takes a pool of the first usable arena; if it was its last free one, the arena leaves the list.
pub(super) fn take_from_first(table: &mut Table) -> Option<PoolPtr> {
    let id = table.usable()?;
    let pool = table.take_from(id);
    if table[id].free_pools == 0 {
        table.unlink(id);
    }
    pool
}
