//! What `palimpsest crash` needs of the core: a file that is recorded, and a drive whose power fails anywhere.

use crate::{InputError, core_options, parse_options, raise, resolve};
use palimpsest_lab::config::{self, Resolved};
use palimpsest_lab::run::Options;
use palimpsest_lab::run::served::cuts::{Cut, Scripts, Step};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::sync::{Mutex, PoisonError};

/// A script of requests on a drive of its own, whose power may fail in each flash operation of it.
#[pyclass(frozen, module = "palimpsest._core")]
pub struct CrashScript {
    resolved: Resolved,
    options: Options,
    unit: u64,
    steps: Vec<(u64, PyBackedBytes)>,
}

/// What a cut left, for Python: the step, operations of the recovery, and the units that changed.
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
    /// `steps`: writes of whole units, with their offset; an empty one is a flush.
    #[new]
    fn new(options_json: &str, unit: u64, steps: Vec<(u64, PyBackedBytes)>) -> PyResult<Self> {
        let options = parse_options(options_json)?;
        let resolved = resolve(&options.ssd, options.ftl.as_deref(), &options.set)?;
        Ok(CrashScript { resolved, options: core_options(&options)?, unit, steps })
    }

    /// Flash operations after each step, where the power does not fail.
    fn operations(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        py.detach(|| self.with(|scripts, steps| scripts.operations(steps))).map_err(raise)
    }

    /// What a cut in `operation`, and in these operations of the recoveries from it, leaves; None after the end.
    fn cut(&self, py: Python<'_>, operation: u64, in_recovery: Vec<u64>) -> PyResult<Option<Left>> {
        let cut = Cut { operation, in_recovery };
        let left = py.detach(|| self.with(|scripts, steps| scripts.left(steps, &cut))).map_err(raise)?;
        Ok(left.map(|left| {
            let units = left.changed.into_iter().map(|(unit, bytes)| (unit, PyBytes::new(py, &bytes).unbind()));
            (left.step, left.recovery_operations, units.collect())
        }))
    }
}

/// Bytes of the drive of a configuration.
#[pyfunction]
pub fn drive_bytes(ssd: &str, ftl: Option<&str>, overrides: Vec<String>) -> PyResult<u64> {
    let drive: &config::DriveConfig = &resolve(ssd, ftl, &overrides)?.drive;
    Ok(drive.logical_bytes())
}

/// A file that is recorded.
#[pyclass(frozen, module = "palimpsest._core")]
pub struct CrashRecording(Mutex<Option<Recording>>);

#[cfg(target_os = "linux")]
use palimpsest_server::crash::Recording;

/// None of Linux, none to record.
#[cfg(not(target_os = "linux"))]
struct Recording;

#[cfg(not(target_os = "linux"))]
impl Recording {
    fn mount(_: &std::path::Path, _: u64, _: &std::path::Path, _: &std::path::Path) -> std::io::Result<Recording> {
        Err(std::io::Error::other("files are recorded on Linux only"))
    }

    fn listen(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn mark(&self, _: &str) -> std::io::Result<()> {
        Ok(())
    }

    fn finish(self) -> std::io::Result<()> {
        Ok(())
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
    /// A file `drive` of so many bytes (`size`) in `folder`; requests and what comes out of the named pipe `output` go to the file `log`.
    #[new]
    fn new(folder: &str, size: u64, log: &str, output: &str) -> PyResult<Self> {
        let recording = Recording::mount(folder.as_ref(), size, log.as_ref(), output.as_ref());
        let recording = recording.map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(CrashRecording(Mutex::new(Some(recording))))
    }

    /// Writes down what the program has said by now.
    fn listen(&self) -> PyResult<()> {
        self.with(|recording| recording.listen())
    }

    /// A phase begins.
    fn mark(&self, name: &str) -> PyResult<()> {
        self.with(|recording| recording.mark(name))
    }

    /// Ends the log, when the folder is unmounted.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let recording = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let recording = recording.ok_or_else(|| InputError::new_err("the recording has ended"))?;
        py.detach(|| recording.finish()).map_err(|error| PyOSError::new_err(error.to_string()))
    }
}
