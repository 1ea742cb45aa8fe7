//! Prefetches of the tables of flash, which a layer or run accesses soon. Ignored: the bytes of pages.

use super::Nand;
use crate::prefetch::prefetch;

impl Nand {
    /// Prefetches the memory of [`Self::logical`] for physical subpage `psn`.
    #[inline]
    pub fn prefetch_logical(&self, psn: u32) {
        prefetch(&self.logical, psn as usize);
        prefetch(&self.programs, self.widths.subpages_per_page.divide(psn) as usize);
    }

    /// Prefetches the memory of [`Self::load`] for physical subpage `psn`, except bytes.
    #[inline]
    pub fn prefetch_content(&self, psn: u32) {
        self.payload.prefetch(psn);
    }
}
