//! `llh`: low pages are programmed, invalidated, and programmed again with write-once-memory codes before the erase
//! (Margaglia et al., "The Devil is in the Details: Implementing Flash Page Reuse with WOM Codes", FAST 2016).
//! [`super::hotcold`] is the baseline without reuse.
//!
//! A fine-grained map: one physical subpage per logical one. Logical subpage n belongs to bank n mod banks (a bank is a
//! plane). Each bank has a merge buffer and a block for hot data, and for cold data (`buffers`), and cleans separately
//! (`collect`). Hot blocks are partially used and reused, cold ones used (`bank`: Fig. 6, the adaptive threshold). A
//! second write takes twice the size of the data (`code`). Recovery reads the out-of-band areas (`recover`).
//!
//! Where the paper is silent, docs/systems.md, "llh", decides. Decided here beyond that: moved pages have a separate
//! merge buffer and share the block of cold data. A block is partially used only in the safe share of the endurance.
//! Waiting blocks must leave the streams and cleaning a block each. Data whose encoding fails goes with moved data, the
//! first writes on clean blocks. `ftl.streams` and `ftl.allocation` have no effect.

mod bank;
mod buffers;
mod code;
mod collect;
mod dead;
mod recover;
mod settings;
pub mod threshold;
mod write;

use super::gather::Gather;
use super::pages::{BuildSubpageLayer, MapsSubpages};
use crate::log::blocks::Blocks;
use crate::log::pace::WHOLE_BLOCKS;
use crate::log::portions::Portions;
use crate::log::streams::StreamChooser;
use crate::log::victim::{self, Victim};
use crate::log::{Append, LogCounters};
use crate::maps::bytes::map_bytes;
use bank::{Bank, NO_FRONTIER, Transitions, UseState};
use buffers::{Buffer, NOT_WAITING};
use code::Coder;
use palimpsest_flash::geometry::{Divisor, Extent, unit_of};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, PADDING, SubpageMask};
use palimpsest_flash::prefetch::prefetch;
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_ftl_api::plan::port::{Piece, pieces};
use palimpsest_ftl_api::plan::{Cause, CodedIo, Gate, Io, Read};
use palimpsest_ftl_api::{Blueprint, ClassifyAhead, Entry, Figure, Ftl, LayerFigures, Mapping, Programs};
use settings::LlhSettings;
use threshold::{Adapt, Threshold};

pub const ENTRY: Entry = Entry {
    name: "llh",
    about: "low pages of hot blocks are programmed twice, the second time with a write-once-memory code",
    programs: Programs::OverData,
    gathers: true,
    hot_and_cold: true,
    outlives_dies: true,
    superblocks: true,
    reasons: &[("ftl.slc_cache", LOW_PAGES), ("ftl.slc_fixed", LOW_PAGES), ("ftl.gc_pace", WHOLE_BLOCKS)],
    keys: settings::keys,
    check: settings::check,
    model: settings::MODEL,
    build: |io, blueprint| Box::new(Llh::new(io, blueprint)),
    ..Entry::PLAIN
};

const LOW_PAGES: &str = "partially-used blocks of this layer already hold data in their fast low pages only";

pub const UNITS: BuildSubpageLayer = |io, blueprint| Box::new(Llh::new(io, blueprint));

/// The stream of hot data, and the number of the buffer and block.
const HOT: u32 = 0;
/// The stream of cold data, and the number of the buffer and block; moved data shares the block.
const COLD: u32 = 1;
/// The buffer of moved data.
const MOVED: u32 = 2;
const BUFFERS_PER_BANK: u32 = 3;

/// Map entry of a unit that was never written, or was trimmed.
const UNMAPPED: u32 = u32::MAX;
/// Map entries from here on name a slot of a buffer of the unit's bank: number of the buffer times [`SLOTS`], plus the
/// slot.
const IN_BUFFER: u32 = u32::MAX - (1 << 16);
/// More slots than a buffer ever has: a page, and units added after a failed encoding or from a failed die.
const SLOTS: u32 = 256;

