//! Reads that others overtake, and gates that wait for them.
//!
//! A read of collection or upkeep has no request behind it, so that it does not suspend programs, and steps of
//! collection let other reads pass. If a request, or an operation of class 0, waits for such a read, the read gets the
//! same class, and may suspend programs as reads of the host do. The wait may lead through several gates.
//!
//! Ignored: programs that a request waits for, which keep their class.

use super::gates::{OPERATION, REQUEST};
use super::ready::First;
use super::{Engine, NONE};
use palimpsest_ftl_api::plan::{Gate, Io, NO_WAITER, Operation, OperationKind};

/// What a gate waits for: a read, or another gate.
#[derive(Clone, Copy)]
enum Source {
    Read(u32),
    Gate(Gate),
}

/// Lists of sources.
#[derive(Default)]
pub(super) struct Joins {
    entries: Vec<(Source, u32)>,
    free: Vec<u32>,
}

impl Joins {
    /// Adds `source` before `next`; returns the new head.
    fn add(&mut self, source: Source, next: u32) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.entries[index as usize] = (source, next);
                index
            }
            None => {
                self.entries.push((source, next));
                self.entries.len() as u32 - 1
            }
        }
    }

    /// Frees the list `head` of a gate that closes.
    #[inline]
    pub(super) fn drop_list(&mut self, mut head: u32) {
        while head < OPERATION {
            self.free.push(head);
            head = self.entries[head as usize].1;
        }
    }
}

impl Engine {
    /// Adds `operation`, under `index`, to the sources of its gate if others overtake it. Otherwise an operation of
    /// class 0 hands its class on to the reads that it follows.
    #[inline]
    pub(super) fn rank(&mut self, io: &mut Io, index: u32, operation: &Operation) {
        let Operation { kind, cause, step, after, signal, .. } = *operation;
        let is_first = self.class_of(kind, cause, step) == 0 && !cause.is_upkeep();
        if is_first {
            self.hurry(io, after);
        } else if kind == OperationKind::Read {
            self.add_source(io, signal.slot(), index);
        }
    }

    /// Adds read `index` to the sources of its gate, in the slot `signal`, if others overtake the read.
    #[inline]
    pub(super) fn add_source(&mut self, io: &mut Io, signal: u32, index: u32) {
        if signal == NONE {
            return;
        }
        let slot = &mut io.plan.gates.slots[signal as usize];
        // Most gates have one source, which needs no list.
        slot.sources = match slot.sources {
            NO_WAITER => OPERATION | index,
            head => self.joins.add(Source::Read(index), head),
        };
    }

    /// Hands the sources of linked gates on, in the plan of `io`: to the later gate, or to the request if that is its
    /// gate. Must be called when the operations of the plan are known.
    #[inline(never)]
    pub(super) fn join_links(&mut self, io: &mut Io) {
        let mut any = false;
        for index in 0..io.plan.links.len() {
            let (earlier, later) = io.plan.links[index];
            let has_sources =
                io.plan.gates.is_open(earlier) && io.plan.gates.slots[earlier.slot() as usize].sources != NO_WAITER;
            if !has_sources || !io.plan.gates.is_open(later) {
                continue;
            }
            if later == io.present.gate {
                self.hurry(io, earlier);
                continue;
            }
            let slot = &mut io.plan.gates.slots[later.slot() as usize];
            slot.sources = self.joins.add(Source::Gate(earlier), slot.sources);
            any = true;
        }
        if any {
            for index in 0..io.plan.operations.len() {
                let operation = io.plan.operations[index];
                if self.class_of(operation.kind, operation.cause, operation.step) == 0 && !operation.cause.is_upkeep() {
                    self.hurry(io, operation.after);
                }
            }
        }
    }

    /// Moves all reads that `gate` waits for to class 0, because a request waits for them.
    #[inline]
    pub(super) fn hurry(&mut self, io: &mut Io, gate: Gate) {
        if io.plan.gates.is_open(gate) && io.plan.gates.slots[gate.slot() as usize].sources != NO_WAITER {
            self.hurry_sources(io, gate);
        }
    }

    #[cold]
    #[inline(never)]
    fn hurry_sources(&mut self, io: &mut Io, gate: Gate) {
        let mut gates = vec![gate];
        while let Some(gate) = gates.pop() {
            if !io.plan.gates.is_open(gate) {
                continue;
            }
            // Each source is handed on once, because many gates may wait for the same.
            let sources = std::mem::replace(&mut io.plan.gates.slots[gate.slot() as usize].sources, NO_WAITER);
            let mut next = sources;
            while next < OPERATION {
                let (source, behind) = self.joins.entries[next as usize];
                match source {
                    Source::Read(index) => self.hurry_read(gate, index),
                    Source::Gate(earlier) => gates.push(earlier),
                }
                next = behind;
            }
            if (OPERATION..REQUEST).contains(&next) {
                self.hurry_read(gate, next & !OPERATION);
            }
            self.joins.drop_list(sources);
        }
    }

    /// Moves read `index`, which signals `gate`, to class 0, unless it has started.
    fn hurry_read(&mut self, gate: Gate, index: u32) {
        let pending = self.pending[index];
        // The entry of a read that has ended may belong to another operation.
        if pending.kind != OperationKind::Read || pending.signal != gate.slot() || pending.is_urgent() {
            return;
        }
        let die = pending.die();
        let plane = pending.plane;
        let class = self.class(index);
        self.pending[index].join();
        if pending.waits > 0 || !self.hardware.ready[plane as usize].remove_read(pending.order, class, pending.is_low())
        {
            return;
        }
        self.hardware.dies[die as usize].ready -= 1;
        let planes = self.setup.geometry.planes_per_die;
        let firsts =
            (die * planes..(die + 1) * planes).filter_map(|plane| self.hardware.ready[plane as usize].first(class));
        self.hardware.dies[die as usize].first[class] = firsts.min_by_key(|first| first.turn).unwrap_or(First::NONE);
        self.join_ready(index, pending.order, (die, plane), 0, false);
        self.pending[index].ready_at = pending.ready_at;
        self.wake(die);
    }
}
