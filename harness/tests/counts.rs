//! The closed forms, by running the binary: what an allocator copies is counted exactly, whatever the machine.

mod common;

use common::{Ran, definition, err, metric, obmalloc_missing};
use heaplab::arms::ARMS;
use heaplab::input::corpus::Corpus;
use heaplab::input::lines;
use heaplab::record::TrialRecord;
use heaplab::trial::Outcome;

/// Every arm that is built in, as TOML.
fn every_arm() -> String {
    let arms = ARMS.iter().filter(|arm| arm.built && !arm.test_only);
    arms.map(|arm| format!("{:?}", arm.id))
        .collect::<Vec<_>>()
        .join(", ")
}

fn census(workload: &str, params: &str, arms: &str) -> Vec<TrialRecord> {
    let ran = Ran::new(&definition(workload, params, arms, "\"census\"", ""), &[]);
    assert_eq!(ran.output.status.code(), Some(0), "{}", err(&ran.output));
    let records = ran.records();
    assert!(
        records.iter().all(|record| record.outcome == Outcome::Ok),
        "{records:?}"
    );
    records
}

/// What the rule of 2007 copies above 32 KiB when a block grows from 70 bytes by 70 to at least `size`.
fn rule_of_2007(size: u64, granule: u64) -> u64 {
    let steps = size.div_ceil(70) as usize - 1;
    rule_of_2007_by_steps(70, std::iter::repeat_n(70, steps), granule)
}

/// What the rule of 2007 copies above 32 KiB when a block grows from `first` bytes by `steps`, reckoned from the rule's
/// words: capacity is the size rounded up to the granule; a block whose capacity changes is copied, the smaller of old
/// capacity and new size.
fn rule_of_2007_by_steps(first: u64, steps: impl IntoIterator<Item = u64>, granule: u64) -> u64 {
    let capacity = |n: u64| n.div_ceil(granule) * granule;
    let mut copied = 0;
    let mut old = first;
    for step in steps {
        let new = old + step;
        if old > 32 << 10 && capacity(new) != capacity(old) {
            copied += capacity(old).min(new);
        }
        old = new;
    }
    copied
}

#[test]
fn the_rule_of_2007_copies_what_it_says_to_the_byte() {
    assert_eq!(rule_of_2007(4 << 20, 4096), 2_149_433_344);
    assert_eq!(rule_of_2007(16 << 20, 4096), 34_367_979_520);
    let records = census(
        "growth",
        "size = [\"1MiB\", \"4MiB\"]",
        "\"tcmalloc-2007\", \"tcmalloc-2007:granule=8KiB\"",
    );
    for record in records {
        let size = if record.params["size"] == "1MiB" {
            1 << 20
        } else {
            4 << 20
        };
        let granule = if record.arm.ends_with("8KiB") {
            8192
        } else {
            4096
        };
        assert_eq!(
            metric(&record, "rule_copied_bytes"),
            rule_of_2007(size, granule),
            "{} {size}",
            record.arm
        );
    }
}

