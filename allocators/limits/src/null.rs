//! `null`: hands out one mapped ring, round and round.
//!
//! The lower bound for time: no list, no header, no fault. Blocks overlap as soon as the ring has come round, so
//! contents mean nothing; the ring is touched when it is opened, so its memory figures mean nothing either.

use crate::claim::{Claim, Claimed};
use crate::mapping::Mapping;
use contract::{Arm, Capabilities, Heap, Knobs, Receipt, Refused, SelfStats};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// Enough for a block grown to 64 MiB.
const DEFAULT_RING: usize = 128 << 20;
/// A limit only on what is touched at the start.
const MAX_RING: usize = 16 << 30;

/// The one ring. Read and written one by one and relaxed, which costs what a plain variable costs: only the thread
/// that has it open uses it.
///
/// Invariant RING: all null, or `START <= NEXT <= END`, all in one live mapping, 16-aligned.
static START: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static NEXT: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static END: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

static CLAIM: Claim = Claim::new();

/// The next `size` bytes of the ring; null if it has not so many, or none is open.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn heaplab_null_malloc(size: usize) -> *mut u8 {
    let at = NEXT.load(Relaxed);
    if size > END.load(Relaxed).addr() - at.addr() {
        return around(size);
    }
    // In the ring by RING: `END` is 16-aligned, so `size` rounded up to 16 still fits.
    NEXT.store(at.wrapping_add((size + 15) & !15), Relaxed);
    at
}

/// `size` bytes from the start of the ring.
#[cold]
#[inline(never)]
fn around(size: usize) -> *mut u8 {
    let at = START.load(Relaxed);
    if size > END.load(Relaxed).addr() - at.addr() || at.is_null() {
        return refuse();
    }
    NEXT.store(at.wrapping_add((size + 15) & !15), Relaxed);
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
    // `p` is in the ring, so the difference does not wrap.
    if size <= END.load(Relaxed).addr().wrapping_sub(p.addr()) {
        p
    } else {
        around(size)
    }
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

/// The ring, as a heap. Only one is open at a time, and it stays on the thread that opened it.
#[derive(Debug)]
pub struct Null {
    ring: Mapping,
    _claimed: Claimed,
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
        let claimed = CLAIM.take("null")?;
        let ring = Mapping::new(bytes).ok_or_else(|| {
            Refused::Unavailable(format!("no address space for a ring of {bytes} bytes"))
        })?;
        ring.touch();
        START.store(ring.start(), Relaxed);
        NEXT.store(ring.start(), Relaxed);
        END.store(ring.start().wrapping_add(bytes), Relaxed);
        Ok(Null {
            ring,
            _claimed: claimed,
        })
    }
}

impl Drop for Null {
    fn drop(&mut self) {
        // RING: the mapping goes right after this, and the claim after it.
        for address in [&START, &NEXT, &END] {
            address.store(ptr::null_mut(), Relaxed);
        }
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
    use contract::suite::alone;

    fn open(ring: &str) -> Null {
        Null::open("null", &[("ring".into(), ring.into())]).expect("opens")
    }

    #[test]
    fn it_goes_round() {
        let _turn = alone();
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
        let _turn = alone();
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
    fn one_at_a_time() {
        let _turn = alone();
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
