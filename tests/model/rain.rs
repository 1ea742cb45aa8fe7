//! Parity across dies: a failing die loses no data, in counted and timed runs, with power cuts; uncorrectable reads are
//! rebuilt; and the costs match closed forms.

use crate::drives::{Shape, build, pick, plain, with};
use crate::harness::{Model, count_cuts, for_each_seed, for_each_seed_of, is_partial, note};
use crate::power::{Cuts, cut_everywhere};
use crate::room::is_tight;
use crate::superblocks::{draw_striped, run_through_cuts, with_spare};
use crate::word_lines::word_lines;
use crate::workload::{Mix, fill};
use palimpsest_ftl_api::plan::{ParityIo, PowerIo};
use palimpsest_lab::error::Error;
use palimpsest_lab::ftl::Entry;
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::host::fs::layers::ENTRIES;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::plan::ledger::Mutation;
use palimpsest_lab::plan::{Cause, OperationKind};
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

static REBUILT: AtomicU64 = AtomicU64::new(0);
static MOVED: AtomicU64 = AtomicU64::new(0);
static FAILED_READS: AtomicU64 = AtomicU64::new(0);

/// Settings that exclude features of some drives only, and features which parity refuses.
const NEEDS: [&str; 4] =
    ["part.order=ascending", "ftl.slc_cache=0 blocks", "ftl.slc_fixed=0 blocks", "ftl.superblock_dies=0"];

fn drawn(entry: &'static Entry, seed: u64, more: &[&str]) -> Option<Shape> {
    let mut rng = Rng::new(seed, 0x4a14);
    let rain = format!("ftl.rain={}", pick(&mut rng, &[1, 1, 2, 3]));
    // A third of the drives of layers that can have them have word lines that are programmed in one shot.
    let shot = entry.word_lines && seed % 3 == 1;
    let cells = if shot { word_lines(entry, &mut rng) } else { vec!["part.cell=slc".into()] };
    let settings = with(&with(&cells, &NEEDS), &with(&[rain], more).iter().map(String::as_str).collect::<Vec<_>>());
    let shape = draw_striped(entry, &mut rng, &settings)?;
    note(&shape.settings);
    Some(shape)
}

fn new_model(shape: &Shape, entry: &'static Entry, seed: u64) -> Model {
    Model::new(shape, entry, if seed.is_multiple_of(3) { Payload::Bytes } else { Payload::Tag }, seed)
}

/// A die fails within the next `operations`.
fn fail_a_die(model: &mut Model, rng: &mut Rng, operations: u64) {
    let begun = model.drive.io.nand().operations();
    let die = rng.below(model.config.physical.dies().into()) as u32;
    model.drive.io.nand.fail_dies(&[(begun + 1 + rng.below(operations), die)]);
}

/// In half of all cases the power fails, too.
fn cut_power(model: &mut Model, rng: &mut Rng, operations: u64) {
    if rng.below(2) == 0 {
        let begun = model.drive.io.nand().operations();
        model.shadow.expect_power_cut(false);
        model.drive.power.read_back = Some(model.config.logical_subpages());
        model.drive.io.set_power_cut_at(Some(begun + 1 + rng.below(operations)));
        count_cuts(1);
    }
}

/// Only stripes that were open when the power failed may lose data of an earlier failed die: their parity was in
/// memory.
fn nothing_is_lost(model: &mut Model, cut: bool) {
    let io = &model.drive.io;
    let lost: u64 = io.counters.lost.iter().sum();
    let figures = io.rain_figures().expect("parity");
    REBUILT.fetch_add(figures.rebuilt, Ordering::Relaxed);
    MOVED.fetch_add(figures.moved, Ordering::Relaxed);
    if !cut {
        assert_eq!((lost, figures.failed, model.shadow.unreadable), (0, 0, 0), "parity rebuilds all that a die held");
    }
}

