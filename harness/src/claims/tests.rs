//! Each kind of check: holding, not holding, and not decidable.

use super::*;
use crate::record::TrialRecord;
use crate::synthetic::Trial;
use crate::trial::{Outcome, Receipt};

const MIB: u64 = 1 << 20;

/// An experiment with one claim, whose check is `check`.
fn experiment(check: &str, more: &str) -> Experiment {
    let text = format!(
        r#"
id = "synthetic"
title = "For tests"
analysis = "None."
[[grid]]
name = "counts"
workload = "growth"
params = {{ size = ["1MiB", "2MiB", "4MiB"], shape = "one" }}
arms = ["system", "jemalloc", "slow"]
protocols = ["census"]
quick = {{ size = "1MiB" }}
[[grid]]
name = "times"
workload = "walker"
params = {{ size = ["8MiB", "16MiB"], mode = "concat" }}
arms = ["system", "jemalloc", "slow"]
protocols = ["time"]
[[grid]]
name = "once"
workload = "walker"
params = {{ size = "45MiB" }}
arms = ["system", "slow"]
protocols = ["time"]
blocks = 1
[[grid]]
name = "limit"
workload = "walker"
arms = ["system", "slow"]
protocols = ["census"]
memory-limit = "512MiB"
skip-when-quick = true
[[claim]]
id = "it"
source = "here"
finding = "something"
{more}
[[claim.check]]
{check}
"#
    );
    match Experiment::parse(&text, "synthetic.toml") {
        Ok(experiment) => experiment,
        Err(error) => panic!("{error}\n{text}"),
    }
}

fn claim_of(check: &str, more: &str, records: &[TrialRecord], quick: bool) -> ClaimResult {
    let experiment = experiment(check, more);
    let run = AsRun::as_defined(&experiment, quick);
    let mut results = evaluate(&experiment, &Summary::new(records), &run);
    results.pop().expect("one claim")
}

fn finding(check: &str, records: &[TrialRecord]) -> Finding {
    claim_of(check, "", records, false).result
}

#[track_caller]
fn undecided(check: &str, records: &[TrialRecord], why: &str) {
    match finding(check, records) {
        Finding::NotDecidable { why: given } => assert!(given.contains(why), "{given}"),
        other => panic!("{other:?}"),
    }
}

/// The text of the first value looked at.
fn text(check: &str, records: &[TrialRecord]) -> String {
    claim_of(check, "", records, false).checks[0].observed[0]
        .text
        .clone()
}

fn grown(arm: &str, mib: u64) -> Trial {
    Trial::census("counts", arm)
        .param("size", &format!("{mib}MiB"))
        .param("shape", "one")
        .param("step", "70")
        .metric("appended_bytes", mib * MIB)
}

/// `system` copies nothing, `jemalloc` six times, `slow` N/8192 times.
fn counts() -> Vec<TrialRecord> {
    [1, 2, 4]
        .into_iter()
        .flat_map(|mib| {
            [
                grown("system", mib).metric("copied_bytes", 0).ok(),
                grown("jemalloc", mib)
                    .metric("copied_bytes", 6 * mib * MIB)
                    .ok(),
                grown("slow", mib)
                    .metric("copied_bytes", mib * mib * MIB * 128)
                    .ok(),
            ]
        })
        .collect()
}

/// The counts without a cell.
fn counts_without(arm: &str, size: &str) -> Vec<TrialRecord> {
    let mut records = counts();
    records.retain(|r| r.arm != arm || r.params["size"] != size);
    records
}

/// The counts with a cell that ended otherwise.
fn counts_with(arm: &str, size: &str, outcome: Outcome) -> Vec<TrialRecord> {
    let mut records = counts();
    for record in &mut records {
        if record.arm == arm && record.params["size"] == size {
            record.outcome = outcome.clone();
        }
    }
    records
}

