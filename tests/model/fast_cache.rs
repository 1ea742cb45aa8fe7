//! The fixed share of a fast cache (`ftl.slc_fixed`), or the dynamic share of layers without one: random requests
//! against the shadow, counted and timed, failing programs and erases, folding in idle time, and power cuts with and
//! without checkpoints. Also checks on flash that blocks of the fixed share, and no others, are fast, and hold the
//! host's data only.

use crate::background::idle_with;
use crate::drives::{Limits, Shape, draw_with, pick, with};
use crate::harness::{Model, for_each_seed, is_partial, note, payload_of};
use crate::power::{Cuts, cut_everywhere, small_with};
use crate::power_timed::{Case, cut_case};
use crate::sequences::{SMALL, count_requests, requests, time_requests};
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::{Entry, Figure, Programs};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use std::cell::Cell;

/// Settings of a fast cache with a fixed share; a third of the drives have a dynamic one, too.
fn cached(rng: &mut Rng) -> Vec<&'static str> {
    let mut settings = vec![
        pick(rng, &["part.cell=mlc", "part.cell=tlc", "part.cell=qlc"]),
        pick(rng, &["ftl.slc_fixed=1 blocks", "ftl.slc_fixed=2 blocks", "ftl.slc_fixed=4 blocks"]),
        pick(rng, &["ftl.slc_full=direct", "ftl.slc_full=fold"]),
        pick(rng, &["ftl.slc_cache=0 blocks", "ftl.slc_cache=0 blocks", "ftl.slc_cache=2 blocks"]),
        pick(rng, &["ftl.streams=2", "ftl.streams=2", "ftl.streams=3"]),
        pick(rng, &["ftl.gc_pace=block", "ftl.gc_pace=paced"]),
        pick(rng, &["part.pair_corruption=false", "part.pair_corruption=true"]),
        pick(rng, &["part.pages_per_block=8", "part.pages_per_block=12", "part.pages_per_block=16"]),
        pick(rng, &["ftl.wear_leveling=none", "ftl.wear_leveling=dynamic", "ftl.wear_leveling=static"]),
    ];
    settings.extend(["ftl.moved=together", "ftl.moved_to=plane", "part.order=strict", "part.nop=1"]);
    settings.extend(["part.t_read_high=40us", "part.t_program_high=200us"]);
    settings.extend(["part.t_read=40us", "part.t_program=200us", "part.t_read_slc=20us", "part.t_program_slc=70us"]);
    settings
}

const DYNAMIC: [&str; 3] = ["ftl.slc_cache=1 blocks", "ftl.slc_cache=2 blocks", "ftl.slc_cache=4 blocks"];
const LARGE: [&str; 3] = ["part.pages_per_block=32", "part.pages_per_block=48", "part.pages_per_block=64"];

/// A dynamic share alone.
fn dynamic(rng: &mut Rng) -> [&'static str; 3] {
    ["ftl.slc_fixed=0 blocks", "ftl.slc_full=direct", pick(rng, &DYNAMIC)]
}

/// For a layer that programs pages again: how often, and in which order, or the word lines of its code; for reclaim
/// units: which have a fast cache.
fn programs(entry: &Entry, seed: u64) -> Vec<&'static str> {
    let rng = &mut Rng::new(seed, 0xfa5a);
    match entry.programs {
        Programs::Subpages => vec![
            pick(rng, &["part.nop=1", "part.nop=2", "part.nop=4"]),
            pick(rng, &["part.order=strict", "part.order=ascending"]),
        ],
        // Word lines of four pages, and the dynamic share alone.
        Programs::OverData => [dynamic(rng).to_vec(), vec!["part.cell=qlc", pick(rng, &LARGE)]].concat(),
        // Reclaim units of one block, and data that joins other data when it moves.
        Programs::Once if entry.lists("fdp.unit") => {
            [dynamic(rng).to_vec(), vec!["fdp.unit=block", "fdp.isolation=initial", "fdp.shares=[]"]].concat()
        }
        Programs::Once => Vec::new(),
    }
}

