//! The clock of a served drive, and how well the machine kept up.
//!
//! *Virtual*: as fast as the machine simulates. The clock stops while the drive waits for the program, because a
//! program that keeps requests in flight sends the next after each answer. The drive continues once the recent queue
//! depth is reached, or after a wait without requests (its patience, which adapts). So the drive sees the queue depth
//! of the program at any load of the machine. *Paced*: with the wall clock; each completion is held until due.
//! *Scaled*: paced, by a slower drive.

use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::metrics::histogram::Histogram;
use palimpsest_lab::units::Nanos;
use std::time::{Duration, Instant};

/// Completions over which the largest queue depth counts.
const LATELY: u32 = 256;

/// Bounds of the patience.
const PATIENCE: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(20));

/// Lateness by the wall clock from which a completion counts as late.
const LATE: Nanos = 100_000;

/// The clock of the drive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Clock {
    /// None: requests are counted.
    None,
    /// As fast as the machine simulates.
    Virtual,
    /// With the wall clock, slower by this factor.
    Paced(f64),
}

impl Clock {
    /// Reads `none`, `virtual`, `paced` or `scaled:10`.
    ///
    /// # Errors
    /// [`Error::Input`] for anything else.
    pub fn parse(text: &str) -> Result<Clock> {
        match text {
            "none" => return Ok(Clock::None),
            "virtual" => return Ok(Clock::Virtual),
            "paced" => return Ok(Clock::Paced(1.0)),
            _ => {}
        }
        let scale = text.strip_prefix("scaled:").and_then(|scale| scale.parse::<f64>().ok());
        scale.filter(|scale| (1e-3..=1e6).contains(scale)).map(Clock::Paced).ok_or_else(|| {
            let expected = "expected none, virtual, paced, or scaled:10 for a drive that is ten times slower";
            Error::input(format!("--clock {text}"), expected)
        })
    }
}

pub struct Wall {
    begin: Instant,
    drive_begin: Nanos,
    scale: f64,
    late: Histogram,
    too_late: u64,
}

impl Wall {
    /// Both clocks begin now; the clock of the drive shows `now`.
    pub fn new(now: Nanos, scale: f64) -> Self {
        Wall { begin: Instant::now(), drive_begin: now, scale, late: Histogram::new(), too_late: 0 }
    }

    /// Time of the drive at `wall`.
    pub fn drive_time(&self, wall: Instant) -> Nanos {
        self.drive_begin + ((wall - self.begin).as_nanos() as f64 / self.scale) as Nanos
    }

    /// Wall-clock time at which the drive shows `time`.
    pub fn due(&self, time: Nanos) -> Instant {
        let since = time.saturating_sub(self.drive_begin) as f64 * self.scale;
        self.begin + Duration::from_nanos(since as u64)
    }

    /// Counts a completion of drive time `time` that is answered at `wall`.
    pub fn answered(&mut self, time: Nanos, wall: Instant) {
        let late = wall.saturating_duration_since(self.due(time)).as_nanos() as Nanos;
        self.late.record(late);
        self.too_late += u64::from(late > LATE);
    }

    /// A line about the lateness of completions; `None` without completions.
    pub fn report(&self) -> Option<String> {
        let count = self.late.count();
        let us = |late: Nanos| late as f64 / 1e3;
        let (half, most_of_all, most) = (self.late.percentile(500), self.late.percentile(990), self.late.max());
        (count > 0).then(|| {
            format!(
                "{count} completions were late by {:.1} us (p50), {:.1} us (p99) and {:.1} us at most; {:.2} % by more \
                 than {:.0} us: the machine was too slow for them",
                us(half),
                us(most_of_all),
                us(most),
                self.too_late as f64 / count as f64 * 100.0,
                us(LATE),
            )
        })
    }
}

/// The queue depth of the program and the patience with it, for a virtual clock.
pub struct Depth {
    lately: u32,
    seen: u32,
    left: u32,
    learned: bool,
    quiet: bool,
    patience: Duration,
}

impl Default for Depth {
    fn default() -> Self {
        let patience = PATIENCE.1 / 2;
        Depth { lately: u32::MAX, seen: 0, left: LATELY, learned: false, quiet: false, patience }
    }
}

impl Depth {
    /// Counts an arrival; `in_flight` requests are in flight now.
    pub fn arrived(&mut self, in_flight: u32) {
        self.seen = self.seen.max(in_flight);
        if self.learned {
            self.lately = self.lately.max(in_flight);
        }
        self.quiet = false;
        if in_flight >= self.lately {
            self.patience = (self.patience * 2).min(PATIENCE.1);
        }
    }

    /// Counts a completion; `in_flight` requests are in flight now.
    pub fn completed(&mut self, in_flight: u32) {
        self.left -= 1;
        if self.left == 0 {
            if self.learned {
                self.lately = self.seen;
            }
            (self.seen, self.left) = (in_flight, LATELY);
        }
    }

    /// How long to wait for the program with `in_flight` requests in flight; `None` if the drive must continue.
    pub fn wait(&self, in_flight: u32) -> Option<Duration> {
        (in_flight < self.lately && !self.quiet).then_some(self.patience)
    }

    /// Counts a wait without arrivals.
    pub fn nothing_came(&mut self) {
        if !self.learned {
            (self.learned, self.lately) = (true, self.seen);
        } else {
            self.patience = (self.patience / 2).max(PATIENCE.0);
        }
        self.quiet = true;
    }
}

#[cfg(test)]
mod tests;
