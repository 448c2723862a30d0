//! CPython 2.3 and 2.4.
//!
//! **The rule.** A pool that becomes empty goes to the front of one list for the whole heap, whichever arena it is of. Who
//! needs a pool takes the first of that list; if there is none, one is carved off the newest arena; if that has no room
//! left, an arena is got, 256 KiB from malloc (here from mmap, unless `source=malloc` is asked for). No arena is ever given
//! back, so the address test need not ask whether an arena is still there.

use super::{GlobalPools, KEEP_ALL, Policy};
use crate::address_test::PoolHeader;

/// The policy, its numbers constants of the code.
#[derive(Debug, Clone, Copy, Default)]
pub struct Python24;

// SAFETY: constants, within the limits; pools of 4 KiB, and an order that never releases.
unsafe impl Policy for Python24 {
    type Order = GlobalPools;
    type Test = PoolHeader<false>;

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
