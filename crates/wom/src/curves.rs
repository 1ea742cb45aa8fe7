//! Failure rates of encodings from measurements, for runs without contents, and to refuse a code that does not fit.
//!
//! `benches/wom_curves.rs` measures pages with exactly half the cells stuck, messages of half a page, several sizes of
//! pages and of the erased spare. After a random first write the number of writable cells has a standard deviation of
//! half the root of the cells; one more writable cell is worth one bit of spare. So the rate is the mean of the
//! measured rate over that distribution, or over the distribution of the best of several scramblings if a drive chooses
//! one. Between points the odds are interpolated (logit), beyond the last points extrapolated; between sizes at equal
//! shares of spare. Pages larger than all measured ones count as the largest, which is pessimistic. Approximated:
//! messages that are not half a page count as more or less spare. Ignored: more stuck cells than half, as after writes
//! of data that is not random.

use super::{Shape, find, least};

/// Measured failures of a code over pages of one size. Each code's file has the curves, the smallest pages first.
pub struct Curve {
    /// Bytes of data cells.
    pub cell_bytes: usize,
    /// Bytes of spare, trials, failed trials.
    pub points: &'static [(usize, u64, u64)],
}

/// Steps of the distribution of writable cells, in standard deviations.
const STEP: f64 = 0.05;

/// The probability that the code called `name` cannot write a message over a random first write, the best of
/// `scramblings`; `None` without such a code.
pub fn failure(name: &str, shape: Shape, scramblings: u32) -> Option<f64> {
    let curves = find(name)?.curves;
    if curves.is_empty() {
        return Some(0.0);
    }
    let cells = shape.cell_bytes as f64;
    let spare = shape.spare_bytes as f64 + cells / 2.0 - shape.message_bytes as f64;
    // Bytes of spare that a standard deviation of writable cells is worth.
    let deviation = (8.0 * cells).sqrt() / 2.0 / 8.0;
    let (mut below, mut rate) = (0.0, 0.0);
    for step in -160..=160 {
        let z = f64::from(step) * STEP;
        let share = STEP * libm::exp(-z * z / 2.0) / std::f64::consts::TAU.sqrt();
        // The best of n is in this step if all are below the end, and not all below the begin.
        let here = (below + share).min(1.0).powi(scramblings as i32) - f64::min(below, 1.0).powi(scramblings as i32);
        below += share;
        rate += here * balanced(curves, shape.cell_bytes, spare + z * deviation);
    }
    Some(rate.clamp(0.0, 1.0))
}

/// The rate over cells of which half are stuck.
fn balanced(curves: &[Curve], cell_bytes: usize, spare: f64) -> f64 {
    let share = spare / cell_bytes as f64;
    let smaller = curves.iter().rfind(|curve| curve.cell_bytes <= cell_bytes).unwrap_or(&curves[0]);
    let larger = curves.iter().find(|curve| curve.cell_bytes >= cell_bytes).unwrap_or(smaller);
    let at = |curve: &Curve| log_odds(curve, share * curve.cell_bytes as f64);
    let between = match larger.cell_bytes > smaller.cell_bytes {
        true => {
            libm::log(cell_bytes as f64 / smaller.cell_bytes as f64)
                / libm::log(larger.cell_bytes as f64 / smaller.cell_bytes as f64)
        }
        false => 0.0,
    };
    let odds = at(smaller) + between.clamp(0.0, 1.0) * (at(larger) - at(smaller));
    1.0 / (1.0 + libm::exp(-odds))
}

/// Logarithm of the odds of a failure on `curve` with `spare` bytes.
fn log_odds(curve: &Curve, spare: f64) -> f64 {
    let odds = |&(_, trials, failed): &(usize, u64, u64)| {
        // Half a failure or success instead of none, because logarithms need more than 0.
        let (failed, worked) = (failed as f64, (trials - failed) as f64);
        libm::log(failed.max(0.5) / worked.max(0.5))
    };
    let next = curve.points.iter().position(|&(at, ..)| at as f64 >= spare).unwrap_or(curve.points.len());
    let last = next.clamp(1, curve.points.len() - 1);
    let (one, two) = (&curve.points[last - 1], &curve.points[last]);
    let slope = (odds(two) - odds(one)) / (two.0 - one.0) as f64;
    odds(one) + slope * (spare - one.0 as f64)
}

/// The fewest bytes of spare with which the code called `name` fails with at most the probability `failure`; `None`
/// without such a code, or if the code fails more often even with a spare as large as the message.
pub fn spare_for(name: &str, shape: Shape, scramblings: u32, failure: f64) -> Option<usize> {
    let rate = |spare_bytes: usize| self::failure(name, Shape { spare_bytes, ..shape }, scramblings);
    let enough = |spare: usize| rate(spare).is_some_and(|rate| rate <= failure);
    enough(shape.message_bytes).then(|| least(shape.message_bytes, enough))
}

#[cfg(test)]
mod tests;
