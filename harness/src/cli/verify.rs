//! `heaplab verify`: is every allocator sound here, and what does each do?

use super::{Failure, children, print, print_json};
use crate::report::{Table, markdown, table};
use crate::run::env::Environment;
use crate::run::folder::Folder;
use crate::run::inquiry::{self, Asked};
use crate::run::progress::note;
use crate::run::{self, Finish, Place, interrupt};
use crate::size;
use crate::trial::SCHEMA;
use crate::verification::{self, FILE, ID, Inquired, Request, State, Verification};
use crate::workloads::{self, WORKLOADS};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Arguments of `verify`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  heaplab verify\n  heaplab verify --allocators system,jemalloc:dirty_decay_ms=0\n  \
    heaplab verify --allocators mine=target/release/libmine.so\n  heaplab verify --workloads growth --seed 2\n  \
    heaplab verify --show results/20261130T120000Z-verify-myhost --format markdown\n\n\
    Exit status: 0 done, 1 something is broken or the disk refused, 2 bad input, 3 nothing could be verified, 130 interrupted."
)]
pub struct Verify {
    /// Arms to verify instead of all, as id[:knob=value,...] or name=path/to/lib.so
    #[arg(long, value_name = "ARM,...", conflicts_with = "show")]
    allocators: Option<String>,

    /// Workloads to run instead of all
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        conflicts_with = "show"
    )]
    workloads: Vec<String>,

    /// Seed of inputs
    #[arg(long, value_name = "S", default_value_t = 1, conflicts_with = "show")]
    seed: u64,

    /// Limit of one trial, which takes milliseconds under a sound allocator: one that runs into it counts as broken
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60s",
        conflicts_with = "show"
    )]
    timeout: String,

    /// Folder of the verification [default: results/<UTC>-verify-<host>]
    #[arg(long, value_name = "DIR", conflicts_with = "show")]
    out: Option<PathBuf>,

    /// Only shows the tables of the verification in this folder, with the exit status that it had
    #[arg(long, value_name = "DIR")]
    show: Option<PathBuf>,

    /// How the tables are written
    #[arg(long, value_enum, default_value = "terminal", conflicts_with = "json")]
    format: Format,

    /// Everything that was found as JSON on standard output, as in behaviour.json
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Terminal,
    Markdown,
}

impl Verify {
    pub(super) fn run(&self) -> Result<(), Failure> {
        if let Some(shown) = &self.show {
            return self.tell(&stored(shown)?);
        }
        let request = self.request()?;
        let plan = verification::plan(&request).map_err(|why| Failure::BadInput(why.0))?;
        let children = children()?;
        super::run::listen()?;
        let environment = Environment::read();
        let folder = Folder::create(self.folder(&environment.host))?;
        folder.write_json("env.json", &environment)?;
        folder.write_json("plan.json", &plan)?;
        note(&format!(
            "{ID}: {} of {}, into {}",
            size::counted(plan.trials.len(), "trial"),
            size::counted(request.arms.len(), "arm"),
            folder.path().display()
        ));
        let mut appender = folder.appender()?;
        let place = Place {
            children: &children,
            trace: &folder.trace(),
            profile: &folder.profile(),
        };
        let finish = run::run(&plan, &[], &mut appender, place)?;
        let records = folder.records(&plan)?;
        let interrupted = || {
            Failure::Interrupted(format!(
                "interrupted; {} of {} are kept in {}; a verification is not gone on with: start it anew",
                records.len(),
                size::counted(plan.trials.len(), "trial"),
                folder.path().display()
            ))
        };
        if finish == Finish::Interrupted {
            return Err(interrupted());
        }
        let mut inquired = Vec::new();
        let arms = request.arms.len();
        for (i, arm) in request.arms.into_iter().enumerate() {
            if interrupt::asked() {
                return Err(interrupted());
            }
            note(&format!(
                "[{}/{arms}] {}: behaviour suite, and what it does",
                i + 1,
                arm.label()
            ));
            let answers = inquire(&arm, &children);
            if answers.suite == Asked::Interrupted || answers.behaviour == Asked::Interrupted {
                return Err(interrupted());
            }
            inquired.push((arm, answers));
        }
        let found = Verification::new(&plan, &records, &inquired);
        folder.write_json(FILE, &found)?;
        let told = self.tell(&found);
        if !self.json {
            note(&format!(
                "\nthese tables: heaplab verify --show {}",
                folder.path().display()
            ));
        }
        told
    }

