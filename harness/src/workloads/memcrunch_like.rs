//! memcrunch-like: a million small things are made, then a random share of them is dropped.
//!
//! A reconstruction: the script memcrunch.py of 2019, with which Tim Peters weighed larger arenas and an arena that is kept
//! (bpo-37448, bpo-37257), is lost. Its figures and what it did in words are known; its objects are not. A thing here is
//! what `Thing(i, str(i), (float(i),))` makes of a class with three slots: an int, a str, a float, a tuple of one and the
//! object, in that order, and in that order they go when the thing is dropped. Before each thing a temporary or two are
//! made and dropped, as evaluating such a line does: one that falls on the edge of an arena takes the arena in vain.
//!
//! Stresses two things: arenas that come and go while a heap grows, and what comes back when neighbours are dropped
//! together, one by one or in runs. What the program itself keeps, which thing lies where, is outside of the heap. Not good
//! for: anything about time; how objects of a real program are spread.

use super::WorkloadDef;
use super::params::{self, Kind, ParamDef};
use crate::arms::ArmDef;
use crate::child::phases::START;
use crate::child::session::{Session, Stop};
use crate::trial::Params;
use contract::{Block, Driver, Heap, Mode};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use xxhash_rust::xxh3::Xxh3Default;

/// The definition.
pub const WORKLOAD: WorkloadDef = WorkloadDef {
    id: "memcrunch-like",
    what: "2019, reconstructed: a million things of five small blocks, then 44 % dropped in runs of neighbours",
    params: &[
        ParamDef {
            name: "things",
            kind: Kind::Count(1, 20_000_000),
            default: Some("1M"),
            what: "things that are made, of five blocks each",
        },
        ParamDef {
            name: "thing",
            kind: Kind::Choice(&["32+64+32+48+64", "32+64+32+64+80"]),
            default: Some("32+64+32+48+64"),
            what: "bytes of int, str, float, tuple and object: the first as in CPython 3.8 and later, the second as in 3.7",
        },
        ParamDef {
            name: "temporaries",
            kind: Kind::Choice(&["none", "64", "64+32"]),
            default: Some("64"),
            what: "bytes of the blocks that are made and dropped before each thing",
        },
        ParamDef {
            name: "drop",
            kind: Kind::Count(0, 100),
            default: Some("44"),
            what: "per cent of the things that are dropped",
        },
        ParamDef {
            name: "run",
            kind: Kind::Count(1, 20_000_000),
            default: Some("1"),
            what: "neighbours that are dropped together, or stay together",
        },
    ],
    phases: &["grown", "crunched"],
    small: &[
        &[
            ("things", "2k"),
            ("thing", "32+64+32+48+64"),
            ("temporaries", "none"),
        ],
        &[
            ("things", "2k"),
            ("thing", "32+64+32+64+80"),
            ("temporaries", "64"),
            ("run", "64"),
        ],
        &[
            ("things", "2k"),
            ("thing", "32+64+32+48+64"),
            ("temporaries", "64+32"),
            ("drop", "90"),
        ],
    ],
    check: |_| Ok(()),
    footprint,
};

/// Blocks of a thing.
const PARTS: usize = 5;
/// Things between two looks at the clock.
const A_LOOK: usize = 1024;

/// The blocks of all things, one thing after the other; of a thing that was dropped there are none.
type Things = Vec<Option<Block>>;

fn parts(params: &Params) -> [usize; PARTS] {
    match params.get("thing").map(String::as_str) {
        Some("32+64+32+64+80") => [32, 64, 32, 64, 80],
        _ => [32, 64, 32, 48, 64],
    }
}

fn temporaries(params: &Params) -> &'static [usize] {
    match params.get("temporaries").map(String::as_str) {
        Some("none") => &[],
        Some("64+32") => &[64, 32],
        _ => &[64],
    }
}

fn footprint(params: &Params, _arm: &ArmDef) -> u64 {
    // A header and a class's rounding each, and a handle; and the order of the runs.
    let block = |size: usize| (size + 32 + size_of::<Option<Block>>()) as u64;
    let thing = parts(params).map(block).iter().sum::<u64>() + size_of::<u32>() as u64;
    params::count(params, "things").saturating_mul(thing)
}

/// What every byte of thing `number` is.
fn byte(number: usize) -> u8 {
    (number % 251) as u8
}

/// Which things are dropped: runs of neighbours, in random order, until it is the share that was asked for.
struct Drops {
    things: usize,
    run: usize,
    /// First things of the runs that go, in the order in which they do.
    runs: Vec<u32>,
}

impl Drops {
    fn new(params: &Params, seed: u64) -> Drops {
        let [things, run, share] =
            ["things", "run", "drop"].map(|name| params::count(params, name) as usize);
        let mut runs: Vec<u32> = (0..things).step_by(run).map(|first| first as u32).collect();
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
        runs.shuffle(random);
        runs.truncate(runs.len() * share / 100);
        Drops { things, run, runs }
    }

