//! The five kinds of check, asked of the cells that they speak of.

use super::reading::{Reading, read};
use super::{AsRun, Finding, Observed};
use crate::experiment::{Check, CheckKind, Experiment, Grid};
use crate::metric::{Exactness, Expression, FEW};
use crate::size::{self, three_digits};
use crate::stats::fit;
use crate::stats::ratio::{self, Interval, LEVEL, MIN_BLOCKS, SEED};
use crate::stats::sample::{Pairs, Points};
use crate::summary::{Summary, same_value, thp_differs};
use crate::trial::{Params, Protocol};
use std::collections::BTreeMap;

/// One check with all that it refers to looked up.
struct Question<'q> {
    summary: &'q Summary,
    run: &'q AsRun,
    grid: &'q Grid,
    check: &'q Check,
    metric: Expression,
    over: Option<Expression>,
    protocol: Protocol,
}

/// Every value that the check looks at, with what it says.
///
/// # Errors
/// Why there is nothing to look at, in words.
pub(super) fn observe(
    experiment: &Experiment,
    summary: &Summary,
    run: &AsRun,
    check: &Check,
) -> Result<Vec<Observed>, String> {
    let grid = experiment
        .grid(&check.grid)
        .ok_or_else(|| format!("the experiment has no grid `{}`", check.grid))?;
    let replaced = run.replaced(grid);
    if !replaced.is_empty() {
        return Err(format!("run with {}", replaced.join(" ")));
    }
    let metric = Expression::parse(&check.metric).map_err(|e| e.to_string())?;
    let over = check
        .over
        .as_deref()
        .map(Expression::parse)
        .transpose()
        .map_err(|e| e.to_string())?;
    let protocol = metric.protocol(&grid.protocols);
    let question = Question {
        summary,
        run,
        grid,
        check,
        metric,
        over,
        protocol,
    };
    let points = question.points()?;
    if question.metric.is_time() && run.quick && !question.meant_once() {
        return Err(
            "--quick: claims about time need the full sizes and at least 6 blocks".to_owned(),
        );
    }
    if let Some(why) = question.thp_differs() {
        return Err(why);
    }
    Ok(match check.kind {
        CheckKind::Value => question.each(&points, |arm, point| question.value(arm, point)),
        CheckKind::Ratio => question.each(&points, |arm, point| question.ratio(arm, point)),
        CheckKind::Exponent => question.exponents(&points)?,
        CheckKind::Order => points
            .iter()
            .flat_map(|point| question.order(point))
            .collect(),
        CheckKind::Equal => points
            .iter()
            .flat_map(|point| question.equal(point))
            .collect(),
    })
}

/// A value with what it says, before it has its arm and cell.
struct Answer {
    value: f64,
    text: String,
    result: Finding,
}

