//! What one cell says of one expression: the values by block, or why there are none.

use crate::metric::{Exactness, Expression};
use crate::stats::sample::median_in_place;
use crate::summary::{Cell, CellState, Summary, printable};
use crate::trial::Outcome;
use std::collections::BTreeMap;

/// The values of an expression in one cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    /// The expression, divided by the one below the line if there is one, by block.
    pub values: Vec<(u32, f64)>,
    /// The expression itself, not divided.
    pub whole: Vec<u64>,
    /// Set if the trial was stopped: in words; the values are lower bounds then.
    pub stopped: Option<String>,
    /// The time limit in milliseconds, if the trial ran into it.
    pub limit_ms: Option<u64>,
    /// How far another run could differ.
    pub exactness: Exactness,
}

impl Reading {
    /// The median over blocks.
    pub fn median(&self) -> f64 {
        median_in_place(
            &mut self
                .values
                .iter()
                .map(|(_, value)| *value)
                .collect::<Vec<_>>(),
        )
    }
}

/// Reads `metric` (over `over`) from a cell.
///
/// # Errors
/// Why the cell has no such value, in words.
pub(super) fn read(
    summary: &Summary,
    cell: &Cell,
    metric: &Expression,
    over: Option<&Expression>,
) -> Result<Reading, String> {
    let exactness = metric.exactness(summary.receipts.get(&cell.arm));
    let mut reading = Reading {
        values: Vec::new(),
        whole: Vec::new(),
        stopped: None,
        limit_ms: None,
        exactness,
    };
    let trials: Vec<(u32, BTreeMap<&str, u64>)> = match &cell.state {
        CellState::Ok => finished(cell),
        CellState::TimedOut { after_ms, .. } => {
            reading.stopped = Some(cell.state.text());
            reading.limit_ms = Some(*after_ms);
            set_aside(cell, |outcome| matches!(outcome, Outcome::TimedOut { .. }))
        }
        // The end of memory is what such a trial is run for; how far it came is then its result.
        CellState::Failed { message } if metric.holds_unfinished() && is_out_of_memory(message) => {
            set_aside(cell, |outcome| matches!(outcome, Outcome::Failed { .. }))
        }
        CellState::Failed { .. }
        | CellState::WrongChecksum { .. }
        | CellState::Unavailable { .. } => {
            return Err(format!("{} {}", cell.arm, cell.state.text()));
        }
    };
    if trials.is_empty() {
        return Err(format!(
            "{}: {}, and it left no counts",
            cell.arm,
            cell.state.text()
        ));
    }
    for (block, metrics) in trials {
        let get = |name: &str| {
            let never_called = || {
                name.starts_with("sys.")
                    && !cell.absent.contains_key(name)
                    && cell.traced(metrics.keys().copied())
            };
            let counted = metrics.get(name).copied();
            counted.or_else(|| never_called().then_some(0))
        };
        let sum = |expression: &Expression| expression.sum(get).map_err(|name| missing(cell, name));
        let whole = sum(metric)?;
        let value = match over {
            None => whole as f64,
            Some(over) => match sum(over)? {
                0 => {
                    return Err(format!(
                        "{}: {over} is 0, so nothing can be divided by it",
                        cell.arm
                    ));
                }
                under => whole as f64 / under as f64,
            },
        };
        reading.values.push((block, value));
        reading.whole.push(whole);
    }
    Ok(reading)
}

/// Whether a message tells of the end of memory and not of a crash.
fn is_out_of_memory(message: &str) -> bool {
    message.contains("out of memory") && !message.contains("signal")
}

fn finished(cell: &Cell) -> Vec<(u32, BTreeMap<&str, u64>)> {
    let mut trials: BTreeMap<u32, BTreeMap<&str, u64>> = BTreeMap::new();
    for (name, metric) in &cell.metrics {
        for sample in &metric.samples {
            trials
                .entry(sample.block)
                .or_default()
                .insert(name, sample.value);
        }
    }
    trials.into_iter().collect()
}

fn set_aside(cell: &Cell, which: impl Fn(&Outcome) -> bool) -> Vec<(u32, BTreeMap<&str, u64>)> {
    cell.set_aside
        .iter()
        .filter(|aside| which(&aside.outcome) && !aside.metrics.is_empty())
        .map(|aside| {
            (
                aside.block,
                aside
                    .metrics
                    .iter()
                    .map(|(k, v)| (k.as_str(), *v))
                    .collect(),
            )
        })
        .collect()
}

/// Why a metric is not there; a reason for `sys.*` stands for each system call.
fn missing(cell: &Cell, name: &str) -> String {
    let family = name
        .split_once('.')
        .map(|(family, _)| format!("{family}.*"));
    let why = cell.absent.get(name).or_else(|| cell.absent.get(&family?));
    match why {
        Some(why) => format!("{}: {name} is absent: {}", cell.arm, printable(why)),
        None => format!("{}: {name} was not measured", cell.arm),
    }
}
