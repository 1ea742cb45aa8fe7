//! `sector-log`: a page map with a log of subpages for small writes (the MGA paper's "Hybrid").
//!
//! A fixed share of the blocks (`ftl.log_fraction`, the same in every plane) takes the pieces of requests that are
//! smaller than a page, mapped subpage by subpage. The rest is page-mapped, with ordinary garbage collection. A piece
//! is one program, with partial programs of the log's open pages as far as the part allows. If fewer than two blocks of
//! the log are free, the oldest block is cleaned. Each logical page with a valid subpage there is merged, with all
//! subpages in the log, into a new page of the data region. A piece that touches every subpage of a page is a page. A
//! piece of a subpage is a read-modify-write. Nothing is buffered: a program acknowledges a write. Source: Jin et al.
//! 2011; MGA paper, Sec. IV and V; docs/systems.md, "sector-log".
//!
//! Where the sources are silent: a data page whose subpages are all in the log becomes invalid immediately. Every plane
//! has an open block of the log, if the log has at least two more blocks. A log that lost all blocks to failures leaves
//! a page map. Data of the log on a failed die stays mapped there until the host writes again or a merge moves the
//! data. Trims unmap whole pages. Ignored: wear levelling between the log and the rest.

mod log;
mod recover;
#[cfg(test)]
mod tests;

use super::gather::Gather;
use crate::extent::{overlay, pages};
use crate::log::settings::{CACHE, FIXED_CACHE, GATHER, LogSettings, keys_of, keys_of_log};
use crate::log::streams::StreamChooser;
use crate::log::{Append, Location, Log};
use crate::maps::shared::SharedMap;
use log::{LogWrite, SubpageLog};
use palimpsest_flash::geometry::{Extent, Geometry, unit_of};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Outcome, SubpageMask, first_subpages};
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_ftl_api::keys;
use palimpsest_ftl_api::keys::SHARE;
use palimpsest_ftl_api::plan::{Cause, Erase, Gate, Io, Read};
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Blueprint, ClassifyAhead, Entry, Figure, Ftl, LayerFigures, Mapping, Programs};

pub const ENTRY: Entry = Entry {
    name: "sector-log",
    about: "page map and a log of subpages: small writes go to the log and are merged later",
    programs: Programs::Subpages,
    keys: || [keys_of_log(), keys_of(&[CACHE, FIXED_CACHE, GATHER, KEYS])].concat(),
    reserved: log_blocks,
    reserved_key: "ftl.log_fraction",
    outlives_dies: true,
    superblocks: true,
    build: |io, blueprint| Box::new(SectorLog::new(io, blueprint)),
    ..Entry::PLAIN
};

keys! {
    struct SectorLogSettings;

    group KEYS {
        /// share of the blocks that take writes smaller than a page; at least one block of each plane
        log_fraction: f64 = "ftl.log_fraction", SHARE, "5%";
    }
}

/// Distance in log pages before a merge at which map entries, and the blocks that they name, are prefetched.
const MERGES_AHEAD: [(u32, bool); 2] = [(8, false), (4, true)];

/// Blocks of the log in each plane.
fn log_blocks(settings: &Settings, geometry: &Geometry) -> u32 {
    let fraction = SectorLogSettings::new(settings).log_fraction;
    if geometry.subpages_per_page == 1 || fraction == 0.0 {
        return 0;
    }
    ((f64::from(geometry.blocks_per_plane) * fraction).round() as u32).max(1)
}

#[derive(Default)]
struct Counters {
    /// Blocks of the log that were cleaned.
    cleanings: u64,
    /// Logical pages merged.
    merges: u64,
    /// Subpages merged from the log.
    merged_subpages: u64,
    /// Pieces written to the log.
    logged: u64,
    /// Small pieces written as pages, because the log had no block left.
    unlogged: u64,
}

palimpsest_flash::state!(Counters { cleanings, merges, merged_subpages, logged, unlogged });

struct SectorLog {
    settings: LogSettings,
    data: Log<SharedMap>,
    streams: StreamChooser,
    log: SubpageLog,
    subpages: u32,
    sectors_per_page: u64,
    sectors_per_subpage: u32,
    /// All subpages of a page.
    all: u32,
    contents: Vec<Data>,
    gather: Gather,
    /// Closes when all merges so far have been programmed. The erase of a block of the log waits for the merges of
    /// blocks before, too, because the block may hold older copies of what those held.
    merged: Gate,
    counters: Counters,
}

