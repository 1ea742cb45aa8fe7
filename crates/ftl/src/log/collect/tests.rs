//! Tests of the module `collect`: thresholds to the page, and victims that gain nothing.

use super::*;
use crate::log::Append;
use crate::log::settings::{LogSettings, keys};
use crate::maps::full::FullMap;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::Nand;
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::part::samples::slc;
use palimpsest_ftl_api::keys::Value;
use palimpsest_ftl_api::settings::Settings;

const PAGES: u32 = 8;
const BLOCKS: u32 = 24;

/// A log of one plane with `units` units of a page, which collects at 2 free blocks and stops above 4.
fn log_of(units: u32) -> (Log<FullMap>, Io) {
    let geometry = Geometry {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: BLOCKS,
        pages_per_block: PAGES,
        subpages_per_page: 1,
        subpage_bytes: 4096,
    };
    let settings = Settings::of_defaults("subpage", keys())
        .with("ftl.gc_pace", Value::Text("block".into()))
        .with("ftl.gc_start", Value::Blocks(BlockCount::Blocks(2)))
        .with("ftl.gc_stop", Value::Blocks(BlockCount::Blocks(4)))
        .with("ftl.gc_idle_stop", Value::Blocks(BlockCount::Blocks(4)));
    let io = Io::new(Nand::new(geometry, slc(), Payload::Tag, None), false);
    let log = Log::new(&io, &LogSettings::new(&settings), FullMap::new(units), 1, true, 1);
    (log, io)
}

fn append(log: &mut Log<FullMap>, io: &mut Io, unit: u32) {
    let cause = Cause::Host;
    let after = Gate::NONE;
    let signal = Gate::NONE;
    log.append(io, 0, Append { unit, data: Data::new(1), cause, after, signal, holds: 1 }).expect("room");
}

/// Collection starts at the start threshold, not a page before or after, and ends at the first victim that leaves more
/// free pages than the stop threshold.
#[test]
fn thresholds_hold_to_the_page() {
    let units = 14 * PAGES;
    let (mut log, mut io) = log_of(units);
    let start = log.collector.start;
    let stop = log.collector.stop;
    assert_eq!((start, stop), (2 * PAGES, 4 * PAGES));
    let mut rng = Rng::new(5, 5);
    let mut least = u32::MAX;
    let mut collected = 0;
    for write in 0..4000 {
        let unit = if write < units { write } else { rng.below(units.into()) as u32 };
        let before = log.frontiers.free_pages[0];
        let collections = log.counters.collections;
        append(&mut log, &mut io, unit);
        let after = log.frontiers.free_pages[0];
        assert_eq!(log.counters.collections > collections, before <= start, "{before} pages free");
        if log.counters.collections > collections {
            // The page of the write follows.
            least = least.min(after + 1);
            collected += 1;
        }
    }
    assert!(collected > 50);
    assert_eq!(least, stop + 1, "free pages after collection");
}

/// Collection in the background stops above `ftl.gc_idle_stop`.
#[test]
fn background_collection_stops_at_the_threshold() {
    let units = 14 * PAGES;
    let mut ends = Vec::new();
    for seed in 0..200 {
        let (mut log, mut io) = log_of(units);
        let mut rng = Rng::new(seed, 5);
        for write in 0..units + 40 + seed as u32 {
            append(&mut log, &mut io, if write < units { write } else { rng.below(units.into()) as u32 });
        }
        while log.collect_in_background(&mut io).expect("no cut") {
            assert!(io.nand().operations() < 100_000, "collection does not end");
        }
        ends.push(log.frontiers.free_pages[0]);
    }
    assert_eq!(ends.iter().min(), Some(&(log_of(units).0.collector.idle_stop + 1)));
}

/// A block of valid units gains nothing: collection leaves the block alone, even if the plane is short of space.
#[test]
fn blocks_without_an_invalid_unit_are_no_victims() {
    let (mut log, mut io) = log_of((BLOCKS - 2) * PAGES);
    for unit in 0..(BLOCKS - 2) * PAGES {
        append(&mut log, &mut io, unit);
    }
    assert!(log.frontiers.free_pages[0] <= log.collector.start);
    let full = log.frontiers.blocks.closed(0).to_vec();
    assert!(full.iter().all(|&block| log.frontiers.blocks.valid_count(block) == PAGES));
    assert_eq!(log.fewest_valid(0), None);
    assert_eq!(log.choose(&io, 0), None);
    assert!(!log.clean_into_any(&mut io, 0..1).expect("no cut"));
    assert!(!log.collect_in_background(&mut io).expect("no cut"));
    assert_eq!((log.counters.collections, io.counters.erases), (0, 0));
    append(&mut log, &mut io, 17);
    assert_eq!(log.fewest_valid(0), Some(full[17 / PAGES as usize]));
}
