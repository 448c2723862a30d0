//! The plan: every trial of an experiment in the order in which it will run, decided before anything runs.
//!
//! The census comes first, once a cell, and so do memory trials unless a grid asks for blocks of them. Then the blocks: a block holds every cell once; within it the
//! points of the grid come in seeded order and, at each point, the arms in an order that is balanced over the blocks
//! (see [`crate::stats::order`]). The baseline stands in each block twice, as `system` and `system#2`: what the two
//! differ by is the noise.

use crate::arms::Arm;
use crate::experiment::{Experiment, Grid, OneOrMany};
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
use std::time::Duration;

/// Blocks of a quick run: enough to see that everything runs, too few for a verdict.
const QUICK_BLOCKS: u32 = 2;

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
    /// Limit in milliseconds of wall time.
    pub timeout_ms: u64,
    /// Address-space limit in bytes.
    pub memory_limit: Option<u64>,
    /// Transparent huge pages.
    pub thp: Thp,
    /// Bytes that the trial needs at most, by the workload's estimate.
    pub footprint_bytes: u64,
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
    /// What the command line changed, as `option=value`.
    pub overrides: Vec<String>,
    /// The trials.
    pub trials: Vec<PlannedTrial>,
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
/// [`BadPlan`] naming the grid and what is wrong with its workload, parameters, arms or times.
pub fn plan(experiment: &Experiment, options: &Options) -> Result<Plan, BadPlan> {
    let mut trials = Vec::new();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(options.seed);
    let mut blocks: BTreeMap<u32, Vec<PlannedTrial>> = BTreeMap::new();
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
        let limits = Limits::of(grid, options).map_err(named)?;
        for protocol in &grid.protocols {
            if options.protocol.is_some_and(|only| only != *protocol) {
                continue;
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
                    timeout_ms: limits.timeout_ms,
                    memory_limit: limits.memory,
                    thp: Thp::default(),
                    footprint_bytes: (point.workload.footprint)(&point.params, arm.def),
                };
                match (protocol, grid.memory_blocks) {
                    (Protocol::Census, _) | (Protocol::Memory, 1) => {
                        trials.extend(
                            arms.iter()
                                .enumerate()
                                .map(|(position, arm)| one(arm, 0, position)),
                        );
                    }
                    (Protocol::Time | Protocol::Memory, _) => {
                        let memory = *protocol == Protocol::Memory;
                        let defined = if memory {
                            grid.memory_blocks
                        } else {
                            grid.blocks
                        };
                        let count = match (options.blocks, options.quick) {
                            (Some(given), _) if !memory => given,
                            (_, true) => defined.min(QUICK_BLOCKS),
                            (_, false) => defined,
                        };
                        let mut arms = arms.clone();
                        if count > 1 && !memory {
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
        overrides: overrides(options),
        trials,
    })
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
        let none = Options {
            timeout: Some(Duration::ZERO),
            ..Options::default()
        };
        assert!(toy(&none).expect_err("no time").0.contains("timeout"));
    }
}
