//! Ready operations: per plane and scheduling class in order, and per die the first of each class. Most operations
//! become ready in order, so adding to the end of a queue is the fast case. Most events of a die find no ready
//! operation.

use super::pending::Rank;
use super::{BEHIND, Engine, NONE, STEPS};
use palimpsest_ftl_api::plan::Io;
use std::collections::VecDeque;

/// Number of scheduling classes.
pub(super) const CLASSES: usize = 3;

/// The turn of operation `order`, ready in `class`.
#[inline]
fn turn_of(order: u64, class: usize, step: bool) -> u64 {
    if class == 1 && !step { order | BEHIND } else { order }
}

/// Operations in the order of their turns. No two turns may be equal.
#[derive(Default)]
struct InOrder {
    queue: VecDeque<(u64, u32)>,
}

impl InOrder {
    #[inline]
    fn add(&mut self, turn: u64, index: u32) {
        if self.queue.back().is_none_or(|&(last, _)| last < turn) {
            return self.queue.push_back((turn, index));
        }
        // Programs of collection were planned before the reads that wait.
        if self.queue.front().is_some_and(|&(first, _)| turn < first) {
            return self.queue.push_front((turn, index));
        }
        self.insert(turn, index);
    }

    #[inline(never)]
    fn insert(&mut self, turn: u64, index: u32) {
        let place = self.queue.partition_point(|&(other, _)| other < turn);
        self.queue.insert(place, (turn, index));
    }

    /// Removes the operation of `turn`; returns false if there is none.
    fn remove(&mut self, turn: u64) -> bool {
        let place = self.queue.binary_search_by_key(&turn, |&(other, _)| other);
        place.is_ok_and(|place| self.queue.remove(place).is_some())
    }
}

/// Ready operations of a plane, by scheduling class.
#[derive(Default)]
pub(super) struct Ready {
    classes: [InOrder; CLASSES],
    /// Programs and erases of collection steps that have not started.
    pub(super) steps: u32,
    /// Operations that must follow a step of collection on their block.
    pub(super) behind_steps: u32,
}

impl Ready {
    /// The first operation of `class`.
    #[inline]
    pub(super) fn first(&self, class: usize) -> Option<First> {
        self.classes[class].queue.front().map(|&(turn, index)| First { turn, index })
    }

    /// Removes read number `order` from the reads that are ready in `class`; returns false if it is not there.
    pub(super) fn remove_read(&mut self, order: u64, class: usize, step: bool) -> bool {
        self.classes[class].remove(turn_of(order, class, step))
    }

    /// Removes the first operation of `class`, which starts.
    #[inline]
    pub(super) fn take(&mut self, class: usize) {
        self.classes[class].queue.pop_front();
        if class == STEPS {
            self.steps -= 1;
        }
    }
}

/// The first operation of a class in a die, or none.
#[derive(Clone, Copy)]
pub(super) struct First {
    pub(super) turn: u64,
    pub(super) index: u32,
}

impl First {
    pub(super) const NONE: First = First { turn: u64::MAX, index: NONE };

    #[inline]
    pub(super) fn is_none(self) -> bool {
        self.index == NONE
    }

    /// True if planned before `other`.
    #[inline]
    pub(super) fn is_older(self, other: First) -> bool {
        self.turn & !BEHIND < other.turn & !BEHIND
    }
}

impl Default for First {
    fn default() -> Self {
        First::NONE
    }
}

impl Engine {
    /// Adds operation `index` to the ready operations.
    #[inline]
    pub(super) fn make_ready(&mut self, index: u32) {
        let pending = &self.pending[index];
        let order = pending.order;
        let step = pending.is_low();
        let place = (pending.die(), pending.plane);
        self.join_ready(index, order, place, self.class(index), step);
    }

    /// Scheduling class of operation `index`.
    #[inline]
    pub(super) fn class(&self, index: u32) -> usize {
        let pending = &self.pending[index];
        match pending.rank {
            Rank::Joined | Rank::JoinedStep => 0,
            Rank::Step | Rank::Usual => self.class_of(pending.kind, pending.cause, pending.is_low()),
        }
    }

    /// Adds operation `index` with number `order`, for `plane` of `die`, to the ready operations of `class`.
    #[inline(always)]
    pub(super) fn join_ready(&mut self, index: u32, order: u64, (die, plane): (u32, u32), class: usize, step: bool) {
        self.pending[index].ready_at = self.now;
        let turn = turn_of(order, class, step);
        self.hardware.ready[plane as usize].classes[class].add(turn, index);
        let state = &mut self.hardware.dies[die as usize];
        let first = &mut state.first[class];
        if turn < first.turn {
            *first = First { turn, index };
        }
        state.ready += 1;
        if self.setup.suspends() {
            self.hardware.dies[die as usize].urgent += u32::from(self.pending[index].is_urgent());
        }
        self.wake_in_time(die);
    }

    /// As [`Self::join_ready`], if another operation of the same plane and class was added just before, in this plan.
    #[inline]
    pub(super) fn join_behind(&mut self, index: u32, order: u64, (die, plane): (u32, u32), class: usize, step: bool) {
        self.hardware.ready[plane as usize].classes[class].add(turn_of(order, class, step), index);
        self.hardware.dies[die as usize].ready += 1;
    }

    /// Marks `die` to be started after the plan is accepted or the gate closed. Repeated marks of one die are dropped
    /// unless [`Self::looks_twice`].
    #[inline]
    pub(super) fn wake(&mut self, die: u32) {
        if self.setup.wakes_always || self.plan.woken.last() != Some(&die) {
            self.plan.woken.push(die);
        }
    }

    /// Starts the marked dies in order, after all operations of a plan or gate are ready, so that multi-plane commands
    /// can form.
    #[inline]
    pub(super) fn kick_woken(&mut self, io: &Io) {
        for index in 0..self.plan.woken.len() {
            self.kick(io, self.plan.woken[index]);
        }
        self.plan.woken.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palimpsest_flash::rng::Rng;

    #[test]
    fn operations_go_by_their_turn_whenever_they_became_ready() {
        let mut rng = Rng::new(1, 0);
        let mut turns: Vec<(u64, u32)> = (0..500).map(|index| (u64::from(index) * 3, index)).collect();
        for at in (1..turns.len()).rev() {
            turns.swap(at, rng.below(at as u64 + 1) as usize);
        }
        let mut queue = InOrder::default();
        turns.iter().for_each(|&(turn, index)| queue.add(turn, index));
        turns.sort_unstable();
        assert!(queue.queue.into_iter().eq(turns));
    }
}
