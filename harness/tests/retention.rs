//! The workloads about what stays resident, against closed forms: calls and live bytes at each phase, equal under every
//! allocator; and the knobs that they ask for.

mod common;

use common::{Ran, definition, metric, obmalloc_missing};
use heaplab::input::lognormal;
use heaplab::record::TrialRecord;
use heaplab::trial::Outcome;
use std::collections::BTreeSet;

/// One cell of `workload` under each of `arms`, by `protocol`.
fn ran(
    workload: &str,
    params: &str,
    arms: &[&str],
    protocol: &str,
    rest: &str,
) -> Vec<TrialRecord> {
    let arms: Vec<String> = arms.iter().map(|arm| format!("\"{arm}\"")).collect();
    let protocols = format!("\"{protocol}\"");
    let text = definition(workload, params, &arms.join(", "), &protocols, rest);
    let records = Ran::new(&text, &[]).records();
    assert_eq!(records.len(), arms.len());
    for record in &records {
        assert_eq!(record.outcome, Outcome::Ok, "{workload} {}", record.arm);
    }
    records
}

fn counted(workload: &str, params: &str, arms: &[&str]) -> Vec<TrialRecord> {
    ran(workload, params, arms, "census", "")
}

/// What a receipt tells of a knob.
fn knob<'r>(record: &'r TrialRecord, name: &str) -> &'r str {
    let receipt = record.receipt.as_ref().expect("a receipt");
    &receipt.knobs[name]
}

#[test]
fn a_burst_in_small() {
    let mut sums = Vec::new();
    for order in ["lifo", "fifo", "random"] {
        let params = format!(
            "blocks = \"5k\", size = \"300\", order = \"{order}\", idle = \"0s\", ops = \"700\""
        );
        for record in counted("burst-idle", &params, &["system", "jemalloc", "arena"]) {
            assert_eq!(metric(&record, "malloc_calls"), 5000 + 1 + 700, "{order}");
            assert_eq!(metric(&record, "free_calls"), 5000 + 1 + 700, "{order}");
            assert_eq!(metric(&record, "realloc_calls"), 0, "{order}");
            assert_eq!(metric(&record, "ops"), 5701, "{order}");
            assert_eq!(metric(&record, "live_bytes.full"), 5000 * 300, "{order}");
            for phase in ["freed", "idle", "one-op", "ops", "empty"] {
                assert_eq!(
                    metric(&record, &format!("live_bytes.{phase}")),
                    0,
                    "{phase}"
                );
            }
            assert_eq!(metric(&record, "peak_live_bytes"), 5000 * 300, "{order}");
            sums.push((record.checksum_ops, record.checksum_contents));
        }
    }
    // Decisions are summed up: the order is none of them.
    sums.dedup();
    assert_eq!(sums.len(), 1, "{sums:?}");
    let params = "blocks = \"5k\", idle = \"0s\", ops = \"0\"";
    let record = &counted("burst-idle", params, &["system"])[0];
    assert_eq!(metric(record, "malloc_calls"), 5000);
}

#[test]
fn sleep_is_neither_measured_nor_limited() {
    let params = "blocks = \"1k\", idle = \"1500ms\", ops = \"10\"";
    let arms = ["system", "jemalloc:background_thread=1"];
    for protocol in ["census", "time", "memory"] {
        let once = "blocks = 1\ntimeout = \"1s\"";
        for record in ran("burst-idle", params, &arms, protocol, once) {
            assert!(record.child_ms >= 1500, "{protocol} {}", record.arm);
            // The trace has the calls of the regions alone.
            assert!(!record.metrics.contains_key("sys.nanosleep"), "{protocol}");
            assert!(
                !record.metrics.contains_key("sys.clock_nanosleep"),
                "{protocol}"
            );
        }
    }
}

