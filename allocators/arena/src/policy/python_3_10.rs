//! CPython 3.10 and later: arenas of 1 MiB, pools of 16 KiB (bpo-37448).
//!
//! **The rule** for arenas is that of 3.9. Pools are larger than an OS page now, and the place where a foreign block's pool would
//! begin may be no memory of the process at all. So whether an address lies in an arena is told by a radix tree of three
//! levels, each of whose leaves knows where in its MiB of addresses an arena begins and where one ends.

use super::{ByFreePools, Policy};
use crate::address_map::AddressMap;

/// The policy, its numbers constants of the code.
#[derive(Debug, Clone, Copy)]
pub struct Python310 {
    /// Whether the last empty arena is kept. Without it an empty arena is released at once, as up to 3.8: the experiment
    /// of 2019.
    pub keep: bool,
}

impl Default for Python310 {
    fn default() -> Self {
        Python310 { keep: true }
    }
}

// SAFETY: constants, within the limits.
unsafe impl Policy for Python310 {
    type Order = ByFreePools;
    type Test = AddressMap;

    #[inline]
    fn keep(&self) -> u32 {
        u32::from(self.keep)
    }
}
