//! Power cuts in a timed run: the time of a cut, and the effect on running operations.
//!
//! A cut comes in the middle of one operation, half-way through its time in the array. Operations count when they
//! start, so operations planned earlier that still wait for a slower die do not count. A cut tears the operations in
//! the arrays, and cancels all later ones. If the controller's memory is protected, hold-up energy completes all
//! programs, erases and moves at the time of the cut. Reads that only serve a reader are dropped. Ended operations
//! alone count, with their energy. Ignored: the progress of a torn operation and the energy that its array had
//! consumed, and the time for which hold-up energy must last.

use super::pending::Pending;
use super::{Bus, Engine, Operations, Ready};
use crate::events::Event;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Cause, Io, OperationKind, PowerIo};

/// A scheduled power cut.
pub(super) struct PowerCut {
    /// Operations still to start until the one that the cut interrupts; 0: that one has started.
    left: u64,
    /// Flash operation `order` + `ahead` is operation `order` of the plan.
    ahead: u64,
    /// True once the power has failed.
    due: bool,
}

impl Engine {
    /// Schedules a power cut in the middle of operation number `left`, from 1, among the operations that start from now
    /// on.
    pub fn cut_power_in(&mut self, left: u64, io: &Io) {
        let ahead = io.nand().operations() - self.order;
        self.power_cut = Some(Box::new(PowerCut { left, ahead, due: false }));
    }

    /// Schedules a power cut at `time`. A later cut must be scheduled ([`Self::cut_power_in`]), because flash logs its
    /// changes only then.
    pub fn cut_power_at(&mut self, time: Nanos) {
        assert!(self.power_cut.is_some(), "a power cut is scheduled");
        self.events.push(time.max(self.now), Event::PowerFails);
    }

    /// True if the power fails now.
    #[inline]
    pub fn power_fails(&self) -> bool {
        self.power_cut.as_ref().is_some_and(|cut| cut.due)
    }

    /// Schedules the cut if operation `index`, whose array starts at `from`, is the one to interrupt.
    #[cold]
    #[inline(never)]
    pub(super) fn time_power_cut(&mut self, index: u32, from: Nanos) {
        let Some(cut) = &mut self.power_cut else { return };
        if cut.left == 0 {
            return;
        }
        cut.left -= 1;
        if cut.left == 0 {
            let array = self.pending[index].array;
            self.events.push(from + Nanos::from(array) / 2, Event::PowerFails);
        }
    }

    pub(super) fn power_failed(&mut self) {
        if let Some(cut) = &mut self.power_cut {
            cut.due = true;
        }
    }

    /// Passes the end of operation `order` to the log for rollback.
    #[cold]
    #[inline(never)]
    pub(super) fn note_end(&self, io: &mut Io, order: u64) {
        if let Some(cut) = &self.power_cut {
            io.ended(order + cut.ahead);
        }
    }

    /// Counts operations that hold-up energy completes. Those that the cut tears or drops count nowhere, so the energy
    /// of read data that has not left a die is subtracted again.
    fn settle_counts(&mut self, io: &Io) {
        for index in self.pending.live() {
            let &Pending { kind, cause, energy, order, .. } = &self.pending[index];
            let is_read = kind == OperationKind::Read;
            let ends = io.plan.protected && !(is_read && Cause::DROPPED.contains(&cause));
            let is_counted = is_read && energy < 0;
            if ends {
                self.results.count(order, kind, cause);
            }
            if ends != is_counted {
                self.results.spent += energy;
            }
        }
    }

    /// Drops the scheduled power cut.
    pub fn drop_power_cut(&mut self) {
        self.power_cut = None;
    }

    /// Stops all operations; the clock continues. [`Io::lose_power`] rolls back or completes operations that have not
    /// ended. A protected buffer frees the room of their programs. Returns the number of planned operations that never
    /// happen.
    pub fn power_off(&mut self, io: &mut Io) -> u64 {
        let Some(cut) = self.power_cut.take() else { return 0 };
        self.settle_counts(io);
        let mut running = Vec::new();
        for die in &mut self.hardware.dies {
            for batch in [&die.front, &die.back, &die.suspended, &die.behind].into_iter().flatten() {
                if batch.array_from <= self.now {
                    running.extend(batch.remaining().iter().map(|&at| self.pending[at].order + cut.ahead));
                }
            }
            die.power_off(self.now);
        }
        let waiting = self.pending.live();
        self.results.buffer_freed +=
            waiting.iter().map(|&index| u64::from(self.pending.details(index).frees)).sum::<u64>();
        let undone = io.lose_power(&running);
        self.events.clear();
        self.pending = Operations::default();
        self.orders.blocks.fill(super::order::IDLE);
        self.hardware.ready.iter_mut().for_each(|ready| *ready = Ready::default());
        // A protected buffer stores data that the host is sending, once the data has arrived.
        let link_in = (!io.plan.protected).then_some(&mut self.link.inward);
        for bus in self.hardware.buses.iter_mut().chain([&mut self.link.outward]).chain(link_in) {
            let ahead = bus.free_at.saturating_sub(self.now);
            *bus = Bus { free_at: self.now, commanded_at: self.now, busy: bus.busy.saturating_sub(ahead) };
        }
        self.edges.entries.clear();
        self.edges.free.clear();
        self.edges.closing.clear();
        self.joins = Default::default();
        self.link.crossings = Default::default();
        self.plan.accepted.clear();
        self.results.ended_in_drive.clear();
        self.plan.woken.clear();
        self.results.collections.clear();
        self.timeline = None;
        undone
    }
}
