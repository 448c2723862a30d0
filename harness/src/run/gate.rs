//! The gate before a library of the user's: the behaviour suite, once a run, in a process of its own.
//!
//! A library that crashes in it, or that breaks what every figure rests on (live blocks apart, contents kept), is
//! refused. One that breaks another rule is measured and marked with it: in the receipt of every record, and under
//! every table.

use super::spawn::{self, Ended};
use crate::arms::Arm;
use crate::trial::{SUITE_BREAKS, SuiteReport, SuiteRow};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// It takes about a second under a sound allocator.
const LIMIT: Duration = Duration::from_secs(60);

/// What the gate says of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passage {
    /// Measured, with this fact in its receipts.
    Open(String),
    /// Not measured, and why.
    Refused(String),
    /// The user wants to stop.
    Interrupted,
}

/// Asks the suite of the library that `arm` names, in its child with `environment`.
pub fn ask(arm: &Arm, child: &Path, environment: &BTreeMap<String, String>) -> Passage {
    let refused = |why: String| Passage::Refused(format!("refused: {why}"));
    match spawn::suite(child, environment, LIMIT) {
        Ok(Ended::Reported(report)) => judge(*report),
        Ok(Ended::Interrupted) => Passage::Interrupted,
        Ok(Ended::Hung) => refused(format!(
            "{} hangs in the behaviour suite (over {} s)",
            arm.label(),
            LIMIT.as_secs()
        )),
        Ok(Ended::Killed(signal, last)) => refused(format!(
            "in the behaviour suite {}",
            super::killed(signal, &last)
        )),
        Ok(Ended::Garbled(message)) => refused(message),
        Err(why) => refused(format!("cannot start {}: {why}", arm.def.child)),
    }
}

fn judge(report: SuiteReport) -> Passage {
    if report.source_hash != crate::SOURCE_HASH {
        return Passage::Refused("stale child: rebuild (cargo build --release)".to_owned());
    }
    if let Some(why) = report.refused {
        return Passage::Refused(why);
    }
    let broken = |row: &SuiteRow| {
        let how = row.broken.as_ref()?;
        Some(format!("\"{}\": {how}", row.rule))
    };
    let essential = report.rows.iter().filter(|row| row.essential);
    if let Some(first) = essential.clone().find_map(broken) {
        return Passage::Refused(format!(
            "refused: it breaks a rule that every figure rests on, {first}"
        ));
    }
    if essential.count() == 0 {
        return Passage::Refused("refused: the behaviour suite was not asked".to_owned());
    }
    let flaws: Vec<String> = report.rows.iter().filter_map(broken).collect();
    Passage::Open(if flaws.is_empty() {
        format!("keeps all {} rules", report.rows.len())
    } else {
        format!("{SUITE_BREAKS} {}", flaws.join("; "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(rows: &[(bool, Option<&str>)]) -> SuiteReport {
        SuiteReport {
            source_hash: crate::SOURCE_HASH.to_owned(),
            refused: None,
            rows: rows
                .iter()
                .map(|(essential, broken)| SuiteRow {
                    rule: "a rule".to_owned(),
                    essential: *essential,
                    broken: broken.map(str::to_owned),
                })
                .collect(),
        }
    }

    #[test]
    fn what_is_broken_decides() {
        let sound = judge(report(&[(true, None), (false, None)]));
        assert_eq!(sound, Passage::Open("keeps all 2 rules".to_owned()));
        let flawed = judge(report(&[(true, None), (false, Some("at 8"))]));
        assert_eq!(flawed, Passage::Open("BREAKS \"a rule\": at 8".to_owned()));
        let lossy = judge(report(&[(true, Some("byte 3")), (false, None)]));
        assert!(matches!(lossy, Passage::Refused(why) if why.contains("byte 3")));
    }

    #[test]
    fn silence_is_no_passage() {
        assert!(matches!(judge(report(&[])), Passage::Refused(_)));
        let mut stale = report(&[(true, None)]);
        stale.source_hash = "0".to_owned();
        assert!(matches!(judge(stale), Passage::Refused(why) if why.contains("stale")));
    }
}