struct Llh {
    settings: LlhSettings,
    subpages: u32,
    pages_per_block: u32,
    sectors_per_subpage: u32,
    banks_by: Divisor,
    per_page: Divisor,
    per_block: Divisor,
    blocks_by: Divisor,
    map: Vec<u32>,
    blocks: Blocks,
    use_states: Vec<UseState>,
    banks: Vec<Bank>,
    buffers: Vec<Buffer>,
    /// Per buffer: arrival of the oldest unit with a waiting request, or [`NOT_WAITING`].
    since: Vec<Nanos>,
    oldest: Nanos,
    streams: StreamChooser,
    victim: Box<dyn Victim>,
    /// Chooses the thresholds of banks, if outside of this crate.
    rule: Option<Box<dyn Adapt>>,
    rng: Rng,
    coder: Coder,
    /// Blocks with fewer erases than this may be partially used.
    safe_erases: u32,
    gc_start: u32,
    gc_stop: u32,
    gc_idle_stop: u32,
    portions: Portions,
    /// Pages to leave free when cleaning is optional: a failed program spoils one, and a power cut spoils one per die
    /// of a superblock.
    slack: u32,
    /// True if buffers survive a power cut.
    protected: bool,
    timeout: Nanos,
    failed: Vec<u32>,
    /// Per bank: true if the die has failed; empty until one fails.
    lost: Vec<bool>,
    /// Victims whose last units wait in buffers, and the gates that close when those are programmed.
    emptying: Vec<(u32, Gate)>,
    wear_checks: u32,
    counters: LogCounters,
    transitions: Transitions,
    /// True if a failed program or a power cut changed blocks outside the counted transitions.
    disturbed: bool,
    logical: Vec<u32>,
    image: Vec<Data>,
    wanted: Gather,
    /// Coded pages of a read, with the wanted subpages of each.
    coded: Vec<(u32, SubpageMask)>,
}

palimpsest_flash::state!(Llh {
    map, blocks, since, oldest, streams, victim, rng, coder, failed, lost, emptying, portions, wear_checks, counters,
    transitions, disturbed
} parts { use_states, banks, buffers, rule } built {
    settings, subpages, pages_per_block, sectors_per_subpage, banks_by, per_page, per_block, blocks_by,
    safe_erases, gc_start, gc_stop, gc_idle_stop, slack, protected, timeout, logical, image, wanted, coded
});

impl Llh {
    /// A layer on erased flash.
    fn new(io: &Io, blueprint: &Blueprint) -> Self {
        let (geometry, settings) = (*io.geometry(), LlhSettings::new(&blueprint.settings));
        let subpages = geometry.subpages_per_page;
        let units = blueprint.logical_pages * subpages;
        let blocks = Blocks::new(&geometry, geometry.subpages_per_block(), |block| io.nand().is_bad(block));
        let sectors_per_subpage = geometry.subpage_bytes / SECTOR_BYTES as u32;
        let mut layer = Llh {
            subpages,
            pages_per_block: geometry.pages_per_block,
            sectors_per_subpage,
            banks_by: Divisor::new(geometry.planes()),
            per_page: Divisor::new(subpages),
            per_block: Divisor::new(geometry.subpages_per_block()),
            blocks_by: Divisor::new(geometry.blocks_per_plane),
            map: vec![UNMAPPED; units as usize],
            use_states: vec![UseState::Clean; geometry.blocks() as usize],
            banks: Vec::new(),
            buffers: (0..geometry.planes() * BUFFERS_PER_BANK).map(|_| Buffer::default()).collect(),
            since: vec![NOT_WAITING; (geometry.planes() * BUFFERS_PER_BANK) as usize],
            oldest: NOT_WAITING,
            streams: StreamChooser::always(&blueprint.settings, units, sectors_per_subpage),
            victim: victim::new(&settings.log.victim),
            rule: threshold::OUTSIDE.build_from(&blueprint.settings),
            rng: Rng::new(blueprint.seed, 0x71c7),
            coder: Coder::new(io.nand(), &settings, blueprint.seed),
            safe_erases: (f64::from(io.nand().part().endurance) * settings.safe_life) as u32,
            gc_start: settings.log.gc_start.of(geometry.blocks_per_plane),
            gc_stop: settings.log.gc_stop.of(geometry.blocks_per_plane),
            gc_idle_stop: settings.log.gc_idle_stop.of(geometry.blocks_per_plane),
            portions: Portions::new(&geometry),
            slack: io.nand().pages_torn(),
            protected: blueprint.protected,
            timeout: blueprint.buffer_timeout,
            failed: Vec::new(),
            lost: Vec::new(),
            emptying: Vec::new(),
            wear_checks: 0,
            counters: LogCounters::default(),
            transitions: Transitions::default(),
            disturbed: false,
            logical: vec![PADDING; subpages as usize],
            image: vec![Data::ZERO; subpages as usize],
            wanted: Gather::default(),
            coded: Vec::new(),
            blocks,
            settings,
        };
        for bank in 0..geometry.planes() {
            let threshold = Threshold::new(layer.first_threshold(bank))
                .slowed(layer.settings.threshold_steps, layer.settings.threshold_floor);
            layer.banks.push(Bank { frontiers: [NO_FRONTIER; 2], waiting: [Vec::new(), Vec::new()], threshold });
        }
        layer
    }

