//! The report: what a run says, as tables. Built once, here and in the files that know one kind of table each; then
//! written by one file a format. Everything is a function of the definition, the summary and what was planned, so the
//! same records always give the same bytes.

pub mod csv;
pub mod json;
pub mod markdown;
pub mod series;
pub mod splice;
pub mod table;

mod arenas;
mod census;
mod exponents;
mod files;
mod findings;
mod layout;
mod memory;
mod per_step;
mod receipts;
mod times;

use crate::arms::Arm;
use crate::claims::{AsRun, ClaimResult, evaluate};
use crate::experiment::{Experiment, Grid};
use crate::metric;
use crate::record::TrialRecord;
use crate::summary::{Cell, Summary, printable, thp_differs};
use crate::trial::{Params, Protocol, Receipt, SUITE_BREAKS, SUITE_FACT};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// One table with all that a reader must know under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Name for markers and files: `experiment.grid.protocol`.
    pub name: String,
    /// What it shows, in one line.
    pub title: String,
    /// Column heads.
    pub header: Vec<String>,
    /// Rows, as wide as the header.
    pub rows: Vec<Vec<String>>,
    /// What stands under it, one paragraph each.
    pub notes: Vec<String>,
}

impl Table {
    /// With control characters escaped, whatever record they came from; a line's end stands between parts of a cell.
    pub(crate) fn printable(mut self) -> Table {
        let texts = [&mut self.title]
            .into_iter()
            .chain(&mut self.header)
            .chain(self.rows.iter_mut().flatten())
            .chain(&mut self.notes);
        for text in texts {
            let lines: Vec<String> = text.split('\n').map(printable).collect();
            *text = lines.join("\n");
        }
        self
    }
}

/// Everything that a run says.
#[derive(Debug)]
pub struct Report<'r> {
    experiment: &'r Experiment,
    summary: &'r Summary,
    run: &'r AsRun,
    claims: Vec<ClaimResult>,
    files: Vec<Table>,
    walks: files::Walks,
}

impl<'r> Report<'r> {
    /// The report on a run, with its claims answered.
    pub fn new(experiment: &'r Experiment, summary: &'r Summary, run: &'r AsRun) -> Report<'r> {
        let claims = evaluate(experiment, summary, run);
        Report {
            experiment,
            summary,
            run,
            claims,
            files: Vec::new(),
            walks: files::Walks::new(),
        }
    }

    /// With what was walked and tables of single files, where a real directory was walked.
    #[must_use]
    pub fn with_files(mut self, records: &[TrialRecord]) -> Report<'r> {
        self.files = files::tables(&self.experiment.id, records);
        self.walks = files::walks(records);
        self
    }

    /// The definition.
    pub fn experiment(&self) -> &Experiment {
        self.experiment
    }

    /// The summary.
    pub fn summary(&self) -> &Summary {
        self.summary
    }

    /// Whether the run was made by `--quick`.
    pub fn quick(&self) -> bool {
        self.run.quick
    }

    /// What the command line changed, as in the plan.
    pub fn overrides(&self) -> &[String] {
        &self.run.overrides
    }

    /// A sentence on the options of the run that change what is defined; `None` if there were none.
    pub fn changed(&self) -> Option<String> {
        let options = self.run.options()?;
        Some(format!("Run with {options}."))
    }

    /// The claims, answered.
    pub fn claims(&self) -> &[ClaimResult] {
        &self.claims
    }

