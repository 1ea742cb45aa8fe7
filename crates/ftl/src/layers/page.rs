//! `page`: the page map of the papers ("PM").
//!
//! One physical page per logical page. A write that does not cover a whole page reads the old page, merges, and
//! programs a new one; both transfers are whole pages on the bus. Nothing is buffered: a program acknowledges a write.
//! If word lines are programmed in one shot, a page of the layer is a word line. A map entry counts 8 bytes, as in the
//! MGA paper. Source: docs/systems.md, "page"; MGA paper, Sec. I and IV.

use super::pages::MapsPages;
use crate::extent::{overlay, pages_by};
use crate::log::map::Map;
use crate::log::settings::{CACHE, FIXED_CACHE, LogSettings, keys_of, keys_of_log};
use crate::log::streams::StreamChooser;
use crate::log::{Append, Identifiers, Location, Log};
use crate::maps::full::FullMap;
use palimpsest_flash::geometry::{Divisor, Extent};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, first_subpages};
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_ftl_api::plan::{Cause, Gate, Io, Read};
use palimpsest_ftl_api::{Blueprint, ClassifyAhead, Entry, Ftl, LayerFigures, PlacementEvents};

pub const ENTRY: Entry = Entry {
    name: "page",
    about: "page map: small writes read, merge and program a whole page",
    keys: || [keys_of_log(), keys_of(&[CACHE, FIXED_CACHE])].concat(),
    word_lines: true,
    outlives_dies: true,
    takes_parity: true,
    superblocks: true,
    tables: |_, geometry, subpages| 4 * subpages / u64::from(geometry.subpages_per_page),
    build: |io, blueprint| Box::new(Page::new(io, blueprint)),
    ..Entry::PLAIN
};

pub struct Page<M: Map = FullMap> {
    settings: LogSettings,
    log: Log<M>,
    streams: StreamChooser,
    subpages: u32,
    sectors_per_page: Divisor,
    sectors_per_subpage: Divisor,
    contents: Vec<Data>,
}

palimpsest_flash::state!([M: Map] Page<M> { log, streams } built {
    settings, subpages, sectors_per_page, sectors_per_subpage, contents
});

impl Page {
    pub fn new(io: &Io, blueprint: &Blueprint) -> Self {
        Self::over(io, blueprint, FullMap::new(blueprint.logical_pages))
    }
}

impl<M: Map> Page<M> {
    /// A page map stored as `map`.
    pub fn over(io: &Io, blueprint: &Blueprint, map: M) -> Self {
        let subpages = io.geometry().subpages_per_page;
        let sectors = io.geometry().page_bytes() / SECTOR_BYTES as u32;
        let settings = LogSettings::new(&blueprint.settings);
        Page {
            log: Log::new(io, &settings, map, subpages, false, blueprint.seed),
            streams: StreamChooser::new(&blueprint.settings, blueprint.logical_pages, sectors),
            subpages,
            sectors_per_page: Divisor::new(sectors),
            sectors_per_subpage: Divisor::new(sectors / subpages),
            contents: Vec::new(),
            settings,
        }
    }

    /// The same layer, new, whose first streams are the reclaim unit handles of `names` with `shares` of the blocks, or
    /// none.
    pub fn with_handles(self, names: Identifiers, shares: &[f64], dies: u32) -> Self {
        let streams = self.streams.with_handles(names);
        Page { log: self.log.with_handles(names, shares, dies), streams, ..self }
    }

    fn write_page(&mut self, io: &mut Io, stream: u32, page: u32, first: u32, sectors: u32) -> Flash<()> {
        let mut after = self.log.fetch(io, page)?;
        self.contents.clear();
        self.contents.resize(self.subpages as usize, Data::ZERO);
        if sectors < self.sectors_per_page.value()
            && let Location::Flash(ppn) = self.log.locate(page)
        {
            let (translated, arrived) = (after, io.gate());
            // Cleaning and merging read whole pages, whatever command small reads use.
            let (all, policy) = (first_subpages(self.subpages), self.settings.read);
            io.read(Read { policy, after: translated, signal: arrived, ..Read::new(ppn, all, Cause::Rmw) })?;
            after = arrived;
            for (index, content) in self.contents.iter_mut().enumerate() {
                *content = io.load_subpage(ppn * self.subpages + index as u32);
            }
        }
        overlay(io, page, first, sectors, &mut self.contents);
        let what =
            Append { unit: page, data: self.contents[0], cause: Cause::Host, after, signal: io.request(), holds: 0 };
        if self.subpages == 1 {
            return self.log.append(io, stream, what);
        }
        self.log.append_page(io, stream, what, &self.contents)
    }
}

