//! A log of mapped units: the map, the open pages, allocation over the planes, and cleaning, for layers that write units of
//! one size out of place. A unit is a page (`page`) or a subpage (`subpage`).
//!
//! A page is programmed when it is full; until then its units wait in the controller's memory, one open page a stream of the
//! host, and one a plane for what cleaning moves there: if moved units left their plane, the fuller planes, which are
//! cleaned more often, would grow fuller still. A unit of an open page remembers where its older copy stands, and that
//! copy stays valid until the page is programmed: so what was acknowledged after programming survives a power cut. Streams
//! have blocks of their own in every plane.
//!
//! Where open pages are not protected, a victim is erased when the last of its units has been programmed elsewhere.

mod allocate;
mod beside;
mod collect;
mod recover;

pub use recover::Survivors;

use crate::log::blocks::{Blocks, NO_BLOCK};
use crate::log::map_bytes::map_bytes;
use crate::log::rotation::Rotation;
use crate::log::settings::LogSettings;
use crate::log::victim::{self, Victim};
use palimpsest_flash::geometry::{Divisor, Geometry};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Outcome, PADDING, SubpageMask, first_subpages};
use palimpsest_flash::prefetch::prefetch;
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::plan::{Cause, Gate, Io, Program};

/// Map entry of a unit that was never written, or was trimmed.
const UNMAPPED: u32 = u32::MAX;
/// Map entries from here on name a slot of an open page.
const IN_OPEN_PAGE: u32 = u32::MAX - (1 << 16);
/// Unit number of an open page's slot whose unit was trimmed.
const HOLE: u32 = u32::MAX;
/// No unit may have this number or a larger one (flash marks padding with the largest numbers).
pub const MAX_UNITS: u32 = u32::MAX - (1 << 17);

/// Where a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// Nowhere: it reads as zeros.
    Unmapped,
    /// In an open page, with this content.
    Open(Data),
    /// In flash, at this physical unit.
    Flash(u32),
}

/// Counters of a log, for the results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogCounters {
    /// Victims cleaned for space.
    pub collections: u64,
    /// Blocks erased after cleaning.
    pub erased: u64,
    /// Units moved by cleaning and wear levelling.
    pub moved_units: u64,
    /// Blocks moved to level wear.
    pub wear_moves: u64,
    /// Blocks retired after a failed program or erase.
    pub retired: u64,
    /// Pages programmed before they were full.
    pub padded_pages: u64,
}

#[derive(Debug, Clone, Copy)]
struct Frontier {
    block: u32,
    next_page: u32,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    unit: u32,
    data: Data,
    /// Physical unit of the older copy, or [`UNMAPPED`].
    previous: u32,
}

/// A page that is being filled.
struct OpenPage {
    slots: Vec<Slot>,
    /// Closes when everything that was read for this page has arrived.
    ready: Gate,
    /// Closes when the page is programmed.
    done: Gate,
    /// Subpages of the host's write buffer that it holds.
    held: u32,
    /// When the oldest unit came that somebody waits for: the host, or, where open pages are not protected, an erase.
    since: Option<u64>,
    cause: Cause,
    /// Programs of other open pages, into which units of this one have moved.
    also: Vec<Gate>,
}

impl OpenPage {
    fn new() -> Self {
        OpenPage {
            slots: Vec::new(),
            ready: Gate::NONE,
            done: Gate::NONE,
            held: 0,
            since: None,
            cause: Cause::Host,
            also: Vec::new(),
        }
    }
}

/// What comes with a unit that is appended.
#[derive(Debug, Clone, Copy)]
pub struct Append {
    /// The unit.
    pub unit: u32,
    /// One entry a subpage stands in the log's scratch for units of several subpages; this is the first.
    pub data: Data,
    /// Why.
    pub cause: Cause,
    /// Its content has arrived when this gate closes.
    pub after: Gate,
    /// Wants to know when it is programmed.
    pub signal: Gate,
    /// Subpages of the write buffer that it takes.
    pub holds: u32,
}

