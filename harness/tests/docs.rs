//! The documentation is true: whatever it lists is compared with the program, in both directions.
//!
//! Tables in the documents are read as data. A name that the program has and a document lacks fails here, and so does
//! one that a document has and the program lacks.

mod common;

use common::{definition, err, heaplab, out, said, spec};
use heaplab::arms::ARMS;
use heaplab::bench;
use heaplab::claims::{self, AsRun, Finding};
use heaplab::definitions::BUILT_IN;
use heaplab::experiment::Experiment;
use heaplab::metric;
use heaplab::plan::{self, Options};
use heaplab::report::{Report, csv, json};
use heaplab::summary::{ChecksumMismatch, Summary};
use heaplab::trial::{ServeAnswer, ServeRequest};
use heaplab::workloads::WORKLOADS;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const DOCS: [&str; 8] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "docs/methodology.md",
    "docs/workloads.md",
    "docs/format.md",
    "docs/history.md",
    "docs/results.md",
];

/// Those with tables of committed runs.
const WITH_RESULTS: [&str; 2] = ["README.md", "docs/results.md"];

type Names = BTreeSet<String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The text of a file of this repository.
fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// What stands under the heading `title`, up to the next heading of its level or above.
fn section(text: &str, title: &str) -> String {
    let level = |line: &str| line.bytes().take_while(|b| *b == b'#').count();
    let mut lines = text
        .lines()
        .skip_while(|line| line.trim_start_matches('#').trim() != title || level(line) == 0);
    let depth = level(
        lines
            .next()
            .unwrap_or_else(|| panic!("there is no heading `{title}`")),
    );
    lines
        .take_while(|line| level(line) == 0 || level(line) > depth)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The rows of a Markdown table, without its header.
type Table = Vec<Vec<String>>;

/// Every table whose first column is headed `first`, in order.
fn tables(text: &str, first: &str) -> Vec<Table> {
    let cells = |line: &str| -> Vec<String> {
        line.trim()
            .trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with('|') {
            continue;
        }
        let mut rows = Vec::new();
        while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
            if !row.starts_with("|---") {
                rows.push(cells(row));
            }
        }
        if cells(line)[0] == first {
            found.push(rows);
        }
    }
    found
}

/// The only table of `text` whose first column is headed `first`.
fn table(text: &str, first: &str) -> Table {
    let mut found = tables(text, first);
    assert_eq!(found.len(), 1, "tables headed `{first}`");
    found.remove(0)
}

/// A text as (language, lines) of its fenced blocks, and the words in single backticks outside of them.
fn code(text: &str) -> (Vec<(String, Vec<String>)>, Vec<String>) {
    let mut fences: Vec<(String, Vec<String>)> = Vec::new();
    let (mut inside, mut spans) = (false, Vec::new());
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            inside = !inside;
            if inside {
                fences.push((language.to_owned(), Vec::new()));
            }
        } else if inside {
            fences
                .last_mut()
                .expect("a fence is open")
                .1
                .push(line.to_owned());
        } else {
            spans.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    assert!(!inside, "a fence is not closed");
    (fences, spans)
}

