//! The other way round from [`debug_text`](crate::debug_text): reads what CPython has printed about its own heap, from
//! 2.3 to 3.13, into the same [`Stats`].
//!
//! `sys._debugmallocstats()` prints one dump, on the standard error. With `PYTHONMALLOCSTATS=1` an interpreter prints one
//! BEFORE each new arena, and one at its end. So a text has many dumps, and lines of the program's own between them.
//!
//! ```
//! let text = "\
//! Small block threshold = 512, in 32 size classes.
//!
//! class   size   num pools   blocks in use  avail blocks
//! -----   ----   ---------   -------------  ------------
//!     3     64           1              10           245
//!
//! ## arenas allocated total           =                    1
//! ## arenas reclaimed                 =                    0
//! ## arenas highwater mark            =                    1
//! ## arenas allocated current         =                    1
//! 1 arenas * 1048576 bytes/arena     =            1,048,576
//!
//! ## bytes in allocated blocks        =                  640
//! ## bytes in available blocks        =               15,680
//! 63 unused pools * 16384 bytes      =            1,032,192
//! ## bytes lost to pool headers       =                   48
//! ## bytes lost to quantization       =                   16
//! ## bytes lost to arena alignment    =                    0
//! Total                              =            1,048,576
//! hello from the program
//! ";
//! let read = arena::dump::read(text);
//! let dump = &read.dumps[0];
//! assert_eq!(dump.stats.classes[3].used_blocks, 10);
//! assert_eq!(dump.stats.arenas.highwater, 1);
//! assert_eq!(dump.live_share(), Some(640.0 / 1_048_576.0));
//! // What is no line of a dump is not passed over.
//! assert_eq!(read.errors[0].line, 20);
//! assert_eq!(read.errors[0].to_string(), "line 20: no line of a dump: \"hello from the program\"");
//! ```
//!
//! A file of them, from `PYTHONMALLOCSTATS=1 python3 program.py 2> program.txt`, is read by
//! `arena::dump::read(&std::fs::read_to_string("program.txt")?)`.
//!
//! What differs between versions, and is read all the same:
//! - up to 2.4 no arena is ever released, and nothing is said of it;
//! - up to 2.7 only debug builds print anything; they, and later `PYTHONMALLOC=debug`, count calls of malloc;
//! - from 3.3 on `sys._debugmallocstats()` goes on with the free lists of types, one a line;
//! - from 3.10 on the address map has lines, and a `Total` of its own.
//!
//! Lines may come in any order within a dump. What adds up is added up: a dump that contradicts itself, or that lacks a
//! line, is an error and not among the dumps. mimalloc, which 3.13 can have in pymalloc's place, prints other things: none
//! of its lines is read.

use crate::debug_text::{Commas, DebugText};
use crate::size_class::MAX_CLASSES;
use crate::stats::{ArenaStats, ByteStats, ClassStats, MapStats, Stats};
use core::fmt;
use std::borrow::ToOwned;
use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec::Vec;

/// What was found in a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Read {
    /// Dumps that are whole and add up, in their order.
    pub dumps: Vec<Dump>,
    /// Everything else that is not an empty line, in the order of lines.
    pub errors: Vec<Error>,
}

/// One dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    /// The line of the text, from 1, that it begins in.
    pub line: usize,
    /// The figures. A node of the address map of which there is none has 0 bytes here, for the text does not say.
    pub stats: Stats,
    /// Whether it says how many arenas there have been: from 2.5 on. If not, `total` and `highwater` are what is held now.
    pub counts_arenas: bool,
    /// Calls of malloc; only from debug builds and debug hooks.
    pub malloc_calls: Option<u64>,
    /// Free lists of types, which are not pymalloc's.
    pub free_lists: Vec<FreeList>,
}

/// Objects that a type keeps for reuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeList {
    /// As printed, e.g. `1-sized PyTupleObject`.
    pub name: String,
    /// Objects.
    pub objects: u64,
    /// Bytes in each.
    pub size: u64,
}

impl Dump {
    /// The text of these figures, as CPython prints it: without calls of malloc and free lists.
    #[must_use]
    pub fn text(&self) -> DebugText {
        DebugText {
            stats: self.stats,
            counts_arenas: self.counts_arenas,
        }
    }

    /// Bytes in live blocks for each byte of the arenas; `None` without an arena.
    #[must_use]
    pub fn live_share(&self) -> Option<f64> {
        let held = self.stats.arenas.current * self.stats.arenas.size;
        (held > 0).then(|| self.stats.bytes.allocated as f64 / held as f64)
    }
}

