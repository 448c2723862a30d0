//! `heaplab verify`: every workload under every arm in the driver's third mode, where nothing that the allocator does is
//! believed; the behaviour suite; and what each allocator does.

mod common;

use common::{
    Ran, ask, broken, compiled, debian, definition, err, heaplab, obmalloc_missing, out, records,
    spec,
};
use heaplab::arms::Arm;
use heaplab::behaviour::Behaviour;
use heaplab::report::markdown;
use heaplab::trial::{ChildReport, Outcome, TrialSpec};
use heaplab::verification::{self, State, Verification, Verified};
use heaplab::workloads::WORKLOADS;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use tempfile::TempDir;

/// A verification in a temporary folder, and what it said.
struct Found {
    dir: TempDir,
    output: Output,
}

impl Found {
    fn of(arguments: &[&str]) -> Found {
        let dir = TempDir::new().expect("a temporary folder");
        let output = heaplab()
            .arg("verify")
            .arg("--out")
            .arg(dir.path().join("found"))
            .args(arguments)
            .output()
            .expect("heaplab starts");
        Found { dir, output }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("found")
    }

    fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    /// What is stored.
    fn found(&self) -> Verification {
        let text = fs::read_to_string(self.folder().join("behaviour.json"));
        let text = text.unwrap_or_else(|why| panic!("{why}: {}", err(&self.output)));
        serde_json::from_str(&text).expect("a verification")
    }

    fn arm(&self, label: &str) -> Verified {
        let arms = self.found().arms;
        let found = arms.into_iter().find(|arm| arm.arm == label);
        found.unwrap_or_else(|| panic!("no {label}: {}", err(&self.output)))
    }
}

/// Small sets of parameters of all workloads.
fn sets() -> usize {
    WORKLOADS.iter().map(|workload| workload.small.len()).sum()
}

fn alignments(seen: &Behaviour, sizes: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut seen: Vec<usize> = seen
        .alignment
        .iter()
        .filter(|one| sizes(one.size))
        .map(|one| one.alignment)
        .collect();
    seen.sort_unstable();
    seen.dedup();
    seen
}

/// It takes about half a minute, most of it the behaviour suite of 30 arms: this is where CI asks all of them.
#[test]
fn everything_here_is_sound() {
    let without_obmalloc = obmalloc_missing();
    let verified = Found::of(&["--json"]);
    assert_eq!(verified.code(), Some(0), "{}", err(&verified.output));
    let found = verified.found();
    let printed: Verification =
        serde_json::from_str(&out(&verified.output)).expect("a verification");
    assert_eq!(printed, found);

    let built = |label: &str| Arm::parse(label).expect("an arm").home().built;
    for arm in &found.arms {
        let missing = without_obmalloc && arm.arm.starts_with("obmalloc");
        if missing || !built(&arm.arm) {
            let State::Unavailable { why } = &arm.state else {
                panic!("{arm:?}")
            };
            assert!(why.contains("build"), "{why}");
            continue;
        }
        assert_eq!(arm.suite.len(), 16, "{}", arm.arm);
        assert!(
            arm.behaviour.is_some() && arm.receipt.is_some(),
            "{}",
            arm.arm
        );
        if arm.arm == "null" {
            assert!(
                matches!(&arm.state, State::NotVerified { why } if why.contains("no contents"))
            );
            assert_eq!(arm.trials.planned, 0);
        } else {
            assert_eq!(arm.state, State::Sound, "{}", arm.arm);
            assert_eq!(arm.trials.verified, sets(), "{}", arm.arm);
        }
    }
    let labels: Vec<String> = found.arms.iter().map(|arm| arm.arm.clone()).collect();
    let all = verification::arms().expect("arms");
    assert_eq!(labels, all.iter().map(Arm::label).collect::<Vec<_>>());

    for record in records(&verified.folder()) {
        assert_eq!(record.driver, "canary");
        for metric in record.metrics.keys() {
            let told = ["ops", "appended_bytes", "reached_bytes"].contains(&metric.as_str());
            assert!(told, "{metric} is measured by nobody");
        }
    }
    does_what_its_manual_says(&found, without_obmalloc);
}

