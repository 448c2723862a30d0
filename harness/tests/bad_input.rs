//! What bad input gets: the message, the next step and the exit status, by running the binary.

mod common;

use common::{Ran, ask, definition, err, heaplab, out, said};
use heaplab::trial::{ChildReport, TrialSpec};
use std::fs;
use std::process::{Command, Stdio};

/// Runs `arguments`, expects exit status 2 and every one of `words` in the message, and nothing on standard output.
fn refused(arguments: &[&str], words: &[&str]) {
    let output = said(arguments);
    let message = err(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    for word in words {
        assert!(
            message.contains(word),
            "{arguments:?}: no `{word}` in: {message}"
        );
    }
    assert_eq!(out(&output), "", "{arguments:?}");
}

/// A definition in a temporary folder, run with `arguments`, is refused with `words`.
fn definition_refused(text: &str, arguments: &[&str], words: &[&str]) {
    let ran = Ran::new(text, arguments);
    let message = err(&ran.output);
    assert_eq!(ran.output.status.code(), Some(2), "{message}");
    for word in words {
        assert!(message.contains(word), "no `{word}` in: {message}");
    }
    assert!(!ran.folder().exists(), "nothing may run: {message}");
}

#[test]
fn unknown_names_are_answered_with_the_nearest() {
    refused(&["run", "groth-today"], &["groth-today", "growth-today"]);
    refused(
        &["run", "growth-today", "--allocators", "jemaloc"],
        &["jemaloc", "jemalloc"],
    );
    refused(
        &[
            "run",
            "growth-today",
            "--allocators",
            "tcmalloc-google:samplig=0",
        ],
        &["samplig", "sampling"],
    );
    refused(
        &["run", "growth-today", "--set", "siz=1MiB"],
        &["siz", "size"],
    );
    refused(
        &["run", "growth-today", "--protocol", "tim"],
        &["tim", "time"],
    );
    // Before the first of them runs.
    refused(
        &["run", "growth-today", "growth-today", "--quick"],
        &["growth-today is named twice"],
    );
    refused(&["lst"], &["lst", "list"]);
    refused(&["list", "allocator"], &["allocator", "allocators"]);
}

#[test]
fn values_out_of_range_are_answered_with_the_range() {
    refused(
        &["run", "growth-today", "--set", "step=0"],
        &["step", "1", "1MiB"],
    );
    refused(
        &["run", "growth-today", "--set", "shape=round"],
        &["round", "one, two, pinned"],
    );
    refused(
        &[
            "run",
            "growth-today",
            "--allocators",
            "tcmalloc-2007:granule=1",
        ],
        &["granule", "4KiB"],
    );
    for (arm, range) in [
        ("system:tcache_count=128", "0 to 127"),
        ("system:mxfast=161", "0 to 160"),
        ("jemalloc:background_thread=2", "0 to 1"),
    ] {
        refused(&["run", "burst-idle", "--allocators", arm], &[arm, range]);
    }
    refused(
        &["run", "burst-idle", "--set", "idle=2h"],
        &["idle", "at most 1h"],
    );
    refused(
        &["run", "lines", "--set", "mode=keep"],
        &["keep", "keep-all"],
    );
    refused(
        &["run", "growth-today", "--blocks", "0"],
        &["blocks", "1..=1000"],
    );
    refused(
        &["run", "growth-today", "--timeout", "soon"],
        &["--timeout", "soon"],
    );
    refused(&["run", "growth-today", "--timeout", "0s"], &["timeout"]);
    refused(
        &["run", "growth-today", "--memory-limit", "lots"],
        &["--memory-limit", "lots"],
    );
    refused(
        &["run", "growth-today", "--memory-limit", "0"],
        &["memory limit", "1MiB"],
    );
    refused(&["run", "growth-today", "--set", "size"], &["NAME=VALUE"]);
    refused(&["run"], &["EXPERIMENT"]);
    refused(&["run", "growth-today", "--resume", "x"], &["--resume"]);
}

#[test]
fn the_walker_says_what_input_it_needs() {
    refused(&["run", "walker-files"], &["root", "corpus"]);
    refused(
        &["run", "walker-files", "--set", "root=/no/such/place"],
        &["/no/such/place"],
    );
    refused(
        &["run", "walker-files", "--set", "root=/dev/null"],
        &["/dev/null", "regular file"],
    );
    refused(&["run", "walker-2007", "--set", "root=/"], &["exclude"]);
    for files in ["0", "10001", "-1", "many", "99999999999999999999"] {
        let set = format!("files={files}");
        refused(
            &["run", "table-2007", "--set", &set],
            &["files", files, "a number from 1 to 10k"],
        );
    }
    refused(
        &[
            "run",
            "table-2007",
            "--set",
            "files=10000",
            "--set",
            "size=2GiB",
        ],
        &["files", "19.5 TiB in all", "64GiB"],
    );
    refused(
        &["run", "walker-files", "--set", "root=/", "--set", "files=2"],
        &["`root` and `files` exclude each other"],
    );
}

#[test]
fn a_broken_definition_is_answered_with_file_line_and_column() {
    let good = definition("growth", "size = \"64KiB\"", "\"system\"", "\"census\"", "");
    definition_refused("id = ", &[], &["toy.toml", "1:"]);
    definition_refused(
        &good.replace("title", "titel"),
        &[],
        &["toy.toml", "titel", "title"],
    );
    definition_refused(
        &good.replace("\"census\"", "\"cencus\""),
        &[],
        &["toy.toml", "cencus", "census"],
    );
    definition_refused(
        &good.replace("\"growth\"", "\"groth\""),
        &[],
        &["groth", "growth"],
    );
    definition_refused(
        &good.replace("\"system\"", "\"sistem\""),
        &[],
        &["sistem", "system"],
    );
    definition_refused(&good.replace("size =", "siez ="), &[], &["siez", "size"]);
    definition_refused(&good.replace("64KiB", "64 bananas"), &[], &["64 bananas"]);
    let layout = "[grid.layout]\ntitle = \"t\"\ncolumns = [\"c\"]\nthan = \"system\"\n\
                  [[grid.layout.row]]\nname = \"r\"\narms = [\"sistem\"]\n";
    definition_refused(
        &(good.clone() + layout),
        &[],
        &[
            "toy.toml:",
            "arm `sistem` is not in grid `g`",
            "nearest: system",
        ],
    );
    refused(&["run", "/no/such/file.toml"], &["/no/such/file.toml"]);
}

#[test]
fn a_folder_without_a_run_is_named() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().to_str().expect("UTF-8");
    refused(&["run", "--resume", path], &[path, "plan.json"]);
    refused(&["claims", path], &[path, "plan.json"]);
    refused(&["report", path], &[path, "plan.json"]);
}

