//! The memory protocol tells the truth: proved with a child whose memory is known in advance, and with real ones.

mod common;

use common::{Ran, definition, err, metric, out, said, spec};
use heaplab::probe::limits;
use heaplab::record::TrialRecord;
use heaplab::run::spawn::{self, Ended, Start};
use heaplab::trial::{Outcome, Protocol, Thp};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;

const OS_PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
/// How far the kernel's peak may be off, as stated.
const PEAK_BAND: u64 = 256 << 10;

/// One block of a page: all that the schedule's heap has room for.
const ONE_BLOCK: &str = "size = \"4KiB\", step = \"4KiB\"";

fn run(workload: &str, params: &str, arms: &str) -> Ran {
    let ran = Ran::new(&definition(workload, params, arms, "\"memory\"", ""), &[]);
    assert_eq!(ran.output.status.code(), Some(0), "{}", err(&ran.output));
    ran
}

/// Equal within one OS page.
fn exact(record: &TrialRecord, name: &str, pages: u64) {
    let found = metric(record, name);
    assert!(
        found.abs_diff(pages * OS_PAGE) <= OS_PAGE,
        "{name} is {found}, {} OS pages, and not {pages}",
        found as f64 / OS_PAGE as f64
    );
}

#[test]
fn phases_are_exact_to_one_os_page() {
    let record = run("growth", ONE_BLOCK, "\"schedule\"").record();
    assert_eq!(record.outcome, Outcome::Ok);
    exact(&record, "rss.start", 0);
    exact(&record, "rss.full", 5000);
    exact(&record, "rss.empty", 1200);
    exact(&record, "rss.trimmed", 300);
    let start = metric(&record, "rss_gross.start");
    for phase in ["full", "empty", "trimmed"] {
        let net = metric(&record, &format!("rss.{phase}"));
        let gross = metric(&record, &format!("rss_gross.{phase}"));
        assert!(gross.abs_diff(start + net) <= MIB, "{phase}: {gross}");
    }
    let peak = metric(&record, "peak_bytes");
    assert!(peak.abs_diff(5000 * OS_PAGE) <= PEAK_BAND, "{peak}");
    assert_eq!(metric(&record, "peak_live_bytes"), OS_PAGE);
    assert!(record.absent.is_empty(), "{:?}", record.absent);
    for other in ["wall_ns", "minflt", "realloc_calls"] {
        assert!(
            !record.metrics.contains_key(other),
            "{other} is not memory's"
        );
    }
}

#[test]
fn a_spike_between_phases_appears_in_the_peak_and_over_time() {
    let record = run("growth", ONE_BLOCK, "\"schedule-spike\"").record();
    exact(&record, "rss.full", 5000);
    let peak = metric(&record, "peak_bytes");
    assert!(peak.abs_diff(100 * MIB) <= PEAK_BAND, "{peak}");
    let series = &record.series["rss_gross"];
    let start = metric(&record, "rss_gross.start");
    assert_eq!(series[0], (0, start));
    assert!(series.is_sorted_by_key(|(ms, _)| *ms), "{series:?}");
    let highest = series.iter().map(|(_, bytes)| *bytes).max();
    let rise = highest.expect("samples") - start;
    assert!(rise.abs_diff(100 * MIB) <= PEAK_BAND, "{rise}: {series:?}");
}

/// A memory trial of one arm, started by this very process.
fn from_here(arm: &str, child: &str) -> BTreeMap<String, u64> {
    let mut orders = spec(
        arm,
        "growth",
        &[("size", "4KiB"), ("step", "4KiB"), ("shape", "one")],
    );
    orders.protocol = Protocol::Memory;
    let child = Path::new(env!("CARGO_BIN_EXE_heaplab")).with_file_name(child);
    let environment = BTreeMap::new();
    let seen = spawn::run(&Start {
        child: &child,
        tracer: None,
        environment: &environment,
        spec: &orders,
        hard_limit: Duration::from_secs(60),
    });
    let seen = seen.expect("the child starts");
    let Ended::Reported(report) = seen.ended else {
        panic!("{:?}", seen.ended)
    };
    assert_eq!(report.outcome, Outcome::Ok);
    let mut record = run("growth", ONE_BLOCK, "\"schedule\"").record();
    record.metrics.clear();
    let phases = ["start", "full", "empty", "trimmed"];
    seen.memory
        .expect("watched")
        .tell(&mut record, phases.into_iter());
    record.metrics
}

