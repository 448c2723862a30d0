//! Tables as GitHub-flavoured Markdown.

use super::{Report, Table};

/// All tables of a report, after what the command line changed.
pub fn report(report: &Report<'_>) -> String {
    let changed = report.changed().map(|changed| escaped(&changed) + "\n");
    let tables = report.all_tables();
    let parts: Vec<String> = changed
        .into_iter()
        .chain(tables.iter().map(table))
        .collect();
    parts.join("\n")
}

/// One table: title in bold, then rows, then notes as a list.
pub fn table(table: &Table) -> String {
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut out = format!("**{}**\n\n", escaped(&table.title));
    out.push_str(&row(&table.header));
    out.push_str(&format!("|{}\n", " --- |".repeat(table.header.len())));
    table
        .rows
        .iter()
        .for_each(|cells| out.push_str(&row(cells)));
    if !table.notes.is_empty() {
        out.push('\n');
        table
            .notes
            .iter()
            .for_each(|note| out.push_str(&format!("- {}\n", escaped(note))));
    }
    out
}

/// What would be markup, made plain: bars end cells, `~` strikes through, `<` opens tags, `*` and `_` set type.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("<br>"),
            '|' | '~' | '*' | '_' | '`' | '\\' | '[' | ']' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn golden() {
        let text = super::table(&super::super::tests::sample_table());
        let expected = "\
**Copies**

| size | system | slow |
| --- | --- | --- |
| 1MiB | 0.13 | 129 |
| 16MiB | 0.008 | a \\| b |

- A note that is long enough to be wrapped.
";
        assert_eq!(text, expected, "\n{text}");
    }

    #[test]
    fn markup_in_texts_is_made_plain() {
        assert_eq!(
            super::escaped("~1 <= [a_b]\nx"),
            "\\~1 &lt;= \\[a\\_b\\]<br>x"
        );
    }
}
