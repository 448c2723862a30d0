//! Dumps are read: those that our heaps print, as every generation does, and those of the interpreters on this machine.

mod common;

use arena::dump::{self, Dump, Fault};
use common::Arena;
use contract::suite::alone;
use contract::{Arm, Heap};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The interpreter that `scripts/setup` sees to.
const SYSTEMS: &str = "/usr/bin/python3";

const ARMS: [&str; 6] = [
    "arena-2.4",
    "arena-2.5",
    "arena-3.8",
    "arena-3.9",
    "arena-3.10",
    "arena-3.10-keep0",
];

/// Our own text with the statistics that it was made of, from an empty heap and from one with blocks of all sizes.
fn texts(arm: &str, knobs: &[(&str, &str)]) -> Vec<(String, arena::stats::Stats)> {
    let knobs: Vec<(String, String)> = knobs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let heap = Arena::open(arm, &knobs).expect("the arm opens");
    let said = || (heap.debug_text().to_string(), heap.statistics());
    let mut texts = vec![said()];
    let blocks: Vec<*mut u8> = (0..40_000).map(|n| heap.malloc(1 + n * 7 % 512)).collect();
    texts.push(said());
    for (n, p) in blocks.into_iter().enumerate() {
        // SAFETY: live, once each.
        unsafe { heap.free(p) };
        if n == 30_000 {
            texts.push(said());
        }
    }
    texts.push(said());
    texts
}

/// Every dump adds up by what its lines mean.
fn adds_up(dump: &Dump) {
    let stats = &dump.stats;
    let blocks = |count: fn(&arena::stats::ClassStats) -> u64| -> u64 {
        let sizes = (1..).map(|units| units * stats.alignment);
        stats
            .classes
            .iter()
            .zip(sizes)
            .map(|(class, size)| count(class) * size)
            .sum()
    };
    assert_eq!(blocks(|class| class.used_blocks), stats.bytes.allocated);
    assert_eq!(blocks(|class| class.free_blocks), stats.bytes.available);
    assert_eq!(stats.free_pools * stats.pool_size, stats.bytes.unused_pools);
    assert_eq!(
        stats.bytes.total(),
        stats.arenas.current * stats.arenas.size
    );
    assert_eq!(
        stats.arenas.total - stats.arenas.reclaimed,
        stats.arenas.current
    );
    assert!(stats.arenas.current <= stats.arenas.highwater);
    assert!(stats.arenas.highwater <= stats.arenas.total);
}

#[test]
fn what_our_heaps_print_reads_back() {
    let _turn = alone();
    let old = &[("align", "8"), ("threshold", "256")][..];
    for (arm, knobs) in ARMS
        .map(|arm| (arm, &[][..]))
        .into_iter()
        .chain([("arena-2.4", old), ("arena-2.5", old)])
    {
        let texts = texts(arm, knobs);
        let stream: String = texts.iter().map(|(text, _)| text.as_str()).collect();
        let read = dump::read(&stream);
        assert_eq!(read.errors, [], "{arm}");
        assert_eq!(read.dumps.len(), texts.len(), "{arm}");
        for (dump, (text, stats)) in read.dumps.iter().zip(&texts) {
            assert_eq!(dump.text().to_string(), *text, "{arm}");
            adds_up(dump);
            assert_eq!(dump.malloc_calls, None);
            let mut told = dump.stats;
            if !dump.counts_arenas {
                // A text that does not say what the heap knows.
                told.arenas = stats.arenas;
            }
            if let (Some(map), Some(own)) = (&mut told.map, &stats.map)
                && own.middle_nodes == 0
            {
                map.node_bytes = own.node_bytes;
            }
            assert_eq!(told, *stats, "{arm}");
        }
    }
}

/// Which lines a generation has, in which order.
#[test]
fn each_generations_lines() {
    let _turn = alone();
    let before = ["Small block threshold"];
    let counts = [
        "# arenas allocated total",
        "# arenas reclaimed",
        "# arenas highwater mark",
        "# arenas allocated current",
    ];
    let bytes = [
        "N arenas * N bytes/arena",
        "# bytes in allocated blocks",
        "# bytes in available blocks",
        "N unused pools * N bytes",
        "# bytes lost to pool headers",
        "# bytes lost to quantization",
        "# bytes lost to arena alignment",
        "Total",
    ];
    let map = [
        "# arena map mid nodes",
        "# arena map bot nodes",
        "# bytes lost to arena map root",
        "# bytes lost to arena map mid",
        "# bytes lost to arena map bot",
        "Total",
    ];
    for arm in ARMS {
        let mut expected = before.to_vec();
        if arm != "arena-2.4" {
            expected.extend(counts);
        }
        expected.extend(bytes);
        if arm.starts_with("arena-3.10") {
            expected.extend(map);
        }
        for (text, _) in texts(arm, &[]) {
            let names = text.lines().filter_map(|line| line.split_once('='));
            let names: Vec<String> = names
                .map(|(name, _)| {
                    let words = name.split_whitespace().map(|word| {
                        let number = word.bytes().all(|byte| byte.is_ascii_digit());
                        if number { "N" } else { word }
                    });
                    words.collect::<Vec<_>>().join(" ")
                })
                .collect();
            assert_eq!(names, expected, "{arm}");
        }
    }
}

