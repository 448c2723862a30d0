//! What is left when the archive was missing at build time: the reason.

use contract::{Arm, Capabilities, Heap, Receipt, Refused, SelfStats};

/// A heap that nobody can open, and so nobody can call.
#[derive(Debug)]
pub enum Gperftools {}

impl Arm for Gperftools {
    fn open(_id: &str, _knobs: &[(String, String)]) -> Result<Self, Refused> {
        Err(Refused::Unavailable(env!("HEAPLAB_GPERFTOOLS").into()))
    }
}

// SAFETY: there is no value of this type, so no method is ever called.
unsafe impl Heap for Gperftools {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: true,
        sized: false,
        usable: true,
        trim: true,
        contents: true,
    };

    fn malloc(&self, _size: usize) -> *mut u8 {
        match *self {}
    }
    fn calloc(&self, _count: usize, _size: usize) -> *mut u8 {
        match *self {}
    }
    unsafe fn realloc(&self, _p: *mut u8, _old: usize, _new: usize) -> *mut u8 {
        match *self {}
    }
    unsafe fn free(&self, _p: *mut u8) {
        match *self {}
    }
    fn aligned(&self, _align: usize, _size: usize) -> *mut u8 {
        match *self {}
    }
    unsafe fn usable(&self, _p: *mut u8) -> Option<usize> {
        match *self {}
    }
    fn trim(&self) -> bool {
        match *self {}
    }
    fn stats(&self) -> SelfStats {
        match *self {}
    }
    fn receipt(&self) -> Receipt {
        match *self {}
    }
}
