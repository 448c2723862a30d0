//! The gate before a library of the user's: the behaviour suite, once a run, in a process of its own.
//!
//! A library that crashes in it, or that breaks what every figure rests on (live blocks apart, contents kept), is
//! refused. One that breaks another rule is measured and marked with it: in the receipt of every record, and under
//! every table.

use super::inquiry::{self, Asked};
use crate::arms::Arm;
use crate::trial::{SUITE_BREAKS, SuiteRow};
use std::collections::BTreeMap;
use std::path::Path;

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
    judge(inquiry::suite(arm, child, environment))
}

fn judge(asked: Asked<Vec<SuiteRow>>) -> Passage {
    let rows = match asked {
        Asked::Told(rows) => rows,
        Asked::Broke(how) => return Passage::Refused(format!("refused: {how}")),
        Asked::Unavailable(why) => return Passage::Refused(why),
        Asked::Interrupted => return Passage::Interrupted,
    };
    let mut essential = rows.iter().filter(|row| row.essential);
    if let Some(first) = essential.find_map(SuiteRow::complaint) {
        return Passage::Refused(format!(
            "refused: it breaks a rule that every figure rests on, {first}"
        ));
    }
    let flaws: Vec<String> = rows.iter().filter_map(SuiteRow::complaint).collect();
    Passage::Open(if flaws.is_empty() {
        format!("keeps all {} rules", rows.len())
    } else {
        format!("{SUITE_BREAKS} {}", flaws.join("; "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(bool, Option<&str>)]) -> Asked<Vec<SuiteRow>> {
        let row = |(essential, broken): &(bool, Option<&str>)| SuiteRow {
            rule: "a rule".to_owned(),
            essential: *essential,
            broken: broken.map(str::to_owned),
            differs: None,
        };
        Asked::Told(rows.iter().map(row).collect())
    }

    #[test]
    fn what_is_broken_decides() {
        let sound = judge(rows(&[(true, None), (false, None)]));
        assert_eq!(sound, Passage::Open("keeps all 2 rules".to_owned()));
        let flawed = judge(rows(&[(true, None), (false, Some("at 8"))]));
        assert_eq!(flawed, Passage::Open("BREAKS \"a rule\": at 8".to_owned()));
        let lossy = judge(rows(&[(true, Some("byte 3")), (false, None)]));
        assert!(matches!(lossy, Passage::Refused(why) if why.contains("byte 3")));
        let crashed = judge(Asked::Broke("in the suite".to_owned()));
        assert!(matches!(crashed, Passage::Refused(why) if why.starts_with("refused: in the")));
    }
}
