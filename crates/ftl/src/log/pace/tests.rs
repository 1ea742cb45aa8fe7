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
fn left_by_fits(log: &Log<FullMap>, io: &Io, victim: u32) -> u32 {
    (1..).take_while(|&slack| log.fits(io, 0, victim, slack)).last().unwrap_or(0)
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
        let (said, before) = (left_by_fits(&log, &io, victim), io.nand().counters().programs);
        log.finish(&mut io, 0).expect("room");
        if log.open.filled(page) > 0 {
            log.program_open(&mut io, 0, page).expect("room");
        }
        let took = (io.nand().counters().programs - before) as u32;
        assert_eq!(said, free - took, "{free} pages are free, and the rest takes {took}");
    }
    assert!(looked > 10, "{looked} victims with units that wait");
}
