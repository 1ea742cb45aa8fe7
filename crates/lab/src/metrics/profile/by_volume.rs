//! Footprint, reuse and working set of each volume of a workload.
//!
//! Each volume has a sample of pages ([`ReuseDistances`]), also for the working set: both are exact up to 4 MiB of
//! footprint. Ignored: volumes after the first [`MOST_VOLUMES`] in order of appearance.

use std::collections::HashMap;

use serde::Serialize;

use super::reuse::{Reuse, ReuseDistances, sampling_hash};
use super::working_set::{WorkingSet, WorkingSets};
use super::{PAGE_SECTORS, position};
use palimpsest_workload::request::{Arrivals, Request, Source};

/// Most volumes with figures: about 90 MiB of memory.
pub const MOST_VOLUMES: usize = 1 << 10;

/// Most followed pages of a volume.
const MOST_FOLLOWED: usize = 1 << 10;

/// One in this many points of the curve is kept.
const EVERY: usize = 4;

/// Locality of a volume, of reads and writes together.
#[derive(Debug, Clone, Serialize)]
pub struct VolumeLocality {
    /// Bytes of the distinct pages read or written, estimated if only a sample is followed.
    pub footprint_bytes: u64,
    /// Reuse distances and miss ratios of caches, one a power of two.
    pub reuse: Reuse,
    /// Working sets by the length of the window, shorter ones first.
    pub working_sets: Vec<WorkingSet>,
}

struct Counters {
    reuse: ReuseDistances,
    sets: WorkingSets,
}

/// Counts by volume.
pub struct LocalityByVolume {
    is_time: bool,
    requests: u64,
    latest: u64,
    // For look-ups only: the order never affects a result.
    counters: HashMap<u32, Counters>,
}

impl LocalityByVolume {
    /// An empty description of the workload behind `source`.
    pub fn new(source: &dyn Source) -> LocalityByVolume {
        let is_time = source.arrivals() == Arrivals::Open;
        LocalityByVolume { is_time, requests: 0, latest: 0, counters: HashMap::new() }
    }

    /// Counts a request.
    pub fn add(&mut self, request: &Request) {
        self.requests += 1;
        self.latest = if self.is_time { request.arrival } else { self.requests };
        let is_known = self.counters.len() < MOST_VOLUMES || self.counters.contains_key(&request.owner());
        if position(request.kind) >= 2 || !is_known {
            return;
        }
        let none = || Counters { reuse: ReuseDistances::up_to(MOST_FOLLOWED), sets: WorkingSets::new(self.is_time) };
        let Counters { reuse, sets } = self.counters.entry(request.owner()).or_insert_with(none);
        let now = sets.clock(self.latest);
        sets.go_to(now);
        let pages = request.extent.sector / PAGE_SECTORS..request.extent.end().div_ceil(PAGE_SECTORS);
        reuse.count(pages.end - pages.start);
        for page in pages {
            let weight = 1 << reuse.halvings();
            if let Some(before) = reuse.add(page, sampling_hash(page), now) {
                sets.count(before, weight);
            }
        }
    }

    /// The figures of the volume with this number; `None` without reads and writes, or beyond [`MOST_VOLUMES`].
    pub fn figures(&self, volume: u32) -> Option<VolumeLocality> {
        self.counters.get(&volume).map(|Counters { reuse, sets }| {
            // Windows extend to the end of the workload.
            let mut sets = sets.clone();
            sets.go_to(sets.clock(self.latest));
            let working_sets = sets.figures();
            VolumeLocality { footprint_bytes: reuse.footprint_bytes(), reuse: reuse.figures(EVERY), working_sets }
        })
    }
}

#[cfg(test)]
mod tests;
