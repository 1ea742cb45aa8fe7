//! Formats of traces in Python, which `palimpsest.formats` loads and calls: some thousand requests a call.
//!
//! The thread of the run reads such a trace, because an exception of the format ends the run, like one of a policy.

use crate::{InputError, policies};
use palimpsest_lab::host::trace::outside::{self, Outside};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, Mutex, PoisonError};

type Failure = Arc<Mutex<Option<io::Error>>>;

/// Adds the format `name` of the distribution `owner`; `palimpsest.plugins` knows the class. Raises InputError with
/// the reason.
#[pyfunction]
pub fn add_format(name: &str, owner: &str) -> PyResult<()> {
    if outside::named(name).is_some() {
        return Err(InputError::new_err(format!("a plug-in has a trace format called {name}; expected another name")));
    }
    let [name, about] = [name.to_owned(), format!("of the plug-in {owner}")].map(|text| &*text.leak());
    outside::add(Outside { name, about, records }).map_err(InputError::new_err)
}

/// True if `format` names a format in Python.
pub fn is_python(format: Option<&str>) -> bool {
    format.and_then(outside::named).is_some()
}

fn records(name: &'static str, trace: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
    let failure = Failure::default();
    let trace = TraceBytes { trace: Mutex::new(trace), failure: Arc::clone(&failure) };
    let chunks = Python::attach(|py| {
        let trace = Bound::new(py, trace)?;
        Ok(py.import("palimpsest.formats")?.call_method1("records", (name, trace))?.unbind())
    });
    Box::new(Records { chunks, failure, chunk: None, read: 0 })
}

/// The bytes of a trace.
#[pyclass(module = "palimpsest._core", frozen)]
pub struct TraceBytes {
    trace: Mutex<Box<dyn Read + Send>>,
    /// The reason why reading failed.
    failure: Failure,
}

#[pymethods]
impl TraceBytes {
    /// The next bytes, `most` at most; none at the end. Raises OSError.
    fn read<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = vec![0; most];
        let count = loop {
            match trace.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let raised = PyErr::from(io::Error::new(error.kind(), error.to_string()));
                    *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return Err(raised);
                }
                Ok(count) => break count,
            }
        };
        Ok(PyBytes::new(py, &bytes[..count]))
    }
}

/// Records in chunks from Python.
struct Records {
    chunks: PyResult<Py<PyAny>>,
    failure: Failure,
    chunk: Option<PyBackedBytes>,
    /// Bytes of the chunk already read.
    read: usize,
}

impl Records {
    fn next(&self) -> PyResult<Option<PyBackedBytes>> {
        Python::attach(|py| {
            let chunks = self.chunks.as_ref().map_err(|error| error.clone_ref(py))?;
            let next = chunks.bind(py).try_iter()?.next().transpose()?;
            next.map(|chunk| chunk.extract::<PyBackedBytes>().map_err(PyErr::from)).transpose()
        })
    }
}

impl Read for Records {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.chunk.as_ref().is_none_or(|chunk| self.read == chunk.len()) {
            match self.next() {
                Ok(None) => return Ok(0),
                Ok(chunk) => (self.chunk, self.read) = (chunk, 0),
                Err(error) => {
                    if let Some(failure) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
                        return Err(failure);
                    }
                    policies::keep(error);
                    return Err(io::Error::other("the format raised an exception"));
                }
            }
        }
        let chunk = self.chunk.as_deref().unwrap_or_default();
        let count = into.len().min(chunk.len() - self.read);
        into[..count].copy_from_slice(&chunk[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}
