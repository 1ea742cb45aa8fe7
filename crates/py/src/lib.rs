//! Contents of the Python module `palimpsest._core`, and of modules with more layers: a thin shim over the core.
//!
//! The shim opens files and reads the wall clock, because the core must not, and maps each error of the core to one
//! exception class. The shim must not contain logic of the simulator.

mod ahead;
mod checking;
mod crash;
mod drives;
mod endings;
mod endless;
mod files;
mod formats;
mod images;
mod layers;
mod plugins;
mod policies;
mod prepared;
mod serve;
mod states;
mod tables;
mod traces;
mod wear;
mod wom;
mod workload;

use palimpsest_lab::config::fit::Described;
use palimpsest_lab::config::schema::{Known, keys};
use palimpsest_lab::config::unread::{Gravity, Unread};
use palimpsest_lab::config::{self, Resolved};
use palimpsest_lab::error::Error as CoreError;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::ftl::keys::ValueType;
use palimpsest_lab::host;
use palimpsest_lab::host::fs::schemes;
use palimpsest_lab::host::objects;
use palimpsest_lab::host::request::Source;
use palimpsest_lab::host::trace;
use palimpsest_lab::log::streams::CLASSIFIERS;
use palimpsest_lab::log::victim;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::precondition::Precondition;
use palimpsest_lab::run::{
    Detail, Fidelity, Load, Options, Outcome, Phase, Progress, Warmup, Window, check_options, check_workload, run_from,
};
use palimpsest_lab::sim::faults::FAULTS;
use prepared::{Prepared, open};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::{create_exception, wrap_pyfunction};
use serde::Deserialize;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};
use workload::describe_io;

create_exception!(palimpsest._core, Error, PyException, "Base of every error that a user can cause.");
create_exception!(palimpsest._core, InputError, Error, "The user's input is wrong (exit status 2).");
create_exception!(palimpsest._core, UnfitError, InputError, "Possible values make no drive together (exit status 2).");
create_exception!(palimpsest._core, DeviceError, Error, "The simulated drive failed (exit status 1).");
create_exception!(palimpsest._core, RuleError, Error, "A translation layer broke a rule of flash (exit status 1).");
create_exception!(palimpsest._core, PolicyError, Error, "A policy of the user raised an exception (exit status 1).");
create_exception!(
    palimpsest._core,
    LayerError,
    PolicyError,
    "A layer of the user raised an exception (exit status 1)."
);
create_exception!(palimpsest._core, WorkloadIoError, Error, "Reading a workload failed (exit status 1).");
create_exception!(palimpsest._core, Interrupted, Error, "The user ended the run (exit status 130).");

/// The exception for an error of the core.
fn raise(error: CoreError) -> PyErr {
    // A signal handler raised during the wait for a file, and caused `error`.
    let text = error.to_string();
    let place = matches!(error, CoreError::Outside(_)).then_some(text.as_str());
    if let Some(raised) = files::raised().or_else(|| policies::raised(place)) {
        return raised;
    }
    match error {
        CoreError::Input { unfit: true, .. } => UnfitError::new_err(text),
        CoreError::Input { .. } => InputError::new_err(text),
        CoreError::DriveFailed(_) | CoreError::WornOut(_) => DeviceError::new_err(text),
        CoreError::Rule(_) => RuleError::new_err(text),
        CoreError::Outside(_) => PolicyError::new_err(text),
        CoreError::Io { .. } => WorkloadIoError::new_err(text),
        CoreError::Interrupted => Interrupted::new_err(text),
    }
}

/// Interval of progress reports to Python, and of signal checks.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// The options of `run`, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunOptions {
    ssd: String,
    ftl: Option<String>,
    workload: String,
    #[serde(default)]
    set: Vec<String>,
    precondition: Option<String>,
    requests: Option<u64>,
    warmup: Option<String>,
    fidelity: String,
    payload: String,
    #[serde(default)]
    check: bool,
    seed: u64,
    #[serde(default)]
    skip_bad: bool,
    format: Option<String>,
    columns: Option<String>,
    volumes: Option<String>,
    arrivals: Option<String>,
    start: Option<String>,
    repeat: Option<String>,
    until: Option<String>,
    at_most: Option<String>,
    tenant: Option<u32>,
    #[serde(default)]
    series: bool,
    #[serde(default)]
    sketch: bool,
    operations: Option<String>,
    #[serde(default)]
    strict: bool,
}

