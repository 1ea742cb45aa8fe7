//! The log of subpages: blocks, the pages that are being filled, and the map of held subpages.
//!
//! The map has an entry for each logical page with subpages in the log: the set of subpages, and the place of each.
//! Entries come from a free list; an array, which only the simulator needs, finds the entry of a logical page. Counted
//! as DRAM: one address of 8 bytes per subpage in the log.

use super::bits;
use crate::log::blocks::{BlockState, Blocks, NO_BLOCK};
use crate::log::rotation::Rotation;
use crate::log::settings::{Allocation, LogSettings, WearLeveling};
use palimpsest_flash::geometry::Divisor;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Outcome, PADDING, SubpageMask, first_subpages};
use palimpsest_flash::prefetch::prefetch;
use palimpsest_ftl_api::plan::{Cause, Gate, Io, Program};

/// Index of a logical page without subpages in the log.
const NO_ENTRY: u32 = u32::MAX;
/// Free blocks of the log below which the oldest block is cleaned.
const LEAST_FREE: u32 = 2;

/// A piece of a request that is written to the log.
#[derive(Clone, Copy)]
pub(super) struct LogWrite {
    /// The logical page.
    pub page: u32,
    /// The subpages of that page.
    pub subpages: u32,
    /// Closes when the content has arrived.
    pub after: Gate,
}

/// The block of a plane that is being written.
#[derive(Clone, Copy)]
pub(super) struct Frontier {
    pub block: u32,
    /// Pages before this one have been programmed.
    pub next_page: u32,
    /// Subpages of the last programmed page that may still be programmed.
    pub free: SubpageMask,
}

palimpsest_flash::state!(Frontier { block, next_page, free });

pub(super) const CLOSED: Frontier = Frontier { block: NO_BLOCK, next_page: 0, free: 0 };

pub(super) struct SubpageLog {
    pub(super) subpages: u32,
    pub(super) pages_per_block: u32,
    per_page: Divisor,
    pub(super) per_block: Divisor,
    /// Per block of the drive: true if the block belongs to the log.
    pub(super) owned: Vec<bool>,
    pub(super) blocks: Blocks,
    /// One per plane.
    pub(super) frontiers: Vec<Frontier>,
    /// Number of frontiers with a block.
    pub(super) opened: u32,
    pub(super) free_blocks: u32,
    /// Blocks that are neither retired nor on a failed die.
    pub(super) usable: u32,
    /// Blocks on failed dies that hold data of the log.
    pub(super) lost: u32,
    pub(super) rotation: Rotation,
    /// Entry of each logical page.
    pub(super) index: Vec<u32>,
    /// Entries of `subpages + 1` words: the subpages in the log, and the place of each.
    pub(super) entries: Vec<u32>,
    pub(super) free_entries: Vec<u32>,
    /// Subpages held, now and at most.
    pub(super) held: u64,
    peak: u64,
    /// Closes when all programs of the log so far have ended.
    pub(super) programmed: Gate,
    logical: Vec<u32>,
    image: Vec<Data>,
    staged: Vec<Data>,
}

palimpsest_flash::state!(SubpageLog {
    owned, blocks, opened, free_blocks, usable, rotation, index, entries, free_entries, held, peak, programmed
} parts { frontiers } built { subpages, pages_per_block, per_page, per_block, lost, logical, image, staged });

impl SubpageLog {
    /// An empty log for `pages` logical pages in the blocks that are `owned`.
    pub fn new(io: &Io, pages: u32, owned: Vec<bool>, allocation: Allocation) -> Self {
        let geometry = io.geometry();
        let blocks = Blocks::new(geometry, geometry.subpages_per_block(), |block| !owned[block as usize]);
        let usable = owned.iter().filter(|&&owned| owned).count() as u32;
        let subpages = geometry.subpages_per_page;
        SubpageLog {
            subpages,
            pages_per_block: geometry.pages_per_block,
            per_page: Divisor::new(subpages),
            per_block: Divisor::new(geometry.subpages_per_block()),
            owned,
            blocks,
            frontiers: vec![CLOSED; geometry.planes() as usize],
            opened: 0,
            free_blocks: usable,
            usable,
            lost: 0,
            rotation: Rotation::new(allocation, 0, geometry).over_sets(&io.sets),
            index: vec![NO_ENTRY; pages as usize],
            entries: Vec::new(),
            free_entries: Vec::new(),
            held: 0,
            peak: 0,
            programmed: Gate::NONE,
            logical: vec![PADDING; subpages as usize],
            image: vec![Data::ZERO; subpages as usize],
            staged: Vec::new(),
        }
    }

