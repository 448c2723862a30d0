//! Tables of figures for each step of a workload, arms as rows and points as columns: instructions, page faults, time.

use super::{Table, View};
use crate::metric::INSTRUCTIONS;
use crate::size::three_digits;
use crate::summary::{Cell, CellState};
use crate::trial::Protocol;

/// What a step of `workload` is called, if its steps are all alike, or drawn alike, so that figures for each mean something.
fn even_step(workload: &str) -> Option<&'static str> {
    match workload {
        "pairs" => Some("pair"),
        "object-churn" => Some("object"),
        _ => None,
    }
}

/// Instructions for each step, where the grid has them counted.
pub(super) fn instructions(view: &View<'_>) -> Option<Table> {
    let asked = view.cells().any(|cell| {
        cell.metrics.contains_key(INSTRUCTIONS) || cell.absent.contains_key(INSTRUCTIONS)
    });
    let step = even_step(&view.grid.workload).unwrap_or("step");
    asked.then(|| {
        let mut notes = vec![
            "Counted by callgrind in a run of their own, from the begin of the measured region to its end: allocator, driver \
             and C library; not the kernel. One run a cell; another one differs by at most 3 %. n/a: see below."
                .to_owned(),
        ];
        notes.extend(view.absences());
        notes.extend(view.notes_on_arms());
        Table {
            name: view.name("instructions"),
            title: view.title(&format!("instructions for each {step}")),
            notes,
            ..rows(view, |cell| for_each_step(cell, INSTRUCTIONS))
        }
    })
}

/// Page faults for each thousand steps.
pub(super) fn faults(view: &View<'_>) -> Option<Table> {
    let step = even_step(&view.grid.workload)?;
    let mut notes = vec![
        "Minor page faults of the measured region. Counts of one trial a cell, within 3 % or 3 faults: they have no interval."
            .to_owned(),
    ];
    notes.extend(view.notes_on_arms());
    Some(Table {
        name: view.name("faults"),
        title: view.title(&format!("page faults for each thousand {step}s")),
        notes,
        ..rows(view, |cell| Some(1e3 * for_each_step(cell, "minflt")?))
    })
}

/// Nanoseconds for each step, the median over blocks.
pub(super) fn times(view: &View<'_>) -> Option<Table> {
    let step = even_step(&view.grid.workload)?;
    let mut notes = vec![
        "Wall time, the median over blocks, of this machine alone. Which arm is faster, and whether that can be told, is in \
         the table of ratios."
            .to_owned(),
    ];
    notes.extend(view.notes_on_arms());
    Some(Table {
        name: view.name("ns"),
        title: view.title(&format!("nanoseconds for each {step}")),
        notes,
        ..rows(view, |cell| for_each_step(cell, "wall_ns"))
    })
}

fn for_each_step(cell: &Cell, metric: &str) -> Option<f64> {
    let median = |name: &str| cell.metrics.get(name).map(|metric| metric.median);
    let steps = median("ops").filter(|steps| *steps > 0.0)?;
    Some(median(metric)? / steps)
}

/// Header and rows; the rest is for the caller.
fn rows(view: &View<'_>, value: impl Fn(&Cell) -> Option<f64>) -> Table {
    let mut header = vec!["arm".to_owned()];
    header.extend(view.points.iter().map(|point| view.row_label(point)));
    let shown = |cell: Option<&Cell>| match cell {
        None => "-".to_owned(),
        Some(cell) if cell.state == CellState::Ok => {
            let missing = match view.protocol {
                Protocol::Census => "n/a",
                _ => "absent",
            };
            value(cell).map_or_else(|| missing.to_owned(), three_digits)
        }
        Some(cell) => cell.state.short().to_owned(),
    };
    let rows = view.arms.iter().map(|arm| {
        let cells = view.points.iter().map(|point| view.cell(arm, point));
        std::iter::once((*arm).to_owned())
            .chain(cells.map(shown))
            .collect()
    });
    Table {
        name: String::new(),
        title: String::new(),
        header,
        rows: rows.collect(),
        notes: Vec::new(),
    }
}
