//! `subpage`: the fine-grained map ("FGM").
//!
//! One physical subpage per logical subpage. Writes gather in one open page per stream, and per plane or channel if
//! `ftl.allocation` names these by the address. A full page is programmed; a flush or a timeout pads a partial one.
//! Reads of units in an open page need no flash. A write of a part of a subpage reads the rest first. Writes are
//! acknowledged when buffered (the buffer is power-protected), or with `buffer.ack = "program"` when programmed. The
//! wanted subpages of a read are gathered by physical page into the fewest commands (SPREAD paper, Fig. 5); `ftl.read`
//! sets the command. A map entry counts 8 bytes. Source: docs/systems.md, "subpage"; SPREAD paper, Sec. II.

use super::gather::Gather;
use super::pages::{BuildSubpageLayer, MapsSubpages};
use crate::log::settings::{
    Allocation, CACHE, FIXED_CACHE, GATHER, LogSettings, Moved, WritePolicy, keys_of, keys_of_log,
};
use crate::log::streams::StreamChooser;
use crate::log::{Append, Identifiers, Location, Log};
use crate::maps::full::FullMap;
use palimpsest_flash::geometry::{Extent, unit_of};
use palimpsest_flash::nand::Flash;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_ftl_api::plan::port::{Piece, pieces};
use palimpsest_ftl_api::plan::{Cause, Gate, Io, Read};
use palimpsest_ftl_api::{Blueprint, ClassifyAhead, Entry, Ftl, LayerFigures, PlacementEvents};

pub const ENTRY: Entry = Entry {
    name: "subpage",
    about: "fine-grained map: small writes gather in a buffer and fill whole pages",
    keys: || [keys_of_log(), keys_of(&[CACHE, FIXED_CACHE, GATHER])].concat(),
    gathers: true,
    word_lines: true,
    outlives_dies: true,
    takes_parity: true,
    superblocks: true,
    build: |io, blueprint| Box::new(Subpage::new(io, blueprint, None)),
    ..Entry::PLAIN
};

pub const UNITS: BuildSubpageLayer = |io, blueprint| Box::new(Subpage::new(io, blueprint, None));

pub(super) struct Subpage {
    settings: LogSettings,
    log: Log<FullMap>,
    streams: StreamChooser,
    sectors_per_subpage: u32,
    subpages_per_page: u32,
    protected: bool,
    timeout: Nanos,
    wanted: Gather,
}

palimpsest_flash::state!(Subpage { log, streams } built {
    settings, sectors_per_subpage, subpages_per_page, protected, timeout, wanted
});

impl Subpage {
    /// A layer on erased flash, which buffers and cleans by `policy` if there is one.
    pub(super) fn new(io: &Io, blueprint: &Blueprint, policy: Option<&WritePolicy>) -> Self {
        let geometry = io.geometry();
        let units = blueprint.logical_pages * geometry.subpages_per_page;
        let protected = blueprint.protected;
        let settings = LogSettings::new(&blueprint.settings);
        Subpage {
            log: Log::new(io, &settings, FullMap::new(units), 1, protected, blueprint.seed).under(policy),
            streams: StreamChooser::new(&blueprint.settings, units, geometry.subpage_bytes / SECTOR_BYTES as u32),
            sectors_per_subpage: geometry.subpage_bytes / SECTOR_BYTES as u32,
            subpages_per_page: geometry.subpages_per_page,
            protected,
            timeout: blueprint.buffer_timeout,
            settings,
            wanted: Gather::default(),
        }
    }

    /// The same layer, new, whose first streams are the reclaim unit handles of `names` with `shares` of the blocks, or
    /// none.
    pub(super) fn with_handles(self, names: Identifiers, shares: &[f64], dies: u32) -> Self {
        let streams = self.streams.with_handles(names);
        Subpage { log: self.log.with_handles(names, shares, dies), streams, ..self }
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
        self.log.append(io, stream, what)
    }

    /// Adds the words of `piece` in physical subpage `psn` to the wanted ones.
    #[inline]
    fn want(&mut self, io: &Io, psn: u32, piece: Piece) {
        let (ppn, subpages) = self.log.place(psn);
        let first = psn % self.subpages_per_page * self.sectors_per_subpage + piece.first;
        self.wanted.add(ppn, subpages, io.nand().words_of(first, piece.sectors));
    }

    /// Reads all data of `extent` before the delivery, because an uncorrectable read loses the data.
    #[cold]
    fn read_first(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        for piece in pieces(extent, self.sectors_per_subpage) {
            if let Location::Flash(psn) = self.log.locate(piece.lsn) {
                self.want(io, psn, piece);
            }
        }
        self.wanted.read(io, self.settings.read, Cause::Host, io.request())
    }

