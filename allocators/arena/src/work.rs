//! Work counters, behind the feature `counters`: how much an operation did, whatever the machine.
//!
//! Counts are this thread's, over all of its heaps. Without the feature counting is nothing, and all counts are 0.

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Pools put on the list of their class.
    PoolLinks,
    /// Pools taken off the list of their class.
    PoolUnlinks,
    /// Empty pools given back to their arena: the frees at which arenas come into order.
    PoolsGivenBack,
    /// Arenas put on the list of usable ones, moves included.
    ArenaLinks,
    /// Arenas taken off the list of usable ones, moves included.
    ArenaUnlinks,
    /// Steps along the list of usable arenas on the way to an arena's new place.
    ListSteps,
    /// Loads of memory that the address test made: entries of nodes, headers of pools, records of arenas.
    AddressProbes,
}

/// How many kinds of work there are.
const KINDS: usize = Work::AddressProbes as usize + 1;

#[cfg(feature = "counters")]
std::thread_local! {
    static COUNTS: core::cell::Cell<[u64; KINDS]> = const { core::cell::Cell::new([0; KINDS]) };
}

/// Counts `n` more.
#[inline(always)]
pub fn count(what: Work, n: u64) {
    #[cfg(feature = "counters")]
    COUNTS.with(|counts| {
        let mut all = counts.get();
        all[what as usize] += n;
        counts.set(all);
    });
    #[cfg(not(feature = "counters"))]
    let _ = (what, n);
}

/// Counts at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts([u64; KINDS]);

impl Counts {
    /// Those of this thread, now.
    #[must_use]
    pub fn now() -> Counts {
        #[cfg(feature = "counters")]
        return Counts(COUNTS.get());
        #[cfg(not(feature = "counters"))]
        Counts([0; KINDS])
    }

    /// What has been done since.
    #[must_use]
    pub fn since(self) -> Counts {
        let now = Counts::now();
        Counts(core::array::from_fn(|kind| now.0[kind] - self.0[kind]))
    }

    /// One of them.
    #[must_use]
    pub fn of(self, what: Work) -> u64 {
        self.0[what as usize]
    }
}
