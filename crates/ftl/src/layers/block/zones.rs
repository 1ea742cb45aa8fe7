//! Zones of consecutive logical blocks, for [`super::super::zns`]: their places, the numbers of their pages for the
//! host, and pages that hold fewer subpages than they have room for, at the end of the written part of a zone.
//!
//! Ignored: write pointers and states, which the layer above keeps.

use super::{Block, PageRun};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Nand, PADDING};
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

    /// Logical numbers of the subpages of `page`, as the host numbers them.
    pub(super) fn logical_numbers(&self, block: u32, page: u32) -> [u32; 64] {
        let (per_block, width) = (self.geometry.pages_per_block, self.geometry.subpages_per_page);
        let first = match self.zones {
            Some(zones) => block / zones.blocks * zones.pages + block % zones.blocks * per_block + page,
            None => block * per_block + page,
        } * width;
        let filled = if self.partial.is_empty() { None } else { self.partial.get(&(block * per_block + page)) };
        let filled = filled.map_or(64, |&filled| filled as usize);
        std::array::from_fn(|index| if index < filled { first.wrapping_add(index as u32) } else { PADDING })
    }

    /// The page that the host numbers `page`, if a block holds it.
    pub(super) fn page_of(&self, page: u32) -> Option<u32> {
        let Some(zones) = self.zones else { return Some(page) };
        let (held, place) = (zones.blocks * self.geometry.pages_per_block, page % zones.pages);
        (place < held && page / zones.pages < self.map.len() as u32).then(|| page / zones.pages * held + place)
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
        if filled < self.geometry.subpages_per_page {
            self.partial.insert(page, filled);
        } else if !self.partial.is_empty() {
            self.partial.remove(&page);
        }
        self.contents.clear();
        self.contents.extend_from_slice(contents);
        self.arrived.clear();
        self.arrived.push(after);
        self.store(io, PageRun { block: page / per_block, first: page % per_block, count: 1, cause, signal, frees })
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
