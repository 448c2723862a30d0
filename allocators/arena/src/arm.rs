//! The arms `arena-2.4`, `arena-2.5`, `arena-3.8`, `arena-3.9`, `arena-3.10`, which is `arena` too, and
//! `arena-3.10-keep0`: the heap as the harness opens it.
//!
//! State is the process's, in plain variables, and it is entered through functions that are never inlined and have the
//! C calling convention, as the C allocators are. There is a set of them for each generation, in which its numbers are
//! constants of the code, as they are in CPython; and one, `tuned`, in which everything is read at run time, for knobs
//! that ask for something else. The receipt says which one is open.

use crate::debug_text::DebugText;
use crate::heap::Heap;
use crate::os::{Libc, Source};
use crate::policy::{
    KEEP_ALL, OrderKind, Policy, Python24, Python24Asking, Python25, Python38, Python39, Python310,
    Settings, TestKind, Tuned, Unfit,
};
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
    open: unsafe fn(Settings, Libc) -> Result<(), Refused>,
    malloc: unsafe extern "C" fn(usize) -> *mut u8,
    calloc: unsafe extern "C" fn(usize, usize) -> *mut u8,
    realloc: unsafe extern "C" fn(*mut u8, usize) -> *mut u8,
    free: unsafe extern "C" fn(*mut u8),
    aligned: unsafe fn(usize, usize) -> *mut u8,
    usable: unsafe fn(*mut u8) -> usize,
    stats: unsafe fn() -> Stats,
    text: unsafe fn() -> DebugText,
    os: unsafe fn() -> Libc,
    close: unsafe fn(),
}

macro_rules! entries {
    ($module:ident, $name:literal, $numbers_are:expr, $policy:ty = $make:expr) => {
        mod $module {
            use super::*;

            static SLOT: Slot<$policy> = Slot::new();

            /// # Safety
            /// OPEN: called by an [`Arena`] with these entries, as all that follow.
            #[inline(never)]
            #[unsafe(export_name = concat!("heaplab_arena_", $name, "malloc"))]
            unsafe extern "C" fn malloc(size: usize) -> *mut u8 {
                // SAFETY: OPEN, by the caller's promise.
                unsafe { SLOT.heap() }.malloc(size)
            }

            /// # Safety
            /// As `malloc`.
            #[inline(never)]
            #[unsafe(export_name = concat!("heaplab_arena_", $name, "calloc"))]
            unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut u8 {
                // SAFETY: OPEN, by the caller's promise.
                unsafe { SLOT.heap() }.calloc(count, size)
            }

            /// # Safety
            /// As `malloc`; and `p` is a live block of it, or null.
            #[inline(never)]
            #[unsafe(export_name = concat!("heaplab_arena_", $name, "realloc"))]
            unsafe extern "C" fn realloc(p: *mut u8, new: usize) -> *mut u8 {
                // SAFETY: OPEN, by the caller's promise, as is what `realloc` asks for.
                unsafe { SLOT.heap().realloc(p, new) }
            }

            /// # Safety
            /// As `realloc`; and nobody uses the block afterwards.
            #[inline(never)]
            #[unsafe(export_name = concat!("heaplab_arena_", $name, "free"))]
            unsafe extern "C" fn free(p: *mut u8) {
                // SAFETY: OPEN, by the caller's promise, as is what `free` asks for.
                unsafe { SLOT.heap().free(p) }
            }

            pub(super) static ENTRIES: Entries = Entries {
                numbers_are: $numbers_are,
                open: |settings, os| {
                    let make: fn(Settings) -> Result<$policy, Refused> = $make;
                    // SAFETY: the claim is taken, and no heap is in the slot, says who calls this.
                    unsafe { put(&SLOT, os, make(settings)?) }
                },
                malloc,
                calloc,
                realloc,
                free,
                // SAFETY: OPEN: only a method of the `Arena` that has these entries calls this and what follows.
                aligned: |align, size| unsafe { SLOT.heap().aligned(align, size) },
                // SAFETY: OPEN, and the caller's promise is the one that `usable` asks for.
                usable: |p| unsafe { SLOT.heap().usable(p) },
                // SAFETY: OPEN.
                stats: || unsafe { SLOT.heap() }.stats(),
                // SAFETY: OPEN.
                text: || unsafe { SLOT.heap() }.debug_text(),
                // SAFETY: OPEN.
                os: || *unsafe { SLOT.heap() }.os(),
                // SAFETY: OPEN: a heap is in it, and whoever closes it says that it is not used afterwards.
                close: || unsafe { (*SLOT.0.get()).assume_init_drop() },
            };
        }
    };
}