#[test]
fn records_of_a_newer_schema_are_refused() {
    let ran = Ran::new(
        &definition("growth", "size = \"64KiB\"", "\"system\"", "\"census\"", ""),
        &[],
    );
    let records = ran.folder().join("records.jsonl");
    let newer = fs::read_to_string(&records)
        .expect("records")
        .replace("\"schema\":1", "\"schema\":1000");
    fs::write(&records, newer).expect("written");
    let folder = ran.folder();
    refused(
        &["claims", folder.to_str().expect("UTF-8")],
        &["records.jsonl:1", "newer", "update heaplab"],
    );
}

#[test]
fn records_that_are_not_the_plans_are_refused_by_their_place() {
    let text = definition(
        "growth",
        "size = \"64KiB\"",
        "\"system\", \"bump\"",
        "\"census\"",
        "",
    );
    let ran = Ran::new(&text, &[]);
    let folder = ran.folder();
    let folder = folder.to_str().expect("UTF-8");
    let records = ran.folder().join("records.jsonl");
    let whole = fs::read_to_string(&records).expect("records");
    let first = whole.lines().next().expect("a record").to_owned() + "\n";
    let edited = |text: String| {
        fs::write(&records, text).expect("written");
    };
    edited(whole.clone() + &first);
    for command in ["claims", "report"] {
        refused(&[command, folder], &["records.jsonl:3", "a record already"]);
    }
    refused(
        &["run", "--resume", folder],
        &["records.jsonl:3", "a record already"],
    );
    edited(whole.replace("\"trial\":1", "\"trial\":999"));
    refused(
        &["run", "--resume", folder],
        &["records.jsonl:2", "plan.json"],
    );
    edited(whole.replace("\"arm\":\"bump\"", "\"arm\":\"null\""));
    refused(&["report", folder], &["records.jsonl:2", "plan.json"]);
}

#[test]
fn a_folder_with_a_part_missing_is_bad_input() {
    for file in ["env.json", "experiment.toml"] {
        let text = definition("growth", "size = \"64KiB\"", "\"system\"", "\"census\"", "");
        let ran = Ran::new(&text, &[]);
        fs::remove_file(ran.folder().join(file)).expect("removed");
        let folder = ran.folder();
        let folder = folder.to_str().expect("UTF-8");
        refused(&["claims", folder], &[file]);
        refused(&["report", folder], &[file]);
        refused(&["run", "--resume", folder], &[file]);
    }
}

#[test]
fn a_reader_of_progress_who_leaves_does_not_end_the_run() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("toy.toml");
    fs::write(
        &file,
        definition(
            "growth",
            "size = \"64KiB\"",
            "\"system\", \"bump\"",
            "\"census\"",
            "",
        ),
    )
    .expect("written");
    let mut run = heaplab()
        .arg("run")
        .arg(&file)
        .arg("--out")
        .arg(dir.path().join("run"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    drop(run.stderr.take());
    assert_eq!(run.wait().expect("ends").code(), Some(0));
    assert_eq!(common::records(&dir.path().join("run")).len(), 2);
}

#[test]
fn a_dry_run_runs_nothing_and_shows_everything() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let output = heaplab()
        .args(["run", "growth-today", "--quick", "--dry-run"])
        .current_dir(dir.path())
        .output()
        .expect("heaplab starts");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("tcmalloc-2007"), "{}", out(&output));
    assert_eq!(
        fs::read_dir(dir.path()).expect("readable").count(),
        0,
        "nothing may be written"
    );
    let json = said(&["run", "growth-today", "--quick", "--dry-run", "--json"]);
    let plans: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert!(
        plans[0]["trials"]
            .as_array()
            .is_some_and(|trials| !trials.is_empty())
    );
}

