//! Results for the drive: completed requests, freed buffer space, finished collections, and counts of ended operations
//! for time series.
//!
//! Ignored: the times of operations, which the timeline records.

use super::Engine;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Cause, OperationKind};

/// Ended operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// Page reads.
    pub reads: u64,
    /// Page programs.
    pub programs: u64,
    /// Page programs of collection and merging.
    pub gc_programs: u64,
    /// Erases.
    pub erases: u64,
}

impl Ended {
    #[inline]
    fn count(&mut self, kind: OperationKind, cause: Cause) {
        match kind {
            OperationKind::Read => self.reads += 1,
            OperationKind::Program => {
                self.programs += 1;
                self.gc_programs += u64::from(matches!(cause, Cause::Gc | Cause::Merge));
            }
            OperationKind::Erase => self.erases += 1,
        }
    }
}

/// Results that the drive has not taken, and counts.
#[derive(Default)]
pub(super) struct Results {
    pub(super) completed: Vec<u32>,
    /// Requests that the drive has completed but the host still waits for; only in checked runs.
    pub(super) ended_in_drive: Vec<u32>,
    pub(super) buffer_freed: u64,
    pub(super) collections: Vec<Nanos>,
    /// Ended operations that were planned in the measurement.
    ended: Ended,
    /// Number of the last operation planned before the measurement.
    planned_before: u64,
    /// Energy of ended work, in picojoules.
    pub(super) spent: i64,
}

impl Results {
    /// Counts the end of operation `order`.
    #[inline]
    pub(super) fn count(&mut self, order: u64, kind: OperationKind, cause: Cause) {
        if order > self.planned_before {
            self.ended.count(kind, cause);
        }
    }
}

impl Engine {
    /// Starts the measurement: counts only operations that are planned from now on.
    pub fn measure(&mut self) {
        (self.results.ended, self.results.planned_before) = (Ended::default(), self.order);
    }

    /// True if no completion, freed buffer space or finished collection is pending.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.results.completed.is_empty()
            && self.results.collections.is_empty()
            && self.results.buffer_freed == 0
            && !(self.causality.is_some() && self.has_findings())
    }

    /// True if the check of times found a broken law, or must verify a request that has ended in the drive.
    #[inline]
    pub(super) fn has_findings(&self) -> bool {
        !self.results.ended_in_drive.is_empty() || self.causality.as_ref().is_some_and(|check| check.is_violated())
    }

    /// Takes a completed request.
    #[inline]
    pub fn take_completed(&mut self) -> Option<u32> {
        self.results.completed.pop()
    }

    /// Takes a request that the drive has completed but the host still waits for; only in checked runs.
    #[inline]
    pub fn take_ended_in_drive(&mut self) -> Option<u32> {
        self.results.ended_in_drive.pop()
    }

    /// Takes the number of freed subpages of the write buffer.
    #[inline]
    pub fn take_buffer_freed(&mut self) -> u64 {
        std::mem::take(&mut self.results.buffer_freed)
    }

    /// Takes the duration of an ended collection, from the start to the end of the erase.
    #[inline]
    pub fn take_collection(&mut self) -> Option<Nanos> {
        self.results.collections.pop()
    }

    /// Counts `erases` outside simulated time, with `energy` in picojoules.
    pub fn count_erases(&mut self, erases: u64, energy: u64) {
        self.results.ended.erases += erases;
        self.results.spent = self.results.spent.wrapping_add_unsigned(energy);
    }

    /// Ended operations that were planned in the measurement.
    #[inline]
    pub fn ended(&self) -> Ended {
        self.results.ended
    }
}
