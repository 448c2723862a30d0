//! The arm `mimalloc`: mimalloc v3 through its C entry points.
#![warn(missing_docs)]

mod stats;

use contract::{Arm, Capabilities, Heap, Knobs, Receipt, Refused, SelfStats};
use core::ffi::{c_int, c_long};
use libmimalloc_sys as mi;

/// Numbers in mimalloc v3's `mi_option_e` that the -sys crate does not name.
mod option {
    use core::ffi::c_int;
    pub const ARENA_EAGER_COMMIT: c_int = 4;
    pub const PURGE_DECOMMITS: c_int = 5;
    pub const PURGE_DELAY: c_int = 15;
    pub const ARENA_RESERVE_KIB: c_int = 23;
    pub const ALLOW_THP: c_int = 43;
}

/// mimalloc v3. The state is the library's.
#[derive(Debug)]
pub struct Mimalloc(());

fn get(option: c_int) -> c_long {
    // SAFETY: an option's number; the library checks its range.
    unsafe { mi::mi_option_get(option) }
}

impl Arm for Mimalloc {
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused> {
        let mut knobs = Knobs::new(knobs);
        let purge_delay = knobs.signed("purge_delay")?;
        knobs.finish(id)?;
        if let Some(ms) = purge_delay {
            let value = c_long::from(
                i32::try_from(ms)
                    .map_err(|_| Refused::Knob(format!("purge_delay={ms}: out of range")))?,
            );
            // SAFETY: an option's number and a value; the library checks both.
            unsafe { mi::mi_option_set(option::PURGE_DELAY, value) };
            let got = get(option::PURGE_DELAY);
            if got != value {
                return Err(Refused::Knob(format!(
                    "purge_delay={ms}: reads back as {got}"
                )));
            }
        }
        Ok(Mimalloc(()))
    }
}

// SAFETY: the methods are mimalloc's own, whose contract is the trait's.
unsafe impl Heap for Mimalloc {
    // `mi_free_size` exists, but a release build forgets the size: it is `mi_free` and nothing else.
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
        unsafe { mi::mi_malloc(size).cast() }
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: calloc has no preconditions; it answers null if the product overflows.
        unsafe { mi::mi_calloc(count, size).cast() }
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, _old: usize, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        unsafe { mi::mi_realloc(p.cast(), new).cast() }
    }

    unsafe fn realloc_as_c(&self, p: *mut u8, _old: usize, new: usize) -> Option<*mut u8> {
        // SAFETY: the caller's promise: `p` is a live block of this heap, or null; of no bytes, it is not used afterwards.
        Some(unsafe { mi::mi_realloc(p.cast(), new).cast() })
    }

    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        unsafe { mi::mi_free(p.cast()) }
    }

    #[inline]
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        // SAFETY: no preconditions; mimalloc takes any size with any power of two.
        unsafe { mi::mi_malloc_aligned(size, align).cast() }
    }

    #[inline]
    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        Some(unsafe { mi::mi_usable_size(p.cast_const().cast()) })
    }

    fn trim(&self) -> bool {
        // SAFETY: no preconditions.
        unsafe { mi::mi_collect(true) };
        true
    }

    fn stats(&self) -> SelfStats {
        stats::read()
    }

    fn receipt(&self) -> Receipt {
        // SAFETY: no preconditions. Major, then two digits minor, then two digits patch, e.g. 30302.
        let version = unsafe { mi::mi_version() };
        Receipt {
            allocator: "mimalloc".into(),
            version: format!(
                "{}.{}.{}",
                version / 10_000,
                version / 100 % 100,
                version % 100
            ),
            build: vec![(
                "source".into(),
                concat!("libmimalloc-sys ", env!("HEAPLAB_SYS_VERSION")).into(),
            )],
            knobs: vec![("purge_delay".into(), get(option::PURGE_DELAY).to_string())],
            facts: vec![
                (
                    "arena_eager_commit".into(),
                    get(option::ARENA_EAGER_COMMIT).to_string(),
                ),
                (
                    "arena_reserve_kib".into(),
                    get(option::ARENA_RESERVE_KIB).to_string(),
                ),
                (
                    "purge_decommits".into(),
                    get(option::PURGE_DECOMMITS).to_string(),
                ),
                ("allow_thp".into(), get(option::ALLOW_THP).to_string()),
            ],
        }
    }
}
