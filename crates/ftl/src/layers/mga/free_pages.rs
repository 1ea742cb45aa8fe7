//! Fully free pages: the frontiers of each plane, where pages are programmed for the first time in ascending order.
//!
//! The host writes at one frontier of a plane, cleaning at the same or at a separate one (`ftl.streams`). If one has no
//! block left, it takes pages of the other, so that every fully free page of a plane serves both. In two rounds
//! ([`super::rounds`]) there is one frontier, of low pages, and the high pages of partially-used blocks.

use super::rounds::Rounds;
use super::settings::MgaSettings;
use crate::log::blocks::{Blocks, NO_BLOCK};
use crate::log::settings::WearLeveling;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::Nand;
use palimpsest_flash::nand::part::Part;
use palimpsest_ftl_api::plan::Io;

/// The frontier of host writes.
pub(super) const HOST: u32 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frontier {
    block: u32,
    next_page: u32,
}

palimpsest_flash::state!(Frontier { block, next_page });

/// Clean blocks of a plane that small writes leave to moved data.
const RESERVE: u32 = 1;

const NO_FRONTIER: Frontier = Frontier { block: NO_BLOCK, next_page: 0 };

pub(super) struct FreePages {
    streams: u32,
    level: bool,
    pages_per_block: u32,
    blocks_per_plane: u32,
    /// Frontier of each stream in each plane: index plane x streams + stream.
    frontiers: Vec<Frontier>,
    /// Fully free pages of each plane: in free blocks and at the frontiers.
    free: Vec<u32>,
    total: u32,
    /// Present if low pages are taken before high ones.
    rounds: Option<Rounds>,
}

palimpsest_flash::state!(FreePages { free, total } parts { frontiers, rounds } built {
    streams, level, pages_per_block, blocks_per_plane
});

impl FreePages {
    /// Counts the free blocks of `blocks`.
    pub fn new(geometry: &Geometry, part: &Part, settings: &MgaSettings, blocks: &Blocks) -> Self {
        let planes = geometry.planes();
        let rounds = settings.low_pages_first.then(|| Rounds::new(part, planes));
        let streams = if rounds.is_some() { 1 } else { settings.log.streams.min(2) };
        let free: Vec<u32> = (0..planes).map(|plane| blocks.free_count(plane) * geometry.pages_per_block).collect();
        FreePages {
            streams,
            level: settings.log.wear_leveling != WearLeveling::None,
            pages_per_block: geometry.pages_per_block,
            blocks_per_plane: geometry.blocks_per_plane,
            frontiers: vec![NO_FRONTIER; (planes * streams) as usize],
            total: free.iter().sum(),
            free,
            rounds,
        }
    }

    /// Forgets all free pages.
    pub fn clear(&mut self) {
        self.frontiers.fill(NO_FRONTIER);
        self.free.fill(0);
        self.total = 0;
        self.rounds.iter_mut().for_each(Rounds::clear);
    }

    /// The frontier of moved data.
    #[inline]
    pub fn moved(&self) -> u32 {
        self.streams - 1
    }

    #[inline]
    pub fn planes(&self) -> u32 {
        self.free.len() as u32
    }

    /// Fully free pages of `plane`.
    #[inline]
    pub fn free(&self, plane: u32) -> u32 {
        self.free[plane as usize]
    }

    /// Fully free pages of the drive.
    #[inline]
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Partially-used blocks of the drive.
    pub fn partially_used(&self) -> u32 {
        let rounds = self.rounds.iter();
        rounds.map(|rounds| (0..self.free.len()).map(|plane| rounds.left(plane).0).sum::<u32>()).sum()
    }