    #[inline]
    fn bank_of_block(&self, block: u32) -> u32 {
        self.blocks_by.divide(block)
    }

    fn banks_count(&self) -> u32 {
        self.buffers.len() as u32 / BUFFERS_PER_BANK
    }

    #[inline]
    fn write_piece(&mut self, io: &mut Io, stream: u32, piece: Piece) -> Flash<()> {
        let (mut old, mut after) = (Data::ZERO, io.arrival());
        if piece.sectors < self.sectors_per_subpage {
            (old, after) = self.fetch_old(io, piece.lsn)?;
        }
        let data = io.written(piece, old);
        let signal = io.program_signal(self.protected);
        let what = Append { unit: piece.lsn, data, cause: Cause::Host, after, signal, holds: 1 };
        self.append(io, stream, what)
    }

    /// The present content of a partially written subpage, and the gate that closes when the content has been read.
    fn fetch_old(&mut self, io: &mut Io, unit: u32) -> Flash<(Data, Gate)> {
        match self.map[unit as usize] {
            UNMAPPED => Ok((Data::ZERO, Gate::NONE)),
            entry if entry >= IN_BUFFER => {
                let (buffer, slot) = self.slot_of(unit, entry);
                let buffers::Slot { data, arrived, .. } = self.buffers[buffer].slots[slot];
                io.link(arrived, io.request());
                Ok((data, arrived))
            }
            psn => {
                let (ppn, index) = self.per_page.split(psn);
                let arrived = io.gate();
                let read =
                    Read { policy: self.settings.log.read, signal: arrived, ..Read::new(ppn, 1 << index, Cause::Rmw) };
                if self.is_coded(io, ppn) {
                    io.read_coded(read, self.settings.wom_decode_time)?
                } else {
                    io.read(read)?
                }
                io.link(arrived, io.request());
                Ok((self.content(io, psn), arrived))
            }
        }
    }

    /// Adds the words of `piece` in physical subpage `psn` to the wanted ones.
    #[inline]
    fn want(&mut self, io: &Io, psn: u32, piece: Piece) {
        let (ppn, index) = self.per_page.split(psn);
        if self.is_coded(io, ppn) {
            match self.coded.iter_mut().find(|(page, _)| *page == ppn) {
                Some((_, subpages)) => *subpages |= 1 << index,
                None => self.coded.push((ppn, 1 << index)),
            }
        } else {
            let first = index * self.sectors_per_subpage + piece.first;
            self.wanted.add(ppn, 1 << index, io.nand().words_of(first, piece.sectors));
        }
    }

    #[inline]
    fn read_wanted(&mut self, io: &mut Io) -> Flash<()> {
        let request = io.request();
        for &(ppn, subpages) in &self.coded {
            let after = io.arrival();
            let read = Read { after, signal: request, ..Read::new(ppn, subpages, Cause::Host) };
            io.read_coded(read, self.settings.wom_decode_time)?;
        }
        self.wanted.read(io, self.settings.log.read, Cause::Host, request)
    }

    /// Reads all data of `extent` before the delivery, because an uncorrectable read loses the data.
    #[cold]
    fn read_first(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        for piece in pieces(extent, self.sectors_per_subpage) {
            let entry = self.map[piece.lsn as usize];
            if entry != UNMAPPED && entry < IN_BUFFER {
                self.want(io, entry, piece);
            }
        }
        self.read_wanted(io)
    }

    /// Lists the wanted subpages of `piece`, and delivers them.
    #[inline]
    fn read_piece(&mut self, io: &mut Io, piece: Piece) {
        let data = match self.map[piece.lsn as usize] {
            UNMAPPED => {
                io.count_unwritten(1);
                Data::ZERO
            }
            entry if entry >= IN_BUFFER => {
                let (buffer, slot) = self.slot_of(piece.lsn, entry);
                let buffers::Slot { data, arrived, .. } = self.buffers[buffer].slots[slot];
                io.link(arrived, io.request());
                io.count_buffered(1);
                data
            }
            psn => {
                self.want(io, psn, piece);
                if io.host.has_contents() { self.content(io, psn) } else { Data::ZERO }
            }
        };
        io.deliver(piece.lsn, data);
    }

