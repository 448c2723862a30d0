//! CPython 2.5 to 3.7: arenas are given back (Evan Jones, Tim Peters, 2006).
//!
//! **The rule.** Each arena has its own list of empty pools. Arenas that have a free pool are on one list, those with the
//! fewest first, and pools are taken from the first: so the fuller arenas fill up, and the emptier ones have a chance to
//! become wholly empty. When all pools of an arena are free it goes back to the operating system at once. When its first
//! pool is, it goes to the front of the list. When it has got more than its right neighbour has, it slides to the right,
//! one place at a time. An arena that is gone leaves its record behind, with address 0, and the address test looks at it.

use super::{LinearSlide, Policy};
use crate::address_test::PoolHeader;

/// The policy, its numbers constants of the code.
#[derive(Debug, Clone, Copy, Default)]
pub struct Python25;

// SAFETY: constants, within the limits; pools of 4 KiB.
unsafe impl Policy for Python25 {
    type Order = LinearSlide;
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
