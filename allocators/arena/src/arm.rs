//! The arms `arena`, `arena-3.10` and `arena-3.10-keep0`: the heap as the harness opens it.
//!
//! State is the process's, in plain variables, and it is entered through functions that are never inlined and have the
//! C calling convention, as the C allocators are. There are two sets of them: in one the numbers of 3.10 are constants
//! of the code, as they are in CPython; in the other, `tuned`, they are read at run time, for knobs that ask for
//! others. The receipt says which one is open.

use crate::heap::Heap;
use crate::os::Libc;
use crate::policy::{Numbers, Policy, Python310, Tuned, Unfit};
use crate::stats::Stats;
use contract::{Arm, Capabilities, Knobs, Receipt, Refused, SelfStats};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

/// Whether an arena heap is open in this process.
static CLAIMED: AtomicBool = AtomicBool::new(false);

/// Room for the state of a heap that is the process's.
///
/// Invariant OPEN: while an [`Arena`] with its entries lives there is a heap in it, and only the thread that opened it,
/// where that value stays, touches it, one call at a time: no entry calls another or anything that would.
struct Slot<P: Policy>(UnsafeCell<MaybeUninit<Heap<Libc, P>>>);

// SAFETY: OPEN: one thread at a time; whoever takes the claim sees what the one before left.
unsafe impl<P: Policy> Sync for Slot<P> {}

impl<P: Policy> Slot<P> {
    const fn new() -> Self {
        Slot(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    /// OPEN: a heap is in it, this is its thread, and no other reference to it lives.
    #[inline]
    #[expect(
        clippy::mut_from_ref,
        reason = "that there is one alone is the caller's promise"
    )]
    unsafe fn heap(&self) -> &mut Heap<Libc, P> {
        // SAFETY: the caller's promise.
        unsafe { (*self.0.get()).assume_init_mut() }
    }
}

/// The functions over one slot.
#[derive(Debug)]
struct Entries {
    numbers_are: &'static str,
    malloc: unsafe extern "C" fn(usize) -> *mut u8,
    calloc: unsafe extern "C" fn(usize, usize) -> *mut u8,
    realloc: unsafe extern "C" fn(*mut u8, usize) -> *mut u8,
    free: unsafe extern "C" fn(*mut u8),
    aligned: unsafe fn(usize, usize) -> *mut u8,
    usable: unsafe fn(*mut u8) -> usize,
    stats: unsafe fn() -> Stats,
    facts: unsafe fn() -> (Numbers, bool),
    close: unsafe fn(),
}

macro_rules! entries {
    ($slot:ident: $policy:ty, $entries:ident = $numbers_are:literal,
     $malloc:ident, $calloc:ident, $realloc:ident, $free:ident) => {
        static $slot: Slot<$policy> = Slot::new();

        /// A block of `size` bytes; null if it cannot be had.
        ///
        /// # Safety
        /// An [`Arena`] with these entries is open, on this thread.
        #[inline(never)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $malloc(size: usize) -> *mut u8 {
            // SAFETY: OPEN, by the caller's promise.
            unsafe { $slot.heap() }.malloc(size)
        }

        /// A block of `count * size` zero bytes; null if the product overflows or it cannot be had.
        ///
        /// # Safety
        /// An [`Arena`] with these entries is open, on this thread.
        #[inline(never)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $calloc(count: usize, size: usize) -> *mut u8 {
            // SAFETY: OPEN, by the caller's promise.
            unsafe { $slot.heap() }.calloc(count, size)
        }

        /// Makes the block at `p` one of `new` bytes; null, and it is as it was, if it cannot be had.
        ///
        /// # Safety
        /// An [`Arena`] with these entries is open, on this thread, and `p` is a live block of it, or null.
        #[inline(never)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $realloc(p: *mut u8, new: usize) -> *mut u8 {
            // SAFETY: OPEN, by the caller's promise, as is what `realloc` asks for.
            unsafe { $slot.heap().realloc(p, new) }
        }

        /// Gives the block at `p` back.
        ///
        /// # Safety
        /// An [`Arena`] with these entries is open, on this thread, and `p` is a live block of it, or null; nobody uses
        /// it afterwards.
        #[inline(never)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $free(p: *mut u8) {
            // SAFETY: OPEN, by the caller's promise, as is what `free` asks for.
            unsafe { $slot.heap().free(p) }
        }

        static $entries: Entries = Entries {
            numbers_are: $numbers_are,
            malloc: $malloc,
            calloc: $calloc,
            realloc: $realloc,
            free: $free,
            // SAFETY: OPEN: only a method of the `Arena` that has these entries calls this and what follows.
            aligned: |align, size| unsafe { $slot.heap().aligned(align, size) },
            // SAFETY: OPEN, and the caller's promise is the one that `usable` asks for.
            usable: |p| unsafe { $slot.heap().usable(p) },
            // SAFETY: OPEN.
            stats: || unsafe { $slot.heap() }.stats(),
            facts: || {
                // SAFETY: OPEN.
                let heap = unsafe { $slot.heap() };
                (Numbers::of(heap.policy()), heap.os().aligned_arenas)
            },
            // SAFETY: OPEN: a heap is in it, and whoever closes it says that it is not used afterwards.
            close: || unsafe { (*$slot.0.get()).assume_init_drop() },
        };
    };
}

