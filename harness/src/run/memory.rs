//! What a child's memory was, seen from outside: at its phases, between them, and at its peak.
//!
//! One thread for each child of the memory protocol. It answers the child's exchanges (see [`crate::child::phases`]):
//! at each the child stands still, so the walk over its page tables is exact. In between it samples the kernel's
//! counters, a series that is kept short by thinning it out as it grows.

use crate::child::phases::{END, LONGEST, START};
use crate::probe::resident::Process;
use crate::record::TrialRecord;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time between two samples, at first.
const INTERVAL: Duration = Duration::from_millis(2);
/// Samples that a series may have. One more, and it is thinned out.
const LONGEST_SERIES: usize = 1024;

/// The memory of a child that stands still, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    /// Resident.
    resident: u64,
    /// Resident and anonymous.
    anonymous: u64,
    /// In swap.
    swapped: u64,
    /// Held by the child's own heap.
    own: u64,
}

/// What was seen of one child.
#[derive(Debug, Default)]
pub struct Observed {
    phases: Vec<(String, Reading)>,
    /// Highest resident since the start, by the kernel.
    peak: Option<u64>,
    series: Series,
    /// The first thing that could not be read.
    refused: Option<String>,
}

/// A child under observation.
#[derive(Debug)]
pub struct Watch {
    ours: UnixStream,
    thread: JoinHandle<Observed>,
}

impl Watch {
    /// Watches the child with the number `pid`, whose standard input is the other end of `ours`; `shared` is `ours`
    /// once more, for the watching thread.
    pub fn new(pid: u32, ours: UnixStream, shared: UnixStream) -> Watch {
        let thread = thread::spawn(move || observe(&Process::new(pid), shared));
        Watch { ours, thread }
    }

    /// Ends the watch of a child that has ended.
    pub fn end(self) -> Observed {
        // Whoever else still holds the child's end of the socket, the thread must not wait for it.
        let _ = self.ours.shutdown(Shutdown::Both);
        self.thread.join().unwrap_or_default()
    }
}

