//! Parameters of a workload: what they are called, what they may be, and the messages when they are not.

use crate::nearest::suggest;
use crate::size;
use crate::trial::Params;
use std::fmt;
use std::path::Path;

/// What a parameter may be.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Bytes in a range, written as `4MiB` or plainly.
    Size(u64, u64),
    /// A number in a range, written as `10k` (thousands), `1M` (millions) or plainly.
    Count(u64, u64),
    /// A length of time, written as `20s`; `0s` is none.
    Duration,
    /// An existing directory or regular file.
    ExistingPath,
}

/// One parameter.
#[derive(Debug)]
pub struct ParamDef {
    /// Name in TOML, in records and after `--set`.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// Value if it is not given; `None`: it has no value then.
    pub default: Option<&'static str>,
    /// One line for lists and docs.
    pub what: &'static str,
}

/// A parameter that is not known or out of range, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadParam(pub String);

impl fmt::Display for BadParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for BadParam {}

impl ParamDef {
    /// Checks `value` and writes it in its one normal form (`4194304` becomes `4MiB`), so that equal cells have
    /// equal names.
    ///
    /// # Errors
    /// [`BadParam`] naming the parameter, the value and what was expected.
    pub fn normal(&self, value: &str) -> Result<String, BadParam> {
        let expected = |what: String| {
            BadParam(format!(
                "parameter `{}` takes {what}, not `{value}`",
                self.name
            ))
        };
        match self.kind {
            Kind::Choice(words) if words.contains(&value) => Ok(value.to_owned()),
            Kind::Choice(words) => Err(BadParam(format!(
                "parameter `{}` has no value `{value}`: {}",
                self.name,
                suggest(value, words)
            ))),
            Kind::Size(min, max) => match size::parse_bytes(value) {
                Ok(bytes) if (min..=max).contains(&bytes) => Ok(size::format_bytes(bytes)),
                _ => Err(expected(format!(
                    "a size from {} to {} (such as 4MiB)",
                    size::format_bytes(min),
                    size::format_bytes(max)
                ))),
            },
            Kind::Count(min, max) => match size::parse_count(value) {
                Some(count) if (min..=max).contains(&count) => Ok(size::format_count(count)),
                _ => Err(expected(format!(
                    "a number from {} to {} (such as 10k or 1M)",
                    size::format_count(min),
                    size::format_count(max)
                ))),
            },
            Kind::Duration => match size::parse_duration(value) {
                Ok(time) => Ok(size::format_duration(time)),
                Err(_) => Err(expected("a length of time (such as 20s)".to_owned())),
            },
            Kind::ExistingPath => match Path::new(value).metadata() {
                Ok(found) if found.is_dir() || found.is_file() => Ok(value.to_owned()),
                Ok(_) => Err(expected("a directory or a regular file".to_owned())),
                Err(why) => Err(BadParam(format!(
                    "parameter `{}`: cannot read `{value}`: {why}",
                    self.name
                ))),
            },
        }
    }
}

/// Bytes of a parameter that [`ParamDef::normal`] has passed; 0 where it has no value.
pub fn bytes(params: &Params, name: &str) -> u64 {
    params
        .get(name)
        .and_then(|value| size::parse_bytes(value).ok())
        .unwrap_or(0)
}

/// A number of a parameter that [`ParamDef::normal`] has passed; 0 where it has no value.
pub fn count(params: &Params, name: &str) -> u64 {
    params
        .get(name)
        .and_then(|value| size::parse_count(value))
        .unwrap_or(0)
}

/// What every workload that sleeps calls its parameter for that.
pub const IDLE: &str = "idle";

/// How long a workload with these parameters sleeps, outside its measured region: its limit does not count it, and
/// whoever waits for the child has to.
pub fn idle(params: &Params) -> std::time::Duration {
    duration(params, IDLE).unwrap_or_default()
}

/// A length of time that [`ParamDef::normal`] has passed; `None` where it has no value or is `0s`.
pub fn duration(params: &Params, name: &str) -> Option<std::time::Duration> {
    params
        .get(name)
        .and_then(|value| size::parse_duration(value).ok())
        .filter(|time| !time.is_zero())
}