/// A line, or a dump, that cannot be taken for what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Line of the text, from 1. Of a dump that lacks a line or does not add up, the one in which it begins.
    pub line: usize,
    /// What is wrong.
    pub fault: Fault,
}

/// What can be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The line is none of a dump's, or there is no dump that it could belong to.
    Unknown(String),
    /// The dump has had that line already.
    Twice(String),
    /// The dump ends without this line, up to its `=`.
    Missing(&'static str),
    /// Two figures that are the same by their meaning differ: which, as the dump says it, and as its other lines say it.
    Sum(&'static str, u64, u64),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.fault {
            Fault::Unknown(text) => write!(f, "no line of a dump: {text:?}"),
            Fault::Twice(text) => write!(f, "a second line of the kind in one dump: {text:?}"),
            Fault::Missing(what) => write!(f, "the dump that begins here has no line {what:?}"),
            Fault::Sum(what, said, reckoned) => write!(
                f,
                "the dump that begins here contradicts itself in {what}: {said}, and by its other lines {reckoned}"
            ),
        }
    }
}

impl core::error::Error for Error {}

/// Reads all dumps of a text.
#[must_use]
pub fn read(text: &str) -> Read {
    let mut read = Read::default();
    let mut open: Option<Lines> = None;
    for (line, text) in (1..).zip(text.lines()) {
        let parsed = Line::of(text);
        if let Some(Line::Begins { threshold, classes }) = parsed {
            read.end(open.replace(Lines::begin(line, threshold, classes)));
            continue;
        }
        let fault = match (parsed, &mut open) {
            (Some(Line::Empty), _) => Ok(()),
            (Some(parsed), Some(lines)) => lines.take(parsed, text),
            _ => Err(Fault::Unknown(text.to_owned())),
        };
        read.errors
            .extend(fault.err().map(|fault| Error { line, fault }));
    }
    read.end(open);
    read.errors.sort_by_key(|error| error.line);
    read
}

impl Read {
    fn end(&mut self, open: Option<Lines>) {
        let Some(lines) = open else { return };
        let line = lines.line;
        match lines.close() {
            Ok(dump) => self.dumps.push(dump),
            Err(fault) => self.errors.push(Error { line, fault }),
        }
    }
}

/// One line.
enum Line<'t> {
    /// Nothing, or a heading that says nothing.
    Empty,
    Begins {
        threshold: u64,
        classes: u64,
    },
    /// Of the table of classes: index, block size, pools, live blocks, other blocks.
    Class([u64; 5]),
    /// From here on it is about the address map.
    MapBegins,
    /// `what = value`.
    Figure {
        what: &'t str,
        value: u64,
    },
    /// `count NAME * size UNIT = value`, the name and unit apart.
    Product {
        what: &'static str,
        count: u64,
        size: u64,
        value: u64,
    },
    FreeList(FreeList, u64),
}

// Names of lines.
const MALLOC_CALLS: &str = "# times object malloc called";
const ARENAS_TOTAL: &str = "# arenas allocated total";
const ARENAS_RECLAIMED: &str = "# arenas reclaimed";
const ARENAS_HIGHWATER: &str = "# arenas highwater mark";
const ARENAS_CURRENT: &str = "# arenas allocated current";
const ALLOCATED: &str = "# bytes in allocated blocks";
const AVAILABLE: &str = "# bytes in available blocks";
const HEADERS: &str = "# bytes lost to pool headers";
const QUANTIZATION: &str = "# bytes lost to quantization";
const ALIGNMENT: &str = "# bytes lost to arena alignment";
const TOTAL: &str = "Total";
const MIDDLE_NODES: &str = "# arena map mid nodes";
const LEAVES: &str = "# arena map bot nodes";
const ROOT_BYTES: &str = "# bytes lost to arena map root";
const MIDDLE_BYTES: &str = "# bytes lost to arena map mid";
const LEAF_BYTES: &str = "# bytes lost to arena map bot";
/// Of the address map: the second line of that name.
const MAP_TOTAL: &str = "Total of the arena map";
const ARENAS: &str = "arenas * bytes/arena";
const UNUSED_POOLS: &str = "unused pools * bytes";

