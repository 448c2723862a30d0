//! The test child that counts every malloc of its process: the proof that the child itself makes no call into the
//! heap under test inside the measured region.
//!
//! It defines the C library's malloc family, so that whoever calls it in this process (the workload through its driver,
//! the Rust runtime, the C library itself) passes here. Calls made while the measured region runs are counted and
//! must equal the driver's own count. That nothing escapes is proved by `audit-strdup`: there the first realloc of the
//! region makes the C library call malloc by itself, in strdup.

use contract::{Arm, Capabilities, Heap, Receipt, Refused, SelfStats};
use heaplab::child::session;
use libc::{c_void, size_t};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

static IN_REGION: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn __libc_malloc(size: size_t) -> *mut c_void;
    fn __libc_calloc(count: size_t, size: size_t) -> *mut c_void;
    fn __libc_realloc(p: *mut c_void, size: size_t) -> *mut c_void;
    fn __libc_memalign(align: size_t, size: size_t) -> *mut c_void;
    fn __libc_free(p: *mut c_void);
}

fn count() {
    if session::measuring() {
        IN_REGION.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: the five functions below keep the contract of the functions whose names they take, because they hand every
// call through to the C library's own implementation.

#[unsafe(no_mangle)]
unsafe extern "C" fn malloc(size: size_t) -> *mut c_void {
    count();
    // SAFETY: malloc takes any size.
    unsafe { __libc_malloc(size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn calloc(many: size_t, size: size_t) -> *mut c_void {
    count();
    // SAFETY: calloc takes any product.
    unsafe { __libc_calloc(many, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realloc(p: *mut c_void, size: size_t) -> *mut c_void {
    count();
    // SAFETY: the caller of realloc promises what the implementation asks.
    unsafe { __libc_realloc(p, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memalign(align: size_t, size: size_t) -> *mut c_void {
    count();
    // SAFETY: a bad alignment gives null.
    unsafe { __libc_memalign(align, size) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn free(p: *mut c_void) {
    count();
    // SAFETY: the caller of free promises what the implementation asks.
    unsafe { __libc_free(p) }
}

struct Audit {
    /// The C library is still to call malloc by itself.
    strdup: Cell<bool>,
}

impl Audit {
    /// One call of malloc from inside the C library, and one of free, if they are still to be made.
    fn call_unseen_by_the_driver(&self) {
        if self.strdup.take() {
            // SAFETY: strdup reads a string that ends in NUL and returns null or a block of malloc's.
            unsafe { free(libc::strdup(c"audited".as_ptr()).cast()) };
        }
    }
}

// SAFETY: blocks are the C library's own, handed through unchanged.
unsafe impl Heap for Audit {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: false,
        sized: false,
        usable: false,
        trim: false,
        contents: true,
    };

    fn malloc(&self, size: usize) -> *mut u8 {
        // SAFETY: malloc takes any size.
        unsafe { malloc(size).cast() }
    }

    fn calloc(&self, many: usize, size: usize) -> *mut u8 {
        // SAFETY: calloc takes any product.
        unsafe { calloc(many, size).cast() }
    }

    unsafe fn realloc(&self, p: *mut u8, _old: usize, new: usize) -> *mut u8 {
        self.call_unseen_by_the_driver();
        // SAFETY: `p` is a live block, by the caller's promise.
        unsafe { realloc(p.cast(), new).cast() }
    }

    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: `p` is a live block, by the caller's promise.
        unsafe { free(p.cast()) }
    }

    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        // SAFETY: a bad alignment gives null.
        unsafe { memalign(align, size).cast() }
    }

    unsafe fn usable(&self, _p: *mut u8) -> Option<usize> {
        None
    }

    fn trim(&self) -> bool {
        false
    }

    fn stats(&self) -> SelfStats {
        SelfStats {
            extra: vec![("audited_calls", IN_REGION.load(Ordering::Relaxed))],
            ..SelfStats::default()
        }
    }

    fn receipt(&self) -> Receipt {
        Receipt {
            allocator: "the C library's malloc, audited".to_owned(),
            version: "0".to_owned(),
            ..Receipt::default()
        }
    }
}

impl Arm for Audit {
    fn open(id: &str, _knobs: &[(String, String)]) -> Result<Self, Refused> {
        Ok(Audit {
            strdup: Cell::new(id == "audit-strdup"),
        })
    }
}

heaplab::child!("audit" => Audit, "audit-strdup" => Audit);
