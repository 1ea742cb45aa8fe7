//! Superblocks that are collected as one block (`ftl.superblocks = collected`): random requests against the shadow,
//! counted, timed and with power cuts. Counts equal the counts of a drive whose blocks are that large.

use crate::drives::{Limits, Shape, build, draw_with, pick, plain, with};
use crate::filesystem;
use crate::harness::{Model, count_cuts, for_each_seed, for_each_seed_of, note};
use crate::power::{Cuts, cut_everywhere};
use crate::word_lines::word_lines;
use crate::workload::{Mix, fill};
use palimpsest_ftl_api::plan::{ParityIo, PowerIo};
use palimpsest_lab::ftl::{Entry, Programs};
use palimpsest_lab::host::fs::layers::ENTRIES;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::faults::power_cuts::draws;
use palimpsest_lab::sim::faults::schedule::Schedule;

/// Features which such superblocks refuse.
const NEEDS: [&str; 4] =
    ["part.pair_corruption=false", "ftl.slc_cache=0 blocks", "ftl.slc_fixed=0 blocks", "ftl.superblocks=collected"];

/// The cells that the layer needs, or SLC, pairs of MLC, or word lines that are programmed in one shot.
fn cells(entry: &Entry, seed: u64, rng: &mut Rng) -> Vec<String> {
    let settings = match seed % 3 {
        _ if entry.needs().iter().any(|need| need.starts_with("part.cell=")) => return Vec::new(),
        1 if entry.word_lines => return with(&word_lines(entry, rng), &["part.order=ascending"]),
        2 => ["part.cell=mlc", pick(&mut Rng::new(seed, 0x5b14), &["part.order=low-low-high", "part.order=strict"])],
        _ => ["part.cell=slc", "part.order=ascending"],
    };
    settings.map(String::from).into()
}

fn drawn(entry: &'static Entry, seed: u64) -> Option<Shape> {
    let mut rng = Rng::new(seed, 0x5b10);
    let cells = cells(entry, seed, &mut rng);
    let dies = pick(&mut rng, &[0, 2, 4]);
    let turns = format!("ftl.superblock_dies={dies}");
    let planes = pick(&mut Rng::new(seed, 0x5b15), &["one", "all", "all"]);
    let planes = format!("ftl.superblock_planes={planes}");
    let mut settings = with(&with(&cells, &NEEDS), &[&turns, &planes]);
    if entry.programs == Programs::Subpages {
        let order = pick(&mut Rng::new(seed, 0x5b13), &["part.order=ascending", "part.order=strict"]);
        settings = with(&settings, &[order]);
    }
    let shape = draw_striped(entry, &mut rng, &settings)?;
    note(&shape.settings);
    // Zones below a file system may be stripes with parity instead.
    (shape.drive.stripes.is_some() && shape.drive.ftl.get::<u32>("ftl.rain") == 0).then_some(shape)
}

/// A drive with `settings`; drives of file systems are larger.
pub fn draw_striped(entry: &'static Entry, rng: &mut Rng, settings: &[String]) -> Option<Shape> {
    // Read errors would lose data, too.
    let without = ["ftl.checkpoint=0B", "ecc.strength=0", "ftl.patrol=0ns"].map(String::from);
    let own: Vec<&str> = settings.iter().map(String::as_str).collect();
    if !entry.is_file_system() {
        return draw_with(entry.name, rng, Limits { subpages: 2048, planes: 8 }, &own).ok();
    }
    let settings = with(&without, &own);
    filesystem::draw_with(entry, rng, 200, &settings.iter().map(String::as_str).collect::<Vec<_>>()).ok()
}

pub fn life(entry: &'static Entry, seed: u64) -> bool {
    if !entry.superblocks {
        return true;
    }
    let Some(shape) = drawn(entry, seed) else { return false };
    let mut rng = Rng::new(seed, 0x5b11);
    let payload = if seed.is_multiple_of(3) { Payload::Bytes } else { Payload::Tag };
    let mut model = Model::new(&shape, entry, payload, seed);
    let mut mix = Mix::new(&shape.drive, seed);
    let commands: Vec<_> = (0..800).map(|_| mix.draw()).collect();
    let failed = |error| panic!("{error}");
    let timed = seed.is_multiple_of(2);
    if timed {
        model.shadow.start_timing();
    }
    if rng.below(2) == 0 {
        model.shadow.expect_power_cut(false);
        model.drive.power.read_back = Some(shape.drive.logical_subpages());
        model.drive.io.set_power_cut_at(Some(1 + rng.below(1000)));
        count_cuts(1);
    }
    if timed {
        model.drive.start_timing().unwrap_or_else(failed);
        model.run_timed(commands.into_iter(), pick(&mut rng, &[1, 4, 16])).unwrap_or_else(failed);
        model.drive.end_life();
    } else {
        commands.into_iter().for_each(|command| model.count(command).unwrap_or_else(failed));
    }
    model.check();
    model.read_back().unwrap_or_else(failed);
    assert_eq!(model.drive.io.rain_figures(), None, "there is no parity");
    true
}

/// The drive with so much spare space that it survives many power cuts, each of which spoils a page of each die.
pub fn with_spare(entry: &'static Entry, shape: &Shape) -> Option<Shape> {
    build(entry.name, &with(&shape.settings, &["ssd.over_provisioning=400%"])).ok()
}

