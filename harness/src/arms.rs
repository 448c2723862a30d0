//! The arms: who can be measured, under which name, by which child, with which knobs.
//!
//! Grammar, everywhere: `id[+sized][:knob=value,...]`, e.g. `tcmalloc-google:sampling=0`, `arena-3.9+sized`; or `name=path.so` for a library of the
//! user's, put in by LD_PRELOAD and labelled `name`.

use crate::nearest::suggest;
use crate::size;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// One setting of an arm that we map to the allocator and read back.
#[derive(Debug)]
pub struct Knob {
    /// Name in the grammar.
    pub name: &'static str,
    /// Its values.
    pub takes: Takes,
    /// It is there only if this other knob has this value.
    pub only_with: Option<(&'static str, &'static str)>,
    /// One line for lists.
    pub what: &'static str,
}

/// The values that a knob takes.
#[derive(Debug)]
pub enum Takes {
    /// Bytes from the first to the second, which may be written as `2MiB`.
    Bytes(u64, u64),
    /// A whole number from the first to the second.
    Count(u64, u64),
    /// One of these words, of which the first is the default.
    Word(&'static [Word]),
}

/// One value of a knob that takes words.
#[derive(Debug)]
pub struct Word {
    /// As written.
    pub name: &'static str,
    /// The child that holds the arm with this value, if that is not the arm's usual one: an allocator that has to be
    /// linked beside the arm.
    pub home: Option<Home>,
}

/// The binary that holds an arm, and what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Home {
    /// Binary, beside `heaplab` itself.
    pub child: &'static str,
    /// Built in? Whether it then *works* is for the child's receipt to say.
    pub built: bool,
    /// Cargo features that build it, joined by commas.
    pub features: &'static str,
    /// Environment that the child is given beside the common one.
    pub environment: &'static [(&'static str, &'static str)],
}

/// One arm.
#[derive(Debug)]
pub struct ArmDef {
    /// Name in the grammar.
    pub id: &'static str,
    /// Binary that holds it, beside `heaplab` itself.
    pub child: &'static str,
    /// Built in? Whether it then *works* is for the child's receipt to say.
    pub built: bool,
    /// Cargo feature that builds it; named after the arm, or after the first of several in one child.
    pub feature: &'static str,
    /// One line for lists.
    pub what: &'static str,
    /// Knobs.
    pub knobs: &'static [Knob],
    /// Environment that its child is given beside the common one.
    pub environment: &'static [(&'static str, &'static str)],
    /// The same child holds it as `id+sized` too: its blocks are given back with their size.
    pub sized: bool,
    /// May be called from several threads at once, as its heap says too.
    pub threads: bool,
    /// Its malloc and free take no lock, because it is not thread-safe: its times are compared only with those of others
    /// like it. (tcmalloc-2007 is not thread-safe either, but all that is not a large block is the C library's, locks
    /// included.)
    pub unlocked: bool,
    /// Knobs that the C library reads once, when a process starts, each with the name of its tunable: they are set in
    /// the child's environment, and the child looks whether it happened.
    pub tunables: &'static [(&'static str, &'static str)],
    /// Blocks keep their contents. (False only for `null`.)
    pub contents: bool,
    /// Address space that growing one block by realloc to N bytes takes at most, as a multiple of N: what footprints
    /// are estimated with. From peak resident figures measured for growth to 64 MiB (3.7 for 2007's rule), rounded up.
    pub growth_factor: u64,
    /// Memory given back is used again. (False only for `bump`, where every copy stays.)
    pub reuses: bool,
    /// A number of this arm is a number of a model or a limit and must say so wherever it stands.
    pub note: Option<&'static str>,
    /// Only for testing the harness: never listed, never in an experiment.
    pub test_only: bool,
}

/// What stands behind the id of an arm whose blocks are given back with their size.
pub const SIZED: &str = "+sized";

const fn arm(id: &'static str, child: &'static str, built: bool, what: &'static str) -> ArmDef {
    ArmDef {
        id,
        child,
        built,
        feature: id,
        what,
        knobs: &[],
        environment: &[],
        sized: false,
        threads: true,
        unlocked: false,
        tunables: &[],
        contents: true,
        growth_factor: 4,
        reuses: true,
        note: None,
        test_only: false,
    }
}

