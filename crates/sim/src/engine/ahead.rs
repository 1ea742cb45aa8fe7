//! Prefetches of data that the engine needs soon, because collection queues thousands of operations, whose gates exceed
//! the processor's inner caches. The engine touches each only when it is planned, released, started and ended.
//! Prefetches never change a result.

use super::Engine;
use super::gates::{OPERATION, REQUEST};
use super::pending::Operations;
use palimpsest_ftl_api::plan::{Io, OperationKind};

impl Engine {
    /// Prefetches data that changes when operation `index`, which starts now, ends.
    #[inline]
    pub(super) fn ask_for_end(&self, io: &Io, index: u32) {
        let pending = &self.pending[index];
        io.plan.gates.prefetch(pending.signal);
        if pending.kind == OperationKind::Program {
            let first = pending.block * self.setup.geometry.pages_per_block;
            io.plan.under_way.prefetch(pending.under_way, first + u32::from(pending.page));
        }
    }
}

/// Prefetches the operation that waits for the data of read `index`.
#[inline]
pub(super) fn ask_for_waiter(pending: &Operations, io: &Io, index: u32) {
    let Some(slot) = io.plan.gates.slots.get(pending[index].signal as usize) else { return };
    if (OPERATION..REQUEST).contains(&slot.waiters) {
        pending.ask_for(slot.waiters & !OPERATION);
    }
}
