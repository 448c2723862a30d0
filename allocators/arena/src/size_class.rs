//! Size classes: which sizes share a block size. Plain arithmetic, no memory touched.

use core::num::NonZeroU32;

/// Bytes from one block size to the next, and the alignment of every block.
pub const ALIGNMENT: usize = 16;

/// Largest request, in bytes, that blocks can serve; a policy may draw the line lower.
pub const MAX_THRESHOLD: usize = 512;

/// How many classes there are.
pub const CLASSES: usize = MAX_THRESHOLD / ALIGNMENT;

/// A size class.
///
/// Kept as the block size in units of [`ALIGNMENT`], which is never 0: `block size = ALIGNMENT * units`,
/// `index = units - 1`, `1 <= units <= CLASSES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeClass(NonZeroU32);

impl SizeClass {
    /// The class of a request of `size` bytes, `(size - 1) / 16`; `None` for 0 and for more than `threshold` bytes.
    #[inline]
    #[must_use]
    pub fn of(size: usize, threshold: usize) -> Option<SizeClass> {
        debug_assert!(threshold <= MAX_THRESHOLD);
        // 0 becomes the largest number, so that one comparison sees both ends.
        let last = size.wrapping_sub(1);
        if last >= threshold {
            return None;
        }
        NonZeroU32::new((last / ALIGNMENT) as u32 + 1).map(SizeClass)
    }

    /// All of them, smallest first.
    pub fn all() -> impl Iterator<Item = SizeClass> {
        (1..=CLASSES as u32).filter_map(|units| NonZeroU32::new(units).map(SizeClass))
    }

    /// Its place among the classes, from 0.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// Bytes in each of its blocks.
    #[inline]
    #[must_use]
    pub fn block_size(self) -> usize {
        self.0.get() as usize * ALIGNMENT
    }

    /// Blocks in a pool of `pool_size` bytes, of which `header` are its header.
    #[must_use]
    pub fn capacity(self, pool_size: usize, header: usize) -> usize {
        (pool_size - header) / self.block_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_block_that_holds_it() {
        for threshold in (ALIGNMENT..=MAX_THRESHOLD).step_by(ALIGNMENT) {
            for size in 1..=threshold {
                let class = SizeClass::of(size, threshold).expect("served");
                assert_eq!(class.index(), (size - 1) / 16);
                assert!(class.index() < CLASSES);
                assert!(size <= class.block_size() && class.block_size() < size + ALIGNMENT);
            }
            assert_eq!(SizeClass::of(0, threshold), None);
            assert_eq!(SizeClass::of(threshold + 1, threshold), None);
            assert_eq!(SizeClass::of(usize::MAX, threshold), None);
        }
    }

    #[test]
    fn there_are_32_and_their_block_sizes_ascend() {
        assert_eq!(SizeClass::all().count(), CLASSES);
        for (index, class) in SizeClass::all().enumerate() {
            assert_eq!(class.index(), index);
            assert_eq!(class.block_size(), 16 * (index + 1));
        }
    }

    #[test]
    fn capacities_of_cpythons_pools() {
        let of = |size, pool| SizeClass::of(size, 512).expect("served").capacity(pool, 48);
        // What an empty list or dict took in CPython 2.7 to 3.8, in pools of 4 KiB; then pools of 16 KiB.
        assert_eq!(
            [of(64, 4096), of(80, 4096), of(176, 4096), of(288, 4096)],
            [63, 50, 23, 14]
        );
        assert_eq!([of(64, 16384), of(512, 16384)], [255, 31]);
    }
}
