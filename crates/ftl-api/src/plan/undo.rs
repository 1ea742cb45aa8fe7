//! Rollback of a plan at a power cut: restores the counts of operations that had not ended.
//!
//! Ignored here: cells, which flash rolls back itself.

use super::arrival::Arrival;
use super::{Cause, Gate, Io, IoCounters};
use std::collections::BTreeMap;

/// Counts added by each operation that has not ended, by number.
#[derive(Default)]
pub struct PlanUndo {
    added: BTreeMap<u64, IoCounters>,
    /// The counters when the last operation was planned.
    last: IoCounters,
}

/// The side of an [`Io`] that the drive cuts the power by.
pub trait PowerIo {
    /// Logs every planned operation from now on, so that [`Self::lose_power`] can roll back.
    fn keep_undo(&mut self);

    /// Starts the measurement: stores the counters in [`Io::counters_before`].
    fn measure(&mut self);

    /// Drops the log of flash operation `number`, which has ended.
    fn ended(&mut self, number: u64);

    /// Applies a power cut to plan and flash. If the plan is protected, only reads that serve a reader alone are
    /// dropped, and all other operations still run. Otherwise operations that have not ended are rolled back, and the
    /// operations `running` in the arrays leave torn pages. Every gate closes. Returns the number of operations that do
    /// not run.
    fn lose_power(&mut self, running: &[u64]) -> u64;

    /// Cuts the power during flash operation number `operation`; `None`: never. See
    /// [`palimpsest_flash::nand::Nand::set_power_cut_at`].
    fn set_power_cut_at(&mut self, operation: Option<u64>);
}

impl PowerIo for Io {
    fn keep_undo(&mut self) {
        self.nand.keep_undo();
        self.undo = Some(Box::new(PlanUndo { added: BTreeMap::new(), last: self.counters.clone() }));
    }

    fn measure(&mut self) {
        self.nand.measure();
        self.counters_before.clone_from(&self.counters);
    }

    #[cold]
    #[inline(never)]
    fn ended(&mut self, number: u64) {
        self.nand.ended(number);
        if let Some(undo) = &mut self.undo {
            undo.added.remove(&number);
        }
    }

    fn lose_power(&mut self, running: &[u64]) -> u64 {
        let undo = self.undo.take();
        let undone = if self.plan.protected {
            let is_dropped = |added: &IoCounters| Cause::DROPPED.iter().any(|&cause| added.reads[cause as usize] > 0);
            let all = undo.into_iter().flat_map(|undo| undo.added);
            let dropped: Vec<_> = all.filter(|(_, added)| is_dropped(added)).collect();
            dropped.iter().for_each(|(number, added)| self.take_back(*number, added));
            self.nand.drop_undo(dropped.into_iter().map(|(number, _)| number))
        } else {
            let added = undo.into_iter().flat_map(|undo| undo.added);
            added.for_each(|(number, added)| self.take_back(number, &added));
            self.nand.lose_power(running)
        };
        self.plan.gates.close_all();
        self.plan.barrier = Gate::NONE;
        self.plan.replacing.clear();
        self.plan.under_way.clear();
        self.plan.clear();
        self.dies.iter_mut().for_each(|die| *die = Default::default());
        (self.present.gate, self.present.buffer_taken, self.present.arrival) = (Gate::NONE, 0, Arrival::default());
        undone
    }

    fn set_power_cut_at(&mut self, operation: Option<u64>) {
        self.nand.set_power_cut_at(operation);
    }
}

impl Io {
    /// Subtracts the counts `added` of operation `number`, which did not end.
    fn take_back(&mut self, number: u64, added: &IoCounters) {
        self.counters.take_back(added);
        if self.nand.precedes_measurement(number) {
            self.counters_before.take_back(added);
        }
    }

    /// Logs the counts of the operation planned last.
    #[cold]
    #[inline(never)]
    pub(super) fn log_undo(&mut self) {
        let Some(undo) = &mut self.undo else { return };
        undo.added.insert(self.nand.operations(), self.counters.since(&undo.last));
        undo.last.clone_from(&self.counters);
    }
}
