//! The definition: one TOML file that says what is run, why, and what is claimed of it.

use crate::metric::{Expression, UNDER_CALLGRIND};
use crate::nearest::nearest_text;
use crate::size::{counted, parse_bytes, parse_duration};
use crate::summary::same_value;
use crate::trial::{Params, Protocol};
use crate::workloads::{self, params::Kind};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One experiment, as its TOML file has it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Name; also the file's, and part of the folder of a run.
    #[serde(deserialize_with = "name")]
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
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// Workload id.
    pub workload: String,
    /// Each parameter with one value or several; several span the grid.
    #[serde(default)]
    pub params: BTreeMap<String, OneOrMany>,
    /// Arms. With the time protocol the first is the baseline, which runs twice (`system` and `system#2`). Once the
    /// definition is read, each stands here with every combination of [`Grid::knobs`].
    pub arms: Vec<String>,
    /// Knobs that every arm is given, each with one value or several: the arms span a grid, too.
    #[serde(default)]
    pub knobs: BTreeMap<String, OneOrMany>,
    /// What is measured, each protocol once.
    #[serde(deserialize_with = "protocols")]
    pub protocols: Vec<Protocol>,
    /// Blocks of the time protocol, 1 to [`MOST_BLOCKS`]; the census runs once a cell.
    #[serde(default = "default_blocks", deserialize_with = "blocks")]
    pub blocks: u32,
    /// Blocks of the memory protocol: 1, once a cell, unless what memory is measured varies from run to run.
    #[serde(default = "once", deserialize_with = "memory_blocks")]
    pub memory_blocks: u32,
    /// True: each census trial is run once more under callgrind, which counts the instructions of its measured region.
    #[serde(default)]
    pub instructions: bool,
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
    /// A table of its arms in rows and columns, beside the usual ones.
    #[serde(default)]
    pub layout: Option<Layout>,
}

/// A two-way table of a grid's arms: for a question that has two sides, such as which malloc under which object
/// allocator. Each cell is one arm, with its time and its copies.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Layout {
    /// What it shows, in one line.
    pub title: String,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// The arm whose times all others are divided by.
    pub than: String,
    /// Its rows.
    #[serde(rename = "row")]
    pub rows: Vec<LayoutRow>,
    /// What stands under it, one paragraph each.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One row of a layout: arms, or texts that others wrote.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LayoutRow {
    /// Its label.
    pub name: String,
    /// An arm for each column, as written in the grid; an empty text where there is none.
    #[serde(default)]
    pub arms: Vec<String>,
    /// In their place: a text for each column, shown in quotation marks because it was not measured here; an empty
    /// text where there is none.
    #[serde(default)]
    pub quoted: Vec<String>,
}

/// Most blocks of the time protocol, in a definition and on the command line.
pub const MOST_BLOCKS: u32 = 1000;

/// Most arms that the knobs of one grid may span.
pub const MOST_ARMS: usize = 1000;

fn default_blocks() -> u32 {
    6
}
fn once() -> u32 {
    1
}
fn default_timeout() -> String {
    "60s".to_owned()
}

/// A name that can stand in paths, in names of tables and in messages as it is.
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        return Err(D::Error::custom(format!(
            "`{}` is no name: expected letters, digits, `-` and `.`, at least one, and no `.` at the beginning",
            name.escape_default()
        )));
    }
    Ok(name)
}

/// Protocols, each named once.
fn protocols<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Protocol>, D::Error> {
    let named = Vec::<Protocol>::deserialize(deserializer)?;
    let mut seen = BTreeSet::new();
    match named.iter().find(|protocol| !seen.insert(**protocol)) {
        Some(twice) => Err(D::Error::custom(format!(
            "protocol `{}` is named twice",
            twice.name()
        ))),
        None => Ok(named),
    }
}

/// As many blocks as the command line takes too.
fn blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    blocks_of("blocks", deserializer)
}
fn memory_blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    blocks_of("memory-blocks", deserializer)
}
fn blocks_of<'de, D: Deserializer<'de>>(key: &str, deserializer: D) -> Result<u32, D::Error> {
    let given = i64::deserialize(deserializer)?;
    u32::try_from(given)
        .ok()
        .filter(|blocks| (1..=MOST_BLOCKS).contains(blocks))
        .ok_or_else(|| {
            D::Error::custom(format!(
                "`{key} = {given}`: expected a number from 1 to {MOST_BLOCKS}"
            ))
        })
}

/// A bound that a value can lie on either side of.
fn bound<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let given = f64::deserialize(deserializer)?;
    if given.is_finite() {
        Ok(Some(given))
    } else {
        Err(D::Error::custom(format!(
            "the bound `{given}` decides nothing: expected a finite number"
        )))
    }
}

