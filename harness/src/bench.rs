//! What `cargo bench` shows, and for how long: groups, arms and times as data. Nothing here is measured, and no claim
//! reads what comes of it.
//!
//! The bench itself, `harness/benches/allocators.rs`, gives this to Criterion, one group after the other and in each one
//! function per arm.

use crate::arms::{Arm, BadArm, names};
use crate::size::format_bytes;
use crate::trial::Params;
use crate::workloads::params::{BadParam, Kind};
use crate::workloads::{self, WorkloadDef};
use std::time::Duration;

/// Seed of every input.
pub const SEED: u64 = 1;
/// Samples a function: the fewest that Criterion takes.
pub const SAMPLES: u32 = 10;
/// What all functions together may take; beyond that each gets less time than it should have.
pub const WHOLE: Duration = Duration::from_secs(21 * 60);
/// Least share of its time that a function gets.
const LEAST: f64 = 0.1;
/// What a function takes beside its loops: a process, its input, the reckoning.
const BESIDE: Duration = Duration::from_millis(150);

/// Sizes to which a block is grown.
const GROWN: [u64; 4] = [1 << 20, 4 << 20, 16 << 20, 64 << 20];
/// Bytes of text that the walker reads.
const TEXT: u64 = 4 << 20;
/// What it reads where each line is copied with all before it, 140th parts of the square of the size.
const TEXT_COPIED: u64 = 256 << 10;

/// Blocks that stay live while others come and go.
const LIVE: [&str; 3] = ["10k", "100k", "1M"];
/// Pairs of malloc and free in an iteration, as written and as a number. The live blocks are made once a function.
const PAIRS: (&str, u64) = ("100k", 100_000);

/// Parameters of a workload, those that are not left to their defaults.
type Given = &'static [(&'static str, &'static str)];

/// The churn workloads in small: their parameters, and how much work that is. The live blocks of the last two are made once
/// a function.
const CHURN: [(&str, Given, Amount); 9] = [
    ("million-lists", &[("lists", "20k")], Amount::Blocks(20_000)),
    (
        "dict-retention",
        &[("dicts", "10k"), ("survivors", "every-2nd")],
        Amount::Blocks(20_000),
    ),
    ("survivors", &[("blocks", "10k")], Amount::Blocks(10_000)),
    ("size-shift", &[("blocks", "20k")], Amount::Blocks(20_000)),
    (
        "packing",
        &[("blocks", "3k"), ("d", "10")],
        Amount::Blocks(27_000),
    ),
    (
        "memcrunch-like",
        &[("things", "5k")],
        Amount::Blocks(25_000),
    ),
    (
        "object-churn",
        &[("objects", "5k"), ("work", "0")],
        Amount::Blocks(17_000),
    ),
    ("arena-edge", &[("rounds", "5k")], Amount::Pairs(5_000)),
    (
        "push-pop",
        &[("depth", "32"), ("rounds", "1k")],
        Amount::Pairs(32_000),
    ),
];

/// Functions that do the same work, one for each arm.
#[derive(Debug)]
pub struct Group {
    /// As Criterion's filter sees it, before the arm: `growth/4MiB`.
    pub name: String,
    /// The work.
    pub workload: &'static WorkloadDef,
    /// Its parameters, resolved.
    pub params: Params,
    /// How much work one iteration is.
    pub amount: Amount,
    /// How long Criterion warms a function up.
    pub warm_up: Duration,
    /// How long the samples of a function take together.
    pub measurement: Duration,
}

/// How much work one iteration is, so that Criterion can tell a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Bytes that a block grows to, or that are read.
    Bytes(u64),
    /// Pairs of malloc and free.
    Pairs(u64),
    /// Blocks, or objects, that are made at first and in the place of others; fills that are left to chance, or follow from
    /// the sizes, not counted.
    Blocks(u64),
}

impl Group {
    fn new(
        name: String,
        workload: &str,
        params: &[(&str, &str)],
        amount: Amount,
        (warm_up, measurement): (u64, u64),
    ) -> Result<Group, BadParam> {
        let workload = workloads::find(workload)?;
        let given = params
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Ok(Group {
            name,
            workload,
            params: workload.resolve(&given)?,
            amount,
            warm_up: Duration::from_millis(warm_up),
            measurement: Duration::from_millis(measurement),
        })
    }

    /// What a function is reckoned to take. The warm-up doubles its iterations until its time is over, so it takes half
    /// as much again on average; samples are whole iterations.
    #[must_use]
    pub fn planned(&self) -> Duration {
        self.warm_up.mul_f64(1.5) + self.measurement.mul_f64(1.1) + BESIDE
    }

    /// An arm that takes longer for one iteration is skipped: Criterion wants [`SAMPLES`] samples of one at least, which
    /// then take two and a half times what they should.
    #[must_use]
    pub fn longest_iteration(&self) -> Duration {
        self.measurement / 4
    }

    /// A function that takes longer altogether is given up.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.planned() * 4
    }
}

