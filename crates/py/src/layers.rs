//! Layers in Python: a class whose methods `palimpsest.layers` describes takes the place of a built-in layer, as
//! `--ftl FILE.py:CLASS`. Rules of flash, verification, gates and the engine are those of every layer.
//!
//! An exception ends the run, as for [policies](crate::policies). Pickle stores the attributes of a layer as its state.
//!
//! Ignored: the features that [`io`] ignores, and served drives, because their threads would lose the exception.

mod call;
pub mod io;
mod lent;

use crate::policies::{LAYER, keep, keep_caused, lose_state, names_policy};
use crate::{LayerError, RuleError};
use call::{Moved, View};
use io::{LayerIo, NoSpace};
use palimpsest_lab::ftl::keys::value::Value;
use palimpsest_lab::ftl::keys::{Fallback, Key, ValueType, keys_of};
use palimpsest_lab::ftl::{Blueprint, Entry, Figure, Ftl, LayerFigures, Mapping, Proposal, Unfit};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::layers::{OUTSIDE, Outside};
use palimpsest_lab::nand::{Flash, Halt};
use palimpsest_lab::plan::Io;
use palimpsest_lab::plan::select::{READ, ReadPolicy};
use palimpsest_lab::state::{Loaded, Reader, State};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyRange};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// The declarations of a class, as `palimpsest.layers.read` returns them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Declared {
    /// Canonical name.
    name: String,
    about: String,
    parity: bool,
    keys: Vec<DeclaredKey>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct DeclaredKey {
    name: String,
    doc: String,
    default: String,
    /// `count`, `ratio`, `flag`, `time` or `choice`.
    kind: String,
    least: f64,
    most: f64,
    words: Vec<String>,
}

/// A layer that a class declared, and the smallest values of its ratios.
struct Known {
    entry: &'static Entry,
    least: Vec<f64>,
}

/// Every layer declared in the process, by canonical name.
static KNOWN: Mutex<BTreeMap<String, Known>> = Mutex::new(BTreeMap::new());

/// Adds layers in Python to the process.
pub fn add() {
    let is_new = OUTSIDE.set(Outside { form: "FILE.py:CLASS", read }).is_ok();
    assert!(is_new, "layers are added once");
}

fn read(text: &str) -> Option<Result<&'static Entry, String>> {
    let declare = |py: Python<'_>| {
        let declared = py.import("palimpsest.layers")?.call_method1("read", (text,))?;
        declared.extract::<Declared>()
    };
    names_policy(LAYER, text)
        .then(|| Python::attach(|py| declare(py).map_err(|error| error.value(py).to_string())).map(enter))
}

/// The entry of a class, the same for each declaration of one name.
fn enter(declared: Declared) -> &'static Entry {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.get(&declared.name) {
        return known.entry;
    }
    let least = declared.keys.iter().map(|key| key.least).collect();
    let entry: &'static Entry = Box::leak(Box::new(Entry {
        name: declared.name.clone().leak(),
        about: declared.about.leak(),
        keys: || keys_of(&[READ]),
        declared: declared.keys.into_iter().map(key_of).collect::<Vec<Key>>().leak(),
        takes_parity: declared.parity,
        check,
        build,
        ..Entry::PLAIN
    }));
    known.insert(declared.name, Known { entry, least });
    entry
}

fn key_of(DeclaredKey { name, doc, default, kind, least, most, words }: DeclaredKey) -> Key {
    let words = words.into_iter().map(|word| &*word.leak()).collect::<Vec<&'static str>>();
    let value_type = match kind.as_str() {
        "count" => ValueType::Count { min: least as u64, max: most as u64 },
        "ratio" => ValueType::Ratio { max: most },
        "flag" => ValueType::Flag,
        "time" => ValueType::Time,
        _ => ValueType::Choice(words.leak()),
    };
    Key::new(name.leak(), value_type, Fallback::Text(default.leak()), doc.leak())
}

