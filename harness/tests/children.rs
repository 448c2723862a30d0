//! Every child links what its arms name and nothing else, and `heaplab` links none of it: told by the symbols of the
//! binaries themselves.
//!
//! An allocator is recognised by an entry point that it alone defines, with global binding: gperftools' objects keep a
//! *local* `malloc` of their own (see `tcmalloc-sys/build.rs`), which takes nothing over.

mod common;

use heaplab::arms::{ARMS, ArmDef, Home, PRELOAD, Takes};
use object::{Object, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// How a binary shows that it holds an arm.
#[derive(Debug, PartialEq)]
enum Mark {
    /// It defines this global symbol.
    Defines(&'static str),
    /// It holds code of this Rust crate. Mangled names give a path's parts with their lengths, in both manglings.
    Crate(&'static str),
    /// It calls the C library's `malloc` and so leaves it undefined. Others may do so as well: the Rust runtime does.
    Calls(&'static str),
    /// It holds no allocator: a test child over the C library's.
    Nothing,
}

/// Every arm, and what those of the user's own libraries are.
fn arms() -> impl Iterator<Item = &'static ArmDef> {
    ARMS.iter().chain([&PRELOAD])
}

/// By what an arm is recognised, all of it; `None` for an arm that this table has forgotten.
fn marks(arm: &str) -> Option<Vec<Mark>> {
    let through_global_alloc = || Mark::Crate("11rust_global");
    Some(match arm {
        "system" | "preload" => vec![Mark::Calls("malloc")],
        "jemalloc" => vec![Mark::Defines("_rjem_malloc")],
        "jemalloc-global" => vec![Mark::Defines("_rjem_malloc"), through_global_alloc()],
        "mimalloc" => vec![Mark::Defines("mi_free"), Mark::Defines("mi_malloc")],
        // GlobalAlloc never gets to mi_malloc, so the linker leaves it out.
        "mimalloc-global" => vec![Mark::Defines("mi_free"), through_global_alloc()],
        "mimalloc-v2" => vec![Mark::Defines("m2_mi_malloc")],
        "tcmalloc-google" => vec![Mark::Defines("TCMallocInternalMalloc")],
        "tcmalloc-gperftools" => vec![Mark::Defines("heaplab_gp_tc_malloc")],
        "tcmalloc-2007" => vec![Mark::Crate("13tcmalloc_2007")],
        "arena" | "arena-3.10" | "arena-3.10-keep0" => vec![Mark::Defines("heaplab_arena_malloc")],
        "arena-3.9" => vec![Mark::Defines("heaplab_arena_3_9_malloc")],
        "arena-3.8" => vec![Mark::Defines("heaplab_arena_3_8_malloc")],
        "arena-2.5" => vec![Mark::Defines("heaplab_arena_2_5_malloc")],
        "arena-2.4" => vec![Mark::Defines("heaplab_arena_2_4_malloc")],
        "obmalloc" => vec![Mark::Defines("heaplab_obm_as_is_malloc")],
        "obmalloc-1m-eager" => vec![Mark::Defines("heaplab_obm_1m_eager_malloc")],
        "obmalloc-classic" => vec![Mark::Defines("heaplab_obm_classic_malloc")],
        "obmalloc-eager" => vec![Mark::Defines("heaplab_obm_eager_malloc")],
        "bump" => vec![Mark::Defines("heaplab_bump_malloc")],
        "null" => vec![Mark::Defines("heaplab_null_malloc")],
        "audit" | "audit-strdup" => vec![Mark::Defines("malloc")],
        "schedule" | "schedule-spike" => vec![Mark::Nothing],
        _ if arm.starts_with("faulty-") => vec![Mark::Nothing],
        _ => return None,
    })
}

/// What takes over the C library's heap, or C++'s, when a program defines it.
const TAKES_OVER: [&str; 9] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "_Znwm",
    "_ZdlPv",
];

/// The symbols of one binary.
struct Symbols {
    /// Defined, global or weak.
    global: BTreeSet<String>,
    /// Defined, of any binding.
    defined: BTreeSet<String>,
    /// Wanted from a library, without their version.
    undefined: BTreeSet<String>,
}

impl Symbols {
    fn of(binary: &Path) -> Symbols {
        let shown = binary.display();
        let bytes = fs::read(binary).unwrap_or_else(|why| panic!("{shown}: {why}"));
        let parsed = object::File::parse(&*bytes).unwrap_or_else(|why| panic!("{shown}: {why}"));
        let mut symbols = Symbols {
            global: BTreeSet::new(),
            defined: BTreeSet::new(),
            undefined: BTreeSet::new(),
        };
        for symbol in parsed.symbols() {
            let name = symbol.name().unwrap_or_else(|why| panic!("{shown}: {why}"));
            if symbol.is_undefined() {
                let plain = name.split('@').next().unwrap_or(name);
                symbols.undefined.insert(plain.to_owned());
            } else {
                symbols.defined.insert(name.to_owned());
                if symbol.is_global() {
                    symbols.global.insert(name.to_owned());
                }
            }
        }
        // A stripped binary would pass every test of absence.
        assert!(symbols.global.contains("main"), "{shown} is stripped");
        symbols
    }

    fn show(&self, mark: &Mark) -> bool {
        match mark {
            Mark::Defines(symbol) => self.global.contains(*symbol),
            Mark::Crate(part) => self.defined.iter().any(|name| name.contains(part)),
            Mark::Calls(symbol) => self.undefined.contains(*symbol),
            Mark::Nothing => true,
        }
    }
}

fn heaplab() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_heaplab"))
}

/// The children that belong to this build, by name. (The folder can hold others, of an earlier build with other
/// features.)
fn children() -> BTreeMap<&'static str, Symbols> {
    let built: BTreeSet<&str> = arms()
        .flat_map(homes)
        .filter(|(home, _)| home.built)
        .map(|(home, _)| home.child)
        .collect();
    built
        .into_iter()
        .map(|child| (child, Symbols::of(&heaplab().with_file_name(child))))
        .collect()
}

