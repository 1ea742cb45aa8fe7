//! Sizes of a drive: sectors of the host, logical subpages, units of the layer's map and of trims.
//!
//! Ignored: pages of flash.

use palimpsest_flash::geometry::{Divisor, Extent};
use palimpsest_flash::units::SECTOR_BYTES;
use std::ops::Range;

/// Bytes of a subpage, sectors of a unit and of the smallest trim.
#[derive(Clone, Copy)]
pub struct Units {
    pub(super) subpage_bytes: u64,
    subpage_sectors: Divisor,
    unit_sectors: u64,
    trim_sectors: u64,
}

impl Units {
    pub(super) fn new(subpage_bytes: u32, unit_subpages: u32, trim_subpages: u32) -> Self {
        let subpage_bytes = u64::from(subpage_bytes);
        let [unit_sectors, trim_sectors] =
            [unit_subpages, trim_subpages].map(|subpages| u64::from(subpages) * subpage_bytes / SECTOR_BYTES);
        let subpage_sectors = Divisor::new((subpage_bytes / SECTOR_BYTES) as u32);
        Units { subpage_bytes, subpage_sectors, unit_sectors, trim_sectors }
    }

    /// The units wholly inside `extent`, which a trim unmaps.
    pub fn whole(&self, extent: Extent) -> Option<Extent> {
        let first = extent.sector.div_ceil(self.trim_sectors) * self.trim_sectors;
        let end = extent.end() / self.trim_sectors * self.trim_sectors;
        (end > first).then(|| Extent { sector: first, sectors: (end - first) as u32 })
    }

    /// The sectors of all units that `extent` touches.
    #[inline]
    pub(super) fn touched(&self, extent: Extent) -> Range<u64> {
        extent.sector / self.unit_sectors * self.unit_sectors..extent.end().next_multiple_of(self.unit_sectors)
    }

    /// The logical subpages of the whole units in `sectors`.
    #[inline]
    pub(super) fn lsns(&self, sectors: Range<u64>) -> Range<u32> {
        let subpage = |sector: u64| self.subpage_sectors.divide_wide(sector) as u32;
        subpage(sectors.start)..subpage(sectors.end)
    }

    /// The logical subpages that `extent` touches.
    #[inline]
    pub(super) fn written(&self, extent: Extent) -> Range<u32> {
        let subpage = |sector: u64| self.subpage_sectors.divide_wide(sector) as u32;
        subpage(extent.sector)..subpage(extent.end() - 1) + 1
    }

    /// Subpages that `extent` occupies in the write buffer.
    #[inline]
    pub(super) fn subpages(&self, extent: Extent) -> u64 {
        extent.bytes().div_ceil(self.subpage_bytes)
    }
}
