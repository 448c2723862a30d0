//! The arm `system`: the C library's malloc, the baseline of every comparison.
#![warn(missing_docs)]

use contract::{Arm, Capabilities, Heap, Knobs, Receipt, Refused, SelfStats, opaque};
use core::ffi::CStr;

/// The C library's heap.
///
/// glibc can be told its settings but not asked for them, so the receipt says for each what was accepted; how many blocks
/// its thread cache keeps can be tried.
#[derive(Debug)]
pub struct System {
    mmap_threshold: String,
    trim_threshold: String,
    mxfast: String,
    tcache_count: String,
}

const DEFAULT: &str = "the library's default (glibc offers no read-back)";
/// Largest value of `tcache_count`: what every glibc with a thread cache takes.
const MOST_CACHED: usize = 127;
/// Bytes of a block that the thread cache takes back and the fast bins do not.
const TRIED: usize = 1000;

/// How many freed blocks of one size the thread cache keeps, tried: one that it keeps still counts as in use. They stay
/// there.
fn cached_blocks() -> usize {
    // SAFETY: no preconditions.
    let in_use = || unsafe { libc::mallinfo2() }.uordblks;
    // SAFETY: malloc has no preconditions.
    let blocks = [(); MOST_CACHED + 1].map(|()| opaque(unsafe { libc::malloc(TRIED) }));
    let mut kept = 0;
    for block in blocks {
        let before = in_use();
        // SAFETY: LIVE: the block was just made, and is not used after this; free takes null.
        unsafe { libc::free(block.cast()) };
        kept += usize::from(in_use() == before);
    }
    kept
}

/// Looks whether the process was started with the tunable that the harness sets for this knob.
fn look_at_cache(asked: Option<i64>) -> Result<String, Refused> {
    let Some(asked) = asked else {
        return Ok(DEFAULT.into());
    };
    let kept = cached_blocks();
    if usize::try_from(asked) == Ok(kept) {
        return Ok(format!("{kept} (tried when opened)"));
    }
    Err(Refused::Knob(format!(
        "tcache_count={asked}: the thread cache of this process keeps {kept} blocks of a size; the C library takes the \
         number from GLIBC_TUNABLES=glibc.malloc.tcache_count={asked} when a process starts"
    )))
}

/// Sets one threshold, if asked to, and says in words what is known of it.
fn set(name: &str, parameter: libc::c_int, asked: Option<u64>) -> Result<String, Refused> {
    let Some(bytes) = asked else {
        return Ok(DEFAULT.into());
    };
    let value = libc::c_int::try_from(bytes).map_err(|_| {
        Refused::Knob(format!(
            "{name}={bytes}: mallopt takes at most {}",
            libc::c_int::MAX
        ))
    })?;
    // SAFETY: mallopt has no memory preconditions; it takes two integers.
    if unsafe { libc::mallopt(parameter, value) } == 1 {
        Ok(format!(
            "{bytes} (accepted by mallopt, glibc offers no read-back)"
        ))
    } else {
        Err(Refused::Knob(format!(
            "{name}={bytes}: mallopt did not accept it"
        )))
    }
}

impl Arm for System {
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused> {
        let mut knobs = Knobs::new(knobs);
        let mmap = knobs.bytes("mmap_threshold")?;
        let trim = knobs.bytes("trim_threshold")?;
        let fast = knobs.bytes("mxfast")?;
        let cached = knobs.signed("tcache_count")?;
        knobs.finish(id)?;
        Ok(System {
            mmap_threshold: set("mmap_threshold", libc::M_MMAP_THRESHOLD, mmap)?,
            trim_threshold: set("trim_threshold", libc::M_TRIM_THRESHOLD, trim)?,
            mxfast: set("mxfast", libc::M_MXFAST, fast)?,
            tcache_count: look_at_cache(cached)?,
        })
    }
}

// SAFETY: the methods are the C library's own, whose contract is the trait's.
unsafe impl Heap for System {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: true,
        sized: false,
        usable: true,
        trim: true,
        contents: true,
    };

    #[inline]
    fn malloc(&self, size: usize) -> *mut u8 {
        // SAFETY: malloc has no preconditions.
        opaque(unsafe { libc::malloc(size) })
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: calloc has no preconditions; it answers null if the product overflows.
        opaque(unsafe { libc::calloc(count, size) })
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, _old: usize, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        opaque(unsafe { libc::realloc(p.cast(), new) })
    }

    unsafe fn realloc_as_c(&self, p: *mut u8, _old: usize, new: usize) -> Option<*mut u8> {
        // SAFETY: the caller's promise: `p` is a live block of this heap, or null; of no bytes, it is not used afterwards.
        Some(opaque(unsafe { libc::realloc(p.cast(), new) }))
    }

    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        unsafe { libc::free(p.cast()) }
    }

    #[inline]
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        // SAFETY: no preconditions; glibc takes any size with any power of two.
        opaque(unsafe { libc::aligned_alloc(align, size) })
    }

    #[inline]
    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        Some(unsafe { libc::malloc_usable_size(p.cast()) })
    }

    fn trim(&self) -> bool {
        // SAFETY: no preconditions. Its result says whether there was anything to give back, not whether it can.
        unsafe { libc::malloc_trim(0) };
        true
    }

    fn stats(&self) -> SelfStats {
        // SAFETY: no preconditions.
        let info = unsafe { libc::mallinfo2() };
        SelfStats {
            allocated: Some((info.uordblks + info.hblkhd) as u64),
            mapped: Some((info.arena + info.hblkhd) as u64),
            resident: None,
            extra: Vec::new(),
        }
    }

    fn receipt(&self) -> Receipt {
        // SAFETY: returns a pointer to a static string that ends in 0.
        let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
        Receipt {
            allocator: "glibc malloc".into(),
            version: version.to_string_lossy().into_owned(),
            build: vec![(
                "source".into(),
                "the C library of this machine, linked dynamically".into(),
            )],
            knobs: vec![
                ("mmap_threshold".into(), self.mmap_threshold.clone()),
                ("trim_threshold".into(), self.trim_threshold.clone()),
                ("mxfast".into(), self.mxfast.clone()),
                ("tcache_count".into(), self.tcache_count.clone()),
            ],
            facts: vec![(
                "GLIBC_TUNABLES".into(),
                std::env::var("GLIBC_TUNABLES").unwrap_or_else(|_| "not set".into()),
            )],
        }
    }
}
