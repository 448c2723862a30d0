//! The arm `tcmalloc-google`: Google's TCMalloc through its C entry points.
//!
//! Two things must be right for it to be what Google runs, and both are silent when wrong: glibc must leave rseq
//! alone (`GLIBC_TUNABLES=glibc.pthread.rseq=0` in the environment before the process starts), and the per-CPU caches
//! must be switched on by hand, since the object that does so is dropped at link time. The receipt says how it came
//! out, as read back.
#![warn(missing_docs)]

// Links the library; its entry points are declared in `ffi`.
use libtcmalloc_sys as _;

mod ffi;

use contract::{Arm, Capabilities, Heap, Knobs, Receipt, Refused, SelfStats};

/// Google's TCMalloc. The state is the library's.
#[derive(Debug)]
pub struct TcmallocGoogle(());

fn sampling() -> i64 {
    // SAFETY: no preconditions.
    unsafe { ffi::MallocExtension_Internal_GetProfileSamplingInterval() }
}

fn per_cpu_caches_active() -> bool {
    // SAFETY: no preconditions.
    unsafe { ffi::MallocExtension_Internal_GetPerCpuCachesActive() }
}

impl Arm for TcmallocGoogle {
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused> {
        let mut knobs = Knobs::new(knobs);
        let interval = knobs.bytes("sampling")?;
        knobs.finish(id)?;
        if !per_cpu_caches_active() {
            // SAFETY: no preconditions; it initialises the library if nobody has yet.
            unsafe { ffi::TCMalloc_Internal_ForceCpuCacheActivation() };
        }
        if let Some(bytes) = interval {
            let value = i64::try_from(bytes)
                .map_err(|_| Refused::Knob(format!("sampling={bytes}: out of range")))?;
            // SAFETY: takes a number.
            unsafe { ffi::TCMalloc_Internal_SetProfileSamplingInterval(value) };
            let got = sampling();
            if got != value {
                return Err(Refused::Knob(format!(
                    "sampling={bytes}: reads back as {got}"
                )));
            }
        }
        Ok(TcmallocGoogle(()))
    }
}

/// A figure by its name in the library's list of properties.
fn property(name: &str) -> Option<u64> {
    let mut value = 0usize;
    // SAFETY: the name is given with its length; `value` is written if the name is known.
    let known = unsafe {
        ffi::MallocExtension_Internal_GetNumericProperty(
            name.as_ptr().cast(),
            name.len(),
            &mut value,
        )
    };
    known.then_some(value as u64)
}

// SAFETY: the methods are TCMalloc's own, whose contract is the trait's.
unsafe impl Heap for TcmallocGoogle {
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
        unsafe { ffi::TCMallocInternalMalloc(size).cast() }
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: calloc has no preconditions; it answers null if the product overflows.
        unsafe { ffi::TCMallocInternalCalloc(count, size).cast() }
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, _old: usize, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        unsafe { ffi::TCMallocInternalRealloc(p.cast(), new).cast() }
    }

    unsafe fn realloc_as_c(&self, p: *mut u8, _old: usize, new: usize) -> Option<*mut u8> {
        // SAFETY: the caller's promise: `p` is a live block of this heap, or null; of no bytes, it is not used afterwards.
        Some(unsafe { ffi::TCMallocInternalRealloc(p.cast(), new).cast() })
    }

    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        unsafe { ffi::TCMallocInternalFree(p.cast()) }
    }

    #[inline]
    unsafe fn free_sized(&self, p: *mut u8, size: usize, align: usize) {
        // SAFETY: the caller's promise: `p` is live and was asked with `size` and `align`. This version's realloc
        // leaves a block in place only if its class does not change, so the class follows from the two.
        unsafe {
            if align <= 1 {
                ffi::TCMallocInternalFreeSized(p.cast(), size)
            } else {
                ffi::TCMallocInternalFreeAlignedSized(p.cast(), align, size)
            }
        }
    }

    #[inline]
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        // SAFETY: no preconditions; any size with any power of two.
        unsafe { ffi::TCMallocInternalAlignedAlloc(align, size).cast() }
    }

    #[inline]
    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        Some(unsafe { ffi::TCMallocInternalMallocSize(p.cast()) })
    }

    fn trim(&self) -> bool {
        // SAFETY: no preconditions. Its result is how much was given back.
        unsafe { ffi::MallocExtension_Internal_ReleaseMemoryToSystem(usize::MAX) };
        true
    }

    fn stats(&self) -> SelfStats {
        SelfStats {
            allocated: property("generic.current_allocated_bytes"),
            mapped: property("generic.heap_size"),
            resident: property("generic.physical_memory_used"),
            extra: Vec::new(),
        }
    }

    fn receipt(&self) -> Receipt {
        // SAFETY: no preconditions.
        let (guarded, cache) = unsafe {
            (
                ffi::MallocExtension_Internal_GetGuardedSamplingInterval(),
                ffi::MallocExtension_Internal_GetMaxPerCpuCacheSize(),
            )
        };
        Receipt {
            allocator: "TCMalloc (google)".into(),
            version: concat!(
                "libtcmalloc-sys ",
                env!("HEAPLAB_SYS_VERSION"),
                " (",
                env!("HEAPLAB_TREE"),
                ")"
            )
            .into(),
            build: vec![(
                "page size".into(),
                "8 KiB (the crate's default feature)".into(),
            )],
            knobs: vec![("sampling".into(), sampling().to_string())],
            facts: vec![
                (
                    "per_cpu_caches".into(),
                    if per_cpu_caches_active() {
                        "active"
                    } else {
                        "inactive"
                    }
                    .into(),
                ),
                (
                    "GLIBC_TUNABLES".into(),
                    std::env::var("GLIBC_TUNABLES").unwrap_or_else(|_| "not set".into()),
                ),
                ("guarded_sampling_interval".into(), guarded.to_string()),
                ("max_per_cpu_cache_size".into(), cache.to_string()),
            ],
        }
    }
}
