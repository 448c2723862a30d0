//! The workloads: deterministic programs of allocator calls. None knows which allocator it runs on, and none may use
//! `unsafe`: they see a [`Driver`] and blocks.
#![forbid(unsafe_code)]

pub mod arena_edge;
pub mod burst_idle;
pub mod dict_retention;
pub mod growth;
pub mod lines;
pub mod memcrunch_like;
pub mod million_lists;
pub mod object_churn;
pub mod packing;
pub mod pairs;
pub mod params;
pub mod push_pop;
pub mod size_shift;
pub mod survivors;
pub mod walker;

mod draw;
mod numbered;
mod objects;
mod pointers;
mod stack;
mod strings;

use crate::arms::ArmDef;
use crate::child::phases::{EMPTY, START, TRIMMED};
use crate::child::session::{Session, Stop};
use crate::nearest::suggest;
use crate::trial::Params;
use contract::{Driver, Heap, Mode};
use params::{BadParam, ParamDef};

/// One workload, as the harness sees it before anything runs.
#[derive(Debug)]
pub struct WorkloadDef {
    /// Name in TOML and in records.
    pub id: &'static str,
    /// One line for lists.
    pub what: &'static str,
    /// Parameters.
    pub params: &'static [ParamDef],
    /// Its own phases, in order, each told to the session once: between `start`, before the measured region, and
    /// `empty`, when everything is freed.
    pub phases: &'static [&'static str],
    /// Small sets of parameters, those that are not named left to their defaults: what `heaplab verify` runs. Together they
    /// have every word of every parameter that takes words.
    pub small: &'static [&'static [(&'static str, &'static str)]],
    /// What single parameters cannot say: which exclude each other or need each other.
    pub check: fn(&Params) -> Result<(), BadParam>,
    /// Bytes that one trial needs at most, the child's own tables and input included.
    pub footprint: fn(&Params, &ArmDef) -> u64,
}

/// Every workload, in the order of lists.
pub static WORKLOADS: &[WorkloadDef] = &[
    walker::WORKLOAD,
    growth::WORKLOAD,
    pairs::WORKLOAD,
    million_lists::WORKLOAD,
    dict_retention::WORKLOAD,
    survivors::WORKLOAD,
    size_shift::WORKLOAD,
    packing::WORKLOAD,
    memcrunch_like::WORKLOAD,
    burst_idle::WORKLOAD,
    lines::WORKLOAD,
    arena_edge::WORKLOAD,
    push_pop::WORKLOAD,
    object_churn::WORKLOAD,
];

/// Every phase of any workload, in the order in which reports show them.
pub fn phases() -> Vec<&'static str> {
    let mut all = vec![START];
    for name in WORKLOADS.iter().flat_map(|workload| workload.phases) {
        if !all.contains(name) {
            all.push(*name);
        }
    }
    all.extend([EMPTY, TRIMMED]);
    all
}

/// A workload with everything made that comes before its measured region: input, tables. It can be run many times, under
/// drivers of one heap.
pub struct Prepared(Work);

enum Work {
    Walker(walker::Walker),
    Growth(growth::Growth),
    Pairs(pairs::Pairs),
    Lines(lines::Lines),
    ArenaEdge(arena_edge::ArenaEdge),
    PushPop(push_pop::PushPop),
    ObjectChurn(object_churn::ObjectChurn),
    // Their tables are filled by the work itself, so each run makes its own.
    MillionLists(Params),
    DictRetention(Params),
    Survivors(Params),
    SizeShift(Params),
    Packing(Params, u64),
    MemcrunchLike(Params, u64),
    BurstIdle(Params, u64),
}

/// Runs the workload `id` once under `driver`.
///
/// # Errors
/// As [`prepare`] and [`Prepared::run`].
pub fn run<H: Heap, M: Mode>(
    id: &str,
    params: &Params,
    seed: u64,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    prepare(id, params, seed)?.run(driver, session)
}

