//! push-pop: a stack of blocks whose top is popped and pushed again, round after round.
//!
//! Imitates a program at a steady size whose newest objects come and go: recursion, a work list, a scope that is entered
//! again and again. Stresses what happens at the edge of an arena, where each round empties one or several and needs them
//! again: whether the allocator keeps them meanwhile, and how many. Not good for: other orders than a stack's, which is
//! the best case of every cache; see pairs.

use super::WorkloadDef;
use super::params::{self, BadParam, Kind, ParamDef};
use super::stack::{PAIRS_A_LOOK, Stack};
use crate::arms::ArmDef;
use crate::child::phases::START;
use crate::child::session::{Session, Stop};
use crate::trial::Params;
use contract::{Driver, Heap, Mode};

/// The definition.
pub const WORKLOAD: WorkloadDef = WorkloadDef {
    id: "push-pop",
    what: "a stack of blocks whose top is popped and pushed again, at an arena's edge or across several",
    params: &[
        ParamDef {
            name: "live",
            kind: Kind::Count(1, 100_000_000),
            default: Some("100801"),
            what: "blocks on the stack; 100800 of 256 bytes fill 105 arenas of 256 KiB, or 25 of 1 MiB, exactly, and one more \
                   is over the edge",
        },
        ParamDef {
            name: "size",
            kind: Kind::Size(1, 1 << 20),
            default: Some("256"),
            what: "bytes of each",
        },
        ParamDef {
            name: "depth",
            kind: Kind::Count(1, 100_000_000),
            default: Some("64"),
            what: "blocks that are popped in a round, the newest first, and then pushed again; at most all",
        },
        ParamDef {
            name: "rounds",
            kind: Kind::Count(1, 100_000_000),
            default: Some("1k"),
            what: "how often",
        },
    ],
    phases: &["full", "churned"],
    small: &[&[("live", "4033"), ("depth", "1k"), ("rounds", "20")]],
    check,
    footprint,
};

fn counts(params: &Params) -> [u64; 3] {
    ["live", "depth", "rounds"].map(|name| params::count(params, name))
}

fn check(params: &Params) -> Result<(), BadParam> {
    let [live, depth, _] = counts(params);
    if depth > live {
        return Err(BadParam(format!(
            "push-pop: depth is {depth}, more than the {live} blocks on the stack"
        )));
    }
    Ok(())
}

fn footprint(params: &Params, arm: &ArmDef) -> u64 {
    let [live, depth, rounds] = counts(params);
    let again = if arm.reuses {
        0
    } else {
        depth.saturating_mul(rounds)
    };
    Stack::footprint(params::bytes(params, "size"), live.saturating_add(again))
}

/// The stack, and how often its top goes and comes back.
pub(super) struct PushPop {
    stack: Stack,
    depth: usize,
    rounds: u64,
}

/// Makes ready what `params` ask for.
pub(super) fn prepare(params: &Params) -> Result<PushPop, Stop> {
    let [live, depth, rounds] = counts(params);
    Ok(PushPop {
        stack: Stack::new(params::bytes(params, "size"), live, depth)?,
        depth: depth as usize,
        rounds,
    })
}

/// Frees what was kept.
pub(super) fn release<H: Heap, M: Mode>(work: &mut PushPop, driver: &mut Driver<H, M>) {
    work.stack.release(driver);
}

pub(super) fn run<H: Heap, M: Mode>(
    work: &mut PushPop,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    session.phase(START)?;
    work.stack.stand(driver)?;
    session.reached("full", driver)?;

    session.start();
    let ended = churn(work, driver, session);
    session.stop();
    session.found.ops = work.rounds;
    ended?;

    session.reached("churned", driver)?;
    work.stack.check(driver, session);
    if session.keep() {
        return Ok(());
    }
    work.stack.clear(driver);
    session.emptied(driver)
}

fn churn<H: Heap, M: Mode>(
    work: &mut PushPop,
    driver: &mut Driver<H, M>,
    session: &Session,
) -> Result<(), Stop> {
    let rounds_a_look = PAIRS_A_LOOK.div_ceil(work.depth) as u64;
    for round in 1..=work.rounds {
        work.stack.pop(driver);
        work.stack.push(driver)?;
        if round.is_multiple_of(rounds_a_look) {
            session.in_time()?;
        }
    }
    Ok(())
}
