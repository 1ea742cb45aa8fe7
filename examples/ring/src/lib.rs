//! The Python module `ring_layers`: the simulator with the layer `ring` beside its own. A crate to copy for a layer of yours;
//! `docs/write-an-ftl.md` explains the layer line by line.

mod ring;

use palimpsest_lab::ftl::Entry;
use pyo3::prelude::*;

static LAYERS: &[Entry] = &[ring::ENTRY];

#[pymodule]
fn ring_layers(module: &Bound<'_, PyModule>) -> PyResult<()> {
    palimpsest::module(module, LAYERS)
}
