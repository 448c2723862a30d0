//! mimalloc's own books, as a release build keeps them.
//!
//! A release build counts neither mallocs nor requested bytes. What it keeps is, per page, the number of blocks in
//! use and, per process, the bytes reserved and committed; so `allocated` is the sum over its pages of blocks in use
//! times block size, walked by the library, and costs a visit of every page.

use contract::SelfStats;
use core::ffi::c_void;
use libmimalloc_sys as mi;

/// The C structure `mi_stats_t` of mimalloc 3.3 as words: it holds nothing but 64-bit numbers. The library compares
/// `size` and `version` with its own and answers false if it is another.
#[repr(C)]
struct Stats {
    size: usize,
    version: usize,
    /// Three words (total, peak, current) for each count, in the order of `MI_STAT_FIELDS`.
    words: [i64; Stats::WORDS],
}

impl Stats {
    const WORDS: usize = 544;
    const VERSION: usize = 5;
    /// Second count, bytes of address space; third word.
    const RESERVED_NOW: usize = 5;
    /// Third count, bytes that may be touched; third word.
    const COMMITTED_NOW: usize = 8;
}

unsafe extern "C" {
    fn mi_stats_get(stats: *mut Stats) -> bool;
    fn mi_heap_main() -> *mut mi::mi_heap_t;
}

/// Adds what one area has in use. (`used` counts blocks, whatever the -sys crate's comment says.)
unsafe extern "C" fn add_area(
    _heap: *const mi::mi_heap_t,
    area: *const mi::mi_heap_area_t,
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

/// Bytes in blocks in use, or `None` if the visit broke off. Not to be called while other threads allocate.
fn allocated() -> Option<u64> {
    let mut sum = 0u64;
    // SAFETY: the main heap lives as long as the process; the visitor gets the pointer to `sum` that it expects.
    let all = unsafe {
        mi::mi_heap_visit_blocks(mi_heap_main(), false, Some(add_area), (&raw mut sum).cast())
    };
    all.then_some(sum)
}

pub(crate) fn read() -> SelfStats {
    let mut stats = Stats {
        size: size_of::<Stats>(),
        version: Stats::VERSION,
        words: [0; Stats::WORDS],
    };
    // SAFETY: `stats` has the size and version that it claims; with others the library writes nothing.
    let known = unsafe { mi_stats_get(&mut stats) };
    let word = |at: usize| known.then(|| u64::try_from(stats.words[at]).unwrap_or(0));
    SelfStats {
        allocated: allocated(),
        mapped: word(Stats::RESERVED_NOW),
        resident: word(Stats::COMMITTED_NOW),
        extra: Vec::new(),
    }
}
