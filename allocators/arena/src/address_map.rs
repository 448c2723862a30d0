//! The address map: does this address lie in an arena? A radix tree of three levels, as CPython has it since 3.10
//! (bpo-37448), with 3.11's division of 64 bits.
//!
//! An address is cut, from its high end, into an index for each level and the offset in an arena-sized, arena-aligned
//! **slot** of the address space:
//!
//! ```text
//! | top | middle | leaf | offset in slot |        15, 15, 14 and 20 bits for arenas of 1 MiB
//! ```
//!
//! An arena need not begin at a multiple of its size; then it covers the end of one slot and the beginning of the next.
//! So a leaf says two things of each slot: from which offset on it is covered by an arena that begins in it, and up to
//! which offset by one that began in the slot before. One look-up answers, whatever the address; memory at the address
//! is not touched.

use crate::arena::ArenaPtr;
use crate::os::Os;
use crate::work::{Work, count};
use core::cmp::Ordering;
use core::ptr::NonNull;

/// How many bits of an address each level takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// Index into the root.
    pub top: u32,
    /// Index into a middle node.
    pub middle: u32,
    /// Index into a leaf.
    pub leaf: u32,
    /// Offset in a slot.
    pub offset: u32,
}

impl Levels {
    /// For arenas of `1 << arena_bits` bytes: a third each of what is left, rounded up; the leaf gets the rest.
    #[inline]
    #[must_use]
    pub const fn of(arena_bits: u32) -> Levels {
        let index = usize::BITS - arena_bits;
        let third = index.div_ceil(3);
        Levels {
            top: third,
            middle: third,
            leaf: index - 2 * third,
            offset: arena_bits,
        }
    }

    #[inline]
    fn top_index(self, address: usize) -> usize {
        address >> (self.middle + self.leaf + self.offset)
    }

    #[inline]
    fn middle_index(self, address: usize) -> usize {
        (address >> (self.leaf + self.offset)) & ((1 << self.middle) - 1)
    }

    #[inline]
    fn leaf_index(self, address: usize) -> usize {
        (address >> self.offset) & ((1 << self.leaf) - 1)
    }

    #[inline]
    fn offset_in_slot(self, address: usize) -> i32 {
        (address & ((1 << self.offset) - 1)) as i32
    }
}

/// What arenas cover of one slot.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cover {
    /// Covered from here on, if not 0; -1: from the start.
    from: i32,
    /// Covered up to here.
    below: i32,
}

impl Cover {
    #[inline]
    fn has(self, offset: i32) -> bool {
        offset < self.below || (self.from != 0 && offset >= self.from)
    }
}

type Leaf = NonNull<Cover>;
type Middle = NonNull<Option<Leaf>>;

/// The map.
///
/// Invariant NODES: the root, and every middle node and leaf that a node points to, is a block of the backing that
/// belongs to this map, of as many entries as its level has bits for, all initialised (zero bytes are `None` and a slot
/// that nothing covers). Nodes are never freed before the map is.
#[derive(Debug)]
pub struct AddressMap {
    root: NonNull<Option<Middle>>,
    middles: usize,
    leaves: usize,
}

/// A node of zero bytes of `1 << bits` entries.
fn node<T, O: Os>(os: &O, bits: u32) -> Option<NonNull<T>> {
    NonNull::new(os.calloc(1 << bits, size_of::<T>()).cast())
}

/// Gives a node back.
///
/// # Safety
/// It is from [`node`], and nobody uses it afterwards.
unsafe fn give_back<T, O: Os>(os: &O, node: NonNull<T>) {
    // SAFETY: the caller's promise: a block of the backing.
    unsafe { os.free(node.as_ptr().cast()) };
}

impl AddressMap {
    /// An empty map for arenas of `1 << arena_bits` bytes; `None` if the backing refuses the root.
    #[must_use]
    pub fn new<O: Os>(os: &O, arena_bits: u32) -> Option<AddressMap> {
        Some(AddressMap {
            root: node(os, Levels::of(arena_bits).top)?,
            middles: 0,
            leaves: 0,
        })
    }

    /// Whether `address` lies in an arena.
    #[inline]
    #[must_use]
    pub(crate) fn has(&self, address: usize, levels: Levels) -> bool {
        count(Work::AddressProbes, 1);
        // SAFETY: NODES: each index is below the number of its node's entries, by its shift and mask.
        unsafe {
            let Some(middle) = self.root.add(levels.top_index(address)).read() else {
                return false;
            };
            count(Work::AddressProbes, 1);
            let Some(leaf) = middle.add(levels.middle_index(address)).read() else {
                return false;
            };
            count(Work::AddressProbes, 1);
            leaf.add(levels.leaf_index(address))
                .read()
                .has(levels.offset_in_slot(address))
        }
    }

    /// The slot around `address`, with the nodes on the way to it; `None` if the backing refuses one.
    fn slot<O: Os>(&mut self, os: &O, address: usize, levels: Levels) -> Option<NonNull<Cover>> {
        // SAFETY: NODES: each index is below the number of its node's entries, by its shift and mask; what is written
        // is a node of its level.
        unsafe {
            let to_middle = self.root.add(levels.top_index(address));
            let middle = match to_middle.read() {
                Some(middle) => middle,
                None => {
                    let middle = node(os, levels.middle)?;
                    to_middle.write(Some(middle));
                    self.middles += 1;
                    middle
                }
            };
            let to_leaf = middle.add(levels.middle_index(address));
            let leaf = match to_leaf.read() {
                Some(leaf) => leaf,
                None => {
                    let leaf = node(os, levels.leaf)?;
                    to_leaf.write(Some(leaf));
                    self.leaves += 1;
                    leaf
                }
            };
            Some(leaf.add(levels.leaf_index(address)))
        }
    }

