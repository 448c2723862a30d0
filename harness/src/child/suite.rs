//! What a heap is like, asked in a process of its own: a heap that crashes over it takes nothing else along.
//!
//! A child that is called with `--suite` or `--behaviour` reads an [`Inquiry`] from standard input and writes
//! [`Answers`] to standard output, both a line of JSON. Each question is named on standard error before it is asked, on a
//! line that ends when it is answered: so the last line tells where a heap crashed, and what the C library said of it.

use super::{answer, receipt_of, settle_alone};
use crate::SOURCE_HASH;
use crate::behaviour::Behaviour;
use crate::trial::{Answers, Inquiry, SuiteRow};
use contract::suite::{self, Row, Verdict, behaviour};
use contract::{Arm, Heap, Refused};

/// What a child is called with to take the behaviour suite.
pub const SUITE: &str = "--suite";
/// What a child is called with to have its heap observed where allocators differ.
pub const BEHAVIOUR: &str = "--behaviour";

/// How the answers are had from a heap of the arm's type.
pub(super) type Ask = fn(&Inquiry, &str) -> Answers;

/// Opens the arm and asks it what `option` says.
pub(super) fn ask<A: Arm>(inquiry: &Inquiry, option: &str) -> Answers {
    let mut answers = Answers {
        source_hash: SOURCE_HASH.to_owned(),
        ..Answers::default()
    };
    if inquiry.source_hash != SOURCE_HASH {
        // The one who asked sees it by the hash.
        return answers;
    }
    match settle_alone().map(|()| A::open(&inquiry.arm, &inquiry.knobs)) {
        Ok(Ok(heap)) if option == SUITE => {
            answers.rows = suite::run_telling(&heap, |rule| tell("rule", rule))
                .into_iter()
                .map(row)
                .collect();
        }
        Ok(Ok(heap)) => {
            answers.behaviour = observed(&heap);
            answers.receipt = Some(receipt_of(&heap));
        }
        Ok(Err(Refused::Unavailable(why) | Refused::Knob(why))) | Err(why) => {
            answers.refused = Some(why);
        }
    }
    eprintln!();
    answers
}

fn observed<H: Heap>(heap: &H) -> Option<Behaviour> {
    behaviour::observe(heap, |question| tell("question", question)).map(Behaviour::from)
}

fn tell(what: &str, question: &str) {
    eprint!("\nat the {what} \"{question}\" ");
}

/// Answers the inquiry on standard input, if the child holds the arm that it names.
pub(super) fn main(held: impl Fn(&str) -> Option<Ask>, option: &str) -> Result<(), String> {
    let inquiry: Inquiry = super::orders()?;
    let ask = held(&inquiry.arm)
        .ok_or_else(|| format!("this child does not hold the arm {}", inquiry.arm))?;
    answer(&ask(&inquiry, option))
}

fn row(asked: Row) -> SuiteRow {
    let (broken, differs) = match asked.verdict {
        Verdict::Broken(how) => (Some(how), None),
        Verdict::Differs(how) => (None, Some(how)),
        Verdict::Held => (None, None),
    };
    SuiteRow {
        rule: asked.rule.to_owned(),
        essential: asked.essential,
        broken,
        differs,
    }
}