/// The words in backticks.
fn ticked(text: &str) -> Names {
    text.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn first_column(table: &Table) -> Names {
    table.iter().flat_map(|row| ticked(&row[0])).collect()
}

fn same(what: &str, documented: &Names, real: &Names) {
    let stale: Vec<_> = documented.difference(real).collect();
    let missing: Vec<_> = real.difference(documented).collect();
    assert!(
        stale.is_empty() && missing.is_empty(),
        "{what}: documented and not there {stale:?}, undocumented {missing:?}"
    );
}

#[test]
fn every_workload_with_its_parameters() {
    let document = text("docs/workloads.md");
    let said = said(&["list", "workloads", "--json"]);
    let listed: Value = serde_json::from_str(&out(&said)).expect("JSON");
    let listed = listed["workloads"].as_array().expect("a list");
    let headings: Names = document
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(str::to_owned)
        .collect();
    let word = |value: &Value| value.as_str().expect("a text").to_owned();
    same(
        "workloads",
        &headings,
        &listed
            .iter()
            .map(|workload| word(&workload["id"]))
            .collect(),
    );
    for workload in listed {
        let id = word(&workload["id"]);
        let rows = table(&section(&document, &id), "parameter");
        let told = ticked(&section(&document, &id));
        let of_all = ticked(document.split("\n## ").next().unwrap_or_default());
        let phases = workload["phases"].as_array().expect("a list");
        for phase in phases.iter().map(word) {
            let known = told.contains(&phase) || of_all.contains(&phase);
            assert!(known, "{id}: phase {phase}");
        }
        let params = workload["params"].as_array().expect("a list");
        same(
            &id,
            &first_column(&rows),
            &params.iter().map(|param| word(&param["name"])).collect(),
        );
        for param in params {
            let name = word(&param["name"]);
            let row = rows
                .iter()
                .find(|row| row[0] == format!("`{name}`"))
                .expect("just compared");
            let default = param["default"]
                .as_str()
                .map_or("none".to_owned(), |value| format!("`{value}`"));
            assert_eq!(row[2], default, "default of {id} {name}");
            let takes = word(&param["takes"]);
            if takes.contains('|') {
                same(
                    &name,
                    &ticked(&row[1]),
                    &takes.split(" | ").map(str::to_owned).collect(),
                );
            } else if takes.contains(" to ") {
                assert_eq!(row[1], takes, "range of {id} {name}");
            }
        }
    }
}

#[test]
fn every_reason_to_skip_a_file() {
    let named = |path: &str, before: &str| -> Names {
        let source = text(path);
        let rests = source.split(before).skip(1);
        rests
            .filter_map(|rest| rest.split('"').next())
            .map(str::to_owned)
            .collect()
    };
    let mut real: Names = WORDS_OF_SKIP
        .iter()
        .flat_map(|(path, before)| named(path, before))
        .collect();
    real.retain(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
    assert!(real.len() > 10, "{real:?}");
    same(
        "reasons",
        &first_column(&table(
            &section(&text("docs/workloads.md"), "walker"),
            "reason",
        )),
        &real,
    );
}

/// Where reasons are named, and what stands before each.
const WORDS_OF_SKIP: [(&str, &str); 3] = [
    ("harness/src/input/tree.rs", " => \""),
    ("harness/src/workloads/walker.rs", "session.skip(\""),
    ("harness/src/child/session.rs", "self.skip(\""),
];

#[test]
fn every_metric_with_its_unit_and_exactness() {
    let rows = table(&section(&text("docs/format.md"), "Metrics"), "metric");
    let documented: Names = rows.iter().map(|row| row[..3].join(" ")).collect();
    let real = metric::TABLE
        .iter()
        .map(|one| {
            format!(
                "`{}` {} {}",
                one.name,
                one.unit,
                metric::exactness(one, None)
            )
        })
        .collect();
    same("metrics", &documented, &real);
}

#[test]
fn every_arm_with_its_knobs() {
    let rows = table(&section(&text("docs/format.md"), "Arms"), "arm");
    let documented = rows
        .iter()
        .map(|row| format!("{} {:?}", row[0], ticked(&row[1])))
        .collect();
    let knobs = |arm: &heaplab::arms::ArmDef| {
        arm.knobs
            .iter()
            .map(|knob| knob.name.to_owned())
            .collect::<Names>()
    };
    let arms = ARMS.iter().filter(|arm| !arm.test_only);
    same(
        "arms",
        &documented,
        &arms
            .map(|arm| format!("`{}` {:?}", arm.id, knobs(arm)))
            .collect(),
    );
}

#[test]
fn every_key_of_an_experiment() {
    let tables = tables(&section(&text("docs/format.md"), "Experiments"), "key");
    let levels = [
        "nonsense = 1",
        "[[grid]]\nnonsense = 1",
        "[[grid]]\n[grid.layout]\nnonsense = 1",
        "[[grid]]\n[grid.layout]\n[[grid.layout.row]]\nnonsense = 1",
        "[[claim]]\nnonsense = 1",
        "[[claim]]\n[[claim.check]]\nnonsense = 1",
    ];
    assert_eq!(tables.len(), levels.len());
    for (table, level) in tables.iter().zip(levels) {
        // The parser itself tells which keys it knows.
        let message = Experiment::parse(level, "x.toml")
            .expect_err("an unknown key")
            .message;
        let (_, expected) = message
            .split_once("expected one of")
            .unwrap_or_else(|| panic!("{message}"));
        let known = ticked(expected.split(';').next().unwrap_or_default());
        same(level, &first_column(table), &known);
    }
}

/// Objects whose keys vary.
const OPEN: [&str; 13] = [
    "libraries",
    "params",
    "series",
    "metrics",
    "absent",
    "skipped",
    "environment",
    "build",
    "knobs",
    "facts",
    "outcomes",
    "receipts",
    "values",
];

/// The paths of all values in `value`, written as the tables of `docs/format.md` write them; those in `whole` are not
/// looked into.
fn fields(value: &Value, path: &str, whole: &[&str], into: &mut Names) {
    let open = path
        .rsplit('.')
        .next()
        .is_some_and(|last| OPEN.contains(&last));
    let below = |key: &str| match (path.is_empty(), open) {
        (true, _) => key.to_owned(),
        (false, true) => format!("{path}.NAME"),
        (false, false) => format!("{path}.{key}"),
    };
    match value {
        Value::Object(_) if whole.contains(&path) => drop(into.insert(path.to_owned())),
        Value::Object(object) if object.is_empty() => drop(into.insert(below("NAME"))),
        Value::Object(object) => object
            .iter()
            .for_each(|(key, value)| fields(value, &below(key), whole, into)),
        Value::Array(items) if items.is_empty() => drop(into.insert(format!("{path}[]"))),
        Value::Array(items) => items
            .iter()
            .for_each(|item| fields(item, &format!("{path}[]"), whole, into)),
        _ => drop(into.insert(path.to_owned())),
    }
}

/// Without the lists and maps that were empty somewhere and not elsewhere.
fn filled(real: Names) -> Names {
    let inside = |path: &str, other: &str| {
        other
            .strip_prefix(path)
            .is_some_and(|rest| rest.starts_with(['.', '[']))
    };
    real.iter()
        .filter(|path| !real.iter().any(|other| inside(path, other)))
        .cloned()
        .collect()
}

/// Folders of runs in which everything happens that a record can tell of.
fn eventful_runs(dir: &Path) -> [PathBuf; 2] {
    let input = dir.join("input");
    fs::create_dir(&input).expect("a folder");
    fs::write(input.join("lines"), "one line of many\n".repeat(500)).expect("written");
    symlink("lines", input.join("link")).expect("linked");
    let arms = [
        "system",
        "null",
        "faulty-crash",
        "faulty-absent",
        "faulty-flip",
    ]
    .map(|arm| format!("\"{arm}\""));
    let first = definition(
        "walker",
        &format!("root = {:?}", input.to_str().expect("UTF-8")),
        &arms.join(", "),
        "\"census\", \"memory\", \"time\"",
        "blocks = 1\nmemory-limit = \"1GiB\"",
    );
    let second = "[[grid]]\nname = \"slow\"\nworkload = \"growth\"\nparams = { size = \"1MiB\" }\n\
                  arms = [\"system\", \"faulty-slow\"]\nprotocols = [\"time\"]\nblocks = 2\ntimeout = \"200ms\"\n";
    let file = dir.join("eventful.toml");
    fs::write(&file, first + second).expect("written");
    // Without strace, some metrics are absent.
    ["with", "without"].map(|strace| {
        let folder = dir.join(strace);
        let mut command = heaplab();
        command.arg("run").arg(&file).arg("--out").arg(&folder);
        if strace == "without" {
            command.env("PATH", "/nowhere").args([
                "--allocators",
                "system",
                "--protocol",
                "census",
            ]);
        }
        let output = command.output().expect("heaplab starts");
        assert!(folder.join("summary.json").exists(), "{}", err(&output));
        folder
    })
}

#[test]
fn every_field_of_every_file() {
    let dir = TempDir::new().expect("a temporary folder");
    let folders = eventful_runs(dir.path());
    let document = text("docs/format.md");
    let whole = ["cells[].set_aside[].outcome", "receipts.NAME"];
    for file in ["env.json", "plan.json", "records.jsonl", "summary.json"] {
        let mut real = Names::new();
        for folder in &folders {
            let content = fs::read_to_string(folder.join(file)).expect("the file is there");
            for value in serde_json::Deserializer::from_str(&content).into_iter::<Value>() {
                fields(&value.expect("JSON"), "", &whole, &mut real);
            }
        }
        if file == "summary.json" {
            // A run sets mismatches aside before they get here, so this one is made by hand.
            let mismatch = ChecksumMismatch {
                grid: "g".to_owned(),
                params: BTreeMap::new(),
                seed: 1,
                which: "ops".to_owned(),
                values: BTreeMap::from([("0".to_owned(), vec!["system".to_owned()])]),
            };
            let summary = Summary {
                checksum_mismatches: vec![mismatch],
                ..Summary::default()
            };
            fields(
                &serde_json::to_value(&summary).expect("JSON"),
                "",
                &whole,
                &mut real,
            );
        }
        same(
            file,
            &first_column(&table(&section(&document, file), "field")),
            &filled(real),
        );
    }
    for file in [
        "env.json",
        "experiment.toml",
        "plan.json",
        "records.jsonl",
        "summary.json",
    ] {
        assert!(folders[0].join(file).exists(), "{file}");
        assert!(
            first_column(&table(&section(&document, "The folder of a run"), "file")).contains(file),
            "{file}"
        );
    }
}

#[test]
fn every_field_of_serving() {
    let serving = section(&text("docs/format.md"), "Serving");
    let request = ServeRequest {
        iterations: 1,
        trial: spec("system", "growth", &[]),
    };
    let answer = ServeAnswer::default();
    for (file, value) in [
        ("request", serde_json::to_value(request)),
        ("answer", serde_json::to_value(answer)),
    ] {
        let value = value.expect("JSON");
        let fields = value.as_object().expect("an object").keys().cloned();
        let documented = first_column(&table(&serving, file));
        same(file, &documented, &fields.collect());
    }
}

#[test]
fn every_group_of_the_bench() {
    let rows = table(&section(&text("README.md"), "cargo bench"), "group");
    let family = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
    let documented: BTreeMap<String, String> = rows
        .iter()
        .map(|row| (family(row[0].trim_matches('`')), row[1].clone()))
        .collect();
    let groups = bench::groups().expect("they are sound");
    let families = groups.iter().map(|group| family(&group.name));
    let named = documented.keys().cloned().collect();
    same("groups of cargo bench", &named, &families.collect());
    for group in &groups {
        let (family, rest) = group.name.split_once('/').expect("two parts");
        let one = match family {
            "growth" => rest,
            "pairs" => rest.rsplit('-').next().expect("a count"),
            _ => continue,
        };
        let row = &documented[family];
        assert!(row.contains(one), "README.md, cargo bench: {one} in {row}");
    }
}

#[test]
fn every_field_of_a_verification() {
    let dir = TempDir::new().expect("a temporary folder");
    let folder = dir.path().join("found");
    let arms = "system,null,tcmalloc-2007,faulty-flip,faulty-absent,faulty-crash";
    let output = heaplab()
        .args(["verify", "--allocators", arms, "--out"])
        .arg(&folder)
        .output()
        .expect("heaplab starts");
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let document = text("docs/format.md");
    let content = fs::read_to_string(folder.join("behaviour.json")).expect("the file is there");
    let mut real = Names::new();
    let whole = ["arms[].failures[].outcome", "arms[].receipt"];
    fields(
        &serde_json::from_str(&content).expect("JSON"),
        "",
        &whole,
        &mut real,
    );
    same(
        "behaviour.json",
        &first_column(&table(&section(&document, "behaviour.json"), "field")),
        &filled(real),
    );
    let files = first_column(&table(&section(&document, "The folder of a run"), "file"));
    for entry in fs::read_dir(&folder).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(files.contains(&name), "{name}");
    }
}

#[test]
fn exit_codes_are_the_same_everywhere() {
    let codes = |document: &str| -> Vec<String> {
        table(&section(&text(document), "Exit codes"), "code")
            .iter()
            .map(|row| row[0].clone())
            .collect()
    };
    assert_eq!(codes("README.md"), ["0", "1", "2", "3", "130"]);
    assert_eq!(codes("docs/format.md"), codes("README.md"));
    for command in ["run", "verify"] {
        let help = out(&said(&[command, "--help"]));
        let (_, told) = help
            .split_once("Exit status:")
            .expect("the help tells them");
        for code in codes("README.md") {
            assert!(
                told.split(|c: char| !c.is_ascii_digit())
                    .any(|word| word == code),
                "{code} in {told}"
            );
        }
    }
}

/// Every `heaplab` command of the documents, in fenced blocks and in running text.
fn commands() -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for document in DOCS {
        let (fences, spans) = code(&text(document));
        let fenced = fences
            .into_iter()
            .filter(|(language, _)| language == "sh")
            .flat_map(|(_, lines)| lines);
        let all = fenced
            .chain(spans)
            .filter(|line| line.starts_with("heaplab "));
        found.extend(all.map(|line| (document, line)));
    }
    found
}

