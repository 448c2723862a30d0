//! The arm `jemalloc`: jemalloc 5 through its C entry points, prefixed `_rjem_`.
#![warn(missing_docs)]

mod control;

use contract::{Arm, Capabilities, Heap, Knobs, Receipt, Refused, SelfStats};
use tikv_jemalloc_sys as je;

/// jemalloc's number for "all arenas" in `arena.<i>.*` (MALLCTL_ARENAS_ALL).
const ALL_ARENAS: &str = "4096";
/// jemalloc's name for whether its own threads run.
const BACKGROUND_THREAD: &str = "background_thread";

/// jemalloc. The state is the library's.
#[derive(Debug)]
pub struct Jemalloc(());

/// Sets a decay time for arenas to come and for those that there are, and reads each back. Milliseconds; 0 gives back
/// at once, -1 never. (There is no "all arenas" for decay times.)
fn set_decay(knob: &str, ms: i64) -> Result<(), Refused> {
    let refused = |why: String| Refused::Knob(format!("{knob}={ms}: {why}"));
    let value = isize::try_from(ms).map_err(|_| refused("out of range".into()))?;
    let set = |name: String| -> Result<(), Refused> {
        control::write::<isize>(&name, value).map_err(refused)?;
        let got = control::read::<isize>(&name).map_err(refused)?;
        if got == value {
            Ok(())
        } else {
            Err(refused(format!("{name} reads back as {got}")))
        }
    };
    set(format!("arenas.{knob}"))?;
    let arenas = control::read::<u32>("arenas.narenas").map_err(refused)?;
    for arena in 0..arenas {
        if control::read::<bool>(&format!("arena.{arena}.initialized")).map_err(refused)? {
            set(format!("arena.{arena}.{knob}"))?;
        }
    }
    Ok(())
}

/// Starts or ends jemalloc's own threads, which purge by the clock, and reads back which it is.
fn set_background_thread(on: bool) -> Result<(), Refused> {
    let refused = |why: String| Refused::Knob(format!("background_thread={}: {why}", u8::from(on)));
    control::write::<bool>(BACKGROUND_THREAD, on).map_err(refused)?;
    let got = control::read::<bool>(BACKGROUND_THREAD).map_err(refused)?;
    if got == on {
        Ok(())
    } else {
        Err(refused(format!("reads back as {got}")))
    }
}

impl Arm for Jemalloc {
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused> {
        let mut knobs = Knobs::new(knobs);
        let dirty = knobs.signed("dirty_decay_ms")?;
        let muzzy = knobs.signed("muzzy_decay_ms")?;
        let background = knobs.switch("background_thread")?;
        knobs.finish(id)?;
        if let Some(ms) = dirty {
            set_decay("dirty_decay_ms", ms)?;
        }
        if let Some(ms) = muzzy {
            set_decay("muzzy_decay_ms", ms)?;
        }
        if let Some(on) = background {
            set_background_thread(on)?;
        }
        Ok(Jemalloc(()))
    }
}

/// The flags of `sdallocx` for a block asked with `align`: MALLOCX_ALIGN, which is log2. 1 (a block of malloc) and
/// whatever the size class of `size` is aligned to anyway need none.
#[inline]
fn flags(size: usize, align: usize) -> core::ffi::c_int {
    if align <= 16 && align <= size {
        0
    } else {
        align.trailing_zeros() as core::ffi::c_int
    }
}

// SAFETY: the methods are jemalloc's own, whose contract is the trait's.
unsafe impl Heap for Jemalloc {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: true,
        sized: true,
        usable: true,
        trim: true,
        contents: true,
    };

    #[inline]
    fn malloc(&self, size: usize) -> *mut u8 {
        // SAFETY: malloc has no preconditions.
        unsafe { je::malloc(size).cast() }
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: calloc has no preconditions; it answers null if the product overflows.
        unsafe { je::calloc(count, size).cast() }
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, _old: usize, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        unsafe { je::realloc(p.cast(), new).cast() }
    }

    unsafe fn realloc_as_c(&self, p: *mut u8, _old: usize, new: usize) -> Option<*mut u8> {
        // SAFETY: the caller's promise: `p` is a live block of this heap, or null; of no bytes, it is not used afterwards.
        Some(unsafe { je::realloc(p.cast(), new).cast() })
    }

    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        unsafe { je::free(p.cast()) }
    }

    #[inline]
    unsafe fn free_sized(&self, p: *mut u8, size: usize, align: usize) {
        // SAFETY: the caller's promise: `p` is live and was asked with `size` and `align`. jemalloc's realloc always
        // leaves a block in the class of its new size, so the class follows from the two.
        unsafe { je::sdallocx(p.cast(), size, flags(size, align)) }
    }

    #[inline]
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        // SAFETY: no preconditions; jemalloc takes any size with any power of two.
        unsafe { je::aligned_alloc(align, size).cast() }
    }

    #[inline]
    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        Some(unsafe { je::malloc_usable_size(p.cast_const().cast()) })
    }

    fn trim(&self) -> bool {
        control::act(&format!("arena.{ALL_ARENAS}.purge")).is_ok()
    }

    fn stats(&self) -> SelfStats {
        // jemalloc's figures are a snapshot that is taken anew when the epoch is written.
        if control::write::<u64>("epoch", 1).is_err() {
            return SelfStats::default();
        }
        let figure = |name: &str| control::read::<usize>(name).ok().map(|bytes| bytes as u64);
        SelfStats {
            allocated: figure("stats.allocated"),
            mapped: figure("stats.mapped"),
            resident: figure("stats.resident"),
            extra: Vec::new(),
        }
    }

    fn receipt(&self) -> Receipt {
        let decay = |knob: &str| {
            let now = control::told::<isize>(&format!("arenas.{knob}"));
            (knob.to_owned(), now)
        };
        Receipt {
            allocator: "jemalloc".into(),
            version: control::told::<control::Text>("version"),
            build: vec![
                (
                    "source".into(),
                    concat!("tikv-jemalloc-sys ", env!("HEAPLAB_SYS_VERSION")).into(),
                ),
                ("config.debug".into(), control::told::<bool>("config.debug")),
                ("config.fill".into(), control::told::<bool>("config.fill")),
                ("config.prof".into(), control::told::<bool>("config.prof")),
                ("config.stats".into(), control::told::<bool>("config.stats")),
                (
                    "config.opt_safety_checks".into(),
                    control::told::<bool>("config.opt_safety_checks"),
                ),
                (
                    "config.malloc_conf".into(),
                    control::told::<control::Text>("config.malloc_conf"),
                ),
            ],
            knobs: vec![
                decay("dirty_decay_ms"),
                decay("muzzy_decay_ms"),
                (
                    BACKGROUND_THREAD.into(),
                    control::told::<bool>(BACKGROUND_THREAD),
                ),
            ],
            facts: vec![
                ("opt.narenas".into(), control::told::<u32>("opt.narenas")),
                ("opt.thp".into(), control::told::<control::Text>("opt.thp")),
                (
                    "opt.metadata_thp".into(),
                    control::told::<control::Text>("opt.metadata_thp"),
                ),
                (
                    "opt.background_thread".into(),
                    control::told::<bool>("opt.background_thread"),
                ),
                ("opt.tcache".into(), control::told::<bool>("opt.tcache")),
                ("opt.retain".into(), control::told::<bool>("opt.retain")),
                ("arenas.page".into(), control::told::<usize>("arenas.page")),
            ],
        }
    }
}
