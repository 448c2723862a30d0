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
use crate::over::{Behind, Over};
use crate::policy::{
    KEEP_ALL, OrderKind, Policy, Python24, Python24Asking, Python25, Python38, Python39, Python310,
    Settings, TestKind, Tuned, Unfit,
};
use crate::stats::Stats;
use contract::backing::{KNOB, tell};
use contract::{Arm, Backed, Backing, Capabilities, Knobs, Receipt, Refused, SelfStats};
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};
use std::boxed::Box;
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
struct Slot<P: Policy>(UnsafeCell<MaybeUninit<Heap<Over, P>>>);

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
    unsafe fn heap(&self) -> &mut Heap<Over, P> {
        // SAFETY: the caller's promise.
        unsafe { (*self.0.get()).assume_init_mut() }
    }
}

/// The functions over one slot.
#[derive(Debug)]
struct Entries {
    numbers_are: &'static str,
    open: unsafe fn(Settings, Over) -> Result<(), Refused>,
    malloc: unsafe extern "C" fn(usize) -> *mut u8,
    calloc: unsafe extern "C" fn(usize, usize) -> *mut u8,
    realloc: unsafe extern "C" fn(*mut u8, usize) -> *mut u8,
    realloc_sized: unsafe extern "C" fn(*mut u8, usize, usize) -> *mut u8,
    free: unsafe extern "C" fn(*mut u8),
    free_sized: unsafe extern "C" fn(*mut u8, usize),
    aligned: unsafe fn(usize, usize) -> *mut u8,
    usable: unsafe fn(*mut u8) -> usize,
    stats: unsafe fn() -> Stats,
    text: unsafe fn() -> DebugText,
    os: unsafe fn() -> Over,
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

            /// # Safety
            /// As `realloc`; and `old` is what the block was last asked for, 0 for null.
            #[inline(never)]
            #[unsafe(export_name = concat!("heaplab_arena_", $name, "realloc_sized"))]
            unsafe extern "C" fn realloc_sized(p: *mut u8, old: usize, new: usize) -> *mut u8 {
                // SAFETY: OPEN, by the caller's promise, as is what `realloc_sized` asks for.
                unsafe { SLOT.heap().realloc_sized(p, old, new) }
            }