    fn request(&self) -> Result<Request, Failure> {
        let bad = |why: String| Failure::BadInput(why);
        let timeout =
            size::parse_duration(&self.timeout).map_err(|why| bad(format!("--timeout: {why}")))?;
        if timeout.is_zero() {
            return Err(bad("the timeout must be longer than nothing".to_owned()));
        }
        let mut overrides = Vec::new();
        let arms = match &self.allocators {
            Some(list) => {
                overrides.push(format!("allocators={list}"));
                super::run::arms(list)?
            }
            None => verification::arms().map_err(|why| bad(why.0))?,
        };
        let mut chosen = Vec::new();
        for name in &self.workloads {
            let workload = workloads::find(name).map_err(|why| bad(why.0))?;
            if chosen
                .iter()
                .all(|other: &&workloads::WorkloadDef| other.id != workload.id)
            {
                chosen.push(workload);
            }
        }
        if chosen.is_empty() {
            chosen.extend(WORKLOADS);
        } else {
            overrides.push(format!("workloads={}", self.workloads.join(",")));
        }
        Ok(Request {
            arms,
            workloads: chosen,
            seed: self.seed,
            timeout,
            overrides,
        })
    }

    fn folder(&self, host: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| {
            let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
            Path::new("results").join(format!("{now}-{ID}-{host}"))
        })
    }

    /// Prints what was found, and says by the exit status what it comes to.
    fn tell(&self, found: &Verification) -> Result<(), Failure> {
        if self.json {
            print_json(found)?;
        } else {
            let width = Some(super::finished::width());
            let drawn = |one: &Table| match self.format {
                Format::Terminal => table::table(one, width),
                Format::Markdown => markdown::table(one),
            };
            let tables: Vec<String> = found.tables.iter().map(drawn).collect();
            print(&tables.join("\n"))?;
        }
        let broken: Vec<&str> = found.broken().map(|arm| arm.arm.as_str()).collect();
        if !broken.is_empty() {
            return Err(Failure::Check(format!(
                "{} broken: {}; the first table says how",
                if broken.len() == 1 {
                    "an arm is"
                } else {
                    "some arms are"
                },
                broken.join(", ")
            )));
        }
        if found.verified() == 0 {
            return Err(Failure::NothingMeasurable(format!(
                "nothing could be verified here{}",
                first_reason(found)
            )));
        }
        Ok(())
    }
}

/// Why the first arm was not verified.
fn first_reason(found: &Verification) -> String {
    let reason = found.arms.iter().find_map(|arm| match &arm.state {
        State::Unavailable { why } | State::NotVerified { why } => Some((&arm.arm, why)),
        State::Sound | State::Broken => None,
    });
    reason.map_or_else(String::new, |(arm, why)| format!("; {arm}: {why}"))
}

/// The suite and the questions on behaviour, each in a child of its own.
fn inquire(arm: &crate::arms::Arm, children: &Path) -> Inquired {
    if let Err(why) = run::startable(&arm.home(), children) {
        return Inquired {
            suite: Asked::Unavailable(why.clone()),
            behaviour: Asked::Unavailable(why),
        };
    }
    let (child, environment) = (children.join(arm.home().child), run::untraced(arm));
    let suite = inquiry::suite(arm, &child, &environment);
    let behaviour = match &suite {
        // Nobody has to wait for the same answer again.
        Asked::Unavailable(why) => Asked::Unavailable(why.clone()),
        Asked::Interrupted => Asked::Interrupted,
        Asked::Told(_) | Asked::Broke(_) => inquiry::behaviour(arm, &child, &environment),
    };
    Inquired { suite, behaviour }
}

/// The verification that is stored in `folder`.
fn stored(folder: &Path) -> Result<Verification, Failure> {
    let holds = Folder::open(folder.to_owned())?;
    if !holds.plan()?.verify {
        return Err(Failure::BadInput(format!(
            "{0} holds measurements, no verification: heaplab report {0}",
            folder.display()
        )));
    }
    if !folder.join(FILE).exists() {
        return Err(Failure::BadInput(format!(
            "the verification in {} did not come to its end, and is not gone on with: start it anew by heaplab verify",
            folder.display()
        )));
    }
    let found: Verification = holds.read_json(FILE)?;
    if found.schema > SCHEMA {
        return Err(Failure::BadInput(format!(
            "{}: schema {}, newer than this heaplab's {SCHEMA}",
            folder.join(FILE).display(),
            found.schema
        )));
    }
    Ok(found)
}
