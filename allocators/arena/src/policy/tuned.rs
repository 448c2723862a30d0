//! A policy put together at run time: the lab for weighing a change.

use super::{AnyOrder, AnyTest, KEEP_ALL, OrderKind, Policy, TestKind};
use crate::arena::MAX_POOLS;
use crate::os::Os;
use crate::size_class::{ALIGN_BITS, MAX_THRESHOLD};

/// What a policy is put together from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Bytes in an arena.
    pub arena: usize,
    /// Bytes in a pool.
    pub pool: usize,
    /// Bytes from one block size to the next.
    pub align: usize,
    /// Largest request, in bytes, that blocks serve.
    pub threshold: usize,
    /// How many usable arenas must follow an empty one for it to be released.
    pub keep: u32,
    /// In which order free pools are taken.
    pub order: OrderKind,
    /// How addresses are tested.
    pub test: TestKind,
}

impl Settings {
    /// CPython 3.10's and later.
    pub const PYTHON_3_10: Settings = Settings {
        arena: 1 << 20,
        pool: 16 << 10,
        align: 16,
        threshold: 512,
        keep: 1,
        order: OrderKind::Constant,
        test: TestKind::Radix,
    };

    /// CPython 3.9's.
    pub const PYTHON_3_9: Settings = Settings {
        arena: 256 << 10,
        pool: 4096,
        test: TestKind::Header,
        ..Settings::PYTHON_3_10
    };

    /// CPython 3.8's.
    pub const PYTHON_3_8: Settings = Settings {
        keep: 0,
        ..Settings::PYTHON_3_9
    };

    /// CPython 2.5's to 3.7's.
    pub const PYTHON_2_5: Settings = Settings {
        order: OrderKind::Slide,
        ..Settings::PYTHON_3_8
    };

    /// CPython 2.4's.
    pub const PYTHON_2_4: Settings = Settings {
        keep: KEEP_ALL,
        order: OrderKind::Global,
        test: TestKind::Header24,
        ..Settings::PYTHON_3_9
    };
}

impl Default for Settings {
    fn default() -> Self {
        Settings::PYTHON_3_10
    }
}

/// Why settings cannot be a policy's, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfit(pub &'static str);

/// The policy.
#[derive(Debug, Clone, Copy)]
pub struct Tuned {
    arena_bits: u32,
    pool_bits: u32,
    align_bits: u32,
    settings: Settings,
}

impl Tuned {
    /// With these settings.
    ///
    /// # Errors
    /// [`Unfit`], saying which of the limits they break.
    pub fn new(settings: Settings) -> Result<Tuned, Unfit> {
        let Settings {
            arena,
            pool,
            align,
            threshold,
            keep,
            order,
            test,
        } = settings;
        if !arena.is_power_of_two() || !pool.is_power_of_two() {
            return Err(Unfit("arena and pool sizes are powers of two"));
        }
        if pool < 4096 || arena > 1 << 24 {
            return Err(Unfit("a pool has at least 4KiB, an arena at most 16MiB"));
        }
        if !(4..=MAX_POOLS).contains(&(arena / pool)) {
            return Err(Unfit("an arena has 4 to 1024 pools"));
        }
        if !align.is_power_of_two() || !ALIGN_BITS.contains(&align.ilog2()) {
            return Err(Unfit("the alignment is 8 or 16"));
        }
        if threshold % align != 0 || !(align..=MAX_THRESHOLD).contains(&threshold) {
            return Err(Unfit(
                "the threshold is a multiple of the alignment, of 512 at most",
            ));
        }
        if matches!(test, TestKind::Header | TestKind::Header24) && pool != 4096 {
            return Err(Unfit(
                "the header test reads the start of a pool's place, which is memory of the process for sure only where \
                 a pool is an OS page of 4KiB",
            ));
        }
        if test == TestKind::Header24 && keep != KEEP_ALL {
            return Err(Unfit(
                "2.4's header test takes every arena for held, so no arena may be released",
            ));
        }
        if order == OrderKind::Global && keep != KEEP_ALL {
            return Err(Unfit("the global list of pools never releases an arena"));
        }
        Ok(Tuned {
            arena_bits: arena.ilog2(),
            pool_bits: pool.ilog2(),
            align_bits: align.ilog2(),
            settings,
        })
    }