impl Question<'_> {
    /// The points that the check speaks of.
    ///
    /// # Errors
    /// Names the first that was not run.
    fn points(&self) -> Result<Vec<&Params>, String> {
        let reason = if self.run.quick {
            "left out by --quick"
        } else {
            "not run"
        };
        let all = self
            .run
            .points
            .get(&self.grid.name)
            .map(Vec::as_slice)
            .unwrap_or_default();
        if all.is_empty() {
            return Err(format!("grid `{}` was {reason}", self.grid.name));
        }
        for (name, values) in self.check.only.iter().chain(&self.check.than_where) {
            let gap = values.values().iter().find(|value| {
                !all.iter()
                    .any(|p| p.get(name).is_some_and(|have| same_value(have, value)))
            });
            if let Some(value) = gap {
                return Err(format!(
                    "{name}={value} of grid `{}` was {reason}",
                    self.grid.name
                ));
            }
        }
        let wanted = |point: &&Params| {
            self.check.only.iter().all(|(name, values)| {
                let have = point.get(name);
                have.is_some_and(|have| values.values().iter().any(|v| same_value(v, have)))
            })
        };
        let points: Vec<&Params> = all.iter().filter(wanted).collect();
        if points.is_empty() {
            return Err(format!(
                "no point of grid `{}` is spoken of",
                self.grid.name
            ));
        }
        Ok(points)
    }

    /// Why the cells of the arms that the check speaks of must not be compared.
    fn thp_differs(&self) -> Option<String> {
        let spoken_of = |arm: &String| {
            let mut arms = self.check.arms.iter().chain(&self.check.than);
            arms.any(|one| one == arm)
        };
        thp_differs(self.summary.cells.iter().filter(|cell| {
            cell.grid == self.grid.name && cell.protocol == self.protocol && spoken_of(&cell.arm)
        }))
    }

    /// Asked of every arm at every point.
    fn each(
        &self,
        points: &[&Params],
        ask: impl Fn(&str, &Params) -> Result<Answer, String>,
    ) -> Vec<Observed> {
        let cells = points
            .iter()
            .flat_map(|p| self.check.arms.iter().map(move |arm| (arm, *p)));
        cells
            .map(|(arm, point)| self.observed(arm, point, ask(arm, point)))
            .collect()
    }

    fn observed(&self, arm: &str, point: &Params, answer: Result<Answer, String>) -> Observed {
        let (value, text, result) = match answer {
            Ok(answer) => (Some(answer.value), answer.text, answer.result),
            Err(why) => (None, why.clone(), Finding::NotDecidable { why }),
        };
        Observed {
            arm: arm.to_owned(),
            cell: self.cell_name(point),
            value,
            text,
            result,
        }
    }

    /// The parameters that differ within the grid; the grid's name if it has one point only.
    fn cell_name(&self, point: &Params) -> String {
        let all = self
            .run
            .points
            .get(&self.grid.name)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let differs =
            |name: &String, value: &String| all.iter().any(|other| other.get(name) != Some(value));
        let named: Vec<String> = point
            .iter()
            .filter(|(name, value)| differs(name, value))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        if named.is_empty() {
            self.grid.name.clone()
        } else {
            named.join(" ")
        }
    }

    fn read(&self, arm: &str, point: &Params) -> Result<Reading, String> {
        let mut cells = self
            .summary
            .find(&self.grid.name, self.protocol, arm, point);
        let cell = cells.next().ok_or_else(|| {
            let name = self.protocol.name();
            format!(
                "there is no {name} record of {arm} at {}",
                self.cell_name(point)
            )
        })?;
        if cells.next().is_some() {
            return Err(format!(
                "several cells of {arm} match {}",
                self.cell_name(point)
            ));
        }
        read(self.summary, cell, &self.metric, self.over.as_ref())
    }

    /// The grid runs each trial once by definition, and the check asks for a minimum alone.
    fn meant_once(&self) -> bool {
        self.grid.blocks == 1 && self.check.min.is_some() && self.check.max.is_none()
    }

    fn value(&self, arm: &str, point: &Params) -> Result<Answer, String> {
        let reading = self.read(arm, point)?;
        Ok(self.bounded(reading.median(), &reading))
    }

    /// A value against `min` and `max`, with what may be said of a trial that was stopped.
    fn bounded(&self, value: f64, reading: &Reading) -> Answer {
        let result = match &reading.stopped {
            None => self.in_bounds(value),
            Some(stopped) => self.at_least(value, stopped),
        };
        let mut text = three_digits(value);
        if let Some(stopped) = &reading.stopped {
            text = format!(">= {text} ({stopped})");
        }
        if reading.exactness == Exactness::Random && !self.metric.is_time() {
            text.push_str(match self.protocol {
                Protocol::Memory => " (resident memory varies from run to run)",
                _ if self.metric.is_of_placement() => " (random: arenas lose a pool or not)",
                _ => " (random: the allocator samples)",
            });
        }
        Answer {
            value,
            text,
            result,
        }
    }

    fn in_bounds(&self, value: f64) -> Finding {
        let above = self.check.min.is_none_or(|min| value >= min);
        let below = self.check.max.is_none_or(|max| value <= max);
        Finding::holds(above && below)
    }

    /// For a value of which only a lower bound is known.
    fn at_least(&self, bound: f64, stopped: &str) -> Finding {
        // A count per byte could still fall as more bytes come; a count or a time cannot.
        let monotone = self.over.is_none();
        match (self.check.min, self.check.max) {
            (_, Some(max)) if monotone && bound > max => Finding::NotReproduced,
            (Some(min), None) if bound >= min => Finding::Reproduced,
            _ => Finding::NotDecidable {
                why: format!(
                    "{stopped}: all that is known is at least {}",
                    three_digits(bound)
                ),
            },
        }
    }

    fn ratio(&self, arm: &str, point: &Params) -> Result<Answer, String> {
        let than_arm = self.check.than.as_deref().unwrap_or(arm);
        let mut than_point = point.clone();
        for (name, value) in &self.check.than_where {
            than_point.extend(value.values().first().map(|v| (name.clone(), v.clone())));
        }
        let below = self.read(than_arm, &than_point)?;
        if let Some(stopped) = &below.stopped {
            return Err(format!("{than_arm}, to be divided by, {stopped}"));
        }
        let above = self.read(arm, point)?;
        if self.metric.is_time() {
            return self.time_ratio(&above, &below);
        }
        let divisor = below.median();
        if divisor == 0.0 {
            return Err(format!(
                "{than_arm} has {} = 0 to be divided by",
                self.check.metric
            ));
        }
        let mut answer = self.bounded(above.median() / divisor, &above);
        answer.text = format!(
            "{} ({} / {})",
            answer.text,
            three_digits(above.median()),
            three_digits(divisor)
        );
        Ok(answer)
    }

    fn time_ratio(&self, above: &Reading, below: &Reading) -> Result<Answer, String> {
        let enough = |blocks: usize| {
            if blocks >= MIN_BLOCKS || self.meant_once() {
                Ok(())
            } else {
                Err(format!(
                    "{}: claims about time need at least {MIN_BLOCKS} blocks",
                    size::counted(blocks, "block")
                ))
            }
        };
        if let (Some(stopped), Some(limit_ms)) = (&above.stopped, above.limit_ms) {
            enough(below.values.len())?;
            let median = below.median();
            let limit_ns = limit_ms as f64 * 1e6;
            let value = limit_ns / median;
            return Ok(Answer {
                value,
                text: format!(
                    ">= {} ({stopped}; median to divide by {})",
                    three_digits(value),
                    size::approx_seconds(median)
                ),
                result: self.at_least(value, stopped),
            });
        }
        let by_block: BTreeMap<u32, f64> = below.values.iter().copied().collect();
        let pairs = above
            .values
            .iter()
            .filter_map(|(block, a)| by_block.get(block).map(|b| (*block, *a, *b)));
        let pairs = Pairs::new(pairs).map_err(|e| format!("paired times: {e}"))?;
        enough(pairs.logs().len())?;
        let ratio = ratio::paired(&pairs, LEVEL, SEED);
        let estimate = three_digits(ratio.estimate);
        let Some(interval) = ratio.interval.filter(|_| ratio.blocks >= MIN_BLOCKS) else {
            let trials = if ratio.blocks == 1 {
                "one trial"
            } else {
                "few trials"
            };
            return Ok(Answer {
                value: ratio.estimate,
                text: format!("{estimate} ({trials}, no interval)"),
                result: self.in_bounds(ratio.estimate),
            });
        };
        Ok(Answer {
            value: ratio.estimate,
            text: format!("{estimate} {}", in_brackets(interval)),
            result: self.interval_in_bounds(interval),
        })
    }

    fn interval_in_bounds(&self, interval: Interval) -> Finding {
        let (min, max) = (self.check.min, self.check.max);
        if min.is_some_and(|min| interval.high < min) || max.is_some_and(|max| interval.low > max) {
            return Finding::NotReproduced;
        }
        let straddled = [
            min.filter(|min| interval.low < *min),
            max.filter(|max| interval.high > *max),
        ];
        match straddled.into_iter().flatten().next() {
            None => Finding::Reproduced,
            Some(bound) => Finding::NotDecidable {
                why: format!(
                    "the interval {} straddles the bound {bound}",
                    in_brackets(interval)
                ),
            },
        }
    }

    /// One exponent for each arm and each series: the points that differ in `against` alone.
    fn exponents(&self, points: &[&Params]) -> Result<Vec<Observed>, String> {
        let against = self
            .check
            .against
            .as_deref()
            .ok_or("the check names no `against`")?;
        let end = |text: &Option<String>| {
            let text = text
                .as_deref()
                .ok_or("the check names no `from` and `to`")?;
            size::parse_bytes(text).map_err(|e| e.to_string())
        };
        let (from, to) = (end(&self.check.from)?, end(&self.check.to)?);
        let mut series: BTreeMap<Params, Vec<(u64, &Params)>> = BTreeMap::new();
        for point in points {
            let mut rest = (*point).clone();
            let at = rest
                .remove(against)
                .ok_or_else(|| format!("no parameter `{against}`"))?;
            let at = size::parse_bytes(&at).map_err(|e| e.to_string())?;
            let sizes = series.entry(rest).or_default();
            if (from..=to).contains(&at) {
                sizes.push((at, point));
            }
        }
        let reason = if self.run.quick {
            "left out by --quick"
        } else {
            "not run"
        };
        let mut observed = Vec::new();
        for (rest, sizes) in &series {
            let gap = [from, to]
                .into_iter()
                .find(|end| !sizes.iter().any(|(at, _)| at == end));
            for arm in &self.check.arms {
                let answer = match gap {
                    Some(end) => Err(format!(
                        "{against}={} was {reason}",
                        size::format_bytes(end)
                    )),
                    None if self.metric.is_time() => self.time_exponent(arm, sizes),
                    None => self.exponent(arm, sizes),
                };
                observed.push(self.observed(arm, rest, answer));
            }
        }
        Ok(observed)
    }

    fn readings(&self, arm: &str, sizes: &[(u64, &Params)]) -> Result<Vec<(u64, Reading)>, String> {
        sizes
            .iter()
            .map(|(at, point)| {
                let reading = self.read(arm, point)?;
                match &reading.stopped {
                    Some(stopped) => Err(format!("{arm} at {} {stopped}", size::format_bytes(*at))),
                    None => Ok((*at, reading)),
                }
            })
            .collect()
    }

    fn exponent(&self, arm: &str, sizes: &[(u64, &Params)]) -> Result<Answer, String> {
        let readings = self.readings(arm, sizes)?;
        let points = Points::new(readings.iter().map(|(at, r)| (*at as f64, r.median())))
            .map_err(|e| format!("{arm}: no exponent: {e}"))?;
        let fitted = fit::power(&points);
        let local: Vec<String> = fit::local_exponents(&points)
            .iter()
            .map(|l| format!("{:.2}", l.exponent))
            .collect();
        Ok(Answer {
            value: fitted.exponent,
            text: format!(
                "{:.3} (largest deviation {:.1} %; local {})",
                fitted.exponent,
                100.0 * fitted.max_deviation,
                local.join(", ")
            ),
            result: self.in_bounds(fitted.exponent),
        })
    }

    /// A fit for each block, then the median of their exponents with its interval.
    fn time_exponent(&self, arm: &str, sizes: &[(u64, &Params)]) -> Result<Answer, String> {
        let readings = self.readings(arm, sizes)?;
        let mut blocks: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
        for (at, reading) in &readings {
            for (block, value) in &reading.values {
                blocks.entry(*block).or_default().push((*at as f64, *value));
            }
        }
        let complete = blocks
            .into_values()
            .filter(|points| points.len() == readings.len());
        let exponents: Vec<f64> = complete
            .map(|points| Points::new(points).map(|points| fit::power(&points).exponent))
            .collect::<Result<_, _>>()
            .map_err(|e| format!("{arm}: no exponent: {e}"))?;
        match ratio::median_interval(&exponents, LEVEL, SEED) {
            Some((value, Some(interval))) if exponents.len() >= MIN_BLOCKS => Ok(Answer {
                value,
                text: format!("{value:.3} {}", in_brackets(interval)),
                result: self.interval_in_bounds(interval),
            }),
            _ => Err(format!(
                "{arm}: {}: claims about time need at least {MIN_BLOCKS} blocks",
                size::counted(exponents.len(), "block")
            )),
        }
    }

    /// Each arm must lie above the one before it.
    fn order(&self, point: &Params) -> Vec<Observed> {
        let neighbours = self.check.arms.windows(2);
        neighbours
            .map(|pair| {
                let (lower, higher) = (&pair[0], &pair[1]);
                let answer = self.rises(lower, higher, point);
                self.observed(&format!("{higher} over {lower}"), point, answer)
            })
            .collect()
    }

    fn rises(&self, lower: &str, higher: &str, point: &Params) -> Result<Answer, String> {
        let below = self.read(lower, point)?;
        if let Some(stopped) = &below.stopped {
            return Err(format!("{lower} {stopped}"));
        }
        let above = self.read(higher, point)?;
        let (a, b) = (above.median(), below.median());
        if self.metric.is_time() {
            let mut answer = self.time_ratio(&above, &below)?;
            answer.result = match paired_interval(&above, &below) {
                _ if above.stopped.is_some() && answer.value > 1.0 => Finding::Reproduced,
                Some(i) if above.stopped.is_none() && i.low > 1.0 => Finding::Reproduced,
                Some(i) if above.stopped.is_none() && i.high < 1.0 => Finding::NotReproduced,
                _ => Finding::NotDecidable {
                    why: format!("{higher} over {lower}: {} does not settle it", answer.text),
                },
            };
            return Ok(answer);
        }
        let result = match &above.stopped {
            Some(stopped) if a <= b => Finding::NotDecidable {
                why: format!("{higher} {stopped}, still below {lower}"),
            },
            _ => Finding::holds(a > b),
        };
        Ok(Answer {
            value: a,
            text: format!("{} above {}", three_digits(a), three_digits(b)),
            result,
        })
    }

    /// Equal to the value, or else to the first arm.
    fn equal(&self, point: &Params) -> Vec<Observed> {
        let mut reference = self.check.value;
        self.check
            .arms
            .iter()
            .map(|arm| {
                let answer = self
                    .read(arm, point)
                    .and_then(|r| equals(arm, &r, &mut reference));
                self.observed(arm, point, answer)
            })
            .collect()
    }
}