    /// The present content of a partially written subpage, and the gate that closes when the content has been read.
    fn fetch_old(&mut self, io: &mut Io, lsn: u32) -> Flash<(Data, Gate)> {
        match self.log.locate(lsn) {
            Location::Unmapped => Ok((Data::ZERO, Gate::NONE)),
            Location::Open(data, arrived) => {
                io.link(arrived, io.request());
                Ok((data, arrived))
            }
            Location::Flash(psn) => {
                let (ppn, subpages) = self.log.place(psn);
                let arrived = io.gate();
                let policy = self.settings.read;
                io.read(Read { policy, signal: arrived, ..Read::new(ppn, subpages, Cause::Rmw) })?;
                io.link(arrived, io.request());
                Ok((io.load_subpage(psn), arrived))
            }
        }
    }
}

impl MapsSubpages for Subpage {
    fn holds(&self, unit: u32) -> bool {
        self.log.locate(unit) != Location::Unmapped
    }
}

impl Ftl for Subpage {
    palimpsest_ftl_api::keeps_state!();

    fn unit_subpages(&self) -> u32 {
        1
    }

    fn classifier_ahead(&mut self) -> Option<&mut dyn ClassifyAhead> {
        self.streams.ahead()
    }

    #[inline]
    fn expect(&self, extent: Extent, soon: bool) {
        let unit = unit_of(extent.sector, self.sectors_per_subpage) as u32;
        if soon { self.log.prefetch_copy(unit) } else { self.log.prefetch_entry(unit) }
    }

    #[inline]
    fn locate_ahead(&self, extent: Extent) -> Option<u32> {
        self.log.locate_ahead(unit_of(extent.sector, self.sectors_per_subpage) as u32)
    }

    #[inline]
    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        let stream = self.streams.stream_of(extent, io.directives());
        for piece in pieces(extent, self.sectors_per_subpage) {
            self.write_piece(io, stream, piece)?;
        }
        Ok(())
    }

    fn fill(&mut self, io: &mut Io, first: u32, units: u32) -> Flash<u32> {
        let by_pages = self.settings.allocation != Allocation::Unit;
        let filled = if self.streams.is_plain() && by_pages { self.log.fill(io, 0, first, units)? } else { 0 };
        self.log.count_host(0, filled);
        Ok(filled)
    }

    #[inline]
    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.wanted.clear();
        let fails = io.nand().reads_fail();
        if fails {
            self.read_first(io, extent)?;
        }
        for piece in pieces(extent, self.sectors_per_subpage) {
            let data = match self.log.locate(piece.lsn) {
                Location::Flash(psn) => {
                    self.want(io, psn, piece);
                    if io.host.has_contents() { io.load_subpage(psn) } else { Data::ZERO }
                }
                Location::Open(data, arrived) => {
                    io.link(arrived, io.request());
                    io.count_buffered(1);
                    data
                }
                Location::Unmapped => {
                    io.count_unwritten(1);
                    Data::ZERO
                }
            };
            io.deliver(piece.lsn, data);
        }
        if fails { Ok(()) } else { self.wanted.read(io, self.settings.read, Cause::Host, io.request()) }
    }

    fn trim(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        for piece in pieces(extent, self.sectors_per_subpage) {
            self.log.trim(io, piece.lsn);
        }
        self.log.settle_trims(io)
    }

    fn flush(&mut self, io: &mut Io) -> Flash<()> {
        self.log.flush(io, Nanos::MAX, io.request())
    }

    fn update_handle(&mut self, io: &mut Io) -> Flash<()> {
        match self.streams.updated(io.directives()) {
            Some(stream) => self.log.update_handle(io, stream),
            None => Ok(()),
        }
    }

    fn deadline(&self) -> Option<Nanos> {
        if self.subpages_per_page == 1 || self.timeout == 0 {
            return None;
        }
        self.log.oldest_open().map(|since| since + self.timeout)
    }

    fn timer(&mut self, io: &mut Io) -> Flash<()> {
        self.log.flush(io, io.now().saturating_sub(self.timeout), Gate::NONE)
    }

    fn background(&mut self, io: &mut Io) -> Flash<bool> {
        self.log.collect_in_background(io)
    }

    fn recover(&mut self, io: &mut Io) -> Flash<()> {
        self.log.recover(io)
    }

    fn relocate(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        self.log.relocate(io, block)
    }

    fn save_tables(&self, _io: &Io, bytes: &mut Vec<u8>) {
        self.log.save_tables(bytes);
    }

    fn check(&mut self, io: &Io) -> Result<(), String> {
        self.log.check(io)
    }

    fn placement_events(&self) -> Option<PlacementEvents> {
        self.streams.with_invalid_events(self.log.placement_events())
    }

    fn figures(&self) -> LayerFigures {
        let mut figures = self.streams.with_invalid(self.log.figures());
        if self.settings.moved == Moved::Cold {
            figures.own.push(self.log.counters().hot_share());
        }
        figures
    }

    fn count_valid(&self, valid: &mut [u32]) -> bool {
        self.log.add_valid(valid);
        true
    }
}