/// The complete example of an experiment in README.md.
fn example() -> String {
    let (fences, _) = code(&text("README.md"));
    let mut whole = fences
        .into_iter()
        .filter(|(language, lines)| language == "toml" && lines[0].starts_with("id = "));
    whole.next().expect("README.md has an example").1.join("\n")
}

#[test]
fn every_command_line_is_understood() {
    let dir = TempDir::new().expect("a temporary folder");
    let at = |name: &str| dir.path().join(name).to_str().expect("UTF-8").to_owned();
    for file in ["mine.toml", "file.toml"] {
        fs::write(at(file), example()).expect("written");
    }
    fs::write(at("input"), "a line\n").expect("written");
    let commands = commands();
    assert!(commands.len() > 15, "{commands:?}");
    for (document, line) in commands {
        let line = line
            .replace("root=PATH", &format!("root={}", at("input")))
            .replace("NAME", "growth-today");
        let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
        // A run with an experiment is planned; everything else only has to be understood.
        let planned = words[0] == "run" && words.get(1).is_some_and(|word| !word.starts_with('-'));
        let last = if planned { "--dry-run" } else { "--help" };
        if !words.contains(&last) {
            words.push(last);
        }
        let output = heaplab()
            .current_dir(dir.path())
            .args(&words)
            .output()
            .expect("heaplab starts");
        assert!(
            output.status.success(),
            "{document}: {line}\n{}",
            err(&output)
        );
    }
}

