//! What a verification found, as tables.

use super::{State, Verified};
use crate::behaviour::{Behaviour, Refusal};
use crate::report::Table;
use crate::size;
use crate::trial::Outcome;
use std::collections::BTreeMap;

/// Every table, in the order in which they are shown.
pub fn all(arms: &[Verified]) -> Vec<Table> {
    let mut tables = vec![arms_table(arms)];
    if arms.iter().any(|arm| arm.behaviour.is_some()) {
        tables.extend([
            behaviour_table(arms),
            alignment_table(arms),
            usable_table(arms),
        ]);
    }
    tables.into_iter().map(Table::printable).collect()
}

fn table(name: &str, title: &str, header: &[&str], rows: Vec<Vec<String>>) -> Table {
    Table {
        name: format!("{}.{name}", super::ID),
        title: title.to_owned(),
        header: header.iter().map(|head| (*head).to_owned()).collect(),
        rows,
        notes: Vec::new(),
    }
}

/// One row an arm: what it comes to, and what is wrong.
fn arms_table(arms: &[Verified]) -> Table {
    let rows = arms.iter().map(|arm| {
        let state = match &arm.state {
            State::Sound => "sound",
            State::Broken => "BROKEN",
            State::Unavailable { .. } => "unavailable",
            State::NotVerified { .. } => "not verified",
        };
        vec![
            arm.arm.clone(),
            state.to_owned(),
            trials(arm),
            rules(arm),
            findings(arm),
        ]
    });
    let mut table = table(
        "arms",
        "What was verified",
        &[
            "arm",
            "state",
            "trials",
            "rules of the suite",
            "what there is to say",
        ],
        rows.collect(),
    );
    table.notes = arms.iter().filter_map(|arm| arm.note.clone()).fold(
        vec![
            "A trial is verified if every block held what was written to it, at every resize and free, and if its \
             checksums are those of the other arms."
                .to_owned(),
        ],
        |mut notes, note| {
            let note = format!("{note}.");
            if !notes.contains(&note) {
                notes.push(note);
            }
            notes
        },
    );
    table
}

