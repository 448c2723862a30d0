//! The child's own Rust heap: a bump allocator over mmap, so that nothing of the child's own touches the heap under
//! test, the C library's included.
//!
//! Invariant PRIVATE: every byte it hands out lies in a mapping that it made itself. Pages are populated when they
//! are mapped, so that tables built before the measured region fault nothing inside it. Small blocks are given back
//! only if they are the last one handed out; large ones have a mapping of their own and are unmapped. A child lives
//! for one trial, so what is not given back does not matter.

use crate::probe::mapping::mapped_len;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap, munmap};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes mapped at a time for small blocks.
const CHUNK: usize = 1 << 20;
/// Blocks from this size on have their own mapping.
const LARGE: usize = 256 << 10;
const OS_PAGE: usize = 4096;

/// Bytes of all mappings of the child's own heap.
static MAPPED: AtomicU64 = AtomicU64::new(0);

/// Bytes that the child's own heap holds. All of them are resident, so whoever measures the process's memory can tell
/// them from the memory of the heap under test.
pub fn held_bytes() -> u64 {
    MAPPED.load(Ordering::Relaxed)
}

struct Chunk {
    next: usize,
    end: usize,
}

/// The allocator; one static of it per child, as `#[global_allocator]`.
pub struct OwnHeap {
    locked: AtomicBool,
    chunk: UnsafeCell<Chunk>,
}

// SAFETY: invariant LOCKED: `chunk` is read and written only between `lock` and `unlock`.
unsafe impl Sync for OwnHeap {}

impl OwnHeap {
    /// An empty heap; it maps its first chunk when first asked.
    #[must_use]
    pub const fn new() -> Self {
        OwnHeap {
            locked: AtomicBool::new(false),
            chunk: UnsafeCell::new(Chunk { next: 0, end: 0 }),
        }
    }

    fn with_chunk<T>(&self, f: impl FnOnce(&mut Chunk) -> T) -> T {
        while self
            .locked
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            std::hint::spin_loop();
        }
        // SAFETY: LOCKED: we hold the lock until the store below, so this is the only reference.
        let result = f(unsafe { &mut *self.chunk.get() });
        self.locked.store(false, Ordering::Release);
        result
    }
}

impl Default for OwnHeap {
    fn default() -> Self {
        Self::new()
    }
}

fn map(len: usize) -> *mut u8 {
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory in use.
    let at = unsafe {
        mmap_anonymous(
            ptr::null_mut(),
            len,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::POPULATE,
        )
    };
    at.map_or(ptr::null_mut(), |at| {
        MAPPED.fetch_add(len as u64, Ordering::Relaxed);
        at.cast()
    })
}

/// Makes the mapping at `p` of `old` bytes one of `new` bytes, wherever it then lies; null if the kernel refuses.
///
/// # Safety
/// `p` is a whole mapping of `old` bytes that [`map`] made, and is not used afterwards.
unsafe fn remap(p: *mut u8, old: usize, new: usize) -> *mut u8 {
    // SAFETY: a whole mapping of ours, by the caller's promise.
    let Ok(at) = (unsafe { mremap(p.cast(), old, new, MremapFlags::MAYMOVE) }) else {
        return ptr::null_mut();
    };
    let at: *mut u8 = at.cast();
    // The kernel populates a fresh mapping, but not what is added to one.
    for page in (old..new).step_by(OS_PAGE) {
        // SAFETY: `page` lies in the mapping, which has `new` bytes now; nobody else knows of that part yet.
        unsafe { at.add(page).write_volatile(0) };
    }
    MAPPED.fetch_add(new as u64, Ordering::Relaxed);
    MAPPED.fetch_sub(old as u64, Ordering::Relaxed);
    at
}

/// Whether a block of this layout has its own mapping. Alignments above an OS page do not occur in this program;
/// such a request is refused with null.
fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE
}

// SAFETY: PRIVATE: blocks lie in mappings of our own, do not overlap (the bump pointer only rises past what was
// handed out, and falls only to the start of the last block when that is given back) and are aligned by rounding up.
unsafe impl GlobalAlloc for OwnHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > OS_PAGE {
            return ptr::null_mut();
        }
        if is_large(layout) {
            return map(mapped_len(layout.size()));
        }
        self.with_chunk(|chunk| {
            let mut at = chunk.next.next_multiple_of(layout.align());
            if chunk.next == 0 || at + layout.size() > chunk.end {
                let fresh = map(CHUNK);
                if fresh.is_null() {
                    return fresh;
                }
                at = fresh.expose_provenance();
                chunk.end = at + CHUNK;
            }
            chunk.next = at + layout.size();
            ptr::with_exposed_provenance_mut(at)
        })
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        if is_large(layout) {
            // SAFETY: PRIVATE: this layout's block is a whole mapping of ours, and the caller is done with it. A
            // refusal would leak it, which harms nothing.
            if unsafe { munmap(p.cast(), mapped_len(layout.size())) }.is_ok() {
                MAPPED.fetch_sub(mapped_len(layout.size()) as u64, Ordering::Relaxed);
            }
            return;
        }
        self.with_chunk(|chunk| {
            if p.addr() + layout.size() == chunk.next {
                chunk.next = p.addr();
            }
        });
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that `new_size` rounded up to the alignment does not overflow.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if is_large(layout) && is_large(new) {
            // SAFETY: PRIVATE: a whole mapping of ours; the caller uses only the returned address afterwards.
            return unsafe { remap(p, mapped_len(layout.size()), mapped_len(new_size)) };
        }
        // SAFETY: `new` is a valid layout; the old block holds `layout.size()` bytes and the new one `new_size`; they
        // are distinct blocks of this heap.
        unsafe {
            let to = self.alloc(new);
            if !to.is_null() {
                ptr::copy_nonoverlapping(p, to, layout.size().min(new_size));
                self.dealloc(p, layout);
            }
            to
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).expect("test layouts are valid")
    }

    #[test]
    fn small_blocks_are_aligned_distinct_and_the_last_comes_back() {
        let heap = OwnHeap::new();
        // SAFETY: layouts of non-zero size; blocks are given back once, with their own layout.
        unsafe {
            let a = heap.alloc(layout(3, 1));
            let b = heap.alloc(layout(64, 64));
            assert_eq!(b.addr() % 64, 0);
            assert!(b.addr() >= a.addr() + 3);
            heap.dealloc(b, layout(64, 64));
            assert_eq!(heap.alloc(layout(64, 64)), b);
        }
    }

    #[test]
    fn a_block_keeps_its_bytes_from_small_to_large_and_larger() {
        let heap = OwnHeap::new();
        // SAFETY: as above; every byte written lies inside the block.
        unsafe {
            let mut size = 100;
            let mut p = heap.alloc(layout(size, 8));
            p.write_bytes(0x5a, size);
            for new in [CHUNK / 2, 3 * CHUNK, 7 * CHUNK] {
                p = heap.realloc(p, layout(size, 8), new);
                assert!((0..100).all(|i| p.add(i).read() == 0x5a));
                size = new;
            }
            heap.dealloc(p, layout(size, 8));
        }
    }

    #[test]
    fn more_than_a_chunk_of_small_blocks() {
        let heap = OwnHeap::new();
        // SAFETY: as above.
        let mut seen: Vec<usize> = (0..100)
            .map(|_| unsafe { heap.alloc(layout(40_000, 16)) }.addr())
            .collect();
        seen.sort_unstable();
        assert!(seen.windows(2).all(|two| two[1] - two[0] >= 40_000));
    }
}
