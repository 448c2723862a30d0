//! The report as text for a terminal.

use super::{Report, Table};
use comfy_table::{ContentArrangement, presets};

/// Widest line of prose.
const PROSE: usize = 100;

/// The whole report: title, what the command line changed, analysis, tables, claims. `width` in columns; `None` never wraps tables.
pub fn report(report: &Report<'_>, width: Option<u16>) -> String {
    let experiment = report.experiment();
    let prose_width = width.map_or(PROSE, |width| PROSE.min(usize::from(width)));
    let mut out = format!("{}: {}\n\n", experiment.id, experiment.title);
    if let Some(changed) = report.changed() {
        out.push_str(&wrapped(&changed, "", prose_width));
        out.push('\n');
    }
    for paragraph in experiment.analysis.trim().split("\n\n") {
        out.push_str(&wrapped(paragraph, "", prose_width));
        out.push('\n');
    }
    let tables = report.all_tables();
    let drawn: Vec<String> = tables.iter().map(|t| table(t, width)).collect();
    out.push_str(&drawn.join("\n"));
    for warning in report.warnings() {
        out.push_str(&format!("\nWARNING: {warning}\n"));
    }
    out
}

/// One table with its title above and its notes below.
pub fn table(table: &Table, width: Option<u16>) -> String {
    let mut drawn = comfy_table::Table::new();
    drawn
        .load_style(presets::UTF8_FULL_CONDENSED)
        .force_no_tty();
    drawn.set_header(table.header.clone());
    drawn.add_rows(table.rows.clone());
    match width {
        Some(width) => {
            drawn
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width);
        }
        None => {
            drawn.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    let mut out = format!("{}\n", table.title);
    for line in drawn.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    let prose_width = width.map_or(PROSE, |width| PROSE.min(usize::from(width)));
    for note in &table.notes {
        out.push_str(&wrapped(note, "  ", prose_width));
    }
    out
}

/// `text` in lines of at most `width` characters, each after `indent`; longer words stand alone.
fn wrapped(text: &str, indent: &str, width: usize) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let length = indent.len() + line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && length > width {
            out.push_str(&format!("{indent}{line}\n"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        out.push_str(&format!("{indent}{line}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden() {
        let text = table(&super::super::tests::sample_table(), Some(40));
        let expected = "\
Copies
┌───────┬────────┬───────┐
│ size  ┆ system ┆ slow  │
╞═══════╪════════╪═══════╡
│ 1MiB  ┆ 0.13   ┆ 129   │
│ 16MiB ┆ 0.008  ┆ a | b │
└───────┴────────┴───────┘
  A note that is long enough to be
  wrapped.
";
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn prose_is_wrapped_between_words() {
        assert_eq!(wrapped("aa bb  cc\ndd", "", 5), "aa bb\ncc dd\n");
        assert_eq!(wrapped("longword x", " ", 4), " longword\n x\n");
        assert_eq!(wrapped("", "", 4), "");
    }
}
