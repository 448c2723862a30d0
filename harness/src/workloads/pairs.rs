//! pairs: mallocs and frees of small blocks, one of each a pair, while so many blocks stay live.
//!
//! Imitates the heart of a program that makes and drops small objects, with nothing around it: the sizes are those for
//! which CPython's obmalloc was written, 1 to 512 bytes, each equally likely. Stresses the fast paths, and by the shape
//! what comes behind them: which block is freed decides whether a free block is found at once, how often a page of an
//! allocator turns from full to partly free, and whether memory goes back to the operating system. Not good for: large
//! blocks, realloc, threads, or sizes as real programs have them, most of whose requests are of few sizes.
//!
//! Everything is drawn before anything is measured: the sizes, which are the same in every shape, the slots, the lengths
//! of runs. A pair is one malloc, one write of the first byte and one free, whatever the shape.

use super::WorkloadDef;
use super::draw::draw;
use super::params::{self, Kind, ParamDef};
use crate::arms::ArmDef;
use crate::child::phases::START;
use crate::child::session::{Session, Stop};
use crate::trial::Params;
use contract::{Block, Driver, FreeOrder, Heap, Mode, Refill, Refills, Sizes};
use rand::seq::SliceRandom;
use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use xxhash_rust::xxh3::Xxh3Default;

/// The definition.
pub const WORKLOAD: WorkloadDef = WorkloadDef {
    id: "pairs",
    what: "malloc and free pairs of 1 to 512 bytes, in six orders, while so many blocks stay live",
    params: &[
        ParamDef {
            name: "shape",
            kind: Kind::Choice(&[
                "random",
                "fifo",
                "stack",
                "batch-lifo",
                "batch-fifo",
                "batch-random",
            ]),
            default: Some("random"),
            what: "which block is freed: a random one; the oldest; the newest, in runs; a whole batch in reverse order, \
                   in order, in random order",
        },
        ParamDef {
            name: "live",
            kind: Kind::Count(1, 10_000_000),
            default: Some("10k"),
            what: "blocks that stay live",
        },
        ParamDef {
            name: "pairs",
            kind: Kind::Count(1, 100_000_000),
            default: Some("1M"),
            what: "mallocs in the measured region, and as many frees",
        },
        ParamDef {
            name: "batch",
            kind: Kind::Count(1, 10_000_000),
            default: Some("10k"),
            what: "blocks of a batch; for `stack`, the most blocks on top of the live ones",
        },
    ],
    phases: &["full", "churned"],
    small: &[
        &[("shape", "random"), ("live", "300"), ("pairs", "2k")],
        &[("shape", "fifo"), ("live", "300"), ("pairs", "2k")],
        &[
            ("shape", "stack"),
            ("live", "300"),
            ("pairs", "2k"),
            ("batch", "450"),
        ],
        &[
            ("shape", "batch-lifo"),
            ("live", "300"),
            ("pairs", "2k"),
            ("batch", "450"),
        ],
        &[
            ("shape", "batch-fifo"),
            ("live", "300"),
            ("pairs", "2k"),
            ("batch", "450"),
        ],
        &[
            ("shape", "batch-random"),
            ("live", "300"),
            ("pairs", "2k"),
            ("batch", "450"),
        ],
    ],
    check: |_| Ok(()),
    footprint,
};

/// Largest block in bytes; the smallest has 1.
pub const LARGEST: u32 = 512;
/// Longest run of `stack`, of mallocs or of frees; the shortest is 1.
const LONGEST_RUN: u64 = 64;
/// Pairs between two looks at the clock, at least: around a single one the look would cost more than the pair.
const PAIRS_A_LOOK: usize = 1024;
/// Bytes of a block that footprints reckon with: the mean of the sizes, a class's rounding and a header.
const FOOTPRINT: u64 = 320;

