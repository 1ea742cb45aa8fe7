//! A histogram of times with 1,024 buckets an octave. Every bucket is narrower than 0.2 % of its values, and stores
//! their sum, so that a percentile is the mean of a bucket: exact if equal times repeat. Ignored: the order of times.

use palimpsest_flash::prefetch::prefetch;
use palimpsest_flash::units::Nanos;

const SUB_BITS: u32 = 10;
const SKETCH_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;

/// A histogram of times.
#[derive(Debug, Clone)]
pub struct Histogram {
    buckets: Vec<(u64, u64)>,
    count: u64,
    sum: u128,
    max: Nanos,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Histogram { buckets: Vec::new(), count: 0, sum: 0, max: 0 }
    }

    #[inline]
    pub(super) fn bucket_of(value: Nanos) -> usize {
        // Values below 2 * SUB have buckets of their own; above, each octave has SUB buckets.
        let shift = (64 - value.leading_zeros()).saturating_sub(SUB_BITS + 1);
        (u64::from(shift) * SUB + (value >> shift)) as usize
    }

    /// The smallest value of bucket `index`.
    fn lower(index: usize) -> Nanos {
        let index = index as u64;
        let shift = (index / SUB).saturating_sub(1);
        (index - shift * SUB) << shift
    }

    /// Prefetches the bucket of a time into the caches.
    #[inline]
    pub fn expect(&self, value: Nanos) {
        prefetch(&self.buckets, Self::bucket_of(value));
    }

    /// Adds a time.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        let index = Self::bucket_of(value);
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, (0, 0));
        }
        let bucket = &mut self.buckets[index];
        bucket.0 += 1;
        bucket.1 += value;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// Times recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean, rounded to the nearest nanosecond; 0 when empty.
    pub fn mean(&self) -> Nanos {
        if self.count == 0 {
            return 0;
        }
        ((self.sum + u128::from(self.count / 2)) / u128::from(self.count)) as Nanos
    }

    /// The largest time.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// The time that at least the share `per_mille` / 1000 of all times do not exceed; 0 when empty.
    pub fn percentile(&self, per_mille: u64) -> Nanos {
        self.percentile_of(per_mille, 1000)
    }

    /// The time that at least the share `part` / `whole` of all times do not exceed; 0 when empty.
    pub fn percentile_of(&self, part: u64, whole: u64) -> Nanos {
        let rank = (u128::from(self.count) * u128::from(part)).div_ceil(u128::from(whole)).max(1) as u64;
        let mut seen = 0;
        for &(count, sum) in &self.buckets {
            seen += count;
            if seen >= rank && count > 0 {
                return sum / count;
            }
        }
        0
    }

    /// Adds all times of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), (0, 0));
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            mine.0 += theirs.0;
            mine.1 += theirs.1;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Occupied buckets of a coarser histogram with 64 an octave, for records of many runs: smallest value and count.
    pub fn sketch(&self) -> (Vec<Nanos>, Vec<u64>) {
        let (mut lower, mut counts) = (Vec::new(), Vec::new());
        for (value, count) in self.occupied() {
            let shift = (64 - value.leading_zeros()).saturating_sub(SKETCH_BITS + 1);
            let begin = value >> shift << shift;
            if lower.last() == Some(&begin) {
                *counts.last_mut().expect("a bucket has a count") += count;
            } else {
                lower.push(begin);
                counts.push(count);
            }
        }
        (lower, counts)
    }

    /// Occupied buckets: smallest value and count.
    pub fn occupied(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let counted = self.buckets.iter().enumerate().filter(|(_, bucket)| bucket.0 > 0);
        counted.map(|(index, bucket)| (Self::lower(index), bucket.0))
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