#[test]
fn knobs_of_retention_are_what_was_asked() {
    let params = "blocks = \"20k\", order = \"lifo\", idle = \"0s\", ops = \"0\"";
    let arms = [
        "system",
        "system:tcache_count=0",
        "system:tcache_count=3",
        "system:mxfast=0,tcache_count=0",
        "jemalloc",
        "jemalloc:background_thread=1,dirty_decay_ms=0",
    ];
    for protocol in ["memory", "census"] {
        let records = ran("burst-idle", params, &arms, protocol, "");
        let [system, none, three, neither, jemalloc, threads] = &records[..] else {
            panic!("as many records as arms");
        };
        assert!(knob(system, "tcache_count").contains("default"));
        assert!(!system.environment.contains_key("GLIBC_TUNABLES"));
        for (record, count) in [(none, 0), (three, 3), (neither, 0)] {
            assert_eq!(
                knob(record, "tcache_count"),
                format!("{count} (tried when opened)")
            );
            assert_eq!(
                record.environment["GLIBC_TUNABLES"],
                format!("glibc.malloc.tcache_count={count}")
            );
        }
        assert!(knob(neither, "mxfast").starts_with("0 (accepted"));
        assert_eq!(knob(jemalloc, "background_thread"), "false");
        assert_eq!(knob(threads, "background_thread"), "true");
        assert_eq!(knob(threads, "dirty_decay_ms"), "0");
        if protocol == "memory" {
            // The 20,000 blocks lie before what the thread cache pins, if there is one.
            let full = metric(none, "rss.full");
            assert!(metric(system, "rss.freed") > full / 10 * 9, "{system:?}");
            assert!(metric(none, "rss.freed") < full / 10, "{none:?}");
        }
    }
}

/// A collection that grows as Rust's do.
#[derive(Default)]
struct Grown {
    room: u64,
    reallocs: u64,
}

impl Grown {
    fn to(&mut self, needed: u64, least: u64) {
        if needed > self.room {
            self.reallocs += u64::from(self.room > 0);
            self.room = (2 * self.room).max(needed).max(least);
        }
    }
}

/// The pieces in which a reader with a buffer of 8 KiB hands out each line.
fn pieces(lengths: &[u32]) -> Vec<Vec<u64>> {
    let mut at = 0;
    let cut = |length: &u32| {
        let mut left = u64::from(*length);
        let mut pieces = Vec::new();
        while left > 0 {
            let piece = left.min(8192 - at % 8192);
            pieces.push(piece);
            at += piece;
            left -= piece;
        }
        pieces
    };
    lengths.iter().map(cut).collect()
}

