//! `cargo bench`: a view of the arms through Criterion. One group for each work, one function in it for each arm.
//!
//! Each function has a child of its own, which stays for all its iterations: its heap is warm, and the arms run one after
//! the other. So this is for looking at a change in passing. Claims rest on `heaplab run`, where each trial has a fresh
//! process and the arms take turns.

use criterion::{
    Bencher, BenchmarkGroup, Criterion, SamplingMode, Throughput, measurement::WallTime,
};
use heaplab::arms::Arm;
use heaplab::bench::{self, Amount, Group};
use heaplab::run::serve::{NoAnswer, Server, Task};
use heaplab::trial::ServeAnswer;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Resamples of Criterion's bootstrap, as many as heaplab's own statistics take.
const RESAMPLES: usize = 10_000;
/// Options of Criterion's that ask for other times than ours.
const OWN_TIMES: [&str; 3] = ["--warm-up-time", "--measurement-time", "--profile-time"];
/// What a child may take beside its measured regions, as a multiple of them and beyond.
const HARD_FACTOR: u32 = 2;
const HARD_SLACK: Duration = Duration::from_secs(5);
/// With times of the user's own, no function is given up for taking long.
const UNLIMITED: Duration = Duration::from_secs(24 * 3600);

fn main() -> ExitCode {
    match benches() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("{failed} of the functions failed: see above");
            ExitCode::from(1)
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

/// Runs what the command line selects, and tells how many functions failed.
fn benches() -> Result<usize, String> {
    let groups = bench::groups().map_err(|why| why.0)?;
    let arms = bench::arms().map_err(|why| why.0)?;
    let mut criterion = Criterion::default()
        .without_plots()
        .sample_size(bench::SAMPLES as usize)
        .nresamples(RESAMPLES)
        .configure_from_args();
    let mut view = View {
        own_times: std::env::args().any(|said| OWN_TIMES.iter().any(|own| said.starts_with(own))),
        began: Instant::now(),
        left: groups
            .iter()
            .map(|group| group.planned() * arms.len() as u32)
            .sum(),
        unavailable: HashSet::new(),
        failed: 0,
    };
    for group in &groups {
        view.group(&mut criterion, group, &arms);
    }
    criterion.final_summary();
    Ok(view.failed)
}

/// What is known from one function to the next.
struct View {
    /// The user has asked for other times.
    own_times: bool,
    began: Instant,
    /// What is planned for the functions to come.
    left: Duration,
    /// Arms that cannot be measured here, which has been said.
    unavailable: HashSet<String>,
    failed: usize,
}

impl View {
    fn group(&mut self, criterion: &mut Criterion, group: &Group, arms: &[Arm]) {
        let mut functions = criterion.benchmark_group(&group.name);
        functions.sampling_mode(SamplingMode::Flat);
        functions.throughput(match group.amount {
            Amount::Bytes(bytes) => Throughput::Bytes(bytes),
            Amount::Pairs(count) | Amount::Blocks(count) => Throughput::Elements(count),
        });
        // What the first arm has done is what all others must do.
        let mut agreed = None;
        for arm in arms {
            let share = bench::share(self.began.elapsed(), self.left);
            self.left = self.left.saturating_sub(group.planned());
            if self.unavailable.contains(&arm.label()) {
                continue;
            }
            if !self.own_times {
                functions.warm_up_time(group.warm_up.mul_f64(share));
                functions.measurement_time(group.measurement.mul_f64(share));
            }
            self.function(&mut functions, group, arm, &mut agreed);
        }
        functions.finish();
    }

    /// One function, if the command line selects it: only then is a child started.
    fn function(
        &mut self,
        functions: &mut BenchmarkGroup<WallTime>,
        group: &Group,
        arm: &Arm,
        agreed: &mut Option<Agreed>,
    ) {
        let label = arm.label();
        let mut running = Running::new(group, arm, self.own_times);
        // Criterion must be given a time by every function that it calls. One that has none unwinds instead, past
        // Criterion and without a panic's message, and has no place in its summary.
        let ended = catch_unwind(AssertUnwindSafe(|| {
            functions.bench_function(&label, |bencher| running.iterate(bencher));
        }));
        let told = running.told.take();
        let why = match ended {
            Ok(()) => match told.map(|answer| same_work(&label, answer, agreed)) {
                Some(Err(why)) => NoAnswer::Failed(why),
                _ => return,
            },
            Err(thrown) => match thrown.downcast::<NoAnswer>() {
                Ok(why) => *why,
                // Criterion's own panic, which has told why.
                Err(other) => resume_unwind(other),
            },
        };
        let name = format!("{}/{label}", group.name);
        match why {
            NoAnswer::Unavailable(why) => {
                eprintln!("\n{label}: skipped in all groups: {why}");
                self.unavailable.insert(label);
            }
            NoAnswer::TooMuch(why) => eprintln!("\n{name}: skipped: {why}"),
            NoAnswer::Failed(why) => {
                eprintln!("\n{name}: FAILED: {why}");
                self.failed += 1;
            }
        }
    }
}

/// What the first arm of a group did: its label and its checksums of decisions and input.
type Agreed = (String, Option<String>, Option<String>);

fn same_work(label: &str, answer: ServeAnswer, agreed: &mut Option<Agreed>) -> Result<(), String> {
    let (whose, ops, input) = agreed.get_or_insert_with(|| {
        let sums = (answer.checksum_ops.clone(), answer.input_hash.clone());
        (label.to_owned(), sums.0, sums.1)
    });
    if (&*ops, &*input) == (&answer.checksum_ops, &answer.input_hash) {
        Ok(())
    } else {
        Err(format!("it did other work than {whose}"))
    }
}

/// A function that Criterion calls again and again.
struct Running<'a> {
    group: &'a Group,
    arm: &'a Arm,
    began: Instant,
    /// What all its iterations may take.
    longest: Duration,
    longest_iteration: Duration,
    /// Started at the first call.
    server: Option<Server>,
    /// The last answer.
    told: Option<ServeAnswer>,
}

impl<'a> Running<'a> {
    fn new(group: &'a Group, arm: &'a Arm, own_times: bool) -> Self {
        Running {
            group,
            arm,
            began: Instant::now(),
            longest: if own_times {
                UNLIMITED
            } else {
                group.longest()
            },
            longest_iteration: group.longest_iteration(),
            server: None,
            told: None,
        }
    }

    fn iterate(&mut self, bencher: &mut Bencher) {
        bencher.iter_custom(|iterations| match self.ask(iterations) {
            Ok(answer) => {
                let took = Duration::from_nanos(answer.wall_ns);
                self.told = Some(answer);
                took
            }
            Err(why) => resume_unwind(Box::new(why)),
        });
    }

    fn ask(&mut self, iterations: u64) -> Result<ServeAnswer, NoAnswer> {
        let task = Task {
            workload: self.group.workload,
            params: &self.group.params,
            seed: bench::SEED,
        };
        let (server, soft) = match &mut self.server {
            Some(server) => (server, self.longest.saturating_sub(self.began.elapsed())),
            none => {
                if let Some(why) = bench::left_out(self.arm) {
                    return Err(NoAnswer::Unavailable(why.to_owned()));
                }
                let heaplab = Path::new(env!("CARGO_BIN_EXE_heaplab"));
                let children = heaplab.parent().unwrap_or(Path::new("."));
                let server = Server::start(self.arm, children, &task)?;
                (none.insert(server), self.longest_iteration)
            }
        };
        server.ask(&task, iterations, soft, soft * HARD_FACTOR + HARD_SLACK)
    }
}
