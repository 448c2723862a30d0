//! One variant as a heap.

use crate::arenas;
use crate::variant::{ArenaHook, BackingHook, Cold};
use crate::{Backing, Books, Variant};
use contract::backing::{KNOB, tell};
use contract::{Arm, Backed, Capabilities, Heap, Knobs, Receipt, Refused, SelfStats, opaque};
use core::ffi::CStr;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::Ordering;

/// Larger requests are not served from pools. Read back when a heap is opened.
const THRESHOLD: usize = 512;

/// Blocks from pools are aligned to this. Read back when a heap is opened.
const ALIGNMENT: usize = 16;

/// Knobs of our own; all others are the backing's.
const OWN_KNOBS: [&str; 2] = [KNOB, "aligned"];

/// CPython's obmalloc in the variant `V`, backed by the C library or by `B`.
///
/// Invariant SOLE: the state of the variant's copy of the file belongs to the one heap that is open, and that heap
/// stays on its thread: `V::taken()` is held, and the type is neither `Send` nor `Sync`.
///
/// Invariant HOOKED: while the file's hook for its backing points at a `Backed`, that is the one in this heap's box,
/// which lives until the hook is put back.
///
/// When the heap is dropped, its arenas and its bookkeeping are given back, and the variant can be opened anew.
#[derive(Debug)]
pub struct Obmalloc<V: Variant, B: Backing> {
    backing: Option<Box<Backed<B::Heap>>>,
    aligned: bool,
    hooks: Hooks,
    variant: PhantomData<*const V>,
}

/// The file's hooks as they were.
#[derive(Debug, Clone, Copy)]
struct Hooks {
    backing: BackingHook,
    arenas: ArenaHook,
}

impl Hooks {
    /// # Safety
    /// SOLE.
    unsafe fn read(cold: &Cold) -> Hooks {
        let mut backing = MaybeUninit::uninit();
        let mut arenas = MaybeUninit::uninit();
        // SAFETY: both functions write the whole of what they are given.
        unsafe {
            (cold.backing)(Cold::RAW, backing.as_mut_ptr());
            (cold.arenas)(arenas.as_mut_ptr());
            Hooks {
                backing: backing.assume_init(),
                arenas: arenas.assume_init(),
            }
        }
    }

    /// # Safety
    /// SOLE, and HOOKED for what is set; nothing of the file's is live that came from the hooks before.
    unsafe fn set(mut self, cold: &Cold) {
        // SAFETY: both functions copy what they are given.
        unsafe {
            (cold.set_backing)(Cold::RAW, &mut self.backing);
            (cold.set_arenas)(&mut self.arenas);
        }
    }
}

impl<V: Variant, B: Backing> Obmalloc<V, B> {
    /// The file's books.
    #[must_use]
    pub fn books(&self) -> Books {
        let mut books = Books::default();
        // SAFETY: SOLE.
        unsafe { (V::cold().books)(&mut books) };
        books
    }

    /// CPython's own text about its books, as `sys._debugmallocstats()` prints it; `None` without memory for it.
    #[must_use]
    pub fn debug_text(&self) -> Option<String> {
        // SAFETY: SOLE. The text ends in 0 and is ours to free.
        unsafe {
            let text = (V::cold().text)();
            if text.is_null() {
                return None;
            }
            let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
            libc::free(text.cast());
            Some(owned)
        }
    }

    /// Whether the variant that is linked is the one that its name says.
    fn check(&self) -> Result<(), Refused> {
        let p = self.malloc(1);
        if p.is_null() {
            return Err(Refused::Unavailable(
                "no memory for a first arena; free some".into(),
            ));
        }
        // SAFETY: just made, and not used afterwards.
        unsafe { self.free(p) };
        let books = self.books();
        // SAFETY: SOLE; no block is live.
        unsafe { (V::cold().reset)(0) };
        let built = (books.arenas_current == 1, books.threshold, books.alignment);
        let named = (V::KEEPS_ONE, THRESHOLD, ALIGNMENT);
        if built == named {
            Ok(())
        } else {
            Err(Refused::Unavailable(format!(
                "{}: keeps one arena, threshold and alignment are {built:?}, not {named:?}; rebuild",
                V::ARM
            )))
        }
    }
}

impl<V: Variant, B: Backing> Arm for Obmalloc<V, B> {
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused> {
        let (own, rest): (Vec<_>, Vec<_>) = knobs
            .iter()
            .cloned()
            .partition(|(name, _)| OWN_KNOBS.contains(&name.as_str()));
        let mut own = Knobs::new(&own);
        if id != V::ARM {
            return Err(Refused::Unavailable(format!("{} is not {id}", V::ARM)));
        }
        let aligned = own.switch("aligned")?.unwrap_or(false);
        let backing = Backed::open::<B>(id, &mut own, &rest)?;
        own.finish(id)?;
        if V::taken().swap(true, Ordering::Acquire) {
            return Err(Refused::Unavailable(format!(
                "{id} is open in this process already, and its state is static: close that first"
            )));
        }
        let cold = V::cold();
        // SAFETY: SOLE from here on. Nothing is live: a heap that was dropped has left everything as at the start.
        let hooks = unsafe { Hooks::read(cold) };
        let heap = Obmalloc::<V, B> {
            backing,
            aligned,
            hooks,
            variant: PhantomData,
        };
        let mut wanted = hooks;
        if let Some(backed) = &heap.backing {
            let entries = Backed::<B::Heap>::ENTRIES;
            wanted.backing = BackingHook {
                ctx: ptr::from_ref::<Backed<B::Heap>>(backed).cast_mut().cast(),
                malloc: entries.malloc,
                calloc: entries.calloc,
                realloc: entries.realloc,
                free: entries.free,
            };
        }
        if aligned {
            wanted.arenas = arenas::ALIGNED;
        }
        // SAFETY: SOLE. HOOKED: the box is in `heap`, whose drop puts the hook back. Nothing is live.
        unsafe { wanted.set(cold) };
        heap.check()?;
        Ok(heap)
    }
}

