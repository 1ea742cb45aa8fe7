//! Failing dies: reads of their data report the loss, all other data is intact, and the drive continues with the other
//! dies.

use crate::drives::{Limits, Shape, build_with_spare, draw, needed, pick, plain};
use crate::harness::{Model, count_cuts, for_each_seed, is_partial, note};
use crate::workload::{Mix, fill, sweep};
use palimpsest_ftl_api::plan::PowerIo;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::ftl::{Entry, REGISTRY};
use palimpsest_lab::geometry::RequestKind;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::rng::Rng;
use std::sync::atomic::{AtomicU64, Ordering};

static LOST: AtomicU64 = AtomicU64::new(0);
static REWRITTEN: AtomicU64 = AtomicU64::new(0);

/// A drive of several dies, of which some fail.
struct Case {
    shape: Shape,
    model: Model,
    rng: Rng,
}

impl Case {
    fn draw(entry: &'static Entry, seed: u64) -> Option<Case> {
        let mut rng = Rng::new(seed, 0xd1e5);
        let shape = draw(entry.name, &mut rng, Limits { subpages: 2048, planes: 4 }).ok()?;
        if shape.drive.geometry.dies() == 1 || shape.drive.kept_blocks() > 0 {
            return None;
        }
        note(&shape.settings);
        let payload = if seed.is_multiple_of(3) { Payload::Bytes } else { Payload::Tag };
        let model = Model::new(&shape, entry, payload, seed);
        Some(Case { shape, model, rng })
    }

    /// Dies fail within the next `operations` operations: one, or in some cases any number of them.
    fn fail_dies(&mut self, operations: u64) {
        let dies = self.shape.drive.geometry.dies();
        let many = 1 + self.rng.below(u64::from(dies) - 1) as u32;
        let count = if self.rng.below(3) == 0 { many } else { 1 };
        let first = self.rng.below(dies.into()) as u32;
        let begun = self.model.drive.io.nand().operations();
        let mut at: Vec<u64> = (0..count).map(|_| begun + 1 + self.rng.below(operations)).collect();
        at.sort_unstable();
        let failures: Vec<(u64, u32)> = at.into_iter().zip((0..count).map(|die| (first + die) % dies)).collect();
        self.model.drive.io.nand.fail_dies(&failures);
    }

    /// In half of all cases the power fails, too.
    fn cut_power(&mut self, operations: u64) {
        if self.rng.below(2) == 0 {
            let begun = self.model.drive.io.nand().operations();
            self.model.shadow.expect_power_cut(false);
            self.model.drive.power.read_back = Some(self.shape.drive.logical_subpages());
            self.model.drive.io.set_power_cut_at(Some(begun + 1 + self.rng.below(operations)));
            count_cuts(1);
        }
    }

    /// How many dies and how often the power has failed.
    fn mishaps(&self) -> (usize, u64) {
        (self.model.drive.io.nand().failed_dies().len(), self.model.drive.power.cuts)
    }