fn counted(entry: &'static Entry, seed: u64) -> bool {
    if !entry.takes_parity {
        return true;
    }
    let Some(shape) = drawn(entry, seed, &[]) else { return false };
    let (mut model, mut rng) = (new_model(&shape, entry, seed), Rng::new(seed, 0x4a15));
    let mut mix = Mix::new(&shape.drive, seed);
    fail_a_die(&mut model, &mut rng, 1500);
    cut_power(&mut model, &mut rng, 2000);
    for index in 0..1200 {
        let command = mix.draw();
        match model.count(command) {
            Ok(()) => {}
            Err(Error::WornOut(_)) => {
                panic!("request {index}, {command:?}: a drive with parity loses no space to a die")
            }
            Err(error) => panic!("request {index}, {command:?}: {error}"),
        }
        if index % 50 == 0 {
            model.check();
        }
    }
    model.check();
    model.read_back().unwrap_or_else(|error| panic!("at the end: {error}"));
    let cut = model.drive.power.cuts > 0;
    nothing_is_lost(&mut model, cut);
    true
}

pub fn timed(entry: &'static Entry, seed: u64) -> bool {
    if !entry.takes_parity {
        return true;
    }
    let Some(shape) = drawn(entry, seed, &[]) else { return false };
    let (mut model, mut rng) = (new_model(&shape, entry, seed), Rng::new(seed, 0x4a16));
    let mut mix = Mix::new(&shape.drive, seed);
    model.shadow.start_timing();
    cut_power(&mut model, &mut rng, 1500);
    model.drive.start_timing().unwrap_or_else(|error| panic!("start of timing: {error}"));
    fail_a_die(&mut model, &mut rng, 1500);
    let commands: Vec<_> = (0..1000).map(|_| mix.draw()).collect();
    let depth = pick(&mut rng, &[1, 4, 16]);
    model.run_timed(commands.into_iter(), depth).unwrap_or_else(|error| panic!("{error}"));
    model.check();
    model.drive.end_life();
    model.read_back().unwrap_or_else(|error| panic!("at the end: {error}"));
    let cut = model.drive.power.cuts > 0;
    nothing_is_lost(&mut model, cut);
    true
}

/// The power fails in a drive with all dies working, and the drive continues. Of pages that dies had not begun or were
/// programming, the drive loses no more space than collection leaves, and no data.
pub fn healthy(entry: &'static Entry, seed: u64) -> bool {
    if !entry.takes_parity {
        return true;
    }
    let Some(shape) = drawn(entry, seed, &[]) else { return false };
    if !is_tight(&shape) {
        return false;
    }
    let (mut model, mut rng) = (new_model(&shape, entry, seed), Rng::new(seed, 0x4a19));
    let mut mix = Mix::new(&shape.drive, seed);
    let mut commands: Vec<_> = fill(&shape.drive, 8).collect();
    commands.extend((0..500).map(|_| mix.draw()));
    model.shadow.start_timing();
    model.shadow.expect_power_cut(false);
    model.drive.power.read_back = Some(shape.drive.logical_subpages());
    model.drive.io.set_power_cut_at(Some(shape.drive.logical_pages() + rng.below(1000)));
    count_cuts(1);
    let failed = |error| panic!("{error}");
    model.drive.start_timing().unwrap_or_else(failed);
    model.run_timed(commands.into_iter(), pick(&mut rng, &[1, 4, 16])).unwrap_or_else(failed);
    model.drive.end_life();
    model.check();
    model.read_back().unwrap_or_else(failed);
    nothing_is_lost(&mut model, false);
    true
}

#[test]
fn a_power_cut_ends_no_drive_whose_dies_work() {
    for_each_seed("rain::a_power_cut_ends_no_drive_whose_dies_work", 20, healthy);
}

/// The power fails repeatedly while pages left out by earlier cuts are still to be programmed; then a die fails: no
/// data is lost.
pub fn cut_again_and_again(entry: &'static Entry, seed: u64) -> bool {
    if !entry.takes_parity {
        return true;
    }
    let Some(shape) = drawn(entry, seed, &[]).and_then(|shape| with_spare(entry, &shape)) else { return false };
    let (mut model, mut rng) = (new_model(&shape, entry, seed), Rng::new(seed, 0x4a1a));
    run_through_cuts(&mut model, &mut rng, seed, 40);
    fail_a_die(&mut model, &mut rng, 1);
    model.read_back().unwrap_or_else(|error| panic!("{error}"));
    nothing_is_lost(&mut model, false);
    true
}

#[test]
fn nothing_is_lost_where_the_power_fails_again_and_again() {
    for_each_seed("rain::nothing_is_lost_where_the_power_fails_again_and_again", 10, cut_again_and_again);
}

