//! Failing programs and erases, reads that need a retry, bad blocks: acknowledged data stays readable.

use crate::drives::{Limits, build, draw};
use crate::harness::{Model, for_each_seed, is_partial, note};
use crate::sequences::{count, time};
use crate::workload::Mix;
use palimpsest_check::faults::{with_faults, with_read_errors};
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads deliver the host's data, or report the loss.
fn read_errors(entry: &'static Entry, seed: u64) -> bool {
    let mut rng = Rng::new(seed, 0xecc0);
    let Ok(shape) = draw(entry.name, &mut rng, Limits { subpages: 1024, planes: 4 }) else { return false };
    let Ok(shape) = build(entry.name, &with_read_errors(&shape.settings, &mut rng)) else { return false };
    note(&shape.settings);
    let payload = if seed.is_multiple_of(3) { Payload::Bytes } else { Payload::Tag };
    let mut model = Model::new(&shape, entry, payload, seed);
    let mut mix = Mix::new(&shape.drive, seed);
    if seed.is_multiple_of(2) {
        model.drive.start_timing().unwrap_or_else(|error| panic!("start of timing: {error}"));
        let commands: Vec<_> = (0..400).map(|_| mix.draw()).collect();
        model.run_timed(commands.into_iter(), 8).unwrap_or_else(|error| panic!("{error}"));
    } else {
        for index in 0..500 {
            let command = mix.draw();
            model.count(command).unwrap_or_else(|error| panic!("request {index}, {command:?}: {error}"));
        }
    }
    model.check();
    let lost: u64 = model.drive.io.counters.lost.iter().sum();
    assert!(lost > 0 || model.shadow.unreadable == 0, "only what a read lost is unreadable");
    READ_ERRORS.fetch_add(lost, Ordering::Relaxed);
    RETRIES.fetch_add(model.drive.io.nand().counters().retries, Ordering::Relaxed);
    true
}

static READ_ERRORS: AtomicU64 = AtomicU64::new(0);
static RETRIES: AtomicU64 = AtomicU64::new(0);

#[test]
fn reads_that_fail_for_good() {
    for_each_seed("faults::reads_that_fail_for_good", 2, read_errors);
    let happened = [&READ_ERRORS, &RETRIES].map(|count| count.load(Ordering::Relaxed));
    assert!(happened.iter().all(|&count| count > 0) || is_partial(), "{happened:?}");
}

/// Once red: the reads of moves made other blocks due for refresh, and moving those never ended.
#[test]
fn refresh_ends() {
    assert!(read_errors(crate::drives::entry("dftl"), 701_015));
}

#[test]
#[ignore = "minutes"]
fn long_reads_that_fail_for_good() {
    for_each_seed("--ignored faults::long_reads_that_fail_for_good", 500, |entry, seed| {
        read_errors(entry, seed + 1000)
    });
}

fn counted(entry: &'static Entry, seed: u64) -> bool {
    let Ok(shape) = with_faults(entry, seed, Limits { subpages: 2048, planes: 4 }, &[]) else { return false };
    note(&shape.settings);
    let mut mix = Mix::new(&shape.drive, seed);
    let commands: Vec<_> = (0..4000).map(|_| mix.draw()).collect();
    count(&mut Model::new(&shape, entry, Payload::Tag, seed), &commands, 7, 500);
    true
}

pub fn timed(entry: &'static Entry, seed: u64) -> bool {
    let Ok(shape) = with_faults(entry, seed, Limits { subpages: 2048, planes: 4 }, &[]) else { return false };
    note(&shape.settings);
    let mut mix = Mix::new(&shape.drive, seed);
    let commands: Vec<_> = (0..2500).map(|_| mix.draw()).collect();
    let depth = if seed.is_multiple_of(2) { 1 } else { 16 };
    time(&mut Model::new(&shape, entry, Payload::Tag, seed), &commands, 0, depth);
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