#[test]
fn what_cannot_be_decided_neither_passes_nor_fails() {
    let mut experiment = experiment(&format!("{VALUE}arms = [\"slow\"]\nmin = 1"), "");
    experiment.claims[0].checks.clear();
    experiment.claims[0].not_decidable = Some("the disk is\u{7} gone".to_owned());
    let run = AsRun::as_defined(&experiment, false);
    let claim = &evaluate(&experiment, &Summary::new(&counts()), &run)[0];
    assert_eq!(claim.answer(), "not decidable: the disk is\\u{7} gone");
    assert!(!claim.as_expected && !claim.contradicted(), "{claim:?}");
    assert_eq!(claim.checks, []);
}

const VALUE: &str = r#"
kind = "value"
grid = "counts"
metric = "copied_bytes"
over = "appended_bytes"
where = { size = ["1MiB", "4MiB"] }
"#;

#[test]
fn value_holds_or_not() {
    let of = |rest: &str| finding(&format!("{VALUE}{rest}"), &counts());
    assert_eq!(
        of("arms = [\"jemalloc\"]\nmin = 6\nmax = 6"),
        Finding::Reproduced
    );
    assert_eq!(
        of("arms = [\"system\", \"jemalloc\"]\nmax = 6"),
        Finding::Reproduced
    );
    assert_eq!(
        of("arms = [\"system\", \"jemalloc\"]\nmax = 5"),
        Finding::NotReproduced
    );
    assert_eq!(of("arms = [\"slow\"]\nmin = 128"), Finding::Reproduced);
    assert_eq!(of("arms = [\"slow\"]\nmin = 129"), Finding::NotReproduced);
}

#[test]
fn value_names_what_is_missing() {
    let check = format!("{VALUE}arms = [\"jemalloc\"]\nmax = 6");
    undecided(
        &check,
        &counts_without("jemalloc", "4MiB"),
        "no census record of jemalloc at",
    );
    let why = Outcome::Unavailable {
        why: "not built: cargo build".into(),
    };
    undecided(
        &check,
        &counts_with("jemalloc", "4MiB", why),
        "unavailable: not built",
    );
    let crash = Outcome::Failed {
        signal: Some(11),
        message: "crashed".into(),
    };
    undecided(
        &check,
        &counts_with("jemalloc", "4MiB", crash),
        "crashed (signal 11)",
    );
    let wrong = Outcome::WrongChecksum {
        message: "1, not 2".into(),
    };
    undecided(
        &check,
        &counts_with("jemalloc", "4MiB", wrong),
        "wrong checksum",
    );

    let mut records = counts_without("jemalloc", "4MiB");
    let traceless = grown("jemalloc", 4).absent("copied_bytes", "strace is missing");
    records.push(traceless.ok());
    undecided(
        &check,
        &records,
        "copied_bytes is absent: strace is missing",
    );
}

#[test]
fn a_counterexample_outweighs_a_gap() {
    let check = format!("{VALUE}arms = [\"jemalloc\"]\nmax = 5");
    assert_eq!(
        finding(&check, &counts_without("jemalloc", "4MiB")),
        Finding::NotReproduced
    );
}

#[test]
fn different_huge_pages_are_not_compared() {
    let check = "kind = \"order\"\ngrid = \"counts\"\nmetric = \"copied_bytes\"\narms = [\"system\", \"slow\"]";
    assert_eq!(finding(check, &counts()), Finding::Reproduced);
    let with = |machine: &dyn Fn(&str) -> &'static str| {
        let mut records = counts();
        for record in &mut records {
            let mut receipt = Receipt::default();
            let facts = [("thp", "off"), ("thp-machine", machine(&record.arm))];
            let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned()));
            receipt.facts.extend(facts);
            record.receipt = Some(receipt);
        }
        records
    };
    assert_eq!(finding(check, &with(&|_| "madvise")), Finding::Reproduced);
    // An arm that the check does not speak of does not matter.
    let other = with(&|arm| {
        if arm == "jemalloc" {
            "always"
        } else {
            "madvise"
        }
    });
    assert_eq!(finding(check, &other), Finding::Reproduced);
    let slow = with(&|arm| if arm == "slow" { "always" } else { "madvise" });
    undecided(check, &slow, "transparent huge pages differ");
}

