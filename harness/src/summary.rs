//! The summary: all records of a run, by cell. A cache: it can always be made again from `records.jsonl`.
//!
//! Nothing is thrown away: every raw sample stays, with its block. What a trial measured before it was stopped or
//! failed is kept apart ([`SetAside`]) and never mixed with samples of finished trials.

use crate::record::TrialRecord;
use crate::size;
use crate::trial::{Outcome, Params, Protocol, Receipt};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

/// All cells of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// [`crate::trial::SCHEMA`].
    pub schema: u32,
    /// Experiment id.
    pub experiment: String,
    /// Cells, ordered by grid, workload, parameters (sizes by value), arm, protocol.
    pub cells: Vec<Cell>,
    /// Who was measured, by arm.
    pub receipts: BTreeMap<String, Receipt>,
    /// Arms whose trials did not all give the same receipt.
    pub receipt_changes: Vec<String>,
    /// Groups whose arms do not agree on what was done.
    pub checksum_mismatches: Vec<ChecksumMismatch>,
}

/// One arm at one point of one grid under one protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Grid of the experiment.
    pub grid: String,
    /// Workload id.
    pub workload: String,
    /// Its parameters.
    pub params: Params,
    /// Arm as labelled.
    pub arm: String,
    /// What was measured.
    pub protocol: Protocol,
    /// How many trials ended how.
    pub outcomes: BTreeMap<String, u32>,
    /// How the cell as a whole stands.
    pub state: CellState,
    /// Metrics of the finished trials.
    pub metrics: BTreeMap<String, MetricSummary>,
    /// Metrics that could not be had, with the reason.
    pub absent: BTreeMap<String, String>,
    /// How its trials had transparent huge pages, in words: one state, unless it changed between them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub thp: Vec<String>,
    /// What trials measured that did not finish or were not right.
    pub set_aside: Vec<SetAside>,
}

/// How a cell stands: the worst of its trials' outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CellState {
    /// All trials finished.
    Ok,
    /// A trial ran into the time limit; later blocks were skipped.
    TimedOut {
        /// Milliseconds of the limit.
        after_ms: u64,
        /// Bytes reached by then, if the workload tells.
        reached_bytes: Option<u64>,
    },
    /// A trial failed.
    Failed {
        /// What happened.
        message: String,
    },
    /// A trial did something else than the rest of its group.
    WrongChecksum {
        /// What was expected and what came.
        message: String,
    },
    /// Could not be run here.
    Unavailable {
        /// Why, and what would change that.
        why: String,
    },
}

impl CellState {
    /// The state in words, for tables and reasons: `timed out after 20s, 13.7 MiB reached`.
    pub fn text(&self) -> String {
        match self {
            CellState::Ok => "ok".to_owned(),
            CellState::TimedOut {
                after_ms,
                reached_bytes,
            } => {
                let after = size::format_duration(Duration::from_millis(*after_ms));
                match reached_bytes {
                    Some(bytes) => {
                        format!(
                            "timed out after {after}, {} reached",
                            size::approx_bytes(*bytes)
                        )
                    }
                    None => format!("timed out after {after}"),
                }
            }
            CellState::Failed { message } => format!("failed: {}", printable(message)),
            CellState::WrongChecksum { message } => {
                format!("wrong checksum: {}", printable(message))
            }
            CellState::Unavailable { why } => format!("unavailable: {}", printable(why)),
        }
    }

    /// The state in a word or two, for cells of tables.
    pub fn short(&self) -> &'static str {
        match self {
            CellState::Ok => "ok",
            CellState::TimedOut { .. } => "timed out",
            CellState::Failed { .. } => "failed",
            CellState::WrongChecksum { .. } => "WRONG",
            CellState::Unavailable { .. } => "unavailable",
        }
    }

    fn rank(&self) -> u8 {
        match self {
            CellState::Ok => 0,
            CellState::TimedOut { .. } => 1,
            CellState::Failed { .. } => 2,
            CellState::WrongChecksum { .. } => 3,
            CellState::Unavailable { .. } => 4,
        }
    }

    fn of(outcome: &Outcome, reached_bytes: Option<u64>) -> CellState {
        match outcome {
            Outcome::Ok => CellState::Ok,
            Outcome::TimedOut { after_ms } => CellState::TimedOut {
                after_ms: *after_ms,
                reached_bytes,
            },
            Outcome::Skipped { after_ms, .. } => CellState::TimedOut {
                after_ms: *after_ms,
                reached_bytes: None,
            },
            Outcome::Failed { signal, message } => CellState::Failed {
                message: match signal {
                    Some(signal) => format!("{message} (signal {signal})"),
                    None => message.clone(),
                },
            },
            Outcome::WrongChecksum { message } => CellState::WrongChecksum {
                message: message.clone(),
            },
            Outcome::Unavailable { why } => CellState::Unavailable { why: why.clone() },
        }
    }
}

