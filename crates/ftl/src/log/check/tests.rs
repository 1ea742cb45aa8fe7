//! Tests of the module `check`.

use super::*;
use crate::log::Append;
use crate::log::settings::{LogSettings, keys};
use crate::maps::full::FullMap;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::part::samples::slc;
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::plan::{Cause, Gate};
use palimpsest_ftl_api::settings::Settings;

const UNITS: u32 = 400;

fn written() -> (Log<FullMap>, Io) {
    let geometry = Geometry {
        channels: 2,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 12,
        pages_per_block: 8,
        subpages_per_page: 4,
        subpage_bytes: 4096,
    };
    let settings = LogSettings::new(&Settings::of_defaults("subpage", keys()));
    let mut io = Io::new(Nand::new(geometry, slc(), Payload::Tag, None), false);
    let mut log = Log::new(&io, &settings, FullMap::new(UNITS), 1, true, 1);
    let mut rng = Rng::new(1, 1);
    for write in 0..UNITS + 321 {
        // The first writes in order, so that whole pages are consecutive; the rest at random, and the last in an
        // open page.
        let unit = if write < UNITS { write } else { rng.below(u64::from(UNITS) / 4) as u32 };
        let (cause, after, signal) = (Cause::Host, Gate::NONE, Gate::NONE);
        log.append(&mut io, 0, Append { unit, data: Data::new(1), cause, after, signal, holds: 1 }).expect("room");
    }
    log.check(&io).expect("nothing is wrong yet");
    assert!(log.is_sound(&io));
    (log, io)
}

/// Without absorption a second write of a unit leaves a hole in the open page of the first.
#[test]
fn a_slot_that_was_replaced_is_a_hole() {
    let (mut log, mut io) = written();
    log.open.absorbs = false;
    let mut appended = |log: &mut Log<FullMap>| {
        let cause = Cause::Host;
        let after = Gate::NONE;
        let signal = Gate::NONE;
        log.append(&mut io, 0, Append { unit: 3, data: Data::new(2), cause, after, signal, holds: 1 }).expect("room");
        let open = log.open.host_page(0, 0);
        log.open.page(open).slots.iter().filter(|slot| slot.unit == 3).count()
    };
    while appended(&mut log) == 0 {}
    let first = log.map.locate(3);
    if appended(&mut log) == 1 {
        assert_eq!(log.open.slot(first).unit, HOLE);
    }
    log.check(&io).expect("a consistent log");
    log.open.slot_mut(first).unit = 3;
    assert!(log.check(&io).is_err(), "a unit in two slots");
}

fn place(log: &mut Log<FullMap>, unit: u32, entry: u32) {
    log.map.place(unit, entry);
}

/// Each damage changes one entry or bit.
#[test]
fn what_is_wrong_is_found() {
    let physical_of = |log: &Log<FullMap>, unit| Some(log.map.locate(unit)).filter(|&entry| entry < IN_OPEN_PAGE);
    let mut tried = [0; 6];
    for unit in 0..UNITS {
        for (damage, tried) in tried.iter_mut().enumerate() {
            let (mut log, io) = written();
            let other = (unit + 7) % UNITS;
            let (Some(one), Some(two)) = (physical_of(&log, unit), physical_of(&log, other)) else { continue };
            match damage {
                0 => place(&mut log, unit, UNMAPPED),
                1 => place(&mut log, unit, two),
                2 => [(unit, two), (other, one)].into_iter().for_each(|(unit, at)| place(&mut log, unit, at)),
                3 => log.invalidate(one),
                4 => {
                    let entry = log.open.next_entry(0) - 1;
                    place(&mut log, unit, entry);
                }
                _ => {
                    let stale = |&at: &u32| {
                        let (block, index) = log.shape.per_block.split(at);
                        log.shape.unit_at(io.nand(), at).is_some() && !log.frontiers.blocks.is_valid(block, index)
                    };
                    let Some(at) = (one..one + 8).find(stale) else { continue };
                    log.validate(at);
                }
            }
            assert!(log.check(&io).is_err(), "damage {damage} at unit {unit} is not found");
            assert!(!log.is_sound(&io), "damage {damage} at unit {unit} is not found in the order of flash");
            *tried += 1;
        }
    }
    assert!(tried.iter().all(|&tried| tried > 10), "{tried:?}");
}