/// What is known of the allocators from their own documents.
fn does_what_its_manual_says(found: &Verification, without_obmalloc: bool) {
    let seen = |label: &str| {
        let arm = found.arms.iter().find(|arm| arm.arm == label);
        arm.and_then(|arm| arm.behaviour.as_ref())
    };
    let answer = |seen: &Behaviour, i: usize| seen.realloc_zero[i].answer.clone();
    let system = seen("system").expect("always there");
    assert_eq!(alignments(system, |_| true), [16]);
    assert_eq!(answer(system, 0), "frees, null");
    assert_eq!(system.errno_of_free, "kept");
    assert!(system.trim && !system.sized_free);
    for arena in ["arena", "arena-3.10", "arena-3.10-keep0", "bump"] {
        let seen = seen(arena).expect("always there");
        assert!(
            alignments(seen, |_| true)[0] >= 16,
            "{arena}: {:?}",
            seen.alignment
        );
    }
    // CPython's ALIGNMENT is 16 where a pointer has 8 bytes; no bytes are one byte.
    for obmalloc in [
        "obmalloc",
        "obmalloc-1m-eager",
        "obmalloc-classic",
        "obmalloc-eager",
    ] {
        if without_obmalloc {
            continue;
        }
        let seen = seen(obmalloc).expect("it is here");
        assert!(
            alignments(seen, |size| size <= 512)[0] >= 16,
            "{:?}",
            seen.alignment
        );
        assert_eq!(answer(seen, 0), "a block");
        assert!(seen.usable.iter().all(|one| one.least.is_none()));
    }
    if let Some(jemalloc) = seen("jemalloc") {
        assert_eq!(alignments(jemalloc, |size| size <= 8), [8]);
        assert!(jemalloc.sized_free);
    }
    // Its manual: mi_realloc(p, 0) gives a block; and by GlobalAlloc nobody may ask.
    if let Some(mimalloc) = seen("mimalloc") {
        assert!(answer(mimalloc, 0).starts_with("a block"), "{mimalloc:?}");
    }
    if let Some(global) = seen("mimalloc-global") {
        assert_eq!(answer(global, 0), "not asked");
        assert_eq!(global.realloc_null, None);
    }
    // It checks by itself that an alignment is not beyond its huge pages, and ends the process.
    if let Some(google) = seen("tcmalloc-google") {
        assert_eq!(google.aligned_up_to, 2 << 20);
        assert_eq!(
            google.aligned_failure.as_deref(),
            Some("aligned(4194304, 1) aborts")
        );
    }
}

#[test]
fn what_is_printed_is_what_is_stored() {
    let verified = Found::of(&["--allocators", "system,null", "--workloads", "growth"]);
    assert_eq!(verified.code(), Some(0), "{}", err(&verified.output));
    let folder = verified.folder();
    let show = |more: &[&str]| {
        heaplab()
            .arg("verify")
            .arg("--show")
            .arg(&folder)
            .args(more)
            .output()
            .expect("heaplab starts")
    };
    let again = show(&[]);
    assert_eq!(again.status.code(), Some(0));
    assert_eq!(out(&again), out(&verified.output));
    let found = verified.found();
    let names: Vec<&str> = found
        .tables
        .iter()
        .map(|table| table.name.as_str())
        .collect();
    let expected = [
        "verify.arms",
        "verify.behaviour",
        "verify.alignment",
        "verify.usable",
    ];
    assert_eq!(names, expected);
    let tables: Vec<String> = found.tables.iter().map(markdown::table).collect();
    assert_eq!(out(&show(&["--format", "markdown"])), tables.join("\n"));
    assert!(
        tables[0].contains("| system | sound | 4 verified | 16 kept |"),
        "{}",
        tables[0]
    );
    assert!(tables[0].contains("| null | not verified | none | 16 kept | it keeps no contents |"));
    // Progress, one line a trial and one an arm.
    let said = err(&verified.output);
    assert!(
        said.contains("[4/4") && said.contains("[2/2] null"),
        "{said}"
    );

    // It is no run of an experiment.
    for arguments in [&["report"][..], &["claims"], &["run", "--resume"]] {
        let refused = heaplab()
            .args(arguments)
            .arg(&folder)
            .output()
            .expect("heaplab starts");
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(
            err(&refused).contains("heaplab verify"),
            "{}",
            err(&refused)
        );
    }
    // Beside runs of experiments it does not stand in their way.
    let definition = definition("growth", "size = \"64KiB\"", "\"system\"", "\"census\"", "");
    let ran = Ran::new(&definition, &[]);
    fs::rename(ran.folder(), verified.dir.path().join("run")).expect("moved");
    let report = heaplab()
        .arg("report")
        .arg(verified.dir.path())
        .output()
        .expect("starts");
    assert_eq!(report.status.code(), Some(0), "{}", err(&report));
    let other = heaplab()
        .args(["verify", "--show"])
        .arg(verified.dir.path().join("run"))
        .output()
        .expect("heaplab starts");
    assert_eq!(other.status.code(), Some(2));
    assert!(err(&other).contains("heaplab report"), "{}", err(&other));
}

