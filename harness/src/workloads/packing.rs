//! packing: small blocks of many sizes, most of which go, until a steady state is left.
//!
//! Imitates a long-lived program whose load has fallen: what was full of blocks of 1 to 512 bytes holds a few of them in
//! ever changing places. Stresses how densely an allocator packs what is left, and whether it frees whole arenas on the
//! way. Not good for: time; programs whose sizes are few.
//!
//! Blocks of U[1, 512] bytes, each written whole; then 8 replacements a block, each of a random one; then each is freed
//! with a chance of 0.9; then 10 visits a block, each to a random slot: a live block is freed with a chance of 0.9, an
//! empty slot filled with a chance of 1 / `d`. The share that is live settles at 1 / (1 + 0.9 d).

use super::WorkloadDef;
use super::draw::draw;
use super::params::{self, Kind, ParamDef};
use crate::arms::ArmDef;
use crate::child::phases::START;
use crate::child::session::{Session, Stop};
use crate::trial::Params;
use contract::{Block, Driver, Heap, Mode};
use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use xxhash_rust::xxh3::Xxh3Default;

/// The definition.
pub const WORKLOAD: WorkloadDef = WorkloadDef {
    id: "packing",
    what: "blocks of 1 to 512 bytes, most of which go, then random frees and fills to a steady state",
    params: &[
        ParamDef {
            name: "blocks",
            kind: Kind::Count(1, 10_000_000),
            default: Some("300k"),
            what: "slots, each with a block at first; 8 replacements and 10 visits for each",
        },
        ParamDef {
            name: "d",
            kind: Kind::Count(1, 1_000_000),
            default: Some("81"),
            what: "an empty slot that is visited is filled with a chance of 1 / d: 1.35 % are live in the end at 81, 10 % at 10",
        },
    ],
    phases: &["full", "replaced", "thinned", "settled"],
    small: &[&[("blocks", "500"), ("d", "10")]],
    check: |_| Ok(()),
    footprint,
};

/// Largest block in bytes; the smallest has 1.
const LARGEST: u64 = 512;
/// Replacements for each slot, and visits.
const REPLACEMENTS: u64 = 8;
const VISITS: u64 = 10;
/// Steps between two looks at the clock.
const A_LOOK: usize = 1024;

fn footprint(params: &Params, _arm: &ArmDef) -> u64 {
    let steps = (1 + 2 * REPLACEMENTS + 1 + VISITS) * size_of::<Step>() as u64;
    // The mean of the sizes, a class's rounding, a header, a handle; and the steps, which are the child's own.
    let slot = 320 + size_of::<Option<Block>>() as u64 + 2 * steps;
    params::count(params, "blocks").saturating_mul(slot)
}

/// One call: the slot is filled with a block of `size` bytes, or freed if that is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    slot: u32,
    size: u32,
}

/// Everything that is drawn: what leads up to each phase.
struct Drawn {
    stages: [Vec<Step>; 4],
    /// Bytes in each slot at the end, 0 for none.
    left: Vec<u32>,
}

impl Drawn {
    fn new(params: &Params, seed: u64) -> Drawn {
        let [slots, d] = ["blocks", "d"].map(|name| params::count(params, name));
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut left: Vec<u32> = vec![0; slots as usize];
        let [mut full, mut replaced, mut thinned, mut settled] = [(); 4].map(|()| Vec::new());
        fn size(random: &mut impl RngCore) -> u32 {
            1 + draw(random, LARGEST) as u32
        }
        let step = |slot: usize, size: u32, left: &mut [u32], steps: &mut Vec<Step>| {
            left[slot] = size;
            steps.push(Step {
                slot: slot as u32,
                size,
            });
        };
        for slot in 0..slots as usize {
            step(slot, size(random), &mut left, &mut full);
        }
        for _ in 0..slots * REPLACEMENTS {
            let slot = draw(random, slots) as usize;
            step(slot, 0, &mut left, &mut replaced);
            step(slot, size(random), &mut left, &mut replaced);
        }
        for slot in 0..slots as usize {
            if draw(random, 10) < 9 {
                step(slot, 0, &mut left, &mut thinned);
            }
        }
        for _ in 0..slots * VISITS {
            let slot = draw(random, slots) as usize;
            if left[slot] == 0 {
                if draw(random, d) == 0 {
                    step(slot, size(random), &mut left, &mut settled);
                }
            } else if draw(random, 10) < 9 {
                step(slot, 0, &mut left, &mut settled);
            }
        }
        Drawn {
            stages: [full, replaced, thinned, settled],
            left,
        }
    }