fn footprint(params: &Params, arm: &ArmDef) -> u64 {
    let [live, pairs, batch] = ["live", "pairs", "batch"].map(|name| params::count(params, name));
    // Tables: a step or a size and a distance a pair, a handle a block, and the same once more while they are drawn.
    let own =
        pairs.saturating_mul(24) + (live + batch).saturating_mul(2 * size_of::<Block>() as u64);
    let blocks = if arm.reuses {
        live + batch
    } else {
        live + pairs
    };
    own.saturating_add(blocks.saturating_mul(FOOTPRINT))
}

/// Everything that is drawn.
struct Drawn {
    /// Sizes of the blocks that are there before the measured region.
    live: Sizes,
    churn: Churn,
}

/// What the measured region does.
enum Churn {
    /// `random`, `fifo`: a block goes, another comes in its place.
    InPlace(Refills),
    /// The others: blocks are made on top of the live ones, and freed from there.
    OnTop {
        /// Of all blocks in turn.
        sizes: Sizes,
        /// How many are made, and then how many are freed, in which order: an index into `orders`.
        runs: Vec<(u32, usize)>,
        /// Orders of freeing.
        orders: Vec<FreeOrder>,
    },
}

fn sizes(random: &mut impl RngCore, count: u64) -> Vec<u32> {
    (0..count)
        .map(|_| 1 + draw(random, u64::from(LARGEST)) as u32)
        .collect()
}

impl Drawn {
    /// `None` only if the tables contradict themselves.
    fn new(params: &Params, seed: u64) -> Option<Drawn> {
        let [live, pairs, batch] =
            ["live", "pairs", "batch"].map(|name| params::count(params, name));
        let drawing = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
        let random = &mut drawing.clone();
        // 2^128 draws ahead: the two streams never meet, and every shape has the same sizes.
        random.jump();
        let first = Sizes::new(sizes(drawing, live))?;
        let sizes = Sizes::new(sizes(drawing, pairs))?;
        let shape = params.get("shape").map_or("random", String::as_str);
        let churn = match shape {
            "random" | "fifo" => {
                let steps = (0..).zip(sizes.get()).map(|(i, size)| Refill {
                    slot: match shape {
                        "fifo" => i % live,
                        _ => draw(random, live),
                    } as u32,
                    size: *size,
                });
                Churn::InPlace(Refills::new(steps, live as usize)?)
            }
            "stack" => Churn::OnTop {
                sizes,
                runs: stack(random, pairs, batch),
                orders: (0..=LONGEST_RUN as u32)
                    .map(FreeOrder::last_first)
                    .collect(),
            },
            _ => {
                let mut orders = Vec::new();
                let mut runs = Vec::new();
                let mut left = pairs;
                while left > 0 {
                    let count = left.min(batch);
                    left -= count;
                    // A random order is drawn for each batch; the others depend on its length alone.
                    if shape == "batch-random" || orders.is_empty() || count < batch {
                        orders.push(batch_order(shape, count as u32, random)?);
                    }
                    runs.push((count as u32, orders.len() - 1));
                }
                Churn::OnTop {
                    sizes,
                    runs,
                    orders,
                }
            }
        };
        Some(Drawn { live: first, churn })
    }

    /// Most blocks at once.
    fn most(&self) -> usize {
        let on_top = match &self.churn {
            Churn::InPlace(_) => 0,
            Churn::OnTop { runs, orders, .. } => {
                let (mut depth, mut most) = (0, 0);
                for (made, freed) in runs {
                    depth += *made as usize;
                    most = most.max(depth);
                    depth -= orders[*freed].distances().len();
                }
                most
            }
        };
        self.live.get().len() + on_top
    }

    /// Hash of the first bytes of the blocks that are live when the region ends, in the order of their slots.
    fn expected(&self) -> u64 {
        let mut bytes: Vec<u8> = self.live.get().iter().map(|size| *size as u8).collect();
        if let Churn::InPlace(refills) = &self.churn {
            for step in refills.steps() {
                bytes[step.slot as usize] = step.size as u8;
            }
        }
        let mut hash = Xxh3Default::new();
        hash.update(&bytes);
        hash.digest()
    }
}

