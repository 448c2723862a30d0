//! What a child sets for itself before it measures, and what the kernel says of its memory. Obeys NO-MALLOC.

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{read, retry_on_intr, write};
use rustix::process::{
    Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};
use std::ffi::CStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Switches transparent huge pages off for this process and what it executes, and reads that back.
///
/// # Errors
/// What the kernel says; `Unsupported` if it accepts the call and keeps them on.
pub fn disable_thp() -> io::Result<()> {
    disable_transparent_huge_pages(true)?;
    if thp_disabled()? {
        Ok(())
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// True if transparent huge pages are switched off for this process.
///
/// # Errors
/// What the kernel says.
pub fn thp_disabled() -> io::Result<bool> {
    Ok(transparent_huge_pages_are_disabled()?)
}

/// How the machine has transparent huge pages, the chosen word of `/sys/kernel/mm/transparent_hugepage/enabled`, written
/// into `buffer`: `always`, `madvise` or `never`.
///
/// # Errors
/// What the kernel says; `InvalidData` if no word is marked as chosen.
pub fn thp_of_the_machine(buffer: &mut [u8]) -> io::Result<&str> {
    let text = read_small(c"/sys/kernel/mm/transparent_hugepage/enabled", buffer)?;
    let chosen = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    chosen
        .map(|(word, _)| word)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Has the kernel kill this process when the one that started it ends, so that no child outlives a killed harness.
///
/// # Errors
/// What the kernel says.
pub fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// The same for a program that is about to be started and may know nothing of it, such as strace.
pub fn dies_with_us(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; this closure makes one bare system call
    // and allocates nothing.
    unsafe { command.pre_exec(die_with_parent) }
}

/// Makes this process the first that the kernel kills when memory runs out, so that it takes nobody with it.
///
/// # Errors
/// What the kernel says.
pub fn volunteer_for_oom_killer() -> io::Result<()> {
    let file = open(
        c"/proc/self/oom_score_adj",
        OFlags::WRONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    write(&file, b"1000")?;
    Ok(())
}

/// The badness that this process adds for the kernel's out-of-memory killer, -1000 to 1000.
///
/// # Errors
/// What the kernel says; `InvalidData` if it is no number.
pub fn oom_score_adj() -> io::Result<i32> {
    let mut buffer = [0; 32];
    let text = read_small(c"/proc/self/oom_score_adj", &mut buffer)?;
    text.trim()
        .parse()
        .map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Lets the address space of this process grow by `more` bytes from its present size and no further. Returns the
/// limit that is then in force, in bytes.
///
/// # Errors
/// What the kernel says, if for example a lower hard limit is in force already.
pub fn limit_address_space(more: u64) -> io::Result<u64> {
    let limit = address_space()?.saturating_add(more);
    let hard = getrlimit(Resource::As).maximum;
    setrlimit(
        Resource::As,
        Rlimit {
            current: Some(limit),
            maximum: hard,
        },
    )?;
    Ok(limit)
}

/// Takes the limit of [`limit_address_space`] back, up to the hard limit that was in force before.
///
/// # Errors
/// What the kernel says.
pub fn lift_address_space_limit() -> io::Result<()> {
    let hard = getrlimit(Resource::As).maximum;
    Ok(setrlimit(
        Resource::As,
        Rlimit {
            current: hard,
            maximum: hard,
        },
    )?)
}

/// Bytes of address space that this process holds, from `/proc/self/statm`.
///
/// # Errors
/// What the kernel says; `InvalidData` if it is no number.
pub fn address_space() -> io::Result<u64> {
    let mut buffer = [0; 256];
    let text = read_small(c"/proc/self/statm", &mut buffer)?;
    let pages: u64 = text
        .split(' ')
        .next()
        .and_then(|word| word.parse().ok())
        .ok_or(io::ErrorKind::InvalidData)?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// The memory of this process as `/proc/self/status` has it, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// Address space (VmSize).
    pub size: u64,
    /// Peak resident (VmHWM).
    pub peak_resident: u64,
    /// Resident (VmRSS). The kernel adds up per-processor counters late: up to 256 KiB off.
    pub resident: u64,
    /// Resident anonymous memory (RssAnon), with the same reserve.
    pub resident_anonymous: u64,
    /// Anonymous memory in swap (VmSwap).
    pub swapped: u64,
}

impl Status {
    /// The present values.
    ///
    /// # Errors
    /// What the kernel says; `InvalidData` if a line is missing or is no number.
    pub fn now() -> io::Result<Status> {
        let mut buffer = [0; 8192];
        Status::read(read_small(c"/proc/self/status", &mut buffer)?)
    }

    /// The values in the text of such a file.
    ///
    /// # Errors
    /// `InvalidData` if a line is missing or is no number.
    pub fn read(text: &str) -> io::Result<Status> {
        Ok(Status {
            size: kib_line(text, "VmSize:")?,
            peak_resident: kib_line(text, "VmHWM:")?,
            resident: kib_line(text, "VmRSS:")?,
            resident_anonymous: kib_line(text, "RssAnon:")?,
            swapped: kib_line(text, "VmSwap:")?,
        })
    }
}

/// The memory of this process as `/proc/self/smaps_rollup` has it, in bytes: a walk over its page tables, exact to
/// one OS page, and slow (milliseconds for gigabytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rollup {
    /// Resident.
    pub resident: u64,
    /// Resident and anonymous.
    pub anonymous: u64,
    /// Of it in transparent huge pages.
    pub anonymous_huge: u64,
    /// In swap, and so not resident.
    pub swapped: u64,
}

impl Rollup {
    /// The present values.
    ///
    /// # Errors
    /// What the kernel says; `InvalidData` if a line is missing or is no number.
    pub fn now() -> io::Result<Rollup> {
        let mut buffer = [0; 4096];
        Rollup::read(read_small(c"/proc/self/smaps_rollup", &mut buffer)?)
    }

    /// The values in the text of such a file.
    ///
    /// # Errors
    /// `InvalidData` if a line is missing or is no number.
    pub fn read(text: &str) -> io::Result<Rollup> {
        Ok(Rollup {
            resident: kib_line(text, "Rss:")?,
            anonymous: kib_line(text, "Anonymous:")?,
            anonymous_huge: kib_line(text, "AnonHugePages:")?,
            swapped: kib_line(text, "Swap:")?,
        })
    }
}

/// The number in the line that starts with `key`, which the kernel gives in KiB, in bytes.
fn kib_line(text: &str, key: &str) -> io::Result<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key))
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .and_then(|number| number.parse::<u64>().ok())
        .map(|kib| kib * 1024)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Reads a small file of `/proc` into `buffer`, as far as both go.
fn read_small<'b>(path: &CStr, buffer: &'b mut [u8]) -> io::Result<&'b str> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut filled = 0;
    while filled < buffer.len() {
        match retry_on_intr(|| read(&file, &mut buffer[filled..]))? {
            0 => break,
            n => filled += n,
        }
    }
    std::str::from_utf8(&buffer[..filled]).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::alone::alone;
    use crate::probe::mapping::Mapping;

    #[test]
    fn huge_pages_are_off_once_switched_off() {
        alone(
            "probe::limits::tests::huge_pages_are_off_once_switched_off",
            || {
                disable_thp().unwrap();
                assert!(thp_disabled().unwrap());
                let _mapping = Mapping::new(8 << 20).unwrap();
                assert_eq!(Rollup::now().unwrap().anonymous_huge, 0);
            },
        );
    }

    #[test]
    fn the_kernel_sees_what_is_touched_and_not_what_is_only_mapped() {
        const LEN: usize = 64 << 20;
        // The test harness's own threads and the kernel's late counting need a little.
        const SLACK: u64 = 1 << 20;
        alone(
            "probe::limits::tests::the_kernel_sees_what_is_touched_and_not_what_is_only_mapped",
            || {
                disable_thp().unwrap();
                let len = LEN as u64;
                let now = || (Rollup::now().unwrap(), Status::now().unwrap());
                let before = now();
                let mut mapping = Mapping::untouched(LEN).unwrap();
                let mapped = now();
                assert!((len..len + SLACK).contains(&(mapped.1.size - before.1.size)));
                assert!(mapped.0.anonymous - before.0.anonymous < SLACK);
                mapping.as_mut_slice().fill(1);
                let touched = now();
                assert!((len..len + SLACK).contains(&(touched.0.anonymous - before.0.anonymous)));
                assert!(touched.0.resident >= touched.0.anonymous);
                assert!(
                    touched.1.peak_resident >= len && touched.1.resident_anonymous >= len - SLACK
                );
                assert!(address_space().unwrap() >= len);
                drop(mapping);
                let dropped = now();
                assert!(dropped.0.anonymous < before.0.anonymous + SLACK);
                assert!(dropped.1.peak_resident >= len, "a peak stays");
            },
        );
    }

    #[test]
    fn limits_hold() {
        alone("probe::limits::tests::limits_hold", || {
            volunteer_for_oom_killer().unwrap();
            assert_eq!(oom_score_adj().unwrap(), 1000);
            let before = address_space().unwrap();
            let limit = limit_address_space(64 << 20).unwrap();
            assert_eq!(limit, before + (64 << 20));
            let within = Mapping::untouched(48 << 20).expect("48 of 64 MiB");
            assert!(
                Mapping::untouched(48 << 20).is_err(),
                "96 MiB within a limit of 64"
            );
            drop(within);
            Mapping::untouched(48 << 20).expect("48 of 64 MiB, the first being gone");
        });
    }

    #[test]
    fn broken_lines_are_errors() {
        assert_eq!(kib_line("Rss:  12 kB\n", "Rss:").unwrap(), 12 * 1024);
        for text in ["", "Rss:", "Rss: many kB", "xRss: 12 kB"] {
            assert!(kib_line(text, "Rss:").is_err(), "{text:?}");
        }
    }
}
