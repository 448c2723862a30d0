//! A verification: every workload small, in canary mode, under every arm; and what each allocator does.
//!
//! Nothing is measured. A trial that comes through has had every block compared with a mirror of what was written to
//! it, at each resize and free; the behaviour suite says which rules an arm keeps; and what the rules leave open is
//! observed and told. Here it is planned and gathered; `heaplab verify` runs it.

pub mod tables;

use crate::arms::{ARMS, Arm, SIZED, Takes};
use crate::behaviour::Behaviour;
use crate::plan::{BadPlan, Plan, PlannedTrial};
use crate::record::TrialRecord;
use crate::report::Table;
use crate::run::inquiry::Asked;
use crate::trial::{Outcome, Params, Protocol, Receipt, SCHEMA, SuiteRow, Thp};
use crate::workloads::WorkloadDef;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The name in folders, plans and records.
pub const ID: &str = "verify";

/// The file that holds a [`Verification`].
pub const FILE: &str = "behaviour.json";

/// Every arm that users may ask for, also as one that is told sizes, and once more with each word but the default one of a knob whose words can choose
/// another child. Words of other knobs are values like any other, and a matter of the allocator's own tests.
///
/// # Errors
/// Never, as long as the definitions of arms are right.
pub fn arms() -> Result<Vec<Arm>, BadPlan> {
    let mut labels = Vec::new();
    for arm in ARMS.iter().filter(|arm| !arm.test_only) {
        labels.push(arm.id.to_owned());
        labels.extend(arm.sized.then(|| format!("{}{SIZED}", arm.id)));
        for knob in arm.knobs {
            if let Takes::Word(words) = knob.takes
                && words.iter().any(|word| word.home.is_some())
            {
                let named = |name: &str| format!("{}:{}={name}", arm.id, knob.name);
                labels.extend(words.iter().skip(1).map(|word| named(word.name)));
            }
        }
    }
    labels
        .iter()
        .map(|label| Arm::parse(label).map_err(|why| BadPlan(why.0)))
        .collect()
}

/// What is to be verified.
#[derive(Debug)]
pub struct Request {
    /// Arms, in the order of tables.
    pub arms: Vec<Arm>,
    /// Workloads.
    pub workloads: Vec<&'static WorkloadDef>,
    /// Seed of inputs.
    pub seed: u64,
    /// Limit of one trial.
    pub timeout: Duration,
    /// What the command line chose, as `option=value`.
    pub overrides: Vec<String>,
}

/// Every small set of parameters of every workload, under every arm that keeps contents.
///
/// # Errors
/// [`BadPlan`] if a workload's own sets are wrong.
pub fn plan(request: &Request) -> Result<Plan, BadPlan> {
    let mut trials = Vec::new();
    for workload in &request.workloads {
        for params in workload.small_sets().map_err(|why| BadPlan(why.0))? {
            let kept = request.arms.iter().filter(|arm| arm.def.contents);
            for (position, arm) in kept.enumerate() {
                trials.push(PlannedTrial {
                    trial: trials.len() as u32,
                    grid: workload.id.to_owned(),
                    block: 0,
                    position: position as u32,
                    arm: arm.label(),
                    workload: workload.id.to_owned(),
                    params: params.clone(),
                    protocol: Protocol::Census,
                    timeout_ms: request.timeout.as_millis().max(1) as u64,
                    memory_limit: None,
                    thp: Thp::default(),
                    instructions: false,
                    footprint_bytes: (workload.footprint)(&params, arm.def),
                });
            }
        }
    }
    let libraries = request.arms.iter().filter_map(|arm| arm.library.as_ref());
    Ok(Plan {
        schema: SCHEMA,
        source_hash: crate::SOURCE_HASH.to_owned(),
        experiment: ID.to_owned(),
        seed: request.seed,
        quick: false,
        verify: true,
        overrides: request.overrides.clone(),
        libraries: libraries
            .map(|library| (library.name.clone(), library.path.clone()))
            .collect(),
        trials,
    })
}

/// What was asked of one arm beside its trials.
#[derive(Debug)]
pub struct Inquired {
    /// The behaviour suite.
    pub suite: Asked<Vec<SuiteRow>>,
    /// What it does where allocators differ.
    pub behaviour: Asked<(Behaviour, Receipt)>,
}

/// All that a verification found: `behaviour.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Hash of the sources of the harness that made it.
    pub source_hash: String,
    /// Seed of inputs.
    pub seed: u64,
    /// Arms, in the order asked for.
    pub arms: Vec<Verified>,
    /// The same as tables, as they were printed.
    pub tables: Vec<Table>,
}

/// What was found of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// Arm as labelled.
    pub arm: String,
    /// What it comes to.
    pub state: State,
    /// What a number of it must say of itself, if it is a model's or a limit's.
    pub note: Option<String>,
    /// How its trials ended.
    pub trials: Trials,
    /// Those that failed, each with its outcome.
    pub failures: Vec<Failure>,
    /// The behaviour suite, a row a rule; empty if it was not answered.
    pub suite: Vec<SuiteRow>,
    /// How it crashed in the suite, if it did.
    pub suite_failure: Option<String>,
    /// What it does where allocators differ.
    pub behaviour: Option<Behaviour>,
    /// How it crashed over that, if it did.
    pub behaviour_failure: Option<String>,
    /// Who answered.
    pub receipt: Option<Receipt>,
}

/// What a verification of an arm comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum State {
    /// Every trial that could be run came through, and every rule is kept.
    Sound,
    /// A trial failed, a rule is broken, or it crashed over a question.
    Broken,
    /// It could not be asked here.
    Unavailable {
        /// Why, and what would change that.
        why: String,
    },
    /// It was asked, and there is nothing to verify.
    NotVerified {
        /// Why.
        why: String,
    },
}

