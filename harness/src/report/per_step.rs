//! Tables of figures for each step of a workload, arms as rows and points as columns: instructions, mispredicted branches,
//! page faults, system calls, time.

use super::{Table, View};
use crate::metric::{INSTRUCTIONS, MISPREDICTIONS};
use crate::size::three_digits;
use crate::summary::{Cell, CellState};
use crate::trial::Protocol;
use std::collections::BTreeSet;

/// What a step of `workload` is called, if its steps are all alike, or drawn alike, so that figures for each mean something.
fn even_step(workload: &str) -> Option<&'static str> {
    match workload {
        "pairs" => Some("pair"),
        "arena-edge" | "push-pop" => Some("round"),
        "object-churn" => Some("object"),
        _ => None,
    }
}

/// Instructions for each step, where the grid has them counted.
pub(super) fn instructions(view: &View<'_>) -> Option<Table> {
    let note = "Counted by callgrind in a run of their own, from the begin of the measured region to its end: allocator, driver \
                and C library; not the kernel. One run a cell; another one differs by at most 3 %. n/a: see below.";
    under_callgrind(view, INSTRUCTIONS, note, 1.0)
}

/// Mispredicted branches for each thousand steps, where the grid has them counted.
pub(super) fn mispredictions(view: &View<'_>) -> Option<Table> {
    let note = "Of the predictor that callgrind simulates, in the same run as the instructions: how hard the branches are to \
                guess, and not how often this machine's processor guesses wrong. n/a: see below.";
    under_callgrind(view, MISPREDICTIONS, note, 1e3)
}

fn under_callgrind(view: &View<'_>, metric: &str, note: &str, steps: f64) -> Option<Table> {
    let asked = view
        .cells()
        .any(|cell| cell.metrics.contains_key(metric) || cell.absent.contains_key(metric));
    let step = even_step(&view.grid.workload).unwrap_or("step");
    let each = if steps > 1.0 {
        format!("each thousand {step}s")
    } else {
        format!("each {step}")
    };
    asked.then(|| {
        let mut notes = vec![note.to_owned()];
        notes.extend(view.absences());
        notes.extend(view.notes_on_arms());
        Table {
            name: view.name(metric),
            title: view.title(&format!("{metric} for {each}")),
            notes,
            ..rows(view, |cell| Some(steps * for_each_step(cell, metric)?))
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

/// System calls for each thousand steps, all names together.
pub(super) fn syscalls(view: &View<'_>) -> Option<Table> {
    let step = even_step(&view.grid.workload)?;
    let names: BTreeSet<&str> = view
        .cells()
        .flat_map(|cell| cell.metrics.keys())
        .filter_map(|name| name.strip_prefix("sys."))
        .collect();
    let which = match names.len() {
        0 => "none was made".to_owned(),
        _ => Vec::from_iter(names).join(", "),
    };
    let mut notes = vec![format!(
        "System calls of the measured region, counted by strace, of one trial a cell: {which}. n/a: not traced."
    )];
    notes.extend(view.absences());
    notes.extend(view.notes_on_arms());
    Some(Table {
        name: view.name("syscalls"),
        title: view.title(&format!("system calls for each thousand {step}s")),
        notes,
        ..rows(view, |cell| Some(1e3 * calls(cell)? / steps(cell)?))
    })
}

/// System calls of all names; `None` where they were not traced.
fn calls(cell: &Cell) -> Option<f64> {
    let names = cell.metrics.keys().map(String::as_str);
    let counts = cell.metrics.iter();
    let of_calls = counts.filter(|(name, _)| name.starts_with("sys."));
    cell.traced(names)
        .then(|| of_calls.fold(0.0, |sum, (_, metric)| sum + metric.median))
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
    Some(cell.metrics.get(metric)?.median / steps(cell)?)
}

fn steps(cell: &Cell) -> Option<f64> {
    let steps = cell.metrics.get("ops")?.median;
    (steps > 0.0).then_some(steps)
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