/// The runs of `stack`: some blocks pushed, then some popped, both 1 to [`LONGEST_RUN`], equally likely, as far as there
/// are pairs left, room on top and blocks to pop. Ends with nothing on top.
fn stack(random: &mut impl RngCore, pairs: u64, most: u64) -> Vec<(u32, usize)> {
    let (mut left, mut depth) = (pairs, 0);
    let mut runs = Vec::new();
    while left > 0 || depth > 0 {
        let pushed = (1 + draw(random, LONGEST_RUN)).min(left).min(most - depth);
        left -= pushed;
        depth += pushed;
        let popped = (1 + draw(random, LONGEST_RUN)).min(depth);
        depth -= popped;
        runs.push((pushed as u32, popped as usize));
    }
    runs
}

fn batch_order(shape: &str, count: u32, random: &mut impl RngCore) -> Option<FreeOrder> {
    let mut distances: Vec<u32> = (0..count).collect();
    match shape {
        "batch-fifo" => distances.reverse(),
        "batch-random" => distances.shuffle(random),
        _ => {}
    }
    FreeOrder::new(distances)
}

/// Pairs with everything drawn, and the blocks that stay live: from one run to the next if those are to be kept.
pub(super) struct Pairs {
    drawn: Drawn,
    /// The order in which the live blocks are freed.
    everything: FreeOrder,
    expected: u64,
    blocks: Vec<Block>,
}

/// Draws what `params` ask for.
pub(super) fn prepare(params: &Params, seed: u64) -> Result<Pairs, Stop> {
    let drawn = Drawn::new(params, seed)
        .ok_or_else(|| Stop::Input("pairs: the drawn tables contradict themselves".to_owned()))?;
    Ok(Pairs {
        blocks: Vec::with_capacity(drawn.most()),
        everything: FreeOrder::last_first(drawn.live.get().len() as u32),
        expected: drawn.expected(),
        drawn,
    })
}

/// Frees the live blocks.
pub(super) fn release<H: Heap, M: Mode>(pairs: &mut Pairs, driver: &mut Driver<H, M>) {
    while let Some(block) = pairs.blocks.pop() {
        driver.free(block);
    }
}

pub(super) fn run<H: Heap, M: Mode>(
    pairs: &mut Pairs,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    let Pairs {
        drawn,
        everything,
        expected,
        blocks,
    } = pairs;
    session.phase(START)?;
    if blocks.is_empty() {
        driver.push_each(blocks, &drawn.live, 0, usize::MAX)?;
    }
    session.phase("full")?;

    let mut made = 0;
    session.start();
    let ended = churn(driver, session, blocks, &drawn.churn, &mut made);
    session.stop();
    session.found.ops = made as u64;
    ended?;

    session.phase("churned")?;
    session.contents_of(*expected, |sum| {
        let mut hash = Xxh3Default::new();
        for block in &*blocks {
            driver.read(block, 0, 1, |bytes| hash.update(bytes));
        }
        *sum = sum.wrapping_add(hash.digest());
    });
    if session.keep() {
        return Ok(());
    }
    driver.free_last(blocks, everything);
    session.emptied(driver)
}

/// The measured loop. Never inlined, so that its name can switch the counting of instructions on and off. `made` is the
/// pairs that are done, or begun.
#[inline(never)]
fn churn<H: Heap, M: Mode>(
    driver: &mut Driver<H, M>,
    session: &Session,
    blocks: &mut Vec<Block>,
    churn: &Churn,
    made: &mut usize,
) -> Result<(), Stop> {
    match churn {
        Churn::InPlace(refills) => {
            while *made < refills.len() {
                *made += driver.refill_each(blocks, refills, *made, PAIRS_A_LOOK)?;
                session.in_time()?;
            }
        }
        Churn::OnTop {
            sizes,
            runs,
            orders,
        } => {
            let mut look = PAIRS_A_LOOK;
            for (push, order) in runs {
                *made += driver.push_each(blocks, sizes, *made, *push as usize)?;
                driver.free_last(blocks, &orders[*order]);
                if *made >= look {
                    look = *made + PAIRS_A_LOOK;
                    session.in_time()?;
                }
            }
        }
    }
    Ok(())
}