/// Makes ready to run the workload `id`.
///
/// # Errors
/// [`Stop`] if there is no such workload or its input cannot be had.
pub fn prepare(id: &str, params: &Params, seed: u64) -> Result<Prepared, Stop> {
    Ok(Prepared(match id {
        "walker" => Work::Walker(walker::prepare(params, seed)?),
        "growth" => Work::Growth(growth::prepare(params)),
        "pairs" => Work::Pairs(pairs::prepare(params, seed)?),
        "arena-edge" => Work::ArenaEdge(arena_edge::prepare(params)?),
        "push-pop" => Work::PushPop(push_pop::prepare(params)?),
        "million-lists" => Work::MillionLists(params.clone()),
        "dict-retention" => Work::DictRetention(params.clone()),
        "survivors" => Work::Survivors(params.clone()),
        "size-shift" => Work::SizeShift(params.clone()),
        "packing" => Work::Packing(params.clone(), seed),
        "memcrunch-like" => Work::MemcrunchLike(params.clone(), seed),
        "burst-idle" => Work::BurstIdle(params.clone(), seed),
        "lines" => Work::Lines(lines::prepare(params, seed)?),
        "object-churn" => Work::ObjectChurn(object_churn::prepare(params, seed)),
        other => {
            return Err(Stop::Input(format!(
                "this child knows no workload `{other}`"
            )));
        }
    }))
}

impl Prepared {
    /// Runs it once under `driver`.
    ///
    /// # Errors
    /// [`Stop`] when the allocator ran out of memory, the time limit was reached or the input could not be read; what
    /// was gathered until then stays in the session.
    pub fn run<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
        session: &mut Session,
    ) -> Result<(), Stop> {
        match &mut self.0 {
            Work::Walker(walker) => walker::run(walker, driver, session),
            Work::Growth(growth) => growth::run(growth, driver, session),
            Work::Pairs(pairs) => pairs::run(pairs, driver, session),
            Work::ArenaEdge(edge) => arena_edge::run(edge, driver, session),
            Work::PushPop(work) => push_pop::run(work, driver, session),
            Work::MillionLists(params) => million_lists::run(params, driver, session),
            Work::DictRetention(params) => dict_retention::run(params, driver, session),
            Work::Survivors(params) => survivors::run(params, driver, session),
            Work::SizeShift(params) => size_shift::run(params, driver, session),
            Work::Packing(params, seed) => packing::run(params, *seed, driver, session),
            Work::MemcrunchLike(params, seed) => {
                memcrunch_like::run(params, *seed, driver, session)
            }
            Work::BurstIdle(params, seed) => burst_idle::run(params, *seed, driver, session),
            Work::Lines(lines) => lines::run(lines, driver, session),
            Work::ObjectChurn(churn) => object_churn::run(churn, driver, session),
        }
    }

    /// Frees what it has kept for its next run, see [`Session::keep`].
    pub fn release<H: Heap, M: Mode>(&mut self, driver: &mut Driver<H, M>) {
        match &mut self.0 {
            Work::Pairs(pairs) => pairs::release(pairs, driver),
            Work::ArenaEdge(edge) => arena_edge::release(edge, driver),
            Work::PushPop(work) => push_pop::release(work, driver),
            // The others keep nothing.
            _ => {}
        }
    }
}

/// The workload `id`.
///
/// # Errors
/// [`BadParam`] naming the nearest ones.
pub fn find(id: &str) -> Result<&'static WorkloadDef, BadParam> {
    WORKLOADS
        .iter()
        .find(|workload| workload.id == id)
        .ok_or_else(|| {
            let known: Vec<&str> = WORKLOADS.iter().map(|workload| workload.id).collect();
            BadParam(format!("unknown workload `{id}`: {}", suggest(id, &known)))
        })
}

impl WorkloadDef {
    /// Checks `given` and completes it with defaults, every value in its normal form.
    ///
    /// # Errors
    /// [`BadParam`] for an unknown name, a value out of range, or a combination that makes no sense.
    pub fn resolve(&self, given: &Params) -> Result<Params, BadParam> {
        let mut resolved = Params::new();
        for (name, value) in given {
            let def = self.param(name)?;
            resolved.insert(name.clone(), def.normal(value)?);
        }
        for def in self.params {
            if let (Some(default), false) = (def.default, resolved.contains_key(def.name)) {
                resolved.insert(def.name.to_owned(), def.normal(default)?);
            }
        }
        (self.check)(&resolved)?;
        Ok(resolved)
    }

