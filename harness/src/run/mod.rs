//! Runs a plan: one fresh child a trial, one record a trial, whatever happens.

pub mod env;
pub mod folder;
pub mod gate;
pub mod inquiry;
mod instructions;
pub mod interrupt;
pub mod memory;
pub mod progress;
pub mod receipt;
pub mod serve;
pub mod spawn;

use crate::arms::{Arm, Home};
use crate::metric::{INSTRUCTIONS, MISPREDICTIONS, UNDER_CALLGRIND};
use crate::plan::{Plan, PlannedTrial};
use crate::probe::{callgrind, machine, strace};
use crate::record::TrialRecord;
use crate::size;
use crate::trial::{ChildReport, Outcome, Params, Protocol, SCHEMA, SUITE_FACT, TrialSpec};
use crate::workloads::{self, params};
use folder::{Appender, FolderError};
use gate::Passage;
use instructions::{Again, Missing};
use memory::Observed;
use progress::Progress;
use spawn::{Ended, Seen, Start};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Moves that a census keeps for matching with system calls. A trial with more has `copied_bytes` absent.
const MOVES_LOGGED: usize = 1 << 20;
/// What a child may take beside its measured region (making the input, reading contents back), as a multiple of its
/// limit and beyond it.
const HARD_FACTOR: u32 = 2;
const HARD_SLACK: Duration = Duration::from_secs(5);
/// A cell whose estimate is above this share of the available memory is not run.
const MEMORY_SHARE: f64 = 0.6;
/// The environment is padded by up to so many bytes, from trial to trial: its size shifts the stack, which should not
/// matter and sometimes does.
const PAD: u32 = 1024;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// Every trial has a record.
    Complete,
    /// The user asked to stop; `--resume` goes on.
    Interrupted,
}

/// What a run needs to know of the file system.
#[derive(Debug, Clone, Copy)]
pub struct Place<'p> {
    /// Folder of the children.
    pub children: &'p Path,
    /// File that strace may write.
    pub trace: &'p Path,
    /// File that callgrind may write.
    pub profile: &'p Path,
}

/// Runs what is left of `plan`: every trial without a record among `done`. Records go to `into` one by one.
///
/// # Errors
/// If a record cannot be written; all before it are intact.
pub fn run(
    plan: &Plan,
    done: &[TrialRecord],
    into: &mut Appender,
    place: Place,
) -> Result<Finish, FolderError> {
    let finished: HashSet<u32> = done.iter().map(|record| record.trial).collect();
    let mut run = Run::new(plan, place);
    for record in done {
        run.learn(record);
    }
    let left: Vec<PlannedTrial> = plan
        .trials
        .iter()
        .filter(|t| !finished.contains(&t.trial))
        .cloned()
        .collect();
    let purpose = plan.verify.then_some("verify");
    let mut progress = Progress::new(left.len()).with_purpose(purpose);
    for (i, trial) in left.iter().enumerate() {
        if interrupt::asked() {
            progress.finish();
            return Ok(Finish::Interrupted);
        }
        progress.starts(trial, &left[i..]);
        let Some(record) = run.trial(trial) else {
            progress.finish();
            return Ok(Finish::Interrupted);
        };
        run.learn(&record);
        into.append(&record)?;
        progress.ended(trial, &record, &left[i + 1..]);
    }
    progress.finish();
    Ok(Finish::Complete)
}

/// Checksums that a group of trials (one grid, one set of parameters) must share.
#[derive(Debug, Clone, Default)]
struct Agreed {
    input: Option<(String, String)>,
    ops: Option<(String, String)>,
    contents: Option<(String, String)>,
}

struct Run<'p> {
    plan: &'p Plan,
    place: Place<'p>,
    strace: Result<PathBuf, String>,
    valgrind: Result<PathBuf, String>,
    available_memory: u64,
    agreed: HashMap<String, Agreed>,
    timed_out: HashMap<String, (u64, u32)>,
    /// What the gate said of the user's libraries, by label.
    passages: HashMap<String, Passage>,
}

fn group(grid: &str, params: &BTreeMap<String, String>) -> String {
    format!("{grid} {params:?}")
}

fn cell(grid: &str, params: &BTreeMap<String, String>, arm: &str, protocol: Protocol) -> String {
    format!("{} {arm} {}", group(grid, params), protocol.name())
}

