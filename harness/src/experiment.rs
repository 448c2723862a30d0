//! The definition: one TOML file that says what is run, why, and what is claimed of it.

use crate::trial::Protocol;
use serde::Deserialize;
use std::collections::BTreeMap;

/// One experiment, as its TOML file has it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name; also the file's.
    pub id: String,
    /// One line for lists.
    pub title: String,
    /// What the reader should learn; reports print it.
    pub analysis: String,
    /// What is run.
    #[serde(rename = "grid")]
    pub grids: Vec<Grid>,
    /// What is claimed of it.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
}

/// One workload over a grid of parameters and a list of arms.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Grid {
    /// Name, unique in the experiment.
    pub name: String,
    /// Workload id.
    pub workload: String,
    /// Each parameter with one value or several; several span the grid.
    #[serde(default)]
    pub params: BTreeMap<String, OneOrMany>,
    /// Arms. With the time protocol the first is the baseline, which runs twice (`system` and `system#2`).
    pub arms: Vec<String>,
    /// What is measured.
    pub protocols: Vec<Protocol>,
    /// Blocks of the time protocol; the census runs once a cell.
    #[serde(default = "default_blocks")]
    pub blocks: u32,
    /// Limit of one trial, e.g. `"20s"`.
    #[serde(default = "default_timeout")]
    pub timeout: String,
    /// Address-space limit, e.g. `"512MiB"`.
    #[serde(default)]
    pub memory_limit: Option<String>,
    /// Parameters that `--quick` puts in the place of the above; a grid without it runs in full.
    #[serde(default)]
    pub quick: Option<BTreeMap<String, OneOrMany>>,
    /// True: `--quick` leaves this grid out.
    #[serde(default)]
    pub skip_when_quick: bool,
}

fn default_blocks() -> u32 {
    6
}
fn default_timeout() -> String {
    "60s".to_owned()
}

/// `mode = "concat"` or `mode = ["concat", "list"]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One value.
    One(String),
    /// Several, each a point of the grid.
    Many(Vec<String>),
}

impl OneOrMany {
    /// The values, at least one.
    pub fn values(&self) -> &[String] {
        match self {
            OneOrMany::One(value) => std::slice::from_ref(value),
            OneOrMany::Many(values) => values,
        }
    }
}

/// One finding with its check.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    /// Name, unique in the experiment.
    pub id: String,
    /// Who says so, where.
    pub source: String,
    /// The finding in our words.
    pub finding: String,
    /// What is compared. All must hold.
    #[serde(rename = "check")]
    pub checks: Vec<Check>,
    /// What we expect to see: true, it holds here; false, it does not (the finding is recorded as refuted).
    #[serde(default = "yes")]
    pub expected: bool,
}

fn yes() -> bool {
    true
}

/// How a check compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckKind {
    /// `metric` (divided by `over`, if given) of every matching cell of every arm lies in `min ..= max`.
    Value,
    /// `metric` of each arm divided by that of `than` (another arm, or the same arm with `than-where`) lies in
    /// `min ..= max`. For times: the paired ratio over blocks.
    Ratio,
    /// The slope of log(metric) against log(`against`), fitted over the cells from `from` to `to`, lies in `min ..= max`.
    Exponent,
    /// `metric` rises in the order of `arms`.
    Order,
    /// `metric` equals `value`, or without one is equal over all arms.
    Equal,
}

/// One comparison on the summary.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Check {
    /// How.
    pub kind: CheckKind,
    /// Grid it reads.
    pub grid: String,
    /// Metric, or a sum of metrics: `"appended_bytes + copied_bytes"`.
    pub metric: String,
    /// Metric to divide by.
    #[serde(default)]
    pub over: Option<String>,
    /// Only cells with these parameter values.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, OneOrMany>,
    /// Arms it speaks of, as labelled.
    pub arms: Vec<String>,
    /// For `ratio`: the arm to divide by (default: the arm itself, with `than-where`).
    #[serde(default)]
    pub than: Option<String>,
    /// For `ratio`: the parameter values of the cell to divide by, where they differ from `where`.
    #[serde(default)]
    pub than_where: BTreeMap<String, OneOrMany>,
    /// For `exponent`: the parameter on the other axis, a size.
    #[serde(default)]
    pub against: Option<String>,
    /// For `exponent`: from this size.
    #[serde(default)]
    pub from: Option<String>,
    /// For `exponent`: to this size.
    #[serde(default)]
    pub to: Option<String>,
    /// Smallest value that passes.
    #[serde(default)]
    pub min: Option<f64>,
    /// Largest value that passes.
    #[serde(default)]
    pub max: Option<f64>,
    /// For `equal`: the exact value.
    #[serde(default)]
    pub value: Option<u64>,
}
