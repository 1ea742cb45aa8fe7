//! The time of the controller: the latency of each request before the first flash command and after the last, and the
//! request rate of the processors.
//!
//! The processors are one server with the same time for each request, so throughput saturates and requests queue.
//! Writes then pass a second server (`controller.write_iops`), which delays no reads; trims and flushes keep their
//! place among the writes. The controller fetches commands from [submission queues](super::queues), each first come,
//! first served, and holds at most `controller.commands` of them: a command is held until the host has the completion,
//! also while a write waits for room in the write buffer. The times before and after flash are delays that overlap
//! with the delays of other requests. Ignored: that firmware takes longer for large requests, and that its own work
//! (collection, background) occupies processors.

use super::queues::{Class, Queues, Submitted};
use super::settings::ControllerTimes;
use palimpsest_flash::command::Command;
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::Nanos;
use std::collections::VecDeque;

/// Requests between the host and the translation layer.
pub struct Controller {
    times: ControllerTimes,
    takes_time: bool,
    queues: Queues,
    /// Commands from the fetch to the completion, and the most of them.
    held: u32,
    most: u32,
    /// Time at which the processors are free.
    free_at: Nanos,
    /// Time at which the processors of writes are free.
    writes_free_at: Nanos,
    /// Requests that the processors have served: the time at which each is ready for the layer, and the number, in
    /// order of time.
    taken: VecDeque<(Nanos, u32)>,
    /// Time of the next event; [`Nanos::MAX`]: none.
    next: Nanos,
}

impl Controller {
    /// An idle controller.
    pub fn new(times: ControllerTimes) -> Self {
        let all = times.t_link + times.t_request + times.t_write_request + times.t_read + times.t_write;
        let most = if times.queues.commands == 0 { u32::MAX } else { times.queues.commands };
        let (queues, taken) = (Queues::new(times.queues.clone()), VecDeque::new());
        let takes_time = all > 0 || most < u32::MAX;
        Controller { times, takes_time, queues, held: 0, most, free_at: 0, writes_free_at: 0, taken, next: Nanos::MAX }
    }

    /// The times of this controller.
    #[inline]
    pub fn times(&self) -> &ControllerTimes {
        &self.times
    }

    /// Names the tenants: the classes of jobs, or of owners in order of appearance if `by_owner`.
    pub fn set_tenants(&mut self, classes: Vec<Class>, by_owner: bool) {
        self.queues.set_tenants(classes, by_owner);
    }

    /// Drops all requests.
    pub fn clear(&mut self) {
        *self = Controller { queues: self.queues.emptied(), ..Controller::new(self.times.clone()) };
    }

    /// True if requests take time before flash. If not, requests must pass directly to the layer.
    #[inline]
    pub fn takes_time(&self) -> bool {
        self.takes_time
    }

    /// Submits request `id` at `now`.
    #[inline]
    pub fn submit(&mut self, now: Nanos, command: &Command, id: u32) {
        let (at, kind) = (now + self.times.t_link, command.kind);
        self.queues.submit(command.directives.owner, command.directives.queue, Submitted { at, kind, id });
        if self.held < self.most {
            self.next = self.next.min(at.max(self.free_at));
        }
    }

    /// Releases a request that has completed at `now`.
    #[inline]
    pub fn release(&mut self, now: Nanos) {
        self.held -= 1;
        if self.held + 1 == self.most {
            self.free_at = self.free_at.max(now);
            self.next = self.next.min(self.next_start());
        }
    }

    /// Time at which the processors serve the next request known so far.
    #[inline]
    fn next_start(&self) -> Nanos {
        if self.held == self.most {
            return Nanos::MAX;
        }
        self.queues.first_at().max(self.free_at)
    }

    /// Serves the next request at `now`.
    #[inline]
    fn start(&mut self, now: Nanos) {
        let Some(Submitted { kind, id, .. }) = self.queues.fetch(now) else { return };
        self.held += 1;
        self.free_at = now + self.times.t_request;
        let ready = if kind == RequestKind::Read {
            self.free_at + self.times.t_read
        } else {
            let write = if kind == RequestKind::Write { self.times.t_write_request } else { 0 };
            self.writes_free_at = self.writes_free_at.max(self.free_at) + write;
            self.writes_free_at + self.times.t_write
        };
        if self.taken.back().is_none_or(|&(other, _)| other <= ready) {
            self.taken.push_back((ready, id));
        } else {
            let behind = self.taken.iter().rev().take_while(|&&(other, _)| other > ready).count();
            self.taken.insert(self.taken.len() - behind, (ready, id));
        }
    }

    /// Time of the next event; [`Nanos::MAX`]: none.
    #[inline]
    pub fn next_time(&self) -> Nanos {
        self.next
    }

    /// Returns a request that is ready for the layer by `now`.
    #[inline]
    pub fn ready(&mut self, now: Nanos) -> Option<u32> {
        let mut start = self.next_start();
        while start <= now {
            self.start(start);
            start = self.next_start();
        }
        let ready = self.taken.front().filter(|&&(time, _)| time <= now).map(|&(_, id)| id);
        if ready.is_some() {
            self.taken.pop_front();
        }
        self.next = self.taken.front().map_or(start, |&(time, _)| start.min(time));
        ready
    }

    /// True if request `id` is in the controller.
    pub fn holds(&self, id: u32) -> bool {
        self.taken.iter().any(|&(_, held)| held == id) || self.queues.waiting().any(|submitted| submitted.id == id)
    }
}

#[cfg(test)]
mod tests;
