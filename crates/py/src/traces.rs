//! `palimpsest trace`: statistics of a workload, and workloads written as traces.

use crate::workload::{Opening, expect_volumes, open, open_file};
use crate::{InputError, REPORT_EVERY, raise, report, resolve};
use palimpsest_lab::error::{Error as CoreError, Result};
use palimpsest_lab::host::file_names::FileNames;
use palimpsest_lab::host::replay::{Playing, Volumes};
use palimpsest_lab::host::request::{Arrivals, Request, Source};
use palimpsest_lab::host::trace::TraceOptions;
use palimpsest_lab::host::trace::output::{Losses, Recorder, Target};
use palimpsest_lab::metrics::profile::Profile;
use palimpsest_lab::metrics::profile::by_volume::LocalityByVolume;
use palimpsest_lab::metrics::summary::VolumeFigures;
use palimpsest_lab::metrics::volumes::VolumeRecorder;
use palimpsest_lab::units::SECTOR_BYTES;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Requests between reads of the clock.
const CHECK_EVERY: u64 = 1 << 14;

/// The options of both functions, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceRequest {
    workload: String,
    /// The workload must be a file.
    #[serde(default)]
    file: bool,
    ssd: String,
    requests: Option<u64>,
    seed: u64,
    skip_bad: bool,
    /// Columns of a text.
    columns: Option<String>,
    /// Played volumes; `None`: the command's default.
    volumes: Option<String>,
    /// Format of the input.
    input_format: Option<String>,
    /// File to write, and format.
    #[serde(default)]
    output: String,
    output_format: Option<String>,
    /// Options of the user that only a generated workload reads.
    #[serde(default)]
    of_generated: Vec<String>,
}

/// A summary of the written trace.
#[derive(Serialize)]
struct Conversion {
    input_format: Option<&'static str>,
    output_format: &'static str,
    read: u64,
    written: u64,
    skipped_lines: u64,
    /// Requests sorted by time, those that arrive later than recorded, and a note on both.
    sorted: u64,
    late: u64,
    disorder: Option<String>,
    /// The workload has no arrival times, so all were written as 0.
    without_times: bool,
    losses: Losses,
}

/// Reports progress to Python, and checks for signals.
struct Watch {
    callback: Option<Py<PyAny>>,
    last: Instant,
    done: u64,
    expected: u64,
    raised: Option<PyErr>,
}

impl Watch {
    fn new(callback: Option<Py<PyAny>>) -> Watch {
        Watch { callback, last: Instant::now(), done: 0, expected: 0, raised: None }
    }

    /// Counts a request that arrives at `arrival`.
    fn step(&mut self, arrival: u64) -> Result<()> {
        self.done += 1;
        if !self.done.is_multiple_of(CHECK_EVERY) || self.last.elapsed() < REPORT_EVERY {
            return Ok(());
        }
        self.last = Instant::now();
        report(self.callback.as_ref(), ("run", self.done, self.expected, arrival)).map_err(|error| {
            self.raised = Some(error);
            CoreError::Interrupted
        })
    }
}

/// Calls `each` for every request of the workload, with the names of files.
fn drain(
    source: &mut dyn Source,
    most: Option<u64>,
    watch: &mut Watch,
    each: &mut dyn FnMut(Request, Option<&FileNames>) -> Result<()>,
) -> Result<()> {
    let most = most.unwrap_or(u64::MAX);
    watch.expected = source.expected_requests().unwrap_or(0).min(most);
    while watch.done < most {
        let Some(request) = source.next_request()? else { break };
        each(request, source.file_names())?;
        watch.step(request.arrival)?;
    }
    Ok(())
}

fn parse(options: &str) -> PyResult<TraceRequest> {
    serde_json::from_str(options).map_err(|error| InputError::new_err(format!("options: {error}")))
}

/// The workload, with volumes as `usual` unless the options have others.
fn open_source(options: &TraceRequest, drive_bytes: u64, usual: Volumes) -> Result<Box<dyn Source>> {
    let volumes = options.volumes.as_deref().map_or(Ok(usual), Volumes::parse)?;
    let playing = Playing { volumes, drive_bytes, namespaces: drive_bytes.into(), ..Playing::default() };
    let trace = TraceOptions {
        format: options.input_format.clone(),
        columns: options.columns.clone(),
        skip_bad: options.skip_bad,
        file_names: true,
        member: None,
    };
    let opening = Opening { drive_bytes, seed: options.seed, trace: &trace, playing: &playing };
    let source = if options.file { open_file(&options.workload, &opening) } else { open(&options.workload, &opening) }?;
    expect_volumes(options.volumes.as_deref(), source.as_ref())?;
    Ok(source)
}

