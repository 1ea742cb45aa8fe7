//! The fixed share of the fast cache (`ftl.slc_fixed`): the first blocks of each plane, which always hold one bit a
//! cell.
//!
//! The blocks are a separate pool: never free for other uses, never victims of collection, never counted as free space.
//! Host writes to a plane go there first, then to the dynamic share (`single`), if any, then past the cache. Folding
//! moves the valid units of the first closed block to blocks of moved data, page by page, and erases the block. Folding
//! takes free pages like host writes, and collection makes room for both alike. Folding happens
//!
//! - while the host is idle, with `ftl.gc_background`, until all closed blocks are folded;
//! - with `ftl.slc_full = fold`, if no block of the pool is free and the dynamic share takes nothing. The moves spread
//!   over the pages left in the open block, and a write waits for the rest. With `direct`, writes go past the cache
//!   until the host is idle.
//!
//! If the first closed block has no valid unit, the block is erased once the plane needs a block. A failed block is not
//! replaced.
//!
//! Ignored: lower energy of single bits; drives that shrink the share as they wear out.

use super::Log;
use super::blocks::{BlockState, Blocks, NO_BLOCK};
use super::frontier::{CLOSED, Frontier};
use super::settings::{LogSettings, WhenFull};
use crate::free::FreeBlocks;
use crate::log::map::Map;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::{Flash, Nand};
use palimpsest_ftl_api::plan::{Gate, Io};

/// Pools of at least this many blocks keep one free ahead of the host.
const AHEAD_FROM: u32 = 4;

#[derive(Clone, Copy, Default)]
struct Folding {
    block: u32,
    /// Units before this one have moved.
    next: u32,
    /// Closes when all copies so far are safe.
    safe: Gate,
}

palimpsest_flash::state!(Folding { block, next, safe });

struct Pool {
    /// Erased.
    free: FreeBlocks,
    /// Written, in the order of closing.
    closed: Vec<u32>,
    open: Frontier,
    folding: Option<Folding>,
}

palimpsest_flash::state!(Pool { free, closed, open, folding });

/// The blocks of all planes.
pub struct Fixed {
    /// One entry per plane; none without a fixed share.
    pools: Vec<Pool>,
    /// Blocks of a pool, failed ones included.
    blocks: u32,
    blocks_per_plane: u32,
    pages_per_block: u32,
    /// Pages of a block with one bit a cell.
    pages: u32,
    /// True if the host waits for a fold when the cache is full.
    folds: bool,
    level: bool,
    /// Blocks folded so far.
    folded: u64,
}

palimpsest_flash::state!(Fixed { folded } parts { pools } built {
    blocks, blocks_per_plane, pages_per_block, pages, folds, level
});

impl Fixed {
    /// All blocks free, except bad ones; sets them aside in `blocks`.
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

    /// After a power cut: marks all blocks free until they are found written.
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

    /// True if a fixed share exists.
    #[inline]
    pub fn is_used(&self) -> bool {
        !self.pools.is_empty()
    }

    /// True if `block` belongs to the fixed share.
    #[inline]
    pub fn holds(&self, block: u32) -> bool {
        self.is_used() && block % self.blocks_per_plane < self.blocks
    }

    /// True if host writes wait for folds when the cache is full.
    #[inline]
    pub fn folds(&self) -> bool {
        self.is_used() && self.folds
    }

    /// Blocks folded so far.
    pub fn folded(&self) -> u64 {
        self.folded
    }

    /// True if the pool provides the next page of the host in `plane`.
    #[inline]
    pub fn has_page(&self, plane: u32) -> bool {
        self.pools.get(plane as usize).is_some_and(|pool| pool.open.block != NO_BLOCK || !pool.free.is_empty())
    }

    /// Takes the next page of the pool of `plane`, if any.
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

    /// Frees the erased block `block` of `plane`.
    pub fn release(&mut self, plane: u32, block: u32) {
        self.pools[plane as usize].free.push(block);
    }

    /// Removes `block` of `plane` from the pool.
    pub fn drop_block(&mut self, plane: u32, block: u32) {
        let pool = &mut self.pools[plane as usize];
        pool.free.remove(block);
        pool.closed.retain(|&other| other != block);
        if pool.open.block == block {
            pool.open = CLOSED;
        }
    }

    /// Stops writes to `plane`. Removes and returns the free blocks.
    pub fn lose_plane(&mut self, plane: u32) -> Vec<u32> {
        let Some(pool) = self.pools.get_mut(plane as usize) else { return Vec::new() };
        let open = std::mem::replace(&mut pool.open, CLOSED);
        pool.closed.extend((open.block != NO_BLOCK).then_some(open.block));
        let free = pool.free.in_order();
        pool.free.clear();
        free
    }