impl MapsPages for Page {
    fn write_page(
        &mut self,
        io: &mut Io,
        page: u32,
        contents: &[Data],
        cause: Cause,
        after: Gate,
        signal: Gate,
    ) -> Flash<()> {
        let what = Append { unit: page, data: contents[0], cause, after, signal, holds: 0 };
        match self.subpages {
            1 => self.log.append(io, 0, what),
            _ => self.log.append_page(io, 0, what, contents),
        }
    }

    fn locate(&self, page: u32) -> Option<u32> {
        match self.log.locate(page) {
            Location::Flash(ppn) => Some(ppn),
            _ => None,
        }
    }

    fn trim_block(&mut self, io: &mut Io, block: u32, _after: Gate) -> Flash<()> {
        let pages = io.geometry().pages_per_block;
        (block * pages..(block + 1) * pages).for_each(|page| self.log.trim(io, page));
        Ok(())
    }

    fn written(&self, io: &Io, block: u32) -> u32 {
        let pages = io.geometry().pages_per_block;
        (0..pages).rfind(|page| self.locate(block * pages + page).is_some()).map_or(0, |last| last + 1)
    }
}

impl<M: Map> Ftl for Page<M> {
    palimpsest_ftl_api::keeps_state!();

    fn unit_subpages(&self) -> u32 {
        self.subpages
    }

    fn classifier_ahead(&mut self) -> Option<&mut dyn ClassifyAhead> {
        self.streams.ahead()
    }

    #[inline]
    fn expect(&self, extent: Extent, soon: bool) {
        let unit = self.sectors_per_page.divide_wide(extent.sector) as u32;
        if soon { self.log.prefetch_copy(unit) } else { self.log.prefetch_entry(unit) }
    }

    #[inline]
    fn locate_ahead(&self, extent: Extent) -> Option<u32> {
        self.log.locate_ahead(self.sectors_per_page.divide_wide(extent.sector) as u32)
    }

    #[inline]
    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        let stream = self.streams.stream_of(extent, io.directives());
        for (page, first, sectors) in pages_by(extent, self.sectors_per_page) {
            self.write_page(io, stream, page, first, sectors)?;
        }
        self.log.settle(io)
    }

    fn fill(&mut self, io: &mut Io, first: u32, units: u32) -> Flash<u32> {
        if self.streams.is_plain() { self.log.fill(io, 0, first, units) } else { Ok(0) }
    }

    #[inline]
    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        let per_subpage = self.sectors_per_subpage;
        for (page, first, sectors) in pages_by(extent, self.sectors_per_page) {
            let (begin, end) = (per_subpage.divide(first), per_subpage.divide(first + sectors - 1) + 1);
            let wanted = first_subpages(end - begin) << begin;
            let after = self.log.fetch(io, page)?;
            let location = self.log.locate(page);
            if let Location::Flash(ppn) = location {
                let (words, policy, signal) = (io.nand().words_of(first, sectors), self.settings.read, io.request());
                io.read(Read { words, policy, after, signal, ..Read::new(ppn, wanted, Cause::Host) })?;
            } else {
                io.link(after, io.request());
                io.count_unwritten(end - begin);
            }
            if io.host.has_contents() {
                for subpage in begin..end {
                    let data = match location {
                        Location::Flash(ppn) => io.load_subpage(ppn * self.subpages + subpage),
                        _ => Data::ZERO,
                    };
                    io.deliver(page * self.subpages + subpage, data);
                }
            }
        }
        Ok(())
    }

    fn trim(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        for (page, _, _) in pages_by(extent, self.sectors_per_page) {
            let translated = self.log.fetch(io, page)?;
            io.link(translated, io.request());
            self.log.trim(io, page);
        }
        self.log.settle(io)
    }

    fn flush(&mut self, _io: &mut Io) -> Flash<()> {
        Ok(())
    }

    fn update_handle(&mut self, io: &mut Io) -> Flash<()> {
        match self.streams.updated(io.directives()) {
            Some(stream) => self.log.update_handle(io, stream),
            None => Ok(()),
        }
    }

    fn background(&mut self, io: &mut Io) -> Flash<bool> {
        let done = self.log.collect_in_background(io)?;
        self.log.settle(io)?;
        Ok(done)
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
        self.streams.with_invalid(self.log.figures())
    }

    fn count_valid(&self, valid: &mut [u32]) -> bool {
        self.log.add_valid(valid);
        true
    }
}
