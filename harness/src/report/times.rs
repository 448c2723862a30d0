//! The table of times: each arm's wall time as a multiple of the baseline's, paired by block. Arms that are not thread-safe
//! have a table of their own, in which obmalloc is the baseline.

use super::{Table, View, is_second};
use crate::size::{self, three_digits};
use crate::stats::INTERVALS;
use crate::stats::floor::{Floor, noise_floor};
use crate::stats::ratio::{self, LEVEL, MIN_BLOCKS, Ratio, SEED};
use crate::stats::sample::Pairs;
use crate::stats::verdict::{MARGIN, Verdict, minimum_detectable, verdict};
use crate::summary::{Cell, CellState, Summary};
use crate::trial::{Params, Protocol};

const METRIC: &str = "wall_ns";

pub(super) fn table(view: &View<'_>) -> Table {
    let Some(baseline) = baseline(view) else {
        return uncompared(view);
    };
    let others: Vec<&str> = view
        .arms
        .iter()
        .copied()
        .filter(|arm| *arm != baseline)
        .collect();
    let floor = floor(view.report.summary());

    // The intervals are those of the table as a whole, so all pairs come first.
    let places: Vec<(&Params, &str)> = view
        .points
        .iter()
        .flat_map(|point| others.iter().map(move |arm| (point, *arm)))
        .collect();
    let pairs: Vec<Option<Pairs>> = places
        .iter()
        .map(|(point, arm)| pairs(view.cell(arm, point)?, view.cell(baseline, point)?))
        .collect();
    let known: Vec<Pairs> = pairs.iter().flatten().cloned().collect();
    let mut ratios = ratio::table(&known, LEVEL, SEED).into_iter();
    let ratios: Vec<Option<Ratio>> = pairs
        .iter()
        .map(|pairs| pairs.as_ref().and_then(|_| ratios.next()))
        .collect();

    let mut header = vec![view.row_head(), baseline.to_owned()];
    header.extend(others.iter().map(|arm| (*arm).to_owned()));
    let rows: Vec<Vec<String>> = view
        .points
        .iter()
        .enumerate()
        .map(|(i, point)| {
            let base = view.cell(baseline, point);
            let mut row = vec![view.row_label(point), base.map_or("-".to_owned(), plain)];
            row.extend(others.iter().enumerate().map(|(j, arm)| {
                match (view.cell(arm, point), &ratios[i * others.len() + j]) {
                    (None, _) => "-".to_owned(),
                    (Some(_), Some(ratio)) => shown(ratio, floor),
                    (Some(cell), None) => unpaired(cell, base),
                }
            }));
            row
        })
        .collect();

    let known: Vec<Ratio> = ratios.into_iter().flatten().collect();
    let mut notes = statistics(&known, floor);
    notes.extend(view.notes_on_arms());
    let title = view.title(&format!(
        "wall time as a multiple of {baseline}{}",
        by(view)
    ));
    let (header, rows) = one_row_an_arm(&header, &rows);
    Table {
        name: view.name("time"),
        title,
        header,
        rows,
        notes,
    }
}

/// Columns are headed by values alone, so the title names their parameters.
fn by(view: &View<'_>) -> String {
    match &view.varying[..] {
        [] => String::new(),
        varying => format!(", by {}", varying.join(" and ")),
    }
}

/// Times alone, of arms of which none is what the others may be compared with.
fn uncompared(view: &View<'_>) -> Table {
    let mut header = vec!["arm".to_owned()];
    header.extend(view.points.iter().map(|point| view.row_label(point)));
    let rows = view.arms.iter().map(|arm| {
        let cells = view.points.iter().map(|point| view.cell(arm, point));
        let times = cells.map(|cell| cell.map_or("-".to_owned(), plain));
        std::iter::once((*arm).to_owned()).chain(times).collect()
    });
    let mut notes = vec![format!(
        "Medians over blocks. They are compared with {OBMALLOC} alone, which is not among them."
    )];
    notes.extend(view.notes_on_arms());
    Table {
        name: view.name("time"),
        title: view.title(&format!("wall time{}", by(view))),
        header,
        rows: rows.collect(),
        notes,
    }
}

/// A ratio with its interval and verdict is wide, and arms are many: so arms become rows and points columns.
fn one_row_an_arm(header: &[String], rows: &[Vec<String>]) -> (Vec<String>, Vec<Vec<String>>) {
    let columns = |first: &str, column: usize| {
        let cells = rows.iter().map(|row| row[column].clone());
        std::iter::once(first.to_owned()).chain(cells).collect()
    };
    let arms = header.iter().enumerate().skip(1);
    (
        columns("arm", 0),
        arms.map(|(column, arm)| columns(arm, column)).collect(),
    )
}

/// What arms are compared with that are not thread-safe.
const OBMALLOC: &str = "obmalloc";

