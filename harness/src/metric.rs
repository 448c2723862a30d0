//! The metrics: what each name in a record means, and how far it may be trusted.

use crate::nearest::nearest_text;
use crate::trial::{Protocol, Receipt};
use crate::workloads;
use std::fmt;

/// What decides a metric's value, and so whether it can differ between two runs of the same cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy {
    /// The workload and its seed alone: equal for every allocator.
    Workload,
    /// The allocator's policy: the same in every run, unless the allocator draws by chance (sampling).
    Allocator,
    /// The allocator's policy and where the kernel puts its arenas: the same in every run if a receipt says that no
    /// arena loses a pool by that (the fact `arena_placement`), else by chance.
    Placement,
    /// The allocator's code as valgrind runs it: the same in every run but for what depends on addresses.
    Translated,
    /// The operating system beside the allocator: the same within a few counts.
    System,
    /// The machine and the moment.
    Clock,
}

/// What two runs of the same cell differ by even where that is much for the figure.
pub const FEW: u64 = 3;

/// How far two runs of the same cell can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exactness {
    /// Not at all.
    Exact,
    /// By so many hundredths either way, and by [`FEW`] where that is more.
    Percent(u64),
    /// By chance: only inequalities may be claimed.
    Random,
}

impl fmt::Display for Exactness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exactness::Exact => f.write_str("exact"),
            Exactness::Percent(n) => write!(f, "+-{n} %"),
            Exactness::Random => f.write_str("random"),
        }
    }
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name in records.
    pub name: &'static str,
    /// Unit: `bytes`, `ns`, or what is counted.
    pub unit: &'static str,
    /// What decides it.
    pub by: DecidedBy,
    /// What it means.
    pub description: &'static str,
}

const fn metric(
    name: &'static str,
    unit: &'static str,
    by: DecidedBy,
    description: &'static str,
) -> Metric {
    Metric {
        name,
        unit,
        by,
        description,
    }
}

/// The metric of instructions, which only a grid with `instructions = true` has.
pub const INSTRUCTIONS: &str = "instructions";

/// The metric of mispredicted branches, which such a grid has, too.
pub const MISPREDICTIONS: &str = "mispredictions";

/// What is counted in a run of its own under callgrind.
pub const UNDER_CALLGRIND: [&str; 2] = [INSTRUCTIONS, MISPREDICTIONS];