/// The drive of `seed`, with `more` settings. `None` if the layer rejects them.
fn shape(entry: &'static Entry, seed: u64, limits: Limits, more: &[&str]) -> Option<(Shape, Rng)> {
    let mut rng = Rng::new(seed, 0xfa57);
    let settings: Vec<String> = cached(&mut rng).into_iter().map(String::from).collect();
    let settings = with(&with(&settings, &programs(entry, seed)), more);
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let shape = draw_with(entry.name, &mut rng, limits, &settings).ok()?;
    assert!(shape.drive.fixed_single() > 0 || !entry.lists("ftl.slc_fixed"));
    Some((shape, rng))
}

/// Layers without a fast cache are done.
fn can(entry: &Entry) -> bool {
    entry.lists("ftl.slc_cache")
}

#[test]
fn sequences() {
    for_each_seed("fast_cache::sequences", 32, |entry, seed| {
        if !can(entry) {
            return true;
        }
        let Some((shape, mut rng)) = shape(entry, seed, SMALL, &[]) else { return false };
        let payload = payload_of(entry, seed);
        match seed % 2 {
            0 => count_requests(&shape, entry, seed, payload, 3),
            _ => time_requests(&shape, entry, seed, payload, &mut rng),
        }
        true
    });
}

#[test]
fn failing_programs_and_erases() {
    for_each_seed("fast_cache::failing_programs_and_erases", 12, |entry, seed| {
        if !can(entry) {
            return true;
        }
        let faults = ["faults.program_fail=0.5%", "faults.erase_fail=0.4%", "faults.read_fail=1%"];
        let Some((shape, _)) = shape(entry, seed, SMALL, &faults) else { return false };
        note(&shape.settings);
        let mut model = Model::new(&shape, entry, Payload::Tag, seed);
        for command in requests(&shape, seed) {
            match model.count(command) {
                Ok(()) => {}
                Err(Error::WornOut(_)) => {
                    model.interrupted(command);
                    break;
                }
                Err(error) => panic!("{command:?}: {error}"),
            }
        }
        model.read_back().unwrap_or_else(|error| panic!("at the end: {error}"));
        true
    });
}

/// Cuts at every third operation of a counted run, in recovery, and with checkpoints.
#[test]
fn cuts() {
    for_each_seed("fast_cache::cuts", 8, |entry, seed| cut_counted(entry, seed, 3));
}

fn cut_counted(entry: &'static Entry, seed: u64, stride: u64) -> bool {
    if !can(entry) {
        return true;
    }
    let mut settings = cached(&mut Rng::new(seed, 0xfa58));
    settings.push(["ftl.checkpoint=0B", "ftl.checkpoint=40KiB"][(seed % 2) as usize]);
    let settings: Vec<String> = settings.into_iter().map(String::from).collect();
    let settings = with(&settings, &programs(entry, seed));
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let Ok(shape) = small_with(entry, seed, &settings) else { return false };
    cut_everywhere(entry, &shape, seed, stride, |first, rng| Cuts {
        first,
        in_recovery: (0..rng.below(2)).map(|_| 1 + rng.below(4)).collect(),
        second: Some(1 + rng.below(20)),
    });
    true
}

fn cut_timed(entry: &'static Entry, seed: u64, cuts: u64) -> bool {
    if !can(entry) {
        return true;
    }
    let acknowledged = ["buffer.ack=program", "buffer.ack=volatile", "buffer.ack=buffer"][(seed % 3) as usize];
    let suspend = ["sim.suspend=none", "sim.suspend=program-erase"][(seed / 3 % 2) as usize];
    let small = Limits { subpages: 512, planes: 4 };
    let Some((shape, mut rng)) = shape(entry, seed, small, &[acknowledged, suspend]) else { return false };
    let mut commands = requests(&shape, seed);
    let counted = commands.len() / 3;
    commands.truncate(counted + 300);
    let payload = payload_of(entry, seed);
    let case = Case { shape, entry, seed, payload, commands, counted, depth: pick(&mut rng, &[1, 4, 32]) };
    cut_case(&case, cuts);
    true
}

