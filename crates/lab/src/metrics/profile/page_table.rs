//! A table of pages with open addressing. A page and its record are adjacent, and so are the pages of a block of
//! [`BLOCK`], because requests access consecutive pages: an access to a few of millions of pages misses the caches
//! about once. Ignored: removal of single pages.

use palimpsest_flash::prefetch::prefetch;
use palimpsest_flash::rng::mix;

/// No page has this number: traces have addresses below 2^63 bytes.
const FREE: u64 = u64::MAX;

/// Entries of the smallest table.
const LEAST: usize = 16;

/// Bytes of a line of the caches.
const LINE: usize = 64;

/// Consecutive pages with adjacent places.
pub const BLOCK: u64 = 8;

/// Records of pages.
#[derive(Debug)]
pub struct PageTable<T> {
    /// A power of two of entries, at most five eighths taken; empty before the first page.
    entries: Vec<(u64, T)>,
    taken: usize,
}

impl<T> Default for PageTable<T> {
    fn default() -> Self {
        PageTable { entries: Vec::new(), taken: 0 }
    }
}

impl<T: Copy + Default> PageTable<T> {
    /// Pages in the table.
    pub fn len(&self) -> usize {
        self.taken
    }

    /// The record of `page`, which must not be [`u64::MAX`]; a new page has the default.
    #[inline]
    pub fn of(&mut self, page: u64) -> &mut T {
        let mut nowhere = usize::MAX;
        self.of_near(page, &mut nowhere)
    }

    /// As `of`; `near` is the likely place, and then that of the next page.
    #[inline]
    pub fn of_near(&mut self, page: u64, near: &mut usize) -> &mut T {
        debug_assert!(page != FREE);
        if self.taken * 8 >= self.entries.len() * 5 {
            self.grow();
        }
        let is_near = self.entries.get(*near).is_some_and(|entry| entry.0 == page);
        let at = if is_near { *near } else { place(&self.entries, page) };
        *near = at + 1;
        let entry = &mut self.entries[at];
        if entry.0 == FREE {
            entry.0 = page;
            self.taken += 1;
        }
        &mut entry.1
    }

    /// Prefetches the records of the pages from `first` to before `end`, up to the end of a block, into the caches.
    #[inline]
    pub fn expect(&self, first: u64, end: u64) {
        if !self.entries.is_empty() {
            let at = first_place(&self.entries, first);
            let pages = (end - first).min(BLOCK - first % BLOCK) as usize;
            (at..at + pages).step_by(LINE / size_of::<(u64, T)>()).for_each(|at| prefetch(&self.entries, at));
        }
    }

    /// The records, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().filter(|(page, _)| *page != FREE).map(|(_, kept)| kept)
    }

    /// As `iter`, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().filter(|(page, _)| *page != FREE).map(|(_, kept)| kept)
    }

    /// Drops all pages that `keeps` rejects.
    pub fn retain(&mut self, keeps: impl Fn(u64) -> bool) {
        self.rebuild(self.entries.len(), keeps);
    }

    #[cold]
    fn grow(&mut self) {
        self.rebuild((self.entries.len() * 2).max(LEAST), |_| true);
    }

    fn rebuild(&mut self, entries: usize, keeps: impl Fn(u64) -> bool) {
        let old = std::mem::replace(&mut self.entries, vec![(FREE, T::default()); entries]);
        self.taken = 0;
        for (page, kept) in old {
            if page != FREE && keeps(page) {
                let at = place(&self.entries, page);
                self.entries[at] = (page, kept);
                self.taken += 1;
            }
        }
    }
}

/// The first place for `page` in `entries`.
#[inline]
fn first_place<T>(entries: &[(u64, T)], page: u64) -> usize {
    const SALT: u64 = 0x9e37_79b9_7f4a_7c15;
    // The hash must differ from the hash that samples pages.
    (mix((page / BLOCK) ^ SALT).wrapping_mul(BLOCK) | (page % BLOCK)) as usize & (entries.len() - 1)
}

/// The place of `page` in `entries`, or a free place for a new page; one must be free.
#[inline]
fn place<T>(entries: &[(u64, T)], page: u64) -> usize {
    let last = entries.len() - 1;
    let mut at = first_place(entries, page);
    while entries[at].0 != page && entries[at].0 != FREE {
        at = (at + 1) & last;
    }
    at
}

#[cfg(test)]
mod tests;
