//! The map of a log that shares its units with something else: a full map, and the subpages of each unit whose newest content
//! the layer keeps in blocks that the log leaves alone.

use super::full::FullMap;
use crate::log::map::{Map, UNMAPPED};
use palimpsest_flash::prefetch::prefetch;
use palimpsest_ftl_api::LayerFigures;
use palimpsest_ftl_api::plan::Gate;

/// A full map of pages, and what stands elsewhere.
pub struct SharedMap {
    all: FullMap,
    /// Subpages of each unit.
    elsewhere: Vec<u32>,
    /// Closes when what is kept outside the log is programmed.
    settled: Gate,
}

impl SharedMap {
    /// Of `units` whole pages of `subpages` subpages.
    pub fn new(units: u32, subpages: u32) -> Self {
        assert!(subpages <= u32::BITS, "more subpages in a page than a mask of those elsewhere can name");
        SharedMap { all: FullMap::new(units), elsewhere: vec![0; units as usize], settled: Gate::NONE }
    }

    /// Bytes in DRAM of the full map.
    pub fn bytes(&self) -> u64 {
        self.all.bytes()
    }

    /// Says which subpages of `unit` have their newest content outside the log. When the unit moves, they are programmed as
    /// padding, so that after a power cut the old content does not pass for the newest.
    #[inline]
    pub fn set_elsewhere(&mut self, unit: u32, subpages: u32) {
        self.elsewhere[unit as usize] = subpages;
    }

    /// What is kept outside the log is programmed when `settled` closes.
    #[inline]
    pub fn settles(&mut self, settled: Gate) {
        self.settled = settled;
    }

    /// After a power cut: all of `unit` stands elsewhere.
    pub fn unmap(&mut self, unit: u32) {
        self.all.place(unit, UNMAPPED);
    }
}

impl Map for SharedMap {
    #[inline]
    fn units(&self) -> u32 {
        self.all.units()
    }

    #[inline]
    fn locate(&self, unit: u32) -> u32 {
        self.all.locate(unit)
    }

    #[inline]
    fn place(&mut self, unit: u32, entry: u32) -> u32 {
        self.all.place(unit, entry)
    }

    fn clear(&mut self) {
        self.all.clear();
        self.elsewhere.fill(0);
        self.settled = Gate::NONE;
    }

    #[inline]
    fn prefetch(&self, unit: u32) {
        self.all.prefetch(unit);
        prefetch(&self.elsewhere, unit as usize);
    }

    #[inline]
    fn elsewhere(&self, unit: u32) -> u32 {
        self.elsewhere[unit as usize]
    }

    #[inline]
    fn settled(&self) -> Gate {
        self.settled
    }

    #[inline]
    fn programmed(&mut self, unit: u32, absent: u32) {
        // A page that is new, and not moved, has everything, also for moves that follow at once.
        self.elsewhere[unit as usize] = absent;
    }

    fn describe(&self, figures: &mut LayerFigures) {
        self.all.describe(figures);
    }
}
