//! The Python module `ring_layers`: the simulator with the additional layer `ring`. Copy this crate for your own layer;
//! `docs/write-an-ftl.md` explains the layer line by line.

mod ring;

use palimpsest_lab::ftl::Entry;
use pyo3::prelude::*;

static LAYERS: &[Entry] = &[ring::ENTRY];

#[pymodule]
fn ring_layers(module: &Bound<'_, PyModule>) -> PyResult<()> {
    palimpsest::module(module, LAYERS)
}