#[test]
fn cuts_in_timed_runs() {
    for_each_seed("fast_cache::cuts_in_timed_runs", 10, |entry, seed| cut_timed(entry, seed, 6));
}

/// With power cuts in half of the runs.
#[test]
fn folding_while_the_host_is_idle() {
    for_each_seed("fast_cache::folding_while_the_host_is_idle", 8, |entry, seed| {
        let cached: Vec<String> = cached(&mut Rng::new(seed, 0xfa59)).into_iter().map(String::from).collect();
        let own = if entry.programs == Programs::Subpages { Vec::new() } else { programs(entry, seed) };
        let settings = with(&cached, &own);
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        !can(entry) || idle_with(entry, seed, &settings).is_some()
    });
}

/// Without a dynamic share, the blocks of the fixed share, and no others, hold one bit a cell, with as many pages. They
/// are overwritten again and again, and folded.
#[test]
fn the_fixed_share_and_no_other_block_holds_one_bit_a_cell() {
    let (folds, erases) = (Cell::new(0), Cell::new([0; 2]));
    for_each_seed("fast_cache::the_fixed_share_and_no_other_block_holds_one_bit_a_cell", 12, |entry, seed| {
        if !entry.lists("ftl.slc_fixed") {
            return true;
        }
        let Some((shape, _)) = shape(entry, seed, SMALL, &["ftl.slc_cache=0 blocks"]) else { return false };
        note(&shape.settings);
        let mut model = Model::new(&shape, entry, Payload::Tag, seed);
        let pages = shape.drive.geometry.pages_per_block / shape.drive.part.stored_bits();
        for (number, command) in requests(&shape, seed).into_iter().enumerate() {
            model.count(command).unwrap_or_else(|error| panic!("{command:?}: {error}"));
            let nand = &model.drive.io.nand;
            for block in (0..nand.geometry().blocks()).filter(|&block| number % 64 == 0 && nand.next_page(block) > 0) {
                let fixed = nand.is_always_single(block);
                assert!(nand.is_bad(block) || nand.is_single(block) == fixed, "block {block}");
                assert!(!fixed || nand.next_page(block) <= pages, "block {block}");
            }
        }
        let nand = &model.drive.io.nand;
        for block in 0..nand.geometry().blocks() {
            let mut all = erases.get();
            all[usize::from(nand.is_always_single(block))] += nand.erases(block);
            erases.set(all);
        }
        let own = model.drive.ftl.figures().own;
        let folded = own.iter().find_map(|figure| match figure {
            ("folded_blocks", Figure::Count(count)) => Some(*count),
            _ => None,
        });
        folds.set(folds.get() + folded.expect("a figure of such layers"));
        true
    });
    let (folds, erases) = (folds.get(), erases.get());
    println!("{folds} folds, {erases:?} erases");
    assert!(is_partial() || folds > 100 && erases.iter().all(|&count| count > 500));
}

#[test]
#[ignore = "minutes"]
fn long_cuts() {
    for_each_seed("--ignored fast_cache::long_cuts", 150, |entry, seed| cut_counted(entry, seed + 1000, 1));
}

#[test]
#[ignore = "minutes"]
fn long_cuts_in_timed_runs() {
    for_each_seed("--ignored fast_cache::long_cuts_in_timed_runs", 300, |entry, seed| {
        cut_timed(entry, seed + 1000, 20)
    });
}

#[test]
#[ignore = "minutes"]
fn long_sequences() {
    for_each_seed("--ignored fast_cache::long_sequences", 1000, |entry, seed| {
        if !can(entry) {
            return true;
        }
        let Some((shape, mut rng)) = shape(entry, seed + 1000, SMALL, &[]) else { return false };
        match seed % 2 {
            0 => count_requests(&shape, entry, seed, Payload::Tag, 1),
            _ => time_requests(&shape, entry, seed, Payload::Tag, &mut rng),
        }
        true
    });
}
