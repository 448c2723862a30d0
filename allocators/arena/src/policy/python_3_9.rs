//! CPython 3.9: one empty arena is kept (bpo-37257).
//!
//! **The rule** is that of 3.8, but an arena all of whose pools are free goes back only if another one with free pools follows
//! it on the list. It is the emptiest there is, so it stands last, and stays, unless there is another as empty. Without
//! that, a block that comes and goes at the edge of an arena costs an arena each time.

use super::{ByFreePools, Policy};
use crate::address_test::PoolHeader;

/// The policy, its numbers constants of the code.
#[derive(Debug, Clone, Copy, Default)]
pub struct Python39;

// SAFETY: constants, within the limits; pools of 4 KiB.
unsafe impl Policy for Python39 {
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
        1
    }
}
