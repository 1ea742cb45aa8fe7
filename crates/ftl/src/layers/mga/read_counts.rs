//! Number of host reads of each logical page, up to 15 (MGA paper, Sec. III-E, "Read Count").
//!
//! The paper counts for logical pages: `ftl.read_count=page` stores a permanent count for each. With `entry`, only
//! pages with an SPMT entry are counted, and a count ends with the entry. Aging, beyond the paper, halves all counts at
//! once: each count stores the period of the last update.

use crate::log::map::UNMAPPED;

/// Read counts stop here: 4 bits.
pub(super) const MOST_READS: u32 = 15;
/// Bits of a count; the period takes the others.
const COUNT_BITS: u32 = 4;

/// The read counts of all logical pages, or of pages with an SPMT entry.
pub(super) struct ReadCounts {
    /// Count and period of each logical page, or SPMT entry.
    counts: Vec<u32>,
    for_pages: bool,
    period: u32,
}

palimpsest_flash::state!(ReadCounts { counts, period } built { for_pages });

impl ReadCounts {
    /// No reads of `logical_pages` pages; counts of SPMT entries instead, unless `for_pages`.
    pub fn new(logical_pages: u32, for_pages: bool) -> Self {
        let counts = if for_pages { vec![0; logical_pages as usize] } else { Vec::new() };
        ReadCounts { counts, for_pages, period: 0 }
    }

    /// After a power cut: resets all counts.
    pub fn clear(&mut self) {
        if self.for_pages {
            self.counts.fill(0);
        } else {
            self.counts.clear();
        }
        self.period = 0;
    }

    /// Resets the count of a new SPMT entry.
    #[inline]
    pub fn begin_entry(&mut self, entry: u32) {
        if !self.for_pages {
            self.counts.resize(self.counts.len().max(entry as usize + 1), 0);
            self.counts[entry as usize] = 0;
        }
    }

    /// The place of the count of `lpn`, whose SPMT entry is `entry`, or [`UNMAPPED`].
    #[inline]
    fn place(&self, lpn: u32, entry: u32) -> Option<usize> {
        match (self.for_pages, entry) {
            (true, _) => Some(lpn as usize),
            (false, UNMAPPED) => None,
            (false, entry) => Some(entry as usize),
        }
    }

    /// Reads of `lpn`, whose SPMT entry is `entry`.
    #[inline]
    pub fn of(&self, lpn: u32, entry: u32) -> u32 {
        self.place(lpn, entry).map_or(0, |place| {
            let (count, period) = (self.counts[place] & MOST_READS, self.counts[place] >> COUNT_BITS);
            count.checked_shr(self.period.wrapping_sub(period)).unwrap_or(0)
        })
    }

    /// Records a host read of `lpn`, whose SPMT entry is `entry`, or [`UNMAPPED`].
    #[inline]
    pub fn add(&mut self, lpn: u32, entry: u32) {
        let count = (self.of(lpn, entry) + 1).min(MOST_READS);
        if let Some(place) = self.place(lpn, entry) {
            self.counts[place] = self.period << COUNT_BITS | count;
        }
    }

    /// Resets the count of `lpn`, whose SPMT entry is `entry`, or [`UNMAPPED`].
    pub fn reset(&mut self, lpn: u32, entry: u32) {
        if let Some(place) = self.place(lpn, entry) {
            self.counts[place] = self.period << COUNT_BITS;
        }
    }

    /// Halves all counts.
    pub fn age(&mut self) {
        self.period += 1;
        if self.period >> (u32::BITS - COUNT_BITS) > 0 {
            // After so many periods every count is 0.
            self.clear();
        }
    }
}

#[cfg(test)]
mod tests;
