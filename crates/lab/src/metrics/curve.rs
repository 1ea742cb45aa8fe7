//! The curve of write amplification: bytes written by the host and bytes of data programmed, over the requests of a
//! run.
//!
//! A bounded number of points, evenly spread over the requests, at every fidelity; finer than the snapshots of blocks,
//! whose size bounds their number. In a run of unknown length the distance of points doubles as the run proceeds. A
//! counted run has no windows of time, so the points divide it into windows of equal numbers of requests, as evidence
//! of a steady drive.
//! Ignored: changes between two points.

use super::recorder::FlashTotals;
use super::steady::{Latencies, Sample};
use super::tail::Tail;
use serde::Serialize;

/// Upper bound of points, not reached.
const MOST_POINTS: usize = 2048;
/// Requests between the first points of a run of unknown length.
const FIRST_INTERVAL: u64 = 64;

/// The curve.
#[derive(Debug)]
pub struct Curve {
    interval: u64,
    next: u64,
    points: Points,
    /// Latencies of a run without time.
    empty: Tail,
}

/// Points of the curve, counted since the measurement began.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Points {
    /// Measured requests submitted.
    pub requests: Vec<u64>,
    /// Bytes that the host wrote.
    pub host_bytes: Vec<u64>,
    /// Bytes of data programmed, padding apart.
    pub data_bytes: Vec<u64>,
}

impl Curve {
    /// A curve without points, of a run of `expected` requests; 0: unknown.
    pub fn new(expected: u64) -> Self {
        let interval = if expected == 0 { FIRST_INTERVAL } else { expected.div_ceil(MOST_POINTS as u64 - 3) };
        Curve { interval, next: 0, points: Points::default(), empty: Tail::default() }
    }

    /// The number of requests after which [`Self::add`] is due.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Adds the point after `requests` requests, replacing an earlier one after the same number.
    pub fn add(&mut self, requests: u64, totals: FlashTotals) {
        let points = &mut self.points;
        if points.requests.last() == Some(&requests) {
            points.requests.pop();
            points.host_bytes.pop();
            points.data_bytes.pop();
        }
        points.requests.push(requests);
        points.host_bytes.push(totals.host_bytes);
        points.data_bytes.push(totals.data_bytes);
        if points.requests.len() == MOST_POINTS - 1 {
            for column in [&mut points.requests, &mut points.host_bytes, &mut points.data_bytes] {
                *column = column.iter().copied().step_by(2).collect();
            }
            self.interval *= 2;
        }
        self.next = requests + self.interval;
    }

    /// Bytes of the host and bytes programmed between two points, as evidence of a steady drive. A shorter window
    /// at the end stays out.
    pub fn samples(&self) -> Vec<Sample<'_>> {
        let Points { requests, host_bytes, data_bytes } = &self.points;
        let none = Latencies { count: 0, sum: 0, tail: &self.empty };
        let window = |at: usize| Sample {
            requests: requests[at + 1] - requests[at],
            kinds: [none; 2],
            // A power cut takes back data that the buffer lost.
            host_bytes: host_bytes[at + 1].saturating_sub(host_bytes[at]),
            data_bytes: data_bytes[at + 1].saturating_sub(data_bytes[at]),
        };
        let windows = (1..requests.len()).map(|end| window(end - 1));
        windows.filter(|sample| sample.requests >= self.interval).collect()
    }

    /// The points, without the bytes written before the first.
    pub fn points(&self) -> Points {
        let since = |column: &[u64]| {
            let first = column.first().copied().unwrap_or(0);
            column.iter().map(|value| value - first).collect()
        };
        let Points { requests, host_bytes, data_bytes } = &self.points;
        Points { requests: requests.clone(), host_bytes: since(host_bytes), data_bytes: since(data_bytes) }
    }
}

#[cfg(test)]
mod tests;
