//! Notes of the engine in a timeline. Without a timeline each note costs one test; the rest is kept out of line so that
//! the engine stays as fast.

use super::gates::{OPERATION, Waiter, last_of};
use super::pending::Pending;
use super::{Engine, NONE};
use crate::timeline::{Holder, Place, Span, Timeline, Window};
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Cause, NO_WAITER, Operation, OperationKind};

/// Keeps `note` out of the engine's functions.
#[cold]
#[inline(never)]
fn apart(engine: &mut Engine, note: impl FnOnce(&mut Engine)) {
    note(engine);
}

impl Engine {
    /// Calls `note` if a timeline is recorded.
    #[inline(always)]
    pub(super) fn noted(&mut self, note: impl FnOnce(&mut Engine)) {
        if self.timeline.is_some() {
            apart(self, note);
        }
    }

    /// Records `window` of the measurement, which starts now.
    pub fn record(&mut self, window: Window) {
        self.timeline = Some(Box::new(Timeline::new(window, self.now, self.order)));
        (0..self.hardware.dies.len() as u32).for_each(|die| self.record_holder(die));
    }

    /// Records the work of `die` from now on.
    pub(super) fn record_holder(&mut self, die: u32) {
        let Some(timeline) = &mut self.timeline else { return };
        let state = &self.hardware.dies[die as usize];
        let works = state.front.as_ref().and_then(|front| front.remaining().first()).map(|&index| {
            let Pending { order, kind, cause, .. } = self.pending[index];
            (index, order, kind, cause)
        });
        let idle = if state.closed_until > self.now { Holder::Suspends } else { Holder::Idle };
        timeline.holds(die, works, idle, self.now);
    }

    /// Records that `members` of a batch enter `die`.
    pub(super) fn record_begin(&mut self, die: u32, members: &[u32]) {
        let Some(timeline) = &mut self.timeline else { return };
        for &index in members {
            timeline.begun(index, self.pending[index].ready_at, self.pending[members[0]].order, self.now);
        }
        self.record_holder(die);
    }

    /// Records that operation `index` starts, or ends, which may release others.
    pub(super) fn record_trigger(&mut self, index: u32, started: bool) {
        let order = self.pending[index].order;
        self.timeline.iter_mut().for_each(|timeline| timeline.triggered(order, started));
    }

    /// Records that a time releases others: the arrival of a transfer that signals the gate in `slot`, or a plan.
    pub(super) fn record_time(&mut self, slot: Option<u32>) {
        self.timeline.iter_mut().for_each(|timeline| timeline.timed(slot));
    }

    /// Records that the present event releases operation `index`.
    pub(super) fn record_release(&mut self, index: u32) {
        self.timeline.iter_mut().for_each(|timeline| timeline.released(index, self.now));
    }

    /// Records operation `index`, planned behind `tail` on its block.
    pub(super) fn record_plan(&mut self, index: u32, operation: &Operation, tail: u32) {
        let Some(timeline) = &mut self.timeline else { return };
        let (Pending { order, plane, .. }, die) = (self.pending[index], self.pending[index].die());
        let behind = (tail != NONE).then(|| self.pending[tail].order);
        let plane = (plane - die * self.setup.geometry.planes_per_die) * self.setup.geometry.dies() + die;
        let place = Place { die, plane, channel: self.hardware.dies[die as usize].channel };
        timeline.planned(index, order, (*operation, place), behind, (self.now, self.pending.data_at(index)));
    }

    /// Records that the arrays of `members` start at `from`. Reads keep the end of their command as their start.
    pub(super) fn record_array(&mut self, members: &[u32], from: Nanos) {
        let Some(timeline) = &mut self.timeline else { return };
        for &index in members {
            if let Some(operation) = timeline.operation(index)
                && operation.operation.kind != OperationKind::Read
            {
                operation.array.from = from;
            }
        }
    }

    /// Records that the arrays of `members` stop at `from`.
    pub(super) fn record_suspension(&mut self, members: &[u32], from: Nanos) {
        let Some(timeline) = &mut self.timeline else { return };
        for &index in members {
            if let Some(operation) = timeline.operation(index) {
                operation.suspensions.push(Span { from, until: from });
            }
        }
    }

    /// Records that the arrays of `members` resume at `from`.
    pub(super) fn record_resumption(&mut self, members: &[u32], from: Nanos) {
        let Some(timeline) = &mut self.timeline else { return };
        for &index in members {
            if let Some(suspension) = timeline.operation(index).and_then(|operation| operation.suspensions.last_mut()) {
                suspension.until = from;
            }
        }
    }

    /// Records the end of operation `index`, which signals the gate next.
    pub(super) fn record_end(&mut self, index: u32) {
        let Some(timeline) = &mut self.timeline else { return };
        let Pending { kind, cause, order, signal, .. } = self.pending[index];
        let delivered = kind == OperationKind::Read && cause == Cause::Host;
        timeline.ended(index, delivered, self.now);
        timeline.triggered(order, false);
        if self.pending.details(index).frees > 0 {
            timeline.frees();
        }
        if signal != NONE {
            timeline.signalled(signal, order);
        }
    }

    /// Records that the gate in `slot` has closed; `waiters` is the head of the list.
    pub(super) fn record_gate(&mut self, slot: u32, waiters: u32) {
        let Some(timeline) = &mut self.timeline else { return };
        let numbers = timeline.closed(slot);
        let mut next = waiters;
        loop {
            let waiter = if next < OPERATION {
                let edge = self.edges.entries[next as usize];
                next = edge.next;
                edge.waiter
            } else {
                let Some(last) = last_of(std::mem::replace(&mut next, NO_WAITER)) else { return };
                last
            };
            match waiter {
                Waiter::Operation(index) => {
                    if let Some(operation) = timeline.operation(index) {
                        operation.follows.clone_from(&numbers);
                    }
                }
                Waiter::Gate(later) => timeline.linked(later, &numbers),
                Waiter::Request(id) => timeline.closes_request(id, self.now),
                Waiter::Crossing(index) => timeline.crosses(self.link.crossings.slot(index)),
            }
        }
    }
}

impl Timeline {
    /// Records the command of `index` on the bus from `from` to `commanded`, and the transfer to the die until
    /// `loaded`.
    #[cold]
    #[inline(never)]
    pub(super) fn commanded(&mut self, index: u32, from: Nanos, commanded: Nanos, loaded: Nanos) {
        if let Some(operation) = self.operation(index) {
            operation.start = from;
            operation.transfer = Span { from: commanded, until: loaded };
            operation.array.from = commanded;
        }
    }

    /// Records another page of the word line of `index`, transferred until `loaded`.
    #[cold]
    #[inline(never)]
    pub(super) fn loaded(&mut self, index: u32, loaded: Nanos) {
        if let Some(operation) = self.operation(index) {
            operation.transfer.until = loaded;
        }
    }

    /// Records that the page of `index` is sensed by `sensed`, and the `transfer` over the bus.
    #[cold]
    #[inline(never)]
    pub(super) fn moved(&mut self, index: u32, sensed: Nanos, transfer: Span) {
        if let Some(operation) = self.operation(index) {
            operation.array.until = sensed;
            operation.transfer = transfer;
        }
    }
}