    /// After a power cut: `block` of `plane` is written up to `next_page`. The block is open, or closed if full or if
    /// another is open.
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

    /// The next block of `plane` to fold: the first closed.
    pub fn oldest(&self, plane: u32) -> Option<u32> {
        self.pools.get(plane as usize)?.closed.first().copied()
    }

    /// True if `block` of `plane` is closed.
    pub fn is_closed(&self, plane: u32, block: u32) -> bool {
        self.pools.get(plane as usize).is_some_and(|pool| pool.closed.contains(&block))
    }

    /// Counts a fold.
    pub fn count_fold(&mut self) {
        self.folded += 1;
    }

    /// Checks that each block has one state.
    ///
    /// # Errors
    /// The first inconsistency.
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
    /// True if the fixed share takes a page of the host's `stream` in `plane`. Folds first if `ftl.slc_full = fold`.
    #[cold]
    pub(super) fn cache_takes(&mut self, io: &mut Io, plane: u32, stream: u32) -> Flash<bool> {
        if self.frontiers.rotation.passes_by(plane) {
            return Ok(false);
        }
        if self.frontiers.fixed.folds && !self.frontiers.takes_dynamic(io.nand(), plane, stream) {
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

    /// The first closed block of the pool of `plane`, if no unit there is valid.
    fn empty_cached(&self, plane: u32) -> Option<u32> {
        self.frontiers.fixed.oldest(plane).filter(|&block| self.frontiers.blocks.valid_count(block) == 0)
    }

    /// True if [`Self::empty_cached`] finds a block.
    #[inline]
    pub(super) fn has_empty_cached(&self, plane: u32) -> bool {
        self.empty_cached(plane).is_some()
    }

    /// Moves the units due with a page of the host, if few blocks of `plane` are free.
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

    /// The pool of `plane` has no page left: folds until one is free, or folding fails.
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

    /// True if the last units of a block of the pool of `plane` wait in an open page.
    fn empties_cached(&self, plane: u32) -> bool {
        let of_pool = |block: u32| block / self.shape.blocks_per_plane == plane && self.frontiers.fixed.holds(block);
        self.collector.emptying.iter().any(|&(block, _)| of_pool(block))
    }

    /// Folds one page in each plane with a block to fold. False if none.
    pub(super) fn fold_in_background(&mut self, io: &mut Io) -> Flash<bool> {
        let mut done = false;
        for plane in 0..self.frontiers.fixed.pools.len() as u32 {
            if !self.frontiers.rotation.passes_by(plane) && self.begin_fold(plane).is_some() {
                done |= self.fold_pages(io, plane, 1)?;
            }
        }
        Ok(done)
    }

    /// Folds `block`, which must be erased soon.
    pub(super) fn fold_this(&mut self, io: &mut Io, plane: u32, block: u32) -> Flash<bool> {
        let closed = self.frontiers.fixed.is_closed(plane, block);
        let pool = &mut self.frontiers.fixed.pools[plane as usize];
        if pool.folding.is_some() || !closed {
            return Ok(false);
        }
        pool.closed.retain(|&other| other != block);
        pool.folding = Some(Folding { block, next: 0, safe: Gate::NONE });
        self.fold_pages(io, plane, u32::MAX)
    }

    /// The block of `plane` that is being folded; chooses one if none.
    fn begin_fold(&mut self, plane: u32) -> Option<Folding> {
        let fixed = &mut self.frontiers.fixed;
        if fixed.pools[plane as usize].folding.is_none() {
            let block = fixed.oldest(plane)?;
            fixed.drop_block(plane, block);
            fixed.pools[plane as usize].folding = Some(Folding { block, next: 0, safe: Gate::NONE });
        }
        fixed.pools[plane as usize].folding
    }

    /// Moves up to `most` pages of the block of `plane` that is being folded, and erases the block once empty. False
    /// without room.
    fn fold_pages(&mut self, io: &mut Io, plane: u32, most: u32) -> Flash<bool> {
        let moved = self.frontiers.data_streams() - 1;
        for _ in 0..most {
            let Some(Folding { block, .. }) = self.frontiers.fixed.pools[plane as usize].folding else { break };
            if self.frontiers.blocks.valid_count(block) > 0 && !self.ensure_space(io, plane, moved)? {
                return Ok(false);
            }
            io.plan.step = most < u32::MAX;
            let done = self.fold_page(io, plane);
            io.plan.step = false;
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
        fixed.count_fold();
        let page = self.open.moved_page(plane, self.frontiers.moved_stream(block));
        if empty && (self.open.protected || self.open.filled(page) == 0) {
            return self.erase(io, block, folding.safe);
        }
        self.collector.emptying.push((block, folding.safe));
        Ok(())
    }
}
