//! Power cuts and failing dies of a run: verification of reads, and counters of the measurement after a cut. Ignored:
//! recovery, which the drive does.

use super::Session;
use palimpsest_flash::error::Result;
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::nand::data::buffers::slabs::Loan;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::plan::port::HostPort;
use palimpsest_sim::drive::{Command, Verifier};
use palimpsest_sim::shadow::Shadow;

/// Verifies reads, and stores their bytes.
pub(in crate::run) struct ShadowVerifier {
    pub(in crate::run) shadow: Shadow,
    /// Bytes of reads, if the caller wants them.
    pub(in crate::run) returned: Option<Vec<u8>>,
    /// Loans of reads, if the caller accepts loans; bytes without a loan are in `returned`.
    pub(in crate::run) loans: Option<Vec<Loan>>,
    /// `returned`, set aside after a power cut, because the verifier alone reads back then.
    pub(in crate::run) set_aside: Option<Vec<u8>>,
    /// Reads of the host that returned an error.
    pub(in crate::run) failed: u64,
    /// Of each planned request in flight: the bytes of a read, and whether it failed.
    reads: Vec<(Vec<u8>, bool)>,
    /// The value of `failed` when the last of these was planned.
    failed_before: u64,
}

impl ShadowVerifier {
    pub(in crate::run) fn new(shadow: Shadow) -> Self {
        ShadowVerifier {
            shadow,
            returned: None,
            loans: None,
            set_aside: None,
            failed: 0,
            reads: Vec::new(),
            failed_before: 0,
        }
    }

    /// Starts to store the results of reads, with their `bytes` if the drive stores bytes; none may be in flight.
    pub(in crate::run) fn begin_reads(&mut self, bytes: bool) {
        self.reads.clear();
        (self.returned, self.set_aside, self.failed_before) = (bytes.then(Vec::new), None, self.failed);
    }

    /// Stores the bytes since the last call for request `flight`.
    pub(in crate::run) fn keep_read(&mut self, flight: u32) {
        if self.reads.len() <= flight as usize {
            self.reads.resize_with(flight as usize + 1, Default::default);
        }
        let bytes = self.returned.as_mut().map(std::mem::take).unwrap_or_default();
        self.reads[flight as usize] = (bytes, self.failed > self.failed_before);
        self.failed_before = self.failed;
    }

    /// The bytes of request `flight`, and whether it failed.
    pub(in crate::run) fn take_read(&mut self, flight: u32) -> (Vec<u8>, bool) {
        self.reads.get_mut(flight as usize).map(std::mem::take).unwrap_or_default()
    }
}

impl Verifier for ShadowVerifier {
    fn served(&mut self, io: &mut Io, command: Command) -> Result<()> {
        let unreadable = self.shadow.unreadable;
        if command.kind != RequestKind::Read || self.returned.is_none() {
            let served = self.shadow.served(io, command);
            self.failed += u64::from(self.shadow.unreadable > unreadable);
            return served;
        }
        let mut delivered = io.host.take_delivered();
        let lends = self.loans.is_some();
        let returned = self.returned.as_mut();
        self.shadow.verify(command.extent, &mut delivered, io.buffers(), returned.filter(|_| !lends))?;
        if let (Some(loans), Some(returned)) = (&mut self.loans, &mut self.returned) {
            self.shadow.lend(command.extent, &delivered, io.buffers(), (loans, returned));
        }
        self.failed += u64::from(self.shadow.unreadable > unreadable);
        io.host.reuse(delivered);
        Ok(())
    }

    fn filled(&mut self, port: &HostPort, first: u32, writes: u32, width: u32) {
        self.shadow.filled(port, first, writes, width);
    }

    fn power_failed(&mut self, io: &mut Io, command: Command) {
        self.set_aside = self.returned.take();
        self.shadow.power_failed(io, command);
    }

    fn planned(&mut self, id: u32) {
        self.keep_read(id);
    }

    fn durable(&mut self, extent: Option<Extent>, change: u64) {
        self.shadow.durable(extent, change);
    }

    fn trims_durable(&mut self, change: u64) {
        self.shadow.trims_durable(change);
    }

    fn power_lost(&mut self, unanswered: &[u64]) {
        self.set_aside = self.returned.take();
        self.shadow.power_lost(unanswered);
    }
}

impl Session<'_> {
    /// Whether power cuts are scheduled.
    pub(in crate::run) fn loses_power(&self) -> bool {
        self.config.loses_power()
    }

    /// Takes the baseline anew after a power cut, which rolled back operations, some from before the measurement.
    #[cold]
    pub(super) fn note_power_cut(&mut self) {
        self.baseline.power_cuts = self.drive.power.cuts;
        self.baseline.nand.clone_from(self.drive.io.nand.counters_before());
        self.baseline.io.clone_from(&self.drive.io.counters_before);
    }
}
