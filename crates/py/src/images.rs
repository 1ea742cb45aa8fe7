//! Images of drives.

use crate::{raise, read_file};
use palimpsest_lab::run::image::resolve_to_keep;
use palimpsest_server::image;
use pyo3::prelude::*;
use std::path::Path;

/// The seed of the image at `path`; None without an image.
#[pyfunction]
pub fn image_seed(path: &str) -> PyResult<Option<u64>> {
    Ok(image::configuration(Path::new(path)).map_err(raise)?.map(|(_, seed)| seed))
}

/// Settings that a drive needs in addition before an image can keep the drive.
#[pyfunction]
pub fn image_settings(ssd: &str, ftl: Option<&str>, overrides: Vec<String>) -> PyResult<Vec<&'static str>> {
    Python::attach(crate::plugins::ready)?;
    Ok(resolve_to_keep(ssd, ftl, &overrides, &read_file).map_err(raise)?.1)
}

/// The contents of the image at `path` (`info`), the result of a check of checksums (`check`), or the space that was
/// returned (`compact`), as JSON.
#[pyfunction]
pub fn look_at_image(py: Python<'_>, what: &str, path: &str) -> PyResult<String> {
    let path = Path::new(path);
    let looked = py.detach(|| match what {
        "info" => image::info(path),
        "check" => image::check(path),
        _ => image::compact(path),
    });
    Ok(looked.map_err(raise)?.to_string())
}
