//! Statistics of a workload without a drive: counts, sizes, locality and arrivals of requests.
//!
//! One pass, in bounded memory: counters of pages are exact up to [`pages::MOST_PAGES`] distinct pages and then kept
//! for a sample of them; the picture is a grid that becomes coarser; sizes and gaps are histograms.
//!
//! A page here has 4 KiB ([`PAGE_BYTES`]), which may differ from the page of the drive. Ignored: trims and flushes,
//! except their number, and the response times that some traces have.

pub mod by_volume;
pub mod grid;
mod page_table;
pub mod pages;
pub mod reuse;
pub mod working_set;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use super::histogram::Histogram;
use grid::{Grid, Map};
use pages::{AHEAD, Locality, MOST_PAGES, PageCounters};
use palimpsest_flash::units::{KIB, Nanos};
use palimpsest_workload::request::{Arrivals, Request, RequestKind, SECTOR_BYTES, Source};
use reuse::{Reuse, ReuseDistances, sampling_hash};
use working_set::WorkingSet;

/// Bytes of a page of this description.
pub const PAGE_BYTES: u64 = 4 * KIB;
const MILLISECOND: Nanos = 1_000_000;
const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// From this size on a request counts as large: the limit of hot writes of a classifier by size.
pub const LARGE_BYTES: u64 = 64 * KIB;

/// A request is sequential if one of this many earlier requests ended at its start.
const REMEMBERED_ENDS: usize = 32;

/// Most streams that are counted.
const MOST_STREAMS: usize = 1 << 16;

/// Counts the requests of a workload.
#[derive(Debug)]
pub struct Profile {
    arrivals: Arrivals,
    requests: [u64; 4],
    bytes: [u64; 4],
    sizes: [BTreeMap<u32, u64>; 2],
    aligned: u64,
    pages: PageCounters,
    /// Reuse of all accesses, of reads and of writes.
    reuse: [ReuseDistances; 3],
    /// Accesses to sampled pages that are not in `reuse` yet, because the records are being prefetched: page, hash and
    /// kind.
    coming: VecDeque<(u64, u64, usize)>,
    first_sector: u64,
    end_sector: u64,
    ends: [u64; REMEMBERED_ENDS],
    oldest_end: usize,
    last_end: u64,
    sequential: [u64; 2],
    contiguous: [u64; 2],
    latest: Nanos,
    /// The latest gap, whose bucket is being prefetched.
    gap: Option<Nanos>,
    gaps: Histogram,
    gap_squares: f64,
    /// The current millisecond with the number of requests, and the distribution over milliseconds.
    in_millisecond: (u64, u64),
    milliseconds: Histogram,
    streams: BTreeSet<u32>,
    /// The stream of the latest request.
    stream: Option<u32>,
    grid: Grid,
}

/// Counts by kind of request.
#[derive(Debug, Clone, Serialize)]
pub struct CountsByKind {
    /// Of all requests.
    pub all: u64,
    /// Of reads.
    pub read: u64,
    /// Of writes.
    pub write: u64,
    /// Of trims.
    pub trim: u64,
    /// Of flushes.
    pub flush: u64,
}

/// A figure of reads and writes together, and of each; null if there are none.
#[derive(Debug, Clone, Serialize)]
pub struct Shares {
    /// Of reads and writes.
    pub all: Option<f64>,
    /// Of reads.
    pub read: Option<f64>,
    /// Of writes.
    pub write: Option<f64>,
}

/// A figure of all accesses to pages, of reads alone, as if there were no writes, and of writes alone.
#[derive(Debug, Clone, Serialize)]
pub struct ByKind<T> {
    /// Of reads and writes.
    pub all: T,
    /// Of reads.
    pub read: T,
    /// Of writes.
    pub write: T,
}

impl<T> From<[T; 3]> for ByKind<T> {
    fn from([all, read, write]: [T; 3]) -> ByKind<T> {
        ByKind { all, read, write }
    }
}

/// A distribution in whole units.
#[derive(Debug, Clone, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest.
    pub max: u64,
}

