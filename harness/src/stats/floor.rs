//! The noise floor: how far two equal arms lie apart on this machine, in this run.
//!
//! The baseline runs twice in every block, under two labels. Whatever differs between the two is not the allocator.

use super::sample::{Pairs, quantile_of_sorted};
use serde::Serialize;

/// The noise floor of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Floor {
    /// As a ratio, at least 1: 95 % of the A/A pairs lie within `1/ratio ..= ratio`.
    pub ratio: f64,
    /// A/A pairs that it rests on: blocks times cells.
    pub pairs: usize,
}

/// The 95 % quantile of |ln ratio| over all A/A pairs; `None` if there is none.
pub fn noise_floor<'a>(cells: impl IntoIterator<Item = &'a Pairs>) -> Option<Floor> {
    let mut logs: Vec<f64> = cells
        .into_iter()
        .flat_map(Pairs::logs)
        .map(|log| log.abs())
        .collect();
    if logs.is_empty() {
        return None;
    }
    logs.sort_unstable_by(f64::total_cmp);
    Some(Floor {
        ratio: quantile_of_sorted(&logs, 0.95).exp(),
        pairs: logs.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faster_and_slower_count_alike() {
        let cell = |ratio: f64| Pairs::new([(0, ratio, 1.0)]).expect("good pairs");
        let mut cells = vec![cell(1.0); 18];
        cells.extend([cell(1.1), cell(1.0 / 1.1), cell(1.0 / 1.1)]);
        let floor = noise_floor(&cells).expect("21 pairs");
        assert_eq!(floor.pairs, 21);
        assert!((floor.ratio - 1.1).abs() < 1e-9, "{floor:?}");
    }

    #[test]
    fn no_pairs_no_floor() {
        assert_eq!(noise_floor([]), None);
    }
}