/// One byte of the heap changes in its hundredth realloc.
#[test]
fn a_flipped_byte_is_found_where_it_happens() {
    let verified = Found::of(&[
        "--allocators",
        "system,faulty-flip",
        "--workloads",
        "walker",
    ]);
    assert_eq!(verified.code(), Some(1), "{}", err(&verified.output));
    let said = err(&verified.output);
    assert!(said.contains("broken: faulty-flip;"), "{said}");
    assert_eq!(verified.arm("system").state, State::Sound);
    let arm = verified.arm("faulty-flip");
    assert_eq!(arm.state, State::Broken);
    match &arm.failures[0].outcome {
        Outcome::Failed {
            signal: None,
            message,
        } => assert!(message.contains("realloc"), "{message}"),
        other => panic!("{other:?}"),
    }
    assert!(
        out(&verified.output).contains("walker corpus=text"),
        "{}",
        out(&verified.output)
    );
}

#[test]
fn a_crash_is_told_and_the_others_go_on() {
    let verified = Found::of(&[
        "--allocators",
        "faulty-crash,system",
        "--workloads",
        "growth",
    ]);
    assert_eq!(verified.code(), Some(1), "{}", err(&verified.output));
    let arm = verified.arm("faulty-crash");
    assert_eq!(arm.trials.failed, 4);
    let how = arm.suite_failure.expect("it crashes there, too");
    assert!(how.contains("SIGSEGV"), "{how}");
    assert_eq!(verified.arm("system").state, State::Sound);
}

#[test]
fn where_nothing_can_be_verified_it_says_why() {
    let null = Found::of(&["--allocators", "null"]);
    assert_eq!(null.code(), Some(3), "{}", err(&null.output));
    assert!(
        err(&null.output).contains("null: it keeps no contents"),
        "{}",
        err(&null.output)
    );

    let absent = Found::of(&["--allocators", "faulty-absent", "--workloads", "growth"]);
    assert_eq!(absent.code(), Some(3), "{}", err(&absent.output));
    assert!(
        err(&absent.output).contains("run scripts/setup"),
        "{}",
        err(&absent.output)
    );
    assert!(
        out(&absent.output).contains("unavailable"),
        "{}",
        out(&absent.output)
    );

    let folder = TempDir::new().expect("a temporary folder");
    let output = heaplab()
        .args(["verify", "--allocators", "system", "--out"])
        .arg(folder.path().join("found"))
        .env("HEAPLAB_CHILDREN", folder.path())
        .output()
        .expect("heaplab starts");
    assert_eq!(output.status.code(), Some(3), "{}", err(&output));
    assert!(
        err(&output).contains("cargo build --release"),
        "{}",
        err(&output)
    );
}

/// The child refuses by itself, whoever asks.
#[test]
fn what_keeps_no_contents_cannot_be_verified() {
    let orders = TrialSpec {
        verify: true,
        ..spec(
            "null",
            "growth",
            &[("size", "64KiB"), ("step", "70"), ("shape", "one")],
        )
    };
    let answer = ask("child_limits", &serde_json::to_vec(&orders).expect("JSON"));
    let report: ChildReport = serde_json::from_slice(&answer.stdout).expect("a report");
    assert!(matches!(report.outcome, Outcome::Unavailable { why } if why.contains("no contents")));
}

fn library(path: &Path) -> Found {
    let arms = format!("system,mine={}", path.display());
    Found::of(&["--allocators", &arms, "--workloads", "growth"])
}

#[test]
fn a_sound_library_is_sound() {
    let folder = TempDir::new().expect("a temporary folder");
    let verified = library(&compiled(folder.path(), "sound.c", &[]));
    assert_eq!(verified.code(), Some(0), "{}", err(&verified.output));
    let arm = verified.arm("mine");
    assert_eq!((arm.state, arm.trials.verified), (State::Sound, 4));
    assert_eq!(arm.receipt.expect("it answered").allocator, "libmine.so");
    let [system, mine] = ["system", "mine"].map(|label| verified.arm(label).behaviour);
    let (system, mine) = (system.expect("asked"), mine.expect("asked"));
    // It forwards to the C library.
    assert_eq!(mine.alignment, system.alignment);
    assert_eq!(mine.realloc_zero, system.realloc_zero);
}

