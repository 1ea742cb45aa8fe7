//! Whether a run is long and even enough for its figures to be results of a steady drive.
//!
//! Windows of equal time divide the measurement, or of equal numbers of requests if the run has no time. Three
//! methods of the field judge them:
//! - *Run-in*: MSER-5 (White, Cobb and Spratt, Winter Simulation Conference 2000) finds the windows at the start whose
//!   removal lowers the error of the mean most. What it removes must change the figure, because it also finds chance; a
//!   run-in longer than half of the run has not ended if the whole run is uneven.
//! - *Rounds*: the rest, in five rounds of equal time, obeys SNIA's criterion (Solid State Storage Performance Test
//!   Specification 2.0, "steady state"): no round leaves a range of 20 % of their mean, and the line through them rises
//!   or falls by at most 10 %. The two halves must differ by less than 2 %, or than chance explains, because a slow
//!   drift goes on after the run.
//! - *Batch means* (Law, Simulation Modeling and Analysis, chapter 9): the rest, in 8 to 32 batches whose values are
//!   nearly uncorrelated, gives an interval for the value of an endless run, at 95 %. Of a ratio and of a percentile
//!   the batches have one value each.
//!
//! All of them see only the part of the load that the run reached. A load has shaped the drive once collection has
//! erased each block three times (60 times if the writes favour some addresses, or are sequential and collection still
//! copies data), and the load has written three times the bytes of its range. A run with writes that did less is
//! *unknown*, however even.
//! Ignored: slower processes, such as wear and the ageing of data.

mod methods;

use super::tail::Tail;
use methods::{Figure, Percentile, Rounds, interval, mser5, slow_change};
use palimpsest_flash::units::Nanos;
use palimpsest_workload::request::Locality;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// Limits of SNIA's criterion, as shares of the mean of the rounds.
const MOST_RANGE: f64 = 0.20;
const MOST_SLOPE: f64 = 0.10;
/// Fewer windows show neither a run-in nor a trend.
const LEAST_WINDOWS: usize = 40;
/// Half an interval, as a share of the value, beyond which the value is unknown.
const MOST_HALF: f64 = 0.10;
/// The change of a value by the run-in that counts, as a share of the value.
const MOST_SHIFT: f64 = 0.02;
/// Most requests that count as independent for the place of a percentile, because long queues come and go together.
const MOST_INDEPENDENT: f64 = 1e4;
/// Passes over all blocks, and over the range of the load, after which the load has shaped the drive. Collection takes
/// longer to separate favoured addresses from the others, and to replace random data by sequential data.
const LEAST_PASSES: f64 = 3.0;
const LEAST_PASSES_SLOW: f64 = 60.0;
/// Programs of collection, as a share of all, by which sequential writes have not yet replaced data in another order.
const LEAST_COPIES: f64 = 0.01;
/// Passes of a load that uses up its addresses: the share that is the begin of a pass, and the whole.
const BEGIN_OF_PASS: f64 = 0.02;
const LEAST_USED_UP: f64 = 1.0;
/// How much longer a run must be that shows a run-in or a trend; and one that did not erase.
const LONGER: f64 = 4.0;
const MOST_LONGER: f64 = 20.0;
/// Names of the judged figures.
pub const JUDGED: [&str; 14] = [
    "iops",
    "mean",
    "p50",
    "p99",
    "p999",
    "wa",
    "read.mean",
    "read.p50",
    "read.p99",
    "read.p999",
    "write.mean",
    "write.p50",
    "write.p99",
    "write.p999",
];

/// What a run measured in a window.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// Requests completed.
    pub requests: u64,
    /// Latencies of reads and of writes.
    pub kinds: [Latencies<'a>; 2],
    /// Bytes that the host wrote, and bytes programmed for them.
    pub host_bytes: u64,
    pub data_bytes: u64,
}

/// Latencies of a kind of requests in a window.
#[derive(Debug, Clone, Copy)]
pub struct Latencies<'a> {
    pub count: u64,
    pub sum: u64,
    pub tail: &'a Tail,
}