            /// # Safety
            /// As `free`; and `size` is what the block, which is not null, was last asked for.
            #[inline(never)]
            #[unsafe(export_name = concat!("heaplab_arena_", $name, "free_sized"))]
            unsafe extern "C" fn free_sized(p: *mut u8, size: usize) {
                // SAFETY: OPEN, by the caller's promise, as is what `free_sized` asks for.
                unsafe { SLOT.heap().free_sized(p, size) }
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
                realloc_sized,
                free,
                free_sized,
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
static GENERATIONS: &[Generation] = &[
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

/// The heap that is open, whatever is behind it. Apart from [`Arena`], which is compiled anew for every backing: of what is
/// compiled once, the variables are nobody else's, and the machine finds them without a table.
#[derive(Debug)]
struct Opened {
    entries: &'static Entries,
    settings: Settings,
    policy: &'static str,
    _of_this_thread: PhantomData<*mut ()>,
}

/// The arm, over the C library or over `B`. Only one is open at a time, and it stays on the thread that opened it. Its
/// blocks end with it.
#[derive(Debug)]
pub struct Arena<B: Backing> {
    opened: Opened,
    /// BACKED: the heap points into it, and is closed before it goes, as fields go in their order.
    backing: Option<Box<Backed<B::Heap>>>,
}

/// Puts a heap into a slot that has none.
///
/// # Safety
/// The claim is taken, and no heap is in the slot.
unsafe fn put<P: Policy>(slot: &Slot<P>, os: Over, policy: P) -> Result<(), Refused> {
    let heap = Heap::new(os, policy).ok_or_else(|| {
        Refused::Unavailable("the backing has no memory for the root of the address map".into())
    })?;
    // SAFETY: the caller's promise: nobody else touches it, and nothing is in it that would have to be dropped.
    unsafe { (*slot.0.get()).write(heap) };
    Ok(())
}

/// The most that a number can say, for a knob that says more.
fn number<T: TryFrom<u64>>(asked: u64, most: T) -> T {
    T::try_from(asked).unwrap_or(most)
}

/// Knobs of our own but the backing's; all others are those of the backing.
const OWN_KNOBS: [&str; 10] = [
    "arena",
    "pool",
    "align",
    "threshold",
    "keep",
    "order",
    "test",
    "source",
    "aligned",
    "numbers",
];

/// The settings of an arm with its knobs, whom it asks if nobody is put in between, and whether numbers are read at run time
/// come what may.
fn settings(
    id: &str,
    mut settings: Settings,
    knobs: &mut Knobs<'_>,
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
    if let Some(order) = by_word(knobs, "order", ORDERS)? {
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
    if let Some(test) = by_word(knobs, "test", TESTS)? {
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
    if let Some(source) = by_word(knobs, "source", SOURCES)? {
        os.source = source;
    }
    if let Some(aligned) = knobs.switch("aligned")? {
        os.aligned_arenas = aligned;
    }
    let read = by_word(knobs, "numbers", NUMBERS)?.unwrap_or(false);
    Ok((settings, os, read))
}

impl<B: Backing> Arena<B> {
    /// CPython's own text about the statistics, as `sys._debugmallocstats()` prints it.
    #[must_use]
    pub fn debug_text(&self) -> DebugText {
        // SAFETY: OPEN.
        unsafe { (self.opened.entries.text)() }
    }

    /// The heap's statistics, as CPython counts them. Takes time in proportion to the pools.
    #[must_use]
    pub fn statistics(&self) -> Stats {
        // SAFETY: OPEN.
        unsafe { (self.opened.entries.stats)() }
    }
}

impl<B: Backing> Arena<B> {
    /// Before a realloc: a backing is told what the block was last asked for, if the block is sure to be its own.
    #[inline]
    fn reallocating(&self, old: usize) {
        if let Some(backed) = &self.backing
            && old > self.opened.settings.threshold
        {
            backed.reallocating(old);
        }
    }

    /// realloc, told the old size.
    ///
    /// # Safety
    /// `p` is a live block of this heap of `old` requested bytes, or null with `old` 0.
    #[inline]
    pub(crate) unsafe fn realloc_sized(&self, p: *mut u8, old: usize, new: usize) -> *mut u8 {
        self.reallocating(old);
        // SAFETY: OPEN; the caller's promise.
        unsafe { (self.opened.entries.realloc_sized)(p, old, new) }
    }

    /// free, told the size.
    ///
    /// # Safety
    /// `p` is a live block of this heap of `size` requested bytes; nobody uses it afterwards.
    #[inline]
    pub(crate) unsafe fn give_back_sized(&self, p: *mut u8, size: usize) {
        // SAFETY: OPEN; the caller's promise.
        unsafe { (self.opened.entries.free_sized)(p, size) }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: OPEN, and this is its end.
        unsafe { (self.entries.close)() };
        CLAIMED.store(false, Ordering::Release);
    }
}

/// A generation: which arms, which settings, which entries.
type Generation = (
    &'static [&'static str],
    Settings,
    &'static str,
    &'static Entries,
);

/// The generation of an arm's name.
fn generation(id: &str) -> Result<&'static Generation, Refused> {
    let mut named = GENERATIONS.iter().filter(|(ids, ..)| ids.contains(&id));
    named
        .next()
        .ok_or_else(|| Refused::Unavailable(format!("there is no arm {id}")))
}

impl Opened {
    /// `read`: by numbers that are read at run time, even if they are a generation's.
    ///
    /// # Safety
    /// BACKED of what is behind `os`.
    unsafe fn open(settings: Settings, os: Over, read: bool) -> Result<Opened, Refused> {
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
        Ok(Opened {
            entries,
            settings,
            policy,
            _of_this_thread: PhantomData,
        })
    }
}

impl<B: Backing> Arm for Arena<B> {
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused> {
        let (_, own, ..) = generation(id)?;
        let ours = |(name, _): &(String, String)| name == KNOB || OWN_KNOBS.contains(&&**name);
        let (own_knobs, rest): (Vec<_>, Vec<_>) = knobs.iter().cloned().partition(ours);
        let mut knobs = Knobs::new(&own_knobs);
        let (settings, libc, read) = settings(id, *own, &mut knobs)?;
        let backing = Backed::open::<B>(id, &mut knobs, &rest)?;
        knobs.finish(id)?;
        // SAFETY: BACKED: the box is put into the value that is opened here, which closes the heap before it lets go of it.
        let behind = backing
            .as_deref()
            .map(|backed| unsafe { Behind::new(backed) });
        // SAFETY: as above.
        let opened = unsafe { Opened::open(settings, Over { libc, behind }, read)? };
        Ok(Arena { opened, backing })
    }
}

// SAFETY: blocks are those of `Heap`, whose functions ask for no more than the trait's do; OPEN: `self` is here, so this
// is the thread, and the heap is in its slot.
unsafe impl<B: Backing> contract::Heap for Arena<B> {
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
        unsafe { (self.opened.entries.malloc)(size) }
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: OPEN.
        unsafe { (self.opened.entries.calloc)(count, size) }
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, old: usize, new: usize) -> *mut u8 {
        self.reallocating(old);
        // SAFETY: OPEN; the caller's promise: a live block of this heap.
        unsafe { (self.opened.entries.realloc)(p, new) }
    }

    unsafe fn realloc_as_c(&self, p: *mut u8, old: usize, new: usize) -> Option<*mut u8> {
        self.reallocating(old);
        // SAFETY: OPEN; the caller's promise: a live block of this heap, or null.
        Some(unsafe { (self.opened.entries.realloc)(p, new) })
    }

    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: OPEN; the caller's promise: a live block of this heap.
        unsafe { (self.opened.entries.free)(p) }
    }

    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        // SAFETY: OPEN.
        unsafe { (self.opened.entries.aligned)(align, size) }
    }

    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        // SAFETY: OPEN; the caller's promise: a live block of this heap.
        Some(unsafe { (self.opened.entries.usable)(p) })
    }

    fn trim(&self) -> bool {
        false
    }

    /// Pools and arenas alone: what the backing serves is in the backing's books. Further figures: `arenas_total`,
    /// `arenas_reclaimed`, `arenas_highwater` and `arenas_current` since the heap was opened, `arena_bytes` now, and
    /// those of the backing.
    fn stats(&self) -> SelfStats {
        let stats = self.statistics();
        let mapped = stats.arenas.current * stats.arenas.size;
        let mut extra = vec![
            ("arenas_total", stats.arenas.total),
            ("arenas_reclaimed", stats.arenas.reclaimed),
            ("arenas_highwater", stats.arenas.highwater),
            ("arenas_current", stats.arenas.current),
            ("arena_bytes", mapped),
        ];
        if let Some(backed) = &self.backing {
            extra.extend(backed.heap().stats().extra);
        }
        SelfStats {
            allocated: Some(stats.bytes.allocated),
            mapped: Some(mapped),
            resident: None,
            extra,
        }
    }

    fn receipt(&self) -> Receipt {
        // SAFETY: OPEN.
        let os = unsafe { (self.opened.entries.os)() }.libc;
        let mut knobs: Vec<(String, String)> = knobs_of(&self.opened.settings)
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect();
        knobs.push(("source".into(), word(SOURCES, os.source).into()));
        knobs.push(("aligned".into(), u8::from(os.aligned_arenas).to_string()));
        let mut facts = vec![
            ("numbers".into(), self.opened.entries.numbers_are.into()),
            ("arena_placement".into(), self.placement(os).into()),
        ];
        if self.opened.settings.align < 16 {
            let not = "to 8 bytes, less than some C types of 16 bytes and more want";
            facts.push(("block alignment".into(), not.into()));
        }
        let mut receipt = Receipt {
            allocator: "arena".into(),
            version: concat!("heaplab ", env!("CARGO_PKG_VERSION")).into(),
            build: vec![
                ("source".into(), "this project's own".into()),
                ("policy".into(), self.opened.policy.into()),
            ],
            knobs,
            facts,
        };
        // SAFETY: returns a pointer to a static string that ends in 0.
        let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
        let c_library = format!("glibc malloc {}", version.to_string_lossy());
        tell::<B>(self.backing.as_deref(), c_library, &mut receipt);
        receipt
    }
}

impl<B: Backing> Arena<B> {
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
            } if self.opened.settings.pool <= OS_PAGE => "aligned to pools",
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
