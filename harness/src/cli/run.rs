//! `heaplab run`: experiments, from definition to folder.

use super::{Failure, children, print, print_json};
use crate::arms::Arm;
use crate::claims::AsRun;
use crate::definitions;
use crate::experiment::Experiment;
use crate::plan::{self, Options, Plan};
use crate::record::TrialRecord;
use crate::report::{self, Report};
use crate::run::env::Environment;
use crate::run::folder::Folder;
use crate::run::progress::note;
use crate::run::{self, Finish, Place, interrupt};
use crate::size;
use crate::summary::Summary;
use crate::trial::{Outcome, Protocol};
use clap::Args;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  heaplab run growth-today --quick\n  heaplab run walker-files --set root=/usr/share/doc\n  \
    heaplab run growth-today --allocators system,jemalloc:dirty_decay_ms=0 --protocol census\n  \
    heaplab run --resume results/20261130T120000Z-growth-today-myhost\n\n\
    Exit status: 0 done, 1 a checksum was wrong or the disk refused, 2 bad input, 3 nothing measurable, 130 interrupted."
)]
pub struct Run {
    /// Names of built-in experiments (see `heaplab list`), or files of your own ending in .toml
    #[arg(
        value_name = "EXPERIMENT",
        required_unless_present = "resume",
        conflicts_with = "resume"
    )]
    experiments: Vec<String>,

    /// Arms to run instead of the experiment's, as id[:knob=value,...]; the first is the baseline.
    /// Separate arms by commas; a comma followed by knob=value belongs to the arm before it.
    /// name=path/to/lib.so is an allocator of your own, put in by LD_PRELOAD
    #[arg(long, value_name = "ARM,...", conflicts_with = "resume")]
    allocators: Option<String>,

    /// A workload parameter instead of the experiment's: name=value, or name=value,value for a grid
    #[arg(long = "set", value_name = "NAME=VALUE", conflicts_with = "resume")]
    set: Vec<String>,

    /// Only this protocol
    #[arg(long, value_name = "time|census|memory", conflicts_with = "resume")]
    protocol: Option<String>,

    /// Blocks of the time protocol (at least 6 for any verdict)
    #[arg(long, value_name = "N", conflicts_with = "resume", value_parser = clap::value_parser!(u32).range(1..=1000))]
    blocks: Option<u32>,

    /// Seed of inputs, orders and paddings
    #[arg(long, value_name = "S", default_value_t = 1, conflicts_with = "resume")]
    seed: u64,

    /// Limit of one trial, such as 20s; a cell that runs into it is a record and is skipped in later blocks
    #[arg(long, value_name = "TIME", conflicts_with = "resume")]
    timeout: Option<String>,

    /// Address space that each trial may take from the start of its measured region on, such as 512MiB
    #[arg(long, value_name = "SIZE", conflicts_with = "resume")]
    memory_limit: Option<String>,

    /// Small sizes and two blocks: shows that everything runs; claims about time and about full sizes are then not
    /// decidable
    #[arg(long, conflicts_with = "resume")]
    quick: bool,

    /// Only shows what would be run, in order
    #[arg(long, conflicts_with = "resume")]
    dry_run: bool,

    /// Folder of the run (several experiments: a folder in it for each)
    /// [default: results/<UTC>-<experiment>-<host>]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    out: Option<PathBuf>,

    /// Goes on with an interrupted run in this folder
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,

    /// The summary (or, with --dry-run, the plan) as JSON on standard output
    #[arg(long)]
    json: bool,
}

impl Run {
    pub(super) fn run(&self) -> Result<(), Failure> {
        if let Some(folder) = &self.resume {
            listen()?;
            return self.go_on(Folder::open(folder.clone())?);
        }
        let options = self.options()?;
        // Everything is read and planned before anything runs, so that bad input costs nothing.
        let planned = self
            .experiments
            .iter()
            .map(|name| {
                let (experiment, text) = definitions::find(name)?;
                let plan =
                    plan::plan(&experiment, &options).map_err(|why| Failure::BadInput(why.0))?;
                if plan.trials.is_empty() {
                    return Err(Failure::BadInput(format!(
                        "{name}: nothing is left to run with these options"
                    )));
                }
                Ok((experiment, text, plan))
            })
            .collect::<Result<Vec<_>, Failure>>()?;
        if self.dry_run {
            let plans: Vec<&Plan> = planned.iter().map(|(_, _, plan)| plan).collect();
            return if self.json {
                print_json(&plans)
            } else {
                print(&shown(&plans))
            };
        }
        listen()?;
        let environment = Environment::read();
        let mut folders: Vec<PathBuf> = Vec::new();
        for (experiment, ..) in &planned {
            let folder = self.folder(experiment, &environment.host);
            if folders.contains(&folder) {
                return Err(Failure::BadInput(format!(
                    "{} is named twice: a run of it goes into {}",
                    experiment.id,
                    folder.display()
                )));
            }
            Folder::vacant(&folder)?;
            folders.push(folder);
        }
        for ((experiment, text, plan), folder) in planned.into_iter().zip(folders) {
            let folder = Folder::create(folder)?;
            folder.write_json("env.json", &environment)?;
            folder.write("experiment.toml", text.as_bytes())?;
            folder.write_json("plan.json", &plan)?;
            for warning in &environment.warnings {
                note(&format!("warning: {warning}"));
            }
            self.trials(&folder, &experiment, &plan)?;
        }
        Ok(())
    }

