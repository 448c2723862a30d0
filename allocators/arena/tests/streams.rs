//! Random streams of operations: contents against the shadow model, structure against the checker, refusals included.

mod common;

use arena::heap::Heap;
use arena::policy::{KEEP_ALL, OrderKind, Settings, TestKind, Tuned};
use common::{CHECK_EVERY, Staged, heap};
use contract::{Block, Canary, Capabilities, Driver, Receipt, SelfStats};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};

/// The heap behind the contract, walked every few operations. `SIZED`: told the size of each block that it resizes or takes
/// back.
struct Checked<const SIZED: bool> {
    heap: RefCell<Heap<Staged, Tuned>>,
    operations: Cell<usize>,
}

impl<const SIZED: bool> Checked<SIZED> {
    fn new(settings: Settings, shift: usize) -> Self {
        Checked {
            heap: RefCell::new(heap(settings, shift)),
            operations: Cell::new(0),
        }
    }

    fn call<T>(&self, call: impl FnOnce(&mut Heap<Staged, Tuned>) -> T) -> T {
        let mut heap = self.heap.borrow_mut();
        let answer = call(&mut heap);
        self.operations.set(self.operations.get() + 1);
        if self.operations.get().is_multiple_of(CHECK_EVERY) {
            assert_eq!(heap.check(), Ok(()));
        }
        answer
    }
}

// SAFETY: `Heap`'s own functions, whose contract is the trait's.
unsafe impl<const SIZED: bool> contract::Heap for Checked<SIZED> {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: false,
        sized: SIZED,
        usable: true,
        trim: false,
        contents: true,
    };
    const SIZED_FREE: bool = SIZED;

    fn malloc(&self, size: usize) -> *mut u8 {
        self.call(|heap| heap.malloc(size))
    }
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        self.call(|heap| heap.calloc(count, size))
    }
    unsafe fn realloc(&self, p: *mut u8, old: usize, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        self.call(|heap| unsafe {
            if SIZED {
                heap.realloc_sized(p, old, new)
            } else {
                heap.realloc(p, new)
            }
        })
    }
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: the caller's promise.
        self.call(|heap| unsafe { heap.free(p) });
    }
    unsafe fn free_sized(&self, p: *mut u8, size: usize, _align: usize) {
        // SAFETY: the caller's promise.
        self.call(|heap| unsafe { heap.free_sized(p, size) });
    }
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        self.call(|heap| heap.aligned(align, size))
    }
    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        // SAFETY: the caller's promise.
        Some(unsafe { self.heap.borrow().usable(p) })
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

/// One step. Indices are taken modulo what there is.
#[derive(Debug, Clone)]
enum Step {
    Alloc(usize),
    /// Many blocks of one size, so that pools and arenas fill.
    Run(usize, usize),
    Resize(usize, usize),
    Write(usize, u8),
    Free(usize),
    /// Every n-th live block, from an offset on.
    FreeEvery(usize, usize),
    /// Neighbours in the order of their making, which is mostly that of their addresses.
    FreeRange(usize, usize),
    /// calloc, looked at, given back.
    Calloc(usize, usize),
    /// aligned, resized, given back.
    Aligned(u32, usize, usize),
    /// How many mappings and blocks of the backing are granted from here on.
    Grant(usize, usize),
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 1usize..=512, 2 => 1usize..=64, 1 => 500usize..530, 1 => 1usize..5000]
}

fn step(refusals: bool) -> impl Strategy<Value = Step> {
    let at = any::<usize>;
    let granted = || prop_oneof![3 => Just(usize::MAX), 2 => 0usize..3];
    prop_oneof![
        4 => size().prop_map(Step::Alloc),
        3 => (size(), 1usize..120).prop_map(|(size, n)| Step::Run(size, n)),
        4 => (at(), size()).prop_map(|(i, n)| Step::Resize(i, n)),
        2 => (at(), any::<u8>()).prop_map(|(i, b)| Step::Write(i, b)),
        4 => at().prop_map(Step::Free),
        1 => (at(), 2usize..9).prop_map(|(i, n)| Step::FreeEvery(i, n)),
        2 => (at(), 1usize..200).prop_map(|(i, n)| Step::FreeRange(i, n)),
        2 => (0usize..40, 0usize..40).prop_map(|(n, size)| Step::Calloc(n, size)),
        2 => (0u32..10, size(), size()).prop_map(|(bits, from, to)| Step::Aligned(bits, from, to)),
        (if refusals { 2 } else { 0 }) => (granted(), granted()).prop_map(|(m, b)| Step::Grant(m, b)),
    ]
}