/// How the trials of an arm ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trials {
    /// All of them.
    pub planned: usize,
    /// Came through.
    pub verified: usize,
    /// Failed, ran into the limit, or had wrong checksums.
    pub failed: usize,
    /// Could not be run here.
    pub unavailable: usize,
}

/// A trial that did not come through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Number in the plan.
    pub trial: u32,
    /// Workload id.
    pub workload: String,
    /// Its parameters.
    pub params: Params,
    /// How it ended.
    pub outcome: Outcome,
}

impl Verification {
    /// Gathers what came of a plan's trials and of the inquiries, one for each of `arms`.
    pub fn new(plan: &Plan, records: &[TrialRecord], inquired: &[(Arm, Inquired)]) -> Verification {
        let arms = inquired
            .iter()
            .map(|(arm, inquired)| Verified::new(arm, records, inquired))
            .collect::<Vec<_>>();
        Verification {
            schema: SCHEMA,
            source_hash: plan.source_hash.clone(),
            seed: plan.seed,
            tables: tables::all(&arms),
            arms,
        }
    }

    /// Arms that are broken.
    pub fn broken(&self) -> impl Iterator<Item = &Verified> {
        self.arms.iter().filter(|arm| arm.state == State::Broken)
    }

    /// Trials that came through, of all arms.
    pub fn verified(&self) -> usize {
        self.arms.iter().map(|arm| arm.trials.verified).sum()
    }
}

impl Verified {
    fn new(arm: &Arm, records: &[TrialRecord], inquired: &Inquired) -> Verified {
        let label = arm.label();
        let mut found = Verified {
            arm: label.clone(),
            state: State::Sound,
            note: arm.note().map(str::to_owned),
            trials: Trials::default(),
            failures: Vec::new(),
            suite: Vec::new(),
            suite_failure: None,
            behaviour: None,
            behaviour_failure: None,
            receipt: None,
        };
        let mut unavailable = None;
        for record in records.iter().filter(|record| record.arm == label) {
            found.trials.planned += 1;
            match &record.outcome {
                Outcome::Ok => found.trials.verified += 1,
                Outcome::Unavailable { why } => {
                    found.trials.unavailable += 1;
                    unavailable.get_or_insert_with(|| why.clone());
                }
                outcome => {
                    found.trials.failed += 1;
                    found.failures.push(Failure {
                        trial: record.trial,
                        workload: record.workload.clone(),
                        params: record.params.clone(),
                        outcome: outcome.clone(),
                    });
                }
            }
        }
        match &inquired.suite {
            Asked::Told(rows) => found.suite = rows.clone(),
            Asked::Broke(how) => found.suite_failure = Some(how.clone()),
            Asked::Unavailable(why) => {
                unavailable.get_or_insert_with(|| why.clone());
            }
            Asked::Interrupted => {}
        }
        match &inquired.behaviour {
            Asked::Told((behaviour, receipt)) => {
                found.behaviour = Some(behaviour.clone());
                found.receipt = Some(receipt.clone());
            }
            Asked::Broke(how) => found.behaviour_failure = Some(how.clone()),
            Asked::Unavailable(why) => {
                unavailable.get_or_insert_with(|| why.clone());
            }
            Asked::Interrupted => {}
        }
        found.state = found.state(arm.def.contents, unavailable);
        found
    }

    fn state(&self, contents: bool, unavailable: Option<String>) -> State {
        let crashed = self.suite_failure.is_some() || self.behaviour_failure.is_some();
        if self.trials.failed > 0 || crashed || self.complaints().next().is_some() {
            return State::Broken;
        }
        match unavailable {
            Some(why) if self.trials.verified == 0 || self.suite.is_empty() => {
                State::Unavailable { why }
            }
            _ if !contents => State::NotVerified {
                why: "it keeps no contents".to_owned(),
            },
            _ => State::Sound,
        }
    }

    /// Rules that it breaks, and how.
    pub fn complaints(&self) -> impl Iterator<Item = String> {
        self.suite.iter().filter_map(SuiteRow::complaint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::WORKLOADS;
    use std::collections::BTreeSet;

    fn request(arms: Vec<Arm>) -> Request {
        Request {
            arms,
            workloads: WORKLOADS.iter().collect(),
            seed: 1,
            timeout: Duration::from_secs(60),
            overrides: Vec::new(),
        }
    }

    #[test]
    fn every_child_is_verified_by_default() {
        let arms = arms().expect("parsed");
        let labels: BTreeSet<String> = arms.iter().map(Arm::label).collect();
        assert_eq!(labels.len(), arms.len());
        let children: BTreeSet<&str> = arms.iter().map(|arm| arm.home().child).collect();
        for def in ARMS.iter().filter(|arm| !arm.test_only) {
            assert!(labels.contains(def.id), "{}", def.id);
            for knob in def.knobs {
                if let Takes::Word(words) = knob.takes {
                    for home in words.iter().filter_map(|word| word.home) {
                        assert!(children.contains(home.child), "{}", home.child);
                    }
                }
            }
        }
    }

    #[test]
    fn everything_small_under_every_arm_that_keeps_contents() {
        let arms = ["system", "null", "bump"].map(|id| Arm::parse(id).expect("an arm"));
        let plan = plan(&request(arms.to_vec())).expect("a plan");
        let sets: usize = WORKLOADS.iter().map(|workload| workload.small.len()).sum();
        assert_eq!(plan.trials.len(), 2 * sets);
        assert!(plan.verify && plan.trials.iter().all(|trial| trial.arm != "null"));
        for trial in &plan.trials {
            assert!(trial.footprint_bytes < 1 << 30, "{trial:?}");
        }
    }
}
