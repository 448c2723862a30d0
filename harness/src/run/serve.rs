//! A child that serves: started, asked request after request, ended. For `cargo bench` alone; a run never uses it.

use super::spawn::{Gathering, LONGEST_COMPLAINT, kill_group, last_line};
use super::{affordable, environment, killed, preloaded, startable};
use crate::arms::Arm;
use crate::child::serve::COMMAND;
use crate::probe::{limits, machine};
use crate::trial::{Outcome, Params, Protocol, SCHEMA, ServeAnswer, ServeRequest, Thp, TrialSpec};
use crate::workloads::WorkloadDef;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{read, retry_on_intr};
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// An answer longer than this is garbage.
const LONGEST_ANSWER: usize = 1 << 20;

/// Why there is no answer that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// The arm cannot be measured here at all, and what would change that.
    Unavailable(String),
    /// This was too slow or too large for it.
    TooMuch(String),
    /// It failed: died, hung, ran out of memory, or did other work than it was given.
    Failed(String),
}

/// A workload with parameters, as a server is asked for it.
#[derive(Debug)]
pub struct Task<'a> {
    /// The workload.
    pub workload: &'static WorkloadDef,
    /// Its parameters, resolved.
    pub params: &'a Params,
    /// Seed of its input.
    pub seed: u64,
}

/// A running child with its warm heap. It is killed when this is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    orders: ChildStdin,
    answers: ChildStdout,
    complaints: Option<Gathering>,
    arm: Arm,
}

