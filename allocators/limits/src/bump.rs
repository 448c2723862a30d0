//! `bump`: never frees, but extends its last block in place.
//!
//! The lower bound for the work of an allocator that really keeps contents apart: an addition and a comparison a
//! block. A block that is not the last one is moved by growing, and its old place is lost.

use crate::claim::{Claim, Claimed};
use crate::mapping::Mapping;
use contract::{Arm, Capabilities, Heap, Knobs, Receipt, Refused, SelfStats};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

/// Address space for one chunk. What is not touched costs nothing; under a limit on address space smaller chunks are
/// taken.
const CHUNK: usize = 64 << 30;
const SMALLEST_CHUNK: usize = 1 << 20;

/// The one heap. Read and written one by one and relaxed, which costs what a plain variable costs: only the thread
/// that has it open uses it.
///
/// Invariant TOP: all null, or `START <= TOP <= END`, all in the last chunk, 16-aligned; what lies from `TOP` on has
/// never been handed out, so it is zero. Chunks are never unmapped.
static START: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static TOP: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static END: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// Bytes handed out of earlier chunks.
static BEFORE: AtomicU64 = AtomicU64::new(0);
/// Bytes of address space in all chunks.
static MAPPED: AtomicU64 = AtomicU64::new(0);

static CLAIM: Claim = Claim::new();

/// What a block of `size` bytes takes. Blocks of no bytes get addresses of their own.
#[inline]
fn rounded(size: usize) -> usize {
    (size.max(1) + 15) & !15
}

/// Takes `size` bytes from the top, if they are there.
#[inline]
fn take(size: usize) -> Option<*mut u8> {
    let at = TOP.load(Relaxed);
    // 16 bytes are left for the rounding and for blocks of no bytes: `end` is 16-aligned, so `rounded(size)` fits.
    if size >= END.load(Relaxed).addr() - at.addr() {
        return None;
    }
    TOP.store(at.wrapping_add(rounded(size)), Relaxed);
    Some(at)
}

/// A block of `size` bytes, zero; null if the operating system gives no more address space.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn heaplab_bump_malloc(size: usize) -> *mut u8 {
    take(size).unwrap_or_else(|| from_new_chunk(size))
}

/// A block of `count * size` zero bytes; null if the product overflows.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn heaplab_bump_calloc(count: usize, size: usize) -> *mut u8 {
    // TOP: never handed out, so zero already.
    count
        .checked_mul(size)
        .map_or_else(refuse, |bytes| heaplab_bump_malloc(bytes))
}

/// Makes the block at `p` of `old` bytes one of `new`: in place if it shrinks or is the last, else elsewhere.
///
/// # Safety
/// `p` is a block of the bump heap, of `old` bytes, and this is the thread that has it open.
#[inline(never)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaplab_bump_realloc(p: *mut u8, old: usize, new: usize) -> *mut u8 {
    if new <= old {
        // The rest is not taken back: it is no longer zero.
        return p;
    }
    let last = p.wrapping_add(rounded(old)) == TOP.load(Relaxed);
    if last && new < END.load(Relaxed).addr() - p.addr() {
        TOP.store(p.wrapping_add(rounded(new)), Relaxed);
        return p;
    }
    // SAFETY: the caller's promise, and `new` is more than `old`.
    unsafe { elsewhere(p, old, new) }
}

/// The block at `p` of `old` bytes, copied into another of `new`. Apart, so that the case in place saves no registers.
///
/// # Safety
/// `p` holds `old` bytes, which are no more than `new`.
#[inline(never)]
unsafe fn elsewhere(p: *mut u8, old: usize, new: usize) -> *mut u8 {
    let q = heaplab_bump_malloc(new);
    if !q.is_null() {
        // SAFETY: `p` holds `old` bytes by the caller's promise and `q`, newly handed out, `new`, which is no less.
        unsafe { ptr::copy_nonoverlapping(p, q, old) };
    }
    q
}

/// Gives nothing back.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn heaplab_bump_free(p: *mut u8) {
    // SAFETY: an empty piece of assembly. It keeps the call from being optimised away.
    unsafe {
        core::arch::asm!("/* {0} */", in(reg) p.addr(), options(nomem, nostack, preserves_flags))
    };
}

fn refuse() -> *mut u8 {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    ptr::null_mut()
}

/// Bytes handed out, the rounding of blocks included.
fn handed_out() -> u64 {
    BEFORE.load(Relaxed) + (TOP.load(Relaxed).addr() - START.load(Relaxed).addr()) as u64
}

