//! arena-edge: one more block than there is room for, made and freed again and again.
//!
//! Imitates the worst moment of a program that makes and drops a small object in a loop: all that it holds fills its
//! allocator's arenas exactly, so that the one object needs a new one. Stresses whether a region that has become empty
//! goes back to the operating system at once, only to be asked for again. Not good for: anything where more than one block
//! comes and goes; see push-pop.

use super::WorkloadDef;
use super::params::{self, Kind, ParamDef};
use super::stack::{PAIRS_A_LOOK, Stack};
use crate::arms::ArmDef;
use crate::child::phases::START;
use crate::child::session::{Session, Stop};
use crate::trial::Params;
use contract::{Driver, Heap, Mode};

/// The definition.
pub const WORKLOAD: WorkloadDef = WorkloadDef {
    id: "arena-edge",
    what: "on top of so many live blocks, one more is made and freed, again and again",
    params: &[
        ParamDef {
            name: "blocks",
            kind: Kind::Count(0, 100_000_000),
            default: Some("20160"),
            what: "blocks that stay live; 20160 of 256 bytes fill 21 arenas of 256 KiB, or 5 of 1 MiB, exactly",
        },
        ParamDef {
            name: "size",
            kind: Kind::Size(1, 1 << 20),
            default: Some("256"),
            what: "bytes of each, and of the one that comes and goes",
        },
        ParamDef {
            name: "rounds",
            kind: Kind::Count(1, 100_000_000),
            default: Some("1k"),
            what: "how often it comes and goes",
        },
    ],
    phases: &["full", "churned"],
    small: &[
        &[("blocks", "0"), ("rounds", "200")],
        &[("blocks", "4032"), ("rounds", "200")],
    ],
    check: |_| Ok(()),
    footprint,
};

fn footprint(params: &Params, arm: &ArmDef) -> u64 {
    let [live, rounds] = ["blocks", "rounds"].map(|name| params::count(params, name));
    let on_top = if arm.reuses { 1 } else { rounds };
    Stack::footprint(params::bytes(params, "size"), live.saturating_add(on_top))
}

/// The live blocks, and how often one comes on top of them.
pub(super) struct ArenaEdge {
    stack: Stack,
    rounds: u64,
}

/// Makes ready what `params` ask for.
pub(super) fn prepare(params: &Params) -> Result<ArenaEdge, Stop> {
    let [live, rounds] = ["blocks", "rounds"].map(|name| params::count(params, name));
    Ok(ArenaEdge {
        stack: Stack::new(params::bytes(params, "size"), live, 1)?,
        rounds,
    })
}

/// Frees what was kept.
pub(super) fn release<H: Heap, M: Mode>(edge: &mut ArenaEdge, driver: &mut Driver<H, M>) {
    edge.stack.release(driver);
}

pub(super) fn run<H: Heap, M: Mode>(
    edge: &mut ArenaEdge,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    session.phase(START)?;
    edge.stack.stand(driver)?;
    session.reached("full", driver)?;

    session.start();
    let ended = churn(edge, driver, session);
    session.stop();
    session.found.ops = edge.rounds;
    ended?;

    session.reached("churned", driver)?;
    edge.stack.check(driver, session);
    if session.keep() {
        return Ok(());
    }
    edge.stack.clear(driver);
    session.emptied(driver)
}

fn churn<H: Heap, M: Mode>(
    edge: &mut ArenaEdge,
    driver: &mut Driver<H, M>,
    session: &Session,
) -> Result<(), Stop> {
    for round in 1..=edge.rounds {
        edge.stack.push(driver)?;
        edge.stack.pop(driver);
        if round.is_multiple_of(PAIRS_A_LOOK as u64) {
            session.in_time()?;
        }
    }
    Ok(())
}
