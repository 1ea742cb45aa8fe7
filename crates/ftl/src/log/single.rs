//! The fast cache: blocks of TLC or QLC that hold one bit a cell for a while ("pSLC", "TurboWrite").
//!
//! A block that is opened for the host is such a block while fewer of its plane are than `ftl.slc_cache` says, and while the plane has more
//! free blocks than collection keeps, and an eighth of the cache besides; beside a fixed share, also more than are spare when the drive is full, so
//! that this share is of space that the host does not use, and a full drive has the other one alone. It takes a third (TLC) or a quarter (QLC) of its pages, each at
//! the times of single bits. Cleaning folds it: it moves what is valid to blocks of the stream of moved data, which have all their bits.
//! It holds so few units that victims by valid units come from the cache first; in the background the oldest are folded.
//! This is the dynamic share; `fixed` has blocks that are always such. Ignored: that single bits wear cells less and take less energy.

use super::settings::LogSettings;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::part::CellKind;

/// Blocks that hold one bit a cell.
pub struct Single {
    /// Whether each block does; empty without a cache.
    blocks: Vec<bool>,
    /// How many of each plane do.
    count: Vec<u32>,
    /// The most of a plane.
    most: u32,
    /// Blocks of each plane, from its first on, that always do: the fixed share, which is counted by itself.
    fixed: u32,
    blocks_per_plane: u32,
    /// Free blocks that a plane must have for another.
    least_free: u32,
    pages_per_block: u32,
    /// Pages of such a block.
    pages: u32,
}

palimpsest_flash::state!(Single { blocks, count } built { most, fixed, blocks_per_plane, least_free, pages_per_block, pages });

impl Single {
    /// None so far, on a drive that holds `stored` pages when it is full.
    pub fn new(settings: &LogSettings, geometry: &Geometry, cell: CellKind, stored: u32) -> Self {
        let blocks = geometry.blocks_per_plane;
        let most = settings.slc_cache.of(blocks);
        let fixed = settings.slc_fixed.of(blocks);
        let full = stored.div_ceil(geometry.planes() * geometry.pages_per_block);
        let spare = if fixed > 0 { blocks.saturating_sub(fixed + full) } else { 0 };
        let uses = most + fixed > 0 && cell.bits() > 1;
        let mut single = Single {
            blocks: vec![false; if uses { geometry.blocks() as usize } else { 0 }],
            count: vec![0; geometry.planes() as usize],
            most,
            fixed,
            blocks_per_plane: blocks,
            least_free: (settings.gc_stop.of(blocks) + most / 8 + 1).max(spare),
            pages_per_block: geometry.pages_per_block,
            pages: geometry.pages_per_block / cell.bits(),
        };
        single.forget();
        single
    }

    /// Whether there is a cache.
    #[inline]
    pub fn is_used(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Whether `block` holds one bit a cell.
    #[inline]
    pub fn holds(&self, block: u32) -> bool {
        self.is_used() && self.blocks[block as usize]
    }

    /// Such blocks of `plane`.
    pub fn count(&self, plane: u32) -> u32 {
        self.count[plane as usize]
    }

    /// Pages of `block`.
    #[inline]
    pub fn pages_of(&self, block: u32) -> u32 {
        if self.holds(block) { self.pages } else { self.pages_per_block }
    }

    /// Whether the host's next block of `plane`, beside which `free` are free, is such a block.
    pub fn takes(&self, plane: u32, free: u32) -> bool {
        self.is_used() && self.count(plane) < self.most && free >= self.least_free
    }

    /// The host's next block of `plane`, beside which `free` are free, is `block`. Returns how many pages it lacks.
    pub fn begin(&mut self, plane: u32, block: u32, free: u32) -> u32 {
        if !self.takes(plane, free) {
            return 0;
        }
        self.found(plane, block);
        self.pages_per_block - self.pages
    }

    /// `block` holds one bit a cell.
    pub fn found(&mut self, plane: u32, block: u32) {
        if self.is_used() {
            self.blocks[block as usize] = true;
            self.count[plane as usize] += 1;
        }
    }

    /// `block` is free again.
    pub fn end(&mut self, plane: u32, block: u32) {
        if self.holds(block) {
            self.blocks[block as usize] = false;
            self.count[plane as usize] -= 1;
        }
    }

    /// Nothing is known of any block but those of the fixed share.
    pub fn forget(&mut self) {
        let (fixed, per_plane) = (self.fixed, self.blocks_per_plane);
        (0..).zip(&mut self.blocks).for_each(|(block, holds): (u32, _)| *holds = block % per_plane < fixed);
        self.count.fill(0);
    }
}
