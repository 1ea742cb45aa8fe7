//! The selector at work: commands of host reads and cleaning, to the word, the byte and the nanosecond.

use super::*;
use crate::find;
use crate::log::settings::keys;
use palimpsest_flash::geometry::{Extent, Geometry};
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::part::samples::slc;
use palimpsest_flash::nand::part::{Part, SpreadReach};
use palimpsest_flash::nand::{Nand, WordMask};
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::keys::Value;
use palimpsest_ftl_api::plan::select::ReadPolicy;
use palimpsest_ftl_api::plan::{Cause, Io, Operation, OperationKind, Read};
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Blueprint, Ftl};

const SUBPAGE: u32 = 8;
/// Table I of the paper: tR of 2, 4, ... 16 KiB.
const T_READ: [Nanos; 8] = [35_000, 45_000, 55_000, 65_000, 75_000, 85_000, 95_000, 99_000];
/// Energies of 1, 2, ... words, in pJ.
const E_READ: [u64; 8] = [10, 11, 12, 13, 14, 15, 16, 17];

/// Pages of 16 KiB of four subpages and eight words, eight pages a block, one plane.
fn part() -> Part {
    Part {
        page_bytes: 16_384,
        word_bytes: 2048,
        t_read: 99_000,
        t_command: 0,
        t_read_words: T_READ.into(),
        e_read: 17,
        e_read_words: E_READ.into(),
        ..slc()
    }
}

struct Rig {
    io: Io,
    layer: Box<dyn Ftl>,
}

impl Rig {
    fn new(name: &str, blocks: u32, part: Part, gaps: bool) -> Self {
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
        let io = Io::new(Nand::new(geometry, part, Payload::Tag, None), true);
        let entry = find(name).expect("a layer");
        let mode = match entry.read {
            Some(ReadMode::Dma) => "dma",
            Some(ReadMode::Spread) => "spread",
            _ => "page",
        };
        let settings = Settings::of_defaults(name, keys())
            .with("ftl.read", Value::Text(mode.into()))
            .with("ftl.read_gap", Value::Flag(gaps))
            .with("ftl.gc_pace", Value::Text("block".into()));
        let blueprint = Blueprint { settings, logical_pages: 40, protected: true, buffer_timeout: 0, seed: 1 };
        let layer = (entry.build)(&io, &blueprint);
        Rig { io, layer }
    }

    fn write(&mut self, lsn: u32) {
        self.io.host.begin_write();
        let extent = Extent { sector: u64::from(lsn * SUBPAGE), sectors: SUBPAGE };
        self.layer.write(&mut self.io, extent).expect("a write");
    }

    /// Ends every planned operation at once, as an engine would at last.
    fn done(&mut self) {
        self.io.plan.replacing.clear();
        self.io.plan.clear();
    }

    /// The read operations of a host read, as (physical page, bytes on the bus, time in the array).
    fn read(&mut self, sector: u32, sectors: u32) -> Vec<(u32, u32, u32)> {
        self.done();
        self.layer.read(&mut self.io, Extent { sector: sector.into(), sectors }).expect("a read");
        self.reads()
    }

    fn reads(&self) -> Vec<(u32, u32, u32)> {
        let page = |op: &Operation| op.block * 8 + u32::from(op.page);
        let reads = self.io.plan.operations.iter().filter(|op| op.kind == OperationKind::Read);
        reads.map(|op| (page(op), op.bytes, op.array)).collect()
    }
}

/// Fig. 5: F0h to F3h were written together; F1h and F2h were overwritten, each with other data, at different times.
fn figure_5(name: &str) -> Rig {
    let mut rig = Rig::new(name, 8, part(), false);
    (0..4).for_each(|lsn| rig.write(lsn));
    [1, 20, 21, 22, 2, 24, 25, 26].into_iter().for_each(|lsn| rig.write(lsn));
    rig
}

#[test]
fn figure_5_takes_three_commands() {
    // F0h and F3h are in one page with a gap of two subpages between them: one command of 8 KiB for both.
    assert_eq!(figure_5("spftl").read(0, 32), [(0, 8192, 65_000), (1, 4096, 45_000), (2, 4096, 45_000)]);
    // "When SPREAD is not used, three full page reads, that is, 3 x 16-KB reads, are required."
    assert_eq!(figure_5("page-fgm").read(0, 32), [(0, 16_384, 99_000), (1, 16_384, 99_000), (2, 16_384, 99_000)]);
    assert_eq!(figure_5("dma-fgm").read(0, 32), [(0, 8192, 99_000), (1, 4096, 99_000), (2, 4096, 99_000)]);
    let mut rig = figure_5("spftl");
    rig.read(0, 32);
    let counters = &rig.io.counters;
    assert_eq!(counters.sensed[Cause::Host as usize], 16_384);
    assert_eq!(counters.wanted[Cause::Host as usize], 16_384);
    assert_eq!(rig.io.nand().counters().read_energy, E_READ[3] + E_READ[1] + E_READ[1]);
}

