//! Sized free: a size that has a class is a pool's block, until there are blocks of the backing that have such a size. Each
//! way to one of them, and back.

mod common;

use arena::heap::Heap;
use arena::policy::{Settings, Tuned};
use common::{Staged, heap};

const SMALL: Settings = Settings {
    arena: 16 << 10,
    pool: 4096,
    ..Settings::PYTHON_3_10
};

/// Blocks of `sizes` come and go with their sizes: whatever is taken for a pool's is one.
fn pools_are_pools(heap: &mut Heap<Staged, Tuned>, sizes: &[usize]) {
    let live: Vec<*mut u8> = sizes.iter().map(|size| heap.malloc(*size)).collect();
    for (p, size) in live.into_iter().zip(sizes) {
        // SAFETY: live, of `size` bytes.
        unsafe { heap.free_sized(p, *size) };
        assert_eq!(heap.check(), Ok(()));
    }
}

const SIZES: [usize; 8] = [0, 1, 16, 17, 511, 512, 513, 5000];

#[test]
fn without_strays_the_size_decides() {
    let mut heap = heap(SMALL, 0);
    pools_are_pools(&mut heap, &SIZES);
    let p = heap.calloc(4, 100);
    let q = heap.aligned(16, 512);
    let large = heap.aligned(64, 513);
    assert_eq!(heap.strays(), 0);
    // SAFETY: live, of so many bytes.
    unsafe {
        heap.free_sized(p, 400);
        heap.free_sized(q, 512);
        heap.free_sized(large, 513);
    }
    assert_eq!((heap.check(), heap.strays()), (Ok(()), 0));
    assert_eq!(heap.stats().bytes.allocated, 0);
}

/// A block that stays where it is keeps its class, which its size does not say any more; its pool does.
#[test]
fn shrunk_in_place() {
    let mut heap = heap(SMALL, 0);
    let p = heap.malloc(512);
    // SAFETY: live; of 512 bytes, then of 400, which is another class but stays.
    unsafe {
        let q = heap.realloc_sized(p, 512, 400);
        assert_eq!(q, p);
        heap.free_sized(q, 400);
    }
    assert_eq!((heap.check(), heap.strays()), (Ok(()), 0));
    // The block is back in its own class.
    assert_eq!(heap.malloc(512), p);
}

/// A block of the backing that shrinks stays with the backing, as in CPython.
#[test]
fn shrunk_in_the_backing() {
    let mut heap = heap(SMALL, 0);
    let pooled = heap.malloc(100);
    let p = heap.malloc(2000);
    // SAFETY: live, of the sizes that are told.
    unsafe {
        let p = heap.realloc_sized(p, 2000, 100);
        assert!(!heap.has(p) && heap.strays() == 1);
        // From one size with a class to another it is one stray still.
        let p = heap.realloc_sized(p, 100, 50);
        assert_eq!(heap.strays(), 1);
        pools_are_pools(&mut heap, &SIZES);
        heap.free_sized(pooled, 100);
        assert_eq!(heap.strays(), 1, "that was a pool's");
        // Grown, it is none any more.
        let p = heap.realloc_sized(p, 50, 513);
        assert_eq!(heap.strays(), 0);
        let p = heap.realloc_sized(p, 513, 512);
        heap.free_sized(p, 512);
    }
    assert_eq!((heap.check(), heap.strays()), (Ok(()), 0));
    assert_eq!(heap.stats().bytes.allocated, 0);
}

#[test]
fn grown_out_of_a_pool_and_back() {
    let mut heap = heap(SMALL, 0);
    let p = heap.malloc(300);
    // SAFETY: live, of the sizes that are told.
    unsafe {
        let p = heap.realloc_sized(p, 300, 600);
        assert_eq!(heap.strays(), 0);
        let p = heap.realloc_sized(p, 600, 300);
        assert_eq!(heap.strays(), 1);
        heap.free_sized(p, 300);
    }
    assert_eq!((heap.check(), heap.strays()), (Ok(()), 0));
}

/// Aligned to more than blocks are, a small block is the backing's, and told without its alignment once it is resized.
#[test]
fn aligned() {
    let mut heap = heap(SMALL, 0);
    let (p, q) = (heap.aligned(64, 100), heap.aligned(4096, 512));
    assert_eq!(heap.strays(), 2);
    pools_are_pools(&mut heap, &SIZES);
    // SAFETY: live, of the sizes that are told.
    unsafe {
        let p = heap.realloc_sized(p, 100, 80);
        assert_eq!(heap.strays(), 2);
        heap.free_sized(p, 80);
        heap.free_sized(q, 512);
    }
    assert_eq!((heap.check(), heap.strays()), (Ok(()), 0));
}

/// No arena is to be had, and the backing serves.
#[test]
fn without_an_arena() {
    let mut heap = heap(SMALL, 0);
    heap.os().maps.set(0);
    let (p, q) = (heap.malloc(64), heap.calloc(2, 32));
    assert!(!heap.has(p) && !heap.has(q) && heap.strays() == 2);
    // What is refused is no stray.
    heap.os().blocks.set(0);
    for refused in [heap.malloc(64), heap.calloc(2, 32), heap.aligned(64, 64)] {
        assert!(refused.is_null());
    }
    // SAFETY: live, of 64 bytes, and still so after the refusal.
    unsafe { assert!(heap.realloc_sized(p, 64, 32).is_null()) };
    assert_eq!(heap.strays(), 2);
    heap.os().blocks.set(usize::MAX);
    heap.os().maps.set(usize::MAX);
    pools_are_pools(&mut heap, &SIZES);
    // SAFETY: live, of 64 bytes.
    unsafe {
        heap.free_sized(q, 64);
        heap.free_sized(p, 64);
    }
    assert_eq!((heap.check(), heap.strays()), (Ok(()), 0));
}

/// Who does not tell sizes leaves more counted than there are, which costs time and nothing else.
#[test]
fn sizes_that_are_not_told() {
    let mut heap = heap(SMALL, 0);
    let p = heap.aligned(64, 100);
    // SAFETY: live.
    unsafe {
        let p = heap.realloc(p, 50);
        assert_eq!(heap.strays(), 2);
        heap.free(p);
    }
    assert_eq!(heap.strays(), 2);
    pools_are_pools(&mut heap, &SIZES);
    assert_eq!(heap.check(), Ok(()));
}
