//! walker: the file walker of 2007.
//!
//! Imitates the lost script of the 2007 report: walk a directory, read each file into memory line by line, then
//! collect garbage (here: drop everything) before the next. How the lines are kept is the whole point, so it is a
//! parameter; `concat` is the one that the report fell into (docs/history.md, "The cause"). Input is a real directory or file
//! (`root`) or a seeded corpus of one file or several. Reading, or making, a file and finding its newlines happens while
//! the clock stands still: what is measured is keeping the lines and dropping them. Not good for: input speed, threads, long-lived fragmentation.

use super::WorkloadDef;
use super::params::{self, BadParam, Kind, ParamDef};
use crate::arms::ArmDef;
use crate::child::phases::START;
use crate::child::session::{Session, Stop};
use crate::input::corpus::{Corpus, Texts};
use crate::input::{lines, tree};
use crate::probe::mapping::Mapping;
use crate::size;
use crate::trial::{FileRow, Params};
use contract::{Block, Driver, Heap, Lines, Mode, OutOfMemory};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// The definition.
pub const WORKLOAD: WorkloadDef = WorkloadDef {
    id: "walker",
    what: "the 2007 file walker: each file read line by line and kept in one of seven ways, then dropped",
    params: &[
        ParamDef {
            name: "mode",
            kind: Kind::Choice(&[
                "concat",
                "concat-lines",
                "concat-copy",
                "list",
                "vec2x",
                "chunks",
                "join",
            ]),
            default: Some("concat"),
            what: "how the lines are kept",
        },
        ParamDef {
            name: "corpus",
            kind: Kind::Choice(&["text", "nl256", "nl64k", "none"]),
            default: None,
            what: "seeded input: lines of 20-120 bytes; a newline every 256 bytes; every 64 KiB; none at all",
        },
        ParamDef {
            name: "size",
            kind: Kind::Size(1, 2 << 30),
            default: None,
            what: "bytes of the seeded input, of each of its files",
        },
        ParamDef {
            name: "files",
            kind: Kind::Count(1, MOST_FILES),
            default: None,
            what: "a made directory of so many files, each with a text of its own, walked one after the other",
        },
        ParamDef {
            name: "root",
            kind: Kind::ExistingPath,
            default: None,
            what: "real input instead: a directory, walked in the order of names, or one regular file",
        },
        ParamDef {
            name: "file-limit",
            kind: Kind::Duration,
            default: Some("0s"),
            what: "a file that takes longer is given up and counted; 0s is no limit",
        },
    ],
    phases: &["full"],
    small: &[
        &[("mode", "concat"), ("corpus", "text"), ("size", "100KiB")],
        &[
            ("mode", "concat-copy"),
            ("corpus", "text"),
            ("size", "100KiB"),
        ],
        &[
            ("mode", "concat-lines"),
            ("corpus", "text"),
            ("size", "100KiB"),
            ("files", "2"),
        ],
        &[("mode", "list"), ("corpus", "text"), ("size", "200KiB")],
        &[("mode", "vec2x"), ("corpus", "text"), ("size", "200KiB")],
        // It starts with 8 KiB and adds 512 KiB at a time from there on.
        &[("mode", "chunks"), ("corpus", "text"), ("size", "2MiB")],
        &[("mode", "join"), ("corpus", "text"), ("size", "200KiB")],
        &[("mode", "concat"), ("corpus", "nl256"), ("size", "100KiB")],
        // Several lines of their length, and one.
        &[("mode", "concat"), ("corpus", "nl64k"), ("size", "300KiB")],
        &[("mode", "list"), ("corpus", "none"), ("size", "300KiB")],
    ],
    check,
    footprint,
};

