//! What can be reckoned beforehand comes out so.

mod common;

use arena::heap::Heap;
use arena::os::{Libc, Os};
use arena::policy::{Policy, Python310, Settings};
use common::{CHECK_EVERY, heap};

fn block<O: Os, P: Policy>(heap: &mut Heap<O, P>, size: usize) -> *mut u8 {
    let p = heap.malloc(size);
    assert!(!p.is_null(), "{size} bytes");
    p
}

fn free<O: Os, P: Policy>(heap: &mut Heap<O, P>, p: *mut u8) {
    // SAFETY: these tests free what is live, once.
    unsafe { heap.free(p) }
}

/// Total, reclaimed, highwater, current.
fn arenas<O: Os, P: Policy>(heap: &Heap<O, P>) -> [u64; 4] {
    let counts = heap.stats().arenas;
    [
        counts.total,
        counts.reclaimed,
        counts.highwater,
        counts.current,
    ]
}

fn keeping(keep: bool) -> Heap<Libc, Python310> {
    Heap::new(Libc::default(), Python310 { keep }).expect("memory")
}

#[test]
fn a_block_made_and_freed_on_an_empty_heap_a_thousand_times() {
    for (keep, expected) in [(true, [1, 0, 1, 1]), (false, [1000, 1000, 1, 0])] {
        let mut heap = keeping(keep);
        for round in 0..1000 {
            let p = block(&mut heap, 64);
            free(&mut heap, p);
            if round % CHECK_EVERY == 0 {
                assert_eq!(heap.check(), Ok(()));
            }
        }
        assert_eq!(arenas(&heap), expected, "keep {keep}");
    }
}

/// 16 KiB less 48 bytes hold 255 blocks of 64; an arena has 64 pools if it begins at a multiple of 16 KiB, else 63. So
/// 1,000,000 blocks are 3921 full pools and one of 145, 3922: 62 arenas of 64, or 63 arenas of 63.
#[test]
fn a_million_blocks_of_64_bytes() {
    for (shift, pools_each, expected) in [(0, 64u64, 62u64), (4096, 63, 63), (16 << 10, 64, 62)] {
        let mut heap = heap(Settings::default(), shift);
        let blocks: Vec<_> = (0..1_000_000).map(|_| block(&mut heap, 64)).collect();
        let pools = 1_000_000u64.div_ceil((16384 - 48) / 64);
        assert_eq!(pools, 3922);
        assert_eq!(expected, pools.div_ceil(pools_each));
        assert_eq!(arenas(&heap), [expected, 0, expected, expected]);
        let stats = heap.stats();
        let class = stats.classes[3];
        assert_eq!(
            (class.pools, class.used_blocks, class.free_blocks),
            (pools, 1_000_000, pools * 255 - 1_000_000)
        );
        assert_eq!(stats.bytes.allocated, 64_000_000);
        assert_eq!(stats.bytes.headers, pools * 48);
        assert_eq!(stats.bytes.quantization, pools * 16);
        assert_eq!(
            stats.bytes.alignment,
            if pools_each == 63 { expected << 14 } else { 0 }
        );
        assert_eq!(stats.bytes.total(), expected << 20);
        assert_eq!(heap.check(), Ok(()));

        for p in blocks {
            free(&mut heap, p);
        }
        assert_eq!(heap.check(), Ok(()));
        assert_eq!(arenas(&heap), [expected, expected - 1, expected, 1]);
        assert_eq!(
            heap.os().mapped.get(),
            (expected as usize, expected as usize - 1)
        );
    }
}

#[test]
fn nothing_is_mapped_before_it_is_needed_and_everything_is_given_back() {
    let mut heap = heap(Settings::default(), 4096);
    assert_eq!(heap.stats().arenas.current, 0);
    let large = block(&mut heap, 513);
    let none = block(&mut heap, 0);
    assert!(!heap.has(large) && !heap.has(none));
    assert_eq!(heap.os().mapped.get(), (0, 0));
    let small = block(&mut heap, 512);
    assert!(heap.has(small));
    assert_eq!(heap.os().mapped.get(), (1, 0));
    for p in [large, none, small] {
        free(&mut heap, p);
    }
    assert_eq!(heap.check(), Ok(()));
}

