//! What each generation's change was for, in counts of work.

mod common;

use arena::heap::Heap;
use arena::os::Os;
use arena::policy::{
    OrderKind, Policy, Python24, Python25, Python38, Python39, Python310, Settings, TestKind, Tuned,
};
use arena::work::{Counts, Work};
use common::Staged;

fn heap<P: Policy>(policy: P) -> Heap<Staged, P> {
    Heap::new(Staged::shifted(0), policy).expect("memory")
}

fn block<O: Os, P: Policy>(heap: &mut Heap<O, P>, size: usize) -> *mut u8 {
    let p = heap.malloc(size);
    assert!(!p.is_null());
    p
}

fn free<O: Os, P: Policy>(heap: &mut Heap<O, P>, p: *mut u8) {
    // SAFETY: these tests free what is live, once.
    unsafe { heap.free(p) }
}

/// Blocks of 512 bytes in a pool.
fn per_pool<P: Policy>(heap: &Heap<Staged, P>) -> usize {
    (heap.policy().pool_size() - 48) / 512
}

/// Blocks of 512 bytes in an arena.
fn per_arena<P: Policy>(heap: &Heap<Staged, P>) -> usize {
    heap.policy().arena_size() / heap.policy().pool_size() * per_pool(heap)
}

/// One block made and freed 1000 times on an empty heap: arenas got from the operating system.
#[test]
fn one_block_on_an_empty_heap_costs_an_arena_a_round_before_3_9() {
    fn arenas<P: Policy>(policy: P) -> usize {
        let mut heap = heap(policy);
        for _ in 0..1000 {
            let p = block(&mut heap, 64);
            free(&mut heap, p);
        }
        heap.os().mapped.get().0
    }
    assert_eq!(arenas(Python25), 1000);
    assert_eq!(arenas(Python38), 1000);
    assert_eq!(arenas(Python310 { keep: false }), 1000);
    assert_eq!(arenas(Python39), 1);
    assert_eq!(arenas(Python310::default()), 1);
    // It never gives one back, so it need not get one again.
    assert_eq!(arenas(Python24), 1);
}

/// A block pushed and popped at the edge of an arena: system calls in 1000 rounds, after a first one.
#[test]
fn the_edge_of_an_arena_needs_no_system_call_from_3_9_on() {
    fn calls<P: Policy>(policy: P) -> usize {
        let mut heap = heap(policy);
        for _ in 0..3 * per_arena(&heap) {
            block(&mut heap, 512);
        }
        let p = block(&mut heap, 512);
        free(&mut heap, p);
        let (made, unmade) = heap.os().mapped.get();
        for _ in 0..1000 {
            let p = block(&mut heap, 512);
            free(&mut heap, p);
        }
        let (made_then, unmade_then) = heap.os().mapped.get();
        (made_then - made) + (unmade_then - unmade)
    }
    assert_eq!(calls(Python25), 2000);
    assert_eq!(calls(Python38), 2000);
    assert_eq!(calls(Python39), 0);
    assert_eq!(calls(Python310::default()), 0);
    assert_eq!(calls(Python24), 0);
}

/// Steps along the list of arenas when a pool is given back, in hundredths, where it is worst: all arenas have equally
/// many free pools, and a pool of the first becomes free.
fn steps<P: Policy>(policy: P, arenas: usize) -> u64 {
    let mut heap = heap(policy);
    let pool = per_pool(&heap);
    let of_arena = per_arena(&heap);
    let blocks: Vec<_> = (0..arenas * of_arena)
        .map(|_| block(&mut heap, 512))
        .collect();
    assert_eq!(heap.stats().arenas.current, arenas as u64);
    let empty_pool = |heap: &mut Heap<_, _>, arena: usize, number: usize| {
        let first = arena * of_arena + number * pool;
        for p in &blocks[first..first + pool] {
            free(heap, *p);
        }
    };
    // The last to get its first free pool stands first.
    for arena in 0..arenas {
        empty_pool(&mut heap, arena, 0);
    }
    let before = Counts::now();
    for number in 1..4 {
        for arena in 0..arenas {
            // Those that have slid stand in the order of their sliding.
            let arena = if number % 2 == 1 {
                arenas - 1 - arena
            } else {
                arena
            };
            empty_pool(&mut heap, arena, number);
        }
    }
    let done = before.since();
    assert_eq!(heap.check(), Ok(()));
    assert_eq!(done.of(Work::PoolsGivenBack), 3 * arenas as u64);
    100 * done.of(Work::ListSteps) / done.of(Work::PoolsGivenBack)
}