/// Bytes of a CPython bytes object beside its contents: reference count, type, length, hash (8 each) and the closing
/// NUL. (The NUL stands in front here: sizes are the same, and appending needs no second write.)
const HEADER: usize = 33;
/// CPython 2's `file.read()` starts its buffer with so much ...
const SMALL_CHUNK: usize = 8 << 10;
/// ... doubles it up to this, and from then on adds this.
const BIG_CHUNK: usize = 512 << 10;
/// Most files of a made directory.
const MOST_FILES: u64 = 10_000;
/// Most bytes of a made directory: making more would take longer than anybody waits.
const MOST_MADE: u64 = 64 << 30;
/// Lines between two looks at the clock.
const LINES_A_LOOK: usize = 128;
/// Shortest line that footprints reckon with.
const SHORT_LINE: u64 = 20;

fn check(params: &Params) -> Result<(), BadParam> {
    let has = |name| params.contains_key(name);
    let made = || Amount::of(params).whole;
    match (has("root"), has("corpus"), has("size")) {
        (true, false, false) if has("files") => Err(BadParam(
            "walker: `root` and `files` exclude each other: a real directory has the files that it has".to_owned(),
        )),
        (false, true, true) if made() > MOST_MADE => Err(BadParam(format!(
            "walker: `files` of `size` are {} in all: at most {} are made",
            size::approx_bytes(made()),
            size::format_bytes(MOST_MADE)
        ))),
        (true, false, false) | (false, true, true) => Ok(()),
        (true, _, _) => Err(BadParam(
            "walker: `root` and `corpus`/`size` exclude each other".to_owned(),
        )),
        (false, true, false) => Err(BadParam(
            "walker: a `corpus` needs a `size` (such as 16MiB)".to_owned(),
        )),
        (false, false, true) => Err(BadParam(
            "walker: a `size` needs a `corpus` (text, nl256, nl64k or none)".to_owned(),
        )),
        (false, false, false) => Err(BadParam(
            "walker: needs an input: `root` (a directory or file), or `corpus` and `size`"
                .to_owned(),
        )),
    }
}

/// Bytes of an input.
struct Amount {
    /// Of its largest file: no more of it is in memory at a time.
    largest: u64,
    /// Of all its files.
    whole: u64,
}

impl Amount {
    fn of(params: &Params) -> Amount {
        let Some(root) = params.get("root") else {
            let largest = params::bytes(params, "size");
            let files = params::count(params, "files").max(1);
            return Amount {
                largest,
                whole: largest.saturating_mul(files),
            };
        };
        let sizes: Vec<u64> = tree::walk(Path::new(root)).map_or_else(
            |_| Vec::new(),
            |found| found.files.iter().map(|file| file.size).collect(),
        );
        Amount {
            largest: sizes.iter().copied().max().unwrap_or(0),
            whole: sizes.iter().fold(0, |sum, size| sum.saturating_add(*size)),
        }
    }
}

fn footprint(params: &Params, arm: &ArmDef) -> u64 {
    let Amount { largest, whole } = Amount::of(params);
    // The input, its table of line lengths and the handles of the kept lines are the child's own.
    let own = largest + largest / SHORT_LINE * (size_of::<u32>() + size_of::<Block>()) as u64;
    let kept = match params.get("mode").map(String::as_str) {
        // A kept line of 20 bytes is a block of up to 64; a joined list holds the text twice.
        Some("list" | "join") => 5,
        // Every prefix stays where nothing is freed, and every line, or every copy of the string that it displaces.
        Some("concat-copy" | "concat-lines") if !arm.reuses => largest / SHORT_LINE / 2,
        _ => arm.growth_factor,
    };
    let read = if arm.reuses { largest } else { whole };
    own.saturating_add(read.saturating_mul(kept))
}

/// A walk with its input, if that is made and not read: it can be used for many.
pub(super) struct Walker {
    walk: Walk,
    input: Input,
}

enum Input {
    Corpus {
        name: String,
        text: Mapping,
        hash: u64,
    },
    /// Files that are made one after the other.
    Directory {
        kind: Corpus,
        seed: u64,
        /// Bytes of each.
        size: usize,
        files: u64,
    },
    Tree(PathBuf),
}

