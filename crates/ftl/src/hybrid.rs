//! Common parts of hybrid maps: data blocks under a block map, log blocks for overwrites, and merges of both.
//!
//! A logical block has one data block, where each page has a fixed place, and pages in log blocks, which replace pages
//! of the data block. A merge collects the valid pages in one block again and erases the others (Kim et al. 2002):
//! - switch: a log block with all pages in place becomes the data block;
//! - partial: a log block with the first pages becomes the data block, after the rest is copied;
//! - full: all pages are copied into a free block.
//!
//! A layer ([`LogBlocks`]) chooses the log block for a page, and the block to merge when space is short. Logical blocks
//! go over the planes in turn; data, log and free blocks of a logical block are in the same plane. An erase waits for
//! every earlier planned program of the plane, so that replacements of the erased pages are durable. Pages of a block
//! are programmed in order. If a die fails, its blocks lose their roles, and its valid pages stay mapped there until
//! the host writes or a merge copies them; another plane then takes the logical block ([`BlockMap::plane`]). Recovery
//! is in [`recover`], merges in [`merge`], log blocks with one bit a cell in [`cached`]. Superblocks, parity and word
//! lines in one shot are as in [`crate::layers::block`]. Ignored: the storage of the maps; static wear levelling, which
//! is treated as dynamic.

pub mod cached;
mod merge;
mod recover;

use crate::extent::{overlay, pages};
use crate::free::{FreeBlocks, free_of_planes};
use crate::gaps::gaps;
use crate::log::blocks::NO_BLOCK;
use crate::log::settings::{LogSettings, WearLeveling};
use crate::maps::bytes::map_bytes;
use crate::rebuild::Rebuild;
use cached::Cached;
use palimpsest_flash::geometry::{Extent, Geometry};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Halt, Outcome, PADDING, first_subpages};
use palimpsest_flash::state::State;
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_ftl_api::keys;
use palimpsest_ftl_api::keys::Growth;
use palimpsest_ftl_api::plan::select::ReadPolicy;
use palimpsest_ftl_api::plan::{Cause, Erase, Gate, Io, Program, Read};
use palimpsest_ftl_api::{Blueprint, Figure, Ftl, LayerFigures, Mapping};
use std::ops::Range;

keys! {
    /// The settings of a hybrid map.
    pub struct HybridSettings;

    /// The key of hybrid maps.
    group pub LOG_BLOCKS {
        /// log blocks of each plane
        pub log_blocks: u32 = "ftl.log_blocks", Count { min: 1, max: 1 << 20 }, "8",
            grows_with[Growth::Plane];
    }
}

const UNMAPPED: u32 = u32::MAX;
const MOST_SUBPAGES: usize = 64;

/// The use of log blocks by a layer.
pub trait LogBlocks: Send + State {
    /// True if a log block takes pages of several logical blocks. The first page of such a block is never in place.
    const SHARED: bool;

    /// The physical page for a write of logical page `page`: in the data block if free there, else in a log block,
    /// after the merges that make room.
    ///
    /// # Errors
    /// As [`Ftl::write`].
    fn place(&mut self, map: &mut BlockMap, io: &mut Io, page: u32) -> Flash<u32>;

    /// Removes and returns the log block of logical block `block` alone, to be merged.
    fn take(&mut self, map: &BlockMap, block: u32) -> Option<u32>;

    /// Moves the valid pages of a physical block after a program of a page of logical block `block` failed there.
    ///
    /// # Errors
    /// As [`Ftl::write`].
    fn failed(&mut self, map: &mut BlockMap, io: &mut Io, _failed: u32, block: u32) -> Flash<()> {
        let log = self.take(map, block);
        map.merge(io, block, log)
    }

    /// Forgets the log blocks of `plane`, before recovery or after the die has failed.
    fn clear(&mut self, plane: usize);

