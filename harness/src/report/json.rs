//! The whole report as one JSON document: claims answered, tables as shown, the summary with every sample.

use super::{Report, Table};
use crate::claims::ClaimResult;
use crate::summary::Summary;
use crate::trial::SCHEMA;
use serde::Serialize;

/// The document.
#[derive(Debug, Serialize)]
pub struct Document<'d> {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Experiment id.
    pub experiment: &'d str,
    /// One line.
    pub title: &'d str,
    /// What the reader should learn.
    pub analysis: &'d str,
    /// Made by `--quick`.
    pub quick: bool,
    /// What the command line changed, as in the plan.
    pub overrides: &'d [String],
    /// The claims, answered.
    pub claims: &'d [ClaimResult],
    /// What went wrong with the run as a whole.
    pub warnings: Vec<String>,
    /// The tables.
    pub tables: Vec<Table>,
    /// Every sample.
    pub summary: &'d Summary,
}

impl<'d> Document<'d> {
    /// The document of a report.
    pub fn new(report: &'d Report<'_>) -> Document<'d> {
        let experiment = report.experiment();
        Document {
            schema: SCHEMA,
            experiment: &experiment.id,
            title: &experiment.title,
            analysis: &experiment.analysis,
            quick: report.quick(),
            overrides: report.overrides(),
            claims: report.claims(),
            warnings: report.warnings(),
            tables: report.all_tables(),
            summary: report.summary(),
        }
    }
}

/// The document, indented, with a newline at its end.
///
/// # Errors
/// Those of the serialiser.
pub fn report(report: &Report<'_>) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&Document::new(report)).map(|text| text + "\n")
}