/// Makes the corpus and finds its lines. A tree of files is read in each walk, and the files of a directory are made in
/// each.
pub(super) fn prepare(params: &Params, seed: u64) -> Result<Walker, Stop> {
    let mut walk = Walk {
        mode: params.get("mode").cloned().unwrap_or_default(),
        file_limit_ns: params::duration(params, "file-limit").map(|limit| limit.as_nanos() as u64),
        begun: false,
        lengths: Vec::new(),
        kept: Vec::new(),
    };
    if let Some(root) = params.get("root") {
        let input = Input::Tree(PathBuf::from(root));
        return Ok(Walker { walk, input });
    }
    let kind: Corpus = params
        .get("corpus")
        .and_then(|name| name.parse().ok())
        .ok_or_else(|| Stop::Input("walker needs a corpus or a root".to_owned()))?;
    let size = params::bytes(params, "size") as usize;
    if params.contains_key("files") {
        let files = params::count(params, "files");
        let input = Input::Directory {
            kind,
            seed,
            size,
            files,
        };
        return Ok(Walker { walk, input });
    }
    let mut text =
        Mapping::new(size).map_err(|why| Stop::Input(format!("cannot map the input: {why}")))?;
    kind.fill(seed, text.as_mut_slice());
    let name = format!("corpus:{kind}");
    walk.split(&name, text.as_slice())?;
    let hash = xxh3_64(text.as_slice());
    let input = Input::Corpus { name, text, hash };
    Ok(Walker { walk, input })
}

pub(super) fn run<H: Heap, M: Mode>(
    walker: &mut Walker,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    let Walker { walk, input } = walker;
    walk.begun = false;
    match input {
        Input::Corpus { name, text, hash } => {
            let text = text.as_slice();
            walk.file(name, text, Some(*hash), true, driver, session)?;
            session.emptied(driver)
        }
        Input::Directory {
            kind,
            seed,
            size,
            files,
        } => {
            let texts = kind.texts(*seed);
            walk.directory(*kind, texts, *size, *files, driver, session)
        }
        Input::Tree(root) => walk.tree(root, driver, session),
    }
}

/// What the walk carries from file to file.
struct Walk {
    mode: String,
    file_limit_ns: Option<u64>,
    /// The first file has come to its first line.
    begun: bool,
    /// Length of each line of the current file.
    lengths: Vec<u32>,
    /// Room for the handles of kept lines.
    kept: Vec<Block>,
}

impl Walk {
    /// Walks files that are made one after the other in the same place, as a reader's buffer would hold them: the
    /// child has no more than one of them in memory, and each is made between two measured regions.
    fn directory<H: Heap, M: Mode>(
        &mut self,
        kind: Corpus,
        mut texts: Texts,
        size: usize,
        files: u64,
        driver: &mut Driver<H, M>,
        session: &mut Session,
    ) -> Result<(), Stop> {
        let mut text = Mapping::new(size)
            .map_err(|why| Stop::Input(format!("cannot map the input: {why}")))?;
        // For the file with the most lines, so that these tables do not move between one file and the next.
        let most = kind.most_lines(size);
        self.lengths.reserve_exact(most);
        self.kept.reserve_exact(most);
        let mut ended = Ok(());
        for number in 1..=files {
            texts.fill_next(text.as_mut_slice());
            let name = format!("corpus:{kind}/{number}");
            let text = text.as_slice();
            let file = self
                .split(&name, text)
                .and_then(|()| self.file(&name, text, None, number == 1, driver, session));
            goes_on(&mut ended, file)?;
        }
        ended?;
        session.emptied(driver)
    }