#[test]
fn quick_leaves_cells_out() {
    let check = format!("{VALUE}arms = [\"jemalloc\"]\nmax = 6");
    let result = claim_of(&check, "", &counts(), true).result;
    let why = "size=4MiB of grid `counts` was left out by --quick".to_owned();
    assert_eq!(result, Finding::NotDecidable { why });
    let limit = "kind = \"value\"\ngrid = \"limit\"\nmetric = \"reached_bytes\"\narms = [\"slow\"]\nmin = 1";
    let Finding::NotDecidable { why } = claim_of(limit, "", &[], true).result else {
        panic!("decided")
    };
    assert_eq!(why, "grid `limit` was left out by --quick");
}

#[test]
fn a_system_call_that_could_not_be_traced() {
    let check = "kind = \"value\"\ngrid = \"counts\"\nmetric = \"sys.mremap\"\narms = [\"system\"]\nmax = 9";
    let records: Vec<_> = [1, 2, 4]
        .map(|mib| {
            grown("system", mib)
                .absent("sys.*", "strace is missing")
                .ok()
        })
        .into();
    undecided(check, &records, "sys.mremap is absent: strace is missing");
}

#[test]
fn a_system_call_that_never_happened_counts_0() {
    let check = |bound: &str| {
        format!(
            "kind = \"value\"\ngrid = \"counts\"\nmetric = \"sys.mremap\"\narms = [\"system\"]\n{bound}"
        )
    };
    let traced: Vec<_> = [1, 2, 4]
        .map(|mib| grown("system", mib).metric("copied_bytes", 0).ok())
        .into();
    assert_eq!(finding(&check("max = 0"), &traced), Finding::Reproduced);
    assert_eq!(finding(&check("min = 1"), &traced), Finding::NotReproduced);
    // Another call tells as much as `copied_bytes`, and neither does against a reason why there is no trace.
    let calls: Vec<_> = [1, 2, 4]
        .map(|mib| grown("system", mib).metric("sys.brk", 3).ok())
        .into();
    assert_eq!(finding(&check("max = 0"), &calls), Finding::Reproduced);
    let mut half = traced;
    half[0]
        .absent
        .insert("sys.*".to_owned(), "no log".to_owned());
    undecided(&check("max = 0"), &half, "sys.mremap is absent: no log");
    let untraced: Vec<_> = [1, 2, 4].map(|mib| grown("system", mib).ok()).into();
    undecided(&check("max = 0"), &untraced, "sys.mremap was not measured");
}

#[test]
fn a_claim_is_not_judged_by_another_experiment_than_the_defined() {
    let check = format!("{VALUE}arms = [\"jemalloc\"]\nmax = 6");
    let experiment = experiment(&check, "");
    let of = |overrides: &[&str]| {
        let mut run = AsRun::as_defined(&experiment, false);
        run.overrides = overrides.iter().map(|text| (*text).to_owned()).collect();
        let mut results = evaluate(&experiment, &Summary::new(&counts()), &run);
        results.pop().expect("one claim").result
    };
    let not = |why: &str| Finding::NotDecidable {
        why: why.to_owned(),
    };
    assert_eq!(of(&["shape=two"]), not("run with --set shape=two"));
    // The default of a parameter that the grid does not name is replaced as well.
    assert_eq!(
        of(&["blocks=3", "step=64KiB"]),
        not("run with --set step=64KiB")
    );
    assert_eq!(
        of(&["size=1MiB,4MiB,8MiB"]),
        not("run with --set size=1MiB,4MiB,8MiB")
    );
    for same in [
        "blocks=3",
        "timeout=1s",
        "allocators=jemalloc",
        "mode=list",
        "step=70",
        "size=4MiB,2MiB,1048576",
        "memory-limit=1GiB",
    ] {
        assert_eq!(of(&[same]), Finding::Reproduced, "{same}");
    }
    let limited = experiment.grid("limit").expect("there");
    let run = |text: &str| AsRun {
        overrides: vec![text.to_owned()],
        ..AsRun::as_defined(&experiment, false)
    };
    assert_eq!(
        run("memory-limit=1GiB").replaced(limited),
        ["--memory-limit 1GiB"]
    );
    assert!(run("memory-limit=512MiB").replaced(limited).is_empty());
    // Without a definition or a default there is nothing that a root could replace.
    assert!(run("root=/texts").replaced(limited).is_empty());
}