/// Requests of sizes up to a limit and above half of it.
#[derive(Debug, Clone, Serialize)]
pub struct SizeClass {
    /// Largest size of the class, in bytes: a power of two.
    pub upto_bytes: u64,
    /// Reads.
    pub read: u64,
    /// Writes.
    pub write: u64,
}

/// The description of a workload. Ratios are shares of one; null where the divisor is zero.
#[derive(Debug, Clone, Serialize)]
pub struct Description {
    /// `open` or `closed`: the usual loop of the workload.
    pub arrivals: &'static str,
    /// Requests that a closed loop keeps outstanding; null for an open one.
    pub depth: Option<u32>,
    /// Requests.
    pub requests: CountsByKind,
    /// Bytes of the requests.
    pub bytes: CountsByKind,
    /// Reads of reads and writes, in requests.
    pub read_ratio: Option<f64>,
    /// Bytes read of bytes read and written.
    pub read_bytes_ratio: Option<f64>,
    /// Sizes of reads in bytes; null without reads.
    pub read_bytes: Option<Spread>,
    /// Sizes of writes in bytes; null without writes.
    pub write_bytes: Option<Spread>,
    /// Requests by size.
    pub sizes: Vec<SizeClass>,
    /// Reads and writes that begin and end at multiples of 4 KiB.
    pub aligned_ratio: Option<f64>,
    /// From the first byte of reads and writes to the last; 0 if there are none.
    pub span_bytes: u64,
    /// The byte after the highest accessed byte.
    pub end_bytes: u64,
    /// From the first arrival to the last.
    pub duration_ns: Nanos,
    /// Reads and writes that start at the end of a request among the 32 before.
    pub sequential_ratio: Shares,
    /// Reads and writes that start at the end of the previous one.
    pub contiguous_ratio: Shares,
    /// Footprint, overwrites and hot share.
    pub locality: Locality,
    /// Reuse distances and miss ratios of caches.
    pub reuse: ByKind<Reuse>,
    /// Working sets by the length of the window, shorter ones first.
    pub working_sets: ByKind<Vec<WorkingSet>>,
    /// Writes of at least 64 KiB, of all writes.
    pub large_write_ratio: Option<f64>,
    /// Bytes of these writes, of all bytes written.
    pub large_write_bytes_ratio: Option<f64>,
    /// Gaps between arrivals; null for a closed loop and below two requests.
    pub interarrival_ns: Option<Spread>,
    /// Standard deviation of the gaps over their mean: 1 for Poisson arrivals, more for bursts.
    pub interarrival_variation: Option<f64>,
    /// Requests of a millisecond, over milliseconds with arrivals: about the queue depth of a drive with a response
    /// time of a millisecond. Null for a closed loop.
    pub arrivals_per_ms: Option<Spread>,
    /// Distinct streams (devices, disks, volumes), up to 65,536.
    pub streams: u64,
}

impl Profile {
    /// An empty description of the workload behind `source`.
    pub fn new(source: &dyn Source) -> Profile {
        let arrivals = source.arrivals();
        Profile {
            arrivals,
            requests: [0; 4],
            bytes: [0; 4],
            sizes: [BTreeMap::new(), BTreeMap::new()],
            aligned: 0,
            pages: PageCounters::up_to(MOST_PAGES, arrivals == Arrivals::Open),
            reuse: Default::default(),
            coming: VecDeque::new(),
            first_sector: u64::MAX,
            end_sector: 0,
            ends: [u64::MAX; REMEMBERED_ENDS],
            oldest_end: 0,
            last_end: u64::MAX,
            sequential: [0; 2],
            contiguous: [0; 2],
            latest: 0,
            gap: None,
            gaps: Histogram::new(),
            gap_squares: 0.0,
            in_millisecond: (0, 0),
            milliseconds: Histogram::new(),
            streams: BTreeSet::new(),
            stream: None,
            grid: Grid::default(),
        }
    }

