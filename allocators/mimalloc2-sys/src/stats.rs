//! mimalloc v2's own books, as a release build keeps them: blocks in use for each page, and for the process the bytes
//! reserved and committed.
//!
//! In v2 a heap belongs to a thread, so `allocated` is what the calling thread has in use; it is the sum of a visit of
//! all its pages.

use crate::ffi::{self, MiHeap, MiHeapArea};
use contract::SelfStats;
use core::ffi::c_void;

/// The C structure `mi_stats_t` of mimalloc 2.3 as words: it holds nothing but 64-bit numbers. The library compares
/// `size` and `version` with its own and answers false if it is another.
#[repr(C)]
pub(crate) struct Stats {
    size: usize,
    version: usize,
    /// Three words (total, peak, current) for each count, in the order of `MI_STAT_FIELDS`.
    words: [i64; Stats::WORDS],
}

impl Stats {
    const WORDS: usize = 519;
    const VERSION: usize = 4;
    /// Second count, bytes of address space; third word.
    const RESERVED_NOW: usize = 5;
    /// Third count, bytes that may be touched; third word.
    const COMMITTED_NOW: usize = 8;
}

/// Adds what one area has in use.
unsafe extern "C" fn add_area(
    _heap: *const MiHeap,
    area: *const MiHeapArea,
    _block: *mut c_void,
    _block_size: usize,
    sum: *mut c_void,
) -> bool {
    // SAFETY: the library passes a live area, and the `sum` that `allocated` gave it.
    unsafe {
        let area = &*area;
        *sum.cast::<u64>() += area.used as u64 * area.block_size as u64;
    }
    true
}

/// Bytes in blocks of the calling thread's heap, or `None` if the visit broke off.
fn allocated() -> Option<u64> {
    let mut sum = 0u64;
    // SAFETY: the thread's own heap, which lives as long as the thread; the visitor gets the pointer to `sum` that it
    // expects.
    let all = unsafe {
        let heap = ffi::m2_mi_heap_get_default();
        ffi::m2_mi_heap_visit_blocks(heap, false, add_area, (&raw mut sum).cast())
    };
    all.then_some(sum)
}

pub(crate) fn read() -> SelfStats {
    let mut stats = Stats {
        size: size_of::<Stats>(),
        version: Stats::VERSION,
        words: [0; Stats::WORDS],
    };
    // SAFETY: `stats` has the size and version that it claims; with others the library writes nothing. The process's
    // figures lack what a thread has not yet added to them, hence the merge.
    let known = unsafe {
        ffi::m2_mi_stats_merge();
        ffi::m2_mi_stats_get(&mut stats)
    };
    let word = |at: usize| known.then(|| u64::try_from(stats.words[at]).unwrap_or(0));
    SelfStats {
        allocated: allocated(),
        mapped: word(Stats::RESERVED_NOW),
        resident: word(Stats::COMMITTED_NOW),
        extra: Vec::new(),
    }
}
