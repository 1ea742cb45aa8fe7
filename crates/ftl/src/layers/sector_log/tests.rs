//! The layer on a small drive of one plane: programs, reads and merges, to the operation.

use super::*;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::part::samples::slc;
use palimpsest_flash::nand::part::{Part, ProgramOrder};
use palimpsest_flash::nand::{Halt, Nand};
use palimpsest_ftl_api::keys::Value;
use palimpsest_ftl_api::plan::PowerIo;

const SUBPAGE: u32 = 8;
const PAGE: u32 = 4 * SUBPAGE;

fn settings() -> Settings {
    let keys = crate::log::settings::keys().into_iter().chain(KEYS);
    Settings::of_defaults("sector-log", keys).with("ftl.log_fraction", Value::Ratio(0.2))
}

/// One plane of `blocks` blocks of 8 pages of 4 subpages; a fifth of the blocks belong to the log.
struct Rig {
    io: Io,
    layer: SectorLog,
}

impl Rig {
    fn new(blocks: u32, logical_pages: u32, nop: u32, order: ProgramOrder) -> Self {
        let geometry = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: blocks,
            pages_per_block: 8,
            subpages_per_page: 4,
            subpage_bytes: 4096,
        };
        let part = Part { page_bytes: 4 * 4096, nop, order, ..slc() };
        let io = Io::new(Nand::new(geometry, part, Payload::Tag, None), false);
        let blueprint = Blueprint { settings: settings(), logical_pages, protected: false, buffer_timeout: 0, seed: 1 };
        let layer = SectorLog::new(&io, &blueprint);
        Rig { io, layer }
    }

    fn write(&mut self, sector: u32, sectors: u32) {
        self.try_write(sector, sectors).expect("a write");
        self.layer.check(&self.io).expect("a consistent layer");
    }

    fn try_write(&mut self, sector: u32, sectors: u32) -> Flash<()> {
        self.io.host.begin_write();
        self.layer.write(&mut self.io, Extent { sector: sector.into(), sectors })
    }

    /// Fingerprints of `pages` pages from `page` on.
    fn read(&mut self, page: u32, pages: u32) -> Vec<u64> {
        let extent = Extent { sector: (page * PAGE).into(), sectors: pages * PAGE };
        self.layer.read(&mut self.io, extent).expect("a read");
        let mut delivered = self.io.host.take_delivered();
        delivered.sort_by_key(|&(lsn, _)| lsn);
        assert_eq!(delivered.len() as u32, 4 * pages);
        delivered.into_iter().map(|(_, data)| data.value).collect()
    }

    fn programs(&self) -> (u64, u64) {
        let counters = self.io.nand().counters();
        (counters.programs, counters.reprograms)
    }

    fn reads(&self, cause: Cause) -> u64 {
        self.io.counters.reads[cause as usize]
    }
}

#[test]
fn small_writes_share_pages_up_to_nop() {
    for (nop, again) in [(1, 0), (2, 4), (4, 6), (8, 6)] {
        let mut rig = Rig::new(20, 40, nop, ProgramOrder::Strict);
        (0..8).for_each(|page| rig.write(page * PAGE, SUBPAGE));
        assert_eq!(rig.programs(), (8, again), "nop {nop}");
        assert_eq!(rig.layer.figures().mapping.tables, [("map", 40 * 8), ("log_map", 8 * 8)]);
    }
}

#[test]
fn a_piece_is_one_program_in_one_page() {
    let mut rig = Rig::new(20, 40, 4, ProgramOrder::Strict);
    rig.write(0, 3 * SUBPAGE);
    rig.write(PAGE, 2 * SUBPAGE);
    rig.write(2 * PAGE, 2 * SUBPAGE);
    assert_eq!(rig.programs(), (3, 1), "two subpages do not fit beside three");
    rig.write(PAGE + 3 * SUBPAGE, 2 * SUBPAGE);
    assert_eq!(rig.programs().0, 5, "a request across two pages is two pieces");
    rig.read(0, 3);
    assert_eq!(rig.reads(Cause::Host), 3, "one command a physical page");
}

#[test]
fn whole_pages_make_the_log_forget() {
    let mut rig = Rig::new(20, 40, 4, ProgramOrder::Strict);
    rig.write(0, PAGE);
    rig.write(0, SUBPAGE);
    rig.write(SUBPAGE, 2 * SUBPAGE);
    assert_eq!(rig.layer.log.held(0), 0b111);
    rig.write(1, PAGE - 2);
    assert_eq!(rig.layer.log.held(0), 0, "every subpage was touched");
    assert_eq!(rig.reads(Cause::Rmw), 2, "the first subpage from the log, the last from the data page");
    assert_eq!(rig.layer.log.map_bytes(), (0, 3 * 8));
    let before = rig.reads(Cause::Host);
    rig.read(0, 1);
    assert_eq!(rig.reads(Cause::Host), before + 1);
}

