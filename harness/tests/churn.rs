//! The churn workloads against closed forms: calls, live bytes and arenas at each phase, equal under every allocator.

mod common;

use common::{Ran, definition, metric, obmalloc_missing};
use heaplab::record::TrialRecord;
use heaplab::trial::Outcome;

/// One cell of `workload` under each of `arms`, counted.
fn counted(workload: &str, params: &str, arms: &[&str]) -> Vec<TrialRecord> {
    let arms: Vec<String> = arms.iter().map(|arm| format!("\"{arm}\"")).collect();
    let text = definition(workload, params, &arms.join(", "), "\"census\"", "");
    let records = Ran::new(&text, &[]).records();
    for record in &records {
        assert_eq!(record.outcome, Outcome::Ok, "{workload} {}", record.arm);
    }
    records
}

/// Blocks that a list's pointer vector has had when it has grown to `length` by CPython's rule: one malloc, then reallocs.
fn growths(length: u64) -> u64 {
    let (mut room, mut grown) = (0, 0);
    for needed in 1..=length {
        if needed > room {
            room = (needed + (needed >> 3) + 6) & !3;
            grown += 1;
        }
    }
    grown
}

/// Arenas of 256 KiB for `blocks` of `size` bytes in pools of 4 KiB with a header of 48.
fn arenas(blocks: u64, size: u64) -> u64 {
    let in_a_pool = (4096 - 48) / size.next_multiple_of(16);
    blocks.div_ceil(in_a_pool).div_ceil(64)
}

#[test]
fn a_million_lists_in_small() {
    let lists = 20_000;
    for record in counted("million-lists", "lists = \"20k\"", &["system", "jemalloc"]) {
        assert_eq!(metric(&record, "ops"), lists);
        assert_eq!(metric(&record, "malloc_calls"), lists + 1);
        assert_eq!(metric(&record, "realloc_calls"), growths(lists) - 1);
        assert_eq!(metric(&record, "free_calls"), lists + 1);
        assert_eq!(metric(&record, "live_bytes.empty"), 0);
    }
    if obmalloc_missing() {
        return;
    }
    let arm = "obmalloc-classic";
    for size in [64, 80] {
        let params = format!("lists = \"20k\", object = \"{size}\"");
        let record = &counted("million-lists", &params, &[arm])[0];
        let full = metric(record, "arenas_current.full");
        assert_eq!(full, arenas(lists, size));
        assert_eq!(metric(record, "arenas_highwater"), full);
        assert_eq!(metric(record, "arenas_current.empty"), 1);
    }
}

#[test]
fn survivors_of_dicts_in_small() {
    let dicts = 20_000;
    let vector = |length: u64| 8 * length;
    for (survivors, kept) in [
        ("none", 0),
        ("every-2nd", dicts / 2),
        ("second-half", dicts / 2),
        ("every-100th", dicts / 100),
    ] {
        let params = format!("dicts = \"20k\", object = \"80+176\", survivors = \"{survivors}\"");
        for record in counted("dict-retention", &params, &["system", "mimalloc"]) {
            assert_eq!(metric(&record, "ops"), 2 * dicts);
            let cleared = kept * (80 + 176) + vector(kept);
            assert_eq!(
                metric(&record, "live_bytes.cleared"),
                cleared,
                "{survivors}"
            );
            assert_eq!(
                metric(&record, "malloc_calls"),
                metric(&record, "free_calls")
            );
        }
        if obmalloc_missing() {
            continue;
        }
        let record = &counted("dict-retention", &params, &["obmalloc-classic"])[0];
        let of = |blocks: u64| {
            // Two classes, each in pools of its own; the pools share arenas.
            let pools = |size: u64| blocks.div_ceil((4096 - 48) / size);
            (pools(80) + pools(176)).div_ceil(64)
        };
        assert_eq!(metric(record, "arenas_current.filled"), of(dicts));
        let cleared = metric(record, "arenas_current.cleared");
        match survivors {
            "none" => assert_eq!(cleared, 1),
            // Not one arena is empty: a survivor is in each.
            "every-2nd" | "every-100th" => assert_eq!(cleared, of(dicts)),
            // Half, and the arena in which the halves meet, and the one that is kept.
            _ => assert!(cleared.abs_diff(of(dicts) / 2) <= 2, "{cleared}"),
        }
        let refilled = metric(record, "arenas_current.refilled");
        assert!(
            refilled.abs_diff(of(dicts + kept)) <= 1,
            "{survivors}: {refilled}"
        );
    }
}

#[test]
fn survivors_and_a_shift_of_sizes_in_small() {
    let params = "blocks = \"10k\", size = \"100\", every = \"16\"";
    for record in counted("survivors", params, &["system", "jemalloc"]) {
        assert_eq!(metric(&record, "live_bytes.full"), 1_000_000);
        assert_eq!(metric(&record, "live_bytes.thinned"), 10_000 / 16 * 100);
        assert_eq!(metric(&record, "malloc_calls"), 10_000);
        assert_eq!(metric(&record, "free_calls"), 10_000);
    }
    for record in counted("size-shift", "blocks = \"8k\"", &["system", "jemalloc"]) {
        let second = 7000 * 64 / 96;
        assert_eq!(metric(&record, "live_bytes.thinned"), 64_000);
        assert_eq!(metric(&record, "live_bytes.shifted"), 64_000 + second * 96);
        assert_eq!(metric(&record, "malloc_calls"), 8000 + second);
        assert_eq!(metric(&record, "free_calls"), 8000 + second);
    }
}