const fn bytes_knob(name: &'static str, min: u64, max: u64, what: &'static str) -> Knob {
    Knob {
        name,
        takes: Takes::Bytes(min, max),
        only_with: None,
        what,
    }
}
const fn count_knob(name: &'static str, min: u64, max: u64, what: &'static str) -> Knob {
    Knob {
        name,
        takes: Takes::Count(min, max),
        only_with: None,
        what,
    }
}

/// The variable by which the C library is told its tunables.
const TUNABLES: &str = "GLIBC_TUNABLES";
const GOOGLE_ENVIRONMENT: &[(&str, &str)] = &[(TUNABLES, "glibc.pthread.rseq=0")];

const JEMALLOC_KNOBS: &[Knob] = &[
    count_knob(
        "dirty_decay_ms",
        0,
        1_000_000,
        "time until dirty pages are purged",
    ),
    count_knob(
        "muzzy_decay_ms",
        0,
        1_000_000,
        "time until muzzy pages are purged",
    ),
    count_knob(
        "background_thread",
        0,
        1,
        "1: threads of jemalloc's own purge, also while the program does nothing (default 0)",
    ),
];

const SAMPLING: Knob = bytes_knob(
    "sampling",
    0,
    1 << 40,
    "mean bytes between sampled allocations; 0 is off (default 2 MiB)",
);

/// Who serves what obmalloc, or an arena, hands on. Two allocators have to be linked for that, each in a child of its own.
const fn backings(google: Home, gperftools: Home) -> [Word; 4] {
    [
        Word {
            name: "system",
            home: None,
        },
        Word {
            name: "tcmalloc-2007",
            home: None,
        },
        Word {
            name: "tcmalloc-google",
            home: Some(google),
        },
        Word {
            name: "tcmalloc-gperftools",
            home: Some(gperftools),
        },
    ]
}

const OBMALLOC_BACKINGS: &[Word] = &backings(
    Home {
        child: "child_obmalloc_google",
        built: cfg!(all(feature = "obmalloc", feature = "tcmalloc-google")),
        features: "obmalloc,tcmalloc-google",
        environment: GOOGLE_ENVIRONMENT,
    },
    Home {
        child: "child_obmalloc_gperftools",
        built: cfg!(all(feature = "obmalloc", feature = "tcmalloc-gperftools")),
        features: "obmalloc,tcmalloc-gperftools",
        environment: &[],
    },
);

const ARENA_BACKINGS: &[Word] = &backings(
    Home {
        child: "child_arena_google",
        built: cfg!(feature = "tcmalloc-google"),
        features: "tcmalloc-google",
        environment: GOOGLE_ENVIRONMENT,
    },
    Home {
        child: "child_arena_gperftools",
        built: cfg!(feature = "tcmalloc-gperftools"),
        features: "tcmalloc-gperftools",
        environment: &[],
    },
);

/// Only where Google's TCMalloc is behind.
const SAMPLING_BEHIND: Knob = Knob {
    only_with: Some(("backing", "tcmalloc-google")),
    ..SAMPLING
};

const OBMALLOC_KNOBS: &[Knob] = &[
    Knob {
        name: "backing",
        takes: Takes::Word(OBMALLOC_BACKINGS),
        only_with: None,
        what: "who serves no bytes and more than 512 (default system)",
    },
    count_knob(
        "aligned",
        0,
        1,
        "arenas at multiples of their size, so that none loses a pool (default 0)",
    ),
    SAMPLING_BEHIND,
];

const fn obmalloc(id: &'static str, what: &'static str) -> ArmDef {
    ArmDef {
        feature: "obmalloc",
        threads: false,
        unlocked: true,
        knobs: OBMALLOC_KNOBS,
        ..arm(id, "child_obmalloc", cfg!(feature = "obmalloc"), what)
    }
}

const ARENA: Knob = bytes_knob(
    "arena",
    16 << 10,
    16 << 20,
    "bytes in an arena: a power of two, 4 to 1024 pools",
);
const POOL: Knob = bytes_knob("pool", 4096, 4 << 20, "bytes in a pool: a power of two");
const ALIGN: Knob = bytes_knob(
    "align",
    8,
    16,
    "bytes from one block size to the next: 8, as up to CPython 3.7.3, or 16",
);
const THRESHOLD: Knob = bytes_knob(
    "threshold",
    8,
    512,
    "largest request that blocks serve: a multiple of align",
);
const KEEP: Knob = count_knob(
    "keep",
    0,
    1024,
    "usable arenas that must follow an empty one for it to be released",
);