/// After a recovery every stripe has parity again, on flash or in memory: a die that fails then loses no data.
fn after_a_cut(entry: &'static Entry, seed: u64) -> bool {
    if !entry.takes_parity {
        return true;
    }
    let Some(shape) = drawn(entry, seed, &[]) else { return false };
    let (mut model, mut rng) = (new_model(&shape, entry, seed), Rng::new(seed, 0x4a18));
    let mut mix = Mix::new(&shape.drive, seed);
    let commands: Vec<_> = (0..400).map(|_| mix.draw()).collect();
    let failed = |error| panic!("{error}");
    model.shadow.expect_power_cut(false);
    model.drive.power.read_back = Some(shape.drive.logical_subpages());
    model.drive.io.set_power_cut_at(Some(1 + rng.below(400)));
    count_cuts(1);
    if seed.is_multiple_of(2) {
        model.shadow.start_timing();
        model.drive.start_timing().unwrap_or_else(failed);
        model.run_timed(commands.into_iter(), pick(&mut rng, &[1, 4, 16])).unwrap_or_else(failed);
        model.drive.end_life();
    } else {
        commands.into_iter().for_each(|command| model.count(command).unwrap_or_else(failed));
    }
    if model.drive.power.cuts == 0 {
        return false;
    }
    fail_a_die(&mut model, &mut rng, 1);
    model.read_back().unwrap_or_else(failed);
    model.check();
    nothing_is_lost(&mut model, false);
    true
}

#[test]
fn a_die_that_fails_after_a_power_cut_loses_nothing() {
    for_each_seed("rain::a_die_that_fails_after_a_power_cut_loses_nothing", 20, after_a_cut);
}

/// The power fails in every third operation of a workload, programs of parity included, then in recovery, and again.
#[test]
fn power_cuts_everywhere() {
    for_each_seed("rain::power_cuts_everywhere", 3, |entry, seed| {
        if !entry.takes_parity {
            return true;
        }
        let Some(shape) = drawn(entry, seed, &[]) else { return false };
        if shape.drive.geometry.subpages() > 700 {
            return false;
        }
        cut_everywhere(entry, &shape, seed, 3, |first, rng| Cuts {
            first,
            in_recovery: vec![1 + rng.below(60)],
            second: Some(1 + rng.below(60)),
        });
        true
    });
}

/// Bit errors that grow with the reads of a block: uncorrectable reads are rebuilt, unless another read of the stripe
/// fails, too.
fn failing_reads(entry: &'static Entry, seed: u64) -> bool {
    if !entry.takes_parity {
        return true;
    }
    let errors = [
        "part.ber_fresh=0.05%",
        "part.word_size=512B",
        "ecc.strength=9",
        "ecc.disturb_reads=20",
        "ecc.t_retries=[\"50us\"]",
        "ecc.retry_rates=[\"80%\"]",
        "ftl.read=page",
    ];
    if !matches!(entry.read, None | Some(palimpsest_lab::nand::part::ReadMode::Page)) {
        return true;
    }
    let Some(shape) = drawn(entry, seed, &errors) else { return false };
    let mut model = new_model(&shape, entry, seed);
    let mut mix = Mix::new(&shape.drive, seed);
    let commands: Vec<_> = (0..800).map(|_| mix.draw()).collect();
    if seed.is_multiple_of(2) {
        model.shadow.start_timing();
        model.drive.start_timing().unwrap_or_else(|error| panic!("start of timing: {error}"));
        model.run_timed(commands.into_iter(), 4).unwrap_or_else(|error| panic!("{error}"));
    } else {
        commands.into_iter().for_each(|command| model.count(command).unwrap_or_else(|error| panic!("{error}")));
    }
    model.check();
    let figures = model.drive.io.rain_figures().expect("parity");
    let lost: u64 = model.drive.io.counters.lost.iter().sum();
    assert!(figures.failed > 0 || lost == 0, "only what cannot be rebuilt is lost");
    assert!(lost > 0 || model.shadow.unreadable == 0, "only what a read lost is unreadable");
    FAILED_READS.fetch_add(figures.rebuilt, Ordering::Relaxed);
    true
}

