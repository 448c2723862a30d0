//! `null`: hands out one mapped ring, round and round.
//!
//! The lower bound for time: no list, no header, no fault. Blocks overlap as soon as the ring has come round, so
//! contents mean nothing; the ring is touched when it is opened, so its memory figures mean nothing either.

use crate::mapping::Mapping;
use contract::{Arm, Capabilities, Heap, Knobs, Receipt, Refused, SelfStats};
use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr;

/// Enough for a block grown to 64 MiB.
const DEFAULT_RING: usize = 128 << 20;
/// A limit only on what is touched at the start.
const MAX_RING: usize = 16 << 30;

/// Invariant RING: all null, or `start <= next <= end`, all in one live mapping, 16-aligned.
struct Ring {
    next: Cell<*mut u8>,
    end: Cell<*mut u8>,
    start: Cell<*mut u8>,
}

thread_local! {
    static RING: Ring = const {
        Ring { next: Cell::new(ptr::null_mut()), end: Cell::new(ptr::null_mut()), start: Cell::new(ptr::null_mut()) }
    };
}

/// The next `size` bytes of the ring; null if it has not so many, or none is open on this thread.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn heaplab_null_malloc(size: usize) -> *mut u8 {
    RING.with(|ring| {
        let at = ring.next.get();
        if size > ring.end.get().addr() - at.addr() {
            return around(ring, size);
        }
        // In the ring by RING: `end` is 16-aligned, so `size` rounded up to 16 still fits.
        ring.next.set(at.wrapping_add((size + 15) & !15));
        at
    })
}

#[cold]
#[inline(never)]
fn around(ring: &Ring, size: usize) -> *mut u8 {
    let at = ring.start.get();
    if size > ring.end.get().addr() - at.addr() || at.is_null() {
        return refuse();
    }
    ring.next.set(at.wrapping_add((size + 15) & !15));
    at
}

fn refuse() -> *mut u8 {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    ptr::null_mut()
}

/// The block at `p`, if `size` bytes fit between it and the end of the ring; else another, without its contents.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn heaplab_null_realloc(p: *mut u8, size: usize) -> *mut u8 {
    RING.with(|ring| {
        // `p` is in the ring, so the difference does not wrap.
        if size <= ring.end.get().addr().wrapping_sub(p.addr()) {
            p
        } else {
            around(ring, size)
        }
    })
}

/// Forgets the block.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn heaplab_null_free(p: *mut u8) {
    // SAFETY: an empty piece of assembly. It keeps the call from being optimised away.
    unsafe {
        core::arch::asm!("/* {0} */", in(reg) p.addr(), options(nomem, nostack, preserves_flags))
    };
}

/// The ring of this thread, as a heap. Not `Send`: it belongs to the thread that opened it.
#[derive(Debug)]
pub struct Null {
    ring: Mapping,
    _of_this_thread: PhantomData<*mut ()>,
}

impl Arm for Null {
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused> {
        let mut knobs = Knobs::new(knobs);
        let asked = knobs.bytes("ring")?;
        knobs.finish(id)?;
        let bytes = match asked {
            None => DEFAULT_RING,
            Some(bytes) => usize::try_from(bytes)
                .ok()
                .filter(|bytes| bytes % 4096 == 0 && (4096..=MAX_RING).contains(bytes))
                .ok_or_else(|| {
                    Refused::Knob(format!(
                        "ring={bytes}: expected a multiple of 4096, at most 16GiB"
                    ))
                })?,
        };
        RING.with(|ring| {
            if !ring.start.get().is_null() {
                return Err(Refused::Unavailable(
                    "null is already open on this thread; close it first".into(),
                ));
            }
            let mapping = Mapping::new(bytes).ok_or_else(|| {
                Refused::Unavailable(format!("no address space for a ring of {bytes} bytes"))
            })?;
            mapping.touch();
            ring.start.set(mapping.start());
            ring.next.set(mapping.start());
            ring.end.set(mapping.start().wrapping_add(bytes));
            Ok(Null {
                ring: mapping,
                _of_this_thread: PhantomData,
            })
        })
    }
}

impl Drop for Null {
    fn drop(&mut self) {
        // RING: the mapping goes right after this.
        RING.with(|ring| {
            for end in [&ring.start, &ring.next, &ring.end] {
                end.set(ptr::null_mut());
            }
        });
    }
}

// SAFETY: every address that is handed out has `size` bytes of the ring behind it (RING), and the ring lives as long as
// the heap. That blocks overlap is what `contents: false` says.
unsafe impl Heap for Null {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: false,
        sized: false,
        usable: false,
        trim: false,
        contents: false,
    };

    #[inline]
    fn malloc(&self, size: usize) -> *mut u8 {
        heaplab_null_malloc(size)
    }

    /// Not zeroed: nothing is known of contents here.
    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        count
            .checked_mul(size)
            .map_or_else(refuse, |bytes| heaplab_null_malloc(bytes))
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, _old: usize, new: usize) -> *mut u8 {
        heaplab_null_realloc(p, new)
    }

    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        heaplab_null_free(p);
    }

    #[inline]
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        let Some(padded) = size.checked_add(align) else {
            return refuse();
        };
        let p = heaplab_null_malloc(padded);
        if p.is_null() {
            p
        } else {
            p.wrapping_add(p.addr().wrapping_neg() & (align - 1))
        }
    }

    unsafe fn usable(&self, _p: *mut u8) -> Option<usize> {
        None
    }

    fn trim(&self) -> bool {
        false
    }

    fn stats(&self) -> SelfStats {
        SelfStats::default()
    }

    fn receipt(&self) -> Receipt {
        Receipt {
            allocator: "null".into(),
            version: concat!("heaplab ", env!("CARGO_PKG_VERSION")).into(),
            build: vec![("source".into(), "this project's own".into())],
            knobs: vec![("ring".into(), self.ring.bytes().to_string())],
            facts: vec![("contents".into(), "none: blocks overlap".into())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(ring: &str) -> Null {
        Null::open("null", &[("ring".into(), ring.into())]).expect("opens")
    }

    #[test]
    fn it_goes_round() {
        let heap = open("8192");
        let (a, b) = (heap.malloc(1), heap.malloc(8000));
        assert_eq!(b.addr(), a.addr() + 16);
        assert_eq!(heap.malloc(176), a.wrapping_add(8016), "the last bytes");
        assert_eq!(heap.malloc(1), a, "and from the start");
        assert_eq!(heap.malloc(8192), a);
        assert!(heap.malloc(8193).is_null());
        assert!(heap.malloc(usize::MAX).is_null());
    }

    #[test]
    fn a_block_grows_in_place_to_the_end_of_the_ring() {
        let heap = open("8192");
        let (a, b) = (heap.malloc(16), heap.malloc(16));
        // SAFETY: live blocks of these sizes.
        unsafe {
            assert_eq!(heap.realloc(b, 16, 8176), b);
            assert_eq!(
                heap.realloc(b, 8176, 8177),
                a,
                "no longer fits, starts over"
            );
            assert!(heap.realloc(a, 8177, 8193).is_null());
            heap.free(a);
        }
    }

    #[test]
    fn one_at_a_time_on_a_thread() {
        let first = open("4096");
        assert!(matches!(
            Null::open("null", &[]),
            Err(Refused::Unavailable(_))
        ));
        drop(first);
        assert!(heaplab_null_malloc(1).is_null(), "no ring is open");
        drop(open("4096"));
    }
}