    /// Data that the host writes now is readable, as is all data that no failed die held.
    fn write_all_again(&mut self) -> Result<()> {
        self.model.check();
        self.model.read_back()?;
        let begun = self.mishaps();
        let step = u64::from(self.shape.drive.geometry.page_bytes()) / 512;
        for command in sweep(&self.shape.drive, RequestKind::Write, step) {
            self.model.count(command)?;
        }
        self.model.check();
        let unreadable = self.model.shadow.unreadable;
        self.model.read_back()?;
        // A die loses earlier writes; a power cut loses the interrupted write and data that is not durable.
        if self.mishaps() == begun {
            assert_eq!(
                self.model.shadow.unreadable, unreadable,
                "all is written anew, and none of it is on a dead die"
            );
            REWRITTEN.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn settle(&mut self, result: Result<()>) {
        match result {
            Ok(()) => {}
            Err(Error::WornOut(_)) => {
                self.model.drive.end_life();
                let _ = self.model.drive.ftl.check(&self.model.drive.io);
            }
            Err(error) => panic!("{error}"),
        }
        let lost: u64 = self.model.drive.io.counters.lost.iter().sum();
        // Data that is read back after a power cut is lost to the verifier, not to the host.
        let (unreadable, read_back) = (self.model.shadow.unreadable, self.model.drive.power.cuts > 0);
        assert!(lost > 0 || read_back || unreadable == 0, "only what a read lost is unreadable");
        let none_failed = self.model.drive.io.nand().failed_dies().is_empty();
        assert!(lost + unreadable == 0 || !none_failed, "only dead dies lose anything");
        LOST.fetch_add(lost, Ordering::Relaxed);
    }
}

fn counted(entry: &'static Entry, seed: u64) -> bool {
    if !entry.outlives_dies {
        return true;
    }
    let Some(mut case) = Case::draw(entry, seed) else { return false };
    let mut mix = Mix::new(&case.shape.drive, seed);
    case.fail_dies(1500);
    case.cut_power(2000);
    for index in 0..1500 {
        let command = mix.draw();
        match case.model.count(command) {
            Ok(()) => {}
            Err(Error::WornOut(_)) => {
                // The drive is still readable.
                case.model.drive.io.set_power_cut_at(None);
                case.model.interrupted(command);
                case.model.read_back().unwrap_or_else(|error| panic!("at the end of its life, {command:?}: {error}"));
                case.settle(Ok(()));
                return true;
            }
            Err(error) => panic!("request {index}, {command:?}: {error}"),
        }
        if index % 50 == 0 {
            case.model.check();
        }
    }
    let result = case.write_all_again();
    case.settle(result);
    true
}

fn timed(entry: &'static Entry, seed: u64) -> bool {
    if !entry.outlives_dies {
        return true;
    }
    let Some(mut case) = Case::draw(entry, seed) else { return false };
    let mut mix = Mix::new(&case.shape.drive, seed);
    case.model.shadow.start_timing();
    case.cut_power(2000);
    case.model.drive.start_timing().unwrap_or_else(|error| panic!("start of timing: {error}"));
    case.fail_dies(1500);
    let commands: Vec<_> = (0..1000).map(|_| mix.draw()).collect();
    let depth = pick(&mut case.rng, &[1, 4, 16]);
    let result = case.model.run_timed(commands.into_iter(), depth);
    if result.is_ok() {
        case.model.check();
    }
    case.settle(result);
    true
}

#[test]
fn dies_fail_in_counted_runs() {
    for_each_seed("dies::dies_fail_in_counted_runs", 20, counted);
    let happened = [&LOST, &REWRITTEN].map(|count| count.load(Ordering::Relaxed));
    assert!(happened.iter().all(|&count| count > 0) || is_partial(), "{happened:?}");
}

#[test]
fn dies_fail_in_timed_runs() {
    for_each_seed("dies::dies_fail_in_timed_runs", 20, timed);
}

/// Data of a failed die takes no space elsewhere. Recovery moves none of that data although recovery knows of the
/// failure from the first program on, because the other dies could not hold all data of the drive.
#[test]
fn recovery_moves_nothing_that_a_die_held() {
    for entry in REGISTRY.iter().filter(|entry| entry.outlives_dies && !entry.is_file_system()) {
        let settings = needed(entry, &plain(4, 10, 8, entry.least_subpages()));
        let shape = build_with_spare(entry.name, &settings, 10, 2 + u64::from(entry.hot_and_cold))
            .unwrap_or_else(|what| panic!("{}: {what}", entry.name));
        let mut model = Model::new(&shape, entry, Payload::Tag, 1);
        let step = u64::from(shape.drive.geometry.page_bytes()) / 512;
        let count = |model: &mut Model, command| {
            model.count(command).unwrap_or_else(|error| panic!("{}: {command:?}: {error}", entry.name));
        };
        fill(&shape.drive, step).for_each(|command| count(&mut model, command));
        let begun = model.drive.io.nand().operations();
        model.drive.io.nand.fail_dies(&[(begun + 1, 1)]);
        let reads: Vec<_> = sweep(&shape.drive, RequestKind::Read, step).collect();
        // The die fails in this read, which may have delivered data of the die before.
        count(&mut model, reads[0]);
        let noticed = model.unreadable();
        reads.iter().for_each(|&command| count(&mut model, command));
        let unreadable = model.unreadable() - noticed;
        assert!(unreadable > 0, "{}: a quarter of the drive is lost", entry.name);
        model.shadow.expect_power_cut(false);
        model.drive.io.set_power_cut_at(Some(model.drive.io.nand().operations() + 1));
        let programs = model.drive.io.nand().counters().programs;
        reads.iter().for_each(|&command| count(&mut model, command));
        assert_eq!(model.drive.power.cuts, 1, "{}: the power failed", entry.name);
        assert_eq!(model.drive.io.nand().counters().programs, programs, "{}: nothing is moved", entry.name);
        assert_eq!(model.unreadable(), noticed + 2 * unreadable, "{}: the same is lost as before", entry.name);
        model.check();
    }
}

#[test]
#[ignore = "minutes"]
fn long_dies_fail() {
    for_each_seed("--ignored dies::long_dies_fail", 1000, |entry, seed| {
        if seed.is_multiple_of(2) { counted(entry, seed + 1000) } else { timed(entry, seed + 1000) }
    });
}
