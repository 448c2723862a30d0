//! One child: started, watched, timed out, collected. Nothing else in the harness starts a trial.

use super::interrupt;
use super::memory::{Observed, Watch};
use crate::probe::limits;
use crate::trial::{Answers, ChildReport, Inquiry, Protocol, Receipt, TrialSpec};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A report longer than this is garbage. (The largest real ones list some ten thousand files and moves.)
const LONGEST_REPORT: usize = 256 << 20;
/// What a child says on standard error is kept up to here.
pub(super) const LONGEST_COMPLAINT: usize = 64 << 10;
/// A pipe that is still open so long after its child has ended is held by something else.
const AFTER_THE_END: Duration = Duration::from_secs(1);

/// How a child that was to answer with `R` ended, seen from outside.
#[derive(Debug)]
pub enum Ended<R> {
    /// It exited with success and this report.
    Reported(Box<R>),
    /// It died of a signal.
    Killed(i32, String),
    /// It exited with a failure, or with no readable report.
    Garbled(String),
    /// It was killed at its hard limit.
    Hung,
    /// The user wants to stop; the child was killed.
    Interrupted,
}

/// What to start.
#[derive(Debug)]
pub struct Start<'a> {
    /// The child's binary.
    pub child: &'a Path,
    /// strace or valgrind and its arguments, if the child is to be run under it.
    pub tracer: Option<(&'a Path, Vec<OsString>)>,
    /// The child's whole environment.
    pub environment: &'a BTreeMap<String, String>,
    /// Its orders.
    pub spec: &'a TrialSpec,
    /// After so long it is killed with all its processes.
    pub hard_limit: Duration,
}

/// What came of one child.
#[derive(Debug)]
pub struct Seen {
    /// How it ended.
    pub ended: Ended<ChildReport>,
    /// Its memory, seen from outside: under the memory protocol alone.
    pub memory: Option<Observed>,
}

/// Runs one child to its end. Under the memory protocol the child's standard input is a socket, by which it tells its
/// phases after it has read its orders; else it is a pipe.
///
/// # Errors
/// If it cannot be started at all.
pub fn run(start: &Start) -> io::Result<Seen> {
    let command = match &start.tracer {
        Some((tracer, arguments)) => {
            let mut command = Command::new(tracer);
            command.args(arguments).arg(start.child);
            command
        }
        None => Command::new(start.child),
    };
    // A line, because the socket of a memory trial stays open after it.
    let mut orders = serde_json::to_vec(start.spec)?;
    orders.push(b'\n');
    let watched = start.spec.protocol == Protocol::Memory;
    let hard_limit = start.hard_limit;
    let (ended, memory) = to_its_end(command, start.environment, &orders, hard_limit, watched)?;
    Ok(Seen { ended, memory })
}

/// Asks a child what `option` says, of the arm that `inquiry` names.
///
/// # Errors
/// If it cannot be started at all.
pub fn inquiry(
    child: &Path,
    environment: &BTreeMap<String, String>,
    option: &str,
    inquiry: &Inquiry,
    hard_limit: Duration,
) -> io::Result<Ended<Answers>> {
    let mut command = Command::new(child);
    command.arg(option);
    let mut orders = serde_json::to_vec(inquiry)?;
    orders.push(b'\n');
    to_its_end(command, environment, &orders, hard_limit, false).map(|(ended, _)| ended)
}

/// Has a child describe the arm `arm`.
///
/// # Errors
/// If it cannot be started at all.
pub fn version(
    child: &Path,
    arm: &str,
    environment: &BTreeMap<String, String>,
    hard_limit: Duration,
) -> io::Result<Ended<Receipt>> {
    let mut command = Command::new(child);
    command.args(["--version", arm]);
    to_its_end(command, environment, b"", hard_limit, false).map(|(ended, _)| ended)
}

