//! The fixed share of the fast cache (`ftl.slc_fixed`): the first blocks of each plane, which always hold one bit a cell.
//!
//! They are a pool of their own beside the blocks of the log: none of them is free for anything else, is a victim of collection, or counts as
//! free space. Host writes to a plane, of whatever stream, go there first; then to the dynamic share (`single`), where there is one; then
//! past the cache. Folding moves what is valid in the block that was closed first to blocks of moved data, page by page, and erases it; it
//! takes free pages like writes of the host do, and collection makes room for it like for these. It is done
//!
//! - while the host is idle, with `ftl.gc_background`, until all that is closed is folded;
//! - with `ftl.slc_full = fold` when no block of the pool is free and the dynamic share takes nothing: the moves are dealt out over the pages
//!   that are left in the open block, and a write waits for the rest. With `direct` writes go past the cache until the host is idle.
//!
//! Where nothing is valid any more in the block that was closed first, it is erased as soon as its plane needs one. A block that fails is not replaced. Ignored: that
//! single bits take less energy; that a drive may make the share smaller when it wears out.

use super::Log;
use super::blocks::{BlockState, Blocks, NO_BLOCK};
use super::frontiers::{CLOSED, Frontier};
use super::settings::{LogSettings, WhenFull};
use crate::free::FreeBlocks;
use crate::log::map::Map;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::{Flash, Nand};
use palimpsest_ftl_api::plan::{Gate, Io};

/// Pools of so many blocks keep one free ahead of the host.
const AHEAD_FROM: u32 = 4;

/// A block that is being folded.
#[derive(Clone, Copy, Default)]
struct Folding {
    block: u32,
    /// Its units before this one have moved.
    next: u32,
    /// Closes when all copies so far are safe.
    safe: Gate,
}

palimpsest_flash::state!(Folding { block, next, safe });

/// The blocks of a plane.
struct Pool {
    /// Erased.
    free: FreeBlocks,
    /// Written, in the order in which they were closed.
    closed: Vec<u32>,
    open: Frontier,
    folding: Option<Folding>,
}

palimpsest_flash::state!(Pool { free, closed, open, folding });

/// The blocks of all planes.
pub struct Fixed {
    /// One entry a plane; none without a fixed share.
    pools: Vec<Pool>,
    /// Blocks of a pool, failed ones included.
    blocks: u32,
    blocks_per_plane: u32,
    pages_per_block: u32,
    /// Pages of a block with one bit a cell.
    pages: u32,
    /// Whether the host waits for a fold when the cache is full.
    folds: bool,
    level: bool,
    /// Blocks folded, so far.
    folded: u64,
}

palimpsest_flash::state!(Fixed { folded } parts { pools } built { blocks, blocks_per_plane, pages_per_block, pages, folds, level });

impl Fixed {
    /// All blocks are free, but for those that are bad: `blocks` learns which they are.
    pub fn new(settings: &LogSettings, geometry: &Geometry, bits: u32, level: bool, blocks: &mut Blocks) -> Self {
        let count = if bits > 1 { settings.slc_fixed.of(geometry.blocks_per_plane) } else { 0 };
        let mut fixed = Fixed {
            pools: Vec::new(),
            blocks: count,
            blocks_per_plane: geometry.blocks_per_plane,
            pages_per_block: geometry.pages_per_block,
            pages: geometry.pages_per_block / bits,
            folds: settings.slc_full == WhenFull::Fold,
            level,
            folded: 0,
        };
        fixed.forget(geometry.planes(), blocks);
        fixed
    }

    /// The power is back: all blocks are free until they are found otherwise.
    pub fn forget(&mut self, planes: u32, blocks: &mut Blocks) {
        self.pools.clear();
        for first in (0..if self.blocks > 0 { planes } else { 0 }).map(|plane| plane * self.blocks_per_plane) {
            let free: Vec<u32> =
                (first..first + self.blocks).filter(|&block| blocks.state(block) == BlockState::Free).collect();
            free.iter().for_each(|&block| blocks.set_aside(block));
            let mut pool = FreeBlocks::none_of(first..first + self.blocks);
            pool.extend(free);
            self.pools.push(Pool { free: pool, closed: Vec::new(), open: CLOSED, folding: None });
        }
    }

    /// Whether there is a fixed share.
    #[inline]
    pub fn is_used(&self) -> bool {
        !self.pools.is_empty()
    }

    /// Whether `block` is of it.
    #[inline]
    pub fn holds(&self, block: u32) -> bool {
        self.is_used() && block % self.blocks_per_plane < self.blocks
    }

    /// Whether writes of the host wait for folds when the cache is full.
    #[inline]
    pub fn folds(&self) -> bool {
        self.is_used() && self.folds
    }

    /// Blocks folded so far.
    pub fn folded(&self) -> u64 {
        self.folded
    }

    /// Whether the next page of the host in `plane` is one of the pool.
    #[inline]
    pub fn has_page(&self, plane: u32) -> bool {
        self.pools.get(plane as usize).is_some_and(|pool| pool.open.block != NO_BLOCK || !pool.free.is_empty())
    }