#[test]
fn nothing_is_lost_in_counted_runs() {
    for_each_seed("rain::nothing_is_lost_in_counted_runs", 20, counted);
    let happened = [&REBUILT, &MOVED].map(|count| count.load(Ordering::Relaxed));
    assert!(happened.iter().all(|&count| count > 0) || is_partial(), "{happened:?}");
}

#[test]
fn nothing_is_lost_in_timed_runs() {
    for_each_seed("rain::nothing_is_lost_in_timed_runs", 20, timed);
}

#[test]
fn reads_that_fail_are_rebuilt() {
    for_each_seed("rain::reads_that_fail_are_rebuilt", 10, failing_reads);
    let rebuilt = FAILED_READS.load(Ordering::Relaxed);
    assert!(rebuilt > 0 || is_partial(), "{rebuilt}");
}

fn any(entry: &'static Entry, seed: u64) -> bool {
    match seed % 6 {
        0 => counted(entry, seed),
        1 => timed(entry, seed),
        2 => after_a_cut(entry, seed),
        // A file system has more spare space than such drives.
        3 if !entry.is_file_system() => healthy(entry, seed),
        3 | 4 => cut_again_and_again(entry, seed),
        _ => failing_reads(entry, seed),
    }
}

#[test]
fn below_file_systems() {
    for_each_seed_of(ENTRIES, "rain::below_file_systems", 12, any);
}

#[test]
#[ignore = "minutes"]
fn long_nothing_is_lost() {
    for_each_seed("--ignored rain::long_nothing_is_lost", 500, |entry, seed| any(entry, seed + 1000));
    for_each_seed_of(ENTRIES, "--ignored rain::long_nothing_is_lost", 300, |entry, seed| any(entry, seed + 1000));
}

/// Runs a drive that plans wrongly. Returns whether the check of times finds the mutation, and the number of planted
/// mutations.
fn mutant(seed: u64, mutation: Mutation) -> Option<(bool, u64)> {
    let entry = crate::drives::entry("page");
    let shape = drawn(entry, seed, &["buffer.ack=program"])?;
    let mut model = Model::new(&shape, entry, Payload::Tag, seed);
    let (mut mix, mut rng) = (Mix::new(&shape.drive, seed), Rng::new(seed, 0x4a17));
    model.drive.verify_times(Some(mutation));
    model.drive.start_timing().expect("nothing to program");
    fail_a_die(&mut model, &mut rng, 400);
    let commands: Vec<_> = (0..600).map(|_| mix.draw()).collect();
    let result = catch_unwind(AssertUnwindSafe(|| model.run_timed(commands.into_iter(), 4)));
    let found = matches!(&result, Ok(Err(Error::Rule(what))) if what.contains("broke the order of time"));
    let planted = model.drive.io.ledger.as_ref().and_then(|ledger| ledger.plantable().get(&mutation).copied());
    Some((found, planted.unwrap_or(0)))
}

/// Parity programmed before the data arrives, and rebuilt data delivered before all other pages of the stripe are read.
#[test]
fn the_check_of_times_finds_parity_and_rebuilds_that_come_early() {
    for mutation in [
        Mutation { kind: OperationKind::Program, cause: Cause::Parity, drops_after: true },
        Mutation { kind: OperationKind::Read, cause: Cause::Rebuild, drops_after: false },
    ] {
        let runs: Vec<_> = (0..60).filter_map(|seed| mutant(seed, mutation)).collect();
        assert!(runs.iter().any(|&(_, planted)| planted > 0), "{mutation:?} was never planted");
        assert!(runs.iter().any(|&(found, _)| found), "{mutation:?} is not found in {} runs", runs.len());
    }
}

/// A drive of `dies` dies on channels of their own, with stripes of `data` pages and parity.
fn small(dies: u32, data: u32, more: &[&str]) -> (Shape, Model) {
    let rain = format!("ftl.rain={data}");
    let settings = with(&plain(dies, 12, 8, 1), &[&rain, "ssd.over_provisioning=40%", "ftl.gc_pace=block"]);
    let shape = build("page", &with(&settings, more)).expect("a drive");
    let model = Model::new(&shape, crate::drives::entry("page"), Payload::Tag, 1);
    (shape, model)
}