#[test]
fn one_block_is_one_block() {
    let few = [
        timed("system", 16, &SYSTEM[..1]),
        timed("slow", 16, &[2500]),
    ]
    .concat();
    undecided(&format!("{TIMES}min = 20"), &few, "1 block: claims");
}

#[test]
fn counts_of_a_stopped_trial_are_lower_bounds() {
    let stopped = Outcome::TimedOut { after_ms: 20_000 };
    let records = counts_with("slow", "4MiB", stopped);
    let of = |rest: &str| finding(&format!("{VALUE}arms = [\"slow\"]\n{rest}"), &records);
    assert_eq!(of("min = 100"), Finding::Reproduced);
    assert!(matches!(of("max = 600"), Finding::NotDecidable { .. }));
    // Per byte the rest could still be cheap, so even 512 against 200 refutes nothing.
    assert!(matches!(of("max = 200"), Finding::NotDecidable { .. }));
    let check = "kind = \"value\"\ngrid = \"counts\"\nmetric = \"copied_bytes\"\nwhere = { size = \"4MiB\" }\narms = [\"slow\"]\nmax = 2e9";
    assert_eq!(finding(check, &records), Finding::NotReproduced);
    let check = format!("{VALUE}arms = [\"slow\"]\nmin = 100");
    let result = claim_of(&check, "", &records, false);
    assert_eq!(
        result.checks[0].observed[1].text,
        ">= 512 (timed out after 20s)"
    );
}

#[test]
fn ratio_of_counts() {
    let check = |rest: &str| {
        format!(
            "kind = \"ratio\"\ngrid = \"counts\"\nmetric = \"copied_bytes\"\narms = [\"slow\"]\n{rest}"
        )
    };
    let of = |rest: &str| finding(&check(rest), &counts());
    let at_4 = "where = { size = \"4MiB\" }\n";
    assert_eq!(
        of(&format!("{at_4}than = \"jemalloc\"\nmin = 85")),
        Finding::Reproduced
    );
    assert_eq!(
        of(&format!("{at_4}than = \"jemalloc\"\nmin = 86")),
        Finding::NotReproduced
    );
    assert_eq!(
        of(&format!(
            "{at_4}than-where = {{ size = \"1MiB\" }}\nmin = 16\nmax = 16"
        )),
        Finding::Reproduced
    );
    let zero = format!("{at_4}than = \"system\"\nmin = 1");
    undecided(&check(&zero), &counts(), "copied_bytes = 0");
    let stopped = counts_with("jemalloc", "4MiB", Outcome::TimedOut { after_ms: 1000 });
    let check = check(&format!("{at_4}than = \"jemalloc\"\nmin = 85"));
    undecided(&check, &stopped, "jemalloc, to be divided by, timed out");
    assert_eq!(text(&check, &counts()), "85.3 (2147483648 / 25165824)");
}

#[test]
fn the_end_of_memory_is_a_result() {
    let at = |arm: &str, reached: u64, message: &str| {
        let outcome = Outcome::Failed {
            signal: None,
            message: message.into(),
        };
        Trial::census("limit", arm)
            .metric("reached_bytes", reached * MIB)
            .end(outcome)
    };
    let check = "kind = \"ratio\"\ngrid = \"limit\"\nmetric = \"reached_bytes\"\narms = [\"slow\"]\nthan = \"system\"\nmax = 0.5";
    let oom = "out of memory: the allocator returned null for a request of 1 bytes";
    let both = |slow| [at("system", 500, oom), at("slow", slow, oom)];
    assert_eq!(finding(check, &both(138)), Finding::Reproduced);
    assert_eq!(finding(check, &both(400)), Finding::NotReproduced);
    undecided(
        check,
        &[at("system", 500, oom), at("slow", 138, "said garbage")],
        "said garbage",
    );
    // Another metric of the same failed trial says nothing.
    let copied = check.replace("reached_bytes", "copied_bytes");
    undecided(&copied, &both(138), "failed: out of memory");
}

fn timed(arm: &str, mib: u64, times_ms: &[u64]) -> Vec<TrialRecord> {
    (0..)
        .zip(times_ms)
        .map(|(block, ms)| {
            Trial::time("times", arm, block)
                .param("size", &format!("{mib}MiB"))
                .param("mode", "concat")
                .metric("wall_ns", ms * 1_000_000)
                .ok()
        })
        .collect()
}