/// Refuses ratios below the smallest value of their keys.
fn check(proposal: &Proposal<'_>) -> Result<(), Unfit> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Known { entry, least }) = known.get(&proposal.settings.name) else { return Ok(()) };
    for (key, &least) in entry.declared.iter().zip(least) {
        match proposal.settings.value(key.name) {
            Value::Ratio(ratio) if *ratio < least => {
                return Err(Unfit::new(&[key.name], format!("expected {}% or more", 100.0 * least)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The values of the layer's own keys, for Python: seconds are nanoseconds, ratios are floats.
fn settings<'py>(py: Python<'py>, entry: &Entry, blueprint: &Blueprint) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    for key in entry.declared {
        match blueprint.settings.value(key.name) {
            Value::Count(number) | Value::Time(number) => values.set_item(key.name, number)?,
            Value::Ratio(ratio) => values.set_item(key.name, ratio)?,
            Value::Flag(flag) => values.set_item(key.name, flag)?,
            value => values.set_item(key.name, value.to_text())?,
        }
    }
    Ok(values)
}

fn build(io: &Io, blueprint: &Blueprint) -> Box<dyn Ftl> {
    let name = blueprint.settings.name.clone();
    let entry = KNOWN.lock().unwrap_or_else(PoisonError::into_inner)[&name].entry;
    let subpages = io.geometry().subpages_per_page;
    let mut unit = subpages;
    let mut build = |py: Python<'_>| -> PyResult<Parts> {
        let settings = settings(py, entry, blueprint)?;
        let made = py.import("palimpsest.layers")?.call_method1("prepare", (&name, settings, blueprint.seed))?;
        let (port, maps_subpages): (Bound<'_, LayerIo>, bool) = made.extract()?;
        if maps_subpages {
            unit = 1;
        }
        let units = blueprint.logical_pages * (subpages / unit);
        port.get().set_view(View { unit, units, policy: ReadPolicy::new(&blueprint.settings), request: None });
        let layer = port.get().show(io, || port.call_method0("build")).map_err(|error| {
            let message = format!("{}.__init__: {}", short(&name), described(py, &error));
            keep_caused(LayerError::new_err(message), error);
            LayerError::new_err("")
        })?;
        let method = |name: &str| layer.getattr(name).map(Bound::unbind);
        let (write, read) = (method("write")?, method("read")?);
        Ok(Parts { port: port.clone().unbind(), write, read, layer: layer.unbind() })
    };
    let parts = Python::attach(|py| build(py).map_err(keep)).ok();
    let unit_sectors = u64::from(unit * io.host.sectors_per_subpage());
    Box::new(PythonLayer { name, unit, unit_sectors, parts })
}

/// The Python side of a layer.
struct Parts {
    /// Flash as Python sees it.
    port: Py<LayerIo>,
    layer: Py<PyAny>,
    /// The methods `write` and `read` of the layer.
    write: Py<PyAny>,
    read: Py<PyAny>,
}

/// A layer in Python.
struct PythonLayer {
    name: String,
    /// Subpages of a unit.
    unit: u32,
    unit_sectors: u64,
    /// `None` after an exception.
    parts: Option<Parts>,
}

/// A canonical name without the digest.
fn short(name: &str) -> &str {
    name.split('@').next().unwrap_or_default()
}

/// Class and text of an exception.
fn described(py: Python<'_>, error: &PyErr) -> String {
    let class = error.get_type(py).name().map_or_else(|_| "exception".into(), |name| name.to_string());
    format!("{class}: {}", error.value(py))
}

/// The argument of a method of a layer, besides flash.
#[derive(Clone, Copy)]
enum Argument {
    None,
    Block(u32),
    /// A range of units: the first, and the end.
    Units(isize, isize),
}

/// The end of a drive whose layer raised an exception, which [`keep`] keeps.
const RAISED: Halt = Halt::Ended("the layer raised an exception");

impl PythonLayer {
    /// Calls `method` with flash, to change, and `argument`, for a request if one is given.
    fn call(
        &mut self,
        io: &mut Io,
        method: &str,
        request: Option<(RequestKind, Extent)>,
        argument: Argument,
    ) -> Flash<bool> {
        let Some(parts) = &self.parts else { return Err(RAISED) };
        let (result, halt) = Python::attach(|py| {
            let call = || -> PyResult<bool> {
                let found;
                let bound = match method {
                    "write" => parts.write.bind(py),
                    "read" => parts.read.bind(py),
                    _ => {
                        found = parts.layer.bind(py).getattr(method)?;
                        &found
                    }
                };
                let answer = match argument {
                    Argument::None => bound.call1((&parts.port,)),
                    Argument::Block(block) => bound.call1((&parts.port, block)),
                    Argument::Units(first, end) => bound.call1((&parts.port, PyRange::new(py, first, end)?)),
                };
                answer?.is_truthy()
            };
            parts.port.get().lend(io, request, call)
        });
        match (halt, result) {
            (Some(halt), result) => {
                if let (Halt::Refused(refusal), Err(error)) = (&halt, result) {
                    let place = self.place(method);
                    keep_caused(
                        RuleError::new_err(format!("{place}: the layer broke a rule of flash: {refusal}")),
                        error,
                    );
                }
                Err(halt)
            }
            (None, Ok(answer)) => Ok(answer),
            (None, Err(error)) if Python::attach(|py| error.is_instance_of::<NoSpace>(py)) => Err(Halt::NoSpace),
            (None, Err(error)) => {
                self.raised(method, error);
                Err(RAISED)
            }
        }
    }

    /// Keeps an exception of the layer, which decides nothing from then on.
    fn raised(&mut self, method: &str, error: PyErr) {
        self.parts = None;
        // Ctrl-C is no exception of the layer.
        if Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py)) {
            return keep(error);
        }
        let described = Python::attach(|py| described(py, &error));
        keep_caused(LayerError::new_err(format!("{}: {described}", self.place(method))), error);
    }

    /// The method, for messages.
    fn place(&self, method: &str) -> String {
        format!("{}.{method}", short(&self.name))
    }

    /// Calls the method for a request of `kind`, with the units of `extent`.
    fn serve(&mut self, io: &mut Io, kind: RequestKind, extent: Extent) -> Flash<()> {
        let method = match kind {
            RequestKind::Write => "write",
            RequestKind::Read => "read",
            RequestKind::Trim => "trim",
            RequestKind::Flush => "flush",
        };
        let (first, end) = (extent.sector / self.unit_sectors, extent.end().div_ceil(self.unit_sectors));
        self.call(io, method, Some((kind, extent)), Argument::Units(first as isize, end as isize)).map(drop)
    }

    /// Calls `method` with flash, to change.
    fn work(&mut self, io: &mut Io, method: &str) -> Flash<bool> {
        self.call(io, method, None, Argument::None)
    }

    fn moved(&self) -> Moved {
        self.parts.as_ref().map_or((0, 0), |parts| parts.port.get().moved())
    }

    /// The result of `palimpsest.layers.Io.METHOD` for the layer: bytes, figures.
    fn ask<T>(&self, method: &str, extract: impl FnOnce(Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        let parts = self.parts.as_ref()?;
        Python::attach(|py| {
            let asked = parts.port.bind(py).call_method1(method, (&parts.layer,)).and_then(extract);
            asked.map_err(keep).ok()
        })
    }
}

impl Ftl for PythonLayer {
    fn unit_subpages(&self) -> u32 {
        self.unit
    }

    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.serve(io, RequestKind::Write, extent)
    }

    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.serve(io, RequestKind::Read, extent)
    }

    fn trim(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.serve(io, RequestKind::Trim, extent)
    }

    fn flush(&mut self, io: &mut Io) -> Flash<()> {
        self.work(io, "flush").map(drop)
    }

    fn background(&mut self, io: &mut Io) -> Flash<bool> {
        self.work(io, "background")
    }

    fn relocate(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        self.call(io, "relocate", None, Argument::Block(block))
    }

    fn recover(&mut self, io: &mut Io) -> Flash<()> {
        self.work(io, "recover").map(drop)
    }

    fn check(&mut self, io: &Io) -> Result<(), String> {
        let Some(parts) = &self.parts else { return Err("the layer raised an exception".into()) };
        let ask = |py: Python<'_>| -> PyResult<Option<String>> {
            parts.port.get().show(io, || parts.port.bind(py).call_method1("check", (&parts.layer,))?.extract())
        };
        match Python::attach(ask) {
            Ok(None) => Ok(()),
            Ok(Some(found)) => Err(found),
            Err(error) => {
                self.raised("check", error);
                Err("the layer raised an exception".into())
            }
        }
    }

    fn figures(&self) -> LayerFigures {
        let figures = self.ask("figures", |figures| figures.extract::<Figures>()).unwrap_or_default();
        let moved = self.moved();
        let bytes = figures.tables.iter().map(|table| table.1).sum();
        LayerFigures {
            mapping: Mapping {
                tables: figures.tables.into_iter().map(|(name, bytes)| (interned(name), bytes)).collect(),
                peak_bytes: figures.peak_bytes.max(bytes),
            },
            gc_runs: figures.gc_runs,
            gc_erased: figures.gc_erased,
            gc_moved_subpages: moved.0,
            merges: figures.merges,
            merge_moved_subpages: moved.1,
            retired_blocks: figures.retired_blocks,
            own: figures.own.into_iter().map(|(name, count)| (interned(name), Figure::Count(count))).collect(),
            ..LayerFigures::default()
        }
    }

    fn state(&self) -> Option<&dyn State> {
        Some(self)
    }

    fn state_mut(&mut self) -> Option<&mut dyn State> {
        Some(self)
    }
}