    /// Adds the log block `log` found by recovery, younger than earlier ones, which belongs to `owner` alone, or is
    /// shared.
    ///
    /// # Errors
    /// As [`Ftl::recover`].
    fn adopt(&mut self, map: &mut BlockMap, io: &mut Io, log: u32, owner: Option<u32>) -> Flash<()>;

    /// The log blocks, each with the exclusive owner, if any.
    fn all(&self) -> Vec<(u32, Option<u32>)>;
}

#[derive(Default)]
struct Counters {
    switch: u64,
    partial: u64,
    full: u64,
    copied_pages: u64,
    erased: u64,
    retired: u64,
}

palimpsest_flash::state!(Counters { switch, partial, full, copied_pages, erased, retired });

/// Places of the pages of all logical blocks, and the free blocks.
pub struct BlockMap {
    pub shape: Geometry,
    read: ReadPolicy,
    wear_leveling: WearLeveling,
    /// The data block of each logical block.
    data: Vec<u32>,
    /// The valid copy of each logical page, in a data block or in a log block.
    pages: Vec<u32>,
    free: Vec<FreeBlocks>,
    /// Per plane: closes when all programs so far have ended.
    programmed: Vec<Gate>,
    /// Per plane: closes when all erases so far have ended. Later programs must follow, so that a power cut interrupts
    /// at most one merge.
    erased: Vec<Gate>,
    /// Per plane, if blocks are superblocks: the last log block of several logical blocks, and the gate that closes
    /// when its first page is programmed. The other pages follow, so that the first page always tells the role of the
    /// block.
    begun: Vec<(u32, Gate)>,
    cached: Cached,
    /// Per plane: true if the die is known to have failed.
    dead: Vec<bool>,
    /// One page, read for a copy or received from the host.
    contents: Vec<Data>,
    counters: Counters,
}

palimpsest_flash::state!(BlockMap { data, pages, programmed, erased, cached, counters } parts { free } built {
    shape, read, wear_leveling, begun, dead, contents
});

impl BlockMap {
    fn new(io: &Io, blueprint: &Blueprint, shared: bool) -> Self {
        let (shape, settings) = (*io.geometry(), LogSettings::new(&blueprint.settings));
        let striped = if shared && io.nand().has_stripes() { shape.planes() } else { 0 };
        let mut map = BlockMap {
            shape,
            read: settings.read,
            wear_leveling: settings.wear_leveling,
            data: vec![NO_BLOCK; blueprint.logical_pages.div_ceil(shape.pages_per_block) as usize],
            pages: vec![UNMAPPED; blueprint.logical_pages as usize],
            free: free_of_planes(&shape),
            programmed: vec![Gate::NONE; shape.planes() as usize],
            erased: vec![Gate::NONE; shape.planes() as usize],
            begun: vec![(NO_BLOCK, Gate::NONE); striped as usize],
            cached: Cached::new(&settings, &shape, io.nand().part().stored_bits()),
            dead: vec![false; shape.planes() as usize],
            contents: vec![Data::ZERO; shape.subpages_per_page as usize],
            counters: Counters::default(),
        };
        for block in (0..shape.blocks()).filter(|&block| !io.nand().is_bad(block)) {
            map.set_free(block);
        }
        map
    }

    /// The plane of logical block `block`: the first whose die works, in an order of the block's own that never
    /// changes. So a failed die moves its own logical blocks only, evenly to the others.
    pub fn plane(&self, block: u32) -> usize {
        let planes = self.shape.planes();
        let (home, turn) = (block % planes, block / planes);
        let others = (0..planes - 1).map(|next| (home + 1 + (turn + next) % (planes - 1)) % planes);
        let mut order = std::iter::once(home).chain(others).map(|plane| plane as usize);
        order.find(|&plane| !self.dead[plane]).unwrap_or(home as usize)
    }

    /// True if the physical block `block` is known to be on a failed die.
    pub fn is_lost(&self, block: u32) -> bool {
        self.dead[self.shape.plane_of_block(block) as usize]
    }

