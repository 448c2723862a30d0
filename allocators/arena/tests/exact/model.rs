//! A slow reference model, written from the description of the policy and from nothing else: no memory, no lists through
//! it, no counts kept on the way. A block is its arena's number, counted from the first that was ever got, and an offset.
//!
//! The description, which is what CPython's file says in prose:
//!
//! - A class's pools are on a list while some of their blocks are live and some are not. malloc takes from the first.
//! - A pool that begins hands out block 0 and has block 1 on its free list. When the list runs dry the next virgin block
//!   becomes the list; when there is none, the pool is full, and off its class's list at once.
//! - A block freed into a full pool puts the pool at the front of its class's list. Blocks go last in, first out.
//! - A pool all of whose blocks are free is anybody's. Taken by the class that it had, it goes on with its free list as
//!   it was; by another, it begins anew.
//! - 2.4: free pools are on one list, last in, first out. When that is empty, pools are carved from the arena got last.
//!   No arena is ever released.
//! - 3.9: each arena has such a list, and carves when it is empty. Usable arenas are on a list, fullest first. Pools are
//!   taken from the first. When a pool becomes free: if all pools of its arena are, and another usable arena follows, the
//!   arena is released; else if it is the only one, the arena goes to the head; else the arena moves right past all that
//!   have fewer free pools.

use arena::debug_text::DebugText;
use arena::policy::Settings;
use arena::stats::{ArenaStats, ByteStats, ClassStats, Stats};
use std::collections::{BTreeMap, VecDeque};

const HEADER: usize = 48;

/// Who is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plays {
    Python24,
    Python39,
}

#[derive(Debug, Default)]
struct Pool {
    /// Block size, once it has had a class.
    size: Option<usize>,
    live: usize,
    /// Offsets; the last is first.
    free: Vec<usize>,
    virgin: usize,
}

#[derive(Debug, Default)]
struct Arena {
    carved: Vec<Pool>,
    /// Numbers of empty pools; the last is first. Not in 2.4.
    empty: Vec<usize>,
}

/// A pool: its arena's number, and its own in that.
type PoolAt = (usize, usize);

/// A block: its arena's number, and its offset in that. `None`: one of the backing.
pub type BlockAt = Option<(usize, usize)>;

#[derive(Debug)]
pub struct Model {
    plays: Plays,
    settings: Settings,
    arenas: BTreeMap<usize, Arena>,
    ever: usize,
    highwater: usize,
    /// Pools of each class with live blocks and others, by block size.
    used: BTreeMap<usize, VecDeque<PoolAt>>,
    /// 2.4's free pools of all arenas; the last is first.
    free_pools: Vec<PoolAt>,
    /// 3.9's usable arenas.
    usable: Vec<usize>,
}

impl Model {
    pub fn new(plays: Plays, settings: Settings) -> Model {
        Model {
            plays,
            settings,
            arenas: BTreeMap::new(),
            ever: 0,
            highwater: 0,
            used: BTreeMap::new(),
            free_pools: Vec::new(),
            usable: Vec::new(),
        }
    }

    fn pools(&self) -> usize {
        self.settings.arena / self.settings.pool
    }

    fn pool(&mut self, at: PoolAt) -> &mut Pool {
        let arena = self.arenas.get_mut(&at.0).expect("a pool's arena is held");
        &mut arena.carved[at.1]
    }

    /// How many pools of an arena are free: without a live block, carved or not.
    fn free_in(&self, number: usize) -> usize {
        let taken = |pool: &&Pool| pool.live > 0;
        self.pools() - self.arenas[&number].carved.iter().filter(taken).count()
    }

    pub fn malloc(&mut self, size: usize) -> BlockAt {
        if size == 0 || size > self.settings.threshold {
            return None;
        }
        let size = size.next_multiple_of(self.settings.align);
        let listed = self.used.entry(size).or_default().front().copied();
        let at = match listed {
            Some(at) => at,
            None => {
                let at = self.take_pool();
                let pool = self.pool(at);
                if pool.size != Some(size) {
                    *pool = Pool {
                        size: Some(size),
                        live: 0,
                        free: vec![HEADER + size, HEADER],
                        virgin: HEADER + 2 * size,
                    };
                }
                self.used.entry(size).or_default().push_front(at);
                at
            }
        };
        let (pool_size, first_of_it) = (self.settings.pool, listed.is_none());
        let pool = self.pool(at);
        let offset = pool.free.pop().expect("a listed pool has a free block");
        pool.live += 1;
        // A pool that has just begun has block 1 left.
        if pool.free.is_empty() && !first_of_it {
            if pool.virgin + size <= pool_size {
                pool.free.push(pool.virgin);
                pool.virgin += size;
            } else {
                self.used.entry(size).or_default().pop_front();
            }
        }
        Some((at.0, at.1 * pool_size + offset))
    }

