//! Memory over time as CSV in long form: one sample a line, a column for each parameter that any trial has.

use crate::record::TrialRecord;
use std::collections::BTreeSet;

/// The columns before the parameters and after them.
const BEFORE: [&str; 2] = ["grid", "workload"];
const AFTER: [&str; 5] = ["arm", "block", "series", "ms", "bytes"];

/// Every series of every trial, in the order of the records. `ms` counts from the phase `start` on.
///
/// # Errors
/// Those of the CSV writer, which writes into memory here.
pub fn report(records: &[TrialRecord]) -> Result<String, csv::Error> {
    let sampled = || records.iter().filter(|record| !record.series.is_empty());
    let params: BTreeSet<&str> = sampled()
        .flat_map(|record| record.params.keys())
        .map(String::as_str)
        .collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(BEFORE.iter().chain(&params).chain(&AFTER))?;
    for record in sampled() {
        let block = record.block.to_string();
        let value = |name: &&str| record.params.get(*name).map_or("", String::as_str);
        let values: Vec<&str> = params.iter().map(value).collect();
        for (name, samples) in &record.series {
            for (ms, bytes) in samples {
                let (ms, bytes) = (ms.to_string(), bytes.to_string());
                let before = [record.grid.as_str(), record.workload.as_str()];
                let after = [record.arm.as_str(), &block, name, &ms, &bytes];
                writer.write_record(before.iter().chain(&values).chain(&after))?;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|e| e.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Trial;

    #[test]
    fn golden() {
        let mut filled = Trial::memory("kept", "system").param("size", "1MiB").ok();
        filled.series = [("rss_gross".to_owned(), vec![(0, 4096), (7, 8192)])].into();
        let records = [
            Trial::census("kept", "system").param("d", "10").ok(),
            filled,
        ];
        let expected = "grid,workload,size,arm,block,series,ms,bytes\n\
                        kept,walker,1MiB,system,0,rss_gross,0,4096\n\
                        kept,walker,1MiB,system,0,rss_gross,7,8192\n";
        assert_eq!(report(&records).expect("CSV"), expected);
        assert_eq!(
            report(&[]).expect("CSV"),
            "grid,workload,arm,block,series,ms,bytes\n"
        );
    }
}
