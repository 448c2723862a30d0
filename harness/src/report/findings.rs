//! The table of claims.

use super::{Report, Table};
use crate::claims::{ClaimResult, Finding, Observed};
use crate::size;

/// At most so many values are shown for a claim; the rest is counted.
const SHOWN: usize = 6;

pub(super) fn table(report: &Report<'_>) -> Table {
    let claims = report.claims();
    let rows = claims
        .iter()
        .map(|claim| {
            vec![
                claim.id.clone(),
                format!("{} ({})", claim.finding, claim.source),
                observed(claim),
                claim.answer(),
            ]
        })
        .collect();
    let count = |of: fn(&ClaimResult) -> bool| claims.iter().filter(|claim| of(claim)).count();
    let notes = vec![format!(
        "{}: {} as expected, {} not as expected, {} not decidable.",
        size::counted(claims.len(), "claim"),
        count(|claim| claim.as_expected),
        count(ClaimResult::contradicted),
        count(|claim| matches!(claim.result, Finding::NotDecidable { .. }))
    )];
    let name = format!("{}.claims", report.experiment().id);
    let header = ["claim", "finding (source)", "observed", "answer"]
        .map(str::to_owned)
        .into();
    Table {
        name,
        title: "Claims".to_owned(),
        header,
        rows,
        notes,
    }
}

fn observed(claim: &ClaimResult) -> String {
    let values: Vec<&Observed> = claim
        .checks
        .iter()
        .flat_map(|check| &check.observed)
        .filter(|observed| observed.value.is_some())
        .collect();
    let mut lines: Vec<String> = values
        .iter()
        .take(SHOWN)
        .map(|o| format!("{} at {}: {}", o.arm, o.cell, o.text))
        .collect();
    if values.len() > SHOWN {
        lines.push(format!("and {} more", values.len() - SHOWN));
    }
    lines.join("\n")
}
