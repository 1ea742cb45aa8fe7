//! Where a page is written: the plane that a policy chooses, and the frontier of the stream in that plane.

use super::{Frontier, UnitLog};
use crate::log::blocks::NO_BLOCK;
use crate::log::settings::WearLeveling;
use palimpsest_flash::nand::{Flash, Halt};
use palimpsest_ftl_api::plan::Io;

impl UnitLog {
    /// A plane in which the host's `stream` can write a page now, cleaning where that takes it.
    pub(super) fn plane_with_space(&mut self, io: &mut Io, stream: u32, unit: u32) -> Flash<u32> {
        let first = self.rotation.first(io, self.per_page.divide(unit));
        for step in 0..self.free_pages.len() as u32 {
            let plane = self.rotation.then(first, step);
            if self.ensure_space(io, plane, stream)? {
                self.rotation.used(plane);
                return Ok(plane);
            }
        }
        Err(Halt::NoSpace)
    }

    #[inline]
    pub(super) fn frontier(&self, plane: u32, stream: u32) -> usize {
        (plane * self.settings.streams + stream) as usize
    }

    /// Takes the next page at the frontier of `stream` in `plane`, or, where the plane has none left, in another plane.
    #[inline]
    pub(super) fn take_page(&mut self, io: &Io, plane: u32, stream: u32) -> Flash<u32> {
        let index = self.frontier(plane, stream);
        if self.frontiers[index].block == NO_BLOCK && !self.open_frontier(io, plane, stream) {
            return self.take_page_elsewhere(io, plane, stream);
        }
        let frontier = &mut self.frontiers[index];
        let ppn = frontier.block * self.pages_per_block + frontier.next_page;
        frontier.next_page += 1;
        self.free_pages[plane as usize] -= 1;
        if frontier.next_page == self.pages_per_block {
            let block = frontier.block;
            frontier.block = NO_BLOCK;
            self.blocks.close(block);
        }
        Ok(ppn)
    }

    #[cold]
    pub(super) fn take_page_elsewhere(&mut self, io: &Io, plane: u32, stream: u32) -> Flash<u32> {
        let planes = self.free_pages.len() as u32;
        let most_free = (0..planes).filter(|&other| other != plane).max_by_key(|&other| {
            let at_frontier = self.frontiers[self.frontier(other, stream)].block != NO_BLOCK;
            (self.blocks.free_count(other) + u32::from(at_frontier), u32::MAX - other)
        });
        match most_free {
            Some(other) if self.frontiers[self.frontier(other, stream)].block != NO_BLOCK => {
                self.take_page(io, other, stream)
            }
            Some(other) if self.open_frontier(io, other, stream) => self.take_page(io, other, stream),
            _ => Err(Halt::NoSpace),
        }
    }

    /// Opens a free block of `plane` for `stream`.
    pub(super) fn open_frontier(&mut self, io: &Io, plane: u32, stream: u32) -> bool {
        let nand = io.nand();
        let level = self.settings.wear_leveling != WearLeveling::None;
        let opened = self.blocks.open(plane, |one, other| level && nand.erases(one) < nand.erases(other));
        let index = self.frontier(plane, stream);
        self.frontiers[index] = Frontier { block: opened.unwrap_or(NO_BLOCK), next_page: 0 };
        opened.is_some()
    }
}