/// The text of a file of settings, or the configuration in an image of a drive.
fn read_file(path: &str) -> palimpsest_lab::error::Result<String> {
    if let Some((text, _)) = palimpsest_server::image::configuration(Path::new(path))? {
        return Ok(text);
    }
    let mut bytes = Vec::new();
    let read = files::Waiting::open(path).and_then(|file| file.take(config::LARGEST_FILE + 1).read_to_end(&mut bytes));
    read.map_err(|error| CoreError::input(path, describe_io(&error)))?;
    config::check_length(path, bytes.len())?;
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
        CoreError::input(format!("{path}:{line}"), "the file is not UTF-8 text; expected a TOML file")
    })
}

fn resolve(ssd: &str, ftl: Option<&str>, overrides: &[String]) -> PyResult<Resolved> {
    Python::attach(plugins::ready)?;
    config::resolve(ssd, ftl, overrides, &read_file).map_err(raise)
}

/// Options as JSON.
fn parse<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| InputError::new_err(format!("options: {error}")))
}

fn parse_options(text: &str) -> PyResult<RunOptions> {
    parse(text)
}

fn named<T: Copy>(option: &str, text: &str, values: &[(&str, T)]) -> PyResult<T> {
    let found = values.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
        InputError::new_err(format!("{option} {text}: there is no such value; expected one of {}", names.join(", ")))
    })
}

fn core_options(options: &RunOptions) -> PyResult<Options> {
    let fidelity = named("--fidelity", &options.fidelity, &[("count", Fidelity::Count), ("timed", Fidelity::Timed)])?;
    if options.check && fidelity == Fidelity::Count {
        return Err(InputError::new_err("--check: there are no times at --fidelity count; expected --fidelity timed"));
    }
    let payloads = [("none", Payload::None), ("tag", Payload::Tag), ("bytes", Payload::Bytes)];
    let payload = match named("--payload", &options.payload, &payloads)? {
        Payload::None if options.check => Payload::Tag,
        payload => payload,
    };
    Ok(Options {
        workload: options.workload.clone(),
        precondition: Precondition::parse(options.precondition.as_deref().unwrap_or("none")).map_err(raise)?,
        requests: options.requests,
        warmup: Warmup::parse(options.warmup.as_deref().unwrap_or("auto")).map_err(raise)?,
        fidelity,
        payload,
        seed: options.seed,
        series: options.series,
        operations: options.operations.as_deref().map(Window::parse).transpose().map_err(raise)?,
        strict: options.strict,
    })
}

/// Reports progress to Python, and checks for signals.
struct Reporter {
    callback: Option<Py<PyAny>>,
    last: Instant,
    raised: Option<PyErr>,
    /// Begin of the measured part of the run.
    measuring_since: Option<Instant>,
}

/// Checks for signals, and calls `callback` with the progress.
fn report(callback: Option<&Py<PyAny>>, (phase, done, expected, simulated): (&str, u64, u64, u64)) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        callback.map_or(Ok(()), |callback| callback.call1(py, (phase, done, expected, simulated)).map(drop))
    })
}

impl Reporter {
    fn new(callback: Option<Py<PyAny>>) -> Reporter {
        Reporter { callback, last: Instant::now(), raised: None, measuring_since: None }
    }

    fn report_progress(&mut self, progress: Progress) -> ControlFlow<()> {
        if progress.phase == Phase::Run && self.measuring_since.is_none() {
            self.measuring_since = Some(Instant::now());
        }
        if policies::has_raised() {
            return ControlFlow::Break(());
        }
        let Progress { phase, done, expected, simulated } = progress;
        self.tell((phase.name(), done, expected, simulated))
    }

