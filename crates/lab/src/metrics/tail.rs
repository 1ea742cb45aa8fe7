//! A small histogram of times for one window of a series: 32 buckets an octave, so that a percentile is within 1.6 % of
//! the exact one. A bucket is a counter of 32 bits, and buckets end at the longest time, because there are many
//! windows. Ignored: exact means.

use palimpsest_flash::units::Nanos;

const SUB_BITS: u32 = 5;
const SUB: u64 = 1 << SUB_BITS;

/// Times of a window.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    counts: Vec<u32>,
    total: u64,
}

impl Tail {
    /// Adds a time.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        let shift = (64 - value.leading_zeros()).saturating_sub(SUB_BITS + 1);
        let index = (u64::from(shift) * SUB + (value >> shift)) as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.total += 1;
    }

    /// Adds all times of `other`.
    pub fn merge(&mut self, other: &Tail) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
        self.total += other.total;
    }

    /// The largest distance between times of the bucket of `value` and its middle, in ns.
    pub fn half_bucket(value: Nanos) -> Nanos {
        let shift = (64 - value.leading_zeros()).saturating_sub(SUB_BITS + 1);
        (1 << shift) >> 1
    }

    /// Times recorded.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The time that 99 % of all times do not exceed: the middle of a bucket; `None` when empty.
    pub fn p99(&self) -> Option<Nanos> {
        (self.total > 0).then(|| self.percentile_of(99, 100))
    }

    /// The time that the share `part` / `whole` of all times do not exceed: the middle of a bucket; 0 when empty.
    pub fn percentile_of(&self, part: u64, whole: u64) -> Nanos {
        let rank = (self.total * part).div_ceil(whole);
        let mut seen = 0;
        let found = self.counts.iter().position(|&count| {
            seen += u64::from(count);
            seen >= rank && count > 0
        });
        found.map_or(0, |index| {
            let shift = (index as u64 / SUB).saturating_sub(1);
            ((index as u64 - shift * SUB) << shift) + ((1 << shift) >> 1)
        })
    }
}

#[cfg(test)]
mod tests;