entries!(
    CONSTANT: Python310, OF_CONSTANTS = "constants of the code",
    heaplab_arena_malloc, heaplab_arena_calloc, heaplab_arena_realloc, heaplab_arena_free
);
entries!(
    TUNED: Tuned, OF_TUNED = "read at run time",
    heaplab_arena_tuned_malloc, heaplab_arena_tuned_calloc, heaplab_arena_tuned_realloc, heaplab_arena_tuned_free
);

/// The arm. Only one is open at a time, and it stays on the thread that opened it. Its blocks end with it.
#[derive(Debug)]
pub struct Arena {
    entries: &'static Entries,
    _of_this_thread: PhantomData<*mut ()>,
}

/// Puts a heap into a slot that has none.
///
/// # Safety
/// The claim is taken, and no heap is in the slot.
unsafe fn put<P: Policy>(slot: &Slot<P>, os: Libc, policy: P) -> Result<(), Refused> {
    let heap = Heap::new(os, policy).ok_or_else(|| {
        Refused::Unavailable("the C library has no memory for the root of the address map".into())
    })?;
    // SAFETY: the caller's promise: nobody else touches it, and nothing is in it that would have to be dropped.
    unsafe { (*slot.0.get()).write(heap) };
    Ok(())
}

/// The most that a `usize` can say, for a knob that says more.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl Arena {
    /// Opens the heap with these numbers. The claim is taken.
    fn with(numbers: Numbers, os: Libc) -> Result<Arena, Refused> {
        let tuned = Tuned::new(numbers).map_err(|Unfit(why)| {
            Refused::Knob(format!(
                "arena={}, pool={}, threshold={}: {why}",
                numbers.arena, numbers.pool, numbers.threshold
            ))
        })?;
        let constant = Python310 { keep: numbers.keep };
        // SAFETY: the claim is taken, and a slot is emptied before it is given back.
        let entries = unsafe {
            if Numbers::of(&constant) == numbers {
                put(&CONSTANT, os, constant)?;
                &OF_CONSTANTS
            } else {
                put(&TUNED, os, tuned)?;
                &OF_TUNED
            }
        };
        Ok(Arena {
            entries,
            _of_this_thread: PhantomData,
        })
    }

    /// The heap's statistics, as CPython counts them. Takes time in proportion to the pools.
    #[must_use]
    pub fn statistics(&self) -> Stats {
        // SAFETY: OPEN.
        unsafe { (self.entries.stats)() }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: OPEN, and this is its end.
        unsafe { (self.entries.close)() };
        CLAIMED.store(false, Ordering::Release);
    }
}

