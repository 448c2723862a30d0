//! Claims: is what was written true here?
//!
//! A claim holds if all of its checks hold. A check is asked of every cell that it speaks of; each answer is kept with
//! the value it rests on. Three answers: **reproduced**, **not reproduced**, and **not decidable** with the reason, which
//! is what a missing cell, an arm that is not here, a metric that could not be had or too wide an interval give.
//! Nothing missing ever counts as agreement. A claim that nothing here can decide says so in its definition, with the
//! reason: it is listed, and neither passes nor fails.
//!
//! What a trial that did not finish still says:
//! - stopped at its time limit, its counts are lower bounds: enough for a `min`, and for a `max` that is exceeded
//!   already. A count per byte is taken over what had been reached; for that only a `min` can pass;
//! - stopped at its time limit, its time is at least the limit T, so the ratio to a baseline that finished is at least
//!   T / median;
//! - out of memory, `reached_bytes` is the largest file that fits, and exact.
//!
//! Times are compared paired by block. A `min` passes if the lower end of the interval is not below it, a `max` if the
//! upper end is not above it; an interval on both sides of the bound decides nothing. With fewer than 6 blocks, or
//! from `--quick`, claims about time are not decidable. One exception: a grid whose definition says `blocks = 1` is meant
//! to run once, because its slow arm is too slow to repeat; a check of it with a `min` alone is decided on the one pair
//! and says "one trial, no interval".

mod ask;
mod reading;

use crate::experiment::{Check, CheckKind, Claim, Experiment, Grid, OneOrMany};
use crate::plan::Plan;
use crate::size::parse_bytes;
use crate::summary::{Summary, compare_values, printable, same_value};
use crate::trial::Params;
use crate::workloads;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The answer to a check or a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Finding {
    /// It holds here.
    Reproduced,
    /// It does not hold here.
    NotReproduced,
    /// Something is missing or too uncertain.
    NotDecidable {
        /// What.
        why: String,
    },
}

impl Finding {
    fn holds(yes: bool) -> Finding {
        if yes {
            Finding::Reproduced
        } else {
            Finding::NotReproduced
        }
    }

    /// One counterexample refutes; else one gap leaves it open.
    fn all<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> Finding {
        let mut whys: Vec<&str> = Vec::new();
        let mut any = false;
        for finding in findings {
            any = true;
            match finding {
                Finding::Reproduced => {}
                Finding::NotReproduced => return Finding::NotReproduced,
                Finding::NotDecidable { why } if whys.contains(&why.as_str()) => {}
                Finding::NotDecidable { why } => whys.push(why),
            }
        }
        match (any, whys.is_empty()) {
            (true, true) => Finding::Reproduced,
            (true, false) => Finding::NotDecidable {
                why: whys.join("; "),
            },
            (false, _) => Finding::NotDecidable {
                why: "there is nothing to compare".to_owned(),
            },
        }
    }
}

/// One value that a check looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observed {
    /// Arm, or arms compared.
    pub arm: String,
    /// Parameters of the cell, as `size=4MiB`.
    pub cell: String,
    /// The value, if there is one.
    pub value: Option<f64>,
    /// The value in words, with its interval or what it lacks.
    pub text: String,
    /// What it says of the check.
    pub result: Finding,
}

/// One check, answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckResult {
    /// What was asked, in words.
    pub asked: String,
    /// The answer.
    pub result: Finding,
    /// What it rests on.
    pub observed: Vec<Observed>,
}

/// One claim, answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimResult {
    /// Claim id.
    pub id: String,
    /// Who says so, where.
    pub source: String,
    /// The finding in our words.
    pub finding: String,
    /// What we expect: true, it holds here.
    pub expected: bool,
    /// The answer.
    pub result: Finding,
    /// Decided, and as expected.
    pub as_expected: bool,
    /// Every check.
    pub checks: Vec<CheckResult>,
}