/// Words that need no child of their own.
const fn words<const N: usize>(names: [&'static str; N]) -> [Word; N] {
    let mut words = [const {
        Word {
            name: "",
            home: None,
        }
    }; N];
    let mut n = 0;
    while n < N {
        words[n].name = names[n];
        n += 1;
    }
    words
}
const ORDER: Knob = Knob {
    name: "order",
    takes: Takes::Word(&words(["global", "slide", "constant", "last"])),
    only_with: None,
    what: "which free pool is next: of one list (2.4), of the fullest arena by searching (2.5) or not (3.8), of the last",
};
const TEST: Knob = Knob {
    name: "test",
    takes: Takes::Word(&words(["walk", "header", "header-2.4", "radix"])),
    only_with: None,
    what: "how a pool's block is told: by all arenas, by the pool's header (pool=4KiB; -2.4: no arena ever \
           goes) or by a radix tree",
};
const SOURCE: Knob = Knob {
    name: "source",
    takes: Takes::Word(&words(["mmap", "malloc"])),
    only_with: None,
    what: "where arenas come from",
};
const NUMBERS: Knob = Knob {
    name: "numbers",
    takes: Takes::Word(&words(["constant", "read"])),
    only_with: None,
    what: "constant: a generation's own sizes are constants of the code; read: at run time, as any other combination's",
};
const ALIGNED: Knob = count_knob(
    "aligned",
    0,
    1,
    "1: arenas begin at multiples of their size, so that no pool of them is lost",
);
const BACKING: Knob = Knob {
    name: "backing",
    takes: Takes::Word(ARENA_BACKINGS),
    only_with: None,
    what: "who serves no bytes and more than the threshold, and arenas with source=malloc (default system)",
};
const ARENA_KNOBS: &[Knob] = &[
    ARENA,
    POOL,
    ALIGN,
    THRESHOLD,
    KEEP,
    ORDER,
    TEST,
    SOURCE,
    ALIGNED,
    NUMBERS,
    BACKING,
    SAMPLING_BEHIND,
];
/// Of an arm whose name says what it keeps.
const ARENA_KNOBS_BUT_KEEP: &[Knob] = &[
    ARENA,
    POOL,
    ALIGN,
    THRESHOLD,
    ORDER,
    TEST,
    SOURCE,
    ALIGNED,
    NUMBERS,
    BACKING,
    SAMPLING_BEHIND,
];

const fn own_arena(id: &'static str, what: &'static str) -> ArmDef {
    ArmDef {
        knobs: ARENA_KNOBS,
        sized: true,
        threads: false,
        unlocked: true,
        ..arm(id, "child_arena", true, what)
    }
}

/// Every arm, in the order of lists.
pub static ARMS: &[ArmDef] = &[
    ArmDef {
        knobs: &[
            bytes_knob(
                "mmap_threshold",
                0,
                1 << 30,
                "M_MMAP_THRESHOLD; fixes the adaptive threshold",
            ),
            bytes_knob("trim_threshold", 0, 1 << 40, "M_TRIM_THRESHOLD"),
            bytes_knob(
                "mxfast",
                0,
                160,
                "M_MXFAST: the largest request that the fast bins take back; 0 is none",
            ),
            count_knob(
                "tcache_count",
                0,
                127,
                "freed blocks of a size that the thread cache keeps (default 7); 0 is no thread cache",
            ),
        ],
        tunables: &[("tcache_count", "glibc.malloc.tcache_count")],
        growth_factor: 2,
        ..arm("system", "child_system", true, "the C library's malloc")
    },
    ArmDef {
        knobs: JEMALLOC_KNOBS,
        ..arm(
            "jemalloc",
            "child_jemalloc",
            cfg!(feature = "jemalloc"),
            "jemalloc 5.3, by its C entry points",
        )
    },
    ArmDef {
        knobs: JEMALLOC_KNOBS,
        ..arm(
            "jemalloc-global",
            "child_jemalloc_global",
            cfg!(feature = "jemalloc-global"),
            "jemalloc 5.3 as a Rust user gets it, by tikv-jemallocator's GlobalAlloc",
        )
    },
    ArmDef {
        knobs: &[count_knob(
            "purge_delay",
            0,
            1_000_000,
            "milliseconds until free pages are purged",
        )],
        ..arm(
            "mimalloc",
            "child_mimalloc",
            cfg!(feature = "mimalloc"),
            "mimalloc v3, by its C entry points",
        )
    },
    ArmDef {
        knobs: &[count_knob(
            "purge_delay",
            0,
            1_000_000,
            "milliseconds until free pages are purged",
        )],
        ..arm(
            "mimalloc-v2",
            "child_mimalloc_v2",
            cfg!(feature = "mimalloc-v2"),
            "mimalloc v2, by its C entry points",
        )
    },
    ArmDef {
        knobs: &[count_knob(
            "purge_delay",
            0,
            1_000_000,
            "milliseconds until free pages are purged",
        )],
        ..arm(
            "mimalloc-global",
            "child_mimalloc_global",
            cfg!(feature = "mimalloc-global"),
            "mimalloc v3 as a Rust user gets it, by the mimalloc crate's GlobalAlloc",
        )
    },
    ArmDef {
        knobs: &[SAMPLING],
        environment: GOOGLE_ENVIRONMENT,
        ..arm(
            "tcmalloc-google",
            "child_tcmalloc_google",
            cfg!(feature = "tcmalloc-google"),
            "Google's TCMalloc of June 2025, per-CPU caches on",
        )
    },
    ArmDef {
        knobs: &[
            count_knob(
                "release_rate",
                0,
                1000,
                "TCMALLOC_RELEASE_RATE: how eagerly free spans are given back",
            ),
            count_knob(
                "aggressive_decommit",
                0,
                1,
                "give every free span back at once",
            ),
        ],
        ..arm(
            "tcmalloc-gperftools",
            "child_tcmalloc_gperftools",
            cfg!(feature = "tcmalloc-gperftools"),
            "gperftools' tcmalloc_minimal, Debian's static library",
        )
    },
    ArmDef {
        knobs: &[bytes_knob(
            "granule",
            4096,
            1 << 20,
            "what large sizes are rounded up to; 8192 models gperftools 2.18",
        )],
        note: Some(
            "tcmalloc-2007 is a MODEL: the realloc policy of google-perftools <= 0.97 over the C library, not the old code",
        ),
        threads: false,
        ..arm(
            "tcmalloc-2007",
            "child_tcmalloc_2007",
            true,
            "MODEL of the realloc policy of google-perftools <= 0.97",
        )
    },
    obmalloc(
        "obmalloc",
        "CPython 3.11's obmalloc.c as it is: arenas of 1 MiB, pools of 16 KiB",
    ),
    obmalloc(
        "obmalloc-1m-eager",
        "that, but an empty arena goes back at once: the experiment of 2019",
    ),
    obmalloc(
        "obmalloc-classic",
        "that file with arenas of 256 KiB and pools of 4 KiB, as in CPython 3.9",
    ),
    obmalloc(
        "obmalloc-eager",
        "classic, but an empty arena goes back at once, as in CPython 3.6 to 3.8",
    ),
    own_arena(
        "arena",
        "our arena allocator, with CPython 3.10's policy; above 512 bytes the C library's",
    ),
    own_arena(
        "arena-3.10",
        "the same by its full name: 1 MiB arenas, 16 KiB pools, one empty arena kept",
    ),
    ArmDef {
        knobs: ARENA_KNOBS_BUT_KEEP,
        ..own_arena(
            "arena-3.10-keep0",
            "that policy, but an empty arena is released at once",
        )
    },
    own_arena(
        "arena-3.9",
        "CPython 3.9's policy: 256 KiB arenas, 4 KiB pools, one empty arena kept",
    ),
    own_arena(
        "arena-3.8",
        "CPython 3.8's: an empty arena is released, arenas are ordered in constant time",
    ),
    own_arena(
        "arena-2.5",
        "CPython 2.5's to 3.7's: an empty arena is released, arenas are ordered by searching",
    ),
    own_arena(
        "arena-2.4",
        "CPython 2.4's: arenas are never released, free pools are on one list",
    ),
    ArmDef {
        threads: false,
        unlocked: true,
        growth_factor: 1,
        reuses: false,
        note: Some("bump is a limit, not an allocator: it never frees"),
        ..arm(
            "bump",
            "child_limits",
            true,
            "limit: never frees, extends its last block in place",
        )
    },
    ArmDef {
        threads: false,
        unlocked: true,
        contents: false,
        growth_factor: 1,
        note: Some(
            "null is a limit, not an allocator: it hands out one mapped ring and keeps no contents",
        ),
        ..arm(
            "null",
            "child_limits",
            true,
            "limit: hands out one mapped ring, keeps no contents",
        )
    },
    ArmDef {
        threads: false,
        test_only: true,
        ..arm(
            "faulty-crash",
            "child_faulty",
            true,
            "test child: dies of SIGSEGV",
        )
    },
    ArmDef {
        threads: false,
        test_only: true,
        ..arm(
            "faulty-hang",
            "child_faulty",
            true,
            "test child: never answers",
        )
    },
    ArmDef {
        threads: false,
        test_only: true,
        ..arm(
            "faulty-garbage",
            "child_faulty",
            true,
            "test child: prints no record",
        )
    },
    ArmDef {
        threads: false,
        test_only: true,
        ..arm(
            "faulty-killed",
            "child_faulty",
            true,
            "test child: is killed as by the OOM killer",
        )
    },
    ArmDef {
        threads: false,
        test_only: true,
        ..arm(
            "faulty-null",
            "child_faulty",
            true,
            "test child: malloc always fails",
        )
    },
    ArmDef {
        threads: false,
        test_only: true,
        ..arm(
            "faulty-flip",
            "child_faulty",
            true,
            "test child: realloc flips one byte",
        )
    },
    ArmDef {
        threads: false,
        test_only: true,
        ..arm(
            "faulty-stale",
            "child_faulty",
            true,
            "test child: was built from other sources",
        )
    },
    ArmDef {
        threads: false,
        test_only: true,
        ..arm(
            "faulty-absent",
            "child_faulty",
            true,
            "test child: its allocator is missing",
        )
    },
    ArmDef {
        threads: false,
        test_only: true,
        ..arm(
            "faulty-slow",
            "child_faulty",
            true,
            "test child: 1 ms a call, stops at its limit",
        )
    },
    ArmDef {
        threads: false,
        test_only: true,
        ..arm(
            "audit",
            "child_audit",
            true,
            "test child: counts every malloc of the process",
        )
    },
    ArmDef {
        threads: false,
        test_only: true,
        ..arm(
            "audit-strdup",
            "child_audit",
            true,
            "test child: that, and the C library calls once by itself",
        )
    },
    ArmDef {
        threads: false,
        test_only: true,
        ..arm(
            "schedule",
            "child_schedule",
            true,
            "test child: known memory at each phase",
        )
    },
    ArmDef {
        threads: false,
        test_only: true,
        ..arm(
            "schedule-spike",
            "child_schedule",
            true,
            "test child: that, and 100 MiB for 20 ms",
        )
    },
];

/// What every arm `name=path.so` is: no library of ours, and so not in [`ARMS`].
pub static PRELOAD: ArmDef = arm(
    "preload",
    "child_preload",
    true,
    "a library of the user's, by LD_PRELOAD",
);

/// An arm as it is run: its definition, knobs and, for the baseline's second run, a mark.
#[derive(Debug, Clone)]
pub struct Arm {
    /// Who.
    pub def: &'static ArmDef,
    /// Knobs as `(name, value)`, numbers plain, sorted by name.
    pub knobs: Vec<(String, String)>,
    /// True for the second run of the baseline, labelled `#2`.
    pub again: bool,
    /// Blocks are given back with their size.
    pub sized: bool,
    /// The user's library, if the arm is one.
    pub library: Option<Library>,
}

/// A library of the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// What the user calls it: the arm's label.
    pub name: String,
    /// Where it is, without symbolic links.
    pub path: PathBuf,
}

