//! Flash as a layer in Python sees it: coarse calls over units of the layer, arrays as buffers of 64-bit integers.
//!
//! A unit is a page or a subpage, as the layer maps. Each function checks its numbers, so that a mistake of the layer
//! is an exception in the layer's line. A halt of flash is an exception too, and is kept: the layer cannot go on after
//! one, even if the layer catches it. The content of subpages never passes through Python.
//!
//! Ignored: open pages in the write buffer, zones, handles, codes of cells, tables in flash.

use super::call::{Arrived, Call, Done, Moved, Stop, View, index};
use super::lent::Lent;
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::{Halt, Nand, PADDING, TORN, UNWRITTEN, first_subpages};
use palimpsest_lab::plan::select::ReadPolicy;
use palimpsest_lab::plan::{CAUSE_NAMES, Cause, Erase, Gate, Io};
use pyo3::buffer::PyBuffer;
use pyo3::create_exception;
use pyo3::exceptions::{PyBaseException, PyException, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

create_exception!(
    palimpsest._core,
    Halted,
    PyBaseException,
    "Flash ended the present call of a layer: no later call of Io works."
);

struct State {
    lent: Lent,
    view: View,
    /// Why flash halted in the present call.
    halt: Option<Halt>,
    /// Pages read in the present call, whose data the controller has.
    read: Vec<Arrived>,
    moved: Moved,
}

/// Flash, for a layer in Python; `palimpsest.layers.Io` adds numpy and the names of constants.
#[pyclass(module = "palimpsest._core", subclass, frozen)]
pub struct LayerIo {
    state: Mutex<State>,
}

create_exception!(palimpsest._core, NoSpace, PyException, "No block is left for a write: the drive is worn out.");

/// Whole numbers, of one number or of many.
pub struct Numbers(Vec<i64>);

impl<'py> FromPyObject<'_, 'py> for Numbers {
    type Error = PyErr;

    fn extract(found: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(number) = found.extract::<i64>() {
            return Ok(Numbers(vec![number]));
        }
        if let Ok(array) = PyBuffer::<i64>::get(&found) {
            return Ok(Numbers(array.to_vec(found.py())?));
        }
        found.extract::<Vec<i64>>().map(Numbers).map_err(|_| {
            let dtype = found.getattr("dtype").map_or_else(|_| String::new(), |dtype| format!(" of {dtype}"));
            let found = found.get_type().name().map_or_else(|_| "an object".into(), |name| name.to_string());
            PyTypeError::new_err(format!("{found}{dtype}; expected whole numbers: one, an int64 array, or a list"))
        })
    }
}

/// The causes of operations that a layer plans.
const CAUSES: [Cause; 5] = [Cause::Host, Cause::Gc, Cause::Merge, Cause::Rmw, Cause::Metadata];

fn cause_of(name: &str) -> PyResult<Cause> {
    let of = |cause: Cause| CAUSE_NAMES[cause as usize];
    CAUSES
        .into_iter()
        .find(|&cause| of(cause) == name)
        .ok_or_else(|| PyValueError::new_err(format!("cause {name:?}; expected one of {}", CAUSES.map(of).join(", "))))
}

/// The gate with the number `number`, which [`number_of`] made; 0 is none.
fn gate_of(io: &Io, number: u64) -> PyResult<Gate> {
    let gate = match number {
        0 => return Ok(Gate::NONE),
        number => Gate::new((number - 1) as u32, ((number - 1) >> 32) as u32),
    };
    let known = (gate.slot() as usize) < io.plan.gates.slots.len();
    if known { Ok(gate) } else { Err(PyValueError::new_err(format!("{number} is no gate; expected one of Io.gate()"))) }
}

/// As [`gate_of`], of a gate that an operation is to signal: a gate that has closed, or that `used` released, cannot.
fn signal_of(io: &Io, number: u64) -> PyResult<Gate> {
    let gate = gate_of(io, number)?;
    if gate.is_none() || io.is_open(gate) {
        return Ok(gate);
    }
    Err(PyValueError::new_err(format!("signal = {number}: the gate has closed; expected an open one, of Io.gate()")))
}

fn number_of(gate: Gate) -> u64 {
    if gate.is_none() { 0 } else { (u64::from(gate.generation()) << 32 | u64::from(gate.slot())) + 1 }
}

/// Integers as bytes, which numpy reads as an array.
fn bytes_of<'py>(py: Python<'py>, numbers: impl Iterator<Item = i64>) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &numbers.flat_map(i64::to_ne_bytes).collect::<Vec<u8>>())
}

/// A logical number as Python has it: -1 for a subpage not written since the erase, -2 for padding, -3 for a torn one.
fn signed(logical: u32) -> i64 {
    match logical {
        UNWRITTEN => -1,
        PADDING => -2,
        TORN => -3,
        logical => logical.into(),
    }
}