    fn tree<H: Heap, M: Mode>(
        &mut self,
        root: &Path,
        driver: &mut Driver<H, M>,
        session: &mut Session,
    ) -> Result<(), Stop> {
        let found = tree::walk(root).map_err(|why| Stop::Input(why.to_string()))?;
        session.found.skipped = found.skipped.clone();
        let mut room = Mapping::new((found.largest() as usize).max(1))
            .map_err(|why| Stop::Input(format!("cannot map the input: {why}")))?;
        let mut ended = Ok(());
        let most = found.files.iter().map(|file| file.size).max();
        let mut full = false;
        for file in &found.files {
            let read = match found.read(file, room.as_mut_slice()) {
                Ok(read) => read,
                Err(reason) => {
                    reason.count_in(&mut session.found.skipped);
                    continue;
                }
            };
            if read.changed {
                session.skip("changed-while-read");
            }
            let name = file.path.to_string_lossy();
            let largest = !full && Some(file.size) == most;
            full |= largest;
            let text = &room.as_slice()[..read.bytes];
            let file = self
                .split(&name, text)
                .and_then(|()| self.file(&name, text, None, largest, driver, session));
            goes_on(&mut ended, file)?;
        }
        if session.found.files.is_empty() {
            let left_out: Vec<String> = session
                .found
                .skipped
                .iter()
                .map(|(why, n)| format!("{why} {n}"))
                .collect();
            let left_out = if left_out.is_empty() {
                "nothing".to_owned()
            } else {
                left_out.join(", ")
            };
            return Err(Stop::Input(format!(
                "no regular file was read under {} (left out: {left_out})",
                root.display()
            )));
        }
        ended?;
        session.emptied(driver)
    }

    /// Finds the lines of the file that comes next.
    fn split(&mut self, name: &str, text: &[u8]) -> Result<(), Stop> {
        lines::split(text, &mut self.lengths).map_err(|why| Stop::Input(format!("{name}: {why}")))
    }

    /// Reads one file in: its lines are known and its pages are in memory; now the clock runs. The phase `full` is
    /// that of the `largest`. The `hash` of its text is made if it is not known.
    fn file<H: Heap, M: Mode>(
        &mut self,
        name: &str,
        text: &[u8],
        hash: Option<u64>,
        largest: bool,
        driver: &mut Driver<H, M>,
        session: &mut Session,
    ) -> Result<(), Stop> {
        let mut kept = std::mem::take(&mut self.kept);
        kept.reserve(self.lengths.len());
        if !std::mem::replace(&mut self.begun, true) {
            session.phase(START)?;
        }
        let this = File {
            name,
            text,
            hash,
            lengths: &self.lengths,
            largest,
            limit_ns: self.file_limit_ns,
        };
        match self.mode.as_str() {
            "concat-lines" => this.read(ConcatLines::default(), driver, session),
            "concat-copy" => this.read(ConcatCopy::default(), driver, session),
            "list" => this.read(
                List {
                    lines: &mut kept,
                    table: Table::default(),
                },
                driver,
                session,
            ),
            "vec2x" => this.read(Vec2x::default(), driver, session),
            "chunks" => this.read(Chunks::default(), driver, session),
            "join" => {
                let list = List {
                    lines: &mut kept,
                    table: Table::default(),
                };
                this.read(
                    Join {
                        list,
                        whole: None,
                        length: 0,
                    },
                    driver,
                    session,
                )
            }
            _ => this.read(Concat::default(), driver, session),
        }?;
        self.kept = kept;
        Ok(())
    }
}

/// One file that runs out of memory or time does not end the walk, as it did not in 2007; the trial remembers the first
/// such ending.
fn goes_on(ended: &mut Result<(), Stop>, file: Result<(), Stop>) -> Result<(), Stop> {
    match file {
        Err(stop @ Stop::TrialTimedOut(_)) => return Err(stop),
        Err(stop) if ended.is_ok() => *ended = Err(stop),
        _ => {}
    }
    Ok(())
}

