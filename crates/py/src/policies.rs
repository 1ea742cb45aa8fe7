//! Policies in Python, which `palimpsest.policies` loads and calls: once a block is cleaned, or for some thousand
//! requests at a time. A compiled function in place of a class is called without the interpreter.
//!
//! The first exception of a policy ends the run: the policy decides nothing from then on, and [`raised`] keeps the
//! exception, because exceptions cannot pass through the core. The state of a policy is what pickle stores.
//!
//! Ignored: policies that change while a drive is in use, and the state of a compiled function. Served drives are
//! refused, because their threads would lose the exception.

use crate::{InputError, PolicyError, Resolved};
use palimpsest_lab::command::{Command, Directives};
use palimpsest_lab::geometry::Extent;
use palimpsest_lab::log::outside::Outside;
use palimpsest_lab::log::pace::{self, Chosen, Spread};
use palimpsest_lab::log::settings as log;
use palimpsest_lab::log::streams::{self, Classify};
use palimpsest_lab::log::victim::{self, Candidates, Victim};
use palimpsest_lab::rng::Rng;
use palimpsest_lab::state::{Loaded, Reader, State};
use palimpsest_lab::units::{Nanos, SECTOR_BYTES};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::cell::RefCell;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The keys of policies in Python.
const VICTIM: &str = "ftl.victim";
const CLASSIFIER: &str = "ftl.classifier";
const PACE: &str = "ftl.gc_pace";
const KEYS: [&str; 3] = [VICTIM, CLASSIFIER, PACE];

/// A policy that a plug-in has: key, name, and distribution.
type Named = (&'static str, String, String);

static NAMES: RwLock<Vec<Named>> = RwLock::new(Vec::new());

fn names() -> RwLockReadGuard<'static, Vec<Named>> {
    NAMES.read().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Takes the exception that a policy raised in this thread.
pub fn raised() -> Option<PyErr> {
    RAISED.take()
}

/// `value`, unless a policy raised an exception in this thread.
pub fn checked<T>(value: T) -> PyResult<T> {
    raised().map_or(Ok(value), Err)
}

/// Refuses a drive with a policy in Python.
pub fn refuse(resolved: &Resolved) -> PyResult<()> {
    let values = resolved.to_json();
    for key in KEYS {
        if let Some(text) = values["ftl"][&key[4..]].as_str().filter(|text| is_python(key, text)) {
            let what = format!("{key} = {text}: programs cannot use a drive with a policy in Python");
            return Err(InputError::new_err(format!("{what}; expected a built-in policy")));
        }
    }
    Ok(())
}

/// True if a policy raised an exception in this thread.
pub fn has_raised() -> bool {
    RAISED.with_borrow(Option::is_some)
}

/// Keeps the first exception.
fn keep(error: PyErr) {
    RAISED.with_borrow_mut(|raised| {
        raised.get_or_insert(error);
    });
}

/// Adds policies in Python to those of the process.
pub fn add() {
    let read = |text: &str| read(VICTIM, text);
    let is_new = victim::OUTSIDE.set(Outside { form: || forms(VICTIM), read, build: build_victim }).is_ok();
    let read = |text: &str| self::read(CLASSIFIER, text);
    let outside = Outside { form: || forms(CLASSIFIER), read, build: build_classifier };
    let is_new = is_new && streams::OUTSIDE.set(outside).is_ok();
    let read = |text: &str| self::read(PACE, text);
    let is_new = is_new && pace::OUTSIDE.set(Outside { form: || forms(PACE), read, build: build_pace }).is_ok();
    assert!(is_new, "policies are added once");
}

fn helper<'py>(py: Python<'py>, function: &str, key: &str, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("palimpsest.policies")?.call_method1(function, (key, text))
}

/// Adds `name`, of the distribution `owner`, to the values of `key`; `palimpsest.plugins` knows the class.
pub fn name(key: &str, name: &str, owner: &str) -> std::result::Result<(), String> {
    let Some(key) = KEYS.into_iter().find(|known| *known == key) else {
        return Err(format!("no policy of {key} is in Python; expected {}", KEYS.join(", ")));
    };
    let mut built_in = log::keys().into_iter().filter(|known| known.name == key);
    let is_built_in = built_in.any(|known| known.value_type.words().contains(&name));
    let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
    let other = names.iter().find(|(other, known, _)| *other == key && known == name).map(|(.., owner)| owner.as_str());
    if let Some(other) = is_built_in.then_some("palimpsest").or(other) {
        return Err(format!("{other} has a policy {key} = {name} already; expected another name"));
    }
    names.push((key, name.to_owned(), owner.to_owned()));
    Ok(())
}

