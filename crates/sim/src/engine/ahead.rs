//! What will be looked at soon is asked for. Where blocks are collected thousands of operations wait, with their gates more than the caches
//! next to the processor hold, and each is looked at a few times: when it is planned, let go, started and ended. Never changes a result.

use super::gates::{OPERATION, REQUEST};
use super::{Engine, Pending};
use palimpsest_flash::prefetch::{prefetch, prefetch_place};
use palimpsest_ftl_api::plan::{Io, OperationKind};

/// A free place is asked for so many operations before it is taken.
const AHEAD: usize = 4;

impl Engine {
    /// The place that an operation takes soon.
    #[inline]
    pub(super) fn ask_for_free(&self) {
        if let Some(&later) = self.free.len().checked_sub(AHEAD).and_then(|index| self.free.get(index)) {
            self.ask_for(later);
        }
    }

    /// Operation `index`, if it is one.
    #[inline]
    pub(super) fn ask_for(&self, index: u32) {
        if let Some(pending) = self.pending.get(index as usize) {
            prefetch_place(pending);
            prefetch_place(&pending.ready_at);
        }
    }

    /// What the end of operation `index`, which starts, changes.
    #[inline]
    pub(super) fn ask_for_end(&self, io: &Io, index: u32) {
        let Pending { operation, .. } = &self.pending[index as usize];
        io.plan.gates.prefetch(operation.signal);
        if operation.kind == OperationKind::Program {
            let first = operation.block * self.geometry.pages_per_block;
            io.plan.under_way.prefetch(operation.under_way, first + u32::from(operation.page));
        }
    }
}

/// The operation that waits for the data of the read `index`, which comes over the bus.
#[inline]
pub(super) fn ask_for_waiter(pending: &[Pending], io: &Io, index: u32) {
    let signal = pending[index as usize].operation.signal;
    let Some(slot) = io.plan.gates.slots.get(signal.slot() as usize) else { return };
    if (OPERATION..REQUEST).contains(&slot.waiters) {
        prefetch(pending, (slot.waiters & !OPERATION) as usize);
    }
}