/// The log.
pub struct UnitLog {
    settings: LogSettings,
    units_per_page: u32,
    unit_subpages: u32,
    pages_per_block: u32,
    per_page: Divisor,
    per_block: Divisor,
    blocks_per_plane: u32,
    map: Vec<u32>,
    blocks: Blocks,
    victim: Box<dyn Victim>,
    rng: Rng,
    /// Frontier of each stream in each plane: index plane x streams + stream.
    frontiers: Vec<Frontier>,
    /// Open pages: first those of the host's streams, then those of moved units.
    open: Vec<OpenPage>,
    /// When the oldest unit of the host in any open page came.
    oldest: Option<u64>,
    /// Open pages of moved units: one a plane, as long as map entries can name them all.
    moved_pages: u32,
    /// Free pages of each plane: in free blocks and at the frontiers.
    free_pages: Vec<u32>,
    rotation: Rotation,
    gc_start: u32,
    gc_stop: u32,
    /// Whether open pages survive a power cut, so that a victim may be erased while they hold its units.
    protected: bool,
    failed: Vec<u32>,
    /// Victims whose last units wait in open pages, and the gates that close when those are programmed.
    emptying: Vec<(u32, Gate)>,
    wear_checks: u32,
    counters: LogCounters,
    logical: Vec<u32>,
    image: Vec<Data>,
    /// Contents of the subpages of units that have several.
    wide: Vec<Data>,
    /// Blocks that this log leaves alone, where a layer keeps some apart; else empty.
    apart: Vec<bool>,
    /// Of each unit, the subpages whose newest content the layer keeps in blocks of its own; empty where it has none.
    elsewhere: Vec<u32>,
}

impl UnitLog {
    /// An empty log of `units` units of `unit_subpages` subpages each. `protected` says that open pages survive a power
    /// cut. `seed` is for policies that draw at random.
    pub fn new(io: &Io, settings: &LogSettings, units: u32, unit_subpages: u32, protected: bool, seed: u64) -> Self {
        Self::build(io, settings, units, unit_subpages, protected, seed, Vec::new())
    }

    fn build(
        io: &Io,
        settings: &LogSettings,
        units: u32,
        unit_subpages: u32,
        protected: bool,
        seed: u64,
        apart: Vec<bool>,
    ) -> Self {
        assert!(units <= MAX_UNITS, "more units than a map entry can name");
        let geometry: Geometry = *io.geometry();
        let units_per_page = geometry.subpages_per_page / unit_subpages;
        let planes = geometry.planes();
        let moved_pages = planes.min(((1 << 16) - 1) / units_per_page - settings.streams);
        let blocks = Blocks::new(&geometry, geometry.pages_per_block * units_per_page, |block| {
            io.nand().is_bad(block) || apart.get(block as usize).is_some_and(|&apart| apart)
        });
        UnitLog {
            units_per_page,
            unit_subpages,
            pages_per_block: geometry.pages_per_block,
            per_page: Divisor::new(units_per_page),
            per_block: Divisor::new(blocks.units_per_block()),
            blocks_per_plane: geometry.blocks_per_plane,
            map: vec![UNMAPPED; units as usize],
            victim: victim::new(&settings.victim),
            rng: Rng::new(seed, 0x71c7),
            frontiers: vec![Frontier { block: NO_BLOCK, next_page: 0 }; (planes * settings.streams) as usize],
            open: (0..settings.streams + moved_pages).map(|_| OpenPage::new()).collect(),
            oldest: None,
            moved_pages,
            free_pages: (0..planes).map(|plane| blocks.free_count(plane) * geometry.pages_per_block).collect(),
            rotation: Rotation::new(settings.allocation, &geometry),
            gc_start: settings.gc_start.pages_of(geometry.blocks_per_plane, geometry.pages_per_block),
            gc_stop: settings.gc_stop.pages_of(geometry.blocks_per_plane, geometry.pages_per_block),
            protected,
            failed: Vec::new(),
            emptying: Vec::new(),
            wear_checks: 0,
            counters: LogCounters::default(),
            logical: vec![PADDING; geometry.subpages_per_page as usize],
            image: vec![Data::ZERO; geometry.subpages_per_page as usize],
            wide: Vec::new(),
            apart,
            elsewhere: Vec::new(),
            blocks,
            settings: settings.clone(),
        }
    }