/// The interpreters that can be found: the system's, and whatever version managers have in the usual places. A stand-in
/// on PATH that chooses one of them is none.
fn interpreters() -> Vec<PathBuf> {
    assert!(
        Path::new(SYSTEMS).exists(),
        "{SYSTEMS} is missing, whose dumps are read here: apt-get install python3, or scripts/setup"
    );
    let mut found = BTreeSet::from([PathBuf::from(SYSTEMS)]);
    let mut folders = vec![PathBuf::from("/usr/bin"), PathBuf::from("/usr/local/bin")];
    if let Some(home) = std::env::home_dir()
        && let Ok(versions) = home.join(".pyenv/versions").read_dir()
    {
        folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    for folder in folders {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let version = name.strip_prefix("python3");
            let digits = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.');
            // One interpreter has several names.
            if version.is_some_and(digits)
                && let Ok(real) = entry.path().canonicalize()
                && !real.is_dir()
            {
                found.insert(real);
            }
        }
    }
    let system = Path::new(SYSTEMS).canonicalize().expect("it is there");
    found.retain(|one| one.as_path() == Path::new(SYSTEMS) || *one != system);
    found.into_iter().collect()
}

/// What an interpreter writes to its standard error, and whether it ended well.
fn told(python: &Path, program: &str, malloc: &str, stats: bool) -> (String, bool) {
    let mut command = Command::new(python);
    command
        .args(["-S", "-c", program])
        .env_clear()
        .env("PYTHONMALLOC", malloc)
        .stdin(Stdio::null());
    if stats {
        command.env("PYTHONMALLOCSTATS", "1");
    }
    let ran = command
        .output()
        .unwrap_or_else(|why| panic!("{}: {why}", python.display()));
    let said = String::from_utf8(ran.stderr).expect("ASCII");
    (said, ran.status.success())
}

/// The dump printed again is what the interpreter printed, but for what is not the heap's.
fn prints_the_same(text: &str, dumps: &[Dump]) {
    let ours: String = dumps.iter().map(|dump| dump.text().to_string()).collect();
    let own = |line: &&str| !line.contains(" bytes each =") && !line.starts_with("# times object");
    let lines = |text: &str| -> Vec<String> {
        let kept = text.lines().filter(own).filter(|line| !line.is_empty());
        kept.map(str::to_owned).collect()
    };
    assert_eq!(lines(&ours), lines(text));
}

#[test]
fn what_interpreters_print_is_read() {
    for python in interpreters() {
        let named = python.display().to_string();
        // One before each new arena, and one at the end.
        let lists = "x = [[] for _ in range(100_000)]; del x";
        let (text, ended_well) = told(&python, lists, "pymalloc", true);
        let read = dump::read(&text);
        assert_eq!(read.errors, [], "{named}");
        prints_the_same(&text, &read.dumps);
        read.dumps.iter().for_each(adds_up);
        for (n, dump) in read.dumps.iter().enumerate() {
            assert_eq!(dump.stats.arenas.total, n as u64, "{named}");
        }
        assert!(read.dumps.len() > 5, "{named}: {}", read.dumps.len());
        let lines = text.lines().count();
        println!("{named}: {} dumps in {lines} lines", read.dumps.len());
        // 3.12.1 for one crashes when it has printed the last.
        assert!(
            ended_well || python != Path::new(SYSTEMS),
            "{named} did not end well"
        );

        // One, with free lists behind it; and with the debug hooks, which may count calls.
        for malloc in ["pymalloc", "pymalloc_debug"] {
            let program = "import sys; sys._debugmallocstats()";
            let (text, _) = told(&python, program, malloc, false);
            let read = dump::read(&text);
            assert_eq!(read.errors, [], "{named} {malloc}");
            assert_eq!(read.dumps.len(), 1, "{named} {malloc}");
            prints_the_same(&text, &read.dumps);
            let dump = &read.dumps[0];
            adds_up(dump);
            assert!(dump.stats.bytes.allocated > 0);
            let mut lists = dump.free_lists.iter();
            assert!(lists.any(|list| list.name == "PyFloatObject"), "{named}");
            let calls = text.contains("# times object malloc called");
            assert_eq!(dump.malloc_calls.is_some(), calls, "{named} {malloc}");
        }
    }
}

/// A program that writes between dumps loses none, and each of its lines is told with its number.
#[test]
fn a_programs_own_lines_are_told() {
    let program = "import sys; print('mine', file=sys.stderr, flush=True)";
    let (text, _) = told(Path::new(SYSTEMS), program, "pymalloc", true);
    let read = dump::read(&text);
    let [error] = &read.errors[..] else {
        panic!("{:?}", read.errors)
    };
    assert_eq!(error.fault, Fault::Unknown("mine".to_owned()));
    assert_eq!(text.lines().nth(error.line - 1), Some("mine"));
    assert!(read.dumps.len() > 1);
}