/// Whether a trial's system calls are of interest.
fn traceable(plan: &Plan, trial: &PlannedTrial) -> bool {
    trial.protocol == Protocol::Census && !plan.verify
}

impl<'p> Run<'p> {
    fn new(plan: &'p Plan, place: Place<'p>) -> Self {
        let census = plan.trials.iter().any(|trial| traceable(plan, trial));
        let strace = match strace::locate() {
            Ok(path) if census => strace::try_out(&path).map(|()| path),
            other => other,
        };
        Run {
            plan,
            place,
            strace,
            valgrind: callgrind::locate(),
            available_memory: machine::available_memory().unwrap_or(u64::MAX),
            agreed: HashMap::new(),
            timed_out: HashMap::new(),
            passages: HashMap::new(),
        }
    }

    /// What later trials must know of an earlier one.
    fn learn(&mut self, record: &TrialRecord) {
        match &record.outcome {
            Outcome::TimedOut { after_ms } => {
                let cell = cell(&record.grid, &record.params, &record.arm, record.protocol);
                self.timed_out
                    .entry(cell)
                    .or_insert((*after_ms, record.block));
            }
            Outcome::Ok => {
                let agreed = self
                    .agreed
                    .entry(group(&record.grid, &record.params))
                    .or_default();
                let first =
                    |said: &Option<String>| said.clone().map(|sum| (sum, record.arm.clone()));
                agreed.input = agreed.input.take().or_else(|| first(&record.input_hash));
                agreed.ops = agreed.ops.take().or_else(|| first(&record.checksum_ops));
                agreed.contents = agreed
                    .contents
                    .take()
                    .or_else(|| first(&record.checksum_contents));
            }
            _ => {}
        }
    }

    /// One trial; `None` if the user interrupted it.
    fn trial(&mut self, trial: &PlannedTrial) -> Option<TrialRecord> {
        let mut record = blank(self.plan, trial);
        if let Some((after_ms, block)) = self.timed_out.get(&cell(
            &trial.grid,
            &trial.params,
            &trial.arm,
            trial.protocol,
        )) {
            record.outcome = Outcome::Skipped {
                after_ms: *after_ms,
                block: *block,
            };
            return Some(record);
        }
        let arm = match self.plan.arm(&trial.arm) {
            Ok(arm) => arm,
            Err(why) => {
                record.outcome = Outcome::Unavailable { why: why.0 };
                return Some(record);
            }
        };
        if let Err(why) = self.runnable(trial, &arm) {
            record.outcome = Outcome::Unavailable { why };
            return Some(record);
        }
        match self.passage(&arm) {
            None => self.measure(trial, &arm, record),
            Some(Passage::Open(fact)) => {
                let mut record = self.measure(trial, &arm, record)?;
                if let Some(receipt) = &mut record.receipt {
                    receipt.facts.insert(SUITE_FACT.to_owned(), fact);
                }
                Some(record)
            }
            Some(Passage::Refused(why)) => {
                record.outcome = Outcome::Unavailable { why };
                Some(record)
            }
            Some(Passage::Interrupted) => None,
        }
    }

    /// What the gate says of an arm that is a library of the user's; it is asked once. A verification has no gate: what
    /// a library does wrong is what it is about.
    fn passage(&mut self, arm: &Arm) -> Option<Passage> {
        if self.plan.verify {
            return None;
        }
        arm.library.as_ref()?;
        let label = arm.label();
        if let Some(passage) = self.passages.get(&label) {
            return Some(passage.clone());
        }
        let child = self.place.children.join(arm.home().child);
        let passage = gate::ask(arm, &child, &untraced(arm));
        self.passages.insert(label, passage.clone());
        Some(passage)
    }

    /// Whether a trial can be tried at all.
    fn runnable(&self, trial: &PlannedTrial, arm: &Arm) -> Result<(), String> {
        startable(&arm.home(), self.place.children)?;
        let limit = trial.memory_limit.unwrap_or(u64::MAX);
        affordable(trial.footprint_bytes.min(limit), self.available_memory)
    }

