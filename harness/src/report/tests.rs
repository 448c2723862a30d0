//! Whole reports on made-up runs.

use super::*;
use crate::experiment::OneOrMany;
use crate::synthetic::Trial;
use crate::trial::{Outcome, Receipt};

pub(super) fn sample_table() -> Table {
    let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    Table {
        name: "e.g.census".to_owned(),
        title: "Copies".to_owned(),
        header: row(["size", "system", "slow"]),
        rows: vec![
            row(["1MiB", "0.13", "129"]),
            row(["16MiB", "0.008", "a | b"]),
        ],
        notes: vec!["A note that is long enough to be wrapped.".to_owned()],
    }
}

const DEFINITION: &str = r#"
id = "e"
title = "For tests"
analysis = "First paragraph.\n\nSecond."
[[grid]]
name = "copies"
workload = "growth"
params = { size = ["1MiB", "2MiB", "4MiB"], shape = "one" }
arms = ["system", "jemalloc", "tcmalloc-google", "tcmalloc-2007"]
protocols = ["census"]
[[grid]]
name = "times"
workload = "walker"
params = { mode = ["list", "concat"], size = "16MiB" }
arms = ["system", "jemalloc", "tcmalloc-2007", "null"]
protocols = ["time"]
[[claim]]
id = "slow"
source = "here"
finding = "It is slow"
[[claim.check]]
kind = "ratio"
grid = "times"
metric = "wall_ns"
where = { mode = "list" }
arms = ["tcmalloc-2007"]
than = "system"
min = 2
[[claim]]
id = "quadratic"
source = "here"
finding = "It is quadratic"
[[claim.check]]
kind = "value"
grid = "copies"
metric = "copied_bytes"
over = "appended_bytes"
where = { size = "4MiB" }
arms = ["tcmalloc-2007"]
min = 512
[[claim]]
id = "gone"
source = "here"
finding = "Something of jemalloc"
expected = false
[[claim.check]]
kind = "value"
grid = "copies"
metric = "copied_bytes"
where = { size = "1MiB" }
arms = ["jemalloc"]
max = 1
"#;

fn definition() -> Experiment {
    Experiment::parse(DEFINITION, "e.toml").expect("good")
}

fn receipt(allocator: &str, version: &str, sampling: &str) -> Option<Receipt> {
    Some(Receipt {
        allocator: allocator.to_owned(),
        version: version.to_owned(),
        knobs: [("sampling".to_owned(), sampling.to_owned())].into(),
        ..Receipt::default()
    })
}

fn copies() -> Vec<TrialRecord> {
    let mut records = Vec::new();
    for mib in [1u64, 2, 4] {
        let bytes = mib << 20;
        let at = |arm: &str| {
            Trial::census("copies", arm)
                .param("size", &format!("{mib}MiB"))
                .param("shape", "one")
                .param("step", "70")
                .metric("appended_bytes", bytes)
                .metric("client_copied_bytes", 0)
        };
        let mut of = |arm: &str, copied: u64, receipt: Option<Receipt>| {
            let mut record = at(arm).metric("copied_bytes", copied).ok();
            record.receipt = receipt;
            records.push(record);
        };
        of("system", 131_072, receipt("glibc", "2.36", "0"));
        of(
            "tcmalloc-google",
            bytes * bytes / 4000,
            receipt("TCMalloc (google)", "", "2097152"),
        );
        let model = "realloc policy model of google-perftools <= 0.97";
        of(
            "tcmalloc-2007",
            bytes * bytes / 8192,
            receipt(model, "1", "0"),
        );
        records.push(at("jemalloc").end(Outcome::Unavailable {
            why: "not built".into(),
        }));
    }
    let slowest = records
        .iter_mut()
        .find(|r| r.arm == "tcmalloc-google" && r.params["size"] == "4MiB");
    slowest.expect("there").outcome = Outcome::TimedOut { after_ms: 20_000 };
    records
}

fn times() -> Vec<TrialRecord> {
    let mut records = Vec::new();
    for (mode, slow) in [("list", 150u64), ("concat", 4000)] {
        for block in 0..6u32 {
            let jitter = u64::from(block * 7 % 5);
            for (arm, ms) in [
                ("system", 100),
                ("system#2", 101),
                ("jemalloc", 80),
                ("tcmalloc-2007", slow),
            ] {
                let trial = Trial::time("times", arm, block)
                    .param("mode", mode)
                    .param("size", "16MiB");
                let wall = ms * 1_000_000 + jitter * 300_000 * u64::from(arm.len() as u32 % 3);
                let record = match (arm, mode) {
                    ("tcmalloc-2007", "concat") if block == 0 => trial
                        .metric("reached_bytes", 9 << 20)
                        .end(Outcome::TimedOut { after_ms: 3_000 }),
                    ("tcmalloc-2007", "concat") => trial.end(Outcome::Skipped {
                        after_ms: 3_000,
                        block: 0,
                    }),
                    _ => trial.metric("wall_ns", wall).ok(),
                };
                records.push(record);
            }
        }
    }
    records
}

