//! Log blocks with one bit a cell: the usual hybrid map over MLC, TLC or QLC. Blocks of the fixed share of the fast
//! cache (`ftl.slc_fixed`) are log blocks and nothing else; of the others, up to `ftl.slc_cache` of a plane hold one
//! bit a cell while they are log blocks.
//!
//! Such a block has a half, a third or a quarter of the pages, so it never becomes a data block: its merges are full.
//! If no block of the fixed share is free, another block of the plane becomes the log block (`ftl.slc_full = direct`),
//! or the next log block in turn is merged (`fold`). Ignored: lower energy of single bits.

use super::{BlockMap, HybridSettings};
use crate::free::FreeBlocks;
use crate::log::settings::{LogSettings, WearLeveling, WhenFull};
use crate::log::single::Single;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::Flash;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::settings::Settings;

/// Log blocks of each plane: all, and those outside the fixed share. Each block of the fixed share can be one, beside
/// `ordinary` blocks that must become data blocks.
pub fn log_blocks(settings: &Settings, geometry: &Geometry, ordinary: u32) -> (u32, u32) {
    let fixed = LogSettings::new(settings).slc_fixed.of(geometry.blocks_per_plane);
    let all = HybridSettings::new(settings).log_blocks.max(fixed + ordinary);
    (all, all - fixed)
}

/// Blocks with one bit a cell.
pub(super) struct Cached {
    pub single: Single,
    /// Free blocks of the fixed share of each plane; empty without one.
    pub free: Vec<FreeBlocks>,
    /// Blocks of the fixed share in each plane.
    fixed: u32,
    /// The most others with one bit a cell in each plane.
    most: u32,
    /// True if log blocks are merged when the fixed share is full.
    folds: bool,
    /// Merged log blocks with one bit a cell.
    pub merged: u64,
}

palimpsest_flash::state!(Cached { single, merged } parts { free } built { fixed, most, folds });

impl Cached {
    /// No block is free yet.
    pub fn new(settings: &LogSettings, shape: &Geometry, bits: u32) -> Self {
        let size = shape.blocks_per_plane;
        let fixed = if bits > 1 { settings.slc_fixed.of(size) } else { 0 };
        let planes = if fixed > 0 { shape.planes() } else { 0 };
        Cached {
            single: Single::new(settings, shape, bits, 0),
            free: (0..planes).map(|plane| FreeBlocks::none_of(plane * size..plane * size + fixed)).collect(),
            fixed,
            most: settings.slc_cache.of(size),
            folds: settings.slc_full == WhenFull::Fold,
            merged: 0,
        }
    }

    /// Forgets all blocks but the fixed share, of which none is free.
    pub fn forget(&mut self) {
        self.single.forget();
        self.free.iter_mut().for_each(FreeBlocks::clear);
    }
}

impl BlockMap {
    /// True if a log block of `plane` can be taken.
    pub fn has_log_room(&self, io: &Io, plane: usize) -> bool {
        let first = plane as u32 * self.shape.blocks_per_plane;
        let waits = || self.cached.folds && (first..first + self.cached.fixed).any(|block| !io.nand().is_bad(block));
        self.cached.free.get(plane).is_some_and(|free| !free.is_empty()) || self.has_room(plane) && !waits()
    }

    /// Takes a free block of `plane` for a log block: of the fixed share, if one is free there.
    pub fn take_log(&mut self, io: &Io, plane: usize) -> Flash<u32> {
        let level = self.wear_leveling != WearLeveling::None;
        let wear = |block| if level { io.nand().erases(block) } else { 0 };
        if let Some(block) = self.cached.free.get_mut(plane).and_then(|free| free.pop(wear)) {
            return Ok(block);
        }
        let block = self.take(io, plane)?;
        if self.cached.single.count(plane as u32) < self.cached.most {
            self.cached.single.found(plane as u32, block);
        }
        Ok(block)
    }

    /// Pages of `log_blocks` log blocks of a plane.
    pub(super) fn log_pages(&self, log_blocks: u32) -> u64 {
        let pages = |block: u32| u64::from(self.cached.single.pages_of(block));
        let fixed = self.cached.fixed.min(log_blocks);
        u64::from(fixed) * pages(0) + u64::from(log_blocks - fixed) * u64::from(self.shape.pages_per_block)
    }

    /// True if the physical block `block` is in the fixed share.
    fn is_fixed(&self, block: u32) -> bool {
        block % self.shape.blocks_per_plane < self.cached.fixed
    }

    /// Adds the erased physical block `block` to the free ones.
    pub(super) fn set_free(&mut self, block: u32) {
        let plane = self.shape.plane_of_block(block) as usize;
        let fixed = self.is_fixed(block);
        if fixed { &mut self.cached.free[plane] } else { &mut self.free[plane] }.push(block);
    }

    /// The physical block `block` is erased or retired.
    pub(super) fn end_log(&mut self, block: u32) {
        self.cached.merged += u64::from(self.cached.single.holds(block));
        if !self.is_fixed(block) {
            self.cached.single.end(self.shape.plane_of_block(block), block);
        }
    }

    /// After a power cut: the good physical block `block` is written.
    pub(super) fn find_single(&mut self, io: &Io, block: u32) {
        if io.nand().is_single(block) && !self.is_fixed(block) {
            self.cached.single.found(self.shape.plane_of_block(block), block);
        }
    }
}
