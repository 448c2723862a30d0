//! Records made up for tests, with a fresh trial number each.

use crate::record::TrialRecord;
use crate::trial::{Outcome, Protocol, SCHEMA, Thp};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Builds one record.
pub struct Trial(TrialRecord);

impl Trial {
    /// A trial of the time protocol.
    pub fn time(grid: &str, arm: &str, block: u32) -> Trial {
        Trial(TrialRecord {
            schema: SCHEMA,
            trial: NEXT.fetch_add(1, Ordering::Relaxed),
            experiment: "synthetic".to_owned(),
            grid: grid.to_owned(),
            block,
            position: 0,
            arm: arm.to_owned(),
            workload: "walker".to_owned(),
            params: BTreeMap::new(),
            protocol: Protocol::Time,
            driver: "direct".to_owned(),
            seed: 1,
            thp: Thp::Off,
            memory_limit: None,
            outcome: Outcome::Ok,
            metrics: BTreeMap::new(),
            absent: BTreeMap::new(),
            series: BTreeMap::new(),
            files: Vec::new(),
            skipped: BTreeMap::new(),
            checksum_ops: None,
            checksum_contents: None,
            input_hash: None,
            receipt: None,
            environment: BTreeMap::new(),
            started_unix: 0,
            child_ms: 0,
        })
    }

    /// A trial of the census.
    pub fn census(grid: &str, arm: &str) -> Trial {
        let mut trial = Trial::time(grid, arm, 0);
        trial.0.protocol = Protocol::Census;
        trial
    }

    /// A trial of the memory protocol.
    pub fn memory(grid: &str, arm: &str) -> Trial {
        let mut trial = Trial::time(grid, arm, 0);
        trial.0.protocol = Protocol::Memory;
        trial
    }

    /// With a receipt that tells how the child had transparent huge pages.
    pub fn thp(mut self, child: &str, machine: &str) -> Trial {
        let facts = [("thp", child), ("thp-machine", machine)];
        self.0
            .receipt
            .get_or_insert_default()
            .facts
            .extend(facts.map(|(name, value)| (name.to_owned(), value.to_owned())));
        self
    }

    /// With a parameter.
    pub fn param(mut self, name: &str, value: &str) -> Trial {
        self.0.params.insert(name.to_owned(), value.to_owned());
        self
    }

    /// With a metric.
    pub fn metric(mut self, name: &str, value: u64) -> Trial {
        self.0.metrics.insert(name.to_owned(), value);
        self
    }

    /// With a metric that could not be had.
    pub fn absent(mut self, name: &str, why: &str) -> Trial {
        self.0.absent.insert(name.to_owned(), why.to_owned());
        self
    }

    /// The record of a trial that finished.
    pub fn ok(self) -> TrialRecord {
        self.0
    }

    /// The record of a trial that ended so.
    pub fn end(mut self, outcome: Outcome) -> TrialRecord {
        self.0.outcome = outcome;
        self.0
    }
}

/// Numbers the trials from 0 in their order.
pub fn number(records: &mut [TrialRecord]) {
    for (trial, record) in (0..).zip(records) {
        record.trial = trial;
    }
}
