//! object-churn: objects as an interpreter makes and drops them, with work between the calls of the allocator.
//!
//! Imitates the tests of pybench that allocate, as CPython 3.11 lays their objects out: ints, floats, tuples, lists,
//! dicts, strings, instances. Between two calls CPython does hundreds of instructions that are no allocator's; here a
//! loop of arithmetic stands for them. Stresses whether a difference between allocators is still seen beside that work.
//! Not good for: the work's own use of caches, threads, garbage in cycles, or the free lists that CPython keeps itself.
//!
//! Every object is drawn before anything is measured. A step makes one, does its work, and drops the one whose place it
//! takes.

use super::WorkloadDef;
use super::draw::draw;
use super::params::{self, ParamDef};
use super::pointers::Pointers;
use crate::arms::ArmDef;
use crate::child::phases::START;
use crate::child::session::{Session, Stop};
use crate::trial::Params;
use contract::{Block, Driver, Heap, Mode, OutOfMemory};
use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::hint::black_box;
use xxhash_rust::xxh3::Xxh3Default;

/// The definition.
pub const WORKLOAD: WorkloadDef = WorkloadDef {
    id: "object-churn",
    what: "an interpreter's objects made and dropped, with a stated share of work that allocates nothing",
    params: &[
        ParamDef {
            name: "mix",
            kind: params::Kind::Choice(&[
                "all",
                "ints",
                "floats",
                "tuples",
                "lists",
                "dicts",
                "strings",
                "instances",
            ]),
            default: Some("all"),
            what: "which kind of object is made; `all`: each equally likely",
        },
        ParamDef {
            name: "objects",
            kind: params::Kind::Count(1, 100_000_000),
            default: Some("300k"),
            what: "objects made in the measured region, and as many dropped",
        },
        ParamDef {
            name: "live",
            kind: params::Kind::Count(1, 10_000_000),
            default: Some("1k"),
            what: "objects that stay live",
        },
        ParamDef {
            name: "work",
            kind: params::Kind::Count(0, 10_000),
            default: Some("100"),
            what: "instructions outside of the allocator for each of its calls, in percent of what CPython 3.11 does",
        },
    ],
    phases: &["full", "churned"],
    small: &[
        &[("mix", "all"), ("objects", "2k"), ("live", "300")],
        &[("mix", "ints"), ("objects", "500"), ("live", "100")],
        &[("mix", "floats"), ("objects", "500"), ("live", "100")],
        &[("mix", "tuples"), ("objects", "500"), ("live", "100")],
        &[("mix", "lists"), ("objects", "500"), ("live", "100")],
        &[("mix", "dicts"), ("objects", "500"), ("live", "100")],
        &[("mix", "strings"), ("objects", "500"), ("live", "100")],
        &[("mix", "instances"), ("objects", "500"), ("live", "100")],
    ],
    check: |_| Ok(()),
    footprint,
};

/// Steps between two looks at the clock: thousands of calls, so that a look costs none of them a percent.
const A_LOOK: usize = 1024;
/// Instructions of one turn of [`work`], as it is compiled, two turns in a row; `harness/tests/instructions.rs` counts them.
const A_TURN: u64 = 10;
/// Bytes that footprints reckon with for an object that an arm never takes back: more than the mean of the largest kind,
/// dicts, with every table that they have had.
const FOOTPRINT: u64 = 1400;

/// The kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ints,
    Floats,
    Tuples,
    Lists,
    Dicts,
    Strings,
    Instances,
}

use Kind::{Dicts, Floats, Instances, Ints, Lists, Strings, Tuples};

/// How much work there is for each call of the allocator, in instructions.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// The word in `mix`.
    pub kind: &'static str,
    /// What CPython 3.11 does outside of the allocator: counted by `scripts/object-churn/count` (docs/methodology.md).
    pub cpython: u64,
    /// What this workload and the driver do themselves, writing what was asked for included: counted with the arm `null`.
    /// It is work too, so the loop does so much less.
    own: u64,
}

/// The work of each kind.
pub const WORK: [Work; 7] = [
    work_of("ints", 150, 83),
    work_of("floats", 196, 82),
    work_of("tuples", 899, 84),
    work_of("lists", 742, 55),
    work_of("dicts", 1146, 57),
    work_of("strings", 576, 72),
    work_of("instances", 430, 38),
];

const fn work_of(kind: &'static str, cpython: u64, own: u64) -> Work {
    Work { kind, cpython, own }
}

/// The kinds in the order of [`WORK`].
const KINDS: [Kind; 7] = [Ints, Floats, Tuples, Lists, Dicts, Strings, Instances];

/// Bytes of a list's or dict's own block: the collector's header is in front.
const LIST: usize = 56;
const DICT: usize = 64;
/// Bytes of an instance, and of the values of its three attributes.
const INSTANCE: usize = 48;
const VALUES: usize = 48;
/// Bytes of a string of no characters.
const STRING: usize = 49;
/// Bytes of an entry of a pointer vector.
const ENTRY: usize = size_of::<u64>();

