//! The instructions and mispredicted branches of a census trial: the same trial once more, under callgrind, in a child of its own.
//!
//! Nothing else is measured there. What an arm does under valgrind must be what it does without it: the same receipt, the
//! same decisions, the same contents. An arm that is otherwise there has no instructions, with the reason.

use super::spawn::{self, Ended, Seen, Start};
use crate::probe::callgrind::{self, Counts};
use crate::record::TrialRecord;
use crate::trial::{ChildReport, Outcome, Params, Protocol, Receipt, TrialSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// valgrind runs a program some 20 to 60 times slower: a trial's time limit is so many times as long there.
const SLOWER: u64 = 60;

/// Everything that the second run needs.
pub(super) struct Again<'a> {
    /// valgrind, or why there is none.
    pub valgrind: &'a Result<std::path::PathBuf, String>,
    /// The child's binary.
    pub child: &'a Path,
    /// File that callgrind may write.
    pub profile: &'a Path,
    /// The child's whole environment, with what is preloaded: valgrind passes it on.
    pub environment: &'a BTreeMap<String, String>,
    /// The orders of the first run.
    pub spec: &'a TrialSpec,
    /// Reckons the limit at which a child is killed from the one at which it stops itself.
    pub hard_limit: fn(Duration, &Params) -> Duration,
}

/// Why a trial has no instructions.
pub(super) enum Missing {
    /// In words.
    Because(String),
    /// The user wants to stop.
    Interrupted,
}

impl Again<'_> {
    /// What callgrind counts in the measured region of the trial that `record` is of, which finished.
    ///
    /// # Errors
    /// [`Missing`].
    pub(super) fn count(&self, record: &TrialRecord) -> Result<Counts, Missing> {
        let because = |why: String| Missing::Because(why);
        let valgrind = self.valgrind.as_ref().map_err(|why| because(why.clone()))?;
        if self.spec.memory_limit.is_some() {
            return Err(because(
                "a memory limit would hold for valgrind, too: run without --memory-limit"
                    .to_owned(),
            ));
        }
        let spec = TrialSpec {
            // The driver does the call and nothing else.
            protocol: Protocol::Time,
            soft_limit_ms: self.spec.soft_limit_ms.saturating_mul(SLOWER),
            log_moves: 0,
            ..self.spec.clone()
        };
        let soft = Duration::from_millis(spec.soft_limit_ms);
        let start = Start {
            child: self.child,
            tracer: Some((valgrind, callgrind::arguments(self.profile))),
            environment: self.environment,
            spec: &spec,
            hard_limit: (self.hard_limit)(soft, &spec.params),
        };
        let seen = spawn::run(&start);
        let counted = callgrind::read_profile(self.profile);
        // There is none if it was killed.
        let _ = std::fs::remove_file(self.profile);
        let report = match seen {
            Err(why) => return Err(because(format!("cannot start valgrind: {why}"))),
            Ok(Seen { ended, .. }) => match ended {
                Ended::Reported(report) => report,
                Ended::Interrupted => return Err(Missing::Interrupted),
                Ended::Hung => return Err(because(late(&spec))),
                Ended::Garbled(why) => {
                    return Err(because(format!("valgrind cannot run it: {why}")));
                }
                Ended::Killed(signal, complaint) => {
                    return Err(because(format!(
                        "valgrind cannot run it: it was ended by signal {signal}{}{complaint}",
                        if complaint.is_empty() { "" } else { ": " }
                    )));
                }
            },
        };
        same_run(&report, record, &spec).map_err(because)?;
        counted.map_err(|why| because(why.to_string()))
    }
}

fn late(spec: &TrialSpec) -> String {
    let limit = crate::size::format_duration(Duration::from_millis(spec.soft_limit_ms));
    format!("it took longer than {limit} under valgrind: choose a smaller size or a longer timeout")
}

/// Whether what ran under valgrind is what `record` tells of.
fn same_run(report: &ChildReport, record: &TrialRecord, spec: &TrialSpec) -> Result<(), String> {
    match &report.outcome {
        Outcome::Ok => {}
        Outcome::TimedOut { .. } => return Err(late(spec)),
        Outcome::Failed { message, .. } => {
            return Err(format!("valgrind cannot run it: {message}"));
        }
        Outcome::Unavailable { why } => return Err(format!("valgrind cannot run it: {why}")),
        other => return Err(format!("valgrind cannot run it: {}", other.name())),
    }
    let Some(receipt) = &record.receipt else {
        return Err("there is no receipt to compare with".to_owned());
    };
    let differing = differences(&report.receipt, receipt);
    if !differing.is_empty() {
        return Err(format!(
            "it runs differently under valgrind: {}",
            differing.join("; ")
        ));
    }
    let sums = |ops: &Option<String>, contents: &Option<String>| (ops.clone(), contents.clone());
    if sums(&report.checksum_ops, &report.checksum_contents)
        != sums(&record.checksum_ops, &record.checksum_contents)
    {
        return Err("it did other work under valgrind: its checksums differ".to_owned());
    }
    Ok(())
}

/// What two receipts of an arm say differently, each in words.
fn differences(under: &Receipt, outside: &Receipt) -> Vec<String> {
    let mut found = Vec::new();
    for (under, outside) in [
        (&under.build, &outside.build),
        (&under.knobs, &outside.knobs),
        (&under.facts, &outside.facts),
    ] {
        let names: BTreeSet<&String> = under.keys().chain(outside.keys()).collect();
        for name in names {
            let told = |map: &BTreeMap<String, String>| {
                map.get(name)
                    .map_or_else(|| "not told".to_owned(), Clone::clone)
            };
            if under.get(name) != outside.get(name) {
                found.push(format!(
                    "{name} is {} there and {} otherwise",
                    told(under),
                    told(outside)
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_are_compared_by_what_they_tell() {
        let caches = |active: &str| Receipt {
            facts: [("per_cpu_caches".to_owned(), active.to_owned())].into(),
            ..Receipt::default()
        };
        assert!(differences(&caches("active"), &caches("active")).is_empty());
        assert_eq!(
            differences(&caches("off"), &caches("active")),
            ["per_cpu_caches is off there and active otherwise"]
        );
        assert_eq!(
            differences(&Receipt::default(), &caches("active")),
            ["per_cpu_caches is not told there and active otherwise"]
        );
    }
}