#[cold]
#[inline(never)]
fn from_new_chunk(size: usize) -> *mut u8 {
    // OS pages, and room for the 16 bytes that `take` leaves.
    let Some(needed) = size
        .checked_add(16)
        .and_then(|bytes| bytes.checked_next_multiple_of(4096))
    else {
        return refuse();
    };
    let mut bytes = needed.max(CHUNK);
    let chunk = loop {
        if let Some(chunk) = Mapping::new(bytes) {
            break chunk;
        }
        if bytes == needed || bytes <= SMALLEST_CHUNK {
            return refuse();
        }
        bytes = (bytes / 2).max(needed);
    };
    BEFORE.store(handed_out(), Relaxed);
    MAPPED.fetch_add(chunk.bytes() as u64, Relaxed);
    START.store(chunk.start(), Relaxed);
    TOP.store(chunk.start(), Relaxed);
    END.store(chunk.start().wrapping_add(chunk.bytes()), Relaxed);
    // TOP: a heap that never frees never unmaps.
    core::mem::forget(chunk);
    take(size).unwrap_or_else(refuse)
}

/// The bump heap. Only one is open at a time, and it stays on the thread that opened it.
#[derive(Debug)]
pub struct Bump {
    _claimed: Claimed,
}

impl Arm for Bump {
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused> {
        Knobs::new(knobs).finish(id)?;
        Ok(Bump {
            _claimed: CLAIM.take("bump")?,
        })
    }
}

// SAFETY: every address that is handed out has its bytes behind it, in a chunk that is never unmapped (TOP).
unsafe impl Heap for Bump {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: false,
        sized: false,
        usable: false,
        trim: false,
        contents: true,
    };

    #[inline]
    fn malloc(&self, size: usize) -> *mut u8 {
        heaplab_bump_malloc(size)
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        heaplab_bump_calloc(count, size)
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, old: usize, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise: a live block of this heap, of `old` bytes; `self` is here, so this is the thread.
        unsafe { heaplab_bump_realloc(p, old, new) }
    }

    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        heaplab_bump_free(p);
    }

    #[inline]
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        let Some(padded) = size.checked_add(align) else {
            return refuse();
        };
        let p = heaplab_bump_malloc(padded);
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
        SelfStats {
            allocated: Some(handed_out()),
            mapped: Some(MAPPED.load(Relaxed)),
            resident: None,
            extra: Vec::new(),
        }
    }

    fn receipt(&self) -> Receipt {
        Receipt {
            allocator: "bump".into(),
            version: concat!("heaplab ", env!("CARGO_PKG_VERSION")).into(),
            build: vec![("source".into(), "this project's own".into())],
            knobs: Vec::new(),
            facts: vec![(
                "free".into(),
                "never: only the last block grows in place".into(),
            )],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::suite::alone;

    fn open() -> Bump {
        Bump::open("bump", &[]).expect("opens")
    }

    #[test]
    fn only_the_last_block_grows_in_place() {
        let _turn = alone();
        let heap = open();
        let (a, b) = (heap.malloc(100), heap.malloc(100));
        assert_eq!(b.addr(), a.addr() + 112);
        // SAFETY: live blocks of these sizes.
        unsafe {
            a.write_bytes(7, 100);
            assert_eq!(heap.realloc(b, 100, 1 << 30), b);
            let c = heap.realloc(a, 100, 200);
            assert_ne!(c, a);
            assert!((0..100).all(|i| c.add(i).read() == 7));
            assert_eq!(heap.realloc(c, 200, 10), c, "shrinking never moves");
        }
    }

    #[test]
    fn a_full_chunk_is_followed_by_another() {
        let _turn = alone();
        let heap = open();
        let a = heap.malloc(CHUNK - 4096);
        let b = heap.malloc(8192);
        assert!(!a.is_null() && !b.is_null());
        assert!(heap.stats().mapped > Some(CHUNK as u64));
        assert!(heap.stats().allocated >= Some((CHUNK + 4096) as u64));
        assert!(heap.malloc(usize::MAX).is_null());
        assert!(heap.malloc(1 << 60).is_null());
        assert!(
            !heap.malloc(1).is_null(),
            "a refusal leaves the chunk as it was"
        );
    }

    #[test]
    fn blocks_of_no_bytes_have_addresses_of_their_own() {
        let _turn = alone();
        let heap = open();
        assert_ne!(heap.malloc(0), heap.malloc(0));
    }
}
