//! Every generation's policy, decision by decision, against CPython's own file; and 2.4's, of which there is no file, against a
//! slow reference model that is itself held against the file.
//!
//! Two heaps are played the same stream. After every operation the block must lie in the same arena, at the same offset,
//! so in the same pool; after every 100th CPython's text of statistics must be the same, letter for letter: arenas got,
//! given back, held at most and now, pools and blocks of each class, free pools, bytes. Every few texts our heap is
//! walked by its checker.
//!
//! `HEAPLAB_EXACT_OPS` says how many operations each of the eight streams has for each policy; 60,000 if it is not set. With
//! 600000 they are 24 million beside the file alone:
//!
//! ```sh
//! HEAPLAB_EXACT_OPS=600000 cargo test --release -p arena --test exact -- --nocapture
//! ```

#[path = "../../../obmalloc/tests/common/mod.rs"]
mod c_file;
mod model;
mod side;
mod stream;

use arena::heap::Heap;
use arena::policy::{
    OrderKind, Policy, Python24, Python25, Python38, Python39, Python310, Settings, TestKind, Tuned,
};
use contract::suite::alone;
use model::{Model, Plays};
use obmalloc::{AsIs, Classic, Eager, OneMibEager, Variant};
use side::{ALIGNED, CFile, Side, Sized};
use std::collections::HashMap;
use stream::{Geometry, Op, Random, STREAMS};

/// How often the whole text is compared.
const COMPARE_EVERY: usize = 100;

/// How many operations a stream has.
fn operations() -> usize {
    match std::env::var("HEAPLAB_EXACT_OPS") {
        Err(_) => 60_000,
        Ok(text) => text
            .parse()
            .unwrap_or_else(|why| panic!("HEAPLAB_EXACT_OPS={text}: {why}")),
    }
}

/// A block in both heaps.
struct Live<A, B> {
    ours: A,
    theirs: B,
    size: usize,
    /// It is one of a pool.
    pooled: bool,
}

/// Which arenas of the two heaps are each other's.
#[derive(Default)]
struct Pairs {
    of_ours: HashMap<usize, usize>,
    /// With the count of live blocks.
    of_theirs: HashMap<usize, (usize, usize)>,
}

impl Pairs {
    /// A block has come, in these arenas. They are a pair, or neither is in one.
    fn come(&mut self, ours: usize, theirs: usize) -> bool {
        let partner = *self.of_ours.entry(ours).or_insert(theirs);
        let (back, live) = self.of_theirs.entry(theirs).or_insert((ours, 0));
        *live += 1;
        partner == theirs && *back == ours
    }

    /// A block has gone. An arena without one may be released, and another come in its place.
    fn go(&mut self, ours: usize, theirs: usize) {
        if let Some((_, live)) = self.of_theirs.get_mut(&theirs) {
            *live -= 1;
            if *live == 0 {
                self.of_theirs.remove(&theirs);
                self.of_ours.remove(&ours);
            }
        }
    }
}

/// Two heaps side by side.
struct Duel<A: Side, B: Side> {
    ours: A,
    theirs: B,
    threshold: usize,
    live: Vec<Option<Live<A::Block, B::Block>>>,
    pairs: Pairs,
    done: usize,
    texts: usize,
}

impl<A: Side, B: Side> Duel<A, B> {
    /// A block has come: the same place in both.
    fn come(&mut self, slot: usize, block: Live<A::Block, B::Block>, op: Op) {
        if block.pooled {
            let (ours, theirs) = (self.ours.place(block.ours), self.theirs.place(block.theirs));
            assert_eq!(ours.1, theirs.1, "offset, operation {}: {op:?}", self.done);
            let paired = self.pairs.come(ours.0, theirs.0);
            assert!(paired, "arena, operation {}: {op:?}", self.done);
        }
        let mark = (slot ^ block.size) as u8;
        for at in [self.ours.bytes(block.ours), self.theirs.bytes(block.theirs)]
            .into_iter()
            .flatten()
        {
            // SAFETY: live, of `size` bytes.
            unsafe { at.write_bytes(mark, block.size) };
        }
        self.live[slot] = Some(block);
    }

    /// The bytes are as they were written, up to `len`.
    fn intact(&self, slot: usize, old: usize, ours: A::Block, len: usize) {
        let mark = (slot ^ old) as u8;
        if let Some(at) = self.ours.bytes(ours) {
            // SAFETY: live, of `len` bytes or more.
            let bad = (0..len).find(|i| unsafe { at.add(*i).read() } != mark);
            assert_eq!(bad, None, "contents, operation {}", self.done);
        }
    }

    fn go(&mut self, block: &Live<A::Block, B::Block>) {
        if block.pooled {
            let (ours, theirs) = (self.ours.place(block.ours), self.theirs.place(block.theirs));
            self.pairs.go(ours.0, theirs.0);
        }
    }

