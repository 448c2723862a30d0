//! Instructions of census trials: counted where they mean something, and absent with the reason where they do not.

mod common;

use common::{Ran, definition, err, metric, out, said};
use heaplab::record::TrialRecord;
use heaplab::trial::Outcome;
use heaplab::workloads::object_churn::WORK;

const PAIRS: &str = "shape = \"random\", live = \"500\", pairs = \"10k\"";

fn asked(params: &str, arms: &str) -> String {
    definition("pairs", params, arms, "\"census\"", "instructions = true")
}

fn counted(params: &str, arms: &str) -> Vec<TrialRecord> {
    let ran = Ran::new(&asked(params, arms), &[]);
    assert_eq!(ran.output.status.code(), Some(0), "{}", err(&ran.output));
    ran.records()
}

fn a_pair(record: &TrialRecord) -> f64 {
    metric(record, "instructions") as f64 / metric(record, "ops") as f64
}

#[test]
fn a_limit_takes_fewer_than_an_allocator() {
    let records = counted(PAIRS, "\"null\", \"bump\", \"system\"");
    let [null, bump, system] = [0, 1, 2].map(|i| a_pair(&records[i]));
    // The loop, six instructions of null's malloc, two of its free, and what the driver writes down.
    assert!((20.0..40.0).contains(&null), "{null}");
    assert!(null < bump && bump < 45.0, "{bump}");
    assert!((100.0..300.0).contains(&system), "{system}");
    // What belongs to the first run was measured in the first run.
    assert_eq!(metric(&records[2], "malloc_calls"), 10_500);
    assert!(
        records
            .iter()
            .all(|record| !record.metrics.contains_key("wall_ns"))
    );
}

#[test]
fn the_same_trial_has_the_same_instructions() {
    let arms = "\"null\", \"system\", \"jemalloc\"";
    let runs = [(); 2].map(|()| counted(PAIRS, arms));
    for (first, second) in runs[0].iter().zip(&runs[1]) {
        let [a, b] = [first, second].map(|record| metric(record, "instructions"));
        assert!(a.abs_diff(b) <= a / 100 * 3, "{}: {a} and {b}", first.arm);
    }
    assert_eq!(
        metric(&runs[0][0], "instructions"),
        metric(&runs[1][0], "instructions")
    );
}

/// Only the pairs are counted: more live blocks, which are made before the region, change nothing for an arm that does
/// the same for each block.
#[test]
fn what_comes_before_the_region_is_not_counted() {
    let few = &counted(PAIRS, "\"null\"")[0];
    let many = &counted(&PAIRS.replace("\"500\"", "\"50k\""), "\"null\"")[0];
    let [few, many] = [few, many].map(|record| metric(record, "instructions"));
    assert!(few.abs_diff(many) < few / 100, "{few} and {many}");
}

/// Regions add up: growth has one for growing and one for freeing.
#[test]
fn every_workload_can_be_counted() {
    let of = |size: &str| {
        let params = format!("size = \"{size}\"");
        let text = definition(
            "growth",
            &params,
            "\"null\"",
            "\"census\"",
            "instructions = true",
        );
        metric(&Ran::new(&text, &[]).record(), "instructions")
    };
    let (half, whole) = (of("256KiB"), of("512KiB"));
    let ratio = whole as f64 / half as f64;
    assert!((1.9..2.1).contains(&ratio), "{half} and {whole}");
}

/// One trial of `null`, of objects of one kind.
fn objects(mix: &str, work: &str) -> TrialRecord {
    let params = format!("mix = \"{mix}\", objects = \"5k\", live = \"20\", work = \"{work}\"");
    let text = definition(
        "object-churn",
        &params,
        "\"null\"",
        "\"census\"",
        "instructions = true",
    );
    Ran::new(&text, &[]).record()
}

#[test]
fn a_turn_of_work_has_its_instructions() {
    let [once, twice] = ["100", "200"].map(|work| metric(&objects("floats", work), "instructions"));
    // Two calls an object, 196 instructions more for each, in whole turns.
    let more = (twice - once) as f64 / 5000.0;
    assert!(
        (2.0 * 196.0 - 10.0..=2.0 * 196.0 + 10.0).contains(&more),
        "{more}"
    );
}

/// What docs/methodology.md says of CPython: instructions outside of the allocator for each of its calls.
#[test]
fn the_work_between_calls_is_that_of_cpython() {
    for work in WORK {
        let record = objects(work.kind, "100");
        let calls: u64 = ["malloc_calls", "realloc_calls", "free_calls"]
            .iter()
            .map(|name| metric(&record, name))
            .sum();
        // The live ones are outside of the region.
        let in_region = calls as f64 * 5000.0 / 5020.0;
        let ratio = metric(&record, "instructions") as f64 / in_region / work.cpython as f64;
        println!("{}: {ratio:.3} of {}", work.kind, work.cpython);
        assert!((0.9..1.1).contains(&ratio), "{}: {ratio}", work.kind);
    }
}

/// valgrind has no restartable sequences, so the per-CPU caches of that arm are off there.
#[test]
#[cfg(feature = "tcmalloc-google")]
fn an_arm_that_runs_differently_has_none_by_name() {
    let ran = Ran::new(&asked(PAIRS, "\"system\", \"tcmalloc-google\""), &[]);
    let google = &ran.records()[1];
    assert_eq!(google.outcome, Outcome::Ok, "the census itself is good");
    assert!(!google.metrics.contains_key("instructions"));
    let why = &google.absent["instructions"];
    assert!(
        why.contains("differently under valgrind: per_cpu_caches"),
        "{why}"
    );
    let folder = ran.folder();
    let report = out(&said(&["report", folder.to_str().expect("UTF-8")]));
    assert!(report.contains("instructions for each pair"), "{report}");
    assert!(report.contains("n/a"), "{report}");
    assert!(
        report.contains("instructions of tcmalloc-google is absent"),
        "{report}"
    );
    assert!(!report.contains("copied for each byte"), "{report}");
}

#[test]
fn without_valgrind_they_are_absent_and_not_zero() {
    let mut heaplab = common::heaplab();
    heaplab.env("PATH", "/nowhere");
    let record = Ran::by(heaplab, &asked(PAIRS, "\"system\""), &[]).record();
    assert_eq!(record.outcome, Outcome::Ok);
    assert!(!record.metrics.contains_key("instructions"));
    let why = &record.absent["instructions"];
    assert!(why.contains("apt-get install valgrind"), "{why}");
    assert_eq!(metric(&record, "malloc_calls"), 10_500);
}

#[test]
fn a_memory_limit_would_hold_for_valgrind() {
    let ran = Ran::new(&asked(PAIRS, "\"system\""), &["--memory-limit", "512MiB"]);
    let record = ran.record();
    assert_eq!(record.outcome, Outcome::Ok);
    let why = &record.absent["instructions"];
    assert!(why.contains("--memory-limit"), "{why}");
}

/// The profile does not stay behind.
#[test]
fn nothing_is_left_in_the_folder() {
    let ran = Ran::new(&asked(PAIRS, "\"null\""), &[]);
    let names: Vec<_> = std::fs::read_dir(ran.folder())
        .expect("the folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        !names
            .iter()
            .any(|name| name.to_string_lossy().starts_with('.')),
        "{names:?}"
    );
}
