//! A stream as bytes, so that a fuzzer can change it and a file can keep it: a policy and a placement in the first five,
//! then four for each step. Any bytes are a stream. What they mean must stay as it is, or the files that are kept are no
//! longer the cases that they were kept for.

use super::stream::{self, Step};
use arena::policy::{
    KEEP_ALL, OrderKind, Python24, Python25, Python38, Python39, Python310, Settings, TestKind,
    Tuned,
};

/// Bytes before the first step.
const HEAD: usize = 5;

/// Bytes of a step.
const STEP: usize = 4;

/// The most bytes that are read: 250 steps.
const LONGEST: usize = HEAD + 250 * STEP;

/// Inside of a step the checker walks the heap after so many operations; after each one, most of the time would be its.
const CHECK_EVERY: usize = 8;

/// A generation with constants of the code, or settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Python24,
    Python25,
    Python38,
    Python39,
    Python310,
    Keep0,
    Tuned(Settings),
}

/// A policy, where its arenas begin, and what is done.
#[derive(Debug, PartialEq, Eq)]
pub struct Case {
    pub which: Which,
    pub shift: usize,
    pub steps: Vec<Step>,
}

/// Arena and pool sizes. Most arenas are small, so that they come and go within a few steps.
const GEOMETRIES: [(usize, usize); 6] = [
    (16 << 10, 4096),
    (32 << 10, 4096),
    (64 << 10, 4096),
    (64 << 10, 16 << 10),
    (256 << 10, 4096),
    (1 << 20, 16 << 10),
];

pub const ORDERS: [OrderKind; 4] = [
    OrderKind::Constant,
    OrderKind::Slide,
    OrderKind::Global,
    OrderKind::Last,
];

pub const TESTS: [TestKind; 4] = [
    TestKind::Radix,
    TestKind::Header,
    TestKind::Walk,
    TestKind::Header24,
];

/// One of `all`.
fn pick<T: Copy>(all: &[T], byte: u8) -> T {
    all[usize::from(byte) % all.len()]
}

/// What the bytes say, changed so that it fits: the list of 2.4 keeps all arenas, its test needs them kept, and a header
/// test needs pools of an OS page.
fn settings(geometry: u8, ways: u8, keep: u8, sizes: u8) -> Settings {
    let (arena, pool) = pick(&GEOMETRIES, geometry);
    let (order, test) = (pick(&ORDERS, ways), pick(&TESTS, ways / 4));
    let keep = if order == OrderKind::Global || keep % 8 == 7 {
        KEEP_ALL
    } else {
        u32::from(keep % 4)
    };
    let test = match test {
        TestKind::Header | TestKind::Header24 if pool > 4096 => TestKind::Radix,
        TestKind::Header24 if keep != KEEP_ALL => TestKind::Header,
        test => test,
    };
    let align = pick(&[16, 16, 16, 8], sizes);
    let threshold = pick(&[512, 512, 256, 16], sizes / 4);
    Settings {
        arena,
        pool,
        align,
        threshold,
        keep,
        order,
        test,
    }
}

/// Three of four are sizes that blocks serve; the rest lies on both sides of the threshold.
fn size(low: u8, high: u8) -> usize {
    let word = usize::from(low) | usize::from(high) << 8;
    if high < 0xC0 {
        1 + word % 512
    } else {
        word % 5000
    }
}

/// What is granted of something: mostly whatever is asked for.
fn granted(byte: u8) -> usize {
    match byte {
        0..=95 => usize::from(byte % 4),
        _ => usize::MAX,
    }
}

fn step([kind, a, b, c]: [u8; STEP]) -> Step {
    let (size, at) = (size(a, b), usize::from(a) | usize::from(b) << 8);
    let c = usize::from(c);
    match kind % 16 {
        0 | 1 => Step::Alloc(size),
        2..=4 => Step::Run(size, 1 + c % 120),
        5..=7 => Step::Resize(c, size.max(1)),
        8 => Step::Write(at, c as u8),
        9 | 10 => Step::Free(at),
        11 => Step::FreeEvery(usize::from(a), 2 + usize::from(b) % 7),
        12 => Step::FreeRange(at, 1 + c % 200),
        13 => Step::Calloc(usize::from(a) % 41, usize::from(b) % 41),
        14 => Step::Aligned(1 << (c % 13), size),
        _ => Step::Grant(granted(a), granted(b)),
    }
}

impl Case {
    /// The case that the bytes are. What is missing of the first five is 0; half a step at the end is none.
    pub fn of(bytes: &[u8]) -> Case {
        let bytes = &bytes[..bytes.len().min(LONGEST)];
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD));
        let mut full = [0; HEAD];
        full[..head.len()].copy_from_slice(head);
        let [policy, geometry, ways, keep, sizes] = full;
        let which = match policy % 16 {
            0 => Which::Python24,
            1 => Which::Python25,
            2 => Which::Python38,
            3 => Which::Python39,
            4 => Which::Python310,
            5 => Which::Keep0,
            _ => Which::Tuned(settings(geometry, ways, keep, sizes)),
        };
        let (steps, _) = rest.as_chunks::<STEP>();
        Case {
            which,
            // All arenas have at least as many OS pages.
            shift: usize::from(keep / 8 % 4) * 4096,
            steps: steps.iter().copied().map(step).collect(),
        }
    }

    /// Plays it.
    ///
    /// # Panics
    /// As [`stream::run`].
    pub fn run(&self) {
        let (shift, steps) = (self.shift, &self.steps);
        match self.which {
            Which::Python24 => stream::run(Python24, shift, CHECK_EVERY, steps),
            Which::Python25 => stream::run(Python25, shift, CHECK_EVERY, steps),
            Which::Python38 => stream::run(Python38, shift, CHECK_EVERY, steps),
            Which::Python39 => stream::run(Python39, shift, CHECK_EVERY, steps),
            Which::Python310 => stream::run(Python310 { keep: true }, shift, CHECK_EVERY, steps),
            Which::Keep0 => stream::run(Python310 { keep: false }, shift, CHECK_EVERY, steps),
            Which::Tuned(settings) => {
                stream::run(
                    Tuned::new(settings).expect("they fit"),
                    shift,
                    CHECK_EVERY,
                    steps,
                );
            }
        }
    }
}
