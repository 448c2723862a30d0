//! CPython 2.4's policy with the address test of 2.5: nobody had it. Beside [`Python24`] it shows what the
//! comparison costs that 2.5 added, as nothing else differs.

use super::{Policy, Python24};
use crate::address_test::PoolHeader;
use crate::os::Os;

/// The policy, its numbers constants of the code.
#[derive(Debug, Clone, Copy, Default)]
pub struct Python24Asking;

// SAFETY: the numbers and the order are those of `Python24`, and this test does not even need that order.
unsafe impl Policy for Python24Asking {
    type Order = <Python24 as Policy>::Order;
    type Test = PoolHeader;

    #[inline]
    fn order(&self) -> Self::Order {
        Python24.order()
    }

    #[inline]
    fn test<O: Os>(&self, _os: &O) -> Option<Self::Test> {
        Some(PoolHeader)
    }

    #[inline]
    fn arena_bits(&self) -> u32 {
        Python24.arena_bits()
    }

    #[inline]
    fn pool_bits(&self) -> u32 {
        Python24.pool_bits()
    }

    #[inline]
    fn keep(&self) -> u32 {
        Python24.keep()
    }
}
