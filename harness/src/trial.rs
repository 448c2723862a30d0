//! What one child is told, and what it answers: the wire types of one trial.

use crate::behaviour::Behaviour;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The number of the formats in this file and in `record.rs`. A change that an older reader would misread raises it.
pub const SCHEMA: u32 = 1;

/// What is measured in a trial. Two are never mixed in one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Wall, user and system time of fixed work, nothing else running.
    Time,
    /// Counts: calls, moves, bytes, faults, system calls.
    Census,
    /// Resident memory at named phases and over time, and its peak, read from outside.
    Memory,
}

impl Protocol {
    /// Every protocol, in the order of help texts.
    pub const ALL: [Protocol; 3] = [Protocol::Time, Protocol::Census, Protocol::Memory];

    /// The name on the command line, in TOML and in records.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Time => "time",
            Protocol::Census => "census",
            Protocol::Memory => "memory",
        }
    }
}

/// Transparent huge pages, as the trial has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Thp {
    /// Off for the child by prctl: the default.
    #[default]
    Off,
    /// As the machine has them.
    AsIs,
}

/// Parameters of a workload: names and values as text, as written on the command line or in TOML.
pub type Params = BTreeMap<String, String>;

/// One child's orders, as one line of JSON on its standard input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialSpec {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Hash of the harness's sources; a child built from others refuses.
    pub source_hash: String,
    /// Arm without its knobs, e.g. `tcmalloc-google`.
    pub arm: String,
    /// Knobs as `(name, value)`.
    pub knobs: Vec<(String, String)>,
    /// Workload id.
    pub workload: String,
    /// Its parameters, every one given.
    pub params: Params,
    /// What to measure.
    pub protocol: Protocol,
    /// Seed of everything that is drawn by chance.
    pub seed: u64,
    /// Transparent huge pages.
    pub thp: Thp,
    /// The child stops by itself once its measured region has taken so many milliseconds of wall time.
    pub soft_limit_ms: u64,
    /// Address space in bytes that the child may take from the start of the measured region on.
    pub memory_limit: Option<u64>,
    /// Keep so many moves for matching with system calls (0: none).
    pub log_moves: usize,
    /// Take canary mode: verify everything, measure nothing.
    pub verify: bool,
}

/// One child's answer, as JSON on its standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct ChildReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Who was measured.
    pub receipt: Receipt,
    /// How it ended, as far as the child can tell.
    pub outcome: Outcome,
    /// Flat metrics with their units in the names.
    pub metrics: BTreeMap<String, u64>,
    /// One row a file, for workloads that read files.
    pub files: Vec<FileRow>,
    /// What the walk left out, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Decisions of the workload (see `contract::Driver`), 16 hexadecimal digits.
    pub checksum_ops: Option<String>,
    /// Contents read back from the blocks, 16 hexadecimal digits; absent where the heap keeps none.
    pub checksum_contents: Option<String>,
    /// Hash of the input that was read or generated, 16 hexadecimal digits.
    pub input_hash: Option<String>,
    /// Moves of large blocks: `[from, to, bytes]`; absent if not asked for or if there were too many.
    pub moves: Option<Vec<(u64, u64, u64)>>,
    /// Metrics that were asked for and could not be had, with the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub absent: BTreeMap<String, String>,
}

/// What a child that serves is asked, as one line of JSON on its standard input. For `cargo bench` alone: a run starts a
/// fresh child for each trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServeRequest {
    /// How often the workload is run; at least once.
    pub iterations: u64,
    /// What is run, under the protocol `time`. Its limit holds for all iterations together. Arm, knobs and huge pages are
    /// the same in all requests to one child.
    pub trial: TrialSpec,
}

/// What it answers, as one line of JSON on its standard output. An error is an answer, too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct ServeAnswer {
    /// [`SCHEMA`].
    pub schema: u32,
    /// How the iterations ended; the first that does not finish ends them.
    pub outcome: Outcome,
    /// Iterations that finished.
    pub iterations: u64,
    /// Wall nanoseconds of all their measured regions.
    pub wall_ns: u64,
    /// Decisions of the first iteration on this input, which is a whole one, as in [`ChildReport`].
    pub checksum_ops: Option<String>,
    /// Contents read back in it.
    pub checksum_contents: Option<String>,
    /// Hash of the input.
    pub input_hash: Option<String>,
    /// Who was measured; absent as long as no heap is open.
    pub receipt: Option<Receipt>,
    /// Bytes that the child's own heap holds.
    pub own_bytes: u64,
}

