//! Seeded text whose lines have lognormal lengths, as the lines of programs and logs nearly do: many short ones, and a
//! few very long ones.

use super::corpus::Corpus;
use rand::SeedableRng;
use rand_distr::{Distribution, LogNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Mean and standard deviation of the logarithm of a length without its newline, before it is rounded down.
pub const LOG_LENGTH: (f64, f64) = (3.5, 0.8);
/// Longest line in bytes, newline included; nobody has drawn one: 9 standard deviations.
pub const LONGEST: u32 = 1 << 16;

/// Lengths in bytes of the first `count` lines of the endless text for `seed`, newline included: 1 at least.
pub fn lengths(seed: u64, count: usize) -> Vec<u32> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    // 2^128 draws ahead: the characters come from the stream before it.
    random.jump();
    let (mean, deviation) = LOG_LENGTH;
    let Ok(drawn) = LogNormal::new(mean, deviation) else {
        unreachable!("the deviation is finite");
    };
    drawn
        .sample_iter(random)
        .take(count)
        .map(|length| (length as u32).min(LONGEST - 1) + 1)
        .collect()
}

/// Fills `out` with the text for `seed` whose lines have `lengths`, which add up to its length.
pub fn fill(seed: u64, lengths: &[u32], out: &mut [u8]) {
    Corpus::Unbroken.fill(seed, out);
    let mut end = 0;
    for length in lengths {
        end += *length as usize;
        out[end - 1] = b'\n';
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::lines;
    use xxhash_rust::xxh3::xxh3_64;

    fn text(seed: u64, count: usize) -> (Vec<u32>, Vec<u8>) {
        let lengths = lengths(seed, count);
        let bytes = lengths.iter().map(|length| *length as usize).sum();
        let mut text = vec![0; bytes];
        fill(seed, &lengths, &mut text);
        (lengths, text)
    }

    /// The standard normal distribution, by Simpson's rule from 10 standard deviations below.
    fn normal(z: f64) -> f64 {
        let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let (steps, from) = (2000, -10.0);
        let step = (z - from) / f64::from(steps);
        let weighted = |i: i32| {
            let weight = if i == 0 || i == steps {
                1.0
            } else {
                f64::from(2 + 2 * (i % 2))
            };
            weight * density(from + f64::from(i) * step)
        };
        (0..=steps).map(weighted).sum::<f64>() * step / 3.0
    }

    #[test]
    fn lengths_are_lognormal() {
        let drawn = lengths(5, 200_000);
        assert_eq!(drawn[..1000], lengths(5, 1000));
        let (mean, deviation) = LOG_LENGTH;
        // Chance of a line of fewer than `edge` bytes without its newline.
        let below = |edge: u32| normal((f64::from(edge).ln() - mean) / deviation);
        let edges = [
            1, 5, 8, 12, 16, 20, 26, 33, 42, 54, 70, 95, 140, 220, 400, LONGEST,
        ];
        let mut all = 0;
        for (i, edge) in edges.iter().enumerate() {
            let from = if i == 0 { 0 } else { edges[i - 1] };
            let p = below(*edge) - if i == 0 { 0.0 } else { below(from) };
            let seen = drawn
                .iter()
                .filter(|length| (from..*edge).contains(&(**length - 1)))
                .count();
            all += seen;
            let n = drawn.len() as f64;
            // n p +- 5 standard deviations of a binomial, and one line for classes in which hardly any is expected.
            let off = (seen as f64 - n * p).abs();
            assert!(
                off <= 1.0 + 5.0 * (n * p * (1.0 - p)).sqrt(),
                "below {edge}: {seen}"
            );
        }
        assert_eq!(all, drawn.len());
    }

    #[test]
    fn the_text_has_these_lines_and_the_characters_of_every_text() {
        let (lengths, text) = text(1, 40_000);
        let mut found = Vec::new();
        lines::split(&text, &mut found).expect("short enough");
        assert_eq!(found, lengths);
        let mut unbroken = vec![0; text.len()];
        Corpus::Unbroken.fill(1, &mut unbroken);
        assert!(
            text.iter()
                .zip(&unbroken)
                .all(|(a, b)| a == b || *a == b'\n')
        );
    }

    /// Records name their input by hash: it must stay as it is, or the schema number must rise.
    #[test]
    fn golden_hash() {
        let (_, text) = text(1, 40_000);
        assert_eq!(
            (text.len(), xxh3_64(&text)),
            (1_843_028, 0xf5be_9f0f_6fce_1f9c)
        );
    }
}
