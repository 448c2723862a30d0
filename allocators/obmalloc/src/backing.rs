//! Another heap in the C library's place, through the file's public hook.

use crate::variant::BackingHook;
use contract::Heap;
use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;

/// A heap as a backing. The hook points at it, so it must not move while it is set.
#[derive(Debug)]
pub struct Backed<H> {
    pub heap: H,
    /// What the block that is being reallocated was last asked with, bytes: the hook is not told, and a heap may ask.
    old: Cell<usize>,
}

impl<H: Heap> Backed<H> {
    pub fn new(heap: H) -> Self {
        Backed {
            heap,
            old: Cell::new(0),
        }
    }

    /// To be told before a realloc that is sure to come here.
    #[inline]
    pub fn reallocating(&self, old: usize) {
        self.old.set(old);
    }

    /// The hook that serves from here.
    pub fn hook(&self) -> BackingHook {
        BackingHook {
            ctx: ptr::from_ref(self).cast_mut().cast(),
            malloc: malloc::<H>,
            calloc: calloc::<H>,
            realloc: realloc::<H>,
            free: free::<H>,
        }
    }
}

/// # Safety
/// `ctx` is that of a hook whose `Backed` is alive. That it is, HOOKED says, in `linked.rs`.
unsafe fn of<'a, H>(ctx: *mut c_void) -> &'a Backed<H> {
    // SAFETY: the caller's promise.
    unsafe { &*ctx.cast::<Backed<H>>() }
}

// As the file's own functions for the C library, all of them serve no bytes as one byte.

unsafe extern "C" fn malloc<H: Heap>(ctx: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: HOOKED.
    unsafe { of::<H>(ctx) }.heap.malloc(size.max(1)).cast()
}

unsafe extern "C" fn calloc<H: Heap>(ctx: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let (count, size) = if count == 0 || size == 0 {
        (1, 1)
    } else {
        (count, size)
    };
    // SAFETY: HOOKED.
    unsafe { of::<H>(ctx) }.heap.calloc(count, size).cast()
}

unsafe extern "C" fn realloc<H: Heap>(
    ctx: *mut c_void,
    p: *mut c_void,
    size: usize,
) -> *mut c_void {
    // SAFETY: HOOKED.
    let backed = unsafe { of::<H>(ctx) };
    // The file's own vector of arenas comes this way too, and nobody told its old size. What a heap says a block can
    // hold is then the next best.
    let told = backed.old.replace(0);
    if p.is_null() {
        return backed.heap.malloc(size.max(1)).cast();
    }
    // SAFETY: the file reallocates live blocks of its backing alone.
    unsafe {
        let old = if told == 0 {
            backed.heap.usable(p.cast()).unwrap_or(0)
        } else {
            told
        };
        backed.heap.realloc(p.cast(), old, size.max(1)).cast()
    }
}

unsafe extern "C" fn free<H: Heap>(ctx: *mut c_void, p: *mut c_void) {
    if !p.is_null() {
        // SAFETY: HOOKED; the file frees live blocks of its backing alone.
        unsafe { of::<H>(ctx).heap.free(p.cast()) }
    }
}