    /// Reports, unless the last report is recent: phase, requests done and expected, simulated time.
    fn tell(&mut self, progress: (&str, u64, u64, u64)) -> ControlFlow<()> {
        if self.last.elapsed() < REPORT_EVERY {
            return ControlFlow::Continue(());
        }
        self.last = Instant::now();
        match report(self.callback.as_ref(), progress) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// Leaves out all tenants of `source` but `tenant`, if one is named.
fn keep_only(source: &mut dyn Source, tenant: Option<u32>) -> palimpsest_lab::error::Result<()> {
    let what = "the workload has no such section and no volumes; expected the number of one of several tenants";
    let is_kept = tenant.is_none_or(|tenant| source.keep_only(tenant));
    if is_kept { Ok(()) } else { Err(CoreError::input("tenant", what)) }
}

/// Runs one drive under one workload; returns the result and the data of the charts, both as JSON.
#[pyfunction]
fn run(py: Python<'_>, options_json: &str, progress: Option<Py<PyAny>>) -> PyResult<(String, String)> {
    let prepared = Prepared::parse(options_json)?;
    let Prepared { options, resolved, core, .. } = &prepared;
    let opening = prepared.opening();
    let mut reporter = Reporter::new(progress);
    let begin = Instant::now();
    let (outcome, end) = py.detach(|| {
        let outcome = endings::open_until(options, resolved, &opening).and_then(|(mut source, until)| {
            keep_only(source.as_mut(), options.tenant)?;
            let touched = core.touches(source.expected_requests());
            config::check_memory(&resolved.drive, &touched, files::available_memory())?;
            let mut endless = match core.warmup {
                Warmup::Auto if options.tenant.is_none() => {
                    workload::endless(&options.workload, &opening, workload::RUN_IN_SEED)?
                }
                _ => None,
            };
            let endless = endless.as_mut().map(|source| source.as_mut() as _);
            let load = Load { source: source.as_mut(), endless, until };
            run_from(resolved, load, core, &mut |progress| reporter.report_progress(progress), &mut states::Kept)
        });
        (outcome, Instant::now())
    });
    // Ctrl-C ends the measured part early, which the result notes.
    let may_keep = |raised: &PyErr, outcome: &Outcome| {
        outcome.summary.interrupted && raised.is_instance_of::<PyKeyboardInterrupt>(py)
    };
    match (reporter.raised, outcome) {
        (Some(raised), Ok(outcome)) if !may_keep(&raised, &outcome) => Err(raised),
        (Some(raised), Err(_)) => Err(raised),
        (None, Err(error)) => Err(raise(error)),
        (_, Ok(outcome)) => {
            let outcome = policies::checked(outcome)?;
            let measured = end - reporter.measuring_since.unwrap_or(begin);
            Ok(print(outcome, end - begin, measured, options))
        }
    }
}

fn print(mut outcome: Outcome, wall: Duration, measured: Duration, options: &RunOptions) -> (String, String) {
    let requests = &outcome.summary.requests;
    let all = requests.read + requests.write + requests.trim + requests.flush;
    outcome.summary.sim.wall_s = wall.as_secs_f64();
    outcome.summary.sim.requests_per_s = all as f64 / measured.as_secs_f64().max(1e-9);
    let mut summary = serde_json::to_string(&outcome.summary).expect("a result can be printed");
    if options.sketch {
        let sketch = serde_json::to_string(&outcome.detail.sketch).expect("buckets can be printed");
        // Appended, because the order of keys is fixed.
        summary.truncate(summary.len() - 1);
        summary += &format!(",\"latency_sketch\":{sketch}}}");
    }
    let detail = match &outcome.detail {
        detail if options.series => serde_json::to_string(detail),
        Detail { operations: Some(operations), requests, .. } => {
            serde_json::to_string(&serde_json::json!({ "operations": operations, "requests": requests }))
        }
        _ => Ok("null".into()),
    };
    (summary, detail.expect("a result can be printed"))
}

/// Checks the options of a run without running: configuration, options, begin of the workload. Returns the resolved
/// configuration, which is the `config` of a result, as JSON.
#[pyfunction]
fn check(py: Python<'_>, options_json: &str) -> PyResult<String> {
    let prepared = Prepared::parse(options_json)?;
    let Prepared { options, resolved, core, .. } = &prepared;
    check_options(&resolved.drive, core).map_err(raise)?;
    let opened = || check_workload(open(options, resolved, &prepared.opening())?.as_mut(), core);
    py.detach(opened).map_err(raise)?;
    Ok(resolved.to_json().to_string())
}

/// Scales the drive of a run to `memory` bytes, at most to `most` of its size; returns, as JSON, the options
/// `overrides` of the scaled drive, its `factor`, `capacity` and `needs` before and after, the `scaled` keys, and a
/// `text`.
#[pyfunction]
fn fit_memory(py: Python<'_>, options_json: &str, memory: u64, most: f64) -> PyResult<String> {
    let prepared = Prepared::parse(options_json)?;
    let Prepared { options, resolved, core, .. } = &prepared;
    let fitted = py.detach(|| {
        let expected = open(options, resolved, &prepared.opening())?.expected_requests();
        let drive = Described { ssd: &options.ssd, ftl: options.ftl.as_deref(), overrides: &options.set };
        config::fit::fit_memory(drive, &core.touches(expected), memory, most, &read_file)
    });
    let fitted = fitted.map_err(raise)?;
    let made = serde_json::json!({
        "overrides": fitted.overrides,
        "factor": fitted.factor,
        "capacity_bytes": fitted.capacity,
        "needs_bytes": fitted.needs,
        "memory_bytes": memory,
        "scaled": fitted.scaled,
        "text": fitted.text(memory),
    });
    Ok(made.to_string())
}

/// Memory in bytes that this process can get; None if the system reports none.
#[pyfunction]
fn available_memory() -> Option<u64> {
    files::available_memory()
}

/// The remedy of the settings `keys` that nothing reads, for the message of `unread_keys`.
#[pyfunction]
fn unread_remedy(ssd: &str, ftl: Option<&str>, overrides: Vec<String>, keys: Vec<String>) -> PyResult<String> {
    Python::attach(plugins::ready)?;
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    config::unread_remedy(ssd, ftl, &overrides, &keys, &read_file).map_err(raise)
}

/// Lets later runs of this process keep states of preconditioned drives: up to `memory` bytes in memory, and up to
/// `folder_bytes` in files of `folder` unless None. The folder may be the cache of the user.
#[pyfunction]
#[pyo3(signature = (memory, folder, folder_bytes, is_cache=false))]
fn keep_states(memory: u64, folder: Option<&str>, folder_bytes: u64, is_cache: bool) -> PyResult<()> {
    states::keep_states(memory, folder, folder_bytes, is_cache).map_err(raise)
}

/// States loaded from the cache and stored in it since the last call.
#[pyfunction]
fn state_counts() -> (u64, u64) {
    states::take_counts()
}

/// Notes about files of states since the last call, a line each.
#[pyfunction]
fn state_notes() -> Vec<String> {
    states::take_notes()
}

/// The resolved configuration as TOML, every key with meaning and source.
#[pyfunction]
fn show(ssd: &str, ftl: Option<&str>, overrides: Vec<String>) -> PyResult<String> {
    Ok(resolve(ssd, ftl, &overrides)?.to_toml())
}

/// Settings of the user that nothing reads: key, place, reason, expected reader, and gravity (`harmless`, `note` or
/// `mistake`).
#[pyfunction]
fn unread_keys(ssd: &str, ftl: Option<&str>, overrides: Vec<String>) -> PyResult<Vec<[String; 5]>> {
    let of = |unread: &Unread| {
        let gravity = match unread.gravity {
            Gravity::Harmless => "harmless",
            Gravity::Note => "note",
            Gravity::Mistake => "mistake",
        };
        let Unread { key, place, what, expected, .. } = unread.clone();
        [key.into(), place, what, expected, gravity.into()]
    };
    Ok(resolve(ssd, ftl, &overrides)?.unread().iter().map(of).collect())
}

/// The specification in fio's language of the workload preset `name`, of any case; None for other names.
#[pyfunction]
fn workload_spec(name: &str) -> Option<String> {
    config::workload_spec(name)
}

/// Every configuration key: name, words (none for quantities), meaning.
#[pyfunction]
fn configuration_keys(py: Python<'_>) -> PyResult<Vec<(&'static str, Vec<String>, &'static str)>> {
    plugins::ready(py)?;
    let words = |key: &Known| match key.value_type {
        ValueType::PartName => names_of(py, "parts"),
        kind => Ok(kind.words().into_iter().map(String::from).collect()),
    };
    keys().iter().map(|key| Ok((key.name, words(key)?, key.doc.as_str()))).collect()
}

fn names_of(py: Python<'_>, kind: &str) -> PyResult<Vec<String>> {
    Ok(list_registry(py, kind)?.into_iter().map(|(name, _)| name).collect())
}

/// Names and one-line descriptions of one registry.
#[pyfunction]
fn list_registry(py: Python<'_>, kind: &str) -> PyResult<Vec<(String, String)>> {
    plugins::ready(py)?;
    let presets = |presets: Vec<config::PresetInfo>| {
        presets.into_iter().map(|preset| (preset.name.into(), preset.description)).collect()
    };
    Ok(match kind {
        "ftls" => host::layers().map(|entry| (entry.name.into(), entry.about.into())).collect(),
        "victims" => victim::POLICIES.iter().map(|policy| (policy.name.into(), policy.about.into())).collect(),
        "classifiers" => CLASSIFIERS.iter().map(|one| (one.name.into(), one.about.into())).collect(),
        "traces" => {
            let added = trace::outside::added().into_iter().map(|format| (format.name, format.about));
            let own = trace::FORMATS.iter().map(|format| (format.name, format.about));
            own.chain(added).map(|(name, about)| (name.into(), about.into())).collect()
        }
        "parts" => presets(config::part_presets()),
        "ssds" => presets(config::ssd_presets()),
        "workloads" => presets(config::workload_presets()),
        "objects" => objects::FORMATS.iter().map(|format| (format.name.into(), format.about.into())).collect(),
        "policies" => objects::POLICIES.iter().map(|policy| (policy.name.into(), policy.about.into())).collect(),
        "schemes" => schemes::SCHEMES.iter().map(|entry| (entry.name.into(), entry.about.into())).collect(),
        "faults" => FAULTS.iter().map(|fault| (fault.name().into(), fault.key().doc.into())).collect(),
        "codes" => palimpsest_lab::wom::CODES.iter().map(|entry| (entry.name.into(), entry.about.into())).collect(),
        _ => {
            let expected = "expected one of ftls, parts, ssds, workloads, traces, objects, policies, victims, \
                            classifiers, schemes, codes, faults";
            return Err(InputError::new_err(format!("list {kind}: there is no such list; {expected}")));
        }
    })
}

/// Version of the core.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Digest of the sources of this module: equal digests give equal figures, on every machine.
#[pyfunction]
fn build() -> &'static str {
    env!("PALIMPSEST_SOURCES")
}

/// `release`, or `dev` for a module with assertions: the same figures, in more time.
#[pyfunction]
fn profile() -> &'static str {
    if cfg!(debug_assertions) { "dev" } else { "release" }
}