#[test]
fn packing_settles_alike_everywhere() {
    let params = "blocks = \"20k\", d = \"10\"";
    let records = counted("packing", params, &["system", "jemalloc", "arena"]);
    for name in [
        "live_bytes.replaced",
        "live_bytes.thinned",
        "live_bytes.settled",
        "ops",
    ] {
        let first = metric(&records[0], name);
        assert!(first > 0, "{name}");
        assert!(
            records.iter().all(|record| metric(record, name) == first),
            "{name}"
        );
    }
    // A tenth of the slots, 256.5 bytes each on average, within 5 standard deviations.
    let settled = metric(&records[0], "live_bytes.settled") as f64;
    let deviation = (2000.0_f64 * (148.0 * 148.0 + 0.9 * 256.5 * 256.5)).sqrt();
    assert!(
        (settled - 2000.0 * 256.5).abs() < 5.0 * deviation,
        "{settled}"
    );
    assert_eq!(records[0].checksum_contents, records[2].checksum_contents);
}

#[test]
fn a_crunch_in_small() {
    let things = 20_000;
    let gone = things * 44 / 100;
    let params = "things = \"20k\"";
    for record in counted("memcrunch-like", params, &["system", "mimalloc"]) {
        assert_eq!(metric(&record, "ops"), things);
        assert_eq!(metric(&record, "malloc_calls"), 6 * things);
        assert_eq!(metric(&record, "free_calls"), 6 * things);
        assert_eq!(metric(&record, "live_bytes.grown"), 240 * things);
        assert_eq!(
            metric(&record, "live_bytes.crunched"),
            240 * (things - gone)
        );
    }
    // A temporary of a size that things have takes an arena in vain only at an arena's edge, and only if none is kept.
    let of = |temporaries: &str, arm: &str| {
        let params = format!("things = \"20k\", temporaries = \"{temporaries}\"");
        let record = &counted("memcrunch-like", &params, &[arm])[0];
        [
            "arenas_total.grown",
            "arenas_highwater.grown",
            "arenas_current.crunched",
        ]
        .map(|name| metric(record, name))
    };
    // Pools of 4 KiB: 126 blocks of 32 bytes, 63 of 64, 84 of 48.
    let pools = (2 * things).div_ceil(63) + (2 * things).div_ceil(126) + things.div_ceil(84);
    let arenas = pools.div_ceil(64);
    // Where none is kept the child's own trial of its heap, before the first thing, has taken one and given it back.
    assert_eq!(of("none", "arena-3.8"), [arenas + 1, arenas, arenas]);
    assert_eq!(of("none", "arena-3.9"), [arenas, arenas, arenas]);
    let [total, highwater, _] = of("64", "arena-3.8");
    assert!(
        highwater == arenas && total > arenas + 1,
        "{total} {highwater}"
    );
    assert_eq!(of("64", "arena-3.9"), [arenas, arenas, arenas]);
}

#[test]
fn objects_of_each_kind_in_small() {
    let (objects, live) = (2000, 300);
    let made = objects + live;
    let counted = |mix: &str| {
        let params = format!("mix = \"{mix}\", objects = \"2k\", live = \"300\"");
        counted("object-churn", &params, &["system", "mimalloc", "arena"])
    };
    // Blocks of an object, and their bytes.
    for (mix, blocks, bytes) in [("floats", 1, 24), ("instances", 3, 48 + 48 + 64)] {
        for record in counted(mix) {
            assert_eq!(metric(&record, "ops"), objects);
            assert_eq!(metric(&record, "malloc_calls"), blocks * made);
            assert_eq!(metric(&record, "free_calls"), blocks * made);
            assert_eq!(metric(&record, "realloc_calls"), 0);
            for phase in ["full", "churned"] {
                let name = format!("live_bytes.{phase}");
                assert_eq!(metric(&record, &name), live * bytes, "{mix}");
            }
            assert_eq!(metric(&record, "live_bytes.empty"), 0);
        }
    }
    // Means over the shapes, and five standard deviations of their sum.
    for (mix, name, mean, deviation) in [
        // 4 items fit at first, then 8, then 16; of 16 lengths.
        ("lists", "realloc_calls", 1.25, 0.829),
        // Tables for 5, 10, 21 and 42 keys; of 32 numbers of keys. The dict is one more.
        ("dicts", "malloc_calls", 3.875, 1.054),
        ("strings", "realloc_calls", 1.5, 1.118),
    ] {
        let records = counted(mix);
        let made = made as f64;
        for record in &records {
            let apart = (metric(record, name) as f64 - made * mean).abs();
            assert!(apart < 5.0 * deviation * made.sqrt(), "{mix}: {apart}");
            assert_eq!(record.checksum_ops, records[0].checksum_ops, "{mix}");
            assert_eq!(metric(record, "malloc_calls"), metric(record, "free_calls"));
        }
    }
}