const CONSTANT: &str = "constants of the code";

entries!(python_2_4, "2_4_", CONSTANT, Python24 = |_| Ok(Python24));
entries!(
    python_2_4_asking,
    "2_4_asking_",
    CONSTANT,
    Python24Asking = |_| Ok(Python24Asking)
);
entries!(python_2_5, "2_5_", CONSTANT, Python25 = |_| Ok(Python25));
entries!(python_3_8, "3_8_", CONSTANT, Python38 = |_| Ok(Python38));
entries!(python_3_9, "3_9_", CONSTANT, Python39 = |_| Ok(Python39));
entries!(
    python_3_10,
    "",
    CONSTANT,
    Python310 = |asked| Ok(Python310 {
        keep: asked.keep == 1,
    })
);
entries!(tuned, "tuned_", "read at run time", Tuned = tuned_to);

/// The policy put together from settings.
fn tuned_to(settings: Settings) -> Result<Tuned, Refused> {
    Tuned::new(settings).map_err(|Unfit(why)| Refused::Knob(format!("{}: {why}", shown(&settings))))
}

/// Settings as knobs.
fn shown(settings: &Settings) -> String {
    let knobs: Vec<String> = knobs_of(settings)
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    knobs.join(",")
}

/// Settings as a receipt has them.
fn knobs_of(settings: &Settings) -> [(&'static str, String); 7] {
    let keep = match settings.keep {
        KEEP_ALL => "all".into(),
        keep => keep.to_string(),
    };
    [
        ("arena", settings.arena.to_string()),
        ("pool", settings.pool.to_string()),
        ("align", settings.align.to_string()),
        ("threshold", settings.threshold.to_string()),
        ("keep", keep),
        ("order", word(ORDERS, settings.order).into()),
        ("test", word(TESTS, settings.test).into()),
    ]
}

/// Words of the knob `order`.
const ORDERS: &[(&str, OrderKind)] = &[
    ("global", OrderKind::Global),
    ("slide", OrderKind::Slide),
    ("constant", OrderKind::Constant),
    ("last", OrderKind::Last),
];

/// Words of the knob `test`.
const TESTS: &[(&str, TestKind)] = &[
    ("walk", TestKind::Walk),
    ("header", TestKind::Header),
    ("header-2.4", TestKind::Header24),
    ("radix", TestKind::Radix),
];

/// Words of the knob `numbers`: whether a generation's own are constants of the code or are read like any others.
const NUMBERS: &[(&str, bool)] = &[("constant", false), ("read", true)];

/// Words of the knob `source`.
const SOURCES: &[(&str, Source)] = &[("mmap", Source::Mmap), ("malloc", Source::Malloc)];

/// The word for a value.
fn word<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    let mut named = words.iter().filter(|(_, one)| *one == value);
    named.next().map_or("", |(word, _)| word)
}

