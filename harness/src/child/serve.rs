//! `child serve ARM`: request after request on one warm heap, a line of JSON each, until standard input ends.
//!
//! For `cargo bench` alone, which asks for so many iterations at a time and wants the sum of their measured regions. A
//! run never uses it: there, each trial has a fresh process. The heap is opened at the first request, with its knobs,
//! and stays; so does the input, until another is asked for, and what the work begins with. The first iteration on an
//! input is a whole one, as in a trial, and gives the checksums. Whatever goes wrong is an answer, and the child lives
//! on.

use super::session::{Session, Stop};
use super::{BAD_ORDERS, answer, own_heap, receipt_of, settle, settle_alone, warm_up};
use crate::SOURCE_HASH;
use crate::trial::{Outcome, Params, Protocol, Receipt, SCHEMA, ServeAnswer, ServeRequest, Thp};
use crate::workloads::{self, Prepared};
use contract::{Arm, Driver, Plain, Refused};
use std::collections::BTreeMap;
use std::io::BufRead;
use std::process::ExitCode;

/// What a child is called with to serve.
pub const COMMAND: &str = "serve";
/// A request longer than this is none.
const LONGEST: u64 = 1 << 20;

/// Serves until standard input ends.
pub fn main<A: Arm>(arm: &str) -> ExitCode {
    match settle_alone().and_then(|()| serve::<A>(arm)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(BAD_ORDERS)
        }
    }
}

fn serve<A: Arm>(arm: &str) -> Result<(), String> {
    let mut server = Server::<A> {
        arm,
        open: None,
        ready: None,
    };
    let mut stdin = std::io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = std::io::Read::take(&mut stdin, LONGEST).read_until(b'\n', &mut line);
        match read {
            Ok(0) => return Ok(()),
            Ok(_) if line.ends_with(b"\n") => {}
            Ok(_) => return Err("a request is not ended by a newline".to_owned()),
            Err(why) => return Err(format!("cannot read a request: {why}")),
        }
        let mut told = match serde_json::from_slice(&line) {
            Ok(request) => server.request(&request),
            Err(why) => Err(failed(format!("the request is not readable: {why}"))),
        }
        .unwrap_or_else(|outcome| ServeAnswer {
            outcome,
            ..ServeAnswer::default()
        });
        told.schema = SCHEMA;
        told.receipt = server.open.as_ref().map(|open| open.receipt.clone());
        told.own_bytes = own_heap::held_bytes();
        answer(&told)?;
    }
}

fn failed(message: String) -> Outcome {
    Outcome::Failed {
        signal: None,
        message,
    }
}

struct Server<'a, A> {
    arm: &'a str,
    open: Option<Open<A>>,
    ready: Option<Ready>,
}

/// The input of the last request.
struct Ready {
    /// Workload, parameters and seed that it was made of.
    key: (String, Params, u64),
    prepared: Prepared,
    /// What its first iteration told.
    sums: Option<Sums>,
}

/// Checksums of one whole iteration.
struct Sums {
    ops: u64,
    contents: Option<u64>,
    input: Option<u64>,
}

/// The heap, with what it was opened for.
struct Open<A> {
    heap: A,
    knobs: Vec<(String, String)>,
    thp: Thp,
    receipt: Receipt,
}