struct File<'a> {
    name: &'a str,
    text: &'a [u8],
    hash: Option<u64>,
    lengths: &'a [u32],
    largest: bool,
    limit_ns: Option<u64>,
}

impl File<'_> {
    fn read<H: Heap, M: Mode>(
        &self,
        mut keeper: impl Keep,
        driver: &mut Driver<H, M>,
        session: &mut Session,
    ) -> Result<(), Stop> {
        let mut lines = Lines::new(self.text, self.lengths)
            .ok_or_else(|| Stop::Input(format!("{}: its lines do not add up", self.name)))?;
        let before = driver.mode().counts();
        session.start_file(self.limit_ns);
        let ended = keep_lines(&mut keeper, driver, session, &mut lines);
        session.stop();
        let reached = self.text.len() - lines.bytes();

        if ended.is_ok() {
            if self.largest {
                session.phase("full")?;
            }
            let hash = self.hash.unwrap_or_else(|| xxh3_64(self.text));
            session.contents_of(hash, |sum| {
                let mut hash = Xxh3Default::new();
                keeper.read(driver, |bytes| hash.update(bytes));
                *sum = sum.wrapping_add(hash.digest());
            });
        }

        session.start();
        keeper.release(driver);
        session.stop();

        let since = driver.mode().counts().zip(before);
        session.file_done(
            FileRow {
                path: self.name.to_owned(),
                bytes: self.text.len() as u64,
                lines: self.lengths.len() as u64,
                ended: Stop::name(&ended).to_owned(),
                reached_bytes: reached as u64,
                wall_ns: session.file_wall_ns(),
                realloc_moves: since.map(|(now, then)| now.realloc_moves - then.realloc_moves),
                moved_bytes: since.map(|(now, then)| now.moved_bytes - then.moved_bytes),
            },
            self.lengths.len() as u64,
        );
        ended
    }
}

/// The measured loop. Never inlined, so that its name can switch the counting of instructions on and off.
#[inline(never)]
fn keep_lines<H: Heap, M: Mode>(
    keeper: &mut impl Keep,
    driver: &mut Driver<H, M>,
    session: &Session,
    lines: &mut Lines,
) -> Result<(), Stop> {
    while !lines.is_empty() {
        keeper.keep_some(driver, lines, LINES_A_LOOK)?;
        session.in_time()?;
    }
    keeper.end(driver)?;
    Ok(())
}

/// A way to keep lines.
trait Keep {
    /// Keeps one more line, which is not empty.
    fn keep<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
        line: &[u8],
    ) -> Result<(), OutOfMemory>;
    /// Keeps the next `most` lines, or all that are left. Those that were kept are gone from `lines`.
    #[inline]
    fn keep_some<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
        lines: &mut Lines,
        most: usize,
    ) -> Result<(), OutOfMemory> {
        for _ in 0..most {
            let Some(line) = lines.first() else { break };
            self.keep(driver, line)?;
            lines.pass();
        }
        Ok(())
    }
    /// The last line has been kept.
    fn end<H: Heap, M: Mode>(&mut self, driver: &mut Driver<H, M>) -> Result<(), OutOfMemory> {
        let _ = driver;
        Ok(())
    }
    /// Everything kept, in order.
    fn read<H: Heap, M: Mode>(&self, driver: &Driver<H, M>, sink: impl FnMut(&[u8]));
    /// Drops everything.
    fn release<H: Heap, M: Mode>(self, driver: &mut Driver<H, M>);
}

/// A bytes object of CPython with `contents`.
fn object<H: Heap, M: Mode>(
    driver: &mut Driver<H, M>,
    contents: &[u8],
) -> Result<Block, OutOfMemory> {
    let mut block = driver.alloc(HEADER + contents.len())?;
    driver.fill(&mut block, 0, HEADER, 0);
    driver.write(&mut block, HEADER, contents);
    Ok(block)
}

