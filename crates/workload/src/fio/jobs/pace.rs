//! The two checks of a job on its own speed: the search for a depth (`latency_target`), and the least rate
//! (`rate_min`).
//!
//! [`Search`] follows fio. A job begins with one request in flight. A depth meets the target if in a window at least
//! `latency_percentile` of the completed requests were fast. The depth doubles until one misses, and is then bisected
//! between the last that met and the last that missed. A depth that stays is found: one more window follows, and only
//! the requests of that window have figures. With `latency_run` the job continues, and tries the next depth after three
//! windows. If all requests must be fast, the first slow request ends a window. A miss waits for the requests in
//! flight.
//!
//! Two differences from fio: requests in flight at a miss never cause another miss (in fio each slow one does, which
//! may end the job), and a miss at `iodepth` itself is bisected too (fio doubles again, and never finds a depth).
//!
//! [`Floor`]: after two seconds, as in fio, each period of `rate_cycle` must reach the least rates. Ignored: rounding
//! to milliseconds.

use super::super::spec::{self, Rate, Target, direction};
use crate::request::{FoundDepth, RequestKind};
use palimpsest_flash::units::Nanos;

const SECOND: u128 = 1_000_000_000;
/// All requests, in thousandths of a percent.
const ALL: u64 = 100_000;
/// Windows that meet the target below a depth that missed, until that depth is tried again.
const WINDOWS_OF_RETRY: u32 = 3;
/// The time in which a job need not reach its least rate.
const SETTLING: Nanos = 2_000_000_000;

/// A search for the highest depth that meets a target.
#[derive(Debug, Clone)]
pub struct Search {
    pub target: Target,
    /// Highest depth of the job.
    limit: u32,
    /// The present depth, the last that met the target, and the last that missed.
    pub depth: u32,
    low: u32,
    missed: Option<u32>,
    /// Windows that met the target just below `missed`.
    stable: u32,
    /// Begin of the window, and its completed requests: all, and the slow ones.
    since: Nanos,
    served: u64,
    slow: u64,
    /// The job waits for the requests in flight before the next window.
    waits: bool,
    is_last: bool,
    /// The last window of the present depth met the target.
    pub met: bool,
    /// The search is over, and with it the job.
    pub ended: bool,
    /// The figures of the job begin anew with the next window.
    restarted: bool,
}

impl Search {
    /// What the searches of a section's copies found; `None` without copies.
    pub fn found(copies: &[Search]) -> Option<FoundDepth> {
        let Target { time, window, share, .. } = copies.first()?.target;
        Some(FoundDepth {
            longest: time,
            window,
            share,
            depths: copies.iter().map(|search| search.depth).collect(),
            met: copies.iter().all(|search| search.met),
        })
    }

    /// A search up to the depth `limit` that begins at `begin`.
    pub fn new(target: Target, limit: u32, begin: Nanos) -> Search {
        Search {
            target,
            limit,
            depth: 1,
            low: 1,
            missed: None,
            stable: 0,
            since: begin,
            served: 0,
            slow: 0,
            waits: false,
            is_last: false,
            met: false,
            ended: false,
            restarted: false,
        }
    }

    /// Counts a completed request.
    pub fn completed(&mut self, latency: Nanos) {
        if self.waits || self.ended {
            return;
        }
        self.served += 1;
        if latency > self.target.time {
            self.slow += 1;
            if self.target.share == ALL {
                self.miss();
            }
        }
    }

    /// Ends a window that is over at `now`, with `outstanding` requests in flight. Returns the depth; 0 while the job
    /// waits, and at the end.
    pub fn depth_at(&mut self, now: Nanos, outstanding: u32) -> u32 {
        if now.saturating_sub(self.since) >= self.target.window && !self.waits && !self.ended {
            match self.served > 0 && (self.served - self.slow) * ALL >= self.target.share * self.served {
                true => self.meet(now),
                false => self.miss(),
            }
        }
        if self.waits && outstanding == 0 {
            self.waits = false;
            self.begin_window(now);
        }
        if self.waits || self.ended { 0 } else { self.depth }
    }