/// A dict's tables of 8, 16, 32 and 64 slots: how many keys one takes, two thirds of its slots, and its bytes: a header
/// of 32, an index of a byte a slot, 24 for each key.
const TABLES: [(usize, usize); 4] = [(5, 160), (10, 288), (21, 568), (42, 1104)];

impl Kind {
    fn work(self) -> Work {
        WORK[self as usize]
    }

    /// How many shapes there are; each is equally likely.
    fn shapes(self) -> u8 {
        match self {
            Floats | Instances => 1,
            Ints => 2,
            Tuples => 4,
            Lists => 16,
            Dicts => 32,
            Strings => 64,
        }
    }
}

/// What is made: a kind, and which of its shapes: so many digits, items, keys or pieces, from 0 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    kind: Kind,
    shape: u8,
}

impl Shape {
    /// Digits, items or keys, at least 1.
    fn length(self) -> usize {
        usize::from(self.shape) + 1
    }

    /// Characters of each piece of a string, 1 to 16, and how many are appended to the first two, 0 to 3.
    fn pieces(self) -> (usize, usize) {
        (
            usize::from(self.shape % 16) + 1,
            usize::from(self.shape / 16),
        )
    }

    /// Entries that a list's vector has had.
    fn vectors(self) -> impl Iterator<Item = usize> {
        let length = self.length();
        let next = |room: usize| Pointers::allocated_for(room + 1);
        std::iter::successors(Some(next(0)), move |room| {
            (*room < length).then(|| next(*room))
        })
    }

    /// Bytes of the tables that a dict has had.
    fn tables(self) -> impl Iterator<Item = usize> {
        let length = self.length();
        let before = TABLES
            .iter()
            .filter(move |(keys, _)| *keys < length)
            .count();
        TABLES.iter().take(before + 1).map(|(_, bytes)| *bytes)
    }

    /// Bytes of the blocks of the finished object; 0: there is none.
    fn blocks(self) -> [usize; 3] {
        match self.kind {
            Ints => [24 + 4 * self.length(), 0, 0],
            Floats => [24, 0, 0],
            Tuples => [40 + ENTRY * self.length(), 0, 0],
            Lists => [LIST, self.vectors().last().map_or(0, |n| ENTRY * n), 0],
            Dicts => [DICT, self.tables().last().unwrap_or(0), 0],
            Strings => {
                let (piece, more) = self.pieces();
                [STRING + (2 + more) * piece, 0, 0]
            }
            Instances => [INSTANCE, VALUES, DICT],
        }
    }

    /// Calls of the allocator in the object's life: mallocs, reallocs, frees.
    fn calls(self) -> [u64; 3] {
        let (blocks, reallocs) = match self.kind {
            Ints | Floats | Tuples => (1, 0),
            Lists => (2, self.vectors().count() - 1),
            Dicts => (1 + self.tables().count(), 0),
            Strings => (1, self.pieces().1),
            Instances => (3, 0),
        };
        [blocks, reallocs, blocks].map(|calls| calls as u64)
    }
}

/// One step: what is made, in whose place, and the turns of work of its whole life.
#[derive(Debug, Clone, Copy)]
struct Step {
    slot: u32,
    turns: u32,
    shape: Shape,
}

fn footprint(params: &Params, arm: &ArmDef) -> u64 {
    let [objects, live] = ["objects", "live"].map(|name| params::count(params, name));
    let own = objects
        .saturating_mul(size_of::<Step>() as u64)
        .saturating_add(live.saturating_mul((size_of::<Object>() + size_of::<Step>()) as u64));
    let at_once = if arm.reuses { 2 * live } else { live + objects };
    own.saturating_add(at_once.saturating_mul(FOOTPRINT))
}

/// `count` steps over `live` slots: the first of them fill the slots in order, if `filling`.
fn steps(params: &Params, random: &mut impl RngCore, count: u64, filling: bool) -> Vec<Step> {
    let live = params::count(params, "live");
    let percent = params::count(params, "work");
    let mix = params.get("mix").map_or("all", String::as_str);
    let only = KINDS.into_iter().find(|kind| kind.work().kind == mix);
    (0..count)
        .map(|i| {
            let kind = only.unwrap_or_else(|| KINDS[draw(random, 7) as usize]);
            let shape = Shape {
                kind,
                shape: draw(random, u64::from(kind.shapes())) as u8,
            };
            let calls: u64 = shape.calls().iter().sum();
            let a_call = (kind.work().cpython * percent / 100).saturating_sub(kind.work().own);
            Step {
                slot: if filling { i } else { draw(random, live) } as u32,
                turns: (calls * a_call / A_TURN) as u32,
                shape,
            }
        })
        .collect()
}