#[pymethods]
impl LayerIo {
    #[new]
    fn new() -> Self {
        let view = View { unit: 1, units: 0, policy: ReadPolicy::PAGE, request: None };
        LayerIo { state: Mutex::new(State { lent: Lent::Nothing, view, halt: None, read: Vec::new(), moved: (0, 0) }) }
    }

    /// Channels, dies, planes, blocks, pages of a block, subpages of a page, bytes of a subpage, logical units.
    fn shape(&self) -> PyResult<Vec<u32>> {
        self.look(|io, view| {
            let shape = io.geometry();
            let (blocks, pages, subpages) = (shape.blocks(), shape.pages_per_block, shape.subpages_per_page);
            let drive = [shape.channels, shape.dies(), shape.planes(), blocks, pages, subpages];
            Ok([drive.as_slice(), &[shape.subpage_bytes, view.units]].concat())
        })
    }

    fn now(&self) -> PyResult<u64> {
        self.look(|io, _| Ok(io.now()))
    }

    fn load(&self, die: i64) -> PyResult<u32> {
        self.look(|io, _| Ok(io.load(index("die", die, io.geometry().dies().into())?)))
    }

    fn is_bad(&self, block: i64) -> PyResult<bool> {
        self.of_block(block, |nand, block| nand.is_bad(block))
    }

    fn is_torn(&self, block: i64) -> PyResult<bool> {
        self.of_block(block, |nand, block| nand.is_torn(block))
    }

    fn next_page(&self, block: i64) -> PyResult<u32> {
        self.of_block(block, |nand, block| nand.next_page(block))
    }

    /// Bad blocks, torn blocks, next pages and erases of all blocks: four rows.
    fn blocks_state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.look(|io, _| {
            let nand = io.nand();
            let row = |value: &dyn Fn(u32) -> i64| (0..io.geometry().blocks()).map(value).collect::<Vec<i64>>();
            let bad = row(&|block| nand.is_bad(block).into());
            let torn = row(&|block| nand.is_torn(block).into());
            let next = row(&|block| nand.next_page(block).into());
            let erases = row(&|block| nand.erases(block).into());
            Ok(bytes_of(py, bad.into_iter().chain(torn).chain(next).chain(erases)))
        })
    }

    /// The logical unit of each physical unit of `places`: of the out-of-band area.
    fn logical_units<'py>(&self, py: Python<'py>, places: Numbers) -> PyResult<Bound<'py, PyBytes>> {
        let Numbers(places) = places;
        self.look(|io, view| {
            let units = io.geometry().subpages() / u64::from(view.unit);
            let one = |&place: &i64| {
                let logical = io.nand().logical(index("physical unit", place, units)? * view.unit);
                Ok(if logical < TORN { i64::from(logical / view.unit) } else { signed(logical) })
            };
            Ok(bytes_of(py, places.iter().map(one).collect::<PyResult<Vec<i64>>>()?.into_iter()))
        })
    }

    /// The number of the program of each physical unit of `places`; 0 without contents.
    fn sequences<'py>(&self, py: Python<'py>, places: Numbers) -> PyResult<Bound<'py, PyBytes>> {
        let Numbers(places) = places;
        self.look(|io, view| {
            let units = io.geometry().subpages() / u64::from(view.unit);
            let one = |&place: &i64| Ok(io.nand().sequence(index("physical unit", place, units)? * view.unit) as i64);
            Ok(bytes_of(py, places.iter().map(one).collect::<PyResult<Vec<i64>>>()?.into_iter()))
        })
    }

    fn request(&self) -> PyResult<u64> {
        self.look(|io, _| Ok(number_of(io.request())))
    }

    fn gate(&self) -> PyResult<u64> {
        self.change(|call| Ok(number_of(call.io.gate())))
    }

    fn used(&self, gate: u64) -> PyResult<u64> {
        self.change(|call| {
            let gate = gate_of(call.io, gate)?;
            Ok(number_of(call.io.used(gate)))
        })
    }

    #[pyo3(signature = (*gates))]
    fn all_of(&self, gates: Vec<u64>) -> PyResult<u64> {
        self.change(|call| {
            let gates = gates.iter().map(|&gate| gate_of(call.io, gate)).collect::<PyResult<Vec<Gate>>>()?;
            Ok(number_of(call.io.all_of(&gates)))
        })
    }

    /// Programs page `page` with the logical units `units` after the present write; see `palimpsest.layers.Io.write`.
    #[pyo3(signature = (page, units, old = None, after = 0))]
    fn write(&self, page: i64, units: Numbers, old: Option<Numbers>, after: u64) -> PyResult<bool> {
        self.change(|call| {
            let after = gate_of(call.io, after)?;
            call.write(page, &units.0, &old.map_or_else(|| vec![-1; units.0.len()], |old| old.0), after)
        })
    }

    /// Reads the logical units `units` of the present read from `places`, -1 for none, and delivers them.
    fn deliver(&self, units: Numbers, places: Numbers) -> PyResult<()> {
        self.change(|call| call.deliver(&units.0, &places.0))
    }

    /// Copies the physical units `sources` to the pages `targets`; returns the number of pages programmed.
    #[pyo3(signature = (sources, targets, cause = "gc", signal = 0))]
    fn copy(&self, sources: Numbers, targets: Numbers, cause: &str, signal: u64) -> PyResult<usize> {
        let cause = cause_of(cause)?;
        self.change(|call| {
            let signal = signal_of(call.io, signal)?;
            call.copy(&sources.0, &targets.0, cause, signal)
        })
    }

    /// Reads subpages of a page.
    #[pyo3(signature = (page, subpages, cause = "gc", after = 0, signal = 0))]
    fn read(&self, page: i64, subpages: u64, cause: &str, after: u64, signal: u64) -> PyResult<()> {
        let cause = cause_of(cause)?;
        self.change(|call| {
            let page = index("page", page, call.io.geometry().pages())?;
            let all = first_subpages(call.width());
            if subpages == 0 || subpages & !all != 0 {
                let what = format!("subpages {subpages:#b} of a page; expected some of {all:#b}");
                return Err(PyValueError::new_err(what).into());
            }
            let (after, signal) = (gate_of(call.io, after)?, signal_of(call.io, signal)?);
            call.sense(page, subpages, cause, after, signal)
        })
    }

    #[pyo3(signature = (block, cause = "gc", after = 0, signal = 0))]
    fn erase(&self, block: i64, cause: &str, after: u64, signal: u64) -> PyResult<bool> {
        let cause = cause_of(cause)?;
        self.change(|call| {
            let block = index("block", block, call.io.geometry().blocks().into())?;
            let (after, signal) = (gate_of(call.io, after)?, signal_of(call.io, signal)?);
            call.erase(Erase { after, signal, ..Erase::new(block, cause) })
        })
    }
}

