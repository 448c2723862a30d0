//! The record: all that one trial yields, one JSON line in `records.jsonl`.

use crate::trial::{FileRow, Outcome, Params, Protocol, Receipt, Thp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
