//! The table of copies: bytes really copied for each byte appended.

use super::{Table, View};
use crate::metric::{Exactness, Expression};
use crate::size::{self, three_digits};
use crate::summary::{Cell, CellState};
use crate::trial::Outcome;

/// The note on counts that are upper bounds.
pub(super) const BOUNDED: &str =
    "<=: all moves are taken for copies here, because moves by mremap could not be told apart.";

pub(super) fn table(view: &View<'_>) -> Table {
    let mut header = vec![view.row_head()];
    header.extend(view.arms.iter().map(|arm| (*arm).to_owned()));
    let mut bounded = false;
    let rows = view
        .points
        .iter()
        .map(|point| {
            let mut row = vec![view.row_label(point)];
            row.extend(view.arms.iter().map(|arm| match view.cell(arm, point) {
                Some(cell) => text(view, cell, &mut bounded),
                None => "-".to_owned(),
            }));
            row
        })
        .collect();
    let mut notes = vec![
        "Copied by realloc (moves, less those made by mremap) and by the workload itself. Counts of one trial a cell: \
         they have no interval."
            .to_owned(),
    ];
    if bounded {
        notes.push(BOUNDED.to_owned());
    }
    notes.extend(view.absences());
    notes.extend(view.notes_on_arms());
    let title = view.title("bytes copied for each byte appended");
    Table {
        name: view.name("census"),
        title,
        header,
        rows,
        notes,
    }
}

/// Whether there is anything that could be copied: no cell is known to have appended nothing.
pub(super) fn appends(view: &View<'_>) -> bool {
    let appended = |cell: &Cell| cell.metrics.get("appended_bytes").map(|metric| metric.max);
    !view.cells().any(|cell| appended(cell) == Some(0))
}

/// Bytes copied for each byte appended, from the metrics of one trial; `Err` with an upper bound if only moves are
/// known.
pub(super) fn copied_per_byte(get: impl Fn(&str) -> Option<u64>) -> Option<Result<f64, f64>> {
    let appended = get("appended_bytes").filter(|bytes| *bytes > 0)? as f64;
    let client = get("client_copied_bytes").unwrap_or(0);
    let per_byte = |bytes: u64| bytes.saturating_add(client) as f64 / appended;
    match get("copied_bytes") {
        Some(copied) => Some(Ok(per_byte(copied))),
        None => get("moved_bytes").map(|moved| Err(per_byte(moved))),
    }
}

/// What a cell shows.
pub(super) fn text(view: &View<'_>, cell: &Cell, bounded: &mut bool) -> String {
    match &cell.state {
        CellState::Ok => {
            let get = |name: &str| cell.metrics.get(name).map(|metric| metric.median as u64);
            match copied_per_byte(get) {
                Some(Ok(value)) => format!("{}{}", mark(view, cell), three_digits(value)),
                Some(Err(bound)) => {
                    *bounded = true;
                    format!("<= {}", three_digits(bound))
                }
                None => "absent".to_owned(),
            }
        }
        CellState::TimedOut { .. } => {
            let trial = cell
                .set_aside
                .iter()
                .find(|a| matches!(a.outcome, Outcome::TimedOut { .. }));
            let value =
                trial.and_then(|trial| copied_per_byte(|name| trial.metrics.get(name).copied()));
            match value {
                Some(Ok(value)) => format!("{} when stopped", three_digits(value)),
                _ => "stopped".to_owned(),
            }
        }
        CellState::Failed { message } if message.contains("out of memory") => {
            let reached = cell
                .set_aside
                .iter()
                .find_map(|aside| aside.metrics.get("reached_bytes"));
            match reached {
                Some(bytes) => format!("out of memory at {}", size::approx_bytes(*bytes)),
                None => "out of memory".to_owned(),
            }
        }
        CellState::Failed { .. } => "failed".to_owned(),
        CellState::WrongChecksum { .. } => "WRONG".to_owned(),
        CellState::Unavailable { .. } => "unavailable".to_owned(),
    }
}

fn mark(view: &View<'_>, cell: &Cell) -> &'static str {
    // What the workload copies by itself is exact whatever the allocator: chance is in what realloc copied.
    let by_realloc = cell.metrics.get("copied_bytes");
    if by_realloc.is_none_or(|metric| metric.max == 0) {
        return "";
    }
    let receipt = view.report.summary().receipts.get(&cell.arm);
    match Expression::parse("copied_bytes").map(|e| e.exactness(receipt)) {
        Ok(Exactness::Exact | Exactness::Percent(_)) => "",
        _ => "~",
    }
}
