//! The map of a log that shares units with the layer: a full map, and the subpages of each unit outside the log. The
//! layer stores the newest content of these in reserved blocks.

use super::full::FullMap;
use crate::log::map::{Map, UNMAPPED};
use palimpsest_flash::prefetch::prefetch;
use palimpsest_ftl_api::LayerFigures;
use palimpsest_ftl_api::plan::Gate;

/// A full map of pages, and the subpages outside the log.
pub struct SharedMap {
    all: FullMap,
    /// Subpages of each unit that are outside the log.
    outside: Vec<u32>,
    /// Closes when all subpages outside the log are programmed.
    settled: Gate,
}

palimpsest_flash::state!(SharedMap { all, outside, settled });

impl SharedMap {
    /// A map of `units` whole pages of `subpages` subpages.
    pub fn new(units: u32, subpages: u32) -> Self {
        assert!(subpages <= u32::BITS, "more subpages in a page than a mask of those outside the log can name");
        SharedMap { all: FullMap::new(units), outside: vec![0; units as usize], settled: Gate::NONE }
    }

    /// Bytes in DRAM of the full map.
    pub fn bytes(&self) -> u64 {
        self.all.bytes()
    }

    /// Sets the subpages of `unit` whose newest content is outside the log. If the unit moves, they are programmed as
    /// padding, so that recovery does not mistake the stale content for the newest.
    #[inline]
    pub fn set_outside(&mut self, unit: u32, subpages: u32) {
        self.outside[unit as usize] = subpages;
    }

    /// Sets the gate that closes when all subpages outside the log are programmed.
    #[inline]
    pub fn settles(&mut self, settled: Gate) {
        self.settled = settled;
    }

    /// After a power cut: all subpages of `unit` are outside the log.
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
        self.outside.fill(0);
        self.settled = Gate::NONE;
    }

    #[inline]
    fn prefetch(&self, unit: u32) {
        self.all.prefetch(unit);
        prefetch(&self.outside, unit as usize);
    }

    #[inline]
    fn outside(&self, unit: u32) -> u32 {
        self.outside[unit as usize]
    }

    #[inline]
    fn settled(&self) -> Gate {
        self.settled
    }

    #[inline]
    fn programmed(&mut self, unit: u32, absent: u32) {
        // A new page is complete (`absent` is 0), also for moves that follow at once.
        self.outside[unit as usize] = absent;
    }

    fn describe(&self, figures: &mut LayerFigures) {
        self.all.describe(figures);
    }
}
