//! Finished runs, as `claims` and `report` read them.

use super::Failure;
use crate::claims::AsRun;
use crate::experiment::Experiment;
use crate::record::TrialRecord;
use crate::report::Report;
use crate::run::env::Environment;
use crate::run::folder::Folder;
use crate::summary::Summary;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Width of tables where the output is no terminal.
const PIPED_WIDTH: u16 = 140;

/// One run, read from its folder.
pub(super) struct Finished {
    pub(super) folder: PathBuf,
    pub(super) environment: Environment,
    experiment: Experiment,
    run: AsRun,
    records: Vec<TrialRecord>,
    summary: Summary,
}

impl Finished {
    /// Reads every run in `folders`; a folder that holds no run itself stands for the runs in it.
    pub(super) fn all(folders: &[PathBuf]) -> Result<Vec<Finished>, Failure> {
        let mut runs = Vec::new();
        for folder in folders {
            let inner = inner_runs(folder);
            if folder.join("plan.json").is_file() || inner.is_empty() {
                runs.push(Finished::read(folder)?);
            } else {
                for folder in inner {
                    runs.push(Finished::read(&folder)?);
                }
            }
        }
        Ok(runs)
    }

    fn read(path: &Path) -> Result<Finished, Failure> {
        let folder = Folder::open(path.to_owned())?;
        let plan = folder.plan()?;
        if plan.verify {
            return Err(Failure::BadInput(format!(
                "{0} holds a verification, no measurements: heaplab verify --show {0}",
                path.display()
            )));
        }
        let text = folder.read_text("experiment.toml")?;
        let experiment = Experiment::parse(&text, &path.join("experiment.toml").to_string_lossy())
            .map_err(|why| Failure::BadInput(why.to_string()))?;
        let records = folder.records(&plan)?;
        Ok(Finished {
            folder: path.to_owned(),
            environment: folder.read_json("env.json")?,
            run: AsRun::planned(&experiment, &plan),
            summary: Summary::new(&records),
            experiment,
            records,
        })
    }

    /// The report on it.
    pub(super) fn report(&self) -> Report<'_> {
        Report::new(&self.experiment, &self.summary, &self.run).with_files(&self.records)
    }

    /// The records.
    pub(super) fn records(&self) -> &[TrialRecord] {
        &self.records
    }

    /// The summary.
    pub(super) fn summary(&self) -> &Summary {
        &self.summary
    }
}

/// Runs of experiments in the folders of `folder`, in the order of names.
fn inner_runs(folder: &Path) -> Vec<PathBuf> {
    let mut inner: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            ["plan.json", "experiment.toml"]
                .iter()
                .all(|file| path.join(file).is_file())
        })
        .collect();
    inner.sort();
    inner
}

/// Columns that tables may take.
pub(super) fn width() -> u16 {
    let given = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let terminal = || {
        std::io::stdout()
            .is_terminal()
            .then(terminal_size::terminal_size)
            .flatten()
            .map(|(terminal_size::Width(columns), _)| columns)
    };
    given.or_else(terminal).unwrap_or(PIPED_WIDTH).max(60)
}