fn finish<T>(outcome: Result<T>, watch: Watch) -> PyResult<T> {
    match (watch.raised, outcome) {
        (Some(raised), Err(_)) => Err(raised),
        (_, outcome) => outcome.map_err(raise),
    }
}

/// The description of a workload and the counts of the picture, both as JSON.
#[pyfunction]
pub fn trace_info(py: Python<'_>, options_json: &str, progress: Option<Py<PyAny>>) -> PyResult<(String, String)> {
    let options = parse(options_json)?;
    let drive_bytes = resolve(&options.ssd, None, &[])?.drive.logical_bytes();
    let mut watch = Watch::new(progress);
    let outcome = py.detach(|| {
        let mut source = open_source(&options, drive_bytes, Volumes::OfFormat)?;
        if let (Some(option), Some(format)) = (options.of_generated.first(), source.format()) {
            let what = format!("{} is a trace ({format}), which reads no drive and no seed", options.workload);
            return Err(CoreError::input(option, format!("{what}; expected a generated workload")));
        }
        let mut profile = Profile::new(source.as_ref());
        let mut volumes =
            source.has_volumes().then(|| (VolumeRecorder::default(), LocalityByVolume::new(source.as_ref())));
        drain(source.as_mut(), options.requests, &mut watch, &mut |request, _| {
            profile.add(&request);
            if let Some((volumes, locality)) = &mut volumes {
                volumes.of(request.owner()).submitted(request.kind, request.extent.sectors);
                locality.add(&request);
            }
            Ok(())
        })?;
        let by_volume = |(recorder, locality)| by_volume(&recorder, &locality, source.as_ref());
        let mut description = serde_json::json!({
            "workload": options.workload,
            "format": source.format(),
            "skipped_lines": source.skipped_lines(),
            "sorted": source.disorder().sorted,
            "late": source.disorder().late,
            "files": source.file_names().map(FileNames::len),
            "volumes": volumes.map_or_else(Vec::new, by_volume),
            "notes": source.notes().into_iter().chain(source.disorder().note()).collect::<Vec<_>>(),
        });
        let figures = serde_json::to_value(profile.description()).expect("a description can be printed");
        for (name, value) in figures.as_object().expect("a description is an object") {
            description[name] = value.clone();
        }
        let map = serde_json::to_string(&profile.map()).expect("a map can be printed");
        Ok((description.to_string(), map))
    });
    finish(outcome, watch)
}

/// The figures of each volume, locality included.
fn by_volume(recorder: &VolumeRecorder, locality: &LocalityByVolume, source: &dyn Source) -> Vec<serde_json::Value> {
    let of = |figures: VolumeFigures| {
        let mut all = serde_json::to_value(&figures).expect("figures can be printed");
        all["locality"] = serde_json::to_value(locality.figures(figures.volume)).expect("figures can be printed");
        all
    };
    recorder.figures(&source.volumes(), false).into_iter().map(of).collect()
}

/// Writes a workload as a trace; returns counts of written requests and losses, as JSON.
#[pyfunction]
pub fn trace_convert(py: Python<'_>, options_json: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let options = parse(options_json)?;
    let drive_bytes = resolve(&options.ssd, None, &[])?.drive.logical_bytes();
    let target = Target::of_name(&options.output, options.output_format.as_deref()).map_err(raise)?;
    if is_same_file(&options.workload, &options.output) {
        return Err(InputError::new_err(format!(
            "{}: this is the input; expected another file to write",
            options.output
        )));
    }
    let mut watch = Watch::new(progress);
    let outcome = py.detach(|| {
        let mut source = open_source(&options, drive_bytes, Volumes::Overlaid)?;
        let output = Output::create(&options.output)?;
        let mut recorder = Recorder::new(target, Box::new(output.file()?), &options.output)?;
        drain(source.as_mut(), options.requests, &mut watch, &mut |request, names| {
            recorder.add(request, names.and_then(|names| names.name(request.file)))
        })?;
        let (written, losses) = recorder.finish()?;
        output.keep()?;
        let conversion = Conversion {
            input_format: source.format(),
            output_format: target.format.name,
            read: watch.done,
            written,
            skipped_lines: source.skipped_lines(),
            sorted: source.disorder().sorted,
            late: source.disorder().late,
            disorder: source.disorder().note(),
            without_times: matches!(source.arrivals(), Arrivals::Closed { .. }),
            losses,
        };
        Ok(serde_json::to_string(&conversion).expect("figures can be printed"))
    });
    finish(outcome, watch)
}

