//! Policies in Python, which `palimpsest.policies` loads and calls: where decisions are rare, or for some thousand
//! requests at a time. A compiled function in place of a class is called without the interpreter.
//!
//! The first exception of a policy ends the run: the policy decides nothing from then on, and [`raised`] keeps the
//! exception, because exceptions cannot pass through the core. `palimpsest.plain` stores the state of a policy; a
//! policy whose state has no form runs, but the state is not kept ([`unkept`]).
//!
//! Ignored: policies that change while a drive is in use, and the state of a compiled function. Served drives are
//! refused, because their threads would lose the exception.

use crate::{InputError, PolicyError, Resolved, RuleError};
use palimpsest_lab::command::{Command, Directives};
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::ftl::llh::threshold::{self, Adapt, Cleaned};
use palimpsest_lab::ftl::mga::admission::{self, Admit};
use palimpsest_lab::ftl::mga::limits::{self, Limit, Merged};
use palimpsest_lab::geometry::Extent;
use palimpsest_lab::layers::owner_of;
use palimpsest_lab::log::outside::{PROGRAM, Program, is_outside};
use palimpsest_lab::log::pace::{self, Chosen, Spread};
use palimpsest_lab::log::rotation::{self, Place, Planes};
use palimpsest_lab::log::settings as log;
use palimpsest_lab::log::streams::{self, Classify};
use palimpsest_lab::log::victim::{self, Candidates, Victim};
use palimpsest_lab::rng::Rng;
use palimpsest_lab::state::{Loaded, Reader, State};
use palimpsest_lab::units::{Nanos, SECTOR_BYTES};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::cell::{Cell, RefCell};
use std::result::Result;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The key of layers in Python.
pub const LAYER: &str = "ftl.name";

/// A policy or a layer that a plug-in has: key, name, and distribution.
type Named = (&'static str, String, String);

static NAMES: RwLock<Vec<Named>> = RwLock::new(Vec::new());

fn names() -> RwLockReadGuard<'static, Vec<Named>> {
    NAMES.read().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    static UNKEPT: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

macro_rules! added {
    ($($added:path),+ $(,)?) => {
        /// The keys of policies in Python.
        fn keys() -> Vec<&'static str> {
            vec![$($added.key),+]
        }

        /// Adds policies in Python to the process.
        pub fn add() {
            let program = Program { forms, names: names_policy, read, has_failed: has_raised };
            let is_new = PROGRAM.set(program).is_ok();
            $(let is_new = $added.build.set(|key, text| Box::new(Policy::build(key, text))).is_ok() && is_new;)+
            assert!(is_new, "policies are added once");
        }
    };
}

added!(
    victim::OUTSIDE,
    streams::OUTSIDE,
    pace::OUTSIDE,
    rotation::OUTSIDE,
    admission::OUTSIDE,
    limits::OUTSIDE,
    threshold::OUTSIDE,
);

/// Takes the exception that a policy raised in this thread; `place` names the request and the work of the drive.
pub fn raised(place: Option<&str>) -> Option<PyErr> {
    let error = RAISED.take()?;
    Python::attach(|py| match place {
        Some(place) if error.is_instance_of::<PolicyError>(py) || error.is_instance_of::<RuleError>(py) => {
            let text = format!("{}; {place}", error.value(py));
            let placed = error.get_type(py).call1((text,)).map_or_else(|error| error, PyErr::from_value);
            placed.set_cause(py, error.cause(py));
            Some(placed)
        }
        _ => Some(error),
    })
}

/// `value`, unless a policy raised an exception in this thread.
pub fn checked<T>(value: T) -> PyResult<T> {
    raised(None).map_or(Ok(value), Err)
}

/// Refuses a drive with a policy or a layer in Python.
pub fn refuse(resolved: &Resolved) -> PyResult<()> {
    let values = resolved.to_json();
    for key in keys().into_iter().chain([LAYER]) {
        if let Some(text) = values["ftl"][&key[4..]].as_str().filter(|text| is_outside(key, text)) {
            let what = format!("{key} = {text}: programs cannot use a drive with code in Python");
            return Err(InputError::new_err(format!("{what}; expected built-in policies and layers")));
        }
    }
    Ok(())
}

/// True if a policy raised an exception in this thread.
pub fn has_raised() -> bool {
    RAISED.with_borrow(Option::is_some)
}

