//! Random sequences of requests against the shadow, counted and timed.

use crate::drives::{Limits, Shape, pick};
use crate::model::Model;
use crate::story::note;
use crate::workload::{Mix, fill, sweep};
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::geometry::RequestKind;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;

/// Small drives: thousands of them in a test.
pub const SMALL: Limits = Limits { subpages: 2048, planes: 4 };
/// Drives with many blocks.
pub const LARGE: Limits = Limits { subpages: 30_000, planes: 8 };

/// A random start, a full drive, and overwrites of five times the drive's size.
pub fn requests(shape: &Shape, seed: u64) -> Vec<Command> {
    let mut rng = Rng::new(seed, 0x5e9);
    let mut mix = Mix::new(&shape.drive, seed);
    let page_sectors = u64::from(shape.drive.geometry.page_bytes()) / 512;
    let mut commands: Vec<Command> = (0..60).map(|_| mix.draw()).collect();
    let step = pick(&mut rng, &[page_sectors, 1 + page_sectors / 2, 3 * page_sectors]);
    commands.extend(fill(&shape.drive, step));
    if rng.below(3) == 0 {
        mix.trims = 0; // A drive that stays full.
    }
    let target = 5 * shape.drive.logical_bytes() / 512;
    let mut written = 0;
    while written < target {
        let command = mix.draw();
        if command.kind == RequestKind::Write {
            written += u64::from(command.extent.sectors);
        }
        commands.push(command);
    }
    commands.extend((0..10).map(|_| mix.draw()));
    commands
}

/// Counts [`requests`] on a drive, and reads the drive back.
pub fn count_requests(shape: &Shape, entry: &'static Entry, seed: u64, payload: Payload, check_every: usize) {
    note(&shape.settings);
    let mut model = Model::new(shape, entry, payload, seed);
    count(&mut model, &requests(shape, seed), check_every, usize::MAX);
}

/// Counts `commands` with a check of the tables after each `check_every`, and reads the drive back after each
/// `read_every` and at the end. Failing blocks may end the life of the drive, which then must be readable.
pub fn count(model: &mut Model, commands: &[Command], check_every: usize, read_every: usize) {
    let failed = |error| panic!("{error}");
    for (index, &command) in commands.iter().enumerate() {
        match model.count(command) {
            Err(Error::WornOut(_)) if model.config.faults.any() => {
                model.interrupted(command);
                return model.read_back().unwrap_or_else(failed);
            }
            result => result.unwrap_or_else(failed),
        }
        if index % check_every == 0 {
            model.check();
        }
        if index % read_every == read_every - 1 {
            model.read_back().unwrap_or_else(failed);
        }
    }
    model.read_back().unwrap_or_else(failed);
    model.check();
}

/// As [`count_requests`], timed.
pub fn time_requests(shape: &Shape, entry: &'static Entry, seed: u64, payload: Payload, rng: &mut Rng) {
    note(&shape.settings);
    let mut model = Model::new(shape, entry, payload, seed);
    let depth = pick(rng, &[1, 16]);
    let commands = requests(shape, seed);
    // Some drives are timed from the first request on, some only when they are full.
    let counted = if rng.below(2) == 0 { 0 } else { commands.len() / 2 };
    time(&mut model, &commands, counted, depth);
}

/// Times `commands` after the first `counted`, and reads the drive back, timed. Failing blocks may end the life of the
/// drive.
pub fn time(model: &mut Model, commands: &[Command], counted: usize, depth: u32) {
    let faulty = model.config.faults.any();
    let lives = |result| match result {
        Err(Error::WornOut(_)) if faulty => false,
        Err(error) => panic!("{error}"),
        Ok(()) => true,
    };
    let sweep: Vec<_> = sweep(&model.config, RequestKind::Read, 24).collect();
    let all = commands[..counted].iter().all(|&command| lives(model.count(command)))
        && lives(model.drive.start_timing())
        && lives(model.run_timed(commands[counted..].iter().copied(), depth));
    if all {
        model.check();
        if lives(model.run_timed(sweep.into_iter(), depth)) {
            model.check();
        }
    }
}