/// `mode = "concat"` or `mode = ["concat", "list"]`.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// By hand, because a derived untagged enum says only that "no variant matched".
impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = OneOrMany;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a text in quotes, such as \"16MiB\" or \"70\", or a list of such texts",
                )
            }

            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany::One(value.to_owned()))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> Result<OneOrMany, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = items.next_element()? {
                    values.push(value);
                }
                if values.is_empty() {
                    return Err(serde::de::Error::invalid_length(0, &self));
                }
                Ok(OneOrMany::Many(values))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// One finding with its check.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    /// Name, unique in the experiment.
    #[serde(deserialize_with = "name")]
    pub id: String,
    /// Who says so, where.
    pub source: String,
    /// The finding in our words.
    pub finding: String,
    /// What is compared. All must hold.
    #[serde(rename = "check", default)]
    pub checks: Vec<Check>,
    /// In the place of checks: why nothing here can decide it. It is recorded, and neither passes nor fails.
    #[serde(default)]
    pub not_decidable: Option<String>,
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
    /// Smallest value that passes, finite.
    #[serde(default, deserialize_with = "bound")]
    pub min: Option<f64>,
    /// Largest value that passes, finite.
    #[serde(default, deserialize_with = "bound")]
    pub max: Option<f64>,
    /// For `equal`: the exact value.
    #[serde(default)]
    pub value: Option<u64>,
}

impl Grid {
    /// The parameters of a full or a quick run: under `--quick` those of [`Grid::quick`] take the place of the same
    /// names.
    pub fn params(&self, quick: bool) -> BTreeMap<String, OneOrMany> {
        let mut params = self.params.clone();
        if quick {
            params.extend(self.quick.clone().unwrap_or_default());
        }
        params
    }

    /// Every arm with every combination of the knobs, as labelled: the last knob (by name) varies fastest.
    fn spanned_arms(&self) -> Result<Vec<String>, CheckError> {
        let mut arms = self.arms.clone();
        for (knob, values) in &self.knobs {
            if arms.len().saturating_mul(values.values().len()) > MOST_ARMS {
                let owner = format!("grid `{}`", self.name);
                let message =
                    format!("`knobs` makes more than {MOST_ARMS} arms: give fewer values");
                return Err(refuse(&owner, knob, &message));
            }
            arms = arms
                .iter()
                .flat_map(|arm| {
                    let values = values.values().iter();
                    values.map(move |value| with_knob(arm, &format!("{knob}={value}")))
                })
                .collect();
        }
        Ok(arms)
    }

    /// Every point of the grid, the last parameter (by name) varying fastest. None if `--quick` leaves the grid out.
    pub fn points(&self, quick: bool) -> Vec<Params> {
        if quick && self.skip_when_quick {
            return Vec::new();
        }
        let mut points = vec![Params::new()];
        for (name, values) in self.params(quick) {
            points = points
                .into_iter()
                .flat_map(|point| {
                    let name = &name;
                    values.values().iter().map(move |value| {
                        let mut point = point.clone();
                        point.insert(name.clone(), value.clone());
                        point
                    })
                })
                .collect();
        }
        points
    }
}

/// What is wrong with an experiment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionError {
    /// The file, as it was named.
    pub file: String,
    /// Line from 1, where it is known.
    pub line: Option<usize>,
    /// Column in characters from 1, where it is known.
    pub column: Option<usize>,
    /// What is wrong, and what was expected.
    pub message: String,
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}
impl std::error::Error for DefinitionError {}

/// A reference in a definition that leads nowhere, or a check that lacks what its kind needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckError {
    /// The grid or claim it stands in.
    pub owner: String,
    /// The offending text.
    pub word: String,
    /// What is wrong, and what was expected.
    pub message: String,
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.owner, self.message)
    }
}
impl std::error::Error for CheckError {}

impl Experiment {
    /// Reads a definition and checks it; `file_name` is for messages only.
    ///
    /// # Errors
    /// [`DefinitionError`] with the place and what was expected there; unknown keys get the nearest ones.
    pub fn parse(text: &str, file_name: &str) -> Result<Experiment, DefinitionError> {
        let error = |at: Option<usize>, message: String| {
            let (line, column) = at.map(|at| line_and_column(text, at)).unzip();
            DefinitionError {
                file: file_name.to_owned(),
                line,
                column,
                message,
            }
        };
        let mut experiment: Experiment = toml::from_str(text)
            .map_err(|e| error(e.span().map(|s| s.start), with_nearest(e.message())))?;
        for grid in &mut experiment.grids {
            grid.arms = grid
                .spanned_arms()
                .map_err(|e| error(locate(text, &e), e.to_string()))?;
        }
        experiment
            .check()
            .map_err(|e| error(locate(text, &e), e.to_string()))?;
        Ok(experiment)
    }

    /// The grid of that name.
    pub fn grid(&self, name: &str) -> Option<&Grid> {
        self.grids.iter().find(|grid| grid.name == name)
    }

