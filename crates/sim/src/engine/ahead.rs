//! What will be looked at soon is asked for. Where blocks are collected thousands of operations wait, with their gates more than the caches
//! next to the processor hold, and each is looked at a few times: when it is planned, let go, started and ended. Never changes a result.

use super::Engine;
use super::gates::{OPERATION, REQUEST};
use super::pending::Operations;
use palimpsest_ftl_api::plan::{Io, OperationKind};

impl Engine {
    /// What the end of operation `index`, which starts, changes.
    #[inline]
    pub(super) fn ask_for_end(&self, io: &Io, index: u32) {
        let pending = &self.pending[index];
        io.plan.gates.prefetch(pending.signal);
        if pending.kind == OperationKind::Program {
            let first = pending.block * self.geometry.pages_per_block;
            io.plan.under_way.prefetch(pending.under_way, first + u32::from(pending.page));
        }
    }
}

/// The operation that waits for the data of the read `index`, which comes over the bus.
#[inline]
pub(super) fn ask_for_waiter(pending: &Operations, io: &Io, index: u32) {
    let Some(slot) = io.plan.gates.slots.get(pending[index].signal as usize) else { return };
    if (OPERATION..REQUEST).contains(&slot.waiters) {
        pending.ask_for(slot.waiters & !OPERATION);
    }
}