    /// The tables of measurements: for each grid that was run the census, the exponents where sizes vary, the
    /// instructions where they were counted, faults and system calls where steps are even, the arenas where there are any, the memory, the times, the layout where it has one. What must not be
    /// compared is not: in its place stands who differs, and how.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        let mut files = self.files.clone();
        let with_walks = |view: &View<'_>, mut table: Table| {
            let key = (view.grid.name.clone(), view.protocol);
            table
                .notes
                .extend(self.walks.get(&key).into_iter().flatten().cloned());
            table
        };
        for grid in &self.experiment.grids {
            for protocol in [Protocol::Census, Protocol::Memory, Protocol::Time] {
                let Some(view) = View::new(self, grid, protocol) else {
                    continue;
                };
                if let Some(why) = view.incomparable() {
                    tables.push(view.refused(&why));
                    files.retain(|table| !files::is_of(table, &view));
                    continue;
                }
                match protocol {
                    Protocol::Census => {
                        // A workload that appends nothing has nothing to copy.
                        let walked = self.walks.contains_key(&(grid.name.clone(), protocol));
                        if walked || census::appends(&view) {
                            tables.push(with_walks(&view, census::table(&view)));
                        }
                        tables.extend(exponents::table(&view));
                        for view in view.by_locking() {
                            tables.extend(per_step::instructions(&view));
                            tables.extend(per_step::mispredictions(&view));
                        }
                        tables.extend(per_step::faults(&view));
                        tables.extend(per_step::syscalls(&view));
                        tables.extend(arenas::table(&view));
                    }
                    Protocol::Memory => {
                        tables.push(with_walks(&view, memory::table(&view)));
                        // The census has the same books, where there is one.
                        if View::new(self, grid, Protocol::Census).is_none() {
                            tables.extend(arenas::table(&view));
                        }
                    }
                    Protocol::Time => {
                        for view in view.by_locking() {
                            tables.push(with_walks(&view, times::table(&view)));
                            tables.extend(per_step::times(&view));
                        }
                    }
                }
            }
            let laid_out = grid.layout.as_ref();
            tables.extend(laid_out.and_then(|layout| layout::table(self, grid, layout)));
        }
        tables.extend(files);
        tables.into_iter().map(|table| self.shown(table)).collect()
    }

    /// The table of claims.
    pub fn claims_table(&self) -> Table {
        self.shown(findings::table(self))
    }

    /// Who was measured: each arm's receipt.
    pub fn arms_table(&self) -> Table {
        self.shown(receipts::table(self))
    }

    /// `table` as it is shown: under every table in which a library of the user's stands, which it is and which rules
    /// it breaks comes first.
    fn shown(&self, mut table: Table) -> Table {
        let part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let cells = table.header.iter().chain(table.rows.iter().flatten());
        let words: BTreeSet<&str> = cells.flat_map(|cell| cell.split(|c| !part(c))).collect();
        let receipts = self.summary.receipts.iter();
        let notes: Vec<String> = receipts
            .filter(|(arm, _)| words.contains(arm.as_str()))
            .filter_map(|(arm, receipt)| note_on_library(arm, receipt))
            .collect();
        table.notes.splice(0..0, notes);
        table.printable()
    }

    /// Every table: measurements, arms, claims. Empty ones are left out.
    pub fn all_tables(&self) -> Vec<Table> {
        let mut tables = self.tables();
        tables.extend([self.arms_table(), self.claims_table()]);
        tables.retain(|table| !table.rows.is_empty());
        tables
    }

    /// What went wrong with the run as a whole, in words: arms that did not do the same work, receipts that changed.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = Vec::new();
        for mismatch in &self.summary.checksum_mismatches {
            let sides: Vec<String> = mismatch
                .values
                .iter()
                .map(|(sum, arms)| format!("{sum}: {}", arms.join(", ")))
                .collect();
            warnings.push(format!(
                "checksum of {} differs in grid {} at {}: {}",
                mismatch.which,
                mismatch.grid,
                params_text(&mismatch.params),
                sides.join("; ")
            ));
        }
        for arm in &self.summary.receipt_changes {
            warnings.push(format!(
                "the trials of {arm} did not all give the same receipt"
            ));
        }
        warnings.iter().map(|text| printable(text)).collect()
    }
}

/// `mode=concat size=4MiB`.
fn params_text(params: &Params) -> String {
    params
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// One grid under one protocol, as tables see it.
struct View<'v> {
    report: &'v Report<'v>,
    grid: &'v Grid,
    protocol: Protocol,
    /// Points, in the order of rows.
    points: &'v [Params],
    /// Arms, in the order of columns; second runs of the baseline are left out.
    arms: Vec<&'v str>,
    /// Parameters that differ between points.
    varying: Vec<&'v str>,
    /// Its arms are those that are not thread-safe.
    unlocked: bool,
    /// The others have a view of their own, which goes by the plain names of tables.
    apart: bool,
}

