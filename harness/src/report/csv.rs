//! Every sample as CSV in long form: one value a line, a column for each parameter that any cell has.

use crate::record::Outcome;
use crate::summary::{Cell, Summary};
use std::collections::BTreeSet;

/// The columns after the parameters and before them.
const BEFORE: [&str; 2] = ["grid", "workload"];
const AFTER: [&str; 6] = ["arm", "protocol", "metric", "block", "value", "outcome"];

/// The whole summary. A trial that left no metric has one line with metric and value empty.
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
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(BEFORE.iter().chain(&params).chain(&AFTER))?;
    for cell in &summary.cells {
        for line in lines(cell) {
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

fn lines(cell: &Cell) -> Vec<Line> {
    let line = |metric: &str, block: u32, value: Option<u64>, outcome| Line {
        metric: metric.to_owned(),
        block: block.to_string(),
        value: value.map(|value| value.to_string()).unwrap_or_default(),
        outcome,
    };
    let mut lines = Vec::new();
    for (name, metric) in &cell.metrics {
        let samples = metric.samples.iter();
        lines.extend(samples.map(|s| line(name, s.block, Some(s.value), Outcome::Ok.name())));
    }
    for aside in &cell.set_aside {
        let outcome = aside.outcome.name();
        if aside.metrics.is_empty() {
            lines.push(line("", aside.block, None, outcome));
        }
        lines.extend(
            aside
                .metrics
                .iter()
                .map(|(k, v)| line(k, aside.block, Some(*v), outcome)),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Trial;

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
