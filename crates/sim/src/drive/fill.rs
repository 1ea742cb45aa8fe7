//! Filling a new drive in counted runs: many writes of whole units in one call, if the layer supports that.
//!
//! Ignored: time, and power cuts, which exclude this path.

use super::{Drive, Verifier, explain};
use palimpsest_flash::error::Result;

impl Drive {
    /// Writes `units` units from `first` on, in whole pages, with the same effect as one write per page by
    /// [`Self::count`]. No unit may have been written before, and no power cut may be scheduled. Returns the number of
    /// units written: fewer, or 0, where a write would do more than fill the next page.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub fn fill(&mut self, first: u64, units: u32, verifier: &mut dyn Verifier) -> Result<u32> {
        if self.io.plan.timed || self.power.read_back.is_some() {
            return Ok(0);
        }
        let first = u32::try_from(first).expect("a layer numbers its units with 32 bits");
        let done = self.ftl.fill(&mut self.io, first, units).map_err(explain);
        self.check_work("a fill")?;
        let done = done?;
        let (unit, page) = (self.ftl.unit_subpages(), self.io.geometry().subpages_per_page);
        self.io.nand.note_written(first * unit..(first + done) * unit);
        if self.io.host.has_contents() {
            verifier.filled(&self.io.host, first * unit, done * unit / page, page);
        }
        Ok(done)
    }
}
