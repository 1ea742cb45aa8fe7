//! Bit error rates and lives of the blocks of a part.

use crate::{named, resolve};
use palimpsest_lab::nand::part::Part;
use palimpsest_lab::nand::wear::{Bias, Wear};
use pyo3::prelude::*;

fn part(name: &str, overrides: &[String]) -> PyResult<Part> {
    let mut set = vec![format!("ssd.part={name}")];
    set.extend_from_slice(overrides);
    Ok(resolve("default", None, &set)?.drive.part)
}

fn model(part: &Part, bias: &str) -> PyResult<Wear> {
    let biases = [("none", Bias::None), ("reprogram", Bias::Reprogram), ("voltage", Bias::Voltage)];
    Ok(Wear::new(part, named("bias", bias, &biases)?))
}

/// The raw bit error rate after each of `cycles` of a block of `part` that is biased up to the share `window` of the
/// endurance.
#[pyfunction]
pub fn bit_error_rates(
    part_name: &str,
    overrides: Vec<String>,
    bias: &str,
    window: f64,
    cycles: Vec<f64>,
) -> PyResult<Vec<f64>> {
    let part = part(part_name, &overrides)?;
    let wear = model(&part, bias)?;
    let window = window * f64::from(part.endurance);
    Ok(cycles.into_iter().map(|cycles| wear.rate_after(cycles, window)).collect())
}

/// The life of a block of `part` with the share `biased` of cycles biased up to the share `window` of the endurance:
/// endurance, cycles until the limit of bit errors, true if the last cycle is biased, lost share of the endurance.
#[pyfunction]
pub fn life(
    part_name: &str,
    overrides: Vec<String>,
    bias: &str,
    window: f64,
    biased: f64,
) -> PyResult<(u32, f64, bool, f64)> {
    let part = part(part_name, &overrides)?;
    let wear = model(&part, bias)?;
    let lasts = wear.endurance(window, biased);
    Ok((part.endurance, lasts.cycles, lasts.ends_biased, wear.lasting_loss(biased * window)))
}