    /// Things that go, in order.
    fn places(&self) -> impl Iterator<Item = usize> {
        self.runs.iter().flat_map(|first| {
            let first = *first as usize;
            first..self.things.min(first + self.run)
        })
    }

    /// Hash of what the things that stay must hold.
    fn expected(&self, parts: &[usize; PARTS]) -> u64 {
        let mut stays = vec![true; self.things];
        self.places().for_each(|place| stays[place] = false);
        let mut hash = Xxh3Default::new();
        let mut written = vec![0; parts.iter().sum()];
        for (number, _) in stays.iter().enumerate().filter(|(_, stays)| **stays) {
            written.fill(byte(number));
            hash.update(&written);
        }
        hash.digest()
    }
}

pub(super) fn run<H: Heap, M: Mode>(
    params: &Params,
    seed: u64,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    let drops = Drops::new(params, seed);
    let (parts, temporaries) = (parts(params), temporaries(params));
    let expected = drops.expected(&parts);
    let mut things: Things = Vec::with_capacity(drops.things * PARTS);

    session.phase(START)?;
    session.start();
    let grown = grow(
        &mut things,
        drops.things,
        &parts,
        temporaries,
        driver,
        session,
    );
    session.stop();
    session.found.ops = (things.len() / PARTS) as u64;
    let ended = grown.and_then(|()| {
        session.reached("grown", driver)?;
        session.start();
        crunch(&mut things, &drops, driver);
        session.stop();
        session.reached("crunched", driver)
    });
    if ended.is_ok() {
        session.contents_of(expected, |sum| {
            let mut hash = Xxh3Default::new();
            for block in things.iter().flatten() {
                driver.read(block, 0, block.size(), |bytes| hash.update(bytes));
            }
            *sum = sum.wrapping_add(hash.digest());
        });
    }
    session.start();
    for block in things.into_iter().flatten() {
        driver.free(block);
    }
    session.stop();
    ended?;
    session.emptied(driver)
}

fn grow<H: Heap, M: Mode>(
    things: &mut Things,
    count: usize,
    parts: &[usize; PARTS],
    temporaries: &[usize],
    driver: &mut Driver<H, M>,
    session: &Session,
) -> Result<(), Stop> {
    for number in 0..count {
        for size in temporaries {
            let mut temporary = driver.alloc(*size)?;
            driver.fill(&mut temporary, 0, 1, byte(number));
            driver.free(temporary);
        }
        for size in parts {
            let mut block = driver.alloc(*size)?;
            driver.fill(&mut block, 0, *size, byte(number));
            things.push(Some(block));
        }
        if number.is_multiple_of(A_LOOK) {
            session.in_time()?;
        }
    }
    Ok(())
}

fn crunch<H: Heap, M: Mode>(things: &mut Things, drops: &Drops, driver: &mut Driver<H, M>) {
    for place in drops.places() {
        for block in &mut things[place * PARTS..][..PARTS] {
            block
                .take()
                .into_iter()
                .for_each(|block| driver.free(block));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drops(run: &str, share: &str) -> Drops {
        let params = [("things", "100k"), ("run", run), ("drop", share)];
        Drops::new(&params.map(|(k, v)| (k.to_owned(), v.to_owned())).into(), 7)
    }

    #[test]
    fn the_share_goes_and_in_runs() {
        for (run, each) in [("1", 1), ("64", 64), ("1k", 1000), ("16k", 16_000)] {
            let drops = drops(run, "44");
            let mut gone: Vec<usize> = drops.places().collect();
            let share = gone.len() as f64 / 1e5;
            assert!((share - 0.44).abs() <= each as f64 / 1e5, "{run}: {share}");
            gone.sort_unstable();
            gone.dedup();
            assert_eq!(gone.len() as f64 / 1e5, share, "{run}: each once");
            for first in gone.iter().filter(|place| *place % each == 0) {
                let together = first..&100_000.min(first + each);
                assert!(gone.binary_search(together.start).is_ok());
                assert!(gone.binary_search(&(together.end - 1)).is_ok(), "{run}");
            }
        }
        assert_eq!(drops("1", "0").places().count(), 0);
        assert_eq!(drops("16k", "100").places().count(), 100_000);
    }

    #[test]
    fn it_is_drawn_without_order() {
        // Of 44,000 places in random order, those that lie behind the one before are half: n p +- 5 standard deviations.
        let places: Vec<usize> = drops("1", "44").places().collect();
        let rises = places.windows(2).filter(|two| two[0] < two[1]).count() as f64;
        let (mean, variance) = (places.len() as f64 / 2.0, places.len() as f64 / 12.0);
        assert!((rises - mean).abs() < 5.0 * variance.sqrt(), "{rises}");
    }
}