#[test]
fn output_that_nobody_reads_to_the_end_is_no_failure() {
    let mut list = heaplab()
        .args(["run", "walker-2007", "--dry-run"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    drop(list.stdout.take());
    assert_eq!(list.wait().expect("ends").code(), Some(0));
}

fn spec() -> TrialSpec {
    common::spec(
        "system",
        "growth",
        &[("shape", "one"), ("size", "64KiB"), ("step", "70")],
    )
}

fn report(spec: &TrialSpec) -> ChildReport {
    let output = ask("child_system", &serde_json::to_vec(spec).expect("JSON"));
    serde_json::from_slice(&output.stdout).expect("a report")
}

#[test]
fn a_child_built_from_other_sources_refuses_to_be_measured() {
    assert_eq!(report(&spec()).outcome.name(), "ok");
    let stale = report(&TrialSpec {
        source_hash: "0".to_owned(),
        ..spec()
    });
    assert_eq!(stale.outcome.name(), "unavailable");
    assert!(format!("{:?}", stale.outcome).contains("stale child: rebuild"));
}

#[test]
fn a_child_asked_for_what_it_is_not_says_so() {
    let other = report(&TrialSpec {
        arm: "jemalloc".to_owned(),
        ..spec()
    });
    assert!(format!("{:?}", other.outcome).contains("does not hold the arm jemalloc"));
    let unknown = report(&TrialSpec {
        workload: "wlaker".to_owned(),
        ..spec()
    });
    assert!(format!("{:?}", unknown.outcome).contains("no workload `wlaker`"));
    let output = ask("child_system", b"what?");
    assert_eq!(output.status.code(), Some(2));
    let version = Command::new(env!("CARGO_BIN_EXE_child_system"))
        .arg("--version")
        .output()
        .expect("starts");
    let receipt: serde_json::Value = serde_json::from_slice(&version.stdout).expect("a receipt");
    assert_eq!(receipt["source_hash"], heaplab::SOURCE_HASH);
}

#[test]
fn a_definition_that_would_do_harm_is_refused_with_its_place() {
    let of = |rest: &str| definition("growth", "size = \"64KiB\"", "\"system\"", "\"time\"", rest);
    definition_refused(
        &of("").replace("id = \"toy\"", "id = \"../../x\""),
        &[],
        &["toy.toml:1:6: ", "../../x", "letters, digits"],
    );
    definition_refused(
        &of("blocks = 4294967295"),
        &[],
        &["toy.toml:10:10: ", "4294967295", "from 1 to 1000"],
    );
    definition_refused(
        &of("").replace("\"time\"", "\"time\", \"time\""),
        &[],
        &["toy.toml:9:13: ", "protocol `time` is named twice"],
    );
    let steps: Vec<String> = (1..=2000).map(|step| step.to_string()).collect();
    definition_refused(
        &of("blocks = 1000"),
        &["--set", &format!("step={}", steps.join(","))],
        &["grid `g`", "at most 100000"],
    );
}

#[test]
fn claims_say_what_the_command_line_changed_and_do_not_judge_it() {
    let claim = "[[claim]]\nid = \"c\"\nsource = \"here\"\nfinding = \"it grows\"\n[[claim.check]]\nkind = \"value\"\n\
                 grid = \"g\"\nmetric = \"appended_bytes\"\narms = [\"system\"]\nmax = 1\n";
    let text = definition(
        "growth",
        "size = \"64KiB\"",
        "\"system\"",
        "\"census\"",
        claim,
    );
    let ran = Ran::new(&text, &["--set", "step=4KiB", "--timeout", "20s"]);
    let folder = ran.folder();
    let folder = folder.to_str().expect("UTF-8");
    let whole = said(&["claims", folder]);
    assert_eq!(whole.status.code(), Some(0), "{}", err(&whole));
    for words in [
        "Run with --timeout 20s --set step=4KiB.\n",
        "not decidable: run with --set step=4KiB",
        "1 claim: 0 as expected",
    ] {
        assert!(out(&whole).contains(words), "{words}: {}", out(&whole));
    }
    let json = said(&["claims", folder, "--json"]);
    let runs: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(runs[0]["overrides"][1], "step=4KiB");
    assert_eq!(runs[0]["quick"], false);
    // As it is defined, it is judged.
    let ran = Ran::new(&text, &["--timeout", "20s"]);
    let folder = ran.folder();
    let judged = said(&["claims", "--brief", folder.to_str().expect("UTF-8")]);
    assert_eq!(
        out(&judged),
        "toy: Run with --timeout 20s.\nNOT REPRODUCED: it grows [c]\n"
    );
    assert_eq!(judged.status.code(), Some(1));
}