/// Answers and samples until the child closes its end.
fn observe(process: &Process, mut socket: UnixStream) -> Observed {
    let mut seen = Observed::default();
    let mut line: Vec<u8> = Vec::new();
    let mut begun: Option<Instant> = None;
    loop {
        let timeout = begun.map(|_| Timespec {
            tv_sec: 0,
            tv_nsec: seen.series.interval().subsec_nanos().into(),
        });
        match poll(&mut [PollFd::new(&socket, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => {
                if let (Some(begun), Ok(bytes)) = (begun, process.resident_anonymous()) {
                    seen.series.add(begun.elapsed(), bytes);
                }
                continue;
            }
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return seen,
        }
        let mut byte = [0; LONGEST];
        match socket.read(&mut byte) {
            Ok(0) | Err(_) => return seen,
            Ok(read) => line.extend_from_slice(&byte[..read]),
        }
        if line.last() != Some(&b'\n') {
            if line.len() > LONGEST {
                return seen;
            }
            continue;
        }
        let Some((name, own)) = parsed(&line) else {
            return seen;
        };
        if let Err(why) = seen.look(process, name, own, begun) {
            let why = format!("cannot read the child's memory: {why}");
            seen.refused.get_or_insert(why);
        }
        if name == START {
            begun = Some(Instant::now());
        }
        line.clear();
        if socket.write_all(b"\n").is_err() {
            return seen;
        }
    }
}

/// `NAME BYTES` and a newline.
fn parsed(line: &[u8]) -> Option<(&str, u64)> {
    let (name, own) = std::str::from_utf8(line).ok()?.trim_end().split_once(' ')?;
    Some((name, own.parse().ok()?))
}

impl Observed {
    /// Reads what the phase `name` asks for.
    fn look(
        &mut self,
        process: &Process,
        name: &str,
        own: u64,
        begun: Option<Instant>,
    ) -> io::Result<()> {
        if name == END {
            self.peak = Some(process.status()?.peak_resident);
            return Ok(());
        }
        let rollup = process.rollup()?;
        let reading = Reading {
            resident: rollup.resident,
            anonymous: rollup.anonymous,
            swapped: rollup.swapped,
            own,
        };
        if name == START {
            process.reset_peak()?;
        }
        let after = begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        self.series.add(after, reading.anonymous);
        self.phases.push((name.to_owned(), reading));
        Ok(())
    }

    fn at(&self, name: &str) -> Option<&Reading> {
        let found = self.phases.iter().find(|(phase, _)| phase == name);
        found.map(|(_, reading)| reading)
    }

    /// Writes what was seen into `record`: `rss.PHASE`, `rss_gross.PHASE`, the peak and the series. Of `phases`, those
    /// that were not read are absent.
    pub fn tell(self, record: &mut TrialRecord, phases: impl Iterator<Item = &'static str>) {
        let never = self
            .refused
            .clone()
            .unwrap_or_else(|| "the trial did not come so far".to_owned());
        let start = self.at(START).copied();
        for name in phases {
            match (start, self.at(name)) {
                (Some(_), Some(now)) if now.swapped > 0 => {
                    let why = "a part of the child's memory was in swap".to_owned();
                    record.absent.insert(format!("rss.{name}"), why);
                }
                (Some(start), Some(now)) => {
                    let net = net(now.anonymous, now.own, start.anonymous, start.own);
                    record.metrics.insert(format!("rss.{name}"), net);
                    let gross = now.anonymous;
                    record.metrics.insert(format!("rss_gross.{name}"), gross);
                }
                _ => {
                    record.absent.insert(format!("rss.{name}"), never.clone());
                }
            }
        }
        match (start, self.peak) {
            (Some(start), Some(peak)) => {
                // The kernel notes its peak from counters that lag behind; what was resident at a phase is certain.
                let most = |of: fn(&Reading) -> u64| {
                    let readings = self.phases.iter().map(|(_, reading)| of(reading));
                    readings.max().unwrap_or(0)
                };
                let peak = peak.max(most(|reading| reading.resident));
                let net = net(peak, most(|reading| reading.own), start.resident, start.own);
                record.metrics.insert("peak_bytes".to_owned(), net);
                record.metrics.insert("peak_gross_bytes".to_owned(), peak);
            }
            _ => {
                record.absent.insert("peak_bytes".to_owned(), never);
            }
        }
        if !self.series.samples.is_empty() {
            let series = ("rss_gross".to_owned(), self.series.samples);
            record.series.extend([series]);
        }
    }
}

/// What was added since the start, without what the child's own heap added; 0 if less is left than there was.
fn net(now: u64, own_now: u64, start: u64, own_start: u64) -> u64 {
    (now + own_start).saturating_sub(start + own_now)
}

/// Samples over time, `(milliseconds, bytes)`.
#[derive(Debug, Default)]
struct Series {
    samples: Vec<(u64, u64)>,
    /// How often it was thinned out.
    thinned: u32,
}

impl Series {
    /// Time between two samples: it doubles whenever the series is thinned out, up to half a second.
    fn interval(&self) -> Duration {
        INTERVAL * 2u32.pow(self.thinned.min(8))
    }

    fn add(&mut self, after: Duration, bytes: u64) {
        self.samples.push((after.as_millis() as u64, bytes));
        if self.samples.len() > LONGEST_SERIES {
            // The higher of two neighbours stays, so that no peak goes.
            self.samples = self
                .samples
                .chunks(2)
                .filter_map(|two| two.iter().copied().max_by_key(|(_, bytes)| *bytes))
                .collect();
            self.thinned += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Trial;

    #[test]
    fn a_series_stays_short_and_keeps_its_peak() {
        let mut series = Series::default();
        for ms in 0..100_000 {
            let bytes = if ms == 4567 { 99 } else { ms % 7 };
            series.add(Duration::from_millis(ms), bytes);
        }
        assert!(series.samples.len() <= LONGEST_SERIES);
        assert!(series.samples.contains(&(4567, 99)));
        assert!(series.samples.is_sorted_by_key(|(ms, _)| *ms));
        assert!(series.interval() > INTERVAL && series.interval() < Duration::from_secs(1));
    }

    fn reading(anonymous: u64, own: u64) -> Reading {
        Reading {
            resident: anonymous + 1000,
            anonymous,
            swapped: 0,
            own,
        }
    }

    #[test]
    fn figures_are_net_of_the_start_and_of_the_childs_own_heap() {
        let seen = Observed {
            phases: vec![
                (START.to_owned(), reading(5000, 3000)),
                ("full".to_owned(), reading(9500, 3500)),
                ("empty".to_owned(), reading(4900, 3000)),
            ],
            peak: Some(12_000),
            ..Observed::default()
        };
        let mut record = Trial::memory("g", "system").ok();
        let phases = [START, "full", "empty", "trimmed"];
        seen.tell(&mut record, phases.into_iter());
        let told = |name: &str| record.metrics.get(name).copied();
        assert_eq!(told("rss.start"), Some(0));
        assert_eq!(told("rss_gross.start"), Some(5000));
        assert_eq!(told("rss.full"), Some(4000));
        assert_eq!(told("rss_gross.full"), Some(9500));
        assert_eq!(told("rss.empty"), Some(0), "less than at the start");
        assert_eq!(told("peak_bytes"), Some(12_000 - 6000 - 500));
        assert_eq!(told("peak_gross_bytes"), Some(12_000));
        assert_eq!(told("rss.trimmed"), None);
        assert_eq!(
            record.absent["rss.trimmed"],
            "the trial did not come so far"
        );
    }

    #[test]
    fn a_peak_is_not_below_what_was_seen() {
        let seen = Observed {
            phases: vec![
                (START.to_owned(), reading(5000, 0)),
                ("full".to_owned(), reading(9500, 0)),
            ],
            peak: Some(9800),
            ..Observed::default()
        };
        let mut record = Trial::memory("g", "system").ok();
        seen.tell(&mut record, ["full"].into_iter());
        assert_eq!(record.metrics["peak_gross_bytes"], 10_500);
        assert_eq!(record.metrics["peak_bytes"], 4500);
    }

    #[test]
    fn without_a_start_and_in_swap_there_is_no_figure() {
        let mut record = Trial::memory("g", "system").ok();
        let seen = Observed {
            refused: Some("no permission".to_owned()),
            ..Observed::default()
        };
        seen.tell(&mut record, ["full"].into_iter());
        assert!(record.metrics.is_empty());
        assert_eq!(record.absent["rss.full"], "no permission");
        assert_eq!(record.absent["peak_bytes"], "no permission");

        let mut swapped = reading(9000, 0);
        swapped.swapped = 4096;
        let seen = Observed {
            phases: vec![
                (START.to_owned(), reading(5000, 0)),
                ("full".to_owned(), swapped),
            ],
            ..Observed::default()
        };
        let mut record = Trial::memory("g", "system").ok();
        seen.tell(&mut record, ["full"].into_iter());
        assert!(record.absent["rss.full"].contains("swap"));
        assert!(!record.metrics.contains_key("rss.full"));
    }

    #[test]
    fn what_a_child_says_is_read_or_refused() {
        assert_eq!(parsed(b"full 4096\n"), Some(("full", 4096)));
        for line in [&b"full\n"[..], b"full many\n", b"\xff 1\n", b"\n"] {
            assert_eq!(parsed(line), None, "{line:?}");
        }
    }
}