/// Block 0, block 1, then the virgin ones in order; what is freed comes back last in, first out.
#[test]
fn a_pool_is_carved_in_order() {
    for size in [1usize, 16, 64, 100, 512] {
        let step = size.div_ceil(16) * 16;
        let capacity = (16384 - 48) / step;
        let mut heap = heap(Settings::default(), 0);
        let first = block(&mut heap, size);
        assert_eq!(first.addr() % (1 << 20), 48, "the first pool's first block");
        let mut blocks = vec![first];
        for n in 1..capacity {
            let p = block(&mut heap, size);
            assert_eq!(p.addr(), first.addr() + n * step);
            blocks.push(p);
        }
        // The pool is full; the next one begins.
        let other = block(&mut heap, size);
        assert_eq!(other.addr(), first.addr() + (16 << 10));
        // Freeing into the full pool puts it at the front: its block comes back before the other pool goes on.
        free(&mut heap, blocks[2]);
        free(&mut heap, blocks[1]);
        assert_eq!(block(&mut heap, size), blocks[1]);
        assert_eq!(block(&mut heap, size), blocks[2]);
        assert_eq!(block(&mut heap, size).addr(), other.addr() + step);
        assert_eq!(heap.check(), Ok(()));
    }
}

/// The pool emptied last is taken first; the same class finds its old free list, another class begins anew.
#[test]
fn an_empty_pool_keeps_its_free_list_for_its_class() {
    let mut heap = heap(Settings::default(), 0);
    let [a, b, c] = [(); 3].map(|()| block(&mut heap, 64));
    for p in [b, a, c] {
        free(&mut heap, p);
    }
    assert_eq!(heap.stats().classes[3].pools, 0);
    // Last in, first out, over the emptiness: c, a, b, and then the virgin block.
    let again = [(); 4].map(|()| block(&mut heap, 64));
    assert_eq!(again[..3], [c, a, b]);
    assert_eq!(again[3].addr(), c.addr() + 64);
    assert_eq!(heap.check(), Ok(()));
    for p in again {
        free(&mut heap, p);
    }
    let other = block(&mut heap, 32);
    assert_eq!(other, a, "block 0");
    assert_eq!(block(&mut heap, 32).addr(), other.addr() + 32);
    assert_eq!(heap.check(), Ok(()));
}

/// Pools of the fullest arena are taken first, so that the emptiest can go.
#[test]
fn pools_are_taken_from_the_fullest_arena() {
    let mut heap = heap(Settings::default(), 0);
    let arena_of = |p: *mut u8| p.addr() >> 20;
    // Three arenas full of pools of 512 bytes, 31 a pool.
    let blocks: Vec<_> = (0..3 * 64 * 31).map(|_| block(&mut heap, 512)).collect();
    let pool = |n: usize| &blocks[31 * n..31 * (n + 1)];
    assert_eq!(arenas(&heap), [3, 0, 3, 3]);
    // Of the first three pools become free, of the second one, of the third two: second, third, first.
    for n in [0, 1, 2, 64, 128, 129] {
        for p in pool(n) {
            free(&mut heap, *p);
        }
    }
    assert_eq!(heap.check(), Ok(()));
    let order: Vec<usize> = (0..6)
        .map(|_| {
            let p = block(&mut heap, 512);
            for _ in 1..31 {
                block(&mut heap, 512);
            }
            arena_of(p)
        })
        .collect();
    let [first, second, third] = [0, 64, 128].map(|n| arena_of(pool(n)[0]));
    assert_eq!(order, [second, third, third, first, first, first]);
    assert_eq!(arenas(&heap), [3, 0, 3, 3]);
    assert_eq!(heap.check(), Ok(()));
}

/// An arena that becomes empty goes if another usable one stands behind it, and stays if it is the last.
#[test]
fn the_last_usable_arena_is_kept() {
    let numbers = |keep| Settings {
        keep,
        ..Settings::default()
    };
    for (keep, after_one, after_two) in [
        (1, [2, 0, 2, 2], [2, 1, 2, 1]),
        (0, [2, 1, 2, 1], [2, 2, 2, 0]),
    ] {
        let mut heap = heap(numbers(keep), 0);
        let blocks: Vec<_> = (0..2 * 64 * 31).map(|_| block(&mut heap, 512)).collect();
        let (one, two) = blocks.split_at(64 * 31);
        for p in one {
            free(&mut heap, *p);
        }
        assert_eq!(arenas(&heap), after_one, "keep {keep}: the other is full");
        for p in two {
            free(&mut heap, *p);
        }
        assert_eq!(arenas(&heap), after_two, "keep {keep}");
        assert_eq!(heap.check(), Ok(()));
    }
}

/// A block at the boundary of an arena, made and freed.
#[test]
fn thrash_at_the_boundary() {
    for (keep, total) in [(1, 2), (0, 101)] {
        let mut heap = heap(
            Settings {
                keep,
                ..Settings::default()
            },
            0,
        );
        for _ in 0..64 * 31 {
            block(&mut heap, 512);
        }
        for _ in 0..100 {
            let p = block(&mut heap, 512);
            free(&mut heap, p);
        }
        let counts = heap.stats().arenas;
        assert_eq!((counts.total, counts.highwater), (total, 2), "keep {keep}");
        assert_eq!(heap.check(), Ok(()));
    }
}

