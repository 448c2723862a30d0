//! The heap: malloc, calloc, realloc, free.

use crate::address_test::AddressTest;
use crate::arena::{ArenaPtr, Arenas};
use crate::block::{BlockPtr, ClientPtr};
use crate::hardened::HARDENED;
use crate::os::Os;
use crate::policy::Policy;
use crate::pool::PoolPtr;
use crate::size_class::{MAX_CLASSES, SizeClass};
use crate::work::{Work, count};
use core::ptr;

/// A heap of its own: arenas, class lists and address test.
///
/// Class lists: for each class its used pools, the one last linked first. None of them is full or empty.
///
/// Invariant MARKED: the address test has exactly the arenas that the table holds. So a live block of this heap at an
/// address that it has is a block of a pool, and at any other one of the backing.
///
/// Invariant USED: a pool on a class list is used: it has a free block, and is of that class. A pool that has had a live
/// block has a class, one of the policy's.
#[derive(Debug)]
pub struct Heap<O: Os, P: Policy> {
    os: O,
    policy: P,
    used: [Option<PoolPtr>; MAX_CLASSES],
    test: P::Test,
    arenas: Arenas<P::Order>,
}

impl<O: Os, P: Policy> Heap<O, P> {
    /// An empty heap. It holds no arena, only what the address test begins with; `None` if the backing refuses that.
    #[must_use]
    pub fn new(os: O, policy: P) -> Option<Self> {
        let test = policy.test(&os)?;
        let arenas = Arenas::new(&policy);
        Some(Heap {
            os,
            policy,
            used: [None; MAX_CLASSES],
            test,
            arenas,
        })
    }

    /// Whom it asks.
    pub fn os(&self) -> &O {
        &self.os
    }

    /// Its policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// Its arenas.
    pub fn arenas(&self) -> &Arenas<P::Order> {
        &self.arenas
    }

    /// Its address test.
    pub fn test(&self) -> &P::Test {
        &self.test
    }

    /// First pool of each class list.
    pub(crate) fn used(&self) -> &[Option<PoolPtr>; MAX_CLASSES] {
        &self.used
    }

    /// Whether `p` lies in one of the arenas, by looking at all of them: for any pointer, and slow.
    pub fn has(&self, p: *const u8) -> bool {
        self.arenas.table().around(p.addr()).is_some()
    }

    /// The pool of a block; `None` if the block is the backing's, or there is none.
    ///
    /// # Safety
    /// `p` is a live block of this heap, or null.
    #[inline(always)]
    unsafe fn pool_of(&self, p: ClientPtr) -> Option<PoolPtr> {
        // The test believes the pointer, and takes what is no block for the backing's. So here all arenas are looked at.
        if HARDENED && self.has(p.raw()) {
            self.demand_live(p);
        }
        // SAFETY: the caller's promise.
        if !unsafe { self.test.has(p, self.arenas.table(), &self.policy) } {
            return None;
        }
        // SAFETY: MARKED: a live block of a pool.
        Some(unsafe { PoolPtr::of(p, self.policy.pool_size()) })
    }

    /// What a block of that pool can hold, in bytes.
    #[inline]
    fn size_in(&self, pool: PoolPtr) -> usize {
        pool.class
            .get()
            .map_or(0, |class| class.block_size(self.policy.align_bits()))
    }

    /// A block of `size` bytes; null if it cannot be had.
    ///
    /// If there is no arena to be had for a small block the backing is asked, as CPython does.
    #[inline]
    pub fn malloc(&mut self, size: usize) -> *mut u8 {
        let Some(class) = SizeClass::of(size, self.policy.threshold(), self.policy.align_bits())
        else {
            return self.os.malloc(size);
        };
        match self.used[class.index()] {
            Some(pool) => self.take(pool, class).hand_out(),
            None => self.malloc_of_another_pool(class, size),
        }
    }

    /// malloc where the class has no used pool. Apart, so that the common case saves no registers; and with a calling
    /// convention by which nothing unwinds, so that the common case prepares for nothing.
    #[inline(never)]
    extern "C" fn malloc_of_another_pool(&mut self, class: SizeClass, size: usize) -> *mut u8 {
        match self.begin_pool(class) {
            Some(block) => block.hand_out(),
            None => self.os.malloc(size),
        }
    }