/// Every metric but `sys.NAME`, `rss.PHASE` and `rss_gross.PHASE`, in the order of tables.
pub const TABLE: &[Metric] = {
    use DecidedBy::{Allocator, Clock, Placement, System, Translated, Workload};
    &[
        metric("wall_ns", "ns", Clock, "Wall time of the measured region."),
        metric(
            "user_ns",
            "ns",
            Clock,
            "CPU time in the process itself, measured region.",
        ),
        metric(
            "system_ns",
            "ns",
            Clock,
            "CPU time in the kernel on its behalf, measured region.",
        ),
        metric("cpu_ns", "ns", Clock, "user_ns + system_ns."),
        metric(
            "ops",
            "calls",
            Workload,
            "Calls of the workload into the allocator.",
        ),
        metric("malloc_calls", "calls", Workload, "Calls of malloc."),
        metric(
            "realloc_calls",
            "calls",
            Workload,
            "Calls of realloc, failed ones included.",
        ),
        metric("free_calls", "calls", Workload, "Calls of free."),
        metric(
            "realloc_moves",
            "moves",
            Allocator,
            "Calls of realloc that returned another address.",
        ),
        metric(
            "moved_bytes",
            "bytes",
            Allocator,
            "Bytes in the blocks that moved: the smaller of old and new size, summed. Not all were copied.",
        ),
        metric(
            "mremap_moved_bytes",
            "bytes",
            Allocator,
            "Of moved_bytes, what the kernel moved by changing page tables (mremap), found by matching system calls.",
        ),
        metric(
            "mremap_moves",
            "moves",
            Allocator,
            "Of realloc_moves, those made by mremap.",
        ),
        metric(
            "copied_bytes",
            "bytes",
            Allocator,
            "moved_bytes minus mremap_moved_bytes: what realloc really copied.",
        ),
        metric(
            "client_copied_bytes",
            "bytes",
            Workload,
            "Bytes that the workload itself copied from block to block.",
        ),
        metric(
            "appended_bytes",
            "bytes",
            Workload,
            "Bytes that the workload appended to its blocks.",
        ),
        metric(
            "reached_bytes",
            "bytes",
            Workload,
            "Bytes accumulated when the trial ended, however it ended. Under a memory limit: the largest file that fits.",
        ),
        metric(
            INSTRUCTIONS,
            "instructions",
            Translated,
            "Instructions of the measured region, the driver's and the C library's included, counted by callgrind in a run \
             of their own.",
        ),
        metric(
            MISPREDICTIONS,
            "branches",
            Translated,
            "Branches of the measured region that a simulated predictor guessed wrong, in the same run.",
        ),
        metric(
            "minflt",
            "faults",
            System,
            "Minor page faults of the measured region.",
        ),
        metric(
            "majflt",
            "faults",
            System,
            "Major page faults of the measured region.",
        ),
        metric(
            "peak_live_bytes",
            "bytes",
            Workload,
            "The most that was live at once, in requested bytes.",
        ),
        metric(
            "peak_bytes",
            "bytes",
            System,
            "Peak resident from the phase start on, beyond what was resident at it.",
        ),
        metric(
            "peak_gross_bytes",
            "bytes",
            System,
            "Peak resident of the whole child from the phase start on.",
        ),
        metric(
            "rule_copied_bytes",
            "bytes",
            Allocator,
            "What the realloc rule of a model copied above its threshold, by the model's own books.",
        ),
        metric(
            "rule_moves",
            "moves",
            Allocator,
            "Moves made by the realloc rule of a model.",
        ),
        metric(
            "rule_entry_bytes",
            "bytes",
            Allocator,
            "Bytes copied when a block came under the rule of a model.",
        ),
        metric(
            "rule_entries",
            "blocks",
            Allocator,
            "Blocks that came under the rule of a model.",
        ),
        metric(
            "rule_capacity_bytes",
            "bytes",
            Allocator,
            "Capacities under the rule of a model when the trial ended.",
        ),
        metric(
            "arenas_total",
            "arenas",
            Placement,
            "Arenas that an arena allocator took from the operating system since it was opened, by its own books.",
        ),
        metric(
            "arenas_reclaimed",
            "arenas",
            Placement,
            "Arenas that it gave back. May only say how often it did so in vain: read arenas_highwater - arenas_current.",
        ),
        metric(
            "arenas_highwater",
            "arenas",
            Placement,
            "The most arenas that it held at once.",
        ),
        metric(
            "arenas_current",
            "arenas",
            Placement,
            "Arenas that it held when the trial ended.",
        ),
        metric(
            "arena_bytes",
            "bytes",
            Placement,
            "Address space in those arenas.",
        ),
    ]
};

/// Page faults differ by so many hundredths between two runs of the same cell, and by a few where they are few.
const FAULT_BAND: u64 = 3;

/// Instructions differ by so many hundredths between two runs of the same cell: what an allocator does can depend on
/// addresses and clocks, and up to 2 % was seen (jemalloc; mimalloc v2 less, most arms repeat them to the last one).
const INSTRUCTIONS_BAND: u64 = 3;

/// Beside its clocks, a time trial tells these too: they cost nothing inside the measured region.
const IN_TIME_TOO: [&str; 3] = ["ops", "appended_bytes", "reached_bytes"];

/// What memory trials tell beside that, as the census does.
const IN_MEMORY_TOO: &str = "peak_live_bytes";

/// What comes from memory trials alone: figures of single phases by their prefix, and the peak.
const RSS: &str = "rss.";
const RSS_GROSS: &str = "rss_gross.";
const PEAKS: [&str; 2] = ["peak_bytes", "peak_gross_bytes"];

/// What is told of the books at a phase, as `NAME.PHASE`. The census tells it, and memory trials do too.
pub const AT_PHASES: &[&str] = &[
    "live_bytes",
    "arenas_total",
    "arenas_reclaimed",
    "arenas_highwater",
    "arenas_current",
    "arena_bytes",
];

