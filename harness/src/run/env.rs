//! `env.json`: on what machine and by which build a run was made.

use crate::probe::machine::Machine;
use serde::{Deserialize, Serialize};
use std::process::Command;

/// What stands beside every run's records.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Environment {
    /// [`crate::trial::SCHEMA`].
    pub schema: u32,
    /// Version of heaplab.
    pub heaplab: String,
    /// Hash of the sources it was built from.
    pub source_hash: String,
    /// Compiler it was built with.
    pub rustc: String,
    /// Cargo profile: `release` or `debug`.
    pub profile: String,
    /// Revision of the working copy at the time of the run, `-dirty` if it was changed; absent outside one.
    pub git_revision: Option<String>,
    /// Name of the machine.
    pub host: String,
    /// When the run was begun, UTC.
    pub started: String,
    /// What should make a reader wary, in words.
    pub warnings: Vec<String>,
    /// The machine.
    pub machine: Machine,
}

impl Environment {
    /// As it is now.
    pub fn read() -> Environment {
        let machine = Machine::read();
        let mut warnings = machine.warnings();
        if cfg!(debug_assertions) {
            warnings.push(
                "this is a debug build: time trials will refuse to run; build with --release"
                    .to_owned(),
            );
        }
        Environment {
            schema: crate::trial::SCHEMA,
            heaplab: env!("CARGO_PKG_VERSION").to_owned(),
            source_hash: crate::SOURCE_HASH.to_owned(),
            rustc: env!("HEAPLAB_RUSTC").to_owned(),
            profile: env!("HEAPLAB_PROFILE").to_owned(),
            git_revision: git_revision(),
            host: host(),
            started: jiff::Timestamp::now()
                .strftime("%Y-%m-%dT%H:%M:%SZ")
                .to_string(),
            warnings,
            machine,
        }
    }
}

/// The machine's name, as far as it can stand in a file name.
pub fn host() -> String {
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let safe: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect();
    if safe.is_empty() {
        "host".to_owned()
    } else {
        safe
    }
}

fn git_revision() -> Option<String> {
    let answer = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .output()
        .ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    (answer.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
