//! Random streams over a good heap stay clean under the shadow model, and the driver's own rules hold on the way.

use contract::{Block, Canary, Capabilities, Driver, Heap, Receipt, SelfStats, opaque};
use proptest::prelude::*;

/// The C library's heap, which is taken to be good.
struct Good;

// SAFETY: the C library's own functions, whose contract is the trait's.
unsafe impl Heap for Good {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: true,
        sized: false,
        usable: true,
        trim: false,
        contents: true,
    };

    fn malloc(&self, size: usize) -> *mut u8 {
        // SAFETY: no preconditions.
        opaque(unsafe { libc::malloc(size) })
    }
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: no preconditions.
        opaque(unsafe { libc::calloc(count, size) })
    }
    unsafe fn realloc(&self, p: *mut u8, _old: usize, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        opaque(unsafe { libc::realloc(p.cast(), new) })
    }
    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { libc::free(p.cast()) }
    }
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        // SAFETY: no preconditions.
        opaque(unsafe { libc::aligned_alloc(align, size) })
    }
    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        // SAFETY: the caller's promise.
        Some(unsafe { libc::malloc_usable_size(p.cast()) })
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

/// One step of a workload. Indices are taken modulo what there is.
#[derive(Debug, Clone)]
enum Step {
    Alloc(usize),
    Resize(usize, usize),
    Append(usize, Vec<u8>),
    Extend(usize, u8, usize),
    Write(usize, usize, Vec<u8>),
    Fill(usize, usize, usize, u8),
    Copy(usize, usize, usize),
    Free(usize),
}

/// Small sizes, and some around the canary's and the C library's thresholds.
fn size() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 1usize..600, 2 => 1usize..10_000, 1 => 60_000usize..70_000, 1 => 120_000usize..140_000]
}

fn step() -> impl Strategy<Value = Step> {
    let at = any::<usize>;
    let bytes = || prop::collection::vec(any::<u8>(), 1..100);
    prop_oneof![
        4 => size().prop_map(Step::Alloc),
        3 => (at(), size()).prop_map(|(i, n)| Step::Resize(i, n)),
        2 => (at(), bytes()).prop_map(|(i, b)| Step::Append(i, b)),
        1 => (at(), any::<u8>(), 1usize..5000).prop_map(|(i, b, n)| Step::Extend(i, b, n)),
        2 => (at(), at(), bytes()).prop_map(|(i, o, b)| Step::Write(i, o, b)),
        1 => (at(), at(), at(), any::<u8>()).prop_map(|(i, o, n, b)| Step::Fill(i, o, n, b)),
        1 => (at(), at(), at()).prop_map(|(i, j, n)| Step::Copy(i, j, n)),
        2 => at().prop_map(Step::Free),
    ]
}

fn play(driver: &mut Driver<'_, Good, Canary>, live: &mut Vec<Block>, step: Step) {
    if let Step::Alloc(size) = step {
        live.push(driver.alloc(size).expect("a block"));
        return;
    }
    if live.is_empty() {
        return;
    }
    let count = live.len();
    match step {
        Step::Alloc(_) => {}
        Step::Resize(i, new) => driver.resize(&mut live[i % count], new).expect("a block"),
        Step::Append(i, bytes) => driver
            .append(&mut live[i % count], &bytes)
            .expect("a block"),
        Step::Extend(i, byte, len) => driver
            .extend(&mut live[i % count], byte, len)
            .expect("a block"),
        Step::Write(i, offset, bytes) => {
            let block = &mut live[i % count];
            let offset = offset % block.size();
            let len = bytes.len().min(block.size() - offset);
            driver.write(block, offset, &bytes[..len]);
        }
        Step::Fill(i, offset, len, byte) => {
            let block = &mut live[i % count];
            let offset = offset % block.size();
            let len = len % (block.size() - offset + 1);
            driver.fill(block, offset, len, byte);
        }
        Step::Copy(i, j, len) => {
            let from = live.swap_remove(i % count);
            if !live.is_empty() {
                let to = j % live.len();
                let len = len % (from.size().min(live[to].size()) + 1);
                driver.copy(&from, 0, &mut live[to], 0, len);
            }
            live.push(from);
        }
        Step::Free(i) => driver.free(live.swap_remove(i % count)),
    }
}

proptest! {
    #[test]
    fn a_good_heap_stays_clean(steps in prop::collection::vec(step(), 1..300)) {
        let heap = Good;
        // SAFETY: ONE-HEAP: the blocks of this driver stay in this function.
        let mut driver = unsafe { Driver::new(&heap, Canary::default()) };
        let mut live = Vec::new();
        for step in steps {
            play(&mut driver, &mut live, step);
            prop_assert_eq!(driver.mode().broken(), None);
            prop_assert_eq!(driver.mode().live(), live.len());
        }
        for block in live {
            driver.free(block);
        }
        let mut canary = driver.into_mode();
        canary.check_live();
        prop_assert_eq!((canary.broken(), canary.live()), (None, 0));
    }
}
