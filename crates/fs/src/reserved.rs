//! Room reserved by programs before they write: holes of files that count as taken. Lost at an unmount; nothing is
//! written.

use super::device::Device;
use super::{Done, Fault, FileSystem, NO_PAGE};
use std::collections::BTreeMap;
use std::ops::Range;

/// Runs of reserved pages of each file: the end of each run by its first page.
#[derive(Default)]
pub(super) struct Reserved {
    of: BTreeMap<u32, BTreeMap<u32, u32>>,
    pages: u64,
}

impl Reserved {
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub fn pages_of(&self, ino: u32) -> u64 {
        self.of.get(&ino).into_iter().flatten().map(|(first, end)| u64::from(end - first)).sum()
    }

    /// All reserved pages, with the pointers to them at `width` a page.
    pub fn taken(&self, width: u32) -> u64 {
        if self.is_empty() {
            return 0;
        }
        self.pages + self.pages / u64::from(width) + 2 * self.of.len() as u64
    }

    pub fn holds(&self, ino: u32, page: u32) -> bool {
        let runs = self.of.get(&ino).and_then(|runs| runs.range(..=page).next_back());
        runs.is_some_and(|(_, &end)| end > page)
    }

    fn add(&mut self, ino: u32, page: u32) {
        let runs = self.of.entry(ino).or_default();
        match runs.range_mut(..=page).next_back() {
            Some((_, end)) if *end > page => return,
            Some((_, end)) if *end == page => *end += 1,
            _ => _ = runs.insert(page, page + 1),
        }
        self.pages += 1;
    }

    /// Gives back the reserved pages of `ino` within `pages`; returns their number.
    pub fn give_back(&mut self, ino: u32, pages: Range<u32>) -> u64 {
        let Some(runs) = self.of.get_mut(&ino) else { return 0 };
        let touched: Vec<(u32, u32)> =
            runs.range(..pages.end).rev().take_while(|&(_, &end)| end > pages.start).map(|(&a, &b)| (a, b)).collect();
        let mut given = 0;
        for (first, end) in touched {
            runs.remove(&first);
            if first < pages.start {
                runs.insert(first, pages.start);
            }
            if end > pages.end {
                runs.insert(pages.end, end);
            }
            given += u64::from(end.min(pages.end) - first.max(pages.start));
        }
        if runs.is_empty() {
            self.of.remove(&ino);
        }
        self.pages -= given;
        given
    }
}

impl FileSystem {
    /// Reserves room for the holes of the file `ino` within `pages`: later writes to them find room.
    ///
    /// # Errors
    /// [`Fault::TooLarge`].
    pub fn reserve_pages(&mut self, device: &mut dyn Device, ino: u32, pages: Range<u32>) -> Done<()> {
        self.file(ino)?;
        if pages.end > self.most_pages() {
            return Err(Fault::TooLarge);
        }
        if u64::from(pages.end.saturating_sub(pages.start)) > u64::from(self.shape.pages()) + self.pages_of(ino)? {
            return Err(Fault::Full);
        }
        let inode = self.file(ino)?;
        let holes: Vec<u32> = pages.filter(|&page| inode.pointer(page, self.width) == NO_PAGE).collect();
        let new: Vec<u32> = holes.into_iter().filter(|&page| !self.reserved.holds(ino, page)).collect();
        let count = new.len() as u64;
        self.admit(device, count + count / u64::from(self.width) + 4)?;
        new.into_iter().for_each(|page| self.reserved.add(ino, page));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palimpsest_flash::rng::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn runs_are_the_set_of_their_pages() {
        let (mut reserved, mut set, mut rng) = (Reserved::default(), BTreeSet::new(), Rng::new(1, 1));
        for _ in 0..2000 {
            let first = rng.below(60) as u32;
            let pages = first..first + rng.below(12) as u32;
            if rng.below(2) == 0 {
                pages.for_each(|page| {
                    reserved.add(3, page);
                    set.insert(page);
                });
            } else {
                let given = pages.clone().filter(|page| set.remove(page)).count() as u64;
                assert_eq!(reserved.give_back(3, pages), given);
            }
            assert_eq!((reserved.pages_of(3), reserved.pages), (set.len() as u64, set.len() as u64));
            assert_eq!(reserved.is_empty(), set.is_empty());
        }
    }
}
