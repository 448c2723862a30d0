//! Pools: a header, and blocks of one size class.
//!
//! ```text
//! 0       48                                  virgin                last      pool size
//! | header | block | block | block | ... | block | virgin | ... | virgin | lost |
//! ```
//!
//! States, and who moves a pool from one to the next:
//! - **used**: some blocks live, some not. On its class's list, by `next` and `prev`. malloc takes from the first pool
//!   of the list.
//! - **full**: all blocks live. On no list. malloc makes it so when it takes the last block, and takes it off the list
//!   at once; the next free of one of its blocks puts it back, at the FRONT.
//! - **empty**: no block live. On its arena's list of empty pools, by `next`, at the front. The last free makes it so.
//!   Whoever takes it again for the same class finds its old free list as it was; for another class it begins anew.
//!
//! Blocks are carved one by one. A pool that begins hands out block 0 and has a free list of one, block 1; whenever the
//! list runs dry, the next virgin block becomes the list. So a pool's pages are touched as they are needed.
//!
//! Equations, after every operation (`check` counts them out):
//! - `live + length of the free list + virgin blocks = capacity`
//! - `capacity = (pool size - HEADER) / block size`
//! - `virgin blocks = (last - virgin) / block size + 1` if `virgin <= last`, else 0; `last = pool size - block size`
//! - `used`: `0 < live < capacity`; `full`: `live = capacity`; `empty`: `live = 0`
//! - the free list is empty exactly when the pool is full

use crate::arena::ArenaId;
use crate::block::{BlockPtr, ClientPtr};
use crate::size_class::SizeClass;
use core::cell::Cell;
use core::mem;
use core::ops::Deref;
use core::ptr::NonNull;

/// Bytes of the header.
pub const HEADER: usize = 48;

/// The start of a pool.
#[repr(C)]
#[derive(Debug)]
pub struct PoolHeader {
    /// Live blocks.
    pub live: Cell<u32>,
    /// As in the original, where a union with a pointer makes the count eight bytes wide.
    _wide: u32,
    /// First of the free list.
    pub free: Cell<Option<BlockPtr>>,
    /// The next pool: of its class if used, of its arena's empty ones if empty; stale if full.
    pub next: Cell<Option<PoolPtr>>,
    /// The pool before it on its class's list; stale unless used.
    pub prev: Cell<Option<PoolPtr>>,
    /// Its arena.
    pub arena: ArenaId,
    /// Its class, or the one it last had; `None` if it has never had one.
    pub class: Cell<Option<SizeClass>>,
    /// Offset of the first virgin block.
    pub virgin: Cell<u32>,
    /// Last offset at which a block can begin.
    pub last: Cell<u32>,
}

const _: () = assert!(size_of::<PoolHeader>() == HEADER);

/// A pool.
///
/// Invariant POOL: a whole pool of an arena that is held, aligned to its size, whose header was written when it was
/// carved. Pools are kept in their class's and their arena's lists alone, and an arena is released when all of its
/// pools are empty and only its own list has them, so nobody keeps a pool of an arena that is gone.
///
/// Invariant LISTED: the free list of a pool that has a class holds blocks of that pool whose links are set, each once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct PoolPtr(NonNull<PoolHeader>);

impl Deref for PoolPtr {
    type Target = PoolHeader;

    #[inline]
    fn deref(&self) -> &PoolHeader {
        // SAFETY: POOL. All that ever changes in a header is in cells.
        unsafe { self.0.as_ref() }
    }
}

/// Where a header names its arena.
const ARENA_OFFSET: usize = mem::offset_of!(PoolHeader, arena);

