//! The plan: every trial of an experiment in the order in which it will run, decided before anything runs.
//!
//! The census comes first, once a cell, and so do memory trials unless a grid asks for blocks of them. Then the blocks: a block holds every cell once; within it the
//! points of the grid come in seeded order and, at each point, the arms in an order that is balanced over the blocks
//! (see [`crate::stats::order`]). The baseline stands in each block twice, as `system` and `system#2`: what the two
//! differ by is the noise.

use crate::arms::{Arm, BadArm};
use crate::experiment::{Experiment, Grid, OneOrMany};
use crate::record::TrialRecord;
use crate::size;
use crate::stats::order;
use crate::trial::{Params, Protocol, SCHEMA, Thp};
use crate::workloads::{self, WorkloadDef};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Blocks of a quick run: enough to see that everything runs, too few for a verdict.
const QUICK_BLOCKS: u32 = 2;

/// The smallest memory limit: with less no trial gets as far as its first line.
const LEAST_MEMORY: u64 = 1 << 20;

/// Most trials of a plan: hours even where each takes milliseconds, and what more would ask for is a mistake.
pub const MOST_TRIALS: u64 = 100_000;

/// What the command line asks of a plan.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Small sizes, two blocks.
    pub quick: bool,
    /// Blocks of the time protocol, instead of the definition's.
    pub blocks: Option<u32>,
    /// Seed of inputs and orders.
    pub seed: u64,
    /// Limit of one trial, instead of the definition's.
    pub timeout: Option<Duration>,
    /// Address-space limit in bytes, instead of the definition's.
    pub memory_limit: Option<u64>,
    /// Parameters, instead of the definition's: `(name, values)`.
    pub set: Vec<(String, Vec<String>)>,
    /// Arms, instead of the definition's; the first is the baseline.
    pub allocators: Option<Vec<Arm>>,
    /// Only this protocol.
    pub protocol: Option<Protocol>,
}

/// One trial to be run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedTrial {
    /// Number, from 0.
    pub trial: u32,
    /// Grid of the experiment.
    pub grid: String,
    /// Block, from 0.
    pub block: u32,
    /// Place in its block's order of arms, from 0.
    pub position: u32,
    /// Arm as labelled.
    pub arm: String,
    /// Workload id.
    pub workload: String,
    /// Its parameters, every one given.
    pub params: Params,
    /// What is measured.
    pub protocol: Protocol,
    /// Run it once more under callgrind, for its instructions: the census alone.
    #[serde(default)]
    pub instructions: bool,
    /// Limit in milliseconds of wall time.
    pub timeout_ms: u64,
    /// Address-space limit in bytes.
    pub memory_limit: Option<u64>,
    /// Transparent huge pages.
    pub thp: Thp,
    /// Bytes that the trial needs at most, by the workload's estimate.
    pub footprint_bytes: u64,
}

impl PlannedTrial {
    /// Whether `record` is one of this trial.
    pub fn yields(&self, record: &TrialRecord) -> bool {
        (self.trial, self.block, self.position) == (record.trial, record.block, record.position)
            && (&self.grid, &self.arm, &self.workload)
                == (&record.grid, &record.arm, &record.workload)
            && (&self.params, self.protocol) == (&record.params, record.protocol)
    }
}

/// Everything that will be run, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Hash of the sources of the harness that made it.
    pub source_hash: String,
    /// Experiment id.
    pub experiment: String,
    /// Seed of inputs and orders.
    pub seed: u64,
    /// Made by `--quick`: claims about time are then not decidable.
    pub quick: bool,
    /// Made by `heaplab verify`: its trials run in canary mode, and nothing is measured.
    #[serde(default)]
    pub verify: bool,
    /// What the command line changed, as `option=value`.
    pub overrides: Vec<String>,
    /// Libraries of the user's, by the label of their arm: where they are.
    #[serde(default)]
    pub libraries: BTreeMap<String, PathBuf>,
    /// The trials.
    pub trials: Vec<PlannedTrial>,
}