/// The blocks of one object; its own is the first.
#[derive(Debug, Default)]
struct Object([Option<Block>; 3]);

impl Object {
    /// Makes one as CPython does, every byte written as `byte`. If that fails, what was made is in it.
    #[inline]
    fn make<H: Heap, M: Mode>(
        &mut self,
        shape: Shape,
        byte: u8,
        driver: &mut Driver<H, M>,
    ) -> Result<(), OutOfMemory> {
        let Object([first, second, third]) = self;
        match shape.kind {
            Ints | Floats | Tuples => *first = Some(written(shape.blocks()[0], byte, driver)?),
            Lists => {
                *first = Some(written(LIST, byte, driver)?);
                for entries in shape.vectors() {
                    match second {
                        None => *second = Some(written(ENTRY * entries, byte, driver)?),
                        Some(vector) => {
                            let more = ENTRY * entries - vector.size();
                            driver.extend(vector, byte, more)?;
                        }
                    }
                }
            }
            Dicts => {
                *first = Some(written(DICT, byte, driver)?);
                for bytes in shape.tables() {
                    // The keys go over from the table before, which is then freed.
                    let mut table = driver.alloc(bytes)?;
                    let mut full = 0;
                    if let Some(old) = second.take() {
                        full = old.size();
                        driver.copy(&old, 0, &mut table, 0, full);
                        driver.free(old);
                    }
                    driver.fill(&mut table, full, bytes - full, byte);
                    *second = Some(table);
                }
            }
            Strings => {
                let (piece, more) = shape.pieces();
                let mut string = written(STRING + 2 * piece, byte, driver)?;
                for _ in 0..more {
                    if let Err(why) = driver.extend(&mut string, byte, piece) {
                        *first = Some(string);
                        return Err(why);
                    }
                }
                *first = Some(string);
            }
            Instances => {
                *first = Some(written(INSTANCE, byte, driver)?);
                *second = Some(written(VALUES, byte, driver)?);
                *third = Some(written(DICT, byte, driver)?);
            }
        }
        Ok(())
    }

    /// Drops it: its own block goes last.
    #[inline]
    fn drop_it<H: Heap, M: Mode>(self, driver: &mut Driver<H, M>) {
        for block in self.0.into_iter().rev().flatten() {
            driver.free(block);
        }
    }
}

/// A block of `bytes`, each written.
#[inline]
fn written<H: Heap, M: Mode>(
    bytes: usize,
    byte: u8,
    driver: &mut Driver<H, M>,
) -> Result<Block, OutOfMemory> {
    let mut block = driver.alloc(bytes)?;
    driver.fill(&mut block, 0, bytes, byte);
    Ok(block)
}

/// What the object of step `number` is written with.
fn byte(number: usize) -> u8 {
    (number % 251) as u8
}