impl ClaimResult {
    /// The answer in words; what is not as expected stands out.
    pub fn answer(&self) -> String {
        match &self.result {
            Finding::NotDecidable { why } => format!("not decidable: {}", printable(why)),
            Finding::Reproduced if self.expected => "reproduced".to_owned(),
            Finding::NotReproduced if !self.expected => "not reproduced, as expected".to_owned(),
            Finding::Reproduced => "REPRODUCED, against what was expected".to_owned(),
            Finding::NotReproduced => "NOT REPRODUCED".to_owned(),
        }
    }

    /// Decided, and not as expected: what a run must be judged by.
    pub fn contradicted(&self) -> bool {
        !self.as_expected && !matches!(self.result, Finding::NotDecidable { .. })
    }
}

/// What was run, as far as claims must know: which points a complete run has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsRun {
    /// By `--quick`: claims about time are then not decidable.
    pub quick: bool,
    /// What the command line changed, as `option=value` and `parameter=value,value`.
    pub overrides: Vec<String>,
    /// Points of each grid that was run, each with its named parameters.
    pub points: BTreeMap<String, Vec<Params>>,
}

impl AsRun {
    /// The points that the definition names.
    pub fn as_defined(experiment: &Experiment, quick: bool) -> AsRun {
        let points = experiment
            .grids
            .iter()
            .map(|grid| (grid.name.clone(), grid.points(quick)))
            .collect();
        AsRun {
            quick,
            overrides: Vec::new(),
            points,
        }
    }

    /// The points that were planned, with all that the command line changed: sizes ascending, words in the order of
    /// the definition.
    pub fn planned(experiment: &Experiment, plan: &Plan) -> AsRun {
        let mut points: BTreeMap<String, Vec<Params>> = BTreeMap::new();
        for trial in &plan.trials {
            let known = points.entry(trial.grid.clone()).or_default();
            if !known.contains(&trial.params) {
                known.push(trial.params.clone());
            }
        }
        for (name, points) in &mut points {
            let grid = experiment.grid(name);
            points.sort_by(|a, b| in_definition_order(grid, a, b));
        }
        AsRun {
            quick: plan.quick,
            overrides: plan.overrides.clone(),
            points,
        }
    }

    /// The options that made the run another than the one that is defined, as they are written on the command line;
    /// `None` if there were none.
    pub fn options(&self) -> Option<String> {
        let quick = self.quick.then(|| "--quick".to_owned());
        let all: Vec<String> = quick
            .into_iter()
            .chain(self.overrides.iter().map(|text| option(text)))
            .collect();
        (!all.is_empty()).then(|| printable(&all.join(" ")))
    }

    /// The options that put other parameters, or another memory limit, in the place of those that `grid` is defined
    /// with, defaults included. What a definition leaves to the command line replaces nothing, and neither does the
    /// same once more.
    pub fn replaced(&self, grid: &Grid) -> Vec<String> {
        let defined = grid.params(self.quick);
        let replaces = |text: &String| {
            let Some((name, given)) = text.split_once('=') else {
                return false;
            };
            if name == "memory-limit" {
                let limit = grid.memory_limit.as_ref();
                return limit.is_some_and(|limit| !same_value(limit, given));
            }
            let workload = workloads::find(&grid.workload).ok();
            let Some(def) = workload.and_then(|w| w.params.iter().find(|def| def.name == name))
            else {
                return false;
            };
            let before: Vec<&str> = match defined.get(name) {
                Some(values) => values.values().iter().map(String::as_str).collect(),
                None => def.default.into_iter().collect(),
            };
            let given: Vec<&str> = given.split(',').collect();
            let within =
                |a: &[&str], b: &[&str]| a.iter().all(|a| b.iter().any(|b| same_value(a, b)));
            let same = within(&before, &given) && within(&given, &before);
            !before.is_empty() && !same
        };
        let replacing = self.overrides.iter().filter(|text| replaces(text));
        replacing.map(|text| option(text)).collect()
    }
}

/// An override of a plan as it is written on the command line.
fn option(text: &str) -> String {
    const OPTIONS: [&str; 5] = [
        "blocks",
        "timeout",
        "memory-limit",
        "protocol",
        "allocators",
    ];
    match text.split_once('=') {
        Some((name, value)) if OPTIONS.contains(&name) => format!("--{name} {value}"),
        _ => format!("--set {text}"),
    }
}