#[test]
fn a_large_parent_changes_nothing() {
    const LARGE: usize = 300 << 20;
    let small = from_here("schedule", "child_schedule");
    let ballast = std::hint::black_box(vec![1u8; LARGE]);
    let resident = limits::Status::now().expect("status").resident;
    assert!(resident > LARGE as u64, "the parent is large: {resident}");
    let large = from_here("schedule", "child_schedule");
    drop(ballast);
    assert_eq!(small.len(), large.len());
    for (name, value) in &small {
        let band = if name.starts_with("peak") {
            PEAK_BAND
        } else {
            2 * OS_PAGE
        };
        let there = large[name];
        assert!(value.abs_diff(there) <= band, "{name}: {value} and {there}");
    }
}

#[test]
fn the_order_of_arms_does_not_matter() {
    let by_arm = |arms: &str| {
        let params = "mode = \"list\", corpus = \"text\", size = \"8MiB\"";
        let records = run("walker", params, arms).records();
        let two = records
            .into_iter()
            .map(|record| (record.arm.clone(), record));
        two.collect::<BTreeMap<_, _>>()
    };
    let ab = by_arm("\"system\", \"bump\"");
    let ba = by_arm("\"bump\", \"system\"");
    for (arm, record) in &ab {
        for name in ["rss.full", "peak_bytes", "peak_gross_bytes"] {
            let (a, b) = (metric(record, name) as f64, metric(&ba[arm], name) as f64);
            assert!((a / b - 1.0).abs() < 0.02, "{arm} {name}: {a} and {b}");
        }
        assert!(metric(record, "rss.full") > 8 * MIB, "the lines are there");
    }
}

#[test]
fn what_is_live_is_resident_and_what_is_freed_and_trimmed_is_not() {
    let params = "mode = \"list\", corpus = \"text\", size = \"4MiB\"";
    let record = run("walker", params, "\"system\"").record();
    let (full, live) = (
        metric(&record, "rss.full"),
        metric(&record, "peak_live_bytes"),
    );
    assert!(
        live > 4 * MIB && full >= live && full < 2 * live,
        "{full} for {live}"
    );
    assert!(metric(&record, "rss.trimmed") < live / 4);
    assert!(metric(&record, "peak_bytes") >= full, "a peak is the most");
}

#[test]
fn a_walk_stops_at_its_largest_file_and_ends_empty() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (name, lines) in [("a", 1000), ("b", 40_000), ("c", 10)] {
        let line = "a line of some forty bytes, or rather more\n";
        fs::write(dir.path().join(name), line.repeat(lines)).expect("written");
    }
    let root = dir.path().to_str().expect("UTF-8");
    let params = format!("mode = \"vec2x\", root = {root:?}");
    let record = run("walker", &params, "\"system\", \"bump\"").records();
    let b = 40_000 * 43;
    for record in &record {
        let full = metric(record, "rss.full");
        assert!(full >= b && full < 3 * b, "{}: {full}", record.arm);
    }
    assert!(metric(&record[0], "rss.trimmed") < b / 4, "{record:?}");
    assert!(
        record[1].absent["rss.trimmed"].contains("no call"),
        "bump gives nothing back"
    );
}

#[test]
fn null_has_no_memory_figures_and_says_why() {
    let ran = run("growth", "size = \"64KiB\"", "\"system\", \"null\"");
    match &ran.records()[1].outcome {
        Outcome::Unavailable { why } => assert!(why.contains("memory"), "{why}"),
        other => panic!("{other:?}"),
    }
    let folder = ran.folder();
    let report = out(&said(&["report", folder.to_str().expect("UTF-8")]));
    assert!(report.contains("peak overhead"), "{report}");
    assert!(
        report.contains("null: unavailable: null has no memory figures"),
        "{report}"
    );
}