impl Plan {
    /// The arm that is labelled `label`.
    ///
    /// # Errors
    /// [`BadArm`] if it is none, or its library is gone.
    pub fn arm(&self, label: &str) -> Result<Arm, BadArm> {
        let label = label.trim_end_matches("#2");
        match self.libraries.get(label) {
            Some(path) => Arm::parse(&format!("{label}={}", path.display())),
            None => Arm::parse(label),
        }
    }
}

/// Why there is no plan, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadPlan(pub String);

impl fmt::Display for BadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for BadPlan {}

/// One point of a grid: a workload with all its parameters.
struct Point {
    workload: &'static WorkloadDef,
    params: Params,
}

/// Plans `experiment`.
///
/// # Errors
/// [`BadPlan`] naming the grid and what is wrong with its workload, parameters, arms or times, or that the plan would
/// have more than [`MOST_TRIALS`] trials.
pub fn plan(experiment: &Experiment, options: &Options) -> Result<Plan, BadPlan> {
    let mut trials = Vec::new();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(options.seed);
    let mut blocks: BTreeMap<u32, Vec<PlannedTrial>> = BTreeMap::new();
    let mut total = 0;
    let mut libraries: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut set_somewhere: Vec<bool> = vec![false; options.set.len()];
    for grid in &experiment.grids {
        if options.quick && grid.skip_when_quick {
            continue;
        }
        let named =
            |why: String| BadPlan(format!("{}, grid `{}`: {why}", experiment.id, grid.name));
        let points = points(grid, options, &mut set_somewhere).map_err(named)?;
        let arms = match &options.allocators {
            Some(arms) => arms.clone(),
            None => grid
                .arms
                .iter()
                .map(|arm| Arm::parse(arm))
                .collect::<Result<_, _>>()
                .map_err(|e| named(e.0))?,
        };
        for library in arms.iter().filter_map(|arm| arm.library.as_ref()) {
            let known = libraries
                .entry(library.name.clone())
                .or_insert_with(|| library.path.clone());
            if *known != library.path {
                return Err(named(format!(
                    "{} names two libraries, here and in an earlier grid",
                    library.name
                )));
            }
        }
        let limits = Limits::of(grid, options).map_err(named)?;
        for protocol in &grid.protocols {
            if options.protocol.is_some_and(|only| only != *protocol) {
                continue;
            }
            let (count, twice) = match (protocol, options.blocks) {
                (Protocol::Census, _) => (1, false),
                (Protocol::Memory, _) => (less_if_quick(grid.memory_blocks, options), false),
                (Protocol::Time, Some(given)) => (given, given > 1),
                (Protocol::Time, None) => {
                    let count = less_if_quick(grid.blocks, options);
                    (count, count > 1)
                }
            };
            total += match protocol {
                Protocol::Census => product([points.len() as u64, arms.len() as u64]),
                Protocol::Time | Protocol::Memory => {
                    let a_block = arms.len() as u64 + u64::from(twice);
                    product([points.len() as u64, a_block, u64::from(count)])
                }
            };
            if total > MOST_TRIALS {
                return Err(named(too_many(total)));
            }
            for point in &points {
                let one = |arm: &Arm, block: u32, position: usize| PlannedTrial {
                    trial: 0,
                    grid: grid.name.clone(),
                    block,
                    position: position as u32,
                    arm: arm.label(),
                    workload: grid.workload.clone(),
                    params: point.params.clone(),
                    protocol: *protocol,
                    instructions: grid.instructions && *protocol == Protocol::Census,
                    timeout_ms: limits.timeout_ms,
                    memory_limit: limits.memory,
                    thp: Thp::default(),
                    footprint_bytes: (point.workload.footprint)(&point.params, arm.def),
                };
                match (protocol, count) {
                    (Protocol::Census, _) | (Protocol::Memory, 1) => {
                        trials.extend(
                            arms.iter()
                                .enumerate()
                                .map(|(position, arm)| one(arm, 0, position)),
                        );
                    }
                    (Protocol::Time | Protocol::Memory, _) => {
                        let mut arms = arms.clone();
                        if twice {
                            arms.insert(1, arms[0].again());
                        }
                        let seed = rand::RngCore::next_u64(&mut random);
                        for (block, order) in order::orders(arms.len(), count, seed)
                            .into_iter()
                            .enumerate()
                        {
                            let block = block as u32;
                            let row = order
                                .iter()
                                .enumerate()
                                .map(|(position, arm)| one(&arms[*arm], block, position));
                            blocks.entry(block).or_default().extend(row);
                        }
                    }
                }
            }
        }
    }
    if let Some(unused) = set_somewhere.iter().position(|used| !used) {
        return Err(unknown_setting(experiment, &options.set[unused].0));
    }
    for (_, block) in blocks {
        trials.extend(shuffled_by_point(block, &mut random));
    }
    for (number, trial) in trials.iter_mut().enumerate() {
        trial.trial = number as u32;
    }
    Ok(Plan {
        schema: SCHEMA,
        source_hash: crate::SOURCE_HASH.to_owned(),
        experiment: experiment.id.clone(),
        seed: options.seed,
        quick: options.quick,
        verify: false,
        overrides: overrides(options),
        libraries,
        trials,
    })
}

