//! Drives with failing programs, erases and reads.

use crate::drives::{Drawn, Limits, Shape, build, cells, with};
use crate::file_systems::any_shape;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::rng::Rng;

/// A drive on which programs, erases and reads fail, and blocks are bad from the beginning.
pub fn with_faults(entry: &'static Entry, seed: u64, limits: Limits, more: &[&str]) -> Drawn<Shape> {
    let mut rng = Rng::new(seed, 0xfa01);
    let mut shape = any_shape(entry, &mut rng, limits, more)?;
    let mut rate = || ["0%", "0.1%", "0.3%", "1%"][rng.below(4) as usize];
    for key in ["program_fail", "erase_fail", "read_fail"] {
        shape.settings.push(format!("faults.{key}={}", rate()));
    }
    shape.settings.push(format!("faults.initial_bad={}", ["0%", "1%", "3%"][(seed % 3) as usize]));
    build(entry.name, &shape.settings)
}

/// `settings` with bit errors that grow with the reads of a block, and on some drives with age and by stacked layers:
/// some reads need retries, some fail for good.
pub fn with_read_errors(settings: &[String], rng: &mut Rng) -> Vec<String> {
    let refresh = format!("ecc.refresh_retries={}", rng.below(3));
    let disturb = format!("ecc.disturb_reads={}", [5, 20, 80][rng.below(3) as usize]);
    let errors = with(
        settings,
        &[
            "part.ber_fresh=0.05%",
            "part.word_size=512B",
            "ecc.strength=9",
            &disturb,
            &refresh,
            "ecc.t_retries=[\"50us\", \"90us\"]",
            "ecc.retry_rates=[\"80%\", \"60%\"]",
        ],
    );
    // Another source of random numbers, so that the drives of each seed stay as they were.
    with(&errors, &cells(&mut Rng::new(rng.clone().next_u64(), 0xce11)))
}