/// Work that allocates nothing and touches no memory: `turns` times [`A_TURN`] instructions, each turn needing the one
/// before, so that the processor can neither leave it out nor do it all at once. Never inlined, so that its instructions
/// do not depend on what is around it.
#[inline(never)]
fn work(turns: u32, state: u64) -> u64 {
    let mut state = state;
    for _ in 0..turns {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}

/// Everything that is drawn.
pub(super) struct ObjectChurn {
    /// What there is before the measured region.
    live: Vec<Step>,
    steps: Vec<Step>,
    objects: Vec<Object>,
}

/// Draws what `params` ask for.
pub(super) fn prepare(params: &Params, seed: u64) -> ObjectChurn {
    let [objects, live] = ["objects", "live"].map(|name| params::count(params, name));
    let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
    ObjectChurn {
        live: steps(params, random, live, true),
        steps: steps(params, random, objects, false),
        objects: Vec::with_capacity(live as usize),
    }
}

impl ObjectChurn {
    /// Hash of what the live objects hold at the end, built without any heap. The objects of the region are numbered
    /// from 0, and so are those before it.
    fn expected(&self) -> u64 {
        let mut last: Vec<(usize, Shape)> = self.live.iter().map(|s| s.shape).enumerate().collect();
        for (number, step) in self.steps.iter().enumerate() {
            last[step.slot as usize] = (number, step.shape);
        }
        let mut hash = Xxh3Default::new();
        let mut bytes = Vec::new();
        for (number, shape) in last {
            bytes.clear();
            bytes.resize(shape.blocks().iter().sum(), byte(number));
            hash.update(&bytes);
        }
        hash.digest()
    }
}

pub(super) fn run<H: Heap, M: Mode>(
    churn: &mut ObjectChurn,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    session.phase(START)?;
    let ended = live_and_churn(churn, driver, session);
    if ended.is_ok() {
        session.contents_of(churn.expected(), |sum| {
            let mut hash = Xxh3Default::new();
            for block in churn.objects.iter().flat_map(|object| &object.0).flatten() {
                driver.read(block, 0, block.size(), |bytes| hash.update(bytes));
            }
            *sum = sum.wrapping_add(hash.digest());
        });
    }
    for object in churn.objects.drain(..) {
        object.drop_it(driver);
    }
    ended?;
    session.emptied(driver)
}

fn live_and_churn<H: Heap, M: Mode>(
    churn: &mut ObjectChurn,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    let ObjectChurn {
        live,
        steps,
        objects,
    } = churn;
    for (number, step) in live.iter().enumerate() {
        objects.push(Object::default());
        objects[number].make(step.shape, byte(number), driver)?;
    }
    session.reached("full", driver)?;
    session.start();
    let mut made = 0;
    let churned = each(steps, objects, driver, session, &mut made);
    session.stop();
    session.found.ops = made as u64;
    churned?;
    session.reached("churned", driver)
}

/// The measured loop. `made` is the objects that are made.
#[inline(never)]
fn each<H: Heap, M: Mode>(
    steps: &[Step],
    objects: &mut [Object],
    driver: &mut Driver<H, M>,
    session: &Session,
    made: &mut usize,
) -> Result<(), Stop> {
    let mut state = 1;
    for some in steps.chunks(A_LOOK) {
        for step in some {
            let mut object = Object::default();
            let ended = object.make(step.shape, byte(*made), driver);
            state = work(step.turns, state);
            // Whole or not, it is in the table, from which everything is freed.
            std::mem::replace(&mut objects[step.slot as usize], object).drop_it(driver);
            ended?;
            *made += 1;
        }
        session.in_time()?;
    }
    black_box(state);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(kind: Kind, shape: u8) -> Shape {
        Shape { kind, shape }
    }

    /// As `sys.getsizeof` of CPython 3.11 tells them, which adds a list's or a dict's second block to the first.
    #[test]
    fn objects_have_the_sizes_of_cpython() {
        for (made, blocks, calls) in [
            (shape(Ints, 0), [28, 0, 0], [1, 0, 1]),
            (shape(Ints, 1), [32, 0, 0], [1, 0, 1]),
            (shape(Floats, 0), [24, 0, 0], [1, 0, 1]),
            (shape(Tuples, 3), [72, 0, 0], [1, 0, 1]),
            (shape(Lists, 3), [56, 32, 0], [2, 0, 2]),
            (shape(Lists, 4), [56, 64, 0], [2, 1, 2]),
            (shape(Lists, 15), [56, 128, 0], [2, 2, 2]),
            (shape(Dicts, 4), [64, 160, 0], [2, 0, 2]),
            (shape(Dicts, 5), [64, 288, 0], [3, 0, 3]),
            (shape(Dicts, 20), [64, 568, 0], [4, 0, 4]),
            (shape(Dicts, 31), [64, 1104, 0], [5, 0, 5]),
            (shape(Strings, 0), [51, 0, 0], [1, 0, 1]),
            (shape(Strings, 63), [129, 0, 0], [1, 3, 1]),
            (shape(Instances, 0), [48, 48, 64], [3, 0, 3]),
        ] {
            assert_eq!((made.blocks(), made.calls()), (blocks, calls), "{made:?}");
        }
    }

    /// Kinds and shapes as often as the description says, within five standard deviations.
    #[test]
    fn each_kind_and_each_shape_is_equally_likely() {
        let params = WORKLOAD.resolve(&Params::new()).expect("valid");
        let random = &mut Xoshiro256PlusPlus::seed_from_u64(1);
        let count = 448_000;
        let drawn = steps(&params, random, count, false);
        for kind in KINDS {
            for number in 0..kind.shapes() {
                let wanted = shape(kind, number);
                let seen = drawn.iter().filter(|step| step.shape == wanted).count() as f64;
                let expected = count as f64 / 7.0 / f64::from(kind.shapes());
                let apart = (seen - expected).abs();
                assert!(apart < 5.0 * expected.sqrt(), "{wanted:?}: {seen}");
            }
        }
        let of = |slot: u32| drawn.iter().filter(|step| step.slot == slot).count();
        assert!((0..1000).all(|slot| (of(slot) as f64 - 448.0).abs() < 6.0 * 21.2));
    }

    #[test]
    fn work_is_in_percent_of_what_cpython_does() {
        for (percent, turns) in [("0", 0), ("100", 2 * (150 - Ints.work().own) / A_TURN)] {
            let given = [("mix", "ints"), ("work", percent)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
            let params = WORKLOAD.resolve(&given.into()).expect("valid");
            let random = &mut Xoshiro256PlusPlus::seed_from_u64(1);
            let drawn = steps(&params, random, 100, false);
            assert!(drawn.iter().all(|step| u64::from(step.turns) == turns));
        }
    }
}