/// Keeps the first exception. One that would end Python, such as `sys.exit` raises, becomes an error of the policy.
pub fn keep(error: PyErr) {
    let ends = Python::attach(|py| {
        !error.is_instance_of::<PyException>(py) && !error.is_instance_of::<PyKeyboardInterrupt>(py)
    });
    if ends {
        return keep_caused(PolicyError::new_err(format!("code of the user ended Python: {error}")), error);
    }
    RAISED.with_borrow_mut(|raised| {
        raised.get_or_insert(error);
    });
}

/// Keeps `error`, which `cause` caused, as [`keep`].
pub fn keep_caused(error: PyErr, cause: PyErr) {
    Python::attach(|py| error.set_cause(py, Some(cause)));
    keep(error);
}

/// Keeps `error`, for which the state of code in Python was not stored or loaded. Other exceptions end the run.
pub fn lose_state(error: PyErr) {
    match Python::attach(|py| error.is_instance_of::<PolicyError>(py)) {
        true => UNKEPT.with_borrow_mut(|unkept| {
            unkept.get_or_insert(error);
        }),
        false => keep(error),
    }
}

/// Takes the first error since the last call for which a state was not stored or loaded in this thread.
pub fn unkept() -> Option<PyErr> {
    UNKEPT.take()
}

/// Whether `text` names code in Python.
pub fn is_python(text: &str) -> bool {
    text.contains(".py:") || text.starts_with("object:")
}

/// Adds `name`, of the distribution `owner`, to the values of `key`; `palimpsest.plugins` knows the class.
pub fn name(key: &str, name: &str, owner: &str) -> Result<(), String> {
    let Some(key) = keys().into_iter().chain([LAYER]).find(|known| *known == key) else {
        return Err(format!("no policy of {key} is in Python; expected {}", keys().join(", ")));
    };
    let mut built_in = log::keys().into_iter().filter(|known| known.name == key);
    let is_built_in = built_in.any(|known| known.value_type.words().contains(&name));
    let owner_of_layer = if key == LAYER { owner_of(name) } else { None };
    let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
    let named = names.iter().find(|(other, known, _)| *other == key && known == name).map(|(.., owner)| owner.clone());
    if let Some(other) = is_built_in.then(|| "palimpsest".to_owned()).or(owner_of_layer).or(named) {
        let taken = if key == LAYER { format!("layer called {name}") } else { format!("policy {key} = {name}") };
        return Err(format!("{other} has a {taken} already; expected another name"));
    }
    names.push((key, name.to_owned(), owner.to_owned()));
    Ok(())
}

/// Refuses the names of layers that a plug-in has in Python.
pub fn check_layers(entries: &[Entry]) -> Result<(), String> {
    let named = entries
        .iter()
        .find_map(|entry| names().iter().find(|(key, name, _)| *key == LAYER && name == entry.name).cloned());
    named.map_or(Ok(()), |(_, name, owner)| {
        Err(format!("{owner} has a layer called {name} already; expected another name"))
    })
}

/// The forms of policies of `key` in Python, for messages.
fn forms(key: &str) -> String {
    let named: String =
        names().iter().filter(|(other, ..)| *other == key).map(|(_, name, _)| format!("{name}, ")).collect();
    named + "FILE.py:CLASS"
}

/// Whether `text` names code in Python for `key`, a layer included.
pub fn names_policy(key: &str, text: &str) -> bool {
    let name = text.split('@').next().unwrap_or_default();
    is_python(text) || names().iter().any(|(other, known, _)| *other == key && known == name)
}

fn helper<'py>(py: Python<'py>, function: &str, key: &str, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("palimpsest.policies")?.call_method1(function, (key, text))
}

fn read(key: &str, text: &str) -> Result<String, String> {
    let read = |py: Python<'_>| helper(py, "read", key, text)?.extract::<String>();
    Python::attach(|py| read(py).map_err(|error| error.value(py).to_string()))
}

/// A policy in Python, called through `palimpsest.policies.Caller`.
#[derive(Default)]
struct Policy {
    /// `None` after an exception.
    caller: Option<Py<PyAny>>,
    takes_full: bool,
    /// Of a compiled function.
    address: Option<usize>,
    /// An array of the caller, refilled for each call.
    rows: Option<PyBuffer<i64>>,
}

