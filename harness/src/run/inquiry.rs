//! What is asked of an arm beside trials: the behaviour suite, and what its heap does where allocators differ. Each
//! time in a process of its own.

use super::spawn::{self, Ended};
use crate::arms::Arm;
use crate::behaviour::Behaviour;
use crate::trial::{Answers, Inquiry, Receipt, SuiteRow};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The suite takes about a second under a sound allocator.
const LIMIT: Duration = Duration::from_secs(60);

/// What came of an inquiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked<T> {
    /// The answers.
    Told(T),
    /// The heap could not be asked here, and why.
    Unavailable(String),
    /// The heap was asked, and crashed, hung or said nothing that can be read.
    Broke(String),
    /// The user wants to stop.
    Interrupted,
}

/// Has the child in the file `child` take the behaviour suite.
pub fn suite(
    arm: &Arm,
    child: &Path,
    environment: &BTreeMap<String, String>,
) -> Asked<Vec<SuiteRow>> {
    let option = crate::child::suite::SUITE;
    told(
        inquire(arm, child, environment, option),
        "the behaviour suite",
        |answers| (!answers.rows.is_empty()).then_some(answers.rows),
    )
}

/// Has the child in the file `child` observe its heap where allocators differ.
pub fn behaviour(
    arm: &Arm,
    child: &Path,
    environment: &BTreeMap<String, String>,
) -> Asked<(Behaviour, Receipt)> {
    let option = crate::child::suite::BEHAVIOUR;
    told(
        inquire(arm, child, environment, option),
        "the questions on behaviour",
        |answers| answers.behaviour.zip(answers.receipt),
    )
}

fn told<T>(
    asked: Asked<Answers>,
    what: &str,
    wanted: impl FnOnce(Answers) -> Option<T>,
) -> Asked<T> {
    match asked {
        Asked::Told(answers) => match wanted(answers) {
            Some(answer) => Asked::Told(answer),
            None => Asked::Broke(format!(
                "to {what} there was no answer: a small request was refused, or a second process"
            )),
        },
        Asked::Unavailable(why) => Asked::Unavailable(why),
        Asked::Broke(how) => Asked::Broke(format!("in {what} {how}")),
        Asked::Interrupted => Asked::Interrupted,
    }
}

fn inquire(
    arm: &Arm,
    child: &Path,
    environment: &BTreeMap<String, String>,
    option: &str,
) -> Asked<Answers> {
    let inquiry = Inquiry {
        source_hash: crate::SOURCE_HASH.to_owned(),
        arm: arm.id(),
        knobs: arm.knobs.clone(),
    };
    match spawn::inquiry(child, environment, option, &inquiry, LIMIT) {
        Ok(Ended::Reported(answers)) => judge(*answers),
        Ok(Ended::Interrupted) => Asked::Interrupted,
        Ok(Ended::Hung) => Asked::Broke(format!(
            "{} hangs (over {} s)",
            arm.label(),
            LIMIT.as_secs()
        )),
        Ok(Ended::Killed(signal, last)) => Asked::Broke(super::killed(signal, &last)),
        Ok(Ended::Garbled(message)) => Asked::Broke(message),
        Err(why) => Asked::Unavailable(format!("cannot start {}: {why}", arm.home().child)),
    }
}

fn judge(answers: Answers) -> Asked<Answers> {
    if answers.source_hash != crate::SOURCE_HASH {
        return Asked::Unavailable("stale child: rebuild (cargo build --release)".to_owned());
    }
    match answers.refused {
        Some(why) => Asked::Unavailable(why),
        None => Asked::Told(answers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(source_hash: &str, refused: Option<&str>) -> Answers {
        Answers {
            source_hash: source_hash.to_owned(),
            refused: refused.map(str::to_owned),
            ..Answers::default()
        }
    }

    #[test]
    fn silence_is_no_answer() {
        let stale = judge(answers("0", None));
        assert!(matches!(stale, Asked::Unavailable(why) if why.contains("stale")));
        let absent = judge(answers(crate::SOURCE_HASH, Some("not here")));
        assert_eq!(absent, Asked::Unavailable("not here".to_owned()));
        let silent = judge(answers(crate::SOURCE_HASH, None));
        let rows = told(silent, "the suite", |answers| answers.behaviour);
        assert!(matches!(rows, Asked::Broke(_)));
    }
}
