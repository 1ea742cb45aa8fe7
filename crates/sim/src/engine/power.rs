//! The power fails in a timed run: when, and what runs then.
//!
//! The cut comes in the middle of one operation: half-way through its time in the array. Operations count as they
//! start: what was planned before it and waits, of a die that is further behind, does not. What the arrays work on at
//! the cut is torn, what is further behind never happens. If the controller's memory is protected, hold-up energy ends
//! all programs, erases and moves at the moment of the cut, and drops reads for the host. Only operations that ended
//! count; any other counts with the energy that its array had taken. Ignored: how far a torn operation had come, and
//! the time for which hold-up energy must last.

use super::die::Batch;
use super::pending::Pending;
use super::{Bus, Engine, Operations, Ready};
use crate::events::Event;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Cause, Io, OperationKind};
use std::collections::BTreeMap;

/// A power cut that is to come.
pub(super) struct PowerCut {
    /// It comes in the middle of the last of so many operations that are still to start; 0: that one has.
    left: u64,
    /// Flash operation `order` + `ahead` is operation `order` of the plan.
    ahead: u64,
    /// It is there.
    due: bool,
}

impl Engine {
    /// The power will fail in the middle of the operation that is number `left`, from 1, of those that start from now on.
    pub fn cut_power_in(&mut self, left: u64, io: &Io) {
        let ahead = io.nand().operations() - self.order;
        self.power_cut = Some(Box::new(PowerCut { left, ahead, due: false }));
    }

    /// Whether the power fails now.
    #[inline]
    pub fn power_fails(&self) -> bool {
        self.power_cut.as_ref().is_some_and(|cut| cut.due)
    }

    /// Operation `index` starts, and its array works from `from` on.
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

    /// Operation `order` has ended.
    #[cold]
    #[inline(never)]
    pub(super) fn note_end(&self, io: &mut Io, order: u64) {
        if let Some(cut) = &self.power_cut {
            io.ended(order + cut.ahead);
        }
    }

    /// Counts what ends with the power, and the energy that was taken by operations that do not end.
    fn settle_counts(&mut self, io: &mut Io) {
        let mut taken: BTreeMap<u32, i64> = BTreeMap::new();
        for die in &self.dies {
            for (batch, suspended) in [(&die.front, false), (&die.back, false), (&die.suspended, true)] {
                let begun = |batch: &&Batch| suspended || batch.array_from <= self.now;
                let Some(batch) = batch.as_ref().filter(begun) else { continue };
                let left = if suspended { batch.array_until } else { batch.array_until.saturating_sub(self.now) };
                taken.extend(batch.remaining().iter().map(|&index| (index, self.taken_by(batch, index, left))));
            }
        }
        let mut torn = [0; 3];
        for index in self.pending.live() {
            let &Pending { kind, cause, energy, .. } = &self.pending[index];
            let is_counted = energy < 0;
            let so_far = if is_counted { -energy } else { taken.get(&index).copied().unwrap_or(0) };
            let is_dropped = kind == OperationKind::Read && Cause::DROPPED.contains(&cause);
            let ends = io.plan.protected && !is_dropped;
            if ends {
                self.ended.count(kind, cause);
            } else {
                torn[kind as usize] += so_far;
            }
            if !is_counted {
                self.spent += if ends { energy } else { so_far };
            }
        }
        io.nand.note_torn(torn);
    }

    /// The power is off: nothing runs or waits any more, but the clock goes on. What had not ended is lost as [`Io::lose_power`]
    /// says; the write buffer keeps what was to be programmed then, where it is protected. Returns the operations that were planned and
    /// do not happen.
    pub fn power_off(&mut self, io: &mut Io) -> u64 {
        let Some(cut) = self.power_cut.take() else { return 0 };
        self.settle_counts(io);
        let mut running = Vec::new();
        for die in &mut self.dies {
            for batch in [&die.front, &die.back, &die.suspended, &die.behind].into_iter().flatten() {
                if batch.array_from <= self.now {
                    running.extend(batch.remaining().iter().map(|&at| self.pending[at].order + cut.ahead));
                }
            }
            die.power_off(self.now);
        }
        let waiting = self.pending.live();
        self.buffer_freed += waiting.iter().map(|&index| u64::from(self.pending.details(index).frees)).sum::<u64>();
        let undone = io.lose_power(&running);
        self.events.clear();
        self.pending = Operations::default();
        self.live = 0;
        self.blocks.fill(super::order::IDLE);
        self.ready.iter_mut().for_each(|ready| *ready = Ready::default());
        // A protected buffer takes what the host is sending, when the link has brought it.
        let link_in = (!io.plan.protected).then_some(&mut self.link_in);
        for bus in self.buses.iter_mut().chain([&mut self.link_out]).chain(link_in) {
            let ahead = bus.free_at.saturating_sub(self.now);
            *bus = Bus { free_at: self.now, commanded_at: self.now, busy: bus.busy.saturating_sub(ahead) };
        }
        self.edges.clear();
        self.free_edges.clear();
        self.closing.clear();
        self.crossings = super::gates::Crossings::default();
        self.accepted.clear();
        self.ended_in_drive.clear();
        self.woken.clear();
        self.collections.clear();
        self.timeline = None;
        undone
    }
}
