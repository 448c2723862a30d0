//! survivors: many blocks of one size, of which every Nth stays.
//!
//! Imitates what public reports tell of long-lived objects made between short-lived ones (docs/workloads.md names them):
//! one survivor a page is enough to keep the page. Stresses what an allocator can give back when little is left, by
//! itself and when asked. Not good for: anything about time.

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

/// Blocks between two looks at the clock.
const A_LOOK: usize = 1024;

fn footprint(params: &Params, _arm: &ArmDef) -> u64 {
    let block = 2 * params::bytes(params, "size") + 32 + 2 * size_of::<Block>() as u64;
    params::count(params, "blocks").saturating_mul(block)
}

/// What block `i` is written with.
fn byte(i: usize) -> u8 {
    (i % 251) as u8
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
    session.start();
    let made = fill(&mut blocks, count, size, driver, session);
    session.stop();
    session.found.ops = blocks.len() as u64;
    let ended = made.and_then(|()| {
        session.reached("full", driver)?;
        session.start();
        thin(&mut blocks, &mut kept, every, driver);
        session.stop();
        session.reached("thinned", driver)?;
        session.trimmed("thinned-trimmed", driver)
    });
    if ended.is_ok() {
        session.contents_of(expected(count, size, every), |sum| {
            let mut hash = Xxh3Default::new();
            for block in &kept {
                driver.read(block, 0, size, |bytes| hash.update(bytes));
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

fn fill<H: Heap, M: Mode>(
    blocks: &mut Vec<Block>,
    count: usize,
    size: usize,
    driver: &mut Driver<H, M>,
    session: &Session,
) -> Result<(), Stop> {
    for i in 0..count {
        let mut block = driver.alloc(size)?;
        driver.fill(&mut block, 0, size, byte(i));
        blocks.push(block);
        if i % A_LOOK == 0 {
            session.in_time()?;
        }
    }
    Ok(())
}

/// Frees all of `blocks` but every `every`th, in the order in which they were made.
fn thin<H: Heap, M: Mode>(
    blocks: &mut Vec<Block>,
    kept: &mut Vec<Block>,
    every: usize,
    driver: &mut Driver<H, M>,
) {
    for (i, block) in blocks.drain(..).enumerate() {
        if i.is_multiple_of(every) {
            kept.push(block);
        } else {
            driver.free(block);
        }
    }
}

/// Hash of what the survivors must hold.
fn expected(count: usize, size: usize, every: usize) -> u64 {
    let mut hash = Xxh3Default::new();
    let mut written = vec![0; size];
    for i in (0..count).step_by(every) {
        written.fill(byte(i));
        hash.update(&written);
    }
    hash.digest()
}
