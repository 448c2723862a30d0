//! Last in, first out: the arena that became usable last is taken from first. No generation of CPython does so; it is
//! what ordering by fullness is to be compared with.

use super::Order;
use super::linear_slide::take_from_first;
use crate::arena::{ArenaId, Table};
use crate::check::Fault;
use crate::pool::PoolPtr;

/// The order. It has no books but the list.
#[derive(Debug, Default)]
pub struct LastUsable;

// SAFETY: pools are put back to the table and taken from it, and an arena that is released has left the list.
unsafe impl Order for LastUsable {
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
        if table[id].free_pools == 1 {
            // It was full, so on no list.
            table.push_front(id);
        }
        None
    }

    fn check(&self, table: &Table) -> Result<(), Fault> {
        table.check_usable()
    }
}
