//! The arms `arena+sized`, `arena-3.10+sized` and so on: the same heaps, whose blocks are given back with their size, as
//! Rust's `GlobalAlloc` and C23's `free_sized` do. No address is tested then. realloc is told the old size too, so that
//! the heap knows exactly of blocks that a size would mistake; see [`Heap::strays`](crate::heap::Heap::strays).

use crate::arm::Arena;
use contract::{Arm, Backing, Capabilities, Heap, Receipt, Refused, SelfStats};
use std::format;
use std::string::String;

/// What an arm's name has at its end.
const SIZED: &str = "+sized";

/// The arm.
#[derive(Debug)]
pub struct SizedArena<B: Backing>(Arena<B>);

impl<B: Backing> Arm for SizedArena<B> {
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused> {
        let Some(plain) = id.strip_suffix(SIZED) else {
            return Err(Refused::Unavailable(format!("{id} is not told sizes")));
        };
        Arena::open(plain, knobs).map(SizedArena)
    }
}

// SAFETY: as `Arena`, whose functions these are, or its entries that are told sizes, under the contract that is theirs.
unsafe impl<B: Backing> Heap for SizedArena<B> {
    const CAPABILITIES: Capabilities = Capabilities {
        sized: true,
        ..Arena::<B>::CAPABILITIES
    };
    const SIZED_FREE: bool = true;

    #[inline]
    fn malloc(&self, size: usize) -> *mut u8 {
        self.0.malloc(size)
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        self.0.calloc(count, size)
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, old: usize, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { self.0.realloc_sized(p, old, new) }
    }

    unsafe fn realloc_as_c(&self, p: *mut u8, old: usize, new: usize) -> Option<*mut u8> {
        // SAFETY: the caller's promise; null and no bytes are taken.
        Some(unsafe { self.0.realloc_sized(p, old, new) })
    }

    /// For those who do not know the size, and with the address test.
    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { self.0.free(p) }
    }

    #[inline]
    unsafe fn free_sized(&self, p: *mut u8, size: usize, _align: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.0.give_back_sized(p, size) }
    }

    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        self.0.aligned(align, size)
    }

    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        // SAFETY: the caller's promise.
        unsafe { self.0.usable(p) }
    }

    fn trim(&self) -> bool {
        self.0.trim()
    }

    fn stats(&self) -> SelfStats {
        self.0.stats()
    }

    fn receipt(&self) -> Receipt {
        let mut receipt = self.0.receipt();
        receipt.build.push((
            "entry points".into(),
            "free and realloc are told the size".into(),
        ));
        receipt
    }
}
