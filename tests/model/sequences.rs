//! Random sequences of requests against the shadow, counted and timed.

use crate::drives::{Limits, Shape, build, draw, entry, pick, plain, with};
use crate::harness::{Model, for_each_seed, note};
use crate::workload::{Mix, fill};
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;

pub const SMALL: Limits = Limits { subpages: 2048, planes: 4 };
const LARGE: Limits = Limits { subpages: 30_000, planes: 8 };

/// A random start, a full drive, and overwrites of five times the drive's size.
pub fn requests(shape: &Shape, seed: u64) -> Vec<Command> {
    let mut rng = Rng::new(seed, 0x5e9);
    let mut mix = Mix::new(&shape.drive, seed);
    let page_sectors = u64::from(shape.drive.geometry.page_bytes()) / 512;
    let mut commands: Vec<Command> = (0..60).map(|_| mix.next()).collect();
    let step = pick(&mut rng, &[page_sectors, 1 + page_sectors / 2, 3 * page_sectors]);
    commands.extend(fill(&shape.drive, step));
    if rng.below(3) == 0 {
        mix.trims = 0; // A drive that stays full.
    }
    let target = 5 * shape.drive.logical_bytes() / 512;
    let mut written = 0;
    while written < target {
        let command = mix.next();
        if command.kind == palimpsest_lab::geometry::RequestKind::Write {
            written += u64::from(command.extent.sectors);
        }
        commands.push(command);
    }
    commands.extend((0..10).map(|_| mix.next()));
    commands
}

fn counted(entry: &'static Entry, seed: u64, limits: Limits, payload: Payload, check_every: usize) -> bool {
    let mut rng = Rng::new(seed, 0xd81e);
    let Some(shape) = draw(entry.name, &mut rng, limits) else { return false };
    count_requests(&shape, entry, seed, payload, check_every);
    true
}

/// Counts [`requests`] on a drive, and reads the drive back.
pub fn count_requests(shape: &Shape, entry: &'static Entry, seed: u64, payload: Payload, check_every: usize) {
    note(&shape.settings);
    let mut model = Model::new(shape, entry, payload, seed);
    for (index, command) in requests(shape, seed).into_iter().enumerate() {
        model.count(command).unwrap_or_else(|error| panic!("request {index}, {command:?}: {error}"));
        if index % check_every == 0 {
            model.check();
        }
    }
    model.read_back().unwrap_or_else(|error| panic!("at the end: {error}"));
    model.check();
}

fn timed(entry: &'static Entry, seed: u64, payload: Payload) -> bool {
    let mut rng = Rng::new(seed, 0x71e);
    let Some(shape) = draw(entry.name, &mut rng, SMALL) else { return false };
    time_requests(&shape, entry, seed, payload, &mut rng);
    true
}

/// As [`count_requests`], timed.
pub fn time_requests(shape: &Shape, entry: &'static Entry, seed: u64, payload: Payload, rng: &mut Rng) {
    note(&shape.settings);
    let mut model = Model::new(shape, entry, payload, seed);
    let depth = pick(rng, &[1, 16]);
    let mut commands = requests(shape, seed);
    // Some drives are timed from the first request on, some only when they are full.
    let counted = if rng.below(2) == 0 { 0 } else { commands.len() / 2 };
    for command in commands.drain(..counted) {
        model.count(command).unwrap_or_else(|error| panic!("{command:?}: {error}"));
    }
    model.drive.start_timing().unwrap_or_else(|error| panic!("start of timing: {error}"));
    model.run_timed(commands.into_iter(), depth).unwrap_or_else(|error| panic!("depth {depth}: {error}"));
    model.check();
    let sweep = crate::workload::sweep(&model.config.clone(), palimpsest_lab::geometry::RequestKind::Read, 24);
    model.run_timed(sweep, depth).unwrap_or_else(|error| panic!("read back: {error}"));
    model.check();
}

#[test]
fn counted_sequences() {
    for_each_seed("sequences::counted_sequences", 30, |entry, seed| counted(entry, seed, SMALL, Payload::Tag, 1));
}

#[test]
fn counted_sequences_of_larger_drives() {
    for_each_seed("sequences::counted_sequences_of_larger_drives", 6, |entry, seed| {
        counted(entry, seed, LARGE, Payload::Tag, 97)
    });
}

#[test]
fn counted_sequences_of_bytes() {
    for_each_seed("sequences::counted_sequences_of_bytes", 6, |entry, seed| {
        counted(entry, seed, Limits { subpages: 1024, planes: 4 }, Payload::Bytes, 11)
    });
}

#[test]
fn timed_sequences() {
    for_each_seed("sequences::timed_sequences", 30, |entry, seed| timed(entry, seed, Payload::Tag));
}

#[test]
fn timed_sequences_of_bytes() {
    for_each_seed("sequences::timed_sequences_of_bytes", 5, |entry, seed| timed(entry, seed, Payload::Bytes));
}

/// Once red: every full block of copies held copies of one word line, so that none was erased.
#[test]
fn copies_of_one_word_line_may_be_in_every_block_of_copies() {
    let cells = ["part.cell=qlc", "part.pair_corruption=true"];
    let layer = ["ftl.streams=3", "ftl.classifier=recency", "ssd.over_provisioning=100%"];
    let settings = with(&with(&plain(1, 24, 32, 1), &cells), &layer);
    let shape = build("page", &settings).expect("a drive");
    for seed in 0..3 {
        let mut model = Model::new(&shape, entry("page"), Payload::Tag, seed);
        for command in requests(&shape, seed) {
            model.count(command).unwrap_or_else(|error| panic!("seed {seed}, {command:?}: {error}"));
        }
        model.read_back().unwrap_or_else(|error| panic!("seed {seed}, at the end: {error}"));
    }
}

/// Once red: together with data waiting to be moved, hot data that could not be encoded took two pages, the second in
/// the last clean block.
#[test]
fn failed_encodings_leave_the_last_clean_block_to_collection() {
    assert!(timed(entry("llh"), 1_000_327, Payload::Tag));
}

/// Once red: the block with the fewest valid units belonged to a class without room, and collection considered no other
/// block.
#[test]
fn where_one_class_has_no_room_another_is_cleaned() {
    assert!(counted(entry("subpage"), 1_001_680, SMALL, Payload::Tag, 1));
    assert!(timed(entry("page-fgm"), 1_000_977, Payload::Tag));
}

/// Once red: the only erased block came from programming the waiting data of one class, after the other class had found
/// no block to collect.
#[test]
fn what_waits_of_one_class_makes_room_for_another() {
    assert!(counted(entry("page-fgm"), 1_000_225, LARGE, Payload::Tag, 97));
}

#[test]
#[ignore = "minutes"]
fn long_counted_sequences() {
    for_each_seed("--ignored sequences::long_counted_sequences", 2000, |entry, seed| {
        counted(entry, seed + 1_000_000, SMALL, Payload::Tag, 1)
    });
}

#[test]
#[ignore = "minutes"]
fn long_counted_sequences_of_larger_drives() {
    for_each_seed("--ignored sequences::long_counted_sequences_of_larger_drives", 300, |entry, seed| {
        counted(entry, seed + 1_000_000, LARGE, Payload::Tag, 97)
    });
}

#[test]
#[ignore = "minutes"]
fn long_timed_sequences() {
    for_each_seed("--ignored sequences::long_timed_sequences", 1500, |entry, seed| {
        timed(entry, seed + 1_000_000, if seed % 8 == 0 { Payload::Bytes } else { Payload::Tag })
    });
}