/// What collection did in the measurement.
#[derive(Debug, Clone, Copy)]
pub struct Collected {
    /// Blocks erased, of so many.
    pub erases: u64,
    pub blocks: u64,
    /// Programs of pages, and those that copied data.
    pub programs: u64,
    pub copies: u64,
    /// Bytes that the load wrote since preconditioning, within a range of so many.
    pub written: u64,
    pub span: u64,
    /// The addresses of the writes, among those with data.
    pub locality: Locality,
    /// Bytes measured, of so many in the range of the load, if its requests change during a pass over the range.
    pub used_up: Option<(u64, u64)>,
    /// Requests measured.
    pub requests: u64,
}

/// A verdict on a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Yes,
    No,
    Unknown,
}

/// The evidence for a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Whether the figure is that of an endless run.
    pub verdict: Verdict,
    /// Why it is not, or not known to be.
    pub reason: Option<String>,
    /// The interval that holds the figure of an endless run in 95 % of such runs, in the figure's unit.
    pub interval: Option<[f64; 2]>,
    /// Independent events behind the figure.
    pub events: Events,
    /// Windows of the run-in, which the interval leaves out; `None`: it has not ended.
    #[serde(skip)]
    run_in: Option<usize>,
}

/// Numbers of independent events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Events {
    /// Batches of the interval.
    pub batches: u64,
    /// Blocks erased in the measurement.
    pub erases: u64,
}

impl Finding {
    /// Half of the interval as a share of its middle; `None` without an interval.
    pub fn half(&self) -> Option<f64> {
        self.interval.filter(|[low, high]| low + high > 0.0).map(|[low, high]| (high - low) / (high + low))
    }
}

/// The evidence for the figures of latencies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfLatencies {
    pub mean: Finding,
    pub p50: Finding,
    pub p99: Finding,
    pub p999: Finding,
}

/// The evidence for the figures of a run. A figure is null if nothing of its kind was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Steady {
    pub iops: Option<Finding>,
    pub mean: Option<Finding>,
    pub p50: Option<Finding>,
    pub p99: Option<Finding>,
    /// Not one of the figures that make a run steady, because it needs ten times the requests of `p99`.
    pub p999: Option<Finding>,
    pub wa: Option<Finding>,
    pub read: Option<OfLatencies>,
    pub write: Option<OfLatencies>,
    /// Time and requests of the run-in that was found in the measurement; null if it has not ended.
    pub run_in: Option<RunIn>,
    /// Requests that make the run long enough, as far as the evidence tells; null if it is.
    pub needs_requests: Option<u64>,
}

/// How a run ended that went on until its figures were known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// The figures and intervals that the user asked for.
    pub asked: String,
    /// Each asked figure is known as well as asked.
    pub met: bool,
}

/// The start of a measurement, before the drive is steady.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RunIn {
    pub ns: Nanos,
    pub requests: u64,
}

