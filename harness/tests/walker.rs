//! The walker over files of every kind: regular files are read, the rest is skipped and counted by reason, and
//! nothing hangs. By running the binary.

mod common;

use common::{Ran, definition, err, metric};
use heaplab::record::TrialRecord;
use heaplab::trial::Outcome;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn walk(root: &Path, mode: &str, rest: &str, arms: &str) -> Vec<TrialRecord> {
    let params = format!("mode = \"{mode}\", root = \"{}\"{rest}", root.display());
    let ran = Ran::new(
        &definition("walker", &params, arms, "\"census\"", "timeout = \"20s\""),
        &[],
    );
    assert_eq!(ran.output.status.code(), Some(0), "{}", err(&ran.output));
    ran.records()
}

fn tree() -> TempDir {
    let dir = TempDir::new().expect("a temporary folder");
    let put = |name: &str, bytes: &[u8]| fs::write(dir.path().join(name), bytes).expect("written");
    put("a-text", b"one line\nand another\n");
    put("b-empty", b"");
    put("c-binary", &[0, 255, 10, 0, 10, 10, 1]);
    put("d-no-newline", &[b'x'; 5000]);
    fs::create_dir_all(dir.path().join("e-folder/deeper")).expect("made");
    put("e-folder/deeper/file", b"below\n");
    fs::write(
        dir.path().join(OsStr::from_bytes(b"f-\xff-name")),
        b"not UTF-8\n",
    )
    .expect("written");
    symlink(dir.path(), dir.path().join("g-loop")).expect("linked");
    symlink("nowhere", dir.path().join("g-dangling")).expect("linked");
    let fifo = dir.path().join("h-fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .expect("mkfifo starts")
            .success()
    );
    UnixListener::bind(dir.path().join("i-socket")).expect("bound");
    dir
}

#[test]
fn regular_files_are_read_and_the_rest_is_counted_by_reason() {
    let dir = tree();
    for mode in [
        "concat",
        "concat-lines",
        "concat-copy",
        "list",
        "vec2x",
        "chunks",
        "join",
    ] {
        let records = walk(
            dir.path(),
            mode,
            "",
            "\"system\", \"bump\", \"null\", \"tcmalloc-2007\"",
        );
        for record in &records {
            assert_eq!(record.outcome, Outcome::Ok, "{mode} under {}", record.arm);
            let rows: Vec<(&str, u64, u64)> = record
                .files
                .iter()
                .map(|row| (row.path.as_str(), row.bytes, row.lines))
                .collect();
            let expected = [
                ("a-text", 21, 2),
                ("b-empty", 0, 0),
                ("c-binary", 7, 4),
                ("d-no-newline", 5000, 1),
                ("e-folder/deeper/file", 6, 1),
                ("f-\u{fffd}-name", 10, 1),
            ];
            assert_eq!(rows, expected, "{mode}");
            let skipped: Vec<(&str, u64)> = record
                .skipped
                .iter()
                .map(|(why, n)| (why.as_str(), *n))
                .collect();
            assert_eq!(
                skipped,
                [("fifo", 1), ("socket", 1), ("symlink", 2)],
                "{mode}"
            );
            assert_eq!(metric(record, "appended_bytes"), 5044);
            assert_eq!(record.checksum_ops, records[0].checksum_ops);
        }
        // What was read back is what was read in, under every allocator that keeps contents.
        assert!(
            records
                .iter()
                .filter(|r| r.arm != "null")
                .all(|r| r.checksum_contents == r.input_hash)
        );
        assert_eq!(records[2].checksum_contents, None);
    }
}

#[test]
fn one_regular_file_can_be_the_root() {
    let dir = tree();
    let records = walk(&dir.path().join("a-text"), "concat", "", "\"system\"");
    assert_eq!((records[0].files.len(), records[0].files[0].lines), (1, 2));
}

#[test]
fn devices_are_not_opened() {
    let dir = tree();
    // /dev/null's numbers; making the node needs root, which CI has.
    let node = dir.path().join("j-device");
    let made = Command::new("mknod")
        .arg(&node)
        .args(["c", "1", "3"])
        .status()
        .expect("mknod starts")
        .success();
    let skipped = walk(dir.path(), "concat", "", "\"system\"")[0]
        .skipped
        .clone();
    assert_eq!(
        skipped.get("char-device"),
        made.then_some(&1),
        "{skipped:?}"
    );
    assert!(
        made || !rustix::process::getuid().is_root(),
        "root can make a device node"
    );
}