impl<A: Arm> Server<'_, A> {
    fn request(&mut self, request: &ServeRequest) -> Result<ServeAnswer, Outcome> {
        self.acceptable(request)?;
        self.open(request)?;
        self.prepare(request)?;
        let (Some(open), Some(ready)) = (&self.open, &mut self.ready) else {
            return Err(failed("nothing is open".to_owned()));
        };
        Ok(ready.iterate(&open.heap, request))
    }

    fn acceptable(&self, request: &ServeRequest) -> Result<(), Outcome> {
        let trial = &request.trial;
        if trial.schema != SCHEMA || trial.source_hash != SOURCE_HASH {
            return Err(Outcome::Unavailable {
                why: "stale child: rebuild (cargo build --release)".to_owned(),
            });
        }
        if cfg!(debug_assertions) {
            return Err(Outcome::Unavailable {
                why: "a debug build is not timed: build with --release".to_owned(),
            });
        }
        let wrong = if trial.arm != self.arm {
            format!("this child serves {}, not {}", self.arm, trial.arm)
        } else if trial.protocol != Protocol::Time || trial.verify || trial.log_moves > 0 {
            "a child that serves takes the protocol time alone".to_owned()
        } else if request.iterations == 0 {
            "0 iterations are none: ask for 1 at least".to_owned()
        } else {
            return Ok(());
        };
        Err(failed(wrong))
    }

    /// Opens the heap, or sees that it is open as it is asked for.
    fn open(&mut self, request: &ServeRequest) -> Result<(), Outcome> {
        let trial = &request.trial;
        if let Some(open) = &self.open {
            if open.knobs != trial.knobs || open.thp != trial.thp {
                return Err(failed(
                    "the heap is open with other knobs or huge pages: start another child"
                        .to_owned(),
                ));
            }
            return Ok(());
        }
        let mut facts = BTreeMap::new();
        settle(trial, &mut facts).map_err(failed)?;
        let heap = match A::open(self.arm, &trial.knobs) {
            Ok(heap) => heap,
            Err(Refused::Unavailable(why)) => return Err(Outcome::Unavailable { why }),
            Err(Refused::Knob(why)) => return Err(failed(format!("knob refused: {why}"))),
        };
        warm_up(&heap);
        let mut receipt = receipt_of(&heap);
        receipt.facts.extend(facts);
        self.open = Some(Open {
            heap,
            knobs: trial.knobs.clone(),
            thp: trial.thp,
            receipt,
        });
        Ok(())
    }

    /// Makes the input, or sees that it is there.
    fn prepare(&mut self, request: &ServeRequest) -> Result<(), Outcome> {
        let trial = &request.trial;
        let key = (trial.workload.clone(), trial.params.clone(), trial.seed);
        if self.ready.as_ref().is_some_and(|ready| ready.key == key) {
            return Ok(());
        }
        // Parameters come resolved; whoever writes requests by hand is told what is wrong with them.
        let workload = workloads::find(&key.0).map_err(|why| failed(why.0))?;
        let resolved = workload.resolve(&key.1).map_err(|why| failed(why.0))?;
        // The old one goes before the new one is made: both can be large.
        if let (Some(mut old), Some(open)) = (self.ready.take(), &self.open) {
            // SAFETY: ONE-HEAP: the only heap of this process, from which the blocks that are kept come.
            old.prepared
                .release(&mut unsafe { Driver::new(&open.heap, Plain) });
        }
        let prepared = workloads::prepare(&key.0, &resolved, key.2).map_err(Stop::outcome)?;
        self.ready = Some(Ready {
            key,
            prepared,
            sums: None,
        });
        Ok(())
    }
}

impl Ready {
    /// Runs what is prepared so often as is asked, in a session each.
    fn iterate<A: Arm>(&mut self, heap: &A, request: &ServeRequest) -> ServeAnswer {
        const MS: u64 = 1_000_000;
        let trial = &request.trial;
        let mut told = ServeAnswer::default();
        while told.iterations < request.iterations {
            let mut session = Session::new(
                trial.soft_limit_ms.saturating_sub(told.wall_ns / MS),
                trial.memory_limit,
                A::CAPABILITIES.contents,
                false,
                None,
            );
            if self.sums.is_some() {
                session = session.keeping();
            }
            // SAFETY: ONE-HEAP: the only heap of this process, from which the blocks that are kept come.
            let mut driver = unsafe { Driver::new(heap, Plain) };
            let ended = self.prepared.run(&mut driver, &mut session);
            if let Err(stop) = session.end().and(ended) {
                // What was kept is not as it should be for the next time.
                self.prepared.release(&mut driver);
                told.outcome = match stop {
                    Stop::TrialTimedOut(_) => Outcome::TimedOut {
                        after_ms: trial.soft_limit_ms,
                    },
                    other => other.outcome(),
                };
                return told;
            }
            self.sums.get_or_insert_with(|| Sums {
                ops: driver.ops(),
                contents: session.found.contents_hash,
                input: session.found.input_hash,
            });
            told.iterations += 1;
            told.wall_ns += session.totals().wall_ns;
        }
        let hex = |sum: u64| format!("{sum:016x}");
        let sums = self.sums.as_ref();
        told.checksum_ops = sums.map(|sums| hex(sums.ops));
        told.checksum_contents = sums.and_then(|sums| sums.contents).map(hex);
        told.input_hash = sums.and_then(|sums| sums.input).map(hex);
        told
    }
}
