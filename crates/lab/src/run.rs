//! A run: from a configuration and a workload to a result.
//!
//! A run preconditions the drive (counted), warms it up, and measures. In an open loop requests are submitted at their
//! arrival times; in a closed loop as soon as fewer than the queue depth are outstanding. A run has a result only if
//! every conservation law holds at its end. Ignored: wall clock and files.

pub mod build;
pub mod image;
#[cfg(test)]
mod large;
pub mod precondition;
#[cfg(test)]
mod remedies;
pub mod served;
mod session;
pub mod states;
mod summary;
pub mod until;

use crate::config::{DriveConfig, Resolved};
use crate::metrics::curve::Points;
use crate::metrics::operations::{Operations, TimedRequests};
use crate::metrics::recorder::Series;
use crate::metrics::snapshots::BlockSeries;
use crate::metrics::summary::Summary;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl::log::Identifiers;
use palimpsest_ftl_api::Entry;
pub use palimpsest_sim::timeline::Window;
use palimpsest_workload::request::{Arrivals, Source};
use precondition::Precondition;
use serde::Serialize;
pub use session::Session;
use states::States;
use std::ops::ControlFlow;
use until::Until;

/// Whether operations have times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fidelity {
    /// Operations are counted; there is no time.
    Count,
    /// Operations are timed by the engine.
    Timed,
}

/// The part of the workload before the measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Warmup {
    /// This many requests.
    Requests(u64),
    /// This share of all requests.
    Share(f64),
    /// Requests beside those of the workload, until the drive is as the load keeps it; none on a new drive.
    Auto,
}

impl Warmup {
    /// Reads `1000`, `1e3`, `10%` or `auto`.
    ///
    /// # Errors
    /// [`Error::Input`] with the expected notation.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::input(
                format!("--warmup {text}"),
                "expected auto, a number of requests such as 10000, or a share of them such as 10%, below 100%",
            )
        };
        if text.trim() == "auto" {
            return Ok(Warmup::Auto);
        }
        if let Some(percent) = text.trim().strip_suffix('%') {
            let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
            return if (0.0..100.0).contains(&percent) { Ok(Warmup::Share(percent / 100.0)) } else { Err(wrong()) };
        }
        let number: f64 = text.trim().parse().map_err(|_| wrong())?;
        let whole = number >= 0.0 && number.fract() == 0.0 && number < 1e15;
        if whole { Ok(Warmup::Requests(number as u64)) } else { Err(wrong()) }
    }
}

/// The phases of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Preconditioning.
    Precondition,
    /// The part of the workload that is not measured.
    Warmup,
    /// The measurement.
    Run,
}

impl Phase {
    /// The name of the phase.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Precondition => "precondition",
            Phase::Warmup => "warmup",
            Phase::Run => "run",
        }
    }
}

/// Progress of a run.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// Requests done in this phase.
    pub done: u64,
    /// Requests of this phase; 0 if unknown.
    pub expected: u64,
    /// Simulated time.
    pub simulated: Nanos,
}

/// Receives the progress of a run every few thousand requests, and may end the run.
pub type Watcher<'a> = &'a mut (dyn FnMut(Progress) -> ControlFlow<()> + Send);

/// Options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name of the workload for the result.
    pub workload: String,
    /// Preconditioning.
    pub precondition: Precondition,
    /// Most requests to run, warm-up included.
    pub requests: Option<u64>,
    /// Requests before the measurement.
    pub warmup: Warmup,
    /// Whether operations have times.
    pub fidelity: Fidelity,
    /// Contents of simulated cells.
    pub payload: Payload,
    /// Seed of all random choices.
    pub seed: u64,
    /// Keep data for charts only: states of blocks over the run, percentiles of each window.
    pub series: bool,
    /// Keep the times of the flash operations and requests of this part of the measurement.
    pub operations: Option<Window>,
    /// End the run at the first command that a drive with zones refuses.
    pub strict: bool,
}

