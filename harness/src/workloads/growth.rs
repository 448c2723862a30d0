//! growth: one block grown by realloc, step by step, to N bytes.
//!
//! Imitates the heart of `content += line` (docs/history.md; gperftools issue 55) with nothing around it: no files, no
//! lines of varying length, no header. Stresses what realloc does when a block no longer fits its place. `two` grows
//! two blocks in turn, so that neither stays last in its region; `pinned` sets a small live block beside the growing
//! one every 1000 steps. Not good for: anything about small blocks, threads or reuse of freed memory.

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
    id: "growth",
    what: "one block, two interleaved, or one beside pinned neighbours, grown by realloc in small steps",
    params: &[
        ParamDef {
            name: "shape",
            kind: Kind::Choice(&["one", "two", "pinned"]),
            default: Some("one"),
            what: "one block; two grown in turn; one with a 48-byte block pinned beside it every 1000 steps",
        },
        ParamDef {
            name: "size",
            kind: Kind::Size(1, 4 << 30),
            default: Some("4MiB"),
            what: "a block grows until it has at least so many bytes; the last step may overshoot",
        },
        ParamDef {
            name: "step",
            kind: Kind::Size(1, 1 << 20),
            default: Some("70"),
            what: "bytes added by each realloc",
        },
    ],
    phases: &["full"],
    // Past the 128 KiB at which the C library begins to map blocks one by one, and past several pins.
    small: &[
        &[("shape", "one"), ("size", "200KiB")],
        &[("shape", "one"), ("size", "1MiB"), ("step", "4096")],
        &[("shape", "two"), ("size", "100KiB")],
        &[("shape", "pinned"), ("size", "200KiB")],
    ],
    check: |_| Ok(()),
    footprint,
};

/// A pinned neighbour is set every so many steps.
const PIN_EVERY: u64 = 1000;
/// Bytes of a pinned neighbour.
const PIN_SIZE: usize = 48;
/// Steps between two looks at the clock.
const STEPS_A_LOOK: u64 = 128;

fn footprint(params: &Params, arm: &ArmDef) -> u64 {
    let (size, step) = (
        params::bytes(params, "size"),
        params::bytes(params, "step").max(1),
    );
    let shape = params.get("shape").map_or("one", String::as_str);
    // An arm that never frees extends its last block in place, and keeps every copy once another block is behind it.
    let copies = match shape {
        "two" => size / step,
        "pinned" => size / step / PIN_EVERY,
        _ => 0,
    };
    let factor = if arm.reuses {
        arm.growth_factor
    } else {
        1 + copies
    };
    let blocks = if shape == "two" { 2 } else { 1 };
    (blocks * factor).saturating_mul(size)
}

/// Steps write so many different bytes, in turn.
const BYTES: u64 = 128;
const _: () = assert!(BYTES.is_multiple_of(STEPS_A_LOOK) && BYTES <= 255);

/// What step `i` writes.
fn byte(i: u64) -> u8 {
    (i % BYTES) as u8
}

/// What is decided and made before a growth, and can be used for many.
pub(super) struct Growth {
    shape: Shape,
    /// Hash of what one grown block must hold; made when first asked for.
    expected: Option<u64>,
}

/// Reads the parameters.
pub(super) fn prepare(params: &Params) -> Growth {
    let size = params::bytes(params, "size") as usize;
    let step = params::bytes(params, "step").max(1) as usize;
    let shape = params.get("shape").map_or("one", String::as_str);
    Growth {
        shape: Shape {
            blocks: if shape == "two" { 2 } else { 1 },
            pinning: shape == "pinned",
            step,
            steps: size.div_ceil(step) as u64,
        },
        expected: None,
    }
}

pub(super) fn run<H: Heap, M: Mode>(
    growth: &mut Growth,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    let Shape {
        blocks,
        pinning,
        step,
        steps,
    } = growth.shape;
    let mut grown: Vec<Block> = Vec::with_capacity(blocks);
    let mut pins: Vec<Block> = Vec::with_capacity(if pinning {
        (steps / PIN_EVERY + 1) as usize
    } else {
        0
    });

    session.phase(START)?;
    session.start();
    let ended = grow(driver, session, &mut grown, &mut pins, growth.shape);
    session.stop();

    let reached: u64 = grown.iter().map(|block| block.size() as u64).sum();
    session.found.appended_bytes = reached;
    session.found.reached_bytes = reached;
    session.found.ops = reached / step as u64;
    if ended.is_ok() {
        session.phase("full")?;
        let expected = *growth
            .expected
            .get_or_insert_with(|| expected(step, steps).digest());
        session.contents_of(expected.wrapping_mul(blocks as u64), |sum| {
            for block in &grown {
                let mut hash = Xxh3Default::new();
                driver.read(block, 0, block.size(), |bytes| hash.update(bytes));
                *sum = sum.wrapping_add(hash.digest());
            }
        });
    }
    session.start();
    for block in grown.into_iter().chain(pins) {
        driver.free(block);
    }
    session.stop();
    ended?;
    session.emptied(driver)
}

/// The first multiple of `of` after `i`.
fn next_multiple(i: u64, of: u64) -> u64 {
    (i + 1).next_multiple_of(of)
}

#[derive(Clone, Copy)]
struct Shape {
    blocks: usize,
    pinning: bool,
    step: usize,
    steps: u64,
}

/// The measured loop. Never inlined, so that its name can switch the counting of instructions on and off.
#[inline(never)]
fn grow<H: Heap, M: Mode>(
    driver: &mut Driver<H, M>,
    session: &Session,
    grown: &mut Vec<Block>,
    pins: &mut Vec<Block>,
    shape: Shape,
) -> Result<(), Stop> {
    let Shape {
        blocks,
        pinning,
        step,
        steps,
    } = shape;
    for _ in 0..blocks {
        let mut block = driver.alloc(step)?;
        driver.fill(&mut block, 0, step, byte(0));
        grown.push(block);
    }
    let mut i = 1;
    while i < steps {
        // Up to the next look at the clock or the next pin there is nothing but growing.
        let pin = if pinning {
            next_multiple(i, PIN_EVERY)
        } else {
            steps
        };
        let until = next_multiple(i, STEPS_A_LOOK).min(pin).min(steps);
        match grown.as_mut_slice() {
            // No wrapping: BYTES is a multiple of the steps between two looks.
            [one] => driver.extend_each(one, step, byte(i)..byte(i) + (until - i) as u8)?,
            several => {
                for i in i..until {
                    for block in several.iter_mut() {
                        driver.extend(block, byte(i), step)?;
                    }
                }
            }
        }
        i = until;
        if pinning && i.is_multiple_of(PIN_EVERY) {
            let mut pin = driver.alloc(PIN_SIZE)?;
            driver.fill(&mut pin, 0, PIN_SIZE, 1);
            pins.push(pin);
        }
        if i.is_multiple_of(STEPS_A_LOOK) {
            session.in_time()?;
        }
    }
    Ok(())
}

/// Hash of what one grown block must hold, made without any heap.
fn expected(step: usize, steps: u64) -> Xxh3Default {
    let mut hash = Xxh3Default::new();
    let mut written = vec![0; step];
    for i in 0..steps {
        written.fill(byte(i));
        hash.update(&written);
    }
    hash
}
