//! What the tests of the binary share.
#![allow(dead_code, reason = "each test binary uses its own part")]

use heaplab::record::TrialRecord;
use heaplab::trial::{Protocol, SCHEMA, Thp, TrialSpec};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The binary under test, with nothing of the tester's environment that could change its output.
pub fn heaplab() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heaplab"));
    command.env_remove("HEAPLAB_CHILDREN").env("COLUMNS", "200");
    command
}

/// Runs `heaplab` with `arguments` and gives what it said.
pub fn said(arguments: &[&str]) -> Output {
    heaplab().args(arguments).output().expect("heaplab starts")
}

/// Standard output as text.
pub fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("output is UTF-8")
}

/// Standard error as text.
pub fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("messages are UTF-8")
}

/// A temporary folder with a run in it, made from a definition's text.
pub struct Ran {
    /// Keeps the folder.
    pub dir: TempDir,
    /// What `heaplab run` said.
    pub output: Output,
}

/// One grid as TOML; `arms` and `params` are TOML as well.
pub fn definition(workload: &str, params: &str, arms: &str, protocols: &str, rest: &str) -> String {
    format!(
        "id = \"toy\"\ntitle = \"a toy\"\nanalysis = \"none\"\n[[grid]]\nname = \"g\"\nworkload = \"{workload}\"\n\
         params = {{ {params} }}\narms = [{arms}]\nprotocols = [{protocols}]\n{rest}\n"
    )
}

impl Ran {
    /// Runs `definition` with further arguments.
    pub fn new(definition: &str, arguments: &[&str]) -> Ran {
        Ran::by(heaplab(), definition, arguments)
    }

    /// As [`Ran::new`], by a command that was prepared.
    pub fn by(mut heaplab: Command, definition: &str, arguments: &[&str]) -> Ran {
        let dir = TempDir::new().expect("a temporary folder");
        let file = dir.path().join("toy.toml");
        fs::write(&file, definition).expect("definition written");
        let output = heaplab
            .arg("run")
            .arg(&file)
            .arg("--out")
            .arg(dir.path().join("run"))
            .args(arguments)
            .output();
        Ran {
            dir,
            output: output.expect("heaplab starts"),
        }
    }

    /// The run's folder.
    pub fn folder(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    /// Its records.
    pub fn records(&self) -> Vec<TrialRecord> {
        records(&self.folder())
    }

    /// The only record.
    pub fn record(&self) -> TrialRecord {
        let mut records = self.records();
        assert_eq!(records.len(), 1, "{}", err(&self.output));
        records.remove(0)
    }
}

/// The records in a run's folder.
pub fn records(folder: &Path) -> Vec<TrialRecord> {
    fs::read_to_string(folder.join("records.jsonl"))
        .expect("records are there")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect()
}

/// A metric of a record.
pub fn metric(record: &TrialRecord, name: &str) -> u64 {
    *record
        .metrics
        .get(name)
        .unwrap_or_else(|| panic!("{} has no {name}: {record:?}", record.arm))
}

/// Asks a child directly, as `run` does.
pub fn ask(child: &str, orders: &[u8]) -> Output {
    let built = Path::new(env!("CARGO_BIN_EXE_heaplab")).with_file_name(child);
    let mut child = Command::new(built)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the child starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(orders).expect("written");
    drop(stdin);
    child.wait_with_output().expect("the child ends")
}

/// Whether a child was built without CPython's obmalloc.c. Only somebody who is just trying may do without it: under
/// continuous integration, and in `scripts/test`, it fails.
pub fn obmalloc_missing() -> bool {
    let child = Path::new(env!("CARGO_BIN_EXE_heaplab")).with_file_name("child_obmalloc");
    if !cfg!(feature = "obmalloc") {
        return true;
    }
    let told = Command::new(child)
        .args(["--version", "obmalloc"])
        .output()
        .expect("the child starts");
    if told.status.success() {
        return false;
    }
    let why = err(&told);
    let required = ["CI", "HEAPLAB_REQUIRE_OBMALLOC"]
        .iter()
        .find(|name| std::env::var_os(name).is_some());
    assert!(
        required.is_none(),
        "{required:?} is set, and obmalloc is unavailable: {why}"
    );
    assert!(why.contains("rebuild"), "{why}");
    println!("obmalloc unavailable: {why}");
    true
}

/// Orders for one census trial.
pub fn spec(arm: &str, workload: &str, params: &[(&str, &str)]) -> TrialSpec {
    TrialSpec {
        schema: SCHEMA,
        source_hash: heaplab::SOURCE_HASH.to_owned(),
        arm: arm.to_owned(),
        knobs: Vec::new(),
        workload: workload.to_owned(),
        params: params
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        protocol: Protocol::Census,
        seed: 1,
        thp: Thp::Off,
        soft_limit_ms: 10_000,
        memory_limit: None,
        log_moves: 0,
        verify: false,
    }
}

/// Compiles `harness/tests/preload/SOURCE` into a library in `folder`.
pub fn compiled(folder: &Path, source: &str, options: &[&str]) -> PathBuf {
    let library = folder.join("libmine.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/preload")
        .join(source);
    let compiled = Command::new("cc")
        .args([
            "-O2",
            "-shared",
            "-fPIC",
            "-fno-builtin",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
        ])
        .arg(&library)
        .args(options)
        .arg(source)
        .output()
        .unwrap_or_else(|why| panic!("cc does not start ({why})\napt-get install gcc libc6-dev"));
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}");
    library
}

/// A library that is broken in the way that `harness/tests/preload/broken.c` calls `fault`, and the folder that it is in.
pub fn broken(fault: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a temporary folder");
    let library = compiled(folder.path(), "broken.c", &[&format!("-DFAULT={fault}")]);
    (folder, library)
}

/// Debian's library of a package that scripts/setup installs.
pub fn debian(file: &str) -> PathBuf {
    let library = PathBuf::from(format!(
        "/usr/lib/{}-linux-gnu/{file}",
        std::env::consts::ARCH
    ));
    assert!(
        library.exists(),
        "{} is missing: scripts/setup",
        library.display()
    );
    library
}
