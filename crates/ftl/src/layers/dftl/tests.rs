//! The layer on a small drive of one plane, with 128 entries a translation page: the paper's costs of a translation, to
//! the operation.

use super::*;
use crate::log::settings::keys;
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::nand::Nand;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::part::Part;
use palimpsest_flash::nand::part::samples::slc;
use palimpsest_ftl_api::plan::{Cause, CodedIo, Gate, Io, OperationKind};
use palimpsest_ftl_api::{Blueprint, Figure, Ftl};

const PAGES: u32 = 512;
const PAGES_PER_BLOCK: u32 = 8;

struct Rig {
    io: Io,
    layer: Page<CachedMap>,
}

impl Rig {
    fn new(room: u32, blocks: u32, payload: Payload) -> Self {
        let geometry = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: blocks,
            pages_per_block: PAGES_PER_BLOCK,
            subpages_per_page: 1,
            subpage_bytes: 512,
        };
        let part = Part { page_bytes: 512, subpage_bytes: 512, word_bytes: 512, ..slc() };
        let io = Io::new(Nand::new(geometry, part, payload, None), false);
        let settings = Settings::of_defaults("dftl", keys().into_iter().chain(KEYS));
        let blueprint = Blueprint { settings, logical_pages: PAGES, protected: false, buffer_timeout: 0, seed: 1 };
        let layer = Page::over(&io, &blueprint, CachedMap::new(&io, PAGES, room));
        Rig { io, layer }
    }

    /// Reads and programs of translation pages during `act`.
    fn cost(&mut self, act: impl FnOnce(&mut Page<CachedMap>, &mut Io)) -> (u64, u64) {
        let before = self.metadata();
        act(&mut self.layer, &mut self.io);
        self.layer.check(&self.io).expect("a consistent layer");
        let after = self.metadata();
        (after.0 - before.0, after.1 - before.1)
    }

    fn metadata(&self) -> (u64, u64) {
        let (counters, cause) = (&self.io.counters, Cause::Metadata as usize);
        (counters.reads[cause], counters.programs[cause])
    }

    fn write(&mut self, page: u32) -> (u64, u64) {
        self.cost(|layer, io| {
            io.host.begin_write();
            layer.write(io, extent(page)).expect("a write");
        })
    }

    fn read(&mut self, page: u32) -> (u64, u64) {
        self.cost(|layer, io| layer.read(io, extent(page)).expect("a read"))
    }

    fn figure(&self, name: &str) -> u64 {
        match self.layer.figures().own.iter().find(|(own, _)| *own == name).expect("a figure").1 {
            Figure::Count(count) | Figure::Level(count) => count,
            other => panic!("{name} is {other:?}"),
        }
    }
}

fn extent(page: u32) -> Extent {
    Extent { sector: page.into(), sectors: 1 }
}

/// Two entries, of which one may be protected. Pages 0, 200 and 300 are of different translation pages.
fn small() -> Rig {
    let mut rig = Rig::new(2, 100, Payload::Tag);
    assert_eq!([rig.write(0), rig.write(200)], [(0, 0); 2], "nothing to read, and room");
    assert_eq!(rig.write(300), (0, 1), "the entry of 0 goes; its translation page is new");
    assert_eq!(rig.read(0), (1, 1), "the entry of 200 goes, that of 0 comes");
    assert_eq!(rig.read(1), (1, 1), "the entry of 300 goes; that of 1, never written, is in the translation page of 0");
    rig
}

#[test]
fn a_translation_costs_what_the_paper_says() {
    let mut rig = small();
    assert_eq!(rig.read(200), (1, 0), "a miss with a clean victim: one read");
    assert_eq!([rig.write(1), rig.write(200), rig.read(1)], [(0, 0); 3], "hits are free");
    assert_eq!(rig.read(300), (2, 1), "a miss with a dirty victim: one read, and a read and a program for the victim");
    assert_eq!([rig.figure("map_hits"), rig.figure("map_misses"), rig.figure("map_evictions")], [3, 7, 5]);
}