#[test]
fn a_page_that_the_log_holds_whole_needs_no_data_page() {
    let mut rig = Rig::new(20, 40, 4, ProgramOrder::Strict);
    rig.write(0, PAGE);
    (0..4).for_each(|subpage| rig.write(subpage * SUBPAGE, SUBPAGE));
    assert_eq!(rig.layer.data.locate(0), Location::Unmapped);
    let before = rig.read(0, 1);
    rig.layer.recover(&mut rig.io).expect("recovery");
    rig.layer.check(&rig.io).expect("a consistent layer");
    assert_eq!(rig.read(0, 1), before);
}

#[test]
fn the_oldest_block_is_merged_when_few_are_free() {
    // Four blocks of log; each takes 8 x 4 subpages. The third opened block leaves one free.
    let mut rig = Rig::new(20, 100, 4, ProgramOrder::Strict);
    (0..100).for_each(|page| rig.write(page * PAGE, PAGE));
    (0..64).for_each(|page| rig.write(page * PAGE, SUBPAGE));
    assert_eq!(rig.layer.figures().merges, 0);
    // Two subpages of page 0, the older in the oldest block: both are merged.
    rig.write(SUBPAGE, SUBPAGE);
    assert_eq!(rig.layer.figures().merges, 0);
    rig.write(90 * PAGE, SUBPAGE);
    let figures = rig.layer.figures();
    assert_eq!((figures.merges, figures.merge_moved_subpages), (32, 33));
    // Eight log pages and 32 data pages, and the other log page of page 0.
    assert_eq!(rig.reads(Cause::Merge), 8 + 32 + 1);
    assert_eq!(rig.io.counters.programs[Cause::Merge as usize], 32);
    assert_eq!(rig.layer.log.held(0), 0);
    assert_eq!(rig.layer.log.held(32), 1, "the block that was filled next is left alone");
}

#[test]
fn a_full_drive_with_least_space_takes_endless_small_writes() {
    for (nop, order) in [(1, ProgramOrder::Strict), (2, ProgramOrder::Ascending), (4, ProgramOrder::Any)] {
        // Ten blocks: two of log, two spare.
        let mut rig = Rig::new(10, 48, nop, order);
        (0..48).for_each(|page| rig.write(page * PAGE, PAGE));
        let mut rng = palimpsest_flash::rng::Rng::new(nop.into(), 0);
        for _ in 0..3000 {
            let (sector, sectors) = (rng.below(u64::from(47 * PAGE)) as u32, 1 + rng.below(PAGE.into()) as u32);
            rig.try_write(sector, sectors).expect("room");
        }
        rig.layer.check(&rig.io).expect("a consistent layer");
        let figures = rig.layer.figures();
        assert!(figures.merges > 0 && figures.gc_runs > 0);
        assert_eq!(
            figures.own.iter().find(|own| own.0 == "log_full_writes"),
            Some(&("log_full_writes", palimpsest_ftl_api::Figure::Count(0)))
        );
    }
}

#[test]
fn a_data_page_that_moves_does_not_pass_for_newer_than_the_log() {
    let mut rig = Rig::new(20, 100, 4, ProgramOrder::Strict);
    (0..100).for_each(|page| rig.write(page * PAGE, PAGE));
    rig.write(0, SUBPAGE);
    let Location::Flash(before) = rig.layer.data.locate(0) else { panic!("page 0 is written") };
    // Overwriting neighbours makes collection move page 0.
    let mut turn = 0;
    while rig.layer.data.locate(0) == Location::Flash(before) {
        rig.write((1 + turn % 99) * PAGE, PAGE);
        turn += if turn % 8 == 6 { 2 } else { 1 };
        assert!(turn < 2000, "collection never moved page 0");
    }
    assert!(rig.io.counters.padding_bytes >= 4096);
    let wanted = rig.read(0, 100);
    for cut in 1..20 {
        rig.io.set_power_cut_at(Some(rig.io.nand().operations() + cut));
        let written = rig.try_write(50 * PAGE, PAGE);
        assert!(matches!(written, Ok(()) | Err(Halt::PowerCut)), "{written:?}");
        rig.io.set_power_cut_at(None);
        rig.layer.recover(&mut rig.io).expect("recovery");
        rig.layer.check(&rig.io).expect("a consistent layer");
        let found = rig.read(0, 100);
        assert_eq!(found[..200], wanted[..200], "cut {cut}");
        assert_eq!(found[204..], wanted[204..], "cut {cut}");
    }
}

#[test]
fn without_blocks_the_log_leaves_a_page_map() {
    let mut rig = Rig::new(20, 40, 4, ProgramOrder::Strict);
    rig.write(0, SUBPAGE);
    let before = rig.read(0, 1);
    while let Some(block) = rig.layer.log.frontiers.iter().map(|frontier| frontier.block).find(|&block| block < 20) {
        let failed = rig.layer.log.drop_frontier(&rig.io, block * 8);
        rig.layer.retire(&mut rig.io, failed).expect("a merge");
        rig.write(PAGE, SUBPAGE);
    }
    assert_eq!(rig.layer.figures().retired_blocks, 4);
    assert!(rig.layer.counters.unlogged > 0);
    assert_eq!(rig.read(0, 1), before);
}
