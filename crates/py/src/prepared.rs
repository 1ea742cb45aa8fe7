//! What a run needs of its options: the drive, the workload's reading and playing. Ignored: how a run ends (`endings`).

use super::endings;
use super::workload::{self, Opening};
use super::{InputError, RunOptions, core_options, named, parse_options, raise, resolve};
use palimpsest_lab::config::Resolved;
use palimpsest_lab::error::Result;
use palimpsest_lab::host;
use palimpsest_lab::host::replay::{Playing, Volumes};
use palimpsest_lab::host::request::Source;
use palimpsest_lab::host::trace::TraceOptions;
use palimpsest_lab::run::{Options, expect_read};
use palimpsest_lab::units::parse::parse_ratio;
use pyo3::PyResult;

/// The options of a run, and what they resolve to.
pub struct Prepared {
    pub options: RunOptions,
    pub resolved: Resolved,
    pub core: Options,
    trace: TraceOptions,
    playing: Playing,
}

impl Prepared {
    /// From the options as JSON.
    ///
    /// # Errors
    /// Options, keys and values that do not exist, or do not go together.
    pub fn parse(options_json: &str) -> PyResult<Prepared> {
        let options = parse_options(options_json)?;
        let resolved = resolve(&options.ssd, options.ftl.as_deref(), &options.set)?;
        let core = core_options(&options)?;
        let trace = trace_options(&options, &resolved);
        let playing = playing(&options, &resolved)?;
        Ok(Prepared { options, resolved, core, trace, playing })
    }

    /// How the workload is opened.
    pub fn opening(&self) -> Opening<'_> {
        Opening {
            drive_bytes: self.resolved.drive.logical_bytes(),
            seed: self.options.seed,
            trace: &self.trace,
            playing: &self.playing,
        }
    }
}

/// Opens the workload of a run, which must read the given options.
pub fn open(options: &RunOptions, resolved: &Resolved, opening: &Opening<'_>) -> Result<Box<dyn Source>> {
    let mut source = workload::open(&options.workload, opening)?;
    expect_read(resolved, source.as_mut())?;
    workload::expect_volumes(options.volumes.as_deref(), source.as_ref())?;
    Ok(source)
}

fn trace_options(options: &RunOptions, resolved: &Resolved) -> TraceOptions {
    // Names are read for file systems only, because others do not use names.
    let file_names = host::find_layer(&resolved.drive.ftl.name).is_some_and(|entry| entry.is_file_system());
    TraceOptions {
        format: options.format.clone(),
        columns: options.columns.clone(),
        skip_bad: options.skip_bad,
        file_names,
        member: None,
    }
}

fn playing(options: &RunOptions, resolved: &Resolved) -> PyResult<Playing> {
    let arrivals = options.arrivals.as_deref().unwrap_or("recorded");
    let volumes = options.volumes.as_deref().map_or(Ok(Volumes::OfFormat), Volumes::parse).map_err(raise)?;
    Ok(Playing {
        volumes,
        piece_bytes: resolved.drive.host.piece_bytes,
        spread: named("--arrivals", arrivals, &[("recorded", false), ("spread", true)])?,
        start: options.start.as_deref().map_or(Ok(0.0), start_of)?,
        repeat: endings::repeat(options, resolved)?,
        drive_bytes: resolved.drive.logical_bytes(),
        namespaces: resolved.drive.namespaces(),
    })
}

/// The share of a trace before its start.
fn start_of(text: &str) -> PyResult<f64> {
    match parse_ratio(text) {
        Ok(share) if share < 1.0 => Ok(share),
        _ => {
            let what = "expected a share of the requests below 100%, such as 20%, or spread with --seeds";
            Err(InputError::new_err(format!("--start {text}: {what}")))
        }
    }
}
