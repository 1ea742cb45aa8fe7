//! Requests and bytes of the host in a session: preconditioning, warm-up and measurement. Ignored: requests of the
//! layer itself.

use super::Session;
use crate::metrics::recorder::FlashTotals;
use crate::metrics::summary::{Host, Requests};
use palimpsest_flash::command::Lifetime;
use palimpsest_flash::geometry::{Divisor, Extent, RequestKind};
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_sim::drive::Command;

/// Whether a write of the host named a placement identifier, and an expected lifetime.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::run) struct Named {
    pub(in crate::run) placement: bool,
    pub(in crate::run) lifetime: bool,
}

/// Counters of the host.
pub(in crate::run) struct Tally {
    pub(in crate::run) requests: Requests,
    pub(in crate::run) host: Host,
    /// Arrivals of the first and the last measured request.
    pub(in crate::run) arrivals: (Option<Nanos>, Nanos),
    /// The measurement had a time without a request, because no job had one due.
    pub(in crate::run) was_idle: bool,
    pub(in crate::run) precondition_bytes: u64,
    /// Requests since the end of the drive's life, which take no time.
    pub(super) untimed: u64,
    /// Bytes that the host wrote between preconditioning and the measurement.
    warmup_bytes: u64,
    /// Directives of the writes since preconditioning.
    pub(in crate::run) named: Named,
    /// First sector, and the sector behind the last, of the writes since preconditioning.
    span: (u64, u64),
    /// The same of all reads and writes.
    touched: (u64, u64),
    /// Totals and energy of all operations when timing ended; later ones take no time.
    pub(super) timed_until: Option<(FlashTotals, i64)>,
    /// Sectors of a subpage.
    subpage: Divisor,
}

impl Tally {
    /// Counters at 0, for subpages of `subpage` sectors.
    pub(super) fn new(subpage: u32) -> Self {
        Tally {
            requests: Requests::default(),
            host: Host::default(),
            arrivals: (None, 0),
            was_idle: false,
            precondition_bytes: 0,
            untimed: 0,
            warmup_bytes: 0,
            named: Named::default(),
            span: (u64::MAX, 0),
            touched: (u64::MAX, 0),
            timed_until: None,
            subpage: Divisor::new(subpage),
        }
    }

    /// Starts the measurement: all requests so far are preconditioning or warm-up.
    pub(super) fn start_measuring(&mut self) {
        self.requests = Requests::default();
        self.warmup_bytes = std::mem::take(&mut self.host).bytes_written;
        self.arrivals = (None, 0);
        self.was_idle = false;
    }

    /// Bytes that the host wrote since preconditioning.
    pub(in crate::run) fn bytes_since_precondition(&self) -> u64 {
        self.warmup_bytes + self.host.bytes_written
    }

    /// Bytes from the first to the last that the host wrote since preconditioning.
    pub(in crate::run) fn span_bytes(&self) -> u64 {
        self.span.1.saturating_sub(self.span.0) * SECTOR_BYTES
    }

    /// Bytes of the measurement, and bytes from the first to the last that the host read or wrote since
    /// preconditioning.
    pub(in crate::run) fn passed(&self) -> (u64, u64) {
        let (first, end) = self.touched;
        (self.host.bytes_read + self.host.bytes_written, end.saturating_sub(first) * SECTOR_BYTES)
    }

    /// The subpage that contains `sector`.
    #[inline]
    pub(in crate::run) fn subpage_of(&self, sector: u64) -> u32 {
        self.subpage.divide_wide(sector) as u32
    }

    /// Records the arrival of the next request.
    #[inline]
    pub(in crate::run) fn arrived(&mut self, at: Nanos) {
        self.arrivals = (self.arrivals.0.or(Some(at)), at);
    }

    /// Subpages that `extent` touches.
    #[inline]
    fn covered(&self, extent: Extent) -> u64 {
        match extent.sectors {
            0 => 0,
            _ => self.subpage.divide_wide(extent.end() - 1) - self.subpage.divide_wide(extent.sector) + 1,
        }
    }

    /// The host's transfers in the measurement. The link carries the blocks of the commands and no more.
    pub(in crate::run) fn host(&self, subpages_hit: u64) -> Host {
        let host = &self.host;
        Host {
            subpages_hit,
            bytes_transferred: host.bytes_read + host.bytes_written,
            subpages_transferred: host.subpages_read + host.subpages_written,
            ..self.host.clone()
        }
    }

    fn subtract(&mut self, command: Command) {
        let bytes = command.extent.bytes();
        let subpages = self.covered(command.extent);
        let (requests, host) = (&mut self.requests, &mut self.host);
        match command.kind {
            RequestKind::Read => {
                requests.read -= 1;
                host.bytes_read -= bytes;
                host.subpages_read -= subpages;
            }
            RequestKind::Write => {
                requests.write -= 1;
                host.bytes_written -= bytes;
                host.subpages_written -= subpages;
            }
            RequestKind::Trim => requests.trim -= 1,
            RequestKind::Flush => requests.flush -= 1,
        }
    }
}

impl Session<'_> {
    /// Subtracts `command`, which was counted at its submission and has no answer, or a refusal.
    pub(super) fn subtract(&mut self, command: Command) {
        self.tally.subtract(command);
        let Command { kind, extent, directives } = command;
        let owner = directives.owner;
        let sectors = extent.sectors;
        self.recorder.volumes.iter_mut().for_each(|volumes| volumes.of(owner).refused(kind, sectors));
        self.recorder.jobs.iter_mut().for_each(|jobs| jobs.of(owner).refused(kind, sectors));
    }

    /// Counts `command`.
    #[inline(always)]
    pub(in crate::run) fn tally(&mut self, Command { kind, extent, directives }: Command) {
        let bytes = extent.bytes();
        let subpages = self.tally.covered(extent);
        if let Some(volumes) = &mut self.recorder.volumes {
            volumes.of(directives.owner).submitted(kind, extent.sectors);
        }
        if let Some(jobs) = &mut self.recorder.jobs {
            jobs.of(directives.owner).submitted(kind, extent.sectors);
        }
        self.tally.untimed += u64::from(self.worn_out.is_some());
        let Tally { requests, host, named, span, touched, .. } = &mut self.tally;
        if matches!(kind, RequestKind::Read | RequestKind::Write) {
            *touched = (touched.0.min(extent.sector), touched.1.max(extent.end()));
        }
        match kind {
            RequestKind::Read => {
                requests.read += 1;
                host.bytes_read += bytes;
                host.subpages_read += subpages;
            }
            RequestKind::Write => {
                requests.write += 1;
                host.bytes_written += bytes;
                host.subpages_written += subpages;
                named.placement |= directives.placed;
                named.lifetime |= directives.lifetime != Lifetime::Unknown;
                *span = (span.0.min(extent.sector), span.1.max(extent.end()));
            }
            RequestKind::Trim => requests.trim += 1,
            RequestKind::Flush => requests.flush += 1,
        }
    }
}