    /// Every phase at which a memory trial is read, in order.
    pub fn all_phases(&self) -> impl Iterator<Item = &'static str> {
        let own = self.phases.iter().copied();
        [START].into_iter().chain(own).chain([EMPTY, TRIMMED])
    }

    /// The [`small`](WorkloadDef::small) sets, completed with defaults.
    ///
    /// # Errors
    /// [`BadParam`] if one of them is wrong.
    pub fn small_sets(&self) -> Result<Vec<Params>, BadParam> {
        self.small
            .iter()
            .map(|set| {
                let given = set
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
                self.resolve(&given.collect())
            })
            .collect()
    }

    /// The parameter `name`.
    ///
    /// # Errors
    /// [`BadParam`] naming the nearest ones.
    pub fn param(&self, name: &str) -> Result<&'static ParamDef, BadParam> {
        self.params
            .iter()
            .find(|def| def.name == name)
            .ok_or_else(|| {
                let known: Vec<&str> = self.params.iter().map(|def| def.name).collect();
                BadParam(format!(
                    "{} has no parameter `{name}`: {}",
                    self.id,
                    suggest(name, &known)
                ))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(pairs: &[(&str, &str)]) -> Params {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn defaults_are_filled_in_and_values_have_one_form() {
        let growth = find("growth").expect("growth exists");
        let resolved = growth
            .resolve(&params(&[("size", "4194304")]))
            .expect("valid");
        assert_eq!(
            resolved,
            params(&[("shape", "one"), ("size", "4MiB"), ("step", "70")])
        );
    }

    #[test]
    fn small_sets_have_every_word_of_every_choice() {
        for workload in WORKLOADS {
            let sets = workload.small_sets().expect("valid");
            for param in workload.params {
                if let params::Kind::Choice(words) = param.kind {
                    for word in words {
                        let had = sets
                            .iter()
                            .any(|set| set.get(param.name).is_some_and(|value| value == word));
                        assert!(
                            had,
                            "{}: {}={word} is in no small set",
                            workload.id, param.name
                        );
                    }
                }
            }
            let mut different = sets.clone();
            different.sort();
            different.dedup();
            assert_eq!(different.len(), sets.len(), "{}", workload.id);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (workload, given, said) in [
            ("walker", &[("mod", "concat")][..], "mode"),
            (
                "walker",
                &[("mode", "concta"), ("corpus", "text"), ("size", "1MiB")],
                "concat",
            ),
            ("walker", &[("corpus", "text")], "size"),
            ("walker", &[("size", "1MiB")], "corpus"),
            ("walker", &[], "root"),
            (
                "walker",
                &[("root", "/"), ("corpus", "text"), ("size", "1MiB")],
                "exclude",
            ),
            ("walker", &[("root", "/no/such/place")], "/no/such/place"),
            ("walker", &[("root", "/dev/null")], "regular file"),
            ("walker", &[("corpus", "text"), ("size", "4Mib")], "4MiB"),
            ("growth", &[("size", "1MiB"), ("step", "0")], "from 1"),
            ("pairs", &[("live", "10kB")], "from 1 to 10M"),
            ("pairs", &[("live", "11M")], "such as 10k"),
            ("pairs", &[("pairs", "0")], "from 1 to 100M"),
            ("pairs", &[("shape", "batch-lfo")], "batch-lifo"),
            ("burst-idle", &[("order", "filo")], "fifo"),
            ("burst-idle", &[("idle", "2500")], "such as 20s"),
            ("burst-idle", &[("idle", "2h")], "at most 1h"),
            ("lines", &[("mode", "keep")], "keep-all"),
            ("lines", &[("passes", "0")], "from 1 to 1k"),
            ("push-pop", &[("live", "10"), ("depth", "11")], "10 blocks"),
        ] {
            let error = find(workload)
                .and_then(|w| w.resolve(&params(given)))
                .expect_err(said)
                .0;
            assert!(error.contains(said), "{given:?}: {error}");
        }
        assert!(find("waker").expect_err("unknown").0.contains("walker"));
    }
}
