//! The arm `system`: the C library's malloc, the baseline of every comparison.
#![warn(missing_docs)]

use contract::{Arm, Capabilities, Heap, Knobs, Receipt, Refused, SelfStats, opaque};
use core::ffi::CStr;

/// The C library's heap.
///
/// glibc can be told its thresholds but not asked for them, so the receipt says for each what was accepted.
#[derive(Debug)]
pub struct System {
    mmap_threshold: String,
    trim_threshold: String,
}

/// Sets one threshold, if asked to, and says in words what is known of it.
fn set(name: &str, parameter: libc::c_int, asked: Option<u64>) -> Result<String, Refused> {
    let Some(bytes) = asked else {
        return Ok("the library's default (glibc offers no read-back)".into());
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
        knobs.finish(id)?;
        Ok(System {
            mmap_threshold: set("mmap_threshold", libc::M_MMAP_THRESHOLD, mmap)?,
            trim_threshold: set("trim_threshold", libc::M_TRIM_THRESHOLD, trim)?,
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
            ],
            facts: vec![(
                "GLIBC_TUNABLES".into(),
                std::env::var("GLIBC_TUNABLES").unwrap_or_else(|_| "not set".into()),
            )],
        }
    }
}
