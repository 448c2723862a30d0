//! Growth: how a count rises with the size.
//!
//! Counts are deterministic, so there is no interval: the exponent is given with the largest deviation of a point from
//! the fit, and with the local exponents between neighbouring sizes. A fit over small sizes misleads (jemalloc: 1.9
//! over 1-64 MiB, 1.1 over 8-64), so the sizes are always stated with it.

use super::sample::Points;
use serde::Serialize;

/// y = c x^k by least squares on the logarithms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PowerFit {
    /// k.
    pub exponent: f64,
    /// c.
    pub constant: f64,
    /// Largest relative deviation of a point from the fit, either way: 0.01 is 1 %.
    pub max_deviation: f64,
}

/// The exponent between two neighbouring sizes: log2(C(2n)/C(n)) where the sizes double.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LocalExponent {
    /// Smaller size.
    pub from: f64,
    /// Larger size.
    pub to: f64,
    /// ln(y2/y1) / ln(x2/x1).
    pub exponent: f64,
}

/// Fits a power law.
pub fn power(points: &Points) -> PowerFit {
    let logs: Vec<(f64, f64)> = points
        .values()
        .iter()
        .map(|(x, y)| (x.ln(), y.ln()))
        .collect();
    let n = logs.len() as f64;
    let (mean_x, mean_y) = (
        logs.iter().map(|p| p.0).sum::<f64>() / n,
        logs.iter().map(|p| p.1).sum::<f64>() / n,
    );
    let sxx: f64 = logs.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    let sxy: f64 = logs.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum();
    let exponent = sxy / sxx; // Points hold at least two sizes, so sxx > 0.
    let constant = (mean_y - exponent * mean_x).exp();
    PowerFit {
        exponent,
        constant,
        max_deviation: law_deviation(points, constant, exponent),
    }
}

/// The largest relative deviation of a point from the law y = `constant` x^`exponent`, either way.
pub fn law_deviation(points: &Points, constant: f64, exponent: f64) -> f64 {
    points
        .values()
        .iter()
        .map(|(x, y)| (y.ln() - constant.ln() - exponent * x.ln()).abs())
        .fold(0.0, f64::max)
        .exp_m1()
}

/// The exponents between neighbouring sizes, ascending.
pub fn local_exponents(points: &Points) -> Vec<LocalExponent> {
    points
        .values()
        .windows(2)
        .filter(|pair| pair[0].0 < pair[1].0)
        .map(|pair| LocalExponent {
            from: pair[0].0,
            to: pair[1].0,
            exponent: (pair[1].1 / pair[0].1).ln() / (pair[1].0 / pair[0].0).ln(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;

    #[test]
    fn a_pure_law_is_found_again() {
        let points = Points::new([1.0, 2.0, 4.0, 8.0].map(|x| (x, 3.0 * x * x))).expect("good");
        let fit = power(&points);
        assert!((fit.exponent - 2.0).abs() < 1e-12, "{fit:?}");
        assert!((fit.constant - 3.0).abs() < 1e-9, "{fit:?}");
        assert!(fit.max_deviation < 1e-9, "{fit:?}");
        assert!(
            local_exponents(&points)
                .iter()
                .all(|l| (l.exponent - 2.0).abs() < 1e-12)
        );
    }

    #[test]
    fn deviation_is_relative_and_counts_either_way() {
        let points = Points::new([(1.0, 1.0), (2.0, 4.4), (4.0, 16.0)]).expect("good");
        assert!((law_deviation(&points, 1.0, 2.0) - 0.1).abs() < 1e-9);
        let points = Points::new([(1.0, 1.0), (2.0, 4.0 / 1.1)]).expect("good");
        assert!((law_deviation(&points, 1.0, 2.0) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn the_rule_of_2007_has_exponent_two_over_8_to_64_mib() {
        // appended + copied, copied = N^2 / 8192.
        let points = Points::new(
            [8.0, 16.0, 32.0, 64.0].map(|m| (m * MIB, m * MIB + (m * MIB).powi(2) / 8192.0)),
        )
        .expect("good");
        let fit = power(&points);
        assert!((fit.exponent - 2.0).abs() < 0.002, "{fit:?}");
    }

    #[test]
    fn linear_growth_has_exponent_one() {
        let points = Points::new([(8.0, 40.0), (16.0, 84.0), (64.0, 320.0)]).expect("good");
        assert!((power(&points).exponent - 1.0).abs() < 0.02);
        let steps = local_exponents(&points);
        assert_eq!((steps.len(), steps[1].from, steps[1].to), (2, 16.0, 64.0));
    }
}
