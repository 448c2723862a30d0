//! CPython 3.10 and later: arenas of 1 MiB, pools of 16 KiB (bpo-37448), one empty arena kept (bpo-37257, 3.9).

use super::{ByFreePools, Policy};

/// The policy, its numbers constants of the code.
#[derive(Debug, Clone, Copy)]
pub struct Python310 {
    /// Whether the last empty arena is kept, as since 3.9. Without it an empty arena is released at once, as before.
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

    #[inline]
    fn arena_bits(&self) -> u32 {
        20
    }

    #[inline]
    fn pool_bits(&self) -> u32 {
        14
    }

    #[inline]
    fn threshold(&self) -> usize {
        512
    }

    #[inline]
    fn releases(&self, another_follows: bool) -> bool {
        !self.keep || another_follows
    }
}
