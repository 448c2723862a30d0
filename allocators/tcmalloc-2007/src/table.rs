//! The side table: which capacity the block at an address has.
//!
//! It must not allocate from the heap under test, and must stay cheap with many blocks. So: open addressing with
//! linear probing over a mapping of its own, grown by doubling, at most half full, and deletion by shifting back, so
//! that nothing is left behind that would slow the next search.

use core::ptr::{self, NonNull};

/// One slot. `address` 0 is empty: no block is at 0.
#[derive(Clone, Copy)]
#[repr(C)]
struct Slot {
    address: usize,
    capacity: usize,
}

/// A map from address to capacity.
///
/// Invariant SLOTS: `slots` points to `1 << bits` initialised slots in a mapping that this table owns.
/// Invariant HALF: at most half of them are in use, so every search meets an empty one.
/// Invariant REACHABLE: between an entry's home slot and the slot it is in, no slot is empty.
#[derive(Debug)]
pub struct Table {
    slots: NonNull<Slot>,
    bits: u32,
    used: usize,
}

/// The operating system gave no memory for a larger table.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

/// A zeroed mapping of `1 << bits` slots; all zeros is all empty.
fn map(bits: u32) -> Result<NonNull<Slot>, Full> {
    let bytes = size_of::<Slot>() << bits;
    // SAFETY: a new private mapping at an address of the kernel's choice touches nothing that exists.
    let at = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        Err(Full)
    } else {
        NonNull::new(at.cast()).ok_or(Full)
    }
}

impl Table {
    /// 64 KiB of slots: a workload of a few blocks never grows it.
    const FIRST_BITS: u32 = 12;

    /// An empty table.
    pub fn new() -> Result<Self, Full> {
        Ok(Table {
            slots: map(Self::FIRST_BITS)?,
            bits: Self::FIRST_BITS,
            used: 0,
        })
    }

    #[inline]
    fn mask(&self) -> usize {
        (1 << self.bits) - 1
    }

    /// The slot where the search for `address` begins: the top bits of a product with 2^64 / golden ratio. Blocks are
    /// 16-aligned and often equally spaced, which low bits would not survive.
    #[inline]
    fn home(&self, address: usize) -> usize {
        ((address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - self.bits)) as usize
    }

    #[inline]
    fn slot(&self, at: usize) -> Slot {
        debug_assert!(at <= self.mask());
        // SAFETY: SLOTS; every caller masks `at`.
        unsafe { self.slots.add(at).read() }
    }

    #[inline]
    fn put(&mut self, at: usize, slot: Slot) {
        debug_assert!(at <= self.mask());
        // SAFETY: SLOTS; every caller masks `at`.
        unsafe { self.slots.add(at).write(slot) }
    }

    /// The slot that holds `address`, or the empty one where it would go.
    #[inline]
    fn find(&self, address: usize) -> (usize, Slot) {
        let mut at = self.home(address);
        // Ends by HALF.
        loop {
            let slot = self.slot(at);
            if slot.address == address || slot.address == 0 {
                return (at, slot);
            }
            at = (at + 1) & self.mask();
        }
    }

    /// The capacity of the block at `address`, if it is in the table.
    #[inline]
    pub fn get(&self, address: usize) -> Option<usize> {
        let (_, slot) = self.find(address);
        (slot.address != 0).then_some(slot.capacity)
    }

    /// Enters the block at `address` (not 0), or changes its capacity.
    pub fn insert(&mut self, address: usize, capacity: usize) -> Result<(), Full> {
        debug_assert!(address != 0);
        let (mut at, slot) = self.find(address);
        if slot.address == 0 {
            if self.used + 1 > 1 << (self.bits - 1) {
                self.grow()?;
                at = self.find(address).0;
            }
            self.used += 1;
        }
        self.put(at, Slot { address, capacity });
        Ok(())
    }

    /// Takes the block at `address` out and returns its capacity, if it was in.
    #[inline]
    pub fn remove(&mut self, address: usize) -> Option<usize> {
        let (mut hole, slot) = self.find(address);
        if slot.address == 0 {
            return None;
        }
        // REACHABLE: each entry behind the hole, up to the next empty slot, moves into it unless its home lies after
        // the hole.
        let mut next = hole;
        loop {
            next = (next + 1) & self.mask();
            let candidate = self.slot(next);
            if candidate.address == 0 {
                break;
            }
            let from_home = next.wrapping_sub(self.home(candidate.address)) & self.mask();
            let from_hole = next.wrapping_sub(hole) & self.mask();
            if from_home >= from_hole {
                self.put(hole, candidate);
                hole = next;
            }
        }
        self.put(
            hole,
            Slot {
                address: 0,
                capacity: 0,
            },
        );
        self.used -= 1;
        Some(slot.capacity)
    }