/// Judges the figures of a run from the windows of its measurement, each of `window` nanoseconds; 0: the run has no
/// time.
pub fn judge(samples: &[Sample<'_>], window: Nanos, collected: Collected) -> Steady {
    let wrote = samples.iter().any(|sample| sample.host_bytes > 0);
    let judged = Judged { samples, window, collected, wrote, first: run_in(samples) };
    let all = judged.latencies(&[0, 1]);
    // A load of one kind is judged once.
    let of_kind = |kind: usize| match samples.iter().all(|sample| sample.kinds[1 - kind].count == 0) {
        true => all.clone(),
        false => judged.latencies(&[kind]),
    };
    let mut steady = Steady {
        iops: judged.iops(),
        mean: judged.mean(&[0, 1]),
        p50: all.as_ref().map(|all| all.p50.clone()),
        p99: all.as_ref().map(|all| all.p99.clone()),
        p999: all.as_ref().map(|all| all.p999.clone()),
        wa: judged.amplification(),
        read: of_kind(0),
        write: of_kind(1),
        run_in: None,
        needs_requests: None,
    };
    steady.doubt_the_rest();
    let run_ins: Option<Vec<usize>> = steady.findings().map(|finding| finding.run_in).collect();
    if let Some(windows) = run_ins.map(|run_ins| run_ins.into_iter().max().unwrap_or_default()) {
        let requests = samples[..windows].iter().map(|sample| sample.requests).sum();
        steady.run_in = Some(RunIn { ns: windows as Nanos * window, requests });
    }
    steady.needs_requests = (!steady.is_whole()).then(|| judged.needs(&steady)).flatten();
    steady
}

impl Steady {
    /// The figures of all requests.
    fn findings(&self) -> impl Iterator<Item = &Finding> {
        [self.iops.as_ref(), self.mean.as_ref(), self.p50.as_ref(), self.p99.as_ref(), self.wa.as_ref()]
            .into_iter()
            .flatten()
    }

    /// No figure is known of a drive whose throughput, mean time or write amplification is not steady.
    fn doubt_the_rest(&mut self) {
        let drive = [("throughput", &self.iops), ("the mean time", &self.mean), ("write amplification", &self.wa)];
        let moving = drive.into_iter().find_map(|(name, finding)| {
            let finding = finding.as_ref().filter(|finding| finding.verdict == Verdict::No)?;
            Some(format!("{name} still changes: {}", finding.reason.as_deref().unwrap_or_default()))
        });
        let Some(reason) = moving else { return };
        let all = [&mut self.iops, &mut self.mean, &mut self.p50, &mut self.p99, &mut self.p999, &mut self.wa];
        let of_kinds = [&mut self.read, &mut self.write].into_iter().flatten();
        let of_kinds = of_kinds.flat_map(|of| [&mut of.mean, &mut of.p50, &mut of.p99, &mut of.p999]);
        for finding in all.into_iter().flatten().chain(of_kinds).filter(|finding| finding.verdict == Verdict::Yes) {
            finding.verdict = Verdict::Unknown;
            finding.reason = Some(reason.clone());
        }
    }

    /// The evidence for the figure `name`, one of [`JUDGED`]; `None`: nothing of its kind was measured.
    pub fn finding(&self, name: &str) -> Option<&Finding> {
        let (of, key) = match name.split_once('.') {
            Some(("read", key)) => (self.read.as_ref(), key),
            Some((_, key)) => (self.write.as_ref(), key),
            None => (None, name),
        };
        match (of, key) {
            (Some(of), "mean") => Some(&of.mean),
            (Some(of), "p50") => Some(&of.p50),
            (Some(of), "p99") => Some(&of.p99),
            (Some(of), "p999") => Some(&of.p999),
            (None, "iops") => self.iops.as_ref(),
            (None, "wa") => self.wa.as_ref(),
            (None, _) if name != key => None,
            (None, "mean") => self.mean.as_ref(),
            (None, "p50") => self.p50.as_ref(),
            (None, "p99") => self.p99.as_ref(),
            (None, "p999") => self.p999.as_ref(),
            _ => None,
        }
    }

    /// True if every figure of all requests is steady.
    pub fn is_whole(&self) -> bool {
        self.findings().all(|finding| finding.verdict == Verdict::Yes)
    }
}

/// Windows under judgement.
struct Judged<'a> {
    samples: &'a [Sample<'a>],
    window: Nanos,
    collected: Collected,
    /// The host wrote.
    wrote: bool,
    /// The first window after the run-in by MSER-5; `None`: it is in the second half, by a long run-in or by chance.
    first: Option<usize>,
}

/// Latencies of the requests of `kinds` in ranges of windows, which several percentiles share.
struct Merged<'a> {
    samples: &'a [Sample<'a>],
    kinds: &'a [usize],
    ranges: RefCell<BTreeMap<(usize, usize), Rc<Tail>>>,
}

impl Merged<'_> {
    fn of(&self, range: Range<usize>) -> Rc<Tail> {
        let mut ranges = self.ranges.borrow_mut();
        let all = ranges.entry((range.start, range.end)).or_insert_with(|| {
            let mut all = Tail::default();
            for sample in &self.samples[range] {
                self.kinds.iter().for_each(|&kind| all.merge(sample.kinds[kind].tail));
            }
            Rc::new(all)
        });
        Rc::clone(all)
    }
}