/// Small arenas, so that they come and go; CPython's; and ones that begin anywhere. With every order and every address
/// test, so with every generation's policy, and with policies that nobody has had.
fn settings() -> impl Strategy<Value = (Settings, usize)> {
    let arena = prop_oneof![
        4 => Just((16 << 10, 4096)),
        2 => Just((64 << 10, 16 << 10)),
        1 => Just((256 << 10, 4096)),
        1 => Just((1 << 20, 16 << 10)),
    ];
    let threshold = prop_oneof![3 => Just(512usize), 1 => Just(256usize), 1 => Just(16usize)];
    let align = prop_oneof![3 => Just(16usize), 1 => Just(8usize)];
    let order = prop_oneof![
        3 => Just(OrderKind::Constant),
        3 => Just(OrderKind::Slide),
        2 => Just(OrderKind::Global),
        1 => Just(OrderKind::Last),
    ];
    let test = prop_oneof![
        Just(TestKind::Radix),
        Just(TestKind::Header),
        Just(TestKind::Walk)
    ];
    let numbers = (arena, threshold, align, 0u32..4, 0usize..4);
    (numbers, order, test).prop_map(
        |(((arena, pool), threshold, align, keep, pages), order, test)| {
            let settings = Settings {
                arena,
                pool,
                align,
                threshold,
                keep: if order == OrderKind::Global {
                    KEEP_ALL
                } else {
                    keep
                },
                order,
                test: if pool > 4096 && test == TestKind::Header {
                    TestKind::Radix
                } else {
                    test
                },
            };
            (settings, pages * 4096)
        },
    )
}

/// As the driver gives blocks back.
///
/// # Safety
/// As `free_sized`.
unsafe fn give_back<H: contract::Heap>(heap: &H, p: *mut u8, size: usize, align: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if H::SIZED_FREE {
            heap.free_sized(p, size, align);
        } else {
            heap.free(p);
        }
    }
}

/// Plays one step. A refusal is taken as it comes.
fn play<const SIZED: bool>(
    driver: &mut Driver<'_, Checked<SIZED>, Canary>,
    live: &mut Vec<Block>,
    step: &Step,
) {
    let count = live.len();
    match *step {
        Step::Alloc(size) => live.extend(driver.alloc(size)),
        Step::Run(size, n) => (0..n).for_each(|_| live.extend(driver.alloc(size))),
        Step::Calloc(n, size) => {
            let heap = driver.heap();
            let p = contract::Heap::calloc(heap, n, size);
            if !p.is_null() {
                // SAFETY: live, of `n * size` bytes; freed last.
                unsafe {
                    assert!((0..n * size).all(|i| p.add(i).read() == 0), "not zero");
                    p.write_bytes(0xEE, n * size);
                    give_back(heap, p, n * size, 1);
                }
            }
        }
        Step::Aligned(bits, from, to) => {
            let heap = driver.heap();
            let p = contract::Heap::aligned(heap, 1 << bits, from);
            if !p.is_null() {
                assert!(p.addr().is_multiple_of(1 << bits));
                // SAFETY: live, of `from` bytes, then of `to`; freed last.
                unsafe {
                    p.write_bytes(0xDD, from);
                    let q = contract::Heap::realloc(heap, p, from, to);
                    if q.is_null() {
                        give_back(heap, p, from, 1 << bits);
                    } else {
                        assert!((0..from.min(to)).all(|i| q.add(i).read() == 0xDD));
                        give_back(heap, q, to, 1);
                    }
                }
            }
        }
        Step::Grant(maps, blocks) => {
            let heap = driver.heap().heap.borrow();
            heap.os().maps.set(maps);
            heap.os().blocks.set(blocks);
        }
        _ if count == 0 => {}
        Step::Resize(i, new) => {
            // Refused or not, the shadow model knows what the block must hold.
            let _ = driver.resize(&mut live[i % count], new);
        }
        Step::Write(i, byte) => {
            let block = &mut live[i % count];
            let len = block.size();
            driver.fill(block, 0, len, byte);
        }
        Step::Free(i) => driver.free(live.remove(i % count)),
        Step::FreeEvery(i, n) => {
            let mut kept = Vec::new();
            for (k, block) in live.drain(..).enumerate() {
                if k % n == i % n {
                    driver.free(block);
                } else {
                    kept.push(block);
                }
            }
            *live = kept;
        }
        Step::FreeRange(i, n) => {
            let start = i % count;
            let end = (start + n).min(count);
            live.drain(start..end).for_each(|block| driver.free(block));
        }
    }
}

