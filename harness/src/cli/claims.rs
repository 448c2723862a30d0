//! `heaplab claims`: what was claimed, against what was measured.

use super::finished::{Finished, width};
use super::{Failure, print, print_json};
use crate::claims::ClaimResult;
use crate::report::table;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `claims`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 every claim that could be decided came out as expected, 1 one did not, 2 bad input."
)]
pub struct Claims {
    /// Folders of finished runs, or folders that hold such folders
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// One line a claim, without what it rests on
    #[arg(long, conflicts_with = "json")]
    brief: bool,
    /// As JSON, with every value that was looked at
    #[arg(long)]
    json: bool,
}

impl Claims {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let runs = Finished::all(&self.folders)?;
        let reports: Vec<_> = runs.iter().map(Finished::report).collect();
        if self.json {
            let all: Vec<_> = runs
                .iter()
                .zip(&reports)
                .map(|(run, report)| {
                    json!({
                        "folder": run.folder.display().to_string(),
                        "experiment": report.experiment().id,
                        "quick": report.quick(),
                        "overrides": report.overrides(),
                        "claims": report.claims(),
                    })
                })
                .collect();
            print_json(&all)?;
        } else if self.brief {
            for report in &reports {
                if let Some(changed) = report.changed() {
                    print(&format!("{}: {changed}\n", report.experiment().id))?;
                }
                for claim in report.claims() {
                    print(&format!(
                        "{}: {} [{}]\n",
                        claim.answer(),
                        claim.finding,
                        claim.id
                    ))?;
                }
            }
        } else {
            for (run, report) in runs.iter().zip(&reports) {
                print(&format!(
                    "{} in {}\n",
                    report.experiment().id,
                    run.folder.display()
                ))?;
                if let Some(changed) = report.changed() {
                    print(&format!("{changed}\n"))?;
                }
                if report.claims().is_empty() {
                    print("  no claims\n\n")?;
                } else {
                    print(&(table::table(&report.claims_table(), Some(width())) + "\n"))?;
                }
            }
        }
        let contradicted: Vec<&str> = reports
            .iter()
            .flat_map(|report| report.claims())
            .filter(|claim| claim.contradicted())
            .map(|claim: &ClaimResult| claim.id.as_str())
            .collect();
        if contradicted.is_empty() {
            return Ok(());
        }
        Err(Failure::Check(format!(
            "not as expected: {}",
            contradicted.join(", ")
        )))
    }
}