/// Live bytes, which are told at phases alone.
const LIVE: Metric = metric(
    "live_bytes.PHASE",
    "bytes",
    DecidedBy::Workload,
    "Bytes in live blocks at that phase, as they were requested.",
);

/// The metric that is read at a phase, if `name` is one.
fn at_a_phase(name: &str) -> Option<Metric> {
    let (base, phase) = name.split_once('.')?;
    if !AT_PHASES.contains(&base) || !workloads::phases().contains(&phase) {
        return None;
    }
    let found = TABLE.iter().find(|metric| metric.name == base);
    Some(found.copied().unwrap_or(LIVE))
}

/// A name that is no metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMetric {
    /// The name.
    pub name: String,
}

impl fmt::Display for UnknownMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = AT_PHASES.iter().map(|name| format!("{name}."));
        let phases: Vec<String> = [RSS, RSS_GROSS]
            .map(str::to_owned)
            .into_iter()
            .chain(at)
            .flat_map(|prefix| {
                let phases = workloads::phases().into_iter();
                phases.map(move |phase| format!("{prefix}{phase}"))
            })
            .collect();
        let fixed = TABLE.iter().map(|m| m.name).chain(["sys.NAME"]);
        let near = nearest_text(&self.name, fixed.chain(phases.iter().map(String::as_str)));
        write!(f, "unknown metric `{}`{near}", self.name)
    }
}
impl std::error::Error for UnknownMetric {}

/// The metric of that name; `sys.NAME` counts calls of the system call NAME, `rss.PHASE` and `rss_gross.PHASE` are
/// resident memory at a phase of a workload.
///
/// # Errors
/// [`UnknownMetric`], whose text names the nearest ones.
pub fn lookup(name: &str) -> Result<Metric, UnknownMetric> {
    if let Some(found) = TABLE.iter().find(|m| m.name == name) {
        return Ok(*found);
    }
    let phases = workloads::phases();
    let of_a_phase = |prefix| {
        let phase = name.strip_prefix(prefix);
        phase.is_some_and(|phase| phases.contains(&phase))
    };
    if of_a_phase(RSS) {
        return Ok(metric(
            "rss.PHASE",
            "bytes",
            DecidedBy::System,
            "Anonymous resident memory at that phase beyond what there was at the start.",
        ));
    }
    if of_a_phase(RSS_GROSS) {
        return Ok(metric(
            "rss_gross.PHASE",
            "bytes",
            DecidedBy::System,
            "Anonymous resident memory of the whole child at that phase.",
        ));
    }
    if let Some(found) = at_a_phase(name) {
        return Ok(found);
    }
    match name.strip_prefix("sys.") {
        Some(call)
            if !call.is_empty() && call.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') =>
        {
            Ok(metric(
                "sys.NAME",
                "calls",
                DecidedBy::Allocator,
                "Calls of that system call in the measured region.",
            ))
        }
        _ => Err(UnknownMetric {
            name: name.to_owned(),
        }),
    }
}

/// Whether the receipt says that the allocator samples allocations by chance, which moves blocks by chance: any fact or
/// knob named `sampling` or `sampling...` whose value as read back is neither `0` nor `off`.
pub fn sampling_on(receipt: &Receipt) -> bool {
    receipt
        .knobs
        .iter()
        .chain(&receipt.facts)
        .any(|(name, value)| {
            let first = value.split([' ', ',', ';']).next().unwrap_or_default();
            name.starts_with("sampling") && !matches!(first, "0" | "off" | "")
        })
}

/// Whether the receipt says that arenas lie at multiples of their pools, so that each has as many.
fn arenas_lose_no_pool(receipt: &Receipt) -> bool {
    receipt
        .facts
        .get("arena_placement")
        .is_some_and(|placed| placed.starts_with("aligned"))
}

