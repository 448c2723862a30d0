//! The operating system and the backing say no, at each place where they can: the answer is null, or a block from
//! whoever has one, and the heap is as it was.

mod common;

use arena::heap::Heap;
use arena::policy::{Settings, Tuned};
use common::{Staged, heap};

const SMALL: Settings = Settings {
    arena: 16 << 10,
    pool: 4096,
    ..Settings::PYTHON_3_10
};

#[test]
fn without_memory_for_the_root_there_is_no_heap() {
    let os = Staged::shifted(0);
    os.blocks.set(0);
    let policy = Tuned::new(SMALL).expect("they fit");
    assert!(Heap::new(os, policy).is_none());
}

#[test]
fn no_arena_and_no_backing_is_null() {
    let mut heap = heap(SMALL, 0);
    heap.os().maps.set(0);
    heap.os().blocks.set(0);
    for size in [0, 1, 512, 513] {
        assert!(heap.malloc(size).is_null());
        assert!(heap.calloc(1, size).is_null());
        assert!(heap.aligned(16, size).is_null());
        assert!(heap.aligned(64, size).is_null());
        assert_eq!(heap.check(), Ok(()));
    }
    assert_eq!(heap.stats().arenas.total, 0);
}

/// As CPython does: a small block that no arena can be had for is asked of the backing.
#[test]
fn without_an_arena_the_backing_serves() {
    let mut heap = heap(SMALL, 0);
    heap.os().maps.set(0);
    let p = heap.malloc(64);
    assert!(!p.is_null() && !heap.has(p));
    heap.os().maps.set(1);
    let q = heap.malloc(64);
    assert!(heap.has(q));
    // SAFETY: live blocks. What is the backing's is recognised as such.
    unsafe {
        heap.free(p);
        let q = heap.realloc(q, 500);
        assert!(heap.has(q));
        heap.free(q);
    }
    assert_eq!(heap.check(), Ok(()));
}

/// The first arena needs four things of the backing besides the mapping: the table, the map's root (had already), a
/// middle node and a leaf. Whichever is refused, nothing is lost, and the next attempt succeeds.
#[test]
fn each_step_on_the_way_to_an_arena_can_fail() {
    for granted in 0..3 {
        let mut heap = heap(SMALL, 0);
        heap.os().blocks.set(granted);
        assert!(heap.malloc(64).is_null(), "{granted} blocks granted");
        assert_eq!(heap.check(), Ok(()));
        assert_eq!(heap.stats().arenas.total, 0);
        let (made, unmade) = heap.os().mapped.get();
        assert_eq!(
            made, unmade,
            "a mapping that cannot be marked is given back"
        );
        heap.os().blocks.set(3);
        let p = heap.malloc(64);
        assert!(heap.has(p), "{granted} blocks granted first");
        assert_eq!(heap.check(), Ok(()));
    }
}

/// When all 16 records are taken the table grows; that it cannot is no loss either.
#[test]
fn a_table_that_cannot_grow() {
    let mut heap = heap(SMALL, 0);
    let mut blocks = Vec::new();
    while heap.stats().arenas.current < 16 || heap.arenas().table().usable().is_some() {
        blocks.push(heap.malloc(512));
    }
    let full: Vec<_> = blocks.clone();
    heap.os().blocks.set(0);
    // The last pool may have blocks left.
    while let Some(p) = Some(heap.malloc(512)).filter(|p| !p.is_null()) {
        blocks.push(p);
    }
    assert!(blocks.len() > full.len() && heap.check() == Ok(()));
    assert_eq!(heap.arenas().table().records().len(), 16);
    heap.os().blocks.set(usize::MAX);
    blocks.push(heap.malloc(512));
    assert!(blocks.last().is_some_and(|p| heap.has(*p)));
    assert_eq!(heap.arenas().table().records().len(), 32);
    for p in blocks {
        // SAFETY: live, once each.
        unsafe { heap.free(p) };
    }
    assert_eq!(heap.check(), Ok(()));
    assert_eq!(heap.stats().arenas.current, 1);
}

#[test]
fn a_realloc_that_is_refused_leaves_the_block() {
    let mut heap = heap(SMALL, 0);
    let p = heap.malloc(100);
    heap.os().blocks.set(0);
    // SAFETY: live, of 100 bytes, and still so after each refusal.
    unsafe {
        p.write_bytes(9, 100);
        assert!(heap.realloc(p, 1000).is_null());
        assert!(heap.realloc(p, 0).is_null());
        assert!((0..100).all(|i| p.add(i).read() == 9));
        heap.free(p);
    }
    assert_eq!(heap.check(), Ok(()));
}
