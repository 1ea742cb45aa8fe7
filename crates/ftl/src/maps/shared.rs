//! A log of whole pages beside something else: blocks that it leaves alone, and single subpages of its units in them.

use super::UnitLog;
use crate::log::settings::LogSettings;
use palimpsest_flash::nand::{Nand, TORN};
use palimpsest_flash::prefetch::prefetch;
use palimpsest_ftl_api::plan::Io;

impl UnitLog {
    /// An empty log of `units` whole pages that leaves the blocks alone which `apart` marks, one entry a block. The layer
    /// keeps single subpages there, and says which ([`Self::set_elsewhere`]).
    pub fn beside(io: &Io, settings: &LogSettings, units: u32, seed: u64, apart: Vec<bool>) -> Self {
        let subpages = io.geometry().subpages_per_page;
        assert!(subpages <= u32::BITS, "more subpages in a page than a mask of those elsewhere can name");
        assert_eq!(apart.len(), io.geometry().blocks() as usize);
        let mut log = Self::build(io, settings, units, subpages, false, seed, apart);
        log.elsewhere = vec![0; units as usize];
        log
    }

    /// Subpages of `unit` whose newest content stands in blocks that this log leaves alone.
    #[inline]
    pub fn elsewhere(&self, unit: u32) -> u32 {
        self.elsewhere.get(unit as usize).copied().unwrap_or(0)
    }

    /// Says which subpages of `unit` have their newest content in blocks that this log leaves alone. When the unit moves,
    /// they are programmed as padding, so that after a power cut the old content does not pass for the newest.
    #[inline]
    pub fn set_elsewhere(&mut self, unit: u32, subpages: u32) {
        self.elsewhere[unit as usize] = subpages;
    }

    /// Asks for what [`Self::elsewhere`] looks at.
    #[inline]
    pub fn prefetch_elsewhere(&self, unit: u32) {
        prefetch(&self.elsewhere, unit as usize);
    }

    /// The unit that physical unit `physical` was programmed with, if any and if it can be read.
    #[inline]
    pub(super) fn unit_at(&self, nand: &Nand, physical: u32) -> Option<u32> {
        let width = self.unit_subpages;
        let first = physical * width;
        let found = (first..first + width).map(|psn| nand.logical(psn)).find(|&logical| logical < TORN)?;
        Some(found / width)
    }

    #[inline]
    pub(super) fn is_apart(&self, block: u32) -> bool {
        self.apart.get(block as usize).is_some_and(|&apart| apart)
    }
}