    fn go_on(&self, folder: Folder) -> Result<(), Failure> {
        let plan = folder.plan()?;
        if plan.verify {
            return Err(Failure::BadInput(format!(
                "{} holds a verification, which is not gone on with: start it anew by heaplab verify",
                folder.path().display()
            )));
        }
        // Without it the run could be finished and not reported.
        let _: Environment = folder.read_json("env.json")?;
        if plan.source_hash != crate::SOURCE_HASH {
            return Err(Failure::BadInput(format!(
                "{} was begun by a heaplab built from other sources; figures of two builds are not mixed: start a new run",
                folder.path().display()
            )));
        }
        let text = folder.read_text("experiment.toml")?;
        let experiment = Experiment::parse(
            &text,
            &folder.path().join("experiment.toml").to_string_lossy(),
        )
        .map_err(|why| Failure::BadInput(why.to_string()))?;
        self.trials(&folder, &experiment, &plan)
    }

    /// Runs what is left of a plan and shows what came of it.
    fn trials(&self, folder: &Folder, experiment: &Experiment, plan: &Plan) -> Result<(), Failure> {
        let shown = folder.path().display();
        let resume = || format!("go on with: heaplab run --resume {shown}");
        let mut appender = folder.appender()?;
        let done = folder.records(plan)?;
        note(&format!(
            "{}: {}, {} of them done, into {shown}",
            experiment.id,
            size::counted(plan.trials.len(), "trial"),
            done.len()
        ));
        let place = Place {
            children: &children()?,
            trace: &folder.trace(),
            profile: &folder.profile(),
        };
        let finish = run::run(plan, &done, &mut appender, place).map_err(|why| {
            Failure::Check(format!("{why}; finished trials are kept; {}", resume()))
        })?;
        let records = folder.records(plan)?;
        let summary = Summary::new(&records);
        folder.write_json("summary.json", &summary)?;
        if finish == Finish::Interrupted {
            let whole = format!("{} of {} trials are kept", records.len(), plan.trials.len());
            return Err(Failure::Interrupted(format!(
                "interrupted; {whole}; {}",
                resume()
            )));
        }
        if self.json {
            print_json(&summary)?;
        } else {
            let run = AsRun::planned(experiment, plan);
            let report = Report::new(experiment, &summary, &run).with_files(&records);
            print(&report::table::report(
                &report,
                Some(super::finished::width()),
            ))?;
            note(&format!(
                "\nchecked claims: heaplab claims {shown}\nthese tables:   heaplab report {shown}"
            ));
        }
        let ended = |kind: &str| {
            records
                .iter()
                .filter(|record| record.outcome.name() == kind)
                .count()
        };
        if ended("wrong-checksum") > 0 {
            return Err(Failure::Check(format!(
                "{} gave a wrong checksum",
                size::counted(ended("wrong-checksum"), "trial")
            )));
        }
        // A trial that was cut off has measured something; one that never got to its work has not.
        if !records.iter().any(|record| !record.metrics.is_empty()) {
            return Err(Failure::NothingMeasurable(format!(
                "no trial measured anything here; {}",
                first_reason(&records)
            )));
        }
        Ok(())
    }