/// A knob whose values are words.
fn by_word<T: Copy>(
    knobs: &mut Knobs,
    name: &'static str,
    words: &[(&'static str, T)],
) -> Result<Option<T>, Refused> {
    let names: Vec<&'static str> = words.iter().map(|(word, _)| *word).collect();
    let asked = knobs.word(name, &names)?;
    Ok(words
        .iter()
        .find(|(word, _)| Some(*word) == asked)
        .map(|(_, value)| *value))
}

/// The generations, and what stands beside one for comparison: which arms, which settings, which entries.
static GENERATIONS: &[(&[&str], Settings, &str, &Entries)] = &[
    (
        &["arena-2.4"],
        Settings::PYTHON_2_4,
        "CPython 2.4's",
        &python_2_4::ENTRIES,
    ),
    (
        &[],
        Settings {
            test: TestKind::Header,
            ..Settings::PYTHON_2_4
        },
        "CPython 2.4's, with the address test of 2.5",
        &python_2_4_asking::ENTRIES,
    ),
    (
        &["arena-2.5"],
        Settings::PYTHON_2_5,
        "CPython 2.5's to 3.7's",
        &python_2_5::ENTRIES,
    ),
    (
        &["arena-3.8"],
        Settings::PYTHON_3_8,
        "CPython 3.8's",
        &python_3_8::ENTRIES,
    ),
    (
        &["arena-3.9"],
        Settings::PYTHON_3_9,
        "CPython 3.9's",
        &python_3_9::ENTRIES,
    ),
    (
        &["arena", "arena-3.10"],
        Settings::PYTHON_3_10,
        "CPython 3.10's and later",
        &python_3_10::ENTRIES,
    ),
    (
        &["arena-3.10-keep0"],
        KEEP0,
        "CPython 3.10's, but an empty arena is released at once",
        &python_3_10::ENTRIES,
    ),
];

/// 3.10's numbers and 3.8's eagerness.
const KEEP0: Settings = Settings {
    keep: 0,
    ..Settings::PYTHON_3_10
};

/// The arm. Only one is open at a time, and it stays on the thread that opened it. Its blocks end with it.
#[derive(Debug)]
pub struct Arena {
    entries: &'static Entries,
    settings: Settings,
    policy: &'static str,
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

/// The most that a number can say, for a knob that says more.
fn number<T: TryFrom<u64>>(asked: u64, most: T) -> T {
    T::try_from(asked).unwrap_or(most)
}

/// The settings of an arm with its knobs, whom it asks, and whether numbers are read at run time come what may.
fn settings(
    id: &str,
    mut settings: Settings,
    mut knobs: Knobs,
) -> Result<(Settings, Libc, bool), Refused> {
    let mut os = Libc::default();
    for (name, at) in [
        ("arena", &mut settings.arena),
        ("pool", &mut settings.pool),
        ("align", &mut settings.align),
        ("threshold", &mut settings.threshold),
    ] {
        if let Some(bytes) = knobs.bytes(name)? {
            *at = number(bytes, usize::MAX);
        }
    }
    if let Some(order) = by_word(&mut knobs, "order", ORDERS)? {
        // What the list cannot do, it does not do; and what it does again, it does as 3.9.
        settings.keep = match (order, settings.keep) {
            (OrderKind::Global, _) => KEEP_ALL,
            (_, KEEP_ALL) => 1,
            (_, keep) => keep,
        };
        settings.order = order;
        // Nor does its test hold where arenas are released.
        if settings.test == TestKind::Header24 && settings.keep != KEEP_ALL {
            settings.test = TestKind::Header;
        }
    }
    if let Some(test) = by_word(&mut knobs, "test", TESTS)? {
        settings.test = test;
    }
    // An arm named after what it keeps, or whose list releases nothing, has no such knob.
    if id != "arena-3.10-keep0"
        && settings.order != OrderKind::Global
        && let Some(keep) = knobs.number("keep")?
    {
        if !(0.0..=1024.0).contains(&keep) || keep.fract() != 0.0 {
            return Err(Refused::Knob(format!(
                "keep={keep}: expected a whole number of arenas, 1024 at most"
            )));
        }
        settings.keep = keep as u32;
    }
    if let Some(source) = by_word(&mut knobs, "source", SOURCES)? {
        os.source = source;
    }
    if let Some(aligned) = knobs.switch("aligned")? {
        os.aligned_arenas = aligned;
    }
    let read = by_word(&mut knobs, "numbers", NUMBERS)?.unwrap_or(false);
    knobs.finish(id)?;
    Ok((settings, os, read))
}

impl Arena {
    /// CPython's own text about the statistics, as `sys._debugmallocstats()` prints it.
    #[must_use]
    pub fn debug_text(&self) -> DebugText {
        // SAFETY: OPEN.
        unsafe { (self.entries.text)() }
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
        let arm = GENERATIONS.iter().find(|(ids, ..)| ids.contains(&id));
        let Some((_, own, ..)) = arm else {
            return Err(Refused::Unavailable(format!("there is no arm {id}")));
        };
        let (settings, os, read) = settings(id, *own, Knobs::new(knobs))?;
        tuned_to(settings)?;
        let (policy, entries) = GENERATIONS
            .iter()
            .find(|(_, of, ..)| *of == settings && !read)
            .map_or(
                ("as its knobs say", &tuned::ENTRIES),
                |(_, _, named, entries)| (*named, *entries),
            );
        // Whoever takes it sees what the one before left.
        if CLAIMED.swap(true, Ordering::Acquire) {
            return Err(Refused::Unavailable(
                "an arena heap is already open in this process; close it first".into(),
            ));
        }
        // SAFETY: the claim is taken, and a slot is emptied before it is given back.
        unsafe { (entries.open)(settings, os) }
            .inspect_err(|_| CLAIMED.store(false, Ordering::Release))?;
        Ok(Arena {
            entries,
            settings,
            policy,
            _of_this_thread: PhantomData,
        })
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

    /// Pools and arenas alone: what the backing serves is in the backing's books. Further figures: `arenas_total`,
    /// `arenas_reclaimed`, `arenas_highwater` and `arenas_current` since the heap was opened, and `arena_bytes` now.
    fn stats(&self) -> SelfStats {
        let stats = self.statistics();
        let mapped = stats.arenas.current * stats.arenas.size;
        SelfStats {
            allocated: Some(stats.bytes.allocated),
            mapped: Some(mapped),
            resident: None,
            extra: vec![
                ("arenas_total", stats.arenas.total),
                ("arenas_reclaimed", stats.arenas.reclaimed),
                ("arenas_highwater", stats.arenas.highwater),
                ("arenas_current", stats.arenas.current),
                ("arena_bytes", mapped),
            ],
        }
    }

    fn receipt(&self) -> Receipt {
        // SAFETY: OPEN.
        let os = unsafe { (self.entries.os)() };
        let mut knobs: Vec<(String, String)> = knobs_of(&self.settings)
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect();
        knobs.push(("source".into(), word(SOURCES, os.source).into()));
        knobs.push(("aligned".into(), u8::from(os.aligned_arenas).to_string()));
        let mut facts = vec![
            ("numbers".into(), self.entries.numbers_are.into()),
            ("arena_placement".into(), self.placement(os).into()),
            ("backing".into(), "the C library's malloc".into()),
        ];
        if self.settings.align < 16 {
            let not = "to 8 bytes, less than some C types of 16 bytes and more want";
            facts.push(("block alignment".into(), not.into()));
        }
        Receipt {
            allocator: "arena".into(),
            version: concat!("heaplab ", env!("CARGO_PKG_VERSION")).into(),
            build: vec![
                ("source".into(), "this project's own".into()),
                ("policy".into(), self.policy.into()),
            ],
            knobs,
            facts,
        }
    }
}

impl Arena {
    /// Whether every arena has the same number of pools, as counts of arenas are exact only then.
    fn placement(&self, os: Libc) -> &'static str {
        /// What mmap aligns to at least.
        const OS_PAGE: usize = 4096;
        match os {
            Libc {
                aligned_arenas: true,
                ..
            } => "aligned to pools",
            Libc {
                source: Source::Mmap,
                ..
            } if self.settings.pool <= OS_PAGE => "aligned to pools",
            Libc {
                source: Source::Mmap,
                ..
            } => "as mmap gives them: an arena loses a pool or not, by chance",
            Libc {
                source: Source::Malloc,
                ..
            } => "as malloc gives them: an arena loses a pool or not, by chance",
        }
    }
}