impl<'v> View<'v> {
    /// `None` if nothing of it was run.
    fn new(report: &'v Report<'v>, grid: &'v Grid, protocol: Protocol) -> Option<View<'v>> {
        let cells = || {
            let all = report.summary.cells.iter();
            all.filter(move |cell| cell.grid == grid.name && cell.protocol == protocol)
        };
        let points = report.run.points.get(&grid.name)?;
        let seen: BTreeSet<&str> = cells().map(|cell| cell.arm.as_str()).collect();
        let mut arms: Vec<&str> = grid
            .arms
            .iter()
            .map(String::as_str)
            .filter(|arm| seen.contains(arm))
            .collect();
        arms.extend(
            seen.iter()
                .filter(|arm| !grid.arms.iter().any(|a| a == *arm) && !is_second(arm)),
        );
        let first = points.first()?;
        let varying = first
            .iter()
            .filter(|(name, value)| points.iter().any(|point| point.get(*name) != Some(value)))
            .map(|(name, _)| name.as_str())
            .collect();
        (!arms.is_empty()).then_some(View {
            report,
            grid,
            protocol,
            points,
            arms,
            varying,
            unlocked: false,
            apart: false,
        })
    }

    /// Its arms in two views, those that are thread-safe and those that are not: locks cost instructions and
    /// time, so one kind is not to be ranked against the other. A kind that there is none of is left out.
    fn by_locking(&self) -> Vec<View<'v>> {
        let kinds = [false, true].map(|unlocked| {
            let arms = self.arms.iter().copied();
            View {
                arms: arms.filter(|arm| is_unlocked(arm) == unlocked).collect(),
                varying: self.varying.clone(),
                unlocked,
                apart: unlocked && self.arms.iter().any(|arm| !is_unlocked(arm)),
                ..*self
            }
        });
        let there = kinds.into_iter().filter(|view| !view.arms.is_empty());
        there.collect()
    }

    fn cell(&self, arm: &str, point: &Params) -> Option<&'v Cell> {
        let summary = self.report.summary;
        summary
            .find(&self.grid.name, self.protocol, arm, point)
            .next()
    }

    /// Every cell of it.
    fn cells(&self) -> impl Iterator<Item = &'v Cell> {
        let (grid, protocol) = (&self.grid.name, self.protocol);
        let all = self.report.summary.cells.iter();
        all.filter(move |cell| cell.grid == *grid && cell.protocol == protocol)
    }

    /// Why its cells must not stand in one table.
    fn incomparable(&self) -> Option<String> {
        thp_differs(self.cells())
    }

    /// What stands in the place of a table whose cells must not be compared.
    fn refused(&self, why: &str) -> Table {
        let mut states: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for cell in self.cells() {
            let known = states.entry(&cell.arm).or_default();
            for state in &cell.thp {
                if !known.contains(&state.as_str()) {
                    known.push(state);
                }
            }
        }
        let rows = states
            .iter()
            .map(|(arm, states)| vec![(*arm).to_owned(), states.join("\n")]);
        Table {
            name: self.name(self.protocol.name()),
            title: self.title("not compared"),
            header: ["arm", "transparent huge pages"].map(str::to_owned).into(),
            rows: rows.collect(),
            notes: vec![format!("{}: {why}.", self.grid.name)],
        }
    }

    /// Reasons of metrics that could not be had, each once, with the arms that lack them.
    fn absences(&self) -> Vec<String> {
        let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        let mine = |cell: &&Cell| self.arms.contains(&cell.arm.as_str());
        for cell in self.cells().filter(mine) {
            for (name, why) in &cell.absent {
                let arms = reasons.entry((name, why)).or_default();
                if !arms.contains(&cell.arm.as_str()) {
                    arms.push(&cell.arm);
                }
            }
        }
        let told = reasons.iter().map(|((name, why), arms)| {
            let whose = if arms.len() < self.arms.len() {
                format!(" of {}", arms.join(", "))
            } else {
                String::new()
            };
            format!("{name}{whose} is absent: {}.", printable(why))
        });
        told.collect()
    }

    /// Head of the first column; a grid of one point has its name there.
    fn row_head(&self) -> String {
        if self.varying.is_empty() {
            "grid".to_owned()
        } else {
            self.varying.join(" ")
        }
    }

    /// Label of a row: the values of what varies.
    fn row_label(&self, point: &Params) -> String {
        if self.varying.is_empty() {
            return self.grid.name.clone();
        }
        let values = self.varying.iter().filter_map(|name| point.get(*name));
        values.cloned().collect::<Vec<_>>().join(" ")
    }

    /// `grid: what (what does not vary)`.
    fn title(&self, what: &str) -> String {
        let fixed: Params = self
            .points
            .first()
            .into_iter()
            .flatten()
            .filter(|(name, _)| {
                let set = |text: &String| text.split_once('=').is_some_and(|(set, _)| set == *name);
                let told = self.grid.params.contains_key(*name)
                    || self.report.run.overrides.iter().any(set);
                told && !self.varying.contains(&name.as_str())
            })
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut overrides = self.report.run.overrides.iter();
        let limit = overrides
            .find_map(|text| text.strip_prefix("memory-limit="))
            .or(self.grid.memory_limit.as_deref())
            .map(|limit| format!("within {limit} of address space"));
        let parts: Vec<String> = [
            Some(self.grid.workload.clone()),
            Some(params_text(&fixed)).filter(|t| !t.is_empty()),
            limit,
        ]
        .into_iter()
        .flatten()
        .collect();
        let heading = if self.unlocked {
            format!("{}, {UNLOCKED}", self.grid.name)
        } else {
            self.grid.name.clone()
        };
        format!("{heading}: {what} ({})", parts.join(", "))
    }

    fn name(&self, kind: &str) -> String {
        let kind = if self.apart {
            format!("{kind}-{}", UNLOCKED.replace(' ', "-"))
        } else {
            kind.to_owned()
        };
        format!("{}.{}.{kind}", self.report.experiment.id, self.grid.name)
    }

    /// Notes on who was measured and on cells that hold no plain value.
    fn notes_on_arms(&self) -> Vec<String> {
        let receipts = &self.report.summary.receipts;
        let mut notes = Vec::new();
        for arm in &self.arms {
            let receipt = receipts.get(*arm);
            if let Some(note) = Arm::parse(arm).ok().and_then(|arm| arm.note()) {
                let told = receipt.map(|r| format!(" Its receipt: {} {}.", r.allocator, r.version));
                // A note on what an arm works over does not begin with the arm's own name.
                let whose = match note.starts_with(arm) {
                    true => String::new(),
                    false => format!("{arm}: "),
                };
                notes.push(format!("{whose}{note}.{}", told.unwrap_or_default()));
            }
            if receipt.is_some_and(metric::sampling_on) {
                notes.push(format!(
                    "{arm} samples allocations by chance (its receipt says so): its counts are random, marked ~."
                ));
            }
        }
        for arm in &self.arms {
            let mut states: Vec<String> = Vec::new();
            for cell in self.points.iter().filter_map(|point| self.cell(arm, point)) {
                let text = cell.state.text();
                if text != "ok" && !states.contains(&text) {
                    states.push(text);
                }
            }
            if !states.is_empty() {
                notes.push(format!("{arm}: {}.", states.join("; ")));
            }
        }
        notes
    }
}

