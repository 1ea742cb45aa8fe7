//! From a configuration and a workload to a result.
//!
//! A run preconditions the drive (counted), warms it up, and measures. In an open loop requests are submitted at their
//! arrival times; in a closed loop as soon as fewer than the queue depth are outstanding. At the end every conservation law
//! is checked: a result is only given out if they all hold.

pub mod precondition;
mod report;
pub mod served;
mod session;

use crate::config::{Drive, Resolved};
use crate::metrics::operations::{Operations, TimedRequests};
use crate::metrics::recorder::Series;
use crate::metrics::report::Summary;
use crate::metrics::snapshots::BlockSeries;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::Entry;
pub use palimpsest_sim::timeline::Window;
use palimpsest_workload::request::Source;
use precondition::Precondition;
use serde::Serialize;
pub use session::Session;
use std::ops::ControlFlow;

/// How true to time a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fidelity {
    /// Operations are counted; there is no time.
    Count,
    /// Operations are timed by the engine.
    Timed,
}

/// How much of the workload is not measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Warmup {
    /// So many requests.
    Requests(u64),
    /// This share of all requests.
    Share(f64),
}

impl Warmup {
    /// Reads `1000`, `1e3` or `10%`.
    ///
    /// # Errors
    /// [`Error::Input`] that says what was expected.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::input(
                format!("--warmup {text}"),
                "expected a number of requests such as 10000, or a share of them such as 10%, below 100%",
            )
        };
        if let Some(percent) = text.trim().strip_suffix('%') {
            let percent: f64 = percent.trim().parse().map_err(|_| wrong())?;
            return if (0.0..100.0).contains(&percent) { Ok(Warmup::Share(percent / 100.0)) } else { Err(wrong()) };
        }
        let number: f64 = text.trim().parse().map_err(|_| wrong())?;
        let whole = number >= 0.0 && number.fract() == 0.0 && number < 1e15;
        if whole { Ok(Warmup::Requests(number as u64)) } else { Err(wrong()) }
    }
}

/// Which part of a run is under way.
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
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Precondition => "precondition",
            Phase::Warmup => "warmup",
            Phase::Run => "run",
        }
    }
}

/// How far a run has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// What it does.
    pub phase: Phase,
    /// Requests done in this phase.
    pub done: u64,
    /// Requests of this phase; 0 where nobody knows.
    pub expected: u64,
    /// Simulated time.
    pub simulated: Nanos,
}

/// Is told now and then how far a run has come, and may end it.
pub type Watcher<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name of the workload for the result.
    pub workload: String,
    /// What to do before.
    pub precondition: Precondition,
    /// Requests to run at most, warm-up included.
    pub requests: Option<u64>,
    /// Requests that are not measured.
    pub warmup: Warmup,
    /// How true to time.
    pub fidelity: Fidelity,
    /// What flash stores.
    pub payload: Payload,
    /// Seed of everything random.
    pub seed: u64,
    /// Keep what only pictures need: states of blocks over the run, percentiles of each window.
    pub series: bool,
    /// Keep the times of the flash operations and requests of this part of the measurement.
    pub operations: Option<Window>,
}

/// A result with what pictures are made of.
pub struct Outcome {
    /// The result.
    pub summary: Summary,
    /// Data for pictures.
    pub detail: Detail,
}

/// Data for pictures.
#[derive(Debug, Clone, Serialize)]
pub struct Detail {
    /// The time series; null at count fidelity.
    pub time: Option<Series>,
    /// Histograms of latencies; null at count fidelity.
    pub latency: Option<Histograms>,
    /// Wear of every block.
    pub wear: Wear,
    /// Share of the measured time that buses and dies worked; null at count fidelity.
    pub utilization: Option<Utilization>,
    /// States of blocks over the run; null unless [`Options::series`].
    pub blocks: Option<BlockSeries>,
    /// Timed flash operations; null unless [`Options::operations`].
    pub operations: Option<Operations>,
    /// The requests that they belong to, too.
    pub requests: Option<TimedRequests>,
}

/// Histograms of latencies.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Histograms {
    pub all: Buckets,
    pub read: Buckets,
    pub write: Buckets,
}

/// Occupied buckets of a histogram.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Buckets {
    pub lower_ns: Vec<Nanos>,
    pub count: Vec<u64>,
}

/// Erases of every block and the plane it lies in.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Wear {
    pub erases: Vec<u32>,
    pub plane: Vec<u32>,
}

/// Shares of time.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Utilization {
    pub channels: Vec<f64>,
    pub dies: Vec<f64>,
}

/// Runs `source` on the drive that `resolved` describes. `watcher` is called every few thousand requests.
///
/// # Errors
/// [`Error`]: the user's mistakes, the end of the simulated drive, a broken rule, an interruption.
pub fn run(resolved: &Resolved, source: &mut dyn Source, options: &Options, watcher: Watcher<'_>) -> Result<Outcome> {
    let mut session = Session::new(&resolved.drive, options, watcher)?;
    let precondition = precondition::precondition(&mut session, source, &options.precondition)?;
    session.begin(source)?;
    session.drive_all(source)?;
    session.check()?;
    Ok(report::outcome(resolved, &session, options, source.skipped_lines(), precondition))
}

/// The layer that `drive` names.
fn registered(drive: &Drive) -> &'static Entry {
    crate::layers::find_layer(&drive.ftl.name).expect("the configuration checked the name")
}

/// Checks what an option asks of a drive, before anything is simulated.
///
/// # Errors
/// [`Error::Input`] if the drive cannot do it.
pub fn check_options(drive: &Drive, options: &Options) -> Result<()> {
    if drive.faults.power_cut_at.is_some() && (options.fidelity == Fidelity::Timed || options.payload == Payload::None)
    {
        return Err(Error::input(
            "faults.power_cut_at",
            "a power cut needs --fidelity count (there is no time to lose requests in) and --payload tag or bytes (the map is \
             rebuilt from what they store)",
        ));
    }
    if options.operations.is_some() && options.fidelity == Fidelity::Count {
        return Err(Error::input(
            "--operations",
            "operations of a counted run have no times; expected --fidelity timed",
        ));
    }
    Ok(())
}
