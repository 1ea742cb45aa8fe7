//! The core's part of `palimpsest crash`: a recorded file, and a drive with power cuts in any flash operation.

use crate::{InputError, core_options, parse_options, policies, raise, resolve};
use palimpsest_lab::config::Resolved;
use palimpsest_lab::run::Options;
use palimpsest_lab::run::served::cuts::{Cut, Scripts, Step};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::sync::{Mutex, PoisonError};

/// A script of requests on a new drive, with a power cut in any flash operation.
#[pyclass(frozen, module = "palimpsest._core")]
pub struct CrashScript {
    resolved: Resolved,
    options: Options,
    unit: u64,
    steps: Vec<(u64, PyBackedBytes)>,
}

/// Result of a cut for Python: step, operations of the recovery, changed units.
type Left = (usize, u64, Vec<(u64, Py<PyBytes>)>);

fn step(offset: u64, bytes: &[u8]) -> Step<'_> {
    if bytes.is_empty() { Step::Flush } else { Step::Write { offset, bytes } }
}

impl CrashScript {
    fn with<T>(&self, work: impl FnOnce(&Scripts<'_>, &[Step<'_>]) -> T) -> T {
        let steps: Vec<Step<'_>> = self.steps.iter().map(|(offset, bytes)| step(*offset, bytes)).collect();
        work(&Scripts { resolved: &self.resolved, options: &self.options, unit: self.unit }, &steps)
    }
}

#[pymethods]
impl CrashScript {
    /// `steps`: writes of whole units at byte offsets; an empty write is a flush.
    #[new]
    fn new(options_json: &str, unit: u64, steps: Vec<(u64, PyBackedBytes)>) -> PyResult<Self> {
        let options = parse_options(options_json)?;
        let resolved = resolve(&options.ssd, options.ftl.as_deref(), &options.set)?;
        policies::refuse(&resolved)?;
        Ok(CrashScript { resolved, options: core_options(&options)?, unit, steps })
    }

    /// Flash operations after each step, without a power cut.
    fn operations(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        py.detach(|| self.with(|scripts, steps| scripts.operations(steps))).map_err(raise)
    }

    /// The state after a cut in `operation`, and in operations `in_recovery` of the recoveries; None after the end.
    fn cut(&self, py: Python<'_>, operation: u64, in_recovery: Vec<u64>) -> PyResult<Option<Left>> {
        let cut = Cut { operation, in_recovery };
        let left = py.detach(|| self.with(|scripts, steps| scripts.left(steps, &cut))).map_err(raise)?;
        Ok(left.map(|left| {
            let units = left.changed.into_iter().map(|(unit, bytes)| (unit, PyBytes::new(py, &bytes).unbind()));
            (left.step, left.recovery_operations, units.collect())
        }))
    }
}

/// Logical bytes of the drive of a configuration.
#[pyfunction]
pub fn drive_bytes(ssd: &str, ftl: Option<&str>, overrides: Vec<String>) -> PyResult<u64> {
    Ok(resolve(ssd, ftl, &overrides)?.drive.logical_bytes())
}

/// A recorded file.
#[pyclass(frozen, module = "palimpsest._core")]
pub struct CrashRecording(Mutex<Option<Recording>>);

#[cfg(target_os = "linux")]
use palimpsest_server::crash::Recording;

/// Has no values, because only Linux records files.
#[cfg(not(target_os = "linux"))]
enum Recording {}

#[cfg(not(target_os = "linux"))]
impl Recording {
    fn mount(_: &std::path::Path, _: u64, _: &std::path::Path, _: &std::path::Path) -> std::io::Result<Recording> {
        Err(std::io::Error::other("files are recorded on Linux only"))
    }

    fn listen(&self) -> std::io::Result<()> {
        match *self {}
    }

    fn mark(&self, _: &str) -> std::io::Result<()> {
        match *self {}
    }

    fn finish(self) -> std::io::Result<()> {
        match self {}
    }
}

impl CrashRecording {
    fn with(&self, work: impl FnOnce(&Recording) -> std::io::Result<()>) -> PyResult<()> {
        let recording = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recording = recording.as_ref().ok_or_else(|| InputError::new_err("the recording has ended"))?;
        work(recording).map_err(|error| PyOSError::new_err(error.to_string()))
    }
}

#[pymethods]
impl CrashRecording {
    /// Mounts a file `drive` of `size` bytes in `folder`; the file `log` gets requests and the output of the named pipe
    /// `output`.
    #[new]
    fn new(folder: &str, size: u64, log: &str, output: &str) -> PyResult<Self> {
        let recording = Recording::mount(folder.as_ref(), size, log.as_ref(), output.as_ref());
        let recording = recording.map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(CrashRecording(Mutex::new(Some(recording))))
    }

    /// Logs the program's output so far.
    fn listen(&self) -> PyResult<()> {
        self.with(|recording| recording.listen())
    }

    /// Logs the begin of a phase.
    fn mark(&self, name: &str) -> PyResult<()> {
        self.with(|recording| recording.mark(name))
    }

    /// Ends the log; the folder must be unmounted.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let recording = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let recording = recording.ok_or_else(|| InputError::new_err("the recording has ended"))?;
        py.detach(|| recording.finish()).map_err(|error| PyOSError::new_err(error.to_string()))
    }
}
