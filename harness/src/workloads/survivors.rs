//! survivors: many blocks of one size, of which every Nth stays.
//!
//! Imitates what public reports tell of long-lived objects made between short-lived ones (docs/workloads.md names them):
//! one survivor a page is enough to keep the page. Stresses what an allocator can give back when little is left, by
//! itself and when asked. Not good for: anything about time.

use super::params::{self, Kind, ParamDef};
use super::{WorkloadDef, numbered};
use crate::arms::ArmDef;
use crate::child::phases::START;
use crate::child::session::{Session, Stop};
use crate::trial::Params;
use contract::{Block, Driver, Heap, Mode};

/// The definition.
pub const WORKLOAD: WorkloadDef = WorkloadDef {
    id: "survivors",
    what: "blocks of one size, all freed but every Nth; then the allocator is asked to trim",
    params: &[
        ParamDef {
            name: "blocks",
            kind: Kind::Count(1, 100_000_000),
            default: Some("200k"),
            what: "blocks that are made",
        },
        ParamDef {
            name: "size",
            kind: Kind::Size(1, 1 << 20),
            default: Some("512"),
            what: "bytes of each",
        },
        ParamDef {
            name: "every",
            kind: Kind::Count(1, 100_000_000),
            default: Some("16"),
            what: "every so manieth block survives",
        },
    ],
    phases: &["full", "thinned", "thinned-trimmed"],
    small: &[&[("blocks", "3k"), ("size", "512")]],
    check: |_| Ok(()),
    footprint,
};

fn footprint(params: &Params, _arm: &ArmDef) -> u64 {
    let block = 2 * params::bytes(params, "size") + 32 + 2 * size_of::<Block>() as u64;
    params::count(params, "blocks").saturating_mul(block)
}

pub(super) fn run<H: Heap, M: Mode>(
    params: &Params,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    let [count, every] = ["blocks", "every"].map(|name| params::count(params, name) as usize);
    let size = params::bytes(params, "size") as usize;
    let mut blocks: Vec<Block> = Vec::with_capacity(count);
    let mut kept: Vec<Block> = Vec::with_capacity(count.div_ceil(every));

    session.phase(START)?;
    let made = numbered::fill(&mut blocks, 0..count, size, driver, session);
    session.found.ops = blocks.len() as u64;
    let ended = made.and_then(|()| {
        session.reached("full", driver)?;
        numbered::thin(&mut blocks, &mut kept, every, driver, session);
        session.reached("thinned", driver)?;
        session.trimmed("thinned-trimmed", driver)
    });
    if ended.is_ok() {
        let survivors = (0..count).step_by(every).map(|number| (number, size));
        numbered::check(&kept, survivors, driver, session);
    }
    numbered::release(blocks.into_iter().chain(kept), driver, session);
    ended?;
    session.emptied(driver)
}