impl Policy {
    /// The policy of `key` that `text` names.
    fn build(key: &str, text: &str) -> Policy {
        let build = |py: Python<'_>| {
            let caller = helper(py, "build", key, text)?;
            let takes_full = caller.getattr("takes_full")?.extract()?;
            let address = caller.getattr("address")?.extract()?;
            Ok(Policy { caller: Some(caller.unbind()), takes_full, address, rows: None })
        };
        Python::attach(build).map_err(keep).unwrap_or_default()
    }

    /// The result of `call`, which gets the caller and the array; `None`, for good, after an exception.
    fn call<T>(&mut self, call: impl FnOnce(&Bound<'_, PyAny>, &mut Rows) -> PyResult<T>) -> Option<T> {
        let caller = self.caller.as_ref()?;
        match Python::attach(|py| call(caller.bind(py), &mut self.rows)) {
            Ok(value) => Some(value),
            Err(error) => {
                keep(error);
                self.caller = None;
                None
            }
        }
    }
}

type Rows = Option<PyBuffer<i64>>;

/// The array of `caller`, with `rows` rows of at least `count` numbers, and the length of a row.
#[allow(unsafe_code, reason = "numpy has the array")]
fn rows_of<'a>(
    caller: &Bound<'a, PyAny>,
    array: &'a mut Rows,
    rows: usize,
    count: usize,
) -> PyResult<(&'a [Cell<i64>], usize)> {
    if array.as_ref().is_none_or(|array| array.item_count() < rows * count) {
        *array = Some(PyBuffer::get(&caller.call_method1("grow", (rows, count))?)?);
    }
    let cells = array.as_ref().filter(|array| !array.readonly()).and_then(PyBuffer::as_slice_ptr);
    let cells = cells.ok_or_else(|| PolicyError::new_err("the array cannot be written"))?;
    // SAFETY: the buffer keeps the array alive; numbers may change through other references, so they are cells.
    let cells = unsafe { &*(cells.as_ptr() as *const [Cell<i64>]) };
    Ok((cells, cells.len() / rows))
}

impl State for Policy {
    fn save(&self, out: &mut Vec<u8>) {
        let store =
            |caller: &Py<PyAny>| Python::attach(|py| caller.bind(py).call_method0("store")?.extract::<Vec<u8>>());
        let stored = self.caller.as_ref().map_or(Ok(Vec::new()), store);
        stored.map_err(lose_state).unwrap_or_default().save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        let mut stored = Vec::<u8>::new();
        stored.load(from)?;
        let caller = self.caller.as_ref()?;
        let restore = |py: Python<'_>| caller.bind(py).call_method1("restore", (PyBytes::new(py, &stored),)).map(drop);
        Python::attach(|py| restore(py).map_err(lose_state)).ok()
    }
}

impl Victim for Policy {
    fn choose(&mut self, Candidates { blocks, plane, erases }: Candidates<'_>, _rng: &mut Rng) -> Option<u32> {
        let (units, now, takes_full) = (blocks.units_per_block(), blocks.closings(), self.takes_full);
        let address = self.address;
        let choose = |caller: &Bound<'_, PyAny>, array: &mut Rows| {
            let (rows, length) = rows_of(caller, array, 4, blocks.closed(plane).len().max(1))?;
            let mut count = 0;
            for block in blocks.closed_by_number(plane) {
                let valid = blocks.valid_count(block);
                if takes_full || valid < units {
                    let age = now - blocks.closed_at(block) + 1;
                    rows[count].set(block.into());
                    rows[length + count].set(valid.into());
                    rows[2 * length + count].set(age as i64);
                    rows[3 * length + count].set(erases(block).into());
                    count += 1;
                }
            }
            if count == 0 {
                return Ok(None);
            }
            let chosen = match address {
                Some(address) => {
                    call_compiled(address, plane, units, count, [0, 1, 2, 3].map(|row| &rows[row * length..]))?
                }
                None => caller.call_method1("choose", (plane, units, count))?.extract::<usize>()?,
            };
            Ok(Some(rows[chosen].get() as u32))
        };
        self.call(choose)?
    }

    fn may_choose_full(&self) -> bool {
        self.takes_full
    }
}

/// The function of C that chooses a victim: plane, units of a block, number of candidates, their columns.
type Choose = extern "C" fn(i64, i64, i64, *const i64, *const i64, *const i64, *const i64) -> i64;

