//! lines: a text read line by line, as a Rust program reads it, some times over.
//!
//! Imitates walkers and searchers: a reader with a buffer of 8 KiB, and a string for each line that is reused, dropped or
//! kept (docs/workloads.md names the reports). Stresses how little an allocator has to do with that: about one call a
//! line, or none. What differs is how much stays resident behind few kept lines. Not good for: time; several threads, from
//! which most of the reported differences come.

use super::WorkloadDef;
use super::params::{self, Kind, ParamDef};
use super::strings::{HEADER, Text, Texts};
use crate::arms::ArmDef;
use crate::child::phases::START;
use crate::child::session::{Session, Stop};
use crate::input::lognormal;
use crate::probe::mapping::Mapping;
use crate::trial::Params;
use contract::{Block, Driver, Heap, Mode, OutOfMemory};
use xxhash_rust::xxh3::Xxh3Default;

/// The definition.
pub const WORKLOAD: WorkloadDef = WorkloadDef {
    id: "lines",
    what: "a text read line by line, some times over; lines are reused, dropped, kept or joined",
    params: &[
        ParamDef {
            name: "mode",
            kind: Kind::Choice(&[
                "reuse",
                "per-line",
                "keep-all",
                "keep-every-100th",
                "append",
            ]),
            default: Some("per-line"),
            what: "what becomes of a line",
        },
        ParamDef {
            name: "lines",
            kind: Kind::Count(1, 10_000_000),
            default: Some("40k"),
            what: "lines of the text, their lengths lognormal",
        },
        ParamDef {
            name: "passes",
            kind: Kind::Count(1, 1000),
            default: Some("3"),
            what: "how often the text is read; what is kept stays over all of them",
        },
    ],
    phases: &["kept"],
    small: &[
        &[("mode", "reuse"), ("lines", "2k")],
        &[("mode", "per-line"), ("lines", "2k")],
        &[("mode", "keep-all"), ("lines", "1k")],
        &[("mode", "keep-every-100th"), ("lines", "2k")],
        &[("mode", "append"), ("lines", "2k")],
    ],
    check: |_| Ok(()),
    footprint,
};

/// Bytes of a reader's buffer: Rust's `BufReader`.
const BUFFER: usize = 8 << 10;
/// Every so manieth line is kept under `keep-every-100th`.
const EVERY: usize = 100;
/// Lines between two looks at the clock.
const A_LOOK: usize = 1024;

fn footprint(params: &Params, arm: &ArmDef) -> u64 {
    let [lines, passes] = ["lines", "passes"].map(|name| params::count(params, name));
    // The mean of the lengths is 46; blocks are rounded up; the vector of headers and a joined text are copied when they
    // grow. The text and its table are the child's own.
    let line = 2 * 64 + 4 * HEADER as u64 + size_of::<Text>() as u64;
    let kept = match params.get("mode").map(String::as_str) {
        Some("keep-all" | "append") => lines.saturating_mul(passes),
        _ if !arm.reuses => lines.saturating_mul(passes),
        _ => lines,
    };
    kept.saturating_mul(line)
        .saturating_add(lines.saturating_mul(64))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Reuse,
    PerLine,
    KeepAll,
    KeepEvery100th,
    Append,
}

impl What {
    fn of(params: &Params) -> What {
        match params.get("mode").map(String::as_str) {
            Some("reuse") => What::Reuse,
            Some("keep-all") => What::KeepAll,
            Some("keep-every-100th") => What::KeepEvery100th,
            Some("append") => What::Append,
            _ => What::PerLine,
        }
    }

    /// Whether the line at `place` of the text stays.
    fn keeps(self, place: usize) -> bool {
        match self {
            What::Reuse | What::PerLine => false,
            What::KeepAll | What::Append => true,
            What::KeepEvery100th => place.is_multiple_of(EVERY),
        }
    }
}

/// The text and what is done with it: it can be used many times.
pub(super) struct Lines {
    what: What,
    passes: usize,
    text: Mapping,
    lengths: Vec<u32>,
}

/// Makes the text.
pub(super) fn prepare(params: &Params, seed: u64) -> Result<Lines, Stop> {
    let lengths = lognormal::lengths(seed, params::count(params, "lines") as usize);
    let bytes = lengths.iter().map(|length| *length as usize).sum();
    let mut text =
        Mapping::new(bytes).map_err(|why| Stop::Input(format!("cannot map the input: {why}")))?;
    lognormal::fill(seed, &lengths, text.as_mut_slice());
    Ok(Lines {
        what: What::of(params),
        passes: params::count(params, "passes") as usize,
        text,
        lengths,
    })
}