#[test]
fn the_example_of_an_experiment_does_what_it_claims() {
    let experiment = Experiment::parse(&example(), "mine.toml").expect("the example is right");
    let planned = plan::plan(&experiment, &Options::default()).expect("plannable");
    assert!(planned.trials.len() > 10);
    let ran = common::Ran::new(&example(), &["--quick", "--protocol", "census"]);
    let summary = Summary::new(&ran.records());
    for claim in claims::evaluate(&experiment, &summary, &AsRun::as_defined(&experiment, true)) {
        assert_eq!(claim.result, Finding::Reproduced, "{claim:?}");
    }
}

/// GitHub's name for a heading.
fn anchor(heading: &str) -> String {
    let kept = heading
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .collect::<String>();
    kept.replace(' ', "-")
}

#[test]
fn every_link_leads_somewhere() {
    let mut links = 0;
    for document in DOCS {
        let content = text(document);
        for target in content
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            if target.starts_with("https://") {
                continue;
            }
            links += 1;
            let (path, heading) = target
                .split_once('#')
                .map_or((target, None), |(path, heading)| (path, Some(heading)));
            let folder = Path::new(document).parent().expect("a file has a folder");
            let file = if path.is_empty() {
                PathBuf::from(document)
            } else {
                folder.join(path)
            };
            let led = fs::read_to_string(root().join(&file))
                .unwrap_or_else(|why| panic!("{document}: {target}: {why}"));
            if let Some(heading) = heading {
                let mut headings = led.lines().filter(|line| line.starts_with('#'));
                let found =
                    headings.any(|line| anchor(line.trim_start_matches('#').trim()) == heading);
                assert!(found, "{document}: {target}: no such heading");
            }
        }
    }
    assert!(links > 15, "{links} links");
}

