//! Merges of a logical block: the valid pages of data block and log blocks move into one block, by a switch, partially
//! or fully (see [`super`]).

use super::BlockMap;
use crate::log::blocks::NO_BLOCK;
use palimpsest_flash::nand::{Flash, Outcome};
use palimpsest_ftl_api::plan::{Cause, Gate, Io};
use std::ops::Range;

impl BlockMap {
    /// True if the physical block `target` can become the data block of logical block `block`: pages there are in
    /// place, and the missing pages come later.
    fn can_complete(&self, io: &Io, block: u32, target: u32) -> bool {
        let fits = |(page, ppn): (u32, u32)| {
            let ((_, place), (holder, at)) = (self.split(page), self.split(ppn));
            if holder == target { place == at } else { place >= io.nand().next_page(target) }
        };
        !io.nand().is_bad(target) && !self.cached.single.holds(target) && self.valid(self.pages_of(block)).all(fits)
    }

    /// True if one log block holds every page of logical block `block` in place.
    pub(super) fn is_in_one_log(&self, block: u32) -> bool {
        let pages = self.pages_of(block);
        let first = pages.clone().next().and_then(|page| self.locate(page));
        first.is_some_and(|first| {
            let (holder, place) = self.split(first);
            place == 0
                && holder != self.data[block as usize]
                && !self.cached.single.holds(holder)
                && pages.zip(first..).all(|(page, ppn)| self.locate(page) == Some(ppn))
        })
    }

    /// The first valid page among `pages` outside the physical block `target`, with the copy.
    fn outside(&self, pages: Range<u32>, target: Option<u32>) -> Option<(u32, u32)> {
        self.valid(pages).find(|&(_, ppn)| Some(self.split(ppn).0) != target)
    }

    /// Merges logical block `block` with the log block `log`. Afterwards the valid pages, if any, are in the data
    /// block.
    ///
    /// # Errors
    /// As [`palimpsest_ftl_api::Ftl::write`].
    pub fn merge(&mut self, io: &mut Io, block: u32, log: Option<u32>) -> Flash<()> {
        self.merge_into(io, block, log, true)
    }

    /// As [`Self::merge`]; without `keeps`, always into a free block.
    pub(super) fn merge_into(&mut self, io: &mut Io, block: u32, log: Option<u32>, keeps: bool) -> Flash<()> {
        let old = Some(std::mem::replace(&mut self.data[block as usize], NO_BLOCK)).filter(|&old| old != NO_BLOCK);
        let all = self.pages_of(block);
        let holds = |target: &u32| self.valid(all.clone()).any(|(_, ppn)| self.split(ppn).0 == *target);
        let kept = log.filter(holds).or(old.filter(holds)).filter(|_| keeps);
        let mut target = kept.filter(|&kept| self.can_complete(io, block, kept));
        let (mut rest, mut copies, mut spoiled) = (all.clone(), 0, Vec::new());
        while let Some((page, from)) = self.outside(rest, target) {
            let to = match target {
                Some(target) => target,
                None => self.take(io, self.plane(block))?,
            };
            let place = to * self.shape.pages_per_block + self.split(page).1;
            let arrived = self.load(io, from, Cause::Merge)?;
            copies += 1;
            if self.program(io, (page, place), Cause::Merge, arrived, Gate::NONE)? == Outcome::Done {
                (target, rest) = (Some(to), page + 1..all.end);
            } else {
                // Pages already in the failed target move once more.
                spoiled.extend(Some(to).filter(|_| log != Some(to) && old != Some(to)));
                (target, rest) = (None, all.clone());
            }
        }
        self.data[block as usize] = target.unwrap_or(NO_BLOCK);
        self.counters.copied_pages += copies;
        let full = target.is_some() && target != log && target != old;
        self.counters.full += u64::from(full);
        self.counters.partial += u64::from(!full && target == log && log.is_some() && copies > 0);
        self.counters.switch += u64::from(!full && target == log && log.is_some() && copies == 0);
        spoiled.extend(old.into_iter().chain(log).filter(|&left| Some(left) != target));
        spoiled.into_iter().try_for_each(|left| self.release(io, left))
    }
}