/// Sizes by value; words in the order of the definition, those that it does not have after them by letter.
fn in_definition_order(grid: Option<&Grid>, a: &Params, b: &Params) -> Ordering {
    let compare = |name: &String, a: &str, b: &str| {
        let values = grid.and_then(|grid| grid.params.get(name));
        let values = values.map(OneOrMany::values).unwrap_or_default();
        let place = |value: &str| values.iter().position(|v| v == value).unwrap_or(usize::MAX);
        match (parse_bytes(a), parse_bytes(b)) {
            (Ok(a), Ok(b)) => a.cmp(&b),
            _ => place(a).cmp(&place(b)).then_with(|| compare_values(a, b)),
        }
    };
    a.iter()
        .zip(b)
        .map(|((name, a), (_, b))| compare(name, a, b))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Answers every claim of `experiment` from `summary`.
pub fn evaluate(experiment: &Experiment, summary: &Summary, run: &AsRun) -> Vec<ClaimResult> {
    experiment
        .claims
        .iter()
        .map(|claim| {
            let checks: Vec<CheckResult> = claim
                .checks
                .iter()
                .map(|check| answer(experiment, summary, run, check))
                .collect();
            conclude(claim, checks)
        })
        .collect()
}

fn conclude(claim: &Claim, checks: Vec<CheckResult>) -> ClaimResult {
    let result = match &claim.not_decidable {
        Some(why) => Finding::NotDecidable { why: why.clone() },
        None => Finding::all(checks.iter().map(|check| &check.result)),
    };
    let as_expected = match result {
        Finding::Reproduced => claim.expected,
        Finding::NotReproduced => !claim.expected,
        Finding::NotDecidable { .. } => false,
    };
    ClaimResult {
        id: claim.id.clone(),
        source: claim.source.clone(),
        finding: claim.finding.clone(),
        expected: claim.expected,
        result,
        as_expected,
        checks,
    }
}

fn answer(experiment: &Experiment, summary: &Summary, run: &AsRun, check: &Check) -> CheckResult {
    let asked = in_words(check);
    match ask::observe(experiment, summary, run, check) {
        Ok(observed) => {
            let result = Finding::all(observed.iter().map(|o| &o.result));
            CheckResult {
                asked,
                result,
                observed,
            }
        }
        Err(why) => CheckResult {
            asked,
            result: Finding::NotDecidable { why },
            observed: Vec::new(),
        },
    }
}

/// `copied_bytes / appended_bytes at size=4MiB: at most 0.05`.
fn in_words(check: &Check) -> String {
    let list = |params: &BTreeMap<String, OneOrMany>| {
        params
            .iter()
            .map(|(name, values)| format!("{name}={}", values.values().join("|")))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut text = match &check.over {
        Some(over) => format!("{} / {over}", check.metric),
        None => check.metric.clone(),
    };
    if check.kind == CheckKind::Exponent {
        let name = |end: &Option<String>| end.clone().unwrap_or_default();
        text = format!(
            "exponent of {text} against {} over {} to {}",
            name(&check.against),
            name(&check.from),
            name(&check.to)
        );
    }
    if !check.only.is_empty() {
        text = format!("{text} at {}", list(&check.only));
    }
    match (check.kind, &check.than) {
        (CheckKind::Ratio, Some(than)) => text = format!("{text}, as a multiple of {than}"),
        (CheckKind::Ratio, None) => {
            text = format!(
                "{text}, as a multiple of that at {}",
                list(&check.than_where)
            );
        }
        (CheckKind::Order, _) => return format!("{text}: rises from {}", check.arms.join(" to ")),
        (CheckKind::Equal, _) => {
            return match check.value {
                Some(value) => format!("{text}: exactly {value}"),
                None => format!("{text}: equal for all arms"),
            };
        }
        _ => {}
    }
    match (check.min, check.max) {
        (Some(min), Some(max)) => format!("{text}: from {min} to {max}"),
        (Some(min), None) => format!("{text}: at least {min}"),
        (None, Some(max)) => format!("{text}: at most {max}"),
        (None, None) => text,
    }
}

#[cfg(test)]
mod tests;