    fn play(&mut self, op: Op) {
        let (Op::Malloc(slot, _) | Op::Calloc(slot, ..) | Op::Realloc(slot, _) | Op::Free(slot)) =
            op;
        if slot >= self.live.len() {
            self.live.resize_with(slot + 1, || None);
        }
        let was = self.live[slot].take();
        let threshold = self.threshold;
        let serves = |size: usize| (1..=threshold).contains(&size);
        match (op, was) {
            (Op::Malloc(_, size), None) => {
                let (ours, theirs) = (self.ours.malloc(size), self.theirs.malloc(size));
                let pooled = serves(size);
                self.come(
                    slot,
                    Live {
                        ours,
                        theirs,
                        size,
                        pooled,
                    },
                    op,
                );
            }
            (Op::Calloc(_, count, each), None) => {
                let (ours, theirs) = (
                    self.ours.calloc(count, each),
                    self.theirs.calloc(count, each),
                );
                let size = count * each;
                if let Some(at) = self.ours.bytes(ours) {
                    // SAFETY: live, of `size` bytes.
                    assert!((0..size).all(|i| unsafe { at.add(i).read() } == 0));
                }
                let pooled = serves(size);
                self.come(
                    slot,
                    Live {
                        ours,
                        theirs,
                        size,
                        pooled,
                    },
                    op,
                );
            }
            (Op::Realloc(_, size), Some(was)) => {
                self.go(&was);
                let ours = self.ours.realloc(was.ours, was.size, size);
                let theirs = self.theirs.realloc(was.theirs, was.size, size);
                self.intact(slot, was.size, ours, was.size.min(size));
                // What is the backing's stays there.
                let pooled = was.pooled && serves(size);
                self.come(
                    slot,
                    Live {
                        ours,
                        theirs,
                        size,
                        pooled,
                    },
                    op,
                );
            }
            (Op::Free(_), Some(was)) => {
                self.intact(slot, was.size, was.ours, was.size);
                self.go(&was);
                self.ours.free(was.ours, was.size);
                self.theirs.free(was.theirs, was.size);
            }
            (op, _) => panic!("the stream is wrong: {op:?}"),
        }
        self.done += 1;
        if self.done.is_multiple_of(COMPARE_EVERY) {
            self.compare();
        }
    }

    fn compare(&mut self) {
        let theirs = self.theirs.text(None);
        let ours = self.ours.text(Some(&theirs));
        assert_eq!(ours, theirs, "after {} operations", self.done);
        self.texts += 1;
        if self.texts.is_multiple_of(20) {
            self.ours.check();
        }
    }

    /// Everything goes, in the order of slots.
    fn end(mut self) -> (usize, usize) {
        for slot in 0..self.live.len() {
            if self.live[slot].is_some() {
                self.play(Op::Free(slot));
            }
        }
        self.compare();
        self.ours.check();
        (self.done, self.texts)
    }
}

/// Plays all streams to pairs of heaps that `open` makes; `None` is that there is no file.
fn play_all<A: Side, B: Side>(
    named: &str,
    settings: Settings,
    operations: usize,
    mut open: impl FnMut() -> Option<(A, B)>,
) {
    let per_pool = (settings.pool - 48) / 512;
    let geometry = Geometry {
        arena: settings.arena / settings.pool * per_pool,
        pool: per_pool,
        scale: (settings.arena >> 18).clamp(1, 4),
    };
    let (mut done, mut texts) = (0, 0);
    for (seed, (stream, make)) in (1..).zip(STREAMS) {
        let Some((ours, theirs)) = open() else { return };
        let mut duel = Duel {
            ours,
            theirs,
            threshold: settings.threshold,
            live: Vec::new(),
            pairs: Pairs::default(),
            done: 0,
            texts: 0,
        };
        println!("{named}: {stream}");
        make(&mut Random(seed), geometry, &mut |op| {
            duel.play(op);
            duel.done >= operations
        });
        let (played, compared) = duel.end();
        (done, texts) = (done + played, texts + compared);
    }
    println!("{named}: {done} operations, each block's place, {texts} texts: no difference");
}

/// A policy against a variant of the file.
fn as_the_file<P: Policy, V: Variant>(
    named: &str,
    settings: Settings,
    operations: usize,
    policy: impl Fn() -> P,
) {
    let _turn = alone();
    play_all(named, settings, operations, || {
        let theirs = CFile::<V>::open()?;
        let ours = Heap::new(ALIGNED, policy()).expect("memory");
        Some((ours, theirs))
    });
}

#[test]
fn python_3_10_is_the_file_as_it_is() {
    let policy = Python310::default;
    as_the_file::<_, AsIs>("3.10", Settings::PYTHON_3_10, operations(), policy);
}

