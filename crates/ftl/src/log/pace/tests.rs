//! Tests of the module `pace`.

use super::*;
use crate::log::Append;
use crate::log::settings::{LogSettings, keys};
use crate::maps::full::FullMap;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::Nand;
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::part::samples::slc;
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::keys::Value;
use palimpsest_ftl_api::plan::Cause;
use palimpsest_ftl_api::settings::Settings;

const UNITS: u32 = 20 * 8 * 4;

/// Pages that stay free in plane 0, by [`Log::fits`], when the rest of `victim` has moved.
fn left_by_fits(log: &Log<FullMap>, victim: u32) -> u32 {
    (1..).take_while(|&slack| log.fits(0, victim, slack)).last().unwrap_or(0)
}

/// Regression: units in an open page, valid in the victim until programmed, counted both as waiting and as left in
/// the victim.
#[test]
fn the_rest_of_a_victim_takes_the_announced_pages() {
    let geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 28,
        pages_per_block: 8,
        subpages_per_page: 4,
        subpage_bytes: 4096,
    };
    let paced = |name| Settings::of_defaults(name, keys()).with("ftl.gc_pace", Value::Text("paced".into()));
    let settings = LogSettings::new(&paced("subpage"));
    let mut io = Io::new(Nand::new(geometry, slc(), Payload::Tag, None), false);
    let mut log = Log::new(&io, &settings, FullMap::new(UNITS), 1, false, 1);
    let (mut rng, mut looked) = (Rng::new(1, 1), 0);
    for write in 0..8 * UNITS {
        let unit = if write < UNITS { write } else { rng.below(UNITS.into()) as u32 };
        let (cause, after, signal) = (Cause::Host, Gate::NONE, Gate::NONE);
        log.append(&mut io, 0, Append { unit, data: Data::new(1), cause, after, signal, holds: 1 }).expect("room");
        let stream = log.frontiers.data_streams() - 1;
        let page = log.open.moved_page(0, stream);
        let Some(victim) = log.collector.pace.victim(0).filter(|_| log.open.filled(page) > 0 && write % 16 == 0) else {
            continue;
        };
        looked += 1;
        let free = log.frontiers.pages_left(0, stream) + log.frontiers.blocks.free_count(0) * geometry.pages_per_block;
        let (said, before) = (left_by_fits(&log, victim), io.nand().counters().programs);
        log.finish(&mut io, 0).expect("room");
        if log.open.filled(page) > 0 {
            log.program_open(&mut io, 0, page).expect("room");
        }
        let took = (io.nand().counters().programs - before) as u32;
        assert_eq!(said, free - took, "{free} pages are free, and the rest takes {took}");
    }
    assert!(looked > 10, "{looked} victims with units that wait");
}

/// The moves of as many host pages, made at once in all planes.
#[test]
fn bursts_move_in_all_planes_together() {
    let geometry = Geometry {
        channels: 2,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 28,
        pages_per_block: 8,
        subpages_per_page: 4,
        subpage_bytes: 4096,
    };
    let writes = 16 * UNITS;
    let mut moving = [0; 2];
    for (burst, moving) in [0, 4].into_iter().zip(&mut moving) {
        let settings = Settings::of_defaults("subpage", keys())
            .with("ftl.streams", Value::Count(2))
            .with("ftl.gc_burst", Value::Count(burst));
        let mut io = Io::new(Nand::new(geometry, slc(), Payload::Tag, None), false);
        let mut log = Log::new(&io, &LogSettings::new(&settings), FullMap::new(2 * UNITS), 1, false, 1);
        let mut rng = Rng::new(1, 1);
        for write in 0..writes {
            let unit = if write < 2 * UNITS { write } else { rng.below((2 * UNITS).into()) as u32 };
            let (cause, after, signal) = (Cause::Host, Gate::NONE, Gate::NONE);
            let before = log.counters.moved_units;
            log.append(&mut io, 0, Append { unit, data: Data::new(1), cause, after, signal, holds: 1 }).expect("room");
            *moving += u32::from(log.counters.moved_units > before);
        }
    }
    // Eight pages of four units a burst, but for planes that run short.
    assert!(moving[0] > writes / 16 && moving[1] < moving[0] / 3, "writes with moves: {moving:?}");
}