    /// Takes the next page of the pool of `plane`, if it has one.
    pub fn take_page(&mut self, nand: &Nand, plane: u32) -> Option<u32> {
        let (pages, per_block, level) = (self.pages, self.pages_per_block, self.level);
        let pool = self.pools.get_mut(plane as usize)?;
        if pool.open.block == NO_BLOCK {
            let block = pool.free.pop(|block| if level { nand.erases(block) } else { 0 })?;
            pool.open = Frontier { block, next_page: 0 };
        }
        let Frontier { block, next_page } = pool.open;
        pool.open.next_page += 1;
        if next_page + 1 == pages {
            pool.closed.push(block);
            pool.open = CLOSED;
        }
        Some(block * per_block + next_page)
    }

    /// `block` of `plane` is erased.
    pub fn release(&mut self, plane: u32, block: u32) {
        self.pools[plane as usize].free.push(block);
    }

    /// Takes `block` of `plane` out of the pool: it has failed.
    pub fn drop_block(&mut self, plane: u32, block: u32) {
        let pool = &mut self.pools[plane as usize];
        pool.free.remove(block);
        pool.closed.retain(|&other| other != block);
        if pool.open.block == block {
            pool.open = CLOSED;
        }
    }

    /// Nothing is written to `plane` any more. Returns its free blocks, which it has no more.
    pub fn lose_plane(&mut self, plane: u32) -> Vec<u32> {
        let Some(pool) = self.pools.get_mut(plane as usize) else { return Vec::new() };
        let open = std::mem::replace(&mut pool.open, CLOSED);
        pool.closed.extend((open.block != NO_BLOCK).then_some(open.block));
        let free = pool.free.in_order();
        pool.free.clear();
        free
    }

    /// After a power cut: `block` of `plane` is written up to `next_page`. It is open, or closed where it is full or another is open.
    pub fn resume(&mut self, plane: u32, block: u32, next_page: u32) {
        let pages = self.pages;
        let pool = &mut self.pools[plane as usize];
        pool.free.remove(block);
        if next_page < pages && pool.open.block == NO_BLOCK {
            pool.open = Frontier { block, next_page };
        } else {
            pool.closed.push(block);
        }
    }

    /// The block of `plane` that is folded next: the one that was closed first.
    fn oldest(&self, plane: u32) -> Option<u32> {
        self.pools[plane as usize].closed.first().copied()
    }

    /// Checks that each block is in one place.
    ///
    /// # Errors
    /// What does not agree.
    pub fn check(&self, blocks: &Blocks) -> Result<(), String> {
        for (plane, pool) in (0..).zip(&self.pools) {
            let mut all = [pool.free.in_order(), pool.closed.clone()].concat();
            all.extend((pool.open.block != NO_BLOCK).then_some(pool.open.block));
            all.extend(pool.folding.map(|folding| folding.block));
            let (count, of_plane) =
                (all.len(), plane * self.blocks_per_plane..plane * self.blocks_per_plane + self.blocks);
            all.sort_unstable();
            all.dedup();
            let stray = |block: &u32| !of_plane.contains(block) || blocks.state(*block) != BlockState::Aside;
            if all.len() < count || all.iter().any(stray) {
                return Err(format!("plane {plane}: the blocks of the fixed share of the fast cache are {all:?}"));
            }
            if let Some(block) = pool.free.iter().find(|&block| blocks.valid_count(block) > 0) {
                return Err(format!("block {block} of the fast cache is free but holds valid units"));
            }
        }
        Ok(())
    }
}

impl<M: Map> Log<M> {
    /// Whether a page of the host's `stream` goes to the fixed share of the fast cache in `plane`, which folds where it is to be.
    #[cold]
    pub(super) fn cache_takes(&mut self, io: &mut Io, plane: u32, stream: u32) -> Flash<bool> {
        if self.frontiers.rotation.passes_by(plane) {
            return Ok(false);
        }
        if self.frontiers.fixed.folds && !self.frontiers.takes_dynamic(plane, stream) {
            self.fold_for_host(io, plane)?;
        }
        if self.frontiers.fixed.has_page(plane) {
            return Ok(true);
        }
        let Some(block) = self.empty_cached(plane) else { return Ok(false) };
        self.frontiers.fixed.drop_block(plane, block);
        self.erase(io, block, Gate::NONE)?;
        Ok(self.frontiers.fixed.has_page(plane))
    }

    /// The block of the pool of `plane` that was closed first, if it holds nothing any more.
    fn empty_cached(&self, plane: u32) -> Option<u32> {
        self.frontiers.fixed.oldest(plane).filter(|&block| self.frontiers.blocks.valid_count(block) == 0)
    }

    /// Whether there is such a block.
    #[inline]
    pub(super) fn has_empty_cached(&self, plane: u32) -> bool {
        self.frontiers.fixed.is_used() && self.empty_cached(plane).is_some()
    }