/// Adds functions to a module.
macro_rules! add_functions {
    ($module:ident: $($function:path),+ $(,)?) => {
        $($module.add_function(wrap_pyfunction!($function, $module)?)?;)+
    };
}

/// Fills `module` with the simulator, with `layers` added to the registry. A crate with other layers calls this from a
/// `#[pymodule]`, and the environment variable `PALIMPSEST_CORE` names that module: command line, keys, sweeps and
/// reports then have the layers.
///
/// # Errors
/// Errors of Python.
///
/// # Panics
/// A name of `layers` is taken, or the module is filled twice.
pub fn module(module: &Bound<'_, PyModule>, layers: &'static [Entry]) -> PyResult<()> {
    if !layers.is_empty() {
        palimpsest_lab::layers::add(layers, "the module").unwrap_or_else(|what| panic!("{what}"));
    }
    policies::add();
    self::layers::add();
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("InputError", py.get_type::<InputError>())?;
    module.add("UnfitError", py.get_type::<UnfitError>())?;
    module.add("DeviceError", py.get_type::<DeviceError>())?;
    module.add("RuleError", py.get_type::<RuleError>())?;
    module.add("PolicyError", py.get_type::<PolicyError>())?;
    module.add("LayerError", py.get_type::<LayerError>())?;
    module.add("NoSpace", py.get_type::<self::layers::io::NoSpace>())?;
    module.add("Halted", py.get_type::<self::layers::io::Halted>())?;
    module.add("WorkloadIoError", py.get_type::<WorkloadIoError>())?;
    module.add("Interrupted", py.get_type::<Interrupted>())?;
    module.add_class::<wom::WomCode>()?;
    module.add_class::<drives::Moments>()?;
    module.add_class::<drives::SimulatedDrive>()?;
    module.add_class::<self::layers::io::LayerIo>()?;
    module.add_class::<formats::TraceBytes>()?;
    module.add_class::<crash::CrashScript>()?;
    module.add_class::<crash::CrashRecording>()?;
    add_functions!(
        module: plugins::add_library, plugins::add_policy, formats::add_format, crash::drive_bytes,
        wom::wom_spare_needed, run,
        serve::serve, serve::detach, images::image_seed, images::image_settings, images::look_at_image,
        tables::parquet_table, check, fit_memory, available_memory, unread_remedy,
        keep_states, state_counts, state_notes, build, profile, show, unread_keys,
        configuration_keys, traces::trace_info, traces::trace_convert, traces::trace_requests, list_registry,
        checking::check_layer, wear::bit_error_rates, wear::life, workload_spec, version
    );
    Ok(())
}
