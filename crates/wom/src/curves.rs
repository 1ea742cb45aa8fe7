//! How often an encoding fails, from measurements: for runs that have no contents to encode, and to refuse a code that cannot fit.
//!
//! `benches/wom_curves.rs` measures pages of which exactly half the cells are stuck, messages of half a page, at several sizes
//! of pages and of the erased spare. A random first write leaves that number to chance, with a standard deviation of half the
//! root of the cells; a cell more that may be written is worth a bit of spare. So the rate is the mean of the measured one over
//! that spread; where a drive chooses the best of several scramblings of its first write, over the spread of the best. Between
//! points the odds are interpolated (logit), beyond the last ones they go on as between these; between sizes at equal shares
//! of spare. Pages larger than those measured count as the largest, which is pessimistic. Ignored: messages that are not half a
//! page count as more or less spare; more stuck cells than half, as after writes of other data than random ones.

use super::{Shape, find};

/// What was measured of a code over pages of one size; a code has its curves in its file, the smallest pages first.
pub struct Curve {
    /// Bytes of data cells.
    pub cell_bytes: usize,
    /// Bytes of spare, trials, and how many of them failed.
    pub points: &'static [(usize, u64, u64)],
}

/// Steps of the spread of writable cells, in standard deviations.
const STEP: f64 = 0.05;

/// The probability that the code called `name` cannot write a message over a random first write, the best of `scramblings`;
/// `None` where there is no such code.
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
        // The best of n lies here if all lie below its end, and not all below its begin.
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
        // No failure counts as half a failure, no success as half a success.
        let (failed, worked) = (failed as f64, (trials - failed) as f64);
        libm::log(failed.max(0.5) / worked.max(0.5))
    };
    let next = curve.points.iter().position(|&(at, ..)| at as f64 >= spare).unwrap_or(curve.points.len());
    let last = next.clamp(1, curve.points.len() - 1);
    let (one, two) = (&curve.points[last - 1], &curve.points[last]);
    let slope = (odds(two) - odds(one)) / (two.0 - one.0) as f64;
    odds(one) + slope * (spare - one.0 as f64)
}

/// The fewest bytes of spare with which the code called `name` fails at most with probability `failure`; `None` where it is not
/// known, or fails more often even with as many as a message has.
pub fn spare_for(name: &str, shape: Shape, scramblings: u32, failure: f64) -> Option<usize> {
    let enough =
        |spare_bytes: usize| Some(self::failure(name, Shape { spare_bytes, ..shape }, scramblings)? <= failure);
    let (mut least, mut most) = (0, shape.message_bytes);
    if !enough(most)? {
        return None;
    }
    while least < most {
        let middle = usize::midpoint(least, most);
        if enough(middle)? { most = middle } else { least = middle + 1 }
    }
    Some(most)
}

#[cfg(test)]
mod tests;
