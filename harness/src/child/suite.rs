//! The behaviour suite in a process of its own: a heap that crashes in it takes nothing else along.

use super::{answer, settle_alone};
use crate::SOURCE_HASH;
use crate::trial::{SuiteReport, SuiteRow};
use contract::suite::{Row, Verdict};
use contract::{Arm, Refused, suite};
use std::process::ExitCode;

/// What a child is called with to take the suite.
pub const OPTION: &str = "--suite";

/// Opens `arm` and asks it everything. Each rule is named on standard error before it is asked, on a line that ends
/// when it is answered: so the last line tells where a heap crashed, and what the C library said of it. The answers go to standard output as one JSON document.
pub fn main<A: Arm>(arm: &str) -> ExitCode {
    let mut report = SuiteReport {
        source_hash: SOURCE_HASH.to_owned(),
        ..SuiteReport::default()
    };
    match settle_alone().map(|()| A::open(arm, &[])) {
        Ok(Ok(heap)) => {
            let rows = suite::run_telling(&heap, |rule| eprint!("\nat the rule \"{rule}\" "));
            eprintln!();
            report.rows = rows.into_iter().map(row).collect();
        }
        Ok(Err(Refused::Unavailable(why) | Refused::Knob(why))) | Err(why) => {
            report.refused = Some(why);
        }
    }
    match answer(&report) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => super::refuse(&why),
    }
}

fn row(asked: Row) -> SuiteRow {
    SuiteRow {
        rule: asked.rule.to_owned(),
        essential: asked.essential,
        broken: match asked.verdict {
            Verdict::Broken(how) => Some(how),
            Verdict::Held | Verdict::Differs(_) => None,
        },
    }
}