#[test]
fn every_size_there_and_back() {
    for threshold in [256, 512] {
        let mut heap = heap(
            Settings {
                threshold,
                ..Settings::default()
            },
            4096,
        );
        for size in 0..=600 {
            let small = (1..=threshold).contains(&size);
            let before = heap.stats().bytes.allocated;
            let p = block(&mut heap, size);
            assert_eq!(heap.has(p), small, "{size}");
            assert_eq!(p.addr() % 16, 0);
            let taken = if small { size.div_ceil(16) * 16 } else { 0 };
            assert_eq!(heap.stats().bytes.allocated - before, taken as u64);
            // SAFETY: live, of `size` bytes; then of what it is said to hold.
            unsafe {
                p.write_bytes(0xA5, size);
                let usable = heap.usable(p);
                assert!(usable >= size && (!small || usable == taken));
                p.write_bytes(0x5A, usable);
            }
            let q = heap.calloc(1, size);
            // SAFETY: live, of `size` bytes.
            assert!((0..size).all(|i| unsafe { q.add(i).read() } == 0));
            free(&mut heap, q);
            free(&mut heap, p);
            assert_eq!(heap.stats().bytes.allocated, before);
            assert_eq!(heap.check(), Ok(()));
        }
    }
}

/// In place exactly if `new <= block size` and `4 * new > 3 * block size`; across the threshold never, beyond it at the
/// backing's discretion.
#[test]
fn the_realloc_rule() {
    let mut heap = heap(Settings::default(), 0);
    for old in 1..=512usize {
        let size = old.div_ceil(16) * 16;
        for new in (0..=530).chain([4096]) {
            let p = block(&mut heap, old);
            // SAFETY: live, of `old`, then of `new` bytes.
            unsafe {
                for i in 0..old {
                    p.add(i).write((i ^ old) as u8);
                }
                let q = heap.realloc(p, new);
                assert!(!q.is_null());
                let stays = new <= size && 4 * new > 3 * size;
                assert_eq!(q == p, stays, "from {old} to {new}");
                assert_eq!(heap.has(q), (1..=512).contains(&new));
                for i in 0..old.min(new) {
                    assert_eq!(q.add(i).read(), (i ^ old) as u8, "from {old} to {new}");
                }
                heap.free(q);
            }
        }
        assert_eq!(heap.check(), Ok(()));
    }
    // What is the backing's stays the backing's, however small it becomes.
    let p = block(&mut heap, 1000);
    // SAFETY: live, of 1000 bytes.
    unsafe {
        p.write_bytes(7, 1000);
        let q = heap.realloc(p, 10);
        assert!(!heap.has(q));
        assert!((0..10).all(|i| q.add(i).read() == 7));
        heap.free(q);
        let fresh = heap.realloc(std::ptr::null_mut(), 10);
        assert!(heap.has(fresh));
        heap.free(fresh);
        heap.free(std::ptr::null_mut());
    }
    assert_eq!(heap.stats().bytes.allocated, 0);
}

/// 16 records, then twice as many each time; the records keep their arenas.
#[test]
fn the_table_doubles_from_16() {
    let mut heap = heap(
        Settings {
            arena: 16 << 10,
            pool: 4096,
            ..Settings::default()
        },
        0,
    );
    let records = |heap: &Heap<_, _>| heap.arenas().table().records().len();
    let mut lengths = vec![records(&heap)];
    let mut blocks = Vec::new();
    while heap.stats().arenas.current < 70 {
        blocks.push(block(&mut heap, 512));
        if Some(&records(&heap)) != lengths.last() {
            lengths.push(records(&heap));
            assert_eq!(heap.check(), Ok(()));
        }
    }
    assert_eq!(lengths, [0, 16, 32, 64, 128]);
    for p in blocks {
        free(&mut heap, p);
    }
    assert_eq!(heap.check(), Ok(()));
    assert_eq!(heap.stats().arenas.current, 1);
}

/// A middle node and a leaf are there with the first arena; all arenas near each other share them.
#[test]
fn the_map_has_few_nodes() {
    let mut heap = heap(Settings::default(), 0);
    assert_eq!(heap.stats().map.map(|map| map.bytes()), Some(256 << 10));
    block(&mut heap, 1);
    let map = heap.stats().map.expect("a map");
    assert_eq!((map.middle_nodes, map.leaves), (1, 1));
    assert_eq!(map.bytes(), (256 + 256 + 128) << 10);
}