/// The arm that runs twice, or else the first. Of those that are not thread-safe CPython's obmalloc, or else its first
/// variant; and if there is none of them, what would be the baseline if it is one of theirs.
fn baseline<'v>(view: &View<'v>) -> Option<&'v str> {
    if view.unlocked {
        let of = |found: &dyn Fn(&str) -> bool| view.arms.iter().find(|arm| found(arm)).copied();
        let obmalloc = of(&|arm| arm == OBMALLOC).or_else(|| of(&|arm| arm.starts_with(OBMALLOC)));
        if obmalloc.is_some() || view.apart {
            return obmalloc;
        }
    }
    let cells = view.report.summary().cells.iter();
    let twice = cells
        .filter(|cell| cell.grid == view.grid.name && is_second(&cell.arm))
        .find_map(|cell| {
            view.arms
                .iter()
                .find(|arm| cell.arm.strip_suffix("#2") == Some(arm))
        });
    twice.or(view.arms.first()).copied()
}

/// The noise floor of the run: all A/A pairs of all its cells.
pub(super) fn floor(summary: &Summary) -> Option<Floor> {
    let second_runs = summary
        .cells
        .iter()
        .filter(|cell| cell.protocol == Protocol::Time && is_second(&cell.arm));
    let all: Vec<Pairs> = second_runs
        .filter_map(|second| {
            let first = summary.cells.iter().find(|cell| {
                cell.protocol == Protocol::Time
                    && cell.grid == second.grid
                    && cell.params == second.params
                    && second.arm.strip_suffix("#2") == Some(&cell.arm)
            })?;
            pairs(second, first)
        })
        .collect();
    noise_floor(&all)
}

/// Times of two cells, paired by block; `None` unless both finished.
pub(super) fn pairs(above: &Cell, below: &Cell) -> Option<Pairs> {
    let finished = |cell: &Cell| cell.state == CellState::Ok;
    if !finished(above) || !finished(below) {
        return None;
    }
    let (above, below) = (above.metrics.get(METRIC)?, below.metrics.get(METRIC)?);
    let by_block = |block| below.samples.iter().find(|sample| sample.block == block);
    let pairs = above
        .samples
        .iter()
        .filter_map(|a| by_block(a.block).map(|b| (a.block, a.value as f64, b.value as f64)));
    Pairs::new(pairs).ok()
}

/// A cell's own time.
pub(super) fn plain(cell: &Cell) -> String {
    match (&cell.state, cell.metrics.get(METRIC)) {
        (CellState::Ok, Some(metric)) => size::approx_seconds(metric.median),
        (CellState::Ok, None) => "absent".to_owned(),
        (state, _) => state.short().to_owned(),
    }
}

pub(super) fn shown(ratio: &Ratio, floor: Option<Floor>) -> String {
    let estimate = three_digits(ratio.estimate);
    match (verdict(ratio, MARGIN, floor), ratio.interval) {
        (Verdict::NotDecidable { .. }, _) if ratio.blocks == 1 => format!("{estimate} (one trial)"),
        (Verdict::NotDecidable { .. }, _) if ratio.blocks < MIN_BLOCKS => {
            format!("{estimate} ({} blocks)", ratio.blocks)
        }
        (verdict, Some(interval)) => format!(
            "{estimate} [{}, {}] {}",
            three_digits(interval.low),
            three_digits(interval.high),
            verdict.name()
        ),
        (verdict, None) => format!("{estimate} {}", verdict.name()),
    }
}

/// A cell that could not be paired: a time-out still gives a bound.
pub(super) fn unpaired(cell: &Cell, base: Option<&Cell>) -> String {
    let median = base
        .filter(|base| base.state == CellState::Ok)
        .and_then(|base| base.metrics.get(METRIC))
        .map(|metric| metric.median)
        .filter(|median| *median > 0.0);
    match (&cell.state, median) {
        (CellState::TimedOut { after_ms, .. }, Some(median)) => {
            format!(
                ">= {} (timed out)",
                three_digits(*after_ms as f64 * 1e6 / median)
            )
        }
        (CellState::Ok, None) => "unpaired".to_owned(),
        (state, _) => state.short().to_owned(),
    }
}

pub(super) fn statistics(ratios: &[Ratio], floor: Option<Floor>) -> Vec<String> {
    let fewest = ratios.iter().map(|ratio| ratio.blocks).min().unwrap_or(0);
    if fewest < MIN_BLOCKS {
        return vec![format!(
            "Fewer than {MIN_BLOCKS} blocks: no intervals and no verdicts."
        )];
    }
    let mut notes = vec![INTERVALS.to_owned()];
    if let Some(floor) = floor {
        let band = 1.0 + MARGIN;
        notes.push(format!(
            "Noise floor: of {} pairs of the baseline with itself, 95 % lie within a ratio of {:.3}. Equivalent: the \
             whole interval, and the floor, within a ratio of {band:.3}.",
            floor.pairs, floor.ratio
        ));
    }
    if let Some(effect) = minimum_detectable(ratios, floor) {
        notes.push(format!(
            "Minimum detectable effect: a ratio of {effect:.3} (the middle cell's interval would exclude 1 and the \
             noise floor)."
        ));
    }
    notes
}
