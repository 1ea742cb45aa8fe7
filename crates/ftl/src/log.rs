//! A log of mapped units, for layers that write units of one size out of place. A unit is a page or a subpage; a
//! [`Map`] stores the place of each.
//!
//! Units wait in open pages (`open_pages`), in controller memory, until they fill a page. A full page is programmed at
//! a frontier (`frontiers`): an open block per stream and plane. `collect` frees blocks, `pace` frees them in steps,
//! `moves` moves valid units (`copies` many at once), and `recover` rebuilds everything after a power cut.

mod append;
pub mod blocks;
mod check;
mod collect;
mod copies;
mod dead;
mod fill;
mod fixed;
mod frontier;
pub(crate) mod frontiers;
mod handles;
mod identifiers;
mod left_out;
pub mod map;
mod moves;
mod open_pages;
pub mod outside;
pub mod pace;
mod passes;
pub(crate) mod portions;
mod rebuild;
mod recover;
pub mod rotation;
pub mod settings;
pub mod single;
pub mod streams;
pub mod victim;

pub use identifiers::Identifiers;
pub use recover::Survivors;

use crate::log::map::{IN_OPEN_PAGE, MAX_UNITS, Map, UNMAPPED};
use collect::Collector;
use frontiers::Frontiers;
use handles::Handles;
use open_pages::OpenPages;
use palimpsest_flash::geometry::{Divisor, Geometry};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Nand, PADDING, SubpageMask, TORN, first_subpages};
use palimpsest_ftl_api::plan::select::ReadPolicy;
use palimpsest_ftl_api::plan::{Cause, Gate, Io};
use palimpsest_ftl_api::{Figure, LayerFigures};
use passes::Passes;
use settings::{Allocation, LogSettings, WritePolicy};

/// Place of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// Never written or trimmed: reads as zeros.
    Unmapped,
    /// In an open page, with this content, which has arrived when the gate closes.
    Open(Data, Gate),
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
    /// Blocks freed for another pass, without an erase.
    pub rewritten: u64,
    /// Blocks erased before their last pass.
    pub erased_early: u64,
    /// Units of the host that took a place in an open page: of the first stream, and of others.
    pub host_units: [u64; 2],
}

palimpsest_flash::state!(LogCounters {
    collections,
    erased,
    moved_units,
    wear_moves,
    retired,
    padded_pages,
    rewritten,
    erased_early,
    host_units
});

impl LogCounters {
    /// The report of a layer with these counters, whose units are `unit_subpages` subpages.
    pub fn figures(&self, unit_subpages: u32) -> LayerFigures {
        LayerFigures {
            gc_runs: self.collections,
            gc_erased: self.erased,
            gc_moved_subpages: self.moved_units * u64::from(unit_subpages),
            retired_blocks: self.retired,
            own: vec![
                ("wear_moves", Figure::Count(self.wear_moves)),
                ("padded_pages", Figure::Count(self.padded_pages)),
            ],
            ..LayerFigures::default()
        }
    }

    /// The hot share of the host's units, of a layer whose first stream is hot.
    pub fn hot_share(&self) -> (&'static str, Figure) {
        let [hot, cold] = self.host_units;
        ("hot_share", Figure::ShareOfCount(hot, hot + cold))
    }
}

/// A unit to append to the log.
#[derive(Debug, Clone, Copy)]
pub struct Append {
    /// The unit.
    pub unit: u32,
    /// Content of the unit; of units of several subpages, content of the first.
    pub data: Data,
    /// Cause of the write.
    pub cause: Cause,
    /// Closes when the content has arrived.
    pub after: Gate,
    /// Waits for the program.
    pub signal: Gate,
    /// Subpages that the unit occupies in the write buffer.
    pub holds: u32,
}

/// Units, pages and blocks of a log.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    units_per_page: u32,
    unit_subpages: u32,
    units_per_block: u32,
    pages_per_block: u32,
    blocks_per_plane: u32,
    per_page: Divisor,
    per_block: Divisor,
    per_unit: Divisor,
    /// Units of an address that names a plane.
    per_address: Divisor,
}

impl Shape {
    pub(crate) fn new(geometry: &Geometry, unit_subpages: u32, allocation: Allocation) -> Self {
        let units_per_page = geometry.subpages_per_page / unit_subpages;
        let units_per_block = geometry.pages_per_block * units_per_page;
        Shape {
            units_per_page,
            unit_subpages,
            units_per_block,
            pages_per_block: geometry.pages_per_block,
            blocks_per_plane: geometry.blocks_per_plane,
            per_page: Divisor::new(units_per_page),
            per_block: Divisor::new(units_per_block),
            per_unit: Divisor::new(unit_subpages),
            per_address: Divisor::new(if allocation == Allocation::Unit { 1 } else { units_per_page }),
        }
    }

