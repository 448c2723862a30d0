//! `heaplab list`: what there is.

use super::{Failure, children, print, print_json};
use crate::arms::{ARMS, SIZED};
use crate::definitions;
use crate::plan::{self, Options};
use crate::run::env::Environment;
use crate::run::receipt;
use crate::size;
use crate::trial::Receipt;
use crate::workloads::WORKLOADS;
use crate::workloads::params::Kind;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct List {
    /// What to list; without it everything but the machine
    what: Option<What>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Allocators,
    Workloads,
    Experiments,
    Env,
}

impl List {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let all = [What::Allocators, What::Workloads, What::Experiments];
        let wanted: Vec<What> = self.what.map_or(all.to_vec(), |what| vec![what]);
        let mut listed = serde_json::Map::new();
        let mut text = String::new();
        for what in wanted {
            let (name, value, shown) = match what {
                What::Allocators => allocators(&children()?),
                What::Workloads => workloads(),
                What::Experiments => experiments()?,
                What::Env => machine()?,
            };
            listed.insert(name.to_owned(), value);
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&shown);
        }
        if self.json {
            print_json(&listed)
        } else {
            print(&text)
        }
    }
}

fn allocators(children: &Path) -> (&'static str, Value, String) {
    let mut values = Vec::new();
    let mut text = String::from(
        "Allocators (id, what answers, what it is, how it was built, knobs with what is read back now)\n",
    );
    let answers = |receipt: &Result<Receipt, String>| match receipt {
        Ok(receipt) => format!("{} {}", receipt.allocator, receipt.version),
        Err(why) => format!("UNAVAILABLE: {why}"),
    };
    for arm in ARMS.iter().filter(|arm| !arm.test_only) {
        let receipt = receipt::ask(children, &arm.home(), arm.id);
        let told = receipt.as_ref().ok();
        let _ = writeln!(
            text,
            "  {:<20} {}\n  {:20} {}",
            arm.id,
            answers(&receipt),
            "",
            arm.what
        );
        if arm.sized {
            let _ = writeln!(
                text,
                "  {:20}   {SIZED}  its blocks are given back with their size",
                ""
            );
        }
        if let Some(receipt) = told {
            for (head, pairs) in [("built", &receipt.build), ("reads", &receipt.facts)] {
                let pairs: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}: {v}")).collect();
                if !pairs.is_empty() {
                    let _ = writeln!(text, "  {:20}   {head} {}", "", pairs.join("; "));
                }
            }
        }
        // Values of knobs that a child of their own holds.
        let mut elsewhere = serde_json::Map::new();
        for knob in arm.knobs {
            let only_with = knob.only_with.map_or_else(String::new, |(other, value)| {
                format!("; only with {other}={value}")
            });
            let now = told.and_then(|receipt| receipt.knobs.get(knob.name));
            let now = now.map_or_else(String::new, |now| format!("; now {now}"));
            let _ = writeln!(
                text,
                "  {:20}   :{}={}  {}{only_with}{now}",
                "", knob.name, knob.takes, knob.what
            );
            for (word, home) in knob.homes() {
                let receipt = receipt::ask(children, &home, arm.id);
                let setting = format!("{}={word}", knob.name);
                let _ = writeln!(
                    text,
                    "  {:20}     {setting} by {}: {}",
                    "",
                    home.child,
                    answers(&receipt)
                );
                elsewhere.insert(
                    setting,
                    json!({"receipt": receipt.as_ref().ok(), "unavailable": receipt.as_ref().err()}),
                );
            }
        }
        values.push(json!({
            "id": arm.id, "what": arm.what, "note": arm.note,
            "sized": arm.sized, "threads": arm.threads,
            "knobs": arm.knobs.iter().map(|knob| json!({
                "name": knob.name, "takes": knob.takes.to_string(),
                "min": knob.takes.range().map(|(min, _)| min), "max": knob.takes.range().map(|(_, max)| max),
                "what": knob.what,
            })).collect::<Vec<_>>(),
            "receipt": receipt.as_ref().ok(), "unavailable": receipt.as_ref().err(),
            "elsewhere": elsewhere,
        }));
    }
    ("allocators", Value::Array(values), text)
}

fn expected(kind: Kind) -> String {
    match kind {
        Kind::Choice(words) => words.join(" | "),
        Kind::Size(min, max) => {
            format!("{} to {}", size::format_bytes(min), size::format_bytes(max))
        }
        Kind::Count(min, max) => {
            format!("{} to {}", size::format_count(min), size::format_count(max))
        }
        Kind::Duration => "a length of time, such as 20s".to_owned(),
        Kind::ExistingPath => "a directory or regular file".to_owned(),
    }
}

fn workloads() -> (&'static str, Value, String) {
    let mut values = Vec::new();
    let mut text = String::from("Workloads (id, what they do; parameters for --set and TOML)\n");
    for workload in WORKLOADS {
        let _ = writeln!(text, "  {:<20} {}", workload.id, workload.what);
        let phases: Vec<&str> = workload.all_phases().collect();
        let _ = writeln!(text, "  {:20}   phases: {}", "", phases.join(", "));
        for param in workload.params {
            let default = param
                .default
                .map_or_else(String::new, |value| format!(" (default {value})"));
            let _ = writeln!(
                text,
                "  {:20}   {}={}{default}  {}",
                "",
                param.name,
                expected(param.kind),
                param.what
            );
        }
        values.push(json!({
            "id": workload.id, "what": workload.what, "phases": phases,
            "params": workload.params.iter().map(|param| json!({
                "name": param.name, "takes": expected(param.kind), "default": param.default, "what": param.what,
            })).collect::<Vec<_>>(),
        }));
    }
    ("workloads", Value::Array(values), text)
}

fn experiments() -> Result<(&'static str, Value, String), Failure> {
    let mut values = Vec::new();
    let mut text = String::from("Experiments (id, title)\n");
    for (id, _) in definitions::BUILT_IN {
        let (experiment, _) = definitions::find(id)?;
        // A definition whose input is left to --set has no plan yet.
        let trials = plan::plan(&experiment, &Options::default())
            .ok()
            .map(|plan| plan.trials.len());
        let size = trials.map_or_else(|| "needs --set".to_owned(), |n| size::counted(n, "trial"));
        let _ = writeln!(
            text,
            "  {id:<20} {} ({size}, {} claims)",
            experiment.title,
            experiment.claims.len()
        );
        values.push(json!({
            "id": id, "title": experiment.title, "trials": trials, "claims": experiment.claims.len(),
            "grids": experiment.grids.iter().map(|grid| &grid.name).collect::<Vec<_>>(),
        }));
    }
    Ok(("experiments", Value::Array(values), text))
}

fn machine() -> Result<(&'static str, Value, String), Failure> {
    let environment = Environment::read();
    let value =
        serde_json::to_value(&environment).map_err(|why| Failure::Check(why.to_string()))?;
    let mut text = String::from("This machine and this build\n");
    let outer = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| !matches!(name.as_str(), "machine" | "warnings"));
    let inner = value
        .get("machine")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    for (name, fact) in outer.chain(inner) {
        let fact = fact
            .as_str()
            .map_or_else(|| fact.to_string(), str::to_owned);
        let _ = writeln!(text, "  {name:<24} {fact}");
    }
    for warning in &environment.warnings {
        let _ = writeln!(text, "  warning: {warning}");
    }
    Ok(("env", value, text))
}
