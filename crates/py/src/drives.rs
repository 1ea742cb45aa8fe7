//! A drive as a value for Python: single requests, and batches of arrays. The interpreter is released in batches.
//!
//! Ignored: numpy, which the Python side uses; arrays pass as buffers and bytes.

use crate::{Error, InputError, named, policies, raise, read_file};
use palimpsest_drive::{Command, Completion, Contents, Directives, Drive, FLUSH, Moment, read, trim, write};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex, PoisonError};

const KINDS: [(&str, u8); 4] = [("read", 0), ("write", 1), ("trim", 2), ("flush", 3)];

fn command(kind: u8, offset: u64, size: u64) -> palimpsest_drive::Result<Command> {
    match kind {
        0 => read(offset, size),
        1 => write(offset, size),
        2 => trim(offset, size),
        _ => Ok(FLUSH),
    }
}

/// Tickets, times and statuses as bytes of native 64-bit integers, and of 8-bit integers.
type Columns<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Ticket, time, status and data of a completed request.
type Row<'py> = (u64, u64, u8, Bound<'py, PyBytes>);

/// Arrivals and completions of a drive, which another thread may take while the drive serves a batch.
#[pyclass(module = "palimpsest._core", frozen)]
pub struct Moments(Arc<Mutex<Vec<u8>>>);

#[pymethods]
impl Moments {
    /// Removes and returns all: rows of ticket, time, 1 for a completion, programmed bytes; native 64-bit integers.
    fn take<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = PyBytes::new(py, &rows);
        rows.clear();
        bytes
    }
}

/// A drive; `None` after its end. Only one thread at a time can use a drive.
#[pyclass(module = "palimpsest._core")]
pub struct SimulatedDrive {
    drive: Mutex<Option<Drive>>,
}

impl SimulatedDrive {
    fn get(&mut self) -> PyResult<&mut Drive> {
        let drive = self.drive.get_mut().expect("no call has panicked").as_mut();
        drive.ok_or_else(|| InputError::new_err("the drive is finished; expected a new one"))
    }
}

fn array<T: Element + Copy>(py: Python<'_>, buffer: &PyBuffer<T>) -> PyResult<Vec<T>> {
    buffer.to_vec(py)
}

fn columns<'py>(py: Python<'py>, completed: &[Completion]) -> Columns<'py> {
    let tickets: Vec<u8> = completed.iter().flat_map(|done| done.ticket.0.to_ne_bytes()).collect();
    let times: Vec<u8> = completed.iter().flat_map(|done| done.at.to_ne_bytes()).collect();
    let statuses: Vec<u8> = completed.iter().map(|done| done.status as u8).collect();
    (PyBytes::new(py, &tickets), PyBytes::new(py, &times), PyBytes::new(py, &statuses))
}

/// The result of `work`, unless code in Python raised an exception or has a state that is not plain data.
fn kept<T>(work: impl FnOnce() -> palimpsest_drive::Result<T>) -> PyResult<T> {
    let _earlier = policies::unkept();
    let done = work();
    policies::unkept().map_or(Ok(()), Err)?;
    done.map_err(raise).and_then(policies::checked)
}

#[pymethods]
impl SimulatedDrive {
    #[new]
    #[pyo3(signature = (ssd, ftl, overrides, precondition, contents, seed, workload, closed_loop, power_cuts, state))]
    #[allow(clippy::too_many_arguments, reason = "each is an option of the Python class")]
    fn new(
        py: Python<'_>,
        ssd: &str,
        ftl: Option<&str>,
        overrides: Vec<String>,
        precondition: &str,
        contents: &str,
        seed: u64,
        workload: &str,
        closed_loop: bool,
        power_cuts: bool,
        state: Option<Vec<u8>>,
    ) -> PyResult<Self> {
        let contents = named(
            "contents",
            contents,
            &[("none", Contents::None), ("tag", Contents::Tags), ("bytes", Contents::Bytes)],
        )?;
        let mut builder =
            Drive::builder(ssd).precondition(precondition).contents(contents).seed(seed).workload(workload);
        builder = if let Some(layer) = ftl { builder.layer(layer) } else { builder };
        builder = overrides.iter().fold(builder, |builder, text| {
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            builder.set(key, value)
        });
        builder = if closed_loop { builder.closed_loop() } else { builder };
        builder = if power_cuts { builder.power_cuts() } else { builder };
        builder = if let Some(state) = state { builder.state(state) } else { builder };
        let drive = kept(|| py.detach(|| builder.build_with(&read_file)))?;
        Ok(SimulatedDrive { drive: Mutex::new(Some(drive)) })
    }

    fn now(&mut self) -> PyResult<u64> {
        Ok(self.get()?.now())
    }

    fn size(&mut self) -> PyResult<u64> {
        Ok(self.get()?.bytes())
    }

    fn unit_bytes(&mut self) -> PyResult<u64> {
        Ok(self.get()?.unit_bytes())
    }

    fn in_flight(&mut self) -> PyResult<u32> {
        Ok(self.get()?.in_flight())
    }

    fn next_time(&mut self) -> PyResult<Option<u64>> {
        Ok(self.get()?.next_time())
    }

