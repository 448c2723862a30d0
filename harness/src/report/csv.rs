//! Every sample as CSV in long form: one value a line, a column for each parameter that any cell has.

use crate::summary::{Cell, Summary};
use crate::trial::Outcome;
use std::collections::{BTreeMap, BTreeSet};

/// The columns after the parameters and before them.
const BEFORE: [&str; 2] = ["grid", "workload"];
const AFTER: [&str; 6] = ["arm", "protocol", "metric", "block", "value", "outcome"];

/// The whole summary. A trial that left no metric has one line with metric and value empty. A system call that another
/// trial of the run made stands with 0 where the trace shows that it did not happen.
///
/// # Errors
/// Those of the CSV writer, which writes into memory here.
pub fn report(summary: &Summary) -> Result<String, csv::Error> {
    let params: BTreeSet<&str> = summary
        .cells
        .iter()
        .flat_map(|cell| cell.params.keys())
        .map(String::as_str)
        .collect();
    let calls: BTreeSet<&str> = summary
        .cells
        .iter()
        .flat_map(|cell| {
            let aside = cell.set_aside.iter().flat_map(|aside| aside.metrics.keys());
            cell.metrics.keys().chain(aside)
        })
        .map(String::as_str)
        .filter(|name| name.starts_with("sys."))
        .collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(BEFORE.iter().chain(&params).chain(&AFTER))?;
    for cell in &summary.cells {
        for line in lines(cell, &calls) {
            let values = params
                .iter()
                .map(|name| cell.params.get(*name).map_or("", String::as_str));
            let before = [cell.grid.as_str(), cell.workload.as_str()];
            let after = [
                cell.arm.as_str(),
                cell.protocol.name(),
                &line.metric,
                &line.block,
                &line.value,
                line.outcome,
            ];
            writer.write_record(before.into_iter().chain(values).chain(after))?;
        }
    }
    let bytes = writer.into_inner().map_err(|e| e.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

struct Line {
    metric: String,
    block: String,
    value: String,
    outcome: &'static str,
}

fn lines(cell: &Cell, calls: &BTreeSet<&str>) -> Vec<Line> {
    let line = |metric: &str, block: u32, value: Option<u64>, outcome| Line {
        metric: metric.to_owned(),
        block: block.to_string(),
        value: value.map(|value| value.to_string()).unwrap_or_default(),
        outcome,
    };
    let mut values: BTreeMap<&str, Vec<(u32, u64)>> = BTreeMap::new();
    for (name, metric) in &cell.metrics {
        let samples = metric.samples.iter().map(|s| (s.block, s.value));
        values.insert(name, samples.collect());
    }
    if cell.traced(values.keys().copied()) {
        let blocks = values.values().max_by_key(|samples| samples.len());
        let zeros: Vec<(u32, u64)> = blocks.into_iter().flatten().map(|(b, _)| (*b, 0)).collect();
        for call in calls {
            values.entry(call).or_insert_with(|| zeros.clone());
        }
    }
    let mut lines = Vec::new();
    for (name, samples) in values {
        let outcome = Outcome::Ok.name();
        lines.extend(
            samples
                .iter()
                .map(|(block, value)| line(name, *block, Some(*value), outcome)),
        );
    }
    for aside in &cell.set_aside {
        let outcome = aside.outcome.name();
        let mut values: BTreeMap<&str, u64> = BTreeMap::new();
        values.extend(aside.metrics.iter().map(|(k, v)| (k.as_str(), *v)));
        if cell.traced(values.keys().copied()) {
            for call in calls {
                values.entry(call).or_insert(0);
            }
        }
        if values.is_empty() {
            lines.push(line("", aside.block, None, outcome));
        }
        lines.extend(
            values
                .iter()
                .map(|(name, value)| line(name, aside.block, Some(*value), outcome)),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Trial;

    #[test]
    fn a_call_that_did_not_happen_is_0_and_one_that_was_not_traced_is_not() {
        let records = [
            Trial::census("g", "a").metric("sys.mremap", 9).ok(),
            Trial::census("g", "b").metric("copied_bytes", 7).ok(),
            Trial::census("g", "c")
                .metric("moved_bytes", 7)
                .absent("sys.*", "strace is missing")
                .ok(),
        ];
        let text = report(&Summary::new(&records)).expect("writes into memory");
        let calls: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("sys.mremap"))
            .collect();
        assert_eq!(
            calls,
            [
                "g,walker,a,census,sys.mremap,0,9,ok",
                "g,walker,b,census,sys.mremap,0,0,ok"
            ]
        );
    }

    #[test]
    fn golden() {
        let records = [
            Trial::census("g", "system")
                .param("size", "1MiB")
                .metric("copied_bytes", 7)
                .ok(),
            Trial::time("g", "system", 1)
                .param("mode", "a,b")
                .metric("wall_ns", 9)
                .ok(),
            Trial::time("g", "slow", 0)
                .metric("reached_bytes", 5)
                .end(Outcome::TimedOut { after_ms: 1 }),
            Trial::time("g", "gone", 0).end(Outcome::Unavailable {
                why: "not built".into(),
            }),
        ];
        let expected = "\
grid,workload,mode,size,arm,protocol,metric,block,value,outcome
g,walker,,,gone,time,,0,,unavailable
g,walker,,,slow,time,reached_bytes,0,5,timed-out
g,walker,\"a,b\",,system,time,wall_ns,1,9,ok
g,walker,,1MiB,system,census,copied_bytes,0,7,ok
";
        let text = report(&Summary::new(&records)).expect("writes into memory");
        assert_eq!(text, expected, "\n{text}");
    }
}
