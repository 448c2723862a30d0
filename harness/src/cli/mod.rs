//! The command line: one file per subcommand.
//!
//! Exit status: 0 done, 1 a check failed (or the disk refused), 2 bad input, 3 nothing measurable, 130 interrupted.

mod claims;
mod finished;
mod list;
mod report;
mod run;
mod verify;

use crate::definitions::Missing;
use crate::run::folder::FolderError;
use crate::run::progress::note;
use clap::{Parser, Subcommand};
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Which memory allocator, for this work, and why?
///
/// heaplab runs the same work under several allocators, each trial in a fresh process, and turns what it measured into
/// tables and checked claims. Start with `heaplab list` and `heaplab run growth-today --quick`.
#[derive(Debug, Parser)]
#[command(name = "heaplab", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows what there is: allocators, workloads, experiments, this machine
    List(list::List),
    /// Runs experiments
    Run(run::Run),
    /// Checks what was claimed against what was measured; exit status 1 if a claim expected to hold does not
    Claims(claims::Claims),
    /// Shows the tables of a finished run
    Report(report::Report),
    /// Checks every allocator: every workload small with all contents compared, the behaviour suite, and a table of what
    /// each does; exit status 1 if something is broken
    Verify(verify::Verify),
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// Something given cannot be used: exit status 2.
    BadInput(String),
    /// A check failed, or the system refused something: exit status 1.
    Check(String),
    /// There is nothing to measure: exit status 3.
    NothingMeasurable(String),
    /// The user stopped it: exit status 130.
    Interrupted(String),
    /// Whoever reads our output has gone: no message, exit status 0.
    Unread,
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Failure::Unread => 0,
            Failure::Check(_) => 1,
            Failure::BadInput(_) => 2,
            Failure::NothingMeasurable(_) => 3,
            Failure::Interrupted(_) => 130,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::BadInput(why)
            | Failure::Check(why)
            | Failure::NothingMeasurable(why)
            | Failure::Interrupted(why) => f.write_str(why),
            Failure::Unread => Ok(()),
        }
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        if error.bad_input {
            Failure::BadInput(error.message)
        } else {
            Failure::Check(error.message)
        }
    }
}

impl From<Missing> for Failure {
    fn from(error: Missing) -> Self {
        Failure::BadInput(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Failure::Unread
        } else {
            Failure::Check(format!("cannot write the output: {error}"))
        }
    }
}

/// Runs the command and gives its exit status.
pub fn main(cli: Cli) -> ExitCode {
    let done = match &cli.command {
        Command::List(list) => list.run(),
        Command::Run(run) => run.run(),
        Command::Claims(claims) => claims.run(),
        Command::Report(report) => report.run(),
        Command::Verify(verify) => verify.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let text = failure.to_string();
            if !text.is_empty() {
                note(&format!("heaplab: {text}"));
            }
            ExitCode::from(failure.code())
        }
    }
}

/// Writes `text` to standard output; it may be a pipe that nobody reads to the end.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes `value` to standard output as JSON.
fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(value).map_err(|why| Failure::Check(why.to_string()))?;
    print(&(text + "\n"))
}

/// Where the children are: beside this program, or where `HEAPLAB_CHILDREN` says.
fn children() -> Result<PathBuf, Failure> {
    if let Some(folder) = std::env::var_os("HEAPLAB_CHILDREN") {
        return Ok(PathBuf::from(folder));
    }
    std::env::current_exe()
        .ok()
        .and_then(|program| program.parent().map(PathBuf::from))
        .ok_or_else(|| {
            Failure::Check("cannot find this program's own folder: set HEAPLAB_CHILDREN".to_owned())
        })
}