/// Blocks of a definition, as many as a quick run has of them.
fn less_if_quick(blocks: u32, options: &Options) -> u32 {
    if options.quick {
        blocks.min(QUICK_BLOCKS)
    } else {
        blocks
    }
}

/// Parameters that may be left to the command line: a definition without input is completed by `--set`.
fn points(grid: &Grid, options: &Options, used: &mut [bool]) -> Result<Vec<Point>, String> {
    let workload = workloads::find(&grid.workload).map_err(|e| e.0)?;
    let mut axes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let quick = grid.quick.iter().filter(|_| options.quick).flatten();
    for (name, values) in grid.params.iter().chain(quick) {
        axes.insert(name.clone(), OneOrMany::values(values).to_vec());
    }
    for ((name, values), used) in options.set.iter().zip(used) {
        if workload.params.iter().any(|def| def.name == name) {
            *used = true;
            axes.insert(name.clone(), values.clone());
        }
    }
    // Before they are made: a few long lists span more points than there is memory for.
    let count = product(axes.values().map(|values| values.len() as u64));
    if count > MOST_TRIALS {
        return Err(too_many(count));
    }
    let mut params = vec![Params::new()];
    for (name, values) in &axes {
        if values.is_empty() {
            return Err(format!("parameter `{name}` has no value"));
        }
        params = params
            .into_iter()
            .flat_map(|point| values.iter().map(move |value| with(&point, name, value)))
            .collect();
    }
    params
        .into_iter()
        .map(|given| {
            Ok(Point {
                workload,
                params: workload.resolve(&given).map_err(|e| e.0)?,
            })
        })
        .collect()
}

/// The product, at most [`u32::MAX`], so that sums of it cannot overflow.
fn product(factors: impl IntoIterator<Item = u64>) -> u64 {
    let whole = factors.into_iter().fold(1u64, u64::saturating_mul);
    whole.min(u64::from(u32::MAX))
}

fn too_many(trials: u64) -> String {
    format!(
        "{trials} trials or more: a plan holds at most {MOST_TRIALS}; take fewer arms, points or blocks"
    )
}

fn with(point: &Params, name: &str, value: &str) -> Params {
    let mut more = point.clone();
    more.insert(name.to_owned(), value.to_owned());
    more
}

struct Limits {
    timeout_ms: u64,
    memory: Option<u64>,
}

impl Limits {
    fn of(grid: &Grid, options: &Options) -> Result<Limits, String> {
        let timeout = match options.timeout {
            Some(given) => given,
            None => size::parse_duration(&grid.timeout).map_err(|e| format!("timeout: {e}"))?,
        };
        let memory = match (options.memory_limit, &grid.memory_limit) {
            (Some(given), _) => Some(given),
            (None, Some(text)) => {
                Some(size::parse_bytes(text).map_err(|e| format!("memory-limit: {e}"))?)
            }
            (None, None) => None,
        };
        if timeout.is_zero() {
            return Err("the timeout must be longer than nothing".to_owned());
        }
        if memory.is_some_and(|bytes| bytes < LEAST_MEMORY) {
            return Err(format!(
                "the memory limit must be at least {}",
                size::format_bytes(LEAST_MEMORY)
            ));
        }
        Ok(Limits {
            timeout_ms: timeout.as_millis().max(1) as u64,
            memory,
        })
    }
}

