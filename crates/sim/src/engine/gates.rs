//! Closing of gates: operations and requests that wait for them continue.
//!
//! Ignored here: the order on a block, which `order` adds.

use super::{Engine, Event, NONE};
use crate::events::Key;
use palimpsest_ftl_api::plan::{Gate, Io, NO_WAITER, OperationKind};

/// A waiter of a gate.
#[derive(Clone, Copy)]
pub(super) enum Waiter {
    /// An operation.
    Operation(u32),
    /// Another gate, by slot.
    Gate(u32),
    /// The completion of a request.
    Request(u32),
    /// A transfer over the host link, by index in [`Crossings`].
    Crossing(u32),
}

/// Marks a request at the end of a list of waiters, in place of [`NO_WAITER`].
pub(super) const REQUEST: u32 = 1 << 31;
/// Marks an operation at the end of a list of waiters.
pub(super) const OPERATION: u32 = 1 << 30;

/// The waiter at the end of a list, if any.
#[inline]
pub(super) fn last_of(end: u32) -> Option<Waiter> {
    match end {
        NO_WAITER => None,
        end if end >= REQUEST => Some(Waiter::Request(end & !REQUEST)),
        end => Some(Waiter::Operation(end & !OPERATION)),
    }
}

/// An entry of a gate's list of waiters.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) waiter: Waiter,
    pub(super) next: u32,
}

/// Lists of waiters.
#[derive(Default)]
pub(super) struct Edges {
    pub(super) entries: Vec<Edge>,
    pub(super) free: Vec<u32>,
    /// Slots of gates that are being signalled.
    pub(super) closing: Vec<u32>,
}

impl Engine {
    /// Makes the completion of request `id` wait for `gate`. The gate also waits for [`Self::planned`], which must be
    /// called once.
    #[inline]
    pub fn watch(&mut self, io: &mut Io, gate: Gate, id: u32) {
        io.plan.gates.expect(gate);
        let slot = &mut io.plan.gates.slots[gate.slot() as usize];
        if slot.waiters == NO_WAITER {
            slot.waiters = REQUEST | id;
        } else {
            self.add_waiter(io, gate, Waiter::Request(id));
        }
    }

    #[inline]
    pub(super) fn add_waiter(&mut self, io: &mut Io, gate: Gate, waiter: Waiter) {
        let slot = &mut io.plan.gates.slots[gate.slot() as usize];
        slot.waiters = match waiter {
            Waiter::Operation(index) if slot.waiters == NO_WAITER => OPERATION | index,
            _ => self.add_edge(waiter, slot.waiters),
        };
    }

    /// Adds `waiter` before `next` in a list; returns the new head.
    #[inline]
    pub(super) fn add_edge(&mut self, waiter: Waiter, next: u32) -> u32 {
        let edge = Edge { waiter, next };
        match self.edges.free.pop() {
            Some(index) => {
                self.edges.entries[index as usize] = edge;
                index
            }
            None => {
                self.edges.entries.push(edge);
                self.edges.entries.len() as u32 - 1
            }
        }
    }

    /// Releases the waiter at `edge`; returns the next entry.
    #[inline]
    pub(super) fn pass_edge(&mut self, edge: u32) -> u32 {
        let Edge { waiter, next } = self.edges.entries[edge as usize];
        self.edges.free.push(edge);
        self.pass(waiter);
        next
    }

    /// Counts one signal of the gate in `slot`.
    #[inline]
    pub(super) fn signal(&mut self, io: &mut Io, slot: u32) {
        let gate = &mut io.plan.gates.slots[slot as usize];
        if gate.remaining > 1 {
            gate.remaining -= 1;
        } else if gate.due == 0 && gate.waiters >= OPERATION && self.timeline.is_none() {
            // Fast path: most gates have one signal from a read, and one waiter, a program or a request.
            gate.remaining = 0;
            let waiter = last_of(gate.waiters);
            let generation = gate.generation;
            let sources = gate.sources;
            self.joins.drop_list(sources);
            io.plan.gates.close(Gate::new(slot, generation));
            if let Some(waiter) = waiter {
                self.pass(waiter);
            }
        } else {
            self.edges.closing.push(slot);
            self.close_listed(io);
        }
        if !self.plan.woken.is_empty() {
            // Lists of waiters are in reverse order.
            self.plan.woken.reverse();
            self.kick_woken(io);
        }
    }

    /// Counts one signal of each gate in `closing`, and closes gates without further expectations.
    #[inline]
    pub(super) fn close_listed(&mut self, io: &mut Io) {
        while let Some(slot) = self.edges.closing.pop() {
            let gate = &mut io.plan.gates.slots[slot as usize];
            gate.remaining -= 1;
            if gate.remaining > 0 {
                continue;
            }
            let due = Key(std::mem::take(&mut gate.due));
            if due > self.events.last() {
                gate.remaining = 1;
                self.events.add(due);
                continue;
            }
            let mut next = gate.waiters;
            let generation = gate.generation;
            let sources = gate.sources;
            self.joins.drop_list(sources);
            io.plan.gates.close(Gate::new(slot, generation));
            self.noted(move |engine| engine.record_gate(slot, next));
            while next < OPERATION {
                next = self.pass_edge(next);
            }
            if let Some(last) = last_of(next) {
                self.pass(last);
            }
        }
    }

    /// Makes `gate`, which must be open, wait for all programs under way.
    #[cold]
    pub fn follow_programs(&mut self, io: &mut Io, gate: Gate) {
        for index in self.pending.live() {
            if self.pending[index].kind == OperationKind::Program {
                io.plan.gates.expect(gate);
                let head = self.pending.details(index).followers;
                self.pending.details_mut(index).followers = self.add_edge(Waiter::Gate(gate.slot()), head);
            }
        }
    }

    #[inline]
    fn pass(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::Crossing(index) => self.cross(index),
            Waiter::Gate(slot) => self.edges.closing.push(slot),
            Waiter::Request(id) if self.link.t_request == 0 => self.results.completed.push(id),
            Waiter::Request(id) => {
                self.events.push(self.now + self.link.t_request, Event::Answered(id));
                if self.causality.is_some() {
                    self.results.ended_in_drive.push(id);
                }
            }
            Waiter::Operation(index) => {
                debug_assert_ne!(index, NONE);
                let die = self.release(index);
                self.wake(die);
            }
        }
    }
}
