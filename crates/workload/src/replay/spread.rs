//! Spreads requests with one time evenly over the tick of the trace's clock.
//!
//! The tick is the common divisor of all gaps between the first [`HEAD`] requests, and at least the grain of the
//! format. Before a shorter gap, requests are spread over that gap. Requests stay in their order.

use crate::request::Request;
use palimpsest_flash::error::Result;
use palimpsest_flash::units::Nanos;
use std::collections::VecDeque;

/// Requests that determine the tick.
const HEAD: usize = 1 << 16;

/// Reads requests ahead: a tick, and at the start [`HEAD`] requests.
#[derive(Default)]
pub struct Spread {
    ahead: VecDeque<Request>,
    ended: bool,
    grain: Nanos,
    tick: Option<Nanos>,
    /// Requests of the present time: all, and the returned ones.
    group: (u64, u64),
    /// Time over which they are spread.
    over: Nanos,
}

impl Spread {
    /// For times that are multiples of `grain`.
    pub fn new(grain: Nanos) -> Spread {
        Spread { grain, ..Spread::default() }
    }

    /// The next request of `read`, at the new time.
    pub fn next(&mut self, mut read: impl FnMut() -> Result<Option<Request>>) -> Result<Option<Request>> {
        let tick = match self.tick {
            Some(tick) => tick,
            None => {
                while self.ahead.len() < HEAD && !self.ended {
                    self.read_one(&mut read)?;
                }
                *self.tick.insert(self.find_tick())
            }
        };
        if self.group.0 == self.group.1 {
            if self.ahead.is_empty() && !self.ended {
                self.read_one(&mut read)?;
            }
            let Some(first) = self.ahead.front().map(|request| request.arrival) else { return Ok(None) };
            while !self.ended && self.ahead.back().is_some_and(|request| request.arrival == first) {
                self.read_one(&mut read)?;
            }
            let together = self.ahead.partition_point(|request| request.arrival == first);
            self.group = (together as u64, 0);
            self.over = self.ahead.get(together).map_or(tick, |next| tick.min(next.arrival - first));
        }
        let mut request = self.ahead.pop_front().expect("the group has requests left");
        let (requests, left) = self.group;
        request.arrival += (u128::from(self.over) * u128::from(left) / u128::from(requests)) as Nanos;
        self.group.1 += 1;
        Ok(Some(request))
    }

    fn read_one(&mut self, read: &mut impl FnMut() -> Result<Option<Request>>) -> Result<()> {
        match read()? {
            Some(next) => self.ahead.push_back(next),
            None => self.ended = true,
        }
        Ok(())
    }

    fn find_tick(&self) -> Nanos {
        let arrivals = self.ahead.iter().map(|request| request.arrival);
        let gaps = arrivals.clone().skip(1).zip(arrivals).map(|(later, earlier)| later - earlier);
        gaps.fold(0, common_divisor).max(self.grain)
    }
}

fn common_divisor(mut one: Nanos, mut two: Nanos) -> Nanos {
    while two > 0 {
        (one, two) = (two, one % two);
    }
    one
}
