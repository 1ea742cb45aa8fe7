//! Filling a new drive in counted runs: many writes of whole units at once, where the layer can.

use super::{Drive, Verifier, explain};
use palimpsest_flash::error::Result;

impl Drive {
    /// Writes whole pages of the `units` units from `first` on, none of which was ever written, as [`Self::count`] of a
    /// write of each page would. Returns how many units it wrote: fewer, or none, if that takes more than to fill pages
    /// in turn. No power cut may be ahead.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub fn fill(&mut self, first: u64, units: u32, verifier: &mut dyn Verifier) -> Result<u32> {
        if self.io.plan.timed || self.read_back_after_cut.is_some() {
            return Ok(0);
        }
        let first = u32::try_from(first).expect("a layer numbers its units with 32 bits");
        let done = self.ftl.fill(&mut self.io, first, units).map_err(explain)?;
        let (unit, page) = (self.ftl.unit_subpages(), self.io.geometry().subpages_per_page);
        self.io.nand.note_written(first * unit..(first + done) * unit);
        if self.io.has_contents() {
            verifier.filled(self.io.host(), first * unit, done * unit / page, page);
        }
        Ok(done)
    }
}
