//! The arms: who can be measured, under which name, by which child, with which knobs.
//!
//! Grammar, everywhere: `id[:knob=value,...]`, e.g. `tcmalloc-google:sampling=0`; or `name=path.so` for a library of the
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
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// True: the value is bytes and may be written as `2MiB`.
    pub bytes: bool,
    /// One line for lists.
    pub what: &'static str,
}

/// One arm.
#[derive(Debug)]
pub struct ArmDef {
    /// Name in the grammar.
    pub id: &'static str,
    /// Binary that holds it, beside `heaplab` itself.
    pub child: &'static str,
    /// Built in? (A cargo feature named after the arm.) Whether it then *works* is for the child's receipt to say.
    pub built: bool,
    /// One line for lists.
    pub what: &'static str,
    /// Knobs.
    pub knobs: &'static [Knob],
    /// Environment that its child is given beside the common one.
    pub environment: &'static [(&'static str, &'static str)],
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

const fn arm(id: &'static str, child: &'static str, built: bool, what: &'static str) -> ArmDef {
    ArmDef {
        id,
        child,
        built,
        what,
        knobs: &[],
        environment: &[],
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
        min,
        max,
        bytes: true,
        what,
    }
}
const fn count_knob(name: &'static str, min: u64, max: u64, what: &'static str) -> Knob {
    Knob {
        name,
        min,
        max,
        bytes: false,
        what,
    }
}

const ARENA: Knob = bytes_knob(
    "arena",
    16 << 10,
    16 << 20,
    "bytes in an arena: a power of two, 4 to 1024 pools",
);
const POOL: Knob = bytes_knob("pool", 4096, 4 << 20, "bytes in a pool: a power of two");
const THRESHOLD: Knob = bytes_knob(
    "threshold",
    16,
    512,
    "largest request that blocks serve: a multiple of 16",
);
const KEEP: Knob = count_knob("keep", 0, 1, "1: the last empty arena is kept");
const ALIGNED: Knob = count_knob(
    "aligned",
    0,
    1,
    "1: arenas begin at multiples of their size, so that no pool of them is lost",
);
const ARENA_KNOBS: &[Knob] = &[ARENA, POOL, THRESHOLD, KEEP, ALIGNED];

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
        ],
        growth_factor: 2,
        ..arm("system", "child_system", true, "the C library's malloc")
    },
    ArmDef {
        knobs: &[
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
        ],
        ..arm(
            "jemalloc",
            "child_jemalloc",
            cfg!(feature = "jemalloc"),
            "jemalloc 5.3, by its C entry points",
        )
    },
    ArmDef {
        knobs: &[
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
        ],
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
        knobs: &[bytes_knob(
            "sampling",
            0,
            1 << 40,
            "mean bytes between sampled allocations; 0 is off (default 2 MiB)",
        )],
        environment: &[("GLIBC_TUNABLES", "glibc.pthread.rseq=0")],
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
        ..arm(
            "tcmalloc-2007",
            "child_tcmalloc_2007",
            true,
            "MODEL of the realloc policy of google-perftools <= 0.97",
        )
    },
    ArmDef {
        knobs: ARENA_KNOBS,
        ..arm(
            "arena",
            "child_arena",
            true,
            "our arena allocator, with CPython 3.10's policy; above 512 bytes the C library's",
        )
    },
    ArmDef {
        knobs: ARENA_KNOBS,
        ..arm(
            "arena-3.10",
            "child_arena",
            true,
            "the same by its full name: 1 MiB arenas, 16 KiB pools, one empty arena kept",
        )
    },
    ArmDef {
        knobs: &[ARENA, POOL, THRESHOLD, ALIGNED],
        ..arm(
            "arena-3.10-keep0",
            "child_arena",
            true,
            "that policy, but an empty arena is released at once",
        )
    },
    ArmDef {
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
        test_only: true,
        ..arm(
            "faulty-crash",
            "child_faulty",
            true,
            "test child: dies of SIGSEGV",
        )
    },
    ArmDef {
        test_only: true,
        ..arm(
            "faulty-hang",
            "child_faulty",
            true,
            "test child: never answers",
        )
    },
    ArmDef {
        test_only: true,
        ..arm(
            "faulty-garbage",
            "child_faulty",
            true,
            "test child: prints no record",
        )
    },
    ArmDef {
        test_only: true,
        ..arm(
            "faulty-killed",
            "child_faulty",
            true,
            "test child: is killed as by the OOM killer",
        )
    },
    ArmDef {
        test_only: true,
        ..arm(
            "faulty-null",
            "child_faulty",
            true,
            "test child: malloc always fails",
        )
    },
    ArmDef {
        test_only: true,
        ..arm(
            "faulty-flip",
            "child_faulty",
            true,
            "test child: realloc flips one byte",
        )
    },
    ArmDef {
        test_only: true,
        ..arm(
            "faulty-stale",
            "child_faulty",
            true,
            "test child: was built from other sources",
        )
    },
    ArmDef {
        test_only: true,
        ..arm(
            "faulty-absent",
            "child_faulty",
            true,
            "test child: its allocator is missing",
        )
    },
    ArmDef {
        test_only: true,
        ..arm(
            "faulty-slow",
            "child_faulty",
            true,
            "test child: 1 ms a call, stops at its limit",
        )
    },
    ArmDef {
        test_only: true,
        ..arm(
            "audit",
            "child_audit",
            true,
            "test child: counts every malloc of the process",
        )
    },
    ArmDef {
        test_only: true,
        ..arm(
            "audit-strdup",
            "child_audit",
            true,
            "test child: that, and the C library calls once by itself",
        )
    },
    ArmDef {
        test_only: true,
        ..arm(
            "schedule",
            "child_schedule",
            true,
            "test child: known memory at each phase",
        )
    },
    ArmDef {
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
    /// Knobs as `(name, value)`, values in plain numbers, sorted by name.
    pub knobs: Vec<(String, String)>,
    /// True for the second run of the baseline, labelled `#2`.
    pub again: bool,
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
                library: Some(Library::find(name, path)?),
            });
        }
        let (id, settings) = text
            .split_once(':')
            .map_or((text, None), |(id, rest)| (id, Some(rest)));
        let def = ARMS.iter().find(|arm| arm.id == id).ok_or_else(|| {
            BadArm(format!(
                "unknown allocator `{id}`: {}",
                suggest(id, &names())
            ))
        })?;
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
            let number = knob
                .number(value)
                .map_err(|why| BadArm(format!("`{text}`: {why}")))?;
            if knobs.insert(name.to_owned(), number.to_string()).is_some() {
                return Err(BadArm(format!("`{text}`: knob `{name}` is given twice")));
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

    /// As shown in tables and written in records, e.g. `tcmalloc-google:sampling=0`, `system#2`.
    #[must_use]
    pub fn label(&self) -> String {
        let mut label = match &self.library {
            Some(library) => library.name.clone(),
            None => self.def.id.to_owned(),
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

impl Knob {
    fn number(&self, value: &str) -> Result<u64, String> {
        let parsed = if self.bytes {
            size::parse_bytes(value).ok()
        } else {
            value.parse().ok()
        };
        let range = if self.bytes {
            format!(
                "a size from {} to {}",
                size::format_bytes(self.min),
                size::format_bytes(self.max)
            )
        } else {
            format!("a whole number from {} to {}", self.min, self.max)
        };
        match parsed {
            Some(number) if (self.min..=self.max).contains(&number) => Ok(number),
            _ => Err(format!("knob `{}` takes {range}, not `{value}`", self.name)),
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
        ] {
            assert_eq!(Arm::parse(text).map(|arm| arm.label()), Ok(text.to_owned()));
        }
        assert_eq!(
            Arm::parse("tcmalloc-2007:granule=8KiB").map(|arm| arm.label()),
            Ok("tcmalloc-2007:granule=8192".into())
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
            ("mimalloc:purge_delay=1,purge_delay=2", "twice"),
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
}
