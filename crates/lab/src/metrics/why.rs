//! Where latencies come from: the parts of the requests at a percentile.
//!
//! A percentile is the mean of a bucket of the [histogram](super::histogram). The parts of all requests of that bucket
//! are summed, so they sum to the percentile times the number of requests. Ignored: which requests these are.

use super::histogram::Histogram;
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::Nanos;
use palimpsest_sim::timeline::parts::{PART_NAMES, Parts};
use serde::Serialize;
use std::collections::BTreeMap;

/// Percentiles and their ranks: parts of 10,000.
const PERCENTILES: [(&str, u64); 4] = [("p50", 5000), ("p99", 9900), ("p999", 9990), ("p9999", 9999)];
/// Kinds of requests, in the order of [`RequestKind`].
const KINDS: [&str; 4] = ["read", "write", "trim", "flush"];

/// Sums of parts of requests with about equal latencies.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    requests: u64,
    parts: Parts,
}

/// Parts of all requests of a kind.
#[derive(Debug, Clone, Default)]
struct Kind {
    buckets: BTreeMap<usize, Bucket>,
    /// The slowest request, the first of equals.
    slowest: Bucket,
}

/// Parts of all requests, by kind.
#[derive(Debug, Clone, Default)]
pub struct Why([Kind; 4]);

/// The requests at a percentile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// Requests in the bucket of the percentile.
    pub requests: u64,
    /// The percentile: their mean latency.
    pub latency_ns: Nanos,
    /// Sums over these requests, by part, without parts that are 0.
    pub parts_ns: BTreeMap<&'static str, Nanos>,
}

/// The explained percentiles of each kind of request.
pub type Explanations = BTreeMap<&'static str, BTreeMap<&'static str, Explained>>;

impl Bucket {
    fn latency(&self) -> Nanos {
        self.parts.iter().sum::<Nanos>() / self.requests.max(1)
    }

    fn explained(&self) -> Explained {
        let parts_ns = PART_NAMES.into_iter().zip(self.parts).filter(|part| part.1 > 0).collect();
        Explained { requests: self.requests, latency_ns: self.latency(), parts_ns }
    }
}

impl Why {
    /// Adds a request of `kind`.
    pub fn add(&mut self, kind: RequestKind, parts: &Parts) {
        let (kind, this) = (&mut self.0[kind as usize], Bucket { requests: 1, parts: *parts });
        let bucket = kind.buckets.entry(Histogram::bucket_of(this.latency())).or_default();
        bucket.requests += 1;
        bucket.parts.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        if kind.slowest.requests == 0 || kind.slowest.latency() < this.latency() {
            kind.slowest = this;
        }
    }

    /// Adds all requests of `other`.
    pub fn merge(&mut self, other: &Why) {
        for (kind, Kind { buckets, slowest }) in self.0.iter_mut().zip(&other.0) {
            for (&at, more) in buckets {
                let bucket = kind.buckets.entry(at).or_default();
                bucket.requests += more.requests;
                bucket.parts.iter_mut().zip(more.parts).for_each(|(sum, part)| *sum += part);
            }
            if kind.slowest.requests == 0 || kind.slowest.latency() < slowest.latency() {
                kind.slowest = *slowest;
            }
        }
    }

    /// The explanations; `None` if no request was explained.
    pub fn explanations(&self) -> Option<Explanations> {
        let of_kind = |kind: &Kind| {
            let count: u64 = kind.buckets.values().map(|bucket| bucket.requests).sum();
            let at = |part: u64| {
                let mut left = (count * part).div_ceil(10_000);
                kind.buckets.values().find(|bucket| {
                    left = left.saturating_sub(bucket.requests);
                    left == 0
                })
            };
            let percentiles = PERCENTILES.iter().filter_map(|&(name, part)| Some((name, at(part)?.explained())));
            percentiles.chain([("max", kind.slowest.explained())]).collect()
        };
        let kinds = KINDS.into_iter().zip(&self.0).filter(|kind| kind.1.slowest.requests > 0);
        let explanations: Explanations = kinds.map(|(name, kind)| (name, of_kind(kind))).collect();
        (!explanations.is_empty()).then_some(explanations)
    }
}

#[cfg(test)]
mod tests;
