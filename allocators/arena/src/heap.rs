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
///
/// A **stray** is a live block of the backing whose size, as it was last asked for, has a class: there was no arena to be
/// had for it, or it was to be aligned to more than blocks are, or it was larger once and has stayed with the backing.
///
/// Invariant SIZED: there are not more strays than are counted; so while none is counted, a live block is one of a pool
/// exactly if its size has a class. (A live block of a pool has a size with a class always: realloc to any other size
/// moves it. Which class the block is of, its pool says: realloc to a size of a smaller class may have left it.) More
/// than there are can be counted, as somebody who frees or resizes a stray without telling its size does not take it off.
#[derive(Debug)]
pub struct Heap<O: Os, P: Policy> {
    os: O,
    policy: P,
    strays: usize,
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
            strays: 0,
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

    /// How many live blocks of the backing have a size that would have been a pool's, or more than that, as the invariant SIZED says. While
    /// there are none, [`free_sized`](Heap::free_sized) believes the size.
    pub fn strays(&self) -> usize {
        self.strays
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

    /// The class that serves `size` bytes; `None` if the backing does.
    #[inline(always)]
    pub(crate) fn class_of(&self, size: usize) -> Option<SizeClass> {
        SizeClass::of(size, self.policy.threshold(), self.policy.align_bits())
    }

    /// Counts a block that the backing has given for a size that has a class, if it has given one.
    #[inline]
    fn stray(&mut self, p: *mut u8) -> *mut u8 {
        self.strays += usize::from(!p.is_null());
        p
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
        // Not by `class_of`, through which the compiler makes an instruction more of it.
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
            None => {
                let p = self.os.malloc(size);
                self.stray(p)
            }
        }
    }

    /// A block of `count * size` zero bytes; null if the product overflows or it cannot be had.
    #[inline]
    pub fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let bytes = count.checked_mul(size);
        let Some(class) = bytes.and_then(|bytes| self.class_of(bytes)) else {
            return self.os.calloc(count, size);
        };
        let Some(block) = self.take_or_begin(class) else {
            let p = self.os.calloc(count, size);
            return self.stray(p);
        };
        let p = block.hand_out();
        // SAFETY: a block of at least so many bytes, and nobody else's; there is a class, so the product did not overflow.
        unsafe { ptr::write_bytes(p, 0, count * size) };
        p
    }

    /// A block of `size` bytes at a multiple of `align`, a power of two; null if it cannot be had. By the backing if
    /// `align` is more than the step between block sizes.
    pub fn aligned(&mut self, align: usize, size: usize) -> *mut u8 {
        if align <= 1 << self.policy.align_bits() {
            return self.malloc(size);
        }
        let p = self.os.aligned(align, size);
        match self.class_of(size) {
            Some(_) => self.stray(p),
            None => p,
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
        // SAFETY: the caller's promise. No bytes have no class, so no stray is taken off the count: SIZED.
        unsafe { self.resize(p, 0, new) }
    }

    /// The same, told that the block was last asked for with `old` bytes, so that the count of [strays](Heap::strays) is
    /// exact.
    ///
    /// # Safety
    /// As [`realloc`](Heap::realloc), and `old` is what was last asked for, 0 for null.
    #[inline]
    pub unsafe fn realloc_sized(&mut self, p: *mut u8, old: usize, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { self.resize(p, old, new) }
    }

    /// # Safety
    /// `p` is a live block of this heap, last asked for with `old` bytes, or `old` is 0; or `p` is null.
    #[inline(always)]
    unsafe fn resize(&mut self, p: *mut u8, old: usize, new: usize) -> *mut u8 {
        if p.is_null() {
            return self.malloc(new);
        }
        // SAFETY: the caller's promise.
        let Some(pool) = (unsafe { self.pool_of(ClientPtr::new(p)) }) else {
            let (was, is) = (self.class_of(old).is_some(), self.class_of(new).is_some());
            // SAFETY: MARKED: a live block of the backing; a stray if `old` has a class.
            return unsafe {
                if was || is {
                    self.resize_stray(p, was, is, new)
                } else {
                    self.os.realloc(p, new)
                }
            };
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

    /// realloc of a block of the backing that is a stray before, or after.
    ///
    /// # Safety
    /// `p` is a live block of the backing, and a stray if it `was` one.
    #[cold]
    #[inline(never)]
    unsafe fn resize_stray(&mut self, p: *mut u8, was: bool, is: bool, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        let to = unsafe { self.os.realloc(p, new) };
        if !to.is_null() {
            // SIZED: a stray is counted, so taking one off does not go below 0.
            self.strays = self.strays + usize::from(is) - usize::from(was);
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
        match unsafe { self.pool_of(p) } {
            // SAFETY: MARKED: a live block of that pool.
            Some(pool) => unsafe { self.give(pool, p) },
            // SAFETY: MARKED: a live block of the backing, or null.
            None => unsafe { self.os.free(p.raw()) },
        }
    }

    /// Gives a block back of which the client tells the size: that alone decides whether it is a pool's or the backing's,
    /// and no address is tested, as long as there are no [strays](Heap::strays).
    ///
    /// # Safety
    /// `p` is a live block of this heap, last asked for with `size` bytes; nobody uses it afterwards.
    #[inline(always)]
    pub unsafe fn free_sized(&mut self, p: *mut u8, size: usize) {
        if HARDENED {
            self.demand_size(ClientPtr::new(p), size);
        }
        if self.class_of(size).is_none() {
            // SAFETY: SIZED: no live block of a pool has a size without a class.
            return unsafe { self.os.free(p) };
        }
        if self.strays > 0 {
            // SAFETY: the caller's promise.
            return unsafe { self.free_perhaps_stray(p) };
        }
        let p = ClientPtr::new(p);
        // SAFETY: SIZED: a live block of a pool.
        unsafe { self.give(PoolPtr::of(p, self.policy.pool_size()), p) }
    }

    /// Sized free while there are strays: the address decides after all.
    ///
    /// # Safety
    /// `p` is a live block of this heap whose size has a class; nobody uses it afterwards.
    #[cold]
    #[inline(never)]
    unsafe extern "C" fn free_perhaps_stray(&mut self, p: *mut u8) {
        let p = ClientPtr::new(p);
        // SAFETY: the caller's promise.
        match unsafe { self.pool_of(p) } {
            // SAFETY: MARKED: a live block of that pool.
            Some(pool) => unsafe { self.give(pool, p) },
            None => {
                // SIZED: this is a stray, so it is counted.
                self.strays -= 1;
                // SAFETY: MARKED: a live block of the backing.
                unsafe { self.os.free(p.raw()) }
            }
        }
    }

    /// Gives a block back to its pool.
    ///
    /// # Safety
    /// `p` is a live block of `pool`; nobody uses it afterwards.
    #[inline(always)]
    unsafe fn give(&mut self, pool: PoolPtr, p: ClientPtr) {
        // SAFETY: the caller's promise.
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