    /// Hash of what the blocks that are left must hold.
    fn expected(&self) -> u64 {
        let mut hash = Xxh3Default::new();
        let mut written = [0; LARGEST as usize];
        for size in self.left.iter().filter(|size| **size > 0) {
            let written = &mut written[..*size as usize];
            written.fill(*size as u8);
            hash.update(written);
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
    let drawn = Drawn::new(params, seed);
    let expected = drawn.expected();
    let mut slots: Vec<Option<Block>> = Vec::with_capacity(drawn.left.len());
    slots.resize_with(drawn.left.len(), || None);

    session.phase(START)?;
    let mut ended = Ok(());
    for (steps, phase) in drawn.stages.iter().zip(WORKLOAD.phases) {
        session.start();
        let done = follow(steps, &mut slots, driver, session);
        session.stop();
        session.found.ops += steps.len() as u64;
        ended = done.and_then(|()| session.reached(phase, driver));
        if ended.is_err() {
            break;
        }
    }
    if ended.is_ok() {
        session.contents_of(expected, |sum| {
            let mut hash = Xxh3Default::new();
            for block in slots.iter().flatten() {
                driver.read(block, 0, block.size(), |bytes| hash.update(bytes));
            }
            *sum = sum.wrapping_add(hash.digest());
        });
    }
    session.start();
    for block in slots.into_iter().flatten() {
        driver.free(block);
    }
    session.stop();
    ended?;
    session.emptied(driver)
}

fn follow<H: Heap, M: Mode>(
    steps: &[Step],
    slots: &mut [Option<Block>],
    driver: &mut Driver<H, M>,
    session: &Session,
) -> Result<(), Stop> {
    for some in steps.chunks(A_LOOK) {
        for step in some {
            let slot = &mut slots[step.slot as usize];
            let size = step.size as usize;
            if size > 0 {
                let mut block = driver.alloc(size)?;
                driver.fill(&mut block, 0, size, size as u8);
                *slot = Some(block);
            } else if let Some(block) = slot.take() {
                driver.free(block);
            }
        }
        session.in_time()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(d: &str) -> Drawn {
        let params = [("blocks", "100k"), ("d", d)].map(|(k, v)| (k.to_owned(), v.to_owned()));
        Drawn::new(&params.into(), 7)
    }

    #[test]
    fn every_step_makes_sense() {
        let drawn = drawn("10");
        let mut live = vec![false; 100_000];
        for step in drawn.stages.iter().flatten() {
            let slot = &mut live[step.slot as usize];
            assert_ne!(*slot, step.size > 0);
            *slot = step.size > 0;
            assert!(u64::from(step.size) <= LARGEST);
        }
        let left = drawn.left.iter().map(|size| *size > 0);
        assert!(left.eq(live));
    }

    /// `count` of `n` draws with that chance lies within 5 standard deviations of n p.
    fn likely(what: &str, count: usize, n: usize, p: f64) {
        let (mean, deviation) = (n as f64 * p, (n as f64 * p * (1.0 - p)).sqrt());
        assert!(
            (count as f64 - mean).abs() < 5.0 * deviation,
            "{what}: {count} of {n}, not {mean:.0} +- {deviation:.0}"
        );
    }

    #[test]
    fn every_draw_is_as_likely_as_it_says() {
        let drawn = drawn("10");
        let [full, replaced, thinned, settled] = &drawn.stages;
        let made = |steps: &[Step]| steps.iter().filter(|step| step.size > 0).count();

        let mut sizes = [0; LARGEST as usize + 1];
        for step in drawn.stages.iter().flatten() {
            sizes[step.size as usize] += 1;
        }
        let blocks = sizes[1..].iter().sum();
        for (size, count) in sizes.iter().enumerate().skip(1) {
            likely(
                &format!("{size} bytes"),
                *count,
                blocks,
                1.0 / LARGEST as f64,
            );
        }

        assert_eq!((full.len(), made(full)), (100_000, 100_000));
        assert_eq!((replaced.len(), made(replaced)), (1_600_000, 800_000));
        // 1000 slots next to each other, so that a bin has enough.
        let mut bins = [0; 100];
        for step in replaced.iter().filter(|step| step.size == 0) {
            bins[step.slot as usize / 1000] += 1;
        }
        for (bin, count) in bins.iter().enumerate() {
            likely(&format!("slots from {bin}000"), *count, 800_000, 0.01);
        }

        assert_eq!(made(thinned), 0);
        likely("thinned", thinned.len(), 100_000, 0.9);

        // A million visits, at a share that is settled from the start: nine in ten meet an empty slot, and one in ten of
        // those fills it. One slot's visits are not independent, so this is wider than 5 standard deviations.
        let (filled, mean) = (made(settled), 1_000_000.0 * 0.9 * 0.1);
        assert!((filled as f64 - mean).abs() < 0.02 * mean, "{filled} fills");
        let (freed, mean) = (settled.len() - filled, 1_000_000.0 * 0.1 * 0.9);
        assert!((freed as f64 - mean).abs() < 0.02 * mean, "{freed} frees");
    }

    #[test]
    fn it_settles_at_the_share_that_it_says() {
        // n p +- 5 standard deviations of a binomial.
        for (d, share) in [("81", 1.0 / 73.9), ("10", 0.1)] {
            let live = drawn(d).left.iter().filter(|size| **size > 0).count() as f64;
            let (mean, variance) = (1e5 * share, 1e5 * share * (1.0 - share));
            assert!(
                (live - mean).abs() < 5.0 * variance.sqrt(),
                "{d}: {live} {mean}"
            );
        }
    }
}