/// Programs of parity are the programs of host and collection over N, up to the open stripes; layers see N of N + 1
/// pages.
#[test]
fn parity_costs_a_page_for_each_stripe() {
    for (dies, data) in [(2, 1), (4, 3), (4, 1), (8, 7), (6, 2)] {
        let (shape, mut model) = small(dies, data, &[]);
        let (seen, all) = (shape.drive.geometry.pages(), shape.drive.physical.pages());
        assert_eq!(seen * u64::from(data + 1), all * u64::from(data), "capacity");
        for command in fill(&shape.drive, 8) {
            model.count(command).expect("room");
        }
        let mut mix = Mix::new(&shape.drive, 3);
        (0..3000).for_each(|_| model.count(mix.draw()).expect("room"));
        let (io, data) = (&model.drive.io, u64::from(data));
        let parity = io.counters.programs[Cause::Parity as usize];
        let programs = io.counters.programs.iter().sum::<u64>() - parity;
        let open = io.open_stripes() as u64;
        assert!(open <= u64::from(dies) && parity > 100, "{open} open stripes, {parity} programs of parity");
        // An open stripe has a page at least, and lacks one at least.
        let least = programs.saturating_sub(open * (data - 1)) / data;
        assert!((least..=programs / data).contains(&parity), "{programs} programs, {parity} of parity, N = {data}");
        model.check();
    }
}

/// A read of a page of a dead die reads the other pages of the stripe on separate channels, side by side, in the time
/// of one read.
#[test]
fn a_rebuilt_read_takes_as_long_as_one_of_its_members() {
    let (shape, mut model) = small(4, 3, &["host.link_rate=unlimited"]);
    for command in fill(&shape.drive, 8) {
        model.count(command).expect("room");
    }
    model.shadow.start_timing();
    model.drive.start_timing().expect("nothing to write");
    let per_page = u64::from(shape.drive.geometry.page_bytes()) / 512;
    let read = |model: &mut Model, page: u64| {
        let begun = model.drive.engine.now();
        let extent = Extent { sector: page * per_page, sectors: per_page as u32 };
        model.run_timed([Command::new(RequestKind::Read, extent)].into_iter(), 1).expect("a read");
        model.drive.engine.now() - begun
    };
    let times: Vec<u64> = (0..12).map(|page| read(&mut model, page)).collect();
    assert!(times.iter().all(|&time| time == times[0]), "{times:?}");
    let operation = model.drive.io.nand().operations();
    model.drive.io.nand.fail_dies(&[(operation + 1, 2)]);
    let after: Vec<u64> = (0..12).map(|page| read(&mut model, page)).collect();
    // Command, sensing and transfer for any die: parallel reads take the time of one.
    assert_eq!(after, times);
    let figures = model.drive.io.rain_figures().expect("parity");
    let rebuilds = model.drive.io.counters.reads[Cause::Rebuild as usize];
    assert_eq!((figures.failed, rebuilds), (0, 3 * figures.rebuilt), "each of three others");
    assert!((2..=4).contains(&figures.rebuilt), "a quarter of twelve pages: {}", figures.rebuilt);
}

/// Once wrong: a member whose loss only the contents know, as after a power cut, counted as zeros in a rebuild.
#[test]
fn a_loss_that_no_read_counted_rebuilds_nothing() {
    let (shape, mut model) = small(4, 3, &[]);
    for command in fill(&shape.drive, 8) {
        model.count(command).expect("room");
    }
    let per_page = u64::from(shape.drive.geometry.page_bytes()) / 512;
    let read =
        |page: u64| Command::new(RequestKind::Read, Extent { sector: page * per_page, sectors: per_page as u32 });
    let operation = model.drive.io.nand().operations();
    model.drive.io.nand.fail_dies(&[(operation + 1, 2)]);
    model.count(read(0)).expect("a read");
    let nand = &mut model.drive.io.nand;
    for ppn in (0..shape.drive.geometry.pages() as u32).filter(|&ppn| nand.is_whole(ppn)).collect::<Vec<_>>() {
        if !nand.is_unreadable(ppn) {
            nand.lose(ppn, 1);
        }
    }
    nand.set_found_lost(Default::default());
    for page in 0..24 {
        model.count(read(page)).expect("no wrong data");
    }
    let figures = model.drive.io.rain_figures().expect("parity");
    assert!(figures.failed > 0, "{figures:?}");
}
