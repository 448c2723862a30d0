//! CPython 3.8: the order of 2.5, kept in constant time (bpo-37029).

use super::{ByFreePools, Policy};
use crate::address_test::PoolHeader;
use crate::os::Os;

/// The policy, its numbers constants of the code.
#[derive(Debug, Clone, Copy, Default)]
pub struct Python38;

// SAFETY: constants, within the limits; pools of 4 KiB.
unsafe impl Policy for Python38 {
    type Order = ByFreePools;
    type Test = PoolHeader;

    #[inline]
    fn order(&self) -> Self::Order {
        ByFreePools::default()
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