impl<V: Variant, B: Backing> Drop for Obmalloc<V, B> {
    fn drop(&mut self) {
        let cold = V::cold();
        // SAFETY: SOLE. What is given back goes through the hooks it came from; then nothing is live.
        unsafe {
            (cold.reset)(1);
            self.hooks.set(cold);
        }
        V::taken().store(false, Ordering::Release);
    }
}

// SAFETY: the methods are the file's own, whose contract is the trait's; by SOLE nobody else enters it. Blocks that it
// does not serve come from the backing, which is a `Heap` or the C library.
unsafe impl<V: Variant, B: Backing> Heap for Obmalloc<V, B> {
    // CPython has no call that asks for a block's size, none that trims, and no sized free.
    const CAPABILITIES: Capabilities = Capabilities {
        threads: false,
        sized: false,
        usable: false,
        trim: false,
        contents: true,
    };

    #[inline]
    fn malloc(&self, size: usize) -> *mut u8 {
        // SAFETY: SOLE.
        unsafe { V::malloc(size) }
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: SOLE.
        unsafe { V::calloc(count, size) }
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, old: usize, new: usize) -> *mut u8 {
        // No pool has a block of so many bytes, so this one is the backing's.
        if let Some(backed) = &self.backing
            && old > THRESHOLD
        {
            backed.reallocating(old);
        }
        // SAFETY: SOLE; the caller's promise: `p` is a live block of this heap.
        unsafe { V::realloc(p, new) }
    }

    unsafe fn realloc_as_c(&self, p: *mut u8, old: usize, new: usize) -> Option<*mut u8> {
        // SAFETY: the caller's promise. The file takes null and no bytes; what it tells the backing before is for a block of more than 512.
        Some(unsafe { self.realloc(p, old, new) })
    }

    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: SOLE; the caller's promise: `p` is a live block of this heap.
        unsafe { V::free(p) }
    }

    /// CPython has no such call. Up to the alignment of pools its malloc serves; beyond, the backing does, and the
    /// block is freed and reallocated as any other of the backing's.
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        if align <= ALIGNMENT {
            return self.malloc(size);
        }
        let p = match &self.backing {
            Some(backed) => backed.aligned(align, size),
            // SAFETY: no preconditions; glibc takes any size with any power of two.
            None => opaque(unsafe { libc::aligned_alloc(align, size.max(1)) }),
        };
        if !p.is_null() {
            // SAFETY: SOLE; the block is one of the backing's.
            unsafe { (V::cold().adopt)() };
        }
        p
    }

    unsafe fn usable(&self, _p: *mut u8) -> Option<usize> {
        None
    }

    fn trim(&self) -> bool {
        false
    }

    /// Allocated and mapped are those of the arenas; what the backing serves is in the backing's books. Further
    /// figures: `arenas_total`, `arenas_reclaimed`, `arenas_highwater` and `arenas_current` since the heap was opened,
    /// `arena_bytes` now, and those of the backing.
    fn stats(&self) -> SelfStats {
        let books = self.books();
        let mut extra = vec![
            ("arenas_total", books.arenas_total as u64),
            ("arenas_reclaimed", books.arenas_reclaimed as u64),
            ("arenas_highwater", books.arenas_highwater as u64),
            ("arenas_current", books.arenas_current as u64),
            ("arena_bytes", books.arena_bytes() as u64),
        ];
        if let Some(backed) = &self.backing {
            extra.extend(backed.heap().stats().extra);
        }
        SelfStats {
            allocated: Some(books.allocated as u64),
            mapped: Some(books.arena_bytes() as u64),
            resident: None,
            extra,
        }
    }

    fn receipt(&self) -> Receipt {
        let books = self.books();
        let knobs = vec![("aligned".into(), u8::from(self.aligned).to_string())];
        let facts = vec![
            ("arena bytes".into(), books.arena_size.to_string()),
            ("pool bytes".into(), books.pool_size.to_string()),
            ("alignment".into(), books.alignment.to_string()),
            ("threshold".into(), books.threshold.to_string()),
            (
                "address test".into(),
                if books.radix_tree == 1 {
                    "radix tree"
                } else {
                    "pool header"
                }
                .into(),
            ),
            (
                "an empty last arena".into(),
                if V::KEEPS_ONE {
                    "is kept (tried when opened)"
                } else {
                    "is released (tried when opened)"
                }
                .into(),
            ),
            ("arena_placement".into(), self.placement(&books).into()),
        ];
        let mut receipt = Receipt {
            allocator: "CPython obmalloc".into(),
            version: "3.11.2".into(),
            build: vec![
                (
                    "source".into(),
                    concat!(
                        "CPython 3.11.2, Objects/obmalloc.c, sha256 ",
                        env!("HEAPLAB_OBMALLOC_SHA256")
                    )
                    .into(),
                ),
                ("changes".into(), V::CHANGES.into()),
                ("compiler".into(), env!("HEAPLAB_OBMALLOC").into()),
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

impl<V: Variant, B: Backing> Obmalloc<V, B> {
    /// Whether every arena has the same number of pools, as counts of arenas are exact only then.
    fn placement(&self, books: &Books) -> &'static str {
        /// What mmap aligns to at least.
        const OS_PAGE: usize = 4096;
        if self.aligned || books.pool_size <= OS_PAGE {
            "aligned to pools"
        } else {
            "as mmap gives them: an arena loses a pool or not, by chance"
        }
    }
}
