//! Programs under way, by page: until a program has ended, its data is in the controller's memory, and reads are served
//! from there.
//!
//! Data that collection moves is in memory once its read has ended. Ignored: the size of that memory beyond the host's
//! write buffer.

use super::{Gate, Io, Read};
use palimpsest_flash::nand::SubpageMask;
use palimpsest_flash::prefetch::prefetch;
use palimpsest_flash::units::Nanos;

/// No entry.
pub const NONE: u32 = u32::MAX;
const BUCKETS: u32 = 1 << 14;
/// Distance, in programs, at which a free entry is prefetched before its use.
const AHEAD: usize = 4;

/// Pages of programs under way.
#[derive(Default)]
pub struct UnderWay {
    /// The last entry of each bucket.
    heads: Vec<u32>,
    entries: Vec<Stored>,
    free: Vec<u32>,
}

/// The data of one program.
#[derive(Clone, Copy)]
struct Stored {
    ppn: u32,
    written: SubpageMask,
    /// The data is complete in the controller when this gate has closed and the host link has transferred it.
    after: Gate,
    data_at: Nanos,
    /// The entry before in the same bucket.
    previous: u32,
}

impl UnderWay {
    /// Adds a program of the subpages `written` of page `ppn`, whose data is complete when `after` has closed, and not
    /// before `data_at`. Returns the entry.
    #[inline(always)]
    pub(super) fn add(&mut self, ppn: u32, written: SubpageMask, after: Gate, data_at: Nanos) -> u32 {
        if self.heads.is_empty() {
            self.heads.resize(BUCKETS as usize, NONE);
        }
        let head = &mut self.heads[(ppn % BUCKETS) as usize];
        let stored = Stored { ppn, written, after, data_at, previous: *head };
        if let Some(&later) = self.free.len().checked_sub(AHEAD).and_then(|index| self.free.get(index)) {
            prefetch(&self.entries, later as usize);
        }
        *head = match self.free.pop() {
            Some(entry) => {
                self.entries[entry as usize] = stored;
                entry
            }
            None => {
                self.entries.push(stored);
                self.entries.len() as u32 - 1
            }
        };
        *head
    }

    /// Removes the entry of a program that has ended.
    #[inline]
    pub fn remove(&mut self, entry: u32) {
        let Stored { ppn, previous, .. } = self.entries[entry as usize];
        let head = &mut self.heads[(ppn % BUCKETS) as usize];
        if *head == entry {
            *head = previous;
        } else {
            let mut later = *head;
            while self.entries[later as usize].previous != entry {
                later = self.entries[later as usize].previous;
            }
            self.entries[later as usize].previous = previous;
        }
        self.free.push(entry);
    }

    /// Prefetches `entry` of page `ppn`, whose program will end soon.
    #[inline]
    pub fn prefetch(&self, entry: u32, ppn: u32) {
        prefetch(&self.entries, entry as usize);
        prefetch(&self.heads, (ppn % BUCKETS) as usize);
    }

    /// Programs under way of page `ppn`, the newest first.
    #[inline]
    fn of(&self, ppn: u32) -> impl Iterator<Item = &Stored> {
        let mut next = self.heads.get((ppn % BUCKETS) as usize).copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            let stored = self.entries.get(next as usize)?;
            next = stored.previous;
            Some(stored)
        })
        .filter(move |stored| stored.ppn == ppn)
    }

    /// True if a program of page `ppn` is under way.
    #[inline]
    pub(super) fn holds(&self, ppn: u32) -> bool {
        self.of(ppn).next().is_some()
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.entries.len() == self.free.len()
    }

    /// The newest program of page `ppn` that stores any of `wanted`.
    fn newest(&self, ppn: u32, wanted: SubpageMask) -> Option<Stored> {
        self.of(ppn).find(|stored| stored.written & wanted != 0).copied()
    }

    /// Removes all programs after a power cut.
    pub(super) fn clear(&mut self) {
        self.heads.fill(NONE);
        self.entries.clear();
        self.free.clear();
    }
}

impl Io {
    /// Serves as much of `read` as possible from memory. Returns the subpages to read from flash.
    #[inline(never)]
    pub(super) fn read_from_memory(&mut self, read: &Read) -> SubpageMask {
        let Read { ppn, subpages, after, signal, .. } = *read;
        let mut left = subpages;
        while left != 0
            && let Some(stored) = self.plan.under_way.newest(ppn, left)
        {
            left &= !stored.written;
            self.link(stored.after, signal);
            // The delay makes sure that the gate is signalled.
            self.plan.delay(signal, stored.data_at.max(self.present.now));
        }
        let found = subpages & !left;
        if found != 0 {
            self.link(after, signal);
            self.counters.memory_reads[self.counted_as(read.cause) as usize] += u64::from(found.count_ones());
            if let Some(ledger) = &mut self.ledger {
                ledger.hit(&self.nand, read, found);
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_until_their_programs_have_ended() {
        let mut pages = UnderWay::default();
        assert!(pages.is_empty());
        let at = |pages: &UnderWay, ppn, wanted| pages.newest(ppn, wanted).map(|stored| stored.data_at);
        // Pages 1 and 1 + BUCKETS share a bucket.
        let first = pages.add(1, 0b0011, Gate::NONE, 10);
        let second = pages.add(1 + BUCKETS, 0b1111, Gate::NONE, 20);
        let third = pages.add(1, 0b0110, Gate::NONE, 30);
        assert_eq!([at(&pages, 1, 1), at(&pages, 1, 2), at(&pages, 1, 8)], [Some(10), Some(30), None]);
        assert_eq!(at(&pages, 1 + BUCKETS, 8), Some(20));
        pages.remove(second);
        assert_eq!((at(&pages, 1 + BUCKETS, 8), at(&pages, 1, 1)), (None, Some(10)));
        pages.remove(first);
        assert_eq!((at(&pages, 1, 1), at(&pages, 1, 2)), (None, Some(30)));
        pages.remove(third);
        assert!(pages.is_empty());
    }
}
