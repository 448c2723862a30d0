//! A child that serves does the same work as a trial, answers whatever it is asked, and does not grow.

mod common;

use common::{ask, err, obmalloc_missing, out, spec};
use heaplab::arms::Arm;
use heaplab::bench;
use heaplab::run::serve::{NoAnswer, Server, Task};
use heaplab::trial::{
    ChildReport, Outcome, Params, Protocol, ServeAnswer, ServeRequest, TrialSpec,
};
use heaplab::workloads::{self, WorkloadDef};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// Far more than any answer here takes.
const LONG: Duration = Duration::from_secs(60);

fn children() -> PathBuf {
    let heaplab = Path::new(env!("CARGO_BIN_EXE_heaplab"));
    heaplab.parent().expect("a folder").to_owned()
}

/// Work for a server, as its definition has it.
struct Work {
    workload: &'static WorkloadDef,
    params: Params,
}

impl Work {
    fn new(workload: &str, params: &[(&str, &str)]) -> Work {
        let workload = workloads::find(workload).expect("a workload");
        let given = spec("system", workload.id, params).params;
        let params = workload.resolve(&given).expect("its parameters");
        Work { workload, params }
    }

    fn task(&self) -> Task<'_> {
        Task {
            workload: self.workload,
            params: &self.params,
            seed: 1,
        }
    }

    fn server(&self, arm: &str) -> Result<Server, NoAnswer> {
        let arm = Arm::parse(arm).expect("an arm");
        Server::start(&arm, &children(), &self.task())
    }

    fn ask(&self, server: &mut Server, iterations: u64) -> Result<ServeAnswer, NoAnswer> {
        server.ask(&self.task(), iterations, LONG, LONG)
    }
}

/// Workloads of every kind, small: with input, with drawn tables, with blocks that stay, with tables of each run.
fn small() -> [Work; 10] {
    [
        Work::new("growth", &[("size", "64KiB"), ("shape", "pinned")]),
        Work::new("walker", &[("corpus", "text"), ("size", "64KiB")]),
        Work::new(
            "walker",
            &[("corpus", "text"), ("size", "64KiB"), ("mode", "join")],
        ),
        Work::new("pairs", &[("live", "500"), ("pairs", "1000")]),
        Work::new(
            "pairs",
            &[("live", "500"), ("pairs", "1k"), ("shape", "batch-random")],
        ),
        Work::new("arena-edge", &[("blocks", "500")]),
        Work::new("push-pop", &[("live", "500"), ("depth", "30")]),
        Work::new("survivors", &[("blocks", "500")]),
        Work::new("packing", &[("blocks", "200")]),
        Work::new("memcrunch-like", &[("things", "300")]),
    ]
}

fn time_spec(arm: &str, work: &Work) -> TrialSpec {
    TrialSpec {
        params: work.params.clone(),
        protocol: Protocol::Time,
        ..spec(arm, work.workload.id, &[])
    }
}

#[test]
fn the_checksums_are_those_of_a_trial() {
    for work in small() {
        for arm in ["system", "tcmalloc-2007", "arena", "null"] {
            let id = work.workload.id;
            let child = Arm::parse(arm).expect("an arm").home().child;
            let orders = serde_json::to_vec(&time_spec(arm, &work)).expect("JSON");
            let trial: ChildReport =
                serde_json::from_slice(&ask(child, &orders).stdout).expect("a report");
            assert_eq!(trial.outcome, Outcome::Ok, "{id} under {arm}");

            let mut server = work.server(arm).expect("it starts");
            for iterations in [1, 3] {
                let answer = work.ask(&mut server, iterations).expect("an answer");
                assert_eq!(answer.iterations, iterations);
                assert!(answer.wall_ns > 0);
                assert_eq!(answer.checksum_ops, trial.checksum_ops, "{id}, {arm}");
                assert_eq!(answer.checksum_contents, trial.checksum_contents);
                assert_eq!(answer.input_hash, trial.input_hash, "{id}, {arm}");
                assert_eq!(answer.receipt, Some(trial.receipt.clone()));
            }
        }
    }
}

/// Anonymous bytes of a process.
fn anonymous(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("it runs");
    let line = text.lines().find(|line| line.starts_with("Anonymous:"));
    let words = line.expect("a kernel that tells").split_whitespace();
    let kib: u64 = words.rev().nth(1).expect("a number").parse().expect("one");
    kib << 10
}