    fn take_pool(&mut self) -> PoolAt {
        if let Some(at) = self.free_pools.pop() {
            return at;
        }
        let from = match self.plays {
            Plays::Python24 => {
                let last = self.ever.checked_sub(1);
                last.filter(|last| self.arenas[last].carved.len() < self.pools())
            }
            Plays::Python39 => self.usable.first().copied(),
        };
        let number = from.unwrap_or_else(|| {
            let number = self.ever;
            self.ever += 1;
            self.arenas.insert(number, Arena::default());
            self.highwater = self.highwater.max(self.arenas.len());
            if self.plays == Plays::Python39 {
                self.usable.push(number);
            }
            number
        });
        let last_one = self.free_in(number) == 1;
        let arena = self.arenas.get_mut(&number).expect("held");
        let pool = arena.empty.pop().unwrap_or_else(|| {
            arena.carved.push(Pool::default());
            arena.carved.len() - 1
        });
        if self.plays == Plays::Python39 && last_one {
            self.usable.remove(0);
        }
        (number, pool)
    }

    pub fn free(&mut self, block: BlockAt) {
        let Some((number, offset)) = block else {
            return;
        };
        let at = (number, offset / self.settings.pool);
        let offset = offset % self.settings.pool;
        let pool = self.pool(at);
        let size = pool.size.expect("a live block's pool has a class");
        assert!(!pool.free.contains(&offset));
        let was_full = pool.free.is_empty();
        pool.free.push(offset);
        pool.live -= 1;
        let is_empty = pool.live == 0;
        let list = self.used.entry(size).or_default();
        if was_full {
            list.push_front(at);
        }
        if is_empty {
            list.retain(|listed| *listed != at);
            match self.plays {
                Plays::Python24 => self.free_pools.push(at),
                Plays::Python39 => self.give_pool(at),
            }
        }
    }

    fn give_pool(&mut self, (number, pool): PoolAt) {
        self.arenas.get_mut(&number).expect("held").empty.push(pool);
        let free = self.free_in(number);
        let place = self.usable.iter().position(|one| *one == number);
        if free == self.pools() && place.is_some_and(|place| place + 1 < self.usable.len()) {
            self.usable.retain(|one| *one != number);
            self.arenas.remove(&number);
            return;
        }
        let Some(mut place) = place else {
            self.usable.insert(0, number);
            return;
        };
        while place + 1 < self.usable.len() && self.free_in(self.usable[place + 1]) < free {
            self.usable.swap(place, place + 1);
            place += 1;
        }
    }

    /// What a block can hold; the backing's are not known here.
    fn size(&mut self, (number, offset): (usize, usize)) -> usize {
        let at = (number, offset / self.settings.pool);
        self.pool(at).size.expect("a live block's pool has a class")
    }

    /// Stays if the new size fits and not more than a quarter is wasted; else another block. The backing's stays there.
    pub fn realloc(&mut self, block: BlockAt, new: usize) -> BlockAt {
        let place = block?;
        let size = self.size(place);
        if new <= size && 4 * new > 3 * size {
            return block;
        }
        let to = self.malloc(new);
        self.free(block);
        to
    }

    pub fn text(&self) -> DebugText {
        let Settings {
            arena,
            pool,
            align,
            threshold,
            ..
        } = self.settings;
        let mut classes = [ClassStats::default(); arena::size_class::MAX_CLASSES];
        let (mut bytes, mut free_pools) = (ByteStats::default(), 0);
        for (number, held) in &self.arenas {
            free_pools += self.free_in(*number) as u64;
            for of in held.carved.iter().filter(|pool| pool.live > 0) {
                let size = of.size.expect("a pool with live blocks has a class");
                let capacity = (pool - HEADER) / size;
                let class = &mut classes[size / align - 1];
                class.pools += 1;
                class.used_blocks += of.live as u64;
                class.free_blocks += (capacity - of.live) as u64;
                bytes.allocated += (of.live * size) as u64;
                bytes.available += ((capacity - of.live) * size) as u64;
                bytes.headers += HEADER as u64;
                bytes.quantization += (pool - HEADER - capacity * size) as u64;
            }
        }
        bytes.unused_pools = free_pools * pool as u64;
        let current = self.arenas.len();
        DebugText {
            stats: Stats {
                arenas: ArenaStats {
                    total: self.ever as u64,
                    reclaimed: (self.ever - current) as u64,
                    highwater: self.highwater as u64,
                    current: current as u64,
                    size: arena as u64,
                },
                pool_size: pool as u64,
                alignment: align as u64,
                threshold: threshold as u64,
                classes,
                free_pools,
                bytes,
                map: None,
            },
            counts_arenas: self.plays == Plays::Python39,
        }
    }
}
