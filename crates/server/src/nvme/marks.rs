//! Blocks that Write Uncorrectable marked: reads fail until the next write or deallocation.
//!
//! Source: NVM Express NVM Command Set Specification 1.0, section 3.2.7. A mark is durable at once, and survives a
//! power cut. Ignored: a power cut that brings back data of before the mark, which was overwritten and not flushed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The marked ranges of the drive, in bytes.
#[derive(Default)]
pub struct Marks {
    /// Begins and ends; ranges do not touch.
    ranges: Mutex<BTreeMap<u64, u64>>,
    /// Whether there is a mark: most drives have none.
    any: AtomicBool,
}

impl Marks {
    fn ranges(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks `length` bytes from `from` on.
    pub fn mark(&self, from: u64, length: u64) {
        let (mut from, mut end) = (from, from + length);
        let mut ranges = self.ranges();
        while let Some((&begin, &last)) = ranges.range(..=end).next_back().filter(|&(_, &last)| last >= from) {
            ranges.remove(&begin);
            (from, end) = (from.min(begin), end.max(last));
        }
        ranges.insert(from, end);
        self.any.store(true, Ordering::Release);
    }

    /// Removes marks from `length` bytes from `from` on.
    pub fn clear(&self, from: u64, length: u64) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let (end, mut ranges) = (from + length, self.ranges());
        while let Some((&begin, &last)) = ranges.range(..end).next_back().filter(|&(_, &last)| last > from) {
            ranges.remove(&begin);
            if begin < from {
                ranges.insert(begin, from);
            }
            if last > end {
                ranges.insert(end, last);
            }
        }
        self.any.store(!ranges.is_empty(), Ordering::Release);
    }

    /// Whether a byte of `length` bytes from `from` on is marked.
    pub fn has(&self, from: u64, length: u64) -> bool {
        self.any.load(Ordering::Acquire)
            && self.ranges().range(..from + length).next_back().is_some_and(|(_, &last)| last > from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palimpsest_lab::rng::Rng;

    #[test]
    fn marks_are_those_of_a_bit_map() {
        let (marks, mut map, mut rng) = (Marks::default(), [false; 64], Rng::new(5, 1));
        for _ in 0..2000 {
            let from = rng.next_u64() % 60;
            let length = 1 + rng.next_u64() % (64 - from).min(9);
            let range = from as usize..(from + length) as usize;
            match rng.next_u64() % 3 {
                0 => {
                    marks.mark(from, length);
                    map[range].fill(true);
                }
                1 => {
                    marks.clear(from, length);
                    map[range].fill(false);
                }
                _ => assert_eq!(marks.has(from, length), map[range].contains(&true)),
            }
        }
        marks.clear(0, 64);
        assert!(!marks.any.load(Ordering::Relaxed));
    }
}
