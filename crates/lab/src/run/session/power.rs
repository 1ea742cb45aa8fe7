//! A run and power cuts: what is verified, and what the counters of the measurement are after a cut.

use super::Session;
use palimpsest_flash::error::Result;
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_ftl_api::plan::Io;
use palimpsest_sim::drive::{Command, Verifier};
use palimpsest_sim::shadow::Shadow;

/// Verifies reads, and keeps the bytes of one.
pub(in crate::run) struct ShadowVerifier {
    pub(in crate::run) shadow: Shadow,
    /// Where the caller wants them: the bytes of reads are appended.
    pub(in crate::run) returned: Option<Vec<u8>>,
    /// The same since the power failed: what is read back then is for the verifier alone.
    pub(in crate::run) set_aside: Option<Vec<u8>>,
    /// Reads that the host got an error for.
    pub(in crate::run) failed: u64,
}

impl Verifier for ShadowVerifier {
    fn served(&mut self, io: &mut Io, command: Command) -> Result<()> {
        let unreadable = self.shadow.unreadable;
        if command.kind != RequestKind::Read || self.returned.is_none() {
            let served = self.shadow.served(io, command);
            self.failed += u64::from(self.shadow.unreadable > unreadable);
            return served;
        }
        let delivered = io.host.take_delivered();
        self.shadow.verify(command.extent, delivered.clone(), io.buffers())?;
        self.failed += u64::from(self.shadow.unreadable > unreadable);
        if let Some(returned) = &mut self.returned {
            self.shadow.assemble(command.extent, &delivered, io.buffers(), returned);
        }
        Ok(())
    }

    fn power_failed(&mut self, io: &mut Io, command: Command) {
        self.set_aside = self.returned.take();
        self.shadow.power_failed(io, command);
    }

    fn durable(&mut self, extent: Option<Extent>, change: u64) {
        self.shadow.durable(extent, change);
    }

    fn power_lost(&mut self, unanswered: &[u64]) {
        self.set_aside = self.returned.take();
        self.shadow.power_lost(unanswered);
    }
}

impl Session<'_> {
    /// Whether the power was to fail.
    pub(in crate::run) fn loses_power(&self) -> bool {
        self.config.loses_power()
    }

    /// A power cut took back operations that were planned, some of them before the measurement began.
    #[cold]
    pub(super) fn note_power_cut(&mut self) {
        self.baseline.power_cuts = self.drive.power_cuts;
        self.baseline.nand.limit(self.drive.io.nand.counters());
        self.baseline.io.limit(&self.drive.io.counters);
    }
}