    /// Records a failed program or erase of the physical block `failed`. If the die has failed, its blocks lose their
    /// roles.
    #[cold]
    fn note_failure(&mut self, io: &Io, failed: u32) {
        let Some(planes) = io.nand().planes_lost_with(failed).filter(|_| !self.is_lost(failed)) else { return };
        planes.for_each(|plane| self.lose_plane(plane as usize));
        let retired = |&block: &u32| self.is_lost(block) && (block == failed || !io.nand().is_bad(block));
        self.counters.retired += (0..self.shape.blocks()).filter(retired).count() as u64;
        let lost = |data: &&mut u32| **data != NO_BLOCK && self.dead[self.shape.plane_of_block(**data) as usize];
        self.data.iter_mut().filter(lost).for_each(|data| *data = NO_BLOCK);
    }

    fn lose_plane(&mut self, plane: usize) {
        self.dead[plane] = true;
        self.free[plane].clear();
        self.cached.free.get_mut(plane).into_iter().for_each(FreeBlocks::clear);
    }

    /// Splits a logical or physical page number into block and place.
    pub fn split(&self, page: u32) -> (u32, u32) {
        (page / self.shape.pages_per_block, page % self.shape.pages_per_block)
    }

    /// The pages of logical block `block`; the last block may have fewer.
    fn pages_of(&self, block: u32) -> Range<u32> {
        let first = block * self.shape.pages_per_block;
        first..(first + self.shape.pages_per_block).min(self.pages.len() as u32)
    }

    /// The valid copy of `page`.
    fn locate(&self, page: u32) -> Option<u32> {
        Some(self.pages[page as usize]).filter(|&ppn| ppn != UNMAPPED)
    }

    /// The valid pages among `pages`, each with the copy.
    fn valid(&self, pages: Range<u32>) -> impl Iterator<Item = (u32, u32)> {
        pages.filter_map(|page| Some((page, self.locate(page)?)))
    }

    /// The logical page whose valid copy is `ppn`.
    pub fn valid_in(&self, io: &Io, ppn: u32) -> Option<u32> {
        let page = io.nand().logical(ppn * self.shape.subpages_per_page) / self.shape.subpages_per_page;
        (self.pages.get(page as usize) == Some(&ppn)).then_some(page)
    }

    /// The physical pages of the physical block `block`.
    pub fn physical_pages(&self, block: u32) -> Range<u32> {
        block * self.shape.pages_per_block..(block + 1) * self.shape.pages_per_block
    }

    /// The place of `page` in the data block, if the order of programs still allows a program there.
    pub fn in_place(&self, io: &Io, page: u32) -> Option<u32> {
        let (block, place) = self.split(page);
        let data = self.data[block as usize];
        let free = data != NO_BLOCK && place >= io.nand().next_page(data);
        free.then(|| data * self.shape.pages_per_block + place)
    }

    /// The next page of the physical block `block`, if one is left.
    pub fn next_page(&self, io: &Io, block: u32) -> Option<u32> {
        let next = io.nand().next_page(block);
        (next < self.cached.single.pages_of(block)).then(|| block * self.shape.pages_per_block + next)
    }

    /// True if a block of `plane` can be taken, with one left for a merge.
    pub fn has_room(&self, plane: usize) -> bool {
        self.free[plane].len() > 1
    }

    /// True if logical block `block` has a data block.
    pub fn has_data(&self, block: u32) -> bool {
        self.data[block as usize] != NO_BLOCK
    }

    /// Assigns an empty data block to logical block `block`.
    pub fn open_data(&mut self, io: &Io, block: u32) -> Flash<()> {
        self.data[block as usize] = self.take(io, self.plane(block))?;
        Ok(())
    }

    /// Takes a free block of `plane`: with wear levelling, the block with the fewest erases.
    pub fn take(&mut self, io: &Io, plane: usize) -> Flash<u32> {
        let level = self.wear_leveling != WearLeveling::None;
        self.free[plane].pop(|block| if level { io.nand().erases(block) } else { 0 }).ok_or(Halt::NoSpace)
    }

