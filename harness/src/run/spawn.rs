//! One child: started, watched, timed out, collected. Nothing else in the harness starts a trial.

use super::interrupt;
use super::memory::{Observed, Watch};
use crate::probe::limits;
use crate::trial::{ChildReport, Protocol, TrialSpec};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A report longer than this is garbage. (The largest real ones list some ten thousand files and moves.)
const LONGEST_REPORT: u64 = 256 << 20;
/// What a child says on standard error is kept up to here.
const LONGEST_COMPLAINT: u64 = 64 << 10;

/// How a child ended, seen from outside.
#[derive(Debug)]
pub enum Ended {
    /// It exited with success and this report.
    Reported(Box<ChildReport>),
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
    /// strace and its arguments, if the child is to be traced.
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
    pub ended: Ended,
    /// Its memory, seen from outside: under the memory protocol alone.
    pub memory: Option<Observed>,
}

/// Runs one child to its end. Under the memory protocol the child's standard input is a socket, by which it tells its
/// phases after it has read its orders; else it is a pipe.
///
/// # Errors
/// If it cannot be started at all.
pub fn run(start: &Start) -> io::Result<Seen> {
    let mut command = match &start.tracer {
        Some((strace, arguments)) => {
            let mut command = Command::new(strace);
            command.args(arguments).arg(start.child);
            command
        }
        None => Command::new(start.child),
    };
    let mut orders = serde_json::to_vec(start.spec)?;
    orders.push(b'\n');
    let (stdin, sockets) = match start.spec.protocol {
        Protocol::Memory => {
            let (ours, theirs) = UnixStream::pair()?;
            let shared = ours.try_clone()?;
            (Stdio::from(OwnedFd::from(theirs)), Some((ours, shared)))
        }
        Protocol::Time | Protocol::Census => (Stdio::piped(), None),
    };
    // Neither a child nor its tracer may outlive a harness that is killed.
    let mut child = limits::dies_with_us(&mut command)
        .env_clear()
        .envs(start.environment)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own: it can be killed with whatever it started, and Ctrl-C reaches the harness alone.
        .process_group(0)
        .spawn()?;
    // A child that ends without reading leaves a broken pipe; its ending says more than that.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(&orders);
    }
    // With the command goes our copy of the child's end.
    drop(command);
    let observed = sockets.map(|(mut ours, shared)| {
        let _ = ours.write_all(&orders);
        Watch::new(child.id(), ours, shared)
    });
    let out = child
        .stdout
        .take()
        .map(|pipe| thread::spawn(move || gather(pipe, LONGEST_REPORT)));
    let err = child
        .stderr
        .take()
        .map(|pipe| thread::spawn(move || gather(pipe, LONGEST_COMPLAINT)));
    let watched = watch(&child, start.hard_limit);
    if watched != Watched::Exited {
        kill_group(&child);
    }
    let status = child.wait()?;
    let text = |reader: Option<thread::JoinHandle<Vec<u8>>>| {
        reader.and_then(|r| r.join().ok()).unwrap_or_default()
    };
    let (out, err) = (text(out), text(err));
    let ended = match watched {
        Watched::Exited => read(status, &out, &err),
        Watched::Late => Ended::Hung,
        Watched::Interrupted => Ended::Interrupted,
    };
    Ok(Seen {
        ended,
        memory: observed.map(Watch::end),
    })
}

/// What a finished child's status and words amount to.
fn read(status: ExitStatus, out: &[u8], err: &[u8]) -> Ended {
    let said = String::from_utf8_lossy(err);
    let complaint = said
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("")
        .trim()
        .to_owned();
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

/// Reads to the end, keeping the first `most` bytes: a child that prints without end must not fill our memory.
fn gather(mut pipe: impl Read, most: u64) -> Vec<u8> {
    let mut kept = Vec::new();
    let _ = pipe.by_ref().take(most).read_to_end(&mut kept);
    let _ = io::copy(&mut pipe, &mut io::sink());
    kept
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

fn kill_group(child: &Child) {
    if let Some(pid) = pid(child) {
        // It may have ended meanwhile; then there is nothing to kill.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}
