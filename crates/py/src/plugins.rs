//! Plug-ins: layers of libraries that installed distributions have, and short names of policies in Python.
//!
//! `palimpsest.plugins` finds them by entry points, and calls the functions below once, before the first configuration
//! is read. A library stays loaded until the process ends, because layers and keys live as long.

use crate::{InputError, policies};
use palimpsest_lab::config::schema::check_new;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::layers;
use palimpsest_lab::plugin::{Exported, Header, Host, MAGIC, SYMBOL};
use pyo3::prelude::*;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lets `palimpsest.plugins` load all plug-ins, if that has not happened.
pub fn ready(py: Python<'_>) -> PyResult<()> {
    static LOADED: AtomicBool = AtomicBool::new(false);
    if !LOADED.load(Ordering::Acquire) {
        py.import("palimpsest.plugins")?.call_method0("load")?;
        LOADED.store(true, Ordering::Release);
    }
    Ok(())
}

/// Adds the layers of a library of the distribution `owner`; returns their names. Raises InputError with the reason.
#[pyfunction]
pub fn add_library(path: &str, owner: &str) -> PyResult<Vec<&'static str>> {
    let add = |layers: &'static [Entry]| {
        policies::check_layers(layers)?;
        check_new(layers)?;
        layers::add(layers, owner)?;
        Ok(layers.iter().map(|layer| layer.name).collect())
    };
    let added = catch_unwind(|| load(path).and_then(add)).unwrap_or_else(|_| Err("the library panicked".into()));
    added.map_err(InputError::new_err)
}

/// Adds `name`, of the distribution `owner`, to the values of the key of a policy, or of `ftl.name`. Raises
/// InputError with the reason.
#[pyfunction]
pub fn add_policy(key: &str, name: &str, owner: &str) -> PyResult<()> {
    policies::name(key, name, owner).map_err(InputError::new_err)
}

/// The layers of the library at `path`.
#[allow(unsafe_code, reason = "libraries of other crates are loaded and called")]
fn load(path: &str) -> Result<&'static [Entry], String> {
    // SAFETY: the library may run code when loaded, like every installed Python package.
    let library = unsafe { libloading::Library::new(path) }.map_err(|error| one_line(&error))?;
    let library = Box::leak(Box::new(library));
    // SAFETY: only `palimpsest_layer::plugin!` exports a function of this name, and of this type.
    let exported = unsafe { library.get::<Exported>(SYMBOL) };
    let exported = exported.map_err(|_| "no layers in this library; expected palimpsest_layer::plugin!".to_owned())?;
    let header = exported();
    // SAFETY: the pointer is to a static of the library. Every layout of the header begins with the magic.
    if header.is_null() || unsafe { header.cast::<[u8; 8]>().read() } != MAGIC {
        return Err("the header has another layout; expected a plug-in built for this palimpsest".into());
    }
    // SAFETY: this layout has this magic, and is of the C ABI.
    let header: &'static Header = unsafe { &*header };
    // Equal compilers, sources, assertions and sizes, so that Rust values may cross from here on.
    header.matches()?;
    (header.connect)(Host::new())
}

fn one_line(error: &libloading::Error) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let text = causes.last().map(ToString::to_string).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
