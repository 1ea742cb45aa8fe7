//! A small drive of one plane under a layer with log blocks, and the common behaviour of `bast` and `fast`, counted by
//! hand.

use crate::layers::{bast, fast};
use palimpsest_flash::geometry::{Extent, Geometry};
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::part::samples::slc;
use palimpsest_flash::nand::part::{CellKind, Part};
use palimpsest_flash::nand::{Halt, Nand};
use palimpsest_ftl_api::keys::Value;
use palimpsest_ftl_api::keys::blocks::BlockCount;
use palimpsest_ftl_api::plan::{Cause, Gate, Io, OperationKind};
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Blueprint, Entry, Figure, Ftl};

/// Pages of a block.
pub const PAGES: u32 = 8;
const SECTORS: u32 = 16;

/// One plane of blocks of 8 pages of 2 subpages, filled in order.
pub struct Rig {
    pub io: Io,
    pub layer: Box<dyn Ftl>,
    /// Merges by switch, partial and full, copied pages, erases, at the last call of [`Rig::news`].
    seen: [u64; 5],
}

impl Rig {
    pub fn new(entry: &Entry, log_blocks: u32, logical_blocks: u32) -> Self {
        Rig::of(entry, log_blocks, logical_blocks, CellKind::Slc, &[])
    }

