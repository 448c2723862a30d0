//! What the harness itself costs: at most 2 instructions an operation more than a loop written by hand in C over the
//! same stream.
//!
//! Both run under callgrind, which counts only while the loop's function is running: `growth` in steps of 70 bytes,
//! `walker` in mode concat and `pairs` in two shapes, each in time trials of the arm `null` on one side, and `harness_cost/loop.c` over a C twin
//! of that arm on the other. Instructions of the heap and of the C library are counted on both sides. The figures are
//! printed: `cargo test --release -p heaplab --test harness_cost -- --nocapture`.

use heaplab::SOURCE_HASH;
use heaplab::input::corpus::Corpus;
use heaplab::input::lines;
use heaplab::trial::{ChildReport, Outcome, Params, Protocol, SCHEMA, Thp, TrialSpec};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Instructions an operation that the harness may cost.
const BUDGET: f64 = 2.0;
/// Bytes of both inputs.
const SIZE: usize = 4 << 20;
const SIZE_IN_WORDS: &str = "4MiB";
const STEP: usize = 70;
const SEED: u64 = 1;

/// Instructions by where they were executed.
#[derive(Debug, Default)]
struct Instructions {
    total: u64,
    /// In the heap's entry points.
    heap: u64,
    /// In memcpy and memset.
    libc: u64,
}

/// Runs `program` under callgrind and counts while a function whose mangled name matches `during` is running. Returns
/// what the program printed, too.
fn count(
    program: &Path,
    arguments: &[&str],
    input: &[u8],
    during: &str,
) -> (Instructions, Vec<u8>) {
    let folder = TempDir::new().expect("a temporary folder");
    let profile = folder.path().join("callgrind.out");
    let mut child = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--quiet",
            "--demangle=no",
            "--compress-strings=no",
            "--compress-pos=no",
        ])
        .arg(format!("--toggle-collect={during}"))
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|why| panic!("valgrind does not start ({why})\napt-get install valgrind"));
    if let Some(mut stdin) = child.stdin.take() {
        // Who reads no input may have closed it already.
        let _ = stdin.write_all(input);
    }
    let output = child.wait_with_output().expect("it ends");
    let shown = program.display();
    assert!(output.status.success(), "{shown}: {}", output.status);
    let instructions = read_profile(&fs::read_to_string(&profile).expect("a profile"));
    assert!(
        instructions.total > 0,
        "{shown}: no function matches {during}"
    );
    (instructions, output.stdout)
}

/// Adds up a profile in callgrind's format: `fn=` lines, each followed by lines of a position and a count. The line
/// after a `calls=` line is what the callee took, and stands with the callee as well.
fn read_profile(profile: &str) -> Instructions {
    let mut found = Instructions::default();
    let mut function = "";
    let mut in_callee = false;
    for line in profile.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            function = name;
        } else if line.starts_with("calls=") {
            in_callee = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            if std::mem::take(&mut in_callee) {
                continue;
            }
            let cost: u64 = line
                .split(' ')
                .nth(1)
                .and_then(|count| count.parse().ok())
                .unwrap_or_else(|| panic!("not a line of costs: {line}"));
            found.total += cost;
            if function.starts_with("heaplab_null_") || function.starts_with("null_") {
                found.heap += cost;
            } else if function.contains("memcpy")
                || function.contains("memmove")
                || function.contains("memset")
            {
                found.libc += cost;
            }
        }
    }
    let total = profile
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))
        .and_then(|total| total.trim().parse().ok());
    assert_eq!(Some(found.total), total, "the lines add up to the total");
    found
}

/// The harness's side: one time trial of `null`. Returns the operations, too.
fn harness(workload: &str, params: &[(&str, &str)], during: &str) -> (Instructions, u64) {
    let params: Params = params
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let spec = TrialSpec {
        schema: SCHEMA,
        source_hash: SOURCE_HASH.to_owned(),
        arm: "null".to_owned(),
        knobs: Vec::new(),
        workload: workload.to_owned(),
        params,
        protocol: Protocol::Time,
        seed: SEED,
        thp: Thp::AsIs,
        soft_limit_ms: 600_000,
        memory_limit: None,
        log_moves: 0,
        verify: false,
    };
    let orders = serde_json::to_vec(&spec).expect("orders as JSON");
    let child = Path::new(env!("CARGO_BIN_EXE_child_limits"));
    let (instructions, said) = count(child, &[], &orders, during);
    let report: ChildReport = serde_json::from_slice(&said).expect("a report");
    assert_eq!(report.outcome, Outcome::Ok);
    (instructions, report.metrics["ops"])
}

/// Compiles the C side as a C programmer would ship it; without PLT, as Rust calls the C library.
fn compiled(into: &Path) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harness_cost");
    let program = into.join("loop");
    let compiled = Command::new("cc")
        .args(["-O2", "-fno-plt", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .args([sources.join("loop.c"), sources.join("null.c")])
        .output()
        .unwrap_or_else(|why| panic!("cc does not start ({why})\napt-get install gcc libc6-dev"));
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}");
    program
}

