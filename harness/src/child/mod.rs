//! What every child does: read one trial's orders, run it on the one heap it links, answer with what was found.
//!
//! A child is a binary of a few lines: the private Rust heap as `#[global_allocator]` and a call of [`main`] with the
//! type of its heap. `--version` prints the receipt; [`suite`] tells of two further questions; without arguments a [`TrialSpec`] is read from standard input and
//! a [`ChildReport`] written to standard output, both a line of JSON. Under the memory protocol standard input also
//! carries the exchanges of [`phases`]. With `serve ARM` it answers request after request, see [`serve`].

pub mod own_heap;
pub mod phases;
pub mod serve;
pub mod session;
pub mod suite;

use crate::arms::{ARMS, PRELOAD, SIZED};
use crate::probe::limits;
use crate::trial::{ChildReport, Outcome, Protocol, Receipt, SCHEMA, Thp, TrialSpec};
use crate::{SOURCE_HASH, workloads};
use contract::{Arm, Canary, Counted, Driver, Heap, Mode, Plain, Refused};
use phases::Phases;
use session::{Session, Stop};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

/// Exit status of a child that was asked something it cannot read.
const BAD_ORDERS: u8 = 2;

/// Of what the child itself finds, a memory trial tells this; the rest comes from outside.
const IN_MEMORY: [&str; 4] = ["ops", "appended_bytes", "reached_bytes", "peak_live_bytes"];

/// Of what a child finds, a verification tells this: figures of a driver that mistrusts everything are nobody's.
const IN_VERIFICATION: [&str; 3] = ["ops", "appended_bytes", "reached_bytes"];

/// One arm that a child holds: its id and what to do with it, monomorphised over its heap.
pub struct Held {
    arm: &'static str,
    trial: fn(&TrialSpec) -> ChildReport,
    version: fn(&str) -> ExitCode,
    serve: fn(&str) -> ExitCode,
    suite: suite::Ask,
}

impl Held {
    /// The arm `arm`, which `A::open` knows.
    pub const fn new<A: Arm>(arm: &'static str) -> Self {
        Held {
            arm,
            trial: run_trial::<A>,
            version: version::<A>,
            serve: serve::main::<A>,
            suite: suite::ask::<A>,
        }
    }
}

/// The whole of a child; `--version` without a name describes the first arm.
pub fn main(arms: &[Held]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let held = |name: &str| arms.iter().find(|held| held.arm == name);
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            // First of all, so that there is hardly a moment in which the harness could end unnoticed.
            let report = settle_alone()
                .and_then(|()| orders())
                .map(|spec: TrialSpec| match held(&spec.arm) {
                    Some(held) => (held.trial)(&spec),
                    None => failed(format!("this child does not hold the arm {}", spec.arm)),
                });
            match report.and_then(|report| answer(&report)) {
                Ok(()) => ExitCode::SUCCESS,
                Err(why) => refuse(&why),
            }
        }
        [serve::COMMAND, name] => match held(name) {
            Some(held) => (held.serve)(name),
            None => refuse(&format!("this child does not hold the arm {name}")),
        },
        ["--version"] if !arms.is_empty() => (arms[0].version)(arms[0].arm),
        ["--version", name] => match held(name) {
            Some(held) => (held.version)(name),
            None => refuse(&format!("this child does not hold the arm {name}")),
        },
        [option @ (suite::SUITE | suite::BEHAVIOUR)] => {
            let ask = |name: &str| held(name).map(|held| held.suite);
            match suite::main(ask, option) {
                Ok(()) => ExitCode::SUCCESS,
                Err(why) => refuse(&why),
            }
        }
        _ => refuse(
            "a child of heaplab: takes a trial as JSON on standard input, or an inquiry with --suite or --behaviour, or \
              --version [ARM], or serve ARM; use `heaplab`",
        ),
    }
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(BAD_ORDERS)
}

fn orders<T: serde::de::DeserializeOwned>() -> Result<T, String> {
    let mut text = String::new();
    std::io::stdin()
        .read_line(&mut text)
        .map_err(|why| format!("cannot read the orders: {why}"))?;
    serde_json::from_str(&text).map_err(|why| format!("the orders are not readable: {why}"))
}

fn answer(report: &impl serde::Serialize) -> Result<(), String> {
    let text =
        serde_json::to_string(report).map_err(|why| format!("cannot write the report: {why}"))?;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
        .map_err(|why| format!("cannot write the report: {why}"))
}