    /// Doubles the table.
    #[cold]
    fn grow(&mut self) -> Result<(), Full> {
        let mut larger = Table {
            slots: map(self.bits + 1)?,
            bits: self.bits + 1,
            used: self.used,
        };
        for at in 0..1 << self.bits {
            let slot = self.slot(at);
            if slot.address != 0 {
                let (to, _) = larger.find(slot.address);
                larger.put(to, slot);
            }
        }
        // The old mapping goes with the old value.
        *self = larger;
        Ok(())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: SLOTS: the mapping is ours, of this size, and nobody else has its address.
        unsafe { libc::munmap(self.slots.as_ptr().cast(), size_of::<Slot>() << self.bits) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Whole comparison with a map of the standard library, REACHABLE included: `get` finds every entry.
    fn same(table: &Table, model: &HashMap<usize, usize>) {
        assert_eq!(table.used, model.len());
        let in_use = (0..1usize << table.bits)
            .filter(|at| table.slot(*at).address != 0)
            .count();
        assert_eq!(in_use, model.len());
        for (address, capacity) in model {
            assert_eq!(table.get(*address), Some(*capacity), "{address:#x}");
        }
    }

    #[test]
    fn an_empty_table_finds_nothing() {
        let mut table = Table::new().unwrap();
        assert_eq!(table.get(0x1000), None);
        assert_eq!(table.remove(0x1000), None);
    }

    #[test]
    fn a_second_insert_changes_the_capacity() {
        let mut table = Table::new().unwrap();
        table.insert(0x1000, 1).unwrap();
        table.insert(0x1000, 2).unwrap();
        assert_eq!((table.used, table.get(0x1000)), (1, Some(2)));
    }

    #[test]
    fn it_agrees_with_a_map_over_random_inserts_and_removes() {
        let mut table = Table::new().unwrap();
        let mut model = HashMap::new();
        let mut x = 0x2545_F491_4F6C_DD1Du64;
        for step in 0..200_000u64 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            // Few distinct addresses, so that removes hit; a little over half of the calls insert, so that it grows.
            let address = 0x7f00_0000_0000 + ((x >> 32) as usize % 20_000) * 4096;
            if x % 16 < 9 {
                table.insert(address, step as usize).unwrap();
                model.insert(address, step as usize);
            } else {
                assert_eq!(table.remove(address), model.remove(&address));
            }
            if step % 20_000 == 0 {
                same(&table, &model);
            }
        }
        same(&table, &model);
        assert!(table.bits > Table::FIRST_BITS, "the table was never grown");
        for (address, capacity) in model.drain() {
            assert_eq!(table.remove(address), Some(capacity));
        }
        same(&table, &model);
    }

    #[test]
    fn a_cluster_that_wraps_around_the_end_survives_removal() {
        let mut table = Table::new().unwrap();
        // Addresses that all begin their search in the last two slots.
        let clashing: Vec<usize> = (1..usize::MAX)
            .map(|n| n * 16)
            .filter(|a| table.home(*a) >= table.mask() - 1)
            .take(12)
            .collect();
        for (n, address) in clashing.iter().enumerate() {
            table.insert(*address, n).unwrap();
        }
        let mut left: HashMap<usize, usize> = clashing.iter().copied().zip(0..).collect();
        for address in clashing
            .iter()
            .step_by(2)
            .chain(clashing.iter().skip(1).step_by(2))
        {
            assert_eq!(table.remove(*address), left.remove(address));
            same(&table, &left);
        }
    }

    #[test]
    fn equally_spaced_blocks_do_not_cluster() {
        let mut table = Table::new().unwrap();
        for n in 0..2000usize {
            table.insert(0x7f12_3456_7010 + n * 0x11000, n).unwrap();
        }
        let longest = (0..2000usize)
            .map(|n| {
                let address = 0x7f12_3456_7010 + n * 0x11000;
                table.find(address).0.wrapping_sub(table.home(address)) & table.mask()
            })
            .max();
        assert!(longest < Some(32), "a search takes {longest:?} steps");
    }
}