impl Options {
    /// The requests of the warm-up of a workload with `expected` requests; `None`: unknown.
    ///
    /// # Errors
    /// [`Error::Input`] if the number is needed and unknown, or no request is left to measure.
    fn warmup_requests(&self, expected: Option<u64>) -> Result<u64> {
        let warmup = match self.warmup {
            Warmup::Requests(requests) => requests,
            Warmup::Share(0.0) | Warmup::Auto => 0,
            Warmup::Share(share) => {
                let known = self.requests.into_iter().chain(expected).min();
                let all = known.ok_or_else(|| {
                    let what = "a share of the requests needs their number; expected --requests beside it, or a number \
                                such as 5000";
                    Error::input("--warmup", what)
                })?;
                (all as f64 * share) as u64
            }
        };
        if self.requests.is_some_and(|requests| warmup >= requests) {
            let most = self.requests.map_or(0, |requests| requests - 1);
            let what = format!("{warmup} requests of warm-up leave nothing to measure; expected at most {most}");
            return Err(Error::input("--warmup", what));
        }
        Ok(warmup)
    }
}

/// A result with the data of its charts.
pub struct Outcome {
    /// The result.
    pub summary: Summary,
    /// Data of charts.
    pub detail: Detail,
}

/// Data of charts.
#[derive(Debug, Clone, Serialize)]
pub struct Detail {
    /// The time series; null at count fidelity.
    pub time: Option<Series>,
    /// Histograms of latencies; null at count fidelity.
    pub latency: Option<Histograms>,
    /// Histograms with 64 buckets an octave, for records of many runs.
    #[serde(skip)]
    pub sketch: Option<Histograms>,
    /// Wear of every block.
    pub wear: Wear,
    /// Shares of the measured time in which buses and dies were busy; null at count fidelity.
    pub utilization: Option<Utilization>,
    /// Bytes written and programmed over the run; null unless [`Options::series`].
    pub writes: Option<Points>,
    /// States of blocks over the run; null unless [`Options::series`].
    pub blocks: Option<BlockSeries>,
    /// Timed flash operations; null unless [`Options::operations`].
    pub operations: Option<Operations>,
    /// The requests of these operations.
    pub requests: Option<TimedRequests>,
}

/// Histograms of latencies.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are clear")]
pub struct Histograms {
    pub all: Buckets,
    pub read: Buckets,
    pub write: Buckets,
}

/// Occupied buckets of a histogram.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are clear")]
pub struct Buckets {
    pub lower_ns: Vec<Nanos>,
    pub count: Vec<u64>,
}

/// Erases and plane of every block.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are clear")]
pub struct Wear {
    pub erases: Vec<u32>,
    pub plane: Vec<u32>,
}

/// Shares of time.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are clear")]
pub struct Utilization {
    pub channels: Vec<f64>,
    pub dies: Vec<f64>,
}

/// A workload, and the same load without end, for the run-in of [`Warmup::Auto`].
pub struct Load<'a> {
    /// The workload.
    pub source: &'a mut dyn Source,
    /// The load without end; `None`: the run has no run-in.
    pub endless: Option<&'a mut dyn Source>,
    /// The evidence that ends the run; `None`: the workload ends.
    pub until: Option<Until>,
}

/// Runs `source` on the drive that `resolved` describes. `watcher` is called every few thousand requests.
///
/// # Errors
/// [`Error`]: a mistake of the user, a failed drive, a broken rule, an interrupt.
pub fn run(resolved: &Resolved, source: &mut dyn Source, options: &Options, watcher: Watcher<'_>) -> Result<Outcome> {
    run_from(resolved, Load { source, endless: None, until: None }, options, watcher, &mut states::NotKept)
}