    /// Erases the physical block `block`, which must hold no valid page; retires a bad block.
    pub fn release(&mut self, io: &mut Io, block: u32) -> Flash<()> {
        let plane = self.shape.plane_of_block(block) as usize;
        if self.dead[plane] {
            return Ok(()); // Counted when the die failed.
        }
        self.end_log(block);
        if !io.nand().is_bad(block) {
            self.counters.erased += 1;
            let (after, signal) = (self.programmed[plane], io.gate());
            let outcome = io.erase(Erase { after, signal, ..Erase::new(block, Cause::Merge) })?;
            self.erased[plane] = io.all_of(&[self.erased[plane], signal]);
            if outcome == Outcome::Done {
                self.set_free(block);
                return Ok(());
            }
            self.note_failure(io, block);
        }
        self.counters.retired += u64::from(!self.dead[plane]);
        Ok(())
    }

    /// Reads `ppn` into `contents`. The gate closes when the data has arrived.
    fn load(&mut self, io: &mut Io, ppn: u32, cause: Cause) -> Flash<Gate> {
        let (width, signal) = (self.shape.subpages_per_page, io.gate());
        io.read(Read { policy: self.read, signal, ..Read::new(ppn, first_subpages(width), cause) })?;
        for (content, psn) in self.contents.iter_mut().zip(ppn * width..) {
            *content = io.load_subpage(psn);
        }
        Ok(signal)
    }

    /// Assembles `page` in `contents`: `sectors` sectors of the present write, from `first` on, over the previous
    /// content.
    fn assemble(&mut self, io: &mut Io, page: u32, first: u32, sectors: u32) -> Flash<Gate> {
        self.contents.fill(Data::ZERO);
        let partial = u64::from(sectors) * SECTOR_BYTES < self.shape.page_bytes().into();
        let arrived = match self.locate(page).filter(|_| partial) {
            Some(ppn) => self.load(io, ppn, Cause::Rmw)?,
            None => Gate::NONE,
        };
        overlay(io, page, first, sectors, &mut self.contents);
        Ok(arrived)
    }

    /// Programs `contents` into `ppn` as the valid copy of `page`, after the padding that the part requires.
    fn program(
        &mut self,
        io: &mut Io,
        (page, ppn): (u32, u32),
        cause: Cause,
        after: Gate,
        signal: Gate,
    ) -> Flash<Outcome> {
        let width = self.shape.subpages_per_page;
        let (block, _) = self.split(ppn);
        let plane = self.shape.plane_of_block(block) as usize;
        let begun = self.begun.get(plane).filter(|begun| begun.0 == block).map_or(Gate::NONE, |begun| begun.1);
        let after = io.all_of(&[after, self.erased[plane], begun]);
        let (first, single) = (self.physical_pages(block).start, self.cached.single.holds(block));
        for gap in gaps(io.nand(), block, ppn - first) {
            let (logical, data) = ([PADDING; MOST_SUBPAGES], [Data::ZERO; MOST_SUBPAGES]);
            let whole = Program::new(first + gap, &logical[..width as usize], &data[..width as usize], Cause::Merge);
            if io.program(Program { padding: width, single, after, ..whole })? == Outcome::Failed {
                self.note_failure(io, block);
                return Ok(Outcome::Failed);
            }
        }
        let ended = io.gate();
        let logical: [u32; MOST_SUBPAGES] = std::array::from_fn(|index| (page * width).wrapping_add(index as u32));
        let whole = Program::new(ppn, &logical[..width as usize], &self.contents, cause);
        let outcome = io.program(Program { single, after, signal: ended, ..whole })?;
        let opens = self.split(ppn).1 == 0 && self.split(page).1 != 0;
        if let Some(begun) = self.begun.get_mut(plane).filter(|_| opens) {
            *begun = (block, ended);
        }
        let all = io.gate();
        for earlier in [self.programmed[plane], ended] {
            io.link(earlier, all);
        }
        io.link(ended, signal);
        self.programmed[plane] = all;
        match outcome {
            Outcome::Done => self.pages[page as usize] = ppn,
            Outcome::Failed => self.note_failure(io, block),
        }
        Ok(outcome)
    }
}