    /// Checks what the format alone does not: names are unique, sizes and times can be read, every claim refers to a
    /// grid, metrics and arms that exist, and each check has what its kind needs.
    ///
    /// # Errors
    /// The first [`CheckError`].
    pub fn check(&self) -> Result<(), CheckError> {
        if self.grids.is_empty() {
            return Err(refuse(&self.id, &self.id, "expected at least one [[grid]]"));
        }
        unique("grid", self.grids.iter().map(|g| g.name.as_str()))?;
        unique("claim", self.claims.iter().map(|c| c.id.as_str()))?;
        self.grids.iter().try_for_each(check_grid)?;
        for claim in &self.claims {
            let owner = format!("claim `{}`", claim.id);
            check_decidable(&owner, claim)?;
            for check in &claim.checks {
                let grid = self.grid(&check.grid).ok_or_else(|| {
                    let near =
                        nearest_text(&check.grid, self.grids.iter().map(|g| g.name.as_str()));
                    refuse(
                        &owner,
                        &check.grid,
                        &format!("unknown grid `{}`{near}", check.grid),
                    )
                })?;
                check_check(&owner, grid, check)?;
            }
        }
        Ok(())
    }
}

/// The arm with one more knob, its knobs in the order of a label.
fn with_knob(arm: &str, setting: &str) -> String {
    let (id, knobs) = arm
        .split_once(':')
        .map_or((arm, None), |(id, knobs)| (id, Some(knobs)));
    let mut knobs: Vec<&str> = knobs
        .into_iter()
        .flat_map(|knobs| knobs.split(','))
        .collect();
    knobs.push(setting);
    knobs.sort_unstable();
    format!("{id}:{}", knobs.join(","))
}

fn refuse(owner: &str, word: &str, message: &str) -> CheckError {
    CheckError {
        owner: owner.to_owned(),
        word: word.to_owned(),
        message: message.to_owned(),
    }
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), CheckError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            let owner = format!("{what} `{name}`");
            return Err(refuse(
                &owner,
                name,
                "the name is used twice, expected another",
            ));
        }
    }
    Ok(())
}

fn check_grid(grid: &Grid) -> Result<(), CheckError> {
    let owner = format!("grid `{}`", grid.name);
    if grid.arms.is_empty() {
        return Err(refuse(&owner, &grid.name, "expected at least one arm"));
    }
    if grid.protocols.is_empty() {
        return Err(refuse(
            &owner,
            &grid.name,
            "expected at least one protocol: time, census, memory",
        ));
    }
    let mut arms = BTreeSet::new();
    if let Some(twice) = grid.arms.iter().find(|arm| !arms.insert(*arm)) {
        return Err(refuse(
            &owner,
            twice,
            &format!("arm `{twice}` is named twice"),
        ));
    }
    parse_duration(&grid.timeout)
        .map_err(|e| refuse(&owner, &grid.timeout, &format!("timeout {e}")))?;
    if let Some(limit) = &grid.memory_limit {
        parse_bytes(limit).map_err(|e| refuse(&owner, limit, &format!("memory-limit {e}")))?;
    }
    if grid.instructions && !grid.protocols.contains(&Protocol::Census) {
        let message = "`instructions = true` needs the protocol census, which counts them";
        return Err(refuse(&owner, "instructions", message));
    }
    if grid.instructions && grid.memory_limit.is_some() {
        let message =
            "`memory-limit` would hold for valgrind, too: `instructions = true` goes without it";
        return Err(refuse(&owner, "memory-limit", message));
    }
    if let Some(name) = grid
        .quick
        .iter()
        .flat_map(BTreeMap::keys)
        .find(|name| !grid.params.contains_key(*name))
    {
        let near = nearest_text(name, grid.params.keys().map(String::as_str));
        let message = format!("`quick` sets `{name}`, which `params` does not{near}");
        return Err(refuse(&owner, name, &message));
    }
    match &grid.layout {
        Some(layout) => check_layout(&owner, grid, layout),
        None => Ok(()),
    }
}

/// A layout has a place for every arm that it names, and every arm it names is there.
fn check_layout(owner: &str, grid: &Grid, layout: &Layout) -> Result<(), CheckError> {
    let bad = |word: &str, message: &str| Err(refuse(owner, word, &format!("layout: {message}")));
    let told = [Protocol::Time, Protocol::Census];
    if !told
        .iter()
        .any(|protocol| grid.protocols.contains(protocol))
    {
        return bad(
            &grid.name,
            "it shows times and copies, so the grid must run `time` or `census`",
        );
    }
    if layout.columns.is_empty() || layout.rows.iter().all(|row| row.arms.is_empty()) {
        return bad(
            &layout.title,
            "expected at least one column and one row of arms",
        );
    }
    let mut placed = BTreeSet::new();
    for row in &layout.rows {
        let cells = match (row.arms.is_empty(), row.quoted.is_empty()) {
            (false, true) => &row.arms,
            (true, false) => &row.quoted,
            _ => {
                return bad(
                    &row.name,
                    &format!("row `{}` needs either `arms` or `quoted`", row.name),
                );
            }
        };
        if cells.len() != layout.columns.len() {
            let message = format!(
                "row `{}` has {}, but there are {}",
                row.name,
                counted(cells.len(), "cell"),
                counted(layout.columns.len(), "column")
            );
            return bad(&row.name, &message);
        }
        if let Some(twice) = row
            .arms
            .iter()
            .find(|arm| !arm.is_empty() && !placed.insert(*arm))
        {
            return bad(twice, &format!("arm `{twice}` is named twice"));
        }
    }
    for arm in placed.into_iter().chain([&layout.than]) {
        if !grid.arms.contains(arm) {
            let near = nearest_text(arm, grid.arms.iter().map(String::as_str));
            return bad(
                arm,
                &format!("arm `{arm}` is not in grid `{}`{near}", grid.name),
            );
        }
    }
    Ok(())
}

