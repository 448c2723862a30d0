//! A run that is stopped, killed or out of disk leaves a usable folder: finished records stay, `--resume` goes on,
//! and the summary is that of an undisturbed run wherever metrics are exact.

mod common;

use common::{Ran, definition, err, heaplab, out, records};
use heaplab::trial::Outcome;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Sixteen census trials of a few milliseconds each.
fn plan() -> String {
    definition(
        "growth",
        "size = [\"64KiB\", \"128KiB\", \"256KiB\", \"512KiB\"], shape = [\"one\", \"pinned\"]",
        "\"system\", \"bump\"",
        "\"census\"",
        "",
    )
}

fn start(dir: &Path, definition: &str) -> Child {
    let file = dir.join("toy.toml");
    fs::write(&file, definition).expect("definition written");
    heaplab()
        .arg("run")
        .arg(&file)
        .arg("--out")
        .arg(dir.join("run"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("heaplab starts")
}

/// Waits until the run has told of `count` finished trials.
fn after(child: &mut Child, count: usize) {
    let stderr = child.stderr.take().expect("piped");
    let mut reader = BufReader::new(stderr);
    let mut told = 0;
    let mut line = String::new();
    while told < count && reader.read_line(&mut line).expect("readable") > 0 {
        told += usize::from(line.starts_with('['));
        line.clear();
    }
    assert_eq!(told, count, "the run ended too early");
    // Whatever it says from now on is read by nobody and must not hold it up.
    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid")).expect("a pid");
    kill_process(pid, signal).expect("it is there");
}

fn resume(dir: &Path) -> Output {
    heaplab()
        .arg("run")
        .arg("--resume")
        .arg(dir.join("run"))
        .output()
        .expect("heaplab starts")
}

/// The counts of a folder's records that are exact, in the order of the plan.
fn exact(folder: &Path) -> Vec<String> {
    let mut rows: Vec<(u32, String)> = records(folder)
        .into_iter()
        .map(|record| {
            let exact: Vec<_> = record
                .metrics
                .iter()
                .filter(|(name, _)| !name.starts_with("sys.") && *name != "minflt")
                .collect();
            (
                record.trial,
                format!(
                    "{} {:?} {:?} {exact:?}",
                    record.arm, record.params, record.outcome
                ),
            )
        })
        .collect();
    rows.sort();
    rows.into_iter().map(|(_, row)| row).collect()
}

fn undisturbed() -> Vec<String> {
    let ran = Ran::new(&plan(), &[]);
    assert_eq!(ran.output.status.code(), Some(0), "{}", err(&ran.output));
    exact(&ran.folder())
}

#[test]
fn ctrl_c_keeps_what_is_finished_and_resume_completes_it() {
    let whole = undisturbed();
    for signal in [Signal::INT, Signal::TERM] {
        let dir = TempDir::new().expect("a temporary folder");
        let mut child = start(dir.path(), &plan());
        after(&mut child, 3);
        send(&child, signal);
        // It may have been in its last trial already on a slow machine; it was not, with 16 of them.
        assert_eq!(child.wait().expect("it ends").code(), Some(130));
        let kept = records(&dir.path().join("run")).len();
        assert!((3..16).contains(&kept), "{kept}");
        assert!(
            dir.path().join("run/summary.json").is_file(),
            "an interrupted run has its summary"
        );
        let output = resume(dir.path());
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert!(
            err(&output).contains(&format!("{kept} of them done")),
            "{}",
            err(&output)
        );
        assert_eq!(exact(&dir.path().join("run")), whole);
    }
}

#[test]
fn a_kill_at_any_moment_loses_no_finished_trial() {
    let whole = undisturbed();
    for finished in [1, 4, 9, 14] {
        let dir = TempDir::new().expect("a temporary folder");
        let mut child = start(dir.path(), &plan());
        after(&mut child, finished);
        child.kill().expect("killed");
        child.wait().expect("it ends");
        let folder = dir.path().join("run");
        let text = fs::read_to_string(folder.join("records.jsonl")).expect("records");
        assert!(
            text.lines().count() >= finished,
            "what was told as finished is on disk"
        );
        // A line cut off in the middle is what a crash of the machine could leave.
        fs::write(folder.join("records.jsonl"), text + "{\"schema\":1,\"tri").expect("written");
        let output = resume(dir.path());
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert_eq!(exact(&folder), whole);
    }
}

#[test]
fn no_child_outlives_a_killed_run() {
    let dir = TempDir::new().expect("a temporary folder");
    // A trial that ends is followed by one that hangs; the run is killed while that one hangs.
    let text = definition(
        "growth",
        "size = \"64KiB\"",
        "\"bump\", \"faulty-hang\"",
        "\"census\"",
        "timeout = \"60s\"",
    );
    let mut child = start(dir.path(), &text);
    after(&mut child, 1);
    let by = Instant::now() + Duration::from_secs(20);
    let hanging = loop {
        // One that has settled: it asks to end with its parent before it asks to be the first to be killed.
        let settled = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/oom_score_adj"))
                .is_ok_and(|badness| badness.trim() == "1000")
        };
        let found = descendants(child.id())
            .into_iter()
            .find(|pid| name(*pid).as_deref() == Some("child_faulty") && settled(pid));
        if let Some(pid) = found {
            break pid;
        }
        assert!(Instant::now() < by, "the hanging child was started");
        std::thread::sleep(Duration::from_millis(20));
    };
    child.kill().expect("killed");
    child.wait().expect("it ends");
    while name(hanging).as_deref() == Some("child_faulty") {
        assert!(Instant::now() < by, "the child {hanging} is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The name of a process that is alive; `None` if it is gone or a zombie.
fn name(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, rest) = (stat.split_once('(')?.1, stat.rsplit_once(')')?.1);
    (!rest.trim_start().starts_with('Z')).then(|| {
        name.rsplit_once(')')
            .map_or(name, |(name, _)| name)
            .to_owned()
    })
}

fn descendants(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        let tasks = fs::read_dir(format!("/proc/{parent}/task"))
            .into_iter()
            .flatten()
            .flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            open.extend(
                children
                    .split_whitespace()
                    .filter_map(|word| word.parse::<u32>().ok()),
            );
        }
        found.push(parent);
    }
    found
}

#[test]
fn a_full_disk_is_a_clear_error_and_finished_records_are_intact() {
    let dir = TempDir::new().expect("a temporary folder");
    let file = dir.path().join("toy.toml");
    // Trials of the time protocol, which write nothing but their record.
    let text = plan().replace("\"census\"", "\"time\"") + "blocks = 3\n";
    fs::write(&file, &text).expect("definition written");
    let planned = 8 * 3 * 3;
    // Files of this run may have 50 KiB: enough for the plan and the first records only.
    let output = Command::new("bash")
        .args(["-c", "ulimit -f 50; exec \"$0\" run \"$1\" --out \"$2\""])
        .arg(env!("CARGO_BIN_EXE_heaplab"))
        .arg(&file)
        .arg(dir.path().join("run"))
        .output()
        .expect("bash starts");
    let message = err(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("records.jsonl") && message.contains("--resume"),
        "{message}"
    );
    let kept = records(&dir.path().join("run")).len();
    assert!((1..planned).contains(&kept), "{kept}: {message}");
    assert_eq!(resume(dir.path()).status.code(), Some(0));
    let all = records(&dir.path().join("run"));
    assert_eq!(all.len(), planned);
    assert!(
        all.iter().enumerate().all(
            |(number, record)| record.trial as usize == number && record.outcome == Outcome::Ok
        )
    );
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let dir = TempDir::new().expect("a temporary folder");
    let shut = dir.path().join("shut");
    fs::create_dir(&shut).expect("made");
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o555)).expect("permissions");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let program = dir.path().join("heaplab");
    fs::copy(env!("CARGO_BIN_EXE_heaplab"), &program).expect("copied");
    // Root may write everywhere, so nobody tries.
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    if !rustix::process::getuid().is_root() {
        command = Command::new("env");
    }
    let output = command
        .arg(&program)
        .args(["run", "growth-today", "--quick", "--out"])
        .arg(shut.join("run"))
        .output()
        .expect("starts");
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("shut/run"), "{}", err(&output));
}

#[test]
fn a_finished_run_is_not_run_again_and_another_build_does_not_go_on_with_it() {
    let ran = Ran::new(&plan(), &[]);
    let again = resume(ran.dir.path());
    assert_eq!(again.status.code(), Some(0), "{}", err(&again));
    assert!(err(&again).contains("16 of them done"), "{}", err(&again));
    assert!(!out(&again).is_empty(), "the tables are shown again");
    let plan_file = ran.folder().join("plan.json");
    let other = fs::read_to_string(&plan_file)
        .expect("a plan")
        .replace(heaplab::SOURCE_HASH, "0123");
    fs::write(&plan_file, other).expect("written");
    let refused = resume(ran.dir.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("other sources"), "{}", err(&refused));
}