    fn measure(
        &self,
        trial: &PlannedTrial,
        arm: &Arm,
        mut record: TrialRecord,
    ) -> Option<TrialRecord> {
        let census = traceable(self.plan, trial);
        let traced = census && self.strace.is_ok();
        let spec = TrialSpec {
            schema: SCHEMA,
            source_hash: crate::SOURCE_HASH.to_owned(),
            arm: arm.id(),
            knobs: arm.knobs.clone(),
            workload: trial.workload.clone(),
            params: trial.params.clone(),
            protocol: trial.protocol,
            seed: self.plan.seed,
            thp: trial.thp,
            soft_limit_ms: trial.timeout_ms,
            memory_limit: trial.memory_limit,
            log_moves: if traced { MOVES_LOGGED } else { 0 },
            verify: self.plan.verify,
        };
        let pad = padding(self.plan.seed, trial.trial);
        let mut environment = environment(arm, pad);
        record.environment = environment.clone();
        record
            .environment
            .insert("HEAPLAB_PAD".to_owned(), format!("{pad} bytes"));
        if let Some(library) = &arm.library {
            record
                .environment
                .insert(LD_PRELOAD.to_owned(), library.file_name());
        }

        let log = self.place.trace;
        let child = self.place.children.join(arm.home().child);
        let limit = Duration::from_millis(trial.timeout_ms);
        let tracer = self.strace.as_ref().ok().filter(|_| traced);
        let mut tracee = BTreeMap::new();
        let mut untraced = environment.clone();
        untraced.extend(preloaded(arm));
        if tracer.is_some() {
            tracee = preloaded(arm);
        } else {
            environment = untraced.clone();
        }
        let start = Start {
            child: &child,
            tracer: tracer.map(|strace| (strace.as_path(), strace::arguments(log, &tracee))),
            environment: &environment,
            spec: &spec,
            hard_limit: hard_limit(limit, &trial.params),
        };
        record.started_unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs());
        let clock = Instant::now();
        let seen = spawn::run(&start);
        record.child_ms = clock.elapsed().as_millis() as u64;
        let (ended, memory) = match seen {
            Ok(Seen { ended, memory }) => (Ok(ended), memory),
            Err(why) => (Err(why), None),
        };
        match ended {
            Err(why) => {
                record.outcome = Outcome::Failed {
                    signal: None,
                    message: format!("cannot start {}: {why}", arm.home().child),
                };
            }
            Ok(Ended::Interrupted) => {
                let _ = std::fs::remove_file(log);
                return None;
            }
            Ok(Ended::Hung) => {
                record.outcome = Outcome::TimedOut {
                    after_ms: trial.timeout_ms,
                }
            }
            Ok(Ended::Garbled(message)) => {
                record.outcome = Outcome::Failed {
                    signal: None,
                    message,
                }
            }
            Ok(Ended::Killed(signal, complaint)) => {
                record.outcome = Outcome::Failed {
                    signal: Some(signal),
                    message: killed(signal, &complaint),
                };
            }
            Ok(Ended::Reported(report)) => {
                if census && !report.metrics.is_empty() {
                    system_calls(&mut record, &report, &self.strace, log);
                }
                self.take_over(&mut record, *report, arm);
            }
        }
        let _ = std::fs::remove_file(log);
        tell_memory(&mut record, memory);
        if trial.instructions && record.outcome == Outcome::Ok {
            let again = Again {
                valgrind: &self.valgrind,
                child: &child,
                profile: self.place.profile,
                environment: &untraced,
                spec: &spec,
                hard_limit,
            };
            match again.count(&record) {
                Ok(counts) => record.metrics.extend([
                    (INSTRUCTIONS.to_owned(), counts.instructions),
                    (MISPREDICTIONS.to_owned(), counts.mispredictions),
                ]),
                Err(Missing::Interrupted) => return None,
                Err(Missing::Because(why)) => {
                    record
                        .absent
                        .extend(UNDER_CALLGRIND.map(|metric| (metric.to_owned(), why.clone())));
                }
            }
            record.child_ms = clock.elapsed().as_millis() as u64;
        }
        Some(record)
    }

    /// The child's report becomes part of the record, its checksums compared with those of the other arms.
    fn take_over(&self, record: &mut TrialRecord, report: ChildReport, arm: &Arm) {
        if report.outcome == Outcome::Ok && report.receipt.allocator.is_empty() {
            record.outcome = Outcome::Failed {
                signal: None,
                message: "no receipt, no measurement".to_owned(),
            };
            return;
        }
        record.outcome = report.outcome;
        record.metrics.extend(report.metrics);
        record.absent.extend(report.absent);
        record.files = report.files;
        record.skipped = report.skipped;
        record.checksum_ops = report.checksum_ops;
        record.checksum_contents = report.checksum_contents;
        record.input_hash = report.input_hash;
        if !report.receipt.allocator.is_empty() {
            record.receipt = Some(report.receipt);
        }
        if record.outcome == Outcome::Ok
            && let Err(message) = self.same_input(record)
        {
            record.outcome = Outcome::Failed {
                signal: None,
                message,
            };
            // What was measured on other input is no sample of this cell.
            record.metrics.clear();
        }
        if record.outcome == Outcome::Ok
            && let Err(message) = self.checksums(record, arm)
        {
            record.outcome = Outcome::WrongChecksum { message };
        }
    }

    /// Whether a trial has read what the others of its group have. If not, it is nobody's fault but the input's.
    fn same_input(&self, record: &TrialRecord) -> Result<(), String> {
        let agreed = self.agreed.get(&group(&record.grid, &record.params));
        let there = agreed.and_then(|agreed| agreed.input.as_ref());
        match (&record.input_hash, there) {
            (Some(here), Some((there, whose))) if here != there => Err(format!(
                "the input changed during the run: its hash is {here}, but was {there} under {whose}"
            )),
            _ => Ok(()),
        }
    }

    fn checksums(&self, record: &TrialRecord, arm: &Arm) -> Result<(), String> {
        if arm.def.contents && record.checksum_contents != record.input_hash {
            return Err(format!(
                "read back {} where {} went in: the allocator lost or changed contents",
                shown(&record.checksum_contents),
                shown(&record.input_hash)
            ));
        }
        let Some(agreed) = self.agreed.get(&group(&record.grid, &record.params)) else {
            return Ok(());
        };
        for (what, here, there) in [
            ("ops", &record.checksum_ops, &agreed.ops),
            ("contents", &record.checksum_contents, &agreed.contents),
        ] {
            if let (Some(here), Some((there, whose))) = (here, there)
                && here != there
            {
                return Err(format!(
                    "{what} checksum is {here}, but {there} under {whose}"
                ));
            }
        }
        Ok(())
    }
}