#[test]
fn lines_in_small() {
    const PASSES: u64 = 2;
    let lengths = lognormal::lengths(1, 3000);
    let text: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
    let pieces = pieces(&lengths);
    let line = |pieces: &Vec<u64>| {
        let (mut string, mut length) = (Grown::default(), 0);
        for piece in pieces {
            length += piece;
            string.to(length, 8);
        }
        string
    };
    let strings: Vec<Grown> = pieces.iter().map(line).collect();
    let resized: u64 = strings.iter().map(|string| string.reallocs).sum();
    assert!(resized > 5, "some lines lie across the end of the buffer");
    let headers = |count: u64| {
        let mut vector = Grown::default();
        (1..=count).for_each(|needed| vector.to(needed, 4));
        vector
    };
    let kept = |every: usize| {
        let of_a_pass: u64 = strings
            .iter()
            .step_by(every)
            .map(|string| string.room)
            .sum();
        let vector = headers(PASSES * strings.len().div_ceil(every) as u64);
        (PASSES * of_a_pass + 24 * vector.room, vector.reallocs)
    };
    let mut reused = Grown::default();
    let mut joined = Grown::default();
    let mut read = 0;
    for pieces in &pieces {
        let mut length = 0;
        for piece in pieces {
            length += piece;
            reused.to(length, 8);
        }
    }
    for piece in (0..PASSES).flat_map(|_| pieces.iter().flatten()) {
        read += piece;
        joined.to(read, 8);
    }
    assert_eq!(read, PASSES * text);
    let (all, hundredth) = (kept(1), kept(100));
    let each = PASSES * (1 + 3000);
    for (mode, mallocs, reallocs, live) in [
        ("reuse", PASSES * 2, PASSES * reused.reallocs, 0),
        ("per-line", each, PASSES * resized, 0),
        ("keep-all", each + 1, PASSES * resized + all.1, all.0),
        (
            "keep-every-100th",
            each + 1,
            PASSES * resized + hundredth.1,
            hundredth.0,
        ),
        ("append", PASSES + 1, joined.reallocs, joined.room),
    ] {
        let params = format!("mode = \"{mode}\", lines = \"3k\", passes = \"2\"");
        let arms = ["system", "jemalloc", "mimalloc", "arena"];
        let records = counted("lines", &params, &arms);
        for record in &records {
            assert_eq!(metric(record, "ops"), PASSES * 3000, "{mode}");
            assert_eq!(metric(record, "malloc_calls"), mallocs, "{mode}");
            assert_eq!(metric(record, "free_calls"), mallocs, "{mode}");
            assert_eq!(metric(record, "realloc_calls"), reallocs, "{mode}");
            assert_eq!(metric(record, "live_bytes.kept"), live, "{mode}");
            assert_eq!(metric(record, "live_bytes.empty"), 0, "{mode}");
            // Every byte goes from the reader's buffer into a string, once.
            assert_eq!(
                metric(record, "client_copied_bytes"),
                PASSES * text,
                "{mode}"
            );
            assert_eq!(record.checksum_ops, records[0].checksum_ops, "{mode}");
            assert!(record.checksum_contents.is_some(), "{mode}");
            assert_eq!(record.checksum_contents, record.input_hash, "{mode}");
        }
    }
}

/// Arms with arenas of 256 KiB, so of 64 pools.
fn small_arenas() -> Vec<&'static str> {
    let mut arms = vec!["arena-3.9:aligned=1"];
    if !obmalloc_missing() {
        arms.push("obmalloc-classic:aligned=1");
    }
    arms
}
const POOLS: u64 = 64;
/// Blocks of `size` bytes in a pool of 4 KiB with its header.
fn in_a_pool(size: u64) -> u64 {
    (4096 - 48) / size
}

/// How many units of `blocks` blocks each have one of every `every`th block of `count`.
fn touched(count: u64, every: u64, blocks: u64) -> u64 {
    let units = (0..count)
        .step_by(every as usize)
        .map(|block| block / blocks);
    units.collect::<BTreeSet<u64>>().len() as u64
}

#[test]
fn an_arena_stays_for_one_survivor() {
    let (count, in_an_arena) = (20_000_u64, POOLS * in_a_pool(512));
    assert_eq!(in_an_arena, 448);
    for every in [16, 448, 512, 3000] {
        let params = format!("blocks = \"20k\", size = \"512\", every = \"{every}\"");
        for record in counted("survivors", &params, &small_arenas()) {
            let full = metric(&record, "arenas_current.full");
            assert_eq!(full, count.div_ceil(in_an_arena));
            let left = metric(&record, "arenas_current.thinned");
            assert_eq!(
                left,
                touched(count, every, in_an_arena),
                "{every} {}",
                record.arm
            );
        }
    }
}

#[test]
fn a_pool_without_a_survivor_serves_another_size() {
    let count = 50_000_u64;
    for every in [8, 63, 200, 1000] {
        let params = format!("blocks = \"50k\", every = \"{every}\"");
        for record in counted("size-shift", &params, &small_arenas()) {
            let kept = touched(count, every, in_a_pool(64));
            let second = (count - count.div_ceil(every)) * 64 / 96;
            let needed = (kept + second.div_ceil(in_a_pool(96))).div_ceil(POOLS);
            let held = metric(&record, "arenas_current.shifted");
            assert_eq!(held, needed, "{every} {}", record.arm);
        }
    }
}
