//! Statistics, counted as CPython's `_debugmallocstats` counts them: by walking all arenas and pools.
//!
//! Equation: the bytes of all arenas are
//! `allocated + available + unused pools + headers + quantization + alignment`, to the byte.

use crate::address_map::{AddressMap, Levels};
use crate::address_test::AddressTest;
use crate::heap::Heap;
use crate::os::Os;
use crate::policy::Policy;
use crate::pool::{HEADER, PoolPtr};
use crate::size_class::{self, MAX_CLASSES, SizeClass};

/// Arenas. Tim Peters (2019): "reclaimed" only says how often work was done again; what has been given back is
/// `highwater - current`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArenaStats {
    /// Got from the operating system, ever.
    pub total: u64,
    /// Given back, ever: `total - current`.
    pub reclaimed: u64,
    /// The most that were held at a time.
    pub highwater: u64,
    /// Held now.
    pub current: u64,
    /// Bytes in each.
    pub size: u64,
}

/// One size class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassStats {
    /// Pools that are used or full.
    pub pools: u64,
    /// Live blocks in them.
    pub used_blocks: u64,
    /// Other blocks in them, virgin ones included.
    pub free_blocks: u64,
}

/// Where the bytes of the arenas are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteStats {
    /// In live blocks.
    pub allocated: u64,
    /// In other blocks of used pools.
    pub available: u64,
    /// In empty pools and those not yet carved.
    pub unused_pools: u64,
    /// Lost to headers of used and full pools.
    pub headers: u64,
    /// Lost at the end of used and full pools, where no block fits.
    pub quantization: u64,
    /// Lost to arenas that do not begin at a multiple of the pool size: a pool each.
    pub alignment: u64,
}

impl ByteStats {
    /// All of them: what the arenas have.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.allocated
            + self.available
            + self.unused_pools
            + self.headers
            + self.quantization
            + self.alignment
    }
}

/// The address map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MapStats {
    /// Nodes of the middle level.
    pub middle_nodes: u64,
    /// Leaves.
    pub leaves: u64,
    /// Bytes of the root, of a middle node and of a leaf. OS pages of them that are never touched take no memory.
    pub node_bytes: [u64; 3],
}

impl MapStats {
    /// Bytes of the root and of all nodes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let [root, middle, leaf] = self.node_bytes;
        root + self.middle_nodes * middle + self.leaves * leaf
    }
}

/// A heap's statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Arenas.
    pub arenas: ArenaStats,
    /// Bytes in a pool.
    pub pool_size: u64,
    /// Bytes from one block size to the next.
    pub alignment: u64,
    /// Largest request that blocks serve, bytes.
    pub threshold: u64,
    /// Each size class, by its index; those beyond the threshold have nothing.
    pub classes: [ClassStats; MAX_CLASSES],
    /// Free pools of all arenas.
    pub free_pools: u64,
    /// Bytes.
    pub bytes: ByteStats,
    /// The address map, where the address test has one.
    pub map: Option<MapStats>,
}

impl<O: Os, P: Policy> Heap<O, P> {
    /// Counts everything. Takes time in proportion to the pools.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let pool_size = self.policy().pool_size();
        let (threshold, bits) = (self.policy().threshold(), self.policy().align_bits());
        let counts = self.arenas().counts();
        let mut stats = Stats {
            arenas: ArenaStats {
                total: counts.allocated_total,
                reclaimed: counts.allocated_total - counts.current,
                highwater: counts.highwater,
                current: counts.current,
                size: self.policy().arena_size() as u64,
            },
            pool_size: pool_size as u64,
            alignment: 1 << bits,
            threshold: threshold as u64,
            classes: [ClassStats::default(); MAX_CLASSES],
            free_pools: 0,
            bytes: ByteStats::default(),
            map: self.test().map().map(|map| map_stats(map, self.policy())),
        };
        for (_, base, record) in self.arenas().table().held() {
            stats.free_pools += u64::from(record.free_pools);
            if base.first_pool(pool_size) != 0 {
                stats.bytes.alignment += pool_size as u64;
            }
            for n in 0..record.carved {
                // SAFETY: pools up to `carved` are carved, and the arena is held.
                let pool = unsafe { PoolPtr::carved(base.pool_at(n, pool_size)) };
                let live = pool.live.get();
                if live > 0
                    && let Some(class) = pool.class.get()
                {
                    let of_class = &mut stats.classes[class.index()];
                    of_class.pools += 1;
                    of_class.used_blocks += u64::from(live);
                    of_class.free_blocks +=
                        size_class::capacity(class.block_size(bits), pool_size, HEADER) as u64
                            - u64::from(live);
                }
            }
        }
        for (class, of_class) in SizeClass::all(threshold, bits).zip(&stats.classes) {
            let size = class.block_size(bits) as u64;
            stats.bytes.allocated += of_class.used_blocks * size;
            stats.bytes.available += of_class.free_blocks * size;
            stats.bytes.headers += of_class.pools * HEADER as u64;
            stats.bytes.quantization += of_class.pools * ((pool_size - HEADER) as u64 % size);
        }
        stats.bytes.unused_pools = stats.free_pools * pool_size as u64;
        stats
    }
}

fn map_stats<P: Policy>(map: &AddressMap, policy: &P) -> MapStats {
    let (middles, leaves) = map.nodes();
    let (root, middle, leaf) = AddressMap::node_bytes(Levels::of(policy.arena_bits()));
    MapStats {
        middle_nodes: middles as u64,
        leaves: leaves as u64,
        node_bytes: [root, middle, leaf].map(|bytes| bytes as u64),
    }
}
