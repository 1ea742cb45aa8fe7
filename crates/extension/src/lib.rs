//! The Python module `palimpsest._core`: the bindings with the layers of the registry, and no others.
//!
//! A separate library, like `examples/ring`: both link the same bindings, which are compiled once.

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    palimpsest_py::module(module, &[])
}
