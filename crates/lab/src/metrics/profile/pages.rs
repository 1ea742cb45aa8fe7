//! Reads and writes of each page: footprint, overwrites, hot share and working sets, in bounded memory.
//!
//! Every page has counters until there are [`MOST_PAGES`]; then half of all pages, selected by their hash, then a
//! quarter, and so on (spatial sampling: Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015). The
//! sample depends on page numbers alone, so the counters of sampled pages are exact; sizes are scaled up, and shares
//! hold for the sample. Ignored: the order of accesses, except in working sets.

use std::collections::VecDeque;

use serde::Serialize;

use super::PAGE_BYTES;
use super::page_table::{BLOCK, PageTable};
use super::working_set::WorkingSets;
use palimpsest_flash::rng::mix;

/// Most pages with counters: 8 GiB of footprint, in about 100 MiB of memory.
pub const MOST_PAGES: usize = 1 << 21;

/// Points of a curve, less one.
const CURVE_STEPS: u64 = 50;

/// Accesses between the fetch of a page's counters and their use.
pub const AHEAD: usize = 16;

/// Most pages of an access whose counters are prefetched.
const FETCHED: u64 = 16 * BLOCK;

/// No access yet.
const NEVER: u32 = u32::MAX;

/// Reads and writes of a page.
#[derive(Debug, Clone, Copy)]
struct Counts {
    of: [u32; 2],
    /// Times of the latest read and write, by the clock of the working sets.
    latest: [u32; 2],
}

impl Default for Counts {
    fn default() -> Self {
        Counts { of: [0; 2], latest: [NEVER; 2] }
    }
}

impl Counts {
    /// Records an access at `now`; returns the times of the latest access before, and of the latest of the same kind.
    #[inline]
    fn note(&mut self, kind: usize, now: u32) -> [Option<u32>; 2] {
        self.of[kind] = self.of[kind].saturating_add(1);
        let [read, write] = self.latest.map(|time| (time != NEVER).then_some(time));
        let own = [read, write][kind];
        self.latest[kind] = now;
        [read.max(write), own]
    }
}

/// Counters of pages.
#[derive(Debug)]
pub struct PageCounters {
    // Aggregated only after sorting: the order never affects a result.
    counts: PageTable<Counts>,
    /// One page in 2^halvings has counters.
    halvings: u32,
    most: usize,
    touches: [u64; 2],
    /// Working sets of all accesses, of reads and of writes.
    sets: [WorkingSets; 3],
    /// Accesses that are not counted yet, because their counters are being prefetched.
    coming: VecDeque<Access>,
}

/// A read or write of the pages from `first` to before `end` at `time`.
#[derive(Debug, Clone, Copy)]
struct Access {
    time: u64,
    first: u64,
    end: u64,
    kind: usize,
}

/// Footprint, overwrites and hot share, in pages of 4 KiB.
#[derive(Debug, Clone, Serialize)]
pub struct Locality {
    /// One if every page was counted; else the share of the pages in the sample.
    pub sampled_share: f64,
    /// Bytes of the distinct pages read or written.
    pub footprint_bytes: u64,
    /// Bytes of the distinct pages read.
    pub read_footprint_bytes: u64,
    /// Bytes of the distinct pages written.
    pub write_footprint_bytes: u64,
    /// Page writes over distinct pages written; null without writes.
    pub writes_per_page: Option<f64>,
    /// Share of the page writes to a page written before.
    pub overwrite_ratio: Option<f64>,
    /// Share of the page writes to the most written fifth of the written pages.
    pub hot_write_ratio: Option<f64>,
    /// Share of the page reads to the most read fifth of the read pages.
    pub hot_read_ratio: Option<f64>,
    /// Share of the page writes to the most written pages, by their share of the written pages in steps of 2 % from 0
    /// to all.
    pub write_curve: Vec<f64>,
    /// The same for reads.
    pub read_curve: Vec<f64>,
}

impl PageCounters {
    /// Counters of at most `most` pages, of a workload with times or without.
    pub fn up_to(most: usize, is_time: bool) -> PageCounters {
        let sets = [(); 3].map(|()| WorkingSets::new(is_time));
        PageCounters { counts: PageTable::default(), halvings: 0, most, touches: [0; 2], sets, coming: VecDeque::new() }
    }

