//! gperftools as a heap.

use crate::ffi;
use contract::{Arm, Capabilities, Heap, Knobs, Receipt, Refused, SelfStats};
use core::ffi::CStr;

const AGGRESSIVE_DECOMMIT: &CStr = c"tcmalloc.aggressive_memory_decommit";

/// gperftools' tcmalloc. The state is the library's.
#[derive(Debug)]
pub struct Gperftools(());

/// A figure by its name in the library's list of properties.
fn property(name: &CStr) -> Option<u64> {
    let mut value = 0usize;
    // SAFETY: the name ends in 0; `value` is written if the name is known.
    let known = unsafe { ffi::get_numeric_property(name.as_ptr(), &mut value) };
    (known == 1).then_some(value as u64)
}

/// The release rate as read back: pages given back per page freed, in hundreds; 0 is never.
#[cfg(release_rate)]
fn release_rate() -> Option<f64> {
    // SAFETY: `instance` returns the library's one object, never null, which the method takes.
    Some(unsafe { ffi::get_release_rate(ffi::instance()) })
}
#[cfg(not(release_rate))]
fn release_rate() -> Option<f64> {
    None
}

#[cfg(release_rate)]
fn set_release_rate(rate: f64) {
    // SAFETY: as in `release_rate`.
    unsafe { ffi::set_release_rate(ffi::instance(), rate) }
}
#[cfg(not(release_rate))]
fn set_release_rate(_rate: f64) {}

impl Arm for Gperftools {
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused> {
        let mut knobs = Knobs::new(knobs);
        let rate = knobs.number("release_rate")?;
        let aggressive = knobs.switch("aggressive_decommit")?;
        knobs.finish(id)?;
        // The library replaces its first, do-nothing extension object when it is first used.
        // SAFETY: no preconditions; the block is the heap's own.
        unsafe { ffi::free(ffi::malloc(1)) };
        if let Some(rate) = rate {
            set_release_rate(rate);
            let got = release_rate();
            if got != Some(rate) {
                return Err(Refused::Knob(match got {
                    Some(got) => format!("release_rate={rate}: reads back as {got}"),
                    None => format!("release_rate={rate}: this archive has no entry point for it"),
                }));
            }
        }
        if let Some(on) = aggressive {
            // SAFETY: the name ends in 0.
            unsafe { ffi::set_numeric_property(AGGRESSIVE_DECOMMIT.as_ptr(), on.into()) };
            let got = property(AGGRESSIVE_DECOMMIT);
            if got != Some(on.into()) {
                return Err(Refused::Knob(format!(
                    "aggressive_decommit={}: reads back as {got:?}",
                    u8::from(on)
                )));
            }
        }
        Ok(Gperftools(()))
    }
}

// SAFETY: the methods are gperftools' own, whose contract is the trait's.
unsafe impl Heap for Gperftools {
    // `tc_free_sized` exists, but in 2.10 it is unsound after realloc: growth asks for a quarter more than was wanted,
    // so the block is in another class than its size says. (2.18 removed that padding to make sized free sound, which
    // brought the slowdown of 2007 back.)
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
        unsafe { ffi::malloc(size).cast() }
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: calloc has no preconditions; it answers null if the product overflows.
        unsafe { ffi::calloc(count, size).cast() }
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, _old: usize, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        unsafe { ffi::realloc(p.cast(), new).cast() }
    }

    unsafe fn realloc_as_c(&self, p: *mut u8, _old: usize, new: usize) -> Option<*mut u8> {
        // SAFETY: the caller's promise: `p` is a live block of this heap, or null; of no bytes, it is not used afterwards.
        Some(unsafe { ffi::realloc(p.cast(), new).cast() })
    }

    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        unsafe { ffi::free(p.cast()) }
    }

    #[inline]
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        // SAFETY: no preconditions; any size with any power of two.
        unsafe { ffi::memalign(align, size).cast() }
    }

    #[inline]
    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        // SAFETY: the caller's promise: `p` is a live block of this heap.
        Some(unsafe { ffi::malloc_size(p.cast()) })
    }

    fn trim(&self) -> bool {
        // SAFETY: no preconditions.
        unsafe { ffi::release_free_memory() };
        true
    }

    fn stats(&self) -> SelfStats {
        let mapped = property(c"generic.heap_size");
        let unmapped = property(c"tcmalloc.pageheap_unmapped_bytes");
        SelfStats {
            allocated: property(c"generic.current_allocated_bytes"),
            mapped,
            resident: mapped
                .zip(unmapped)
                .map(|(mapped, unmapped)| mapped.saturating_sub(unmapped)),
            extra: Vec::new(),
        }
    }

    fn receipt(&self) -> Receipt {
        // SAFETY: null is allowed for all three; the returned string is static and ends in 0.
        let version = unsafe {
            CStr::from_ptr(ffi::version(
                core::ptr::null_mut(),
                core::ptr::null_mut(),
                core::ptr::null_mut(),
            ))
        };
        let told =
            |value: Option<String>| value.unwrap_or_else(|| "this archive cannot be asked".into());
        Receipt {
            allocator: "gperftools tcmalloc".into(),
            version: version.to_string_lossy().into_owned(),
            build: vec![("source".into(), env!("HEAPLAB_GPERFTOOLS").into())],
            knobs: vec![
                (
                    "release_rate".into(),
                    told(release_rate().map(|rate| rate.to_string())),
                ),
                (
                    "aggressive_decommit".into(),
                    told(property(AGGRESSIVE_DECOMMIT).map(|on| on.to_string())),
                ),
            ],
            facts: vec![(
                "max_total_thread_cache_bytes".into(),
                told(
                    property(c"tcmalloc.max_total_thread_cache_bytes")
                        .map(|bytes| bytes.to_string()),
                ),
            )],
        }
    }
}
