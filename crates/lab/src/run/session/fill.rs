//! What preconditioning writes: counted, one request at a time, or many units of a new drive at once.

use super::Session;
use palimpsest_flash::error::Result;
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_sim::drive::Command;
use palimpsest_workload::request::{Request, Source};

/// Most units that are written at once: progress is reported after each.
const MOST_UNITS: u64 = 1 << 22;

impl Session<'_> {
    /// Serves a command of preconditioning.
    #[inline]
    pub(in crate::run) fn count(&mut self, command: Command) -> Result<()> {
        self.precondition_bytes += u64::from(command.extent.sectors) * SECTOR_BYTES;
        self.drive.count(command, &mut self.verifier)?;
        self.watch()
    }

    /// Serves a request of preconditioning that has a file.
    pub(in crate::run) fn count_request(&mut self, source: &mut dyn Source, request: Request) -> Result<()> {
        let mut extent = Extent { sector: request.sector, sectors: request.sectors };
        if extent.end() > self.logical_sectors {
            extent = self.fold(source, extent)?;
        }
        self.drive.set_stream(request.owner());
        let counted = self.count(Command { kind: request.kind, extent });
        self.drive.set_stream(0);
        counted
    }

    /// Writes units from `first` on, `units` at the most and none of which was ever written, each by a request of its own. Returns how
    /// many: none where the layer takes them but one by one.
    pub(in crate::run) fn fill(&mut self, first: u64, units: u64) -> Result<u64> {
        if !self.fills_runs {
            return Ok(0);
        }
        let most = units.min(MOST_UNITS) as u32;
        let done = u64::from(self.drive.fill(first, most, &mut self.verifier)?);
        self.precondition_bytes += done * self.unit_bytes();
        self.watch_many(done)?;
        Ok(done)
    }
}
