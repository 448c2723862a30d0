//! The tables of files: for a walk over a real directory, the largest files one by one. The cost of a walk is in them.

use super::{Table, View, is_second, note_on_locking, params_text};
use crate::metric;
use crate::record::TrialRecord;
use crate::size::{self, counted, three_digits};
use crate::stats::sample::Sample;
use crate::trial::{FileRow, Params, Protocol};
use std::collections::BTreeMap;

/// So many files are shown.
const LARGEST: usize = 10;

/// What was walked, in sentences, by grid and protocol.
pub(super) type Walks = BTreeMap<(String, Protocol), Vec<String>>;

/// The records of trials that walked a real directory, with its root.
fn walked(records: &[TrialRecord]) -> impl Iterator<Item = (&TrialRecord, &str)> {
    records
        .iter()
        .filter_map(|record| Some((record, record.params.get("root")?.as_str())))
}

/// What was read and what was left out under each root. Arms see the same directory, but one that is stopped does not
/// see all of it: the most of any trial is told.
pub(super) fn walks(records: &[TrialRecord]) -> Walks {
    let mut roots: BTreeMap<(&str, Protocol, &str), Vec<&TrialRecord>> = BTreeMap::new();
    for (record, root) in walked(records) {
        let key = (record.grid.as_str(), record.protocol, root);
        roots.entry(key).or_default().push(record);
    }
    let mut walks = Walks::new();
    for ((grid, protocol, root), records) in roots {
        let most = |of: fn(&TrialRecord) -> u64| records.iter().map(|record| of(record)).max();
        let files = most(|record| record.files.len() as u64).unwrap_or(0);
        let bytes = most(|record| record.files.iter().map(|row| row.bytes).sum()).unwrap_or(0);
        let sentence = format!(
            "Walked {root}: {}, {} read; left out: {}. The most of any trial.",
            counted(files as usize, "file"),
            size::approx_bytes(bytes),
            left_out(&records).unwrap_or_else(|| "nothing".to_owned())
        );
        let of_grid = walks.entry((grid.to_owned(), protocol)).or_default();
        of_grid.push(sentence);
    }
    walks
}

/// Counts by reason, the most of any trial; `None` if nothing was left out.
fn left_out(records: &[&TrialRecord]) -> Option<String> {
    let mut skipped: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, count) in records.iter().flat_map(|record| &record.skipped) {
        let most = skipped.entry(reason).or_default();
        *most = (*most).max(*count);
    }
    let told: Vec<String> = skipped.iter().map(|(k, v)| format!("{v} {k}")).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// One table for each point of a grid that was walked: of the time protocol the wall time of each arm for the largest
/// files, of the census the bytes moved.
pub(super) fn tables(experiment: &str, records: &[TrialRecord]) -> Vec<Table> {
    type Points<'r> = BTreeMap<&'r Params, Vec<&'r TrialRecord>>;
    let mut grids: BTreeMap<(&str, Protocol), Points<'_>> = BTreeMap::new();
    let told = |record: &TrialRecord| matches!(record.protocol, Protocol::Time | Protocol::Census);
    for (record, _) in walked(records).filter(|(record, _)| told(record)) {
        let points = grids.entry((&record.grid, record.protocol)).or_default();
        points.entry(&record.params).or_default().push(record);
    }
    let mut tables = Vec::new();
    for ((grid, protocol), points) in &grids {
        for (point, records) in points {
            let varying: Params = point
                .iter()
                .filter(|(name, value)| points.keys().any(|other| other.get(*name) != Some(value)))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            tables.extend(walk(
                &format!("{experiment}.{grid}"),
                grid,
                *protocol,
                &varying,
                records,
            ));
        }
    }
    tables
}

/// Whether a table of files shows trials of this view.
pub(super) fn is_of(table: &Table, view: &View<'_>) -> bool {
    let kind = match view.protocol {
        Protocol::Census => "file-moves",
        Protocol::Time => "files",
        Protocol::Memory => return false,
    };
    let name = view.name(kind);
    let point = table.name.strip_prefix(&name);
    point.is_some_and(|point| point.is_empty() || point.starts_with('.'))
}

