//! Figures of each volume of a workload: requests, bytes and latencies.
//!
//! A volume is a stream of requests; volumes are in order of appearance. Percentiles are within 1.6 % ([`Tail`]),
//! because there may be thousands of volumes. Ignored: flash operations by volume, because the layer mixes the data of
//! all volumes.
//!
//! `volumes`, `recorder` and `summary` use each other: the recorder of a run has one of volumes, and a summary has
//! results of both.

use super::summary::{Requests, VolumeFigures, VolumeLatencies, VolumeLatency};
use super::tail::Tail;
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_workload::replay::Volume;
use std::collections::HashMap;

#[derive(Default)]
struct Times {
    tail: Tail,
    count: u64,
    sum: u128,
    max: Nanos,
}

impl Times {
    fn record(&mut self, latency: Nanos) {
        self.tail.record(latency);
        self.count += 1;
        self.sum += u128::from(latency);
        self.max = self.max.max(latency);
    }

    fn figures(&self) -> Option<VolumeLatency> {
        let percentile = |percent| self.tail.percentile(percent).unwrap_or(0).min(self.max);
        (self.count > 0).then(|| VolumeLatency {
            mean: ((self.sum + u128::from(self.count / 2)) / u128::from(self.count)) as Nanos,
            p50: percentile(50),
            p99: percentile(99),
            max: self.max,
        })
    }
}

/// Submitted requests and bytes, and times of completed reads and writes.
#[derive(Default)]
pub(super) struct Counts<T> {
    pub(super) requests: Requests,
    pub(super) bytes: [u64; 2],
    pub(super) read: T,
    pub(super) write: T,
}

impl<T> Counts<T> {
    /// Uncounts a request that the drive refused.
    pub(super) fn refused(&mut self, kind: RequestKind, sectors: u32) {
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        match kind {
            RequestKind::Read => (self.requests.read, self.bytes[0]) = (self.requests.read - 1, self.bytes[0] - bytes),
            RequestKind::Write => {
                (self.requests.write, self.bytes[1]) = (self.requests.write - 1, self.bytes[1] - bytes);
            }
            RequestKind::Trim => self.requests.trim -= 1,
            RequestKind::Flush => self.requests.flush -= 1,
        }
    }

    /// Counts a request that is submitted.
    pub(super) fn submitted(&mut self, kind: RequestKind, sectors: u32) {
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        match kind {
            RequestKind::Read => (self.requests.read, self.bytes[0]) = (self.requests.read + 1, self.bytes[0] + bytes),
            RequestKind::Write => {
                (self.requests.write, self.bytes[1]) = (self.requests.write + 1, self.bytes[1] + bytes);
            }
            RequestKind::Trim => self.requests.trim += 1,
            RequestKind::Flush => self.requests.flush += 1,
        }
    }
}

/// Counts by volume.
#[derive(Default)]
pub struct VolumeRecorder {
    counts: Vec<(u32, Counts<Times>)>,
    // For look-ups only: the order never affects a result.
    numbers: HashMap<u32, usize>,
    last: usize,
}

impl VolumeRecorder {
    #[inline]
    fn of(&mut self, stream: u32) -> &mut Counts<Times> {
        if self.counts.get(self.last).is_none_or(|counts| counts.0 != stream) {
            self.last = *self.numbers.entry(stream).or_insert_with(|| {
                self.counts.push((stream, Counts::default()));
                self.counts.len() - 1
            });
        }
        &mut self.counts[self.last].1
    }

    /// Counts a request that is submitted.
    pub fn submitted(&mut self, stream: u32, kind: RequestKind, sectors: u32) {
        self.of(stream).submitted(kind, sectors);
    }

    /// Uncounts a request that the drive refused.
    pub fn refused(&mut self, stream: u32, kind: RequestKind, sectors: u32) {
        self.of(stream).refused(kind, sectors);
    }

    /// Counts a request that has completed.
    pub fn completed(&mut self, stream: u32, kind: RequestKind, latency: Nanos) {
        match kind {
            RequestKind::Read => self.of(stream).read.record(latency),
            RequestKind::Write => self.of(stream).write.record(latency),
            _ => {}
        }
    }

    /// The figures of each of `volumes`; none for a single volume, whose figures are the run's. Without `timed`,
    /// latencies are null.
    pub fn figures(&self, volumes: &[Volume], timed: bool) -> Vec<VolumeFigures> {
        if volumes.len() < 2 {
            return Vec::new();
        }
        let none = Counts::default();
        let of = |volume: &Volume| {
            let counts = self.numbers.get(&volume.id).map_or(&none, |&number| &self.counts[number].1);
            VolumeFigures {
                volume: volume.id,
                name: volume.name.to_string(),
                offset_bytes: volume.sector * SECTOR_BYTES,
                size_bytes: (volume.sectors > 0).then_some(volume.sectors * SECTOR_BYTES),
                requests: counts.requests.clone(),
                bytes_read: counts.bytes[0],
                bytes_written: counts.bytes[1],
                latency_ns: timed
                    .then(|| VolumeLatencies { read: counts.read.figures(), write: counts.write.figures() }),
            }
        };
        volumes.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests;