#[test]
fn thousands_of_iterations_do_not_make_it_grow() {
    for work in small() {
        let mut server = work.server("system").expect("it starts");
        let before = work.ask(&mut server, 100).expect("an answer").own_bytes;
        let resident = anonymous(server.pid());
        let after = work.ask(&mut server, 2000).expect("an answer").own_bytes;
        let grown = anonymous(server.pid()).saturating_sub(resident);
        let id = work.workload.id;
        assert_eq!(before, after, "{id}: the child's own heap");
        assert!(grown < 256 << 10, "{id}: {grown} bytes more are resident");
    }
}

/// A child that is spoken to by hand.
fn said(server: &mut Server, line: &str) -> ServeAnswer {
    server.exchange(line, LONG).expect("an answer")
}

fn complaint(answer: &ServeAnswer) -> &str {
    match &answer.outcome {
        Outcome::Failed { message, .. } => message,
        Outcome::Unavailable { why } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_error_is_an_answer_and_the_child_lives_on() {
    let work = Work::new("growth", &[("size", "64KiB")]);
    let mut server = work.server("system").expect("it starts");
    let good = ServeRequest {
        iterations: 1,
        trial: time_spec("system", &work),
    };
    let altered = |alter: &dyn Fn(&mut ServeRequest)| {
        let mut request = good.clone();
        alter(&mut request);
        serde_json::to_string(&request).expect("JSON")
    };
    let params = |name: &str, value: &str| Params::from([(name.to_owned(), value.to_owned())]);
    let bad = [
        ("nonsense".to_owned(), "not readable"),
        ("{}".to_owned(), "iterations"),
        (altered(&|it| it.iterations = 0), "at least"),
        (
            altered(&|it| it.trial.arm = "null".to_owned()),
            "serves system",
        ),
        (
            altered(&|it| it.trial.workload = "grwth".to_owned()),
            "growth",
        ),
        (
            altered(&|it| it.trial.params = params("size", "0")),
            "from 1",
        ),
        (
            altered(&|it| it.trial.params = params("sise", "1MiB")),
            "size",
        ),
        (
            altered(&|it| it.trial.protocol = Protocol::Census),
            "protocol",
        ),
        (
            altered(&|it| it.trial.source_hash = "0".to_owned()),
            "stale",
        ),
    ];
    for opened in [false, true] {
        for (line, why) in &bad {
            let answer = said(&mut server, line);
            assert!(complaint(&answer).contains(why), "{line}: {answer:?}");
            assert_eq!(answer.iterations, 0);
            // Once a heap is open, every answer says whose it is.
            assert!(answer.receipt.is_some() || !opened, "{line}");
        }
        assert_eq!(said(&mut server, &altered(&|_| ())).outcome, Outcome::Ok);
    }
    let knob = ("trim_threshold".to_owned(), "4096".to_owned());
    let other = altered(&|it| it.trial.knobs = vec![knob.clone()]);
    assert!(complaint(&said(&mut server, &other)).contains("other knobs"));
}

#[test]
fn another_input_can_be_asked_for() {
    let [_, text, _, pairs, batches, ..] = small();
    let mut server = text.server("system").expect("it starts");
    let mut sums = Vec::new();
    for work in [&pairs, &text, &batches, &pairs, &pairs] {
        let answer = work.ask(&mut server, 2).expect("an answer");
        sums.push((answer.checksum_ops, answer.input_hash));
    }
    assert_eq!(sums[0], sums[3]);
    assert_eq!(sums[3], sums[4]);
    assert_ne!(sums[0], sums[2]);
}

#[test]
fn the_end_of_input_is_the_end() {
    let child = |arguments: &[&str], input: &str| {
        let path = children().join("child_system");
        let mut child = std::process::Command::new(path)
            .args(arguments)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the child starts");
        let mut stdin = child.stdin.take().expect("piped");
        std::io::Write::write_all(&mut stdin, input.as_bytes()).expect("written");
        drop(stdin);
        child.wait_with_output().expect("the child ends")
    };
    let ended = child(&["serve", "system"], "");
    assert_eq!((ended.status.code(), out(&ended).as_str()), (Some(0), ""));
    let ended = child(&["serve", "system"], "x\ny\n");
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(out(&ended).lines().count(), 2);
    let cut = child(&["serve", "system"], "x");
    assert_eq!(cut.status.code(), Some(2), "{}", err(&cut));
    let stranger = child(&["serve", "jemalloc"], "");
    assert_eq!(stranger.status.code(), Some(2));
    assert!(
        err(&stranger).contains("does not hold"),
        "{}",
        err(&stranger)
    );
}

#[test]
fn what_goes_wrong_is_told() {
    let work = Work::new("growth", &[("size", "64KiB")]);
    let under = |arm: &str, soft, hard| {
        let mut server = work.server(arm)?;
        server.ask(&work.task(), 1, soft, hard)
    };
    for (arm, kind, why) in [
        ("faulty-absent", "unavailable", "scripts/setup"),
        ("faulty-crash", "failed", "SIGSEGV"),
        ("faulty-killed", "failed", "SIGKILL"),
        ("faulty-garbage", "failed", "garbage"),
        ("faulty-null", "failed", "out of memory"),
        ("faulty-flip", "failed", "lost or changed"),
    ] {
        let (is, said) = match under(arm, SECOND, LONG).expect_err(arm) {
            NoAnswer::Unavailable(said) => ("unavailable", said),
            NoAnswer::TooMuch(said) => ("too much", said),
            NoAnswer::Failed(said) => ("failed", said),
        };
        assert_eq!(is, kind, "{arm}: {said}");
        assert!(said.contains(why), "{arm}: {said}");
    }
    let slow = under("faulty-slow", Duration::from_millis(20), LONG);
    assert!(matches!(slow, Err(NoAnswer::TooMuch(why)) if why.contains("20 ms")));
    let hung = under("faulty-hang", SECOND, SECOND / 2);
    assert!(matches!(hung, Err(NoAnswer::TooMuch(why)) if why.contains("no answer")));
}

#[test]
fn what_cannot_be_is_refused_before_it_starts() {
    let work = Work::new("growth", &[("size", "4GiB")]);
    let arm = Arm::parse("system").expect("an arm");
    let nowhere = Server::start(&arm, Path::new("/nonexistent"), &work.task());
    assert!(matches!(nowhere, Err(NoAnswer::Unavailable(why)) if why.contains("cargo build")));
    static HUGE: WorkloadDef = WorkloadDef {
        footprint: |_, _| u64::MAX,
        ..workloads::growth::WORKLOAD
    };
    let huge = Task {
        workload: &HUGE,
        ..work.task()
    };
    let refused = Server::start(&arm, &children(), &huge);
    assert!(matches!(refused, Err(NoAnswer::TooMuch(why)) if why.contains("smaller size")));
}

/// Every arm of the bench serves, on its shortest group.
#[test]
fn every_arm_of_the_bench_serves() {
    let without_obmalloc = obmalloc_missing();
    let work = Work::new("pairs", &[("live", "500"), ("pairs", "1000")]);
    for arm in bench::arms().expect("they are sound") {
        if !arm.home().built || (without_obmalloc && arm.home().child.starts_with("child_obmalloc"))
        {
            continue;
        }
        let mut server = Server::start(&arm, &children(), &work.task()).expect("it starts");
        let answer = work.ask(&mut server, 2);
        assert!(answer.is_ok(), "{}: {answer:?}", arm.label());
    }
}

/// `cargo bench` runs every target that may be benched with Criterion's options, which only ours understands.
#[test]
fn nothing_else_is_benched() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let crates = fs::read_dir(root.join("allocators")).expect("the crates");
    let crates = crates.map(|entry| entry.expect("readable").path());
    for folder in crates
        .filter(|path| path.is_dir())
        .chain([root.join("harness")])
    {
        let file = folder.join("Cargo.toml");
        let text = fs::read_to_string(&file).expect("a manifest");
        let manifest: toml::Table = text.parse().expect("TOML");
        let bench = manifest.get("lib").and_then(|lib| lib.get("bench"));
        let off = bench.and_then(toml::Value::as_bool) == Some(false);
        assert!(off, "{}: [lib] wants bench = false", file.display());
    }
}
