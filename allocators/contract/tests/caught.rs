//! Heaps that are broken in one way each, and must be caught, by the right rule.
//!
//! Each forwards to the C library, so that what it hands out is real memory, and spoils one thing.

use contract::suite::{self, Failure, Verdict};
use contract::{
    Block, Broken, Canary, Capabilities, Driver, Heap, Noticed, Receipt, SelfStats, opaque,
};
use std::cell::Cell;

/// How a heap is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// A block of 64 to 127 bytes is handed out twice.
    Overlaps,
    /// realloc moves, and copies one byte too few.
    LosesContents,
    /// Every block starts 8 bytes further.
    Misaligns,
    /// The hundredth call flips a bit in the block that was handed out last.
    FlipsAByte,
    /// calloc forgets to clear.
    Dirty,
    /// Says that blocks hold nothing.
    Undertells,
    /// A realloc that fails spoils the block.
    SpoilsOnFailure,
}

/// The C library's heap with a fault. Every block has 64 bytes more than was asked, so that the faults stay inside
/// memory that is ours.
struct Faulty {
    fault: Fault,
    calls: Cell<u32>,
    last: Cell<*mut u8>,
    shared: Cell<(*mut u8, usize)>,
}

const SPARE: usize = 64;

impl Faulty {
    fn new(fault: Fault) -> Self {
        let null = std::ptr::null_mut();
        Faulty {
            fault,
            calls: Cell::new(0),
            last: Cell::new(null),
            shared: Cell::new((null, 0)),
        }
    }

    /// What lies between the C library's address and the one that was handed out.
    fn shift(&self) -> usize {
        if self.fault == Fault::Misaligns { 8 } else { 0 }
    }

    fn hand_out(&self, p: *mut u8) -> *mut u8 {
        if p.is_null() {
            return p;
        }
        self.calls.set(self.calls.get() + 1);
        if self.fault == Fault::FlipsAByte && self.calls.get() == 100 {
            // SAFETY: the tests of this fault never free, so the block that was handed out last is live.
            unsafe { *self.last.get() ^= 1 };
        }
        self.last.set(p);
        // SAFETY: inside the spare bytes.
        unsafe { p.add(self.shift()) }
    }
}

// SAFETY: every address that is handed out has its bytes behind it, whatever else is wrong. The overlapping fault frees
// nothing that it handed out twice.
unsafe impl Heap for Faulty {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: false,
        sized: false,
        usable: true,
        trim: false,
        contents: true,
    };

    fn malloc(&self, size: usize) -> *mut u8 {
        if self.fault == Fault::Overlaps && (64..128).contains(&size) {
            let (shared, uses) = self.shared.get();
            if uses == 1 {
                self.shared.set((shared, 2));
                return shared;
            }
            // SAFETY: no preconditions.
            let p = opaque(unsafe { libc::malloc(128 + SPARE) });
            self.shared.set((p, 1));
            return p;
        }
        let Some(bytes) = size.checked_add(SPARE) else {
            return refuse();
        };
        // SAFETY: no preconditions.
        self.hand_out(opaque(unsafe { libc::malloc(bytes) }))
    }

    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        let Some(bytes) = count
            .checked_mul(size)
            .and_then(|bytes| bytes.checked_add(SPARE))
        else {
            return refuse();
        };
        // SAFETY: no preconditions.
        let p = self.hand_out(opaque(unsafe { libc::calloc(1, bytes) }));
        if self.fault == Fault::Dirty && !p.is_null() && bytes > SPARE {
            // SAFETY: the block has at least one byte.
            unsafe { p.add(bytes - SPARE - 1).write(1) };
        }
        p
    }

    unsafe fn realloc(&self, p: *mut u8, old: usize, new: usize) -> *mut u8 {
        let q = self.malloc(new);
        if q.is_null() {
            if self.fault == Fault::SpoilsOnFailure {
                // SAFETY: `p` is live, of `old` bytes, and no request of the tests is for none.
                unsafe { *p ^= 0xFF };
            }
            return q;
        }
        let lost = usize::from(self.fault == Fault::LosesContents);
        // SAFETY: both are live, and differ unless the fault is the overlap, where this is not reached with the same.
        unsafe {
            std::ptr::copy(p, q, old.min(new).saturating_sub(lost));
            if lost == 1 {
                *q.add(old.min(new) - 1) = !*p.add(old.min(new) - 1);
            }
            self.free(p);
        }
        q
    }

    unsafe fn free(&self, p: *mut u8) {
        // Blocks that were handed out twice, and those whose neighbour may still be flipped, are left alone.
        if !matches!(self.fault, Fault::Overlaps | Fault::FlipsAByte) {
            // SAFETY: `p` is live, and the C library's address is `shift` before it.
            unsafe { libc::free(p.sub(self.shift()).cast()) };
        }
    }

    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        let Some(bytes) = size.checked_add(SPARE) else {
            return refuse();
        };
        // SAFETY: no preconditions.
        self.hand_out(opaque(unsafe { libc::aligned_alloc(align, bytes) }))
    }

    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        // SAFETY: as in `free`.
        let usable = unsafe { libc::malloc_usable_size(p.sub(self.shift()).cast()) };
        match self.fault {
            Fault::Undertells => Some(0),
            _ => Some(usable - self.shift()),
        }
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

