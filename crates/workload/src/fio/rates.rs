//! Rates: the earliest time of each request.
//!
//! A rate is a cap, as in fio, for each direction: request n is due when the previous requests, at the rate, have taken
//! their time since the start. A drive that falls behind catches up as fast as the queue depth allows. In a mix the
//! direction is drawn first; if the drawn direction is ahead of the rate and the other is not, the other is requested.
//! A direction without a rate is always due. The rate of a `trimwrite` counts writes; each trim is due with the write
//! that follows.
//!
//! With `open_loop` (ours, not fio's) one rate gives all requests arrival times, regardless of the number in flight.
//!
//! Ignored: fio waits for all requests in flight before a sleep, and counts in microseconds.

use super::spec::{FioSpec, Pacing, Rate, direction};
use crate::request::RequestKind;
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::Nanos;

/// Nanoseconds in a second, and in 1000 seconds.
const SECOND: u64 = 1_000_000_000;
const THOUSAND_SECONDS: u64 = 1000 * SECOND;
/// Streams of random numbers for arrival times: open loop or first direction, second direction.
const STREAMS: [u64; 2] = [4, 6];

/// The times at which a workload may issue requests.
#[derive(Debug, Clone)]
pub enum Schedule {
    /// As soon as fewer than the queue depth are in flight.
    None,
    /// At the times of the clock.
    Open(Clock),
    /// From the times of the clocks on.
    Capped(Caps),
}

impl Schedule {
    /// The schedule of `spec`; equal seeds give equal times.
    pub fn new(spec: &FioSpec, seed: u64) -> Schedule {
        let clock = |at: usize, rate: Rate| Clock::new(rate, spec.pacing, Rng::new(seed, STREAMS[at]));
        if spec.open_loop {
            return spec.rates[0].map_or(Schedule::None, |rate| Schedule::Open(clock(0, rate)));
        }
        if !spec.is_capped() {
            return Schedule::None;
        }
        let mut caps = Caps { clocks: [None, None, None], in_use: [false; 3] };
        for (at, &lane) in spec.paced().iter().enumerate() {
            caps.clocks[lane] = spec.rates[lane].map(|rate| clock(at, rate));
            caps.in_use[lane] = true;
        }
        Schedule::Capped(caps)
    }
}

impl FioSpec {
    /// The directions that have rates.
    pub fn paced(&self) -> &'static [usize] {
        match self.pattern.kinds {
            [RequestKind::Trim, _] => &[1],
            [_, _] if self.read_permille == 0 => &[1],
            [_, _] if self.read_permille == 1000 => &[0],
            [_, _] => &[0, 1],
            kinds => [&[0], &[1], &[2]][direction(kinds[0])],
        }
    }

    /// True if a rate bounds the requests of the closed loop.
    pub fn is_capped(&self) -> bool {
        !self.open_loop && self.paced().iter().any(|&lane| self.rates[lane].is_some())
    }

    /// True if each request has an arrival time: in an open loop, or with rates for all directions.
    pub fn has_times(&self) -> bool {
        self.open_loop || self.paced().iter().all(|&lane| self.rates[lane].is_some())
    }
}

/// The caps of reads, writes and trims.
#[derive(Debug, Clone)]
pub struct Caps {
    clocks: [Option<Clock>; 3],
    in_use: [bool; 3],
}

impl Caps {
    fn next(&self, lane: usize) -> Nanos {
        self.clocks[lane].as_ref().map_or(0, |clock| clock.next)
    }

    /// True if every direction has a rate.
    pub fn are_whole(&self) -> bool {
        self.clocks.iter().zip(self.in_use).all(|(clock, in_use)| clock.is_some() || !in_use)
    }

    /// The time at which the first direction is due.
    pub fn due(&self) -> Nanos {
        let lanes = (0..3).filter(|&lane| self.in_use[lane]);
        lanes.map(|lane| self.next(lane)).min().expect("a pattern has a direction")
    }

    /// The directions that are due at `now`.
    pub fn turn(&self, now: Nanos) -> Turn {
        Turn { in_use: self.in_use, due: [0, 1, 2].map(|lane| self.next(lane) <= now) }
    }

    /// Counts a request of `kind` that was issued.
    pub fn issued(&mut self, kind: RequestKind, bytes: u64) {
        if let Some(clock) = &mut self.clocks[direction(kind)] {
            clock.issued(bytes);
        }
    }
}

/// Chooses a direction that is due.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    in_use: [bool; 3],
    due: [bool; 3],
}

impl Turn {
    /// The kind to request in place of `drawn`: the other direction, if only that is due.
    pub fn of(self, drawn: RequestKind) -> RequestKind {
        let other = if drawn == RequestKind::Read { RequestKind::Write } else { RequestKind::Read };
        let (own, next) = (direction(drawn), direction(other));
        let is_ahead = self.in_use[own] && !self.due[own];
        if is_ahead && self.in_use[next] && self.due[next] { other } else { drawn }
    }
}

/// The times of requests at a rate.
#[derive(Debug, Clone)]
pub struct Clock {
    rate: Rate,
    pacing: Pacing,
    rng: Rng,
    /// When the next request is due; the first at 0.
    pub next: Nanos,
    /// Remainder of rounding to nanoseconds: a numerator over the rate, or a fraction of a nanosecond.
    numerator: u64,
    fraction: f64,
}

impl Clock {
    fn new(rate: Rate, pacing: Pacing, rng: Rng) -> Clock {
        Clock { rate, pacing, rng, next: 0, numerator: 0, fraction: 0.0 }
    }

    /// Counts a request of `bytes`.
    #[inline]
    pub fn issued(&mut self, bytes: u64) {
        let (time, rate) = match self.rate {
            Rate::Requests(thousandths) => (THOUSAND_SECONDS, thousandths),
            Rate::Bytes(bytes_a_second) => (bytes.saturating_mul(SECOND), bytes_a_second),
        };
        let gap = match self.pacing {
            Pacing::Linear => {
                self.numerator += time % rate;
                let carry = u64::from(self.numerator >= rate);
                self.numerator -= carry * rate;
                time / rate + carry
            }
            Pacing::Poisson => {
                let exponential = -libm::log(1.0 - self.rng.unit());
                self.fraction += exponential * (time as f64 / rate as f64);
                let whole = libm::floor(self.fraction);
                self.fraction -= whole;
                whole as u64
            }
        };
        self.next = self.next.saturating_add(gap);
    }
}