/// Whether every trial of a cell has the reference value, which the first cell sets if nothing else has.
fn equals(arm: &str, reading: &Reading, reference: &mut Option<u64>) -> Result<Answer, String> {
    if let Some(stopped) = &reading.stopped {
        return Err(format!("{arm} {stopped}"));
    }
    let first = reading.whole.first().copied().unwrap_or_default();
    let wanted = *reference.get_or_insert(first);
    let band = match reading.exactness {
        Exactness::Exact => 0,
        Exactness::Percent(n) => (wanted * n / 100).max(FEW),
        Exactness::Random => {
            return Err(format!(
                "{arm}: the value is random, so only inequalities can be checked"
            ));
        }
    };
    let off = reading
        .whole
        .iter()
        .find(|value| value.abs_diff(wanted) > band);
    Ok(Answer {
        value: off.copied().unwrap_or(first) as f64,
        text: match off {
            Some(value) => format!("{value}, not {wanted}"),
            None => first.to_string(),
        },
        result: Finding::holds(off.is_none()),
    })
}

fn paired_interval(above: &Reading, below: &Reading) -> Option<Interval> {
    let by_block: BTreeMap<u32, f64> = below.values.iter().copied().collect();
    let pairs = above
        .values
        .iter()
        .filter_map(|(block, a)| Some((*block, *a, *by_block.get(block)?)));
    ratio::paired(&Pairs::new(pairs).ok()?, LEVEL, SEED).interval
}

fn in_brackets(interval: Interval) -> String {
    format!(
        "[{}, {}]",
        three_digits(interval.low),
        three_digits(interval.high)
    )
}
