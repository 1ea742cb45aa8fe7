//! Read-ahead: streams of reads among other requests, against the shadow and the check of times; and with power cuts.

use crate::drives::{Limits, Shape, build, draw, pick, with};
use crate::harness::{Model, for_each_seed, for_each_seed_of, note, payload_of};
use crate::power_timed::Case;
use crate::workload::{Mix, fill};
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::{Entry, REGISTRY};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::host::fs::layers::ENTRIES;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::plan::ledger::Mutation;
use palimpsest_lab::plan::{Cause, OperationKind};
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;
use std::panic::{AssertUnwindSafe, catch_unwind};

const SMALL: Limits = Limits { subpages: 1024, planes: 4 };

/// A drive that reads ahead.
fn shape(entry: &Entry, seed: u64) -> Option<Shape> {
    let mut rng = Rng::new(seed, 0xa4ea);
    let drawn = match entry.below {
        Some(_) => crate::filesystem::draw(entry, &mut rng, 150),
        None => draw(entry.name, &mut rng, SMALL),
    };
    let drawn = drawn.ok()?;
    let pages = pick(&mut rng, &["controller.read_ahead=1", "controller.read_ahead=2", "controller.read_ahead=7"]);
    let streams = pick(&mut rng, &["controller.read_streams=1", "controller.read_streams=3"]);
    let acknowledge = pick(&mut rng, &["buffer.ack=program", "buffer.ack=buffer"]);
    build(entry.name, &with(&drawn.settings, &[pages, streams, acknowledge])).ok()
}

/// A full drive, then two streams of reads, which begin anew now and then, among requests of all kinds.
fn requests(shape: &Shape, seed: u64, count: usize) -> (Vec<Command>, usize) {
    let (mut rng, mut mix) = (Rng::new(seed, 0xa4eb), Mix::new(&shape.drive, seed));
    let sectors = shape.drive.logical_bytes() / 512;
    let size = pick(&mut rng, &[1, subpage_sectors(shape), 2 * subpage_sectors(shape) + 1]);
    let mut commands: Vec<Command> = fill(&shape.drive, 3 * subpage_sectors(shape)).collect();
    let filled = commands.len();
    let mut at = [rng.below(sectors), rng.below(sectors)];
    while commands.len() < filled + count {
        let stream = rng.below(2) as usize;
        match rng.below(16) {
            0 => at[stream] = rng.below(sectors),
            1..6 => commands.push(mix.draw()),
            _ => {
                at[stream] = if at[stream] >= sectors { 0 } else { at[stream] };
                let extent = Extent { sector: at[stream], sectors: size.min(sectors - at[stream]) as u32 };
                commands.push(Command::new(RequestKind::Read, extent));
                at[stream] = extent.end();
            }
        }
    }
    (commands, filled)
}

/// Sectors of a subpage.
fn subpage_sectors(shape: &Shape) -> u64 {
    u64::from(shape.drive.geometry.subpage_bytes) / 512
}

/// Plays requests, the last of them timed. Returns the hits, or the law of time that `mutation` breaks.
fn play(entry: &'static Entry, seed: u64, mutation: Option<Mutation>) -> Option<Result<u64, String>> {
    let shape = shape(entry, seed)?;
    note(&shape.settings);
    let payload = payload_of(entry, seed);
    let mut model = Model::new(&shape, entry, payload, seed);
    model.drive.verify_times(mutation);
    let (commands, filled) = requests(&shape, seed, 500);
    let counted = filled + 200;
    for &command in &commands[..counted] {
        model.count(command).unwrap_or_else(|error| panic!("{command:?}: {error}"));
    }
    model.drive.start_timing().unwrap_or_else(|error| panic!("start of timing: {error}"));
    let depth = pick(&mut Rng::new(seed, 0xa4ec), &[1, 2, 16]);
    let timed = commands[counted..].iter().copied();
    match catch_unwind(AssertUnwindSafe(|| model.run_timed(timed, depth))) {
        Ok(Ok(())) => {}
        Ok(Err(Error::Rule(what))) if mutation.is_some() => return Some(Err(what)),
        Ok(Err(error)) => panic!("depth {depth}: {error}"),
        Err(_) if mutation.is_some() => return Some(Err(String::new())),
        Err(panic) => std::panic::resume_unwind(panic),
    }
    model.check();
    model.read_back().unwrap_or_else(|error| panic!("read back: {error}"));
    let figures = model.drive.read_ahead_figures().expect("it reads ahead");
    let counters = &model.drive.io.counters;
    assert!(figures.wasted <= figures.read, "{figures:?}");
    assert!(counters.memory_reads[Cause::Host as usize] >= figures.hit, "hits are reads from memory");
    assert_eq!(counters.programs[Cause::ReadAhead as usize], 0, "read-ahead programs nothing");
    Some(Ok(figures.hit))
}

#[test]
fn what_is_read_ahead_is_what_the_host_wrote() {
    for_each_seed("read_ahead::what_is_read_ahead_is_what_the_host_wrote", 8, |entry, seed| {
        play(entry, seed, None).is_some_and(|hits| hits.expect("no mutation") > 0)
    });
}

/// A file system reads ahead in its files, whatever their places on the device.
#[test]
fn requests_of_file_systems_are_read_ahead() {
    for_each_seed_of(ENTRIES, "read_ahead::requests_of_file_systems_are_read_ahead", 6, |entry, seed| {
        play(entry, seed, None).is_some_and(|hits| hits.expect("no mutation") > 0)
    });
}

/// A controller that delivers read-ahead data before sensing is found, on every layer.
#[test]
fn data_that_is_delivered_before_it_was_sensed_is_found() {
    let early = Mutation { kind: OperationKind::Read, cause: Cause::ReadAhead, drops_after: false };
    let all = REGISTRY.iter().chain(ENTRIES);
    for_each_seed_of(all, "read_ahead::data_that_is_delivered_before_it_was_sensed_is_found", 1, |entry, seed| {
        let found = |seed| {
            let said = play(entry, seed, Some(early)).and_then(Result::err);
            said.is_some_and(|what| what.contains("before it has what it delivers"))
        };
        (0..12).any(|more| found(seed + 1000 * more))
    });
}

#[test]
fn power_cuts_find_an_empty_buffer() {
    let all = REGISTRY.iter().chain(ENTRIES);
    for_each_seed_of(all, "read_ahead::power_cuts_find_an_empty_buffer", 3, |entry, seed| {
        let Some(shape) = shape(entry, seed) else { return false };
        note(&shape.settings);
        let (commands, counted) = requests(&shape, seed, 300);
        let case = Case { shape, entry, seed, payload: Payload::Bytes, commands, counted, depth: 8 };
        let (start, end) = case.run(None).expect("no cut, no end");
        let mut rng = Rng::new(seed, 0xa4ed);
        for _ in 0..4.min(end - start) {
            case.run(Some(start + 1 + rng.below(end - start)));
        }
        true
    });
}