#[test]
fn a_file_that_may_not_be_read_is_counted() {
    // Root may read everything, so the walk is done by nobody, from a folder that nobody may read.
    let dir = TempDir::new().expect("a temporary folder");
    let (files, run) = (dir.path().join("files"), dir.path().join("run"));
    fs::create_dir(&files).expect("made");
    fs::create_dir(&run).expect("made");
    fs::write(files.join("open"), "yes\n").expect("written");
    fs::write(files.join("shut"), "no\n").expect("written");
    fs::create_dir(files.join("shut-folder")).expect("made");
    for (path, mode) in [
        (files.join("shut"), 0o000),
        (files.join("shut-folder"), 0o000),
        (run.clone(), 0o777),
    ] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
    }
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let params = format!("root = \"{}\"", files.display());
    let file = dir.path().join("toy.toml");
    fs::write(
        &file,
        definition("walker", &params, "\"system\"", "\"census\"", ""),
    )
    .expect("written");

    // The binaries may lie where nobody may go, so they are copied to where nobody may.
    let built = Path::new(env!("CARGO_BIN_EXE_heaplab"))
        .parent()
        .expect("a folder");
    for name in ["heaplab", "child_system"] {
        fs::copy(built.join(name), dir.path().join(name)).expect("copied");
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    if !rustix::process::getuid().is_root() {
        command = Command::new("env");
    }
    let output = command
        .arg(dir.path().join("heaplab"))
        .arg("run")
        .arg(&file)
        .arg("--out")
        .arg(run.join("out"))
        .env_remove("HEAPLAB_CHILDREN")
        .output()
        .expect("starts");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let record = &common::records(&run.join("out"))[0];
    assert_eq!(record.files.len(), 1);
    assert_eq!(
        record.skipped.get("permission-denied"),
        Some(&1),
        "{:?}",
        record.skipped
    );
    assert_eq!(
        record.skipped.get("unreadable-directory"),
        Some(&1),
        "{:?}",
        record.skipped
    );
    // So that the temporary folder can be removed by whoever made it.
    fs::set_permissions(files.join("shut-folder"), fs::Permissions::from_mode(0o755))
        .expect("permissions");
}

#[test]
fn a_file_over_its_time_limit_is_given_up_and_the_walk_goes_on() {
    let dir = TempDir::new().expect("a temporary folder");
    // At a millisecond a call, a hundred lines a file are over 20 ms, and the third is not.
    for (name, lines) in [("a", 2000), ("b", 2000), ("c", 3)] {
        fs::write(dir.path().join(name), "line\n".repeat(lines)).expect("written");
    }
    let record = &walk(
        dir.path(),
        "concat",
        ", file-limit = \"20ms\"",
        "\"faulty-slow\"",
    )[0];
    assert_eq!(record.outcome, Outcome::TimedOut { after_ms: 20 });
    let ended: Vec<&str> = record.files.iter().map(|row| row.ended.as_str()).collect();
    assert_eq!(ended, ["timed-out", "timed-out", "ok"]);
    assert_eq!(record.skipped.get("over-time-limit"), Some(&2));
    assert!(
        record.files[0].reached_bytes > 0 && record.files[0].reached_bytes < record.files[0].bytes
    );
}

#[test]
fn a_made_directory_is_walked_as_a_real_one() {
    let made = |files: &str, seed: &str, arms: &str| {
        let params = format!("mode = \"concat-lines\", corpus = \"text\", size = \"64KiB\"{files}");
        let text = definition("walker", &params, arms, "\"census\"", "");
        let ran = Ran::new(&text, &["--seed", seed]);
        assert_eq!(ran.output.status.code(), Some(0), "{}", err(&ran.output));
        ran.records()
    };
    let records = made(", files = \"3\"", "1", "\"system\", \"jemalloc\", \"null\"");
    for record in &records {
        assert_eq!(record.outcome, Outcome::Ok, "{}", record.arm);
        let paths: Vec<&str> = record.files.iter().map(|row| row.path.as_str()).collect();
        assert_eq!(paths, ["corpus:text/1", "corpus:text/2", "corpus:text/3"]);
        for row in &record.files {
            assert_eq!(
                (row.bytes, row.reached_bytes, row.ended.as_str()),
                (65_536, 65_536, "ok")
            );
        }
        let sum =
            |of: fn(&heaplab::trial::FileRow) -> u64| record.files.iter().map(of).sum::<u64>();
        assert_eq!(sum(|row| row.lines), metric(record, "ops"));
        assert_eq!(
            sum(|row| row.moved_bytes.expect("census")),
            metric(record, "moved_bytes")
        );
        assert_eq!(metric(record, "appended_bytes"), 3 * 65_536);
        // Everything is dropped before the next: a file, its header and two lines at most.
        assert!(metric(record, "peak_live_bytes") < 65_536 + 33 + 2 * (33 + 120));
        assert_eq!(record.checksum_ops, records[0].checksum_ops);
        assert_eq!(record.input_hash, records[0].input_hash);
    }
    let lines: Vec<u64> = records[0].files.iter().map(|row| row.lines).collect();
    assert!(
        lines[0] != lines[1] || lines[1] != lines[2],
        "each another text: {lines:?}"
    );
    let hash = |files: &str, seed: &str| made(files, seed, "\"system\"")[0].input_hash.clone();
    assert_eq!(hash(", files = \"3\"", "1"), records[0].input_hash);
    assert_ne!(hash(", files = \"3\"", "2"), records[0].input_hash);
    // One file of a directory is the text that stands alone.
    assert_eq!(hash(", files = \"1\"", "1"), hash("", "1"));
    assert_ne!(hash(", files = \"2\"", "1"), hash("", "1"));
}