palimpsest_flash::state!(SectorLog { data, streams, log, merged, counters } built {
    settings, subpages, sectors_per_page, sectors_per_subpage, all, contents, gather
});

/// A page that was read already, and the gate that closes when the data has arrived.
#[derive(Clone, Copy)]
struct Arriving {
    ppn: u32,
    gate: Gate,
}

impl SectorLog {
    fn new(io: &Io, blueprint: &Blueprint) -> Self {
        let geometry = io.geometry();
        let settings = LogSettings::new(&blueprint.settings);
        let sectors_per_page = geometry.page_bytes() / SECTOR_BYTES as u32;
        // The first blocks of a plane are the fixed share of the fast cache.
        let cached = settings.slc_fixed.of(geometry.blocks_per_plane) as usize;
        let mut reserved = vec![false; geometry.blocks() as usize];
        for plane in reserved.chunks_mut(geometry.blocks_per_plane as usize).enumerate() {
            let first = plane.0 as u32 * geometry.blocks_per_plane;
            let good = plane.1.iter_mut().zip(first..).skip(cached).filter(|&(_, block)| !io.nand().is_bad(block));
            good.take(log_blocks(&blueprint.settings, geometry) as usize).for_each(|(reserved, _)| *reserved = true);
        }
        let map = SharedMap::new(blueprint.logical_pages, geometry.subpages_per_page);
        SectorLog {
            log: SubpageLog::new(io, blueprint.logical_pages, reserved.clone(), settings.allocation),
            data: Log::beside(io, &settings, map, geometry.subpages_per_page, false, blueprint.seed, reserved),
            streams: StreamChooser::new(&blueprint.settings, blueprint.logical_pages, sectors_per_page),
            subpages: geometry.subpages_per_page,
            sectors_per_page: sectors_per_page.into(),
            sectors_per_subpage: geometry.subpage_bytes / SECTOR_BYTES as u32,
            all: first_subpages(geometry.subpages_per_page) as u32,
            settings,
            contents: Vec::new(),
            gather: Gather::default(),
            merged: Gate::NONE,
            counters: Counters::default(),
        }
    }

    /// Subpages that `sectors` sectors of a page from `first` on touch, and the partially covered ones.
    #[inline]
    fn touched(&self, first: u32, sectors: u32) -> (u32, u32) {
        let (per_subpage, last) = (self.sectors_per_subpage, first + sectors);
        let (begin, end) = (first / per_subpage, last.div_ceil(per_subpage));
        let touched = (first_subpages(end - begin) as u32) << begin;
        let head = u32::from(!first.is_multiple_of(per_subpage)) << begin;
        let tail = u32::from(!last.is_multiple_of(per_subpage)) << (end - 1);
        (touched, head | tail)
    }

    /// Loads the subpages `wanted` of logical page `page` into `contents`, zeros for all others. Reads all pages except
    /// `arriving`. The returned gate closes when all data has arrived.
    fn assemble(
        &mut self,
        io: &mut Io,
        page: u32,
        wanted: u32,
        cause: Cause,
        arriving: Option<Arriving>,
    ) -> Flash<Gate> {
        self.contents.clear();
        self.contents.resize(self.subpages as usize, Data::ZERO);
        if wanted == 0 {
            return Ok(Gate::NONE);
        }
        self.gather.clear();
        let held = self.log.held(page);
        if wanted & !held != 0
            && let Location::Flash(ppn) = self.data.locate(page)
        {
            let subpages = (wanted & !held).into();
            self.gather.add(ppn, subpages, io.nand().part().words_of_subpages(subpages));
        }
        for subpage in bits(wanted & held) {
            let (ppn, index) = self.log.split(self.log.place(page, subpage));
            if arriving.is_none_or(|arriving| arriving.ppn != ppn) {
                self.gather.add(ppn, 1 << index, io.nand().part().words_of_subpages(1 << index));
            }
        }
        let mut arrived = arriving.map_or(Gate::NONE, |arriving| arriving.gate);
        if !self.gather.is_empty() {
            // A separate gate, because pages merged earlier must not wait for these reads, which may wait for their
            // blocks.
            let all = io.gate();
            io.link(arrived, all);
            self.gather.read(io, self.settings.read, cause, all)?;
            arrived = all;
        }
        // An uncorrectable read loses the data, so load only now.
        for subpage in bits(wanted) {
            if let Some(psn) = self.place_of(page, subpage) {
                self.contents[subpage as usize] = io.load_subpage(psn);
            }
        }
        Ok(arrived)
    }

