//! arena-edge and push-pop against closed forms: arenas taken and given back, and what the operating system is asked for.

mod common;

use common::{Ran, definition, metric, obmalloc_missing};
use heaplab::record::TrialRecord;
use heaplab::trial::Outcome;

/// Bytes of a block.
const SIZE: u64 = 256;
/// The block that every trial begins with costs an arena, which is given back at once where none is kept.
const FIRST: u64 = 1;

/// How an arm has its arenas.
#[derive(Debug, Clone, Copy)]
struct Policy {
    arm: &'static str,
    /// Blocks of [`SIZE`] in an arena.
    blocks: u64,
    gives_back: bool,
    keeps_one: bool,
}

impl Policy {
    /// Arenas that have come and gone when the last `depth` of `live` blocks are gone: those that became empty, but for
    /// the one that is kept.
    fn round(&self, live: u64, depth: u64) -> u64 {
        let emptied = live.div_ceil(self.blocks) - (live - depth).div_ceil(self.blocks);
        match (self.gives_back, self.keeps_one) {
            (false, _) => 0,
            (true, false) => emptied,
            (true, true) => emptied.saturating_sub(1),
        }
    }

    /// What was given back before the first round.
    fn before(&self) -> u64 {
        if self.gives_back && !self.keeps_one {
            FIRST
        } else {
            0
        }
    }
}

/// Every policy, and where CPython's file is there, its variants.
fn policies() -> Vec<Policy> {
    // A pool of 4 KiB has a header of 48 bytes and 15 blocks, one of 16 KiB 63; an arena has 64 pools.
    let small = 64 * ((4096 - 48) / SIZE);
    let large = 64 * ((16384 - 48) / SIZE);
    assert_eq!((small, large), (960, 4032));
    let policy = |arm, blocks, gives_back, keeps_one| Policy {
        arm,
        blocks,
        gives_back,
        keeps_one,
    };
    let mut all = vec![
        policy("arena-2.4", small, false, false),
        policy("arena-2.5", small, true, false),
        policy("arena-3.8", small, true, false),
        policy("arena-3.9", small, true, true),
        policy("arena-3.10-keep0:aligned=1", large, true, false),
        policy("arena-3.10:aligned=1", large, true, true),
    ];
    if !obmalloc_missing() {
        all.extend([
            policy("obmalloc-eager", small, true, false),
            policy("obmalloc-classic", small, true, true),
            policy("obmalloc-1m-eager:aligned=1", large, true, false),
            policy("obmalloc:aligned=1", large, true, true),
        ]);
    }
    all
}

/// One cell of `workload` under every policy, counted.
fn counted(workload: &str, params: &str) -> Vec<(Policy, TrialRecord)> {
    let policies = policies();
    let arms: Vec<String> = policies
        .iter()
        .map(|policy| format!("\"{}\"", policy.arm))
        .collect();
    let text = definition(workload, params, &arms.join(", "), "\"census\"", "");
    let records = Ran::new(&text, &[]).records();
    assert_eq!(records.len(), policies.len());
    let of = |policy: Policy| {
        let record = records.iter().find(|record| record.arm == policy.arm);
        let record = record.expect("a record").clone();
        assert_eq!(record.outcome, Outcome::Ok, "{}", policy.arm);
        (policy, record)
    };
    policies.into_iter().map(of).collect()
}

/// Calls of the system call `name` in the region.
fn calls(record: &TrialRecord, name: &str) -> u64 {
    let name = format!("sys.{name}");
    record.metrics.get(&name).copied().unwrap_or_default()
}