/// Where an arm is held, with the other arm that is held there for it: the value of a knob.
fn homes(arm: &'static ArmDef) -> Vec<(Home, Option<&'static str>)> {
    let words = arm.knobs.iter().filter_map(|knob| match knob.takes {
        Takes::Word(words) => Some(words),
        _ => None,
    });
    let chosen = words
        .flatten()
        .map(|word| (word.home.unwrap_or(arm.home()), Some(word.name)));
    [(arm.home(), None)].into_iter().chain(chosen).collect()
}

/// What each child holds, by name.
fn held() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut held: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for arm in arms() {
        for (home, other) in homes(arm) {
            let arms = held.entry(home.child).or_default();
            arms.insert(arm.id);
            arms.extend(other);
        }
    }
    held
}

#[test]
fn every_arm_is_in_its_own_child_and_nowhere_else() {
    let children = children();
    let held = held();
    let without_obmalloc = common::obmalloc_missing();
    let heaplab = Symbols::of(&heaplab());
    let of = |arm: &str| marks(arm).unwrap_or_else(|| panic!("{arm}: by what is it recognised?"));
    for arm in arms() {
        for mark in of(arm.id) {
            for (child, symbols) in &children {
                // A child that was built without the file of its arms holds nothing.
                if held[child].contains(arm.id)
                    && !(without_obmalloc && child.starts_with("child_obmalloc"))
                {
                    assert!(
                        symbols.show(&mark),
                        "{child} shows no {mark:?} of the arm {}: is its library here? scripts/setup brings it",
                        arm.id
                    );
                }
            }
            if matches!(mark, Mark::Calls(_) | Mark::Nothing) {
                continue;
            }
            // Two arms can have a library in common.
            let owners: BTreeSet<&str> = arms()
                .filter(|other| of(other.id).contains(&mark))
                .map(|other| other.id)
                .collect();
            for (child, symbols) in &children {
                assert!(
                    !held[child].is_disjoint(&owners) || !symbols.show(&mark),
                    "{child} shows {mark:?}, which belongs to {owners:?} alone"
                );
            }
            assert!(!heaplab.show(&mark), "heaplab itself links {}", arm.id);
        }
    }
}

#[test]
fn only_the_audit_takes_over_malloc() {
    let heaplab = Symbols::of(&heaplab());
    for (name, symbols) in children().iter().chain([(&"heaplab", &heaplab)]) {
        let taken: Vec<&str> = TAKES_OVER
            .into_iter()
            .filter(|symbol| symbols.global.contains(*symbol))
            .collect();
        if *name == "child_audit" {
            for symbol in ["malloc", "calloc", "realloc", "free"] {
                assert!(taken.contains(&symbol), "the audit misses {symbol}");
            }
        } else {
            assert!(
                taken.is_empty(),
                "{name} defines {taken:?} for its whole process"
            );
        }
    }
}

/// The binding decides: gperftools' own `malloc` is there, and local.
#[test]
#[cfg(feature = "tcmalloc-gperftools")]
fn gperftools_keeps_its_malloc_to_itself() {
    let symbols = &children()["child_tcmalloc_gperftools"];
    assert!(symbols.defined.contains("malloc"));
    assert!(!symbols.global.contains("malloc"));
}