    /// Marks an arena; `None`, and it is not marked, if the backing refuses a node. Nodes that were made on the way
    /// stay.
    pub(crate) fn mark<O: Os>(&mut self, os: &O, arena: ArenaPtr, levels: Levels) -> Option<()> {
        self.cover(os, arena.address(), levels, true)
    }

    /// Unmarks an arena that is marked.
    pub(crate) fn unmark<O: Os>(&mut self, os: &O, arena: ArenaPtr, levels: Levels) {
        // Its nodes are there since it was marked.
        let _ = self.cover(os, arena.address(), levels, false);
    }

    fn cover<O: Os>(&mut self, os: &O, base: usize, levels: Levels, held: bool) -> Option<()> {
        let begins = self.slot(os, base, levels)?;
        let offset = levels.offset_in_slot(base);
        let (from, below) = match (held, offset.cmp(&0)) {
            (false, _) => (0, 0),
            (true, Ordering::Equal) => (-1, 0),
            (true, _) => (offset, offset),
        };
        if offset != 0 {
            // The address space ends far above what the operating system gives to programs.
            let ends = self.slot(os, base.wrapping_add(1 << levels.offset), levels)?;
            // SAFETY: NODES.
            unsafe { (*ends.as_ptr()).below = below };
        }
        // SAFETY: NODES.
        unsafe { (*begins.as_ptr()).from = from };
        Some(())
    }

    /// How many nodes there are below the root: middle nodes and leaves.
    #[must_use]
    pub fn nodes(&self) -> (usize, usize) {
        (self.middles, self.leaves)
    }

    /// Bytes of the root, of a middle node and of a leaf.
    #[must_use]
    pub fn node_bytes(levels: Levels) -> (usize, usize, usize) {
        (
            size_of::<Option<Middle>>() << levels.top,
            size_of::<Option<Leaf>>() << levels.middle,
            size_of::<Cover>() << levels.leaf,
        )
    }

    /// Gives all nodes back.
    ///
    /// # Safety
    /// The map is not used afterwards.
    pub(crate) unsafe fn release<O: Os>(&mut self, os: &O, levels: Levels) {
        // SAFETY: NODES; each node is read before it is given back.
        unsafe {
            for top in 0..1 << levels.top {
                let Some(middle) = self.root.add(top).read() else {
                    continue;
                };
                for index in 0..1 << levels.middle {
                    if let Some(leaf) = middle.add(index).read() {
                        give_back(os, leaf);
                    }
                }
                give_back(os, middle);
            }
            give_back(os, self.root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::{Libc, Source};

    const OS: Libc = Libc {
        aligned_arenas: false,
        source: Source::Mmap,
    };

    #[test]
    fn the_levels_of_cpython() {
        let bits = |arena_bits| {
            let Levels {
                top, middle, leaf, ..
            } = Levels::of(arena_bits);
            (top, middle, leaf)
        };
        assert_eq!(bits(20), (15, 15, 14));
        assert_eq!(
            AddressMap::node_bytes(Levels::of(20)),
            (256 << 10, 256 << 10, 128 << 10)
        );
        for arena_bits in 12..=24 {
            let (top, middle, leaf) = bits(arena_bits);
            assert_eq!(top + middle + leaf + arena_bits, 64);
        }
    }

    /// Marks arenas at any address: the map never looks at memory there.
    fn cover(map: &mut AddressMap, base: usize, levels: Levels, held: bool) {
        assert_eq!(map.cover(&OS, base, levels, held), Some(()));
    }

    #[test]
    fn exactly_what_is_covered_is_had() {
        for arena_bits in [16, 18, 20, 22] {
            let levels = Levels::of(arena_bits);
            let size = 1usize << arena_bits;
            let mut map = AddressMap::new(&OS, arena_bits).expect("memory");
            // Side by side, aligned or not, and across the border of two leaves and of two middle nodes.
            let leaf = 1usize << (levels.leaf + levels.offset);
            let middle = 1usize << (levels.middle + levels.leaf + levels.offset);
            for start in [7 * size, 7 * size + 4096, leaf - 4096, middle - size + 4096] {
                let border =
                    |map: &AddressMap, at: usize| (map.has(at - 1, levels), map.has(at, levels));
                cover(&mut map, start, levels, true);
                assert_eq!(border(&map, start), (false, true), "{start:#x}");
                assert_eq!(border(&map, start + size / 2), (true, true));
                assert_eq!(border(&map, start + size), (true, false));
                cover(&mut map, start + size, levels, true);
                assert_eq!(border(&map, start + size), (true, true));
                assert_eq!(border(&map, start + 2 * size), (true, false));
                cover(&mut map, start, levels, false);
                assert_eq!(border(&map, start), (false, false));
                assert_eq!(border(&map, start + size), (false, true));
                cover(&mut map, start + size, levels, false);
                assert_eq!(border(&map, start + size), (false, false));
                assert_eq!(border(&map, start + 2 * size), (false, false));
            }
            for foreign in [0, 1, 4096, usize::MAX] {
                assert!(!map.has(foreign, levels));
            }
            // SAFETY: the map's end.
            unsafe { map.release(&OS, levels) };
        }
    }
}