    /// Counts a read (`kind` 0) or a write (1) at `time` of the pages from `first` to before `end`.
    pub fn add(&mut self, time: u64, first: u64, end: u64, kind: usize) {
        self.touches[kind] += end - first;
        let mut page = first;
        while page < end.min(first + FETCHED) {
            self.counts.expect(page, end);
            page += BLOCK - page % BLOCK;
        }
        self.coming.push_back(Access { time, first, end, kind });
        if self.coming.len() > AHEAD {
            self.count_next();
        }
    }

    /// Counts all accesses so far.
    fn settle(&mut self) {
        while !self.coming.is_empty() {
            self.count_next();
        }
    }

    #[inline]
    fn count_next(&mut self) {
        let Some(Access { time, first, end, kind }) = self.coming.pop_front() else { return };
        let now = self.sets[0].clock(time);
        self.sets.iter_mut().for_each(|sets| sets.go_to(now));
        let (weight, mut near) = (1 << self.halvings, usize::MAX);
        for page in first..end {
            if is_sampled(page, self.halvings) {
                let [any, own] = self.counts.of_near(page, &mut near).note(kind, now);
                self.sets[0].count(any, weight);
                self.sets[1 + kind].count(own, weight);
            }
        }
        while self.counts.len() > self.most {
            self.halvings += 1;
            let halvings = self.halvings;
            self.counts.retain(|page| is_sampled(page, halvings));
        }
    }

    /// The figures.
    pub fn locality(&mut self) -> Locality {
        self.settle();
        let [reads, writes] = [0, 1].map(|kind| {
            let mut counts: Vec<u32> = self.counts.iter().map(|counts| counts.of[kind]).filter(|&n| n > 0).collect();
            counts.sort_unstable_by(|a, b| b.cmp(a));
            counts
        });
        let bytes = |pages: usize| (pages as u64 * PAGE_BYTES) << self.halvings;
        let total: u64 = writes.iter().map(|&count| u64::from(count)).sum();
        let some = |value: f64| (!writes.is_empty()).then_some(value);
        Locality {
            sampled_share: 1.0 / (1u64 << self.halvings) as f64,
            footprint_bytes: bytes(self.counts.len()),
            read_footprint_bytes: bytes(reads.len()),
            write_footprint_bytes: bytes(writes.len()),
            writes_per_page: some(total as f64 / writes.len() as f64),
            overwrite_ratio: some((total - writes.len() as u64) as f64 / total as f64),
            hot_write_ratio: hot(&writes),
            hot_read_ratio: hot(&reads),
            write_curve: curve(&writes),
            read_curve: curve(&reads),
        }
    }

    /// Working sets of all accesses, of reads and of writes.
    pub fn working_sets(&mut self) -> &mut [WorkingSets; 3] {
        self.settle();
        &mut self.sets
    }

    /// Page reads and page writes.
    pub fn touches(&self) -> [u64; 2] {
        self.touches
    }
}

#[inline]
fn is_sampled(page: u64, halvings: u32) -> bool {
    halvings == 0 || mix(page) >> (64 - halvings) == 0
}

/// The share of the largest fifth (rounded up) of the counts, which must be in descending order.
fn hot(counts: &[u32]) -> Option<f64> {
    let sum = |counts: &[u32]| counts.iter().map(|&count| u64::from(count)).sum::<u64>();
    let fifth = counts.len().div_ceil(5);
    (!counts.is_empty()).then(|| sum(&counts[..fifth]) as f64 / sum(counts) as f64)
}

/// Cumulative shares of the largest counts, in equal steps of their number.
fn curve(counts: &[u32]) -> Vec<f64> {
    let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    if total == 0 {
        return Vec::new();
    }
    let (mut sum, mut taken) = (0u64, 0usize);
    let point = |step: u64| {
        let upto = (counts.len() as u64 * step / CURVE_STEPS) as usize;
        sum += counts[taken..upto].iter().map(|&count| u64::from(count)).sum::<u64>();
        taken = upto;
        sum as f64 / total as f64
    };
    (0..=CURVE_STEPS).map(point).collect()
}
