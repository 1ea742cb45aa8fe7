//! Failing programs and erases, reads that need a retry, bad blocks: what was acknowledged stays readable.

use crate::drives::{Limits, build, draw};
use crate::harness::{Model, for_each_seed, note};
use crate::workload::Mix;
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;

fn with_faults(entry: &'static Entry, seed: u64, limits: Limits) -> Option<crate::drives::Shape> {
    let mut rng = Rng::new(seed, 0xfa01);
    let mut shape = draw(entry.name, &mut rng, limits)?;
    let mut rate = || ["0%", "0.1%", "0.3%", "1%"][rng.below(4) as usize];
    for key in ["program_fail", "erase_fail", "read_fail"] {
        shape.settings.push(format!("faults.{key}={}", rate()));
    }
    shape.settings.push(format!("faults.initial_bad={}", ["0%", "1%", "3%"][(seed % 3) as usize]));
    build(entry.name, &shape.settings).ok()
}

fn ended(error: &Error) -> bool {
    matches!(error, Error::DriveFailed(what) if what.contains("end of its life"))
}

fn counted(entry: &'static Entry, seed: u64) -> bool {
    let Some(shape) = with_faults(entry, seed, Limits { subpages: 2048, planes: 4 }) else { return false };
    note(&shape.settings);
    let mut model = Model::new(&shape, entry, Payload::Tag, seed);
    let mut mix = Mix::new(&shape.drive, seed);
    for index in 0..4000 {
        let command = mix.next();
        match model.count(command) {
            Ok(()) => {}
            Err(error) if ended(&error) => return true,
            Err(error) => panic!("request {index}, {command:?}: {error}"),
        }
        if index % 7 == 0 {
            model.check();
        }
        if index % 500 == 0 {
            model.read_back().unwrap_or_else(|error| panic!("after request {index}: {error}"));
        }
    }
    true
}

fn timed(entry: &'static Entry, seed: u64) -> bool {
    let Some(shape) = with_faults(entry, seed, Limits { subpages: 2048, planes: 4 }) else { return false };
    note(&shape.settings);
    let mut model = Model::new(&shape, entry, Payload::Tag, seed);
    let mut mix = Mix::new(&shape.drive, seed);
    model.drive.start_timing().unwrap_or_else(|error| panic!("start of timing: {error}"));
    let commands: Vec<_> = (0..2500).map(|_| mix.next()).collect();
    match model.run_timed(commands.into_iter(), if seed.is_multiple_of(2) { 1 } else { 16 }) {
        Ok(()) => model.check(),
        Err(error) => assert!(ended(&error), "{error}"),
    }
    true
}

#[test]
fn counted_with_faults() {
    for_each_seed("faults::counted_with_faults", 30, counted);
}

#[test]
fn timed_with_faults() {
    for_each_seed("faults::timed_with_faults", 30, timed);
}

#[test]
#[ignore = "minutes"]
fn long_counted_with_faults() {
    for_each_seed("--ignored faults::long_counted_with_faults", 3000, |entry, seed| counted(entry, seed + 1_000_000));
}

#[test]
#[ignore = "minutes"]
fn long_timed_with_faults() {
    for_each_seed("--ignored faults::long_timed_with_faults", 3000, |entry, seed| timed(entry, seed + 1_000_000));
}
