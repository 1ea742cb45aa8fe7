//! Live figures of a served drive: its present result and the states of all blocks. Ignored: requests in flight.

use super::super::summary;
use super::Served;
use crate::metrics::snapshots::{BlockMap, Snapshots};
use crate::metrics::summary::Summary;

impl Served<'_> {
    /// The present result, without requests in flight.
    pub fn figures(&self) -> Summary {
        let (read, options) = (summary::TraceRead::default(), &self.session.options);
        summary::outcome(&self.resolved, &self.session, options, read, self.precondition.clone()).summary
    }

    /// Data bytes programmed since preconditioning, planned programs included.
    pub fn programmed_bytes(&self) -> u64 {
        self.session.drive.io.counters.data_bytes - self.session.baseline.io.data_bytes
    }

    /// Blocks of a new drive beyond those that the logical capacity fills, and blocks that failed.
    pub fn spare_blocks(&self) -> (u64, u64) {
        let drive = &self.resolved.drive;
        let filled = drive.logical_pages().div_ceil(drive.geometry.pages_per_block.into());
        let spare = u64::from(drive.geometry.blocks()).saturating_sub(filled);
        (spare, self.session.drive.figures().retired_blocks)
    }

    /// The temperature of flash in degrees Celsius.
    pub fn celsius(&self) -> u32 {
        let cells = &self.resolved.drive.errors.cells;
        if cells.temperature > 0 { cells.temperature } else { cells.reference }
    }

    /// The present state of all blocks, with planned operations.
    pub fn blocks(&self) -> BlockMap {
        let drive = &self.session.drive;
        Snapshots::new(&self.resolved.drive.geometry).map(&drive.io.nand, &*drive.ftl)
    }
}
