//! Zones of consecutive logical blocks, for [`super::super::zns`]: their places, the numbers of their pages for the
//! host, and pages that hold fewer subpages than they have room for, at the end of the written part of a zone.
//!
//! Ignored: write pointers and states, which the layer above keeps.

use super::{Block, PageRun};
use crate::free::FreeBlocks;
use crate::log::blocks::NO_BLOCK;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Halt, Nand, PADDING};
use palimpsest_ftl_api::Blueprint;
use palimpsest_ftl_api::plan::{Cause, Gate, Io};

/// Zones as consecutive logical blocks, on one plane of the layer each.
#[derive(Clone, Copy)]
pub struct ZoneShape {
    /// Logical blocks of a zone.
    pub blocks: u32,
    /// Pages from the start of a zone to the start of the next; those beyond the blocks hold no data.
    pub pages: u32,
}

impl Block {
    /// The layer of `count` zones of this shape.
    pub(in super::super) fn of_zones(io: &Io, blueprint: &Blueprint, count: u32, zones: ZoneShape) -> Self {
        let logical_pages = count * zones.blocks * io.geometry().pages_per_block;
        Block { zones: Some(zones), ..Block::new(io, &Blueprint { logical_pages, ..blueprint.clone() }) }
    }

    /// Stores the logical numbers of the subpages of `page`, as the host numbers them, in the scratch. Returns how many
    /// are padding.
    pub(super) fn number(&mut self, block: u32, page: u32) -> u32 {
        let (per_block, width) = (self.geometry.pages_per_block, self.geometry.subpages_per_page);
        let first = match self.zones {
            Some(zones) => block / zones.blocks * zones.pages + block % zones.blocks * per_block + page,
            None => block * per_block + page,
        } * width;
        let filled = if self.partial.is_empty() { width } else { self.filled(block * per_block + page) };
        for (number, subpage) in self.numbers.iter_mut().zip(0..) {
            *number = if subpage < filled { first + subpage } else { PADDING };
        }
        width - filled
    }

    /// The page that the host numbers `page`, if a block holds it.
    pub(super) fn page_of(&self, page: u32) -> Option<u32> {
        let Some(zones) = self.zones else { return Some(page) };
        let (held, place) = (zones.blocks * self.geometry.pages_per_block, page % zones.pages);
        (place < held && page / zones.pages < self.map.len() as u32).then(|| page / zones.pages * held + place)
    }

    /// Sets the page to program to `contents`, which have arrived when `after` closes.
    pub(super) fn bring(&mut self, contents: &[Data], after: Gate) {
        self.contents.clear();
        self.contents.extend_from_slice(contents);
        self.arrived.clear();
        self.arrived.push(after);
    }

    /// Writes `filled` subpages of `page`, whose contents are `contents`; `frees` subpages of the write buffer hold
    /// them.
    pub(in super::super) fn write_part(
        &mut self,
        io: &mut Io,
        (page, filled): (u32, u32),
        contents: &[Data],
        cause: Cause,
        (after, signal, frees): (Gate, Gate, u32),
    ) -> Flash<()> {
        let per_block = self.geometry.pages_per_block;
        let before = if filled < self.geometry.subpages_per_page {
            self.partial.insert(page, filled)
        } else if self.partial.is_empty() {
            None
        } else {
            self.partial.remove(&page)
        };
        self.bring(contents, after);
        let run = PageRun { block: page / per_block, first: page % per_block, count: 1, cause, signal, frees };
        let stored = self.store(io, run);
        if let Err(Halt::NoSpace) = stored {
            // The page stays as it was.
            self.partial.remove(&page);
            self.partial.extend(before.map(|filled| (page, filled)));
        }
        stored
    }

    /// Failed blocks and dies so far, a number that changes with each further one.
    pub(in super::super) fn failures(&self, io: &Io) -> (u64, usize) {
        (self.counters.retired, io.nand().failed_dies().len())
    }

    /// Stops writes to dies that have failed.
    pub(in super::super) fn note_dead_dies(&mut self, io: &Io) {
        for plane in 0..self.geometry.planes() {
            if io.nand().is_dead(plane * self.geometry.blocks_per_plane) && !self.dead[plane as usize] {
                self.dead[plane as usize] = true;
                self.counters.retired += self.free[plane as usize].len() as u64;
                self.free[plane as usize].clear();
            }
        }
    }

    /// Blocks that can be taken.
    pub(in super::super) fn free_blocks(&self) -> usize {
        self.free.iter().map(FreeBlocks::len).sum()
    }

    /// Blocks that `zone` does not have yet.
    pub(in super::super) fn blocks_to_take(&self, zone: u32, blocks: u32) -> usize {
        (zone * blocks..(zone + 1) * blocks).filter(|&block| self.map[block as usize] == NO_BLOCK).count()
    }

    /// True if a page with data of `zone` is on a failed die.
    pub(in super::super) fn loses(&self, nand: &Nand, zone: u32, blocks: u32) -> bool {
        let mapped = (zone * blocks..(zone + 1) * blocks).filter(|&block| self.map[block as usize] != NO_BLOCK);
        let mut dead = mapped.filter(|&block| nand.is_dead(self.map[block as usize]));
        dead.any(|block| {
            let mut pages = (0..self.geometry.pages_per_block).filter_map(|page| self.page(block, page));
            pages.any(|ppn| nand.is_dead_page(ppn))
        })
    }

    /// True if no block was free since the last call, when one was to be taken.
    pub(in super::super) fn take_shortage(&mut self) -> bool {
        std::mem::take(&mut self.is_short)
    }

    /// Subpages with data of `page`, which is valid.
    pub(in super::super) fn filled(&self, page: u32) -> u32 {
        self.partial.get(&page).copied().unwrap_or(self.geometry.subpages_per_page)
    }

    /// Records the subpages with data of `page`, as physical page `ppn` holds them.
    pub(super) fn note_filled(&mut self, nand: &Nand, page: u32, ppn: u32) {
        if self.zones.is_none() {
            return;
        }
        let width = self.geometry.subpages_per_page;
        let filled = (0..width).filter(|subpage| nand.logical(ppn * width + subpage) != PADDING).count() as u32;
        if filled < width {
            self.partial.insert(page, filled);
        } else {
            self.partial.remove(&page);
        }
    }
}
