//! A heap behind a heap: what serves the requests that an allocator hands on, where that is not the C library.
//!
//! obmalloc and our arenas serve small requests and hand on the rest. Which heap they may hand it to is decided by the child
//! that links it, as a type ([`Backing`]); whether they do, by the knob `backing`.

use crate::{Arm, Heap as _, Knobs, Receipt, Refused};
use core::cell::Cell;
use core::ffi::c_void;
use core::fmt::Debug;

/// Name of the knob.
pub const KNOB: &str = "backing";

/// Value of the knob for the C library, and its default.
pub const SYSTEM: &str = "system";

/// What can serve beside the C library: which heap a child links for that, and what value of the knob asks for it.
pub trait Backing {
    /// Value of the knob `backing`, and the arm that is opened.
    const NAME: &'static str;
    /// Its heap.
    type Heap: Arm + Debug + 'static;
}

/// A heap as a backing. As CPython asks its raw allocator, no bytes are asked for as one byte.
#[derive(Debug)]
pub struct Backed<H> {
    heap: H,
    /// What the block that is being reallocated was last asked with, bytes: nobody tells in between, and a heap may ask.
    old: Cell<usize>,
}

impl<H: Arm> Backed<H> {
    /// Opens what the knob `backing` in `own` asks for, with the knobs `rest`, which are none of the arm `id`'s own; `None`
    /// is the C library, which has none.
    ///
    /// # Errors
    /// [`Refused`], by the heap or because there is no such knob.
    pub fn open<B: Backing<Heap = H>>(
        id: &str,
        own: &mut Knobs<'_>,
        rest: &[(String, String)],
    ) -> Result<Option<Box<Self>>, Refused> {
        if own.word(KNOB, &[SYSTEM, B::NAME])? != Some(B::NAME) {
            let open = format!("{id} with {KNOB}={SYSTEM}");
            return Knobs::new(rest).finish(&open).map(|()| None);
        }
        let heap = B::Heap::open(B::NAME, rest)?;
        Ok(Some(Box::new(Backed {
            heap,
            old: Cell::new(0),
        })))
    }

    /// The heap itself.
    pub fn heap(&self) -> &H {
        &self.heap
    }

    /// To be told before a realloc that is sure to come here, with what the block was last asked for, bytes.
    #[inline]
    pub fn reallocating(&self, old: usize) {
        self.old.set(old);
    }

    /// A block of `size` bytes; null if the heap refuses.
    #[inline]
    pub fn malloc(&self, size: usize) -> *mut u8 {
        self.heap.malloc(size.max(1))
    }

    /// A block of `count * size` zero bytes; null if the product overflows or the heap refuses.
    #[inline]
    pub fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        if count == 0 || size == 0 {
            self.heap.calloc(1, 1)
        } else {
            self.heap.calloc(count, size)
        }
    }

    /// A block of `size` bytes at a multiple of `align`, a power of two; null if the heap refuses.
    #[inline]
    pub fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        self.heap.aligned(align, size.max(1))
    }

    /// realloc. What the block was last asked for is what was told, or else what the heap says that it can hold: an
    /// allocator's own table comes this way too, and nobody told of it.
    ///
    /// # Safety
    /// `p` is a live block of the heap, or null; what was told is told of it.
    #[inline]
    pub unsafe fn realloc(&self, p: *mut u8, new: usize) -> *mut u8 {
        let told = self.old.replace(0);
        if p.is_null() {
            return self.malloc(new);
        }
        // SAFETY: the caller's promise; 0 is not asked for.
        unsafe {
            let old = if told == 0 {
                self.heap.usable(p).unwrap_or(0)
            } else {
                told
            };
            self.heap.realloc(p, old, new.max(1))
        }
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// `p` is a live block of the heap, or null; nobody uses it afterwards.
    #[inline]
    pub unsafe fn free(&self, p: *mut u8) {
        if !p.is_null() {
            // SAFETY: the caller's promise.
            unsafe { self.heap.free(p) }
        }
    }

    /// What a block can hold, in bytes; 0 if the heap does not tell.
    ///
    /// # Safety
    /// `p` is a live block of the heap.
    #[inline]
    pub unsafe fn usable(&self, p: *mut u8) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.heap.usable(p) }.unwrap_or(0)
    }
}

/// A backing's functions for who cannot name its type, under the C calling convention: nothing unwinds out of them, so that a
/// caller's last act can be a jump into one. The first argument points at the [`Backed`], which lives; for the rest see the
/// method of that name.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "named as the methods")]
pub struct Entries {
    pub malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    pub calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    pub aligned: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    pub realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    pub free: unsafe extern "C" fn(*mut c_void, *mut c_void),
    pub usable: unsafe extern "C" fn(*mut c_void, *mut c_void) -> usize,
}

impl<H: Arm> Backed<H> {
    /// Its functions.
    pub const ENTRIES: &'static Entries = &Entries {
        malloc: malloc::<H>,
        calloc: calloc::<H>,
        aligned: aligned::<H>,
        realloc: realloc::<H>,
        free: free::<H>,
        usable: usable::<H>,
    };
}

/// # Safety
/// `this` points at such a backing, which lives as long as `'a`.
unsafe fn at<'a, H>(this: *mut c_void) -> &'a Backed<H> {
    // SAFETY: the caller's promise.
    unsafe { &*this.cast() }
}

unsafe extern "C" fn malloc<H: Arm>(this: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise, as in all that follow.
    unsafe { at::<H>(this) }.malloc(size).cast()
}

unsafe extern "C" fn calloc<H: Arm>(this: *mut c_void, count: usize, size: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe { at::<H>(this) }.calloc(count, size).cast()
}

unsafe extern "C" fn aligned<H: Arm>(this: *mut c_void, align: usize, size: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe { at::<H>(this) }.aligned(align, size).cast()
}

unsafe extern "C" fn realloc<H: Arm>(this: *mut c_void, p: *mut c_void, new: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe { at::<H>(this).realloc(p.cast(), new).cast() }
}

unsafe extern "C" fn free<H: Arm>(this: *mut c_void, p: *mut c_void) {
    // SAFETY: as above.
    unsafe { at::<H>(this).free(p.cast()) }
}

unsafe extern "C" fn usable<H: Arm>(this: *mut c_void, p: *mut c_void) -> usize {
    // SAFETY: as above.
    unsafe { at::<H>(this).usable(p.cast()) }
}

/// Writes into a receipt who serves: the knob, and what the heap says of itself. `c_library` is the C library's malloc by name
/// and version.
pub fn tell<B: Backing>(
    backed: Option<&Backed<B::Heap>>,
    c_library: String,
    receipt: &mut Receipt,
) {
    const FACT: &str = "backing allocator";
    let Some(backed) = backed else {
        receipt.knobs.push((KNOB.into(), SYSTEM.into()));
        receipt.facts.push((FACT.into(), c_library));
        return;
    };
    let told = backed.heap.receipt();
    receipt.knobs.push((KNOB.into(), B::NAME.into()));
    receipt.knobs.extend(told.knobs);
    receipt
        .facts
        .push((FACT.into(), format!("{} {}", told.allocator, told.version)));
    let named = |(name, value): (String, String)| (format!("backing {name}"), value);
    receipt
        .facts
        .extend(told.build.into_iter().chain(told.facts).map(named));
}
