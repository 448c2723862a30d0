//! Instructions a pair of malloc and free takes, ours against CPython's file, under callgrind.
//!
//! The test starts itself under valgrind, in a process for each heap, workload and length: the difference of two lengths
//! is what the pairs took, and the same loop over no heap at all is taken off. Counts, not times. The figures are printed:
//! `cargo test --release -p arena --test instructions -- --nocapture`.

// A heap that counts, or looks at everything twice, is not the one that is compared.
#![cfg(not(any(feature = "counters", feature = "hardened")))]

#[path = "../../obmalloc/tests/common/mod.rs"]
mod c_file;
mod common;

use common::{Arena, SizedArena, callgrind};
use contract::{Arm, Heap, opaque};
use obmalloc::{AsIs, Classic, Eager};
use std::thread;

/// What the child plays: heap, workload, rounds.
const PLAY: &str = "HEAPLAB_ARENA_PLAY";

/// Live blocks.
const LIVE: usize = 10_000;

/// Pairs that are counted.
const PAIRS: usize = 60_000;

/// What pairs may take whose frees are told the size, as a share of what the file's take.
const SIZED_AT_MOST: f64 = 0.9;

/// The oldest block goes, the newest, any, or all of them.
const WORKLOADS: [&str; 4] = ["random", "fifo", "stack", "batch"];

/// A step of a stream that is made before anything is counted: a slot, and a size for what comes into it.
type Step = (u32, u32);

/// Linear congruential numbers: the same everywhere.
fn numbers() -> impl Iterator<Item = u64> {
    let mut state = 1u64;
    std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    })
}

/// Sizes are uniform over 1 to 512 bytes; which block is next is the workload.
fn steps(workload: &str, pairs: usize) -> Vec<Step> {
    let mut numbers = numbers();
    let mut next = || numbers.next().unwrap_or(0);
    (0..pairs)
        .map(|n| {
            let slot = match workload {
                "random" => next() as usize % LIVE,
                "fifo" => n % LIVE,
                "stack" => LIVE - 1 - n % 2,
                _ => n % LIVE,
            };
            (slot as u32, 1 + (next() % 512) as u32)
        })
        .collect()
}

/// Frees and allocates. `batch` frees all, then allocates all. `B` is what is kept of a block.
#[inline(never)]
fn play<H, B: Copy>(
    heap: &H,
    steps: &[Step],
    batch: bool,
    malloc: impl Fn(&H, usize) -> B,
    free: impl Fn(&H, B),
) {
    let mut live: Vec<B> = (0..LIVE).map(|n| malloc(heap, 1 + n * 7 % 512)).collect();
    let run = if batch { LIVE } else { 1 };
    for chunk in steps.chunks(run) {
        for (slot, _) in chunk {
            free(heap, live[*slot as usize]);
        }
        for (slot, size) in chunk {
            live[*slot as usize] = malloc(heap, *size as usize);
        }
    }
    // So that what is in it is needed.
    let _ = opaque(live.as_mut_ptr().cast());
}

fn of_heap<H: Heap>(heap: H, steps: &[Step], batch: bool) {
    // SAFETY: the steps free what is live, once.
    play(
        &heap,
        steps,
        batch,
        |h, size| h.malloc(size),
        |h, p| unsafe { h.free(p) },
    );
}

/// The same, each block's size kept beside it and told.
fn of_sized_heap<H: Heap>(heap: H, steps: &[Step], batch: bool) {
    const { assert!(H::SIZED_FREE) };
    // SAFETY: the steps free what is live, once, with its size.
    play(
        &heap,
        steps,
        batch,
        |h, size| (h.malloc(size), size),
        |h, (p, size)| unsafe { h.free_sized(p, size, 1) },
    );
}

/// The child: plays, and nothing else. `None` if that heap is not here.
fn child(heap: &str, workload: &str, pairs: usize) -> Option<()> {
    let steps = steps(workload, pairs);
    let batch = workload == "batch";
    let c = &[("aligned", "1")];
    let aligned = [("aligned".to_owned(), "1".to_owned())];
    let nothing = || opaque(std::ptr::null_mut());
    match heap {
        "none" => play(
            &(),
            &steps,
            batch,
            |(), _| nothing(),
            |(), p: *mut u8| {
                let _ = opaque(p.cast());
            },
        ),
        "none+sized" => play(
            &(),
            &steps,
            batch,
            |(), size| (nothing(), size),
            |(), (p, size)| {
                let _ = (opaque(p.cast()), std::hint::black_box(size));
            },
        ),
        "obmalloc" => of_heap(c_file::open::<AsIs>(c)?, &steps, batch),
        "obmalloc-classic" => of_heap(c_file::open::<Classic>(c)?, &steps, batch),
        "obmalloc-eager" => of_heap(c_file::open::<Eager>(c)?, &steps, batch),
        arm if arm.ends_with("+sized") => {
            of_sized_heap(
                SizedArena::open(arm, &aligned).expect("opens"),
                &steps,
                batch,
            );
        }
        arm => of_heap(Arena::open(arm, &aligned).expect("opens"), &steps, batch),
    }
    Some(())
}

/// Instructions that the child takes in all.
fn count(heap: &str, workload: &str, pairs: usize) -> u64 {
    let play = format!("{heap} {workload} {pairs}");
    callgrind::count("instructions_a_pair", (PLAY, &play), None).instructions
}

#[test]
fn instructions_a_pair() {
    if let Ok(asked) = std::env::var(PLAY) {
        let mut words = asked.split(' ');
        let mut word = || words.next().expect("heap, workload, pairs");
        let (heap, workload) = (word(), word());
        child(heap, workload, word().parse().expect("a number"));
        return;
    }
    if c_file::open::<AsIs>(&[]).is_none() {
        return;
    }
    // Nothing but filling is the same whatever comes then.
    let pairs = |heap: &str| {
        let filling = count(heap, WORKLOADS[0], 0);
        WORKLOADS.map(|workload| (count(heap, workload, PAIRS) - filling) as f64 / PAIRS as f64)
    };
    let heaps = [
        "none",
        "none+sized",
        "obmalloc",
        "arena-3.10",
        "arena-3.10+sized",
        "obmalloc-classic",
        "arena-3.9",
        "arena-3.9+sized",
        "obmalloc-eager",
        "arena-2.5",
        "arena-2.5+sized",
    ];
    let found = thread::scope(|scope| {
        let counting = heaps.map(|heap| scope.spawn(move || pairs(heap)));
        counting.map(|one| one.join().expect("counted"))
    });
    // What the loop alone takes, without sizes and with them.
    let [plain, sized] = [found[0], found[1]];
    let mut over = Vec::new();
    for (names, counts) in heaps[2..].chunks(3).zip(found[2..].chunks(3)) {
        for (n, workload) in WORKLOADS.iter().enumerate() {
            let c = counts[0][n] - plain[n];
            for (place, most, alone) in [(1, 1.0, plain), (2, SIZED_AT_MOST, sized)] {
                let own = counts[place][n] - alone[n];
                let line = format!(
                    "{} {workload}: {own:.1} instructions a pair, the file {c:.1}: {:.3}, at most {most}",
                    names[place],
                    own / c
                );
                println!("{line}");
                if own > most * c {
                    over.push(line);
                }
            }
        }
    }
    assert!(over.is_empty(), "{over:#?}");
}
