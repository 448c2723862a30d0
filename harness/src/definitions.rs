//! The experiments that come with heaplab, and files of the user's own.

use crate::experiment::{DefinitionError, Experiment};
use crate::nearest::suggest;
use std::fmt;
use std::path::Path;

/// Every built-in definition: `(id, text of its TOML file)`, in the order of lists.
pub static BUILT_IN: &[(&str, &str)] = &[
    (
        "walker-2007",
        include_str!("../experiments/walker-2007.toml"),
    ),
    (
        "growth-today",
        include_str!("../experiments/growth-today.toml"),
    ),
    ("table-2007", include_str!("../experiments/table-2007.toml")),
    (
        "walker-files",
        include_str!("../experiments/walker-files.toml"),
    ),
    (
        "memory-walker",
        include_str!("../experiments/memory-walker.toml"),
    ),
    (
        "pairs-census",
        include_str!("../experiments/pairs-census.toml"),
    ),
    ("pairs-time", include_str!("../experiments/pairs-time.toml")),
    (
        "million-lists",
        include_str!("../experiments/million-lists.toml"),
    ),
    (
        "dict-retention",
        include_str!("../experiments/dict-retention.toml"),
    ),
    ("survivors", include_str!("../experiments/survivors.toml")),
    ("size-shift", include_str!("../experiments/size-shift.toml")),
    ("packing", include_str!("../experiments/packing.toml")),
    ("memcrunch", include_str!("../experiments/memcrunch.toml")),
    (
        "arena-policies",
        include_str!("../experiments/arena-policies.toml"),
    ),
    (
        "object-churn",
        include_str!("../experiments/object-churn.toml"),
    ),
    (
        "arena-thrash",
        include_str!("../experiments/arena-thrash.toml"),
    ),
    (
        "peak-then-free",
        include_str!("../experiments/peak-then-free.toml"),
    ),
    ("burst-idle", include_str!("../experiments/burst-idle.toml")),
    ("lines", include_str!("../experiments/lines.toml")),
    (
        "address-test",
        include_str!("../experiments/address-test.toml"),
    ),
];

/// A definition that cannot be had.
#[derive(Debug)]
pub enum Missing {
    /// No built-in experiment has this name and no file is there; the text names the nearest ones.
    Unknown(String),
    /// The file cannot be read.
    Unreadable(String),
    /// The definition is broken.
    Broken(DefinitionError),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Unknown(why) | Missing::Unreadable(why) => f.write_str(why),
            Missing::Broken(why) => why.fmt(f),
        }
    }
}
impl std::error::Error for Missing {}

/// The definition called `name`, with its text: a built-in one, or a file if `name` ends in `.toml`.
///
/// # Errors
/// [`Missing`].
pub fn find(name: &str) -> Result<(Experiment, String), Missing> {
    let (text, file) = if name.ends_with(".toml") {
        let text = std::fs::read_to_string(Path::new(name))
            .map_err(|why| Missing::Unreadable(format!("cannot read {name}: {why}")))?;
        (text, name.to_owned())
    } else {
        let (id, text) = BUILT_IN.iter().find(|(id, _)| *id == name).ok_or_else(|| {
            let known: Vec<&str> = BUILT_IN.iter().map(|(id, _)| *id).collect();
            Missing::Unknown(format!(
                "unknown experiment `{name}`: {} (a file of your own is named with its .toml)",
                suggest(name, &known)
            ))
        })?;
        ((*text).to_owned(), format!("{id}.toml"))
    };
    let experiment = Experiment::parse(&text, &file).map_err(Missing::Broken)?;
    Ok((experiment, text))
}