fn version<A: Arm>(arm: &str) -> ExitCode {
    match A::open(arm, &[]) {
        Ok(heap) => match serde_json::to_string_pretty(&receipt_of(&heap)) {
            Ok(text) => {
                println!("{text}");
                ExitCode::SUCCESS
            }
            Err(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
        },
        Err(Refused::Unavailable(why) | Refused::Knob(why)) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn receipt_of<H: Heap>(heap: &H) -> Receipt {
    let told = heap.receipt();
    let map = |pairs: Vec<(String, String)>| pairs.into_iter().collect::<BTreeMap<_, _>>();
    Receipt {
        source_hash: SOURCE_HASH.to_owned(),
        allocator: told.allocator,
        version: told.version,
        build: map(told.build),
        knobs: map(told.knobs),
        facts: map(told.facts),
        debug_build: cfg!(debug_assertions),
    }
}

fn ended(outcome: Outcome) -> ChildReport {
    ChildReport {
        schema: SCHEMA,
        outcome,
        ..ChildReport::default()
    }
}

fn failed(message: String) -> ChildReport {
    ended(Outcome::Failed {
        signal: None,
        message,
    })
}

fn run_trial<A: Arm>(spec: &TrialSpec) -> ChildReport {
    if spec.schema != SCHEMA || spec.source_hash != SOURCE_HASH {
        return ended(Outcome::Unavailable {
            why: "stale child: rebuild (cargo build --release)".to_owned(),
        });
    }
    if cfg!(debug_assertions) && spec.protocol == Protocol::Time && !spec.verify {
        return ended(Outcome::Unavailable {
            why: "a debug build is not timed: build with --release".to_owned(),
        });
    }
    let mut facts = BTreeMap::new();
    if let Err(why) = settle(spec, &mut facts) {
        return failed(why);
    }
    let heap = match A::open(&spec.arm, &spec.knobs) {
        Ok(heap) => heap,
        Err(Refused::Unavailable(why)) => return ended(Outcome::Unavailable { why }),
        Err(Refused::Knob(why)) => return failed(format!("knob refused: {why}")),
    };
    if !agreed::<A>(&spec.arm) {
        return failed(format!(
            "{} says {} of threads, and the list of arms otherwise",
            spec.arm,
            A::CAPABILITIES.threads
        ));
    }
    if spec.verify && !A::CAPABILITIES.contents {
        return ended(Outcome::Unavailable {
            why: format!("{} keeps no contents to verify", spec.arm),
        });
    }
    if spec.protocol == Protocol::Memory && !A::CAPABILITIES.contents {
        return ended(Outcome::Unavailable {
            why: format!(
                "{} has no memory figures: it hands out the same memory again and again",
                spec.arm
            ),
        });
    }
    let mut report = match (spec.verify, spec.protocol) {
        (true, _) => drive(&heap, spec, Canary::default(), |mut canary, report| {
            canary.check_live();
            if let Some(broken) = canary.broken() {
                report.outcome = Outcome::Failed {
                    signal: None,
                    message: broken.to_string(),
                };
            }
            report
                .metrics
                .retain(|name, _| IN_VERIFICATION.contains(&name.as_str()));
        }),
        (false, Protocol::Time) => drive(&heap, spec, Plain, |_, report| {
            // Counts under a plain driver would be zeros, and faults belong to the census.
            report
                .metrics
                .retain(|name, _| !matches!(name.as_str(), "minflt" | "majflt"));
        }),
        (false, Protocol::Memory) => drive(&heap, spec, Counted::new(0), |counted, report| {
            counts(&counted, report);
            report
                .metrics
                .retain(|name, _| IN_MEMORY.contains(&name.as_str()));
        }),
        (false, Protocol::Census) => drive(
            &heap,
            spec,
            Counted::new(spec.log_moves),
            |counted, report| {
                for time in ["wall_ns", "cpu_ns", "user_ns", "system_ns"] {
                    report.metrics.remove(time);
                }
                counts(&counted, report);
                if spec.log_moves > 0 {
                    report.moves = counted.moves().map(|moves| {
                        moves
                            .iter()
                            .map(|one| (one.from as u64, one.to as u64, one.bytes as u64))
                            .collect()
                    });
                }
            },
        ),
    };
    if !spec.verify {
        let books = heap.stats().extra.into_iter();
        report
            .metrics
            .extend(books.map(|(name, value)| (name.to_owned(), value)));
    }
    report.receipt = receipt_of(&heap);
    report.receipt.facts.extend(facts);
    report
}

/// Whether the arm's heap and the list of arms, by which reports are made, say the same of threads.
fn agreed<A: Arm>(arm: &str) -> bool {
    let id = arm.strip_suffix(SIZED).unwrap_or(arm);
    let listed = ARMS.iter().chain([&PRELOAD]).find(|def| def.id == id);
    listed.is_none_or(|def| def.threads == A::CAPABILITIES.threads)
}

/// Settles that the process ends with the harness and is the first to go when memory runs out.
fn settle_alone() -> Result<(), String> {
    limits::die_with_parent()
        .map_err(|why| format!("cannot ask to end with the harness: {why}"))?;
    // Without it the trial is still right; only the kernel's choice under pressure is less so.
    let _ = limits::volunteer_for_oom_killer();
    Ok(())
}

/// Settles what the process is before the heap is opened.
fn settle(spec: &TrialSpec, facts: &mut BTreeMap<String, String>) -> Result<(), String> {
    // Before anything is set: what the process that started the harness has left to it.
    let inherited = limits::thp_disabled()
        .map_err(|why| format!("cannot read transparent huge pages: {why}"))?;
    let mut word = [0; 128];
    let machine = limits::thp_of_the_machine(&mut word).unwrap_or("unknown");
    facts.insert("thp-machine".to_owned(), machine.to_owned());
    let inherited = if inherited { "off by prctl" } else { "no" };
    facts.insert("thp-inherited".to_owned(), inherited.to_owned());
    if spec.thp == Thp::Off {
        limits::disable_thp()
            .map_err(|why| format!("cannot switch transparent huge pages off: {why}"))?;
    }
    let off = limits::thp_disabled()
        .map_err(|why| format!("cannot read transparent huge pages back: {why}"))?;
    facts.insert(
        "thp".to_owned(),
        if off {
            "off for this process"
        } else {
            "as the machine has it"
        }
        .to_owned(),
    );
    Ok(())
}

fn drive<H: Heap, M: Mode>(
    heap: &H,
    spec: &TrialSpec,
    mode: M,
    finish: impl FnOnce(M, &mut ChildReport),
) -> ChildReport {
    warm_up(heap);
    let marked = spec.protocol == Protocol::Census && !spec.verify;
    let mut session = Session::new(
        spec.soft_limit_ms,
        spec.memory_limit,
        H::CAPABILITIES.contents,
        marked,
        (spec.protocol == Protocol::Memory && !spec.verify).then(Phases::new),
    );
    // SAFETY: ONE-HEAP: this is the only driver of this process, and `heap` the only heap.
    let mut driver = unsafe { Driver::new(heap, mode) };
    let result = workloads::run(
        &spec.workload,
        &spec.params,
        spec.seed,
        &mut driver,
        &mut session,
    );
    // However the work ended, its peak is read; what ended it comes first among the reasons.
    let peak_told = session.phase(phases::END);
    let result = session.end().and(result).and(peak_told);
    let totals = session.totals();
    let found = session.found;
    let finished = result.is_ok();
    let no_input = matches!(result, Err(Stop::Input(_)));
    let mut report = ended(result.map_or_else(Stop::outcome, |()| Outcome::Ok));
    report.metrics = [
        ("wall_ns", totals.wall_ns),
        ("cpu_ns", totals.cpu_ns),
        ("user_ns", totals.usage.user_ns),
        ("system_ns", totals.usage.system_ns),
        ("minflt", totals.usage.minflt),
        ("majflt", totals.usage.majflt),
        ("ops", found.ops),
        ("appended_bytes", found.appended_bytes),
        ("reached_bytes", found.reached_bytes),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    report.absent = found.absent;
    report.files = found.files;
    report.skipped = found.skipped;
    // A trial that was cut off decided and kept less than its cell: its checksums would say nothing.
    if finished {
        let hex = |sum: u64| format!("{sum:016x}");
        report.checksum_ops = Some(hex(driver.ops()));
        report.checksum_contents = found.contents_hash.map(hex);
        report.input_hash = found.input_hash.map(hex);
    }
    finish(driver.into_mode(), &mut report);
    if !spec.verify {
        report.metrics.extend(found.at_phases);
    }
    if no_input {
        // Nothing was measured, which is not the same as zeros.
        report.metrics.clear();
    }
    report
}

/// One small block made and freed, so that the allocator's own start-up is not in the measured region.
fn warm_up<H: Heap>(heap: &H) {
    let p = heap.malloc(64);
    if !p.is_null() {
        // SAFETY: `p` was just handed out for 64 bytes, and is not used after the free.
        unsafe {
            p.write_volatile(1);
            heap.free(p);
        }
    }
}

fn counts(counted: &Counted, report: &mut ChildReport) {
    let Some(counts) = counted.counts() else {
        return;
    };
    report.metrics.extend(
        [
            ("malloc_calls", counts.malloc_calls),
            ("realloc_calls", counts.realloc_calls),
            ("free_calls", counts.free_calls),
            ("realloc_moves", counts.realloc_moves),
            ("moved_bytes", counts.moved_bytes),
            ("client_copied_bytes", counts.client_copied_bytes),
            ("peak_live_bytes", counts.peak_live_bytes),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value)),
    );
}

/// The few lines that a child consists of: `child!("bump" => limits::Bump, "null" => limits::Null);`
#[macro_export]
macro_rules! child {
    ($($arm:literal => $heap:ty),+ $(,)?) => {
        #[global_allocator]
        static OWN: $crate::child::own_heap::OwnHeap = $crate::child::own_heap::OwnHeap::new();

        fn main() -> std::process::ExitCode {
            $crate::child::main(&[$($crate::child::Held::new::<$heap>($arm)),+])
        }
    };
}