fn trials(arm: &Verified) -> String {
    let counts = arm.trials;
    let parts: Vec<String> = [
        (counts.verified, "verified"),
        (counts.failed, "failed"),
        (counts.unavailable, "unavailable"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    if parts.is_empty() {
        "none".to_owned()
    } else {
        parts.join(", ")
    }
}

fn rules(arm: &Verified) -> String {
    if arm.suite_failure.is_some() {
        return "crashed".to_owned();
    }
    if arm.suite.is_empty() {
        return "not asked".to_owned();
    }
    let broken = arm.complaints().count();
    let kept = format!("{} kept", arm.suite.len() - broken);
    if broken == 0 {
        kept
    } else {
        format!("{kept}, {broken} BROKEN")
    }
}

/// Failures of trials that are told one by one; of more, the number.
const TOLD: usize = 3;

fn findings(arm: &Verified) -> String {
    let mut said = Vec::new();
    match &arm.state {
        State::Unavailable { why } | State::NotVerified { why } => said.push(why.clone()),
        State::Sound | State::Broken => {}
    }
    said.extend(arm.complaints().map(|how| format!("breaks {how}")));
    said.extend(arm.suite_failure.clone());
    said.extend(arm.behaviour_failure.clone());
    for failure in arm.failures.iter().take(TOLD) {
        let params: Vec<String> = failure
            .params
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let how = match &failure.outcome {
            Outcome::Failed { message, .. } => message.clone(),
            Outcome::WrongChecksum { message } => format!("wrong checksum: {message}"),
            Outcome::TimedOut { after_ms } => format!("not done after {after_ms} ms"),
            other => other.name().to_owned(),
        };
        said.push(format!("{} {}: {how}", failure.workload, params.join(" ")));
    }
    if arm.failures.len() > TOLD {
        said.push(format!("and {} more", arm.failures.len() - TOLD));
    }
    said.join("\n")
}

/// Arms whose behaviour was observed.
fn observed(arms: &[Verified]) -> impl Iterator<Item = (&str, &Behaviour)> {
    arms.iter()
        .filter_map(|arm| Some((arm.arm.as_str(), arm.behaviour.as_ref()?)))
}

/// What each allocator does where they differ.
fn behaviour_table(arms: &[Verified]) -> Table {
    let yes = |is| if is { "yes" } else { "no" }.to_owned();
    let rows = observed(arms).map(|(arm, seen)| {
        vec![
            arm.to_owned(),
            seen.malloc_zero.clone(),
            to_nothing(seen),
            seen.realloc_null
                .clone()
                .unwrap_or_else(|| NO_SUCH.to_owned()),
            seen.calloc_overflow.clone(),
            seen.calloc_of_freed
                .clone()
                .unwrap_or_else(|| "no contents".to_owned()),
            errno(&seen.refusals),
            seen.errno_of_free.clone(),
            aligned(seen),
            yes(seen.sized_free),
            yes(seen.trim),
        ]
    });
    let mut table = table(
        "behaviour",
        "What each allocator does",
        &[
            "arm",
            "malloc(0)",
            "realloc(p, 0)",
            "realloc(NULL, n)",
            "calloc overflow",
            "calloc after free",
            "errno of a refusal",
            "errno of free",
            "aligned up to",
            "sized free",
            "trim",
        ],
        rows.collect(),
    );
    table.notes = [
        "Observed by calls of the arm's own entry points, each arm in a fresh process. realloc(p, 0) is asked of the \
         allocator's own function: no workload calls it.",
        "calloc after free: `zero` where blocks that had been filled were handed out again; `zero, never reused` where \
         none was.",
        "Aligned blocks were asked for up to 64MiB; the arm's own entry point for them may be that of what lies beneath.",
    ]
    .map(str::to_owned)
    .into();
    if observed(arms).any(|(_, seen)| seen.realloc_null.is_none()) {
        table.notes.push(format!(
            "{NO_SUCH}: the arm has no entry point that may be called so, as Rust's GlobalAlloc, whose layouts are never \
             empty."
        ));
    }
    table
}

/// What stands for a question that an arm's entry points do not allow.
const NO_SUCH: &str = "not asked";

fn to_nothing(seen: &Behaviour) -> String {
    let answers = &seen.realloc_zero;
    match answers.first() {
        Some(first) if answers.iter().all(|other| other.answer == first.answer) => {
            first.answer.clone()
        }
        _ => answers
            .iter()
            .map(|one| format!("of {} bytes: {}", one.size, one.answer))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

/// By size: the commonest answer, and who gave another.
fn errno(refusals: &[Refusal]) -> String {
    // The two sizes that are asked for: more than the address space, and more than a signed number.
    let (huge, absurd): (Vec<_>, Vec<_>) =
        refusals.iter().partition(|refusal| refusal.size < 1 << 63);
    let (huge, absurd) = (errno_of(&huge), errno_of(&absurd));
    if huge == absurd {
        huge
    } else {
        format!("{huge}\nfrom 2^63 on {absurd}")
    }
}

fn errno_of(refusals: &[&Refusal]) -> String {
    let mut calls: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for refusal in refusals {
        let answer = refusal.errno.as_deref().unwrap_or("NOT REFUSED");
        calls.entry(answer).or_default().push(&refusal.call);
    }
    let mut answers: Vec<(&str, Vec<&str>)> = calls.into_iter().collect();
    answers.sort_by_key(|(_, calls)| std::cmp::Reverse(calls.len()));
    let parts = answers.iter().enumerate().map(|(i, (answer, calls))| {
        if i == 0 {
            (*answer).to_owned()
        } else {
            format!("{}: {answer}", calls.join(", "))
        }
    });
    parts.collect::<Vec<_>>().join("; ")
}

fn aligned(seen: &Behaviour) -> String {
    let up_to = size::format_bytes(seen.aligned_up_to as u64);
    match &seen.aligned_failure {
        None => up_to,
        Some(failure) => format!("{up_to}; {failure}"),
    }
}

/// Sizes that have a column; the document has them all.
const SHOWN: [usize; 13] = [
    1,
    4,
    8,
    16,
    24,
    32,
    48,
    64,
    100,
    512,
    4096,
    32 << 10,
    1 << 20,
];

fn by_size(
    name: &str,
    title: &str,
    arms: &[Verified],
    cell: impl Fn(&Behaviour, usize) -> String,
) -> Table {
    let mut header = vec!["arm".to_owned()];
    header.extend(SHOWN.map(|size| size::format_bytes(size as u64)));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let rows = observed(arms).map(|(arm, seen)| {
        let cells = SHOWN.map(|size| cell(seen, size));
        [arm.to_owned()].into_iter().chain(cells).collect()
    });
    table(name, title, &header, rows.collect())
}

fn alignment_table(arms: &[Verified]) -> Table {
    let cell = |seen: &Behaviour, size| {
        let found = seen.alignment.iter().find(|one| one.size == size);
        found.map_or_else(|| "-".to_owned(), |one| one.alignment.to_string())
    };
    let mut table = by_size(
        "alignment",
        "Alignment of blocks from malloc, in bytes, by their size",
        arms,
        cell,
    );
    table.notes = vec![
        "The largest power of two that divides every address of 64 blocks at least, among blocks of other sizes: what \
         was seen, which an allocator need not promise."
            .to_owned(),
    ];
    table
}

fn usable_table(arms: &[Verified]) -> Table {
    let cell = |seen: &Behaviour, size| {
        let found = seen.usable.iter().find(|one| one.size == size);
        match found.and_then(|one| one.least.zip(one.most)) {
            None => "-".to_owned(),
            Some((least, most)) if least == most => least.to_string(),
            Some((least, most)) => format!("{least} to {most}"),
        }
    };
    let mut table = by_size(
        "usable",
        "Usable bytes of blocks from malloc, by the size asked for",
        arms,
        cell,
    );
    table.notes = vec![
        "As the allocator tells, smallest and largest of 8 blocks; -: it does not tell.".to_owned(),
    ];
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errno_is_told_by_the_commonest_answer() {
        let refusal = |call: &str, size, errno: Option<&str>| Refusal {
            call: call.to_owned(),
            size,
            errno: errno.map(str::to_owned),
        };
        let same = [
            refusal("malloc", 1 << 47, Some("ENOMEM")),
            refusal("malloc", usize::MAX, Some("ENOMEM")),
        ];
        assert_eq!(errno(&same), "ENOMEM");
        let others = [
            refusal("malloc", 1 << 47, Some("ENOMEM")),
            refusal("malloc", usize::MAX, Some("untouched")),
            refusal("calloc", usize::MAX, Some("untouched")),
            refusal("aligned", usize::MAX, None),
        ];
        assert_eq!(
            errno(&others),
            "ENOMEM\nfrom 2^63 on untouched; aligned: NOT REFUSED"
        );
    }
}