impl Judged<'_> {
    fn iops(&self) -> Option<Finding> {
        let of = |range: Range<usize>| {
            let time = range.len() as f64 * self.window as f64 / 1e9;
            let requests = self.samples[range].iter().map(|sample| sample.requests).sum::<u64>();
            (time > 0.0).then(|| (requests as f64 / time, requests))
        };
        (self.window > 0).then(|| self.find(&Figure { of: &of, percentile: None }))
    }

    fn mean(&self, kinds: &[usize]) -> Option<Finding> {
        let of = |range: Range<usize>| {
            let all =
                || self.samples[range.clone()].iter().flat_map(|sample| kinds.iter().map(|&kind| sample.kinds[kind]));
            let count = all().map(|kind| kind.count).sum::<u64>();
            (count > 0).then(|| (all().map(|kind| kind.sum as f64).sum::<f64>() / count as f64, count))
        };
        of(0..self.samples.len())?;
        Some(self.find(&Figure { of: &of, percentile: None }))
    }

    fn latencies(&self, kinds: &[usize]) -> Option<OfLatencies> {
        let merged = Merged { samples: self.samples, kinds, ranges: RefCell::default() };
        Some(OfLatencies {
            mean: self.mean(kinds)?,
            p50: self.percentile(&merged, 0.50)?,
            p99: self.percentile(&merged, 0.99)?,
            p999: self.percentile(&merged, 0.999)?,
        })
    }

    fn percentile(&self, merged: &Merged<'_>, share: f64) -> Option<Finding> {
        let at = |all: &Tail, beyond: f64| all.percentile_of(100_000 - (beyond * 1e5).round() as u64, 100_000) as f64;
        let beyond = 1.0 - share;
        let of = |range: Range<usize>| {
            let all = merged.of(range);
            (all.count() > 0).then(|| (at(&all, beyond), all.count()))
        };
        let whole = merged.of(0..self.samples.len());
        let error = (share * beyond / MOST_INDEPENDENT).sqrt();
        let near = (whole.count() > 0).then(|| [error, -error].map(|error| at(&whole, beyond + error)))?;
        Some(self.find(&Figure { of: &of, percentile: Some(Percentile { beyond, near }) }))
    }

    fn amplification(&self) -> Option<Finding> {
        let of = |range: Range<usize>| {
            let host = self.samples[range.clone()].iter().map(|sample| sample.host_bytes).sum::<u64>();
            let data = self.samples[range].iter().map(|sample| sample.data_bytes).sum::<u64>();
            (host > 0).then(|| (data as f64 / host as f64, host))
        };
        of(0..self.samples.len())?;
        Some(self.find(&Figure { of: &of, percentile: None }))
    }

    /// Passes of collection over all blocks.
    fn collections(&self) -> f64 {
        self.collected.erases as f64 / self.collected.blocks.max(1) as f64
    }

    /// Why the load shapes the drive slowly, if it does.
    fn slow(&self) -> Option<&'static str> {
        let Collected { programs, copies, locality, .. } = self.collected;
        match locality {
            Locality::Favoured => Some("the writes favour some addresses"),
            Locality::Sequential if copies as f64 > LEAST_COPIES * programs as f64 => {
                Some("sequential writes leave the order of older data for long")
            }
            _ => None,
        }
    }

    /// Passes of collection that shape the drive.
    fn least_collections(&self) -> f64 {
        if self.slow().is_some() { LEAST_PASSES_SLOW } else { LEAST_PASSES }
    }

    /// Passes of the load over the range that it writes.
    fn overwrites(&self) -> f64 {
        self.collected.written as f64 / self.collected.span.max(1) as f64
    }

    /// Passes of a load that uses up its addresses; many of others.
    fn passes(&self) -> f64 {
        self.collected.used_up.map_or(f64::INFINITY, |(passed, range)| passed as f64 / range.max(1) as f64)
    }

    fn find(&self, figure: &Figure<'_>) -> Finding {
        let events = Events { batches: 0, erases: self.collected.erases };
        let mut finding = Finding { verdict: Verdict::Yes, reason: None, interval: None, events, run_in: Some(0) };
        if let Some((verdict, reason)) = self.doubt(figure, &mut finding) {
            (finding.verdict, finding.reason) = (verdict, Some(reason));
        }
        finding
    }

    /// What speaks against a figure; sets the interval of `finding`.
    fn doubt(&self, figure: &Figure<'_>, finding: &mut Finding) -> Option<(Verdict, String)> {
        if self.samples.len() < LEAST_WINDOWS {
            return Some((Verdict::Unknown, format!("{} requests are too few", self.collected.requests)));
        }
        let all = self.samples.len();
        // A missing value must not pass for the absence of doubt.
        let gap = || Some((Verdict::Unknown, "some time of the run has no requests".to_string()));
        let Some((whole, _)) = (figure.of)(0..all) else { return gap() };
        let first = self.first.unwrap_or_default();
        let mut found = match interval(figure, first..all) {
            Ok(found) => found,
            Err(_) if self.first.is_none() && is_uneven(figure, 0..all) => {
                finding.run_in = None;
                return Some((Verdict::No, "the run-in takes more than half of the run".into()));
            }
            Err(reason) => return Some((Verdict::Unknown, reason)),
        };
        let shift = (whole - found.value).abs();
        let mut run_in = 0;
        if shift > 2.0 * found.half {
            run_in = first;
            finding.run_in = Some(first);
        } else if first > 0 {
            // MSER-5 also finds chance: what it leaves out must change the figure.
            found = match interval(figure, 0..all) {
                Ok(found) => found,
                Err(reason) => return Some((Verdict::Unknown, reason)),
            };
        }
        if self.wrote {
            let change = slow_change(figure, run_in..all, found.half, self.slow().is_some());
            let Some(change) = change else { return gap() };
            found.half += change;
        }
        // The printed figure is that of the whole run.
        let [least, most] = figure.percentile.as_ref().map_or([whole; 2], |percentile| percentile.near);
        let [low, high] = [(found.value - found.half).max(0.0).min(least), (found.value + found.half).max(most)];
        finding.interval = Some([low, high]);
        finding.events.batches = found.batches;
        let Some(rounds) = Rounds::of(figure, run_in..all) else { return gap() };
        // The limits of noise are three standard errors of the line, and five of a round.
        if rounds.slope.abs() > MOST_SLOPE {
            let way = if rounds.slope > 0.0 { "rises" } else { "falls" };
            let verdict = if rounds.slope.abs() > 3.0 * found.share() { Verdict::No } else { Verdict::Unknown };
            return Some((verdict, format!("it {way} by {} in five rounds", percent(rounds.slope.abs()))));
        }
        if rounds.range > MOST_RANGE {
            let verdict = if rounds.range > 5.0 * found.share() { Verdict::No } else { Verdict::Unknown };
            return Some((verdict, format!("its five rounds differ by {}", percent(rounds.range))));
        }
        // The halves differ by twice the error of the whole; three of these errors are about three half intervals.
        let middle = (run_in + all) / 2;
        let Some((before, _)) = (figure.of)(run_in..middle) else { return gap() };
        let Some((after, _)) = (figure.of)(middle..all) else { return gap() };
        let drift = if after == before { 0.0 } else { (after - before) / found.value };
        if drift.abs() > MOST_SHIFT && drift.abs() > 3.0 * found.share() {
            let way = if drift > 0.0 { "rises" } else { "falls" };
            let what = format!("it {way} by {} from the first to the second half", percent(drift.abs()));
            return Some((Verdict::Unknown, what));
        }
        if !found.share().is_finite() {
            return Some((Verdict::Unknown, "it is 0 in a part of the run".into()));
        }
        if run_in > 0 && shift > MOST_SHIFT * found.value {
            let share = percent(shift / found.value);
            return Some((Verdict::No, format!("the run-in, which is part of the run, moves it by {share}")));
        }
        if let Some(half) = finding.half().filter(|half| *half > MOST_HALF) {
            return Some((Verdict::Unknown, format!("the interval is ±{} wide", percent(half))));
        }
        self.unreached().map(|what| (Verdict::Unknown, what))
    }

    /// The first limit that the load and its collection have not reached.
    fn unreached(&self) -> Option<String> {
        let Collected { erases, blocks, written, span, used_up, .. } = self.collected;
        if let Some((passed, range)) = used_up.filter(|_| (BEGIN_OF_PASS..LEAST_USED_UP).contains(&self.passes())) {
            return Some(format!(
                "random requests have used {} of {} of addresses, and become smaller and neighbours of each other \
                 until all are used (not with norandommap)",
                about(passed),
                about(range)
            ));
        }
        if self.wrote && self.collections() < self.least_collections() {
            let why = self.slow().map_or(String::new(), |why| format!(", because {why}"));
            let times = self.least_collections();
            let share = self.collections();
            return Some(format!("{erases} erases are {share:.2} of each of {blocks} blocks; expected {times}{why}"));
        }
        (self.wrote && self.overwrites() < LEAST_PASSES).then(|| {
            let written = about(written);
            format!(
                "the load wrote {written} since the precondition, in a range of {}; expected {LEAST_PASSES} times",
                about(span)
            )
        })
    }

    /// Requests that would end the doubts about the figures of all requests.
    fn needs(&self, steady: &Steady) -> Option<u64> {
        let mut times: f64 = 1.0;
        for finding in steady.findings() {
            times = times.max(match (finding.verdict, finding.interval) {
                (Verdict::Yes, _) => 1.0,
                (Verdict::No, _) | (_, None) => LONGER,
                (Verdict::Unknown, Some([low, high])) => ((high - low) / (high + low) / (MOST_HALF / 2.0)).powi(2),
            });
        }
        let of_writes = [(self.collections(), self.least_collections()), (self.overwrites(), LEAST_PASSES)];
        for (passes, least) in of_writes.into_iter().filter(|_| self.wrote).chain([(self.passes(), LEAST_USED_UP)]) {
            if passes < least && (least > LEAST_USED_UP || passes > BEGIN_OF_PASS) {
                times = times.max(if passes > 0.0 { 1.2 * least / passes } else { MOST_LONGER });
            }
        }
        let requests = self.collected.requests as f64 * times.clamp(1.5, 1e6);
        (requests > 0.0).then(|| rounded_up(requests))
    }
}

