//! dict-retention: a list of empty dicts is filled, thinned out, filled again.
//!
//! Imitates the study of 2019 (habr, on memory that CPython keeps): two million empty dicts; some survive; as many are
//! made anew. Stresses what a few survivors keep from being given back, and whether the holes serve the next fill: every
//! second object pins all memory, the second half pins half of it. Not good for: mixed sizes; the objects are of one kind.

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
    id: "dict-retention",
    what: "2019: a list of two million empty dicts, of which some survive, then as many more",
    params: &[
        ParamDef {
            name: "dicts",
            kind: Kind::Count(1, 100_000_000),
            default: Some("2M"),
            what: "empty dicts that are made, and as many again after the list was thinned out",
        },
        ParamDef {
            name: "object",
            kind: Kind::Choice(&["288", "80+176", "64"]),
            default: Some("64"),
            what: "bytes of an empty dict: one block of 288 in CPython 2.7, 80 and 176 in 3.6 and 3.7, 64 from 3.8 on",
        },
        ParamDef {
            name: "survivors",
            kind: Kind::Choice(&["none", "every-2nd", "second-half", "every-100th"]),
            default: Some("none"),
            what: "which dicts are kept when the list is thinned out",
        },
    ],
    phases: &["filled", "cleared", "refilled"],
    small: &[
        &[("dicts", "2k"), ("object", "288"), ("survivors", "none")],
        &[
            ("dicts", "2k"),
            ("object", "80+176"),
            ("survivors", "every-2nd"),
        ],
        &[
            ("dicts", "2k"),
            ("object", "64"),
            ("survivors", "second-half"),
        ],
        &[
            ("dicts", "2k"),
            ("object", "64"),
            ("survivors", "every-100th"),
        ],
    ],
    check: |_| Ok(()),
    footprint,
};

fn parts(params: &Params) -> &'static [usize] {
    match params.get("object").map(String::as_str) {
        Some("288") => &[288],
        Some("80+176") => &[80, 176],
        _ => &[64],
    }
}

/// Whether the dict at `place` of `dicts` survives.
fn survives(survivors: &str, place: usize, dicts: usize) -> bool {
    match survivors {
        "every-2nd" => place.is_multiple_of(2),
        "second-half" => place >= dicts / 2,
        "every-100th" => place.is_multiple_of(100),
        _ => false,
    }
}

fn footprint(params: &Params, _arm: &ArmDef) -> u64 {
    let most = params::count(params, "dicts").saturating_mul(2);
    let dict = parts(params).iter().sum::<usize>() as u64;
    let heap = most.saturating_mul(2 * dict + 4 * size_of::<u64>() as u64);
    heap.saturating_add(Objects::tables(parts(params), most))
}

pub(super) fn run<H: Heap, M: Mode>(
    params: &Params,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    let parts = parts(params);
    let dicts = params::count(params, "dicts") as usize;
    let survivors = params.get("survivors").map_or("none", String::as_str);
    let survives = |place: usize| survives(survivors, place, dicts);
    let mut list = Objects::new(parts, 2 * dicts);
    let expected = {
        let kept = (0..dicts).filter(|place| survives(*place));
        Objects::expected(parts, kept.chain(dicts..2 * dicts))
    };

    session.phase(START)?;
    let ended = fill_thin_fill(&mut list, dicts, survives, driver, session);
    if ended.is_ok() {
        session.contents_of(expected, |sum| *sum = sum.wrapping_add(list.read(driver)));
    }
    session.start();
    list.release(driver);
    session.stop();
    ended?;
    session.emptied(driver)
}

fn fill_thin_fill<H: Heap, M: Mode>(
    list: &mut Objects,
    dicts: usize,
    survives: impl Fn(usize) -> bool,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    fill(list, dicts, driver, session)?;
    session.reached("filled", driver)?;

    session.start();
    let thinned = list.retain(survives, driver);
    session.stop();
    thinned?;
    session.reached("cleared", driver)?;

    fill(list, dicts, driver, session)?;
    session.reached("refilled", driver)
}

fn fill<H: Heap, M: Mode>(
    list: &mut Objects,
    dicts: usize,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    let had = list.len();
    session.start();
    let filled = list.append(dicts, driver, session);
    session.stop();
    session.found.ops += (list.len() - had) as u64;
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_survive() {
        for (survivors, count) in [
            ("none", 0),
            ("every-2nd", 500),
            ("second-half", 500),
            ("every-100th", 10),
        ] {
            let kept = (0..1000).filter(|place| survives(survivors, *place, 1000));
            assert_eq!(kept.count(), count, "{survivors}");
        }
        assert!(survives("second-half", 999, 1000) && !survives("second-half", 499, 1000));
    }
}