fn run<const SIZED: bool>(
    settings: Settings,
    shift: usize,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let heap = Checked::<SIZED>::new(settings, shift);
    let canary = if settings.align < 16 {
        Canary::of_contents()
    } else {
        Canary::default()
    };
    // SAFETY: ONE-HEAP: the blocks of this driver stay in this function.
    let mut driver = unsafe { Driver::new(&heap, canary) };
    let mut live = Vec::new();
    for step in steps {
        play(&mut driver, &mut live, step);
        prop_assert_eq!(driver.mode().broken(), None);
        prop_assert_eq!(driver.mode().live(), live.len());
        if SIZED {
            strays_are_counted(&driver, &live, settings.threshold)?;
        }
    }
    for block in live {
        driver.free(block);
    }
    let canary = driver.into_mode();
    prop_assert_eq!(canary.broken(), None);
    let heap = heap.heap.into_inner();
    prop_assert_eq!(heap.check(), Ok(()));
    let stats = heap.stats();
    prop_assert_eq!(stats.bytes.allocated, 0);
    if SIZED {
        prop_assert_eq!(heap.strays(), 0);
    }
    let (made, unmade) = heap.os().mapped.get();
    // A mapping that could not be marked was given back unseen.
    prop_assert_eq!(stats.arenas.current, (made - unmade) as u64);
    prop_assert!(stats.arenas.total <= made as u64);
    match settings.keep {
        KEEP_ALL => prop_assert_eq!(stats.arenas.reclaimed, 0),
        // With none to follow the last ones stay.
        keep => prop_assert!(stats.arenas.current <= u64::from(keep)),
    }
    Ok(())
}

/// SIZED, and exactly so, since every size is told: live blocks of the backing whose size pools would serve.
fn strays_are_counted<const SIZED: bool>(
    driver: &Driver<'_, Checked<SIZED>, Canary>,
    live: &[Block],
    threshold: usize,
) -> Result<(), TestCaseError> {
    let heap = driver.heap().heap.borrow();
    let strays = live.iter().filter(|block| {
        let served = (1..=threshold).contains(&block.size());
        served && !heap.has(std::ptr::without_provenance(block.address()))
    });
    prop_assert_eq!(strays.count(), heap.strays());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 48 } else { 1000 }))]

    #[test]
    fn any_stream((settings, shift) in settings(), steps in prop::collection::vec(step(false), 1..120)) {
        run::<false>(settings, shift, &steps)?;
    }

    /// Whatever is refused, the heap stays as it should be, and goes on when memory is there again.
    #[test]
    fn any_stream_with_refusals((settings, shift) in settings(), steps in prop::collection::vec(step(true), 1..120)) {
        run::<false>(settings, shift, &steps)?;
    }

    #[test]
    fn any_stream_with_sized_frees((settings, shift) in settings(), steps in prop::collection::vec(step(false), 1..120)) {
        run::<true>(settings, shift, &steps)?;
    }

    /// A refusal makes strays, of which the heap knows.
    #[test]
    fn any_stream_with_sized_frees_and_refusals((settings, shift) in settings(), steps in prop::collection::vec(step(true), 1..120)) {
        run::<true>(settings, shift, &steps)?;
    }
}
