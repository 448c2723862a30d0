//! size-shift: blocks of one size give way to blocks of another.
//!
//! Imitates what public reports tell of a program whose usual object grows (docs/workloads.md names them): pages that
//! serve one size class cannot serve another while a few survivors are in them. An allocator that merges neighbours can
//! use the holes. Stresses that. Not good for: anything about time.

use super::params::{self, Kind, ParamDef};
use super::{WorkloadDef, numbered};
use crate::arms::ArmDef;
use crate::child::phases::START;
use crate::child::session::{Session, Stop};
use crate::trial::Params;
use contract::{Block, Driver, Heap, Mode};

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

    /// Numbers of the second kind: they go on where those of the first end.
    fn numbers(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.second()
    }
}

fn footprint(params: &Params, _arm: &ArmDef) -> u64 {
    let counts = Counts::of(params);
    let handles = size_of::<Block>() as u64;
    let first = (counts.first as u64).saturating_mul(2 * counts.from as u64 + 32 + 2 * handles);
    let second = (counts.second() as u64).saturating_mul(2 * counts.to as u64 + 32 + handles);
    first.saturating_add(second)
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
        let survivors = (0..counts.first).step_by(counts.every);
        let survivors = survivors.map(|number| (number, counts.from));
        let second = counts.numbers().map(|number| (number, counts.to));
        numbered::check(&kept, survivors.chain(second), driver, session);
    }
    numbered::release(blocks.into_iter().chain(kept), driver, session);
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
    numbered::fill(blocks, 0..counts.first, counts.from, driver, session)?;
    session.reached("full", driver)?;
    numbered::thin(blocks, kept, counts.every, driver, session);
    session.reached("thinned", driver)?;
    numbered::fill(kept, counts.numbers(), counts.to, driver, session)?;
    session.reached("shifted", driver)
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
