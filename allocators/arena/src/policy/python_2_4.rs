//! CPython 2.3 and 2.4: arenas are never released, so a pool is free for all, and the address test need not ask whether
//! an arena is still there.

use super::{GlobalPools, KEEP_ALL, Policy};
use crate::address_test::PoolHeader;
use crate::os::Os;

/// The policy, its numbers constants of the code.
#[derive(Debug, Clone, Copy, Default)]
pub struct Python24;

// SAFETY: constants, within the limits; pools of 4 KiB, and an order that never releases.
unsafe impl Policy for Python24 {
    type Order = GlobalPools;
    type Test = PoolHeader<false>;

    #[inline]
    fn order(&self) -> Self::Order {
        GlobalPools::default()
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
        KEEP_ALL
    }
}