    /// True if a small write finds a page in `plane` that can be filled later.
    #[inline]
    pub fn has_low(&self, blocks: &Blocks, plane: u32) -> bool {
        self.rounds.is_none() || self.frontiers[plane as usize].block != NO_BLOCK || blocks.free_count(plane) > RESERVE
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

    /// Takes a page of `plane` for a `whole` page or a part: the next one at the frontier of `stream`. With two rounds,
    /// whole pages prefer high pages, and parts prefer low ones. The last page closes the block.
    #[inline]
    pub fn take(&mut self, io: &Io, blocks: &mut Blocks, plane: u32, stream: u32, whole: bool) -> Option<u32> {
        if self.rounds.is_some() {
            return self.take_in_rounds(io, blocks, plane, whole);
        }
        let index = self.frontier_with_page(io, blocks, plane, stream)?;
        let frontier = &mut self.frontiers[index];
        let ppn = frontier.block * self.pages_per_block + frontier.next_page;
        frontier.next_page += 1;
        self.free[plane as usize] -= 1;
        self.total -= 1;
        if frontier.next_page == self.pages_per_block {
            blocks.close(frontier.block);
            *frontier = NO_FRONTIER;
        }
        Some(ppn)
    }

    fn take_in_rounds(&mut self, io: &Io, blocks: &mut Blocks, plane: u32, whole: bool) -> Option<u32> {
        let low_first = !whole && self.has_low(blocks, plane);
        if !low_first && let Some((block, page, last)) = self.rounds.as_mut().and_then(|rounds| rounds.take_high(plane))
        {
            self.free[plane as usize] -= 1;
            self.total -= 1;
            if last {
                blocks.close(block);
            }
            return Some(block * self.pages_per_block + page);
        }
        let Some(index) = self.frontier_with_page(io, blocks, plane, HOST) else {
            // No low page and no clean block is left, so a small write takes a high page.
            return if low_first || whole { None } else { self.take_in_rounds(io, blocks, plane, true) };
        };
        let rounds = self.rounds.as_mut().expect("blocks are written in two rounds");
        let frontier = &mut self.frontiers[index];
        let ppn = frontier.block * self.pages_per_block + rounds.page(frontier.next_page);
        frontier.next_page += 1;
        self.free[plane as usize] -= 1;
        self.total -= 1;
        if frontier.next_page == rounds.low_pages() {
            rounds.begin_second(plane, frontier.block, frontier.next_page);
            *frontier = NO_FRONTIER;
        }
        Some(ppn)
    }

    #[inline]
    fn frontier_with_page(&mut self, io: &Io, blocks: &mut Blocks, plane: u32, stream: u32) -> Option<usize> {
        let first = (plane * self.streams) as usize;
        let index = first + stream as usize;
        if self.frontiers[index].block != NO_BLOCK {
            return Some(index);
        }
        let nand = io.nand();
        match blocks.open(plane, |block| if self.level { nand.erases(block) } else { 0 }) {
            Some(block) => {
                self.frontiers[index] = Frontier { block, next_page: 0 };
                Some(index)
            }
            None => (first..first + self.streams as usize).find(|&index| self.frontiers[index].block != NO_BLOCK),
        }
    }

    /// Counts a block of `plane` that was erased or found free.
    pub fn add_block(&mut self, plane: u32) {
        self.add(plane, self.pages_per_block);
    }

    /// Removes a free block of `plane` from the count.
    pub fn lose_block(&mut self, plane: u32) {
        self.free[plane as usize] -= self.pages_per_block;
        self.total -= self.pages_per_block;
    }

    fn add(&mut self, plane: u32, pages: u32) {
        self.free[plane as usize] += pages;
        self.total += pages;
    }

    /// Drops the frontier `block`.
    pub fn drop_frontier(&mut self, block: u32) {
        if let Some((plane, left)) = self.rounds.as_mut().and_then(|rounds| rounds.drop_block(block)) {
            self.free[plane] -= left;
            self.total -= left;
        }
        for index in 0..self.frontiers.len() {
            if self.frontiers[index].block == block {
                let rest = self.pages_per_block - self.frontiers[index].next_page;
                self.free[index / self.streams as usize] -= rest;
                self.total -= rest;
                self.frontiers[index] = NO_FRONTIER;
            }
        }
    }

    /// Continues `block` from the state on flash, if a frontier of the plane has no block: first the frontier of moved
    /// data, which needs a block most. False if no page of the block can be taken.
    pub fn resume(&mut self, nand: &Nand, block: u32) -> bool {
        let plane = block / self.blocks_per_plane;
        let mut next_page = nand.next_page(block);
        if let Some(rounds) = &mut self.rounds {
            next_page = rounds.taken(nand, block);
            if next_page >= rounds.low_pages() {
                if next_page < self.pages_per_block {
                    rounds.begin_second(plane, block, next_page);
                    self.add(plane, self.pages_per_block - next_page);
                }
                return next_page < self.pages_per_block;
            }
        }
        let first = (plane * self.streams) as usize;
        let vacant = (first..first + self.streams as usize).rev().find(|&index| self.frontiers[index] == NO_FRONTIER);
        if let Some(index) = vacant {
            self.frontiers[index] = Frontier { block, next_page };
            self.add(plane, self.pages_per_block - next_page);
        }
        vacant.is_some()
    }

    /// Checks the counts.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self, blocks: &Blocks) -> Result<(), String> {
        for (plane, frontiers) in self.frontiers.chunks(self.streams as usize).enumerate() {
            let rest = |frontier: &Frontier| match frontier.block {
                NO_BLOCK => 0,
                _ => self.pages_per_block - frontier.next_page,
            };
            let in_second: u32 = self.rounds.iter().map(|rounds| rounds.left(plane).1).sum();
            let at_frontiers: u32 = frontiers.iter().map(rest).sum::<u32>() + in_second;
            let expected = blocks.free_count(plane as u32) * self.pages_per_block + at_frontiers;
            if self.free[plane] != expected {
                return Err(format!("plane {plane} counts {} fully free pages, not {expected}", self.free[plane]));
            }
        }
        if self.free.iter().sum::<u32>() != self.total {
            return Err(format!("{} fully free pages are counted, not {}", self.total, self.free.iter().sum::<u32>()));
        }
        Ok(())
    }
}