/// A layer with data blocks and the log blocks `L`.
pub struct Hybrid<L> {
    map: BlockMap,
    logs: L,
    log_blocks: u32,
    rebuild: Rebuild,
}

palimpsest_flash::state!([L: LogBlocks] Hybrid<L> { map, logs } built { log_blocks, rebuild });

impl<L: LogBlocks> Hybrid<L> {
    /// A layer on erased flash.
    pub fn new(io: &Io, blueprint: &Blueprint, logs: L, log_blocks: u32) -> Self {
        Hybrid { map: BlockMap::new(io, blueprint, L::SHARED), logs, log_blocks, rebuild: Rebuild::default() }
    }

    fn sectors_per_page(&self) -> u64 {
        u64::from(self.map.shape.page_bytes()) / SECTOR_BYTES
    }

    /// Forgets the log blocks of failed dies, which `done` may have found. Returns `done`.
    fn forget_lost<T>(&mut self, done: Flash<T>) -> Flash<T> {
        let (logs, dead) = (&mut self.logs, &self.map.dead);
        (0..dead.len()).filter(|&plane| dead[plane]).for_each(|plane| logs.clear(plane));
        done
    }

    fn write_pages(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        if io.nand().is_rebuilding() {
            self.move_lost(io)?;
        }
        for (page, first, sectors) in pages(extent, self.sectors_per_page()) {
            let (block, _) = self.map.split(page);
            loop {
                let ppn = self.logs.place(&mut self.map, io, page)?;
                let (arrived, signal) = (self.map.assemble(io, page, first, sectors)?, io.request());
                if self.map.program(io, (page, ppn), Cause::Host, arrived, signal)? == Outcome::Done {
                    break;
                }
                let (failed, _) = self.map.split(ppn);
                if self.map.is_lost(failed) {
                    self.forget_lost(Ok(()))?;
                } else {
                    self.logs.failed(&mut self.map, io, failed, block)?;
                }
            }
            if page + 1 == self.map.pages_of(block).end && self.map.is_in_one_log(block) {
                self.merge(io, block)?;
            }
        }
        Ok(())
    }

    fn relocate_block(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        let plane = self.map.shape.plane_of_block(block);
        let log = self.logs.all().into_iter().find(|&(log, _)| log == block);
        let data = || self.map.data.iter().position(|&data| data == block).map(|owner| owner as u32);
        if !self.map.has_room(plane as usize) {
            return Ok(false);
        }
        let Some(owner) = log.map_or_else(data, |(_, owner)| owner) else {
            // A log block of several logical blocks; logical block number `plane` is in the same plane.
            return log.map_or(Ok(false), |_| self.logs.failed(&mut self.map, io, block, plane).map(|()| true));
        };
        let log = self.logs.take(&self.map, owner);
        self.map.merge_into(io, owner, log, false)?;
        Ok(true)
    }

    /// Copies the next logical block with a page on a failed die. False if there is none, or no room.
    fn move_lost(&mut self, io: &mut Io) -> Flash<bool> {
        let map = &self.map;
        let valid = |block, pages: &mut Vec<u32>| pages.extend(map.valid(map.pages_of(block)).map(|(_, ppn)| ppn));
        let Some(block) = self.rebuild.next(io, map.data.len() as u32, valid) else { return Ok(false) };
        if map.free[map.plane(block)].is_empty() {
            return Ok(false);
        }
        let log = self.logs.take(&self.map, block);
        self.map.merge_into(io, block, log, false)?;
        Ok(true)
    }

    /// Merges logical block `block` with the log block of that block alone.
    fn merge(&mut self, io: &mut Io, block: u32) -> Flash<()> {
        let log = self.logs.take(&self.map, block);
        self.map.merge(io, block, log)
    }
}