/// Standard input is a socket if the child's memory is `watched`, else a pipe.
fn to_its_end<R: DeserializeOwned>(
    mut command: Command,
    environment: &BTreeMap<String, String>,
    orders: &[u8],
    hard_limit: Duration,
    watched: bool,
) -> io::Result<(Ended<R>, Option<Observed>)> {
    let (stdin, sockets) = if watched {
        let (ours, theirs) = UnixStream::pair()?;
        let shared = ours.try_clone()?;
        (Stdio::from(OwnedFd::from(theirs)), Some((ours, shared)))
    } else {
        (Stdio::piped(), None)
    };
    // Neither a child nor its tracer may outlive a harness that is killed.
    let mut child = limits::dies_with_us(&mut command)
        .env_clear()
        .envs(environment)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own: it can be killed with whatever it started, and Ctrl-C reaches the harness alone.
        .process_group(0)
        .spawn()?;
    // A child that ends without reading leaves a broken pipe; its ending says more than that.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(orders);
    }
    // With the command goes our copy of the child's end.
    drop(command);
    let observed = sockets.map(|(mut ours, shared)| {
        let _ = ours.write_all(orders);
        Watch::new(child.id(), ours, shared)
    });
    let out = child
        .stdout
        .take()
        .map(|pipe| Gathering::of(pipe, LONGEST_REPORT));
    let err = child
        .stderr
        .take()
        .map(|pipe| Gathering::of(pipe, LONGEST_COMPLAINT));
    let watched = watch(&child, hard_limit);
    // Whatever the child has left behind in its group goes with it.
    kill_group(&child);
    let status = child.wait()?;
    let text = |gathering: Option<Gathering>| gathering.map(Gathering::taken).unwrap_or_default();
    let (out, err) = (text(out), text(err));
    let ended = match watched {
        Watched::Exited => read(status, &out, &err),
        Watched::Late => Ended::Hung,
        Watched::Interrupted => Ended::Interrupted,
    };
    Ok((ended, observed.map(Watch::end)))
}

/// What a finished child's status and words amount to.
fn read<R: DeserializeOwned>(status: ExitStatus, out: &[u8], err: &[u8]) -> Ended<R> {
    let complaint = last_line(err);
    if let Some(signal) = status.signal() {
        return Ended::Killed(signal, complaint);
    }
    if !status.success() {
        let code = status.code().unwrap_or(-1);
        return Ended::Garbled(format!("the child exited with status {code}: {complaint}"));
    }
    match serde_json::from_slice(out) {
        Ok(report) => Ended::Reported(Box::new(report)),
        Err(why) => {
            let start: String = String::from_utf8_lossy(out).chars().take(60).collect();
            Ended::Garbled(format!(
                "the child printed no readable report ({why}): {start:?}"
            ))
        }
    }
}

/// The last line with something in it: what a child died with.
pub(super) fn last_line(err: &[u8]) -> String {
    let said = String::from_utf8_lossy(err);
    let mut lines = said.lines().rev();
    let last = lines.find(|line| !line.trim().is_empty());
    last.unwrap_or("").trim().to_owned()
}

/// What a child writes into one pipe, read by a thread of its own.
#[derive(Debug)]
pub(super) struct Gathering {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Gathering {
    /// Reads to the end, keeping the first `most` bytes: a child that prints without end must not fill our memory.
    pub(super) fn of(mut pipe: impl Read + Send + 'static, most: usize) -> Gathering {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (told, ended) = mpsc::channel();
        let into = Arc::clone(&kept);
        thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(read @ 1..) = pipe.read(&mut buffer) {
                if let Ok(mut kept) = into.lock() {
                    let room = most.saturating_sub(kept.len());
                    kept.extend_from_slice(&buffer[..read.min(room)]);
                }
            }
            // Nobody may be waiting any more.
            let _ = told.send(());
        });
        Gathering { kept, ended }
    }

    /// What was written by the child, which has ended. A process that it left behind may hold the pipe open for ever,
    /// so the wait for its end is short.
    pub(super) fn taken(self) -> Vec<u8> {
        let _ = self.ended.recv_timeout(AFTER_THE_END);
        self.kept
            .lock()
            .map(|mut kept| std::mem::take(&mut *kept))
            .unwrap_or_default()
    }
}

#[derive(PartialEq, Eq)]
enum Watched {
    Exited,
    Late,
    Interrupted,
}

/// Sleeps until the child exits, its time is up or the user interrupts. Polling now and then would take time from the
/// trial, so the kernel wakes us.
fn watch(child: &Child, limit: Duration) -> Watched {
    let until = Instant::now() + limit;
    let Some(pidfd) = pid(child).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
        return Watched::Late;
    };
    loop {
        if interrupt::asked() {
            return Watched::Interrupted;
        }
        let Some(left) = until.checked_duration_since(Instant::now()) else {
            return Watched::Late;
        };
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Watched::Late,
            Ok(_) => return Watched::Exited,
            // Interrupted by a signal: the loop looks whether it was one that asks us to stop.
            Err(_) => {}
        }
    }
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

pub(super) fn kill_group(child: &Child) {
    if let Some(pid) = pid(child) {
        // It may have ended meanwhile; then there is nothing to kill.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}