/// Reads the word that would name the arena if there were a pool around `p`. Of other memory it is anything at all.
///
/// # Safety
/// `p` is in use, the client's or ours, and the pool size is at most that of an OS page; so whatever lies at the start of
/// the pool's place, it can be read.
#[inline]
pub(crate) unsafe fn peek_arena(p: ClientPtr, pool_size: usize) -> usize {
    let pool = pool_start(p.address(), pool_size);
    // The memory may be another's, written by another or by nobody: nothing that Rust could be told. So the load is
    // the machine's own, or at least one that the compiler makes no use of.
    #[cfg(target_arch = "x86_64")]
    {
        let word: usize;
        // SAFETY: the caller's promise. Nothing is written, and a word from assembly is some word. A load of 32 bits
        // clears the upper ones.
        unsafe {
            core::arch::asm!(
                "mov {word:e}, dword ptr [{pool} + {offset}]",
                pool = in(reg) pool,
                offset = const ARENA_OFFSET,
                word = lateout(reg) word,
                options(nostack, preserves_flags, readonly),
            );
        }
        word
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's promise.
    unsafe {
        core::ptr::with_exposed_provenance::<u32>(pool + ARENA_OFFSET).read_volatile() as usize
    }
}

/// The start of the pool around `address`.
#[inline]
fn pool_start(address: usize, pool_size: usize) -> usize {
    address & !(pool_size - 1)
}

impl PoolPtr {
    /// Carves a pool out of its arena.
    ///
    /// # Safety
    /// `at` is the start of `pool_size` bytes, as many as it is aligned to, of the arena `arena` that nobody uses yet.
    pub(crate) unsafe fn carve(at: NonNull<u8>, arena: ArenaId) -> PoolPtr {
        let pool = at.cast::<PoolHeader>();
        // SAFETY: the caller's promise: room, alignment, nobody else's.
        unsafe {
            pool.write(PoolHeader {
                live: Cell::new(0),
                _wide: 0,
                free: Cell::new(None),
                next: Cell::new(None),
                prev: Cell::new(None),
                arena,
                class: Cell::new(None),
                virgin: Cell::new(0),
                last: Cell::new(0),
            });
        }
        PoolPtr(pool)
    }

    /// The pool whose start `at` is.
    ///
    /// # Safety
    /// It was carved, and its arena is held.
    pub(crate) unsafe fn carved(at: NonNull<u8>) -> PoolPtr {
        PoolPtr(at.cast())
    }

    /// The pool that the client's block lies in.
    ///
    /// # Safety
    /// `p` is a live block of a pool of `pool_size` bytes.
    #[inline]
    pub(crate) unsafe fn of(p: ClientPtr, pool_size: usize) -> PoolPtr {
        let start = p
            .raw()
            .map_addr(|address| pool_start(address, pool_size))
            .cast::<PoolHeader>();
        // SAFETY: the caller's promise: in a pool, which begins at a multiple of its size, which is not null.
        PoolPtr(unsafe { NonNull::new_unchecked(start) })
    }

    /// Its address, as a number.
    pub(crate) fn address(self) -> usize {
        self.0.addr().get()
    }

    /// The block at `offset`.
    ///
    /// # Safety
    /// A block begins there, and it is not live.
    #[inline]
    unsafe fn block_at(self, offset: u32) -> BlockPtr {
        // SAFETY: POOL and the caller's promise: inside the pool, and FREE holds of it.
        unsafe { BlockPtr::new(self.0.cast::<u8>().add(offset as usize)) }
    }

    /// Gives an empty pool to `class`, whose blocks have `block_size` bytes, and takes its first block.
    pub(crate) fn begin(self, class: SizeClass, block_size: usize, pool_size: usize) -> BlockPtr {
        debug_assert!(self.live.get() == 0);
        self.live.set(1);
        if self.class.get() == Some(class) {
            // SAFETY: the pool has been this class's: LISTED, and block 0, handed out then, is back.
            unsafe {
                let block = self.free.get().unwrap_unchecked();
                self.free.set(block.link());
                return block;
            }
        }
        let size = block_size as u32;
        self.class.set(Some(class));
        self.virgin.set(HEADER as u32 + 2 * size);
        self.last.set(pool_size as u32 - size);
        // SAFETY: a pool has 4 KiB or more and a block 512 bytes at most, so that blocks 0 and 1 are there; the pool is
        // empty, so that neither is live.
        let (first, second) = unsafe {
            (
                self.block_at(HEADER as u32),
                self.block_at(HEADER as u32 + size),
            )
        };
        second.set_link(None);
        self.free.set(Some(second));
        first
    }

    /// Takes the first free block.
    ///
    /// # Safety
    /// The pool is used (so that it has one).
    #[inline]
    pub(crate) unsafe fn take(self) -> BlockPtr {
        self.live.set(self.live.get() + 1);
        // SAFETY: the caller's promise: the list is not empty; LISTED.
        unsafe {
            let block = self.free.get().unwrap_unchecked();
            self.free.set(block.link());
            block
        }
    }

    /// After the free list ran dry: the next virgin block becomes the list. False if none is left: the pool is full.
    #[inline]
    pub(crate) fn extend(self, block_size: usize) -> bool {
        debug_assert!(self.free.get().is_none());
        let offset = self.virgin.get();
        if offset > self.last.get() {
            return false;
        }
        self.virgin.set(offset + block_size as u32);
        // SAFETY: blocks begin at `virgin` and up to `last`, and those have never been handed out.
        let block = unsafe { self.block_at(offset) };
        block.set_link(None);
        self.free.set(Some(block));
        true
    }

    /// Puts a block of the pool that is no longer live at the front of the free list. True if the pool was full; then it
    /// is used now, since a pool has more than one block. Otherwise it may be empty now.
    #[inline]
    pub(crate) fn give(self, block: BlockPtr) -> bool {
        let first = self.free.get();
        block.set_link(first);
        self.free.set(Some(block));
        self.live.set(self.live.get() - 1);
        first.is_none()
    }

    /// Blocks never handed out.
    pub(crate) fn virgin_blocks(self, block_size: usize) -> usize {
        let (virgin, last) = (self.virgin.get() as usize, self.last.get() as usize);
        last.checked_sub(virgin)
            .map_or(0, |room| room / block_size + 1)
    }
}