impl Server {
    /// Starts the child of `arm`, which is in the folder `children`, if `task` fits into the machine's memory.
    ///
    /// # Errors
    /// [`NoAnswer`] if the arm is not built, its child not there, or the task too large.
    pub fn start(arm: &Arm, children: &Path, task: &Task) -> Result<Server, NoAnswer> {
        let home = arm.home();
        startable(&home, children).map_err(NoAnswer::Unavailable)?;
        let needs = (task.workload.footprint)(task.params, arm.def);
        let has = machine::available_memory().unwrap_or(u64::MAX);
        affordable(needs, has).map_err(NoAnswer::TooMuch)?;
        let mut command = Command::new(children.join(home.child));
        let mut child = limits::dies_with_us(&mut command)
            .args([COMMAND, &arm.id()])
            .env_clear()
            .envs(environment(arm, 0))
            .envs(preloaded(arm))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|why| NoAnswer::Unavailable(format!("cannot start {}: {why}", home.child)))?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(NoAnswer::Failed("the child has no pipes".to_owned()));
        };
        let stderr = child.stderr.take();
        let complaints = stderr.map(|pipe| Gathering::of(pipe, LONGEST_COMPLAINT));
        Ok(Server {
            child,
            orders,
            answers,
            complaints,
            arm: arm.clone(),
        })
    }

    /// Process id of the child.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has the child run `task` so often as `iterations` says, all of which may take `soft` of measured time. A child
    /// that has not answered after `hard` is killed.
    ///
    /// # Errors
    /// [`NoAnswer`], whatever went wrong. Only an answer whose every iteration finished, with a receipt and with
    /// contents that are those of the input, is one.
    pub fn ask(
        &mut self,
        task: &Task,
        iterations: u64,
        soft: Duration,
        hard: Duration,
    ) -> Result<ServeAnswer, NoAnswer> {
        let request = ServeRequest {
            iterations,
            trial: TrialSpec {
                schema: SCHEMA,
                source_hash: crate::SOURCE_HASH.to_owned(),
                arm: self.arm.id(),
                knobs: self.arm.knobs.clone(),
                workload: task.workload.id.to_owned(),
                params: task.params.clone(),
                protocol: Protocol::Time,
                seed: task.seed,
                thp: Thp::Off,
                soft_limit_ms: soft.as_millis() as u64,
                memory_limit: None,
                log_moves: 0,
                verify: false,
            },
        };
        let line = serde_json::to_string(&request)
            .map_err(|why| NoAnswer::Failed(format!("cannot write the request: {why}")))?;
        let answer = self.exchange(&line, hard)?;
        self.judge(answer, iterations)
    }

    /// Sends one line and reads one answer, whatever it says.
    ///
    /// # Errors
    /// [`NoAnswer`] if the child has ended, says nothing within `limit` or nothing readable.
    pub fn exchange(&mut self, line: &str, limit: Duration) -> Result<ServeAnswer, NoAnswer> {
        let until = Instant::now() + limit;
        // A child that has ended leaves a broken pipe; its ending says more than that.
        let _ = self.orders.write_all(format!("{line}\n").as_bytes());
        let text = self.line(until, limit)?;
        serde_json::from_slice(&text).map_err(|why| {
            let start: String = String::from_utf8_lossy(&text).chars().take(60).collect();
            NoAnswer::Failed(format!(
                "the child printed no readable answer ({why}): {start:?}"
            ))
        })
    }

    fn line(&mut self, until: Instant, limit: Duration) -> Result<Vec<u8>, NoAnswer> {
        let mut text = Vec::new();
        let mut buffer = [0; 16 << 10];
        while !text.ends_with(b"\n") && text.len() < LONGEST_ANSWER {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let mut ready = [PollFd::new(&self.answers, PollFlags::IN)];
            match retry_on_intr(|| poll(&mut ready, Some(&timeout))) {
                Ok(0) => {
                    kill_group(&self.child);
                    return Err(NoAnswer::TooMuch(format!(
                        "no answer within {:.1} s",
                        limit.as_secs_f64()
                    )));
                }
                Ok(_) => {}
                Err(why) => return Err(NoAnswer::Failed(format!("cannot wait: {why}"))),
            }
            match retry_on_intr(|| read(&self.answers, &mut buffer)) {
                Ok(0) => return Err(self.ended()),
                Ok(read) => text.extend_from_slice(&buffer[..read]),
                Err(why) => {
                    return Err(NoAnswer::Failed(format!("cannot read the answer: {why}")));
                }
            }
        }
        Ok(text)
    }

    /// Why a child that should answer has closed its output instead.
    fn ended(&mut self) -> NoAnswer {
        kill_group(&self.child);
        let said = self.complaints.take().map(Gathering::taken);
        let complaint = last_line(&said.unwrap_or_default());
        NoAnswer::Failed(match self.child.wait() {
            Ok(status) => match (status.signal(), status.code()) {
                (Some(signal), _) => killed(signal, &complaint),
                (None, code) => format!(
                    "the child exited with status {} and did not answer: {complaint}",
                    code.unwrap_or(-1)
                ),
            },
            Err(why) => format!("the child ended: {why}"),
        })
    }

    fn judge(&self, answer: ServeAnswer, iterations: u64) -> Result<ServeAnswer, NoAnswer> {
        match &answer.outcome {
            Outcome::Ok => {}
            Outcome::Unavailable { why } => return Err(NoAnswer::Unavailable(why.clone())),
            Outcome::TimedOut { after_ms } => {
                return Err(NoAnswer::TooMuch(format!(
                    "iteration {} of {iterations} came to the limit of {after_ms} ms",
                    answer.iterations + 1
                )));
            }
            Outcome::Failed { message, .. } | Outcome::WrongChecksum { message } => {
                return Err(NoAnswer::Failed(message.clone()));
            }
            Outcome::Skipped { .. } => {
                return Err(NoAnswer::Failed("the child skipped it".to_owned()));
            }
        }
        let wrong = if answer.receipt.is_none() {
            "no receipt, no measurement"
        } else if answer.iterations != iterations {
            "the child did other work than it was given"
        } else if self.arm.def.contents && answer.checksum_contents != answer.input_hash {
            "read back something else than went in: the allocator lost or changed contents"
        } else {
            return Ok(answer);
        };
        Err(NoAnswer::Failed(wrong.to_owned()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Once it has been waited for, its number can be another's.
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        kill_group(&self.child);
        // It is killed, so this does not wait for long; there is nobody to tell of a failure.
        let _ = self.child.wait();
    }
}