impl Lines {
    /// Hash of what all kept lines must hold, one after the other.
    fn expected(&self) -> u64 {
        let mut hash = Xxh3Default::new();
        for _ in 0..self.passes {
            let mut text = self.text.as_slice();
            for (place, length) in self.lengths.iter().enumerate() {
                let (line, rest) = text.split_at(*length as usize);
                if self.what.keeps(place) {
                    hash.update(line);
                }
                text = rest;
            }
        }
        hash.digest()
    }
}

pub(super) fn run<H: Heap, M: Mode>(
    lines: &mut Lines,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    let places = 0..lines.lengths.len();
    let most = places.filter(|place| lines.what.keeps(*place)).count() * lines.passes;
    let mut kept = Kept {
        texts: Texts::new(if lines.what == What::Append { 0 } else { most }),
        joined: Text::default(),
    };

    session.phase(START)?;
    session.start();
    let mut ended = Ok(());
    for _ in 0..lines.passes {
        ended = pass(lines, &mut kept, driver, session);
        if ended.is_err() {
            break;
        }
        session.found.ops += lines.lengths.len() as u64;
        session.found.appended_bytes += lines.text.as_slice().len() as u64;
    }
    session.stop();
    session.found.reached_bytes = session.found.appended_bytes;
    let ended = ended.and_then(|()| session.reached("kept", driver));
    if ended.is_ok() {
        session.contents_of(lines.expected(), |sum| {
            let mut hash = Xxh3Default::new();
            kept.texts.read(driver, |bytes| hash.update(bytes));
            kept.joined.read(driver, |bytes| hash.update(bytes));
            *sum = sum.wrapping_add(hash.digest());
        });
    }
    session.start();
    kept.texts.release(driver);
    kept.joined.release(driver);
    session.stop();
    ended?;
    session.emptied(driver)
}

/// What stays over all passes.
struct Kept {
    texts: Texts,
    /// All lines one after the other.
    joined: Text,
}

/// Reads the text once: opens a reader, takes line after line, closes it.
fn pass<H: Heap, M: Mode>(
    lines: &Lines,
    kept: &mut Kept,
    driver: &mut Driver<H, M>,
    session: &Session,
) -> Result<(), Stop> {
    let mut reader = Reader::open(lines.text.as_slice(), driver)?;
    let mut reused = Text::default();
    let mut ended = Ok(());
    for (place, length) in lines.lengths.iter().enumerate() {
        let length = *length as usize;
        ended = match lines.what {
            What::Reuse => {
                reused.clear();
                reader.line(&mut reused, length, driver)
            }
            What::Append => reader.line(&mut kept.joined, length, driver),
            _ => {
                let mut line = Text::default();
                let read = reader.line(&mut line, length, driver);
                if read.is_ok() && lines.what.keeps(place) {
                    kept.texts.push(line, driver)
                } else {
                    line.release(driver);
                    read
                }
            }
        }
        .map_err(Stop::from);
        if ended.is_ok() && place.is_multiple_of(A_LOOK) {
            ended = session.in_time();
        }
        if ended.is_err() {
            break;
        }
    }
    reused.release(driver);
    reader.close(driver);
    ended
}

/// A buffered reader. Filling its buffer stands for the system call that reads a file from the page cache; where a line
/// ends is known beforehand.
struct Reader<'t> {
    buffer: Block,
    /// Of the buffer, what has not been taken: from here ...
    from: usize,
    /// ... to here.
    to: usize,
    /// What has not been read.
    text: &'t [u8],
}

impl<'t> Reader<'t> {
    fn open<H: Heap, M: Mode>(
        text: &'t [u8],
        driver: &mut Driver<H, M>,
    ) -> Result<Reader<'t>, OutOfMemory> {
        Ok(Reader {
            buffer: driver.alloc(BUFFER)?,
            from: 0,
            to: 0,
            text,
        })
    }

    /// Appends the next `length` bytes, a line, to `line`: in one piece, or in several where the buffer ends in between.
    fn line<H: Heap, M: Mode>(
        &mut self,
        line: &mut Text,
        length: usize,
        driver: &mut Driver<H, M>,
    ) -> Result<(), OutOfMemory> {
        let mut left = length;
        while left > 0 {
            if self.from == self.to {
                let (read, rest) = self.text.split_at(BUFFER.min(self.text.len()));
                driver.write(&mut self.buffer, 0, read);
                (self.from, self.to, self.text) = (0, read.len(), rest);
            }
            let piece = left.min(self.to - self.from);
            line.extend(&self.buffer, self.from, piece, driver)?;
            self.from += piece;
            left -= piece;
        }
        Ok(())
    }

    fn close<H: Heap, M: Mode>(self, driver: &mut Driver<H, M>) {
        driver.free(self.buffer);
    }
}