#[test]
fn a_trial_that_was_cut_off_has_no_later_phases() {
    let arms = "\"faulty-null\", \"system\"";
    let ran = run("growth", "size = \"64KiB\"", arms);
    let record = &ran.records()[0];
    assert!(matches!(record.outcome, Outcome::Failed { .. }));
    assert_eq!(metric(record, "rss.start"), 0);
    assert!(record.absent["rss.full"].contains("did not come so far"));
    assert!(!record.metrics.contains_key("rss.full"));
    // A child that says nothing at all is no reason to wait.
    let text = definition(
        "growth",
        ONE_BLOCK,
        "\"faulty-crash\", \"faulty-garbage\", \"faulty-hang\", \"system\"",
        "\"memory\"",
        "timeout = \"100ms\"",
    );
    let records = Ran::new(&text, &[]).records();
    let ended: Vec<&str> = records.iter().map(|r| r.outcome.name()).collect();
    assert_eq!(ended, ["failed", "failed", "timed-out", "ok"]);
}

#[test]
fn a_child_whom_nobody_answers_says_so() {
    let mut orders = spec(
        "system",
        "growth",
        &[("size", "4KiB"), ("step", "70"), ("shape", "one")],
    );
    orders.protocol = Protocol::Memory;
    let answer = common::ask("child_system", &serde_json::to_vec(&orders).expect("JSON"));
    assert!(
        out(&answer).contains("nobody answers at the phase start"),
        "{}",
        out(&answer)
    );
}

/// How a record's child had transparent huge pages: as it measured, the machine, what it was born with.
fn thp(record: &TrialRecord) -> [&str; 3] {
    let facts = &record.receipt.as_ref().expect("a receipt").facts;
    ["thp", "thp-machine", "thp-inherited"].map(|fact| facts[fact].as_str())
}

#[test]
fn huge_pages_and_an_inherited_prctl_are_seen() {
    let text = definition("growth", ONE_BLOCK, "\"system\"", "\"memory\"", "");
    let machine = heaplab::probe::machine::Machine::read().thp_enabled;
    let machine = machine.as_deref().unwrap_or("unknown");
    let plain = Ran::new(&text, &[]).record();
    assert_eq!(thp(&plain), ["off for this process", machine, "no"]);

    let mut heaplab = common::heaplab();
    // SAFETY: between fork and exec the closure makes two bare system calls and allocates nothing.
    unsafe { heaplab.pre_exec(limits::disable_thp) };
    let inherited = Ran::by(heaplab, &text, &[]).record();
    assert_eq!(
        thp(&inherited),
        ["off for this process", machine, "off by prctl"]
    );
}

#[test]
fn figures_under_different_huge_pages_are_not_compared() {
    let ran = run("growth", "size = \"64KiB\"", "\"system\", \"bump\"");
    let mut records = ran.records();
    let folder = ran.folder();
    let folder = folder.to_str().expect("UTF-8");
    let report = || out(&said(&["report", folder]));
    assert!(report().contains("peak overhead"));

    // As if the machine had been set otherwise between the two.
    let second = records[1].receipt.as_mut().expect("a receipt");
    second
        .facts
        .insert("thp-machine".to_owned(), "other".to_owned());
    records[1].thp = Thp::AsIs;
    let lines: Vec<String> = records
        .iter()
        .map(|record| serde_json::to_string(record).expect("JSON") + "\n")
        .collect();
    fs::write(ran.folder().join("records.jsonl"), lines.concat()).expect("written");
    let report = report();
    assert!(!report.contains("peak overhead"), "{report}");
    for said in [
        "not compared",
        "transparent huge pages differ",
        "machine: other",
    ] {
        assert!(report.contains(said), "{said}: {report}");
    }
}