/// A claim has something that decides it, or a reason why nothing does.
fn check_decidable(owner: &str, claim: &Claim) -> Result<(), CheckError> {
    let bad = |word: &str, message: &str| Err(refuse(owner, word, message));
    match (&claim.not_decidable, claim.checks.is_empty()) {
        (None, true) => bad(
            &claim.id,
            "expected at least one check, or `not-decidable` with the reason",
        ),
        (Some(_), false) => bad(
            "not-decidable",
            "a claim with `not-decidable` has no checks",
        ),
        (Some(why), true) if why.trim().is_empty() => {
            bad("not-decidable", "expected the reason in `not-decidable`")
        }
        (Some(_), true) if !claim.expected => {
            bad("expected", "a claim with `not-decidable` expects nothing")
        }
        _ => Ok(()),
    }
}

fn check_check(owner: &str, grid: &Grid, check: &Check) -> Result<(), CheckError> {
    let bad = |word: &str, message: String| Err(refuse(owner, word, &message));
    let expression =
        |text: &String| Expression::parse(text).map_err(|e| refuse(owner, text, &e.to_string()));
    let metric = expression(&check.metric)?;
    check.over.as_ref().map(expression).transpose()?;

    let protocol = metric.protocol(&grid.protocols);
    if !grid.protocols.contains(&protocol) {
        let message = format!(
            "`{}` comes from the protocol {}, which grid `{}` does not run",
            check.metric,
            protocol.name(),
            grid.name
        );
        return bad(&check.metric, message);
    }
    let over = check.over.iter().flat_map(|over| over.split('+'));
    if !grid.instructions
        && let Some(name) = metric
            .names()
            .chain(over.map(str::trim))
            .find(|name| UNDER_CALLGRIND.contains(name))
    {
        let message = format!(
            "`{name}` are counted where a grid has `instructions = true`, which grid `{}` has not",
            grid.name
        );
        return bad(&check.metric, message);
    }
    if check.arms.is_empty() {
        return bad(
            &check.grid,
            "expected at least one arm in `arms`".to_owned(),
        );
    }
    let mut arms = BTreeSet::new();
    if let Some(twice) = check.arms.iter().find(|arm| !arms.insert(*arm)) {
        return bad(twice, format!("arm `{twice}` is named twice"));
    }
    for arm in check.arms.iter().chain(&check.than) {
        if !grid.arms.contains(arm) {
            let near = nearest_text(arm, grid.arms.iter().map(String::as_str));
            return bad(
                arm,
                format!("arm `{arm}` is not in grid `{}`{near}", grid.name),
            );
        }
    }
    for (name, values) in check.only.iter().chain(&check.than_where) {
        let Some(known) = grid.params.get(name) else {
            let near = nearest_text(name, grid.params.keys().map(String::as_str));
            return bad(
                name,
                format!("grid `{}` has no parameter `{name}`{near}", grid.name),
            );
        };
        let missing = values
            .values()
            .iter()
            .find(|v| !known.values().iter().any(|k| same_value(k, v)));
        if let Some(value) = missing {
            let message = format!(
                "`{name} = \"{value}\"` is not in grid `{}`; expected one of: {}",
                grid.name,
                known.values().join(", ")
            );
            return bad(value, message);
        }
    }
    check_kind(check, &metric).map_err(|message| refuse(owner, &check.metric, &message))?;
    check_axis(owner, grid, check)
}

