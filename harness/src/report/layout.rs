//! The two-way table of a grid's arms, as its definition lays it out: in each cell the median time, its ratio to the
//! arm that the layout names, and the bytes copied for each byte appended.

use super::{Report, Table, View, census, note_on_locking, times};
use crate::experiment::{Grid, Layout, LayoutRow};
use crate::stats::floor::Floor;
use crate::stats::ratio::{self, LEVEL, Ratio, SEED};
use crate::stats::sample::Pairs;
use crate::trial::{Params, Protocol};

/// `None` if nothing was run that it shows.
pub(super) fn table(report: &Report<'_>, grid: &Grid, layout: &Layout) -> Option<Table> {
    let time = View::new(report, grid, Protocol::Time);
    let census = View::new(report, grid, Protocol::Census).filter(|view| census::appends(view));
    let views: Vec<&View<'_>> = [&time, &census].into_iter().flatten().collect();
    let first = views.first()?;
    let name = first.name("layout");
    let refused = views
        .iter()
        .find_map(|view| view.incomparable().map(|why| view.refused(&why)));
    if let Some(refused) = refused {
        return Some(Table { name, ..refused });
    }
    let timed = time.as_ref().map(|view| Times::new(view, layout));
    let mut lines = Lines {
        timed: timed.as_ref(),
        census: census.as_ref(),
        bounded: false,
    };
    let mut rows = Vec::new();
    for row in &layout.rows {
        if row.arms.is_empty() {
            rows.push(quoted(row));
        } else {
            let points = first.points.iter();
            rows.extend(points.map(|point| lines.row(first, row, point)));
        }
    }

    let mut notes = vec![said(layout, &time, &census)];
    notes.extend(layout.notes.iter().cloned());
    if lines.bounded {
        notes.push(census::BOUNDED.to_owned());
    }
    notes.extend(timed.iter().flat_map(Times::notes));
    if timed.is_some() {
        let arms = layout.rows.iter().flat_map(|row| &row.arms);
        notes.extend(note_on_locking(arms.map(String::as_str)));
    }
    for note in views.iter().flat_map(|view| view.notes_on_arms()) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let mut header = vec![String::new()];
    header.extend(layout.columns.iter().cloned());
    Some(Table {
        name,
        title: first.title(&layout.title),
        header,
        rows,
        notes,
    })
}

/// What stands in a cell, line by line.
fn said(layout: &Layout, time: &Option<View<'_>>, census: &Option<View<'_>>) -> String {
    let than = &layout.than;
    let lines = [
        time.as_ref().map(|_| "the median wall time".to_owned()),
        time.as_ref()
            .map(|_| format!("that time as a multiple of {than}")),
        census.as_ref().map(|_| {
            "bytes copied for each byte appended, by realloc and by the workload".to_owned()
        }),
    ];
    let lines: Vec<String> = lines.into_iter().flatten().collect();
    format!("In each cell: {}.", lines.join("; "))
}

/// What others wrote, in quotation marks.
fn quoted(row: &LayoutRow) -> Vec<String> {
    let cells = row.quoted.iter().map(|text| match text.as_str() {
        "" => "-".to_owned(),
        text => format!("\"{text}\""),
    });
    std::iter::once(row.name.clone()).chain(cells).collect()
}

/// The ratios of all arms of the layout, with the intervals of the table as a whole.
struct Times<'v> {
    view: &'v View<'v>,
    than: &'v str,
    floor: Option<Floor>,
    ratios: Vec<(&'v str, &'v Params, Ratio)>,
}

impl<'v> Times<'v> {
    fn new(view: &'v View<'v>, layout: &'v Layout) -> Times<'v> {
        let than = layout.than.as_str();
        let arms = layout.rows.iter().flat_map(|row| &row.arms);
        let places = arms
            .map(String::as_str)
            .filter(|arm| *arm != than)
            .flat_map(|arm| view.points.iter().map(move |point| (arm, point)));
        let paired: Vec<(&str, &Params, Pairs)> = places
            .filter_map(|(arm, point)| {
                let pairs = times::pairs(view.cell(arm, point)?, view.cell(than, point)?)?;
                Some((arm, point, pairs))
            })
            .collect();
        let pairs: Vec<Pairs> = paired.iter().map(|(_, _, pairs)| pairs.clone()).collect();
        let ratios = paired
            .into_iter()
            .zip(ratio::table(&pairs, LEVEL, SEED))
            .map(|((arm, point, _), ratio)| (arm, point, ratio))
            .collect();
        Times {
            view,
            than,
            floor: times::floor(view.report.summary()),
            ratios,
        }
    }

    /// The time of a cell, and its ratio where there is something to divide by.
    fn lines(&self, arm: &str, point: &Params) -> Vec<String> {
        let view = self.view;
        let Some(cell) = view.cell(arm, point) else {
            return Vec::new();
        };
        let mut lines = vec![times::plain(cell)];
        let base = view.cell(self.than, point);
        let known = self
            .ratios
            .iter()
            .find(|(a, p, _)| *a == arm && *p == point);
        match known {
            Some((_, _, ratio)) => lines.push(times::shown(ratio, self.floor)),
            None if arm == self.than => lines.push("1".to_owned()),
            // What is not a number of its own would only say again how the cell ended.
            None => lines.extend(Some(times::unpaired(cell, base)).filter(|t| t.starts_with(">="))),
        }
        lines
    }

    fn notes(&self) -> Vec<String> {
        let ratios: Vec<Ratio> = self.ratios.iter().map(|(_, _, ratio)| *ratio).collect();
        times::statistics(&ratios, self.floor)
    }
}

/// What the cells of the table show.
struct Lines<'v> {
    timed: Option<&'v Times<'v>>,
    census: Option<&'v View<'v>>,
    /// A count of copies is an upper bound only.
    bounded: bool,
}

impl Lines<'_> {
    fn row(&mut self, view: &View<'_>, row: &LayoutRow, point: &Params) -> Vec<String> {
        let label = if view.varying.is_empty() {
            row.name.clone()
        } else {
            format!("{}, {}", row.name, view.row_label(point))
        };
        let cells = row.arms.iter().map(|arm| self.cell(arm, point));
        std::iter::once(label).chain(cells).collect()
    }

    fn cell(&mut self, arm: &str, point: &Params) -> String {
        let mut lines = self
            .timed
            .map_or_else(Vec::new, |times| times.lines(arm, point));
        let counted = self
            .census
            .and_then(|view| Some((view, view.cell(arm, point)?)));
        if let Some((view, cell)) = counted {
            lines.push(census::text(view, cell, &mut self.bounded));
        }
        match lines.is_empty() {
            true => "-".to_owned(),
            false => lines.join("\n"),
        }
    }
}