/// `concat`: one string, grown by exactly one line a step (`content += line` with one reference).
#[derive(Default)]
struct Concat {
    content: Option<Block>,
}

impl Keep for Concat {
    #[inline]
    fn keep<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
        line: &[u8],
    ) -> Result<(), OutOfMemory> {
        match &mut self.content {
            Some(content) => driver.append(content, line),
            None => {
                self.content = Some(object(driver, line)?);
                Ok(())
            }
        }
    }

    #[inline]
    fn keep_some<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
        lines: &mut Lines,
        most: usize,
    ) -> Result<(), OutOfMemory> {
        let mut most = most;
        if let (None, Some(line)) = (&self.content, lines.first()) {
            self.keep(driver, line)?;
            lines.pass();
            most -= 1;
        }
        match &mut self.content {
            Some(content) => driver.append_each(content, lines, most),
            None => Ok(()),
        }
    }

    fn read<H: Heap, M: Mode>(&self, driver: &Driver<H, M>, sink: impl FnMut(&[u8])) {
        if let Some(content) = &self.content {
            driver.read(content, HEADER, content.size() - HEADER, sink);
        }
    }

    fn release<H: Heap, M: Mode>(self, driver: &mut Driver<H, M>) {
        self.content
            .into_iter()
            .for_each(|block| driver.free(block));
    }
}

/// `concat-lines`: as `concat`, but each line is a string of its own first, as CPython has it. The name `line` holds one
/// until it is given the next, so for a moment there are two; the first of a file becomes the content itself, because
/// nothing and a string is that string.
#[derive(Default)]
struct ConcatLines {
    content: Option<Block>,
    line: Option<Block>,
}

impl Keep for ConcatLines {
    #[inline]
    fn keep<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
        line: &[u8],
    ) -> Result<(), OutOfMemory> {
        let read = object(driver, line)?;
        if let Some(before) = self.line.take() {
            driver.free(before);
        }
        let Some(content) = &mut self.content else {
            self.content = Some(read);
            return Ok(());
        };
        let end = content.size();
        let grown = driver.resize(content, end + line.len());
        if grown.is_ok() {
            driver.copy(&read, HEADER, content, end, line.len());
        }
        self.line = Some(read);
        grown
    }

    fn read<H: Heap, M: Mode>(&self, driver: &Driver<H, M>, sink: impl FnMut(&[u8])) {
        if let Some(content) = &self.content {
            driver.read(content, HEADER, content.size() - HEADER, sink);
        }
    }

    fn release<H: Heap, M: Mode>(self, driver: &mut Driver<H, M>) {
        let all = self.content.into_iter().chain(self.line);
        all.for_each(|block| driver.free(block));
    }
}

/// `concat-copy`: a new string for every line, the old one copied and freed (`content = content + line` with a
/// second reference).
#[derive(Default)]
struct ConcatCopy {
    content: Option<Block>,
}

impl Keep for ConcatCopy {
    #[inline]
    fn keep<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
        line: &[u8],
    ) -> Result<(), OutOfMemory> {
        self.content = Some(match self.content.take() {
            None => object(driver, line)?,
            Some(old) => {
                let mut new = match driver.alloc(old.size() + line.len()) {
                    Ok(new) => new,
                    Err(refused) => {
                        self.content = Some(old);
                        return Err(refused);
                    }
                };
                driver.copy(&old, 0, &mut new, 0, old.size());
                driver.write(&mut new, old.size(), line);
                driver.free(old);
                new
            }
        });
        Ok(())
    }

    fn read<H: Heap, M: Mode>(&self, driver: &Driver<H, M>, sink: impl FnMut(&[u8])) {
        if let Some(content) = &self.content {
            driver.read(content, HEADER, content.size() - HEADER, sink);
        }
    }

    fn release<H: Heap, M: Mode>(self, driver: &mut Driver<H, M>) {
        self.content
            .into_iter()
            .for_each(|block| driver.free(block));
    }
}

