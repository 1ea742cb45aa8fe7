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
const PERCENTILES: [(&str, u64); 5] = [("p50", 5000), ("p99", 9900), ("p999", 9990), ("p9999", 9999), ("max", 10_000)];
/// Kinds of requests, in the order of [`RequestKind`].
const KINDS: [&str; 4] = ["read", "write", "trim", "flush"];

/// Sums of parts of requests with about equal latencies.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    requests: u64,
    parts: Parts,
}

/// Parts of all requests, by kind and bucket.
#[derive(Debug, Clone, Default)]
pub struct Why([BTreeMap<usize, Bucket>; 4]);

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

impl Why {
    /// Adds a request of `kind`.
    pub fn add(&mut self, kind: RequestKind, parts: &Parts) {
        let bucket = self.0[kind as usize].entry(Histogram::bucket_of(parts.iter().sum())).or_default();
        bucket.requests += 1;
        bucket.parts.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
    }

    /// The explanations; `None` if no request was explained.
    pub fn explanations(&self) -> Option<Explanations> {
        let of_kind = |buckets: &BTreeMap<usize, Bucket>| {
            let count: u64 = buckets.values().map(|bucket| bucket.requests).sum();
            let explained = PERCENTILES.iter().filter_map(|&(name, part)| {
                let rank = (count * part).div_ceil(10_000);
                let mut seen = 0;
                let bucket = buckets.values().find(|bucket| {
                    seen += bucket.requests;
                    seen >= rank
                })?;
                let parts = PART_NAMES.into_iter().zip(bucket.parts).filter(|part| part.1 > 0).collect();
                let latency_ns = bucket.parts.iter().sum::<Nanos>() / bucket.requests;
                Some((name, Explained { requests: bucket.requests, latency_ns, parts_ns: parts }))
            });
            explained.collect()
        };
        let kinds = KINDS.into_iter().zip(&self.0).filter(|kind| !kind.1.is_empty());
        let explanations: Explanations = kinds.map(|(kind, buckets)| (kind, of_kind(buckets))).collect();
        (!explanations.is_empty()).then_some(explanations)
    }
}

#[cfg(test)]
mod tests;
