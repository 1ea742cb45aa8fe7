//! The fast cache: blocks of MLC, TLC or QLC with one bit a cell, a dynamic share and a fixed one, as in
//! `log/single.rs` and `log/fixed.rs`.
//!
//! Host writes open pages there. Small writes fill the free subpages of these pages as of all others. A fold is the
//! cleaning of a block of the cache: subpages are gathered by logical page. Decided here: folds move whole blocks, as
//! cleaning does, and moved data never fills a page of the cache. A fold frees no page for moved data, so it leaves the
//! pages that cleaning keeps, and no rest waits for the next victim.
//!
//! Ignored: lower wear and energy of single bits outside the fixed share.

use super::Mga;
use super::space::HOST;
use palimpsest_flash::nand::Flash;
use palimpsest_ftl_api::plan::Io;

impl Mga {
    /// True if the fixed share takes a page of the host in `plane`. Folds first if `ftl.slc_full = fold`, or if no data
    /// of the first closed block is valid.
    #[cold]
    pub(super) fn cache_takes(&mut self, io: &mut Io, plane: u32) -> Flash<bool> {
        while !self.pages.space.frontiers.fixed.has_page(plane) {
            let frontiers = &self.pages.space.frontiers;
            let folds = frontiers.fixed.folds() && !frontiers.takes_dynamic(io.nand(), plane, HOST);
            let empty = frontiers.fixed.oldest(plane).is_some_and(|block| self.pages.valid_in_block(block) == 0);
            if !(folds || empty) || !self.fold(io, plane)? {
                return Ok(false);
            }
        }
        Ok(!self.passes_by(plane))
    }

    /// Folds a block of the dynamic share, or else a block of the fixed one in each plane. False if none.
    pub(super) fn fold_in_background(&mut self, io: &mut Io) -> Flash<bool> {
        let frontiers = &self.pages.space.frontiers;
        let plane = frontiers.single.fullest();
        if let Some(oldest) = frontiers.oldest_single(plane)
            && !self.passes_by(plane)
            && self.fits(plane, oldest, self.collector.slack)
        {
            self.counters.collections += 1;
            self.clean(io, oldest)?;
            return Ok(true);
        }
        let mut done = false;
        for plane in 0..self.pages.space.planes() {
            done |= self.fold(io, plane)?;
        }
        Ok(done)
    }

    /// Folds the first closed block of the fixed share in `plane`. False if there is none, or no room.
    fn fold(&mut self, io: &mut Io, plane: u32) -> Flash<bool> {
        let Some(block) = self.pages.space.frontiers.fixed.oldest(plane) else { return Ok(false) };
        let mut budget = 2 * self.blocks().closed(plane).len() + 2;
        while !self.fits(plane, block, self.collector.slack) && budget > 0 && self.collect(io, plane, false)? {
            budget -= 1;
        }
        if self.passes_by(plane) || !self.fits(plane, block, self.collector.slack) {
            return Ok(false);
        }
        self.frontiers().fixed.count_fold();
        self.clean(io, block)?;
        Ok(true)
    }

    /// Fully free pages that must be left when the data of `victim` has moved: a fold frees no block for moved data.
    pub(super) fn kept_beside(&self, victim: u32) -> u32 {
        if self.pages.space.frontiers.fixed.holds(victim) { self.collector.pages_per_block } else { 0 }
    }

    /// As [`Self::page_with_room`], for moved data.
    pub(super) fn room_for_moved(&self, lpn: u32, count: usize, plane: u32, exclusive: bool) -> Option<u32> {
        let page = self.page_with_room(lpn, count as u32, plane, exclusive);
        page.filter(|&ppn| !self.pages.space.frontiers.single.holds(self.pages.block_of(ppn)))
    }
}