/// Whether an estimate of `needs` bytes fits into `has` bytes of available memory.
fn affordable(needs: u64, has: u64) -> Result<(), String> {
    if needs as f64 > MEMORY_SHARE * has as f64 {
        return Err(format!(
            "needs about {} by estimate, above 60 % of the {} available: choose a smaller size",
            size::approx_bytes(needs),
            size::approx_bytes(has)
        ));
    }
    Ok(())
}

/// Adds what was seen of the child's memory, if the child came so far as to be measured.
fn tell_memory(record: &mut TrialRecord, memory: Option<Observed>) {
    let ran = !matches!(record.outcome, Outcome::Unavailable { .. });
    if let (Some(memory), Ok(workload), true) = (memory, workloads::find(&record.workload), ran) {
        // The child's own reasons say more.
        let reasons = std::mem::take(&mut record.absent);
        memory.tell(record, workload.all_phases());
        record.absent.extend(reasons);
    }
}

/// When a child is killed that should have stopped itself after `limit` of its measured region. What it sleeps in
/// between is no part of that.
fn hard_limit(limit: Duration, params: &Params) -> Duration {
    limit * HARD_FACTOR + HARD_SLACK + params::idle(params)
}

fn shown(sum: &Option<String>) -> &str {
    sum.as_deref().unwrap_or("nothing")
}

fn blank(plan: &Plan, trial: &PlannedTrial) -> TrialRecord {
    TrialRecord {
        schema: SCHEMA,
        trial: trial.trial,
        experiment: plan.experiment.clone(),
        grid: trial.grid.clone(),
        block: trial.block,
        position: trial.position,
        arm: trial.arm.clone(),
        workload: trial.workload.clone(),
        params: trial.params.clone(),
        protocol: trial.protocol,
        driver: if plan.verify { "canary" } else { "direct" }.to_owned(),
        seed: plan.seed,
        thp: trial.thp,
        memory_limit: trial.memory_limit,
        outcome: Outcome::Ok,
        metrics: BTreeMap::new(),
        absent: BTreeMap::new(),
        series: BTreeMap::new(),
        files: Vec::new(),
        skipped: BTreeMap::new(),
        checksum_ops: None,
        checksum_contents: None,
        input_hash: None,
        receipt: None,
        environment: BTreeMap::new(),
        started_unix: 0,
        child_ms: 0,
    }
}