    fn options(&self) -> Result<Options, Failure> {
        let bad = |why: String| Failure::BadInput(why);
        let set = self
            .set
            .iter()
            .map(|setting| {
                let (name, values) = setting
                    .split_once('=')
                    .filter(|(name, values)| !name.is_empty() && !values.is_empty())
                    .ok_or_else(|| bad(format!("--set {setting}: expected NAME=VALUE")))?;
                // A path may hold a comma; only the grids of words and numbers are split.
                let values = if name == "root" {
                    vec![values]
                } else {
                    values.split(',').collect()
                };
                Ok((
                    name.to_owned(),
                    values.into_iter().map(str::to_owned).collect(),
                ))
            })
            .collect::<Result<_, Failure>>()?;
        let time = |text: &String| -> Result<Duration, Failure> {
            size::parse_duration(text).map_err(|why| bad(format!("--timeout: {why}")))
        };
        let bytes = |text: &String| {
            size::parse_bytes(text).map_err(|why| bad(format!("--memory-limit: {why}")))
        };
        let protocol = |text: &String| {
            Protocol::ALL
                .into_iter()
                .find(|protocol| protocol.name() == text)
                .ok_or_else(|| {
                    bad(format!(
                        "unknown protocol `{text}`: {}",
                        crate::nearest::suggest(text, &Protocol::ALL.map(Protocol::name))
                    ))
                })
        };
        Ok(Options {
            quick: self.quick,
            blocks: self.blocks,
            seed: self.seed,
            timeout: self.timeout.as_ref().map(time).transpose()?,
            memory_limit: self.memory_limit.as_ref().map(bytes).transpose()?,
            set,
            allocators: self.allocators.as_deref().map(arms).transpose()?,
            protocol: self.protocol.as_ref().map(protocol).transpose()?,
        })
    }

    fn folder(&self, experiment: &Experiment, host: &str) -> PathBuf {
        match &self.out {
            Some(out) if self.experiments.len() == 1 => out.clone(),
            Some(out) => out.join(&experiment.id),
            None => {
                let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
                Path::new("results").join(format!("{now}-{}-{}", experiment.id, host))
            }
        }
    }
}

/// Reads `a,b:knob=1,knob=2,c`: a piece of the form knob=value belongs to the arm before it. No knob's value holds a
/// slash, so with one it is a library.
pub(super) fn arms(list: &str) -> Result<Vec<Arm>, Failure> {
    let mut texts: Vec<String> = Vec::new();
    for piece in list.split(',') {
        match texts.last_mut() {
            Some(last)
                if piece.contains('=') && !piece.contains([':', '/']) && last.contains(':') =>
            {
                last.push(',');
                last.push_str(piece);
            }
            _ => texts.push(piece.to_owned()),
        }
    }
    let mut arms = Vec::new();
    for text in texts {
        let arm = Arm::parse(&text).map_err(|why| Failure::BadInput(why.0))?;
        if arms.iter().any(|other: &Arm| other.label() == arm.label()) {
            return Err(Failure::BadInput(format!(
                "--allocators names {} twice",
                arm.label()
            )));
        }
        arms.push(arm);
    }
    Ok(arms)
}

/// From here on signals are noted: a run that is stopped ends in order.
pub(super) fn listen() -> Result<(), Failure> {
    interrupt::listen().map_err(|why| Failure::Check(format!("cannot listen to signals: {why}")))
}

/// Why the first trial that measured nothing did not.
fn first_reason(records: &[TrialRecord]) -> String {
    let reason = records.iter().find_map(|record| match &record.outcome {
        Outcome::Unavailable { why } => Some(format!("{}: {why}", record.arm)),
        Outcome::Failed { message, .. } => Some(format!("{}: {message}", record.arm)),
        _ => None,
    });
    reason.unwrap_or_else(|| "the table says why".to_owned())
}

/// The plans as text, one trial a line.
fn shown(plans: &[&Plan]) -> String {
    let mut text = String::new();
    for plan in plans {
        let _ = writeln!(
            text,
            "{}: {}, seed {}",
            plan.experiment,
            size::counted(plan.trials.len(), "trial"),
            plan.seed
        );
        for trial in &plan.trials {
            let params: Vec<String> = trial
                .params
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let _ = writeln!(
                text,
                "  {:>4}  {:<6} block {:<2} {:<16} {:<28} {} {} (limit {}, needs about {})",
                trial.trial,
                trial.protocol.name(),
                trial.block,
                trial.grid,
                trial.arm,
                trial.workload,
                params.join(" "),
                size::format_duration(Duration::from_millis(trial.timeout_ms)),
                size::approx_bytes(trial.footprint_bytes),
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_arms_and_knobs() {
        let labels =
            |list: &str| arms(list).map(|arms| arms.iter().map(Arm::label).collect::<Vec<_>>());
        let read = labels("system,jemalloc:dirty_decay_ms=0,muzzy_decay_ms=1,null").expect("valid");
        assert_eq!(
            read,
            [
                "system",
                "jemalloc:dirty_decay_ms=0,muzzy_decay_ms=1",
                "null"
            ]
        );
        assert!(
            matches!(labels("system,system"), Err(Failure::BadInput(why)) if why.contains("twice"))
        );
        let library = format!(
            "jemalloc:dirty_decay_ms=0,mine={}",
            std::env::current_exe().expect("this program").display()
        );
        let read = labels(&library).expect("valid");
        assert_eq!(read, ["jemalloc:dirty_decay_ms=0", "mine"]);
        assert!(matches!(labels("sistem"), Err(Failure::BadInput(why)) if why.contains("system")));
    }
}
