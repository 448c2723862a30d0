//! The file's own books.

/// What obmalloc holds and what for, read from the file's own variables. Bytes where not said otherwise.
///
/// `allocated + available + unused pools + headers + quantization + arena_alignment` is exactly the arenas' bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Books {
    /// Bytes in an arena.
    pub arena_size: usize,
    /// Bytes in a pool.
    pub pool_size: usize,
    /// Blocks are multiples of so many bytes, and aligned to it.
    pub alignment: usize,
    /// Largest request that is served from pools.
    pub threshold: usize,
    /// Arenas ever taken from the operating system.
    pub arenas_total: usize,
    /// Arenas given back to it.
    pub arenas_reclaimed: usize,
    /// The most arenas held at once.
    pub arenas_highwater: usize,
    /// Arenas held now.
    pub arenas_current: usize,
    /// Pools with a live block in them.
    pub used_pools: usize,
    /// Pools without one, carved or not.
    pub unused_pools: usize,
    /// Live blocks in pools.
    pub blocks: usize,
    /// Live blocks of the backing.
    pub backing_blocks: usize,
    /// In live blocks, by the size of their class.
    pub allocated: usize,
    /// In free blocks of used pools.
    pub available: usize,
    /// In the headers of used pools.
    pub headers: usize,
    /// At the end of used pools, too small for a block.
    pub quantization: usize,
    /// Lost where an arena does not begin at a pool's boundary.
    pub arena_alignment: usize,
    /// Taken from the backing for the vector of arenas and the radix tree's nodes.
    pub bookkeeping: usize,
    /// 1: addresses are told by the radix tree; 0: by the pool header.
    pub radix_tree: usize,
}

impl Books {
    /// Bytes of address space in arenas.
    #[must_use]
    pub fn arena_bytes(&self) -> usize {
        self.arenas_current * self.arena_size
    }

    /// What the six kinds of use add up to; equal to [`arena_bytes`](Books::arena_bytes).
    #[must_use]
    pub fn accounted(&self) -> usize {
        self.allocated
            + self.available
            + self.unused_pools * self.pool_size
            + self.headers
            + self.quantization
            + self.arena_alignment
    }
}
