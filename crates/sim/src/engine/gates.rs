//! Closing of gates: what waits for them goes on.

use super::{Engine, NONE};
use palimpsest_ftl_api::plan::{Gate, Io, NO_WAITER};

/// What waits for a gate.
#[derive(Clone, Copy)]
pub(super) enum Waiter {
    /// An operation.
    Operation(u32),
    /// Another gate, by slot.
    Gate(u32),
    /// Completion of a request.
    Request(u32),
}

/// A link of a gate's list of waiters.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) waiter: Waiter,
    pub(super) next: u32,
}

impl Engine {
    #[inline]
    pub(super) fn add_waiter(&mut self, io: &mut Io, gate: Gate, waiter: Waiter) {
        let slot = &mut io.plan.gates.slots[gate.slot as usize];
        let edge = Edge { waiter, next: slot.waiters };
        slot.waiters = match self.free_edges.pop() {
            Some(index) => {
                self.edges[index as usize] = edge;
                index
            }
            None => {
                self.edges.push(edge);
                self.edges.len() as u32 - 1
            }
        };
    }

    /// One thing that the gate in `slot` waits for has ended.
    #[inline]
    pub(super) fn signal(&mut self, io: &mut Io, slot: u32) {
        self.closing.push(slot);
        while let Some(slot) = self.closing.pop() {
            let gate = &mut io.plan.gates.slots[slot as usize];
            gate.remaining -= 1;
            if gate.remaining > 0 {
                continue;
            }
            let (mut next, generation) = (gate.waiters, gate.generation);
            io.plan.gates.close(Gate { slot, generation });
            self.record_gate(slot, next);
            while next != NO_WAITER {
                let Edge { waiter, next: following } = self.edges[next as usize];
                self.free_edges.push(next);
                next = following;
                self.pass(waiter);
            }
        }
        // What waits for a gate is listed from the last on.
        self.woken.reverse();
        self.kick_woken();
    }

    #[inline]
    fn pass(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::Gate(slot) => self.closing.push(slot),
            Waiter::Request(id) => self.completed.push(id),
            Waiter::Operation(index) => {
                debug_assert_ne!(index, NONE);
                let die = self.release(index);
                self.woken.push(die);
            }
        }
    }
}