    /// Writes `contents` as logical page `page` to the data region, and drops the page's subpages from the log.
    #[inline]
    fn write_page(&mut self, io: &mut Io, stream: u32, what: Append) -> Flash<()> {
        if self.subpages == 1 {
            self.data.append(io, stream, what)?;
        } else {
            self.data.append_page(io, stream, what, &self.contents)?;
        }
        self.log.unmap_page(what.unit);
        Ok(())
    }

    /// A host write of a page.
    #[inline]
    fn host_page(&self, io: &Io, page: u32, after: Gate) -> Append {
        let data = self.contents[0];
        Append { unit: page, data, cause: Cause::Host, after, signal: io.request(), holds: 0 }
    }

    #[inline]
    fn write_piece(&mut self, io: &mut Io, stream: u32, page: u32, first: u32, sectors: u32) -> Flash<()> {
        let (touched, partial) = self.touched(first, sectors);
        let after = self.assemble(io, page, partial, Cause::Rmw, None)?;
        overlay(io, page, first, sectors, &mut self.contents);
        if touched == self.all {
            return self.write_page(io, stream, self.host_page(io, page, after));
        }
        // Cleaning uses `contents`, too.
        self.log.stage(&self.contents);
        if self.write_to_log(io, LogWrite { page, subpages: touched, after })? {
            return Ok(());
        }
        self.counters.unlogged += 1;
        let after = self.assemble(io, page, self.all, Cause::Rmw, None)?;
        overlay(io, page, first, sectors, &mut self.contents);
        self.write_page(io, stream, self.host_page(io, page, after))
    }

    /// Writes a piece to the log, and cleans if necessary. False if the log has no block left.
    fn write_to_log(&mut self, io: &mut Io, piece: LogWrite) -> Flash<bool> {
        loop {
            if self.log.is_short() {
                self.clean_oldest(io)?;
            }
            let Some((ppn, places)) = self.log.find_room(io, &self.settings, piece) else {
                if self.clean_oldest(io)? {
                    continue;
                }
                return Ok(false);
            };
            match self.log.program(io, ppn, places, piece)? {
                Outcome::Done => {
                    let held = self.log.settle(io, ppn, places, piece);
                    self.data.map.set_outside(piece.page, held);
                    self.data.map.settles(self.log.programmed);
                    if held == self.all {
                        self.data.trim(io, piece.page);
                    }
                    self.counters.logged += 1;
                    return Ok(true);
                }
                Outcome::Failed if self.log.lose_die_of(io, ppn) => {}
                Outcome::Failed => {
                    let block = self.log.drop_frontier(io, ppn);
                    self.retire(io, block)?;
                }
            }
        }
    }

    /// Cleans the oldest block of the log. False if none is full.
    #[cold]
    fn clean_oldest(&mut self, io: &mut Io) -> Flash<bool> {
        let Some(block) = self.log.take_oldest() else { return Ok(false) };
        self.clean_block(io, block)?;
        Ok(true)
    }

    /// Merges the valid subpages of `block` of the log, which must be taken, and erases the block.
    fn clean_block(&mut self, io: &mut Io, block: u32) -> Flash<()> {
        let merged = self.merge_block(io, block)?;
        self.counters.cleanings += 1;
        let outcome = io.erase(Erase { after: merged, ..Erase::new(block, Cause::Merge) })?;
        self.log.erased(block, outcome);
        Ok(())
    }

    /// Retires a failed block of the log, already out of use.
    #[cold]
    fn retire(&mut self, io: &mut Io, block: u32) -> Flash<()> {
        self.merge_block(io, block)?;
        self.log.erased(block, Outcome::Failed);
        Ok(())
    }