/// Every group, in the order in which they run.
///
/// # Errors
/// If a workload is not as it is expected here.
pub fn groups() -> Result<Vec<Group>, BadParam> {
    let mut groups = Vec::new();
    for bytes in GROWN {
        let size = format_bytes(bytes);
        let name = format!("growth/{size}");
        let params = [("size", size.as_str())];
        groups.push(Group::new(
            name,
            "growth",
            &params,
            Amount::Bytes(bytes),
            (500, 2000),
        )?);
    }
    for mode in choices("walker", "mode")? {
        let copied = *mode == "concat-copy";
        let bytes = if copied { TEXT_COPIED } else { TEXT };
        let size = format_bytes(bytes);
        let name = format!("walker/{mode}");
        let params = [("mode", *mode), ("corpus", "text"), ("size", &size)];
        groups.push(Group::new(
            name,
            "walker",
            &params,
            Amount::Bytes(bytes),
            (300, 1200),
        )?);
    }
    for shape in choices("pairs", "shape")? {
        for live in LIVE {
            let name = format!("pairs/{shape}-{live}");
            let params = [("shape", *shape), ("live", live), ("pairs", PAIRS.0)];
            groups.push(Group::new(
                name,
                "pairs",
                &params,
                Amount::Pairs(PAIRS.1),
                (200, 800),
            )?);
        }
    }
    for (workload, params, amount) in CHURN {
        let name = format!("churn/{workload}");
        groups.push(Group::new(name, workload, params, amount, (200, 800))?);
    }
    Ok(groups)
}

/// The words that a parameter takes.
fn choices(workload: &str, param: &str) -> Result<&'static [&'static str], BadParam> {
    match workloads::find(workload)?.param(param)?.kind {
        Kind::Choice(words) => Ok(words),
        _ => Err(BadParam(format!("{workload}: {param} takes no words"))),
    }
}

/// Every arm without knobs, and Google's with sampling off beside its default.
///
/// # Errors
/// If an arm is not as it is expected here.
pub fn arms() -> Result<Vec<Arm>, BadArm> {
    let mut arms = Vec::new();
    for name in names() {
        arms.push(Arm::parse(name)?);
        if name == "tcmalloc-google" {
            arms.push(Arm::parse("tcmalloc-google:sampling=0")?);
        }
    }
    Ok(arms)
}

/// Why an arm is in no group, if it is not.
#[must_use]
pub fn left_out(arm: &Arm) -> Option<&'static str> {
    (!arm.def.reuses).then_some(
        "it never gives memory back, so a child that runs thousands of iterations would fill the machine",
    )
}

/// The share of its time that a function gets if `spent` is gone already, and it and those after it are reckoned to take
/// `left`: 1, unless all together would then take longer than [`WHOLE`].
#[must_use]
pub fn share(spent: Duration, left: Duration) -> f64 {
    let there = WHOLE.saturating_sub(spent).as_secs_f64();
    (there / left.as_secs_f64().max(f64::MIN_POSITIVE)).clamp(LEAST, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_group_has_a_name_of_its_own() {
        let groups = groups().expect("they are sound");
        let names: BTreeSet<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names.len(), groups.len());
        for name in [
            "growth/4MiB",
            "walker/concat",
            "pairs/random-1M",
            "churn/survivors",
        ] {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn one_size_takes_about_a_minute_and_all_take_less_than_twenty_four() {
        let arms = arms().expect("they are sound");
        let measured = arms.iter().filter(|arm| left_out(arm).is_none()).count() as u32;
        let groups = groups().expect("they are sound");
        let all: Duration = groups.iter().map(|group| group.planned() * measured).sum();
        let growth = groups.iter().find(|group| group.name == "growth/4MiB");
        let growth = growth.expect("it is there").planned() * measured;
        assert!((30..=90).contains(&growth.as_secs()), "{growth:?}");
        // What is taken of it, because more arms come in time.
        let scaled = all.mul_f64(share(Duration::ZERO, all));
        assert!(scaled <= Duration::from_secs(24 * 60), "{all:?}");
        assert!(share(Duration::ZERO, all) > 0.75, "{all:?} is too much");
        println!(
            "{measured} arms, {} groups: {all:?}, one size {growth:?}",
            groups.len()
        );
    }

    #[test]
    fn whoever_is_late_gets_less() {
        let second = Duration::from_secs(1);
        assert_eq!(share(Duration::ZERO, second), 1.0);
        assert_eq!(share(WHOLE - second, second * 2), 0.5);
        assert_eq!(share(WHOLE * 2, second), LEAST);
        assert_eq!(share(WHOLE, Duration::ZERO), LEAST);
    }

    #[test]
    fn what_never_gives_back_is_left_out() {
        let arms = arms().expect("they are sound");
        let out: Vec<String> = arms
            .iter()
            .filter(|arm| left_out(arm).is_some())
            .map(Arm::label)
            .collect();
        assert_eq!(out, ["bump"]);
    }
}