    /// A block of `count * size` zero bytes; null if the product overflows or it cannot be had.
    #[inline]
    pub fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if let Some(bytes) = count.checked_mul(size)
            && let Some(class) =
                SizeClass::of(bytes, self.policy.threshold(), self.policy.align_bits())
            && let Some(block) = self.take_or_begin(class)
        {
            let p = block.hand_out();
            // SAFETY: a block of at least `bytes` bytes, and nobody else's.
            unsafe { ptr::write_bytes(p, 0, bytes) };
            return p;
        }
        self.os.calloc(count, size)
    }

    /// A block of `size` bytes at a multiple of `align`, a power of two; null if it cannot be had. By the backing if
    /// `align` is more than the step between block sizes.
    pub fn aligned(&mut self, align: usize, size: usize) -> *mut u8 {
        if align <= 1 << self.policy.align_bits() {
            self.malloc(size)
        } else {
            self.os.aligned(align, size)
        }
    }

    /// Makes the block at `p` one of `new` bytes; null, and the block is as it was, if it cannot be had.
    ///
    /// A block of a pool, whose block size is `size`, stays where it is exactly if `new <= size` and
    /// `4 * new > 3 * size`: it fits, and not more than a quarter would be wasted. A block of the backing stays with
    /// the backing.
    ///
    /// # Safety
    /// `p` is a live block of this heap, or null.
    #[inline]
    pub unsafe fn realloc(&mut self, p: *mut u8, new: usize) -> *mut u8 {
        if p.is_null() {
            return self.malloc(new);
        }
        // SAFETY: the caller's promise.
        let Some(pool) = (unsafe { self.pool_of(ClientPtr::new(p)) }) else {
            // SAFETY: MARKED: a live block of the backing.
            return unsafe { self.os.realloc(p, new) };
        };
        let size = self.size_in(pool);
        if new <= size && 4 * new > 3 * size {
            return p;
        }
        let to = self.malloc(new);
        if !to.is_null() {
            // SAFETY: `p` is live and has `size` bytes, `to` is live and has `new`: they do not overlap. `p` is not
            // used afterwards.
            unsafe {
                ptr::copy_nonoverlapping(p, to, size.min(new));
                self.free(p);
            }
        }
        to
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// `p` is a live block of this heap, or null; nobody uses it afterwards.
    #[inline(always)]
    pub unsafe fn free(&mut self, p: *mut u8) {
        let p = ClientPtr::new(p);
        // SAFETY: the caller's promise.
        let Some(pool) = (unsafe { self.pool_of(p) }) else {
            // SAFETY: MARKED: a live block of the backing, or null.
            return unsafe { self.os.free(p.raw()) };
        };
        // SAFETY: MARKED: a live block of a pool, which the client gives up.
        let block = unsafe { p.given_up() };
        if pool.give(block) {
            // SAFETY: it had this one.
            unsafe { self.link(pool) };
        } else if pool.live.get() == 0 {
            self.retire(pool);
        }
    }

    /// What the block at `p` can hold, in bytes.
    ///
    /// # Safety
    /// `p` is a live block of this heap.
    pub unsafe fn usable(&self, p: *mut u8) -> usize {
        // SAFETY: the caller's promise; MARKED: what is not a pool's is a live block of the backing.
        unsafe {
            match self.pool_of(ClientPtr::new(p)) {
                Some(pool) => self.size_in(pool),
                None => self.os.usable(p),
            }
        }
    }

    /// A block of `class`; `None` if there is no arena to be had.
    #[inline]
    fn take_or_begin(&mut self, class: SizeClass) -> Option<BlockPtr> {
        match self.used[class.index()] {
            Some(pool) => Some(self.take(pool, class)),
            None => self.begin_pool(class),
        }
    }

    /// A block of `pool`, the first on its class's list.
    #[inline]
    fn take(&mut self, pool: PoolPtr, class: SizeClass) -> BlockPtr {
        if HARDENED {
            self.demand_sound_list(pool);
        }
        // SAFETY: USED.
        let block = unsafe { pool.take() };
        if pool.free.get().is_none() && !pool.extend(class.block_size(self.policy.align_bits())) {
            self.unlink_first(pool, class);
        }
        block
    }

    /// The first block of a pool that the class gets now. Only when it has no used pool.
    fn begin_pool(&mut self, class: SizeClass) -> Option<BlockPtr> {
        let pool = match self.arenas.take_pool() {
            Some(pool) => pool,
            None => {
                self.add_arena()?;
                self.arenas.take_pool()?
            }
        };
        if HARDENED {
            self.demand_sound_list(pool);
        }
        let size = class.block_size(self.policy.align_bits());
        let block = pool.begin(class, size, self.policy.pool_size());
        count(Work::PoolLinks, 1);
        pool.prev.set(None);
        pool.next.set(None);
        self.used[class.index()] = Some(pool);
        Some(block)
    }

    /// Gets an arena from the operating system; `None`, and nothing is lost, if it or the backing refuses.
    fn add_arena(&mut self) -> Option<()> {
        let id = self.arenas.room(&self.os)?;
        let size = self.policy.arena_size();
        let at = self.os.map(size)?;
        // SAFETY: HELD: just mapped.
        let base = unsafe { ArenaPtr::new(at) };
        let bits = self.policy.arena_bits();
        if self.test.mark(&self.os, base, bits).is_none() {
            // SAFETY: mapped above, and nobody has seen it.
            unsafe { self.os.unmap(at, size) };
            return None;
        }
        self.arenas.add(id, base);
        Some(())
    }

    /// The list of a pool's class.
    ///
    /// # Safety
    /// The pool has had a live block.
    #[inline]
    unsafe fn list_of(&mut self, pool: PoolPtr) -> &mut Option<PoolPtr> {
        // SAFETY: USED: there is a class, and it is one of the policy's, of which there are `MAX_CLASSES` at most.
        unsafe {
            let class = pool.class.get().unwrap_unchecked();
            self.used.get_unchecked_mut(class.index())
        }
    }

    /// Puts a pool at the front of its class's list.
    ///
    /// # Safety
    /// The pool has had a live block.
    #[inline]
    unsafe fn link(&mut self, pool: PoolPtr) {
        count(Work::PoolLinks, 1);
        // SAFETY: the caller's promise.
        let first = unsafe { self.list_of(pool) }.replace(pool);
        pool.prev.set(None);
        pool.next.set(first);
        if let Some(first) = first {
            first.prev.set(Some(pool));
        }
    }

    /// Takes the first pool, which is full now, off its class's list.
    #[inline]
    fn unlink_first(&mut self, pool: PoolPtr, class: SizeClass) {
        count(Work::PoolUnlinks, 1);
        let next = pool.next.get();
        self.used[class.index()] = next;
        if let Some(next) = next {
            next.prev.set(None);
        }
    }

    /// Takes a pool, which is empty now, off its class's list and gives it to its arena; and, if the policy says so,
    /// the arena to the operating system.
    #[inline(never)]
    extern "C" fn retire(&mut self, pool: PoolPtr) {
        count(Work::PoolUnlinks, 1);
        count(Work::PoolsGivenBack, 1);
        let (prev, next) = (pool.prev.get(), pool.next.get());
        if let Some(next) = next {
            next.prev.set(prev);
        }
        match (prev, pool.class.get()) {
            (Some(prev), _) => prev.next.set(next),
            (None, Some(class)) => self.used[class.index()] = next,
            (None, None) => {}
        }
        if let Some(base) = self.arenas.give_pool(pool, self.policy.keep()) {
            let bits = self.policy.arena_bits();
            self.test.unmark(&self.os, base, bits);
            // SAFETY: HELD, and all of its pools are empty: no block of it is live, no list has a pool of it.
            unsafe { self.os.unmap(base.raw(), self.policy.arena_size()) };
        }
    }
}

/// Gives everything back: arenas, and with them every live block of a pool, table and address test. Live blocks of the backing
/// stay as they are.
impl<O: Os, P: Policy> Drop for Heap<O, P> {
    fn drop(&mut self) {
        let bits = self.policy.arena_bits();
        // SAFETY: nobody can ask this heap for anything any more. That live blocks end with their heap is what its users
        // are told.
        unsafe {
            self.arenas.release(&self.os);
            self.test.release(&self.os, bits);
        }
    }
}
