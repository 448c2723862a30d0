//! The measured region, as a workload sees it: start, stop, are we in time, and what was found.

use super::phases::{self, Phases};
use crate::metric::AT_PHASES;
use crate::probe::usage::Usage;
use crate::probe::{clock, counting, limits, markers};
use crate::trial::{FileRow, Outcome};
use contract::{Driver, Heap, Mode, OutOfMemory};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// True between `start` and `stop`: for the audit child, which counts every malloc of the process in there.
static MEASURING: AtomicBool = AtomicBool::new(false);

/// Whether the measured region is running.
pub fn measuring() -> bool {
    MEASURING.load(Ordering::Relaxed)
}

/// Why a workload ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The allocator returned null.
    OutOfMemory(OutOfMemory),
    /// A file took longer than its limit, in milliseconds.
    FileTimedOut(u64),
    /// The trial took longer than its limit, in milliseconds.
    TrialTimedOut(u64),
    /// The input could not be had.
    Input(String),
}

impl From<OutOfMemory> for Stop {
    fn from(refused: OutOfMemory) -> Self {
        Stop::OutOfMemory(refused)
    }
}

impl Stop {
    /// `ok`, `out-of-memory`, `timed-out` or `unreadable`, as in a file's row.
    pub fn name(ended: &Result<(), Stop>) -> &'static str {
        match ended {
            Ok(()) => "ok",
            Err(Stop::OutOfMemory(_)) => "out-of-memory",
            Err(Stop::FileTimedOut(_) | Stop::TrialTimedOut(_)) => "timed-out",
            Err(Stop::Input(_)) => "unreadable",
        }
    }

    /// The trial's outcome.
    pub fn outcome(self) -> Outcome {
        match self {
            Stop::OutOfMemory(refused) => Outcome::Failed {
                signal: None,
                message: refused.to_string(),
            },
            Stop::FileTimedOut(after_ms) | Stop::TrialTimedOut(after_ms) => {
                Outcome::TimedOut { after_ms }
            }
            Stop::Input(message) => Outcome::Failed {
                signal: None,
                message,
            },
        }
    }
}

/// What a workload found, beside times and counts.
#[derive(Debug, Default)]
pub struct Found {
    /// One row a file.
    pub files: Vec<FileRow>,
    /// What the walk left out, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Metrics that could not be had, with the reason.
    pub absent: BTreeMap<String, String>,
    /// Bytes of contents accumulated.
    pub appended_bytes: u64,
    /// Bytes of contents accumulated when the work ended; less than the input where it ended early.
    pub reached_bytes: u64,
    /// Steps of the workload: lines or appends.
    pub ops: u64,
    /// What was in the books at phases: `NAME.PHASE`.
    pub at_phases: BTreeMap<String, u64>,
    /// Sum of the hashes of what was put in; `None` as long as nothing was hashed.
    pub input_hash: Option<u64>,
    /// Sum of the hashes of what was read back.
    pub contents_hash: Option<u64>,
}

/// Time and counts of the regions so far.
#[derive(Debug, Default, Clone, Copy)]
pub struct Totals {
    /// Wall nanoseconds.
    pub wall_ns: u64,
    /// CPU nanoseconds of the process.
    pub cpu_ns: u64,
    /// User and system time, faults.
    pub usage: Usage,
}

/// The measured region of one trial. It may be started and stopped several times; what lies between (checking
/// contents, reading the next file) is not measured.
#[derive(Debug)]
pub struct Session {
    /// What the workload found.
    pub found: Found,
    totals: Totals,
    /// The heap keeps contents, so they can be checked.
    contents: bool,
    /// What the work begins with is kept for the next time.
    keep: bool,
    /// Bracket regions by marker system calls, for the trace.
    marked: bool,
    /// Who is told of phases; nobody but under the memory protocol.
    phases: Option<Phases>,
    limit_ns: u64,
    /// Address space that may be taken from the first start on.
    memory_limit: Option<u64>,
    /// Why the memory limit could not be set.
    unlimited: Option<String>,
    file_limit_ns: Option<u64>,
    file_from_ns: u64,
    begun: Begun,
}