#[test]
fn a_directory_costs_the_sum_over_its_files_with_pymalloc_and_without() {
    const FILES: usize = 3;
    const SIZE: u64 = 1 << 20;
    let mut texts = Corpus::Text.texts(1);
    let mut text = vec![0; SIZE as usize];
    let mut lengths = Vec::new();
    let by_file = [(); FILES].map(|()| {
        texts.fill_next(&mut text);
        lines::split(&text, &mut lengths).expect("small");
        let mut lengths = lengths.iter().copied().map(u64::from);
        // A bytes object has 33 bytes beside its contents.
        let first = 33 + lengths.next().expect("a line");
        rule_of_2007_by_steps(first, lengths, 4096)
    });
    let expected: u64 = by_file.iter().sum();
    let closed_form = (FILES as u64 * SIZE * SIZE / 8192) as f64;
    assert!(
        (expected as f64 / closed_form - 1.0).abs() < 0.01,
        "{expected}"
    );

    let mut arms = "\"tcmalloc-2007\"".to_owned();
    if !obmalloc_missing() {
        for arm in ["obmalloc-eager", "obmalloc-classic", "obmalloc"] {
            arms.push_str(&format!(", \"{arm}:backing=tcmalloc-2007\""));
        }
    }
    let params =
        "mode = [\"concat\", \"concat-lines\"], corpus = \"text\", files = \"3\", size = \"1MiB\"";
    for record in census("walker", params, &arms) {
        let which = format!("{} {}", record.arm, record.params["mode"]);
        assert_eq!(metric(&record, "rule_copied_bytes"), expected, "{which}");
        assert_eq!(metric(&record, "rule_entries"), FILES as u64, "{which}");
        // Each file of its own, too: what else moved is small.
        for (row, of_rule) in record.files.iter().zip(by_file) {
            let moved = row.moved_bytes.expect("census");
            assert!(
                moved.abs_diff(of_rule) < 200_000,
                "{which}: {moved} against {of_rule}"
            );
        }
    }
}

#[test]
fn google_without_sampling_copies_n_over_16384_bytes_a_byte() {
    let record = &census(
        "growth",
        "size = \"4MiB\"",
        "\"tcmalloc-google:sampling=0\"",
    )[0];
    let per_byte = metric(record, "copied_bytes") as f64 / metric(record, "appended_bytes") as f64;
    assert!((per_byte / 256.0 - 1.0).abs() < 0.01, "{per_byte}");
    let receipt = record.receipt.as_ref().expect("a receipt");
    assert_eq!(
        receipt.knobs.get("sampling").map(String::as_str),
        Some("0"),
        "read back"
    );
    assert_eq!(
        receipt.facts.get("per_cpu_caches").map(String::as_str),
        Some("active"),
        "read back"
    );
}

#[test]
fn the_c_library_moves_pages_and_hardly_copies() {
    let record = &census("growth", "size = \"16MiB\"", "\"system\"")[0];
    let per_byte = metric(record, "copied_bytes") as f64 / metric(record, "appended_bytes") as f64;
    assert!(per_byte < 0.05, "{per_byte}");
    // Each moving mremap makes room for the block to double: from the 128 KiB threshold to 16 MiB that is 7.
    assert!(
        (5..=9).contains(&metric(record, "mremap_moves")),
        "{record:?}"
    );
    assert_eq!(
        metric(record, "moved_bytes"),
        metric(record, "copied_bytes") + metric(record, "mremap_moved_bytes")
    );
    assert!(
        metric(record, "sys.mremap") > 3000,
        "a page a call: {:?}",
        record.metrics
    );
}

#[test]
fn concat_copy_copies_every_prefix_under_every_arm() {
    let arms = every_arm();
    let params = "mode = \"concat-copy\", corpus = \"nl256\", size = \"64KiB\"";
    // 256 lines of 256 bytes: the old string of i lines and its 33-byte header is copied at each of the 255 appends.
    let expected: u64 = (1..256).map(|i| 33 + 256 * i).sum();
    for record in census("walker", params, &arms) {
        assert_eq!(
            metric(&record, "client_copied_bytes"),
            expected,
            "{}",
            record.arm
        );
        assert_eq!(metric(&record, "realloc_calls"), 0);
        assert_eq!(metric(&record, "malloc_calls"), 256);
    }
}

