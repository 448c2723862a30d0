//! The table of arenas: how many an arena allocator holds at each phase, how full they are, and what it took in vain.

use super::{Table, View};
use crate::child::phases::{EMPTY, START};
use crate::size;
use crate::summary::{Cell, CellState};
use crate::workloads;

/// `None` if no arm keeps books on arenas.
pub(super) fn table(view: &View<'_>) -> Option<Table> {
    let keeps_books = |arm: &&&str| {
        let mut cells = view.points.iter().filter_map(|point| view.cell(arm, point));
        cells.any(|cell| cell.metrics.contains_key("arenas_total"))
    };
    let arms: Vec<&str> = view.arms.iter().filter(keeps_books).copied().collect();
    if arms.is_empty() {
        return None;
    }
    // At the start nothing was asked for yet.
    let phases: Vec<&str> = workloads::find(&view.grid.workload)
        .map(|workload| workload.phases.iter().copied().chain([EMPTY]).collect())
        .unwrap_or_default();
    let mut header = Vec::new();
    if !view.varying.is_empty() {
        header.push(view.row_head());
    }
    header.extend(["arm", "arena"].map(str::to_owned));
    header.extend(phases.iter().map(|phase| (*phase).to_owned()));
    header.extend(["total", "reclaimed", "total - highwater"].map(str::to_owned));
    let mut rows = Vec::new();
    for point in view.points {
        for arm in &arms {
            let mut row = Vec::new();
            if !view.varying.is_empty() {
                row.push(view.row_label(point));
            }
            row.push((*arm).to_owned());
            row.extend(match view.cell(arm, point) {
                None => vec!["-".to_owned(); phases.len() + 4],
                Some(cell) if cell.state == CellState::Ok => counts(cell, &phases),
                Some(cell) => vec![cell.state.short().to_owned(); phases.len() + 4],
            });
            rows.push(row);
        }
    }
    let notes = vec![
        format!(
            "At each phase: arenas held, of the most that were held until then; and live bytes, as they were requested, as \
             a share of the arenas' bytes ({START} holds none). total: arenas taken from the operating system in all; \
             reclaimed: given back. total - highwater is what was taken more than was ever held at once: arenas given back \
             in vain. Live bytes are all of the workload's, those that the backing serves too."
        ),
        "Counts of one trial a cell: exact where every arena has as many pools, see the arms' facts on where arenas lie; \
         otherwise a run differs from the next by the pools that arenas lose to alignment."
            .to_owned(),
    ];
    Some(Table {
        name: view.name("arenas"),
        title: view.title("arenas held at each phase"),
        header,
        rows,
        notes,
    })
}

/// The arena's size, what is held at each phase, and the totals.
fn counts(cell: &Cell, phases: &[&str]) -> Vec<String> {
    let get = |name: &str| cell.metrics.get(name).map(|metric| metric.median);
    let shown = |count: Option<f64>| count.map_or_else(|| "-".to_owned(), |n| format!("{n:.0}"));
    let at = |name: &str, phase: &str| get(&format!("{name}.{phase}"));
    let size = phases.iter().find_map(|phase| {
        let held = at("arenas_current", phase).filter(|held| *held > 0.0)?;
        Some(at("arena_bytes", phase)? / held)
    });
    let mut row =
        vec![size.map_or_else(|| "-".to_owned(), |bytes| size::format_bytes(bytes as u64))];
    row.extend(phases.iter().map(|phase| {
        let current = at("arenas_current", phase);
        let of = at("arenas_highwater", phase);
        let bytes = at("arena_bytes", phase).filter(|bytes| *bytes > 0.0);
        let live = at("live_bytes", phase)
            .filter(|live| *live > 0.0)
            .zip(bytes)
            .map(|(live, bytes)| format!(", {:.1} %", 100.0 * live / bytes));
        match (current, of) {
            (None, None) => "-".to_owned(),
            _ => format!(
                "{}/{}{}",
                shown(current),
                shown(of),
                live.unwrap_or_default()
            ),
        }
    }));
    let total = get("arenas_total");
    let vain = total
        .zip(get("arenas_highwater"))
        .map(|(total, most)| total - most);
    row.extend([total, get("arenas_reclaimed"), vain].map(shown));
    row
}