    /// Blocks that are neither retired nor on a failed die.
    pub fn usable(&self) -> u32 {
        self.usable
    }

    /// Retired blocks.
    pub fn retired(&self) -> u32 {
        self.owned.iter().filter(|&&owned| owned).count() as u32 - self.usable - self.lost
    }

    /// Bytes of the map, now and at most.
    pub fn map_bytes(&self) -> (u64, u64) {
        (self.held * 8, self.peak * 8)
    }

    /// The page of physical subpage `psn`, and the number within the page.
    #[inline]
    pub fn split(&self, psn: u32) -> (u32, u32) {
        self.per_page.split(psn)
    }

    #[inline]
    fn words(&self) -> usize {
        self.subpages as usize + 1
    }

    /// The subpages of logical page `page` that the log holds.
    #[inline]
    pub fn held(&self, page: u32) -> u32 {
        match self.index[page as usize] {
            NO_ENTRY => 0,
            entry => self.entries[entry as usize * self.words()],
        }
    }

    /// The place of `subpage` of `page`, which must be in the log.
    #[inline]
    pub fn place(&self, page: u32, subpage: u32) -> u32 {
        self.entries[self.index[page as usize] as usize * self.words() + 1 + subpage as usize]
    }

    /// Prefetches the field that [`Self::held`] reads first.
    #[inline]
    pub fn prefetch_entry(&self, page: u32) {
        prefetch(&self.index, page as usize);
    }

    /// Prefetches the entry itself.
    #[inline]
    pub fn prefetch_copies(&self, page: u32) {
        if let Some(&entry) = self.index.get(page as usize)
            && entry != NO_ENTRY
        {
            prefetch(&self.entries, entry as usize * self.words());
        }
    }

    /// Maps `subpage` of `page` to `psn`. Returns the previous place.
    #[inline]
    pub(super) fn map(&mut self, page: u32, subpage: u32, psn: u32) -> Option<u32> {
        if self.index[page as usize] == NO_ENTRY {
            self.index[page as usize] = self.free_entries.pop().unwrap_or_else(|| {
                let entry = self.entries.len() / self.words();
                self.entries.resize((entry + 1) * self.words(), 0);
                entry as u32
            });
        }
        let base = self.index[page as usize] as usize * self.words();
        let before = std::mem::replace(&mut self.entries[base + 1 + subpage as usize], psn);
        if self.entries[base] >> subpage & 1 == 1 {
            return Some(before);
        }
        self.entries[base] |= 1 << subpage;
        self.held += 1;
        self.peak = self.peak.max(self.held);
        None
    }

    /// Unmaps `subpages` of `page`, all of which must be in the log.
    #[inline]
    pub(super) fn unmap(&mut self, page: u32, subpages: u32) {
        let entry = self.index[page as usize];
        let base = entry as usize * self.words();
        self.entries[base] &= !subpages;
        self.held -= u64::from(subpages.count_ones());
        if self.entries[base] == 0 {
            self.index[page as usize] = NO_ENTRY;
            self.free_entries.push(entry);
        }
    }

    /// Unmaps all of `page`. True if the log held any subpage.
    #[inline]
    pub fn unmap_page(&mut self, page: u32) -> bool {
        let held = self.held(page);
        if held == 0 {
            return false;
        }
        for subpage in bits(held) {
            let (block, unit) = self.per_block.split(self.place(page, subpage));
            self.blocks.invalidate(block, unit);
        }
        self.unmap(page, held);
        true
    }

    /// Copies the contents of a page, before a piece is written.
    #[inline]
    pub fn stage(&mut self, contents: &[Data]) {
        self.staged.clear();
        self.staged.extend_from_slice(contents);
    }