const SYSTEM: [u64; 6] = [100, 101, 102, 99, 100, 98];

fn times(slow: &[u64]) -> Vec<TrialRecord> {
    [timed("system", 16, &SYSTEM), timed("slow", 16, slow)].concat()
}

const TIMES: &str = r#"
kind = "ratio"
grid = "times"
metric = "wall_ns"
where = { size = "16MiB" }
arms = ["slow"]
than = "system"
"#;

#[test]
fn ratio_of_times_needs_the_whole_interval() {
    let slow = times(&[2400, 2500, 2600, 2450, 2550, 2480]);
    let of = |bounds: &str, records: &[_]| finding(&format!("{TIMES}{bounds}"), records);
    assert_eq!(of("min = 20", &slow), Finding::Reproduced);
    assert_eq!(of("min = 40", &slow), Finding::NotReproduced);
    assert_eq!(of("max = 30", &slow), Finding::Reproduced);
    assert_eq!(of("max = 20", &slow), Finding::NotReproduced);
    let wide = times(&[1000, 4000, 1500, 3500, 2200, 2300]);
    undecided(&format!("{TIMES}min = 20"), &wide, "straddles the bound 20");
    assert!(text(&format!("{TIMES}min = 20"), &slow).starts_with("25.0 ["));
}

#[test]
fn too_few_blocks_decide_nothing_about_time() {
    let few = [
        timed("system", 16, &SYSTEM[..5]),
        timed("slow", 16, &[2500; 6]),
    ]
    .concat();
    undecided(&format!("{TIMES}min = 20"), &few, "at least 6 blocks");
    let quick = claim_of(&format!("{TIMES}min = 20"), "", &times(&[2500; 6]), true).result;
    assert!(matches!(quick, Finding::NotDecidable { why } if why.starts_with("--quick")));
}

#[test]
fn a_time_out_is_a_ratio_of_at_least_the_limit() {
    let mut records = timed("system", 16, &SYSTEM);
    let cell = |block| {
        Trial::time("times", "slow", block)
            .param("size", "16MiB")
            .param("mode", "concat")
    };
    let stopped = Outcome::TimedOut { after_ms: 20_000 };
    records.push(
        cell(0)
            .metric("reached_bytes", 14 * MIB)
            .metric("wall_ns", 20_000_100_000)
            .end(stopped),
    );
    records.push(cell(1).end(Outcome::Skipped {
        after_ms: 20_000,
        block: 0,
    }));
    assert_eq!(
        finding(&format!("{TIMES}min = 150"), &records),
        Finding::Reproduced
    );
    assert_eq!(
        text(&format!("{TIMES}min = 150"), &records),
        ">= 200 (timed out after 20s, 14.0 MiB reached; median to divide by 100 ms)"
    );
    undecided(&format!("{TIMES}min = 250"), &records, "at least 200");
    assert_eq!(
        finding(&format!("{TIMES}max = 150"), &records),
        Finding::NotReproduced
    );
    undecided(&format!("{TIMES}max = 250"), &records, "at least 200");
}

#[test]
fn a_grid_that_is_meant_to_run_once_is_decided_on_one_pair() {
    let once = |arm: &str, ms: u64| {
        Trial::time("once", arm, 0)
            .param("size", "45MiB")
            .metric("wall_ns", ms * 1_000_000)
    };
    let check = |bound: &str| {
        format!(
            "kind = \"ratio\"\ngrid = \"once\"\nmetric = \"wall_ns\"\narms = [\"slow\"]\nthan = \"system\"\n{bound}"
        )
    };
    let records = [once("system", 300).ok(), once("slow", 33_000).ok()];
    assert_eq!(finding(&check("min = 40"), &records), Finding::Reproduced);
    assert_eq!(
        finding(&check("min = 200"), &records),
        Finding::NotReproduced
    );
    assert_eq!(
        text(&check("min = 40"), &records),
        "110 (one trial, no interval)"
    );
    undecided(&check("max = 40"), &records, "at least 6 blocks");
    let stopped = Outcome::TimedOut { after_ms: 60_000 };
    let records = [once("system", 300).ok(), once("slow", 60_000).end(stopped)];
    assert_eq!(finding(&check("min = 200"), &records), Finding::Reproduced);
}