/// The pointer vector of a list, in the heap under test, grown by CPython's rule (3.9 and later): about an eighth
/// more than needed, in fours.
#[derive(Default)]
struct Table {
    vector: Option<Block>,
    length: usize,
}

impl Table {
    const ENTRY: usize = size_of::<u64>();

    /// Entries that the vector gets when it must hold `length`.
    fn allocated_for(length: usize) -> usize {
        (length + (length >> 3) + 6) & !3
    }

    #[inline]
    fn push<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
        block: &Block,
    ) -> Result<(), OutOfMemory> {
        let room = self
            .vector
            .as_ref()
            .map_or(0, |vector| vector.size() / Self::ENTRY);
        if self.length == room {
            let bytes = Self::allocated_for(self.length + 1) * Self::ENTRY;
            match &mut self.vector {
                Some(vector) => driver.resize(vector, bytes)?,
                None => self.vector = Some(driver.alloc(bytes)?),
            }
        }
        if let Some(vector) = &mut self.vector {
            driver.write(
                vector,
                self.length * Self::ENTRY,
                &(block.address() as u64).to_ne_bytes(),
            );
        }
        self.length += 1;
        Ok(())
    }
}

/// `list`: one string a line, and a list of them.
struct List<'k> {
    /// The handles; the addresses that a real list holds are written into `table`.
    lines: &'k mut Vec<Block>,
    table: Table,
}

impl Keep for List<'_> {
    #[inline]
    fn keep<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
        line: &[u8],
    ) -> Result<(), OutOfMemory> {
        let block = object(driver, line)?;
        let pushed = self.table.push(driver, &block);
        self.lines.push(block);
        pushed
    }

    fn read<H: Heap, M: Mode>(&self, driver: &Driver<H, M>, mut sink: impl FnMut(&[u8])) {
        for line in self.lines.iter() {
            driver.read(line, HEADER, line.size() - HEADER, &mut sink);
        }
    }

    fn release<H: Heap, M: Mode>(self, driver: &mut Driver<H, M>) {
        for line in self.lines.drain(..) {
            driver.free(line);
        }
        self.table
            .vector
            .into_iter()
            .for_each(|block| driver.free(block));
    }
}

/// `vec2x`: one buffer whose capacity doubles (Rust's `Vec<u8>`).
#[derive(Default)]
struct Vec2x {
    buffer: Option<Block>,
    length: usize,
}

impl Keep for Vec2x {
    #[inline]
    fn keep<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
        line: &[u8],
    ) -> Result<(), OutOfMemory> {
        let needed = self.length + line.len();
        match &mut self.buffer {
            None => self.buffer = Some(driver.alloc(needed.max(8))?),
            Some(buffer) if needed > buffer.size() => {
                let doubled = (2 * buffer.size()).max(needed);
                driver.resize(buffer, doubled)?;
            }
            Some(_) => {}
        }
        if let Some(buffer) = &mut self.buffer {
            driver.write(buffer, self.length, line);
        }
        self.length = needed;
        Ok(())
    }

    fn read<H: Heap, M: Mode>(&self, driver: &Driver<H, M>, sink: impl FnMut(&[u8])) {
        if let Some(buffer) = &self.buffer {
            driver.read(buffer, 0, self.length, sink);
        }
    }

    fn release<H: Heap, M: Mode>(self, driver: &mut Driver<H, M>) {
        self.buffer.into_iter().for_each(|block| driver.free(block));
    }
}

/// `chunks`: CPython 2's `file.read()`: a buffer that doubles up to 512 KiB, then grows by 512 KiB, and is cut to
/// its length at the end.
#[derive(Default)]
struct Chunks {
    buffer: Option<Block>,
    length: usize,
}

impl Chunks {
    /// The next capacity after `capacity` bytes of contents.
    fn next(capacity: usize) -> usize {
        if capacity < BIG_CHUNK {
            capacity * 2
        } else {
            capacity + BIG_CHUNK
        }
    }
}

