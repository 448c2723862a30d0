//! CPython 2.5 to 3.7: arenas are released when their last pool is free, and the fullest is taken from first (Evan Jones,
//! Tim Peters, 2006).

use super::{LinearSlide, Policy};
use crate::address_test::PoolHeader;
use crate::os::Os;

/// The policy, its numbers constants of the code.
#[derive(Debug, Clone, Copy, Default)]
pub struct Python25;

// SAFETY: constants, within the limits; pools of 4 KiB.
unsafe impl Policy for Python25 {
    type Order = LinearSlide;
    type Test = PoolHeader;

    #[inline]
    fn order(&self) -> Self::Order {
        LinearSlide
    }

    #[inline]
    fn test<O: Os>(&self, _os: &O) -> Option<Self::Test> {
        Some(PoolHeader)
    }

    #[inline]
    fn arena_bits(&self) -> u32 {
        18
    }

    #[inline]
    fn pool_bits(&self) -> u32 {
        12
    }

    #[inline]
    fn keep(&self) -> u32 {
        0
    }
}
