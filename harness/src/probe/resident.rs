//! The memory of another process, as its parent sees it in `/proc`. Never `ru_maxrss`: a child inherits its parent's.

use super::limits::{Rollup, Status};
use std::fs;
use std::io;
use std::path::PathBuf;

/// What is written into `clear_refs` to reset the peak (proc(5)).
const RESET_PEAK: &[u8] = b"5";

/// A process that is watched. It must not be reaped while it is, or its number could name another.
#[derive(Debug)]
pub struct Process {
    folder: PathBuf,
}

impl Process {
    /// The process with that number.
    pub fn new(pid: u32) -> Process {
        Process {
            folder: PathBuf::from(format!("/proc/{pid}")),
        }
    }

    /// Resident memory by a walk over its page tables, exact to one OS page as long as the process stands still.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn rollup(&self) -> io::Result<Rollup> {
        Rollup::read(&fs::read_to_string(self.folder.join("smaps_rollup"))?)
    }

    /// Memory as the kernel counts it, the peak among it.
    ///
    /// # Errors
    /// What the kernel says; `InvalidData` if the process has ended and holds no memory any more.
    pub fn status(&self) -> io::Result<Status> {
        Status::read(&fs::read_to_string(self.folder.join("status"))?)
    }

    /// Resident anonymous memory in bytes by the kernel's counters: cheap, and up to 256 KiB late.
    ///
    /// # Errors
    /// What the kernel says; `InvalidData` if the process has ended and holds no memory any more.
    pub fn resident_anonymous(&self) -> io::Result<u64> {
        let text = fs::read_to_string(self.folder.join("statm"))?;
        // Size, resident, of it shared (backed by files or by shared memory), in OS pages.
        let mut pages = text.split(' ').map(str::parse::<u64>).skip(1);
        match (pages.next(), pages.next()) {
            (Some(Ok(resident)), Some(Ok(shared))) if resident > 0 => {
                Ok(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Sets the peak ([`Status::peak_resident`]) to what is resident now.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn reset_peak(&self) -> io::Result<()> {
        fs::write(self.folder.join("clear_refs"), RESET_PEAK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::alone::alone;
    use crate::probe::mapping::Mapping;

    #[test]
    fn a_peak_is_forgotten_once_reset() {
        alone(
            "probe::resident::tests::a_peak_is_forgotten_once_reset",
            || {
                const LEN: u64 = 64 << 20;
                let this = Process::new(std::process::id());
                drop(Mapping::new(LEN as usize).expect("64 MiB"));
                assert!(this.status().expect("status").peak_resident > LEN);
                this.reset_peak().expect("reset");
                assert!(this.status().expect("status").peak_resident < LEN);
                let held = Mapping::new(LEN as usize).expect("64 MiB");
                assert!(this.resident_anonymous().expect("statm") >= LEN - (1 << 20));
                assert!(this.rollup().expect("rollup").anonymous >= LEN);
                drop(held);
                assert!(
                    this.status().expect("status").peak_resident > LEN,
                    "a peak stays"
                );
            },
        );
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        // Numbers end below 2^22.
        let nobody = Process::new(1 << 30);
        assert!(nobody.rollup().is_err() && nobody.status().is_err());
        assert!(nobody.resident_anonymous().is_err() && nobody.reset_peak().is_err());
    }
}