impl Keep for Chunks {
    #[inline]
    fn keep<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
        line: &[u8],
    ) -> Result<(), OutOfMemory> {
        let needed = self.length + line.len();
        let had = self
            .buffer
            .as_ref()
            .map_or(0, |buffer| buffer.size() - HEADER);
        let mut capacity = had.max(SMALL_CHUNK);
        while capacity < needed {
            capacity = Self::next(capacity);
        }
        match &mut self.buffer {
            None => self.buffer = Some(driver.alloc(HEADER + capacity)?),
            Some(buffer) if capacity > had => driver.resize(buffer, HEADER + capacity)?,
            Some(_) => {}
        }
        if let Some(buffer) = &mut self.buffer {
            driver.write(buffer, HEADER + self.length, line);
        }
        self.length = needed;
        Ok(())
    }

    fn end<H: Heap, M: Mode>(&mut self, driver: &mut Driver<H, M>) -> Result<(), OutOfMemory> {
        match &mut self.buffer {
            Some(buffer) if buffer.size() > HEADER + self.length => {
                driver.resize(buffer, HEADER + self.length)
            }
            _ => Ok(()),
        }
    }

    fn read<H: Heap, M: Mode>(&self, driver: &Driver<H, M>, sink: impl FnMut(&[u8])) {
        if let Some(buffer) = &self.buffer {
            driver.read(buffer, HEADER, self.length, sink);
        }
    }

    fn release<H: Heap, M: Mode>(self, driver: &mut Driver<H, M>) {
        self.buffer.into_iter().for_each(|block| driver.free(block));
    }
}

/// `join`: the list, then one string of the total (`"".join(lines)`).
struct Join<'k> {
    list: List<'k>,
    whole: Option<Block>,
    length: usize,
}

impl Keep for Join<'_> {
    #[inline]
    fn keep<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
        line: &[u8],
    ) -> Result<(), OutOfMemory> {
        self.length += line.len();
        self.list.keep(driver, line)
    }

    fn end<H: Heap, M: Mode>(&mut self, driver: &mut Driver<H, M>) -> Result<(), OutOfMemory> {
        let mut whole = driver.alloc(HEADER + self.length)?;
        driver.fill(&mut whole, 0, HEADER, 0);
        let mut at = HEADER;
        for line in self.list.lines.iter() {
            let length = line.size() - HEADER;
            driver.copy(line, HEADER, &mut whole, at, length);
            at += length;
        }
        self.whole = Some(whole);
        Ok(())
    }

    fn read<H: Heap, M: Mode>(&self, driver: &Driver<H, M>, sink: impl FnMut(&[u8])) {
        if let Some(whole) = &self.whole {
            driver.read(whole, HEADER, self.length, sink);
        }
    }

    fn release<H: Heap, M: Mode>(self, driver: &mut Driver<H, M>) {
        self.list.release(driver);
        self.whole.into_iter().for_each(|block| driver.free(block));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_grows_as_cpython_documents_it() {
        let mut sizes = vec![0];
        for length in 1..=77 {
            let room = sizes[sizes.len() - 1];
            if length > room {
                sizes.push(Table::allocated_for(length));
            }
        }
        assert_eq!(sizes, [0, 4, 8, 16, 24, 32, 40, 52, 64, 76, 92]);
    }

    #[test]
    fn chunks_double_to_half_a_mebibyte_and_then_add_it() {
        let mut capacities = vec![SMALL_CHUNK];
        while capacities.len() < 9 {
            capacities.push(Chunks::next(capacities[capacities.len() - 1]));
        }
        let kib: Vec<usize> = capacities.iter().map(|bytes| bytes >> 10).collect();
        assert_eq!(kib, [8, 16, 32, 64, 128, 256, 512, 1024, 1536]);
    }
}