fn with_report<T>(records: &[TrialRecord], look: impl FnOnce(&Report<'_>) -> T) -> T {
    let (experiment, summary) = (definition(), Summary::new(records));
    let run = AsRun::as_defined(&experiment, false);
    look(&Report::new(&experiment, &summary, &run))
}

#[test]
fn a_table_of_copies() {
    let tables = with_report(&copies(), |report| report.tables());
    let [census, exponents] = &tables[..] else {
        panic!("{tables:#?}")
    };
    assert_eq!(census.name, "e.copies.census");
    assert_eq!(
        census.title,
        "copies: bytes copied for each byte appended (growth, shape=one)"
    );
    assert_eq!(
        census.header,
        [
            "size",
            "system",
            "jemalloc",
            "tcmalloc-google",
            "tcmalloc-2007"
        ]
    );
    assert_eq!(
        census.rows[0],
        ["1MiB", "0.125", "unavailable", "~262", "128"]
    );
    assert_eq!(
        census.rows[2],
        ["4MiB", "0.0312", "unavailable", "1049 when stopped", "512"]
    );
    let notes = census.notes.join("\n");
    for expected in [
        "tcmalloc-2007 is a MODEL",
        "Its receipt: realloc policy model of google-perftools <= 0.97 1.",
        "tcmalloc-google samples allocations by chance",
        "jemalloc: unavailable: not built.",
        "tcmalloc-google: timed out after 20s.",
    ] {
        assert!(notes.contains(expected), "{expected}:\n{notes}");
    }
    assert_eq!(exponents.header[1..3], ["1MiB to 2MiB", "2MiB to 4MiB"]);
    assert_eq!(
        exponents.rows.len(),
        2,
        "only arms with all sizes have exponents"
    );
    assert_eq!(
        exponents.rows[1],
        ["tcmalloc-2007", "1.99", "2.00", "2.00", "0.1 %"]
    );
}

#[test]
fn what_a_program_copies_by_itself_is_not_random() {
    let at = |copied| {
        let mut record = Trial::census("copies", "tcmalloc-google")
            .param("size", "1MiB")
            .param("shape", "one")
            .metric("appended_bytes", 1 << 20)
            .metric("client_copied_bytes", 1853 << 20)
            .metric("copied_bytes", copied)
            .ok();
        record.receipt = receipt("TCMalloc (google)", "", "2097152");
        with_report(&[record], |report| report.tables()[0].rows[0][1].clone())
    };
    assert_eq!(at(0), "1853");
    assert_eq!(at(1 << 20), "~1854");
}

#[test]
fn what_the_command_line_changed_stands_at_the_top() {
    let (experiment, summary) = (definition(), Summary::new(&copies()));
    let mut run = AsRun::as_defined(&experiment, true);
    for point in run.points.values_mut().flatten() {
        point.insert("step".to_owned(), "70".to_owned());
    }
    run.overrides = vec!["blocks=3".to_owned(), "step=64KiB".to_owned()];
    let report = Report::new(&experiment, &summary, &run);
    let said = "Run with --quick --blocks 3 --set step=64KiB.";
    let terminal = table::report(&report, Some(120));
    assert!(
        terminal.starts_with(&format!("e: For tests\n\n{said}\n\nFirst paragraph.")),
        "{terminal}"
    );
    assert!(markdown::report(&report).starts_with(&format!("{said}\n\n**copies")));
    let json = json::report(&report).expect("serialises");
    let document: serde_json::Value = serde_json::from_str(&json).expect("reads back");
    assert_eq!(document["overrides"][1], "step=64KiB");
    run.overrides = vec!["memory-limit=1GiB".to_owned(), "step=70".to_owned()];
    let tables = Report::new(&experiment, &summary, &run).tables();
    assert_eq!(
        tables[0].title,
        "copies: bytes copied for each byte appended (growth, shape=one step=70, within 1GiB of address space)"
    );
    assert_eq!(with_report(&copies(), |report| report.changed()), None);
}

#[test]
fn a_grid_that_was_walked_says_what() {
    let walk = |protocol: fn(&str) -> Trial| {
        let mut record = protocol("times")
            .param("mode", "list")
            .param("size", "16MiB");
        record = record.param("root", "/texts\u{7}");
        record.metric("wall_ns", 5).metric("appended_bytes", 7).ok()
    };
    let mut experiment = definition();
    experiment.grids[1].protocols.push(Protocol::Census);
    let records = [
        walk(|grid| Trial::time(grid, "system", 0)),
        walk(|grid| Trial::census(grid, "system")),
    ];
    let run = AsRun::as_defined(&experiment, false);
    let summary = Summary::new(&records);
    let report = Report::new(&experiment, &summary, &run).with_files(&records);
    for table in report.tables() {
        let walked =
            "Walked /texts\\u{7}: 0 files, 0 B read; left out: nothing. The most of any trial.";
        assert_eq!(table.notes.last().map(String::as_str), Some(walked));
    }
}

#[test]
fn control_characters_of_records_are_escaped_in_every_format() {
    let mut records = copies();
    for record in &mut records {
        if record.arm == "jemalloc" {
            record.outcome = Outcome::Failed {
                signal: None,
                message: "said \u{1b}[31mred\u{7}".into(),
            };
        }
        record
            .absent
            .insert("minflt".to_owned(), "lost\u{1b}c".to_owned());
        if let Some(receipt) = &mut record.receipt {
            receipt.version.push('\u{9b}');
        }
    }
    with_report(&records, |report| {
        for text in [table::report(report, Some(120)), markdown::report(report)] {
            let control = text.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!(control, None, "{text:?}");
        }
        let answer = report.claims()[2].answer();
        assert_eq!(
            answer,
            "not decidable: jemalloc failed: said \\u{1b}[31mred\\u{7}"
        );
    });
}

#[test]
fn one_claim_is_one_claim() {
    let mut experiment = definition();
    experiment.claims.truncate(1);
    let (summary, run) = (Summary::new(&[]), AsRun::as_defined(&experiment, false));
    let table = Report::new(&experiment, &summary, &run).claims_table();
    assert!(table.notes[0].starts_with("1 claim: 0 as"), "{table:?}");
}

#[test]
fn without_a_trace_moves_are_an_upper_bound() {
    let record = Trial::census("copies", "system")
        .param("size", "1MiB")
        .param("shape", "one")
        .metric("appended_bytes", 1 << 20)
        .metric("moved_bytes", 3 << 20)
        .absent("copied_bytes", "strace is missing: apt-get install strace");
    let tables = with_report(&[record.ok()], |report| report.tables());
    assert_eq!(tables[0].rows[0], ["1MiB", "<= 3.00"]);
    assert_eq!(tables[0].rows[1], ["2MiB", "-"]);
    let notes = tables[0].notes.join("\n");
    assert!(
        notes.contains("copied_bytes is absent: strace is missing"),
        "{notes}"
    );
    assert!(
        notes.contains("<=: all moves are taken for copies"),
        "{notes}"
    );
}

#[test]
fn a_table_of_times() {
    let tables = with_report(&times(), |report| report.tables());
    let [times] = &tables[..] else {
        panic!("{tables:#?}")
    };
    assert_eq!(
        times.title,
        "times: wall time as a multiple of system, by mode (walker, size=16MiB)"
    );
    assert_eq!(times.header, ["arm", "list", "concat"]);
    assert_eq!(times.rows[0][..2], ["system", "100 ms"]);
    let [jemalloc, model] = [1, 2].map(|row| times.rows[row][1].as_str());
    assert!(
        jemalloc.starts_with("0.80") && jemalloc.ends_with("] faster"),
        "{jemalloc}"
    );
    assert!(
        model.starts_with("1.5") && model.ends_with("] slower"),
        "{model}"
    );
    assert_eq!(times.rows[2][2], ">= 30.0 (timed out)");
    let notes = times.notes.join("\n");
    for expected in [
        crate::stats::INTERVALS,
        "Noise floor: of 12 pairs",
        "Minimum detectable effect: a ratio of 1.0",
        "tcmalloc-2007: timed out after 3s, 9.00 MiB reached.",
    ] {
        assert!(notes.contains(expected), "{expected}:\n{notes}");
    }
}

/// Times of arms that take no lock stand apart and are compared with obmalloc, where it is.
#[test]
fn what_is_not_thread_safe_stands_apart() {
    let with = |unlocked: &[(&str, u64)]| -> Vec<TrialRecord> {
        let mut records = times();
        for block in 0..6 {
            records.extend(unlocked.iter().map(|(arm, ms)| {
                Trial::time("times", arm, block)
                    .param("mode", "list")
                    .param("size", "16MiB")
                    .metric("wall_ns", ms * 1_000_000)
                    .ok()
            }));
        }
        records
    };
    let records = with(&[
        ("null", 10),
        ("obmalloc-eager", 60),
        ("obmalloc", 40),
        ("arena-3.10+sized", 20),
    ]);
    let tables = with_report(&records, |report| report.tables());
    let [safe, unlocked] = &tables[..] else {
        panic!("{tables:#?}")
    };
    let arms =
        |table: &Table| -> Vec<String> { table.rows.iter().map(|row| row[0].clone()).collect() };
    assert_eq!(arms(safe), ["system", "jemalloc", "tcmalloc-2007"]);
    assert_eq!(
        (&*unlocked.name, &*unlocked.title),
        (
            "e.times.time-not-thread-safe",
            "times, not thread-safe: wall time as a multiple of obmalloc, by mode (walker, size=16MiB)"
        )
    );
    assert_eq!(unlocked.rows[0], ["obmalloc", "40.0 ms", "-"]);
    let first = |arm: &str| {
        let row = unlocked.rows.iter().find(|row| row[0] == arm);
        row.map_or("", |row| row[1].split(' ').next().unwrap_or(""))
    };
    assert_eq!(
        [
            first("null"),
            first("obmalloc-eager"),
            first("arena-3.10+sized")
        ],
        ["0.250", "1.50", "0.500"]
    );
    // The second runs of the baseline tell the floor for both.
    for table in [safe, unlocked] {
        assert!(
            table
                .notes
                .iter()
                .any(|note| note.contains("Noise floor: of 12 pairs"))
        );
    }

    let tables = with_report(&with(&[("null", 10), ("bump", 20)]), |report| {
        report.tables()
    });
    assert_eq!(tables[0].title, safe.title);
    assert_eq!(
        tables[1].title,
        "times, not thread-safe: wall time, by mode (walker, size=16MiB)"
    );
    assert_eq!(tables[1].rows[0], ["null", "10.0 ms", "-"]);
    assert!(tables[1].notes[0].contains("obmalloc alone, which is not among them"));

    // Where nobody takes a lock, the grid's baseline is one of them, and the table has its plain name.
    let alone: Vec<TrialRecord> = with(&[("arena-3.9", 10), ("arena-3.8", 20)])
        .into_iter()
        .filter(|record| record.arm.starts_with("arena"))
        .collect();
    let tables = with_report(&alone, |report| report.tables());
    let [table] = &tables[..] else {
        panic!("{tables:#?}")
    };
    assert_eq!(table.name, "e.times.time");
    assert!(
        table
            .title
            .starts_with("times, not thread-safe: wall time as a multiple of arena-3.")
    );
}

#[test]
fn few_blocks_give_no_intervals() {
    let few: Vec<TrialRecord> = times().into_iter().filter(|r| r.block < 2).collect();
    let tables = with_report(&few, |report| report.tables());
    assert!(
        tables[0].rows[1][1].ends_with("(2 blocks)"),
        "{:?}",
        tables[0].rows
    );
    assert_eq!(
        tables[0].notes[0],
        "Fewer than 6 blocks: no intervals and no verdicts."
    );
}

#[test]
fn a_table_of_claims() {
    let mut records = copies();
    records.extend(times());
    let table = with_report(&records, |report| report.claims_table());
    let answers: Vec<&str> = table.rows.iter().map(|row| row[3].as_str()).collect();
    assert_eq!(answers[0], "NOT REPRODUCED");
    assert_eq!(answers[1], "reproduced");
    assert_eq!(answers[2], "not decidable: jemalloc unavailable: not built");
    assert_eq!(table.rows[1][2], "tcmalloc-2007 at size=4MiB: 512");
    let notes = "3 claims: 1 as expected, 1 not as expected, 1 not decidable.";
    assert_eq!(table.notes, [notes]);
}

#[test]
fn every_format_is_written_and_always_the_same() {
    let mut records = copies();
    records.extend(times());
    let write = |records: &[TrialRecord]| {
        with_report(records, |report| {
            let terminal = table::report(report, Some(120));
            let json = json::report(report).expect("serialises");
            (terminal, markdown::report(report), json)
        })
    };
    let (terminal, markdown, json) = write(&records);
    assert!(
        terminal.starts_with("e: For tests\n\nFirst paragraph.\n\nSecond.\n"),
        "{terminal}"
    );
    assert!(terminal.contains("not decidable"), "{terminal}");
    assert!(markdown.contains("| size | system |"), "{markdown}");
    let document: serde_json::Value = serde_json::from_str(&json).expect("reads back");
    assert_eq!(document["claims"][1]["result"]["kind"], "reproduced");
    assert_eq!(document["tables"].as_array().map(Vec::len), Some(5));
    records.reverse();
    assert_eq!(write(&records), (terminal, markdown, json));
}

#[test]
fn a_grid_of_one_point_is_named() {
    let mut experiment = definition();
    experiment.grids[1]
        .params
        .insert("mode".to_owned(), OneOrMany::One("list".to_owned()));
    let records: Vec<TrialRecord> = times()
        .into_iter()
        .filter(|r| r.params["mode"] == "list" && r.block == 0)
        .collect();
    let (summary, run) = (
        Summary::new(&records),
        AsRun::as_defined(&experiment, false),
    );
    let tables = Report::new(&experiment, &summary, &run).tables();
    assert_eq!(
        (tables[0].header[1].as_str(), tables[0].rows[2][0].as_str()),
        ("times", "tcmalloc-2007")
    );
    assert!(
        tables[0].rows[2][1].ends_with("(one trial)"),
        "{:?}",
        tables[0].rows
    );
}

#[test]
fn a_table_of_arms() {
    let table = with_report(&copies(), |report| report.arms_table());
    let arms: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(arms, ["system", "tcmalloc-2007", "tcmalloc-google"]);
    assert_eq!(table.rows[0][1..4], ["glibc", "2.36", "sampling = 0"]);
}

#[test]
fn a_library_that_breaks_a_rule_is_marked_wherever_it_stands() {
    let mut records = copies();
    for record in records.iter_mut().filter(|r| r.arm == "tcmalloc-2007") {
        let facts = &mut record.receipt.get_or_insert_default().facts;
        let said = format!("{SUITE_BREAKS} \"aligned\": at 8");
        facts.insert(SUITE_FACT.to_owned(), said);
    }
    let mark =
        "tcmalloc-2007 (realloc policy model of google-perftools <= 0.97, by LD_PRELOAD) is MARKED";
    with_report(&records, |report| {
        let mut seen = Vec::new();
        for table in report.all_tables() {
            assert!(
                table.notes[0].starts_with(mark),
                "{}: {:?}",
                table.name,
                table.notes
            );
            seen.push(table.name);
        }
        let all = ["copies.census", "copies.exponents", "arms", "claims"];
        assert_eq!(seen, all.map(|name| format!("e.{name}")));
    });
    // Nothing is said of it where it does not stand.
    records.retain(|record| record.arm != "tcmalloc-2007");
    with_report(&records, |report| {
        for table in report.all_tables() {
            assert!(!table.notes.iter().any(|note| note.contains("MARKED")));
        }
    });
}

#[test]
fn disagreement_is_a_warning() {
    let mut records = copies();
    for record in &mut records {
        record.checksum_ops = Some(if record.arm == "system" { "1" } else { "2" }.to_owned());
    }
    let warnings = with_report(&records, |report| report.warnings());
    assert!(
        warnings[0].starts_with("checksum of ops differs in grid copies at shape=one size=1MiB")
    );
}

#[test]
fn points_come_from_the_plan_in_the_order_of_the_definition() {
    let experiment = definition();
    let options = crate::plan::Options {
        set: vec![(
            "mode".to_owned(),
            vec!["concat".to_owned(), "vec2x".to_owned(), "list".to_owned()],
        )],
        ..Default::default()
    };
    let text = DEFINITION.replace("\"16MiB\"", "\"16MiB\", corpus = \"text\"");
    let planned = Experiment::parse(&text, "e.toml").expect("good");
    let plan = crate::plan::plan(&planned, &options).expect("plannable");
    let run = AsRun::planned(&experiment, &plan);
    let modes: Vec<&str> = run.points["times"]
        .iter()
        .map(|point| point["mode"].as_str())
        .collect();
    assert_eq!(modes, ["list", "concat", "vec2x"]);
    let sizes: Vec<&str> = run.points["copies"]
        .iter()
        .map(|point| point["size"].as_str())
        .collect();
    assert_eq!(sizes, ["1MiB", "2MiB", "4MiB"]);
}

const MEMORY: &str = r#"
id = "e"
title = "For tests"
analysis = "None."
[[grid]]
name = "kept"
workload = "walker"
params = { mode = ["list", "vec2x"], corpus = "text", size = "16MiB" }
arms = ["system", "bump", "null"]
protocols = ["memory"]
"#;

/// Memory of `arm` in a mode, in KiB: at each phase, peak and peak live.
fn resident(arm: &str, mode: &str, kib: [u64; 6]) -> Trial {
    let names = [
        "rss_gross.start",
        "rss.full",
        "rss.empty",
        "rss.trimmed",
        "peak_bytes",
        "peak_live_bytes",
    ];
    let trial = [("mode", mode), ("corpus", "text"), ("size", "16MiB")]
        .iter()
        .fold(Trial::memory("kept", arm), |t, (name, value)| {
            t.param(name, value)
        });
    let figures = names.iter().zip(kib);
    figures.fold(trial.metric("rss.start", 0), |t, (name, kib)| {
        t.metric(name, kib << 10)
    })
}

fn memory_tables(records: &[TrialRecord]) -> Vec<Table> {
    let experiment = Experiment::parse(MEMORY, "e.toml").expect("good");
    let (summary, run) = (Summary::new(records), AsRun::as_defined(&experiment, false));
    Report::new(&experiment, &summary, &run).tables()
}

#[test]
fn a_table_of_memory() {
    let unavailable = Outcome::Unavailable {
        why: "it has no memory figures".to_owned(),
    };
    let mut bump = resident(
        "bump",
        "list",
        [2048, 40 << 10, 40 << 10, 0, 40 << 10, 25 << 10],
    )
    .absent("rss.trimmed", "no call")
    .ok();
    bump.metrics.remove("rss.trimmed");
    let records = [
        resident(
            "system",
            "list",
            [1024, 30 << 10, 512, 0, 32 << 10, 25 << 10],
        )
        .ok(),
        bump,
        resident("null", "list", [0; 6]).end(unavailable),
        resident(
            "system",
            "vec2x",
            [1024, 16 << 10, 0, 0, 16 << 10, 32 << 10],
        )
        .ok(),
    ];
    let tables = memory_tables(&records);
    assert_eq!(tables.len(), 1);
    let table = &tables[0];
    assert_eq!(table.name, "e.kept.memory");
    assert_eq!(
        table.header.join(" "),
        "mode arm start full empty trimmed peak peak overhead"
    );
    assert_eq!(
        table.rows[0].join("; "),
        "list; system; 1.00 MiB; 30.0 MiB; 512 KiB; 0 B; 32.0 MiB; 1.28"
    );
    assert_eq!(table.rows[1][5..], ["absent", "40.0 MiB", "1.60"]);
    assert!(
        table.rows[2][2..]
            .iter()
            .all(|entry| entry == "unavailable")
    );
    assert_eq!(
        table.rows[3][7], "0.500",
        "what is asked for and not touched"
    );
    assert!(table.rows[4][2..].iter().all(|entry| entry == "-"));
    let notes = table.notes.join(" ");
    for said in [
        "rss.trimmed of bump is absent: no call.",
        "null: unavailable: it has no memory figures.",
        "bump is a limit",
        "null is a limit",
    ] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
}

#[test]
fn a_table_of_arenas() {
    let text = MEMORY
        .replace("walker", "packing")
        .replace(
            r#"{ mode = ["list", "vec2x"], corpus = "text", size = "16MiB" }"#,
            r#"{ blocks = "300k", d = ["10", "81"] }"#,
        )
        .replace(
            r#"["system", "bump", "null"]"#,
            r#"["system", "arena-3.9"]"#,
        )
        .replace("memory", "census");
    let experiment = Experiment::parse(&text, "e.toml").expect("good");
    let packed = |arm: &str| {
        Trial::census("kept", arm)
            .param("blocks", "300k")
            .param("d", "10")
    };
    let books = [
        ("arenas_total", 12),
        ("arenas_reclaimed", 9),
        ("arenas_highwater", 8),
        ("arenas_current", 3),
        ("arenas_current.full", 8),
        ("arenas_highwater.full", 8),
        ("arena_bytes.full", 8 << 18),
        ("live_bytes.full", 6 << 18),
        ("arenas_current.settled", 4),
        ("arenas_highwater.settled", 8),
        ("arena_bytes.settled", 4 << 18),
        ("live_bytes.settled", 1 << 18),
        ("arenas_current.empty", 0),
        ("arenas_highwater.empty", 8),
        ("arena_bytes.empty", 0),
        ("live_bytes.empty", 0),
    ];
    let arena = books
        .iter()
        .fold(packed("arena-3.9"), |trial, (name, value)| {
            trial.metric(name, *value)
        });
    let records = [
        packed("system").metric("live_bytes.full", 1).ok(),
        arena.ok(),
    ];
    let (summary, run) = (
        Summary::new(&records),
        AsRun::as_defined(&experiment, false),
    );
    let tables = Report::new(&experiment, &summary, &run).tables();
    let table = tables
        .iter()
        .find(|table| table.name == "e.kept.arenas")
        .expect("an arm keeps books");
    assert_eq!(
        table.header.join("; "),
        "d; arm; arena; full; replaced; thinned; settled; empty; total; reclaimed; total - highwater"
    );
    assert_eq!(
        table.rows[0].join("; "),
        "10; arena-3.9; 256KiB; 8/8, 75.0 %; -; -; 4/8, 25.0 %; 0/8; 12; 9; 4"
    );
    assert_eq!(table.rows.len(), 2, "no row for an arm without arenas");
    assert!(table.rows[1][2..].iter().all(|entry| entry == "-"));
}

#[test]
fn a_table_of_system_calls() {
    let text = MEMORY
        .replace("walker", "arena-edge")
        .replace(
            r#"{ mode = ["list", "vec2x"], corpus = "text", size = "16MiB" }"#,
            r#"{ rounds = ["1k", "2k"] }"#,
        )
        .replace(
            r#"["system", "bump", "null"]"#,
            r#"["system", "arena-3.8", "jemalloc"]"#,
        )
        .replace("memory", "census");
    let experiment = Experiment::parse(&text, "e.toml").expect("good");
    let at = |arm: &str, rounds: &str, ops: u64| {
        Trial::census("kept", arm)
            .param("blocks", "20160")
            .param("size", "256")
            .param("rounds", rounds)
            .metric("ops", ops)
    };
    let records = [
        // Traced, and nothing happened.
        at("system", "1k", 1000).metric("copied_bytes", 0).ok(),
        at("system", "2k", 2000).metric("sys.brk", 1).ok(),
        at("arena-3.8", "1k", 1000)
            .metric("sys.mmap", 1000)
            .metric("sys.munmap", 1000)
            .ok(),
        at("arena-3.8", "2k", 2000)
            .absent("sys.*", "strace is missing")
            .ok(),
    ];
    let (summary, run) = (
        Summary::new(&records),
        AsRun::as_defined(&experiment, false),
    );
    let tables = Report::new(&experiment, &summary, &run).tables();
    let table = tables
        .iter()
        .find(|table| table.name == "e.kept.syscalls")
        .expect("rounds are even steps");
    assert_eq!(table.header.join("; "), "arm; 1k; 2k");
    let rows: Vec<String> = table.rows.iter().map(|row| row.join("; ")).collect();
    assert_eq!(rows, ["system; 0; 0.500", "arena-3.8; 2000; n/a"]);
    assert!(table.title.contains("each thousand rounds"));
    assert!(
        table.notes[0].contains(": brk, mmap, munmap."),
        "{:?}",
        table.notes
    );
    assert!(
        table.notes[1].contains("strace is missing"),
        "{:?}",
        table.notes
    );
}

#[test]
fn different_huge_pages_are_no_table() {
    let at = |arm: &str, child: &str| {
        let figures = [1024, 2048, 0, 0, 2048, 2048];
        resident(arm, "list", figures).thp(child, "always").ok()
    };
    let same = [at("system", "off"), at("bump", "off")];
    assert_eq!(memory_tables(&same)[0].header[0], "mode");
    let tables = memory_tables(&[at("system", "off"), at("bump", "on")]);
    let [table] = &tables[..] else {
        panic!("{tables:?}")
    };
    assert_eq!(table.name, "e.kept.memory");
    assert_eq!(table.header, ["arm", "transparent huge pages"]);
    assert_eq!(table.rows[0], ["bump", "on (machine: always)"]);
    assert!(table.notes[0].contains("not compared"), "{:?}", table.notes);
}

const LAYOUT: &str = r#"
id = "e"
title = "For tests"
analysis = "None."
[[grid]]
name = "both"
workload = "walker"
params = { corpus = "text", size = "1MiB" }
arms = ["system", "tcmalloc-2007", "obmalloc", "obmalloc:backing=tcmalloc-2007"]
protocols = ["time", "census"]
[grid.layout]
title = "with objects and without"
columns = ["malloc", "model"]
than = "obmalloc"
notes = ["By definition."]
[[grid.layout.row]]
name = "on"
arms = ["obmalloc", "obmalloc:backing=tcmalloc-2007"]
[[grid.layout.row]]
name = "off"
arms = ["system", "tcmalloc-2007"]
[[grid.layout.row]]
name = "then"
quoted = ["0:08", ""]
"#;

/// Each arm of the layout: its time in milliseconds, or a limit that it ran into, and its copies for each byte.
fn laid_out(backed: Result<u64, u64>) -> Vec<TrialRecord> {
    let arms = [
        ("system", Ok(200), 1),
        ("system#2", Ok(201), 1),
        ("tcmalloc-2007", Ok(4000), 128),
        ("obmalloc", Ok(100), 1),
        ("obmalloc:backing=tcmalloc-2007", backed, 128),
    ];
    let given = |trial: Trial| trial.param("corpus", "text").param("size", "1MiB");
    let mut records = Vec::new();
    for (arm, time, copies) in arms {
        let census = given(Trial::census("both", arm)).metric("appended_bytes", 1 << 20);
        records.push(census.metric("copied_bytes", copies << 20).ok());
        for block in 0..6 {
            let trial = given(Trial::time("both", arm, block));
            records.push(match time {
                Ok(ms) => trial.metric("wall_ns", ms * 1_000_000).ok(),
                Err(after_ms) => trial.end(Outcome::TimedOut { after_ms }),
            });
        }
    }
    records
}

fn layouts(definition: &str, records: &[TrialRecord]) -> Vec<Table> {
    let experiment = Experiment::parse(definition, "e.toml").expect("good");
    let (summary, run) = (Summary::new(records), AsRun::as_defined(&experiment, false));
    let mut tables = Report::new(&experiment, &summary, &run).tables();
    tables.retain(|table| table.name == "e.both.layout");
    tables
}

#[test]
fn a_two_way_table_of_arms() {
    let tables = layouts(LAYOUT, &laid_out(Ok(4100)));
    let [table] = &tables[..] else {
        panic!("{tables:?}")
    };
    assert_eq!(
        table.title,
        "both: with objects and without (walker, corpus=text size=1MiB)"
    );
    assert_eq!(table.header, ["", "malloc", "model"]);
    assert_eq!(
        table.rows[0],
        [
            "on",
            "100 ms\n1\n1.00",
            "4.10 s\n41.0 [41.0, 41.0] slower\n128"
        ]
    );
    assert_eq!(
        table.rows[1],
        [
            "off",
            "200 ms\n2.00 [2.00, 2.00] slower\n1.00",
            "4.00 s\n40.0 [40.0, 40.0] slower\n128"
        ]
    );
    assert_eq!(table.rows[2], ["then", "\"0:08\"", "-"]);
    let notes = table.notes.join("\n");
    for said in [
        "In each cell: the median wall time; that time as a multiple of obmalloc; bytes copied",
        "By definition.",
        "simultaneous over the cells",
        "obmalloc:backing=tcmalloc-2007: tcmalloc-2007 is a MODEL",
        "Not thread-safe: obmalloc, obmalloc:backing=tcmalloc-2007. Their heaps take no lock",
    ] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    let experiment = Experiment::parse(LAYOUT, "e.toml").expect("good");
    let records = laid_out(Ok(4100));
    let (summary, run) = (
        Summary::new(&records),
        AsRun::as_defined(&experiment, false),
    );
    let report = Report::new(&experiment, &summary, &run);
    let markdown = markdown::report(&report);
    let row = "| on | 100 ms<br>1<br>1.00 | 4.10 s<br>41.0 \\[41.0, 41.0\\] slower<br>128 |";
    assert!(markdown.contains(row), "{markdown}");
    assert!(table::report(&report, None).contains("│ on   ┆ 100 ms "));
    let json = json::report(&report).expect("serialises");
    assert!(json.contains("\"e.both.layout\""), "{json}");
}

#[test]
fn a_two_way_table_of_what_did_not_finish_or_was_not_run() {
    let timed_out = layouts(LAYOUT, &laid_out(Err(60_000))).remove(0);
    assert_eq!(timed_out.rows[0][2], "timed out\n>= 600 (timed out)\n128");
    let mut counted = laid_out(Ok(4100));
    counted.retain(|record| record.protocol == Protocol::Census && record.arm != "system");
    let table = layouts(LAYOUT, &counted).remove(0);
    assert_eq!(table.rows[0], ["on", "1.00", "128"]);
    assert_eq!(table.rows[1], ["off", "-", "128"]);
    assert!(table.notes[0].starts_with("In each cell: bytes copied"));
    // Nothing to divide by: the times stand alone.
    let mut alone = laid_out(Ok(4100));
    alone.retain(|record| record.protocol == Protocol::Time && record.arm != "obmalloc");
    let table = layouts(LAYOUT, &alone).remove(0);
    assert_eq!(table.rows[0], ["on", "-", "4.10 s"]);
    assert_eq!(layouts(LAYOUT, &[]), []);
}

#[test]
fn a_two_way_table_has_a_row_for_each_point() {
    let definition = LAYOUT.replace("size = \"1MiB\"", "size = [\"1MiB\", \"2MiB\"]");
    let mut records = laid_out(Ok(4100));
    let more: Vec<TrialRecord> = laid_out(Ok(8000))
        .into_iter()
        .map(|mut record| {
            record.params.insert("size".to_owned(), "2MiB".to_owned());
            record
        })
        .collect();
    records.extend(more);
    let table = layouts(&definition, &records).remove(0);
    let labels: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(
        labels,
        ["on, 1MiB", "on, 2MiB", "off, 1MiB", "off, 2MiB", "then"]
    );
    assert!(table.rows[1][2].starts_with("8.00 s\n80.0"), "{table:?}");
}

#[test]
fn different_huge_pages_are_no_two_way_table() {
    let mut records = laid_out(Ok(4100));
    for record in &mut records {
        let child = if record.arm == "system" { "on" } else { "off" };
        let facts = &mut record.receipt.get_or_insert_default().facts;
        facts.insert("thp".to_owned(), child.to_owned());
    }
    let table = layouts(LAYOUT, &records).remove(0);
    assert_eq!(table.header, ["arm", "transparent huge pages"]);
    assert!(table.notes[0].contains("not compared"), "{table:?}");
}