#[test]
fn one_block_at_an_edge() {
    const ROUNDS: u64 = 300;
    // On an empty heap; at an arena's edge of both sizes; at a pool's edge of both, with room in the arena.
    for (live, edge) in [(0, true), (20_160, true), (19_845, false)] {
        let params = format!("blocks = \"{live}\", rounds = \"{ROUNDS}\"");
        for (policy, record) in counted("arena-edge", &params) {
            let which = format!("{} at {live}", policy.arm);
            assert_eq!(metric(&record, "ops"), ROUNDS, "{which}");
            for name in ["malloc_calls", "free_calls"] {
                assert_eq!(metric(&record, name), live + ROUNDS, "{which}");
            }
            assert_eq!(metric(&record, "live_bytes.full"), live * SIZE);
            assert_eq!(metric(&record, "live_bytes.churned"), live * SIZE);
            let (a_round, full) = (policy.round(live + 1, 1), live.div_ceil(policy.blocks));
            assert_eq!(
                a_round,
                u64::from(edge && policy.gives_back && !policy.keeps_one),
                "{which}"
            );
            let reclaimed = metric(&record, "arenas_reclaimed.churned");
            assert_eq!(reclaimed, policy.before() + ROUNDS * a_round, "{which}");
            assert_eq!(
                metric(&record, "arenas_highwater"),
                full + u64::from(edge),
                "{which}"
            );
            // What is asked for in the region: an arena a round, or one at most.
            let unmapped = calls(&record, "munmap");
            if a_round == 1 {
                assert!(calls(&record, "mmap") >= ROUNDS, "{which}");
                assert!(unmapped >= ROUNDS, "{which}");
            } else {
                assert!(calls(&record, "mmap") <= 1, "{which}");
                // What lies around an aligned arena goes back.
                assert!(unmapped <= 2, "{which}: {unmapped}");
            }
        }
    }
}

#[test]
fn a_stack_over_edges() {
    const ROUNDS: u64 = 50;
    const LIVE: u64 = 20_161;
    for depth in [1, 64, 960, 961, 4000, 10_000] {
        let params = format!("live = \"{LIVE}\", depth = \"{depth}\", rounds = \"{ROUNDS}\"");
        for (policy, record) in counted("push-pop", &params) {
            let which = format!("{} at {depth}", policy.arm);
            assert_eq!(metric(&record, "ops"), ROUNDS, "{which}");
            for name in ["malloc_calls", "free_calls"] {
                assert_eq!(metric(&record, name), LIVE + depth * ROUNDS, "{which}");
            }
            let reclaimed = metric(&record, "arenas_reclaimed.churned");
            let a_round = policy.round(LIVE, depth);
            assert_eq!(reclaimed, policy.before() + ROUNDS * a_round, "{which}");
            let held = LIVE.div_ceil(policy.blocks);
            assert_eq!(metric(&record, "arenas_current.churned"), held, "{which}");
            assert_eq!(metric(&record, "arenas_highwater"), held, "{which}");
            assert!(calls(&record, "munmap") >= ROUNDS * a_round, "{which}");
            if a_round == 0 {
                assert_eq!(calls(&record, "mmap"), 0, "{which}");
            }
        }
    }
}

#[test]
fn twice_the_rounds_are_no_more_calls_where_nothing_goes_back() {
    for workload in [
        ("arena-edge", "blocks = \"4032\""),
        ("push-pop", "live = \"4033\", depth = \"30\""),
    ] {
        let (name, params) = workload;
        let of = |rounds: &str| counted(name, &format!("{params}, rounds = \"{rounds}\""));
        for ((policy, once), (_, twice)) in of("150").into_iter().zip(of("300")) {
            // 4032 blocks are one arena of 1 MiB; of 256 KiB they are four and a part, where there is no edge.
            let edge = 4032 % policy.blocks == 0;
            let thrashes = edge && policy.gives_back && !policy.keeps_one;
            for call in ["mmap", "munmap", "brk", "madvise"] {
                let [once, twice] = [&once, &twice].map(|record| calls(record, call));
                let which = format!("{name} {} {call}: {once} and {twice}", policy.arm);
                match (thrashes, call) {
                    (true, "mmap" | "munmap") => assert!(twice >= once + 150, "{which}"),
                    (true, _) => {}
                    // What lies around an aligned arena goes back, on one side or on both.
                    (false, "munmap") => assert!(once.max(twice) <= 2, "{which}"),
                    (false, _) => assert_eq!(once, twice, "{which}"),
                }
            }
        }
    }
}

#[test]
fn nothing_is_deeper_than_the_stack() {
    let text = definition(
        "push-pop",
        "live = \"10\", depth = \"11\"",
        "\"system\"",
        "\"census\"",
        "",
    );
    let ran = Ran::new(&text, &[]);
    assert_eq!(ran.output.status.code(), Some(2));
    let said = common::err(&ran.output);
    assert!(said.contains("depth is 11, more than the 10"), "{said}");
}