/// A text of a record for eyes: control characters, which a child's message can hold, are escaped.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

impl Cell {
    /// Whether the system calls of a trial with metrics of these names were counted, each that happened: then one
    /// without a count happened 0 times.
    pub fn traced<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> bool {
        !self.absent.contains_key("sys.*")
            && names
                .into_iter()
                .any(|name| name == "copied_bytes" || name.starts_with("sys."))
    }
}

/// One value of one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockValue {
    /// Block of the trial.
    pub block: u32,
    /// The value, in the metric's unit.
    pub value: u64,
}

/// One metric of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricSummary {
    /// Every sample, blocks ascending.
    pub samples: Vec<BlockValue>,
    /// Median; of an even number of samples the mean of the middle two.
    pub median: f64,
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
}

impl MetricSummary {
    /// `None` without samples.
    fn new(mut samples: Vec<BlockValue>) -> Option<MetricSummary> {
        samples.sort_by_key(|s| (s.block, s.value));
        let mut values: Vec<u64> = samples.iter().map(|s| s.value).collect();
        values.sort_unstable();
        let (min, max) = (*values.first()?, *values.last()?);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(MetricSummary {
            samples,
            median: (low as f64 + high as f64) / 2.0,
            min,
            max,
        })
    }
}

/// What a trial that is not ok had measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetAside {
    /// Block of the trial.
    pub block: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// What it had counted by then.
    pub metrics: BTreeMap<String, u64>,
}

/// Arms that did not do the same work, or did not read back the same contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksumMismatch {
    /// Grid of the experiment.
    pub grid: String,
    /// Its parameters.
    pub params: Params,
    /// Seed of the group.
    pub seed: u64,
    /// `ops`, `contents` or `input`.
    pub which: String,
    /// Arms by checksum.
    pub values: BTreeMap<String, Vec<String>>,
}

impl Summary {
    /// Makes the summary. Of two records with the same trial number (a resumed run) the later stands.
    pub fn new(records: &[TrialRecord]) -> Summary {
        let latest: BTreeMap<u32, &TrialRecord> = records
            .iter()
            .map(|record| (record.trial, record))
            .collect();
        let mut groups: BTreeMap<Key, Vec<&TrialRecord>> = BTreeMap::new();
        let mut receipts: BTreeMap<String, Receipt> = BTreeMap::new();
        let mut receipt_changes = Vec::new();
        for record in latest.values() {
            let key = Key {
                grid: record.grid.clone(),
                workload: record.workload.clone(),
                params: record
                    .params
                    .iter()
                    .map(|(k, v)| (k.clone(), Value(v.clone())))
                    .collect(),
                arm: record.arm.clone(),
                protocol: record.protocol,
            };
            groups.entry(key).or_default().push(record);
            if let Some(receipt) = &record.receipt {
                let known = receipts
                    .entry(record.arm.clone())
                    .or_insert_with(|| receipt.clone());
                if known != receipt && !receipt_changes.contains(&record.arm) {
                    receipt_changes.push(record.arm.clone());
                }
            }
        }
        receipt_changes.sort();
        Summary {
            schema: crate::trial::SCHEMA,
            experiment: latest
                .values()
                .next()
                .map(|r| r.experiment.clone())
                .unwrap_or_default(),
            cells: groups
                .into_values()
                .filter_map(|records| cell(&records))
                .collect(),
            receipts,
            receipt_changes,
            checksum_mismatches: checksum_mismatches(latest.values().copied()),
        }
    }

    /// The cells of an arm in a grid whose parameters include `point` (sizes compared by value).
    pub fn find<'s, 'q>(
        &'s self,
        grid: &'q str,
        protocol: Protocol,
        arm: &'q str,
        point: &'q Params,
    ) -> impl Iterator<Item = &'s Cell> {
        self.cells.iter().filter(move |cell| {
            cell.grid == grid
                && cell.protocol == protocol
                && cell.arm == arm
                && point.iter().all(|(name, value)| {
                    cell.params
                        .get(name)
                        .is_some_and(|have| same_value(have, value))
                })
        })
    }
}

