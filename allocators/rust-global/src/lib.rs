//! An allocator as a Rust user gets it: through the `GlobalAlloc` of its crate, with a `Layout` at every call.
//!
//! The value is called itself, and is not the process's `#[global_allocator]`: that is the child's own private heap,
//! as in every child. What is called is the same. A program reaches its global allocator through `__rust_alloc` and its
//! like, one call that is never inlined; so do the blocks here.
//!
//! Who asks for a block of bytes here has to say an alignment, too. It is [`ALIGN`]: what a type needs that holds a
//! pointer, a length or an `f64`, and so what most layouts of a Rust program say. Both crates treat it as they treat
//! less, except for blocks of fewer than 8 bytes. (Only `u128` and vector types need 16. Blocks of 16 bytes and more
//! come out so aligned anyway; the behaviour suite asks.)
#![warn(missing_docs)]

use contract::{Arm, Capabilities, Heap, Receipt, Refused, SelfStats};
use core::alloc::{GlobalAlloc, Layout};

/// Alignment in bytes that malloc, calloc and realloc ask for.
pub const ALIGN: usize = 8;

/// An allocator with both ways to it.
pub trait Routes {
    /// The crate's own type.
    type Alloc: GlobalAlloc;
    /// The same library by its C entry points: it opens, tells and trims.
    type Beneath: Arm;
    /// The crate's own value.
    const ALLOC: Self::Alloc;
    /// Name and version of the crate.
    const CRATE: &'static str;
}

/// The heap of `R`, its blocks made, resized and given back through `GlobalAlloc`.
#[derive(Debug)]
pub struct Global<R: Routes> {
    beneath: R::Beneath,
}

/// The layout of a block of `size` bytes, or `None` if there can be none. A layout of no bytes may not be asked for
/// (Rust's collections look before they call), so no bytes are one.
#[inline]
fn layout(align: usize, size: usize) -> Option<Layout> {
    Layout::from_size_align(size.max(1), align).ok()
}

/// The layout of a live block.
///
/// # Safety
/// [`layout`] has a layout for the two: a block was made with it.
#[inline]
unsafe fn known(align: usize, size: usize) -> Layout {
    // SAFETY: the caller's promise.
    unsafe { Layout::from_size_align_unchecked(size.max(1), align) }
}

/// In place of `__rust_alloc`.
#[inline(never)]
fn alloc<R: Routes>(layout: Layout) -> *mut u8 {
    // SAFETY: layouts of this crate have a byte at least.
    unsafe { R::ALLOC.alloc(layout) }
}

/// In place of `__rust_alloc_zeroed`.
#[inline(never)]
fn alloc_zeroed<R: Routes>(layout: Layout) -> *mut u8 {
    // SAFETY: layouts of this crate have a byte at least.
    unsafe { R::ALLOC.alloc_zeroed(layout) }
}

/// In place of `__rust_realloc`.
///
/// # Safety
/// As `GlobalAlloc::realloc`.
#[inline(never)]
unsafe fn realloc<R: Routes>(p: *mut u8, layout: Layout, new: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { R::ALLOC.realloc(p, layout, new) }
}

/// In place of `__rust_dealloc`.
///
/// # Safety
/// As `GlobalAlloc::dealloc`.
#[inline(never)]
unsafe fn dealloc<R: Routes>(p: *mut u8, layout: Layout) {
    // SAFETY: the caller's promise.
    unsafe { R::ALLOC.dealloc(p, layout) }
}

// SAFETY: blocks are the library's own. A block can be made by `GlobalAlloc` and freed or asked by the C entry points:
// both crates document that they are thin layers over them.
unsafe impl<R: Routes> Heap for Global<R> {
    const CAPABILITIES: Capabilities = R::Beneath::CAPABILITIES;
    const SIZED_FREE: bool = true;

    #[inline]
    fn malloc(&self, size: usize) -> *mut u8 {
        layout(ALIGN, size).map_or(core::ptr::null_mut(), alloc::<R>)
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        count
            .checked_mul(size)
            .and_then(|bytes| layout(ALIGN, bytes))
            .map_or(core::ptr::null_mut(), alloc_zeroed::<R>)
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, old: usize, new: usize) -> *mut u8 {
        if layout(ALIGN, new).is_none() {
            return core::ptr::null_mut();
        }
        // SAFETY: the caller's promise: `p` is a live block of `old` bytes, `new` is not 0, and by the check above it is
        // not too large. A block of `aligned` was asked with another alignment than this one; both libraries resize any
        // block of theirs, and look at the alignment only to choose the new place.
        unsafe { realloc::<R>(p, known(ALIGN, old), new) }
    }

    /// By the C entry point, for those who do not know the size. What is measured is
    /// [`free_sized`](Heap::free_sized), as [`Heap::SIZED_FREE`] says.
    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: the caller's promise, and the block is the library's own.
        unsafe { self.beneath.free(p) }
    }

    #[inline]
    unsafe fn free_sized(&self, p: *mut u8, size: usize, align: usize) {
        // SAFETY: the caller's promise: a live block of `size` bytes, asked with `align` if by `aligned`, else with
        // `ALIGN`.
        unsafe { dealloc::<R>(p, known(if align == 1 { ALIGN } else { align }, size)) }
    }

    #[inline]
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        layout(align, size).map_or(core::ptr::null_mut(), alloc::<R>)
    }

    #[inline]
    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        // SAFETY: the caller's promise, and the block is the library's own.
        unsafe { self.beneath.usable(p) }
    }

    fn trim(&self) -> bool {
        self.beneath.trim()
    }

    fn stats(&self) -> SelfStats {
        self.beneath.stats()
    }

    fn receipt(&self) -> Receipt {
        let mut receipt = self.beneath.receipt();
        receipt.build.extend([
            (
                "entry points".to_owned(),
                format!("GlobalAlloc of {}", R::CRATE),
            ),
            (
                "layout".to_owned(),
                format!("the bytes requested, align {ALIGN}"),
            ),
        ]);
        receipt
    }
}

impl<R: Routes> Arm for Global<R> {
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused> {
        Ok(Global {
            beneath: R::Beneath::open(id, knobs)?,
        })
    }
}
