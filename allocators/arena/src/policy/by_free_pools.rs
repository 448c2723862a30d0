//! Fullest first, in constant time: CPython 3.8 and later (bpo-37029).
//!
//! Usable arenas ascend by their count of free pools. When a pool comes back to an arena with `n` of them it has
//! `n + 1` and may stand before others with `n`: it moves to just behind the last of those. For each count the last
//! arena that has it, the rightmost, is remembered, so that nobody searches.

use super::Order;
use crate::arena::{ArenaId, MAX_POOLS, Table};
use crate::check::{Fault, expect};
use crate::pool::PoolPtr;
use crate::work::{Work, count};

/// The order.
///
/// Equation: `rightmost[n]` is the last usable arena with `n` free pools, `None` if there is none; `rightmost[0]` is
/// `None`.
#[derive(Debug)]
pub struct ByFreePools {
    rightmost: [Option<ArenaId>; MAX_POOLS + 1],
}

impl Default for ByFreePools {
    fn default() -> Self {
        ByFreePools {
            rightmost: [None; MAX_POOLS + 1],
        }
    }
}

// SAFETY: pools are put back to the table and taken from it, and an arena that is released has left the list.
unsafe impl Order for ByFreePools {
    fn added(&mut self, table: &mut Table, id: ArenaId) {
        table.push_front(id);
        self.rightmost[table[id].free_pools as usize] = Some(id);
    }

    fn take(&mut self, table: &mut Table) -> Option<PoolPtr> {
        let id = table.usable()?;
        let n = table[id].free_pools as usize;
        // The first of the list with `n` is the last too if it is the only one.
        if self.rightmost[n] == Some(id) {
            self.rightmost[n] = None;
        }
        if n > 1 {
            // Before the first of the list none has fewer.
            self.rightmost[n - 1] = Some(id);
        }
        let pool = table.take_from(id);
        if n == 1 {
            table.unlink(id);
        }
        pool
    }

    fn give(&mut self, table: &mut Table, pool: PoolPtr, keep: u32) -> Option<ArenaId> {
        let id = table.put_back(pool);
        let n = table[id].free_pools as usize;
        let last_before = self.rightmost[n - 1];
        if last_before == Some(id) {
            self.rightmost[n - 1] = table[id]
                .prev
                .filter(|prev| table[*prev].free_pools as usize == n - 1);
        }
        if table.is_released(id, keep) {
            table.unlink(id);
            return Some(id);
        }
        // Whoever has `n` already stands further right.
        self.rightmost[n].get_or_insert(id);
        if n == 1 {
            // It was full, so on no list.
            table.push_front(id);
        } else if let Some(last) = last_before
            && last != id
        {
            count(Work::ListSteps, 1);
            table.unlink(id);
            table.insert_after(id, last);
        }
        None
    }

    fn check(&self, table: &Table) -> Result<(), Fault> {
        table.check_usable()?;
        let mut rightmost = [None; MAX_POOLS + 1];
        check_ascends(table, |id, n| rightmost[n] = Some(id))?;
        for (n, (found, noted)) in rightmost.iter().zip(&self.rightmost).enumerate() {
            expect("the rightmost arena is noted", found == noted, n)?;
        }
        Ok(())
    }
}

/// Usable arenas ascend by free pools. Each is shown, with its count.
pub(super) fn check_ascends(
    table: &Table,
    mut show: impl FnMut(ArenaId, usize),
) -> Result<(), Fault> {
    let mut before = 0;
    let mut at = table.usable();
    while let Some(id) = at {
        let n = table[id].free_pools as usize;
        expect("usable arenas ascend by free pools", before <= n, n)?;
        show(id, n);
        before = n;
        at = table[id].next;
    }
    Ok(())
}