/// How far `metric` can differ between two runs of a cell of the arm with that receipt.
pub fn exactness(metric: &Metric, receipt: Option<&Receipt>) -> Exactness {
    match metric.by {
        DecidedBy::Workload => Exactness::Exact,
        DecidedBy::Clock => Exactness::Random,
        _ if receipt.is_some_and(sampling_on) => Exactness::Random,
        DecidedBy::Allocator => Exactness::Exact,
        DecidedBy::Placement if receipt.is_some_and(arenas_lose_no_pool) => Exactness::Exact,
        DecidedBy::Placement => Exactness::Random,
        DecidedBy::Translated => Exactness::Percent(INSTRUCTIONS_BAND),
        DecidedBy::System if metric.unit == "faults" => Exactness::Percent(FAULT_BAND),
        DecidedBy::System => Exactness::Random,
    }
}

/// A metric or a sum of metrics: `appended_bytes + copied_bytes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    terms: Vec<(String, Metric)>,
}

impl Expression {
    /// Reads one or several names joined by `+`.
    ///
    /// # Errors
    /// [`UnknownMetric`] for the first name that is none.
    pub fn parse(text: &str) -> Result<Expression, UnknownMetric> {
        let terms = text
            .split('+')
            .map(|name| Ok((name.trim().to_owned(), lookup(name.trim())?)))
            .collect::<Result<_, UnknownMetric>>()?;
        Ok(Expression { terms })
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|(name, _)| name.as_str())
    }

    /// Whether a clock decides any term.
    pub fn is_time(&self) -> bool {
        self.terms
            .iter()
            .any(|(_, metric)| metric.by == DecidedBy::Clock)
    }

    /// Whether any term depends on where arenas happen to lie.
    pub fn is_of_placement(&self) -> bool {
        self.terms
            .iter()
            .any(|(_, metric)| metric.by == DecidedBy::Placement)
    }

    /// Whether it says something of a trial that did not finish: it is `reached_bytes` alone.
    pub fn holds_unfinished(&self) -> bool {
        self.names().all(|name| name == "reached_bytes")
    }

    /// The protocol whose trials it is read from, of those that a grid has: clocks from time trials, resident memory
    /// from memory trials, all else from the census, but what the others tell too may come from them where there is
    /// no census.
    pub fn protocol(&self, of: &[Protocol]) -> Protocol {
        let resident = |name: &str| {
            name.starts_with(RSS) || name.starts_with(RSS_GROSS) || PEAKS.contains(&name)
        };
        let elsewhere = !of.contains(&Protocol::Census);
        let in_time_too = self.names().all(|name| IN_TIME_TOO.contains(&name));
        let in_memory_too = self.names().all(|name| {
            IN_TIME_TOO.contains(&name) || name == IN_MEMORY_TOO || at_a_phase(name).is_some()
        });
        if self.is_time() || (elsewhere && in_time_too && of.contains(&Protocol::Time)) {
            Protocol::Time
        } else if self.names().any(resident)
            || (elsewhere && in_memory_too && of.contains(&Protocol::Memory))
        {
            Protocol::Memory
        } else {
            Protocol::Census
        }
    }

    /// The exactness of the sum: bands add up; beside a share of the whole they are too small to count.
    pub fn exactness(&self, receipt: Option<&Receipt>) -> Exactness {
        let mut percent = None;
        for (_, metric) in &self.terms {
            match exactness(metric, receipt) {
                Exactness::Exact => {}
                Exactness::Percent(n) => percent = percent.max(Some(n)),
                Exactness::Random => return Exactness::Random,
            }
        }
        percent.map_or(Exactness::Exact, Exactness::Percent)
    }

    /// The sum, with `get` telling the value of a name.
    ///
    /// # Errors
    /// The first name that `get` does not know.
    pub fn sum(&self, get: impl Fn(&str) -> Option<u64>) -> Result<u64, &str> {
        self.names().try_fold(0u64, |sum, name| {
            get(name).map(|value| sum.saturating_add(value)).ok_or(name)
        })
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(" + "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(knobs: &[(&str, &str)]) -> Receipt {
        let knobs = knobs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Receipt {
            knobs,
            ..Receipt::default()
        }
    }

    #[test]
    fn sums_are_read_and_added() {
        let sum = Expression::parse("appended_bytes+ copied_bytes").expect("known");
        assert_eq!(sum.to_string(), "appended_bytes + copied_bytes");
        let get = |name: &str| Some(if name == "copied_bytes" { 40 } else { 2 });
        assert_eq!(sum.sum(get), Ok(42));
        assert_eq!(
            sum.sum(|name| (name == "appended_bytes").then_some(1)),
            Err("copied_bytes")
        );
    }

    #[test]
    fn unknown_names_get_the_nearest() {
        let error = Expression::parse("appended_bytes + copied_byte").expect_err("no such metric");
        assert!(
            error
                .to_string()
                .contains("`copied_byte`; nearest: copied_bytes"),
            "{error}"
        );
        assert!(Expression::parse("").is_err());
        assert!(Expression::parse("wall_ns +").is_err());
        assert!(lookup("sys.").is_err());
        assert_eq!(lookup("sys.mremap").map(|m| m.unit), Ok("calls"));
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = TABLE.iter().map(|m| m.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
    }

    #[test]
    fn sampling_makes_the_allocators_counts_random_and_no_others() {
        let on = receipt(&[("sampling", "2097152")]);
        let off = receipt(&[("sampling", "0")]);
        let of = |text: &str, receipt| Expression::parse(text).map(|e| e.exactness(Some(receipt)));
        assert_eq!(of("copied_bytes", &on), Ok(Exactness::Random));
        assert_eq!(of("copied_bytes", &off), Ok(Exactness::Exact));
        assert_eq!(of("appended_bytes", &on), Ok(Exactness::Exact));
        assert_eq!(of("minflt + majflt", &off), Ok(Exactness::Percent(3)));
        assert_eq!(of("wall_ns", &off), Ok(Exactness::Random));
        assert_eq!(of("instructions + minflt", &off), Ok(Exactness::Percent(3)));
        assert_eq!(of("instructions", &on), Ok(Exactness::Random));
        assert!(!sampling_on(&receipt(&[
            ("sampling", "off"),
            ("decay", "1")
        ])));
        assert!(sampling_on(&receipt(&[(
            "sampling_interval_bytes",
            "512 KiB"
        )])));
    }

    #[test]
    fn counts_of_arenas_are_exact_only_where_none_loses_a_pool() {
        let placed = |how: &str| Receipt {
            facts: [("arena_placement".to_owned(), how.to_owned())].into(),
            ..Receipt::default()
        };
        let of = |receipt: &Receipt| {
            Expression::parse("arenas_total").map(|e| e.exactness(Some(receipt)))
        };
        assert_eq!(of(&placed("aligned to pools")), Ok(Exactness::Exact));
        assert_eq!(of(&placed("as mmap gives them")), Ok(Exactness::Random));
        assert_eq!(of(&receipt(&[])), Ok(Exactness::Random));
    }

    #[test]
    fn each_metric_is_read_from_its_protocol() {
        let both = [Protocol::Time, Protocol::Census];
        let of =
            |text: &str, protocols: &[_]| Expression::parse(text).map(|e| e.protocol(protocols));
        assert_eq!(of("wall_ns", &both), Ok(Protocol::Time));
        assert_eq!(of("copied_bytes", &both), Ok(Protocol::Census));
        assert_eq!(of("reached_bytes", &[Protocol::Time]), Ok(Protocol::Time));
        for name in [
            "rss.full",
            "rss_gross.start + peak_live_bytes",
            "peak_bytes",
        ] {
            assert_eq!(of(name, &both), Ok(Protocol::Memory), "{name}");
        }
        let memory = [Protocol::Memory];
        assert_eq!(of("peak_live_bytes + ops", &memory), Ok(Protocol::Memory));
        assert_eq!(of("peak_live_bytes", &both), Ok(Protocol::Census));
        assert_eq!(of("copied_bytes", &memory), Ok(Protocol::Census));
    }

    #[test]
    fn memory_is_told_at_phases_that_there_are() {
        assert_eq!(lookup("rss.trimmed").map(|m| m.name), Ok("rss.PHASE"));
        let error = lookup("rss.ful").expect_err("no such phase");
        assert!(error.to_string().contains("rss.full"), "{error}");
        assert!(lookup("rss.").is_err());
    }
}