#[test]
fn each_mode_makes_the_calls_that_its_description_says() {
    let calls = |mode: &str| {
        let params = format!("mode = \"{mode}\", corpus = \"nl256\", size = \"1MiB\"");
        let record = census("walker", &params, "\"system\"").remove(0);
        ["malloc_calls", "realloc_calls", "free_calls"].map(|name| metric(&record, name))
    };
    // 4096 lines of 256 bytes.
    assert_eq!(calls("concat"), [1, 4095, 1]);
    // Each line a string of its own, and the first of them the one that grows.
    assert_eq!(calls("concat-lines"), [4096, 4095, 4096]);
    // Doubling from the first line: 256 bytes to 1 MiB in 12 steps.
    assert_eq!(calls("vec2x"), [1, 12, 1]);
    // 8 KiB to 512 KiB in 6 doublings, one step of 512 KiB; it fits exactly, so nothing is cut off at the end.
    assert_eq!(calls("chunks"), [1, 7, 1]);
    // A pointer vector of 4096 entries by CPython's rule beside a string a line.
    let mut room = 4;
    let mut grown = 0;
    while room < 4096 {
        room = (room + 1 + ((room + 1) >> 3) + 6) & !3;
        grown += 1;
    }
    assert_eq!(calls("list"), [4097, grown, 4097]);
    assert_eq!(calls("join"), [4098, grown, 4098]);
}

#[test]
fn every_arm_decides_and_keeps_the_same() {
    let arms = every_arm();
    for (workload, params) in [
        (
            "growth",
            "shape = [\"one\", \"two\", \"pinned\"], size = \"256KiB\"",
        ),
        (
            "walker",
            "mode = [\"concat\", \"concat-lines\", \"concat-copy\", \"list\", \"vec2x\", \"chunks\", \"join\"], \
             corpus = [\"text\", \"nl64k\", \"none\"], size = \"200000\"",
        ),
        (
            "walker",
            "mode = [\"concat-lines\", \"list\"], corpus = \"text\", size = \"50000\", files = \"4\"",
        ),
        (
            "pairs",
            "shape = [\"random\", \"fifo\", \"stack\", \"batch-lifo\", \"batch-fifo\", \"batch-random\"], \
             live = \"2k\", pairs = \"20k\", batch = \"1500\"",
        ),
        (
            "object-churn",
            "mix = [\"all\", \"lists\", \"dicts\", \"strings\"], objects = \"5k\", live = \"200\", work = [\"0\", \"100\"]",
        ),
    ] {
        let records = census(workload, params, &arms);
        for record in &records {
            let first = records
                .iter()
                .find(|other| other.params == record.params)
                .expect("itself at least");
            assert_eq!(
                record.checksum_ops, first.checksum_ops,
                "{} {:?}",
                record.arm, record.params
            );
            let contents = (record.arm != "null")
                .then(|| record.input_hash.clone())
                .flatten();
            assert_eq!(
                record.checksum_contents, contents,
                "{} {:?}",
                record.arm, record.params
            );
        }
    }
}

#[test]
fn the_seed_decides_the_corpus_and_nothing_else_does() {
    let hash = |seed: &str| {
        let text = definition(
            "walker",
            "corpus = \"text\", size = \"64KiB\"",
            "\"system\"",
            "\"census\"",
            "",
        );
        Ran::new(&text, &["--seed", seed]).record().input_hash
    };
    assert_eq!(hash("1"), hash("1"));
    assert_ne!(hash("1"), hash("2"));
}

#[test]
fn a_memory_limit_tells_how_far_an_allocator_gets() {
    let text = definition(
        "walker",
        "corpus = \"nl64k\", size = \"32MiB\"",
        "\"system\", \"tcmalloc-2007\"",
        "\"census\"",
        "memory-limit = \"32MiB\"",
    );
    let records = Ran::new(&text, &[]).records();
    for record in &records {
        match &record.outcome {
            Outcome::Failed {
                signal: None,
                message,
            } => assert!(message.contains("out of memory"), "{message}"),
            other => panic!("{other:?}"),
        }
    }
    let [system, model] = [0, 1].map(|i| metric(&records[i], "reached_bytes"));
    assert!(
        system > 30 << 20,
        "the C library's block is all there is: {system}"
    );
    assert!(
        model * 2 < system,
        "old block, new block and what was freed between: {model} of {system}"
    );
}
