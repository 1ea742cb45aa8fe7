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
mod tests {
    use super::*;
    use crate::measure;

    fn page(cell_bytes: usize, spare_bytes: usize) -> Shape {
        Shape { message_bytes: cell_bytes / 2, cell_bytes, spare_bytes }
    }

    /// Against encodings of random messages over random first writes, within three standard errors and a tenth.
    #[test]
    fn rates_are_those_of_the_encoders() {
        for (name, shape, scramblings, trials) in [
            ("polar", page(4096, 224), 1, 600),
            ("polar", page(4096, 224), 16, 600),
            ("polar", page(8192, 451), 1, 600),
            ("polar", page(2048, 160), 1, 1000),
            ("fountain", page(4096, 12), 1, 60),
            ("fountain", page(4096, 2), 4, 60),
        ] {
            let mut code = (find(name).unwrap().build)(shape).unwrap();
            let measured = measure(code.as_mut(), 0..trials, 7, 0.5, scramblings).failed as f64 / trials as f64;
            let rate = failure(name, shape, scramblings).unwrap();
            let error = (rate * (1.0 - rate) / trials as f64).sqrt();
            println!("{name} {shape:?}, best of {scramblings}: {rate:.4}, measured {measured:.4}");
            assert!((measured - rate).abs() < 3.0 * error + 0.1 * rate.min(1.0 - rate) + 0.002, "{name} {shape:?}");
        }
    }

    /// The table of docs/wom-codes.md: 4 KiB over 8 KiB, independent trials.
    #[test]
    fn rates_are_those_of_the_table() {
        for (name, spare, low, high) in [
            ("table", 0, 0.0, 0.0),
            ("polar", 256, 0.99, 1.0),
            ("polar", 512, 0.02, 0.04),
            ("polar", 614, 0.0012, 0.0028),
            ("polar-repair", 123, 0.04, 0.08),
            ("polar-repair", 205, 0.0008, 0.006),
            ("fountain", 20, 0.11, 0.19),
            ("fountain", 45, 0.003, 0.014),
        ] {
            let rate = failure(name, page(8192, spare), 1).unwrap();
            assert!((low..=high).contains(&rate), "{name} with {spare} bytes: {rate}");
        }
        assert!(failure("fountain", page(8192, 1), 1).unwrap() > 0.3, "random cells are often too few");
        assert!(failure("fountain", page(8192, 1), 16).unwrap() < 0.02, "the best of 16 first writes");
        let needed = spare_for("polar", page(8192, 0), 1, 0.0025).unwrap();
        assert!((560..640).contains(&needed), "{needed}");
        assert_eq!(failure("nothing", page(8192, 1), 1), None);
    }
}