/// Bytes of padding of a trial's environment: different from trial to trial, the same when it is run again.
fn padding(seed: u64, trial: u32) -> u32 {
    let mixed = (seed ^ u64::from(trial))
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32 % PAD
}

/// A child's whole environment: nothing of the user's, whose malloc settings would be measured unseen.
fn environment(arm: &Arm, pad: u32) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::from([
        ("LC_ALL".to_owned(), "C".to_owned()),
        ("HEAPLAB_PAD".to_owned(), "x".repeat(pad as usize)),
    ]);
    environment.extend(arm.environment());
    environment
}

/// The environment of a child that nobody traces, without padding.
pub fn untraced(arm: &Arm) -> BTreeMap<String, String> {
    let mut environment = environment(arm, 0);
    environment.extend(preloaded(arm));
    environment
}

/// Whether the child `home` was built, and is in the folder `children`.
///
/// # Errors
/// Why not, and what would change that.
pub fn startable(home: &Home, children: &Path) -> Result<(), String> {
    if !home.built {
        return Err(format!(
            "not built in: cargo build --release --features {0} (or scripts/setup, then scripts/reproduce)",
            home.features
        ));
    }
    if !children.join(home.child).is_file() {
        return Err(format!(
            "{} is not in {}: cargo build --release",
            home.child,
            children.display()
        ));
    }
    Ok(())
}

/// SIGXFSZ, which strace dies of where its log may not grow.
const FILE_SIZE: i32 = 25;
/// The variable by which the loader puts a library in front of the C library.
const LD_PRELOAD: &str = "LD_PRELOAD";

/// What puts the user's library into the child.
fn preloaded(arm: &Arm) -> BTreeMap<String, String> {
    let library = arm.library.iter();
    library
        .map(|library| (LD_PRELOAD.to_owned(), library.path.display().to_string()))
        .collect()
}

fn killed(signal: i32, complaint: &str) -> String {
    if signal == FILE_SIZE {
        return "the trace of system calls hit the limit on file sizes (ulimit -f)".to_owned();
    }
    let name = signal_hook::low_level::signal_name(signal).unwrap_or("an unnamed signal");
    let hint = if signal == 9 {
        " (perhaps by the kernel, out of memory: see dmesg)"
    } else {
        ""
    };
    let said = if complaint.is_empty() {
        String::new()
    } else {
        format!(": {complaint}")
    };
    format!("the child was ended by {name}{hint}{said}")
}

/// Adds what strace saw to a census record; without it those metrics are absent, which is not 0.
fn system_calls(
    record: &mut TrialRecord,
    report: &ChildReport,
    strace: &Result<PathBuf, String>,
    log: &Path,
) {
    let traced = strace
        .clone()
        .and_then(|_| strace::read_log(log).map_err(|why| why.to_string()));
    let trace = match traced {
        Ok(trace) => trace,
        Err(why) => {
            for metric in [
                "sys.*",
                "mremap_moves",
                "mremap_moved_bytes",
                "copied_bytes",
            ] {
                record.absent.insert(metric.to_owned(), why.clone());
            }
            return;
        }
    };
    record.metrics.extend(trace.metrics());
    match &report.moves {
        Some(moves) => {
            let (remapped, remapped_bytes) = strace::mremap_moved(moves, &trace.mremaps);
            let moved = report.metrics.get("moved_bytes").copied().unwrap_or(0);
            record.metrics.insert("mremap_moves".to_owned(), remapped);
            record
                .metrics
                .insert("mremap_moved_bytes".to_owned(), remapped_bytes);
            record
                .metrics
                .insert("copied_bytes".to_owned(), moved - remapped_bytes);
        }
        None => {
            let why = format!(
                "more than {MOVES_LOGGED} large moves: too many to match with system calls"
            );
            for metric in ["mremap_moves", "mremap_moved_bytes", "copied_bytes"] {
                record.absent.insert(metric.to_owned(), why.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sleeps_is_waited_for() {
        let limit = Duration::from_secs(10);
        let asleep = Params::from([(params::IDLE.to_owned(), "1h".to_owned())]);
        let awake = hard_limit(limit, &Params::new());
        assert_eq!(awake, Duration::from_secs(25));
        assert_eq!(
            hard_limit(limit, &asleep),
            awake + Duration::from_secs(3600)
        );
    }
}
