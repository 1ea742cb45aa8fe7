//! Completions as observers, the host and the timeline of a drive see them.
//!
//! Ignored: flash operations, which the engine reports.

use super::{Command, Directives, Drive, Outside};
use crate::observe::Observer;
use crate::timeline::Recording;
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_ftl_api::zones::ZoneError;

/// A request that a drive with zones refused.
#[derive(Debug, Clone, Copy)]
pub struct Refused {
    /// The request.
    pub command: Command,
    /// The status.
    pub error: ZoneError,
    /// True if submitted in the measurement.
    pub measured: bool,
}

/// The receivers of completions.
#[derive(Default)]
pub struct Reports {
    /// True if requests submitted now are not measured: the observer must not see them.
    pub warming_up: bool,
    /// True if the observer receives the owners of requests.
    pub owners: bool,
    /// Completed requests that the host has not taken yet, with their response times; `None` if the host never takes
    /// them.
    pub finished: Option<Vec<(Command, Nanos)>>,
    /// Requests that a drive with zones refused, for the caller to take.
    pub refused: Vec<Refused>,
    /// Decisions outside of the drive, if any.
    pub outside: Option<Outside>,
    /// Recording of a timeline whose window has passed.
    recording: Option<Recording>,
}

impl Reports {
    /// Tells the host that `command` has completed, `latency` after its arrival.
    #[inline]
    pub(super) fn finish(&mut self, command: Command, latency: Nanos) {
        if let Some(finished) = &mut self.finished {
            finished.push((command, latency));
        }
    }

    /// Tells `observer` that `command`, which arrived at `arrival`, has completed.
    #[inline]
    pub(super) fn observe(&self, command: Command, arrival: Nanos, now: Nanos, observer: &mut dyn Observer) {
        let bytes = u64::from(command.extent.sectors) * SECTOR_BYTES;
        observer.request_completed(command.kind, bytes, now - arrival, now);
        if self.owners {
            let Directives { owner, .. } = command.directives;
            observer.owner_completed(owner, command.kind, now - arrival, now);
        }
    }
}

impl Drive {
    /// Records the completion of `command`, request `id`, and keeps the recording when the window has passed.
    #[inline]
    pub(super) fn record_completion(&mut self, id: u32, command: &Command, observer: &mut dyn Observer) {
        let now = self.engine.now();
        let Some(timeline) = &mut self.engine.timeline else { return };
        if let Some((parts, waits)) = timeline.completed(id, now) {
            observer.request_explained(command, &parts, &waits);
        }
        if timeline.is_over(now) {
            self.reports.recording = self.engine.timeline.take().map(|timeline| timeline.recording());
        }
    }

    /// The recording so far; `None` without a timeline.
    pub fn recording(&self) -> Option<Recording> {
        self.reports.recording.clone().or_else(|| Some(self.engine.timeline.as_ref()?.recording()))
    }
}
