//! What is left when the file was missing at build time: the reason.

use crate::{Backing, Books, Variant};
use contract::{Arm, Capabilities, Heap, Receipt, Refused, SelfStats};
use core::convert::Infallible;
use core::marker::PhantomData;

/// A heap that nobody can open, and so nobody can call.
#[derive(Debug)]
pub struct Obmalloc<V: Variant, B: Backing> {
    never: Infallible,
    named: PhantomData<(*const V, *const B)>,
}

impl<V: Variant, B: Backing> Obmalloc<V, B> {
    /// The file's books.
    #[must_use]
    pub fn books(&self) -> Books {
        match self.never {}
    }

    /// CPython's own text about its books.
    #[must_use]
    pub fn debug_text(&self) -> Option<String> {
        match self.never {}
    }
}

impl<V: Variant, B: Backing> Arm for Obmalloc<V, B> {
    fn open(_id: &str, _knobs: &[(String, String)]) -> Result<Self, Refused> {
        Err(Refused::Unavailable(env!("HEAPLAB_OBMALLOC").into()))
    }
}

// SAFETY: there is no value of this type, so no method is ever called.
unsafe impl<V: Variant, B: Backing> Heap for Obmalloc<V, B> {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: false,
        sized: false,
        usable: false,
        trim: false,
        contents: true,
    };

    fn malloc(&self, _size: usize) -> *mut u8 {
        match self.never {}
    }
    fn calloc(&self, _count: usize, _size: usize) -> *mut u8 {
        match self.never {}
    }
    unsafe fn realloc(&self, _p: *mut u8, _old: usize, _new: usize) -> *mut u8 {
        match self.never {}
    }
    unsafe fn free(&self, _p: *mut u8) {
        match self.never {}
    }
    fn aligned(&self, _align: usize, _size: usize) -> *mut u8 {
        match self.never {}
    }
    unsafe fn usable(&self, _p: *mut u8) -> Option<usize> {
        match self.never {}
    }
    fn trim(&self) -> bool {
        match self.never {}
    }
    fn stats(&self) -> SelfStats {
        match self.never {}
    }
    fn receipt(&self) -> Receipt {
        match self.never {}
    }
}
