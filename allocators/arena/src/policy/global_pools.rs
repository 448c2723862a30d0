//! One list of free pools for all arenas: CPython up to 2.4.
//!
//! The pool emptied last, of whichever arena, is taken first. If there is none, the next is carved from the arena got
//! last, the current one. Nobody knows how many pools of an arena are free, so no arena is ever released.

use super::Order;
use crate::arena::{ArenaId, Table};
use crate::check::{Fault, expect};
use crate::pool::PoolPtr;

/// The order.
#[derive(Debug, Default)]
pub struct GlobalPools {
    /// Empty pools of all arenas, the last emptied first, linked by `next`.
    empty: Option<PoolPtr>,
    /// The arena got last. Only it can have pools that are not yet carved.
    current: Option<ArenaId>,
}

// SAFETY: a pool is put on the list when it is given and leaves it when it is taken; no arena is ever released.
unsafe impl Order for GlobalPools {
    fn added(&mut self, _table: &mut Table, id: ArenaId) {
        self.current = Some(id);
    }

    fn take(&mut self, table: &mut Table) -> Option<PoolPtr> {
        if let Some(pool) = self.empty {
            self.empty = pool.next.get();
            // CPython counts no such thing; the statistics and the checker do.
            table[pool.arena].free_pools -= 1;
            return Some(pool);
        }
        table.take_from(self.current?)
    }

    fn give(&mut self, table: &mut Table, pool: PoolPtr, _keep: u32) -> Option<ArenaId> {
        pool.next.set(self.empty);
        self.empty = Some(pool);
        table[pool.arena].free_pools += 1;
        None
    }

    fn check(&self, table: &Table) -> Result<(), Fault> {
        let mut empty = 0;
        for (id, base, record) in table.held() {
            let to_carve = record.total_pools - record.carved;
            expect(
                "all arenas but the last are carved",
                to_carve == 0 || self.current == Some(id),
                base.address(),
            )?;
            empty += (record.free_pools - to_carve) as usize;
        }
        let (mut listed, mut next) = (0, self.empty);
        while let Some(pool) = next {
            let at = pool.address();
            expect("a listed empty pool is empty", pool.live.get() == 0, at)?;
            listed += 1;
            expect("the list of empty pools ends", listed <= empty, at)?;
            next = pool.next.get();
        }
        expect("every empty pool is listed", listed == empty, empty)
    }
}