#[derive(Debug, Default, Clone, Copy)]
struct Begun {
    wall_ns: u64,
    cpu_ns: u64,
    usage: Usage,
}

const MS: u64 = 1_000_000;

impl Session {
    /// A session whose regions together may take `limit_ms` milliseconds and, from the first one's start on,
    /// `memory_limit` bytes of address space.
    pub fn new(
        limit_ms: u64,
        memory_limit: Option<u64>,
        contents: bool,
        marked: bool,
        phases: Option<Phases>,
    ) -> Self {
        Session {
            found: Found::default(),
            totals: Totals::default(),
            contents,
            keep: false,
            marked,
            phases,
            limit_ns: limit_ms.saturating_mul(MS),
            memory_limit,
            unlimited: None,
            file_limit_ns: None,
            file_from_ns: 0,
            begun: Begun::default(),
        }
    }

    /// The same, under which a workload leaves what it begins with for the next time that it is run: for a child that
    /// serves. Contents are not read back.
    #[must_use]
    pub fn keeping(self) -> Self {
        Session {
            keep: true,
            contents: false,
            ..self
        }
    }

    /// Whether a workload should leave what it begins with where it is: live blocks that are not part of the measured
    /// region and would cost more than it.
    pub fn keep(&self) -> bool {
        self.keep
    }

    /// The clock runs from here. Whatever costs a system call comes before the markers and the clock.
    pub fn start(&mut self) {
        if let Some(Err(why)) = self.memory_limit.take().map(limits::limit_address_space) {
            self.unlimited = Some(format!("cannot limit the address space: {why}"));
        }
        self.begun.usage = Usage::now();
        self.begun.cpu_ns = clock::process_cpu_ns();
        if self.marked {
            markers::begin();
        }
        MEASURING.store(true, Ordering::Relaxed);
        counting::begin();
        self.begun.wall_ns = clock::monotonic_ns();
    }

    /// The clock stops here.
    pub fn stop(&mut self) {
        self.totals.wall_ns += clock::monotonic_ns() - self.begun.wall_ns;
        counting::end();
        MEASURING.store(false, Ordering::Relaxed);
        if self.marked {
            markers::end();
        }
        self.totals.cpu_ns += clock::process_cpu_ns() - self.begun.cpu_ns;
        self.totals.usage = self
            .totals
            .usage
            .plus(&Usage::now().since(&self.begun.usage));
    }

    /// The workload has come to the phase `name`. Under the memory protocol it stands still here until the harness has
    /// read its memory; under the others nothing happens. Outside the measured region, and each phase once.
    ///
    /// # Errors
    /// If the harness does not answer; there is nobody to work for then.
    pub fn phase(&mut self, name: &str) -> Result<(), Stop> {
        match &self.phases {
            Some(phases) => phases
                .reached(name)
                .map_err(|why| Stop::Input(format!("nobody answers at the phase {name}: {why}"))),
            None => Ok(()),
        }
    }

    /// As [`Session::phase`], and keeps what driver and heap have in their books at that moment, as `NAME.PHASE`.
    ///
    /// # Errors
    /// As [`Session::phase`].
    pub fn reached<H: Heap, M: Mode>(
        &mut self,
        name: &str,
        driver: &Driver<H, M>,
    ) -> Result<(), Stop> {
        let live = driver.mode().counts().map(|counts| counts.live_bytes);
        let live = live.map(|bytes| ("live_bytes", bytes));
        let told = driver.heap().stats().extra.into_iter().chain(live);
        let at = told
            .filter(|(metric, _)| AT_PHASES.contains(metric))
            .map(|(metric, value)| (format!("{metric}.{name}"), value));
        self.found.at_phases.extend(at);
        self.phase(name)
    }