    /// Merges every logical page with a valid subpage in `block` of the log. The returned gate closes when these merges
    /// and all before are safe.
    fn merge_block(&mut self, io: &mut Io, block: u32) -> Flash<Gate> {
        let safe = if self.log.valid_count(block) > 0 { io.gate() } else { Gate::NONE };
        let pages = io.geometry().pages_per_block;
        let end = (block + 1) * pages;
        for ppn in block * pages..end {
            for (ahead, soon) in MERGES_AHEAD {
                if ppn + ahead < end {
                    self.expect_merges(io, ppn + ahead, soon);
                }
            }
            let valid = self.log.valid(ppn);
            if valid == 0 {
                continue;
            }
            let gate = io.gate();
            let policy = self.settings.read;
            io.read(Read { policy, signal: gate, ..Read::new(ppn, valid, Cause::Merge) })?;
            while let Some(page) = self.log.first_page_in(io, ppn) {
                let after = self.assemble(io, page, self.all, Cause::Merge, Some(Arriving { ppn, gate }))?;
                self.counters.merges += 1;
                self.counters.merged_subpages += u64::from(self.log.held(page).count_ones());
                let data = self.contents[0];
                let what = Append { unit: page, data, cause: Cause::Merge, after, signal: safe, holds: 0 };
                self.write_page(io, 0, what)?;
            }
        }
        self.merged = io.all_of(&[safe, self.merged]);
        Ok(self.merged)
    }

    /// Prefetches the fields that a piece or a merge of logical page `page` reads.
    #[inline]
    fn expect_page(&self, page: u32, soon: bool) {
        if soon {
            self.data.prefetch_copy(page);
            self.log.prefetch_copies(page);
        } else {
            self.data.prefetch_entry(page);
            self.log.prefetch_entry(page);
        }
    }

    /// Prefetches for a later merge of log page `ppn` (`soon`: after a few others).
    fn expect_merges(&self, io: &Io, ppn: u32, soon: bool) {
        for index in bits(self.log.valid(ppn) as u32) {
            self.expect_page(self.log.split(io.nand().logical(ppn * self.subpages + index)).0, soon);
        }
    }

    #[inline]
    fn place_of(&self, page: u32, subpage: u32) -> Option<u32> {
        match self.data.locate(page) {
            _ if self.log.held(page) >> subpage & 1 == 1 => Some(self.log.place(page, subpage)),
            Location::Flash(ppn) => Some(ppn * self.subpages + subpage),
            _ => None,
        }
    }

    /// Adds the wanted words of physical subpage `psn`, which is `subpage` of a page, for a read of `sectors` sectors
    /// from `first` on.
    #[inline]
    fn want(&mut self, io: &Io, psn: u32, subpage: u32, first: u32, sectors: u32) {
        let per_subpage = self.sectors_per_subpage;
        let begin = first.max(subpage * per_subpage) - subpage * per_subpage;
        let end = (first + sectors).min((subpage + 1) * per_subpage) - subpage * per_subpage;
        let (ppn, index) = self.log.split(psn);
        self.gather.add(ppn, 1 << index, io.nand().words_of(index * per_subpage + begin, end - begin));
    }

    /// Reads the subpages `wanted` of `page`, and delivers them.
    fn read_scattered(&mut self, io: &mut Io, page: u32, wanted: u32, first: u32, sectors: u32) {
        for subpage in bits(wanted) {
            let lsn = page * self.subpages + subpage;
            match self.place_of(page, subpage) {
                Some(psn) => {
                    self.want(io, psn, subpage, first, sectors);
                    self.deliver(io, lsn, psn);
                }
                None => {
                    io.count_unwritten(1);
                    io.deliver(lsn, Data::ZERO);
                }
            }
        }
    }

    /// Reads all data of `extent` before the delivery, because an uncorrectable read loses the data.
    #[cold]
    fn read_first(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        for (page, first, sectors) in pages(extent, self.sectors_per_page) {
            for subpage in bits(self.touched(first, sectors).0) {
                if let Some(psn) = self.place_of(page, subpage) {
                    self.want(io, psn, subpage, first, sectors);
                }
            }
        }
        self.gather.read(io, self.settings.read, Cause::Host, io.request())
    }