const EXPONENT: &str = r#"
kind = "exponent"
grid = "counts"
metric = "copied_bytes"
against = "size"
from = "1MiB"
to = "4MiB"
"#;

#[test]
fn exponent_of_counts() {
    let of = |rest: &str| finding(&format!("{EXPONENT}{rest}"), &counts());
    assert_eq!(
        of("arms = [\"slow\"]\nmin = 1.99\nmax = 2.01"),
        Finding::Reproduced
    );
    assert_eq!(of("arms = [\"jemalloc\"]\nmax = 1.2"), Finding::Reproduced);
    assert_eq!(
        of("arms = [\"jemalloc\", \"slow\"]\nmax = 1.2"),
        Finding::NotReproduced
    );
    let slow = format!("{EXPONENT}arms = [\"slow\"]\nmin = 1.99");
    assert_eq!(
        text(&slow, &counts()),
        "2.000 (largest deviation 0.0 %; local 2.00, 2.00)"
    );
    let stopped = counts_with("slow", "4MiB", Outcome::TimedOut { after_ms: 1000 });
    undecided(&slow, &stopped, "slow at 4MiB timed out after 1s");
    undecided(
        &slow,
        &counts_without("slow", "4MiB"),
        "no census record of slow",
    );
    undecided(
        &format!("{EXPONENT}arms = [\"system\"]\nmax = 1.2"),
        &counts(),
        "not a finite value above 0",
    );
    let quick = claim_of(&slow, "", &counts(), true).result;
    assert_eq!(
        quick,
        Finding::NotDecidable {
            why: "size=4MiB was left out by --quick".into()
        }
    );
}

#[test]
fn exponent_of_times() {
    let check = |bound: &str| {
        format!(
            "kind = \"exponent\"\ngrid = \"times\"\nmetric = \"wall_ns\"\nagainst = \"size\"\nfrom = \"8MiB\"\nto = \"16MiB\"\narms = [\"slow\"]\n{bound}"
        )
    };
    let both = |n: usize| {
        [
            timed("slow", 8, &[600, 610, 590, 605, 600, 599][..n]),
            timed("slow", 16, &[2400; 6]),
        ]
        .concat()
    };
    assert_eq!(finding(&check("min = 1.8"), &both(6)), Finding::Reproduced);
    assert_eq!(
        finding(&check("max = 1.2"), &both(6)),
        Finding::NotReproduced
    );
    undecided(&check("min = 2"), &both(6), "straddles");
    undecided(&check("min = 1.8"), &both(5), "at least 6 blocks");
}

#[test]
fn order_of_counts_and_times() {
    let check = |grid: &str, metric: &str, size: &str, arms: &str| {
        format!(
            "kind = \"order\"\ngrid = \"{grid}\"\nmetric = \"{metric}\"\nwhere = {{ size = \"{size}\" }}\narms = [{arms}]"
        )
    };
    let counted = |arms: &str| check("counts", "copied_bytes", "4MiB", arms);
    let rising = counted("\"system\", \"jemalloc\", \"slow\"");
    assert_eq!(finding(&rising, &counts()), Finding::Reproduced);
    let falling = counted("\"slow\", \"jemalloc\"");
    assert_eq!(finding(&falling, &counts()), Finding::NotReproduced);
    let stopped = counts_with("slow", "4MiB", Outcome::TimedOut { after_ms: 1000 });
    assert_eq!(finding(&rising, &stopped), Finding::Reproduced);
    undecided(&falling, &stopped, "slow timed out");

    let timed = check("times", "wall_ns", "16MiB", "\"system\", \"slow\"");
    assert_eq!(finding(&timed, &times(&[120; 6])), Finding::Reproduced);
    assert_eq!(finding(&timed, &times(&[80; 6])), Finding::NotReproduced);
    undecided(
        &timed,
        &times(&[90, 110, 95, 105, 100, 101]),
        "does not settle it",
    );
    undecided(&timed, &times(&[120; 3]), "at least 6 blocks");
}