    /// Counts a request.
    pub fn add(&mut self, request: &Request) {
        let kind = position(request.kind);
        if self.arrivals == Arrivals::Open {
            self.count_arrival(request.arrival);
        }
        self.requests[kind] += 1;
        self.bytes[kind] += u64::from(request.extent.sectors) * SECTOR_BYTES;
        if self.stream.replace(request.owner()) != Some(request.owner()) && self.streams.len() < MOST_STREAMS {
            self.streams.insert(request.owner());
        }
        if kind < 2 {
            self.count_extent(request, kind);
        }
    }

    fn all(&self) -> u64 {
        self.requests.iter().sum()
    }

    fn count_arrival(&mut self, arrival: Nanos) {
        if self.all() > 0 {
            let gap = arrival - self.latest;
            self.gaps.expect(gap);
            if let Some(before) = self.gap.replace(gap) {
                self.gaps.record(before);
            }
            self.gap_squares += gap as f64 * gap as f64;
        }
        self.latest = arrival;
        let millisecond = arrival / MILLISECOND;
        if self.in_millisecond.0 != millisecond && self.in_millisecond.1 > 0 {
            self.milliseconds.record(self.in_millisecond.1);
            self.in_millisecond.1 = 0;
        }
        self.in_millisecond = (millisecond, self.in_millisecond.1 + 1);
    }

    fn count_extent(&mut self, request: &Request, kind: usize) {
        let (sector, end) = (request.extent.sector, request.extent.end());
        *self.sizes[kind].entry(request.extent.sectors).or_default() += 1;
        self.aligned += u64::from(sector.is_multiple_of(PAGE_SECTORS) && end.is_multiple_of(PAGE_SECTORS));
        self.first_sector = self.first_sector.min(sector);
        self.end_sector = self.end_sector.max(end);
        self.contiguous[kind] += u64::from(self.last_end == sector);
        self.sequential[kind] += u64::from(self.ends.contains(&sector));
        self.last_end = end;
        self.ends[self.oldest_end] = end;
        self.oldest_end = (self.oldest_end + 1) % REMEMBERED_ENDS;
        let time = match self.arrivals {
            Arrivals::Open => request.arrival,
            Arrivals::Closed { .. } => self.all(),
        };
        let (first, last) = (sector / PAGE_SECTORS, end.div_ceil(PAGE_SECTORS));
        self.pages.add(time, first, last, kind);
        for at in [0, 1 + kind] {
            self.reuse[at].count(last - first);
        }
        for page in first..last {
            let hash = sampling_hash(page);
            if self.reuse[0].expect(page, hash) | self.reuse[1 + kind].expect(page, hash) {
                self.coming.push_back((page, hash, kind));
                self.follow_down_to(AHEAD);
            }
        }
        self.grid.add(time, sector * SECTOR_BYTES, kind);
    }

    /// Follows the earliest accesses that come, except so many.
    fn follow_down_to(&mut self, left: usize) {
        while self.coming.len() > left {
            let Some((page, hash, kind)) = self.coming.pop_front() else { return };
            self.reuse[0].add(page, hash, 0);
            self.reuse[1 + kind].add(page, hash, 0);
        }
    }

