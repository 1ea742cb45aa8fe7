//! Fully free pages, at the frontiers of [`crate::log::frontiers`], where pages are programmed for the first time.
//!
//! The host writes at one frontier of a plane, cleaning at the same or at a separate one (`ftl.streams`). If one has no
//! block left, it takes pages of the other, so that every fully free page of a plane serves both. In two rounds
//! ([`super::rounds`]) there is one frontier, of low pages, and the high pages of partially-used blocks.

use super::rounds::Rounds;
use super::settings::MgaSettings;
use crate::log::Shape;
use crate::log::blocks::Blocks;
use crate::log::frontiers::Frontiers;
use crate::log::settings::{LogSettings, Moved, MovedTo};
use palimpsest_flash::nand::{Flash, Halt, Nand};
use palimpsest_ftl_api::plan::Io;

/// The frontier of host writes.
pub(super) const HOST: u32 = 0;

/// Clean blocks of a plane that small writes leave to moved data.
const RESERVE: u32 = 1;

pub(super) struct Space {
    /// Blocks and frontiers. A unit is a subpage.
    pub frontiers: Frontiers,
    /// Present if low pages are taken before high ones.
    rounds: Option<Rounds>,
    pages_per_block: u32,
}

palimpsest_flash::state!(Space { frontiers } parts { rounds } built { pages_per_block });

impl Space {
    /// All blocks free, on a drive that holds `stored` pages when full.
    pub fn new(io: &Io, settings: &MgaSettings, stored: u32) -> Self {
        let (geometry, low_first) = (io.geometry(), settings.low_pages_first);
        let streams = if low_first { 1 } else { settings.log.streams.min(2) };
        let log = LogSettings { streams, moved: Moved::Together, moved_to: MovedTo::Plane, ..settings.log.clone() };
        Space {
            frontiers: Frontiers::new(io, &log, Shape::new(geometry, 1, log.allocation), 0, stored, Vec::new())
                .lend_all(),
            rounds: low_first.then(|| Rounds::new(io.nand().part(), geometry.planes())),
            pages_per_block: geometry.pages_per_block,
        }
    }

    /// After a power cut: forgets the states of all blocks.
    pub fn forget(&mut self, io: &Io) {
        self.frontiers.forget(io);
        self.rounds.iter_mut().for_each(Rounds::clear);
    }

    #[inline]
    pub fn blocks(&self) -> &Blocks {
        &self.frontiers.blocks
    }

    /// The frontier of moved data.
    #[inline]
    pub fn moved(&self) -> u32 {
        self.frontiers.data_streams() - 1
    }

    #[inline]
    pub fn planes(&self) -> u32 {
        self.frontiers.planes()
    }

    /// Fully free pages of `plane`.
    #[inline]
    pub fn free(&self, plane: u32) -> u32 {
        let high = self.rounds.as_ref().map_or(0, |rounds| rounds.left(plane));
        self.frontiers.free_pages[plane as usize] + high
    }

    /// Fully free pages of the drive.
    #[inline]
    pub fn total(&self) -> u32 {
        let high = self.rounds.as_ref().map_or(0, Rounds::all_left);
        self.frontiers.free_pages.iter().sum::<u32>() + high
    }

    /// Partially-used blocks of the drive.
    pub fn partially_used(&self) -> u32 {
        self.rounds.as_ref().map_or(0, Rounds::blocks)
    }

    /// True if a small write finds a page in `plane` that can be filled later.
    #[inline]
    pub fn has_low(&self, plane: u32) -> bool {
        self.rounds.is_none() || self.frontiers.is_open(plane, HOST) || self.blocks().free_count(plane) > RESERVE
    }

    /// Pages of `block` that were programmed since the erase.
    pub fn programmed(&self, nand: &Nand, block: u32) -> u32 {
        match &self.rounds {
            None => nand.next_page(block),
            Some(_) => {
                let first = block * self.pages_per_block;
                (first..first + self.pages_per_block).filter(|&ppn| nand.programs(ppn) > 0).count() as u32
            }
        }
    }

    /// Takes a page of `plane` for a `whole` page or a part: the next one at the frontier of `stream`, or of another
    /// plane if `plane` has none. With two rounds, whole pages prefer high pages, and parts prefer low ones. The last
    /// page closes the block.
    #[inline]
    pub fn take(&mut self, io: &Io, plane: u32, stream: u32, whole: bool) -> Flash<u32> {
        if self.rounds.is_none() {
            return self.frontiers.take_page(io, plane, stream);
        }
        if let Some(ppn) = self.take_in_rounds(io, plane, whole) {
            return Ok(ppn);
        }
        let most = (0..self.planes()).max_by_key(|&plane| (self.free(plane), u32::MAX - plane));
        most.and_then(|plane| self.take_in_rounds(io, plane, whole)).ok_or(Halt::NoSpace)
    }

    fn take_in_rounds(&mut self, io: &Io, plane: u32, whole: bool) -> Option<u32> {
        let low_first = !whole && self.has_low(plane);
        let rounds = self.rounds.as_mut()?;
        if !low_first && let Some((block, page, last)) = rounds.take_high(plane) {
            if last {
                self.frontiers.blocks.close(block);
            }
            return Some(block * self.pages_per_block + page);
        }
        let Some(ppn) = self.frontiers.take_page_in(io, plane, HOST) else {
            // No low page and no clean block is left, so a small write takes a high page.
            return if low_first || whole { None } else { self.take_in_rounds(io, plane, true) };
        };
        let (block, taken) = (ppn / self.pages_per_block, ppn % self.pages_per_block);
        if taken + 1 == rounds.low_pages() {
            self.frontiers.set_down(plane, HOST);
            rounds.begin_second(plane, block, taken + 1);
        }
        Some(block * self.pages_per_block + rounds.page(taken))
    }

    /// Makes the failed block `block` of `plane` a victim.
    pub fn drop_block(&mut self, plane: u32, block: u32) {
        self.rounds.iter_mut().for_each(|rounds| rounds.drop_block(plane, block));
        self.frontiers.drop_block(plane, block);
    }

    /// Stops writes to `plane`. Returns the number of retired blocks.
    pub fn lose_plane(&mut self, plane: u32) -> u64 {
        let begun = self.rounds.as_mut().map_or(Vec::new(), |rounds| rounds.lose_plane(plane));
        begun.into_iter().for_each(|block| self.frontiers.blocks.close(block));
        self.frontiers.lose_plane(plane)
    }

    /// After a power cut: true if pages of `block` may be taken.
    pub fn has_pages(&self, nand: &Nand, block: u32) -> bool {
        let left = nand.next_page(block) < self.frontiers.single.pages_of(block) || !nand.left_out(block).is_empty();
        left && !nand.is_dead(block)
    }

    /// After a power cut: continues the open block `block` from the state on flash, if a frontier of the plane has no
    /// block: first the frontier of moved data, which needs a block most. Else closes the block.
    pub fn resume(&mut self, nand: &Nand, block: u32) {
        let plane = nand.geometry().plane_of_block(block);
        let mut next_page = nand.next_page(block);
        if let Some(rounds) = &mut self.rounds {
            next_page = rounds.taken(nand, block);
            if (rounds.low_pages()..self.pages_per_block).contains(&next_page) {
                return rounds.begin_second(plane, block, next_page);
            }
        }
        let streams = (0..self.frontiers.data_streams()).rev();
        self.frontiers.resume(plane, block, (next_page, nand.left_out(block)), streams);
    }
}
