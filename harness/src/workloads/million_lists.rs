//! million-lists: a list is filled with empty lists, then deleted.
//!
//! Imitates the seed of 2006, by which the arena-freeing patch of CPython's obmalloc was judged: a million empty lists
//! in a list, then none. Stresses whether an allocator gives memory back that was full of one kind of small object and
//! is empty again. Not good for: fragmentation, because nothing survives; see dict-retention and survivors.

use super::WorkloadDef;
use super::objects::Objects;
use super::params::{self, Kind, ParamDef};
use crate::arms::ArmDef;
use crate::child::phases::START;
use crate::child::session::{Session, Stop};
use crate::trial::Params;
use contract::{Driver, Heap, Mode};

/// The definition.
pub const WORKLOAD: WorkloadDef = WorkloadDef {
    id: "million-lists",
    what: "2006: a list filled with a million empty lists, then deleted",
    params: &[
        ParamDef {
            name: "lists",
            kind: Kind::Count(1, 100_000_000),
            default: Some("1M"),
            what: "empty lists that are made",
        },
        ParamDef {
            name: "object",
            kind: Kind::Choice(&["80", "64"]),
            default: Some("64"),
            what: "bytes of an empty list with its header: 80 up to CPython 3.7, 64 from 3.8 on",
        },
    ],
    phases: &["full"],
    small: &[
        &[("lists", "3k"), ("object", "80")],
        &[("lists", "3k"), ("object", "64")],
    ],
    check: |_| Ok(()),
    footprint,
};

fn parts(params: &Params) -> &'static [usize] {
    match params.get("object").map(String::as_str) {
        Some("80") => &[80],
        _ => &[64],
    }
}

fn footprint(params: &Params, _arm: &ArmDef) -> u64 {
    let lists = params::count(params, "lists");
    let list = parts(params).iter().sum::<usize>() as u64;
    // Twice an object for rounding, and the vector, which is copied when it grows.
    let heap = lists.saturating_mul(2 * list + 4 * size_of::<u64>() as u64);
    heap.saturating_add(Objects::tables(parts(params), lists))
}

pub(super) fn run<H: Heap, M: Mode>(
    params: &Params,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    let parts = parts(params);
    let lists = params::count(params, "lists") as usize;
    let mut list = Objects::new(parts, lists);
    let expected = Objects::expected(parts, 0..lists);

    session.phase(START)?;
    session.start();
    let filled = list.append(lists, driver, session);
    session.stop();
    session.found.ops = list.len() as u64;
    if filled.is_ok() {
        session.reached("full", driver)?;
        session.contents_of(expected, |sum| *sum = sum.wrapping_add(list.read(driver)));
    }

    session.start();
    list.release(driver);
    session.stop();
    filled?;
    session.emptied(driver)
}