    #[inline]
    fn deliver(&self, io: &mut Io, lsn: u32, psn: u32) {
        if io.host.has_contents() {
            let data = io.load_subpage(psn);
            io.deliver(lsn, data);
        }
    }
}

impl Ftl for SectorLog {
    palimpsest_ftl_api::keeps_state!();

    fn unit_subpages(&self) -> u32 {
        self.subpages
    }

    fn classifier_ahead(&mut self) -> Option<&mut dyn ClassifyAhead> {
        self.streams.ahead()
    }

    #[inline]
    fn expect(&self, extent: Extent, soon: bool) {
        self.expect_page(unit_of(extent.sector, self.sectors_per_page as u32) as u32, soon);
    }

    #[inline]
    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        let stream = self.streams.stream_of(extent, io.directives());
        for (page, first, sectors) in pages(extent, self.sectors_per_page) {
            self.write_piece(io, stream, page, first, sectors)?;
        }
        Ok(())
    }

    #[inline]
    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.gather.clear();
        let fails = io.nand().reads_fail();
        if fails {
            self.read_first(io, extent)?;
        }
        for (page, first, sectors) in pages(extent, self.sectors_per_page) {
            let (wanted, _) = self.touched(first, sectors);
            match self.data.locate(page) {
                Location::Flash(ppn) if self.log.held(page) & wanted == 0 => {
                    self.gather.add(ppn, wanted.into(), io.nand().words_of(first, sectors));
                    bits(wanted).for_each(|subpage| {
                        self.deliver(io, page * self.subpages + subpage, ppn * self.subpages + subpage);
                    });
                }
                _ => self.read_scattered(io, page, wanted, first, sectors),
            }
        }
        if fails { Ok(()) } else { self.gather.read(io, self.settings.read, Cause::Host, io.request()) }
    }

    fn trim(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        for (page, _, _) in pages(extent, self.sectors_per_page) {
            self.data.trim(io, page);
            if self.log.unmap_page(page) {
                self.data.map.set_outside(page, 0);
            }
        }
        Ok(())
    }

    fn flush(&mut self, _io: &mut Io) -> Flash<()> {
        Ok(())
    }

    fn background(&mut self, io: &mut Io) -> Flash<bool> {
        if self.log.is_short() && self.clean_oldest(io)? {
            return Ok(true);
        }
        self.data.collect_in_background(io)
    }

    fn relocate(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        if !self.log.owned[block as usize] {
            return self.data.relocate(io, block);
        }
        let taken = self.log.take(block);
        if taken {
            self.clean_block(io, block)?;
        }
        Ok(taken)
    }

    fn recover(&mut self, io: &mut Io) -> Flash<()> {
        self.recover_all(io)
    }

    fn check(&mut self, io: &Io) -> Result<(), String> {
        self.check_all(io)
    }

    fn figures(&self) -> LayerFigures {
        let (mut figures, own) = (self.data.figures(), &self.counters);
        let (log_bytes, log_peak) = self.log.map_bytes();
        figures.mapping = Mapping {
            tables: vec![("map", self.data.map.bytes()), ("log_map", log_bytes)],
            peak_bytes: self.data.map.bytes() + log_peak,
        };
        (figures.merges, figures.merge_moved_subpages) = (own.merges, own.merged_subpages);
        figures.retired_blocks += u64::from(self.log.retired());
        // Its pages are whole.
        figures.own.retain(|&(name, _)| name != "padded_pages");
        figures.own.extend([
            ("log_blocks", Figure::Level(u64::from(self.log.usable()))),
            ("log_cleanings", Figure::Count(own.cleanings)),
            ("log_writes", Figure::Count(own.logged)),
            ("log_full_writes", Figure::Count(own.unlogged)),
        ]);
        figures
    }

    fn count_valid(&self, valid: &mut [u32]) -> bool {
        self.data.add_valid(valid);
        self.log.add_valid(valid);
        true
    }
}

/// The subpages in `mask`, in ascending order.
#[inline]
fn bits(mask: u32) -> impl Iterator<Item = u32> {
    let mut rest = SubpageMask::from(mask);
    std::iter::from_fn(move || {
        let lowest = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lowest < SubpageMask::BITS).then_some(lowest)
    })
}