/// [`run`], starting from a state that an earlier run left in `states`, if any. The result must be the same.
///
/// # Errors
/// As [`run`].
pub fn run_from(
    resolved: &Resolved,
    load: Load<'_>,
    options: &Options,
    watcher: Watcher<'_>,
    states: &mut dyn States,
) -> Result<Outcome> {
    let Load { source, endless, until } = load;
    options.warmup_requests(source.expected_requests())?;
    let session = Session::new(&resolved.drive, options, watcher)?;
    name_handles(&session, source)?;
    session.expect_same_zones(source)?;
    let (mut session, precondition) = states::precondition(session, source, resolved, states)?;
    session.set_zones(source);
    session.begin(source, endless)?;
    session.watch.end_at(until);
    session.drive_all(source)?;
    session.check()?;
    let trace = summary::TraceRead::of(source);
    Ok(summary::outcome(resolved, &session, options, trace, precondition))
}

/// Tells the workload the placement identifiers of the drive, if it has any, and checks that the drive has the handles
/// of the workload's parts.
fn name_handles(session: &Session<'_>, source: &mut dyn Source) -> Result<()> {
    let Some(placement) = session.drive.figures().placement else { return Ok(()) };
    // The last entry is the controller's.
    let handles = (placement.handles.len() - 1) as u32 / placement.groups;
    let names = Identifiers { handles, groups: placement.groups };
    source.name_handles(&names.all().collect::<Vec<_>>());
    match source.handles().into_iter().find(|&(_, handle)| names.stream_of(handle).is_none()) {
        None => Ok(()),
        Some((part, handle)) => {
            let what = format!("{part} writes to handle {handle}; the drive has {handles}");
            Err(Error::input("fdp.handles", format!("{what} (0 to {}); expected more handles", handles - 1)))
        }
    }
}

/// The registry entry of the layer of `drive`.
fn registered(drive: &DriveConfig) -> &'static Entry {
    crate::layers::find_layer(&drive.ftl.name).expect("the configuration checked the name")
}

/// Checks that the drive supports the options, before the simulation.
///
/// # Errors
/// [`Error::Input`] if the drive does not support them.
pub fn check_options(drive: &DriveConfig, options: &Options) -> Result<()> {
    if let Some(fault) = drive.power_fault().filter(|_| options.payload == Payload::None) {
        return Err(Error::input(
            fault.key().name,
            "recovery rebuilds the map from stored data, which the payload none leaves out; expected --payload tag",
        ));
    }
    if options.operations.is_some() && options.fidelity == Fidelity::Count {
        return Err(Error::input(
            "--operations",
            "operations of a counted run have no times; expected --fidelity timed",
        ));
    }
    if registered(drive).zoned && !drive.namespaces.0.is_empty() {
        let what = format!("{} has zones, which all tenants address; expected ssd.namespaces = none", drive.ftl.name);
        return Err(Error::input("ssd.namespaces", what));
    }
    Ok(())
}

/// Refuses keys of `--set` that the workload does not read.
///
/// # Errors
/// [`Error::Input`] at the key.
pub fn expect_read(resolved: &Resolved, source: &mut dyn Source) -> Result<()> {
    let host = &resolved.drive.host;
    let is_open = source.arrivals() == Arrivals::Open && host.iodepth == 0;
    let has_times = is_open || source.jobs().is_some();
    let unread = [
        (
            "host.speedup",
            host.speedup != 1.0 && !has_times,
            "the requests follow completions and have no times; expected no host.speedup, rate_iops, or a trace",
        ),
        (
            "host.compact",
            host.piece_bytes > 0 && source.format().is_none(),
            "a generated workload has addresses of its own; expected no host.compact, or a trace",
        ),
    ];
    for (name, _, what) in unread.into_iter().filter(|(_, is_unread, _)| *is_unread) {
        if let Some(key) = resolved.key(name).filter(|key| key.source.starts_with("--set ")) {
            return Err(Error::input(&key.source, what));
        }
    }
    Ok(())
}

/// Checks that the workload supports the options, before the simulation. The caller must drop `source` afterwards.
///
/// # Errors
/// [`Error::Input`] if the workload does not support them.
pub fn check_workload(source: &mut dyn Source, options: &Options) -> Result<()> {
    options.warmup_requests(source.expected_requests())?;
    match options.precondition {
        Precondition::Layout => precondition::expect_files(source.next_of_layout().is_some(), source),
        _ => Ok(()),
    }
}