/// Prints both sides and checks the difference.
fn compare(what: &str, ops: u64, harness: &Instructions, by_hand: &Instructions) {
    let each = |count: u64| count as f64 / ops as f64;
    let row = |who: &str, counted: &Instructions| {
        let own = counted.total - counted.heap - counted.libc;
        println!(
            "{what}: {who} {:.3} instructions an operation: {:.3} its own, {:.3} heap, {:.3} memcpy and memset",
            each(counted.total),
            each(own),
            each(counted.heap),
            each(counted.libc)
        );
    };
    row("heaplab", harness);
    row("C loop ", by_hand);
    let difference = each(harness.total) - each(by_hand.total);
    println!("{what}: difference {difference:.3} over {ops} operations, at most {BUDGET}");
    assert!(
        difference <= BUDGET,
        "{what}: the harness costs {difference:.3}"
    );
    // Both sides did the same: else the difference would mean nothing.
    for (part, ours, theirs) in [
        ("heap", harness.heap, by_hand.heap),
        ("memcpy and memset", harness.libc, by_hand.libc),
    ] {
        let apart = (each(ours) - each(theirs)).abs();
        assert!(
            (theirs > 0 || part != "heap") && apart < 0.5,
            "{what}: {part} differs by {apart:.3}"
        );
    }
}

#[test]
fn growth_costs_at_most_two_instructions_more_than_in_c() {
    let folder = TempDir::new().expect("a temporary folder");
    let step = STEP.to_string();
    let params = [
        ("shape", "one"),
        ("size", SIZE_IN_WORDS),
        ("step", step.as_str()),
    ];
    let (ours, ops) = harness("growth", &params, "*6growth4grow*");
    assert_eq!(ops, SIZE.div_ceil(STEP) as u64);
    let arguments = ["growth", &step, &ops.to_string()];
    let (by_hand, said) = count(&compiled(folder.path()), &arguments, b"", "grow");
    assert!(String::from_utf8_lossy(&said).starts_with(&format!("{} ", ops as usize * STEP)));
    compare("growth", ops, &ours, &by_hand);
}

#[test]
fn concat_costs_at_most_two_instructions_more_than_in_c() {
    let folder = TempDir::new().expect("a temporary folder");
    let mut text = vec![0; SIZE];
    Corpus::Text.fill(SEED, &mut text);
    let mut lengths = Vec::new();
    lines::split(&text, &mut lengths).expect("small enough");
    let table: Vec<u8> = lengths
        .iter()
        .flat_map(|length| length.to_ne_bytes())
        .collect();
    let (text_file, table_file) = (folder.path().join("text"), folder.path().join("lengths"));
    fs::write(&text_file, &text).expect("the text");
    fs::write(&table_file, table).expect("the lengths");

    let params = [
        ("mode", "concat"),
        ("corpus", "text"),
        ("size", SIZE_IN_WORDS),
        ("file-limit", "0s"),
    ];
    let (ours, ops) = harness("walker", &params, "*6walker10keep_lines*");
    assert_eq!(ops, lengths.len() as u64);
    let paths = [&text_file, &table_file].map(|path| path.to_str().expect("a path in UTF-8"));
    let arguments = ["concat", paths[0], paths[1]];
    let (by_hand, said) = count(&compiled(folder.path()), &arguments, b"", "keep_lines");
    assert!(String::from_utf8_lossy(&said).starts_with(&format!("{} ", SIZE + 33)));
    compare("walker concat", ops, &ours, &by_hand);
}

/// A pair is two operations. The live blocks are made, and freed at the end, outside of the loop that is counted.
fn pairs_against(shape: &str, by_hand: &str) {
    const LIVE: &str = "1000";
    const PAIRS: u64 = 100_000;
    let folder = TempDir::new().expect("a temporary folder");
    let count_in_words = PAIRS.to_string();
    let params = [
        ("shape", shape),
        ("live", LIVE),
        ("pairs", count_in_words.as_str()),
        ("batch", LIVE),
    ];
    let (ours, ops) = harness("pairs", &params, "*5pairs5churn*");
    assert_eq!(ops, PAIRS);
    let arguments = [by_hand, LIVE, &count_in_words];
    let (theirs, said) = count(&compiled(folder.path()), &arguments, b"", by_hand);
    assert!(String::from_utf8_lossy(&said).starts_with(&format!("{PAIRS} ")));
    compare(&format!("pairs {shape}"), 2 * ops, &ours, &theirs);
}

#[test]
fn random_pairs_cost_at_most_two_instructions_an_operation_more_than_in_c() {
    pairs_against("random", "refill");
}

#[test]
fn batches_cost_at_most_two_instructions_an_operation_more_than_in_c() {
    pairs_against("batch-random", "batches");
}
