//! Victim policies in Python, which `palimpsest.policies` loads and calls; once a block is cleaned, not once a request.
//!
//! The first exception of a policy ends the run: the policy chooses no victim from then on, and [`raised`] keeps the
//! exception, because exceptions cannot pass through the core. The state of a policy is what pickle stores.
//!
//! Ignored: policies that change while a drive is in use. Served drives are refused, because their threads would lose
//! the exception.

use crate::{InputError, Resolved};
use palimpsest_lab::log::victim::{self, Candidates, Outside, Victim};
use palimpsest_lab::rng::Rng;
use palimpsest_lab::state::{Loaded, Reader, State};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::cell::RefCell;

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
    match resolved.to_json()["ftl"]["victim"].as_str() {
        Some(text) if is_python(text) => {
            let what = format!("ftl.victim = {text}: programs cannot use a drive with a policy in Python");
            Err(InputError::new_err(format!("{what}; expected a policy that `palimpsest list victims` prints")))
        }
        _ => Ok(()),
    }
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
    victim::add(Outside { form: "FILE.py:CLASS", read, build });
}

fn helper<'py>(py: Python<'py>, function: &str, argument: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("palimpsest.policies")?.call_method1(function, (argument,))
}

fn is_python(text: &str) -> bool {
    text.contains(".py:") || text.starts_with("object:")
}

fn read(text: &str) -> Option<Result<String, String>> {
    let read = |py: Python<'_>| helper(py, "read", text)?.extract::<String>();
    is_python(text).then(|| Python::attach(|py| read(py).map_err(|error| error.value(py).to_string())))
}

fn build(text: &str) -> Option<Box<dyn Victim>> {
    is_python(text).then(|| {
        Python::attach(|py| {
            let built = helper(py, "build", text).map(Bound::unbind).map_err(keep);
            let policy = built.ok();
            let takes_full = |policy: &Py<PyAny>| policy.getattr(py, "takes_full")?.is_truthy(py);
            let takes_full = policy.as_ref().is_some_and(|policy| takes_full(policy).unwrap_or(false));
            Box::new(PythonVictim { policy, takes_full }) as Box<dyn Victim>
        })
    })
}

/// A policy in Python, called through `palimpsest.policies.Caller`.
struct PythonVictim {
    /// `None` after an exception.
    policy: Option<Py<PyAny>>,
    takes_full: bool,
}

impl PythonVictim {
    /// The result of `call`; `None`, for good, after an exception.
    fn call<T>(&mut self, call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<T>) -> Option<T> {
        let policy = self.policy.as_ref()?;
        match Python::attach(|py| call(py, policy)) {
            Ok(value) => Some(value),
            Err(error) => {
                keep(error);
                self.policy = None;
                None
            }
        }
    }
}

impl State for PythonVictim {
    fn save(&self, out: &mut Vec<u8>) {
        let store =
            |policy: &Py<PyAny>| Python::attach(|py| policy.bind(py).call_method0("store")?.extract::<Vec<u8>>());
        let stored = self.policy.as_ref().map_or(Ok(Vec::new()), store);
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

impl Victim for PythonVictim {
    fn choose(&mut self, Candidates { blocks, plane, erases }: Candidates<'_>, _rng: &mut Rng) -> Option<u32> {
        let (units, now, takes_full) = (blocks.units_per_block(), blocks.closings(), self.takes_full);
        let gains = |&block: &u32| takes_full || blocks.valid_count(block) < units;
        let mut closed: Vec<u32> = blocks.closed(plane).iter().copied().filter(gains).collect();
        closed.sort_unstable();
        if closed.is_empty() {
            return None;
        }
        let column = |value: &dyn Fn(u32) -> u64| -> Vec<u8> {
            closed.iter().flat_map(|&block| (value(block) as i64).to_ne_bytes()).collect()
        };
        let columns = [
            column(&|block| block.into()),
            column(&|block| blocks.valid_count(block).into()),
            column(&|block| now - blocks.closed_at(block) + 1),
            column(&|block| erases(block).into()),
        ];
        let chosen = self.call(|py, policy| {
            let [block, valid, age, erases] = columns.each_ref().map(|column| PyBytes::new(py, column));
            policy.call_method1(py, "choose", (plane, units, block, valid, age, erases))?.extract::<usize>(py)
        })?;
        Some(closed[chosen])
    }

    fn may_choose_full(&self) -> bool {
        self.takes_full
    }
}