/// Whether two parameter values mean the same: equal texts, or equal sizes (`1MiB`, `1048576`).
pub fn same_value(a: &str, b: &str) -> bool {
    compare_values(a, b) == Ordering::Equal
}

/// The order of parameter values: sizes and numbers by value and before texts, texts by letter.
pub fn compare_values(a: &str, b: &str) -> Ordering {
    let value = |text| {
        size::parse_bytes(text)
            .ok()
            .or_else(|| size::parse_count(text))
    };
    match (value(a), value(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// A parameter value in the order of [`compare_values`].
#[derive(Debug, Clone)]
struct Value(String);

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_values(&self.0, &other.0)
    }
}
impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Value {}

/// What makes a cell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    grid: String,
    workload: String,
    params: BTreeMap<String, Value>,
    arm: String,
    protocol: Protocol,
}

/// How a trial had transparent huge pages, as its child read it back, with the machine's own setting.
fn thp(record: &TrialRecord) -> Option<String> {
    let facts = &record.receipt.as_ref()?.facts;
    let child = facts.get("thp")?;
    Some(match facts.get("thp-machine") {
        Some(machine) => format!("{child} (machine: {machine})"),
        None => child.clone(),
    })
}

/// Why these cells must not be compared: their trials did not all have transparent huge pages in the same way, which
/// changes what is resident, what faults and what time it takes. `None`: they may be.
pub fn thp_differs<'c>(cells: impl IntoIterator<Item = &'c Cell>) -> Option<String> {
    let mut states: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for cell in cells {
        for state in &cell.thp {
            let arms = states.entry(state).or_default();
            if !arms.contains(&cell.arm.as_str()) {
                arms.push(&cell.arm);
            }
        }
    }
    if states.len() < 2 {
        return None;
    }
    let sides: Vec<String> = states
        .iter()
        .map(|(state, arms)| format!("{state}: {}", arms.join(", ")))
        .collect();
    Some(format!(
        "not compared, because transparent huge pages differ: {}",
        sides.join("; ")
    ))
}

/// `None` without records.
fn cell(records: &[&TrialRecord]) -> Option<Cell> {
    let first = records.first()?;
    let mut cell = Cell {
        grid: first.grid.clone(),
        workload: first.workload.clone(),
        params: first.params.clone(),
        arm: first.arm.clone(),
        protocol: first.protocol,
        outcomes: BTreeMap::new(),
        state: CellState::Ok,
        metrics: BTreeMap::new(),
        absent: BTreeMap::new(),
        thp: Vec::new(),
        set_aside: Vec::new(),
    };
    let mut samples: BTreeMap<String, Vec<BlockValue>> = BTreeMap::new();
    for record in records {
        *cell
            .outcomes
            .entry(record.outcome.name().to_owned())
            .or_default() += 1;
        let state = CellState::of(
            &record.outcome,
            record.metrics.get("reached_bytes").copied(),
        );
        if state.rank() > cell.state.rank() {
            cell.state = state;
        }
        if let Some(state) = thp(record)
            && !cell.thp.contains(&state)
        {
            cell.thp.push(state);
        }
        for (name, why) in &record.absent {
            cell.absent
                .entry(name.clone())
                .or_insert_with(|| why.clone());
        }
        if record.outcome == Outcome::Ok {
            for (name, value) in &record.metrics {
                let value = BlockValue {
                    block: record.block,
                    value: *value,
                };
                samples.entry(name.clone()).or_default().push(value);
            }
        } else {
            cell.set_aside.push(SetAside {
                block: record.block,
                outcome: record.outcome.clone(),
                metrics: record.metrics.clone(),
            });
        }
    }
    cell.metrics = samples
        .into_iter()
        .filter_map(|(name, samples)| Some((name, MetricSummary::new(samples)?)))
        .collect();
    cell.set_aside.sort_by_key(|aside| aside.block);
    Some(cell)
}