    /// The moves that go with a page of the host, where few blocks of `plane` are free.
    fn fold_for_host(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        let fixed = &self.frontiers.fixed;
        let pool = &fixed.pools[plane as usize];
        let ahead = usize::from(fixed.blocks >= AHEAD_FROM);
        if pool.free.len() > ahead {
            return Ok(());
        }
        let left = if pool.open.block == NO_BLOCK { 0 } else { fixed.pages - pool.open.next_page };
        if left == 0 && pool.free.is_empty() {
            return self.fold_now(io, plane);
        }
        let pages = fixed.pages;
        let Some(folding) = self.begin_fold(plane) else { return Ok(()) };
        let rest = pages.saturating_sub(self.shape.per_page.divide(folding.next)).max(1);
        self.fold_pages(io, plane, rest.div_ceil(left.max(1))).map(drop)
    }

    /// No page of the pool of `plane` is left: folds until there is, or nothing more can be folded.
    fn fold_now(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        let moved = self.frontiers.data_streams() - 1;
        let page = self.open.moved_page(plane, moved);
        while !self.frontiers.fixed.has_page(plane) {
            if self.open.filled(page) > 0 && self.empties_cached(plane) {
                // The last units of a block wait there.
                if !self.ensure_space(io, plane, moved)? {
                    return Ok(());
                }
                if self.open.filled(page) > 0 {
                    self.program_open(io, plane, page)?;
                }
            } else if self.begin_fold(plane).is_none() || !self.fold_pages(io, plane, u32::MAX)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether the last units of a block of the pool of `plane` wait in an open page.
    fn empties_cached(&self, plane: u32) -> bool {
        let of_pool = |block: u32| block / self.shape.blocks_per_plane == plane && self.frontiers.fixed.holds(block);
        self.collector.emptying.iter().any(|&(block, _)| of_pool(block))
    }

    /// One step in each plane whose pool has a block to fold. False where none has.
    pub(super) fn fold_in_background(&mut self, io: &mut Io) -> Flash<bool> {
        let mut done = false;
        for plane in 0..self.frontiers.fixed.pools.len() as u32 {
            if !self.frontiers.rotation.passes_by(plane) && self.begin_fold(plane).is_some() {
                done |= self.fold_pages(io, plane, 1)?;
            }
        }
        Ok(done)
    }

    /// Folds `block`, which is to be erased soon.
    pub(super) fn fold_this(&mut self, io: &mut Io, plane: u32, block: u32) -> Flash<bool> {
        let pool = &mut self.frontiers.fixed.pools[plane as usize];
        if pool.folding.is_some() || !pool.closed.contains(&block) {
            return Ok(false);
        }
        pool.closed.retain(|&other| other != block);
        pool.folding = Some(Folding { block, next: 0, safe: Gate::NONE });
        self.fold_pages(io, plane, u32::MAX)
    }

    /// The block of `plane` that is being folded, which is chosen if there is none.
    fn begin_fold(&mut self, plane: u32) -> Option<Folding> {
        let fixed = &mut self.frontiers.fixed;
        if fixed.pools[plane as usize].folding.is_none() {
            let block = fixed.oldest(plane)?;
            fixed.drop_block(plane, block);
            fixed.pools[plane as usize].folding = Some(Folding { block, next: 0, safe: Gate::NONE });
        }
        fixed.pools[plane as usize].folding
    }

    /// Moves `most` pages of the block of `plane` that is being folded, and erases it if it is empty. False where there is no room.
    fn fold_pages(&mut self, io: &mut Io, plane: u32, most: u32) -> Flash<bool> {
        let moved = self.frontiers.data_streams() - 1;
        for _ in 0..most {
            let Some(Folding { block, .. }) = self.frontiers.fixed.pools[plane as usize].folding else { break };
            if self.frontiers.blocks.valid_count(block) > 0 && !self.ensure_space(io, plane, moved)? {
                return Ok(false);
            }
            io.set_step(most < u32::MAX);
            let done = self.fold_page(io, plane);
            io.set_step(false);
            done?;
        }
        Ok(true)
    }

    fn fold_page(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        let Some(mut folding) = self.frontiers.fixed.pools[plane as usize].folding else { return Ok(()) };
        let block = folding.block;
        if self.frontiers.blocks.valid_count(block) > 0 {
            let safe = if self.open.protected { Gate::NONE } else { io.gate() };
            let next = self.move_units(io, block, folding.next, 1, safe);
            let safe = io.used(safe);
            if !safe.is_none() {
                io.link(folding.safe, safe);
                folding.safe = safe;
            }
            folding.next = *next.as_ref().unwrap_or(&folding.next);
            self.frontiers.fixed.pools[plane as usize].folding = Some(folding);
            next?;
        }
        let empty = self.frontiers.blocks.valid_count(block) == 0;
        if !empty && folding.next < self.shape.units_per_block {
            return Ok(());
        }
        let fixed = &mut self.frontiers.fixed;
        fixed.pools[plane as usize].folding = None;
        fixed.folded += 1;
        let page = self.open.moved_page(plane, self.frontiers.moved_stream(block));
        if empty && (self.open.protected || self.open.filled(page) == 0) {
            return self.erase(io, block, folding.safe);
        }
        self.collector.emptying.push((block, folding.safe));
        Ok(())
    }
}