/// An exponent needs a size on its other axis, and a stretch of it that the grid runs.
fn check_axis(owner: &str, grid: &Grid, check: &Check) -> Result<(), CheckError> {
    let (CheckKind::Exponent, Some(against)) = (check.kind, &check.against) else {
        return Ok(());
    };
    // A workload that is not known is refused with the plan, which knows the workloads.
    let def = workloads::find(&grid.workload)
        .ok()
        .and_then(|workload| workload.params.iter().find(|def| def.name == against));
    let Some(values) = grid.params.get(against) else {
        let near = nearest_text(against, grid.params.keys().map(String::as_str));
        let message = format!("grid `{}` has no parameter `{against}`{near}", grid.name);
        return Err(refuse(owner, against, &message));
    };
    if def.is_some_and(|def| !matches!(def.kind, Kind::Size(..))) {
        let message =
            format!("`against = \"{against}\"` is no size: expected a parameter in bytes");
        return Err(refuse(owner, against, &message));
    }
    let mut ends = Vec::new();
    for end in check.from.iter().chain(&check.to) {
        if !values.values().iter().any(|value| same_value(value, end)) {
            let message = format!(
                "`{against} = \"{end}\"` is not in grid `{}`; expected one of: {}",
                grid.name,
                values.values().join(", ")
            );
            return Err(refuse(owner, end, &message));
        }
        ends.push((
            end,
            parse_bytes(end).map_err(|e| refuse(owner, end, &e.to_string()))?,
        ));
    }
    match ends[..] {
        [(from, low), (to, high)] if low >= high => Err(refuse(
            owner,
            from,
            &format!("from `{from}` to `{to}` is no stretch: expected a larger `to`"),
        )),
        _ => Ok(()),
    }
}

/// What each kind needs, and what it has no use for.
fn check_kind(check: &Check, metric: &Expression) -> Result<(), String> {
    let need = |present: bool, what: &str| {
        if present {
            Ok(())
        } else {
            Err(format!("kind {:?} needs {what}", check.kind).to_lowercase())
        }
    };
    let bounds = check.min.is_some() || check.max.is_some();
    let against_machine =
        metric.is_time() && matches!(check.kind, CheckKind::Value | CheckKind::Equal);
    if against_machine {
        return Err(
            "a time alone depends on the machine: compare arms with kind = \"ratio\"".to_owned(),
        );
    }
    if let (Some(min), Some(max)) = (check.min, check.max)
        && min > max
    {
        return Err(format!("min {min} is above max {max}"));
    }
    match check.kind {
        CheckKind::Value => need(bounds, "`min` or `max`"),
        CheckKind::Ratio => {
            need(bounds, "`min` or `max`")?;
            need(
                check.than.is_some() || !check.than_where.is_empty(),
                "`than` or `than-where`",
            )?;
            let single = check
                .than_where
                .values()
                .all(|values| values.values().len() == 1);
            need(single, "one value for each name in `than-where`")
        }
        CheckKind::Exponent => {
            need(bounds, "`min` or `max`")?;
            need(
                check.against.is_some(),
                "`against`, a parameter that is a size",
            )?;
            for end in check.from.iter().chain(&check.to) {
                parse_bytes(end).map_err(|e| e.to_string())?;
            }
            need(
                check.from.is_some() && check.to.is_some(),
                "`from` and `to`",
            )
        }
        CheckKind::Order => need(check.arms.len() >= 2, "at least two arms"),
        CheckKind::Equal => {
            need(
                check.value.is_some() || check.arms.len() >= 2,
                "`value` or at least two arms",
            )?;
            need(
                check.over.is_none(),
                "no `over`: equality is of whole counts",
            )
        }
    }
}

/// Line and column from 1 of a byte position.
fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

/// Where the offending word of a [`CheckError`] stands: the first time after its owner's name, in quotes or as a key.
fn locate(text: &str, error: &CheckError) -> Option<usize> {
    let name = error.owner.split('`').nth(1).unwrap_or(&error.owner);
    let owner = text.find(&format!("\"{name}\""))?;
    let quoted = text[owner..]
        .find(&format!("\"{}\"", error.word))
        .map(|at| owner + at);
    let key = text[owner..].find(&error.word).map(|at| owner + at);
    quoted.or(key).or(Some(owner))
}

