//! size-shift: blocks of one size give way to blocks of another.
//!
//! Imitates what public reports tell of a program whose usual object grows (docs/workloads.md names them): pages that
//! serve one size class cannot serve another while a few survivors are in them. An allocator that merges neighbours can
//! use the holes. Stresses that. Not good for: anything about time.

use super::WorkloadDef;
use super::params::{self, Kind, ParamDef};
use crate::arms::ArmDef;
use crate::child::phases::START;
use crate::child::session::{Session, Stop};
use crate::trial::Params;
use contract::{Block, Driver, Heap, Mode};
use xxhash_rust::xxh3::Xxh3Default;

/// The definition.
pub const WORKLOAD: WorkloadDef = WorkloadDef {
    id: "size-shift",
    what: "blocks of one size, all freed but every Nth, then as many bytes in blocks of another",
    params: &[
        ParamDef {
            name: "blocks",
            kind: Kind::Count(1, 100_000_000),
            default: Some("1M"),
            what: "blocks that are made at first",
        },
        ParamDef {
            name: "from",
            kind: Kind::Size(1, 1 << 20),
            default: Some("64"),
            what: "bytes of each of them",
        },
        ParamDef {
            name: "to",
            kind: Kind::Size(1, 1 << 20),
            default: Some("96"),
            what: "bytes of each block that comes after; together they are as many bytes as were freed, rounded down",
        },
        ParamDef {
            name: "every",
            kind: Kind::Count(1, 100_000_000),
            default: Some("8"),
            what: "every so manieth of the first blocks survives",
        },
    ],
    phases: &["full", "thinned", "shifted"],
    small: &[&[("blocks", "3k")]],
    check: |_| Ok(()),
    footprint,
};

/// Blocks between two looks at the clock.
const A_LOOK: usize = 1024;

/// How many blocks there are.
struct Counts {
    first: usize,
    every: usize,
    from: usize,
    to: usize,
}

impl Counts {
    fn of(params: &Params) -> Counts {
        Counts {
            first: params::count(params, "blocks") as usize,
            every: params::count(params, "every") as usize,
            from: params::bytes(params, "from") as usize,
            to: params::bytes(params, "to") as usize,
        }
    }

    fn survivors(&self) -> usize {
        self.first.div_ceil(self.every)
    }

    fn second(&self) -> usize {
        (self.first - self.survivors()) * self.from / self.to
    }
}

fn footprint(params: &Params, _arm: &ArmDef) -> u64 {
    let counts = Counts::of(params);
    let handles = size_of::<Block>() as u64;
    let first = (counts.first as u64).saturating_mul(2 * counts.from as u64 + 32 + 2 * handles);
    let second = (counts.second() as u64).saturating_mul(2 * counts.to as u64 + 32 + handles);
    first.saturating_add(second)
}

/// What block `i` is written with, counted over both kinds.
fn byte(i: usize) -> u8 {
    (i % 251) as u8
}

pub(super) fn run<H: Heap, M: Mode>(
    params: &Params,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    let counts = Counts::of(params);
    let mut blocks: Vec<Block> = Vec::with_capacity(counts.first);
    let mut kept: Vec<Block> = Vec::with_capacity(counts.survivors() + counts.second());

    session.phase(START)?;
    let ended = shift(&counts, &mut blocks, &mut kept, driver, session);
    session.found.ops = (counts.first + counts.second()) as u64;
    if ended.is_ok() {
        session.contents_of(expected(&counts), |sum| {
            let mut hash = Xxh3Default::new();
            for block in &kept {
                driver.read(block, 0, block.size(), |bytes| hash.update(bytes));
            }
            *sum = sum.wrapping_add(hash.digest());
        });
    }
    session.start();
    for block in blocks.into_iter().chain(kept) {
        driver.free(block);
    }
    session.stop();
    ended?;
    session.emptied(driver)
}

fn shift<H: Heap, M: Mode>(
    counts: &Counts,
    blocks: &mut Vec<Block>,
    kept: &mut Vec<Block>,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    fill(blocks, 0..counts.first, counts.from, driver, session)?;
    session.reached("full", driver)?;

    session.start();
    for (i, block) in blocks.drain(..).enumerate() {
        if i.is_multiple_of(counts.every) {
            kept.push(block);
        } else {
            driver.free(block);
        }
    }
    session.stop();
    session.reached("thinned", driver)?;

    let second = counts.first..counts.first + counts.second();
    fill(kept, second, counts.to, driver, session)?;
    session.reached("shifted", driver)
}

fn fill<H: Heap, M: Mode>(
    blocks: &mut Vec<Block>,
    numbers: std::ops::Range<usize>,
    size: usize,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    session.start();
    let mut ended = Ok(());
    for i in numbers {
        match driver.alloc(size) {
            Ok(mut block) => {
                driver.fill(&mut block, 0, size, byte(i));
                blocks.push(block);
            }
            Err(refused) => ended = Err(refused.into()),
        }
        if i % A_LOOK == 0 {
            ended = ended.and_then(|()| session.in_time());
        }
        if ended.is_err() {
            break;
        }
    }
    session.stop();
    ended
}

/// Hash of what must be there at the end: the survivors, then the second kind.
fn expected(counts: &Counts) -> u64 {
    let mut hash = Xxh3Default::new();
    let mut written = vec![0; counts.from.max(counts.to)];
    let survivors = (0..counts.first)
        .step_by(counts.every)
        .map(|i| (i, counts.from));
    let second = (counts.first..counts.first + counts.second()).map(|i| (i, counts.to));
    for (i, size) in survivors.chain(second) {
        written[..size].fill(byte(i));
        hash.update(&written[..size]);
    }
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_bytes_come_as_were_freed() {
        for (first, from, to, second) in [(1_000_000, 64, 96, 583_333), (600_000, 96, 64, 787_500)]
        {
            let counts = Counts {
                first,
                every: 8,
                from,
                to,
            };
            assert_eq!(counts.second(), second);
        }
    }
}
