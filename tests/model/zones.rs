//! Drives with zones: finishes, flushes, failed dies, blocks without replacement and random write areas.

use crate::drives::{Shape, build as build_shape, entry, plain, with};
use crate::harness::{Model, note};
use crate::power::{Cuts, Powered};
use crate::workload::{Mix, fill};
pub use palimpsest_check::zones::*;
use palimpsest_ftl_api::plan::PowerIo;
use palimpsest_lab::command::ZoneAction;
use palimpsest_lab::ftl::zones::{ZoneError, ZoneState};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::plan::ledger::Mutation;
use palimpsest_lab::plan::{Cause, OperationKind};
use palimpsest_lab::rng::Rng;
use palimpsest_lab::run::build;
use palimpsest_lab::sim::drive::Command;
use std::collections::BTreeSet;

/// A small drive of zones of a block of 8 pages on one of two dies, and half as many spare blocks as zones.
fn shape(more: &[&str]) -> Shape {
    let zones = ["zns.zone_dies=1", "zns.max_active=3", "zns.max_open=3", "buffer.size=256KiB"];
    let settings = with(&with(&plain(2, 24, 8, 2), &["ssd.over_provisioning=50%"]), &zones);
    build_shape("zns", &with(&settings, more)).unwrap_or_else(|what| panic!("{what}"))
}

/// A command of `kind` on the first `sectors` sectors of `zone`; 0: on all.
fn on(shape: &Shape, kind: RequestKind, zone: u64, sectors: u64) -> Command {
    let zns = build::drive(&shape.drive, entry("zns"), Payload::None, 1).zones().expect("zones").size;
    let sectors = if sectors == 0 { zns } else { sectors };
    Command::new(kind, Extent { sector: zone * zns, sectors: sectors as u32 })
}

/// Runs `commands` timed with a power cut in flash operation `cut`, and checks after each step that every zone whose
/// finish has completed is full. Returns the flash operations; `None` if a finished zone is not full.
fn finishes_survive(shape: &Shape, commands: &[Command], cut: Option<u64>, mutation: Option<Mutation>) -> Option<u64> {
    let mut model = Model::new(shape, entry("zns"), Payload::Tag, 1);
    model.drive.verify_times(mutation);
    model.shadow.expect_power_cut(false);
    model.drive.power.read_back = Some(shape.drive.logical_subpages());
    model.shadow.start_timing();
    model.drive.io.set_power_cut_at(cut);
    model.drive.start_timing().expect("nothing to program");
    model.drive.reports.finished = Some(Vec::new());
    let mut finished = BTreeSet::new();
    let mut ahead = commands.iter();
    loop {
        while model.drive.outstanding() < 4
            && let Some(&command) = ahead.next()
        {
            let now = model.drive.engine.now();
            model.drive.submit(command, now, &mut model.shadow).expect("a step");
            model.drive.harvest(&mut model.completions, &mut model.shadow).expect("a step");
        }
        if model.drive.next_time().is_none() {
            break;
        }
        // The check of times would end the run before the cut.
        model.drive.engine.causality = None;
        model.drive.step(&mut model.completions, &mut model.shadow).expect("a step");
        let zones = model.drive.zones().cloned().expect("zones");
        for (command, _) in model.drive.reports.finished.iter_mut().flat_map(std::mem::take) {
            if command.directives.zone == ZoneAction::Finish {
                finished.insert(zones.zone_of(command.extent.sector));
            }
        }
        if finished.iter().any(|&zone| zones.zone(zone).state != ZoneState::Full) {
            return None;
        }
    }
    assert_eq!(finished.len() as u64, FINISHED, "all finishes complete");
    Some(model.drive.io.nand().operations())
}

/// Zones that the test of finishes writes.
const FINISHED: u64 = 4;

/// Once a finish has completed, no power cut makes the zone less than full. A drive that completes the finish before
/// the programs of its zeros is found.
#[test]
fn a_finished_zone_stays_full_after_a_power_cut() {
    for acknowledge in ["buffer.ack=program", "buffer.ack=volatile"] {
        let shape = shape(&[acknowledge]);
        let commands: Vec<_> = (0..FINISHED)
            .flat_map(|zone| {
                let write = on(&shape, RequestKind::Write, zone, 24);
                [write, on(&shape, RequestKind::Trim, zone, 0).on_zone(ZoneAction::Finish)]
            })
            .collect();
        let end = finishes_survive(&shape, &commands, None, None).expect("no cut");
        let early = Mutation { kind: OperationKind::Program, cause: Cause::Merge, drops_after: false };
        let lost = |mutation| {
            let lost = |cut: &u64| finishes_survive(&shape, &commands, Some(*cut), mutation).is_none();
            (1..=end).filter(lost).count()
        };
        assert_eq!(lost(None), 0, "{acknowledge}: the drive that waits");
        assert!(lost(Some(early)) > 0, "{acknowledge}: the drive that does not");
    }
}