    /// True once if the figures of the job begin anew.
    pub fn take_restarted(&mut self) -> bool {
        !self.waits && std::mem::take(&mut self.restarted)
    }

    /// The reason why no depth was found; `None` if one was, or if the search has no end.
    pub fn failure(&self) -> Option<String> {
        match self.depth {
            _ if self.met || self.target.continues => None,
            1 if self.missed.is_some() || self.slow > 0 => {
                Some("one request in flight misses latency_target; expected a longer time or a smaller share".into())
            }
            depth => Some(format!(
                "its requests ended while {depth} in flight were tried; expected more requests, or a shorter \
                 latency_window"
            )),
        }
    }

    fn begin_window(&mut self, now: Nanos) {
        (self.since, self.served, self.slow) = (now, 0, 0);
    }

    fn meet(&mut self, now: Nanos) {
        self.low = self.depth;
        if self.missed == Some(self.depth + 1) {
            self.stable += 1;
            if self.stable == WINDOWS_OF_RETRY {
                (self.missed, self.stable) = (Some(self.depth + 2), 0);
            }
        }
        let next = self.missed.map_or(self.depth * 2, |missed| (self.depth + missed) / 2).min(self.limit);
        self.met = next == self.depth;
        self.depth = next;
        match self.met && !self.target.continues {
            true if self.is_last => self.ended = true,
            true => (self.is_last, self.waits, self.restarted) = (true, true, true),
            false => self.begin_window(now),
        }
    }

    fn miss(&mut self) {
        self.met = false;
        if self.depth == 1 {
            // A share of the requests may still become fast enough, as the window goes on.
            self.ended = self.target.share == ALL;
            return;
        }
        self.missed = Some(self.depth);
        self.low = self.low.min(self.depth - 1);
        self.depth = (self.depth + self.low) / 2;
        (self.stable, self.waits, self.restarted) = (0, true, self.is_last);
    }
}

/// The least rates of a job, and the completed requests or bytes of each direction.
#[derive(Debug, Clone)]
pub struct Floor {
    pub floor: spec::Floor,
    begin: Nanos,
    done: [u64; 3],
    /// Begin of the period, and the count until then.
    periods: [Option<(Nanos, u64)>; 3],
    /// The period that was too slow, as text.
    pub missed: Option<String>,
}

impl Floor {
    /// The least rates of a job that begins at `begin`.
    pub fn new(floor: spec::Floor, begin: Nanos) -> Floor {
        Floor { floor, begin, done: [0; 3], periods: [None; 3], missed: None }
    }

    /// Counts a completed request.
    pub fn completed(&mut self, kind: RequestKind, bytes: u64) {
        if kind != RequestKind::Flush {
            let lane = direction(kind);
            self.done[lane] += if matches!(self.floor.rates[lane], Some(Rate::Bytes(_))) { bytes } else { 1 };
        }
    }

    /// True if a period that is over at `now` was too slow.
    pub fn is_missed(&mut self, now: Nanos) -> bool {
        for lane in 0..3 {
            let (Some(rate), done) = (self.floor.rates[lane], self.done[lane]) else { continue };
            if done == 0 || now < self.begin.saturating_add(SETTLING) {
                continue;
            }
            if let Some((since, before)) = self.periods[lane] {
                if now - since < self.floor.cycle {
                    continue;
                }
                let (least, scale, unit) = match rate {
                    Rate::Requests(thousandths) => (u128::from(thousandths), 1000, "requests"),
                    Rate::Bytes(bytes) => (u128::from(bytes), 1, "bytes"),
                };
                let found = u128::from(done - before) * SECOND * scale / u128::from(now - since);
                if found < least {
                    let (found, least) = (found / scale, least as f64 / scale as f64);
                    let name = ["reads", "writes", "trims"][lane];
                    self.missed =
                        Some(format!("its {name} were {found} {unit} a second, and at least {least} must be"));
                    return true;
                }
            }
            self.periods[lane] = Some((now, done));
        }
        false
    }
}

#[cfg(test)]
mod tests;