/// Heading of what is told of arms whose heaps take no lock.
const UNLOCKED: &str = "not thread-safe";

/// Whether an arm is not thread-safe. What is none of ours is taken for thread-safe.
fn is_unlocked(arm: &str) -> bool {
    Arm::parse(arm).is_ok_and(|arm| arm.def.unlocked)
}

/// Under a table in which arms stand that are thread-safe and others that are not: which are not. `None` if it is all of
/// them, or none.
fn note_on_locking<'a>(arms: impl Iterator<Item = &'a str>) -> Option<String> {
    let (unlocked, locked): (Vec<&str>, Vec<&str>) = arms.partition(|arm| is_unlocked(arm));
    let mixed = !unlocked.is_empty() && !locked.is_empty();
    mixed.then(|| {
        format!(
            "{}{}: {}. Their heaps take no lock, so their times are not to be ranked against those of the others.",
            UNLOCKED[..1].to_uppercase(),
            &UNLOCKED[1..],
            unlocked.join(", ")
        )
    })
}

/// What an arm is that is a library of the user's, and which rules it breaks. `None` for arms of our own.
fn note_on_library(arm: &str, receipt: &Receipt) -> Option<String> {
    let (said, file) = (receipt.facts.get(SUITE_FACT)?, &receipt.allocator);
    Some(match said.strip_prefix(SUITE_BREAKS) {
        Some(rules) => format!(
            "{arm} ({file}, by LD_PRELOAD) is MARKED, because it breaks rules of the behaviour suite:{rules}."
        ),
        None => format!("{arm} is {file}, by LD_PRELOAD; in the behaviour suite it {said}."),
    })
}

/// Whether an arm is the second run of the baseline.
fn is_second(arm: &str) -> bool {
    arm.ends_with("#2")
}

#[cfg(test)]
mod tests;