#[test]
fn every_path_exists() {
    // NAME in a path stands for something that can be added: then it must exist for one that was.
    let mut names: Vec<String> = vec![String::new()];
    names.extend(
        ARMS.iter()
            .flat_map(|arm| [arm.id.to_owned(), arm.id.replace('-', "_")]),
    );
    names.extend(WORKLOADS.iter().map(|workload| workload.id.to_owned()));
    names.extend(BUILT_IN.iter().map(|(id, _)| (*id).to_owned()));
    let mut paths = 0;
    for document in DOCS {
        let (fences, spans) = code(&text(document));
        let scripts = fences
            .into_iter()
            .filter(|(language, _)| language == "sh")
            .flat_map(|(_, lines)| lines);
        let words: Vec<String> = spans
            .into_iter()
            .chain(scripts)
            .flat_map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>())
            .collect();
        for word in words {
            let ours = ["allocators/", "harness/", "scripts/", "docs/", ".ci/"]
                .iter()
                .any(|start| word.starts_with(start));
            if ours || word == "Cargo.toml" || word == "Cargo.lock" {
                paths += 1;
                let found = names
                    .iter()
                    .any(|name| root().join(word.replace("NAME", name)).exists());
                assert!(found, "{document}: {word} does not exist");
            }
        }
    }
    assert!(paths > 60, "{paths} paths");
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push(path);
        }
    }
}

