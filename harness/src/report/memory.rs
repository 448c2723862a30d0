//! The table of memory: what is resident at each phase of each arm, and the peak.

use super::{Table, View};
use crate::child::phases::START;
use crate::size::{self, three_digits};
use crate::summary::{Cell, CellState};
use crate::workloads;

/// What a column shows of a cell.
enum Column {
    /// The median of a metric in bytes.
    Bytes { head: String, metric: String },
    /// Peak / the most that was live at once.
    PeakOverhead,
}

impl Column {
    /// The phases of the workload, the start in full; peak, and peak overhead.
    fn all(view: &View<'_>) -> Vec<Column> {
        let phases = workloads::find(&view.grid.workload).map_or_else(
            |_| workloads::phases(),
            |found| found.all_phases().collect(),
        );
        let of_phase = |phase: &str| Column::Bytes {
            head: phase.to_owned(),
            metric: match phase {
                START => format!("rss_gross.{phase}"),
                _ => format!("rss.{phase}"),
            },
        };
        let mut columns: Vec<Column> = phases.into_iter().map(of_phase).collect();
        columns.push(Column::Bytes {
            head: "peak".to_owned(),
            metric: "peak_bytes".to_owned(),
        });
        columns.push(Column::PeakOverhead);
        columns
    }

    fn head(&self) -> &str {
        match self {
            Column::Bytes { head, .. } => head,
            Column::PeakOverhead => "peak overhead",
        }
    }

    /// The column's entry for a cell whose trials finished.
    fn entry(&self, cell: &Cell) -> Option<String> {
        let median = |name: &str| cell.metrics.get(name).map(|metric| metric.median);
        match self {
            Column::Bytes { metric, .. } => {
                median(metric).map(|bytes| size::approx_bytes(bytes as u64))
            }
            Column::PeakOverhead => {
                let live = median("peak_live_bytes").filter(|bytes| *bytes > 0.0)?;
                Some(three_digits(median("peak_bytes")? / live))
            }
        }
    }
}

pub(super) fn table(view: &View<'_>) -> Table {
    let columns = Column::all(view);
    let mut header = Vec::new();
    if !view.varying.is_empty() {
        header.push(view.row_head());
    }
    header.push("arm".to_owned());
    header.extend(columns.iter().map(|column| column.head().to_owned()));
    let mut rows = Vec::new();
    for point in view.points {
        for arm in &view.arms {
            let mut row = Vec::new();
            if !view.varying.is_empty() {
                row.push(view.row_label(point));
            }
            row.push((*arm).to_owned());
            let cell = view.cell(arm, point);
            row.extend(columns.iter().map(|column| match cell {
                None => "-".to_owned(),
                Some(cell) if cell.state == CellState::Ok => {
                    column.entry(cell).unwrap_or_else(|| "absent".to_owned())
                }
                Some(cell) => cell.state.short().to_owned(),
            }));
            rows.push(row);
        }
    }
    let mut notes = vec![
        format!(
            "Anonymous resident memory, exact to one OS page at each phase; {START} is all that the child has there, \
             and everything else is what came on top of it. The peak is that of all resident memory, within 256 KiB. \
             Peak overhead: peak / the most that was live at once, in requested bytes."
        ),
        "Figures of one trial a cell, or the median over blocks. They can vary from run to run."
            .to_owned(),
    ];
    notes.extend(view.absences());
    notes.extend(view.notes_on_arms());
    Table {
        name: view.name("memory"),
        title: view.title("resident memory at each phase"),
        header,
        rows,
        notes,
    }
}