impl LayerIo {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `call` while Python may change `io`. Returns the halt of flash in the call.
    pub fn lend<T>(
        &self,
        io: &mut Io,
        request: Option<(RequestKind, Extent)>,
        call: impl FnOnce() -> T,
    ) -> (T, Option<Halt>) {
        let mut state = self.state();
        state.lent = Lent::ToChange(NonNull::from(io));
        state.view.request = request;
        state.read.clear();
        drop(state);
        self.until_end(call)
    }

    /// Runs `call` while Python may look at `io`.
    pub fn show<T>(&self, io: &Io, call: impl FnOnce() -> T) -> T {
        self.state().lent = Lent::ToLook(NonNull::from(io));
        self.until_end(call).0
    }

    fn until_end<T>(&self, call: impl FnOnce() -> T) -> (T, Option<Halt>) {
        struct Loan<'a>(&'a LayerIo);
        impl Drop for Loan<'_> {
            fn drop(&mut self) {
                self.0.state().lent = Lent::Nothing;
            }
        }
        let loan = Loan(self);
        let result = call();
        drop(loan);
        (result, self.state().halt.take())
    }

    /// Subpages copied since the drive was new.
    pub fn moved(&self) -> Moved {
        self.state().moved
    }

    /// Restores the counts of [`Self::moved`].
    pub fn set_moved(&self, moved: Moved) {
        self.state().moved = moved;
    }

    /// Sets the units of the layer.
    pub fn set_view(&self, view: View) {
        self.state().view = view;
    }

    fn of_block<T>(&self, block: i64, value: impl FnOnce(&Nand, u32) -> T) -> PyResult<T> {
        self.look(|io, _| Ok(value(io.nand(), index("block", block, io.geometry().blocks().into())?)))
    }

    fn look<T>(&self, look: impl FnOnce(&Io, View) -> PyResult<T>) -> PyResult<T> {
        let state = self.state();
        look(state.lent.look().ok_or_else(not_lent)?, state.view)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Call<'_>) -> Done<T>) -> PyResult<T> {
        let mut state = self.state();
        let State { lent, view, halt, read, moved } = &mut *state;
        if halt.is_some() {
            return Err(Halted::new_err("flash halted earlier in this call"));
        }
        let looks = lent.look().is_some();
        let Some(io) = lent.change() else {
            return Err(if looks {
                PyTypeError::new_err("this method of a layer may look at flash, not change it")
            } else {
                not_lent()
            });
        };
        match change(&mut Call { io, view: *view, read, moved }) {
            Ok(value) => Ok(value),
            Err(Stop::Mistake(error)) => Err(error),
            Err(Stop::Halt(stop)) => {
                let message = match &stop {
                    Halt::Refused(refusal) => refusal.to_string(),
                    Halt::PowerCut => "the power failed".into(),
                    _ => "the drive ended".into(),
                };
                *halt = Some(stop);
                Err(Halted::new_err(message))
            }
        }
    }
}

fn not_lent() -> PyErr {
    PyRuntimeError::new_err("no call of the layer runs; expected Io only inside the methods of a layer")
}
