//! CPython's obmalloc in a run: each backing in its child, its figures in the record, its absence by name.
#![cfg(feature = "obmalloc")]

mod common;

use common::{Ran, definition, err, metric, obmalloc_missing, said};
use heaplab::record::TrialRecord;
use heaplab::trial::Outcome;

/// One block grown to a mebibyte under each of `arms`, counted.
fn grown(arms: &[&str]) -> Vec<TrialRecord> {
    let arms: Vec<String> = arms.iter().map(|arm| format!("\"{arm}\"")).collect();
    let text = definition(
        "growth",
        "size = \"1MiB\"",
        &arms.join(", "),
        "\"census\"",
        "",
    );
    let mut records = Ran::new(&text, &[]).records();
    records.sort_by_key(|record| arms.iter().position(|arm| arm.contains(&record.arm)));
    records
}

fn fact<'a>(record: &'a TrialRecord, name: &str) -> &'a str {
    let receipt = record.receipt.as_ref().expect("a receipt");
    let mut told = receipt.facts.iter().chain(&receipt.knobs);
    let found = told.find(|(told, _)| *told == name);
    found.map_or_else(|| panic!("{name}: {receipt:?}"), |(_, value)| value)
}

#[test]
fn without_the_file_the_arms_are_unavailable_by_name() {
    let missing = obmalloc_missing();
    for record in grown(&["system", "obmalloc", "obmalloc-eager"]) {
        match record.outcome {
            Outcome::Ok => assert!(!missing || record.arm == "system"),
            Outcome::Unavailable { why } => {
                assert!(missing, "{}: {why}", record.arm);
                assert!(why.contains("rebuild"), "{why}");
            }
            other => panic!("{}: {other:?}", record.arm),
        }
    }
}

/// Small blocks are few here: the block itself is the backing's, and is copied as often as under that arm alone.
#[test]
fn large_blocks_are_copied_as_the_model_copies_them() {
    if obmalloc_missing() {
        return;
    }
    let records = grown(&["tcmalloc-2007", "obmalloc-classic:backing=tcmalloc-2007"]);
    for name in ["rule_moves", "rule_copied_bytes", "rule_entry_bytes"] {
        assert_eq!(
            metric(&records[0], name),
            metric(&records[1], name),
            "{name}"
        );
    }
    assert!(metric(&records[0], "rule_copied_bytes") > 100 << 20);
    assert!(fact(&records[1], "backing allocator").contains("model"));
    let arenas = ["total", "reclaimed", "highwater", "current"]
        .map(|of| metric(&records[1], &format!("arenas_{of}")));
    assert_eq!(arenas, [1, 0, 1, 1]);
    assert_eq!(metric(&records[1], "arena_bytes"), 256 << 10);
}

#[test]
#[cfg(all(feature = "tcmalloc-google", feature = "tcmalloc-gperftools"))]
fn a_backing_that_is_linked_answers_for_itself() {
    if obmalloc_missing() {
        return;
    }
    let records = grown(&[
        "tcmalloc-google:sampling=0",
        "tcmalloc-gperftools",
        "obmalloc:backing=tcmalloc-google,sampling=0",
        "obmalloc:backing=tcmalloc-gperftools",
    ]);
    let [google, gperftools, over_google, over_gperftools] = &records[..] else {
        panic!("{} records", records.len());
    };
    for record in &records {
        assert_eq!(record.outcome, Outcome::Ok, "{}", record.arm);
    }
    assert_eq!(fact(over_google, "sampling"), "0");
    assert_eq!(
        fact(over_google, "backing per_cpu_caches"),
        fact(google, "per_cpu_caches")
    );
    assert_eq!(
        over_google.environment["GLIBC_TUNABLES"],
        google.environment["GLIBC_TUNABLES"]
    );
    // Up to 512 bytes obmalloc moves the block its own way, so the backing first sees it at another size, from which
    // its own steps follow.
    for (alone, over) in [(google, over_google), (gperftools, over_gperftools)] {
        let [alone, over] = [alone, over].map(|record| metric(record, "moved_bytes"));
        assert!(alone.abs_diff(over) < alone / 100, "{alone} and {over}");
    }
}

#[test]
fn a_knob_of_the_backing_alone_is_refused_before_anything_runs() {
    let refused = said(&[
        "run",
        "growth-today",
        "--allocators",
        "obmalloc:sampling=0",
        "--dry-run",
    ]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        err(&refused).contains("only with backing=tcmalloc-google"),
        "{}",
        err(&refused)
    );
}
