//! 3.10's policy with numbers of one's own, read at run time: the lab for weighing a change.

use super::{ByFreePools, Policy, Python310};
use crate::arena::MAX_POOLS;
use crate::size_class::{ALIGNMENT, MAX_THRESHOLD};

/// The numbers of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Bytes in an arena.
    pub arena: usize,
    /// Bytes in a pool.
    pub pool: usize,
    /// Largest request, in bytes, that blocks serve.
    pub threshold: usize,
    /// Whether the last empty arena is kept.
    pub keep: bool,
}

impl Numbers {
    /// Those of a policy.
    #[must_use]
    pub fn of<P: Policy>(policy: &P) -> Numbers {
        Numbers {
            arena: policy.arena_size(),
            pool: policy.pool_size(),
            threshold: policy.threshold(),
            keep: !policy.releases(false),
        }
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers::of(&Python310::default())
    }
}

/// Why numbers cannot be a policy's, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfit(pub &'static str);

/// The policy.
#[derive(Debug, Clone, Copy)]
pub struct Tuned {
    arena_bits: u32,
    pool_bits: u32,
    threshold: usize,
    keep: bool,
}

impl Tuned {
    /// With these numbers.
    ///
    /// # Errors
    /// [`Unfit`], saying which of the limits they break.
    pub fn new(numbers: Numbers) -> Result<Tuned, Unfit> {
        let Numbers {
            arena,
            pool,
            threshold,
            keep,
        } = numbers;
        if !arena.is_power_of_two() || !pool.is_power_of_two() {
            return Err(Unfit("arena and pool sizes are powers of two"));
        }
        if pool < 4096 || arena > 1 << 24 {
            return Err(Unfit("a pool has at least 4KiB, an arena at most 16MiB"));
        }
        if !(4..=MAX_POOLS).contains(&(arena / pool)) {
            return Err(Unfit("an arena has 4 to 1024 pools"));
        }
        if threshold % ALIGNMENT != 0 || !(ALIGNMENT..=MAX_THRESHOLD).contains(&threshold) {
            return Err(Unfit("the threshold is a multiple of 16, from 16 to 512"));
        }
        Ok(Tuned {
            arena_bits: arena.ilog2(),
            pool_bits: pool.ilog2(),
            threshold,
            keep,
        })
    }
}

// SAFETY: `new` has seen to the limits, and nothing changes the numbers after it.
unsafe impl Policy for Tuned {
    type Order = ByFreePools;

    #[inline]
    fn arena_bits(&self) -> u32 {
        self.arena_bits
    }

    #[inline]
    fn pool_bits(&self) -> u32 {
        self.pool_bits
    }

    #[inline]
    fn threshold(&self) -> usize {
        self.threshold
    }

    #[inline]
    fn releases(&self, another_follows: bool) -> bool {
        !self.keep || another_follows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back() {
        let numbers = Numbers {
            arena: 256 << 10,
            pool: 4096,
            threshold: 256,
            keep: false,
        };
        assert_eq!(
            Tuned::new(numbers).map(|tuned| Numbers::of(&tuned)),
            Ok(numbers)
        );
        assert_eq!(
            Numbers::default(),
            Numbers {
                arena: 1 << 20,
                pool: 16 << 10,
                threshold: 512,
                keep: true
            }
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let good = Numbers::default();
        for (wrong, said) in [
            (
                Numbers {
                    arena: 3 << 20,
                    ..good
                },
                "powers",
            ),
            (Numbers { pool: 0, ..good }, "powers"),
            (Numbers { pool: 2048, ..good }, "4KiB"),
            (
                Numbers {
                    arena: 1 << 25,
                    ..good
                },
                "16MiB",
            ),
            (
                Numbers {
                    arena: 32 << 10,
                    ..good
                },
                "4 to 1024",
            ),
            (
                Numbers {
                    arena: 8 << 20,
                    pool: 4096,
                    ..good
                },
                "4 to 1024",
            ),
            (
                Numbers {
                    threshold: 0,
                    ..good
                },
                "threshold",
            ),
            (
                Numbers {
                    threshold: 500,
                    ..good
                },
                "threshold",
            ),
            (
                Numbers {
                    threshold: 528,
                    ..good
                },
                "threshold",
            ),
        ] {
            let Err(Unfit(why)) = Tuned::new(wrong) else {
                panic!("{wrong:?} is not refused")
            };
            assert!(why.contains(said), "{wrong:?}: {why}");
        }
    }
}
