//! Arms `name=path.so`: measured if the library answers and behaves, marked if it breaks a rule, refused otherwise, and
//! never taken for the C library.

mod common;

use common::{Ran, broken, compiled, debian, definition, err, heaplab, metric, out};
use heaplab::record::TrialRecord;
use heaplab::trial::{Outcome, SUITE_FACT};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const ONE: &str = "size = \"64KiB\"";

/// A run of one small point under `system` and, called `mine`, the library.
fn ran(library: &Path, protocols: &str) -> Ran {
    let definition = definition("growth", ONE, "\"system\"", protocols, "blocks = 2");
    let arms = format!("system,mine={}", library.display());
    Ran::new(&definition, &["--allocators", &arms])
}

/// valgrind passes the library on to the child, which proves that it is there as ever.
#[test]
fn instructions_are_counted_with_the_library() {
    let folder = TempDir::new().expect("a temporary folder");
    let library = compiled(folder.path(), "sound.c", &[]);
    let definition = definition(
        "growth",
        ONE,
        "\"system\"",
        "\"census\"",
        "instructions = true",
    );
    let arms = format!("system,mine={}", library.display());
    let ran = Ran::new(&definition, &["--allocators", &arms]);
    let [system, mine] = &ran.records()[..] else {
        panic!("{}", err(&ran.output))
    };
    let [plain, through] = [system, mine].map(|record| metric(record, "instructions"));
    assert!(
        through > plain,
        "it forwards to the C library: {through}, {plain}"
    );
}

/// The records of `mine`, at least one.
fn mine(ran: &Ran) -> Vec<TrialRecord> {
    let mut records = ran.records();
    records.retain(|record| record.arm == "mine");
    assert!(!records.is_empty(), "{}", err(&ran.output));
    records
}

/// What the receipt says of the behaviour suite.
fn behaviour(record: &TrialRecord) -> &str {
    let receipt = record.receipt.as_ref();
    let receipt = receipt.unwrap_or_else(|| panic!("no receipt: {record:?}"));
    &receipt.facts[SUITE_FACT]
}

