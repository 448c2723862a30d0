//! `heaplab report`: the tables of finished runs, in four formats, or spliced into a text; or their memory over time.

use super::finished::{Finished, width};
use super::{Failure, print};
use crate::report::{csv, json, markdown, series, splice, table};
use clap::{Args, ValueEnum};
use std::fs;
use std::path::{Path, PathBuf};

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(
    after_help = "Tables are spliced into FILE wherever it has the two lines\n  <!-- BEGIN name -->\n  <!-- END name -->\n\
    with a table's name, such as growth-today.growth.census or walker-2007.claims."
)]
pub struct Report {
    /// Folders of finished runs, or folders that hold such folders
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// How it is written: for eyes, for a README, one value a line, everything, or memory over time, one sample a line
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Same as --format json
    #[arg(long, conflicts_with_all = ["format", "into"])]
    json: bool,
    /// Writes the tables between their markers in this file, as markdown
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    into: Option<PathBuf>,
    /// With --into: changes nothing; exit status 1 if FILE is not up to date
    #[arg(long, requires = "into")]
    check: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Terminal,
    Markdown,
    Csv,
    Json,
    Series,
}

impl Report {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let runs = Finished::all(&self.folders)?;
        if let Some(file) = &self.into {
            return self.splice(&runs, file);
        }
        let format = if self.json { Format::Json } else { self.format };
        for run in &runs {
            let report = run.report();
            let refused = |why: String| Failure::Check(format!("{}: {why}", run.folder.display()));
            match format {
                Format::Terminal => {
                    print(&(heading(run) + &table::report(&report, Some(width()))))?
                }
                Format::Markdown => print(&markdown::report(&report))?,
                Format::Csv => {
                    print(&csv::report(run.summary()).map_err(|why| refused(why.to_string()))?)?
                }
                Format::Series => {
                    print(&series::report(run.records()).map_err(|why| refused(why.to_string()))?)?
                }
                Format::Json => {
                    print(&json::report(&report).map_err(|why| refused(why.to_string()))?)?
                }
            }
        }
        Ok(())
    }

    /// Puts every table that `file` has markers for between them.
    fn splice(&self, runs: &[Finished], file: &Path) -> Result<(), Failure> {
        let before = fs::read_to_string(file)
            .map_err(|why| Failure::BadInput(format!("cannot read {}: {why}", file.display())))?;
        let mut text = before.clone();
        let mut names = Vec::new();
        let mut spliced = 0;
        for run in runs {
            let report = run.report();
            for mut table in report.all_tables() {
                // A table in a text stands alone, so it says itself what the command line changed.
                table.notes.extend(report.changed());
                if text.contains(&format!("<!-- BEGIN {} -->", table.name)) {
                    let command = format!("heaplab report {}", run.folder.display());
                    text = splice::splice(&text, &table.name, &markdown::table(&table), &command)
                        .map_err(|why| {
                        Failure::BadInput(format!("{}: {why}", file.display()))
                    })?;
                    spliced += 1;
                }
                names.push(table.name);
            }
        }
        if spliced == 0 {
            return Err(Failure::BadInput(format!(
                "{} has no markers for these tables: {}",
                file.display(),
                names.join(", ")
            )));
        }
        if text == before {
            return Ok(());
        }
        if self.check {
            return Err(Failure::Check(format!(
                "{} is not up to date: run it without --check",
                file.display()
            )));
        }
        fs::write(file, text)
            .map_err(|why| Failure::Check(format!("cannot write {}: {why}", file.display())))
    }
}

/// Where and when it was measured, and what should make the reader wary.
fn heading(run: &Finished) -> String {
    let environment = &run.environment;
    let machine = &environment.machine;
    let mut text = format!(
        "{}: begun {} on {} ({}, {} processors, Linux {}, glibc {}), heaplab {} of sources {}\n",
        run.folder.display(),
        environment.started,
        environment.host,
        machine.cpu_model.as_deref().unwrap_or("unknown processor"),
        machine.cpus_usable,
        machine.kernel.as_deref().unwrap_or("unknown"),
        machine.glibc,
        environment.heaplab,
        environment.source_hash,
    );
    for warning in &environment.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    text + "\n"
}