/// `None` if no trial has a row.
fn walk(
    place: &str,
    grid: &str,
    protocol: Protocol,
    varying: &Params,
    records: &[&TrialRecord],
) -> Option<Table> {
    let root = records.first()?.params.get("root")?;
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
                let of_arm: Vec<&TrialRecord> = records
                    .iter()
                    .copied()
                    .filter(|record| record.arm == *arm)
                    .collect();
                let files = of_arm.iter().flat_map(|record| &record.files);
                let rows: Vec<&FileRow> = files.filter(|row| row.path == *path).collect();
                match protocol {
                    Protocol::Census => moved(&rows, &of_arm),
                    _ => time(&rows),
                }
            }));
            row
        })
        .collect();
    let (kind, what, told) = match protocol {
        Protocol::Census => (
            "file-moves",
            "bytes moved for each byte, file by file",
            "bytes in the blocks that realloc moved for each byte of the file, those moved by mremap included",
        ),
        _ => ("files", "file by file", "median wall time over blocks"),
    };
    let mut notes = vec![format!(
        "The {} largest of {}; {told}.",
        largest.len(),
        counted(all, "file")
    )];
    if let Some(skipped) = left_out(records) {
        notes.push(format!("Left out, the most of any trial: {skipped}."));
    }
    if protocol == Protocol::Time {
        notes.extend(note_on_locking(arms.iter().copied()));
    }
    let values: Vec<&str> = varying.values().map(String::as_str).collect();
    let (name, point) = if varying.is_empty() {
        (format!("{place}.{kind}"), String::new())
    } else {
        (
            format!("{place}.{kind}.{}", values.join("-")),
            format!(" ({})", params_text(varying)),
        )
    };
    Some(Table {
        name,
        title: format!("{grid}: {what} under {root}{point}"),
        header,
        rows,
        notes,
    })
}

/// How a file ended that did not get through.
fn unfinished(rows: &[&FileRow]) -> Option<String> {
    let row = rows.iter().find(|row| row.ended != "ok")?;
    Some(format!(
        "{} at {}",
        row.ended,
        size::approx_bytes(row.reached_bytes)
    ))
}

/// Median time of one file under one arm, or how it ended where it did not get through.
fn time(rows: &[&FileRow]) -> String {
    let times = Sample::new(rows.iter().map(|row| row.wall_ns as f64));
    unfinished(rows).unwrap_or_else(|| match times {
        Ok(sample) => size::approx_seconds(sample.median()),
        Err(_) => "-".to_owned(),
    })
}

/// Bytes moved for each byte of one file under one arm, or how it ended where it did not get through.
fn moved(rows: &[&FileRow], records: &[&TrialRecord]) -> String {
    if let Some(ended) = unfinished(rows) {
        return ended;
    }
    let counted = rows.iter().find(|row| row.bytes > 0);
    let Some((row, moved)) = counted.and_then(|row| Some((row, row.moved_bytes?))) else {
        return "-".to_owned();
    };
    let random = records
        .iter()
        .any(|record| record.receipt.as_ref().is_some_and(metric::sampling_on));
    let mark = if random && moved > 0 { "~" } else { "" };
    format!("{mark}{}", three_digits(moved as f64 / row.bytes as f64))
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
    fn modes_are_not_mixed() {
        let walk = |mode: &str, wall_ns| {
            let mut record = Trial::time("g", "system", 0)
                .param("root", "/texts")
                .param("mode", mode)
                .ok();
            record.files = vec![row("a", 70, wall_ns, "ok")];
            record
        };
        let tables = tables("e", &[walk("list", 1000), walk("concat", 9000)]);
        let told: Vec<_> = tables
            .iter()
            .map(|t| (t.name.as_str(), t.title.as_str(), t.rows[0][3].as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "e.g.files.concat",
                    "g: file by file under /texts (mode=concat)",
                    "9.00 us"
                ),
                (
                    "e.g.files.list",
                    "g: file by file under /texts (mode=list)",
                    "1.00 us"
                ),
            ]
        );
    }

    #[test]
    fn a_census_tells_what_was_walked_and_moved() {
        let walk = |arm: &str, moved, files| {
            let mut record = Trial::census("g", arm).param("root", "/texts").ok();
            record.files = vec![row("a", 70, 1, "ok"), row("b", 7000, 1, "ok")];
            record.files.truncate(files);
            for row in &mut record.files {
                row.moved_bytes = Some(moved);
            }
            record.skipped.insert("empty".to_owned(), 2);
            record
        };
        let mut chance = walk("chance", 700, 2);
        chance.receipt = Some(crate::trial::Receipt {
            knobs: [("sampling".to_owned(), "1".to_owned())].into(),
            ..Default::default()
        });
        let records = [walk("system", 3500, 2), walk("early", 70, 1), chance];
        let tables = tables("e", &records);
        assert_eq!(tables[0].name, "e.g.file-moves");
        assert_eq!(
            tables[0].header[3..],
            ["chance", "early", "system"].map(str::to_owned)
        );
        assert_eq!(
            tables[0].rows[0],
            ["b", "6.84 KiB", "100", "~0.100", "-", "0.500"]
        );
        let walks = walks(&records);
        assert_eq!(
            walks[&("g".to_owned(), Protocol::Census)],
            ["Walked /texts: 2 files, 6.90 KiB read; left out: 2 empty. The most of any trial."]
        );
    }

    #[test]
    fn a_corpus_is_no_walk() {
        assert!(walks(&[Trial::time("g", "system", 0).ok()]).is_empty());
        assert!(tables("e", &[Trial::time("g", "system", 0).ok()]).is_empty());
    }
}
