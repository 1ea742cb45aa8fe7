//! The file systems as layers: sequences of requests, counted and timed, and power cuts, as for every other layer, on
//! drives large enough for a file system. Writes are durable after a flush only.

use crate::drives::{build, pick, with};
use crate::harness::{Model, for_each_seed_of, is_partial, note};
use crate::power::{Cuts, Powered, cut_everywhere, workload};
use crate::sequences::requests;
use crate::workload::fill;
pub use palimpsest_check::file_systems::*;
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::{Entry, Figure};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::host::fs::layers::ENTRIES;
use palimpsest_lab::nand::TORN;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;
use std::sync::atomic::{AtomicU64, Ordering};

fn counted(entry: &'static Entry, seed: u64, payload: Payload) -> bool {
    let mut rng = Rng::new(seed, 0xf11e);
    let Ok(mut shape) = draw(entry, &mut rng, 200) else { return false };
    if seed % 4 == 3 {
        let faults = ["faults.program_fail=0.1%", "faults.erase_fail=0.5%", "faults.read_fail=1%"];
        shape = build(entry.name, &with(&shape.settings, &faults)).expect("the same drive with faults");
    }
    note(&shape.settings);
    let faulty = shape.drive.faults.any();
    let mut model = Model::new(&shape, entry, payload, seed);
    for (index, command) in requests(&shape, seed).into_iter().enumerate() {
        match model.count(command) {
            Ok(()) => {}
            // Failed blocks are lost, and a small drive has few.
            Err(Error::WornOut(_)) if faulty => {
                model.interrupted(command);
                model.read_back().unwrap_or_else(|error| panic!("after request {index} ended it: {error}"));
                return true;
            }
            Err(error) => panic!("request {index}, {command:?}: {error}"),
        }
        if index % 17 == 0 {
            model.check();
        }
    }
    model.read_back().unwrap_or_else(|error| panic!("at the end: {error}"));
    model.check();
    true
}

fn timed(entry: &'static Entry, seed: u64) -> bool {
    let mut rng = Rng::new(seed, 0xf12e);
    let Ok(shape) = draw(entry, &mut rng, 200) else { return false };
    note(&shape.settings);
    let mut model = Model::new(&shape, entry, Payload::Tag, seed);
    model.drive.start_timing().unwrap_or_else(|error| panic!("start of timing: {error}"));
    let depth = pick(&mut rng, &[1, 16]);
    let commands = requests(&shape, seed);
    model.run_timed(commands.into_iter(), depth).unwrap_or_else(|error| panic!("depth {depth}: {error}"));
    model.check();
    true
}

fn cut(entry: &'static Entry, seed: u64, stride: u64, blocks: u64) -> bool {
    let mut rng = Rng::new(seed, 0xf13e);
    let Ok(shape) = draw(entry, &mut rng, blocks) else { return false };
    if shape.drive.logical_pages() > 1000 {
        return true;
    }
    cut_everywhere(entry, &shape, seed, stride, |first, rng| Cuts {
        first,
        in_recovery: (0..rng.below(3)).map(|_| 1 + rng.below(30)).collect(),
        second: (rng.below(2) == 0).then(|| 1 + rng.below(60)),
    });
    true
}