/// A flush waits for the page that a copy of an erase block adds: the block's last page continues a page that an
/// earlier flush programmed. A drive whose flush does not wait is found. Copies of earlier pages may be late, because
/// the old block keeps their data: no cut loses flushed data of a drive whose copies signal at once.
#[test]
fn a_flush_waits_for_the_page_that_a_copy_adds() {
    let shape = shape(&["buffer.ack=volatile", "buffer.timeout=0ns", "zns.zone_dies=0"]);
    let block = u64::from(shape.drive.geometry.subpage_bytes) / 512;
    let size = on(&shape, RequestKind::Trim, 1, 0).extent;
    let commands = (0..9).flat_map(|at| {
        let extent = Extent { sector: size.sector + at * block, sectors: block as u32 };
        [Command::new(RequestKind::Write, extent), Command::FLUSH]
    });
    let commands: Vec<_> = commands.collect();
    let run = |cut, cause: Option<Cause>| {
        let mut model = Model::new(&shape, entry("zns"), Payload::Tag, 1);
        let early = |cause| Mutation { kind: OperationKind::Program, cause, drops_after: false };
        model.drive.verify_times(cause.map(early));
        model.shadow.expect_power_cut(false);
        model.drive.power.read_back = Some(shape.drive.logical_subpages());
        model.shadow.start_timing();
        model.drive.io.set_power_cut_at(cut);
        model.drive.start_timing().expect("nothing to program");
        let mut result = Ok(());
        for &command in &commands {
            let now = model.drive.engine.now();
            result = result
                .and_then(|()| model.drive.submit(command, now, &mut model.shadow))
                .and_then(|()| model.drive.harvest(&mut model.completions, &mut model.shadow));
            while result.is_ok() && model.drive.outstanding() > 0 {
                if cut.is_some() {
                    model.drive.engine.causality = None;
                }
                result = model.drive.step(&mut model.completions, &mut model.shadow);
            }
        }
        result.map(|()| {
            let copied = model.drive.io.counters.programs[Cause::Merge as usize];
            assert!(copied > 0 || cut.is_some(), "blocks are copied");
            model.drive.io.nand().operations()
        })
    };
    let end = run(None, None).expect("the drive that waits");
    let found = run(None, Some(Cause::Host)).expect_err("the drive that does not").to_string();
    assert!(found.contains("a flush completes"), "{found}");
    for cut in 1..=end {
        run(Some(cut), None).unwrap_or_else(|error| panic!("cut in {cut}: {error}"));
        run(Some(cut), Some(Cause::Merge)).unwrap_or_else(|error| panic!("late copies, cut in {cut}: {error}"));
    }
}

/// Serves `commands` without time.
fn serve(model: &mut Model, commands: impl IntoIterator<Item = Command>) {
    for command in commands {
        model.drive.count(command, &mut model.shadow).unwrap_or_else(|error| panic!("{command:?}: {error}"));
        model.check();
    }
}

fn states(model: &Model) -> Vec<ZoneState> {
    let zones = model.drive.zones().expect("zones");
    (0..zones.len()).map(|zone| zones.zone(zone).state).collect()
}

