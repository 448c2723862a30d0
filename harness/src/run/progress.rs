//! Progress on standard error: a bar with the time left on a terminal, plain lines otherwise.

use crate::plan::PlannedTrial;
use crate::record::TrialRecord;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// One line on standard error. Whoever reads it may have gone; the run goes on without a reader.
pub fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Shows how far a run is. The time left is reckoned from what each cell took in an earlier block; a cell that has
/// not run yet is taken to last as long as the average one.
pub struct Progress {
    bar: Option<ProgressBar>,
    total: usize,
    done: usize,
    /// What the trials are for, if it is no protocol of theirs.
    purpose: Option<&'static str>,
    took: HashMap<String, u64>,
}

fn cell(trial: &PlannedTrial) -> String {
    format!(
        "{} {:?} {} {}",
        trial.grid,
        trial.params,
        trial.arm,
        trial.protocol.name()
    )
}

impl Progress {
    /// For a run of `total` trials.
    pub fn new(total: usize) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total as u64);
            if let Ok(style) =
                ProgressStyle::with_template("{bar:24} {pos}/{len} {prefix} left  {wide_msg}")
            {
                bar.set_style(style);
            }
            bar
        });
        Progress {
            bar,
            total,
            done: 0,
            purpose: None,
            took: HashMap::new(),
        }
    }

    /// With trials that are not for what their protocol says.
    #[must_use]
    pub fn with_purpose(self, purpose: Option<&'static str>) -> Progress {
        Progress { purpose, ..self }
    }

    /// `trial` starts; `rest` are those from it on.
    pub fn starts(&self, trial: &PlannedTrial, rest: &[PlannedTrial]) {
        if let Some(bar) = &self.bar {
            bar.set_prefix(self.left(rest).map_or_else(|| "?".to_owned(), short));
            bar.set_message(self.title(trial));
            bar.tick();
        }
    }

    /// `trial` ended with `record`.
    pub fn ended(&mut self, trial: &PlannedTrial, record: &TrialRecord, rest: &[PlannedTrial]) {
        self.done += 1;
        if record.child_ms > 0 {
            self.took.insert(cell(trial), record.child_ms);
        }
        match &self.bar {
            Some(bar) => bar.inc(1),
            None => {
                let left = self
                    .left(rest)
                    .map_or_else(String::new, |left| format!(", {} left", short(left)));
                note(&format!(
                    "[{}/{}{left}] {}: {} ({} ms)",
                    self.done,
                    self.total,
                    self.title(trial),
                    record.outcome.name(),
                    record.child_ms
                ));
            }
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn title(&self, trial: &PlannedTrial) -> String {
        let params: Vec<&str> = trial.params.values().map(String::as_str).collect();
        format!(
            "{} {} {} {}",
            trial.grid,
            params.join(" "),
            trial.arm,
            self.purpose.unwrap_or(trial.protocol.name())
        )
    }

    fn left(&self, rest: &[PlannedTrial]) -> Option<Duration> {
        let known: u64 = self.took.values().sum();
        let average = known.checked_div(self.took.len() as u64)?;
        let ms: u64 = rest
            .iter()
            .map(|trial| self.took.get(&cell(trial)).copied().unwrap_or(average))
            .sum();
        Some(Duration::from_millis(ms))
    }
}

fn short(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
