//! What the comparison costs that 2.5 added to the address test, when arenas began to be released: 2.4's test against
//! 2.5's under the same policy, 2.4's, in instructions and in simulated mispredictions of malloc, of free and of realloc.
//!
//! The test starts itself under callgrind, in a process for each test, workload and function, and counts in that function
//! and what it calls alone. Counts, not times. `cargo test --release -p arena --test address_test -- --nocapture`.

// A heap that counts, or looks at everything twice, is not the one that is compared.
#![cfg(not(any(feature = "counters", feature = "hardened")))]

mod common;

use common::Arena;
use common::callgrind::{self, Counts};
use contract::{Arm, Heap};
use std::thread;

/// What the child plays: test and workload.
const PLAY: &str = "HEAPLAB_ARENA_ADDRESS_TEST";

/// Live blocks.
const LIVE: usize = 10_000;

/// Frees, or reallocs, and as many mallocs beside those that fill the heap.
const CALLS: usize = 60_000;

/// The words of the knob `test`, and what the functions are called there.
const TESTS: [(&str, &str); 2] = [
    ("header-2.4", "heaplab_arena_2_4_"),
    ("header", "heaplab_arena_2_4_asking_"),
];

/// Linear congruential numbers: the same everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        let Numbers(state) = self;
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % n
    }

    /// 1 to 512 bytes, each equally likely.
    fn size(&mut self) -> usize {
        1 + self.below(512)
    }
}

/// The child. Blocks are of 1 to 512 bytes. The workloads are: any block goes and one comes; the newest does; any block
/// becomes one of another size, which mostly moves; or shrinks by less than a quarter of its size class, which never does.
fn child(test: &str, workload: &str) {
    let knobs = [("test", test), ("aligned", "1")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let heap = Arena::open("arena-2.4", &knobs).expect("opens");
    let mut numbers = Numbers(1);
    let filling = |numbers: &mut Numbers| match workload {
        "in-place" => 512,
        _ => numbers.size(),
    };
    let mut live: Vec<(*mut u8, usize)> = (0..LIVE)
        .map(|_| filling(&mut numbers))
        .map(|size| (heap.malloc(size), size))
        .collect();
    for n in 0..CALLS {
        let slot = match workload {
            "stack" => LIVE - 1 - n % 2,
            _ => numbers.below(LIVE),
        };
        let (p, old) = live[slot];
        // SAFETY: live, of `old` bytes; replaced by what comes.
        live[slot] = unsafe {
            match workload {
                "random" | "stack" => {
                    let size = numbers.size();
                    heap.free(p);
                    (heap.malloc(size), size)
                }
                "moving" => {
                    let size = numbers.size();
                    (heap.realloc(p, old, size), size)
                }
                _ => {
                    let size = 385 + numbers.below(128);
                    (heap.realloc(p, old, size), size)
                }
            }
        };
        assert!(!live[slot].0.is_null());
    }
    assert_eq!(heap.stats().extra[1], ("arenas_reclaimed", 0));
}

/// What a call of `function` took more, on average, with 2.5's test.
fn more(workload: &str, function: &str) -> (f64, f64) {
    let [before, after]: [Counts; 2] = TESTS.map(|(test, prefix)| {
        let (play, inside) = (format!("{test} {workload}"), format!("{prefix}{function}"));
        callgrind::count("what_2_5_added", (PLAY, &play), Some(&inside))
    });
    let calls = match function {
        "malloc" => LIVE + CALLS,
        _ => CALLS,
    } as f64;
    assert!(before.instructions as f64 > 5.0 * calls, "{before:?}");
    let each = |before: u64, after: u64| (after as f64 - before as f64) / calls;
    let instructions = each(before.instructions, after.instructions);
    let mispredictions = each(before.mispredictions, after.mispredictions);
    println!(
        "{function}, {workload}: {:.3} and {:.3} instructions a call, {instructions:+.3}; {:.4} and {:.4} mispredictions, \
         {mispredictions:+.4}",
        before.instructions as f64 / calls,
        after.instructions as f64 / calls,
        before.mispredictions as f64 / calls,
        after.mispredictions as f64 / calls,
    );
    (instructions, mispredictions)
}

#[test]
fn what_2_5_added() {
    if let Ok(asked) = std::env::var(PLAY) {
        let (test, workload) = asked.split_once(' ').expect("test and workload");
        child(test, workload);
        return;
    }
    let asked = [
        ("random", "malloc"),
        ("random", "free"),
        ("stack", "malloc"),
        ("stack", "free"),
        ("moving", "realloc"),
        ("in-place", "realloc"),
    ];
    let found = thread::scope(|scope| {
        let counting =
            asked.map(|(workload, function)| scope.spawn(move || more(workload, function)));
        counting.map(|one| one.join().expect("counted"))
    });
    // A moving realloc asks once, and the free in it again.
    let tests_a_call = |workload, function| match (workload, function) {
        (_, "malloc") => 0.0,
        ("moving", _) => 2.0,
        _ => 1.0,
    };
    for ((workload, function), (instructions, mispredictions)) in asked.into_iter().zip(found) {
        let most = 3.0 * tests_a_call(workload, function);
        assert!(
            instructions <= most,
            "{function}, {workload}: {instructions} instructions more a call, expected {most} at most"
        );
        assert!(
            mispredictions.abs() <= 0.02,
            "{function}, {workload}: {mispredictions} mispredictions more a call"
        );
    }
}