/// The figures of a layer, as `palimpsest.layers.Io.figures` returns them.
#[derive(FromPyObject, Default)]
#[pyo3(from_item_all)]
struct Figures {
    tables: Vec<(String, u64)>,
    peak_bytes: u64,
    gc_runs: u64,
    gc_erased: u64,
    merges: u64,
    retired_blocks: u64,
    own: Vec<(String, u64)>,
}

/// `name` as a constant of the process, made once.
fn interned(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let name: &'static str = name.leak();
    names.insert(name);
    name
}

impl State for PythonLayer {
    fn save(&self, out: &mut Vec<u8>) {
        let store = |parts: &Parts| {
            Python::attach(|py| parts.port.bind(py).call_method1("store", (&parts.layer,))?.extract::<Vec<u8>>())
        };
        let stored = self.parts.as_ref().map_or(Ok(Vec::new()), store);
        (stored.map_err(lose_state).unwrap_or_default(), self.moved()).save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        let mut saved = (Vec::<u8>::new(), (0, 0));
        saved.load(from)?;
        let (stored, moved) = saved;
        let parts = self.parts.as_ref()?;
        let restore = |py: Python<'_>| {
            parts.port.get().set_moved(moved);
            let arguments = (&parts.layer, PyBytes::new(py, &stored));
            parts.port.bind(py).call_method1("restore", arguments).map(drop)
        };
        Python::attach(|py| restore(py).map_err(lose_state)).ok()
    }
}