    /// What it has done.
    pub fn counters(&self) -> &LogCounters {
        &self.counters
    }

    /// Bytes of map, 8 bytes an entry as the papers count.
    pub fn map_bytes(&self) -> u64 {
        map_bytes(self.map.len() as u64)
    }

    /// The stream of data that is moved.
    #[inline]
    pub fn moved_stream(&self) -> u32 {
        self.settings.streams - 1
    }

    /// The open page of what is moved in `plane`.
    #[inline]
    fn moved_page(&self, plane: u32) -> u32 {
        self.settings.streams + plane % self.moved_pages
    }

    /// The stream whose blocks the open page `page` is programmed into.
    #[inline]
    fn stream_of(&self, page: u32) -> u32 {
        page.min(self.settings.streams - 1)
    }

    /// Where `unit` is.
    #[inline]
    pub fn locate(&self, unit: u32) -> Location {
        match self.map[unit as usize] {
            UNMAPPED => Location::Unmapped,
            entry if entry >= IN_OPEN_PAGE => {
                let (open, slot) = self.slot_of(entry);
                Location::Open(self.open[open].slots[slot].data)
            }
            physical => Location::Flash(physical),
        }
    }

    /// Asks for the map entry of `unit`, which will be wanted soon.
    #[inline]
    pub fn prefetch_entry(&self, unit: u32) {
        prefetch(&self.map, unit as usize);
    }

    /// Asks for what writing `unit` will touch beside its map entry, which must be at hand by now.
    #[inline]
    pub fn prefetch_copy(&self, unit: u32) {
        if let Some(&physical) = self.map.get(unit as usize)
            && physical < IN_OPEN_PAGE
        {
            let (block, unit) = self.per_block.split(physical);
            self.blocks.prefetch(block, unit);
        }
    }

    /// The page that physical unit `physical` lies in, and its subpages there.
    #[inline]
    pub fn place(&self, physical: u32) -> (u32, u64) {
        let (ppn, index) = self.per_page.split(physical);
        (ppn, first_subpages(self.unit_subpages) << (index * self.unit_subpages))
    }

    #[inline]
    fn slot_of(&self, entry: u32) -> (usize, usize) {
        let index = entry - IN_OPEN_PAGE;
        ((index / self.units_per_page) as usize, (index % self.units_per_page) as usize)
    }

    /// Looks at every open page for the one that waits longest: after one has been programmed, or restored.
    fn find_oldest(&mut self) {
        self.oldest = self.open.iter().filter_map(|page| page.since).min();
    }

    /// When the oldest unit in any open page came that somebody waits for.
    #[inline]
    pub fn oldest_open(&self) -> Option<u64> {
        self.oldest
    }

    /// Appends a unit of one subpage to the open page of `stream`, and programs that page when it is full.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    #[inline]
    pub fn append(&mut self, io: &mut Io, stream: u32, what: Append) -> Flash<()> {
        if self.units_per_page > 1 {
            return self.append_to_open_page(io, stream, what);
        }
        let plane = self.plane_with_space(io, stream, what.unit)?;
        io.take_buffer(what.holds);
        let previous = self.map[what.unit as usize];
        self.program_unit(io, plane, stream, what, previous, 0)?;
        self.evacuate_failed(io)
    }

    fn append_to_open_page(&mut self, io: &mut Io, stream: u32, what: Append) -> Flash<()> {
        if self.replace_open(io, what) {
            return Ok(());
        }
        let mut plane = 0;
        if self.open[stream as usize].slots.len() as u32 + 1 == self.units_per_page {
            plane = self.plane_with_space(io, stream, what.unit)?;
            // Cleaning may have moved the older copy into an open page, or programmed the open page.
            if self.replace_open(io, what) {
                return Ok(());
            }
        }
        io.take_buffer(what.holds);
        self.push(io, stream, what);
        if self.open[stream as usize].slots.len() as u32 == self.units_per_page {
            self.program_open(io, plane, stream)?;
        }
        self.evacuate_failed(io)
    }

