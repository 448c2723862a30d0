//! A stream of operations on a heap with any policy: what a block holds against the shadow model, everything else against
//! the checker. Drawn at random by one test, read from files by another, and by the fuzz target.

use super::Staged;
use arena::heap::Heap;
use arena::policy::{KEEP_ALL, Policy};
use contract::{Block, Canary, Capabilities, Driver, Heap as _, Receipt, SelfStats};
use std::cell::{Cell, RefCell};

/// The heap behind the contract, walked after every so many operations. `SIZED`: told the size of each block that it resizes
/// or takes back.
struct Checked<P: Policy, const SIZED: bool> {
    heap: RefCell<Heap<Staged, P>>,
    every: usize,
    operations: Cell<usize>,
}

impl<P: Policy, const SIZED: bool> Checked<P, SIZED> {
    fn call<T>(&self, call: impl FnOnce(&mut Heap<Staged, P>) -> T) -> T {
        let mut heap = self.heap.borrow_mut();
        let answer = call(&mut heap);
        self.operations.set(self.operations.get() + 1);
        if self.operations.get().is_multiple_of(self.every) {
            assert_eq!(heap.check(), Ok(()));
        }
        answer
    }
}

// SAFETY: `Heap`'s own functions, whose contract is the trait's.
unsafe impl<P: Policy, const SIZED: bool> contract::Heap for Checked<P, SIZED> {
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Alloc(usize),
    /// Many blocks of one size, so that pools and arenas fill.
    Run(usize, usize),
    /// To that size, which is not 0.
    Resize(usize, usize),
    Write(usize, u8),
    Free(usize),
    /// Every n-th live block, from an offset on.
    FreeEvery(usize, usize),
    /// Neighbours in the order of their making, which is mostly that of their addresses.
    FreeRange(usize, usize),
    /// calloc, looked at, given back.
    Calloc(usize, usize),
    /// A block at a multiple of a power of two, written to its usable end, resized, given back.
    Aligned(usize, usize),
    /// How many mappings and blocks of the backing are granted from here on.
    Grant(usize, usize),
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
fn play<P: Policy, const SIZED: bool>(
    driver: &mut Driver<'_, Checked<P, SIZED>, Canary>,
    live: &mut Vec<Block>,
    step: &Step,
) {
    let count = live.len();
    let heap = driver.heap();
    match *step {
        Step::Alloc(size) => live.extend(driver.alloc(size)),
        Step::Run(size, n) => (0..n).for_each(|_| live.extend(driver.alloc(size))),
        Step::Calloc(n, size) => {
            let p = heap.calloc(n, size);
            if !p.is_null() {
                // SAFETY: live, of `n * size` bytes; freed last.
                unsafe {
                    assert!((0..n * size).all(|i| p.add(i).read() == 0), "not zero");
                    p.write_bytes(0xEE, n * size);
                    give_back(heap, p, n * size, 1);
                }
            }
        }
        Step::Aligned(align, size) => {
            let p = heap.aligned(align, size);
            if !p.is_null() {
                assert!(p.addr().is_multiple_of(align), "{align} and {size} bytes");
                // Any other size will do, small ones and large.
                let to = 1 + size.wrapping_mul(7) % 1000;
                // SAFETY: live, of as many bytes as are usable, then of `to`; freed last.
                unsafe {
                    let usable = heap.usable(p).expect("arenas know");
                    assert!(usable >= size, "{usable} of {size} bytes");
                    p.write_bytes(0xDD, usable);
                    let q = heap.realloc(p, size, to);
                    if q.is_null() {
                        give_back(heap, p, size, align);
                    } else {
                        assert!((0..size.min(to)).all(|i| q.add(i).read() == 0xDD));
                        give_back(heap, q, to, 1);
                    }
                }
            }
        }
        Step::Grant(maps, blocks) => {
            let heap = heap.heap.borrow();
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

/// Plays the steps on a heap whose arenas begin `shift` bytes behind multiples of their size, then frees what is left; and
/// then once more on one that is told every size. The checker walks the heap after every step, and inside of a step after
/// each `every` operations.
///
/// # Panics
/// If a block does not hold what it should, the checker finds a fault, or arenas or strays are not accounted for.
pub fn run<P: Policy + Copy>(policy: P, shift: usize, every: usize, steps: &[Step]) {
    play_all::<P, false>(policy, shift, every, steps);
    play_all::<P, true>(policy, shift, every, steps);
}

fn play_all<P: Policy, const SIZED: bool>(policy: P, shift: usize, every: usize, steps: &[Step]) {
    let (align_bits, keep, threshold) = (policy.align_bits(), policy.keep(), policy.threshold());
    let heap: Checked<P, SIZED> = Checked {
        heap: RefCell::new(Heap::new(Staged::shifted(shift), policy).expect("memory for the root")),
        every,
        operations: Cell::new(0),
    };
    let canary = if align_bits < 4 {
        Canary::of_contents()
    } else {
        Canary::default()
    };
    // SAFETY: ONE-HEAP: the blocks of this driver stay in this function.
    let mut driver = unsafe { Driver::new(&heap, canary) };
    let mut live = Vec::new();
    for step in steps {
        play(&mut driver, &mut live, step);
        assert_eq!(driver.mode().broken(), None, "{step:?}");
        assert_eq!(heap.heap.borrow().check(), Ok(()), "{step:?}");
        assert_eq!(driver.mode().live(), live.len(), "{step:?}");
        if SIZED {
            strays_are_counted(&heap.heap.borrow(), &live, threshold);
        }
    }
    for block in live {
        driver.free(block);
    }
    assert_eq!(driver.into_mode().broken(), None);
    let heap = heap.heap.into_inner();
    assert_eq!(heap.check(), Ok(()));
    let stats = heap.stats();
    assert_eq!(stats.bytes.allocated, 0);
    if SIZED {
        assert_eq!(heap.strays(), 0);
    }
    let (made, unmade) = heap.os().mapped.get();
    // A mapping that could not be marked was given back unseen.
    assert_eq!(stats.arenas.current, (made - unmade) as u64);
    assert!(stats.arenas.total <= made as u64);
    match keep {
        KEEP_ALL => assert_eq!(stats.arenas.reclaimed, 0),
        // With none to follow the last ones stay.
        keep => assert!(stats.arenas.current <= u64::from(keep)),
    }
}

/// SIZED, and exactly so, since every size is told: live blocks of the backing whose size pools would serve.
fn strays_are_counted<P: Policy>(heap: &Heap<Staged, P>, live: &[Block], threshold: usize) {
    let strays = live.iter().filter(|block| {
        let served = (1..=threshold).contains(&block.size());
        served && !heap.has(std::ptr::without_provenance(block.address()))
    });
    assert_eq!(strays.count(), heap.strays());
}
