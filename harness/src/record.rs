//! The record: all that one trial yields, one JSON line in `records.jsonl`.

use crate::trial::{Params, Protocol, Receipt, Thp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

/// All that a trial yields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Format number, [`crate::trial::SCHEMA`].
    pub schema: u32,
    /// Number in the plan, from 0.
    pub trial: u32,
    /// Experiment id.
    pub experiment: String,
    /// Grid of the experiment.
    pub grid: String,
    /// Block, from 0.
    pub block: u32,
    /// Place in the order of its block, from 0.
    pub position: u32,
    /// Arm as labelled in the tables, e.g. `tcmalloc-google:sampling=0` or `system#2`.
    pub arm: String,
    /// Workload id.
    pub workload: String,
    /// Its parameters.
    pub params: Params,
    /// What was measured.
    pub protocol: Protocol,
    /// `direct`: the workload calls the allocator itself. (`program` is for whole programs.)
    pub driver: String,
    /// Seed.
    pub seed: u64,
    /// Transparent huge pages.
    pub thp: Thp,
    /// Address-space limit in bytes, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub memory_limit: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Flat metrics, units in the names.
    pub metrics: BTreeMap<String, u64>,
    /// Metrics that were asked for and could not be had, with the reason. Absent is not 0.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub absent: BTreeMap<String, String>,
    /// What was sampled over time (memory only): `[milliseconds, bytes]`, from the start of the measured region on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub series: BTreeMap<String, Vec<(u64, u64)>>,
    /// One row a file.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files: Vec<FileRow>,
    /// What the walk left out, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub skipped: BTreeMap<String, u64>,
    /// Checksum of decisions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub checksum_ops: Option<String>,
    /// Checksum of contents.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub checksum_contents: Option<String>,
    /// Hash of the input.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input_hash: Option<String>,
    /// Who was measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub receipt: Option<Receipt>,
    /// The child's whole environment, as it was given.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub environment: BTreeMap<String, String>,
    /// Start, seconds since 1970 UTC.
    pub started_unix: u64,
    /// Wall milliseconds of the whole child, start-up included: for planning, never a result.
    pub child_ms: u64,
}
