//! Fullest first, in constant time: CPython 3.8 and later (bpo-37029).
//!
//! Usable arenas ascend by their count of free pools. When a pool comes back to an arena with `n` of them it has
//! `n + 1` and may stand before others with `n`: it moves to just behind the last of those. For each count the last
//! arena that has it, the rightmost, is remembered, so that nobody searches.

use super::Order;
use crate::arena::{ArenaId, MAX_POOLS, Table};
use crate::check::{Fault, expect};

/// The order.
///
/// Equation: `rightmost[n]` is the last usable arena with `n` free pools, `None` if there is none; `rightmost[0]` is
/// `None`.
#[derive(Debug)]
pub struct ByFreePools {
    rightmost: [Option<ArenaId>; MAX_POOLS + 1],
}

impl Order for ByFreePools {
    const EMPTY: Self = ByFreePools {
        rightmost: [None; MAX_POOLS + 1],
    };

    fn added(&mut self, table: &Table, id: ArenaId) {
        self.rightmost[table[id].free_pools as usize] = Some(id);
    }

    fn taking(&mut self, table: &Table, id: ArenaId) {
        let n = table[id].free_pools as usize;
        // The first of the list with `n` is the last too: it is the only one.
        if self.rightmost[n] == Some(id) {
            self.rightmost[n] = None;
        }
        if n > 1 {
            // Before the first of the list none has fewer.
            self.rightmost[n - 1] = Some(id);
        }
    }

    fn given(&mut self, table: &mut Table, id: ArenaId, released: bool) {
        let n = table[id].free_pools as usize;
        let last_before = self.rightmost[n - 1];
        if last_before == Some(id) {
            self.rightmost[n - 1] = table[id]
                .prev
                .filter(|prev| table[*prev].free_pools as usize == n - 1);
        }
        if released {
            table.unlink(id);
            return;
        }
        // Whoever has `n` already stands further right.
        self.rightmost[n].get_or_insert(id);
        if n == 1 {
            // It was full, so on no list.
            table.push_front(id);
        } else if let Some(last) = last_before
            && last != id
        {
            table.unlink(id);
            table.insert_after(id, last);
        }
    }

    fn check(&self, table: &Table) -> Result<(), Fault> {
        let mut rightmost = [None; MAX_POOLS + 1];
        let mut before = 0;
        let mut at = table.usable();
        while let Some(id) = at {
            let n = table[id].free_pools as usize;
            expect("usable arenas ascend by free pools", before <= n, n)?;
            rightmost[n] = Some(id);
            before = n;
            at = table[id].next;
        }
        for (n, (found, noted)) in rightmost.iter().zip(&self.rightmost).enumerate() {
            expect("the rightmost arena is noted", found == noted, n)?;
        }
        Ok(())
    }
}