    /// The unit that physical unit `physical` was programmed with; `None` for no unit or an unreadable one.
    #[inline(always)]
    fn unit_at(&self, nand: &Nand, physical: u32) -> Option<u32> {
        if self.unit_subpages == 1 && !nand.has_passes() {
            return Some(nand.logical(physical)).filter(|&logical| logical < TORN);
        }
        self.unit_of_subpages(nand, physical)
    }

    #[inline(never)]
    fn unit_of_subpages(&self, nand: &Nand, physical: u32) -> Option<u32> {
        let width = self.unit_subpages;
        let first = physical * width;
        if nand.is_of_earlier_pass(self.per_page.divide(physical)) {
            return None;
        }
        let found = (first..first + width).map(|psn| nand.logical(psn)).find(|&logical| logical < TORN)?;
        Some(self.per_unit.divide(found))
    }
}

/// A page to program.
struct PageImage {
    logical: Vec<u32>,
    data: Vec<Data>,
    /// Contents of the subpages of a unit with several subpages.
    unit: Vec<Data>,
    /// Bytes of a page of the map.
    own: Vec<u8>,
}

/// A log of mapped units.
pub struct Log<M: Map> {
    /// Places of the units.
    pub map: M,
    shape: Shape,
    frontiers: Frontiers,
    open: OpenPages,
    collector: Collector,
    passes: Passes,
    rebuild: rebuild::Rebuild,
    read: ReadPolicy,
    counters: LogCounters,
    /// Present if streams are reclaim unit handles.
    handles: Option<Handles>,
    image: PageImage,
    /// After a power cut: true if the map is complete.
    is_found: bool,
}

palimpsest_flash::state!([M: Map] Log<M> { map, frontiers, open, collector, passes, counters } parts { handles } built {
    shape, rebuild, read, image, is_found
});

impl<M: Map> Log<M> {
    /// An empty log of the units of `map`, of `unit_subpages` subpages each. `protected`: open pages survive a power
    /// cut. `seed` is for policies that draw at random.
    pub fn new(io: &Io, settings: &LogSettings, map: M, unit_subpages: u32, protected: bool, seed: u64) -> Self {
        Self::beside(io, settings, map, unit_subpages, protected, seed, Vec::new())
    }

    /// As [`Self::new`], without the blocks marked in `reserved` (one entry per block, or empty), which the layer uses
    /// itself.
    pub fn beside(
        io: &Io,
        settings: &LogSettings,
        map: M,
        unit_subpages: u32,
        protected: bool,
        seed: u64,
        reserved: Vec<bool>,
    ) -> Self {
        assert!(map.units() <= MAX_UNITS, "more units than a map entry can name");
        let geometry = io.geometry();
        assert!(reserved.is_empty() || reserved.len() == geometry.blocks() as usize);
        let shape = Shape::new(geometry, unit_subpages, settings.allocation);
        assert!(!M::IN_LOG || shape.units_per_page == 1, "a map in flash is one of pages");
        let subpages = geometry.subpages_per_page as usize;
        let stored = map.units().div_ceil(shape.units_per_page);
        let frontiers = Frontiers::new(io, settings, shape, u32::from(M::IN_LOG), stored, reserved);
        let groups = frontiers.rotation.groups();
        let passes = Passes::new(io.nand(), map.units(), shape.units_per_page);
        let (pages, streams) =
            (frontiers.free_pages.iter().sum::<u32>(), frontiers.data_streams() + u32::from(M::IN_LOG));
        let spare = pages.saturating_sub(stored) / geometry.planes();
        let rest = u32::from(!protected && shape.units_per_page > 1);
        Log {
            map,
            shape,
            frontiers,
            open: OpenPages::new(settings, groups, geometry.planes(), shape.units_per_page, protected),
            collector: Collector::new(settings, geometry, rest, streams, spare, io.nand().pages_torn(), seed),
            passes,
            rebuild: rebuild::Rebuild::default(),
            read: settings.read,
            counters: LogCounters::default(),
            handles: None,
            image: PageImage {
                logical: vec![PADDING; subpages],
                data: vec![Data::ZERO; subpages],
                unit: Vec::new(),
                own: Vec::new(),
            },
            is_found: true,
        }
    }

    /// The same log, which buffers and cleans by `policy` if there is one.
    #[must_use]
    pub fn under(mut self, policy: Option<&WritePolicy>) -> Self {
        let Some(policy) = policy else { return self };
        self.collector.opens_before = Some(policy.open_before);
        self.open.absorbs = policy.absorb || !self.open.protected;
        self
    }

    /// Counters so far.
    pub fn counters(&self) -> &LogCounters {
        &self.counters
    }