/// Finished trials of the same grid, parameters and seed must agree, whatever the arm and the protocol. Heaps that
/// keep no contents give no `contents`; they are compared on the rest.
fn checksum_mismatches<'r>(
    records: impl Iterator<Item = &'r TrialRecord>,
) -> Vec<ChecksumMismatch> {
    type Group<'r> = (&'r str, &'r Params, u64, &'static str);
    let mut groups: BTreeMap<Group<'r>, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for record in records.filter(|record| record.outcome == Outcome::Ok) {
        let sums = [
            ("ops", &record.checksum_ops),
            ("contents", &record.checksum_contents),
            ("input", &record.input_hash),
        ];
        for (which, sum) in sums {
            let Some(sum) = sum else { continue };
            let group = (record.grid.as_str(), &record.params, record.seed, which);
            let arms = groups
                .entry(group)
                .or_default()
                .entry(sum.clone())
                .or_default();
            if !arms.contains(&record.arm) {
                arms.push(record.arm.clone());
            }
        }
    }
    groups
        .into_iter()
        .filter(|(_, values)| values.len() > 1)
        .map(|((grid, params, seed, which), mut values)| {
            values.values_mut().for_each(|arms| arms.sort());
            ChecksumMismatch {
                grid: grid.to_owned(),
                params: params.clone(),
                seed,
                which: which.to_owned(),
                values,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Trial;

    #[test]
    fn samples_stay_with_their_blocks() {
        let records: Vec<_> = [(1, 30), (0, 10), (2, 20), (3, 40)]
            .map(|(block, wall)| {
                Trial::time("g", "system", block)
                    .metric("wall_ns", wall)
                    .ok()
            })
            .into();
        let summary = Summary::new(&records);
        let [cell] = &summary.cells[..] else {
            panic!("one cell: {summary:?}")
        };
        let wall = &cell.metrics["wall_ns"];
        assert_eq!((wall.median, wall.min, wall.max), (25.0, 10, 40));
        let expected = [(0, 10), (1, 30), (2, 20), (3, 40)];
        assert_eq!(
            wall.samples,
            expected.map(|(block, value)| BlockValue { block, value })
        );
        assert_eq!(cell.outcomes, BTreeMap::from([("ok".to_owned(), 4)]));
        assert_eq!(cell.state, CellState::Ok);
    }

    #[test]
    fn a_stopped_trial_is_set_aside() {
        let slow = |block| Trial::time("g", "slow", block).param("size", "45MiB");
        let records = [
            slow(0).metric("wall_ns", 5).ok(),
            slow(1)
                .metric("reached_bytes", 14_365_491)
                .end(Outcome::TimedOut { after_ms: 20_000 }),
            slow(2).end(Outcome::Skipped {
                after_ms: 20_000,
                block: 1,
            }),
        ];
        let summary = Summary::new(&records);
        let cell = &summary.cells[0];
        assert_eq!(cell.metrics["wall_ns"].samples.len(), 1);
        assert_eq!(cell.set_aside.len(), 2);
        assert_eq!(cell.state.text(), "timed out after 20s, 13.7 MiB reached");
        assert_eq!(cell.outcomes["skipped"], 1);
    }

    #[test]
    fn failed_and_unavailable_keep_their_reasons() {
        let records = [
            Trial::census("g", "a").end(Outcome::Failed {
                signal: Some(11),
                message: "crashed".into(),
            }),
            Trial::census("g", "b").end(Outcome::Unavailable {
                why: "not built".into(),
            }),
            Trial::census("g", "c")
                .absent("copied_bytes", "strace is missing")
                .ok(),
        ];
        let summary = Summary::new(&records);
        assert_eq!(summary.cells[0].state.text(), "failed: crashed (signal 11)");
        assert_eq!(summary.cells[1].state.text(), "unavailable: not built");
        assert_eq!(summary.cells[2].absent["copied_bytes"], "strace is missing");
    }

    #[test]
    fn control_characters_do_not_reach_the_reader() {
        let record = Trial::census("g", "a").end(Outcome::Failed {
            signal: None,
            message: "\u{1b}[2Jgone\r\n\u{9b}1mä".into(),
        });
        assert_eq!(
            Summary::new(&[record]).cells[0].state.text(),
            "failed: \\u{1b}[2Jgone\\r\\n\\u{9b}1mä"
        );
    }

    #[test]
    fn cells_are_ordered_by_size_and_found_by_value() {
        let sizes = ["16MiB", "1MiB", "64KiB"];
        let records = sizes.map(|size| Trial::census("g", "system").param("size", size).ok());
        let summary = Summary::new(&records);
        let order: Vec<_> = summary
            .cells
            .iter()
            .map(|c| c.params["size"].as_str())
            .collect();
        assert_eq!(order, ["64KiB", "1MiB", "16MiB"]);
        let point = Params::from([("size".to_owned(), "1048576".to_owned())]);
        assert_eq!(
            summary
                .find("g", Protocol::Census, "system", &point)
                .count(),
            1
        );
    }

    #[test]
    fn order_of_records_does_not_matter() {
        let mut records: Vec<_> = ["b", "a", "c"]
            .iter()
            .flat_map(|arm| {
                (0..3).map(|block| Trial::time("g", arm, block).metric("wall_ns", 7).ok())
            })
            .collect();
        crate::synthetic::number(&mut records);
        let forward = Summary::new(&records);
        records.reverse();
        assert_eq!(forward, Summary::new(&records));
    }

    #[test]
    fn a_resumed_trial_replaces_its_record() {
        let failed = Outcome::Failed {
            signal: None,
            message: "killed".into(),
        };
        let mut records = [
            Trial::time("g", "system", 0).end(failed),
            Trial::time("g", "system", 0).metric("wall_ns", 7).ok(),
        ];
        records[1].trial = records[0].trial;
        assert_eq!(Summary::new(&records).cells[0].state, CellState::Ok);
    }

    #[test]
    fn arms_that_did_other_work_are_named() {
        let at = |arm: &str, ops: &str| {
            let mut record = Trial::census("g", arm).ok();
            record.checksum_ops = Some(ops.to_owned());
            record.checksum_contents = (arm != "null").then(|| "c".to_owned());
            record
        };
        let mut records = [
            at("system", "1"),
            at("jemalloc", "1"),
            at("null", "1"),
            at("bad", "2"),
        ];
        let summary = Summary::new(&records);
        let [mismatch] = &summary.checksum_mismatches[..] else {
            panic!("{summary:?}")
        };
        assert_eq!(mismatch.which, "ops");
        assert_eq!(mismatch.values["2"], ["bad"]);
        assert_eq!(mismatch.values["1"], ["jemalloc", "null", "system"]);

        // Trials that did not finish, or with another seed, are no part of the group.
        records[3].outcome = Outcome::TimedOut { after_ms: 1 };
        assert!(Summary::new(&records).checksum_mismatches.is_empty());
        records[3].outcome = Outcome::Ok;
        records[3].seed += 1;
        assert!(Summary::new(&records).checksum_mismatches.is_empty());
    }

    #[test]
    fn a_receipt_that_changed_is_told() {
        let mut records = [Trial::time("g", "a", 0).ok(), Trial::time("g", "a", 1).ok()];
        records[0].receipt = Some(Receipt::default());
        records[1].receipt = Some(Receipt {
            version: "2".into(),
            ..Receipt::default()
        });
        assert_eq!(Summary::new(&records).receipt_changes, ["a"]);
    }

    #[test]
    fn different_huge_pages_are_not_compared() {
        let (off, on) = ("off for this process", "as the machine has it");
        let at = |arm: &str, child: &str, machine: &str| {
            Trial::memory("g", arm).thp(child, machine).ok()
        };
        let differs = |records: &[TrialRecord]| thp_differs(&Summary::new(records).cells);
        assert_eq!(
            differs(&[at("a", off, "madvise"), at("b", off, "madvise")]),
            None
        );
        let why = differs(&[at("a", off, "always"), at("b", on, "always")]).expect("refused");
        assert_eq!(
            why,
            "not compared, because transparent huge pages differ: as the machine has it (machine: always): b; \
             off for this process (machine: always): a"
        );
        let why = differs(&[at("a", off, "madvise"), at("b", off, "always")]).expect("refused");
        assert!(why.contains("(machine: madvise): a"), "{why}");
        // Also within one cell, whose blocks would be taken together.
        assert!(differs(&[at("a", off, "madvise"), at("a", off, "never")]).is_some());
        // Records that do not tell are compared with what they are.
        assert_eq!(
            differs(&[at("a", off, "never"), Trial::memory("g", "b").ok()]),
            None
        );
    }

    #[test]
    fn it_reads_back_what_it_writes() {
        let records = [Trial::time("g", "a", 0).metric("wall_ns", 7).ok()];
        let summary = Summary::new(&records);
        let text = serde_json::to_string(&summary).expect("serialises");
        assert_eq!(
            serde_json::from_str::<Summary>(&text).expect("reads back"),
            summary
        );
    }
}