const FIGURES: [&str; 16] = [
    MALLOC_CALLS,
    ARENAS_TOTAL,
    ARENAS_RECLAIMED,
    ARENAS_HIGHWATER,
    ARENAS_CURRENT,
    ALLOCATED,
    AVAILABLE,
    HEADERS,
    QUANTIZATION,
    ALIGNMENT,
    TOTAL,
    MIDDLE_NODES,
    LEAVES,
    ROOT_BYTES,
    MIDDLE_BYTES,
    LEAF_BYTES,
];

const HEADINGS: [&str; 2] = [
    "class   size   num pools   blocks in use  avail blocks",
    "-----   ----   ---------   -------------  ------------",
];

impl<'t> Line<'t> {
    /// `None` for a line that no dump has.
    fn of(text: &'t str) -> Option<Line<'t>> {
        let text = text.trim();
        if text.is_empty() || HEADINGS.contains(&text) {
            return Some(Line::Empty);
        }
        if text == "arena map counts" {
            return Some(Line::MapBegins);
        }
        if let Some(rest) = text.strip_prefix("Small block threshold = ") {
            let (threshold, rest) = rest.split_once(", in ")?;
            let (threshold, classes) = (
                threshold.parse().ok()?,
                rest.strip_suffix(" size classes.")?.parse().ok()?,
            );
            // mimalloc begins with the same words, and has more of both.
            return (classes > 0 && classes <= MAX_CLASSES as u64 && threshold % classes == 0)
                .then_some(Line::Begins { threshold, classes });
        }
        if let Some((what, value)) = text.rsplit_once('=') {
            return Line::with_value(what.trim_end(), grouped(value.trim_start())?);
        }
        let numbers: Option<Vec<u64>> = text.split_whitespace().map(|n| n.parse().ok()).collect();
        Some(Line::Class(numbers?.try_into().ok()?))
    }

    fn with_value(what: &'t str, value: u64) -> Option<Line<'t>> {
        if FIGURES.contains(&what) {
            return Some(Line::Figure { what, value });
        }
        let (counted, each) = what.split_once(" * ")?;
        let (count, name) = counted.split_once(' ')?;
        let (size, unit) = each.split_once(' ')?;
        let (count, size) = (count.parse().ok()?, size.parse().ok()?);
        let what = match (name, unit) {
            ("arenas", "bytes/arena") => ARENAS,
            ("unused pools", "bytes") => UNUSED_POOLS,
            (name, "bytes each") => {
                let name = name.strip_prefix("free ")?.strip_suffix('s')?.to_owned();
                let list = FreeList {
                    name,
                    objects: count,
                    size,
                };
                return Some(Line::FreeList(list, value));
            }
            _ => return None,
        };
        Some(Line::Product {
            what,
            count,
            size,
            value,
        })
    }
}

/// A number with a comma before every three digits, and not otherwise.
fn grouped(text: &str) -> Option<u64> {
    let number = text.replace(',', "").parse().ok()?;
    (Commas(number).to_string() == text).then_some(number)
}

/// The lines of one dump, as far as they have come.
struct Lines {
    line: usize,
    threshold: u64,
    alignment: u64,
    classes: [ClassStats; MAX_CLASSES],
    /// Figures and products, by the names of their lines.
    figures: BTreeMap<&'static str, u64>,
    /// How many, and how large, for each product.
    factors: BTreeMap<&'static str, (u64, u64)>,
    map_begun: bool,
    free_lists: Vec<FreeList>,
}

impl Lines {
    fn begin(line: usize, threshold: u64, classes: u64) -> Lines {
        Lines {
            line,
            threshold,
            alignment: threshold / classes,
            classes: [ClassStats::default(); MAX_CLASSES],
            figures: BTreeMap::new(),
            factors: BTreeMap::new(),
            map_begun: false,
            free_lists: Vec::new(),
        }
    }

    /// Takes one line in; `text` is the line itself.
    fn take(&mut self, line: Line<'_>, text: &str) -> Result<(), Fault> {
        let unknown = || Fault::Unknown(text.to_owned());
        let twice = || Fault::Twice(text.to_owned());
        match line {
            Line::Empty | Line::Begins { .. } => {}
            Line::MapBegins if self.map_begun => return Err(twice()),
            Line::MapBegins => self.map_begun = true,
            Line::Class([index, size, pools, used_blocks, free_blocks]) => {
                let served = (self.threshold / self.alignment.max(1)) as usize;
                let class = usize::try_from(index)
                    .ok()
                    .and_then(|index| self.classes[..served].get_mut(index))
                    .filter(|_| size == (index + 1) * self.alignment && pools > 0)
                    .ok_or_else(unknown)?;
                if class.pools > 0 {
                    return Err(twice());
                }
                *class = ClassStats {
                    pools,
                    used_blocks,
                    free_blocks,
                };
            }
            Line::Figure { what, value } => {
                let what = match what {
                    TOTAL if self.map_begun => MAP_TOTAL,
                    what => FIGURES
                        .into_iter()
                        .find(|known| *known == what)
                        .ok_or_else(unknown)?,
                };
                if self.figures.insert(what, value).is_some() {
                    return Err(twice());
                }
            }
            Line::Product {
                what,
                count,
                size,
                value,
            } => {
                if count.checked_mul(size) != Some(value) {
                    return Err(unknown());
                }
                self.factors.insert(what, (count, size));
                if self.figures.insert(what, value).is_some() {
                    return Err(twice());
                }
            }
            Line::FreeList(list, value) => {
                if list.objects.checked_mul(list.size) != Some(value) {
                    return Err(unknown());
                }
                self.free_lists.push(list);
            }
        }
        Ok(())
    }

    fn figure(&self, what: &'static str) -> Result<u64, Fault> {
        self.figures.get(what).copied().ok_or(Fault::Missing(what))
    }

    fn close(self) -> Result<Dump, Fault> {
        let figure = |what| self.figure(what);
        let product = |what| {
            let of = self.factors.get(what).copied();
            of.ok_or(Fault::Missing(what))
        };
        let (current, arena_size) = product(ARENAS)?;
        let (free_pools, pool_size) = product(UNUSED_POOLS)?;
        let counts_arenas = self.figures.contains_key(ARENAS_TOTAL);
        let mut arenas = ArenaStats {
            total: current,
            reclaimed: 0,
            highwater: current,
            current,
            size: arena_size,
        };
        if counts_arenas {
            arenas.total = figure(ARENAS_TOTAL)?;
            arenas.reclaimed = figure(ARENAS_RECLAIMED)?;
            arenas.highwater = figure(ARENAS_HIGHWATER)?;
            same(ARENAS_CURRENT, figure(ARENAS_CURRENT)?, current)?;
            let held = arenas.total.checked_sub(arenas.reclaimed);
            same(ARENAS_CURRENT, current, held.unwrap_or(u64::MAX))?;
        }
        let bytes = ByteStats {
            allocated: figure(ALLOCATED)?,
            available: figure(AVAILABLE)?,
            unused_pools: figure(UNUSED_POOLS)?,
            headers: figure(HEADERS)?,
            quantization: figure(QUANTIZATION)?,
            alignment: figure(ALIGNMENT)?,
        };
        let blocks = |count: fn(&ClassStats) -> u64| {
            let sizes = (1..).map(|units| units * self.alignment);
            let of_class = self.classes.iter().zip(sizes);
            of_class.fold(0u64, |sum, (class, size)| {
                sum.saturating_add(count(class).saturating_mul(size))
            })
        };
        same(
            ALLOCATED,
            bytes.allocated,
            blocks(|class| class.used_blocks),
        )?;
        same(
            AVAILABLE,
            bytes.available,
            blocks(|class| class.free_blocks),
        )?;
        let parts = [
            bytes.allocated,
            bytes.available,
            bytes.unused_pools,
            bytes.headers,
            bytes.quantization,
            bytes.alignment,
        ];
        same(TOTAL, figure(TOTAL)?, sum(&parts))?;
        same(ARENAS, figure(ARENAS)?, sum(&parts))?;
        Ok(Dump {
            line: self.line,
            counts_arenas,
            malloc_calls: self.figures.get(MALLOC_CALLS).copied(),
            stats: Stats {
                arenas,
                pool_size,
                alignment: self.alignment,
                threshold: self.threshold,
                classes: self.classes,
                free_pools,
                bytes,
                map: self.map()?,
            },
            free_lists: self.free_lists,
        })
    }

    /// The address map's lines. A narrow machine's map has a root alone.
    fn map(&self) -> Result<Option<MapStats>, Fault> {
        if !self.map_begun {
            return Ok(None);
        }
        let optional = |what| self.figures.get(what).copied().unwrap_or(0);
        let root = self.figure(ROOT_BYTES)?;
        let each = |bytes, nodes| -> Result<u64, Fault> {
            let (said, nodes) = (optional(bytes), optional(nodes));
            let each = said.checked_div(nodes).unwrap_or(0);
            same(bytes, said, each * nodes).map(|()| each)
        };
        let map = MapStats {
            middle_nodes: optional(MIDDLE_NODES),
            leaves: optional(LEAVES),
            node_bytes: [
                root,
                each(MIDDLE_BYTES, MIDDLE_NODES)?,
                each(LEAF_BYTES, LEAVES)?,
            ],
        };
        let parts = [root, optional(MIDDLE_BYTES), optional(LEAF_BYTES)];
        same(MAP_TOTAL, self.figure(MAP_TOTAL)?, sum(&parts))?;
        Ok(Some(map))
    }
}

/// A sum that a text full of nonsense cannot make overflow.
fn sum(parts: &[u64]) -> u64 {
    parts
        .iter()
        .fold(0, |sum: u64, part| sum.saturating_add(*part))
}

fn same(what: &'static str, said: u64, reckoned: u64) -> Result<(), Fault> {
    if said == reckoned {
        Ok(())
    } else {
        Err(Fault::Sum(what, said, reckoned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{format, vec};

    /// A dump of a debug build of 2.7: alignment 8 up to 256 bytes, calls of malloc, and no map.
    const PYTHON_2_7_DEBUG: &str = "\
Small block threshold = 256, in 32 size classes.

class   size   num pools   blocks in use  avail blocks
-----   ----   ---------   -------------  ------------
    0      8           1             505             1
   31    256           2              20            10

# times object malloc called       =            1,234,567
# arenas allocated total           =                    5
# arenas reclaimed                 =                    4
# arenas highwater mark            =                    3
# arenas allocated current         =                    1
1 arenas * 262144 bytes/arena      =              262,144

# bytes in allocated blocks        =                9,160
# bytes in available blocks        =                2,568
60 unused pools * 4096 bytes       =              245,760
# bytes lost to pool headers       =                  144
# bytes lost to quantization       =                  416
# bytes lost to arena alignment    =                4,096
Total                              =              262,144
";

    /// The same as 2.4 has it, which says nothing of arenas that it cannot release.
    fn python_2_4() -> String {
        let said = |line: &&str| !line.starts_with("# arenas") && !line.starts_with("# times");
        let kept = PYTHON_2_7_DEBUG.lines().filter(said);
        kept.map(|line| format!("{line}\n")).collect()
    }

    fn only(text: &str) -> Dump {
        let read = read(text);
        assert_eq!(read.errors, vec![]);
        let [dump] = <[Dump; 1]>::try_from(read.dumps).expect("one dump");
        dump
    }

    fn fault(text: &str) -> (usize, Fault) {
        let read = read(text);
        assert_eq!((read.dumps.len(), read.errors.len()), (0, 1), "{read:?}");
        (read.errors[0].line, read.errors[0].fault.clone())
    }

    #[test]
    fn the_first_generations() {
        let dump = only(PYTHON_2_7_DEBUG);
        assert_eq!(dump.malloc_calls, Some(1_234_567));
        let arenas = dump.stats.arenas;
        assert_eq!(
            [
                arenas.total,
                arenas.reclaimed,
                arenas.highwater,
                arenas.current
            ],
            [5, 4, 3, 1]
        );
        assert_eq!((dump.stats.alignment, dump.stats.threshold), (8, 256));
        assert_eq!(dump.stats.classes[31].pools, 2);
        let without_calls = PYTHON_2_7_DEBUG
            .lines()
            .filter(|l| !l.starts_with("# times"));
        let without_calls: String = without_calls.map(|line| format!("{line}\n")).collect();
        assert_eq!(dump.text().to_string(), without_calls);

        let old = only(&python_2_4());
        assert!(!old.counts_arenas && dump.counts_arenas);
        assert_eq!(old.stats.arenas.current, 1);
        assert_eq!(old.text().to_string(), python_2_4());
    }

    #[test]
    fn free_lists_of_types() {
        let lists = "
            9 free PyDictObjects * 48 bytes each =                  432
   8 free 2-sized PyTupleObjects * 40 bytes each =                  320
";
        let dump = only(&format!("{PYTHON_2_7_DEBUG}{lists}"));
        let list = |name: &str, objects, size| FreeList {
            name: name.to_owned(),
            objects,
            size,
        };
        assert_eq!(
            dump.free_lists,
            [
                list("PyDictObject", 9, 48),
                list("2-sized PyTupleObject", 8, 40)
            ]
        );
        // Of nobody's, where pymalloc is not used and so prints nothing.
        assert_eq!(read(lists).errors.len(), 2);
    }

    #[test]
    fn each_line_that_is_left_out_is_missed() {
        let needed = [
            (ARENAS, "1 arenas"),
            (UNUSED_POOLS, "60 unused"),
            (ARENAS_RECLAIMED, ARENAS_RECLAIMED),
            (ARENAS_HIGHWATER, ARENAS_HIGHWATER),
            (ARENAS_CURRENT, ARENAS_CURRENT),
            (ALLOCATED, ALLOCATED),
            (AVAILABLE, AVAILABLE),
            (HEADERS, HEADERS),
            (QUANTIZATION, QUANTIZATION),
            (ALIGNMENT, ALIGNMENT),
            (TOTAL, TOTAL),
        ];
        for (what, begins) in needed {
            let kept = PYTHON_2_7_DEBUG.lines().filter(|l| !l.starts_with(begins));
            let text: String = kept.map(|line| format!("{line}\n")).collect();
            assert_eq!(fault(&text), (1, Fault::Missing(what)));
        }
        // Cut off anywhere, it is no dump.
        for (end, _) in PYTHON_2_7_DEBUG.match_indices('\n').take(20) {
            assert!(read(&PYTHON_2_7_DEBUG[..end]).dumps.is_empty());
        }
    }

    #[test]
    fn each_figure_that_is_changed_is_found() {
        for (from, to, what) in [
            ("505             1", "506             1", ALLOCATED),
            ("20            10", "20            11", AVAILABLE),
            ("                  144", "                  145", TOTAL),
            (
                "reclaimed                 =                    4",
                "reclaimed                 =                    3",
                ARENAS_CURRENT,
            ),
            (
                "current         =                    1",
                "current         =                    2",
                ARENAS_CURRENT,
            ),
        ] {
            assert!(PYTHON_2_7_DEBUG.contains(from), "{from}");
            let text = PYTHON_2_7_DEBUG.replace(from, to);
            assert!(
                matches!(fault(&text), (1, Fault::Sum(found, ..)) if found == what),
                "{from}"
            );
        }
        // Another number of bytes that the parts add up to is not what the arenas have.
        let text = PYTHON_2_7_DEBUG.replace("  144", "  145").replace(
            "Total                              =              262,144",
            "Total = 262,145",
        );
        assert_eq!(fault(&text).1, Fault::Sum(ARENAS, 262_144, 262_145));
    }

    #[test]
    fn what_is_no_line_of_a_dump_is_told_with_its_number() {
        let unknown = [
            "hello",
            "1 2 3 4",
            "# arenas = 1",
            "Total = 1,00",
            "Total = 1000",
            "Total = 99999999999999999999",
            "Total = -1",
            "2 arenas * 262144 bytes/arena = 1",
            "3 unused pools * 4096 bits = 12,288",
            "3 free pools * 4096 bytes = 12,288",
            // A class that there is not, of a wrong size, and without pools.
            "   32    264           1               1             1",
            "    1     24           1               1             1",
            "    1     16           0               0             0",
            // mimalloc's.
            "Small block threshold = 16384, in 73 size classes.",
            "Small block threshold = 512, in 0 size classes.",
            "    Allocated Blocks: 15839",
        ];
        for line in unknown {
            for (text, number) in [
                (format!("{line}\n{PYTHON_2_7_DEBUG}"), 1),
                (format!("{PYTHON_2_7_DEBUG}{line}\n"), 22),
            ] {
                let read = read(&text);
                let expected = Error {
                    line: number,
                    fault: Fault::Unknown(line.to_owned()),
                };
                assert_eq!(read.errors, [expected]);
                assert_eq!(read.dumps.len(), 1, "{line}");
            }
        }
        let twice = format!(
            "{PYTHON_2_7_DEBUG}Total                              =              262,144\n"
        );
        assert!(matches!(read(&twice).errors[0].fault, Fault::Twice(_)));
    }

    #[test]
    fn many_in_a_stream() {
        let text = format!(
            "{PYTHON_2_7_DEBUG}before\n{}after\n{PYTHON_2_7_DEBUG}",
            python_2_4()
        );
        let read = read(&text);
        let begun: Vec<usize> = read.dumps.iter().map(|dump| dump.line).collect();
        let wrong: Vec<usize> = read.errors.iter().map(|error| error.line).collect();
        assert_eq!((begun, wrong), (vec![1, 23, 40], vec![22, 39]));
    }
}