    /// Counts `units` units that the host wrote to `stream`, if units gather in open pages.
    #[inline]
    pub fn count_host(&mut self, stream: u32, units: u32) {
        if self.shape.units_per_page > 1 {
            self.counters.host_units[usize::from(stream > 0)] += u64::from(units);
        }
    }

    /// The report of a layer that is one log.
    pub fn figures(&self) -> LayerFigures {
        let counters = &self.counters;
        let mut figures = counters.figures(self.shape.unit_subpages);
        if self.frontiers.fixed.is_used() {
            figures.own.push(("folded_blocks", Figure::Count(self.frontiers.fixed.folded())));
        }
        if self.passes.most > 1 {
            figures.own.push(("rewritten_blocks", Figure::Count(counters.rewritten)));
            figures.own.push(("blocks_erased_early", Figure::Count(counters.erased_early)));
        }
        self.map.describe(&mut figures);
        figures.placement = self.placement();
        figures
    }

    /// The read policy.
    #[inline]
    pub fn read_policy(&self) -> ReadPolicy {
        self.read
    }

    /// Loads the map entry of `unit` into DRAM, for maps that store entries in flash. Uses of the unit must follow the
    /// gate, and must come before the next fetch.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    #[inline]
    pub fn fetch(&mut self, io: &mut Io, unit: u32) -> Flash<Gate> {
        M::fetch(self, io, unit)
    }

    /// Writes back map entries that exceed the DRAM. Must follow each request that writes, and collections.
    ///
    /// # Errors
    /// As [`Self::fetch`].
    #[inline]
    pub fn settle(&mut self, io: &mut Io) -> Flash<()> {
        M::settle(self, io)
    }

    /// The place of `unit`.
    #[inline]
    pub fn locate(&self, unit: u32) -> Location {
        match self.map.locate(unit) {
            UNMAPPED => Location::Unmapped,
            entry if entry >= IN_OPEN_PAGE => {
                let slot = self.open.slot(entry);
                Location::Open(slot.data, slot.arrived)
            }
            physical => Location::Flash(physical),
        }
    }

    /// Prefetches the map entry of `unit` into CPU caches.
    #[inline]
    pub fn prefetch_entry(&self, unit: u32) {
        self.map.prefetch(unit);
    }

    /// Prefetches the fields that a write of `unit` changes. Reads the map entry, which should have been prefetched
    /// before.
    #[inline]
    pub fn prefetch_copy(&self, unit: u32) {
        if unit < self.map.units()
            && let physical = self.map.locate(unit)
            && physical < IN_OPEN_PAGE
        {
            let (block, unit) = self.shape.per_block.split(physical);
            self.frontiers.blocks.prefetch(block, unit);
        }
    }

    /// The first physical subpage of `unit` on flash. Reads the map entry, which should have been prefetched before.
    #[inline]
    pub fn locate_ahead(&self, unit: u32) -> Option<u32> {
        let physical = if unit < self.map.units() { self.map.locate(unit) } else { return None };
        (physical < IN_OPEN_PAGE).then(|| physical * self.shape.unit_subpages)
    }

    /// The page of physical unit `physical`, and the subpages of the unit in that page.
    #[inline]
    pub fn place(&self, physical: u32) -> (u32, SubpageMask) {
        let (ppn, index) = self.shape.per_page.split(physical);
        (ppn, first_subpages(self.shape.unit_subpages) << (index * self.shape.unit_subpages))
    }

    /// Arrival of the oldest unit in any open page that the host or an erase waits for.
    #[inline]
    pub fn oldest_open(&self) -> Option<u64> {
        self.open.oldest
    }

    /// Unmaps `unit`.
    pub fn trim(&mut self, io: &mut Io, unit: u32) {
        let entry = self.map.place(unit, UNMAPPED);
        self.passes.trims |= entry != UNMAPPED;
        match entry {
            UNMAPPED => {}
            entry if entry >= IN_OPEN_PAGE => {
                let previous = self.open.forget(io, entry);
                if previous != UNMAPPED {
                    self.invalidate(previous);
                } else {
                    self.passes.suspect |= self.passes.most > 1;
                }
            }
            physical => self.invalidate(physical),
        }
    }

    /// Adds the valid subpages of each block to `valid`.
    pub fn add_valid(&self, valid: &mut [u32]) {
        self.frontiers.blocks.add_valid(valid, self.shape.unit_subpages);
    }

    #[inline]
    fn invalidate(&mut self, physical: u32) {
        let (block, unit) = self.shape.per_block.split(physical);
        self.frontiers.blocks.invalidate(block, unit);
    }

    #[inline]
    fn validate(&mut self, physical: u32) {
        let (block, unit) = self.shape.per_block.split(physical);
        self.frontiers.blocks.validate(block, unit);
    }
}