fn refuse() -> *mut u8 {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    std::ptr::null_mut()
}

/// What the shadow model finds in a random stream.
fn caught_in_a_stream(fault: Fault) -> Broken {
    match suite::random_stream(&Faulty::new(fault), 1, 20_000) {
        Err(Failure::Broken(broken)) => broken,
        other => panic!("{fault:?}: {other:?}"),
    }
}

/// The rules of the suite that the heap breaks.
fn rules_broken(fault: Fault) -> Vec<&'static str> {
    let rows = suite::run(&Faulty::new(fault));
    rows.into_iter()
        .filter(|row| matches!(row.verdict, Verdict::Broken(_)))
        .map(|row| row.rule)
        .collect()
}

#[test]
fn without_a_fault_nothing_is_found() {
    assert_eq!(
        suite::random_stream(&Faulty::new(Fault::None), 1, 20_000),
        Ok(())
    );
    assert_eq!(rules_broken(Fault::None), Vec::<&str>::new());
}

#[test]
fn blocks_that_overlap_are_caught() {
    let broken = caught_in_a_stream(Fault::Overlaps);
    assert!(
        matches!(broken, Broken::Overlap { at, other, .. } if at == other),
        "{broken}"
    );
    assert!(
        broken.to_string().starts_with("live blocks overlap: "),
        "{broken}"
    );
    let rules = rules_broken(Fault::Overlaps);
    assert!(
        rules.contains(&"many live blocks do not overlap"),
        "{rules:?}"
    );
    assert!(
        rules.contains(&"a random stream of 20,000 operations agrees with the shadow model"),
        "{rules:?}"
    );
}

#[test]
fn contents_lost_by_realloc_are_caught() {
    let broken = caught_in_a_stream(Fault::LosesContents);
    let Broken::LostByRealloc {
        old, new, offset, ..
    } = broken
    else {
        panic!("{broken}")
    };
    assert_eq!(offset, old.min(new) - 1, "the one byte that was not copied");
    let rules = rules_broken(Fault::LosesContents);
    assert!(
        rules.contains(&"realloc keeps contents across size classes"),
        "{rules:?}"
    );
    assert!(
        suite::run(&Faulty::new(Fault::LosesContents))
            .iter()
            .any(|row| row.essential && matches!(row.verdict, Verdict::Broken(_)))
    );
}

#[test]
fn misaligned_blocks_are_caught() {
    let broken = caught_in_a_stream(Fault::Misaligns);
    assert!(
        matches!(broken, Broken::Misaligned { at, size: 16.., needed: 16 } if at % 16 == 8),
        "{broken}"
    );
    let rules = rules_broken(Fault::Misaligns);
    assert!(
        rules.contains(&"every size is aligned for any C type of that size"),
        "{rules:?}"
    );
    assert!(
        rules.contains(&"aligned blocks are aligned, and keep their contents"),
        "{rules:?}"
    );
    assert!(
        suite::run(&Faulty::new(Fault::Misaligns))
            .iter()
            .all(|row| !row.essential || !matches!(row.verdict, Verdict::Broken(_))),
        "its contents are right"
    );
}

