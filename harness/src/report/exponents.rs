//! The table of exponents: how appended + copied bytes rise from size to size.

use super::{Table, View};
use crate::size;
use crate::stats::fit;
use crate::stats::sample::Points;
use crate::summary::CellState;

/// Fewest sizes for which a fit says more than the line through its ends.
const FEWEST_SIZES: usize = 3;

/// `None` unless the size alone varies, over at least three values.
pub(super) fn table(view: &View<'_>) -> Option<Table> {
    if view.varying != ["size"] || view.points.len() < FEWEST_SIZES {
        return None;
    }
    let mut sizes: Vec<(u64, &crate::trial::Params)> = view
        .points
        .iter()
        .filter_map(|point| Some((size::parse_bytes(point.get("size")?).ok()?, point)))
        .collect();
    sizes.sort_by_key(|(bytes, _)| *bytes);
    let mut header = vec!["arm".to_owned()];
    header.extend(sizes.windows(2).map(|pair| {
        format!(
            "{} to {}",
            size::format_bytes(pair[0].0),
            size::format_bytes(pair[1].0)
        )
    }));
    header.extend(["all sizes".to_owned(), "largest deviation".to_owned()]);

    let rows: Vec<Vec<String>> = view
        .arms
        .iter()
        .filter_map(|arm| {
            let points = sizes.iter().map(|(bytes, point)| {
                let cell = view
                    .cell(arm, point)
                    .filter(|cell| cell.state == CellState::Ok)?;
                let get = |name: &str| cell.metrics.get(name).map(|metric| metric.median);
                let copied = get("copied_bytes")? + get("client_copied_bytes").unwrap_or(0.0);
                Some((*bytes as f64, get("appended_bytes")? + copied))
            });
            let points = Points::new(points.collect::<Option<Vec<_>>>()?).ok()?;
            let fitted = fit::power(&points);
            let mut row = vec![(*arm).to_owned()];
            row.extend(
                fit::local_exponents(&points)
                    .iter()
                    .map(|l| format!("{:.2}", l.exponent)),
            );
            row.push(format!("{:.2}", fitted.exponent));
            row.push(format!("{:.1} %", 100.0 * fitted.max_deviation));
            Some(row)
        })
        .collect();
    let notes = vec![
        "1 is linear, 2 quadratic. Counts, so there is no interval; a fit over all sizes misleads where the local \
         exponents differ."
            .to_owned(),
    ];
    let title = view.title("exponent of bytes appended and copied");
    (!rows.is_empty()).then(|| Table {
        name: view.name("exponents"),
        title,
        header,
        rows,
        notes,
    })
}
