//! The child's own Rust heap: a small allocator over mmap, so that nothing of the child's own touches the heap under
//! test, the C library's included.
//!
//! Invariant PRIVATE: every byte it hands out lies in a mapping that it made itself, and a block on a free list is one
//! of that list's class that was given back. Pages are populated when they are mapped, so that tables built before the
//! measured region fault nothing inside it. Small blocks are rounded up to a power of two and used again by the next of
//! their class, so that a child that serves thousands of iterations does not grow; large ones have a mapping of their
//! own and are unmapped.

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
/// Smallest class of small blocks, which has room for the link of a free list.
const SMALLEST: usize = 16;
/// Classes of small blocks: the powers of two from [`SMALLEST`] to [`LARGE`].
const CLASSES: usize = (LARGE / SMALLEST).ilog2() as usize + 1;

/// Bytes of all mappings of the child's own heap.
static MAPPED: AtomicU64 = AtomicU64::new(0);

/// Bytes that the child's own heap holds. All of them are resident, so whoever measures the process's memory can tell
/// them from the memory of the heap under test.
pub fn held_bytes() -> u64 {
    MAPPED.load(Ordering::Relaxed)
}

struct Small {
    /// The next byte of the chunk that was never handed out.
    next: usize,
    /// The chunk's end.
    end: usize,
    /// First block given back of each class; each holds the address of the next, null ends it.
    free: [*mut u8; CLASSES],
}

/// The allocator; one static of it per child, as `#[global_allocator]`.
pub struct OwnHeap {
    locked: AtomicBool,
    small: UnsafeCell<Small>,
}

// SAFETY: invariant LOCKED: `small` is read and written only between `lock` and `unlock`.
unsafe impl Sync for OwnHeap {}

impl OwnHeap {
    /// An empty heap; it maps its first chunk when first asked.
    #[must_use]
    pub const fn new() -> Self {
        OwnHeap {
            locked: AtomicBool::new(false),
            small: UnsafeCell::new(Small {
                next: 0,
                end: 0,
                free: [ptr::null_mut(); CLASSES],
            }),
        }
    }

    fn with_small<T>(&self, f: impl FnOnce(&mut Small) -> T) -> T {
        while self
            .locked
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            std::hint::spin_loop();
        }
        // SAFETY: LOCKED: we hold the lock until the store below, so this is the only reference.
        let result = f(unsafe { &mut *self.small.get() });
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

/// The number of a small block's class. A block is aligned to its class, up to an OS page.
fn class(layout: Layout) -> usize {
    let bytes = layout.size().max(layout.align()).max(SMALLEST);
    (bytes.next_power_of_two() / SMALLEST).ilog2() as usize
}

// SAFETY: PRIVATE: blocks lie in mappings of our own, do not overlap (a small one is fresh from above all that was ever
// handed out, or was given back) and are aligned to their class, which is no less than the alignment asked for.
unsafe impl GlobalAlloc for OwnHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > OS_PAGE {
            return ptr::null_mut();
        }
        if is_large(layout) {
            return map(mapped_len(layout.size()));
        }
        let class = class(layout);
        self.with_small(|small| {
            let free = small.free[class];
            if !free.is_null() {
                // SAFETY: PRIVATE: a block on a free list, whose first bytes `dealloc` has made the link.
                small.free[class] = unsafe { free.cast::<*mut u8>().read() };
                return free;
            }
            let bytes = SMALLEST << class;
            let mut at = small.next.next_multiple_of(bytes.min(OS_PAGE));
            if small.next == 0 || at + bytes > small.end {
                let fresh = map(CHUNK);
                if fresh.is_null() {
                    return fresh;
                }
                at = fresh.expose_provenance();
                small.end = at + CHUNK;
            }
            small.next = at + bytes;
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
        let class = class(layout);
        self.with_small(|small| {
            // SAFETY: PRIVATE: a whole block of its class, so aligned and large enough for the link, and the caller is
            // done with it.
            unsafe { p.cast::<*mut u8>().write(small.free[class]) };
            small.free[class] = p;
        });
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that `new_size` rounded up to the alignment does not overflow.
        let new = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if is_large(layout) && is_large(new) {
            // SAFETY: PRIVATE: a whole mapping of ours; the caller uses only the returned address afterwards.
            return unsafe { remap(p, mapped_len(layout.size()), mapped_len(new_size)) };
        }
        if !is_large(layout) && !is_large(new) && class(layout) == class(new) {
            return p;
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
    fn small_blocks_are_aligned_distinct_and_used_again() {
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
    fn what_is_given_back_is_used_again_whatever_the_order() {
        let heap = OwnHeap::new();
        let sizes = [1, 24, 100, 4096, 70_000, 200_000];
        let mut places = std::collections::BTreeSet::new();
        for round in 0..1000 {
            // SAFETY: as above.
            unsafe {
                let blocks = sizes.map(|size| heap.alloc(layout(size, 8)));
                places.extend(blocks.map(|block| block.addr()));
                for i in 0..sizes.len() {
                    let i = (i + round) % sizes.len();
                    heap.dealloc(blocks[i], layout(sizes[i], 8));
                }
            }
        }
        assert_eq!(places.len(), sizes.len());
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
