//! The three methods that judge a figure of a range of windows: MSER-5, SNIA's five rounds, and batch means. Ignored:
//! the limits that decide, which `steady` has.

use super::Tail;
use std::ops::Range;

/// Rounds of SNIA's criterion.
const ROUNDS: usize = 5;
/// Windows in a batch of MSER-5.
const MSER_BATCH: usize = 5;
/// Numbers of batches for an interval: the first whose values are nearly uncorrelated.
const BATCHES: [usize; 3] = [32, 16, 8];
/// Quantiles of Student's t at 97.5 % for one degree of freedom less than [`BATCHES`].
const STUDENT: [f64; 3] = [2.040, 2.131, 2.365];
/// Correlation of neighbours beyond which batches are too short, times the square root of their number.
const MOST_CORRELATION: f64 = 1.65;
/// How many times as long as the range an interval holds the figure of a run.
const OUTLOOK: f64 = 30.0;
/// Requests beyond a percentile that each batch needs.
const LEAST_BEYOND: f64 = 5.0;

/// A figure of a range of windows: its value and the number of requests behind it.
pub(super) struct Figure<'a> {
    pub(super) of: &'a dyn Fn(Range<usize>) -> Option<(f64, u64)>,
    /// The figure is a percentile.
    pub(super) percentile: Option<Percentile>,
}

/// A percentile: the share of requests beyond it, and its least and most values if this share is uncertain.
pub(super) struct Percentile {
    pub(super) beyond: f64,
    pub(super) near: [f64; 2],
}

/// The first value after the run-in by MSER-5; `None` if it is not in the first half.
pub(super) fn mser5(values: &[f64]) -> Option<usize> {
    let batches: Vec<f64> =
        values.chunks_exact(MSER_BATCH).map(|batch| batch.iter().sum::<f64>() / MSER_BATCH as f64).collect();
    let count = batches.len();
    // From the end: sums of the values that remain, about the last one for precision.
    let about = batches.last().copied()?;
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for (first, value) in batches.iter().enumerate().rev() {
        sum += value - about;
        squares += (value - about) * (value - about);
        let left = (count - first) as f64;
        let spread = (squares - sum * sum / left).max(0.0) / (left * left);
        // The fewest values are the least reliable.
        if count - first >= MSER_BATCH && spread <= best.0 {
            best = (spread, first);
        }
    }
    (best.1 * 2 <= count).then_some(best.1 * MSER_BATCH)
}

/// SNIA's criterion.
pub(super) struct Rounds {
    /// The largest value less the smallest, as a share of the mean.
    pub(super) range: f64,
    /// The rise of the line through the rounds from the first to the last, as a share of the mean.
    pub(super) slope: f64,
}

impl Rounds {
    /// Of the windows `range`; `None` if a round has no value.
    pub(super) fn of(figure: &Figure<'_>, range: Range<usize>) -> Option<Rounds> {
        let values: Vec<f64> =
            parts(range, ROUNDS).map(|part| (figure.of)(part).map(|found| found.0)).collect::<Option<_>>()?;
        let mean = values.iter().sum::<f64>() / ROUNDS as f64;
        let middle = (ROUNDS - 1) as f64 / 2.0;
        let places = || (0..ROUNDS).map(|at| at as f64 - middle);
        let rise =
            places().zip(&values).map(|(at, value)| at * value).sum::<f64>() / places().map(|at| at * at).sum::<f64>();
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let share = |part: f64| if part == 0.0 { 0.0 } else { part / mean };
        Some(Rounds { range: share(most - least), slope: share(rise * (ROUNDS - 1) as f64) })
    }
}

/// A value and half of its interval.
pub(super) struct Interval {
    pub(super) value: f64,
    pub(super) half: f64,
    pub(super) batches: u64,
}

impl Interval {
    /// Half of the interval as a share of the value.
    pub(super) fn share(&self) -> f64 {
        if self.half == 0.0 { 0.0 } else { self.half / self.value }
    }
}

/// The change of a figure after the range, the end of a run, up to a run [`OUTLOOK`] times as long, if the change from
/// the first to the last third goes on with the logarithm of time: collection separates data ever more slowly.
/// `half` is half of the interval of the range. Chance may hide a change that is `expected`, and may show one that is
/// not there.
pub(super) fn slow_change(figure: &Figure<'_>, range: Range<usize>, half: f64, expected: bool) -> Option<f64> {
    let thirds: Vec<f64> =
        parts(range.clone(), 3).map(|part| (figure.of)(part).map(|found| found.0)).collect::<Option<_>>()?;
    let change = thirds.last()? - thirds.first()?;
    let middle = |sixths: f64| range.start as f64 + range.len() as f64 * sixths / 6.0;
    // The error of a difference of thirds is the square root of six times that of the whole.
    let chance = 6.0_f64.sqrt() * half / 2.0;
    // Rare requests depend on each other for longer than batches show.
    let change = match figure.percentile {
        _ if expected => change.abs() + chance,
        Some(_) => change.abs(),
        None => (change * change - chance * chance).max(0.0).sqrt(),
    };
    let rate = change / libm::log(middle(5.0) / middle(1.0));
    Some(rate * libm::log(OUTLOOK))
}

/// The interval of a figure by batch means.
///
/// # Errors
/// Why there is none.
pub(super) fn interval(figure: &Figure<'_>, range: Range<usize>) -> Result<Interval, String> {
    let nothing = || "nothing was measured".to_string();
    let (value, requests) = (figure.of)(range.clone()).ok_or_else(nothing)?;
    let mut reason = nothing();
    for (number, student) in BATCHES.into_iter().zip(STUDENT) {
        if let Some(Percentile { beyond, .. }) = &figure.percentile
            && (requests as f64 * beyond) < LEAST_BEYOND * number as f64
        {
            reason = format!("{requests} requests are too few for it");
            continue;
        }
        let values: Option<Vec<f64>> =
            parts(range.clone(), number).map(|part| (figure.of)(part).map(|found| found.0)).collect();
        let Some(values) = values else {
            reason = "some time of the run has no requests".into();
            continue;
        };
        let count = number as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        let neighbours = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
        let correlation = if squares > 0.0 { neighbours / squares } else { 0.0 };
        // The correlation of few values is too small by about this much.
        let correlation = correlation + (1.0 + 4.0 * correlation) / count;
        if correlation * count.sqrt() > MOST_CORRELATION {
            reason = "its values depend on each other over all of the run".into();
            continue;
        }
        let inflated = (1.0 + correlation.clamp(0.0, 0.9)) / (1.0 - correlation.clamp(0.0, 0.9));
        let error = (squares / (count - 1.0) / count * inflated).sqrt();
        let width = if figure.percentile.is_some() { Tail::half_bucket(value as u64) as f64 } else { 0.0 };
        return Ok(Interval { value, half: student * error + width, batches: number as u64 });
    }
    Err(reason)
}

/// `number` equal parts of a range of windows; what does not divide stays out at its end.
pub(super) fn parts(range: Range<usize>, number: usize) -> impl Iterator<Item = Range<usize>> {
    let length = range.len() / number;
    (0..number).map(move |at| range.start + at * length..range.start + (at + 1) * length)
}