    #[allow(clippy::too_many_arguments, reason = "each is an argument of the Python method")]
    fn submit(
        &mut self,
        kind: &str,
        offset: u64,
        size: u64,
        at: Option<u64>,
        data: Option<Vec<u8>>,
        fua: bool,
        owner: u32,
        placement: Option<u16>,
    ) -> PyResult<u64> {
        let kind = named("kind", kind, &KINDS)?;
        let command = command(kind, offset, size).map_err(raise)?;
        let command = command.with(Directives {
            fua,
            owner,
            placement: placement.unwrap_or(0),
            placed: placement.is_some(),
            ..Directives::NONE
        });
        let drive = self.get()?;
        let at = at.unwrap_or_else(|| drive.now());
        let ticket = match data {
            Some(bytes) => drive.submit_bytes(command, bytes, at),
            None => drive.submit(command, at),
        };
        ticket.map_err(raise).and_then(policies::checked).map(|ticket| ticket.0)
    }

    /// Submits requests at their times; returns the first ticket.
    fn submit_many(
        &mut self,
        py: Python<'_>,
        kinds: PyBuffer<u8>,
        offsets: PyBuffer<u64>,
        sizes: PyBuffer<u64>,
        times: PyBuffer<u64>,
    ) -> PyResult<Option<u64>> {
        let (kinds, offsets) = (array(py, &kinds)?, array(py, &offsets)?);
        let (sizes, times) = (array(py, &sizes)?, array(py, &times)?);
        let drive = self.get()?;
        let submit = || {
            let mut first = None;
            for (((&kind, &offset), &size), &at) in kinds.iter().zip(&offsets).zip(&sizes).zip(&times) {
                if policies::has_raised() {
                    break;
                }
                let ticket = drive.submit(command(kind, offset, size)?, at)?;
                first.get_or_insert(ticket.0);
            }
            Ok(first)
        };
        py.detach(submit).map_err(raise).and_then(policies::checked)
    }

    /// Keeps `depth` requests in flight until all have completed.
    fn play<'py>(
        &mut self,
        py: Python<'py>,
        kinds: PyBuffer<u8>,
        offsets: PyBuffer<u64>,
        sizes: PyBuffer<u64>,
        depth: u32,
    ) -> PyResult<Columns<'py>> {
        let (kinds, offsets, sizes) = (array(py, &kinds)?, array(py, &offsets)?, array(py, &sizes)?);
        let drive = self.get()?;
        let play = || {
            let mut left = kinds.iter().zip(&offsets).zip(&sizes);
            let mut completed = Vec::with_capacity(kinds.len());
            loop {
                while drive.in_flight() < depth
                    && !policies::has_raised()
                    && let Some(((&kind, &offset), &size)) = left.next()
                {
                    let now = drive.now();
                    drive.submit(command(kind, offset, size)?, now)?;
                }
                completed.extend(drive.completed());
                if drive.in_flight() == 0 || policies::has_raised() {
                    return Ok(completed);
                }
                drive.advance(u64::MAX)?;
                completed.extend(drive.completed());
            }
        };
        let completed = py.detach(play).map_err(raise).and_then(policies::checked)?;
        Ok(columns(py, &completed))
    }

    /// Processes events up to `until`, until a request has completed.
    fn advance(&mut self, py: Python<'_>, until: u64) -> PyResult<()> {
        let drive = self.get()?;
        py.detach(|| drive.advance(until)).map_err(raise).and_then(policies::checked)
    }

    /// Processes all events until no request is in flight, and returns the completed requests.
    fn wait<'py>(&mut self, py: Python<'py>) -> PyResult<Columns<'py>> {
        let drive = self.get()?;
        let wait = || {
            let mut completed: Vec<Completion> = drive.completed().collect();
            while drive.in_flight() > 0 && !policies::has_raised() {
                drive.advance(u64::MAX)?;
                completed.extend(drive.completed());
            }
            Ok(completed)
        };
        let completed = py.detach(wait).map_err(raise).and_then(policies::checked)?;
        Ok(columns(py, &completed))
    }

    fn completed<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Row<'py>>> {
        let taken = self.get()?.completed();
        Ok(taken.map(|done| (done.ticket.0, done.at, done.status as u8, PyBytes::new(py, &done.bytes))).collect())
    }

    fn power_cut(&mut self, at: u64) -> PyResult<()> {
        self.get()?.power_cut(at).map_err(raise)
    }

    /// The state of the drive at rest.
    fn save<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let drive = self.get()?;
        let state = kept(|| py.detach(|| drive.save()))?;
        Ok(PyBytes::new(py, &state))
    }

    /// Records arrivals and completions from now on.
    fn watch(&mut self) -> PyResult<Moments> {
        let moments = Moments(Arc::default());
        let rows = Arc::clone(&moments.0);
        self.get()?.watch(move |Moment { ticket, at, is_completion, programmed_bytes }| {
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            let row = [ticket.0, at, is_completion.into(), programmed_bytes];
            row.iter().for_each(|value| rows.extend(value.to_ne_bytes()));
        });
        Ok(moments)
    }

    /// The present result as JSON.
    fn figures(&mut self) -> PyResult<String> {
        let figures = self.get()?.figures();
        serde_json::to_string(&figures).map_err(|error| Error::new_err(error.to_string()))
    }

    /// Ends the drive; the result of its whole life as JSON.
    fn finish(&mut self, py: Python<'_>) -> PyResult<String> {
        self.get()?;
        let drive = self.drive.get_mut().expect("no call has panicked").take().expect("it is there");
        let figures = py.detach(|| drive.finish()).map_err(raise).and_then(policies::checked)?;
        serde_json::to_string(&figures).map_err(|error| Error::new_err(error.to_string()))
    }
}
