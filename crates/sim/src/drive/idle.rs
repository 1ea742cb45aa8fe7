//! The drive's own work: background steps while the host is idle, and programs of buffered data when no operation is
//! left.
//!
//! Ignored: processor time of that work.

use super::Drive;
use super::power::explain;
use palimpsest_flash::error::{Error, Result};
use palimpsest_ftl_api::{Figure, LayerFigures};

impl Drive {
    /// Figures of the layer, with the number of blocks that the drive relocated.
    pub fn figures(&self) -> LayerFigures {
        let mut figures = self.ftl.figures();
        if self.io.counters.refreshed_blocks > 0 {
            figures.own.push(("refreshed_blocks", Figure::Count(self.io.counters.refreshed_blocks)));
        }
        figures
    }

    /// Performs one step of background work. Returns false if no work is left.
    ///
    /// # Errors
    /// Errors of flash.
    pub fn background(&mut self) -> Result<bool> {
        self.io.present.now = self.engine.now();
        let done = self.ftl.background(&mut self.io).map_err(explain);
        self.check_work("background work")?;
        let done = done? || (self.io.nand.has_due() && self.refresh().map_err(explain)?);
        self.close_call();
        self.settle();
        Ok(done)
    }

    /// Programs all buffered data. Must be called when no operation is under way but writes wait, for room in the
    /// buffer or in open pages.
    ///
    /// # Errors
    /// Errors of flash; [`Error::DriveFailed`] if no operation can start.
    pub fn push_out(&mut self) -> Result<()> {
        self.program_buffers()?;
        if self.next_time().is_none() {
            return Err(Error::DriveFailed(format!(
                "{} requests and {} flash operations wait for something that never happens: the translation layer \
                 follows a gate that nothing signals, or holds back what the write buffer waits for",
                self.outstanding(),
                self.engine.outstanding(),
            )));
        }
        Ok(())
    }

    /// Plans programs of all buffered data.
    ///
    /// # Errors
    /// Errors of flash.
    pub fn program_buffers(&mut self) -> Result<()> {
        self.io.present.now = self.engine.now();
        let done = self.empty_buffers();
        self.check_work("programs of buffered data").and(done)?;
        self.close_call();
        self.settle();
        Ok(())
    }
}
