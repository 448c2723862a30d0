//! Size classes: which sizes share a block size. Plain arithmetic, no memory touched.

use core::num::NonZeroU32;

/// Logarithms of the alignments that there can be: 8 bytes, as in CPython up to 3.7.3, and 16.
pub const ALIGN_BITS: core::ops::RangeInclusive<u32> = 3..=4;

/// Largest request, in bytes, that blocks can serve; a policy may draw the line lower.
pub const MAX_THRESHOLD: usize = 512;

/// The most classes that there can be: with an alignment of 8 bytes.
pub const MAX_CLASSES: usize = MAX_THRESHOLD >> *ALIGN_BITS.start();

/// A size class, under an alignment of `1 << align_bits` bytes, which the policy knows.
///
/// Kept as the block size in units of the alignment, which is never 0: `block size = alignment * units`,
/// `index = units - 1`, `1 <= units <= MAX_CLASSES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct SizeClass(NonZeroU32);

impl SizeClass {
    /// The class of a request of `size` bytes, `(size - 1) / alignment`; `None` for 0 and for more than `threshold`
    /// bytes.
    #[inline]
    #[must_use]
    pub fn of(size: usize, threshold: usize, align_bits: u32) -> Option<SizeClass> {
        debug_assert!(threshold <= MAX_THRESHOLD);
        // 0 becomes the largest number, so that one comparison sees both ends.
        let last = size.wrapping_sub(1);
        if last >= threshold {
            return None;
        }
        NonZeroU32::new((last >> align_bits) as u32 + 1).map(SizeClass)
    }

    /// Those that requests of up to `threshold` bytes have, smallest first.
    pub fn all(threshold: usize, align_bits: u32) -> impl Iterator<Item = SizeClass> {
        (1..=(threshold >> align_bits) as u32)
            .filter_map(|units| NonZeroU32::new(units).map(SizeClass))
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
    pub fn block_size(self, align_bits: u32) -> usize {
        (self.0.get() as usize) << align_bits
    }
}

/// Blocks of `block_size` bytes in a pool of `pool_size` bytes, of which `header` are its header.
#[must_use]
pub fn capacity(block_size: usize, pool_size: usize, header: usize) -> usize {
    (pool_size - header) / block_size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_block_that_holds_it() {
        for bits in ALIGN_BITS {
            let alignment = 1 << bits;
            for threshold in (alignment..=MAX_THRESHOLD).step_by(alignment) {
                for size in 1..=threshold {
                    let class = SizeClass::of(size, threshold, bits).expect("served");
                    assert_eq!(class.index(), (size - 1) / alignment);
                    assert!(class.index() < MAX_CLASSES);
                    let block = class.block_size(bits);
                    assert!(size <= block && block < size + alignment);
                }
                for outside in [0, threshold + 1, usize::MAX] {
                    assert_eq!(SizeClass::of(outside, threshold, bits), None);
                }
            }
        }
    }

    #[test]
    fn there_are_32_or_64_and_their_block_sizes_ascend() {
        for (bits, threshold, count) in [(4, 512, 32), (4, 256, 16), (3, 512, 64), (3, 256, 32)] {
            assert_eq!(SizeClass::all(threshold, bits).count(), count);
            for (index, class) in SizeClass::all(threshold, bits).enumerate() {
                assert_eq!(class.index(), index);
                assert_eq!(class.block_size(bits), (index + 1) << bits);
            }
        }
    }

    #[test]
    fn capacities_of_cpythons_pools() {
        let of = |size, pool| capacity(size, pool, 48);
        // What an empty list or dict took in CPython 2.7 to 3.8, in pools of 4 KiB; then pools of 16 KiB.
        assert_eq!(
            [of(64, 4096), of(80, 4096), of(176, 4096), of(288, 4096)],
            [63, 50, 23, 14]
        );
        assert_eq!([of(64, 16384), of(512, 16384)], [255, 31]);
    }
}