#[test]
fn equality() {
    let check = |rest: &str| {
        format!(
            "kind = \"equal\"\ngrid = \"counts\"\nmetric = \"copied_bytes\"\nwhere = {{ size = \"4MiB\" }}\n{rest}"
        )
    };
    let of = |rest: &str| finding(&check(rest), &counts());
    assert_eq!(
        of("arms = [\"slow\"]\nvalue = 2147483648"),
        Finding::Reproduced
    );
    assert_eq!(
        of("arms = [\"slow\"]\nvalue = 2147483647"),
        Finding::NotReproduced
    );
    assert_eq!(of("arms = [\"slow\", \"system\"]"), Finding::NotReproduced);
    let appended = check("arms = [\"slow\", \"system\"]").replace("copied_bytes", "appended_bytes");
    assert_eq!(finding(&appended, &counts()), Finding::Reproduced);
    assert_eq!(
        text(&check("arms = [\"slow\"]\nvalue = 7"), &counts()),
        "2147483648, not 7"
    );
    let stopped = counts_with("slow", "4MiB", Outcome::TimedOut { after_ms: 1000 });
    undecided(
        &check("arms = [\"slow\"]\nvalue = 2147483648"),
        &stopped,
        "timed out",
    );
}

#[test]
fn equality_of_random_values_and_within_bands() {
    let mut records = counts();
    for record in &mut records {
        let knobs = [("sampling".to_owned(), "2097152".to_owned())].into();
        record.receipt = Some(Receipt {
            knobs,
            ..Receipt::default()
        });
        let faults = if record.arm == "slow" { 103 } else { 100 };
        record.metrics.insert("minflt".to_owned(), faults);
    }
    let check = |metric: &str| {
        format!(
            "kind = \"equal\"\ngrid = \"counts\"\nmetric = \"{metric}\"\nwhere = {{ size = \"4MiB\" }}\narms = [\"slow\", \"system\"]"
        )
    };
    undecided(&check("copied_bytes"), &records, "only inequalities");
    assert_eq!(
        finding(&check("appended_bytes"), &records),
        Finding::Reproduced
    );
    records.iter_mut().for_each(|record| record.receipt = None);
    assert_eq!(finding(&check("minflt"), &records), Finding::Reproduced);
    for record in records.iter_mut().filter(|r| r.arm == "slow") {
        record.metrics.insert("minflt".to_owned(), 104);
    }
    assert_eq!(finding(&check("minflt"), &records), Finding::NotReproduced);
}

#[test]
fn what_is_expected_decides_what_contradicts() {
    let holds = format!("{VALUE}arms = [\"jemalloc\"]\nmax = 6");
    let fails = format!("{VALUE}arms = [\"jemalloc\"]\nmax = 5");
    let of = |check: &str, more: &str, records: &[_]| {
        let claim = claim_of(check, more, records, false);
        (claim.as_expected, claim.contradicted())
    };
    assert_eq!(of(&holds, "", &counts()), (true, false));
    assert_eq!(of(&fails, "", &counts()), (false, true));
    assert_eq!(of(&holds, "expected = false", &counts()), (false, true));
    assert_eq!(of(&fails, "expected = false", &counts()), (true, false));
    assert_eq!(
        of(&holds, "", &[]),
        (false, false),
        "what cannot be decided contradicts nothing"
    );
}

#[test]
fn what_is_asked_is_said() {
    let asked = |check: &str| {
        claim_of(check, "", &counts(), false).checks[0]
            .asked
            .clone()
    };
    assert_eq!(
        asked(&format!("{VALUE}arms = [\"jemalloc\"]\nmax = 6")),
        "copied_bytes / appended_bytes at size=1MiB|4MiB: at most 6"
    );
    assert_eq!(
        asked(&format!("{EXPONENT}arms = [\"slow\"]\nmin = 1.5\nmax = 2")),
        "exponent of copied_bytes against size over 1MiB to 4MiB: from 1.5 to 2"
    );
    assert_eq!(
        asked(&format!("{TIMES}min = 20")),
        "wall_ns at size=16MiB, as a multiple of system: at least 20"
    );
}
