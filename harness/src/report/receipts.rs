//! The table of arms: who was measured, as the allocators themselves say.

use super::{Report, Table, is_second};
use std::collections::BTreeMap;

/// A version is cut here; the whole stands in the records.
const VERSION: usize = 40;

pub(super) fn table(report: &Report<'_>) -> Table {
    let receipts = &report.summary().receipts;
    let list = |pairs: &BTreeMap<String, String>| {
        pairs
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let rows = receipts
        .iter()
        .filter(|(arm, _)| !is_second(arm))
        .map(|(arm, receipt)| {
            let version: String = receipt.version.chars().take(VERSION).collect();
            vec![
                arm.clone(),
                receipt.allocator.clone(),
                version,
                list(&receipt.knobs),
                list(&receipt.facts),
            ]
        })
        .collect();
    let header = [
        "arm",
        "allocator",
        "version",
        "knobs as read back",
        "facts read back",
    ];
    Table {
        name: format!("{}.arms", report.experiment().id),
        title: "Who was measured".to_owned(),
        header: header.map(str::to_owned).into(),
        rows,
        notes: Vec::new(),
    }
}
