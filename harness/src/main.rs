//! The command line.

use clap::Parser;
use heaplab::cli::{self, Cli};
use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main(Cli::parse())
}