#[test]
fn reads_smaller_than_the_map_unit_sense_only_their_words() {
    let mut rig = figure_5("spftl");
    // Sectors 0 to 4 are one word of F0h; sectors 6 to 9 are one word of F0h and one of F1h, in different pages.
    assert_eq!(rig.read(0, 4), [(0, 2048, 35_000)]);
    assert_eq!(rig.read(6, 4), [(0, 2048, 35_000), (1, 2048, 35_000)]);
    // The last sector of F3h: the eighth word of the page.
    assert_eq!(rig.read(31, 1), [(0, 2048, 35_000)]);
}

#[test]
fn a_command_of_one_run_reads_around_the_gap_or_through_it() {
    let figure_5 = |gaps| {
        let mut rig = Rig::new("spftl", 8, Part { spread_reach: SpreadReach::Run, ..part() }, gaps);
        [0, 1, 2, 3, 1, 20, 21, 22, 2, 24, 25, 26].into_iter().for_each(|lsn| rig.write(lsn));
        rig
    };
    // F0h and F3h are words 0 and 1, 6 and 7: 45 + 45 us apart, 99 us together.
    let apart = [(0, 4096, 45_000), (0, 4096, 45_000), (1, 4096, 45_000), (2, 4096, 45_000)];
    assert_eq!(figure_5(false).read(0, 32), apart);
    assert_eq!(figure_5(true).read(0, 32), apart, "the gap is not worth it");
    // F0h and F2h are words 0 and 1, 4 and 5: 90 us apart, 85 us together. The bus transfers only the wanted words.
    let overwritten = |gaps| {
        let mut rig = Rig::new("spftl", 8, Part { spread_reach: SpreadReach::Run, ..part() }, gaps);
        [0, 1, 2, 3, 1, 20, 21, 22].into_iter().for_each(|lsn| rig.write(lsn));
        rig.read(0, 24);
        rig
    };
    assert_eq!(overwritten(false).reads(), [(0, 4096, 45_000), (0, 4096, 45_000), (1, 4096, 45_000)]);
    let rig = overwritten(true);
    assert_eq!(rig.reads(), [(0, 8192, 85_000), (1, 4096, 45_000)]);
    assert_eq!(rig.io.counters.sensed[Cause::Host as usize], 12_288 + 4096);
    assert_eq!(rig.io.counters.wanted[Cause::Host as usize], 12_288);
}

/// Requested data crosses the host link once, however many commands read the words.
#[test]
fn subpages_cross_the_link_once() {
    let run = Part { spread_reach: SpreadReach::Run, word_bytes: 1024, t_read_words: vec![9; 16], ..part() };
    let run = Part { e_read_words: Vec::new(), ..run };
    let mut rig = Rig::new("spftl", 8, run, false);
    (0..4).for_each(|lsn| rig.write(lsn));
    for words in 1..1u64 << 16 {
        let policy = ReadPolicy { mode: ReadMode::Spread, gaps: false };
        let wanted =
            (0..4).filter(|subpage| words >> (4 * subpage) & 0b1111 != 0).fold(0u64, |all, bit| all | 1 << bit);
        // The host requests all of the subpages, or those words alone.
        for asked in [4096 * wanted.count_ones(), 1024 * words.count_ones()] {
            rig.done();
            rig.io.present.link_left = u64::from(asked);
            rig.io.read(Read { words, policy, ..Read::new(0, wanted, Cause::Host) }).expect("a read");
            let crossed: u32 = rig.io.plan.operations.iter().map(|op| op.link_bytes).sum();
            assert_eq!((crossed, rig.io.present.link_left), (asked, 0), "{words:016b}");
        }
    }
}

#[test]
fn table_1_holds_for_every_set_of_words() {
    let mut rig = figure_5("spftl");
    for words in 1..256 as WordMask {
        rig.done();
        let policy = ReadPolicy { mode: ReadMode::Spread, gaps: true };
        rig.io.read(Read { words, policy, ..Read::new(0, 0b1111, Cause::Host) }).expect("a read");
        let count = words.count_ones();
        assert_eq!(rig.reads(), [(0, 2048 * count, T_READ[count as usize - 1] as u32)], "{words:08b}");
    }
}

/// Cleaning reads the valid units of the block's bitmap, and no others.
#[test]
fn cleaning_reads_only_what_is_valid() {
    for (name, sensed, array) in [("spftl", 4096, 45_000), ("dma-fgm", 16_384, 99_000), ("page-fgm", 16_384, 99_000)] {
        let mut rig = Rig::new(name, 6, part(), false);
        // Every page of the first block keeps the first subpage only.
        (0..32).for_each(|lsn| rig.write(lsn));
        (0..32).filter(|lsn| lsn % 4 != 0).for_each(|lsn| rig.write(lsn));
        let mut reads = Vec::new();
        let mut lsn = 40;
        while reads.is_empty() {
            rig.done();
            rig.write(lsn);
            lsn += 1;
            reads = rig.reads();
        }
        let bytes = if name == "page-fgm" { 16_384 } else { 4096 };
        let pages: Vec<(u32, u32, u32)> = (0..8).map(|page| (page, bytes, array)).collect();
        assert_eq!(reads, pages, "{name}");
        let counters = &rig.io.counters;
        assert_eq!(counters.sensed[Cause::Gc as usize], 8 * sensed, "{name}");
        assert_eq!(counters.wanted[Cause::Gc as usize], 8 * 4096, "{name}");
        rig.layer.check(&rig.io).expect("a consistent layer");
    }
}
