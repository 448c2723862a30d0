//! The arena's arms in a run: each backing in its child, with its figures in the record; and sized free, which decides the
//! same as the other.

mod common;

use common::{Ran, definition, err, metric, said};
use heaplab::record::TrialRecord;
use heaplab::trial::Outcome;

/// One cell under each of `arms`, counted, in their order.
fn counted(workload: &str, params: &str, arms: &[&str]) -> Vec<TrialRecord> {
    let listed: Vec<String> = arms.iter().map(|arm| format!("\"{arm}\"")).collect();
    let text = definition(workload, params, &listed.join(", "), "\"census\"", "");
    let mut records = Ran::new(&text, &[]).records();
    records.sort_by_key(|record| arms.iter().position(|arm| *arm == record.arm));
    assert_eq!(records.len(), arms.len());
    for record in &records {
        assert_eq!(record.outcome, Outcome::Ok, "{}", record.arm);
    }
    records
}

fn fact<'a>(record: &'a TrialRecord, name: &str) -> &'a str {
    let receipt = record.receipt.as_ref().expect("a receipt");
    let mut told = receipt.facts.iter().chain(&receipt.knobs);
    let found = told.find(|(told, _)| *told == name);
    found.map_or_else(|| panic!("{name}: {receipt:?}"), |(_, value)| value)
}

/// The block itself is the backing's, and is copied as often as under that arm alone.
#[test]
fn large_blocks_are_copied_as_the_model_copies_them() {
    let arms = [
        "tcmalloc-2007",
        "arena-3.9:backing=tcmalloc-2007",
        "arena-3.9+sized:backing=tcmalloc-2007",
    ];
    let records = counted("growth", "size = \"1MiB\"", &arms);
    for over in &records[1..] {
        for name in ["rule_moves", "rule_copied_bytes", "rule_entry_bytes"] {
            assert_eq!(metric(&records[0], name), metric(over, name), "{name}");
        }
        assert_eq!(fact(over, "backing"), "tcmalloc-2007");
        assert!(fact(over, "backing allocator").contains("model"));
        let arenas = ["total", "reclaimed", "highwater", "current"]
            .map(|of| metric(over, &format!("arenas_{of}")));
        assert_eq!(arenas, [1, 0, 1, 1]);
    }
    assert!(metric(&records[0], "rule_copied_bytes") > 100 << 20);
}

#[test]
#[cfg(all(feature = "tcmalloc-google", feature = "tcmalloc-gperftools"))]
fn a_backing_that_is_linked_answers_for_itself() {
    let arms = [
        "tcmalloc-google:sampling=0",
        "tcmalloc-gperftools",
        "arena:backing=tcmalloc-google,sampling=0",
        "arena-2.4:backing=tcmalloc-gperftools,source=malloc",
    ];
    let records = counted("growth", "size = \"1MiB\"", &arms);
    let [google, gperftools, over_google, over_gperftools] = &records[..] else {
        panic!("{} records", records.len());
    };
    assert_eq!(fact(over_google, "sampling"), "0");
    assert_eq!(
        fact(over_google, "backing per_cpu_caches"),
        fact(google, "per_cpu_caches")
    );
    assert_eq!(
        over_google.environment["GLIBC_TUNABLES"],
        google.environment["GLIBC_TUNABLES"]
    );
    assert!(fact(over_gperftools, "backing allocator").contains("gperftools"));
    // Up to 512 bytes the arena moves the block its own way, so the backing first sees it at another size, from which its
    // own steps follow.
    for (alone, over) in [(google, over_google), (gperftools, over_gperftools)] {
        let [alone, over] = [alone, over].map(|record| metric(record, "moved_bytes"));
        assert!(alone.abs_diff(over) < alone / 100, "{alone} and {over}");
    }
}

/// The same work, the same blocks, the same arenas, whether the size is told or not.
#[test]
fn sized_free_decides_the_same() {
    let params = "shape = [\"random\", \"batch-fifo\"], live = \"20k\", pairs = \"100k\"";
    let plain = [
        "arena-2.4",
        "arena-2.5",
        "arena-3.8",
        "arena-3.9",
        "arena-3.10-keep0",
    ];
    for arm in plain {
        let text = definition(
            "pairs",
            params,
            &format!("\"{arm}:aligned=1\", \"{arm}+sized:aligned=1\""),
            "\"census\"",
            "",
        );
        let ran = Ran::new(&text, &[]);
        let records = ran.records();
        assert_eq!(records.len(), 4, "{}", err(&ran.output));
        for shape in ["random", "batch-fifo"] {
            let of = |label: &str| {
                let mut found = records
                    .iter()
                    .filter(|record| record.params["shape"] == shape && record.arm == label);
                let record = found.next().expect("a record");
                assert_eq!(record.outcome, Outcome::Ok, "{label}");
                let arenas = ["total", "reclaimed", "highwater", "current"]
                    .map(|of| metric(record, &format!("arenas_{of}")));
                (arenas, record.checksum_ops.clone())
            };
            let (without, with) = (
                of(&format!("{arm}:aligned=1")),
                of(&format!("{arm}+sized:aligned=1")),
            );
            assert_eq!(without, with, "{arm} {shape}");
            assert!(without.0[0] > 1);
        }
        let sized = records.iter().find(|record| record.arm.contains("+sized"));
        let receipt = sized.and_then(|record| record.receipt.as_ref());
        let built = &receipt.expect("a receipt").build;
        assert!(built["entry points"].contains("the size"), "{built:?}");
    }
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    for (arm, why) in [
        ("arena:sampling=0", "only with backing=tcmalloc-google"),
        ("arena:backing=jemalloc", "system | tcmalloc-2007"),
        ("jemalloc+sized", "arena-3.10+sized"),
    ] {
        let refused = said(&["run", "growth-today", "--allocators", arm, "--dry-run"]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(err(&refused).contains(why), "{}", err(&refused));
    }
}
