//! The workload `pairs` does what its description says: how many calls, of which sizes, freed in which order.
//!
//! A driver's mode writes down every block that is made and freed, over a heap that never gives a place out twice, so
//! that an address names a block.

use contract::{Capabilities, Driver, Heap, Mode, Place, Receipt, SelfStats};
use heaplab::child::session::Session;
use heaplab::trial::Params;
use heaplab::workloads;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

/// Hands out the bytes of one buffer, each once.
struct Once {
    bytes: Vec<Cell<u8>>,
    used: Cell<usize>,
}

impl Once {
    fn new(bytes: usize) -> Once {
        Once {
            bytes: vec![Cell::new(0); bytes],
            used: Cell::new(0),
        }
    }
}

// SAFETY: blocks are disjoint parts of a buffer that lives as long as the heap, and none is given out twice.
unsafe impl Heap for Once {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: false,
        sized: false,
        usable: false,
        trim: false,
        contents: true,
    };

    fn malloc(&self, size: usize) -> *mut u8 {
        let from = self.used.get();
        match self.bytes.get(from..from + size) {
            Some(block) => {
                self.used.set(from + size);
                block.as_ptr().cast_mut().cast()
            }
            None => std::ptr::null_mut(),
        }
    }
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        self.malloc(count * size)
    }
    unsafe fn realloc(&self, _p: *mut u8, _old: usize, _new: usize) -> *mut u8 {
        std::ptr::null_mut()
    }
    unsafe fn free(&self, _p: *mut u8) {}
    fn aligned(&self, _align: usize, _size: usize) -> *mut u8 {
        std::ptr::null_mut()
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
        Receipt::default()
    }
}

/// What happened to the block with that number, counted from 0 in the order of making.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Made(usize),
    Freed(usize),
}
use Event::{Freed, Made};

#[derive(Debug, Default)]
struct Log {
    events: Vec<Event>,
    sizes: Vec<usize>,
    numbers: HashMap<usize, usize>,
    touched: usize,
}

impl Mode for Log {
    fn allocated(&mut self, at: &Place, size: usize) {
        let number = self.sizes.len();
        assert_eq!(self.numbers.insert(at.address(), number), None);
        self.sizes.push(size);
        self.events.push(Made(number));
    }
    fn wrote(&mut self, at: &Place, offset: usize, len: usize) {
        let newest = self.sizes.len() - 1;
        assert_eq!((self.numbers[&at.address()], offset, len), (newest, 0, 1));
        self.touched += 1;
    }
    fn freeing(&mut self, at: &Place, size: usize) {
        let number = self.numbers[&at.address()];
        assert_eq!(self.sizes[number], size);
        self.events.push(Freed(number));
    }
}

const LIVE: usize = 300;
const PAIRS: usize = 5000;
const BATCH: usize = 450;