    /// The description of the requests so far.
    pub fn description(&mut self) -> Description {
        self.follow_down_to(0);
        self.gap.take().into_iter().for_each(|gap| self.gaps.record(gap));
        let [reads, writes, ..] = self.requests;
        let data = reads + writes;
        let is_open = self.arrivals == Arrivals::Open;
        let large = |(size, _): &(&u32, &u64)| u64::from(**size) * SECTOR_BYTES >= LARGE_BYTES;
        let larges = || self.sizes[1].iter().filter(large);
        let large_bytes: u64 = larges().map(|(size, count)| u64::from(*size) * SECTOR_BYTES * count).sum();
        let mean = self.gaps.mean() as f64;
        let variance = self.gap_squares / self.gaps.count().max(1) as f64 - mean * mean;
        Description {
            arrivals: if is_open { "open" } else { "closed" },
            depth: match self.arrivals {
                Arrivals::Open => None,
                Arrivals::Closed { depth } => Some(depth),
            },
            requests: kinds(self.requests),
            bytes: kinds(self.bytes),
            read_ratio: ratio(reads, data),
            read_bytes_ratio: ratio(self.bytes[0], self.bytes[0] + self.bytes[1]),
            read_bytes: spread_of_sizes(&self.sizes[0]),
            write_bytes: spread_of_sizes(&self.sizes[1]),
            sizes: self.size_classes(),
            aligned_ratio: ratio(self.aligned, data),
            span_bytes: self.end_sector.saturating_sub(self.first_sector) * SECTOR_BYTES,
            end_bytes: self.end_sector * SECTOR_BYTES,
            duration_ns: self.latest,
            sequential_ratio: shares(self.sequential, [reads, writes]),
            contiguous_ratio: shares(self.contiguous, [reads, writes]),
            locality: self.pages.locality(),
            reuse: self.reuse.each_ref().map(|reuse| reuse.figures(1)).into(),
            working_sets: self.pages.working_sets().each_mut().map(|sets| sets.figures()).into(),
            large_write_ratio: ratio(larges().map(|(_, count)| count).sum(), writes),
            large_write_bytes_ratio: ratio(large_bytes, self.bytes[1]),
            interarrival_ns: spread_of(&self.gaps),
            interarrival_variation: (mean > 0.0).then(|| libm::sqrt(variance.max(0.0)) / mean),
            arrivals_per_ms: is_open.then(|| self.arrivals_per_millisecond()).flatten(),
            streams: self.streams.len() as u64,
        }
    }

    /// Requests over time and address.
    pub fn map(&self) -> Map {
        self.grid.map(self.arrivals == Arrivals::Open)
    }

    fn arrivals_per_millisecond(&self) -> Option<Spread> {
        let mut milliseconds = self.milliseconds.clone();
        if self.in_millisecond.1 > 0 {
            milliseconds.record(self.in_millisecond.1);
        }
        spread_of(&milliseconds)
    }

    fn size_classes(&self) -> Vec<SizeClass> {
        let mut classes: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
        for (kind, sizes) in self.sizes.iter().enumerate() {
            for (&sectors, &count) in sizes {
                classes.entry((u64::from(sectors) * SECTOR_BYTES).next_power_of_two()).or_default()[kind] += count;
            }
        }
        classes.into_iter().map(|(upto_bytes, [read, write])| SizeClass { upto_bytes, read, write }).collect()
    }
}

fn position(kind: RequestKind) -> usize {
    match kind {
        RequestKind::Read => 0,
        RequestKind::Write => 1,
        RequestKind::Trim => 2,
        RequestKind::Flush => 3,
    }
}

fn kinds([read, write, trim, flush]: [u64; 4]) -> CountsByKind {
    CountsByKind { all: read + write + trim + flush, read, write, trim, flush }
}

/// `part` as a share of `whole`.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn shares([read, write]: [u64; 2], [reads, writes]: [u64; 2]) -> Shares {
    Shares { all: ratio(read + write, reads + writes), read: ratio(read, reads), write: ratio(write, writes) }
}

fn spread_of(histogram: &Histogram) -> Option<Spread> {
    let percentile = |per_mille| histogram.percentile(per_mille);
    (histogram.count() > 0).then(|| Spread {
        mean: histogram.mean() as f64,
        p50: percentile(500),
        p90: percentile(900),
        p99: percentile(990),
        max: histogram.max(),
    })
}

fn spread_of_sizes(sizes: &BTreeMap<u32, u64>) -> Option<Spread> {
    let count: u64 = sizes.values().sum();
    let sum: u128 = sizes.iter().map(|(size, count)| u128::from(*size) * u128::from(*count)).sum();
    let percentile = |per_cent: u64| {
        let rank = (count * per_cent).div_ceil(100).max(1);
        let mut seen = 0;
        let found = sizes.iter().find(|(_, count)| {
            seen += **count;
            seen >= rank
        });
        found.map_or(0, |(size, _)| u64::from(*size) * SECTOR_BYTES)
    };
    (count > 0).then(|| Spread {
        mean: sum as f64 * SECTOR_BYTES as f64 / count as f64,
        p50: percentile(50),
        p90: percentile(90),
        p99: percentile(99),
        max: percentile(100),
    })
}

#[cfg(test)]
mod tests;
