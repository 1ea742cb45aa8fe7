//! The fast cache: blocks of MLC, TLC or QLC that temporarily hold one bit a cell ("pSLC", "TurboWrite").
//!
//! A block opened for the host holds one bit a cell if fewer than `ftl.slc_cache` blocks of the plane do. The plane
//! must also have more free blocks than collection keeps plus an eighth of the cache. Beside a fixed share, more blocks
//! must be free than are spare on a full drive. So the dynamic share uses only unused host space, and a full drive has
//! the fixed share alone.
//!
//! A cached block uses a half (MLC), a third (TLC) or a quarter (QLC) of the pages, each at the times of single bits.
//! Cleaning folds cached blocks: valid units move to blocks of the stream of moved data, with all bits. Cached blocks
//! hold so few units that victim policies by valid units prefer them; the background folds the oldest. This file is the
//! dynamic share; `fixed` has blocks that always hold one bit a cell. Under a code of cells the cache takes erased
//! blocks only, and a cached block is erased after folding, because no generation follows single bits.
//!
//! Ignored: lower wear and energy of single bits.

use super::settings::LogSettings;
use palimpsest_flash::geometry::Geometry;

/// Blocks with one bit a cell.
pub struct Single {
    /// Per block: true with one bit a cell; empty without a cache.
    blocks: Vec<bool>,
    /// Such blocks of each plane.
    count: Vec<u32>,
    /// The most such blocks of a plane.
    most: u32,
    /// Blocks of each plane in the fixed share, from the first on, not included in `count`.
    fixed: u32,
    blocks_per_plane: u32,
    /// Free blocks that a plane must have to add another.
    least_free: u32,
    pages_per_block: u32,
    /// Pages of a block with one bit a cell.
    pages: u32,
}

palimpsest_flash::state!(Single { blocks, count } built {
    most, fixed, blocks_per_plane, least_free, pages_per_block, pages
});

impl Single {
    /// None so far, of cells that store `bits` bits, on a drive that holds `stored` pages when full.
    pub fn new(settings: &LogSettings, geometry: &Geometry, bits: u32, stored: u32) -> Self {
        let blocks = geometry.blocks_per_plane;
        let most = settings.slc_cache.of(blocks);
        let fixed = settings.slc_fixed.of(blocks);
        let full = stored.div_ceil(geometry.planes() * geometry.pages_per_block);
        let spare = if fixed > 0 { blocks.saturating_sub(fixed + full) } else { 0 };
        let uses = most + fixed > 0 && bits > 1;
        let mut single = Single {
            blocks: vec![false; if uses { geometry.blocks() as usize } else { 0 }],
            count: vec![0; geometry.planes() as usize],
            most,
            fixed,
            blocks_per_plane: blocks,
            least_free: (settings.gc_stop.of(blocks) + most / 8 + 1).max(spare),
            pages_per_block: geometry.pages_per_block,
            pages: geometry.pages_per_block / bits,
        };
        single.forget();
        single
    }

    /// True if a cache exists.
    #[inline]
    pub fn is_used(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// True if `block` holds one bit a cell.
    #[inline]
    pub fn holds(&self, block: u32) -> bool {
        self.is_used() && self.blocks[block as usize]
    }

    /// Blocks of `plane` with one bit a cell, without the fixed share.
    pub fn count(&self, plane: u32) -> u32 {
        self.count[plane as usize]
    }

    /// The plane with the most such blocks; the first of several.
    pub fn fullest(&self) -> u32 {
        (0..).zip(&self.count).max_by_key(|&(plane, count)| (*count, u32::MAX - plane)).map_or(0, |(plane, _)| plane)
    }

    /// Pages of `block`.
    #[inline]
    pub fn pages_of(&self, block: u32) -> u32 {
        if self.holds(block) { self.pages } else { self.pages_per_block }
    }

    /// True if the host's next block of `plane`, with `free` others free, holds one bit a cell.
    pub fn takes(&self, plane: u32, free: u32) -> bool {
        self.is_used() && self.count(plane) < self.most && free >= self.least_free
    }

    /// Opens `block` of `plane` for the host. Returns the number of pages that the block loses.
    pub fn begin(&mut self, plane: u32, block: u32) -> u32 {
        self.found(plane, block);
        self.pages_per_block - self.pages
    }

    /// Records that `block` holds one bit a cell.
    pub fn found(&mut self, plane: u32, block: u32) {
        if self.is_used() {
            self.blocks[block as usize] = true;
            self.count[plane as usize] += 1;
        }
    }

    /// Records that `block` is free again.
    pub fn end(&mut self, plane: u32, block: u32) {
        if self.holds(block) {
            self.blocks[block as usize] = false;
            self.count[plane as usize] -= 1;
        }
    }

    /// Forgets all blocks but the fixed share.
    pub fn forget(&mut self) {
        let (fixed, per_plane) = (self.fixed, self.blocks_per_plane);
        (0..).zip(&mut self.blocks).for_each(|(block, holds): (u32, _)| *holds = block % per_plane < fixed);
        self.count.fill(0);
    }
}