/// Every source file of the workspace but tests, with its path from the root.
fn all_sources() -> Vec<(String, String)> {
    let mut files = Vec::new();
    sources(&root().join("allocators"), &mut files);
    sources(&root().join("harness/src"), &mut files);
    let named = files.into_iter().map(|file| {
        let path = file
            .strip_prefix(root())
            .expect("below the root")
            .to_str()
            .expect("UTF-8")
            .to_owned();
        let content = fs::read_to_string(&file).expect("readable");
        (path, content)
    });
    named
        .filter(|(path, _)| !path.contains("/tests/"))
        .collect()
}

#[test]
fn every_invariant_by_its_name_and_place() {
    let rows = table(&section(&text("ARCHITECTURE.md"), "Invariants"), "name");
    let documented = rows
        .iter()
        .map(|row| format!("{} {}", row[0], row[1].trim_matches('`')))
        .collect();
    let mut real = Names::new();
    for (path, content) in all_sources() {
        for rest in content.split("nvariant").skip(1) {
            // "Invariant LIVE: ..." and "one invariant, NO-MALLOC: ..." name one; "the invariants of" does not.
            let rest = rest.trim_start_matches([',', ' ']);
            let name: String = rest
                .chars()
                .take_while(|c| c.is_ascii_uppercase() || *c == '-')
                .collect();
            if name.len() > 2 {
                real.insert(format!("{name} {path}"));
            }
        }
    }
    // Named once more where it is kept, not where it is established.
    real.remove("NO-MALLOC harness/src/input/mod.rs");
    same("invariants", &documented, &real);
}

#[test]
fn what_must_never_be_is_not() {
    let mut judged = 0;
    for (path, content) in all_sources() {
        let within = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
        if !within(&[
            "allocators/",
            "harness/src/probe/",
            "harness/src/child/",
            "harness/src/bin/",
        ]) {
            for word in ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"] {
                assert!(!content.contains(word), "{path}: {word}");
            }
        }
        if within(&[
            "harness/src/stats/",
            "harness/src/claims/",
            "harness/src/report/",
            "harness/src/summary.rs",
        ]) {
            judged += 1;
            for word in [
                "Instant::now",
                "SystemTime",
                "Timestamp::now",
                "\"/proc",
                "Command::new",
                "probe::",
            ] {
                assert!(!content.contains(word), "{path}: {word}");
            }
        }
    }
    assert!(judged > 8, "{judged} files of pure functions");
    assert!(text("harness/src/workloads/mod.rs").contains("#![forbid(unsafe_code)]"));
}

#[test]
fn every_package_that_setup_installs() {
    let setup = text("scripts/setup");
    let (_, function) = setup
        .split_once("missing_packages() {")
        .expect("setup has the function");
    let function = function.split("\n}").next().unwrap_or_default();
    let mut packages = Names::new();
    for line in function.lines() {
        let words = line.split('#').next().unwrap_or_default();
        if let Some((_, package)) = words.split_once("|| echo ") {
            packages.insert(package.trim().to_owned());
        } else if let Some((_, several)) = words.split_once("printf '%s\\n' ") {
            packages.extend(several.split_whitespace().map(str::to_owned));
        }
    }
    assert!(packages.len() > 10, "{packages:?}");
    let named = ticked(&section(&text("README.md"), "Two commands"));
    let missing: Vec<_> = packages.difference(&named).collect();
    assert!(missing.is_empty(), "README.md does not name {missing:?}");
}