fn is_named(key: &str, name: &str) -> bool {
    names().iter().any(|(other, known, _)| *other == key && known == name)
}

/// The forms of policies in Python, for messages.
fn forms(key: &str) -> String {
    let named: String =
        names().iter().filter(|(other, ..)| *other == key).map(|(_, name, _)| format!("{name}, ")).collect();
    named + "FILE.py:CLASS"
}

fn is_python(key: &str, text: &str) -> bool {
    let name = text.split('@').next().unwrap_or_default();
    text.contains(".py:") || text.starts_with("object:") || is_named(key, name)
}

fn read(key: &str, text: &str) -> Option<std::result::Result<String, String>> {
    let read = |py: Python<'_>| helper(py, "read", key, text)?.extract::<String>();
    is_python(key, text).then(|| Python::attach(|py| read(py).map_err(|error| error.value(py).to_string())))
}

/// A policy in Python, called through `palimpsest.policies.Caller`; `None` after an exception.
struct Policy(Option<Py<PyAny>>);

impl Policy {
    /// The policy of `key` that `text` names.
    fn build(py: Python<'_>, key: &str, text: &str) -> Policy {
        Policy(helper(py, "build", key, text).map(Bound::unbind).map_err(keep).ok())
    }

    /// The result of `call`; `None`, for good, after an exception.
    fn call<T>(&mut self, call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<T>) -> Option<T> {
        let policy = self.0.as_ref()?;
        match Python::attach(|py| call(py, policy)) {
            Ok(value) => Some(value),
            Err(error) => {
                keep(error);
                self.0 = None;
                None
            }
        }
    }
}

impl State for Policy {
    fn save(&self, out: &mut Vec<u8>) {
        let store =
            |policy: &Py<PyAny>| Python::attach(|py| policy.bind(py).call_method0("store")?.extract::<Vec<u8>>());
        let stored = self.0.as_ref().map_or(Ok(Vec::new()), store);
        stored
            .unwrap_or_else(|error| {
                keep(error);
                Vec::new()
            })
            .save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        let mut stored = Vec::<u8>::new();
        stored.load(from)?;
        self.call(|py, policy| policy.call_method1(py, "restore", (PyBytes::new(py, &stored),)).map(drop))
    }
}

/// Columns of equal length as bytes, which numpy reads as one array of 64-bit integers.
fn bytes_of<'py>(py: Python<'py>, columns: &[Vec<i64>; 4]) -> PyResult<Bound<'py, PyBytes>> {
    let length = 8 * columns[0].len();
    PyBytes::new_with(py, 4 * length, |bytes| {
        for (part, column) in bytes.chunks_exact_mut(length.max(1)).zip(columns) {
            for (place, value) in part.chunks_exact_mut(8).zip(column) {
                place.copy_from_slice(&value.to_ne_bytes());
            }
        }
        Ok(())
    })
}

fn build_victim(text: &str) -> Option<Box<dyn Victim>> {
    is_python(VICTIM, text).then(|| {
        Python::attach(|py| {
            let policy = Policy::build(py, VICTIM, text);
            let read = |name| policy.0.as_ref().and_then(|policy| policy.getattr(py, name).ok());
            let takes_full = read("takes_full").is_some_and(|value| value.is_truthy(py).unwrap_or(false));
            let address = read("address").and_then(|value| value.extract::<usize>(py).ok());
            Box::new(PythonVictim { policy, takes_full, address, columns: Default::default() }) as Box<dyn Victim>
        })
    })
}

/// A victim policy in Python.
struct PythonVictim {
    policy: Policy,
    takes_full: bool,
    /// Of a compiled function.
    address: Option<usize>,
    /// Of the candidates: number, valid units, age, erases.
    columns: [Vec<i64>; 4],
}

impl State for PythonVictim {
    fn save(&self, out: &mut Vec<u8>) {
        self.policy.save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        self.policy.load(from)
    }
}

