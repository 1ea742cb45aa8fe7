//! What the drive does of its own: background work while the host is idle, and programming what the buffer holds where nothing else goes on.

use super::Drive;
use super::power::explain;
use palimpsest_flash::error::{Error, Result};
use palimpsest_ftl_api::{Figure, LayerFigures};

impl Drive {
    /// Figures of the layer, and of the blocks that the drive relocated.
    pub fn figures(&self) -> LayerFigures {
        let mut figures = self.ftl.figures();
        if self.io.counters.refreshed_blocks > 0 {
            figures.own.push(("refreshed_blocks", Figure::Count(self.io.counters.refreshed_blocks)));
        }
        figures
    }

    /// One step of background work; false where there is none.
    ///
    /// # Errors
    /// What flash says.
    pub fn background(&mut self) -> Result<bool> {
        self.io.present.now = self.engine.now();
        let done = self.ftl.background(&mut self.io).map_err(explain)?
            || (self.io.nand.has_due() && self.refresh().map_err(explain)?);
        self.close_call();
        self.settle();
        Ok(done)
    }

    /// Nothing is under way, but writes wait: for room in the buffer, or in open pages. Programs what the buffer holds.
    ///
    /// # Errors
    /// Errors of flash; [`Error::DriveFailed`] where no operation can start.
    pub fn push_out(&mut self) -> Result<()> {
        self.io.present.now = self.engine.now();
        self.empty_buffers()?;
        self.close_call();
        self.settle();
        if self.next_time().is_none() {
            return Err(Error::DriveFailed(format!(
                "{} requests and {} flash operations wait for something that never happens: the translation layer follows \
                 a gate that nothing signals, or holds back what the write buffer waits for",
                self.outstanding,
                self.engine.outstanding(),
            )));
        }
        Ok(())
    }
}