#[test]
fn python_3_10_without_a_kept_arena_is_the_experiment_of_2019() {
    let policy = || Python310 { keep: false };
    as_the_file::<_, OneMibEager>("3.10-keep0", Settings::PYTHON_3_10, operations(), policy);
}

#[test]
fn python_3_9_is_classic() {
    as_the_file::<_, Classic>("3.9", Settings::PYTHON_3_9, operations(), || Python39);
}

#[test]
fn python_3_8_is_eager() {
    as_the_file::<_, Eager>("3.8", Settings::PYTHON_3_8, operations(), || Python38);
}

/// The order of 2.5 to 3.7, by searching, decides as that of 3.8 does.
#[test]
fn python_2_5_is_eager() {
    as_the_file::<_, Eager>("2.5", Settings::PYTHON_2_5, operations(), || Python25);
}

/// Told the size of each block that it takes back, a heap decides the same.
fn sized_as_the_file<P: Policy, V: Variant>(named: &str, settings: Settings, policy: fn() -> P) {
    let _turn = alone();
    play_all(named, settings, operations() / 2, || {
        let theirs = CFile::<V>::open()?;
        let ours = Heap::new(ALIGNED, policy()).expect("memory");
        Some((Sized(ours), theirs))
    });
}

#[test]
fn sized_frees_decide_the_same() {
    sized_as_the_file::<_, AsIs>("3.10+sized", Settings::PYTHON_3_10, Python310::default);
    sized_as_the_file::<_, Classic>("3.9+sized", Settings::PYTHON_3_9, || Python39);
    sized_as_the_file::<_, Eager>("2.5+sized", Settings::PYTHON_2_5, || Python25);
}

/// Put together at run time, and with another address test, a policy decides the same.
#[test]
fn the_same_put_together_at_run_time() {
    let few = operations() / 4;
    for test in [TestKind::Walk, TestKind::Header, TestKind::Radix] {
        for order in [OrderKind::Slide, OrderKind::Constant] {
            let settings = Settings {
                order,
                test,
                ..Settings::PYTHON_3_9
            };
            let named = format!("{order:?}, {test:?}, as 3.9");
            // The tree's lines in the text are those of 3.10.
            if test != TestKind::Radix {
                let policy = || Tuned::new(settings).expect("they fit");
                as_the_file::<_, Classic>(&named, settings, few, policy);
            }
        }
    }
    let settings = Settings {
        order: OrderKind::Slide,
        ..Settings::PYTHON_3_10
    };
    let policy = || Tuned::new(settings).expect("they fit");
    as_the_file::<_, AsIs>("Slide, Radix, as 3.10", settings, few, policy);
}

/// The model is slow, and has a sixth of the operations.
fn few() -> usize {
    operations() / 6
}

#[test]
fn the_model_playing_3_9_is_classic() {
    let _turn = alone();
    let settings = Settings::PYTHON_3_9;
    play_all("the model as 3.9", settings, few(), || {
        let theirs = CFile::<Classic>::open()?;
        Some((Model::new(Plays::Python39, settings), theirs))
    });
}

#[test]
fn python_2_4_is_the_model() {
    let _turn = alone();
    let settings = Settings::PYTHON_2_4;
    play_all("2.4", settings, few(), || {
        let ours = Heap::new(ALIGNED, Python24).expect("memory");
        Some((ours, Model::new(Plays::Python24, settings)))
    });
}

/// With blocks in steps of 8 bytes up to 256 there is no file either.
#[test]
fn steps_of_8_bytes_up_to_256_are_the_models() {
    let _turn = alone();
    for (plays, settings) in [
        (Plays::Python24, Settings::PYTHON_2_4),
        (Plays::Python39, Settings::PYTHON_3_9),
    ] {
        let settings = Settings {
            align: 8,
            threshold: 256,
            ..settings
        };
        play_all("steps of 8 bytes", settings, few(), || {
            let policy = Tuned::new(settings).expect("they fit");
            let ours = Heap::new(ALIGNED, policy).expect("memory");
            Some((ours, Model::new(plays, settings)))
        });
    }
}

/// The comparison can fail: what decides otherwise is found.
#[test]
fn what_decides_otherwise_is_found() {
    let _turn = alone();
    let own = Settings::PYTHON_3_9;
    let others = [
        Settings {
            order: OrderKind::Last,
            ..own
        },
        Settings { keep: 0, ..own },
        Settings { keep: 2, ..own },
        Settings { align: 8, ..own },
        Settings {
            threshold: 496,
            ..own
        },
    ];
    for settings in others {
        let played = std::panic::catch_unwind(|| {
            play_all("otherwise", own, few(), || {
                let policy = Tuned::new(settings).expect("they fit");
                let ours = Heap::new(ALIGNED, policy).expect("memory");
                Some((ours, Model::new(Plays::Python39, own)))
            });
        });
        assert!(played.is_err(), "{settings:?}");
    }
}
