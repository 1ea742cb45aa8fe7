//! Jobs of a phase that depend on each other: `wait_for`, `exitall` and `flow`.
//!
//! [`Phase::is_ahead`] follows fio: a job with a `flow` waits while its requests exceed its share of the weights of the
//! jobs that run, plus one request for all. Ignored: the time that fio takes to note the end of a job.
//!
//! `order` and `playing` use each other: a phase asks which of its jobs may begin, continue or end.

use super::super::spec::{ExitScope, Flow};
use super::pace::{Floor, Search};
use super::playing::{Phase, Playing};
use palimpsest_flash::units::Nanos;
use std::ops::Range;

impl Playing {
    /// True if the job has no more requests, and none in flight.
    fn is_over(&self) -> bool {
        self.ended && self.outstanding == 0
    }

    /// Begins the job `since` nanoseconds after the begin of the phase.
    pub fn begin_at(&mut self, since: Nanos) {
        let begin = since.saturating_add(self.delay);
        self.begin = Some(since);
        self.search = self.search.take().map(|old| Search::new(old.target, self.depth.unwrap_or(1), begin));
        self.floor = self.floor.take().map(|old| Floor::new(old.floor, begin));
    }

    /// True before the end of the ramp of a job that has one and has requests left.
    pub fn is_ramping(&self, since: Nanos) -> bool {
        let is_waiting = self.ramp > 0 && !(self.ended && self.outstanding == 0);
        is_waiting && self.begin.is_some() && since < self.span().0.saturating_add(self.ramp)
    }

    /// Pauses a job that is ahead of its flow for `flow_sleep`. Returns the end of the pause; the latest time without.
    pub fn sleep(&mut self, since: Nanos) -> Nanos {
        if self.flow.sleep == 0 || self.outstanding > 0 {
            return Nanos::MAX;
        }
        self.paused_until = since.saturating_add(self.flow.sleep);
        self.paused_until
    }
}

impl Phase {
    /// Leaves out all jobs but those with these numbers, as if they had ended without an effect on others.
    pub fn keep_only(&mut self, kept: &Range<u32>) {
        let others = (self.first..).zip(&mut self.jobs).filter(|(number, _)| !kept.contains(number));
        for (_, job) in others {
            (job.ended, job.is_left_out, job.order.exits, job.ramp) = (true, true, false, 0);
            (job.flow, job.search, job.floor) = (Flow::default(), None, None);
        }
    }

    /// Begins the jobs whose `wait_for` is over `since` nanoseconds after the begin of the phase.
    pub fn begin_jobs(&mut self, since: Nanos) {
        for at in 0..self.jobs.len() {
            let after = self.jobs[at].after.clone();
            let is_over = |number: u32| {
                let number = number.checked_sub(self.first).map(|number| number as usize);
                number.is_none_or(|number| self.jobs[number].is_over())
            };
            if self.jobs[at].begin.is_none() && after.into_iter().all(is_over) {
                self.jobs[at].begin_at(since);
            }
        }
    }

    /// True if the end of a job begins or ends others, so that a request may be due.
    pub fn is_changed(&mut self, since: Nanos) -> bool {
        let ends = self.jobs.iter().position(|job| job.order.exits && job.is_over());
        if let Some(at) = ends {
            self.jobs[at].order.exits = false;
            let (group, scope) = (self.jobs[at].group, self.jobs[at].order.scope);
            let all = scope != ExitScope::Group;
            self.jobs.iter_mut().filter(|job| all || job.group == group).for_each(Playing::end);
            self.is_last |= scope == ExitScope::All;
        }
        let waiting = |phase: &Phase| phase.jobs.iter().filter(|job| job.begin.is_none() && !job.ended).count();
        let before = waiting(self);
        self.begin_jobs(since);
        ends.is_some() || waiting(self) < before
    }

    /// True if the job at `at` has more than its share of the requests of its flow.
    pub fn is_ahead(&self, at: usize, since: Nanos) -> bool {
        let job = &self.jobs[at];
        if job.flow.weight == 0 {
            return false;
        }
        let runs = |other: &&Playing| other.flow.weight > 0 && other.flow.id == job.flow.id && !other.ended;
        let others = self.jobs.iter().filter(runs).filter(|other| other.span().0 <= since);
        let (requests, weights) =
            others.fold((1, 0), |(sum, weights), other| (sum + other.flowed, weights + other.flow.weight));
        u128::from(job.flowed) * u128::from(weights) > u128::from(job.flow.weight) * u128::from(requests)
    }
}

#[cfg(test)]
mod tests;
