//! Counting instructions and, by simulation, mispredicted branches: how a child is run under valgrind's callgrind, and what it says. Parent only.
//!
//! The child itself switches the counting on and off around its measured region (see
//! [`counting`](crate::probe::counting)), so neither the loader nor the harness shows up.

use crate::probe::machine::find_program_in;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Finds valgrind on `PATH`.
///
/// # Errors
/// Why instructions cannot be counted here, with the command that would change that.
pub fn locate() -> Result<PathBuf, String> {
    locate_in(&std::env::var_os("PATH").unwrap_or_default())
}

fn locate_in(path: &OsStr) -> Result<PathBuf, String> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err("instructions are counted on x86-64 alone".to_owned());
    }
    find_program_in(path, "valgrind").ok_or_else(|| {
        "valgrind is not on PATH; install it with: apt-get install valgrind".to_owned()
    })
}

/// valgrind's own arguments; the child's program follows them. The counts go to `profile`.
pub fn arguments(profile: &Path) -> Vec<OsString> {
    let mut file = OsString::from("--callgrind-out-file=");
    // valgrind takes a % for the beginning of something to be filled in.
    let bytes = profile.as_os_str().as_bytes().iter();
    let escaped: Vec<u8> = bytes
        .flat_map(|byte| match byte {
            b'%' => vec![b'%', b'%'],
            other => vec![*other],
        })
        .collect();
    file.push(OsString::from_vec(escaped));
    vec![
        "--tool=callgrind".into(),
        "--quiet".into(),
        // The child switches it on.
        "--instr-atstart=no".into(),
        "--branch-sim=yes".into(),
        file,
    ]
}

/// Why there is no count.
#[derive(Debug)]
pub enum ProfileError {
    /// The profile could not be read.
    Io(io::Error),
    /// It is not what callgrind writes.
    NoTotal,
    /// Nothing was counted: the child never began to measure.
    Nothing,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfileError::Io(why) => write!(f, "callgrind's profile cannot be read: {why}"),
            ProfileError::NoTotal => {
                f.write_str("callgrind's profile holds no total of instructions")
            }
            ProfileError::Nothing => {
                f.write_str("callgrind counted nothing: the child never began to measure")
            }
        }
    }
}
impl std::error::Error for ProfileError {}

/// What callgrind counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Instructions.
    pub instructions: u64,
    /// Of a simulated predictor: conditional branches whose way it guessed wrong, and indirect ones whose target it did.
    pub mispredictions: u64,
}

/// What the profile in a file holds.
///
/// # Errors
/// [`ProfileError`].
pub fn read_profile(profile: &Path) -> Result<Counts, ProfileError> {
    let bytes = std::fs::read(profile).map_err(ProfileError::Io)?;
    parse(&String::from_utf8_lossy(&bytes))
}

/// What a profile in callgrind's format holds: its line `totals:`, whose columns are those of the line `events:`. Noughts
/// at the end are left out.
///
/// # Errors
/// [`ProfileError`].
pub fn parse(profile: &str) -> Result<Counts, ProfileError> {
    let line = |name: &str| {
        let found = profile.lines().find_map(|line| line.strip_prefix(name));
        found.map(|line| line.split_whitespace().collect::<Vec<_>>())
    };
    let (Some(events), Some(totals)) = (line("events:"), line("totals:")) else {
        return Err(ProfileError::NoTotal);
    };
    let total = |name: &str| -> Option<u64> {
        let at = events.iter().position(|event| *event == name)?;
        totals.get(at).map_or(Some(0), |total| total.parse().ok())
    };
    match (total("Ir"), total("Bcm"), total("Bim")) {
        (Some(0), ..) => Err(ProfileError::Nothing),
        (Some(instructions), Some(conditional), Some(indirect)) => Ok(Counts {
            instructions,
            mispredictions: conditional + indirect,
        }),
        _ => Err(ProfileError::NoTotal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_are_read() {
        let profile = "version: 1\ncmd: child\nevents: Ir Bc Bcm Bi Bim\n\nfn=(1) main\n16 400\n\
                       summary: 400 90 7 4 1\ntotals: 400 90 7 4 1\n";
        let counts = |instructions, mispredictions| Counts {
            instructions,
            mispredictions,
        };
        assert_eq!(parse(profile).ok(), Some(counts(400, 8)));
        let straight = profile.replace("totals: 400 90 7 4 1", "totals: 400 90 7");
        assert_eq!(parse(&straight).ok(), Some(counts(400, 7)));
    }

    #[test]
    fn what_is_no_count_is_none() {
        for (profile, said) in [
            ("", "no total"),
            ("events: Ir Bcm Bim\ntotals: many\n", "no total"),
            ("events: Bcm Bim\ntotals: 400\n", "no total"),
            ("events: Ir\ntotals: 400\n", "no total"),
            ("events: Ir Bcm Bim\ntotals: 0\n", "never began"),
        ] {
            let error = parse(profile).expect_err(said).to_string();
            assert!(error.contains(said), "{profile:?}: {error}");
        }
        let error = read_profile(Path::new("/nowhere/profile")).expect_err("no file");
        assert!(error.to_string().contains("cannot be read"), "{error}");
    }

    #[test]
    fn it_is_found_or_told_how_to_get() {
        let error = locate_in(OsStr::new("/nowhere")).expect_err("not there");
        assert!(error.contains("apt-get install valgrind") || cfg!(not(target_arch = "x86_64")));
        let arguments = arguments(Path::new("/tmp/100%/p"));
        assert!(arguments.contains(&"--callgrind-out-file=/tmp/100%%/p".into()));
    }
}
