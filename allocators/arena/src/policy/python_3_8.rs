//! CPython 3.8: the order of 2.5, kept in constant time (bpo-37029).
//!
//! **The rule** is that of 2.5. With thousands of arenas that have the same number of free pools, sliding one place at a time
//! had become the most of a free's work. Now the last arena of each number is remembered, and an arena moves to behind
//! that one in one step: to the very place that it would have slid to.

use super::{ByFreePools, Policy};
use crate::address_test::PoolHeader;

/// The policy, its numbers constants of the code.
#[derive(Debug, Clone, Copy, Default)]
pub struct Python38;

// SAFETY: constants, within the limits; pools of 4 KiB.
unsafe impl Policy for Python38 {
    type Order = ByFreePools;
    type Test = PoolHeader;

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
