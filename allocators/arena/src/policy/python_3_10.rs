//! CPython 3.10 and later: arenas of 1 MiB and pools of 16 KiB, which no header test can serve, so the address test is a
//! radix tree (bpo-37448). One empty arena is kept, as since 3.9.

use super::{ByFreePools, Policy};
use crate::address_map::AddressMap;
use crate::os::Os;

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
    fn order(&self) -> Self::Order {
        ByFreePools::default()
    }

    #[inline]
    fn test<O: Os>(&self, os: &O) -> Option<Self::Test> {
        AddressMap::new(os, self.arena_bits())
    }

    #[inline]
    fn keep(&self) -> u32 {
        u32::from(self.keep)
    }
}
