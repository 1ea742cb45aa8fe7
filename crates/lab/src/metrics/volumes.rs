//! Figures of each volume of a workload: requests, bytes and latencies.
//!
//! A volume is a stream of requests; volumes are in order of appearance. Percentiles are within 1.6 % ([`Tail`]),
//! because there may be thousands of volumes. Ignored: which requests a percentile has.
//!
//! `volumes`, `recorder` and `summary` use each other: the recorder of a run has one of volumes, and a summary has
//! results of both.

use super::summary::{Latency, VolumeFigures, VolumeLatencies, VolumeLatency};
use super::tail::Tail;
use super::tenants::{Counts, TenantFigures, Times};
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_workload::replay::Volume;
use std::collections::HashMap;

/// Times of a volume.
#[derive(Default)]
pub struct VolumeTimes {
    tail: Tail,
    count: u64,
    sum: u128,
    max: Nanos,
}

impl Times for VolumeTimes {
    fn add(&mut self, latency: Nanos) {
        self.tail.record(latency);
        self.count += 1;
        self.sum += u128::from(latency);
        self.max = self.max.max(latency);
    }

    fn join(&mut self, other: &Self) {
        self.tail.merge(&other.tail);
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    fn latency(&self) -> Option<Latency> {
        let percentile = |part| self.tail.percentile_of(part, 10_000).min(self.max);
        (self.count > 0).then(|| Latency {
            mean: ((self.sum + u128::from(self.count / 2)) / u128::from(self.count)) as Nanos,
            p50: percentile(5000),
            p90: percentile(9000),
            p99: percentile(9900),
            p999: percentile(9990),
            p9999: percentile(9999),
            max: self.max,
        })
    }
}

/// Counts by volume.
#[derive(Default)]
pub struct VolumeRecorder {
    counts: Vec<(u32, Counts<VolumeTimes>)>,
    // For look-ups only: the order never affects a result.
    numbers: HashMap<u32, usize>,
    last: usize,
}

impl VolumeRecorder {
    /// The counts of a volume.
    #[inline]
    pub fn of(&mut self, stream: u32) -> &mut Counts<VolumeTimes> {
        if self.counts.get(self.last).is_none_or(|counts| counts.0 != stream) {
            self.last = *self.numbers.entry(stream).or_insert_with(|| {
                self.counts.push((stream, Counts::default()));
                self.counts.len() - 1
            });
        }
        &mut self.counts[self.last].1
    }

    /// The figures of each of `volumes`, without programmed bytes; none for a single volume, whose figures are the
    /// run's. Without `timed`, times are null.
    pub fn tenants(&self, volumes: &[Volume], timed: bool) -> Vec<TenantFigures> {
        if volumes.len() < 2 {
            return Vec::new();
        }
        let volume_of = |id: u32| {
            let found = volumes.iter().find(|volume| volume.id == id);
            found.map(|volume| (id, volume.name.to_string()))
        };
        let of = |volume: &Volume| {
            let counts = self.numbers.get(&volume.id).map(|&number| &self.counts[number].1);
            let name = volume.name.to_string();
            let figures = TenantFigures::of(counts.into_iter(), timed).with_waits(counts.into_iter(), volume_of);
            TenantFigures { tenant: volume.id, name, ..figures }
        };
        volumes.iter().map(of).collect()
    }

    /// The figures of each of `volumes`, as [`Self::tenants`].
    pub fn figures(&self, volumes: &[Volume], timed: bool) -> Vec<VolumeFigures> {
        let short = |latency: Option<Latency>| {
            latency.map(|Latency { mean, p50, p99, max, .. }| VolumeLatency { mean, p50, p99, max })
        };
        let of = |(volume, figures): (&Volume, TenantFigures)| VolumeFigures {
            volume: volume.id,
            name: volume.name.to_string(),
            offset_bytes: volume.sector * SECTOR_BYTES,
            size_bytes: (volume.sectors > 0).then_some(volume.sectors * SECTOR_BYTES),
            requests: figures.requests,
            bytes_read: figures.bytes_read,
            bytes_written: figures.bytes_written,
            latency_ns: figures
                .latency_ns
                .map(|times| VolumeLatencies { read: short(times.read), write: short(times.write) }),
        };
        volumes.iter().zip(self.tenants(volumes, timed)).map(of).collect()
    }
}

#[cfg(test)]
mod tests;
