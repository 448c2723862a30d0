//! Samples that cannot be bad: not empty, finite, and above 0 where a logarithm is taken. Checked once, in the
//! constructors; the functions of this folder then have nothing left to refuse.

use std::fmt;

/// Why numbers are no sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BadSample {
    /// Fewer values than needed.
    TooFew {
        /// How many there were.
        have: usize,
        /// How many are needed.
        need: usize,
    },
    /// NaN, infinite, zero or negative.
    NotPositive(f64),
    /// All points of a fit have the same size.
    OneSize,
}

impl fmt::Display for BadSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadSample::TooFew { have, need } => write!(f, "{have} values, at least {need} needed"),
            BadSample::NotPositive(value) => write!(f, "{value} is not a finite value above 0"),
            BadSample::OneSize => write!(f, "all points have the same size"),
        }
    }
}
impl std::error::Error for BadSample {}

fn positive(value: f64) -> Result<f64, BadSample> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(BadSample::NotPositive(value))
    }
}

/// The values of one metric in one cell: at least one, all finite and above 0, kept sorted.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// A sample of `values`, in any order.
    ///
    /// # Errors
    /// [`BadSample`] if there is none, or one is not finite and above 0.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Result<Sample, BadSample> {
        let mut values = values
            .into_iter()
            .map(positive)
            .collect::<Result<Vec<_>, _>>()?;
        if values.is_empty() {
            return Err(BadSample::TooFew { have: 0, need: 1 });
        }
        values.sort_unstable_by(f64::total_cmp);
        Ok(Sample(values))
    }

    /// The median; of an even number of values the mean of the middle two.
    pub fn median(&self) -> f64 {
        quantile_of_sorted(&self.0, 0.5)
    }

    /// The smallest value.
    pub fn min(&self) -> f64 {
        self.0[0]
    }

    /// The largest value.
    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}

/// Ratios paired by block, as natural logarithms of a/b: at least one pair, blocks ascending and distinct.
#[derive(Debug, Clone, PartialEq)]
pub struct Pairs {
    blocks: Vec<u32>,
    logs: Vec<f64>,
}

impl Pairs {
    /// Pairs from `(block, a, b)`. Of two entries with the same block the first stands.
    ///
    /// # Errors
    /// [`BadSample`] if there is no pair, or a value is not finite and above 0.
    pub fn new(pairs: impl IntoIterator<Item = (u32, f64, f64)>) -> Result<Pairs, BadSample> {
        let mut rows = pairs
            .into_iter()
            .map(|(block, a, b)| Ok((block, positive(a)?.ln() - positive(b)?.ln())))
            .collect::<Result<Vec<_>, BadSample>>()?;
        if rows.is_empty() {
            return Err(BadSample::TooFew { have: 0, need: 1 });
        }
        rows.sort_by_key(|(block, _)| *block);
        rows.dedup_by_key(|(block, _)| *block);
        let (blocks, logs) = rows.into_iter().unzip();
        Ok(Pairs { blocks, logs })
    }

    /// The blocks, ascending.
    pub fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// ln(a/b), in the order of [`Pairs::blocks`].
    pub fn logs(&self) -> &[f64] {
        &self.logs
    }
}

/// Sizes and values for a growth fit: at least two distinct sizes, all finite and above 0, sizes ascending.
#[derive(Debug, Clone, PartialEq)]
pub struct Points(Vec<(f64, f64)>);

impl Points {
    /// Points `(size, value)` in any order.
    ///
    /// # Errors
    /// [`BadSample`] if there are fewer than two sizes, or a number is not finite and above 0.
    pub fn new(points: impl IntoIterator<Item = (f64, f64)>) -> Result<Points, BadSample> {
        let mut points = points
            .into_iter()
            .map(|(x, y)| Ok((positive(x)?, positive(y)?)))
            .collect::<Result<Vec<_>, BadSample>>()?;
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        match (points.first(), points.last()) {
            (Some(first), Some(last)) if points.len() >= 2 => {
                if first.0 < last.0 {
                    Ok(Points(points))
                } else {
                    Err(BadSample::OneSize)
                }
            }
            _ => Err(BadSample::TooFew {
                have: points.len(),
                need: 2,
            }),
        }
    }

    /// The points, sizes ascending.
    pub fn values(&self) -> &[(f64, f64)] {
        &self.0
    }
}

/// The `q` quantile (0 to 1) of ascending, non-empty values, by linear interpolation between order statistics
/// (Hyndman and Fan's type 7, the default of R and NumPy).
pub(crate) fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let at = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

/// The median of non-empty values, which it sorts.
pub(crate) fn median_in_place(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_medians_and_quantiles() {
        let sample = Sample::new([4.0, 1.0, 3.0, 2.0]).expect("good");
        assert_eq!(
            (sample.min(), sample.median(), sample.max()),
            (1.0, 2.5, 4.0)
        );
        assert_eq!(quantile_of_sorted(&[0.0, 10.0, 20.0], 0.75), 15.0);
        assert_eq!(quantile_of_sorted(&[7.0], 0.95), 7.0);
    }

    #[test]
    fn bad_numbers_are_refused() {
        assert_eq!(Sample::new([]), Err(BadSample::TooFew { have: 0, need: 1 }));
        assert_eq!(Sample::new([1.0, 0.0]), Err(BadSample::NotPositive(0.0)));
        assert!(Sample::new([f64::NAN]).is_err());
        assert!(Pairs::new([(0, 1.0, f64::INFINITY)]).is_err());
        assert_eq!(
            Points::new([(1.0, 1.0)]),
            Err(BadSample::TooFew { have: 1, need: 2 })
        );
        assert_eq!(
            Points::new([(1.0, 1.0), (1.0, 2.0)]),
            Err(BadSample::OneSize)
        );
    }

    #[test]
    fn pairs_stand_in_the_order_of_blocks() {
        let pairs = Pairs::new([(2, 4.0, 1.0), (0, 1.0, 1.0), (2, 9.0, 1.0)]).expect("good");
        assert_eq!(pairs.blocks(), [0, 2]);
        assert_eq!(pairs.logs()[0], 0.0);
        assert!((pairs.logs()[1] - 4.0f64.ln()).abs() < 1e-12);
    }
}