/// Zones on a failed die are offline, and stay so after a power cut; as many empty zones are offline as lack blocks.
#[test]
fn zones_of_a_failed_die_are_offline() {
    let shape = shape(&[]);
    let mut model = Model::new(&shape, entry("zns"), Payload::Tag, 1);
    let zones = model.drive.zones().expect("zones").len();
    let writes: Vec<_> = (0..8).map(|zone| on(&shape, RequestKind::Write, zone, 8)).collect();
    // Three zones are active at a time.
    serve(
        &mut model,
        writes.iter().flat_map(|&write| {
            let zone = Extent { sectors: on(&shape, RequestKind::Trim, 0, 0).extent.sectors, ..write.extent };
            [write, Command::new(RequestKind::Trim, zone).on_zone(ZoneAction::Finish)]
        }),
    );
    let begun = model.drive.io.nand().operations();
    model.drive.io.nand.fail_dies(&[(begun + 1, 1)]);
    serve(&mut model, [on(&shape, RequestKind::Read, 0, 8)]);
    let found = states(&model);
    let by_die: Vec<_> = (0..8).map(|zone| found[zone]).collect();
    assert_eq!(by_die.iter().filter(|&&state| state == ZoneState::Offline).count(), 4, "{by_die:?}");
    assert_eq!(by_die.iter().filter(|&&state| state == ZoneState::Full).count(), 4, "{by_die:?}");
    let offline = found.iter().filter(|&&state| state == ZoneState::Offline).count() as u32;
    assert_eq!(zones - offline, 24, "the blocks of the other die");
    let changed: Vec<u32> = model.drive.zones().expect("zones").changed().zones().collect();
    let expected = (0..zones).filter(|&zone| found[zone as usize] == ZoneState::Offline);
    assert_eq!(changed, expected.collect::<Vec<_>>(), "the Changed Zone List");
    let refused = model.drive.reports.refused.len();
    serve(&mut model, writes);
    assert_eq!(model.drive.reports.refused.len(), refused + 8, "full or offline");
    model.shadow.expect_power_cut(true);
    let next = model.drive.io.nand().operations() + 1;
    model.drive.io.set_power_cut_at(Some(next));
    serve(&mut model, (0..8).map(|zone| on(&shape, RequestKind::Read, zone, 8)));
    assert_eq!((model.drive.power.cuts, states(&model)), (1, found));
}

/// If every block fails that is programmed, spare blocks and then empty zones replace blocks. At last a zone is read
/// only: earlier data and the acknowledged page of the protected buffer stay readable.
#[test]
fn a_zone_without_a_spare_block_is_read_only() {
    let shape = shape(&["buffer.ack=buffer", "buffer.flush=programs"]);
    let mut settings = shape.settings.clone();
    settings.push("faults.program_fail=20%".into());
    let shape = build_shape("zns", &settings).expect("a drive");
    let mut model = Model::new(&shape, entry("zns"), Payload::Tag, 7);
    let zones = model.drive.zones().expect("zones").len();
    let mut lost = (0, 0);
    for round in 0..200u64 {
        for zone in 0..u64::from(zones) {
            let write = on(&shape, RequestKind::Write, zone, 12 + round % 5 * 4);
            let command = legal(&model.drive, write);
            serve(&mut model, [command]);
        }
        let found = states(&model);
        let count = |state| found.iter().filter(|&&one| one == state).count();
        lost = (count(ZoneState::ReadOnly), count(ZoneState::Offline));
        model.read_back().expect("acknowledged data");
        if lost.0 > 0 {
            break;
        }
    }
    assert!(lost.0 > 0 && lost.1 > 0, "{lost:?} zones are read only and offline");
}

/// Data in random write areas survives a power cut in any operation, while the host overwrites and commits there.
#[test]
fn areas_survive_a_cut_at_every_operation() {
    let shape = shape(&[
        "buffer.ack=buffer",
        "buffer.flush=free",
        "zns.zrwa=16KiB",
        "zns.zrwa_granularity=4KiB",
        "zns.zrwa_zones=2",
    ]);
    for seed in 0..4 {
        let mut mix = Mix::new(&shape.drive, seed);
        mix.trims = 30;
        let commands: Vec<_> = fill(&shape.drive, 16).chain((0..200).map(|_| mix.draw())).collect();
        let none = Cuts { first: u64::MAX, in_recovery: Vec::new(), second: None };
        let mut whole = Powered::new(&shape, entry("zns"), seed);
        assert!(whole.run(&shape, &commands, &none), "seed {seed}: the drive ends");
        let counts = whole.drive.zones().expect("zones").counts;
        let happened = [counts.explicit_commits, counts.implicit_commits, counts.overwritten_blocks];
        assert!(happened.iter().all(|&count| count > 0), "seed {seed}: {happened:?}");
        let of_writes = [ZoneError::InvalidField, ZoneError::InvalidZoneOperation, ZoneError::ZoneInvalidWrite];
        assert!(of_writes.iter().all(|&error| counts.errors[error as usize] == 0), "seed {seed}: {:?}", counts.errors);
        let mut rng = Rng::new(seed, 0x27a);
        for first in (1..whole.operations()).step_by(3) {
            let in_recovery = (0..rng.below(2)).map(|_| 1 + rng.below(3)).collect();
            let cuts = Cuts { first, in_recovery, second: Some(1 + rng.below(40)) };
            note(&[format!("{cuts:?}, seed {seed}")]);
            assert!(Powered::new(&shape, entry("zns"), seed).run(&shape, &commands, &cuts), "{cuts:?}: the drive ends");
        }
    }
}
