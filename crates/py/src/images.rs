//! Images of drives.

use crate::{raise, read_file};
use palimpsest_lab::run::image::resolve_to_keep;
use palimpsest_server::image;
use pyo3::prelude::*;
use std::path::Path;

/// The seed of the image at `path`; None where there is no image.
#[pyfunction]
#[pyo3(signature = (path))]
pub fn image_seed(path: &str) -> PyResult<Option<u64>> {
    Ok(image::configuration(Path::new(path)).map_err(raise)?.map(|(_, seed)| seed))
}

/// Settings that a drive needs beside its own to be kept in an image.
#[pyfunction]
#[pyo3(signature = (ssd, ftl, overrides))]
pub fn image_settings(ssd: &str, ftl: Option<&str>, overrides: Vec<String>) -> PyResult<Vec<&'static str>> {
    Ok(resolve_to_keep(ssd, ftl, &overrides, &read_file).map_err(raise)?.1)
}

/// What the image at `path` holds (`info`), whether all of it matches its checksums (`check`), or what giving back space that nothing needs came
/// to (`compact`), as JSON.
#[pyfunction]
#[pyo3(signature = (what, path))]
pub fn look_at_image(py: Python<'_>, what: &str, path: &str) -> PyResult<String> {
    let path = Path::new(path);
    let looked = py.detach(|| match what {
        "info" => image::info(path),
        "check" => image::check(path),
        _ => image::compact(path),
    });
    Ok(looked.map_err(raise)?.to_string())
}