impl<L: LogBlocks> Ftl for Hybrid<L> {
    palimpsest_ftl_api::keeps_state!();

    fn unit_subpages(&self) -> u32 {
        self.map.shape.subpages_per_page
    }

    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        let done = self.write_pages(io, extent);
        self.forget_lost(done)
    }

    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        let width = self.map.shape.subpages_per_page;
        let per_subpage = io.host.sectors_per_subpage();
        for (page, first, sectors) in pages(extent, self.sectors_per_page()) {
            let (begin, end) = (first / per_subpage, (first + sectors).div_ceil(per_subpage));
            let location = self.map.locate(page);
            if let Some(ppn) = location {
                let (wanted, words) = (first_subpages(end - begin) << begin, io.nand().words_of(first, sectors));
                let (policy, signal) = (self.map.read, io.request());
                io.read(Read { words, policy, signal, ..Read::new(ppn, wanted, Cause::Host) })?;
            } else {
                io.count_unwritten(end - begin);
            }
            for subpage in begin..end {
                let data = location.map_or(Data::ZERO, |ppn| io.load_subpage(ppn * width + subpage));
                io.deliver(page * width + subpage, data);
            }
        }
        Ok(())
    }

    fn trim(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        for (page, ..) in pages(extent, self.sectors_per_page()) {
            self.map.pages[page as usize] = UNMAPPED;
            let (block, _) = self.map.split(page);
            let all = self.map.pages_of(block);
            let last = page + 1 == all.end || u64::from(page + 1) * self.sectors_per_page() == extent.end();
            if last && self.map.valid(all).next().is_none() {
                let done = self.merge(io, block); // Frees the blocks, because no page is valid.
                self.forget_lost(done)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, _io: &mut Io) -> Flash<()> {
        Ok(()) // Programs acknowledge writes, so none waits.
    }

    fn background(&mut self, io: &mut Io) -> Flash<bool> {
        let done = if io.nand().is_rebuilding() { self.move_lost(io) } else { Ok(false) };
        self.forget_lost(done)
    }

    fn relocate(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        let done = self.relocate_block(io, block);
        self.forget_lost(done)
    }

    fn recover(&mut self, io: &mut Io) -> Flash<()> {
        let done = self.recover_blocks(io);
        self.forget_lost(done)
    }

    fn check(&mut self, io: &Io) -> Result<(), String> {
        self.check_blocks(io)
    }

    fn figures(&self) -> LayerFigures {
        let (counters, shape) = (&self.map.counters, &self.map.shape);
        let log_pages = self.map.log_pages(self.log_blocks) * u64::from(shape.planes());
        let folded =
            self.map.cached.single.is_used().then_some(("folded_blocks", Figure::Count(self.map.cached.merged)));
        let tables = vec![("block_map", map_bytes(self.map.data.len() as u64)), ("log_map", map_bytes(log_pages))];
        LayerFigures {
            mapping: Mapping { peak_bytes: tables.iter().map(|table| table.1).sum(), tables },
            merges: counters.switch + counters.partial + counters.full,
            merge_moved_subpages: counters.copied_pages * u64::from(shape.subpages_per_page),
            retired_blocks: counters.retired,
            own: [
                ("switch_merges", Figure::Count(counters.switch)),
                ("partial_merges", Figure::Count(counters.partial)),
                ("full_merges", Figure::Count(counters.full)),
                ("erased_blocks", Figure::Count(counters.erased)),
            ]
            .into_iter()
            .chain(folded)
            .collect(),
            ..LayerFigures::default()
        }
    }

    fn count_valid(&self, valid: &mut [u32]) -> bool {
        for ppn in (0..self.map.pages.len() as u32).filter_map(|page| self.map.locate(page)) {
            valid[self.map.split(ppn).0 as usize] += self.map.shape.subpages_per_page;
        }
        true
    }
}

#[cfg(test)]
pub(super) mod tests;