/// How a trial ended. Every ending is a record: "did not finish" is a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    /// Finished.
    #[default]
    Ok,
    /// The child crashed, said something unreadable, or its allocator ran out of memory.
    Failed {
        /// Signal that ended it, if one did.
        signal: Option<i32>,
        /// What happened, in words.
        message: String,
    },
    /// Stopped at its time limit. Counts gathered until then are kept in the metrics.
    TimedOut {
        /// Milliseconds of the limit.
        after_ms: u64,
    },
    /// Not run, because this cell timed out in an earlier block.
    Skipped {
        /// Milliseconds of the limit that it ran into.
        after_ms: u64,
        /// In which block.
        block: u32,
    },
    /// Finished, but with other checksums than the rest of its cell's group.
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

impl Outcome {
    /// The kind's name as in the record.
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Failed { .. } => "failed",
            Outcome::TimedOut { .. } => "timed-out",
            Outcome::Skipped { .. } => "skipped",
            Outcome::WrongChecksum { .. } => "wrong-checksum",
            Outcome::Unavailable { .. } => "unavailable",
        }
    }
}

/// One file that the walker read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileRow {
    /// Path under the root, lossily where it is not UTF-8.
    pub path: String,
    /// Bytes read.
    pub bytes: u64,
    /// Lines read.
    pub lines: u64,
    /// `ok`, `timed-out` or `out-of-memory`.
    pub ended: String,
    /// Bytes of it that were accumulated before it ended.
    pub reached_bytes: u64,
    /// Wall nanoseconds from its first line to its last free.
    pub wall_ns: u64,
    /// Blocks moved by realloc (census only).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub realloc_moves: Option<u64>,
    /// Bytes in them (census only).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub moved_bytes: Option<u64>,
}

/// Who was measured; the wire form of `contract::Receipt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Receipt {
    /// Hash of the sources the child was built from.
    pub source_hash: String,
    /// Name as its authors write it.
    pub allocator: String,
    /// Version as the library tells it.
    pub version: String,
    /// How it was built.
    pub build: BTreeMap<String, String>,
    /// Every knob as read back.
    pub knobs: BTreeMap<String, String>,
    /// Other facts read back.
    pub facts: BTreeMap<String, String>,
    /// Built with debug assertions: such a child refuses to be timed.
    pub debug_build: bool,
}

/// The fact of a receipt that tells how the behaviour suite came out, for a library of the user's.
pub const SUITE_FACT: &str = "behaviour_suite";
/// What that fact begins with where a rule is broken.
pub const SUITE_BREAKS: &str = "BREAKS";

/// What a child is asked of an arm that it holds, as one line of JSON on its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inquiry {
    /// Hash of the harness's sources; a child built from others answers nothing but its own.
    pub source_hash: String,
    /// Arm without its knobs.
    pub arm: String,
    /// Knobs as `(name, value)`.
    pub knobs: Vec<(String, String)>,
}

/// What a child answers to an [`Inquiry`], as JSON on its standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Answers {
    /// Hash of the sources the child was built from.
    pub source_hash: String,
    /// Why the heap was not asked, if it was not.
    pub refused: Option<String>,
    /// One row a rule, if the behaviour suite was asked.
    pub rows: Vec<SuiteRow>,
    /// What was observed, if that was asked and the heap served small sizes.
    pub behaviour: Option<Behaviour>,
    /// Who it was, where the behaviour was observed.
    pub receipt: Option<Receipt>,
}

/// One rule of the behaviour suite and the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuiteRow {
    /// The rule.
    pub rule: String,
    /// Without it no figure means anything.
    pub essential: bool,
    /// How it is broken, if it is.
    pub broken: Option<String>,
    /// What it does that others do otherwise, where the standard leaves it open.
    pub differs: Option<String>,
}

impl SuiteRow {
    /// The rule and how it is broken, if it is.
    pub fn complaint(&self) -> Option<String> {
        let how = self.broken.as_ref()?;
        Some(format!("\"{}\": {how}", self.rule))
    }
}
