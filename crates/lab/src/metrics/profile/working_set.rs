//! Working sets: distinct pages accessed in a window of time (Denning, "The Working Set Model for Program Behavior",
//! CACM 11(5), 1968), over time and by the length of the window.
//!
//! Windows of all lengths are counted at once. Each length is a multiple of the previous, so a page that is new in a
//! window is new in all shorter ones. Windows begin at multiples of their length. Beyond [`MOST_WINDOWS`] windows, a
//! length keeps mean and maximum only. Time is nanoseconds, or requests in a closed loop, which has no times.
//!
//! Ignored: sliding windows. Times beyond 2^32 - 1 of the shortest length (1.3 years) count as that.

use serde::Serialize;

use super::PAGE_BYTES;
use palimpsest_flash::units::Nanos;

/// Most windows of a series.
const MOST_WINDOWS: usize = 400;

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1000 * MILLISECOND;
const HOUR: u64 = 3600 * SECOND;

const LENGTHS: usize = 10;

/// Lengths in nanoseconds.
const OF_TIME: [u64; LENGTHS] = [
    10 * MILLISECOND,
    100 * MILLISECOND,
    SECOND,
    10 * SECOND,
    60 * SECOND,
    600 * SECOND,
    HOUR,
    6 * HOUR,
    24 * HOUR,
    240 * HOUR,
];

/// Lengths in requests.
const OF_REQUESTS: [u64; LENGTHS] =
    [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, 100_000_000_000];

/// Windows of one length; sizes are in pages.
#[derive(Debug, Clone, Default)]
struct Windows {
    /// Length in shortest windows.
    width: u32,
    /// Index of the present window.
    index: u32,
    pages: u64,
    /// Sum over earlier windows.
    sum: u64,
    max: u64,
    /// Pages of earlier windows, as long as there are few.
    series: Vec<u64>,
}

impl Windows {
    fn end_at(&mut self, index: u32) {
        self.sum += self.pages;
        self.max = self.max.max(self.pages);
        if self.index < MOST_WINDOWS as u32 {
            self.series.push(self.pages);
            self.series.resize((index as usize).min(MOST_WINDOWS), 0);
        }
        (self.index, self.pages) = (index, 0);
    }

    fn is_whole(&self) -> bool {
        self.index < MOST_WINDOWS as u32
    }
}

/// Counts the working sets of a workload.
#[derive(Debug, Clone)]
pub struct WorkingSets {
    is_time: bool,
    levels: Vec<Windows>,
    /// The first time of the present window of each length: never later than of a shorter one.
    begins: [u32; LENGTHS],
    /// Pages, since the latest change of the time, that were new in the windows of so many lengths, shorter ones first.
    fresh: [u64; LENGTHS + 1],
    now: u32,
}

/// The working set in windows of a length.
#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct WorkingSet {
    /// Length of a window in nanoseconds; null in a closed loop.
    pub window_ns: Option<Nanos>,
    /// Length of a window in requests; null if requests have times.
    pub window_requests: Option<u64>,
    /// Mean over all windows, empty ones included.
    pub mean_bytes: f64,
    /// Working set of the largest window.
    pub max_bytes: u64,
    /// Working set of each window, from the start of the workload; empty above 400 windows.
    pub bytes: Vec<u64>,
}

impl WorkingSets {
    /// No accesses yet, of a workload with times or without.
    pub fn new(is_time: bool) -> WorkingSets {
        let lengths = if is_time { OF_TIME } else { OF_REQUESTS };
        let width = |length: u64| u32::try_from(length / lengths[0]).expect("the longest is 10^9 of the shortest");
        let levels = lengths.map(|length| Windows { width: width(length), ..Windows::default() }).into();
        WorkingSets { is_time, levels, begins: [0; LENGTHS], fresh: [0; LENGTHS + 1], now: 0 }
    }

    /// The number of the shortest window at `time`: the clock of [`count`](Self::count).
    #[inline]
    pub fn clock(&self, time: u64) -> u32 {
        let shortest = if self.is_time { OF_TIME[0] } else { OF_REQUESTS[0] };
        u32::try_from(time / shortest).unwrap_or(u32::MAX - 1)
    }

    /// Advances to `now`, which must never decrease.
    #[inline]
    pub fn go_to(&mut self, now: u32) {
        if now != self.now {
            self.settle();
            self.now = now;
            for (level, begin) in self.levels.iter_mut().zip(&mut self.begins) {
                // Longer windows end with this one or later.
                if now - *begin < level.width {
                    break;
                }
                level.end_at(now / level.width);
                *begin = level.index * level.width;
            }
        }
    }

    /// Adds the fresh pages to the present windows.
    fn settle(&mut self) {
        let mut pages = 0;
        for (level, fresh) in self.levels.iter_mut().zip(&mut self.fresh[1..]).rev() {
            pages += std::mem::take(fresh);
            level.pages += pages;
        }
    }

    /// Counts an access, now, to a page that represents `weight` and was accessed last `before`.
    #[inline]
    pub fn count(&mut self, before: Option<u32>, weight: u64) {
        let lengths = before.map_or(LENGTHS, |before| self.begins.iter().filter(|begin| before < **begin).count());
        self.fresh[lengths] += weight;
    }

    /// The working set by the length of the window: all lengths with at least two windows in the workload, or else the
    /// shortest.
    pub fn figures(&mut self) -> Vec<WorkingSet> {
        self.settle();
        let shortest = if self.is_time { OF_TIME[0] } else { OF_REQUESTS[0] };
        let of = |level: &Windows| {
            let length = u64::from(level.width) * shortest;
            let mut series = level.series.clone();
            series.push(level.pages);
            WorkingSet {
                window_ns: self.is_time.then_some(length),
                window_requests: (!self.is_time).then_some(length),
                mean_bytes: (level.sum + level.pages) as f64 * PAGE_BYTES as f64 / f64::from(level.index + 1),
                max_bytes: level.max.max(level.pages) * PAGE_BYTES,
                bytes: if level.is_whole() {
                    series.into_iter().map(|pages| pages * PAGE_BYTES).collect()
                } else {
                    Vec::new()
                },
            }
        };
        let two = self.levels.iter().take_while(|level| level.index > 0).count();
        self.levels[..two.max(1)].iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests;