impl Library {
    /// Reads `name` and `path` and looks at the file.
    fn find(name: &str, path: &str) -> Result<Library, BadArm> {
        let bad = |why: String| Err(BadArm(format!("`{name}={path}`: {why}")));
        if ARMS.iter().chain([&PRELOAD]).any(|arm| arm.id == name) {
            return bad(format!(
                "{name} is an arm of heaplab's; give the library another name (a knob is set by {name}:knob=value)"
            ));
        }
        let fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(fit) {
            return bad("a name is made of letters, digits, `-`, `_` and `.`".to_owned());
        }
        let found = match Path::new(path).canonicalize() {
            Ok(found) => found,
            Err(why) => return bad(format!("no such library: {why}")),
        };
        // What separates the names in LD_PRELOAD, and what would make a record unreadable.
        let text = found.to_str();
        if text.is_none_or(|text| text.contains([' ', ':', '\t', '\n', '$'])) {
            return bad("LD_PRELOAD cannot name it: spaces, colons and `$` have a meaning there, and it must be UTF-8".to_owned());
        }
        let mut magic = [0; 4];
        let read = File::open(&found).and_then(|mut file| file.read_exact(&mut magic));
        if !found.is_file() || read.is_err() || magic != *b"\x7fELF" {
            return bad("this is no shared library (ELF)".to_owned());
        }
        Ok(Library {
            name: name.to_owned(),
            path: found,
        })
    }