#[test]
fn steps_grow_with_arenas_in_2_5_and_are_constant_in_3_8() {
    /// Small arenas, so that there can be thousands.
    fn small(order: OrderKind) -> Tuned {
        Tuned::new(Settings {
            arena: 32 << 10,
            pool: 4096,
            order,
            ..Settings::PYTHON_3_8
        })
        .expect("they fit")
    }
    let all = [500, 1000, 2000, 4000];
    let searched = all.map(|arenas| steps(small(OrderKind::Slide), arenas));
    let constant = all.map(|arenas| steps(small(OrderKind::Constant), arenas));
    println!("steps in hundredths, {all:?} arenas: searched {searched:?}, constant {constant:?}");
    for (arenas, steps) in all.iter().zip(searched) {
        // A third of them at least.
        assert!(steps >= 100 * *arenas as u64 / 3, "{arenas}: {steps}");
    }
    for pair in searched.windows(2) {
        assert!(pair[1] * 10 >= pair[0] * 19, "twice the arenas: {pair:?}");
    }
    for steps in constant {
        assert!(steps <= 100, "{constant:?}");
    }
    // In CPython's own geometry it is the same.
    assert!(steps(Python25, 200) >= 100 * 200 / 3);
    assert!(steps(Python38, 200) <= 100);
}

/// What a test of one address looks at, in loads: the header's word and the record's, or three nodes, or, without either,
/// every record up to the arena.
#[test]
fn address_tests_look_at_few_words_or_at_all_arenas() {
    fn probes(test: TestKind, arenas: usize) -> [u64; 3] {
        let mut heap = heap(
            Tuned::new(Settings {
                test,
                ..Settings::PYTHON_3_9
            })
            .expect("they fit"),
        );
        let blocks: Vec<_> = (0..arenas * per_arena(&heap))
            .map(|_| block(&mut heap, 512))
            .collect();
        let foreign = block(&mut heap, 1000);
        [blocks[0], blocks[blocks.len() - 1], foreign].map(|p| {
            let before = Counts::now();
            free(&mut heap, p);
            before.since().of(Work::AddressProbes)
        })
    }
    for arenas in [1, 100, 400] {
        let [first, last, _] = probes(TestKind::Header, arenas);
        assert_eq!([first, last], [2, 2]);
        let [first, last, _] = probes(TestKind::Radix, arenas);
        assert_eq!([first, last], [3, 3]);
        let [first, last, foreign] = probes(TestKind::Walk, arenas);
        assert_eq!([first, last], [1, arenas as u64]);
        assert!(foreign >= arenas as u64);
    }
}

/// A pool is linked and unlinked when it changes from full to used and back, and then alone.
#[test]
fn a_block_of_a_full_pool_costs_a_link_and_an_unlink() {
    let mut heap = heap(Python310::default());
    let blocks: Vec<_> = (0..per_pool(&heap))
        .map(|_| block(&mut heap, 512))
        .collect();
    let round = |heap: &mut Heap<_, _>, at: *mut u8| {
        let before = Counts::now();
        free(heap, at);
        assert_eq!(block(heap, 512), at);
        let done = before.since();
        (done.of(Work::PoolLinks), done.of(Work::PoolUnlinks))
    };
    assert_eq!(round(&mut heap, blocks[3]), (1, 1), "the pool was full");
    free(&mut heap, blocks[7]);
    assert_eq!(round(&mut heap, blocks[3]), (0, 0), "the pool was used");
}
