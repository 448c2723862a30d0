//! The child makes no call into the heap under test of its own accord while it measures.
//!
//! The arm `audit` takes over the C library's malloc for its whole process and counts every call that comes while the
//! measured region runs: the workload's, the Rust runtime's, the C library's. That count must be the driver's own.

mod common;

use common::{Ran, definition, err, metric};
use heaplab::record::TrialRecord;
use heaplab::trial::Outcome;
use std::fs;

const WALKER_MODES: [&str; 7] = [
    "concat",
    "concat-lines",
    "concat-copy",
    "list",
    "vec2x",
    "chunks",
    "join",
];

/// Runs one cell under the audit, in both protocols: the census, then the time trial.
fn audited(workload: &str, params: &str) -> (TrialRecord, TrialRecord) {
    let text = definition(
        workload,
        params,
        "\"audit\"",
        "\"census\", \"time\"",
        "blocks = 1",
    );
    let ran = Ran::new(&text, &[]);
    let records = ran.records();
    let of = |protocol: &str| -> TrialRecord {
        let found: Vec<_> = records
            .iter()
            .filter(|record| record.protocol.name() == protocol)
            .collect();
        assert_eq!(found.len(), 1, "{workload} {params}: {}", err(&ran.output));
        assert_eq!(found[0].outcome, Outcome::Ok, "{workload} {params}");
        found[0].clone()
    };
    (of("census"), of("time"))
}

/// The driver's own count.
fn driven(census: &TrialRecord) -> u64 {
    ["malloc_calls", "realloc_calls", "free_calls"]
        .iter()
        .map(|name| metric(census, name))
        .sum()
}

/// Holds if every call of both trials was one of the driver's.
fn nothing_else(workload: &str, params: &str) {
    let (census, time) = audited(workload, params);
    let driven = driven(&census);
    assert!(driven > 0, "{workload} {params} calls nothing");
    assert_eq!(
        metric(&census, "audited_calls"),
        driven,
        "{workload} {params}, census: the process's calls against the driver's"
    );
    assert_eq!(
        metric(&time, "audited_calls"),
        driven,
        "{workload} {params}, time: the process's calls against the census"
    );
    assert_eq!(census.checksum_ops, time.checksum_ops);
}

#[test]
fn the_walker_calls_nothing_of_its_own_over_a_corpus() {
    for mode in WALKER_MODES {
        nothing_else(
            "walker",
            &format!("mode = \"{mode}\", corpus = \"text\", size = \"64KiB\""),
        );
    }
}

#[test]
fn the_walker_calls_nothing_of_its_own_over_files() {
    let root = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(root.path().join("sub")).expect("a folder");
    for (name, contents) in [
        ("a.txt", "one\ntwo\nthree, without an end"),
        ("empty", ""),
        ("sub/b.txt", &"a line of some length\n".repeat(1000)),
        ("sub/c.bin", "\0\u{1}\n\n\n\0"),
    ] {
        fs::write(root.path().join(name), contents).expect("a file");
    }
    std::os::unix::fs::symlink("a.txt", root.path().join("link")).expect("a link");
    for mode in WALKER_MODES {
        nothing_else(
            "walker",
            &format!("mode = \"{mode}\", root = \"{}\"", root.path().display()),
        );
    }
}

#[test]
fn growth_calls_nothing_of_its_own() {
    for shape in ["one", "two", "pinned"] {
        nothing_else("growth", &format!("shape = \"{shape}\", size = \"256KiB\""));
    }
}

/// Of this workload only the pairs lie in the region: the live blocks are made before it and freed after it.
#[test]
fn pairs_call_nothing_of_their_own() {
    for shape in ["random", "fifo", "stack", "batch-lifo", "batch-random"] {
        let params = format!("shape = \"{shape}\", live = \"1k\", pairs = \"5k\", batch = \"700\"");
        let (census, time) = audited("pairs", &params);
        assert_eq!(driven(&census), 2 * 6000, "{shape}");
        for record in [&census, &time] {
            assert_eq!(metric(record, "audited_calls"), 2 * 5000, "{shape}");
        }
        assert_eq!(census.checksum_ops, time.checksum_ops);
    }
}

/// Nor do these: what stands on the stack is made before the region and freed after it.
#[test]
fn rounds_at_an_edge_call_nothing_of_their_own() {
    for (workload, params, live, pairs) in [
        ("arena-edge", "blocks = \"1k\", rounds = \"3k\"", 1000, 3000),
        (
            "push-pop",
            "live = \"1k\", depth = \"30\", rounds = \"100\"",
            1000,
            3000,
        ),
    ] {
        let (census, time) = audited(workload, params);
        assert_eq!(driven(&census), 2 * (live + pairs), "{workload}");
        for record in [&census, &time] {
            assert_eq!(metric(record, "audited_calls"), 2 * pairs, "{workload}");
        }
        assert_eq!(census.checksum_ops, time.checksum_ops);
    }
}

#[test]
fn bursts_and_lines_call_nothing_of_their_own() {
    for order in ["lifo", "random"] {
        let params = format!("blocks = \"2k\", order = \"{order}\", idle = \"5ms\", ops = \"500\"");
        nothing_else("burst-idle", &params);
    }
    for mode in ["reuse", "per-line", "keep-all", "append"] {
        let params = format!("mode = \"{mode}\", lines = \"2k\", passes = \"2\"");
        nothing_else("lines", &params);
    }
}

/// Of this one only the steps do: each makes an instance of three blocks and drops one.
#[test]
fn objects_call_nothing_of_their_own() {
    let (census, time) = audited(
        "object-churn",
        "mix = \"instances\", objects = \"5k\", live = \"100\"",
    );
    assert_eq!(driven(&census), 2 * 3 * 5100);
    for record in [&census, &time] {
        assert_eq!(metric(record, "audited_calls"), 2 * 3 * 5000);
    }
    assert_eq!(census.checksum_ops, time.checksum_ops);
}

/// One call of the C library's own in the middle of the region is seen: the arm `audit-strdup` makes it.
#[test]
fn one_call_more_is_noticed() {
    let text = definition(
        "growth",
        "size = \"64KiB\"",
        "\"audit-strdup\"",
        "\"census\"",
        "",
    );
    let census = Ran::new(&text, &[]).record();
    assert_eq!(census.outcome, Outcome::Ok);
    assert_eq!(
        metric(&census, "audited_calls"),
        driven(&census) + 2,
        "strdup's malloc and the free of what it returned"
    );
}
