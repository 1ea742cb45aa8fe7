//! `palimpsest check`: the model suite on one layer. Ctrl-C is seen between runs; [`crate::endless`] ends the process
//! of a layer that never returns. Ignored: such a layer in a process that gives no place for the report.

use crate::endless::Guard;
use crate::{InputError, Reporter, RuleError, parse, policies, raise};
use palimpsest_check::check::{Checked, Options, check};
use palimpsest_check::scale::{Scaled, scaled};
use palimpsest_check::trial::{Failure, Progress, Trial, Watch};
use palimpsest_lab::config;
use palimpsest_lab::error::Error as CoreError;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::host::find_layer;
use pyo3::prelude::*;
use serde::Deserialize;
use std::time::{Duration, Instant};

/// The options of `check_layer`, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckOptions {
    layer: String,
    set: Vec<String>,
    seed: u64,
    /// Cases of each kind.
    cases: u64,
    /// Seconds after which kinds may be left unfinished; `None` for no limit.
    seconds: Option<f64>,
    case: Option<String>,
    /// The drive whose shape all cases have; `None` for drives of every shape.
    ssd: Option<String>,
    /// The file of the report if this process may end; `None` for a process that must not.
    #[serde(default)]
    report: Option<String>,
    /// Seconds that a call of the layer may take, without the time in which the machine runs other programs.
    #[serde(default)]
    patience: f64,
}

/// Ends a check after a signal or at a limit of time, and takes exceptions of layers in Python.
struct Watcher {
    reporter: Reporter,
    end: Option<Instant>,
    guard: Option<Guard>,
}

impl Watch for Watcher {
    fn stops(&mut self, Progress { phase, done, expected }: Progress) -> bool {
        self.reporter.tell((phase, done, expected, 0)).is_break()
    }

    fn is_over(&mut self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    fn begins(&mut self, name: &str) {
        self.guard.iter().for_each(|guard| guard.begins(name));
    }

    fn plays(&mut self, trial: &Trial) {
        self.guard.iter().for_each(|guard| guard.plays(trial));
    }

    fn fails(&mut self, trial: &Trial, failure: &Failure) {
        self.guard.iter().for_each(|guard| guard.fails(trial, failure));
    }

    fn raised(&mut self) -> Option<String> {
        policies::raised(None).or_else(policies::unkept).map(|error| described(&error))
    }
}

/// The exception of a layer in Python, and where it was raised.
fn described(error: &PyErr) -> String {
    Python::attach(|py| {
        // The layer's own exception is the cause of the one that names the request.
        let cause = error.cause(py).filter(|_| !error.is_instance_of::<RuleError>(py));
        let raised = cause.as_ref().unwrap_or(error);
        let text = raised.value(py).to_string();
        let message = match text.split_once(RULE) {
            Some((_, rule)) => format!("{RULE}{rule}"),
            None => format!("{}: {text}", class(raised, py)),
        };
        let frames = || -> PyResult<Vec<String>> {
            let own = error.cause(py).unwrap_or_else(|| error.clone_ref(py));
            py.import("traceback")?.call_method1("format_tb", (own.traceback(py),))?.extract()
        };
        format!("{message}\n{}", frames().unwrap_or_default().concat().trim_end())
    })
}

/// The name of the class of an exception.
fn class(error: &PyErr, py: Python<'_>) -> String {
    error.get_type(py).name().map_or_else(|_| "Exception".into(), |name| name.to_string())
}

/// The message of a broken rule begins so.
const RULE: &str = "the layer broke a rule of flash: ";

/// The layer called `name`; the configuration knows those outside the registry.
fn layer(name: &str) -> PyResult<&'static Entry> {
    Python::attach(crate::plugins::ready)?;
    let resolved = config::resolve("default", Some(name), &[], &|_| Ok(String::new()));
    match (find_layer(name), resolved) {
        (Some(entry), _) => Ok(entry),
        (None, Ok(resolved)) => Ok(find_layer(&resolved.drive.ftl.name).expect("the configuration found the layer")),
        (None, Err(CoreError::Input { what, .. })) => Err(InputError::new_err(format!("check {name}: {what}"))),
        (None, Err(error)) => Err(raise(error)),
    }
}

/// The shape of the drive `ssd`, a preset's name or a file, for small drives of the layer `entry` with the settings
/// `set`.
fn drive(entry: &'static Entry, ssd: &str, set: &[String]) -> PyResult<Scaled> {
    let given = crate::resolve(ssd, None, &[])?;
    scaled(entry, ssd, &given, set).map_err(|reason| {
        let what = format!("{} supports no small drive of this shape: {reason}", entry.name);
        InputError::new_err(format!("--ssd {ssd}: {what}"))
    })
}

/// Checks a layer; returns verdict, counts of the cases, and the failure if there is one, as JSON.
#[pyfunction]
pub fn check_layer(py: Python<'_>, options_json: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let CheckOptions { layer: name, set, seed, cases, seconds, case, ssd, report, patience } = parse(options_json)?;
    let entry = layer(&name)?;
    let ssd = ssd.map(|ssd| drive(entry, &ssd, &set)).transpose()?;
    let guard = report.map(|report| Guard::start(&report, entry.name, seed, Duration::from_secs_f64(patience)));
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let mut watcher = Watcher { reporter: Reporter::new(progress), end, guard };
    let options = Options { seed, settings: set, ssd, case, cases };
    let checked = py.detach(|| check(entry, &options, &mut watcher));
    match (watcher.reporter.raised, checked) {
        (Some(raised), Ok(Checked { broken: None, .. }) | Err(_)) => Err(raised),
        (None, Err(error)) => Err(raise(error)),
        (_, Ok(checked)) => Ok(serde_json::to_string(&checked).expect("a result can be printed")),
    }
}