/// Adds the nearest known key to serde's message on an unknown one.
fn with_nearest(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    match (message.contains("unknown"), quoted.next()) {
        (true, Some(word)) => format!("{message}{}", nearest_text(word, quoted)),
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
id = "small"
title = "A small one"
analysis = "Nothing to learn."

[[grid]]
name = "growth"
workload = "growth"
params = { size = ["1MiB", "4MiB"], shape = "one" }
arms = ["system", "jemalloc"]
protocols = ["time", "census"]
quick = { size = "1MiB" }

[[claim]]
id = "first"
source = "here"
finding = "something"
[[claim.check]]
kind = "value"
grid = "growth"
metric = "copied_bytes"
over = "appended_bytes"
where = { size = "4MiB" }
arms = ["system"]
max = 0.05
"#;

    fn error(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        match Experiment::parse(&GOOD.replacen(from, to, 1), "small.toml") {
            Ok(_) => panic!("accepted: {to}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_good_one_is_read() {
        let experiment = Experiment::parse(GOOD, "small.toml").expect("good");
        let grid = experiment.grid("growth").expect("there");
        assert_eq!((grid.blocks, grid.timeout.as_str()), (6, "60s"));
        assert_eq!(grid.points(false).len(), 2);
        let quick = grid.points(true);
        assert_eq!(quick.len(), 1);
        assert_eq!(
            (quick[0]["size"].as_str(), quick[0]["shape"].as_str()),
            ("1MiB", "one")
        );
    }

    #[test]
    fn knobs_span_the_arms() {
        let text = GOOD.replace(
            "arms = [\"system\", \"jemalloc\"]",
            "arms = [\"arena\", \"arena-3.9:keep=0\"]\nknobs = { arena = [\"256KiB\", \"1MiB\"], pool = \"4KiB\" }",
        );
        let text = text.replace(
            "arms = [\"system\"]",
            "arms = [\"arena:arena=1MiB,pool=4KiB\"]",
        );
        let read = Experiment::parse(&text, "small.toml").expect("valid");
        assert_eq!(
            read.grids[0].arms,
            [
                "arena:arena=256KiB,pool=4KiB",
                "arena:arena=1MiB,pool=4KiB",
                "arena-3.9:arena=256KiB,keep=0,pool=4KiB",
                "arena-3.9:arena=1MiB,keep=0,pool=4KiB",
            ]
        );
        let many: Vec<String> = (0..32).map(|n| format!("\"{n}\"")).collect();
        let many = many.join(", ");
        let text = error(
            "quick = {",
            &format!("knobs = {{ keep = [{many}], pool = [{many}] }}\nquick = {{"),
        );
        assert!(text.contains("makes more than 1000 arms"), "{text}");
    }

    #[test]
    fn broken_toml_names_its_place() {
        let text = error("title = \"A small one\"", "title = A small one");
        assert!(text.starts_with("small.toml:3:9: "), "{text}");
    }

    #[test]
    fn unknown_keys_get_the_nearest() {
        let text = error("workload =", "worklode =");
        assert!(
            text.starts_with("small.toml:8:1: unknown field `worklode`"),
            "{text}"
        );
        assert!(text.ends_with("nearest: workload"), "{text}");
        let text = error("kind = \"value\"", "kind = \"valve\"");
        assert!(text.ends_with("nearest: value"), "{text}");
    }

    #[test]
    fn wrong_types_say_what_was_expected() {
        let text = error("shape = \"one\"", "shape = 1");
        assert!(text.contains("expected a text in quotes"), "{text}");
        let text = error("shape = \"one\"", "shape = []");
        assert!(text.contains("expected a text in quotes"), "{text}");
    }

    #[test]
    fn references_that_lead_nowhere() {
        for (from, to, place, expected) in [
            (
                "grid = \"growth\"",
                "grid = \"grwth\"",
                "20:8",
                "unknown grid `grwth`; nearest: growth",
            ),
            (
                "metric = \"copied_bytes\"",
                "metric = \"copied\"",
                "21:10",
                "nearest: copied_bytes",
            ),
            (
                "over = \"app",
                "over = \"ap",
                "22:8",
                "nearest: appended_bytes",
            ),
            (
                "arms = [\"system\"]",
                "arms = [\"sytem\"]",
                "24:9",
                "nearest: system",
            ),
            (
                "{ size = \"4MiB\" }",
                "{ size = \"5MiB\" }",
                "23:18",
                "expected one of: 1MiB, 4MiB",
            ),
            (
                "where = { size",
                "where = { seize",
                "23:11",
                "nearest: size",
            ),
            ("max = 0.05", "", "21:10", "needs `min` or `max`"),
            (
                "max = 0.05",
                "min = 2.0\nmax = 1.0",
                "21:10",
                "min 2 is above max 1",
            ),
            (
                "metric = \"copied_bytes\"",
                "metric = \"wall_ns\"",
                "21:10",
                "depends on the machine",
            ),
            (
                "kind = \"value\"",
                "kind = \"ratio\"",
                "21:10",
                "needs `than` or `than-where`",
            ),
            (
                "kind = \"value\"",
                "kind = \"exponent\"",
                "21:10",
                "needs `against`",
            ),
            (
                "kind = \"value\"",
                "kind = \"order\"",
                "21:10",
                "at least two arms",
            ),
            (
                "kind = \"value\"",
                "kind = \"equal\"",
                "21:10",
                "needs `value`",
            ),
            ("\"jemalloc\"]", "\"system\"]", "10:9", "named twice"),
            (
                "quick = { size",
                "quick = { sizes",
                "12:11",
                "nearest: size",
            ),
            (
                "metric = \"copied_bytes\"",
                "metric = \"instructions\"",
                "21:10",
                "where a grid has `instructions = true`",
            ),
            (
                "protocols = [\"time\", \"census\"]",
                "instructions = true\nprotocols = [\"time\"]",
                "11:1",
                "needs the protocol census",
            ),
            (
                "protocols =",
                "instructions = true\nmemory-limit = \"1GiB\"\nprotocols =",
                "12:1",
                "`instructions = true` goes without it",
            ),
            (
                "protocols =",
                "timeout = \"20\"\nprotocols =",
                "11:11",
                "20s",
            ),
            (
                "protocols =",
                "memory-limit = \"1MB\"\nprotocols =",
                "11:16",
                "write 1MiB",
            ),
        ] {
            let text = error(from, to);
            assert!(
                text.starts_with(&format!("small.toml:{place}: ")),
                "{to}: {text}"
            );
            assert!(text.contains(expected), "{to}: {text}");
        }
    }

    #[test]
    fn a_layout_has_a_place_for_every_arm_it_names() {
        let layout = r#"
[grid.layout]
title = "Two by two"
columns = ["one", "two"]
than = "system"
notes = ["It is small."]
[[grid.layout.row]]
name = "first"
arms = ["system", "jemalloc"]
[[grid.layout.row]]
name = "others"
quoted = ["0:08", ""]

[[claim]]
"#;
        let good = GOOD.replace("[[claim]]\n", layout);
        let experiment = Experiment::parse(&good, "small.toml").expect("good");
        assert_eq!(
            experiment.grids[0].layout.as_ref().map(|l| l.rows.len()),
            Some(2)
        );
        for (from, to, place, expected) in [
            (
                "arms = [\"system\", \"jemalloc\"]\n[[",
                "arms = [\"system\", \"jemaloc\"]\n[[",
                "22:19",
                "arm `jemaloc` is not in grid `growth`; nearest: jemalloc",
            ),
            (
                "than = \"system\"",
                "than = \"sistem\"",
                "18:8",
                "nearest: system",
            ),
            (
                "[\"system\", \"jemalloc\"]\n[[",
                "[\"system\"]\n[[",
                "21:8",
                "row `first` has 1 cell, but there are 2 columns",
            ),
            (
                "[\"system\", \"jemalloc\"]\n[[",
                "[\"system\", \"system\"]\n[[",
                "10:9",
                "arm `system` is named twice",
            ),
            (
                "quoted = [\"0:08\", \"\"]",
                "",
                "24:8",
                "row `others` needs either `arms` or `quoted`",
            ),
            (
                "quoted = [",
                "arms = [\"jemalloc\", \"\"]\nquoted = [",
                "24:8",
                "row `others` needs either",
            ),
            (
                "arms = [\"system\", \"jemalloc\"]\n[[",
                "quoted = [\"\", \"\"]\n[[",
                "16:9",
                "one row of arms",
            ),
            (
                "columns = [\"one\", \"two\"]",
                "columns = []",
                "16:9",
                "at least one column",
            ),
            (
                "[\"time\", \"census\"]",
                "[\"memory\"]",
                "7:8",
                "must run `time` or `census`",
            ),
            ("columns =", "colums =", "17:1", "nearest: columns"),
        ] {
            assert!(good.contains(from), "{from}");
            let text = Experiment::parse(&good.replacen(from, to, 1), "small.toml")
                .expect_err(to)
                .to_string();
            assert!(text.contains(expected), "{to}: {text}");
            assert!(
                text.starts_with(&format!("small.toml:{place}: ")),
                "{to}: {text}"
            );
        }
    }

    #[test]
    fn a_claim_has_checks_or_a_reason_why_not() {
        let at = GOOD.find("[[claim.check]]").unwrap_or(GOOD.len());
        let without = &GOOD[..at];
        let reason = "not-decidable = \"Nobody knows the disk.\"";
        let said = |text: String| {
            Experiment::parse(&text, "small.toml")
                .err()
                .map(|error| error.to_string())
        };
        assert_eq!(said(format!("{without}{reason}\n")), None);
        for (text, expected) in [
            (without.to_owned(), "at least one check, or `not-decidable`"),
            (
                format!("{without}not-decidable = \" \"\n"),
                "expected the reason",
            ),
            (
                format!("{without}{reason}\nexpected = false\n"),
                "expects nothing",
            ),
            (
                format!("{without}{reason}\n{}", &GOOD[at..]),
                "has no checks",
            ),
        ] {
            let text = said(text).unwrap_or_default();
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn names_can_stand_in_paths() {
        for (from, place) in [
            ("id = \"small\"", "2:6"),
            ("name = \"growth\"", "7:8"),
            ("id = \"first\"", "15:6"),
        ] {
            let key = from.split('"').next().unwrap_or_default();
            for bad in [
                "../../x",
                "a/b",
                "",
                ".hidden",
                "a b",
                "a\\u0000b",
                "\u{e4}",
            ] {
                let text = error(from, &format!("{key}\"{bad}\""));
                assert!(
                    text.starts_with(&format!("small.toml:{place}: ")),
                    "{from} {bad}: {text}"
                );
                assert!(text.contains("is no name: expected letters"), "{text}");
            }
        }
        let good = GOOD.replace("id = \"small\"", "id = \"Beyond-64.2\"");
        assert_eq!(Experiment::parse(&good, "x.toml").err(), None);
    }

    #[test]
    fn protocols_blocks_and_bounds_are_in_range() {
        for (from, to, place, expected) in [
            (
                "[\"time\", \"census\"]",
                "[\"time\", \"time\"]",
                "11:13",
                "protocol `time` is named twice",
            ),
            (
                "protocols =",
                "blocks = 0\nprotocols =",
                "11:10",
                "from 1 to 1000",
            ),
            (
                "protocols =",
                "blocks = 1001\nprotocols =",
                "11:10",
                "from 1 to 1000",
            ),
            (
                "protocols =",
                "blocks = 4294967295\nprotocols =",
                "11:10",
                "`blocks = 4294967295`",
            ),
            (
                "protocols =",
                "memory-blocks = 0\nprotocols =",
                "11:17",
                "`memory-blocks = 0`",
            ),
            ("max = 0.05", "max = nan", "25:7", "finite"),
            ("max = 0.05", "max = inf", "25:7", "finite"),
            ("max = 0.05", "min = -inf", "25:7", "finite"),
        ] {
            let text = error(from, to);
            assert!(
                text.starts_with(&format!("small.toml:{place}: ")),
                "{to}: {text}"
            );
            assert!(text.contains(expected), "{to}: {text}");
        }
    }

    #[test]
    fn checks_that_could_never_be_decided() {
        let exponent = |rest: &str| {
            let text = GOOD
                .replace("kind = \"value\"", "kind = \"exponent\"")
                .replace("where = { size = \"4MiB\" }\n", "")
                .replace("max = 0.05", &format!("{rest}\nmax = 2"));
            Experiment::parse(&text, "small.toml")
                .err()
                .map(|error| error.to_string())
        };
        let good = "against = \"size\"\nfrom = \"1048576\"\nto = \"4MiB\"";
        assert_eq!(exponent(good), None);
        for (from, to, place, expected) in [
            ("\"size\"", "\"shape\"", "24:11", "is no size"),
            ("\"size\"", "\"siez\"", "24:11", "nearest: size"),
            (
                "\"1048576\"",
                "\"2MiB\"",
                "25:8",
                "expected one of: 1MiB, 4MiB",
            ),
            ("\"4MiB\"", "\"8MiB\"", "26:6", "is not in grid `growth`"),
            ("\"1048576\"", "\"4MiB\"", "25:8", "is no stretch"),
            ("\"4MiB\"", "\"1MiB\"", "25:8", "is no stretch"),
        ] {
            let text = exponent(&good.replace(from, to)).unwrap_or_default();
            assert!(
                text.starts_with(&format!("small.toml:{place}: ")),
                "{to}: {text}"
            );
            assert!(text.contains(expected), "{to}: {text}");
        }
        let twice = GOOD
            .replace("kind = \"value\"", "kind = \"order\"")
            .replace("arms = [\"system\"]", "arms = [\"system\", \"system\"]");
        let text = Experiment::parse(&twice, "small.toml").expect_err("twice");
        assert_eq!(
            text.to_string(),
            "small.toml:24:9: claim `first`: arm `system` is named twice"
        );
    }

    #[test]
    fn a_metric_whose_protocol_does_not_run() {
        let only_time = "protocols = [\"time\"]";
        let text = error("protocols = [\"time\", \"census\"]", only_time);
        assert!(
            text.contains("comes from the protocol census, which grid `growth` does not run"),
            "{text}"
        );
        // What a time trial tells beside its times can be claimed without a census.
        let other = GOOD
            .replace("protocols = [\"time\", \"census\"]", only_time)
            .replace("\"copied_bytes\"", "\"reached_bytes\"");
        assert_eq!(Experiment::parse(&other, "x.toml").err(), None);
    }

    #[test]
    fn names_are_unique() {
        let claim = GOOD.find("[[claim]]").map_or("", |at| &GOOD[at..]);
        let error = Experiment::parse(&format!("{GOOD}{claim}"), "x.toml").expect_err("twice");
        assert!(
            error
                .to_string()
                .contains("claim `first`: the name is used twice"),
            "{error}"
        );
        let grid = GOOD.find("[[grid]]").zip(GOOD.find("[[claim]]"));
        let grid = grid.map_or("", |(from, to)| &GOOD[from..to]);
        let error = Experiment::parse(&format!("{GOOD}{grid}"), "x.toml").expect_err("twice");
        assert!(
            error
                .to_string()
                .contains("grid `growth`: the name is used twice"),
            "{error}"
        );
    }

    #[test]
    fn the_experiments_that_come_with_heaplab_are_good() {
        for (name, text) in [
            (
                "walker-2007",
                include_str!("../experiments/walker-2007.toml"),
            ),
            (
                "growth-today",
                include_str!("../experiments/growth-today.toml"),
            ),
            ("table-2007", include_str!("../experiments/table-2007.toml")),
        ] {
            match Experiment::parse(text, &format!("{name}.toml")) {
                Ok(experiment) => {
                    assert_eq!(experiment.id, name);
                    assert!(
                        experiment.grids.iter().any(|g| !g.points(true).is_empty()),
                        "{name}"
                    );
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}