#[test]
fn a_broken_library_is_named_with_its_rule() {
    for (fault, rule) in [
        (
            "MISALIGNS",
            "breaks \"every size is aligned for any C type of that size\"",
        ),
        (
            "LOSES",
            "breaks \"realloc keeps contents across size classes\"",
        ),
        ("CRASHES", "SIGSEGV: at the rule \"every size is aligned"),
    ] {
        let (_folder, path) = broken(fault);
        let verified = library(&path);
        assert_eq!(
            verified.code(),
            Some(1),
            "{fault}: {}",
            err(&verified.output)
        );
        assert!(
            err(&verified.output).contains("an arm is broken: mine;"),
            "{fault}"
        );
        assert_eq!(verified.arm("mine").state, State::Broken, "{fault}");
        let found = verified.found();
        let row = found.tables[0].rows.iter().find(|row| row[0] == "mine");
        let row = row.unwrap_or_else(|| panic!("{fault}: no row"));
        assert_eq!(row[1], "BROKEN", "{fault}");
        assert!(row[4].contains(rule), "{fault}: {}", row[4]);
    }
}

#[test]
fn a_library_that_does_not_answer_is_unavailable() {
    let (_folder, path) = broken("HALF");
    let verified = library(&path);
    assert_eq!(verified.code(), Some(0), "{}", err(&verified.output));
    let State::Unavailable { why } = verified.arm("mine").state else {
        panic!("{}", err(&verified.output))
    };
    assert!(why.contains("calloc of this process"), "{why}");
}

/// Its posix_memalign gives addresses that are no multiple of what was asked.
#[test]
fn debians_mimalloc_is_flagged() {
    let verified = library(&debian("libmimalloc.so.2.0"));
    assert_eq!(verified.code(), Some(1), "{}", err(&verified.output));
    let arm = verified.arm("mine");
    let rules: Vec<String> = arm.complaints().collect();
    let rule = "\"aligned blocks are aligned, and keep their contents\"";
    assert!(rules.len() == 1 && rules[0].starts_with(rule), "{rules:?}");
    let failure = arm.behaviour.expect("asked").aligned_failure;
    assert!(failure.is_some_and(|how| how.ends_with("is MISALIGNED")));
}

#[test]
fn bad_input_is_named() {
    let folder = TempDir::new().expect("a temporary folder");
    let taken = folder.path().join("taken");
    fs::create_dir(&taken).expect("made");
    fs::write(taken.join("records.jsonl"), "").expect("written");
    let taken = taken.to_str().expect("UTF-8");
    for (arguments, said) in [
        (&["--workloads", "growt"][..], "growth"),
        (&["--allocators", "jemaloc"], "jemalloc"),
        (&["--allocators", "system,system"], "twice"),
        (&["--timeout", "0s"], "longer than nothing"),
        (&["--timeout", "soon"], "--timeout"),
        (&["--out", taken], "already holds a run"),
        (&["--show", taken], "holds no run"),
        (&["--show", taken, "--seed", "2"], "cannot be used with"),
    ] {
        let output = heaplab()
            .current_dir(folder.path())
            .arg("verify")
            .args(arguments)
            .output()
            .expect("heaplab starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            err(&output).contains(said),
            "{arguments:?}: {}",
            err(&output)
        );
        assert!(!folder.path().join("results").exists(), "{arguments:?}");
    }
}

#[test]
fn an_interrupted_verification_keeps_its_records() {
    // Once among the trials, and once over the suite.
    for line in ["[2/", "[1/1] bump"] {
        let dir = TempDir::new().expect("a temporary folder");
        let folder = dir.path().join("found");
        let mut child = heaplab()
            .args(["verify", "--allocators", "bump", "--out"])
            .arg(&folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("heaplab starts");
        let mut said = BufReader::new(child.stderr.take().expect("piped"));
        let mut read = String::new();
        while !read.starts_with(line) {
            read.clear();
            assert!(
                said.read_line(&mut read).expect("readable") > 0,
                "no line {line}"
            );
        }
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
        kill_process(pid, Signal::INT).expect("it is there");
        read.clear();
        said.read_to_string(&mut read).expect("readable");
        assert_eq!(child.wait().expect("it ends").code(), Some(130), "{read}");
        assert!(read.contains("start it anew"), "{read}");
        assert!(!folder.join("behaviour.json").exists());
        assert!(records(&folder).len() >= 2, "{read}");
    }
}