/// Kinds as in `drives`, and arrivals, first bytes and sizes of requests as native 64-bit integers.
type Columns<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// The requests of a workload for a drive of `drive_bytes`, and the depth of a closed loop, without times of arrival.
/// Refuses workloads that depend on the drive: jobs with think times or of several depths, zones, and files to create.
#[pyfunction]
pub fn trace_requests<'py>(
    py: Python<'py>,
    options_json: &str,
    drive_bytes: u64,
) -> PyResult<(Columns<'py>, Option<u32>)> {
    let options = parse(options_json)?;
    let mut watch = Watch::new(None);
    let outcome = py.detach(|| {
        let mut source = open_source(&options, drive_bytes, Volumes::OfFormat)?;
        if source.jobs().is_some() || source.zones().is_some() || source.next_of_layout().is_some() {
            let what = "the next request depends on the drive; expected open_loop beside a rate, or one depth for all";
            return Err(CoreError::input(options.workload.as_str(), what));
        }
        let (mut kinds, mut numbers) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
        drain(source.as_mut(), options.requests, &mut watch, &mut |request, _| {
            kinds.push(request.kind as u8);
            let (offset, size) = (request.extent.sector, u64::from(request.extent.sectors));
            for (column, number) in
                numbers.iter_mut().zip([request.arrival, offset * SECTOR_BYTES, size * SECTOR_BYTES])
            {
                column.extend(number.to_ne_bytes());
            }
            Ok(())
        })?;
        let depth = match source.arrivals() {
            Arrivals::Open => None,
            Arrivals::Closed { depth } => Some(depth),
        };
        Ok((kinds, numbers, depth))
    });
    let (kinds, numbers, depth) = finish(outcome, watch)?;
    let [arrivals, offsets, sizes] = numbers.map(|column| PyBytes::new(py, &column));
    Ok(((PyBytes::new(py, &kinds), arrivals, offsets, sizes), depth))
}

fn is_same_file(a: &str, b: &str) -> bool {
    match (Path::new(a).canonicalize(), Path::new(b).canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// A file that gets the final name only when complete. Files other than regular ones are written directly.
pub struct Output {
    path: PathBuf,
    partial: Option<PathBuf>,
    kept: bool,
}

impl Output {
    /// An output to the file at `path`, which may exist.
    pub fn create(path: &str) -> Result<Output> {
        let path = PathBuf::from(path);
        if path.is_dir() {
            return Err(CoreError::input(path.display().to_string(), "this is a directory; expected a file to write"));
        }
        let is_special = path.exists() && !path.is_file();
        let partial = (!is_special).then(|| {
            let mut name = path.clone().into_os_string();
            name.push(".partial");
            PathBuf::from(name)
        });
        Ok(Output { path, partial, kept: false })
    }

    /// Opens the file to write.
    pub fn file(&self) -> Result<File> {
        let path = self.partial.as_ref().unwrap_or(&self.path);
        let opened = if self.partial.is_some() { File::create(path) } else { File::options().write(true).open(path) };
        opened.map_err(|error| {
            let what = format!("the file cannot be written ({error}); expected an existing, writable folder");
            CoreError::input(self.path.display().to_string(), what)
        })
    }

    /// Gives the complete file the final name.
    pub fn keep(mut self) -> Result<()> {
        if let Some(partial) = &self.partial {
            let failed = |error: std::io::Error| CoreError::Io {
                place: self.path.display().to_string(),
                what: error.to_string(),
            };
            std::fs::rename(partial, &self.path).map_err(failed)?;
        }
        self.kept = true;
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(partial) = self.partial.as_ref().filter(|_| !self.kept) {
            // A failure loses no data.
            let _ = std::fs::remove_file(partial);
        }
    }
}