    /// Under the memory protocol asks the allocator to give free memory back and then tells the phase `name`; under the
    /// others nothing happens.
    ///
    /// # Errors
    /// As [`Session::phase`].
    pub fn trimmed<H: Heap, M: Mode>(
        &mut self,
        name: &str,
        driver: &Driver<H, M>,
    ) -> Result<(), Stop> {
        if self.phases.is_none() {
            return Ok(());
        }
        if driver.heap().trim() {
            return self.reached(name, driver);
        }
        self.found.absent.insert(
            format!("rss.{name}"),
            "the allocator has no call that gives memory back".to_owned(),
        );
        Ok(())
    }

    /// Sleeps for `time`: outside the measured region, so neither its clock nor the limits count it. Under every
    /// protocol, because what an allocator does later can depend on it.
    pub fn idle(&self, time: Duration) {
        clock::sleep(time);
    }

    /// The last two phases: everything is freed; then, under the memory protocol, the allocator is asked to give free
    /// memory back. The input is still to be there, as it was at the start.
    ///
    /// # Errors
    /// As [`Session::phase`].
    pub fn emptied<H: Heap, M: Mode>(&mut self, driver: &Driver<H, M>) -> Result<(), Stop> {
        self.reached(phases::EMPTY, driver)?;
        self.trimmed(phases::TRIMMED, driver)
    }

    /// As [`Session::start`], for a file with a limit of its own.
    pub fn start_file(&mut self, limit_ns: Option<u64>) {
        self.file_limit_ns = limit_ns;
        self.file_from_ns = self.totals.wall_ns;
        self.start();
    }

    /// Wall nanoseconds measured since the last [`Session::start_file`].
    pub fn file_wall_ns(&self) -> u64 {
        self.totals.wall_ns - self.file_from_ns
    }

    /// To be asked now and then inside a region.
    ///
    /// # Errors
    /// [`Stop`] once the trial or the file has had its time.
    #[inline]
    pub fn in_time(&self) -> Result<(), Stop> {
        let here = clock::monotonic_ns() - self.begun.wall_ns;
        let trial = self.totals.wall_ns + here;
        if trial > self.limit_ns {
            return Err(Stop::TrialTimedOut(self.limit_ns / MS));
        }
        match self.file_limit_ns {
            Some(limit) if trial - self.file_from_ns > limit => Err(Stop::FileTimedOut(limit / MS)),
            _ => Ok(()),
        }
    }

    /// Checks contents, outside the region: `put_in` is the hash of what went in, `read_back` adds the hash of what
    /// the blocks hold now. Left out where the heap keeps no contents.
    pub fn contents_of(&mut self, put_in: u64, read_back: impl FnOnce(&mut u64)) {
        let input = self.found.input_hash.get_or_insert(0);
        *input = input.wrapping_add(put_in);
        if self.contents {
            read_back(self.found.contents_hash.get_or_insert(0));
        }
    }

    /// One file is done, with its row and the lines it had.
    pub fn file_done(&mut self, row: FileRow, lines: u64) {
        self.found.appended_bytes += row.reached_bytes;
        self.found.reached_bytes += row.reached_bytes;
        self.found.ops += lines;
        if row.ended == "timed-out" {
            self.skip("over-time-limit");
        }
        if row.ended == "out-of-memory" {
            self.skip("out-of-memory");
        }
        self.found.files.push(row);
    }

    /// One thing was left out.
    pub fn skip(&mut self, reason: &str) {
        *self.found.skipped.entry(reason.to_owned()).or_insert(0) += 1;
    }

    /// Ends the session: the memory limit is lifted, so that the report can be written.
    ///
    /// # Errors
    /// Why a limit could not be set or lifted; what was measured is then not what was asked.
    pub fn end(&mut self) -> Result<(), Stop> {
        let lifted = limits::lift_address_space_limit()
            .map_err(|why| format!("cannot lift the memory limit: {why}"));
        match self.unlimited.take() {
            Some(why) => Err(Stop::Input(why)),
            None => lifted.map_err(Stop::Input),
        }
    }

    /// Time and counts so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }
}