/// What the workload does in that shape: the events of the measured region, and the whole log.
fn driven(shape: &str, seed: u64) -> (Vec<Event>, Log) {
    let given: Params = [
        ("shape", shape),
        ("live", "300"),
        ("pairs", "5k"),
        ("batch", "450"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    let params = workloads::find("pairs")
        .and_then(|workload| workload.resolve(&given))
        .expect("good parameters");
    let heap = Once::new((LIVE + PAIRS) * 512);
    // SAFETY: the only driver of this heap.
    let mut driver = unsafe { Driver::new(&heap, Log::default()) };
    let mut session = Session::new(60_000, None, true, false, None);
    workloads::run("pairs", &params, seed, &mut driver, &mut session).expect("it ends well");
    assert_eq!(session.found.ops, PAIRS as u64);
    assert_eq!(session.found.contents_hash, session.found.input_hash);
    let log = driver.into_mode();
    assert_eq!(log.sizes.len(), LIVE + PAIRS);
    assert_eq!(log.touched, LIVE + PAIRS);
    assert_eq!(log.events.len(), 2 * (LIVE + PAIRS));
    // The live blocks are made first, and what is live is freed last.
    let filled: Vec<Event> = (0..LIVE).map(Made).collect();
    assert_eq!(log.events[..LIVE], filled);
    let (churn, rest) = log.events[LIVE..].split_at(2 * PAIRS);
    assert!(rest.iter().all(|event| matches!(event, Freed(_))));
    (churn.to_vec(), log)
}

/// The numbers of the blocks that are freed, in order.
fn freed(events: &[Event]) -> Vec<usize> {
    let number = |event: &Event| match event {
        Freed(number) => Some(*number),
        Made(_) => None,
    };
    events.iter().filter_map(number).collect()
}

#[test]
fn random_frees_one_of_the_live_ones_and_refills() {
    let (events, _) = driven("random", 1);
    let mut live: Vec<usize> = (0..LIVE).collect();
    let mut of_slot = vec![0; LIVE];
    for (i, pair) in events.chunks(2).enumerate() {
        let [Freed(old), Made(new)] = pair else {
            panic!("{pair:?}");
        };
        assert_eq!(*new, LIVE + i);
        let slot = live.iter().position(|number| number == old);
        let slot = slot.expect("a live one");
        live[slot] = *new;
        of_slot[slot] += 1;
    }
    // 5000 draws of 300 slots: 299 degrees of freedom, and 380 is passed once in a thousand times.
    assert!(chi_square(&of_slot, PAIRS) < 380.0);
}

#[test]
fn fifo_frees_the_oldest() {
    let (events, _) = driven("fifo", 1);
    let expected: Vec<Event> = (0..PAIRS)
        .flat_map(|i| [Freed(i), Made(LIVE + i)])
        .collect();
    assert_eq!(events, expected);
}

#[test]
fn stack_frees_the_newest_in_runs_and_keeps_to_its_depth() {
    let (events, _) = driven("stack", 1);
    let mut on_top = Vec::new();
    let mut deepest = 0;
    for event in &events {
        match event {
            Made(number) => on_top.push(*number),
            Freed(number) => assert_eq!(on_top.pop(), Some(*number), "the newest on top"),
        }
        deepest = deepest.max(on_top.len());
    }
    assert!(on_top.is_empty());
    assert!((64..=BATCH).contains(&deepest), "{deepest}");
    let runs = events.chunk_by(|a, b| matches!((a, b), (Made(_), Made(_)) | (Freed(_), Freed(_))));
    let mut lengths: Vec<usize> = runs.map(<[Event]>::len).collect();
    // At the end everything is popped.
    lengths.pop();
    assert!(lengths.iter().all(|length| (1..=64).contains(length)));
    let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
    assert!((20.0..=40.0).contains(&mean), "{mean} a run");
}

/// Whether each of `counts` lies within 5 standard deviations of n p, all being equally likely.
fn alike(what: &str, counts: &[usize]) {
    let n = counts.iter().sum::<usize>() as f64;
    let p = 1.0 / counts.len() as f64;
    let (mean, deviation) = (n * p, (n * p * (1.0 - p)).sqrt());
    assert!(mean > 20.0, "{what}: {n} draws are too few");
    for (i, count) in counts.iter().enumerate() {
        let far = (*count as f64 - mean).abs();
        assert!(
            far < 5.0 * deviation,
            "{what} {i}: {count}, not {mean:.0} +- {deviation:.0}"
        );
    }
}

#[test]
fn every_length_of_a_run_is_equally_likely() {
    const LONGEST: usize = 64;
    let (mut pushed, mut popped) = ([0; LONGEST], [0; LONGEST]);
    for seed in 1..=60 {
        let (events, _) = driven("stack", seed);
        let (mut depth, mut left) = (0, PAIRS);
        for run in
            events.chunk_by(|a, b| matches!((a, b), (Made(_), Made(_)) | (Freed(_), Freed(_))))
        {
            let length = run.len();
            match run[0] {
                // Cut short only where there may be no room, or no pairs.
                Made(_) => {
                    if BATCH - depth >= LONGEST && left >= LONGEST {
                        pushed[length - 1] += 1;
                    }
                    depth += length;
                    left -= length;
                }
                // The last run pops whatever is left.
                Freed(_) => {
                    if depth >= LONGEST && left > 0 {
                        popped[length - 1] += 1;
                    }
                    depth -= length;
                }
            }
        }
    }
    alike("pushes", &pushed);
    alike("pops", &popped);
}

#[test]
fn every_place_of_a_batch_is_equally_likely_to_go_first() {
    let mut tenths = [0; 10];
    for seed in 1..=40 {
        let (events, _) = driven("batch-random", seed);
        for batch in 0..PAIRS / BATCH {
            let [first, freed] = [0, BATCH].map(|at| events[2 * batch * BATCH + at]);
            let (Made(first), Freed(freed)) = (first, freed) else {
                panic!("{first:?} {freed:?}");
            };
            tenths[(freed - first) * 10 / BATCH] += 1;
        }
    }
    alike("tenth", &tenths);
}

#[test]
fn a_batch_is_freed_in_its_order() {
    let batches: Vec<Vec<usize>> = (LIVE..LIVE + PAIRS)
        .collect::<Vec<_>>()
        .chunks(BATCH)
        .map(<[usize]>::to_vec)
        .collect();
    assert_eq!(batches.last().map(Vec::len), Some(PAIRS % BATCH));
    for shape in ["batch-lifo", "batch-fifo", "batch-random"] {
        let (mut events, _) = driven(shape, 1);
        let mut orders = Vec::new();
        for batch in &batches {
            let rest = events.split_off(2 * batch.len());
            let made: Vec<Event> = batch.iter().copied().map(Made).collect();
            assert_eq!(events[..batch.len()], made, "{shape}");
            let mut order = freed(&events[batch.len()..]);
            events = rest;
            match shape {
                "batch-lifo" => order.reverse(),
                "batch-random" => {
                    orders.push(order.iter().map(|number| number - batch[0]).collect());
                    assert!(!order.is_sorted());
                    order.sort_unstable();
                }
                _ => {}
            }
            assert_eq!(order, *batch, "{shape}");
        }
        let different: std::collections::BTreeSet<Vec<usize>> = orders.iter().cloned().collect();
        assert_eq!(
            different.len(),
            orders.len(),
            "each batch has its own order"
        );
    }
}

/// How far `counts` lie from being all alike.
fn chi_square(counts: &[usize], draws: usize) -> f64 {
    let expected = draws as f64 / counts.len() as f64;
    let square = |count: &usize| (*count as f64 - expected).powi(2) / expected;
    counts.iter().map(square).sum()
}

#[test]
fn every_size_is_equally_likely_and_the_same_in_every_shape() {
    let mut counts = vec![0; 512];
    for seed in 1..=20 {
        let (_, log) = driven("random", seed);
        for size in &log.sizes {
            counts[size - 1] += 1;
        }
    }
    // 511 degrees of freedom: 614 is passed once in a thousand times, and these seeds are what they are.
    let far = chi_square(&counts, 20 * (LIVE + PAIRS));
    assert!(far < 614.0, "{far}");
    let shapes = [
        "random",
        "fifo",
        "stack",
        "batch-lifo",
        "batch-fifo",
        "batch-random",
    ];
    let mut sizes: BTreeMap<Vec<usize>, &str> = BTreeMap::new();
    for shape in shapes {
        sizes.insert(driven(shape, 1).1.sizes, shape);
    }
    assert_eq!(sizes.len(), 1, "{:?}", sizes.values());
    assert_ne!(driven("fifo", 1).1.sizes, driven("fifo", 2).1.sizes);
}