/// A number of requests with two digits.
fn rounded_up(requests: f64) -> u64 {
    let unit = libm::pow(10.0, (libm::log10(requests) - 1.0).floor()).max(1.0);
    ((requests / unit).ceil() * unit) as u64
}

/// A number of bytes with three digits.
pub(crate) fn about(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (bytes.max(1).ilog2() / 10).min(4);
    let value = bytes as f64 / (1_u64 << (10 * unit)) as f64;
    let digits = if unit == 0 || value >= 100.0 { 0 } else { 1 + usize::from(value < 10.0) };
    format!("{value:.digits$} {}", UNITS[unit as usize])
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// True if the five rounds of a range differ by more than SNIA's criterion.
fn is_uneven(figure: &Figure<'_>, range: Range<usize>) -> bool {
    Rounds::of(figure, range).is_none_or(|rounds| rounds.range > MOST_RANGE)
}

/// The first window after the run-in by MSER-5: of the requests completed, of their mean latency, and of the bytes
/// programmed, the latest; `None` if one of them is not over in the first half.
fn run_in(samples: &[Sample<'_>]) -> Option<usize> {
    let mean = |sample: &Sample<'_>| {
        let [reads, writes] = sample.kinds;
        (reads.sum + writes.sum) as f64 / (reads.count + writes.count).max(1) as f64
    };
    let series: [&dyn Fn(&Sample<'_>) -> f64; 3] =
        [&|sample| sample.requests as f64, &mean, &|sample| sample.data_bytes as f64];
    series.iter().try_fold(0, |latest, of| {
        let values: Vec<f64> = samples.iter().map(of).collect();
        mser5(&values).map(|first| latest.max(first))
    })
}

#[cfg(test)]
mod tests;