#[test]
fn a_made_file_over_its_time_limit_does_not_end_the_walk() {
    let params = "mode = \"concat\", corpus = \"nl256\", size = \"64KiB\", files = \"2\", file-limit = \"20ms\"";
    let text = definition(
        "walker",
        params,
        "\"faulty-slow\"",
        "\"census\"",
        "timeout = \"20s\"",
    );
    let record = Ran::new(&text, &[]).record();
    assert_eq!(record.outcome, Outcome::TimedOut { after_ms: 20 });
    let ended: Vec<&str> = record.files.iter().map(|row| row.ended.as_str()).collect();
    assert_eq!(ended, ["timed-out", "timed-out"]);
    assert_eq!(record.skipped.get("over-time-limit"), Some(&2));
}

#[test]
fn a_made_directory_too_large_for_the_machine_is_unavailable_with_the_estimate() {
    // What never frees would keep every copy of every prefix of every file.
    let params = "mode = \"concat-lines\", corpus = \"text\", size = \"1GiB\", files = \"3\"";
    let text = definition("walker", params, "\"bump\"", "\"census\"", "");
    let ran = Ran::new(&text, &[]);
    assert_eq!(ran.output.status.code(), Some(3), "{}", err(&ran.output));
    match ran.record().outcome {
        Outcome::Unavailable { why } => assert!(
            why.contains("needs about") && why.contains("TiB by estimate"),
            "{why}"
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_walk_that_reads_nothing_has_measured_nothing() {
    let dir = TempDir::new().expect("a temporary folder");
    symlink("nowhere", dir.path().join("dangling")).expect("linked");
    let params = format!("root = \"{}\"", dir.path().display());
    let ran = Ran::new(
        &definition("walker", &params, "\"system\"", "\"census\"", ""),
        &[],
    );
    assert_eq!(ran.output.status.code(), Some(3), "{}", err(&ran.output));
    let record = ran.record();
    match &record.outcome {
        Outcome::Failed { message, .. } => {
            assert!(
                message.contains("no regular file") && message.contains("symlink 1"),
                "{message}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(
        record.metrics.is_empty() && record.absent.is_empty(),
        "{record:?}"
    );
}

#[test]
fn input_that_changes_during_a_run_is_not_blamed_on_an_allocator() {
    let dir = TempDir::new().expect("a temporary folder");
    let file = dir.path().join("log");
    fs::write(&file, "one\n").expect("written");
    let params = format!("root = \"{}\"", file.display());
    let text = definition("walker", &params, "\"system\", \"bump\"", "\"census\"", "");
    let first = Ran::new(&text, &[]);
    assert_eq!(
        first.output.status.code(),
        Some(0),
        "{}",
        err(&first.output)
    );
    // The second trial is taken back and run again on other input.
    let records = first.folder().join("records.jsonl");
    let whole = fs::read_to_string(&records).expect("records");
    let line = whole.lines().next().expect("a record").to_owned() + "\n";
    fs::write(&records, line).expect("written");
    fs::write(&file, "one\ntwo\n").expect("written");
    let output = common::said(&["run", "--resume", first.folder().to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    match &first.records()[1].outcome {
        Outcome::Failed { message, .. } => assert!(message.contains("input changed"), "{message}"),
        other => panic!("{other:?}"),
    }
}