/// The index that the compiled function at `address` chooses among `count` blocks, given their columns.
#[allow(unsafe_code, reason = "the user states that a function of this type is at the address")]
fn call_compiled(address: usize, plane: u32, units: u32, count: usize, columns: [&[Cell<i64>]; 4]) -> PyResult<usize> {
    // SAFETY: `palimpsest.policies` accepts only function pointers of this type, and objects that state to be one
    // (numba).
    let choose = unsafe { std::mem::transmute::<usize, Choose>(address) };
    let [block, valid, age, erases] = columns.map(|column| column.as_ptr().cast());
    let chosen = choose(plane.into(), units.into(), count as i64, block, valid, age, erases);
    usize::try_from(chosen).ok().filter(|&chosen| chosen < count).ok_or_else(|| {
        let expected = format!("expected 0 to {}", count - 1);
        PolicyError::new_err(format!(
            "{}: the compiled function, plane {plane}, {count} closed blocks: index {chosen}; {expected}",
            victim::OUTSIDE.key
        ))
    })
}

/// Requests as bytes: kinds, and 64-bit columns of arrivals, offsets, sizes and owners, which numpy reads as arrays.
fn bytes_of<'py>(
    py: Python<'py>,
    arrivals: &[Nanos],
    commands: &[Command],
) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
    let kinds: Vec<u8> = commands.iter().map(|command| command.kind as u8).collect();
    let of = |value: fn(&Command) -> u64| commands.iter().flat_map(move |command| value(command).to_ne_bytes());
    let columns: Vec<u8> = arrivals
        .iter()
        .flat_map(|time| time.to_ne_bytes())
        .chain(of(|command| command.extent.sector * SECTOR_BYTES))
        .chain(of(|command| u64::from(command.extent.sectors) * SECTOR_BYTES))
        .chain(of(|command| command.directives.owner.into()))
        .collect();
    (PyBytes::new(py, &kinds), PyBytes::new(py, &columns))
}

impl Policy {
    /// Sets the classes of `commands` to the bytes that `method` returns, given `first` and the requests.
    fn set_classes(&mut self, method: &str, first: f64, arrivals: &[Nanos], commands: &mut [Command]) {
        let classes = self.call(|caller, _| {
            let (kinds, columns) = bytes_of(caller.py(), arrivals, commands);
            Ok(caller.call_method1(method, (first, kinds, columns))?.extract::<PyBackedBytes>()?)
        });
        for (command, &class) in commands.iter_mut().zip(classes.iter().flat_map(|classes| classes.iter())) {
            command.directives.class = class;
        }
    }
}

impl Classify for Policy {
    fn stream_of(&mut self, _extent: Extent, directives: Directives) -> u32 {
        directives.class.into()
    }

    fn classify(&mut self, arrivals: &[Nanos], commands: &mut [Command], last: u32) {
        self.set_classes("classify", f64::from(last + 1), arrivals, commands);
    }
}

impl Admit for Policy {
    fn admit(&mut self, arrivals: &[Nanos], commands: &mut [Command], free: f64) {
        self.set_classes("admit", free, arrivals, commands);
    }
}

impl Spread for Policy {
    fn spread(&mut self, &Chosen { plane, now, moves, pages, free, load, most }: &Chosen) -> u32 {
        let arguments = (plane, now, moves, pages, free, load, most);
        self.call(|caller, _| caller.call_method1("spread", arguments)?.extract()).unwrap_or(most)
    }
}

impl Place for Policy {
    fn place(&mut self, &Planes { page, stream, next, now, ref free, ref loads, ref lost }: &Planes) -> Vec<u32> {
        let place = |caller: &Bound<'_, PyAny>, array: &mut Rows| {
            let (rows, length) = rows_of(caller, array, 3, free.len())?;
            for plane in 0..free.len() {
                rows[plane].set(free[plane].into());
                rows[length + plane].set(loads[plane].into());
                rows[2 * length + plane].set(lost[plane].into());
            }
            caller.call_method1("place", (page, stream, next, now))?.extract()
        };
        self.call(place).unwrap_or_default()
    }
}

impl Limit for Policy {
    fn limits(&mut self, reads: u32, &Merged { subpages, now, free, merges, moved }: &Merged) -> Option<Vec<u32>> {
        self.call(|caller, _| caller.call_method1("limits", (reads, subpages, now, free, merges, moved))?.extract())
    }
}

impl Adapt for Policy {
    fn adapt(&mut self, victim: &Cleaned) -> Option<u32> {
        let &Cleaned { bank, now, valid, units, threshold, most, waiting, clean } = victim;
        let arguments = (bank, now, valid, units, threshold, most, waiting, clean);
        self.call(|caller, _| caller.call_method1("adapt", arguments)?.extract())
    }
}