impl Victim for PythonVictim {
    fn choose(&mut self, Candidates { blocks, plane, erases }: Candidates<'_>, _rng: &mut Rng) -> Option<u32> {
        let (units, now, takes_full) = (blocks.units_per_block(), blocks.closings(), self.takes_full);
        let [numbers, valid, ages, erased] = &mut self.columns;
        numbers.clear();
        let gains = |&block: &u32| takes_full || blocks.valid_count(block) < units;
        numbers.extend(blocks.closed_by_number(plane).filter(gains).map(i64::from));
        if numbers.is_empty() {
            return None;
        }
        let fill = |column: &mut Vec<i64>, value: &dyn Fn(u32) -> i64| {
            column.clear();
            column.extend(numbers.iter().map(|&block| value(block as u32)));
        };
        fill(valid, &|block| blocks.valid_count(block).into());
        fill(ages, &|block| (now - blocks.closed_at(block) + 1) as i64);
        fill(erased, &|block| erases(block).into());
        let (columns, address) = (&self.columns, self.address);
        let chosen = self.policy.call(|py, policy| match address {
            Some(address) => call_compiled(address, plane, units, columns),
            None => {
                let arguments = (plane, units, bytes_of(py, columns)?);
                policy.call_method1(py, "choose", arguments)?.extract::<usize>(py)
            }
        })?;
        Some(self.columns[0][chosen] as u32)
    }

    fn may_choose_full(&self) -> bool {
        self.takes_full
    }
}

/// The function of C that chooses a victim: plane, units of a block, number of candidates, their columns.
type Choose = extern "C" fn(i64, i64, i64, *const i64, *const i64, *const i64, *const i64) -> i64;

/// The index that the compiled function at `address` chooses.
#[allow(unsafe_code, reason = "the user states that a function of this type is at the address")]
fn call_compiled(address: usize, plane: u32, units: u32, columns: &[Vec<i64>; 4]) -> PyResult<usize> {
    // SAFETY: `palimpsest.policies` accepts only function pointers of this type, and what states to be one (numba).
    let choose = unsafe { std::mem::transmute::<usize, Choose>(address) };
    let [block, valid, age, erases] = columns.each_ref().map(|column| column.as_ptr());
    let count = columns[0].len();
    let chosen = choose(plane.into(), units.into(), count as i64, block, valid, age, erases);
    usize::try_from(chosen).ok().filter(|&chosen| chosen < count).ok_or_else(|| {
        let expected = format!("expected 0 to {}", count - 1);
        PolicyError::new_err(format!(
            "{VICTIM}: the compiled function, plane {plane}, {count} closed blocks: index {chosen}; {expected}"
        ))
    })
}

fn build_classifier(text: &str) -> Option<Box<dyn Classify>> {
    let build = || Python::attach(|py| PythonClassifier(Policy::build(py, CLASSIFIER, text)));
    is_python(CLASSIFIER, text).then(|| Box::new(build()) as Box<dyn Classify>)
}

/// A classifier in Python.
struct PythonClassifier(Policy);

impl State for PythonClassifier {
    fn save(&self, out: &mut Vec<u8>) {
        self.0.save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        self.0.load(from)
    }
}

impl Classify for PythonClassifier {
    fn stream_of(&mut self, _extent: Extent, directives: Directives) -> u32 {
        directives.class.into()
    }

    fn classify(&mut self, arrivals: &[Nanos], commands: &mut [Command], last: u32) {
        let kinds: Vec<u8> = commands.iter().map(|command| command.kind as u8).collect();
        let of = |value: &dyn Fn(&Command) -> u64| commands.iter().map(|command| value(command) as i64).collect();
        let columns = [
            arrivals.iter().map(|&time| time as i64).collect(),
            of(&|command| command.extent.sector * SECTOR_BYTES),
            of(&|command| u64::from(command.extent.sectors) * SECTOR_BYTES),
            of(&|command| command.directives.owner.into()),
        ];
        let classes = self.0.call(|py, policy| {
            let arguments = (last + 1, PyBytes::new(py, &kinds), bytes_of(py, &columns)?);
            Ok(policy.call_method1(py, "classify", arguments)?.extract::<PyBackedBytes>(py)?)
        });
        for (command, &class) in commands.iter_mut().zip(classes.iter().flat_map(|classes| classes.iter())) {
            command.directives.class = class;
        }
    }
}

fn build_pace(text: &str) -> Option<Box<dyn Spread>> {
    let build = || Python::attach(|py| PythonPace(Policy::build(py, PACE, text)));
    is_python(PACE, text).then(|| Box::new(build()) as Box<dyn Spread>)
}

/// A pace of collection in Python.
struct PythonPace(Policy);

impl State for PythonPace {
    fn save(&self, out: &mut Vec<u8>) {
        self.0.save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        self.0.load(from)
    }
}

impl Spread for PythonPace {
    fn spread(&mut self, &Chosen { plane, now, moves, pages, free, load, most }: &Chosen) -> u32 {
        let spread = self.0.call(|py, policy| {
            policy.call_method1(py, "spread", (plane, now, moves, pages, free, load, most))?.extract::<u32>(py)
        });
        spread.unwrap_or(most)
    }
}