    fn of(entry: &Entry, log_blocks: u32, logical_blocks: u32, cell: CellKind, more: &[(&'static str, Value)]) -> Self {
        let geometry = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: logical_blocks + log_blocks + 2,
            pages_per_block: PAGES,
            subpages_per_page: 2,
            subpage_bytes: 4096,
        };
        let part = Part { cell, page_bytes: 2 * 4096, ..slc() };
        let keys = crate::log::settings::keys().into_iter().chain(super::LOG_BLOCKS);
        let settings = Settings::of_defaults(entry.name, keys).with("ftl.log_blocks", Value::Count(log_blocks.into()));
        let settings = more.iter().fold(settings, |settings, (key, value)| settings.with(key, value.clone()));
        let logical_pages = logical_blocks * PAGES;
        let blueprint = Blueprint { settings, logical_pages, protected: false, buffer_timeout: 0, seed: 1 };
        let io = Io::new(Nand::new(geometry, part, Payload::Tag, None), true);
        let mut rig = Rig { layer: (entry.build)(&io, &blueprint), io, seen: [0; 5] };
        rig.write(0..logical_pages);
        assert_eq!(rig.news(), [0; 5], "every page is written to its place");
        rig
    }

    /// Writes `pages`, one request each.
    pub fn write(&mut self, pages: impl IntoIterator<Item = u32>) {
        for page in pages {
            self.try_write(page * SECTORS, SECTORS).expect("a write");
            self.layer.check(&self.io).expect("a consistent layer");
        }
    }

    pub fn try_write(&mut self, sector: u32, sectors: u32) -> Result<(), Halt> {
        self.io.host.begin_write();
        self.layer.write(&mut self.io, Extent { sector: sector.into(), sectors })
    }

    pub fn trim(&mut self, page: u32, pages: u32) {
        let extent = Extent { sector: (page * SECTORS).into(), sectors: pages * SECTORS };
        self.layer.trim(&mut self.io, extent).expect("a trim");
        self.layer.check(&self.io).expect("a consistent layer");
    }

    /// Fingerprints of `pages` pages.
    pub fn read(&mut self, pages: u32) -> Vec<u64> {
        let extent = Extent { sector: 0, sectors: pages * SECTORS };
        self.layer.read(&mut self.io, extent).expect("a read");
        self.io.host.take_delivered().into_iter().map(|(_, data)| data.value).collect()
    }

    /// Merges by switch, partial and full, copied pages and erases since the last call.
    pub fn news(&mut self) -> [u64; 5] {
        let figures = self.layer.figures();
        let own = |name| match figures.own.iter().find(|own| own.0 == name) {
            Some((_, Figure::Count(count))) => *count,
            other => panic!("{name}: {other:?}"),
        };
        let [switch, partial, full] = ["switch_merges", "partial_merges", "full_merges"].map(own);
        assert_eq!(figures.merges, switch + partial + full);
        let now = [switch, partial, full, figures.merge_moved_subpages / 2, self.io.nand().counters().erases];
        let before = std::mem::replace(&mut self.seen, now);
        std::array::from_fn(|index| now[index] - before[index])
    }
}

const BOTH: [&Entry; 2] = [&bast::ENTRY, &fast::ENTRY];

#[test]
fn a_logical_block_overwritten_in_order_switches() {
    for entry in BOTH {
        let mut rig = Rig::new(entry, 2, 6);
        for block in [3, 0, 3] {
            let before = rig.io.nand().counters().programs;
            rig.write(block * PAGES..(block + 1) * PAGES);
            assert_eq!(rig.news(), [1, 0, 0, 0, 1], "{}: one erase, no copy", entry.name);
            assert_eq!(rig.io.nand().counters().programs - before, 8);
        }
    }
}

#[test]
fn a_piece_of_a_page_is_read_modified_and_written() {
    for entry in BOTH {
        let mut rig = Rig::new(entry, 2, 6);
        let before = rig.read(2);
        rig.try_write(SECTORS + 1, 2).expect("a write");
        let after = rig.read(2);
        assert_eq!((before[..2] == after[..2], before[2] == after[2], before[3] == after[3]), (true, false, true));
        assert_eq!(rig.io.counters.reads[Cause::Rmw as usize], 1);
    }
}

#[test]
fn trimmed_logical_blocks_are_erased_and_cost_no_copy() {
    for entry in BOTH {
        let mut rig = Rig::new(entry, 2, 6);
        rig.write([0, 1]);
        rig.trim(2, 6);
        assert_eq!(rig.news(), [0; 5], "two pages are left");
        rig.trim(0, 2);
        assert_eq!(rig.news(), [0, 0, 0, 0, 2], "{}: the data block and its log block", entry.name);
        rig.write(0..8);
        assert_eq!(rig.news(), [0; 5], "they have their places again");
    }
}

#[test]
fn the_tables_are_those_of_the_blocks_and_of_the_log_pages() {
    for entry in BOTH {
        let rig = Rig::new(entry, 3, 6);
        let mapping = rig.layer.figures().mapping;
        assert_eq!(mapping.tables, [("block_map", 6 * 8), ("log_map", 3 * 8 * 8)]);
        assert_eq!(mapping.peak_bytes, 48 + 192);
    }
}

/// A log block with one bit a cell has 8 / 3 pages, and its merge copies all pages. With `fold` the next overwrites
/// wait for the block of the fixed share, with `direct` they go to another log block.
#[test]
fn log_blocks_of_single_bits_are_merged_fully() {
    let fixed = ("ftl.slc_fixed", Value::Blocks(BlockCount::Blocks(1)));
    for (full, logs, merges) in [("fold", 1, 2), ("direct", 1, 2), ("fold", 3, 2), ("direct", 3, 0)] {
        let more = [fixed.clone(), ("ftl.slc_full", Value::Text(full.into()))];
        let mut rig = Rig::of(&bast::ENTRY, logs, 6, CellKind::Tlc, &more);
        rig.write([0, 1]);
        assert_eq!(rig.news(), [0; 5], "a block of the fixed share is free");
        assert!(rig.io.nand().is_single(0) && rig.io.nand().next_page(0) == 2, "block 0 is the fixed share");
        rig.write([PAGES, 2 * PAGES]);
        assert_eq!(rig.news(), [0, 0, merges, 8 * merges, 2 * merges], "{full}, {logs} log blocks");
        let before = rig.read(6 * PAGES);
        rig.write([2, 3, 4]);
        assert!(rig.news()[2] > 0, "the log block of logical block 0 is full after two pages, or was merged");
        assert_eq!(rig.read(2 * PAGES)[..4], before[..4]);
        let single = |&block: &u32| rig.io.nand().is_single(block);
        assert_eq!((0..rig.io.geometry().blocks()).filter(single).collect::<Vec<_>>(), [0]);
    }
}

/// So many blocks hold one bit a cell as `ftl.slc_cache` allows, while they are log blocks.
#[test]
fn other_log_blocks_hold_single_bits_for_a_time() {
    let cache = [("ftl.slc_cache", Value::Blocks(BlockCount::Blocks(1)))];
    let mut rig = Rig::of(&bast::ENTRY, 2, 6, CellKind::Tlc, &cache);
    let single = |rig: &Rig| {
        let nand = rig.io.nand();
        (0..nand.geometry().blocks()).filter(|&block| nand.next_page(block) > 0 && nand.is_single(block)).count()
    };
    rig.write([0, PAGES, PAGES + 1, PAGES + 2]);
    assert_eq!((rig.news(), single(&rig)), ([0; 5], 1), "the other log block has all pages");
    rig.write([1, 2]);
    assert_eq!((rig.news(), single(&rig)), ([0, 0, 1, 8, 2], 1), "merged after two pages, and another holds one bit");
}

/// Operations that must have ended before `gate` closes, by position in the plan.
fn before(io: &Io, gate: Gate) -> Vec<usize> {
    let signalled = io.plan.operations.iter().enumerate().filter(|(_, operation)| operation.signal == gate);
    let linked = io.plan.links.iter().filter(|link| link.1 == gate).flat_map(|link| before(io, link.0));
    signalled.map(|(index, _)| index).chain(linked).collect()
}

/// The plan of many requests, none of which has ended.
#[test]
fn gates_order_what_must_be_ordered() {
    for entry in BOTH {
        let mut rig = Rig::new(entry, 3, 6);
        let mut requests = Vec::new();
        for turn in 0..120 {
            let gate = rig.io.gate();
            rig.io.present.gate = gate;
            let first = rig.io.plan.operations.len();
            let extent = Extent { sector: u64::from(turn / 2 * 19 % 48 * SECTORS) + 3, sectors: 5 };
            match turn % 2 {
                0 => rig.try_write(extent.sector as u32, extent.sectors).expect("a write"),
                _ => rig.layer.read(&mut rig.io, extent).expect("a read"),
            }
            requests.push((first..rig.io.plan.operations.len(), gate));
        }
        let operations = &rig.io.plan.operations;
        let mut erases = 0;
        for (index, operation) in operations.iter().enumerate().skip(requests[0].0.start) {
            let waits = before(&rig.io, operation.after);
            let programs = (0..index).filter(|&at| operations[at].kind == OperationKind::Program);
            match operation.kind {
                OperationKind::Read => {}
                OperationKind::Program => {
                    let read = &operations[index - 1];
                    let erased = (0..index).filter(|&at| operations[at].kind == OperationKind::Erase);
                    let mut expected: Vec<usize> = erased.chain([index - 1]).collect();
                    expected.sort_unstable();
                    let mut waits = waits;
                    waits.sort_unstable();
                    assert!(read.kind == OperationKind::Read, "what is programmed is read");
                    assert_eq!(waits, expected, "a program follows its read, and the erases of merges before");
                    assert_eq!(read.cause == Cause::Rmw, operation.cause == Cause::Host);
                }
                OperationKind::Erase => {
                    erases += 1;
                    assert!(
                        programs.into_iter().all(|program| waits.contains(&program)),
                        "what it replaces is durable"
                    );
                }
            }
        }
        assert!(erases > 10, "{}: {erases} erases", entry.name);
        for (range, gate) in requests {
            let host: Vec<usize> = range.filter(|&at| operations[at].cause == Cause::Host).collect();
            assert_eq!(before(&rig.io, gate), host, "served by its own operation");
        }
    }
}