/// Why the library was not measured; `system` was.
fn refused(library: &Path) -> String {
    let ran = ran(library, "\"census\"");
    let system = &ran.records()[0];
    assert_eq!(
        (system.arm.as_str(), &system.outcome),
        ("system", &Outcome::Ok)
    );
    let record = mine(&ran).remove(0);
    assert!(record.metrics.is_empty(), "{record:?}");
    match record.outcome {
        Outcome::Unavailable { why } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_sound_library_is_measured() {
    let folder = TempDir::new().expect("a temporary folder");
    let library = compiled(folder.path(), "sound.c", &[]);
    let ran = ran(&library, "\"census\", \"time\"");
    assert_eq!(ran.output.status.code(), Some(0), "{}", err(&ran.output));
    let records = mine(&ran);
    assert_eq!(records.len(), 3, "a census and two blocks");
    for record in &records {
        assert_eq!(record.outcome, Outcome::Ok, "{record:?}");
        assert_eq!(behaviour(record), "keeps all 16 rules");
        assert_eq!(record.environment["LD_PRELOAD"], "libmine.so");
        let receipt = record.receipt.as_ref().expect("just read");
        assert_eq!(receipt.allocator, "libmine.so");
        let hash = xxhash_rust::xxh3::xxh3_64(&fs::read(&library).expect("the library"));
        assert_eq!(receipt.version, format!("xxh3 {hash:016x}"));
    }
    // The folder is named where a resumed run needs it, and in no record.
    let read = |file| fs::read_to_string(ran.folder().join(file)).expect("the file");
    let folder = folder.path().to_str().expect("UTF-8");
    assert!(!read("records.jsonl").contains(folder));
    assert!(!read("summary.json").contains(folder));
    assert!(read("plan.json").contains(folder));
    assert!(out(&ran.output).contains("mine is libmine.so, by LD_PRELOAD"));
}

/// It forwards to the C library, so the kernel sees the same calls: strace must not have been preloaded in its stead,
/// nor the child have been left without.
#[test]
fn the_census_traces_the_child_and_not_the_tracer() {
    let folder = TempDir::new().expect("a temporary folder");
    let library = compiled(folder.path(), "sound.c", &[]);
    let definition = definition("growth", "size = \"1MiB\"", "\"system\"", "\"census\"", "");
    let arms = format!("system,mine={}", library.display());
    let ran = Ran::new(&definition, &["--allocators", &arms]);
    let [system, mine] = &ran.records()[..] else {
        panic!("{}", err(&ran.output))
    };
    for name in ["sys.mremap", "realloc_moves", "copied_bytes"] {
        assert_eq!(metric(mine, name), metric(system, name), "{name}");
    }
    assert!(metric(mine, "sys.mremap") > 100, "{:?}", mine.metrics);
}

#[test]
fn a_library_that_breaks_a_rule_is_marked() {
    let (_folder, library) = broken("MISALIGNS");
    let ran = ran(&library, "\"census\"");
    assert_eq!(ran.output.status.code(), Some(0), "{}", err(&ran.output));
    let record = mine(&ran).remove(0);
    assert_eq!(record.outcome, Outcome::Ok);
    let said = behaviour(&record);
    assert!(
        said.starts_with("BREAKS \"every size is aligned for any C type of that size\""),
        "{said}"
    );
    // Under every table in which it stands, with the rule.
    let told = out(&ran.output);
    let mark = "mine (libmine.so, by LD_PRELOAD) is MARKED";
    assert!(told.contains(mark), "{told}");
    assert!(told.contains("every size is aligned"), "{told}");
}

#[test]
fn a_library_that_loses_data_or_crashes_is_refused() {
    for (fault, words) in [
        ("OVERLAPS", "every figure rests on"),
        ("LOSES", "realloc keeps contents"),
        ("CRASHES", "SIGSEGV: at the rule \"every size is aligned"),
    ] {
        let (_folder, library) = broken(fault);
        let why = refused(&library);
        assert!(why.starts_with("refused: "), "{fault}: {why}");
        assert!(why.contains(words), "{fault}: {why}");
    }
}

#[test]
fn what_does_not_answer_is_never_measured_as_the_c_library() {
    // One of the four functions is the C library's.
    let (_folder, library) = broken("HALF");
    let why = refused(&library);
    assert!(
        why.contains("calloc of this process is not libmine.so's but libc.so"),
        "{why}"
    );

    // An ELF file that the loader passes over, with no more than a warning.
    let folder = TempDir::new().expect("a temporary folder");
    let library = folder.path().join("libmine.so");
    fs::write(&library, b"\x7fELF and then something else").expect("written");
    let why = refused(&library);
    assert!(
        why.contains("malloc of this process is not libmine.so's but libc.so"),
        "{why}"
    );
}

#[test]
fn a_run_of_nothing_but_a_refused_library_is_told() {
    let (_folder, library) = broken("LOSES");
    let definition = definition("growth", ONE, "\"system\"", "\"census\"", "");
    let arms = format!("mine={}", library.display());
    let ran = Ran::new(&definition, &["--allocators", &arms]);
    assert_eq!(ran.output.status.code(), Some(3), "{}", err(&ran.output));
}

#[test]
fn what_is_no_library_is_bad_input() {
    let folder = TempDir::new().expect("a temporary folder");
    let text = folder.path().join("text.so");
    fs::write(&text, "not a library\n").expect("written");
    for (arm, words) in [
        ("mine=/no/such/lib.so".to_owned(), "no such library"),
        (format!("mine={}", text.display()), "no shared library"),
        (
            format!("mine={}", folder.path().display()),
            "no shared library",
        ),
        (format!("system={}", text.display()), "another name"),
    ] {
        let output = heaplab()
            .args(["run", "growth-today", "--dry-run", "--allocators", &arm])
            .output()
            .expect("heaplab starts");
        assert_eq!(output.status.code(), Some(2), "{arm}");
        assert!(err(&output).contains(words), "{arm}: {}", err(&output));
    }
}

#[test]
fn debians_jemalloc_is_measured() {
    let ran = ran(&debian("libjemalloc.so.2"), "\"census\"");
    let record = mine(&ran).remove(0);
    assert_eq!(record.outcome, Outcome::Ok, "{record:?}");
    assert_eq!(behaviour(&record), "keeps all 16 rules");
}

/// Its posix_memalign gives addresses that are no multiple of what was asked.
#[test]
fn debians_mimalloc_is_marked_with_the_rule_it_breaks() {
    let ran = ran(&debian("libmimalloc.so.2.0"), "\"census\"");
    let record = mine(&ran).remove(0);
    assert_eq!(record.outcome, Outcome::Ok, "{record:?}");
    let said = behaviour(&record);
    assert!(
        said.starts_with("BREAKS \"aligned blocks are aligned, and keep their contents\""),
        "{said}"
    );
}
