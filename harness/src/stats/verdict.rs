//! The verdict on one ratio of times, arm over baseline.
//!
//! Let m be the stated margin. In this order:
//! - fewer than 6 blocks, or no A/A pairs: **not decidable**;
//! - the whole interval lies within `1/(1+m) ..= 1+m`, and so does the noise floor: **equivalent** (a difference below the
//!   margin may be real, but is stated not to matter; where two equal arms differ by more than the margin, nothing can
//!   be called the same within it);
//! - the interval excludes 1 and the estimate lies beyond the noise floor: **faster** or **slower**;
//! - else **undecided**: the interval is too wide.

use super::floor::Floor;
use super::ratio::{MIN_BLOCKS, Ratio};
use serde::Serialize;

/// The stated margin within which two times count as the same: 5 %.
pub const MARGIN: f64 = 0.05;

/// What a ratio of times says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Verdict {
    /// Takes less time than the baseline.
    Faster,
    /// Takes more time than the baseline.
    Slower,
    /// The same within the margin.
    Equivalent,
    /// The interval is too wide to say.
    Undecided,
    /// Something is missing.
    NotDecidable {
        /// What.
        why: String,
    },
}

impl Verdict {
    /// The word in tables.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Equivalent => "equivalent",
            Verdict::Undecided => "undecided",
            Verdict::NotDecidable { .. } => "not decidable",
        }
    }
}

/// Judges `ratio` (arm over baseline) with `margin` (0.05 for 5 %) and the run's noise floor.
pub fn verdict(ratio: &Ratio, margin: f64, floor: Option<Floor>) -> Verdict {
    let why = |text: String| Verdict::NotDecidable { why: text };
    if ratio.blocks < MIN_BLOCKS {
        return why(format!(
            "{} blocks, a verdict needs at least {MIN_BLOCKS} blocks",
            ratio.blocks
        ));
    }
    let (Some(interval), Some(floor)) = (ratio.interval, floor) else {
        return why("no A/A pairs, so the noise floor is not known".to_owned());
    };
    let band = 1.0 + margin;
    if interval.low >= 1.0 / band && interval.high <= band && floor.ratio <= band {
        Verdict::Equivalent
    } else if interval.high < 1.0 && ratio.estimate < 1.0 / floor.ratio {
        Verdict::Faster
    } else if interval.low > 1.0 && ratio.estimate > floor.ratio {
        Verdict::Slower
    } else {
        Verdict::Undecided
    }
}

/// The minimum detectable effect of a table, as a ratio above 1: the smallest ratio whose interval, at the spread seen
/// in the table's middle cell, would exclude 1, and which would lie beyond the noise floor. The half-width of an
/// interval is taken on the logarithm; of the cells the median counts. `None` without intervals or floor.
pub fn minimum_detectable(ratios: &[Ratio], floor: Option<Floor>) -> Option<f64> {
    let mut halves: Vec<f64> = ratios
        .iter()
        .filter_map(|ratio| ratio.interval)
        .map(|interval| (interval.high / interval.low).ln() / 2.0)
        .collect();
    let floor = floor?;
    if halves.is_empty() {
        return None;
    }
    Some(
        super::sample::median_in_place(&mut halves)
            .exp()
            .max(floor.ratio),
    )
}

#[cfg(test)]
mod tests {
    use super::super::ratio::Interval;
    use super::*;

    const FLOOR: Option<Floor> = Some(Floor {
        ratio: 1.02,
        pairs: 60,
    });

    fn ratio(estimate: f64, low: f64, high: f64) -> Ratio {
        Ratio {
            estimate,
            interval: Some(Interval { low, high }),
            blocks: 6,
        }
    }

    #[test]
    fn the_four_verdicts() {
        for (ratio, expected) in [
            (ratio(0.80, 0.75, 0.85), Verdict::Faster),
            (ratio(1.30, 1.10, 1.50), Verdict::Slower),
            (ratio(1.00, 0.97, 1.04), Verdict::Equivalent),
            (ratio(1.03, 1.01, 1.04), Verdict::Equivalent),
            (ratio(1.10, 0.95, 1.30), Verdict::Undecided),
        ] {
            assert_eq!(verdict(&ratio, MARGIN, FLOOR), expected, "{ratio:?}");
        }
    }

    #[test]
    fn an_effect_within_the_noise_floor_is_not_stated() {
        let noisy = Some(Floor {
            ratio: 1.40,
            pairs: 60,
        });
        assert_eq!(
            verdict(&ratio(1.30, 1.10, 1.50), MARGIN, noisy),
            Verdict::Undecided
        );
        // Nor is sameness, where equal arms differ by more than the margin.
        assert_eq!(
            verdict(&ratio(1.00, 0.97, 1.04), MARGIN, noisy),
            Verdict::Undecided
        );
    }

    #[test]
    fn too_few_blocks_or_no_floor() {
        let few = Ratio {
            blocks: 5,
            ..ratio(9.0, 8.0, 10.0)
        };
        let Verdict::NotDecidable { why } = verdict(&few, MARGIN, FLOOR) else {
            panic!("decided")
        };
        assert!(why.contains("at least 6 blocks"), "{why}");
        let Verdict::NotDecidable { why } = verdict(&ratio(9.0, 8.0, 10.0), MARGIN, None) else {
            panic!("decided")
        };
        assert!(why.contains("noise floor"), "{why}");
    }

    #[test]
    fn minimum_detectable_effect() {
        let ratios = [
            ratio(1.0, 0.9, 0.9 * 1.21),
            ratio(2.0, 1.0, 1.21),
            ratio(1.0, 0.5, 2.0),
        ];
        let effect = minimum_detectable(&ratios, FLOOR).expect("intervals");
        assert!((effect - 1.1).abs() < 1e-9, "{effect}");
        let noisy = Some(Floor {
            ratio: 1.40,
            pairs: 60,
        });
        assert_eq!(minimum_detectable(&ratios, noisy), Some(1.40));
        assert_eq!(minimum_detectable(&[], FLOOR), None);
    }
}
