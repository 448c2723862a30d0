//! burst-idle: a burst of blocks of one size, all freed; then nothing, then a little work.
//!
//! Imitates what public reports tell of services whose memory stays at its peak after the peak (docs/workloads.md names
//! them). Stresses what an allocator gives back when nothing is live: at once, by the clock while nobody calls it, as a
//! side effect of later calls, or when asked. The order of freeing decides what an allocator can merge. Not good for:
//! anything about time; programs of which something stays.

use super::draw::draw;
use super::params::{self, BadParam, IDLE, Kind, ParamDef};
use super::{WorkloadDef, numbered};
use crate::arms::ArmDef;
use crate::child::phases::START;
use crate::child::session::{Session, Stop};
use crate::trial::Params;
use contract::{Block, Driver, Heap, Mode};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::time::Duration;

/// The definition.
pub const WORKLOAD: WorkloadDef = WorkloadDef {
    id: "burst-idle",
    what: "blocks of one size, all freed; then idle time, one malloc and free, and some thousands more",
    params: &[
        ParamDef {
            name: "blocks",
            kind: Kind::Count(1, 100_000_000),
            default: Some("200k"),
            what: "blocks of the burst",
        },
        ParamDef {
            name: "size",
            kind: Kind::Size(1, 1 << 20),
            default: Some("512"),
            what: "bytes of each",
        },
        ParamDef {
            name: "order",
            kind: Kind::Choice(&["lifo", "fifo", "random"]),
            default: Some("random"),
            what: "which is freed next: the last one made, the first one, any",
        },
        ParamDef {
            name: IDLE,
            kind: Kind::Duration,
            default: Some("2500ms"),
            what: "how long the process sleeps then, at most 1h; 0s is not at all",
        },
        ParamDef {
            name: "ops",
            kind: Kind::Count(0, 100_000_000),
            default: Some("20k"),
            what: "mallocs of 64 to 1664 bytes after that, each freed at once, beside the one that comes first; with 0 that is left out, too",
        },
    ],
    phases: &["full", "freed", "idle", "one-op", "ops"],
    small: &[
        &[
            ("blocks", "3k"),
            ("order", "lifo"),
            (IDLE, "0s"),
            ("ops", "500"),
        ],
        &[
            ("blocks", "3k"),
            ("order", "fifo"),
            (IDLE, "0s"),
            ("ops", "500"),
        ],
        // Above what thread caches take.
        &[
            ("blocks", "1k"),
            ("size", "2000"),
            ("order", "random"),
            (IDLE, "1ms"),
            ("ops", "500"),
        ],
    ],
    check,
    footprint,
};

/// Smallest and largest block of the later work, in bytes.
const SMALLEST: u64 = 64;
const LARGEST: u64 = 1664;
/// Who sleeps longer has mistaken the unit.
const LONGEST: Duration = Duration::from_secs(3600);
/// Pairs between two looks at the clock.
const A_LOOK: usize = 1024;

fn check(params: &Params) -> Result<(), BadParam> {
    if params::idle(params) > LONGEST {
        return Err(BadParam(
            "burst-idle: `idle` is at most 1h: a trial sleeps so long, once for each arm"
                .to_owned(),
        ));
    }
    Ok(())
}

fn footprint(params: &Params, _arm: &ArmDef) -> u64 {
    let block = 2 * params::bytes(params, "size") + 32 + size_of::<Block>() as u64;
    let burst = params::count(params, "blocks").saturating_mul(block);
    let sizes = params::count(params, "ops").saturating_mul(size_of::<u32>() as u64);
    // Where nothing that is freed is used again, the later work adds up.
    let work = params::count(params, "ops").saturating_mul(LARGEST + 32);
    burst.saturating_add(sizes).saturating_add(work)
}

/// Sizes of the one block and of all that follow, drawn before anything is measured.
fn sizes(ops: u64, random: &mut Xoshiro256PlusPlus) -> Vec<u32> {
    let drawn = if ops > 0 { 1 + ops } else { 0 };
    (0..drawn)
        .map(|_| (SMALLEST + draw(random, LARGEST - SMALLEST + 1)) as u32)
        .collect()
}