    /// Appends a unit of several subpages, which `contents` lists.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn append_page(&mut self, io: &mut Io, stream: u32, what: Append, contents: &[Data]) -> Flash<()> {
        let plane = self.plane_with_space(io, stream, what.unit)?;
        self.wide.clear();
        self.wide.extend_from_slice(contents);
        let previous = self.map[what.unit as usize];
        self.program_unit(io, plane, stream, what, previous, 0)?;
        self.evacuate_failed(io)
    }

    /// A unit that stands in an open page already is replaced there.
    fn replace_open(&mut self, io: &mut Io, what: Append) -> bool {
        let entry = self.map[what.unit as usize];
        if entry == UNMAPPED || entry < IN_OPEN_PAGE {
            return false;
        }
        let (open, slot) = self.slot_of(entry);
        io.pin(what.data);
        let page = &mut self.open[open];
        io.unpin(page.slots[slot].data);
        page.slots[slot].data = what.data;
        self.attach(io, open as u32, what);
        true
    }

    /// Makes open page `open` wait for, and tell, the gates of `what`.
    #[inline]
    fn attach(&mut self, io: &mut Io, open: u32, what: Append) {
        let page = &mut self.open[open as usize];
        if what.cause == Cause::Host || !self.protected {
            page.since.get_or_insert(io.now());
            self.oldest.get_or_insert(io.now());
        }
        if !what.after.is_none() {
            if !io.is_open(page.ready) {
                page.ready = io.gate();
            }
            io.link(what.after, page.ready);
        }
        if !what.signal.is_none() {
            if page.done.is_none() {
                page.done = io.gate();
            }
            io.link(page.done, what.signal);
        }
    }

    #[inline]
    fn push(&mut self, io: &mut Io, open: u32, what: Append) {
        self.attach(io, open, what);
        let entry = &mut self.map[what.unit as usize];
        let page = &mut self.open[open as usize];
        if page.slots.is_empty() {
            page.cause = what.cause;
        }
        let previous = std::mem::replace(entry, IN_OPEN_PAGE + open * self.units_per_page + page.slots.len() as u32);
        page.slots.push(Slot { unit: what.unit, data: what.data, previous });
        page.held += what.holds;
        io.pin(what.data);
    }

    /// Pads and programs every open page that somebody waits for; `signal` learns when they are programmed.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn flush(&mut self, io: &mut Io, signal: Gate) -> Flash<()> {
        for open in 0..self.open.len() as u32 {
            if self.open[open as usize].since.is_none() {
                continue;
            }
            let plane = match open.checked_sub(self.settings.streams) {
                None => self.plane_with_space(io, open, self.open[open as usize].slots[0].unit)?,
                Some(plane) => {
                    self.ensure_space(io, plane, self.moved_stream())?;
                    plane
                }
            };
            let page = &mut self.open[open as usize];
            if page.since.is_none() {
                continue;
            }
            if !signal.is_none() {
                if page.done.is_none() {
                    page.done = io.gate();
                }
                io.link(page.done, signal);
            }
            self.program_open(io, plane, open)?;
            self.evacuate_failed(io)?;
        }
        Ok(())
    }

    /// Programs the open page `index` in `plane`, padded if it is not full.
    fn program_open(&mut self, io: &mut Io, plane: u32, index: u32) -> Flash<()> {
        self.program_open_at(io, plane, self.stream_of(index), index)
    }

    /// Programs the open page `index` at the frontier of `stream` in `plane`. Where flash does not let it, the page stays.
    fn program_open_at(&mut self, io: &mut Io, plane: u32, stream: u32, index: u32) -> Flash<()> {
        let mut page = std::mem::replace(&mut self.open[index as usize], OpenPage::new());
        if let Err(halt) = self.program_slots(io, plane, stream, &page) {
            self.open[index as usize] = page;
            return Err(halt);
        }
        if page.since.is_some() {
            self.find_oldest();
        }
        // Its allocation serves the next page.
        page.slots.clear();
        self.open[index as usize].slots = page.slots;
        if self.emptying.is_empty() { Ok(()) } else { self.erase_emptied(io, index) }
    }

    fn program_slots(&mut self, io: &mut Io, plane: u32, stream: u32, page: &OpenPage) -> Flash<()> {
        let (count, per_page) = (page.slots.len() as u32, self.units_per_page);
        self.counters.padded_pages += u64::from(count < per_page);
        for &other in &page.also {
            io.link(other, page.done);
        }
        let holes = page.slots.iter().filter(|slot| slot.unit == HOLE).count() as u32;
        for index in 0..per_page as usize {
            let (logical, data) = match page.slots.get(index) {
                Some(slot) if slot.unit != HOLE => (slot.unit, slot.data),
                _ => (PADDING, Data::ZERO),
            };
            self.logical[index] = logical;
            self.image[index] = data;
        }
        loop {
            let ppn = self.take_page(io, plane, stream)?;
            let program = Program {
                padding: per_page - count + holes,
                frees: page.held,
                after: page.ready,
                signal: page.done,
                ..Program::new(ppn, &self.logical, &self.image, page.cause)
            };
            match io.program(program)? {
                Outcome::Done => {
                    self.settle(io, ppn, &page.slots);
                    return Ok(());
                }
                Outcome::Failed => self.drop_frontier(io, ppn),
            }
        }
    }

    /// The units of `slots` now stand in `ppn`.
    fn settle(&mut self, io: &mut Io, ppn: u32, slots: &[Slot]) {
        let first = ppn * self.units_per_page;
        for (index, slot) in slots.iter().enumerate() {
            io.unpin(slot.data);
            if slot.unit == HOLE {
                continue;
            }
            if slot.previous != UNMAPPED {
                self.invalidate(slot.previous);
            }
            self.map[slot.unit as usize] = first + index as u32;
            self.validate(first + index as u32);
        }
    }

    /// Programs one unit that fills a page; `previous` is where it stands now, `absent` are subpages that it lacks.
    #[inline]
    fn program_unit(
        &mut self,
        io: &mut Io,
        plane: u32,
        stream: u32,
        what: Append,
        previous: u32,
        absent: SubpageMask,
    ) -> Flash<()> {
        let width = self.unit_subpages;
        for index in 0..width {
            let lacks = absent >> index & 1 == 1;
            self.logical[index as usize] = if lacks { PADDING } else { what.unit * width + index };
        }
        if width == 1 {
            self.image[0] = what.data;
        } else {
            self.image[..width as usize].copy_from_slice(&self.wide);
        }
        loop {
            let ppn = self.take_page(io, plane, stream)?;
            let program = Program {
                padding: absent.count_ones(),
                frees: what.holds,
                after: what.after,
                signal: what.signal,
                ..Program::new(ppn, &self.logical, &self.image, what.cause)
            };
            match io.program(program)? {
                Outcome::Done => {
                    self.map[what.unit as usize] = ppn;
                    if !self.elsewhere.is_empty() {
                        // A page that is new, and not moved, has everything, also for moves that follow at once.
                        self.elsewhere[what.unit as usize] = absent as u32;
                    }
                    if previous != UNMAPPED {
                        self.invalidate(previous);
                    }
                    self.validate(ppn);
                    return Ok(());
                }
                Outcome::Failed => self.drop_frontier(io, ppn),
            }
        }
    }

    /// Forgets `unit`.
    pub fn trim(&mut self, io: &mut Io, unit: u32) {
        match std::mem::replace(&mut self.map[unit as usize], UNMAPPED) {
            UNMAPPED => {}
            entry if entry >= IN_OPEN_PAGE => {
                let (open, index) = self.slot_of(entry);
                let slot = &mut self.open[open].slots[index];
                let previous = slot.previous;
                io.unpin(slot.data);
                *slot = Slot { unit: HOLE, data: Data::ZERO, previous: UNMAPPED };
                if previous != UNMAPPED {
                    self.invalidate(previous);
                }
            }
            physical => self.invalidate(physical),
        }
    }

    /// Adds the valid subpages of each block to `valid`.
    pub fn add_valid(&self, valid: &mut [u32]) {
        self.blocks.add_valid(valid, self.unit_subpages);
    }

    #[inline]
    fn invalidate(&mut self, physical: u32) {
        let (block, unit) = self.per_block.split(physical);
        self.blocks.invalidate(block, unit);
    }

    #[inline]
    fn validate(&mut self, physical: u32) {
        let (block, unit) = self.per_block.split(physical);
        self.blocks.validate(block, unit);
    }
}