#[test]
fn results_have_their_places() {
    let results = text("docs/results.md");
    let mut tables = Names::new();
    for (id, definition) in BUILT_IN {
        let experiment = Experiment::parse(definition, id).expect("built in");
        let kinds = [
            "census",
            "exponents",
            "memory",
            "time",
            "time-not-thread-safe",
            "layout",
            "instructions",
            "instructions-not-thread-safe",
            "mispredictions",
            "faults",
            "syscalls",
            "ns",
            "ns-not-thread-safe",
            "arenas",
        ];
        tables.extend(
            experiment
                .grids
                .iter()
                .flat_map(|grid| kinds.map(|kind| format!("{id}.{}.{kind}", grid.name))),
        );
        tables.insert(format!("{id}.arms"));
        if !experiment.claims.is_empty() {
            tables.insert(format!("{id}.claims"));
            assert!(
                results.contains(&format!("<!-- BEGIN {id}.claims -->")),
                "{id} has no place for its claims in docs/results.md"
            );
        }
    }
    for document in WITH_RESULTS {
        let (places, _) = splice_points(&text(document));
        assert!(places.len() > 2);
        let strange: Vec<_> = places
            .iter()
            .filter(|name| !tables.contains(*name))
            .collect();
        assert!(strange.is_empty(), "no run has the tables {strange:?}");
    }
    for document in DOCS {
        let (begins, ends) = splice_points(&text(document));
        assert_eq!(
            begins, ends,
            "{document}: every beginning has its end, in the same order"
        );
    }
}

/// The names between `<!-- BEGIN ` and `-->`, and those of the ends, for lines that are nothing else.
fn splice_points(text: &str) -> (Vec<String>, Vec<String>) {
    let named = |what: &str| -> Vec<String> {
        let names = text
            .lines()
            .filter_map(|line| line.strip_prefix(what)?.strip_suffix(" -->"));
        names.map(str::to_owned).collect()
    };
    (named("<!-- BEGIN "), named("<!-- END "))
}

#[test]
fn every_field_and_column_of_a_report() {
    let document = section(&text("docs/format.md"), "Reports");
    let experiment = Experiment::parse(&example(), "mine.toml").expect("the example is right");
    let run = AsRun::as_defined(&experiment, true);
    let ran = common::Ran::new(&example(), &["--quick", "--protocol", "census"]);
    let mut real = Names::new();
    // One with everything, and one without a record, whose claim has a reason.
    for records in [ran.records(), Vec::new()] {
        let summary = Summary::new(&records);
        let report = Report::new(&experiment, &summary, &run);
        let value = serde_json::to_value(json::Document::new(&report)).expect("JSON");
        fields(&value, "", &["summary"], &mut real);
    }
    same(
        "report",
        &first_column(&table(&document, "field")),
        &filled(real),
    );

    let content = csv::report(&Summary::new(&ran.records())).expect("CSV");
    let mut columns: Names = content
        .lines()
        .next()
        .expect("a header")
        .split(',')
        .map(str::to_owned)
        .collect();
    for param in ["shape", "size", "step"] {
        assert!(columns.remove(param), "{param}");
    }
    same("CSV", &first_column(&table(&document, "column")), &columns);

    let help = out(&said(&["report", "--help"]));
    for format in first_column(&table(&document, "format")) {
        assert!(help.contains(&format), "{format}");
    }
}

/// The tables in the README and in the results are those that the newest committed records of each experiment give.
#[test]
fn documents_show_what_the_committed_records_say() {
    let root = root();
    let named = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).expect("committed results");
        let names = entries.map(|entry| entry.expect("readable").file_name());
        let mut names: Vec<_> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let results = root.join("paper/results");
    let mut newest = BTreeMap::new();
    for run in named(&results) {
        for experiment in named(&results.join(&run)) {
            newest.insert(experiment, run.clone());
        }
    }
    assert!(newest.len() > 1, "{newest:?}");
    for (experiment, run) in newest {
        let folder = format!("paper/results/{run}/{experiment}");
        let of_it = |document: &&str| {
            let (places, _) = splice_points(&text(document));
            places
                .iter()
                .any(|place| place.starts_with(&format!("{experiment}.")))
        };
        let documents = WITH_RESULTS.iter().copied().filter(of_it);
        for document in documents {
            let output = heaplab()
                .current_dir(&root)
                .args(["report", &folder, "--into", document, "--check"])
                .output()
                .expect("heaplab starts");
            assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        }
        // And their claims still come out as they should.
        let claims = heaplab()
            .current_dir(&root)
            .args(["claims", &folder])
            .output()
            .expect("heaplab starts");
        assert_eq!(claims.status.code(), Some(0), "{}", err(&claims));
    }
}
