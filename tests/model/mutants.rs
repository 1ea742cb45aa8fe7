//! Layers that plan wrongly, and must be found out: mutants of every layer of the registry.
//!
//! A mutation drops a gate of one kind of operation that is done for one cause: a program does not wait for what it stores, an
//! erase not for the copies, or what waits for an operation goes on when that is planned (an acknowledgement before the program, a
//! delivery before the read). Where a layer has such gates the check of times must find the mutant; the table says where it
//! has not, or why nothing is wrong without them, and is itself checked. Buffers acknowledge programs here, so that all layers have
//! something to lose.

use crate::drives::{build, draw, pick, with};
use crate::harness::{Model, note};
use crate::sequences::{SMALL, requests};
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::host::layers;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::plan::ledger::Mutation;
use palimpsest_lab::plan::{CAUSE_NAMES, Cause, OperationKind};
use palimpsest_lab::rng::Rng;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds that are tried.
const SEEDS: u64 = 60;

fn name(mutation: Mutation) -> String {
    let Mutation { kind, cause, drops_after } = mutation;
    let kind = format!("{kind:?}").to_lowercase();
    let gate = if drops_after { "without its gate" } else { "signals at once" };
    format!("{} {kind} {gate}", CAUSE_NAMES[cause as usize])
}

/// Runs requests on a drive of `seed`: what could be planted, and what the check says of `mutation`.
fn run(entry: &'static Entry, seed: u64, mutation: Option<Mutation>) -> Option<(BTreeMap<Mutation, u64>, bool)> {
    let mut rng = Rng::new(seed, 0x3u64);
    let shape = match entry.below {
        Some(_) => crate::filesystem::draw(entry, &mut rng, 120),
        None => draw(entry.name, &mut rng, SMALL),
    }?;
    let shape = build(entry.name, &with(&shape.settings, &["buffer.ack=program"])).ok()?;
    note(&shape.settings);
    let mut model = Model::new(&shape, entry, Payload::Tag, seed);
    model.device.verify_times(mutation);
    model.device.start_timing().expect("nothing to program");
    let depth = pick(&mut rng, &[2, 16]);
    let commands = requests(&shape, seed);
    let result = catch_unwind(AssertUnwindSafe(|| model.run_timed(commands.into_iter(), depth)));
    let found = matches!(&result, Ok(Err(Error::Rule(what))) if what.contains("broke the order of time"));
    if mutation.is_none() {
        let result = result.unwrap_or_else(|_| panic!("{} with seed {seed} panics", entry.name));
        result.unwrap_or_else(|error| panic!("{} with seed {seed}: {error}", entry.name));
    }
    let plantable = model.device.io.ledger.as_ref().map(|ledger| ledger.plantable().clone());
    Some((plantable.unwrap_or_default(), found))
}

#[test]
fn survey() {
    let only = std::env::var("MODEL_FTL").ok();
    for entry in layers().filter(|entry| only.as_ref().is_none_or(|only| only == entry.name)) {
        let mut plantable: BTreeMap<Mutation, u64> = BTreeMap::new();
        let mut possible = Vec::new();
        for seed in 0..SEEDS {
            if let Some((more, _)) = run(entry, seed, None) {
                possible.push(seed);
                for (mutation, count) in more {
                    *plantable.entry(mutation).or_default() += count;
                }
            }
        }
        for (mutation, count) in plantable {
            if !(mutation.kind == OperationKind::Erase || mutation.cause == Cause::Metadata) {
                continue;
            }
            let by = possible.iter().find(|&&seed| run(entry, seed, Some(mutation)).is_some_and(|(_, found)| found));
            println!("{:12} {:40} {count:8} {by:?}", entry.name, name(mutation));
        }
    }
}