/// Puts what stands in the order in which it was made into that in which it is freed.
fn arrange<T>(order: &str, made: &mut [T], random: &mut Xoshiro256PlusPlus) {
    match order {
        "lifo" => made.reverse(),
        "fifo" => {}
        _ => made.shuffle(random),
    }
}

pub(super) fn run<H: Heap, M: Mode>(
    params: &Params,
    seed: u64,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    let count = params::count(params, "blocks") as usize;
    let size = params::bytes(params, "size") as usize;
    let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
    // 2^128 draws ahead: the order is the same whatever comes after.
    let mut drawn = random.clone();
    drawn.jump();
    let later = sizes(params::count(params, "ops"), &mut drawn);
    let (one, rest) = later.split_at(later.len().min(1));
    let mut blocks: Vec<Block> = Vec::with_capacity(count);

    session.phase(START)?;
    let made = numbered::fill(&mut blocks, 0..count, size, driver, session);
    session.found.ops = (blocks.len() + later.len()) as u64;
    let full = made.and_then(|()| session.reached("full", driver));
    if full.is_ok() {
        let all = (0..count).map(|number| (number, size));
        numbered::check(&blocks, all, driver, session);
    }
    let order = params.get("order").map_or("random", String::as_str);
    arrange(order, &mut blocks, random);
    numbered::release(blocks.into_iter(), driver, session);
    full?;
    session.reached("freed", driver)?;
    session.idle(params::idle(params));
    session.reached("idle", driver)?;
    work(one, driver, session)?;
    session.reached("one-op", driver)?;
    work(rest, driver, session)?;
    session.reached("ops", driver)?;
    session.emptied(driver)
}

/// Makes and frees a block of each of `sizes`, one at a time, each written whole, inside the measured region.
fn work<H: Heap, M: Mode>(
    sizes: &[u32],
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    session.start();
    let mut ended = Ok(());
    for some in sizes.chunks(A_LOOK) {
        ended = pairs(some, driver, session);
        if ended.is_err() {
            break;
        }
    }
    session.stop();
    ended
}

fn pairs<H: Heap, M: Mode>(
    sizes: &[u32],
    driver: &mut Driver<H, M>,
    session: &Session,
) -> Result<(), Stop> {
    for size in sizes {
        let size = *size as usize;
        let mut block = driver.alloc(size)?;
        driver.fill(&mut block, 0, size, size as u8);
        driver.free(block);
    }
    session.in_time()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_what_they_are_called() {
        let arranged = |order: &str, seed: u64| {
            let mut made: Vec<u32> = (0..10_000).collect();
            arrange(
                order,
                &mut made,
                &mut Xoshiro256PlusPlus::seed_from_u64(seed),
            );
            made
        };
        let made = arranged("fifo", 1);
        assert!(made.is_sorted());
        assert!(arranged("lifo", 1).iter().rev().eq(&made));
        let mut random = arranged("random", 1);
        assert_eq!(random, arranged("random", 1));
        assert_ne!(random, arranged("random", 2));
        // Neighbours rise as often as they fall: half of 9,999, +- 5 standard deviations, of which the variance is n / 12.
        let rises = random.windows(2).filter(|two| two[0] < two[1]).count();
        assert!(rises.abs_diff(5000) < 5 * 29, "{rises}");
        random.sort_unstable();
        assert_eq!(random, made);
    }

    #[test]
    fn later_sizes_are_uniform() {
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(3);
        let drawn = sizes(160_099, random);
        assert_eq!(drawn.len(), 160_100);
        assert!(sizes(0, random).is_empty());
        let range = SMALLEST as u32..=LARGEST as u32;
        assert!(drawn.iter().all(|size| range.contains(size)));
        // 1601 sizes, of which the last is alone in its class: n p +- 5 standard deviations of a binomial.
        for class in 0..=16 {
            let from = 64 + 100 * class;
            let of = if class == 16 { 1.0 } else { 100.0 };
            let (n, p) = (drawn.len() as f64, of / 1601.0);
            let seen = drawn
                .iter()
                .filter(|size| (from..from + 100).contains(*size));
            let off = (seen.count() as f64 - n * p).abs();
            assert!(off < 5.0 * (n * p * (1.0 - p)).sqrt(), "{class}: {off}");
        }
    }
}
