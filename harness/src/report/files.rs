//! The table of files: for a walk over a real directory, the largest files one by one. The cost of a walk is in them.

use super::{Table, is_second};
use crate::record::{FileRow, TrialRecord};
use crate::size;
use crate::stats::sample::Sample;
use crate::trial::Protocol;
use std::collections::BTreeMap;

/// So many files are shown.
const LARGEST: usize = 10;

/// One table for each grid and root that was walked: wall time of each arm for the largest files.
pub(super) fn tables(experiment: &str, records: &[TrialRecord]) -> Vec<Table> {
    let mut walks: BTreeMap<(&str, &str), Vec<&TrialRecord>> = BTreeMap::new();
    for record in records {
        if let Some(root) = record
            .params
            .get("root")
            .filter(|_| record.protocol == Protocol::Time)
        {
            walks.entry((&record.grid, root)).or_default().push(record);
        }
    }
    walks
        .iter()
        .filter_map(|((grid, root), records)| walk(experiment, grid, root, records))
        .collect()
}

/// `None` if no trial has a row.
fn walk(experiment: &str, grid: &str, root: &str, records: &[&TrialRecord]) -> Option<Table> {
    let mut sizes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut arms: Vec<&str> = Vec::new();
    for record in records.iter().filter(|record| !is_second(&record.arm)) {
        if !arms.contains(&record.arm.as_str()) && !record.files.is_empty() {
            arms.push(&record.arm);
        }
        sizes.extend(
            record
                .files
                .iter()
                .map(|row| (row.path.as_str(), (row.bytes, row.lines))),
        );
    }
    arms.sort_unstable();
    let mut largest: Vec<(&str, (u64, u64))> = sizes.into_iter().collect();
    let all = largest.len();
    largest.sort_by(|a, b| b.1.0.cmp(&a.1.0).then(a.0.cmp(b.0)));
    largest.truncate(LARGEST);
    if largest.is_empty() {
        return None;
    }
    let mut header = ["file", "size", "lines"].map(str::to_owned).to_vec();
    header.extend(arms.iter().map(|arm| (*arm).to_owned()));
    let rows = largest
        .iter()
        .map(|(path, (bytes, lines))| {
            let mut row = vec![
                (*path).to_owned(),
                size::approx_bytes(*bytes),
                lines.to_string(),
            ];
            row.extend(arms.iter().map(|arm| {
                let of_arm = records.iter().filter(|record| record.arm == *arm);
                let rows: Vec<&FileRow> = of_arm
                    .flat_map(|record| &record.files)
                    .filter(|row| row.path == *path)
                    .collect();
                time(&rows)
            }));
            row
        })
        .collect();
    let mut notes = vec![format!(
        "The {} largest of {all} files; median wall time over blocks.",
        largest.len()
    )];
    let mut skipped: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, count) in records.iter().flat_map(|record| &record.skipped) {
        let most = skipped.entry(reason).or_default();
        *most = (*most).max(*count);
    }
    if !skipped.is_empty() {
        let skipped: Vec<String> = skipped.iter().map(|(k, v)| format!("{v} {k}")).collect();
        notes.push(format!(
            "Left out, the most of any trial: {}.",
            skipped.join(", ")
        ));
    }
    let name = format!("{experiment}.{grid}.files");
    Some(Table {
        name,
        title: format!("{grid}: file by file under {root}"),
        header,
        rows,
        notes,
    })
}

/// Median time of one file under one arm, or how it ended where it did not get through.
fn time(rows: &[&FileRow]) -> String {
    if let Some(row) = rows.iter().find(|row| row.ended != "ok") {
        return format!("{} at {}", row.ended, size::approx_bytes(row.reached_bytes));
    }
    match Sample::new(rows.iter().map(|row| row.wall_ns as f64)) {
        Ok(sample) => size::approx_seconds(sample.median()),
        Err(_) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Trial;

    fn row(path: &str, bytes: u64, wall_ns: u64, ended: &str) -> FileRow {
        FileRow {
            path: path.to_owned(),
            bytes,
            lines: bytes / 70,
            ended: ended.to_owned(),
            reached_bytes: bytes / 2,
            wall_ns,
            realloc_moves: None,
            moved_bytes: None,
        }
    }

    #[test]
    fn the_largest_come_first() {
        let walk = |arm: &str, block, rows: Vec<FileRow>| {
            let mut record = Trial::time("g", arm, block).param("root", "/texts").ok();
            record.files = rows;
            record.skipped.insert("fifo".to_owned(), 2);
            record
        };
        let records = [
            walk(
                "system",
                0,
                vec![row("a", 70, 1000, "ok"), row("b", 7000, 3_000_000, "ok")],
            ),
            walk(
                "system",
                1,
                vec![row("a", 70, 3000, "ok"), row("b", 7000, 5_000_000, "ok")],
            ),
            walk("system#2", 0, vec![row("a", 70, 1000, "ok")]),
            walk(
                "slow",
                0,
                vec![row("a", 70, 1000, "ok"), row("b", 7000, 9, "timed-out")],
            ),
        ];
        let tables = tables("e", &records);
        assert_eq!(tables.len(), 1);
        assert_eq!(
            tables[0].header,
            ["file", "size", "lines", "slow", "system"]
        );
        assert_eq!(
            tables[0].rows[0],
            ["b", "6.84 KiB", "100", "timed-out at 3.42 KiB", "4.00 ms"]
        );
        assert_eq!(tables[0].rows[1], ["a", "70 B", "1", "1.00 us", "2.00 us"]);
        assert!(
            tables[0].notes[1].contains("2 fifo"),
            "{:?}",
            tables[0].notes
        );
    }

    #[test]
    fn a_corpus_is_no_walk() {
        assert!(tables("e", &[Trial::time("g", "system", 0).ok()]).is_empty());
    }
}
