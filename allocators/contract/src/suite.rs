//! The behaviour suite: what every arm is asked before its figures are believed.
//!
//! Each rule is asked of the heap itself, through [`Heap`], and answered in words. What the C standard leaves open is
//! recorded, not judged; [`behaviour`] looks closer at that. A heap without contents (`Capabilities::contents`) is asked only the rules that need none.

pub mod behaviour;
mod identity;
mod raw;
mod rules;
mod stream;

pub use identity::{Identity, alone, identity};
pub use stream::{Failure, random_stream};

use crate::Heap;
use core::fmt;

/// How a heap answered one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It keeps the rule.
    Held,
    /// It does not; the text says where.
    Broken(String),
    /// It does what the standard allows and others do otherwise, or has no such call; the text says what.
    Differs(String),
}

/// One rule and the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The rule, as a phrase.
    pub rule: &'static str,
    /// Without it no figure means anything: live blocks lie apart and keep their contents.
    pub essential: bool,
    /// The answer.
    pub verdict: Verdict,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Verdict::Held => write!(f, "held     {}", self.rule),
            Verdict::Broken(how) => write!(f, "BROKEN   {}: {how}", self.rule),
            Verdict::Differs(how) => write!(f, "differs  {}: {how}", self.rule),
        }
    }
}

/// One rule: its name, whether it needs contents, and how it is asked.
struct Rule<H> {
    name: &'static str,
    contents: bool,
    essential: bool,
    ask: fn(&H) -> Verdict,
}

/// Asks `heap` everything, in order. Takes about a second, and half a gibibyte under a heap that never frees.
#[must_use]
pub fn run<H: Heap>(heap: &H) -> Vec<Row> {
    run_telling(heap, |_| ())
}

/// As [`run`]; `telling` is called with each rule before it is asked, so that somebody knows where a heap crashed.
#[must_use]
pub fn run_telling<H: Heap>(heap: &H, mut telling: impl FnMut(&'static str)) -> Vec<Row> {
    let rule = |name, contents, ask| Rule::<H> {
        name,
        contents,
        essential: false,
        ask,
    };
    let essential = |name, ask| Rule::<H> {
        name,
        contents: true,
        essential: true,
        ask,
    };
    [
        rule(
            "blocks of no bytes are null or have addresses of their own",
            false,
            rules::no_bytes,
        ),
        rule(
            "a size that cannot be gives null",
            false,
            rules::impossible_sizes,
        ),
        rule(
            "a refusal sets errno to ENOMEM",
            false,
            rules::refusal_sets_errno,
        ),
        rule(
            "calloc refuses a product that overflows",
            false,
            rules::calloc_overflow,
        ),
        essential(
            "a realloc that fails leaves the block as it was",
            rules::failed_realloc,
        ),
        rule("free keeps errno", false, rules::free_keeps_errno),
        rule(
            "every size is aligned for any C type of that size",
            false,
            rules::natural_alignment,
        ),
        rule(
            "aligned blocks are aligned, and keep their contents",
            true,
            rules::asked_alignment,
        ),
        rule(
            "aligned blocks can be reallocated",
            true,
            rules::realloc_of_aligned,
        ),
        rule(
            "calloc gives zeros where there was something else",
            true,
            rules::calloc_zeroes,
        ),
        essential(
            "realloc keeps contents across size classes",
            rules::realloc_keeps_contents,
        ),
        rule(
            "the usable size is at least the requested one, and usable",
            true,
            rules::usable_is_usable,
        ),
        essential(
            "many live blocks do not overlap",
            rules::live_blocks_are_apart,
        ),
        rule(
            "a sized free is sound after malloc, realloc and aligned",
            true,
            rules::sized_free,
        ),
        rule(
            "trim leaves live blocks alone",
            true,
            rules::trim_is_harmless,
        ),
        essential(
            "a random stream of 20,000 operations agrees with the shadow model",
            stream::rule,
        ),
    ]
    .into_iter()
    .map(|rule| {
        telling(rule.name);
        Row {
            rule: rule.name,
            essential: rule.essential,
            verdict: if rule.contents && !H::CAPABILITIES.contents {
                Verdict::Differs("this heap keeps no contents, by definition".into())
            } else {
                (rule.ask)(heap)
            },
        }
    })
    .collect()
}

/// The rows that are broken, one a line; empty if there are none.
#[must_use]
pub fn broken(rows: &[Row]) -> String {
    rows.iter()
        .filter(|row| matches!(row.verdict, Verdict::Broken(_)))
        .map(|row| format!("{row}\n"))
        .collect()
}