impl Arm for Arena {
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused> {
        let mut knobs = Knobs::new(knobs);
        let mut numbers = Numbers::default();
        let mut os = Libc::default();
        if let Some(bytes) = knobs.bytes("arena")? {
            numbers.arena = size(bytes);
        }
        if let Some(bytes) = knobs.bytes("pool")? {
            numbers.pool = size(bytes);
        }
        if let Some(bytes) = knobs.bytes("threshold")? {
            numbers.threshold = size(bytes);
        }
        match id {
            "arena" | "arena-3.10" => numbers.keep = knobs.switch("keep")?.unwrap_or(true),
            "arena-3.10-keep0" => numbers.keep = false,
            _ => return Err(Refused::Unavailable(format!("there is no arm {id}"))),
        }
        if let Some(aligned) = knobs.switch("aligned")? {
            os.aligned_arenas = aligned;
        }
        knobs.finish(id)?;
        // Whoever takes it sees what the one before left.
        if CLAIMED.swap(true, Ordering::Acquire) {
            return Err(Refused::Unavailable(
                "an arena heap is already open in this process; close it first".into(),
            ));
        }
        Arena::with(numbers, os).inspect_err(|_| CLAIMED.store(false, Ordering::Release))
    }
}

// SAFETY: blocks are those of `Heap`, whose functions ask for no more than the trait's do; OPEN: `self` is here, so this
// is the thread, and the heap is in its slot.
unsafe impl contract::Heap for Arena {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: false,
        sized: false,
        usable: true,
        trim: false,
        contents: true,
    };

    #[inline]
    fn malloc(&self, size: usize) -> *mut u8 {
        // SAFETY: OPEN.
        unsafe { (self.entries.malloc)(size) }
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: OPEN.
        unsafe { (self.entries.calloc)(count, size) }
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, _old: usize, new: usize) -> *mut u8 {
        // SAFETY: OPEN; the caller's promise: a live block of this heap.
        unsafe { (self.entries.realloc)(p, new) }
    }

    unsafe fn realloc_as_c(&self, p: *mut u8, _old: usize, new: usize) -> Option<*mut u8> {
        // SAFETY: OPEN; the caller's promise: a live block of this heap, or null.
        Some(unsafe { (self.entries.realloc)(p, new) })
    }

    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: OPEN; the caller's promise: a live block of this heap.
        unsafe { (self.entries.free)(p) }
    }

    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        // SAFETY: OPEN.
        unsafe { (self.entries.aligned)(align, size) }
    }

    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        // SAFETY: OPEN; the caller's promise: a live block of this heap.
        Some(unsafe { (self.entries.usable)(p) })
    }

    fn trim(&self) -> bool {
        false
    }

    /// Pools and arenas alone: what the backing serves is in the backing's books.
    fn stats(&self) -> SelfStats {
        let stats = self.statistics();
        SelfStats {
            allocated: Some(stats.bytes.allocated),
            mapped: Some(stats.arenas.current * stats.arenas.size),
            resident: None,
            extra: Vec::new(),
        }
    }

    fn receipt(&self) -> Receipt {
        // SAFETY: OPEN.
        let (numbers, aligned) = unsafe { (self.entries.facts)() };
        let switch = |on: bool| u8::from(on).to_string();
        Receipt {
            allocator: "arena".into(),
            version: concat!("heaplab ", env!("CARGO_PKG_VERSION")).into(),
            build: vec![
                ("source".into(), "this project's own".into()),
                ("policy".into(), "CPython 3.10's".into()),
            ],
            knobs: vec![
                ("arena".into(), numbers.arena.to_string()),
                ("pool".into(), numbers.pool.to_string()),
                ("threshold".into(), numbers.threshold.to_string()),
                ("keep".into(), switch(numbers.keep)),
                ("aligned".into(), switch(aligned)),
            ],
            facts: vec![
                ("numbers".into(), self.entries.numbers_are.into()),
                ("backing".into(), "the C library's malloc".into()),
            ],
        }
    }
}