    fn own_figures(&self) -> Vec<(&'static str, Figure)> {
        let moves = &self.transitions;
        let (low, tried) = (moves.reused_low, moves.reused_low + moves.wom_failures);
        let thresholds = || self.banks.iter().map(|bank| &bank.threshold);
        let waiting = self.banks.iter().flat_map(|bank| &bank.waiting).map(Vec::len).sum::<usize>();
        vec![
            self.counters.hot_share(),
            ("transition_clean_used", Figure::Count(moves.clean_used)),
            ("transition_used_clean", Figure::Count(moves.used_clean)),
            ("transition_clean_partially_used", Figure::Count(moves.clean_partially_used)),
            ("transition_partially_used_reused", Figure::Count(moves.partially_used_reused)),
            ("transition_partially_used_used", Figure::Count(moves.partially_used_used)),
            ("transition_used_reused", Figure::Count(moves.used_reused)),
            ("transition_reused_clean", Figure::Count(moves.reused_clean)),
            ("reused_low_pages", Figure::Count(low)),
            ("skipped_low_pages", Figure::Count(moves.skipped_low)),
            ("reusable_share", Figure::ShareOfCount(tried, tried + moves.skipped_low)),
            ("second_write_logical_pages", Figure::Count(moves.second_units)),
            ("wom_failures", Figure::Count(moves.wom_failures)),
            ("wom_failure_share", Figure::ShareOfCount(moves.wom_failures, tried)),
            ("partially_used_blocks", Figure::Level(waiting as u64)),
            ("threshold_pu", Figure::Level(thresholds().map(|threshold| u64::from(threshold.now)).sum())),
            (
                "threshold_pu_least",
                Figure::Level(thresholds().map(|threshold| threshold.least.into()).min().unwrap_or(0)),
            ),
            (
                "threshold_pu_most",
                Figure::Level(thresholds().map(|threshold| threshold.most.into()).max().unwrap_or(0)),
            ),
        ]
    }
}

impl MapsSubpages for Llh {
    fn holds(&self, unit: u32) -> bool {
        self.map[unit as usize] != UNMAPPED
    }
}

impl Ftl for Llh {
    palimpsest_ftl_api::keeps_state!();

    fn unit_subpages(&self) -> u32 {
        1
    }

    fn classifier_ahead(&mut self) -> Option<&mut dyn ClassifyAhead> {
        self.streams.ahead()
    }

    #[inline]
    fn expect(&self, extent: Extent, soon: bool) {
        let unit = unit_of(extent.sector, self.sectors_per_subpage) as usize;
        if !soon {
            return prefetch(&self.map, unit);
        }
        if let Some(&psn) = self.map.get(unit)
            && psn < IN_BUFFER
        {
            let (block, index) = self.per_block.split(psn);
            self.blocks.prefetch(block, index);
        }
    }

    #[inline]
    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        let stream = self.streams.stream_of(extent, io.directives());
        for piece in pieces(extent, self.sectors_per_subpage) {
            self.write_piece(io, stream, piece)?;
        }
        Ok(())
    }

    #[inline]
    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.wanted.clear();
        self.coded.clear();
        let fails = io.nand().reads_fail();
        if fails {
            self.read_first(io, extent)?;
        }
        for piece in pieces(extent, self.sectors_per_subpage) {
            self.read_piece(io, piece);
        }
        if fails { Ok(()) } else { self.read_wanted(io) }
    }

    fn trim(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        for piece in pieces(extent, self.sectors_per_subpage) {
            self.unmap(io, piece.lsn);
        }
        Ok(())
    }

    fn flush(&mut self, io: &mut Io) -> Flash<()> {
        // Every buffer with a waiting request.
        self.flush_buffers(io, NOT_WAITING - 1, io.request())
    }

    fn deadline(&self) -> Option<Nanos> {
        (self.timeout > 0 && self.oldest != NOT_WAITING).then(|| self.oldest.saturating_add(self.timeout))
    }

    fn timer(&mut self, io: &mut Io) -> Flash<()> {
        self.flush_buffers(io, io.now().saturating_sub(self.timeout), Gate::NONE)
    }

    fn background(&mut self, io: &mut Io) -> Flash<bool> {
        self.collect_in_background(io)
    }

    fn relocate(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        self.relocate_block(io, block)
    }

    fn recover(&mut self, io: &mut Io) -> Flash<()> {
        self.rebuild(io)
    }

    fn check(&mut self, io: &Io) -> Result<(), String> {
        self.check_all(io)
    }

    fn figures(&self) -> LayerFigures {
        let bytes = map_bytes(self.map.len() as u64);
        let mut figures = self.counters.figures(1);
        figures.mapping = Mapping { tables: vec![("map", bytes)], peak_bytes: bytes };
        figures.safe_life = self.settings.safe_life;
        figures.own.extend(self.own_figures());
        figures.remarks = self.coder.remark.iter().cloned().collect();
        figures
    }

    fn count_valid(&self, valid: &mut [u32]) -> bool {
        self.blocks.add_valid(valid, 1);
        true
    }
}