/// A block with its points in seeded order; the order of arms within a point stays.
fn shuffled_by_point(
    block: Vec<PlannedTrial>,
    random: &mut Xoshiro256PlusPlus,
) -> Vec<PlannedTrial> {
    let mut points: Vec<Vec<PlannedTrial>> = Vec::new();
    for trial in block {
        match points.last_mut() {
            Some(last)
                if last[0].grid == trial.grid
                    && last[0].params == trial.params
                    && last[0].protocol == trial.protocol =>
            {
                last.push(trial)
            }
            _ => points.push(vec![trial]),
        }
    }
    points.shuffle(random);
    points.into_iter().flatten().collect()
}

fn unknown_setting(experiment: &Experiment, name: &str) -> BadPlan {
    let mut known: Vec<&str> = experiment
        .grids
        .iter()
        .filter_map(|grid| workloads::find(&grid.workload).ok())
        .flat_map(|workload| workload.params.iter().map(|def| def.name))
        .collect();
    known.sort_unstable();
    known.dedup();
    BadPlan(format!(
        "--set {name}: no workload of {} has it: {}",
        experiment.id,
        crate::nearest::suggest(name, &known)
    ))
}

fn overrides(options: &Options) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(blocks) = options.blocks {
        said.push(format!("blocks={blocks}"));
    }
    if let Some(timeout) = options.timeout {
        said.push(format!("timeout={}", size::format_duration(timeout)));
    }
    if let Some(limit) = options.memory_limit {
        said.push(format!("memory-limit={}", size::format_bytes(limit)));
    }
    if let Some(protocol) = options.protocol {
        said.push(format!("protocol={}", protocol.name()));
    }
    if let Some(arms) = &options.allocators {
        said.push(format!(
            "allocators={}",
            arms.iter().map(Arm::label).collect::<Vec<_>>().join(",")
        ));
    }
    said.extend(
        options
            .set
            .iter()
            .map(|(name, values)| format!("{name}={}", values.join(","))),
    );
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOY: &str = r#"
        id = "toy"
        title = "a toy"
        analysis = "none"
        [[grid]]
        name = "g"
        workload = "growth"
        params = { size = ["64KiB", "128KiB"] }
        arms = ["system", "bump", "tcmalloc-2007"]
        protocols = ["census", "time"]
        blocks = 8
        quick = { size = "4KiB" }
    "#;

    fn toy(options: &Options) -> Result<Plan, BadPlan> {
        plan(
            &Experiment::parse(TOY, "toy.toml").expect("the toy parses"),
            options,
        )
    }

    #[test]
    fn every_block_holds_every_arm_once_at_balanced_positions() {
        let plan = toy(&Options {
            seed: 7,
            ..Options::default()
        })
        .expect("plannable");
        let time: Vec<_> = plan
            .trials
            .iter()
            .filter(|t| t.protocol == Protocol::Time)
            .collect();
        assert_eq!(time.len(), 8 * 2 * 4);
        let mut places: BTreeMap<(String, String, u32), u32> = BTreeMap::new();
        for trial in &time {
            *places
                .entry((
                    trial.params["size"].clone(),
                    trial.arm.clone(),
                    trial.position,
                ))
                .or_default() += 1;
        }
        assert_eq!(places.len(), 2 * 4 * 4, "every arm at every position");
        assert!(places.values().all(|n| *n == 2), "{places:?}");
        let arms: Vec<&str> = plan.trials[..3].iter().map(|t| t.arm.as_str()).collect();
        assert_eq!(
            arms,
            ["system", "bump", "tcmalloc-2007"],
            "the census comes first, once a cell"
        );
        assert!(time.iter().any(|t| t.arm == "system#2"));
    }

    #[test]
    fn memory_trials_come_once_or_in_blocks_of_their_own() {
        let memory = |rest: &str| {
            let protocols = "protocols = [\"memory\", \"time\"]";
            let text = TOY.replace("protocols = [\"census\", \"time\"]", protocols) + rest;
            let experiment = Experiment::parse(&text, "toy.toml").expect("the toy parses");
            let blocks = Some(3);
            let options = Options {
                blocks,
                ..Options::default()
            };
            let plan = plan(&experiment, &options).expect("plannable");
            let (memory, time): (Vec<_>, Vec<_>) = plan
                .trials
                .into_iter()
                .partition(|trial| trial.protocol == Protocol::Memory);
            assert_eq!(time.len(), 3 * 2 * 4, "--blocks is that of time");
            assert!(memory.iter().all(|trial| !trial.arm.ends_with("#2")));
            memory
        };
        let once = memory("");
        assert_eq!(once.len(), 2 * 3);
        assert!(
            once.iter().all(|t| t.block == 0 && t.trial < 6),
            "they come first"
        );

        let blocks = memory("memory-blocks = 3");
        assert_eq!(blocks.len(), 3 * 2 * 3);
        let places: std::collections::BTreeSet<_> = blocks
            .iter()
            .map(|t| (&t.params, &t.arm, t.position))
            .collect();
        assert_eq!(places.len(), 2 * 3 * 3, "every arm at every position");
    }

    #[test]
    fn the_same_seed_gives_the_same_plan_and_another_another() {
        let seeded = |seed| {
            toy(&Options {
                seed,
                ..Options::default()
            })
            .expect("plannable")
        };
        assert_eq!(seeded(1), seeded(1));
        assert_ne!(seeded(1).trials, seeded(2).trials);
    }

    #[test]
    fn quick_is_small_and_settings_win() {
        let quick = toy(&Options {
            quick: true,
            ..Options::default()
        })
        .expect("plannable");
        assert!(
            quick
                .trials
                .iter()
                .all(|t| t.params["size"] == "4KiB" && t.block < 2)
        );
        let set = vec![(
            "size".to_owned(),
            vec!["8KiB".to_owned(), "16KiB".to_owned()],
        )];
        let both = toy(&Options {
            quick: true,
            set,
            ..Options::default()
        })
        .expect("plannable");
        assert!(both.trials.iter().any(|t| t.params["size"] == "16KiB"));
        assert_eq!(both.overrides, ["size=8KiB,16KiB"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let set = |name: &str, value: &str| Options {
            set: vec![(name.to_owned(), vec![value.to_owned()])],
            ..Options::default()
        };
        assert!(
            toy(&set("siez", "1MiB"))
                .expect_err("unknown")
                .0
                .contains("size")
        );
        assert!(
            toy(&set("size", "big"))
                .expect_err("no size")
                .0
                .contains("grid `g`")
        );
        // 3 arms and the second run of the baseline in each of 1000 blocks: 8 sizes can be planned, 32 cannot.
        let many = |sizes: usize| Options {
            blocks: Some(1000),
            set: vec![(
                "size".to_owned(),
                (1..=sizes).map(|kib| format!("{kib}KiB")).collect(),
            )],
            ..Options::default()
        };
        assert_eq!(
            toy(&many(8)).map(|plan| plan.trials.len()),
            Ok(8 * 3 + 8 * 4 * 1000)
        );
        let error = toy(&many(32)).expect_err("too many").0;
        assert!(error.contains("grid `g`: 128096 trials"), "{error}");
        // So many points would not even fit in memory.
        let axes = ["size", "step", "shape"];
        let set = axes.map(|name| (name.to_owned(), vec!["one".to_owned(); 1 << 20]));
        let huge = Options {
            set: set.into(),
            ..Options::default()
        };
        let error = toy(&huge).expect_err("too many").0;
        assert!(error.contains("at most 100000"), "{error}");
        let none = Options {
            timeout: Some(Duration::ZERO),
            ..Options::default()
        };
        assert!(toy(&none).expect_err("no time").0.contains("timeout"));
    }
}