    /// What it was put together from.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }
}

// SAFETY: `new` has seen to the limits, and nothing changes the settings after it.
unsafe impl Policy for Tuned {
    type Order = AnyOrder;
    type Test = AnyTest;

    #[inline]
    fn order(&self) -> Self::Order {
        AnyOrder::new(self.settings.order)
    }

    #[inline]
    fn test<O: Os>(&self, os: &O) -> Option<Self::Test> {
        AnyTest::new(self.settings.test, os, self.arena_bits)
    }

    #[inline]
    fn arena_bits(&self) -> u32 {
        self.arena_bits
    }

    #[inline]
    fn pool_bits(&self) -> u32 {
        self.pool_bits
    }

    #[inline]
    fn align_bits(&self) -> u32 {
        self.align_bits
    }

    #[inline]
    fn threshold(&self) -> usize {
        self.settings.threshold
    }

    #[inline]
    fn keep(&self) -> u32 {
        self.settings.keep
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Python24, Python25, Python38, Python39, Python310};
    use super::*;

    #[test]
    fn settings_read_back() {
        let settings = Settings {
            align: 8,
            threshold: 256,
            order: OrderKind::Last,
            ..Settings::PYTHON_3_8
        };
        let tuned = Tuned::new(settings).expect("they fit");
        assert_eq!(tuned.settings(), settings);
        assert_eq!((tuned.arena_size(), tuned.pool_size()), (256 << 10, 4096));
    }

    /// Each generation's numbers, as constants and as settings.
    #[test]
    fn generations_are_the_same_either_way() {
        fn same<P: Policy>(policy: P, settings: Settings) {
            let tuned = Tuned::new(settings).expect("they fit");
            let numbers = (
                policy.arena_bits(),
                policy.pool_bits(),
                policy.align_bits(),
                policy.threshold(),
                policy.keep(),
            );
            let of_tuned = (
                tuned.arena_bits(),
                tuned.pool_bits(),
                tuned.align_bits(),
                tuned.threshold(),
                tuned.keep(),
            );
            assert_eq!(numbers, of_tuned);
        }
        same(Python24, Settings::PYTHON_2_4);
        same(Python25, Settings::PYTHON_2_5);
        same(Python38, Settings::PYTHON_3_8);
        same(Python39, Settings::PYTHON_3_9);
        same(Python310::default(), Settings::PYTHON_3_10);
        let keep0 = Settings {
            keep: 0,
            ..Settings::PYTHON_3_10
        };
        same(Python310 { keep: false }, keep0);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let wrong = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            match Tuned::new(settings) {
                Err(Unfit(why)) => why,
                Ok(_) => panic!("{settings:?} is not refused"),
            }
        };
        for (why, said) in [
            (wrong(|s| s.arena = 3 << 20), "powers"),
            (wrong(|s| s.pool = 0), "powers"),
            (wrong(|s| s.pool = 2048), "4KiB"),
            (wrong(|s| s.arena = 1 << 25), "16MiB"),
            (wrong(|s| s.arena = 32 << 10), "4 to 1024"),
            (wrong(|s| (s.arena, s.pool) = (8 << 20, 4096)), "4 to 1024"),
            (wrong(|s| s.align = 0), "8 or 16"),
            (wrong(|s| s.align = 32), "8 or 16"),
            (wrong(|s| s.threshold = 0), "threshold"),
            (wrong(|s| s.threshold = 500), "threshold"),
            (wrong(|s| s.threshold = 528), "threshold"),
            (wrong(|s| s.test = TestKind::Header), "OS page"),
            (wrong(|s| s.test = TestKind::Header24), "OS page"),
            (
                wrong(|s| {
                    *s = Settings::PYTHON_3_9;
                    s.test = TestKind::Header24;
                }),
                "every arena for held",
            ),
            (wrong(|s| s.order = OrderKind::Global), "never releases"),
        ] {
            assert!(why.contains(said), "{why}");
        }
    }
}