/// Lives of drives that ended.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Blocks fail until no room is left: the drive keeps what the host wrote before.
fn worn_out(entry: &'static Entry, seed: u64) -> bool {
    let mut rng = Rng::new(seed, 0xf15e);
    let Ok(shape) = draw(entry, &mut rng, 150) else { return false };
    let faults = ["faults.program_fail=3%", "faults.erase_fail=3%"];
    let Ok(shape) = build(entry.name, &with(&shape.settings, &faults)) else { return false };
    note(&shape.settings);
    let mut model = Model::new(&shape, entry, pick(&mut rng, &[Payload::Tag, Payload::Bytes]), seed);
    for command in (0..4).flat_map(|round| requests(&shape, seed + round)) {
        match model.count(command) {
            Ok(()) => {}
            Err(Error::WornOut(_)) => {
                model.interrupted(command);
                model.read_back().unwrap_or_else(|error| panic!("after {command:?} ended it: {error}"));
                ENDED.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            Err(error) => panic!("{command:?}: {error}"),
        }
    }
    true
}

#[test]
fn worn_out_drives_stay_readable() {
    for_each_seed_of(ENTRIES, "filesystem::worn_out_drives_stay_readable", 12, worn_out);
    let ended = ENDED.load(Ordering::Relaxed);
    println!("{ended} drives ended");
    assert!(ended > 50 || is_partial(), "{ended} drives ended");
}

/// Records that mounts could not read, pages of the disk that they lost, and drives without any loss of records.
static LOST: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Pages become unreadable, and the power fails: the host reads its data or errors, and data that it writes again.
fn unreadable(entry: &'static Entry, seed: u64) -> bool {
    let mut rng = Rng::new(seed, 0xf14e);
    let Ok(shape) = draw(entry, &mut rng, 150) else { return false };
    // No read errors beside the given ones.
    let errors = with(&READ_ERRORS.map(String::from), &["ecc.disturb_reads=0", "ecc.refresh_retries=0"]);
    let errors: Vec<&str> = errors.iter().map(String::as_str).collect();
    let Ok(shape) = build(entry.name, &with(&shape.settings, &errors)) else { return false };
    note(&shape.settings);
    let mut powered = Powered::new(&shape, entry, seed);
    let flush = Command::new(RequestKind::Flush, Extent { sector: 0, sectors: 1 });
    let never = Cuts { first: u64::MAX, in_recovery: vec![], second: None };
    let commands: Vec<Command> = workload(&shape, seed, 60).into_iter().chain([flush]).collect();
    assert!(powered.run(&shape, &commands, &never));
    let (geometry, share) = (shape.drive.geometry, pick(&mut rng, &[15, 60, 250]));
    for ppn in 0..geometry.pages() as u32 {
        let width = geometry.subpages_per_page;
        let nand = &mut powered.drive.io.nand;
        let held = (0..width).filter(|at| nand.logical(ppn * width + at) < TORN && nand.programs(ppn) > 0);
        let mask = held.filter(|_| rng.below(share) == 0).fold(0, |mask, at| mask | 1 << at);
        nand.lose(ppn, mask);
    }
    let again: Vec<u64> = (0..rng.below(3)).map(|_| 1 + rng.below(40)).collect();
    powered.recover(&again).expect("a recovery");
    powered.check();
    powered.read_all(&shape.drive, true).expect("reads need no space");
    let own = powered.drive.ftl.figures().own;
    let figure = |name| own.iter().find(|(of, _)| *of == name).map(|(_, figure)| *figure);
    for (seen, name) in LOST.iter().zip(["fs_lost_records", "fs_lost_pages"]) {
        let Some(Figure::Count(count)) = figure(name) else { panic!("{name} is no figure of this drive") };
        seen.fetch_add(count, Ordering::Relaxed);
    }
    LOST[2].fetch_add((figure("fs_lost_records") == Some(Figure::Count(0))).into(), Ordering::Relaxed);
    // Collection may move a lost page until the host has written it again.
    let page = u64::from(geometry.page_bytes()) / 512;
    let again: Vec<Command> = fill(&shape.drive, page).chain([flush]).collect();
    for &command in &again {
        powered.serve(command).expect("there is room");
        powered.served(command);
    }
    powered.recover(&[]).expect("a recovery");
    powered.unreadable = 0;
    powered.read_all(&shape.drive, true).expect("reads need no space");
    assert_eq!(powered.unreadable, 0, "the host has written every page again");
    powered.check();
    true
}

#[test]
fn power_cuts_after_losses() {
    for_each_seed_of(ENTRIES, "filesystem::power_cuts_after_losses", 9, unreadable);
    let seen = LOST.each_ref().map(|count| count.load(Ordering::Relaxed));
    println!("{seen:?}");
    assert!(seen.iter().all(|&count| count > 0) || is_partial(), "{seen:?}");
}

#[test]
fn counted_sequences() {
    for_each_seed_of(ENTRIES, "filesystem::counted_sequences", 12, |entry, seed| {
        counted(entry, seed, if seed % 6 == 0 { Payload::Bytes } else { Payload::Tag })
    });
}

#[test]
fn timed_sequences() {
    for_each_seed_of(ENTRIES, "filesystem::timed_sequences", 12, timed);
}

#[test]
fn power_cuts() {
    for_each_seed_of(ENTRIES, "filesystem::power_cuts", 7, |entry, seed| cut(entry, seed, 61, 150));
}

#[test]
#[ignore = "minutes"]
fn long_sequences() {
    for_each_seed_of(ENTRIES, "--ignored filesystem::long_sequences", 250, |entry, seed| {
        counted(entry, seed + 1000, Payload::Tag) && timed(entry, seed + 1000)
    });
}

/// Cuts every operation, on drives whose seeds are `part` modulo 4.
fn long_power_cuts(part: u64) {
    let test = format!("--ignored filesystem::long_power_cuts_{part}");
    for_each_seed_of(ENTRIES, &test, 6, |entry, seed| cut(entry, 1000 + 4 * seed + part, 1, 150));
}

#[test]
#[ignore = "minutes"]
fn long_power_cuts_0() {
    long_power_cuts(0);
}

#[test]
#[ignore = "minutes"]
fn long_power_cuts_1() {
    long_power_cuts(1);
}

#[test]
#[ignore = "minutes"]
fn long_power_cuts_2() {
    long_power_cuts(2);
}

#[test]
#[ignore = "minutes"]
fn long_power_cuts_3() {
    long_power_cuts(3);
}