#[test]
fn a_flipped_byte_is_caught() {
    let heap = Faulty::new(Fault::FlipsAByte);
    // SAFETY: ONE-HEAP: the blocks of this driver stay in this function.
    let mut driver = unsafe { Driver::new(&heap, Canary::default()) };
    let mut live: Vec<Block> = (0..100)
        .map(|n| driver.alloc(n + 1).expect("a block"))
        .collect();
    assert_eq!(driver.mode().broken(), None, "nobody has looked yet");
    driver.free(live.swap_remove(0));
    assert_eq!(driver.mode().broken(), None, "it is not this one");
    // The hundredth call flipped byte 0 of the block before, which is of 99 bytes.
    let flipped = live
        .iter()
        .position(|block| block.size() == 99)
        .expect("it is live");
    let at = live[flipped].address();
    driver.free(live.swap_remove(flipped));
    let broken = driver.mode().broken().expect("a finding").clone();
    let Broken::Changed {
        at: found_at,
        size: 99,
        when: Noticed::AtFree,
        offset: 0,
        expected,
        found,
    } = broken
    else {
        panic!("{broken}")
    };
    assert_eq!((found_at, expected ^ found), (at, 1));
    assert!(
        broken.to_string().contains("byte 0 was written as"),
        "{broken}"
    );
}

#[test]
fn a_flipped_byte_in_a_block_that_is_never_freed_is_caught_in_the_end() {
    let heap = Faulty::new(Fault::FlipsAByte);
    // SAFETY: ONE-HEAP: the blocks of this driver stay in this function.
    let mut driver = unsafe { Driver::new(&heap, Canary::default()) };
    for n in 0..100 {
        let _never_freed = driver.alloc(n + 1).expect("a block");
    }
    let mut canary = driver.into_mode();
    assert_eq!((canary.live(), canary.broken()), (100, None));
    canary.check_live();
    let broken = canary.broken().expect("a finding");
    assert!(
        matches!(
            broken,
            Broken::Changed {
                size: 99,
                when: Noticed::WhileLive,
                ..
            }
        ),
        "{broken}"
    );
}

#[test]
fn a_flipped_byte_is_caught_by_a_stream_too() {
    let broken = caught_in_a_stream(Fault::FlipsAByte);
    assert!(
        matches!(
            broken,
            Broken::Changed { .. } | Broken::LostByRealloc { .. }
        ),
        "{broken}"
    );
}

#[test]
fn each_other_fault_breaks_its_own_rule_alone() {
    for (fault, rule) in [
        (
            Fault::Dirty,
            "calloc gives zeros where there was something else",
        ),
        (
            Fault::Undertells,
            "the usable size is at least the requested one, and usable",
        ),
        (
            Fault::SpoilsOnFailure,
            "a realloc that fails leaves the block as it was",
        ),
    ] {
        assert_eq!(rules_broken(fault), [rule], "{fault:?}");
    }
}

#[test]
fn the_first_finding_is_kept() {
    let heap = Faulty::new(Fault::Misaligns);
    // SAFETY: ONE-HEAP: the blocks of this driver stay in this function.
    let mut driver = unsafe { Driver::new(&heap, Canary::default()) };
    let blocks: Vec<Block> = [100, 200, 300]
        .into_iter()
        .map(|size| driver.alloc(size).expect("a block"))
        .collect();
    assert!(matches!(
        driver.mode().broken(),
        Some(Broken::Misaligned { size: 100, .. })
    ));
    blocks.into_iter().for_each(|block| driver.free(block));
    assert!(matches!(
        driver.mode().broken(),
        Some(Broken::Misaligned { size: 100, .. })
    ));
}
