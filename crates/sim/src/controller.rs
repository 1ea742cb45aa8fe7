//! The time of the controller: the latency of each request before the first flash command and after the last, and the
//! request rate of the processors.
//!
//! The processors are one server with the same time for each request, so throughput saturates and requests queue.
//! Writes then pass a second server (`controller.write_iops`), which delays no reads; trims and flushes keep their
//! place among the writes. Each job of a workload has its own submission queue, and queues take turns (NVMe Base
//! Specification, round-robin arbitration). Each queue is first come, first served. The times before and after flash
//! are delays that overlap with the delays of other requests. Ignored: that firmware takes longer for large requests,
//! and that its own work (collection, background) occupies processors.

use super::settings::ControllerTimes;
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::Nanos;
use std::collections::VecDeque;

/// A request that waits for the processors.
#[derive(Clone, Copy)]
struct Submitted {
    at: Nanos,
    kind: RequestKind,
    id: u32,
}

/// Requests between the host and the translation layer.
pub struct Controller {
    times: ControllerTimes,
    takes_time: bool,
    /// The submission queue of each job.
    queues: Vec<VecDeque<Submitted>>,
    /// The queue to serve next.
    turn: usize,
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
        let takes_time = times.t_link + times.t_request + times.t_write_request + times.t_read + times.t_write > 0;
        let (queues, taken) = (Vec::new(), VecDeque::new());
        Controller { times, takes_time, queues, turn: 0, free_at: 0, writes_free_at: 0, taken, next: Nanos::MAX }
    }

    /// The times of this controller.
    #[inline]
    pub fn times(&self) -> &ControllerTimes {
        &self.times
    }

    /// True if requests take time before flash. If not, requests must pass directly to the layer.
    #[inline]
    pub fn takes_time(&self) -> bool {
        self.takes_time
    }

    /// Submits request `id` of `job` at `now`.
    #[inline]
    pub fn submit(&mut self, now: Nanos, job: u32, kind: RequestKind, id: u32) {
        if self.queues.len() <= job as usize {
            self.queues.resize_with(job as usize + 1, VecDeque::new);
        }
        let at = now + self.times.t_link;
        self.queues[job as usize].push_back(Submitted { at, kind, id });
        self.next = self.next.min(at.max(self.free_at));
    }

    /// Time at which the processors serve the next request known so far.
    #[inline]
    fn next_start(&self) -> Nanos {
        let first = self.queues.iter().filter_map(|queue| queue.front()).map(|first| first.at).min();
        first.map_or(Nanos::MAX, |at| at.max(self.free_at))
    }

    /// Serves the next request at `now`.
    #[inline]
    fn start(&mut self, now: Nanos) {
        let count = self.queues.len();
        for step in 0..count {
            let queue = (self.turn + step) % count;
            let Some(&Submitted { at, kind, id }) = self.queues[queue].front() else { continue };
            if at > now {
                continue;
            }
            self.queues[queue].pop_front();
            self.turn = (queue + 1) % count;
            self.free_at = now + self.times.t_request;
            let ready = if kind == RequestKind::Read {
                self.free_at + self.times.t_read
            } else {
                let write = if kind == RequestKind::Write { self.times.t_write_request } else { 0 };
                self.writes_free_at = self.writes_free_at.max(self.free_at) + write;
                self.writes_free_at + self.times.t_write
            };
            let behind = self.taken.iter().rev().take_while(|&&(other, _)| other > ready).count();
            self.taken.insert(self.taken.len() - behind, (ready, id));
            return;
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
        self.taken.iter().any(|&(_, held)| held == id)
            || self.queues.iter().flatten().any(|submitted| submitted.id == id)
    }
}

#[cfg(test)]
mod tests;