#[test]
fn a_request_waits_for_the_victim_update_and_its_own_entry() {
    let mut rig = small();
    assert_eq!([rig.read(200), rig.write(1), rig.write(200), rig.read(1)], [(1, 0), (0, 0), (0, 0), (0, 0)]);
    rig.io.plan.timed = true;
    assert_eq!(rig.read(300), (2, 1));
    let operations = &rig.io.plan.operations;
    let kinds: Vec<(OperationKind, Cause)> = operations.iter().map(|each| (each.kind, each.cause)).collect();
    let (read, program) = (OperationKind::Read, OperationKind::Program);
    let metadata = Cause::Metadata;
    assert_eq!(kinds, [(read, metadata), (program, metadata), (read, metadata), (read, Cause::Host)]);
    assert_eq!(operations[0].after, Gate::NONE);
    for pair in operations.windows(2) {
        assert!(!pair[0].signal.is_none());
        assert_eq!(pair[1].after, pair[0].signal, "each waits for the one before");
    }
    // A hit on an entry that has not arrived waits for the entry, too.
    let arrives = operations[2].signal;
    rig.write(300);
    assert_eq!(rig.io.plan.operations.last().expect("a program").after, arrives);
}

#[test]
fn entries_of_one_translation_page_are_written_together() {
    let mut rig = Rig::new(8, 100, Payload::Tag);
    (0..8).for_each(|page| assert_eq!(rig.write(page), (0, 0)));
    assert_eq!(rig.write(200), (0, 1), "all eight entries at once");
    (201..208).for_each(|page| assert_eq!(rig.write(page), (0, 0), "the victims are clean"));
    assert_eq!((rig.figure("map_page_updates"), rig.figure("map_entries_written")), (1, 8));
}

/// Overwrites a full drive at random; collection moves pages and translation pages.
fn overwritten(payload: Payload) -> Rig {
    let mut rig = Rig::new(20, 76, payload);
    let mut rng = Rng::new(7, 7);
    (0..PAGES).for_each(|page| {
        rig.write(page);
    });
    for _ in 0..2000 {
        let page = rng.below(PAGES.into()) as u32;
        if rng.below(3) == 0 {
            rig.read(page)
        } else {
            rig.write(page)
        };
    }
    rig
}

/// Every flash operation belongs to a request, to collection or to the map, with every payload. Translation pages exist
/// with or without contents, as [`Rig::cost`] checks after each request.
#[test]
fn operations_add_up_in_every_payload() {
    for payload in [Payload::None, Payload::Tag, Payload::Bytes] {
        let rig = overwritten(payload);
        let (counters, figures) = (&rig.io.counters, rig.layer.figures());
        let of = |cause: Cause| (counters.reads[cause as usize], counters.programs[cause as usize]);
        let (hits, misses) = (rig.figure("map_hits"), rig.figure("map_misses"));
        assert_eq!(of(Cause::Host).0 + of(Cause::Host).1, u64::from(PAGES) + 2000);
        assert_eq!(hits + misses, u64::from(PAGES) + 2000, "each request is of one page");
        assert_eq!(of(Cause::Metadata), (rig.figure("map_page_reads"), rig.figure("map_page_updates")));
        assert_eq!(of(Cause::Gc), (figures.gc_moved_subpages, figures.gc_moved_subpages));
        assert!(rig.figure("map_pages_moved") > 0 && figures.gc_moved_subpages > rig.figure("map_pages_moved"));
        // Each miss reads a translation page, and so does each update of an existing one.
        assert!(rig.figure("map_page_reads") <= misses + rig.figure("map_page_updates"));
        let tables = &figures.mapping.tables;
        assert!(tables[0].1 <= 20 * CACHED_BYTES, "the table is no larger than it may be when requests are over");
        assert_eq!(tables[1], ("gtd", 4 * 4), "four translation pages");
    }
}

#[test]
fn translation_pages_and_data_have_blocks_of_their_own() {
    let rig = overwritten(Payload::None);
    let nand = rig.io.nand();
    for block in 0..76 {
        let pages = block * PAGES_PER_BLOCK..block * PAGES_PER_BLOCK + nand.next_page(block);
        let own = pages.clone().filter(|&page| nand.logical(page) >= PAGES).count();
        assert!(own == 0 || own == pages.len(), "block {block} holds {own} translation pages of {}", pages.len());
    }
}

/// Entries outside the table are only in flash: the check must detect a lost translation page.
#[test]
fn a_check_reads_translation_pages() {
    let mut rig = small();
    let translation =
        (0..100 * PAGES_PER_BLOCK).find(|&page| !rig.io.own(page).is_empty()).expect("a translation page");
    assert_eq!(rig.io.own(translation).len(), 128 * 4);
    rig.io.nand.erase(translation / PAGES_PER_BLOCK).map(drop).expect("an erase without the layer");
    let found = rig.layer.check(&rig.io).expect_err("the entries are gone");
    assert!(found.contains("translation page"), "{found}");
}
