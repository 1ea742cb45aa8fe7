//! Whole runs with each fault of the registry, on drives that the fault itself draws: every read is verified, and each
//! fault makes a difference.

use crate::drives::{Limits, build, draw, with};
use crate::harness::{for_each_seed, is_partial};
use crate::whole_runs::run_whole;
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::run::Fidelity;
use palimpsest_lab::sim::faults::FAULTS;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// The faults that changed a run.
static CHANGED: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());

/// A run with a fault. True if the drive can have the fault.
fn run_with(entry: &'static Entry, seed: u64) -> bool {
    let mut rng = Rng::new(seed, 0xfa17);
    let fault = &FAULTS[(seed % FAULTS.len() as u64) as usize];
    let Ok(plain) = draw(entry.name, &mut rng, Limits { subpages: 512, planes: 4 }) else { return false };
    let own = (fault.draw)(&mut rng, &plain.drive.geometry);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let Ok(shape) = build(entry.name, &with(&plain.settings, &own)) else { return false };
    assert!(fault.is_on(&shape.drive.ftl) && !fault.is_on(&plain.drive.ftl), "{}: {own:?}", fault.name());
    let fidelity = if rng.below(2) == 0 { Fidelity::Count } else { Fidelity::Timed };
    let figures = |shape| match run_whole(entry, shape, seed, fidelity, "fill:100%,random:0.5x") {
        Ok(mut summary) => {
            summary.config = serde_json::Value::Null;
            Ok(serde_json::to_string(&summary).expect("a result is text"))
        }
        // The smallest drives end, or make no progress between two cuts.
        Err(Error::WornOut(_)) => Err(()),
        Err(Error::DriveFailed(what)) if what.contains("no request completed") => Err(()),
        Err(error) => panic!("{}: {error}", fault.name()),
    };
    let off = format!("{}={}", fault.key().name, fault.off());
    let without = build(entry.name, &with(&shape.settings, &[&off])).expect("the drive without the fault");
    if figures(&shape) != figures(&without) {
        CHANGED.lock().expect("no case holds this over a panic").insert(fault.name());
    }
    true
}

#[test]
fn every_fault_of_the_registry_in_whole_runs() {
    for_each_seed("every_fault::every_fault_of_the_registry_in_whole_runs", 2 * FAULTS.len() as u64, run_with);
    let changed = CHANGED.lock().expect("no case holds this over a panic");
    let idle: Vec<_> = FAULTS.iter().map(|fault| fault.name()).filter(|name| !changed.contains(name)).collect();
    assert!(idle.is_empty() || is_partial(), "faults without a difference: {idle:?}");
}

#[test]
#[ignore = "minutes"]
fn long_every_fault_of_the_registry() {
    for_each_seed("--ignored every_fault::long_every_fault_of_the_registry", 1000, |entry, seed| {
        run_with(entry, seed + 1000)
    });
}
