//! An operating system that places arenas where a test wants them and refuses when it says so.
#![allow(dead_code, reason = "each test uses its part")]

pub mod callgrind;
pub mod case;
pub mod stream;

use arena::heap::Heap;
use arena::os::{Libc, Os, Source};
use arena::policy::{Settings, Tuned};
use contract::Backing;
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// The model of 2007 as a backing.
#[derive(Debug)]
pub enum Model {}

impl Backing for Model {
    const NAME: &'static str = "tcmalloc-2007";
    type Heap = tcmalloc_2007::Tcmalloc2007;
}

/// The arms, over the C library or over the model.
pub type Arena = arena::Arena<Model>;
/// The same, told sizes.
pub type SizedArena = arena::SizedArena<Model>;

/// How often a test that runs many operations walks the whole heap: after each in a debug build, after every 64 in a
/// release build.
pub const CHECK_EVERY: usize = if cfg!(debug_assertions) { 1 } else { 64 };

/// The C library's, with aligned arenas that are moved up, and with what it still grants.
#[derive(Debug)]
pub struct Staged {
    /// How far behind a multiple of its size each arena begins. A multiple of 4096.
    pub shift: usize,
    /// Mappings still granted.
    pub maps: Cell<usize>,
    /// Calls of the backing still granted, of those that take memory.
    pub blocks: Cell<usize>,
    /// Mappings made and unmade.
    pub mapped: Cell<(usize, usize)>,
}

impl Staged {
    /// Everything is granted.
    pub fn shifted(shift: usize) -> Staged {
        Staged {
            shift,
            maps: Cell::new(usize::MAX),
            blocks: Cell::new(usize::MAX),
            mapped: Cell::new((0, 0)),
        }
    }

    fn granted(&self, what: &Cell<usize>) -> bool {
        match what.get() {
            0 => false,
            usize::MAX => true,
            n => {
                what.set(n - 1);
                true
            }
        }
    }

    /// The mapping behind an arena is as large again at its end.
    fn wide(&self, bytes: usize) -> usize {
        if self.shift == 0 { bytes } else { 2 * bytes }
    }
}

const ALIGNED: Libc = Libc {
    aligned_arenas: true,
    source: Source::Mmap,
};

// SAFETY: what is granted is the C library's. A shifted arena lies in a mapping of twice its size, that begins at a
// multiple of that, `shift` bytes from its start, and `shift` is less than its size.
unsafe impl Os for Staged {
    fn map(&self, bytes: usize) -> Option<NonNull<u8>> {
        if !self.granted(&self.maps) {
            return None;
        }
        let (made, unmade) = self.mapped.get();
        self.mapped.set((made + 1, unmade));
        let at = ALIGNED.map(self.wide(bytes))?;
        // SAFETY: as above.
        Some(unsafe { at.add(self.shift) })
    }

    unsafe fn unmap(&self, at: NonNull<u8>, bytes: usize) {
        let (made, unmade) = self.mapped.get();
        self.mapped.set((made, unmade + 1));
        // SAFETY: the caller's promise, and as above.
        unsafe { ALIGNED.unmap(at.sub(self.shift), self.wide(bytes)) };
    }

    fn malloc(&self, size: usize) -> *mut u8 {
        if self.granted(&self.blocks) {
            ALIGNED.malloc(size)
        } else {
            ptr::null_mut()
        }
    }

    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        if self.granted(&self.blocks) {
            ALIGNED.calloc(count, size)
        } else {
            ptr::null_mut()
        }
    }

    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        if self.granted(&self.blocks) {
            ALIGNED.aligned(align, size)
        } else {
            ptr::null_mut()
        }
    }

    unsafe fn realloc(&self, p: *mut u8, new: usize) -> *mut u8 {
        if self.granted(&self.blocks) {
            // SAFETY: the caller's promise.
            unsafe { ALIGNED.realloc(p, new) }
        } else {
            ptr::null_mut()
        }
    }

    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { ALIGNED.free(p) }
    }

    unsafe fn usable(&self, p: *mut u8) -> usize {
        // SAFETY: the caller's promise.
        unsafe { ALIGNED.usable(p) }
    }
}

/// A heap with these settings, whose arenas begin `shift` bytes behind multiples of their size.
pub fn heap(settings: Settings, shift: usize) -> Heap<Staged, Tuned> {
    let policy = Tuned::new(settings).expect("settings that fit");
    Heap::new(Staged::shifted(shift), policy).expect("memory for the map's root")
}
