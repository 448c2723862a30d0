//! The arms `name=path.so`: a library of the user's, which the loader has put in front of the C library.
//!
//! This crate links no allocator. It calls `malloc` and its like by their names; who answers is the loader's doing, by
//! LD_PRELOAD. A library that cannot be loaded is only a warning to the loader, and the C library would answer
//! unnoticed: so before anything else each of the four names is looked up in the running process, and must lie in the
//! file that LD_PRELOAD names.
#![warn(missing_docs)]

mod loaded;

use contract::{Arm, Capabilities, Heap, Knobs, Receipt, Refused, SelfStats, opaque};
use core::ptr::null_mut;
use loaded::Loaded;

/// Who makes aligned blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AlignedBy {
    PosixMemalign,
    AlignedAlloc,
    /// The library has neither; the C library's would give blocks that are not the library's.
    Nobody,
}

/// The heap that `malloc` and its like belong to in this process.
#[derive(Debug)]
pub struct Preload {
    library: Loaded,
    aligned: AlignedBy,
    usable: bool,
}

impl Arm for Preload {
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused> {
        Knobs::new(knobs).finish(id)?;
        let library = Loaded::preloaded().map_err(Refused::Unavailable)?;
        for name in [c"malloc", c"calloc", c"realloc", c"free"] {
            library.defines(name).map_err(Refused::Unavailable)?;
        }
        let has = |name| library.defines(name).is_ok();
        let aligned = if has(c"posix_memalign") {
            AlignedBy::PosixMemalign
        } else if has(c"aligned_alloc") {
            AlignedBy::AlignedAlloc
        } else {
            AlignedBy::Nobody
        };
        let usable = has(c"malloc_usable_size");
        Ok(Preload {
            library,
            aligned,
            usable,
        })
    }
}

// SAFETY: the methods are those of the process's malloc, whose contract is the trait's; `open` has made sure that all
// of them are one library's. (That it keeps the contract is asked by the behaviour suite, in a process of its own,
// before it is measured.)
unsafe impl Heap for Preload {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: true,
        sized: false,
        usable: true,
        trim: false,
        contents: true,
    };

    #[inline]
    fn malloc(&self, size: usize) -> *mut u8 {
        // SAFETY: malloc has no preconditions.
        opaque(unsafe { libc::malloc(size) })
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: calloc has no preconditions.
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

    /// Null if the library has no call for it.
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        match self.aligned {
            AlignedBy::PosixMemalign => {
                let mut p = null_mut();
                // It takes no alignment below that of a pointer, and returns its error.
                let align = align.max(size_of::<usize>());
                // SAFETY: `p` is a place for the answer.
                let code = unsafe { libc::posix_memalign(&mut p, align, size) };
                if code == 0 {
                    return opaque(p);
                }
                // SAFETY: the thread's own errno.
                unsafe { *libc::__errno_location() = code };
                null_mut()
            }
            AlignedBy::AlignedAlloc => {
                // By C11 the size has to be a multiple of the alignment, and some insist on it.
                let Some(size) = size.checked_next_multiple_of(align) else {
                    return null_mut();
                };
                // SAFETY: no preconditions.
                opaque(unsafe { libc::aligned_alloc(align, size) })
            }
            AlignedBy::Nobody => null_mut(),
        }
    }

    /// `None` if the library has no `malloc_usable_size`: a program that asked would be answered by the C library.
    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        if !self.usable {
            return None;
        }
        // SAFETY: the caller's promise: `p` is a live block of this heap, and the function is the same library's.
        Some(unsafe { libc::malloc_usable_size(p.cast()) })
    }

    fn trim(&self) -> bool {
        false
    }

    fn stats(&self) -> SelfStats {
        SelfStats::default()
    }

    fn receipt(&self) -> Receipt {
        let hash = format!("xxh3 {:016x}", self.library.hash);
        Receipt {
            allocator: self.library.name.clone(),
            version: hash,
            build: vec![(
                "source".into(),
                "a library of the user's, by LD_PRELOAD; its version is the hash of its file"
                    .into(),
            )],
            knobs: Vec::new(),
            facts: vec![(
                "malloc, calloc, realloc, free".into(),
                format!("in {}, as looked up in the process", self.library.name),
            )],
        }
    }
}
