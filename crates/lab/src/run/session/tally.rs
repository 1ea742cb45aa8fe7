//! Requests and bytes of the host in a session: preconditioning, warm-up and measurement. Ignored: requests of the
//! layer itself.

use super::Session;
use crate::metrics::recorder::FlashTotals;
use crate::metrics::summary::{Host, Requests};
use palimpsest_flash::geometry::{Divisor, Extent, RequestKind};
use palimpsest_flash::units::Nanos;
use palimpsest_sim::drive::Command;

/// Counters of the host.
pub(in crate::run) struct Tally {
    pub(in crate::run) requests: Requests,
    pub(in crate::run) host: Host,
    /// Arrivals of the first and the last measured request.
    pub(in crate::run) arrivals: (Option<Nanos>, Nanos),
    pub(in crate::run) precondition_bytes: u64,
    /// Requests since the end of the drive's life, which take no time.
    pub(super) untimed: u64,
    /// Bytes that the host wrote between preconditioning and the measurement.
    warmup_bytes: u64,
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
            precondition_bytes: 0,
            untimed: 0,
            warmup_bytes: 0,
            timed_until: None,
            subpage: Divisor::new(subpage),
        }
    }

    /// Starts the measurement: all requests so far are preconditioning or warm-up.
    pub(super) fn start_measuring(&mut self) {
        self.requests = Requests::default();
        self.warmup_bytes = std::mem::take(&mut self.host).bytes_written;
        self.arrivals = (None, 0);
    }

    /// Bytes that the host wrote since preconditioning.
    pub(in crate::run) fn bytes_since_precondition(&self) -> u64 {
        self.warmup_bytes + self.host.bytes_written
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
        let Tally { requests, host, .. } = &mut self.tally;
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
            }
            RequestKind::Trim => requests.trim += 1,
            RequestKind::Flush => requests.flush += 1,
        }
    }
}