    /// True if the oldest block must be cleaned.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.free_blocks < LEAST_FREE.min(self.usable.saturating_sub(1))
    }

    /// The most frontiers: with more, the log would be short of free blocks.
    pub(super) fn most_opened(&self) -> u32 {
        self.usable.saturating_sub(LEAST_FREE).clamp(1, self.frontiers.len() as u32)
    }

    /// Free subpages of one page for `piece`, in the plane whose turn it is if possible.
    #[inline]
    pub fn find_room(&mut self, io: &Io, settings: &LogSettings, piece: LogWrite) -> Option<(u32, SubpageMask)> {
        let first = self.rotation.first(io, (0, piece.page), |_| 0);
        for step in 0..self.frontiers.len() as u32 {
            let plane = self.rotation.then(first, step);
            let level = settings.wear_leveling != WearLeveling::None;
            if let Some(room) = self.room_in(io, plane, piece.subpages.count_ones(), level) {
                self.rotation.used(plane);
                return Some(room);
            }
        }
        None
    }

    #[inline]
    fn room_in(&mut self, io: &Io, plane: u32, count: u32, level: bool) -> Option<(u32, SubpageMask)> {
        if self.rotation.passes_by(plane) {
            return None;
        }
        let mut frontier = self.frontiers[plane as usize];
        let fits = frontier.free.count_ones() >= count;
        if frontier.block != NO_BLOCK && !fits && frontier.next_page == self.pages_per_block {
            self.close(plane);
            frontier = CLOSED;
        }
        if frontier.block == NO_BLOCK {
            if self.opened >= self.most_opened() {
                return None;
            }
            let nand = io.nand();
            let block = self.blocks.open(plane, |block| if level { nand.erases(block) } else { 0 })?;
            frontier = Frontier { block, ..CLOSED };
            self.opened += 1;
            self.free_blocks -= 1;
        }
        if !fits {
            frontier.next_page += 1;
            frontier.free = first_subpages(self.subpages);
        }
        self.frontiers[plane as usize] = frontier;
        let mut rest = frontier.free;
        (0..count).for_each(|_| rest &= rest - 1);
        Some((frontier.block * self.pages_per_block + frontier.next_page - 1, frontier.free & !rest))
    }

    fn close(&mut self, plane: u32) {
        self.blocks.close(self.frontiers[plane as usize].block);
        self.frontiers[plane as usize] = CLOSED;
        self.opened -= 1;
    }

    /// Programs `piece`, whose contents must be staged, into the subpages `places` of page `ppn`.
    ///
    /// # Errors
    /// Errors of flash.
    #[inline]
    pub fn program(&mut self, io: &mut Io, ppn: u32, places: SubpageMask, piece: LogWrite) -> Flash<Outcome> {
        let mut rest = places;
        for subpage in bits(piece.subpages) {
            let place = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            self.logical[place] = piece.page * self.subpages + subpage;
            self.image[place] = self.staged[subpage as usize];
        }
        let (ended, all) = (io.gate(), io.gate());
        let outcome = io.program(Program {
            written: places,
            transferred: places.count_ones(),
            after: piece.after,
            signal: ended,
            ..Program::new(ppn, &self.logical, &self.image, Cause::Host)
        });
        io.link(ended, io.request());
        io.link(ended, all);
        io.link(self.programmed, all);
        self.programmed = io.used(all);
        outcome
    }

    /// Maps `piece` to the subpages `places` of `ppn`. Returns the subpages of the logical page in the log.
    #[inline]
    pub fn settle(&mut self, io: &Io, ppn: u32, places: SubpageMask, piece: LogWrite) -> u32 {
        let mut rest = places;
        for subpage in bits(piece.subpages) {
            let psn = ppn * self.subpages + rest.trailing_zeros();
            rest &= rest - 1;
            if let Some(before) = self.map(piece.page, subpage, psn) {
                let (block, unit) = self.per_block.split(before);
                self.blocks.invalidate(block, unit);
            }
            let (block, unit) = self.per_block.split(psn);
            self.blocks.validate(block, unit);
        }
        let plane = io.geometry().plane_of_block(io.nand().split(ppn).0);
        let frontier = &mut self.frontiers[plane as usize];
        frontier.free &= !places;
        // The part's rules decide whether the page takes another program.
        let lowest = frontier.free & frontier.free.wrapping_neg();
        if lowest != 0 && io.nand().probe_program(ppn, lowest, false).is_err() {
            frontier.free = 0;
        }
        if frontier.free == 0 && frontier.next_page == self.pages_per_block {
            self.close(plane);
        }
        self.held(piece.page)
    }

    /// Drops the block of `ppn` after a failed program. Returns the block.
    #[cold]
    pub fn drop_frontier(&mut self, io: &Io, ppn: u32) -> u32 {
        let block = io.nand().split(ppn).0;
        self.frontiers[io.geometry().plane_of_block(block) as usize] = CLOSED;
        self.opened -= 1;
        self.blocks.abandon(block);
        block
    }

    /// Handles a failed program of page `ppn`. If the die has failed, stops writes to all planes of the die and returns
    /// true; data of the log there stays mapped.
    #[cold]
    pub fn lose_die_of(&mut self, io: &Io, ppn: u32) -> bool {
        let Some(planes) = io.nand().planes_lost_with(io.nand().split(ppn).0) else { return false };
        for plane in planes {
            self.lose_plane(plane);
        }
        true
    }

    fn lose_plane(&mut self, plane: u32) {
        self.rotation.pass_by(plane);
        if self.frontiers[plane as usize].block != NO_BLOCK {
            self.close(plane);
        }
        for block in self.blocks.free_of(plane).in_order() {
            self.blocks.open_this(block);
            self.blocks.abandon(block);
            self.blocks.retire(block);
            self.free_blocks -= 1;
            self.usable -= 1;
        }
        let closed = self.blocks.closed(plane).len() as u32;
        self.usable -= closed;
        self.lost += closed;
    }

    /// Takes the first closed block, to be cleaned.
    pub fn take_oldest(&mut self) -> Option<u32> {
        let planes = (0..self.frontiers.len() as u32).filter(|&plane| !self.rotation.passes_by(plane));
        let oldest = planes.filter_map(|plane| self.blocks.oldest(plane));
        let block = oldest.min_by_key(|&block| self.blocks.closed_at(block))?;
        self.blocks.take_victim(block);
        Some(block)
    }

    /// Takes `block` to be cleaned. False if the block is not full, or on a failed die.
    pub fn take(&mut self, block: u32) -> bool {
        let plane = block / self.blocks_per_plane();
        let takes = self.blocks.state(block) == BlockState::Closed && !self.rotation.passes_by(plane);
        if takes {
            self.blocks.take_victim(block);
        }
        takes
    }

    fn blocks_per_plane(&self) -> u32 {
        self.owned.len() as u32 / self.frontiers.len() as u32
    }

    /// Records the outcome of the erase of a taken block, whose subpages must be invalid.
    pub fn erased(&mut self, block: u32, outcome: Outcome) {
        debug_assert_eq!(self.blocks.state(block), BlockState::Victim);
        match outcome {
            Outcome::Done => {
                self.blocks.release(block);
                self.free_blocks += 1;
            }
            Outcome::Failed => {
                self.blocks.retire(block);
                self.usable -= 1;
            }
        }
    }

    /// Adds the valid subpages of each block to `valid`.
    pub fn add_valid(&self, valid: &mut [u32]) {
        self.blocks.add_valid(valid, 1);
    }

    /// Valid subpages of `block`.
    pub fn valid_count(&self, block: u32) -> u32 {
        self.blocks.valid_count(block)
    }

    /// The valid subpages of page `ppn`.
    #[inline]
    pub fn valid(&self, ppn: u32) -> SubpageMask {
        let (block, unit) = self.per_block.split(ppn * self.subpages);
        self.blocks.valid_bits(block, unit, self.subpages)
    }

    /// The logical page of the first valid subpage of page `ppn`.
    #[inline]
    pub fn first_page_in(&self, io: &Io, ppn: u32) -> Option<u32> {
        let valid = self.valid(ppn);
        let psn = ppn * self.subpages + valid.trailing_zeros();
        (valid != 0).then(|| self.per_page.divide(io.nand().logical(psn)))
    }
}