    /// The file's name, without its folder.
    #[must_use]
    pub fn file_name(&self) -> String {
        self.path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }
}

/// An arm that cannot be parsed: what was wrong and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadArm(pub String);

impl fmt::Display for BadArm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for BadArm {}

/// Names of the arms that users may ask for.
pub fn names() -> Vec<&'static str> {
    ARMS.iter()
        .filter(|arm| !arm.test_only)
        .map(|arm| arm.id)
        .collect()
}

impl Arm {
    /// Reads `id[:knob=value,...]` or `name=path.so`, and looks whether there is such a library.
    ///
    /// # Errors
    /// [`BadArm`] naming the part that is wrong and the nearest valid ones, or the range.
    pub fn parse(text: &str) -> Result<Arm, BadArm> {
        if let Some((name, path)) = text.split_once('=')
            && !name.contains(':')
        {
            return Ok(Arm {
                def: &PRELOAD,
                knobs: Vec::new(),
                again: false,
                sized: false,
                library: Some(Library::find(name, path)?),
            });
        }
        let (id, settings) = text
            .split_once(':')
            .map_or((text, None), |(id, rest)| (id, Some(rest)));
        let (id, sized) = match id.strip_suffix(SIZED) {
            Some(id) => (id, true),
            None => (id, false),
        };
        let def = ARMS.iter().find(|arm| arm.id == id).ok_or_else(|| {
            BadArm(format!(
                "unknown allocator `{id}`: {}",
                suggest(id, &names())
            ))
        })?;
        if sized && !def.sized {
            let able = ARMS.iter().filter(|arm| arm.sized).map(|arm| arm.id);
            return Err(BadArm(format!(
                "`{text}`: {id} cannot be told sizes; there are {}",
                able.map(|id| format!("{id}{SIZED}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            )));
        }
        let mut knobs = BTreeMap::new();
        for setting in settings.into_iter().flat_map(|rest| rest.split(',')) {
            let (name, value) = setting
                .split_once('=')
                .ok_or_else(|| BadArm(format!("`{text}`: `{setting}` is not knob=value")))?;
            let known: Vec<&str> = def.knobs.iter().map(|knob| knob.name).collect();
            let knob = def
                .knobs
                .iter()
                .find(|knob| knob.name == name)
                .ok_or_else(|| {
                    BadArm(format!(
                        "`{text}`: {id} has no knob `{name}`: {}",
                        suggest(name, &known)
                    ))
                })?;
            let value = knob
                .value(value)
                .map_err(|why| BadArm(format!("`{text}`: {why}")))?;
            if knobs.insert(name.to_owned(), value).is_some() {
                return Err(BadArm(format!("`{text}`: knob `{name}` is given twice")));
            }
        }
        for knob in def
            .knobs
            .iter()
            .filter(|knob| knobs.contains_key(knob.name))
        {
            if let Some((other, value)) = knob.only_with
                && knobs.get(other).is_none_or(|given| given != value)
            {
                return Err(BadArm(format!(
                    "`{text}`: {id} has the knob `{}` only with {other}={value}",
                    knob.name
                )));
            }
        }
        if settings == Some("") {
            return Err(BadArm(format!(
                "`{text}`: a knob=value is expected after the colon"
            )));
        }
        Ok(Arm {
            def,
            knobs: knobs.into_iter().collect(),
            again: false,
            sized,
            library: None,
        })
    }

    /// The same arm as the second run of the baseline.
    #[must_use]
    pub fn again(&self) -> Arm {
        Arm {
            again: true,
            ..self.clone()
        }
    }

    /// As its child knows it: without knobs.
    #[must_use]
    pub fn id(&self) -> String {
        let sized = if self.sized { SIZED } else { "" };
        format!("{}{sized}", self.def.id)
    }

    /// As shown in tables and written in records, e.g. `tcmalloc-google:sampling=0`, `system#2`.
    #[must_use]
    pub fn label(&self) -> String {
        let mut label = match &self.library {
            Some(library) => library.name.clone(),
            None => self.id(),
        };
        for (i, (name, value)) in self.knobs.iter().enumerate() {
            label.push(if i == 0 { ':' } else { ',' });
            label.push_str(&format!("{name}={value}"));
        }
        if self.again {
            label.push_str("#2");
        }
        label
    }
}

impl Arm {
    /// The values of knobs that take words.
    fn words(&self) -> impl Iterator<Item = &'static Word> {
        self.def.knobs.iter().filter_map(|knob| match knob.takes {
            Takes::Word(words) => {
                let (_, value) = self.knobs.iter().find(|(name, _)| name == knob.name)?;
                words.iter().find(|word| word.name == value)
            }
            _ => None,
        })
    }

    /// Where it is run: the arm's usual child, or the one that a knob's value asks for.
    #[must_use]
    pub fn home(&self) -> Home {
        let chosen = self.words().find_map(|word| word.home);
        chosen.unwrap_or_else(|| self.def.home())
    }

    /// Environment that its child is given beside the common one: that of its home, and the knobs that the C library
    /// reads when a process starts.
    #[must_use]
    pub fn environment(&self) -> BTreeMap<String, String> {
        let home = self.home().environment.iter();
        let mut environment: BTreeMap<String, String> = home
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        for (name, value) in &self.knobs {
            let tunable = self.def.tunables.iter().find(|(knob, _)| knob == name);
            if let Some((_, tunable)) = tunable {
                let all = environment.entry(TUNABLES.to_owned()).or_default();
                if !all.is_empty() {
                    all.push(':');
                }
                all.push_str(&format!("{tunable}={value}"));
            }
        }
        environment
    }

    /// What a number of this arm must say of itself wherever it stands: that it is a limit's, or a model's, be it that
    /// of a knob's value.
    #[must_use]
    pub fn note(&self) -> Option<&'static str> {
        let named = |word: &Word| ARMS.iter().find(|arm| arm.id == word.name);
        let chosen = || self.words().find_map(|word| named(word)?.note);
        self.def.note.or_else(chosen)
    }
}

impl ArmDef {
    /// Where it is run if no knob says otherwise.
    #[must_use]
    pub fn home(&self) -> Home {
        Home {
            child: self.child,
            built: self.built,
            features: self.feature,
            environment: self.environment,
        }
    }
}

impl Knob {
    /// The values that a child of their own holds, with where that is.
    pub fn homes(&self) -> impl Iterator<Item = (&'static str, Home)> {
        let words: &'static [Word] = match self.takes {
            Takes::Word(words) => words,
            Takes::Bytes(..) | Takes::Count(..) => &[],
        };
        words
            .iter()
            .filter_map(|word| Some((word.name, word.home?)))
    }

    /// The value in its one form: bytes in the largest unit that divides them.
    fn value(&self, value: &str) -> Result<String, String> {
        let within = |number: Option<u64>, min, max| number.filter(|n| (min..=max).contains(n));
        let taken = match self.takes {
            Takes::Bytes(min, max) => {
                within(size::parse_bytes(value).ok(), min, max).map(size::format_bytes)
            }
            Takes::Count(min, max) => {
                within(value.parse().ok(), min, max).map(|number| number.to_string())
            }
            Takes::Word(words) => words
                .iter()
                .find(|word| word.name == value)
                .map(|word| word.name.to_owned()),
        };
        taken.ok_or_else(|| {
            format!(
                "knob `{}` takes {}, not `{value}`",
                self.name,
                match self.takes {
                    Takes::Bytes(..) => format!("a size from {}", self.takes),
                    Takes::Count(..) => format!("a whole number from {}", self.takes),
                    Takes::Word(_) => self.takes.to_string(),
                }
            )
        })
    }
}

impl Takes {
    /// Smallest and largest number; a word has none.
    #[must_use]
    pub fn range(&self) -> Option<(u64, u64)> {
        match *self {
            Takes::Bytes(min, max) | Takes::Count(min, max) => Some((min, max)),
            Takes::Word(_) => None,
        }
    }
}

/// As lists show it: `4KiB to 1MiB`, `0 to 1`, `system | tcmalloc-2007`.
impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Takes::Bytes(min, max) => write!(
                f,
                "{} to {}",
                size::format_bytes(min),
                size::format_bytes(max)
            ),
            Takes::Count(min, max) => write!(f, "{min} to {max}"),
            Takes::Word(words) => {
                let names: Vec<_> = words.iter().map(|word| word.name).collect();
                f.write_str(&names.join(" | "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_read_back() {
        for text in [
            "system",
            "tcmalloc-google:sampling=0",
            "jemalloc:dirty_decay_ms=0,muzzy_decay_ms=5",
            "obmalloc:backing=tcmalloc-google,sampling=0",
            "arena-3.9+sized",
            "arena+sized:arena=64KiB,backing=tcmalloc-2007",
        ] {
            assert_eq!(Arm::parse(text).map(|arm| arm.label()), Ok(text.to_owned()));
        }
        assert_eq!(
            Arm::parse("tcmalloc-2007:granule=8192").map(|arm| arm.label()),
            Ok("tcmalloc-2007:granule=8KiB".into())
        );
        assert_eq!(
            Arm::parse("system").map(|arm| arm.again().label()),
            Ok("system#2".into())
        );
    }

    #[test]
    fn a_library_is_labelled_by_its_name() {
        let program = std::env::current_exe().expect("this program");
        let arm = Arm::parse(&format!("mine={}", program.display())).expect("an ELF file");
        assert_eq!(arm.label(), "mine");
        assert_eq!(arm.again().label(), "mine#2");
        let library = arm.library.expect("it is one");
        assert_eq!(library.path.file_name(), program.file_name());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, said) in [
            ("jemaloc", "jemalloc"),
            ("tcmalloc-google:samplin=0", "sampling"),
            ("jemalloc:dirty_decay_ms=-1", "0 to 1000000"),
            ("jemalloc:dirty_decay_ms", "knob=value"),
            ("jemalloc:", "knob=value"),
            ("tcmalloc-2007:granule=1", "4KiB"),
            ("system:a=1", "no knob"),
            ("system:tcache_count=128", "0 to 127"),
            ("system:mxfast=161", "0 to 160"),
            ("jemalloc:background_thread=2", "0 to 1"),
            ("mimalloc:background_thread=1", "no knob"),
            ("mimalloc:purge_delay=1,purge_delay=2", "twice"),
            ("obmalloc:backing=tcmalloc", "system | tcmalloc-2007"),
            ("system+sized", "arena-2.4+sized"),
            ("arena+size", "arena"),
            ("arena+sized+sized", "unknown"),
            ("arena:sampling=0", "only with backing=tcmalloc-google"),
            ("obmalloc:sampling=0", "only with backing=tcmalloc-google"),
            ("mine=/no/such/library.so", "no such library"),
            ("jemalloc=/no/such/library.so", "another name"),
            ("my own=/no/such/library.so", "letters"),
            ("mine=/etc/hostname", "no shared library"),
            ("mine=/tmp", "no shared library"),
        ] {
            let error = Arm::parse(text).expect_err(text).0;
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_word_chooses_the_child_and_its_environment() {
        let home = |text: &str| Arm::parse(text).map(|arm| arm.home());
        let of = |text: &str| home(text).map(|home| home.child);
        assert_eq!(of("obmalloc"), Ok("child_obmalloc"));
        assert_eq!(of("obmalloc:backing=system"), Ok("child_obmalloc"));
        assert_eq!(
            of("obmalloc-eager:backing=tcmalloc-gperftools"),
            Ok("child_obmalloc_gperftools")
        );
        assert_eq!(
            of("arena-2.4+sized:backing=tcmalloc-gperftools"),
            Ok("child_arena_gperftools")
        );
        assert_eq!(
            home("obmalloc:aligned=1,backing=tcmalloc-google").map(|home| home.environment),
            home("tcmalloc-google").map(|home| home.environment)
        );
    }

    #[test]
    fn a_tunable_of_the_c_library_goes_into_the_environment() {
        let tunables = |text: &str| {
            let arm = Arm::parse(text).expect("an arm");
            arm.environment().get(TUNABLES).cloned()
        };
        assert_eq!(tunables("system:mxfast=0"), None);
        assert_eq!(
            tunables("system:mxfast=0,tcache_count=0"),
            Some("glibc.malloc.tcache_count=0".to_owned())
        );
        assert_eq!(
            tunables("tcmalloc-google"),
            Some("glibc.pthread.rseq=0".to_owned())
        );
    }

    #[test]
    fn a_model_in_the_background_is_named_too() {
        let note = |text: &str| Arm::parse(text).map(|arm| arm.note());
        assert_eq!(note("obmalloc"), Ok(None));
        assert_eq!(
            note("obmalloc:backing=tcmalloc-2007"),
            note("tcmalloc-2007")
        );
    }
}
