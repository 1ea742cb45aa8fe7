//! The file systems as layers: sequences of requests, counted and timed, and power cuts, as for every other layer, on
//! drives large enough for a file system. Writes are durable after a flush only.

use crate::drives::{Shape, build, cells, of_layer, pick, plain, with};
use crate::harness::{Model, for_each_seed_of, is_partial, note};
use crate::power::{Cuts, Powered, cut_everywhere, workload};
use crate::sequences::requests;
use crate::workload::fill;
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::{Entry, Figure};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::host::fs::layers::ENTRIES;
use palimpsest_lab::nand::TORN;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// A drive for a file system: about `blocks` blocks, of which the smaller part is logical space.
pub fn draw(entry: &Entry, rng: &mut Rng, blocks: u64) -> Option<Shape> {
    draw_with(entry, rng, blocks, &[])
}

/// As [`draw`], with `more` settings.
pub fn draw_with(entry: &Entry, rng: &mut Rng, blocks: u64, more: &[&str]) -> Option<Shape> {
    let (channels, dies, planes) = pick(rng, &[(1, 1, 1), (2, 1, 1), (2, 1, 2), (4, 1, 1), (2, 2, 1), (8, 1, 1)]);
    let subpages = pick(rng, &[1u32, 1, 2, 4]);
    let subpages = subpages.max(entry.least_subpages());
    let base =
        plain(channels, (blocks / u64::from(channels * dies * planes)) as u32, pick(rng, &[8, 16, 32]), subpages);
    let order = pick(rng, &[("slc", "strict"), ("mlc", "strict"), ("mlc", "low-low-high")]);
    let settings = with(
        &base,
        &[
            &format!("ssd.dies_per_chip={dies}"),
            &format!("ssd.planes_per_die={planes}"),
            &format!("part.cell={}", order.0),
            &format!("part.order={}", order.1),
            &format!("ftl.wear_leveling={}", pick(rng, &["none", "dynamic", "static"])),
            "ftl.wear_threshold=2",
            &format!("sim.cache_register={}", pick(rng, &["true", "false"])),
        ],
    );
    let drawn = draw_below(entry, rng, &settings);
    // Another source of random numbers, so that the drives of each seed stay as they were.
    let features = features(entry, &mut Rng::new(rng.clone().next_u64(), 0xfea7));
    build(entry.name, &with(&with(&drawn, &features), more)).ok()
}

/// Features of the controller and of the part that some drives have.
fn features(entry: &Entry, rng: &mut Rng) -> Vec<&'static str> {
    let mut features = Vec::new();
    if rng.below(3) == 0 {
        features.extend(READ_ERRORS);
        features.push(pick(rng, &["ecc.disturb_reads=4", "ecc.disturb_reads=15", "ecc.disturb_reads=60"]));
        features.push(pick(rng, &["ecc.refresh_retries=0", "ecc.refresh_retries=1", "ecc.refresh_retries=2"]));
        features.push(pick(rng, &["ftl.patrol=0ns", "ftl.patrol=20ms"]));
        features.extend(cells(&mut Rng::new(rng.clone().next_u64(), 0xce11)));
    }
    if rng.below(3) == 0 {
        features.push(pick(rng, &["controller.read_ahead=1", "controller.read_ahead=3"]));
        features.push(pick(rng, &["controller.read_streams=1", "controller.read_streams=3"]));
    }
    if entry.word_lines && rng.below(4) == 0 {
        features.extend(WORD_LINES);
    } else if entry.takes_parity && rng.below(4) == 0 {
        let of_dies = ["ftl.superblocks=collected", "ftl.superblocks=collected", "ftl.rain=1", "ftl.rain=3"];
        features.push(pick(&mut Rng::new(rng.next_u64(), 0x5b15), &of_dies));
        features.extend(["part.cell=slc", "part.order=strict"]);
    }
    features
}

/// Bit errors that grow with the reads of a block: some reads need retries, some are uncorrectable.
const READ_ERRORS: [&str; 4] = [
    "part.ber_fresh=0.05%",
    "ecc.strength=18",
    "ecc.t_retries=[\"50us\", \"90us\"]",
    "ecc.retry_rates=[\"80%\", \"60%\"]",
];

/// Word lines of three pages that are programmed in one shot.
const WORD_LINES: [&str; 8] = [
    "part.cell=tlc",
    "part.order=strict",
    "part.nop=1",
    "part.pages_per_program=3",
    "part.pages_per_block=24",
    "part.pair_corruption=false",
    "part.t_read_high=40us",
    "part.t_program_high=200us",
];

/// Variations of the layer, and of the buffer if the layer has one.
fn draw_below(entry: &Entry, rng: &mut Rng, settings: &[String]) -> Vec<String> {
    let below = entry.below.expect("a file system is above a layer");
    let streams = ["ftl.streams=3", "buffer.timeout=300us"];
    let streams: &[&str] = if below.gathers { &streams } else { &[] };
    let mut drawn = of_layer(entry, rng, &with(settings, streams));
    if below.gathers {
        let classifiers: &[&str] =
            if entry.lists("ftl.classifier") { &["none", "size", "hint", "hint"] } else { &["none", "size"] };
        let classifier = format!("ftl.classifier={}", pick(rng, classifiers));
        drawn = with(&drawn, &[&classifier, &format!("buffer.ack={}", pick(rng, &["buffer", "program"]))]);
    }
    // Another source of random numbers, so that the drives of each seed stay as they were.
    let mut other = Rng::new(rng.clone().next_u64(), 0xb0f);
    if !below.gathers || other.below(4) == 0 {
        drawn = with(&drawn, &[&format!("buffer.ack={}", pick(&mut other, &["buffer", "program", "volatile"]))]);
    }
    let protected = !drawn.iter().any(|set| set == "buffer.ack=program" || set == "buffer.ack=volatile");
    if protected && rng.clone().below(3) == 0 {
        drawn = with(&drawn, &["buffer.flush=free"]);
    }
    if other.below(5) == 0 {
        return with(&drawn, &["ftl.checkpoint=40KiB", "ssd.over_provisioning=500%"]);
    }
    let over_provisioning = format!("ssd.over_provisioning={}%", pick(rng, &[150, 200, 400]));
    with(&drawn, &[&over_provisioning])
}

fn counted(entry: &'static Entry, seed: u64, payload: Payload) -> bool {
    let mut rng = Rng::new(seed, 0xf11e);
    let Some(mut shape) = draw(entry, &mut rng, 200) else { return false };
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
            Err(Error::WornOut(_)) if faulty => return true,
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
    let Some(shape) = draw(entry, &mut rng, 200) else { return false };
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
    let Some(shape) = draw(entry, &mut rng, blocks) else { return false };
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

/// Records that mounts could not read, pages of the disk that they lost, and drives without any loss of records.
static LOST: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Pages become unreadable, and the power fails: the host reads its data or errors, and data that it writes again.
fn unreadable(entry: &'static Entry, seed: u64) -> bool {
    let mut rng = Rng::new(seed, 0xf14e);
    let Some(shape) = draw(entry, &mut rng, 150) else { return false };
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
