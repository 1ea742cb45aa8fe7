//! Counts of ended operations, for time series.

use super::Engine;
use palimpsest_ftl_api::plan::{Cause, OperationKind};

/// Operations ended since the engine was built.
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
    pub(super) fn count(&mut self, kind: OperationKind, cause: Cause) {
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

impl Engine {
    /// Counts `erases` outside simulated time, with `energy` in picojoules.
    pub fn count_erases(&mut self, erases: u64, energy: u64) {
        self.ended.erases += erases;
        self.spent = self.spent.wrapping_add_unsigned(energy);
    }

    /// Operations ended so far.
    #[inline]
    pub fn ended(&self) -> Ended {
        self.ended
    }
}