/// Serves 500 requests, timed, while the power fails every `least` operations or up to 100 more, in the mean.
pub fn run_through_cuts(model: &mut Model, rng: &mut Rng, seed: u64, least: u64) {
    let mut mix = Mix::new(&model.config, seed);
    let commands: Vec<_> = (0..500).map(|_| mix.draw()).collect();
    let failed = |error| panic!("{error}");
    model.shadow.start_timing();
    model.shadow.expect_power_cuts(false);
    model.drive.power.read_back = Some(model.config.logical_subpages());
    model.drive.start_timing().unwrap_or_else(failed);
    let cuts = Schedule::Poisson(least + rng.below(100));
    model.drive.schedule_power_cuts(draws(cuts, seed, model.drive.operations_run()));
    model.run_timed(commands.into_iter(), pick(rng, &[1, 4, 16])).unwrap_or_else(failed);
    model.drive.end_life();
    model.check();
    count_cuts(model.drive.power.cuts);
}

/// The power fails repeatedly while pages left out by earlier cuts are still to be programmed, and blocks are partly
/// erased.
fn cut_again_and_again(entry: &'static Entry, seed: u64) -> bool {
    if !entry.superblocks {
        return true;
    }
    let Some(shape) = drawn(entry, seed).and_then(|shape| with_spare(entry, &shape)) else { return false };
    let mut model = Model::new(&shape, entry, Payload::Tag, seed);
    // A request may have to wait until a block is collected, and a cut loses that work.
    let to_clean = 3 * u64::from(shape.drive.geometry.pages_per_block * shape.drive.part.pages_per_program);
    run_through_cuts(&mut model, &mut Rng::new(seed, 0x5b12), seed, 20 + to_clean);
    model.read_back().unwrap_or_else(|error| panic!("{error}"));
    true
}

#[test]
fn the_power_fails_again_and_again() {
    for_each_seed("superblocks::the_power_fails_again_and_again", 10, cut_again_and_again);
}

#[test]
fn sequences() {
    for_each_seed("superblocks::sequences", 40, life);
}

fn either(entry: &'static Entry, seed: u64) -> bool {
    if seed.is_multiple_of(3) { cut_again_and_again(entry, seed) } else { life(entry, seed) }
}

#[test]
fn below_file_systems() {
    for_each_seed_of(ENTRIES, "superblocks::below_file_systems", 6, either);
}

#[test]
#[ignore = "minutes"]
fn long_sequences() {
    for_each_seed("--ignored superblocks::long_sequences", 1000, |entry, seed| life(entry, seed + 1000));
    for_each_seed_of(ENTRIES, "--ignored superblocks::long_sequences", 200, |entry, seed| either(entry, seed + 1000));
}

/// The power fails in every third operation of a workload, partial erases of a superblock included, then in recovery,
/// and again.
#[test]
fn power_cuts_everywhere() {
    for_each_seed("superblocks::power_cuts_everywhere", 3, |entry, seed| {
        if !entry.superblocks {
            return true;
        }
        // Few drives of a layer with blocks for its map are small.
        let small = |shape: &Shape| shape.drive.geometry.subpages() <= 700;
        let drawn = (0..10).find_map(|draw| drawn(entry, seed + draw * 7919).filter(small));
        let Some(shape) = drawn else { return false };
        cut_everywhere(entry, &shape, seed, 3, |first, rng| Cuts {
            first,
            in_recovery: vec![1 + rng.below(60)],
            second: Some(1 + rng.below(60)),
        });
        true
    });
}

/// A superblock of D dies is a block of D times the pages. The drive programs the same pages of the same blocks as a
/// drive of fewer dies with such blocks, and each erase is an erase of D blocks.
#[test]
fn counts_are_those_of_blocks_as_large() {
    for (dies, of) in [(2, 2), (4, 2), (8, 4), (8, 0)] {
        let members = if of == 0 { dies } else { of };
        let more = ["ssd.over_provisioning=40%", "ftl.gc_pace=block"];
        let superblocks = [format!("ftl.superblock_dies={of}"), "ftl.superblocks=collected".into()];
        let superblocks: Vec<&str> = superblocks.iter().map(String::as_str).collect();
        let groups = dies / members;
        let in_turn = format!("ftl.superblock_dies={}", u32::from(groups > 1));
        let drives = [
            with(&with(&plain(dies, 12, 8, 1), &more), &superblocks),
            with(&with(&plain(groups, 12, 8 * members, 1), &more), &[in_turn.as_str()]),
        ];
        let counts = drives.map(|settings| {
            let shape = build("page", &settings).expect("a drive");
            let mut model = Model::new(&shape, crate::drives::entry("page"), Payload::Tag, 1);
            for command in fill(&shape.drive, 8) {
                model.count(command).expect("room");
            }
            let mut mix = Mix::new(&shape.drive, 3);
            (0..3000).for_each(|_| model.count(mix.draw()).expect("room"));
            model.check();
            let io = &model.drive.io;
            (io.counters.programs, io.counters.reads, io.nand().counters().erases)
        });
        let [(programs, reads, erases), (of_large, reads_of_large, erases_of_large)] = counts;
        assert_eq!((programs, reads), (of_large, reads_of_large), "{dies} dies, superblocks of {members}");
        assert_eq!(erases, erases_of_large * u64::from(members), "erases of {dies} dies, superblocks of {members}");
        assert!(erases_of_large > 20, "{erases_of_large}");
    }
}
