//! Every way in which a trial can end is a record, and the run goes on: proved with a faulty test child.

mod common;

use common::{Ran, definition, err, metric};
use heaplab::trial::Outcome;
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn one(arm: &str, rest: &str, arguments: &[&str]) -> Ran {
    let arms = format!("\"{arm}\", \"system\"");
    Ran::new(
        &definition("growth", "size = \"64KiB\"", &arms, "\"census\"", rest),
        arguments,
    )
}

/// The faulty arm's record, after making sure that the other arm was still run.
fn ending(ran: &Ran) -> Outcome {
    let records = ran.records();
    assert_eq!(records.len(), 2, "{}", err(&ran.output));
    assert_eq!(records[1].outcome, Outcome::Ok, "the run goes on");
    assert_eq!(ran.output.status.code(), Some(0), "{}", err(&ran.output));
    records[0].outcome.clone()
}

#[test]
fn a_crash_is_a_record_with_its_signal() {
    match ending(&one("faulty-crash", "", &[])) {
        Outcome::Failed {
            signal: Some(11),
            message,
        } => assert!(message.contains("SIGSEGV"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_kill_is_a_record_that_speaks_of_memory() {
    match ending(&one("faulty-killed", "", &[])) {
        Outcome::Failed {
            signal: Some(9),
            message,
        } => assert!(message.contains("out of memory"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_child_that_hangs_is_killed_and_timed_out() {
    let ended = ending(&one("faulty-hang", "timeout = \"100ms\"", &[]));
    assert_eq!(ended, Outcome::TimedOut { after_ms: 100 });
}

#[test]
fn garbage_is_a_record_that_shows_it() {
    match ending(&one("faulty-garbage", "", &[])) {
        Outcome::Failed {
            signal: None,
            message,
        } => assert!(message.contains("just garbage"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stale_child_is_refused() {
    match ending(&one("faulty-stale", "", &[])) {
        Outcome::Unavailable { why } => assert!(why.contains("stale child: rebuild"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_missing_allocator_is_unavailable_with_what_would_change_that() {
    match ending(&one("faulty-absent", "", &[])) {
        Outcome::Unavailable { why } => assert!(why.contains("scripts/setup"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_allocator_that_says_no_has_failed_and_keeps_its_counts() {
    let ran = one("faulty-null", "", &[]);
    match ending(&ran) {
        Outcome::Failed {
            signal: None,
            message,
        } => assert!(message.contains("out of memory"), "{message}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(metric(&ran.records()[0], "reached_bytes"), 0);
    assert_eq!(
        ran.records()[0].checksum_ops,
        None,
        "a trial that was cut off says nothing by its checksums"
    );
}

#[test]
fn one_flipped_byte_is_a_wrong_checksum_and_fails_the_run() {
    let ran = one("faulty-flip", "", &[]);
    assert_eq!(ran.output.status.code(), Some(1), "{}", err(&ran.output));
    match &ran.records()[0].outcome {
        Outcome::WrongChecksum { message } => assert!(message.contains("went in"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cell_that_timed_out_keeps_its_counts_and_is_skipped_in_later_blocks() {
    let arms = "\"system\", \"faulty-slow\"";
    let text = definition(
        "growth",
        "size = \"1MiB\"",
        arms,
        "\"time\"",
        "blocks = 3\ntimeout = \"200ms\"",
    );
    let ran = Ran::new(&text, &[]);
    assert_eq!(ran.output.status.code(), Some(0), "{}", err(&ran.output));
    let slow: Vec<_> = ran
        .records()
        .into_iter()
        .filter(|record| record.arm == "faulty-slow")
        .collect();
    assert_eq!(slow.len(), 3);
    assert_eq!(slow[0].outcome, Outcome::TimedOut { after_ms: 200 });
    let reached = metric(&slow[0], "reached_bytes");
    assert!(reached > 0 && reached < 1 << 20, "{reached}");
    for later in &slow[1..] {
        assert_eq!(
            later.outcome,
            Outcome::Skipped {
                after_ms: 200,
                block: 0
            }
        );
    }
}

#[test]
fn a_cell_too_large_for_the_machine_is_unavailable_with_the_estimate() {
    // Two blocks of 4 GiB that may be copied are 32 GiB by estimate; a limit far above any machine's memory makes the
    // point without one: the estimate of a terabyte does not fit anywhere this test runs.
    let text = definition(
        "growth",
        "size = \"4GiB\", shape = \"two\", step = \"1MiB\"",
        "\"tcmalloc-2007\", \"null\"",
        "\"census\"",
        "",
    );
    let available = heaplab::probe::machine::available_memory().expect("MemAvailable");
    let ran = Ran::new(&text, &["--timeout", "1ms"]);
    let first = &ran.records()[0];
    if available as f64 * 0.6 < (32u64 << 30) as f64 {
        match &first.outcome {
            Outcome::Unavailable { why } => {
                assert!(why.contains("32.0 GiB") && why.contains("60 %"), "{why}")
            }
            other => panic!("{other:?}"),
        }
    } else {
        assert!(
            matches!(first.outcome, Outcome::TimedOut { .. } | Outcome::Ok),
            "{:?}",
            first.outcome
        );
    }
}

#[test]
fn nothing_measurable_is_exit_status_3() {
    let ran = Ran::new(
        &definition("growth", "", "\"faulty-absent\"", "\"census\"", ""),
        &[],
    );
    assert_eq!(ran.output.status.code(), Some(3), "{}", err(&ran.output));
}

#[test]
fn without_strace_system_calls_are_absent_and_not_zero() {
    let mut heaplab = common::heaplab();
    heaplab.env("PATH", "/nowhere");
    let text = definition("growth", "size = \"64KiB\"", "\"system\"", "\"census\"", "");
    let record = Ran::by(heaplab, &text, &[]).record();
    assert_eq!(record.outcome, Outcome::Ok);
    assert!(
        record.absent["copied_bytes"].contains("strace"),
        "{:?}",
        record.absent
    );
    assert!(!record.metrics.contains_key("copied_bytes"));
    assert!(!record.metrics.keys().any(|name| name.starts_with("sys.")));
    assert!(
        metric(&record, "realloc_calls") > 0,
        "what needs no strace is still counted"
    );
}

#[test]
fn a_child_that_is_not_there_is_unavailable_with_what_would_change_that() {
    let empty = tempfile::tempdir().expect("a temporary folder");
    let mut heaplab = common::heaplab();
    heaplab.env("HEAPLAB_CHILDREN", empty.path());
    let text = definition("growth", "size = \"64KiB\"", "\"system\"", "\"census\"", "");
    let ran = Ran::by(heaplab, &text, &[]);
    assert_eq!(ran.output.status.code(), Some(3), "{}", err(&ran.output));
    match ran.record().outcome {
        Outcome::Unavailable { why } => assert!(why.contains("cargo build --release"), "{why}"),
        other => panic!("{other:?}"),
    }
}

/// A child whose place is taken by `script`.
fn with_child(script: &str) -> (tempfile::TempDir, std::process::Command) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let child = dir.path().join("child_system");
    fs::write(&child, script).expect("written");
    fs::set_permissions(&child, fs::Permissions::from_mode(0o755)).expect("permissions");
    let mut heaplab = common::heaplab();
    heaplab.env("HEAPLAB_CHILDREN", dir.path());
    (dir, heaplab)
}

#[test]
fn a_process_that_a_child_leaves_behind_does_not_hold_up_the_run() {
    // It leaves the group of its own and keeps the child's standard output open.
    let real = env!("CARGO_BIN_EXE_child_system");
    let script = format!("#!/bin/bash\nsetsid sleep 300 &\nexec {real}\n");
    let (dir, heaplab) = with_child(&script);
    let text = definition(
        "growth",
        "size = \"64KiB\"",
        "\"system\"",
        "\"time\"",
        "blocks = 1",
    );
    let begun = std::time::Instant::now();
    let record = Ran::by(heaplab, &text, &[]).record();
    assert_eq!(record.outcome, Outcome::Ok);
    assert!(
        begun.elapsed().as_secs() < 100,
        "it waited for what was left behind"
    );
    drop(dir);
    let _ = std::process::Command::new("pkill")
        .args(["-f", "sleep 300"])
        .status();
}

#[test]
fn a_child_that_prints_without_end_is_garbage() {
    let (_dir, heaplab) = with_child("#!/bin/bash\nexec head -c 300000000 /dev/zero\n");
    let text = definition(
        "growth",
        "size = \"64KiB\"",
        "\"system\"",
        "\"time\"",
        "blocks = 1",
    );
    match Ran::by(heaplab, &text, &[]).record().outcome {
        Outcome::Failed { message, .. } => {
            assert!(message.contains("no readable report"), "{message}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn summary_and_environment_stand_beside_the_records() {
    let ran = Ran::new(
        &definition("growth", "size = \"64KiB\"", "\"system\"", "\"census\"", ""),
        &[],
    );
    for file in [
        "env.json",
        "experiment.toml",
        "plan.json",
        "records.jsonl",
        "summary.json",
    ] {
        assert!(
            fs::metadata(ran.folder().join(file)).is_ok_and(|found| found.len() > 0),
            "{file}"
        );
    }
}
