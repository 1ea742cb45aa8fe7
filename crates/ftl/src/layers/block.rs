//! `block`: the block map, with the channel in the address.
//!
//! Each logical block has one physical block, with pages written in order. An overwrite copies the block: a new block
//! takes the valid and the new pages, then the old block is erased. A block whose pages are all trimmed is erased at
//! once: with block TRIM, and a host that never overwrites, nothing is ever copied. Source: docs/systems.md, "block"
//! and "codesign"; co-design paper, Sec. III-A and III-B.
//!
//! The high part of a logical address names the channel (the Channel Identifier; 3 bits for 8 channels and a power of
//! two of blocks). Within a channel, consecutive logical blocks are on the chips, dies and planes in turn. If that
//! plane has no free block, another plane of the channel serves, else another channel. The free block with the fewest
//! erases is taken (`ftl.wear_leveling` dynamic). With static levelling, the block with the fewest erases of a plane
//! moves when the spread exceeds the threshold. Free blocks of all channels are as even as the logical address space;
//! the wear of channels depends on the addresses that the host chooses.
//!
//! Programs for a logical block follow the erase of the previous physical block. So a power cut leaves at most two good
//! blocks, the newer a pure copy: a copy with a torn page is dropped, another is finished. A failed block cannot be
//! erased, so the pages there count unless newer copies exist. Data of a failed die stays mapped there, and takes no
//! block elsewhere, until the host writes to the logical block. Then the block is copied, with lost data as lost.
//!
//! With superblocks, a logical block is as large, on all dies of its superblock. A die behind the others leaves a copy
//! without a page before later ones: such a copy is dropped. With parity or pairs, skipped pages are padded, and the
//! last row of a block that is not full keeps its parity in memory. Word lines programmed in one shot are pages, so a
//! smaller write reads the rest. Ignored: the storage of the map.

mod recover;
#[cfg(test)]
mod tests;
mod zones;

use super::pages::MapsPages;
use crate::extent::{overlay, pages};
use crate::free::{FreeBlocks, free_of_planes};
use crate::gaps::{gaps, may_have_gaps};
use crate::log::blocks::NO_BLOCK;
use crate::log::pace::MERGES;
use crate::log::settings::{LEVELING, LogSettings, READ, STATIC_LEVELING, WearLeveling, keys_of};
use crate::maps::bytes::map_bytes;
use crate::rebuild::Rebuild;
use palimpsest_flash::geometry::{Extent, Geometry};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Halt, Outcome, PADDING, first_subpages};
use palimpsest_ftl_api::plan::{Cause, Erase, Gate, Io, Program, Read};
use palimpsest_ftl_api::{Blueprint, Entry, Figure, Ftl, LayerFigures, Mapping};
use std::collections::BTreeMap;
pub(super) use zones::ZoneShape;

pub const ENTRY: Entry = Entry {
    name: "block",
    about: "block map with the channel in the address: an overwrite copies the block, \
            a trim of a whole block erases it",
    keys: || keys_of(&[LEVELING, STATIC_LEVELING, READ]),
    word_lines: true,
    outlives_dies: true,
    takes_parity: true,
    superblocks: true,
    reasons: &[("ftl.slc_cache", ONE_BLOCK), ("ftl.slc_fixed", ONE_BLOCK), ("ftl.gc_pace", MERGES)],
    build: |io, blueprint| Box::new(Block::new(io, blueprint)),
    ..Entry::PLAIN
};

const ONE_BLOCK: &str = "a block with one bit a cell has fewer pages than a logical block";

/// Consecutive pages to write in a logical block; their contents are in the layer's scratch.
#[derive(Clone, Copy)]
struct PageRun {
    block: u32,
    /// First page within the block.
    first: u32,
    count: u32,
    cause: Cause,
    signal: Gate,
    /// Subpages of the write buffer that the programs free.
    frees: u32,
}

impl PageRun {
    /// Pages of a merge, without gates.
    fn merged(block: u32, first: u32, count: u32) -> Self {
        PageRun { block, first, count, cause: Cause::Merge, signal: Gate::NONE, frees: 0 }
    }
}

#[derive(Default)]
struct Counters {
    copies: u64,
    copied_pages: u64,
    erased: u64,
    wear_moves: u64,
    retired: u64,
    away: u64,
}

palimpsest_flash::state!(Counters { copies, copied_pages, erased, wear_moves, retired, away });

/// The layer.
pub struct Block {
    settings: LogSettings,
    geometry: Geometry,
    sectors_per_page: u64,
    /// Logical blocks whose address names the same channel.
    per_channel: u32,
    /// Zones, which planes hold in turn; `None` if the address names the channel.
    zones: Option<ZoneShape>,
    /// Subpages of pages that are not full: the last page of a zone, at most.
    partial: BTreeMap<u32, u32>,
    map: Vec<u32>,
    /// Validity of the pages of each logical block.
    valid: Vec<bool>,
    valid_count: Vec<u32>,
    /// Free blocks of each plane, in order of their erases.
    free: Vec<FreeBlocks>,
    /// Per logical block: closes when the previous physical block is erased.
    erased: Vec<Gate>,
    /// Per plane: true if the die is known to have failed.
    dead: Vec<bool>,
    /// True if no block was free when one was to be taken.
    is_short: bool,
    counters: Counters,
    rebuild: Rebuild,
    /// Contents of the pages of a [`PageRun`], and the gates that close when they have arrived.
    contents: Vec<Data>,
    arrived: Vec<Gate>,
    /// Logical numbers of the subpages of the page to program.
    numbers: Vec<u32>,
}

palimpsest_flash::state!(Block { map, valid, valid_count, erased, counters, partial } parts { free } built {
    settings, geometry, sectors_per_page, per_channel, zones, dead, is_short, rebuild, contents, arrived,
    numbers
});

impl Block {
    pub fn new(io: &Io, blueprint: &Blueprint) -> Self {
        let geometry = *io.geometry();
        let blocks = blueprint.logical_pages.div_ceil(geometry.pages_per_block);
        let mut layer = Block {
            settings: LogSettings::new(&blueprint.settings),
            geometry,
            sectors_per_page: u64::from(geometry.page_bytes()) / palimpsest_flash::units::SECTOR_BYTES,
            per_channel: blocks.div_ceil(geometry.channels),
            zones: None,
            partial: BTreeMap::new(),
            map: vec![NO_BLOCK; blocks as usize],
            valid: vec![false; blocks as usize * geometry.pages_per_block as usize],
            valid_count: vec![0; blocks as usize],
            erased: vec![Gate::NONE; blocks as usize],
            free: free_of_planes(&geometry),
            dead: vec![false; geometry.planes() as usize],
            is_short: false,
            counters: Counters::default(),
            rebuild: Rebuild::default(),
            contents: Vec::new(),
            arrived: Vec::new(),
            numbers: vec![PADDING; geometry.subpages_per_page as usize],
        };
        for block in (0..geometry.blocks()).filter(|&block| !io.nand().is_bad(block)) {
            layer.free[geometry.plane_of_block(block) as usize].push(block);
        }
        layer
    }

    /// The plane of logical block `block`, in the channel that the address names (the Channel Identifier).
    fn home(&self, block: u32) -> u32 {
        if let Some(zones) = self.zones {
            return block / zones.blocks % self.geometry.planes();
        }
        let channel = block / self.per_channel;
        let lanes = self.geometry.planes() / self.geometry.channels;
        block % self.per_channel % lanes * self.geometry.channels + channel
    }

    fn index(&self, block: u32, page: u32) -> usize {
        block as usize * self.geometry.pages_per_block as usize + page as usize
    }

    fn physical(&self, block: u32, page: u32) -> u32 {
        self.map[block as usize] * self.geometry.pages_per_block + page
    }

    /// The physical page of `page` of logical block `block`, if valid.
    fn page(&self, block: u32, page: u32) -> Option<u32> {
        self.valid[self.index(block, page)].then(|| self.physical(block, page))
    }

    /// Takes a free block for logical block `block`: of the home plane, else of the plane of the channel, or of the
    /// drive, with most free blocks.
    fn take(&mut self, io: &Io, block: u32) -> Flash<u32> {
        let home = self.home(block);
        let channels = self.geometry.channels;
        let nearness = |plane: u32| if plane == home { 2 } else { u32::from(plane % channels == home % channels) };
        let planes = (0..self.geometry.planes()).filter(|&plane| !self.free[plane as usize].is_empty());
        let best = planes.max_by_key(|&plane| (nearness(plane), self.free[plane as usize].len(), u32::MAX - plane));
        let Some(plane) = best else {
            self.is_short = true;
            return Err(Halt::NoSpace);
        };
        self.counters.away += u64::from(nearness(plane) == 0);
        let level = self.settings.wear_leveling != WearLeveling::None;
        let wear = |block| if level { io.nand().erases(block) } else { 0 };
        self.free[plane as usize].pop(wear).ok_or(Halt::NoSpace)
    }

    /// Erases `old`, which logical block `block` has left, after `after`. Later programs for `block` follow the erase.
    fn supersede(&mut self, io: &mut Io, block: u32, old: u32, after: Gate) -> Flash<()> {
        let erased = io.gate();
        self.release(io, old, after, erased)?;
        self.erased[block as usize] = io.used(erased);
        Ok(())
    }

    /// Erases `block`, which must hold no needed data, after `after`.
    fn release(&mut self, io: &mut Io, block: u32, after: Gate, signal: Gate) -> Flash<()> {
        if io.nand().is_bad(block) || self.is_lost(block) {
            self.counters.retired += 1;
            return Ok(());
        }
        self.counters.erased += 1;
        match io.erase(Erase { after, signal, ..Erase::new(block, Cause::Merge) })? {
            Outcome::Done => self.free[self.geometry.plane_of_block(block) as usize].push(block),
            Outcome::Failed => self.retire(io, block),
        }
        Ok(())
    }

    /// True if `block` is known to be on a failed die.
    fn is_lost(&self, block: u32) -> bool {
        self.dead[self.geometry.plane_of_block(block) as usize]
    }

    /// Records a failed program or erase of `block`. If the die has failed, writes to all planes of the die stop.
    #[cold]
    fn retire(&mut self, io: &Io, block: u32) {
        self.counters.retired += 1;
        if !io.nand().is_dead(block) || self.is_lost(block) {
            return;
        }
        let die = self.geometry.die_of_plane(self.geometry.plane_of_block(block));
        for plane in (die..self.geometry.planes()).step_by(self.geometry.dies() as usize) {
            self.dead[plane as usize] = true;
            self.counters.retired += self.free[plane as usize].len() as u64;
            self.free[plane as usize].clear();
        }
    }

    fn store(&mut self, io: &mut Io, piece: PageRun) -> Flash<()> {
        let PageRun { block, first, count, .. } = piece;
        if self.map[block as usize] == NO_BLOCK {
            self.map[block as usize] = self.take(io, block)?;
        }
        let physical = self.map[block as usize];
        let full = self.is_lost(physical) || first < io.nand().next_page(physical);
        let copies = full || !self.append(io, piece, physical, first)?;
        if copies {
            self.copy(io, piece)?;
        }
        for page in first..first + count {
            let index = self.index(block, page);
            self.valid_count[block as usize] += u32::from(!std::mem::replace(&mut self.valid[index], true));
        }
        if copies { self.level_wear(io, physical) } else { Ok(()) }
    }

    /// Programs the pages of `piece` into `physical`, which must not be written beyond `first`. False if a program
    /// failed; the block is then bad.
    fn append(&mut self, io: &mut Io, piece: PageRun, physical: u32, first: u32) -> Flash<bool> {
        if !self.pad(io, (piece.block, physical), first, Gate::NONE)? {
            return Ok(false);
        }
        for page in first..piece.first + piece.count {
            if !self.program_new(io, piece, physical, page, piece.signal)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Programs page `page` of `piece` into `physical`, after padding. False if a program failed.
    fn program_new(&mut self, io: &mut Io, piece: PageRun, physical: u32, page: u32, signal: Gate) -> Flash<bool> {
        if !self.pad(io, (piece.block, physical), page, signal)? {
            return Ok(false);
        }
        let width = self.geometry.subpages_per_page;
        let place = page - piece.first;
        let from = (place * width) as usize;
        let padding = self.number(piece.block, page);
        let ppn = physical * self.geometry.pages_per_block + page;
        let after = io.all_of(&[self.arrived[place as usize], self.erased[piece.block as usize]]);
        let (logical, data) = (&self.numbers[..], &self.contents[from..from + width as usize]);
        let program =
            Program { frees: piece.frees, padding, after, signal, ..Program::new(ppn, logical, data, piece.cause) };
        Ok(io.program(program)? == Outcome::Done)
    }

    /// Programs padding into the pages of `physical` that page `page` depends on. A copy is `done` after its padding
    /// only, because recovery drops a copy with a torn page. False if a program failed.
    #[inline]
    fn pad(&mut self, io: &mut Io, place: (u32, u32), page: u32, done: Gate) -> Flash<bool> {
        if may_have_gaps(io.nand(), place.1, page) { self.pad_gaps(io, place, page, done) } else { Ok(true) }
    }

    #[cold]
    fn pad_gaps(&mut self, io: &mut Io, (block, physical): (u32, u32), page: u32, done: Gate) -> Flash<bool> {
        let width = self.geometry.subpages_per_page;
        let (logical, data) = ([PADDING; 64], [Data::ZERO; 64]);
        let (logical, data) = (&logical[..width as usize], &data[..width as usize]);
        for gap in gaps(io.nand(), physical, page) {
            let ppn = physical * self.geometry.pages_per_block + gap;
            let after = self.erased[block as usize];
            let padding =
                Program { padding: width, after, signal: done, ..Program::new(ppn, logical, data, Cause::Merge) };
            if io.program(padding)? == Outcome::Failed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Copies a logical block into another physical block, with the pages of `piece` in place of the old ones.
    fn copy(&mut self, io: &mut Io, piece: PageRun) -> Flash<()> {
        let PageRun { block, signal, .. } = piece;
        let old = self.map[block as usize];
        self.counters.copies += 1;
        loop {
            let target = self.take(io, block)?;
            let done = io.gate();
            if self.copy_into(io, block, Some(piece), target, done)? {
                self.map[block as usize] = target;
                io.link(done, signal);
                return self.supersede(io, block, old, done);
            }
            self.retire(io, target);
        }
    }

    /// Fills `target`. False if a program failed.
    fn copy_into(&mut self, io: &mut Io, block: u32, piece: Option<PageRun>, target: u32, done: Gate) -> Flash<bool> {
        let width = self.geometry.subpages_per_page;
        let mut old_data = [Data::ZERO; 64];
        for page in 0..self.geometry.pages_per_block {
            let new = piece.filter(|piece| (piece.first..piece.first + piece.count).contains(&page));
            if new.is_none() && !self.valid[self.index(block, page)] {
                continue;
            }
            if let Some(piece) = new {
                if !self.program_new(io, piece, target, page, done)? {
                    return Ok(false);
                }
                continue;
            }
            if !self.pad(io, (block, target), page, done)? {
                return Ok(false);
            }
            let source = self.physical(block, page);
            let read = io.gate();
            let (all, policy) = (first_subpages(width), self.settings.read);
            io.read(Read { policy, signal: read, ..Read::new(source, all, Cause::Merge) })?;
            for subpage in 0..width {
                old_data[subpage as usize] = io.load_subpage(source * width + subpage);
            }
            let padding = self.number(block, page);
            let (logical, data) = (&self.numbers[..], &old_data[..width as usize]);
            let ppn = target * self.geometry.pages_per_block + page;
            let after = io.all_of(&[read, self.erased[block as usize]]);
            let copy = Program { padding, after, signal: done, ..Program::new(ppn, logical, data, Cause::Merge) };
            if io.program(copy)? == Outcome::Failed {
                return Ok(false);
            }
            self.counters.copied_pages += 1;
        }
        Ok(true)
    }

    /// The logical block mapped to `physical`, if any.
    fn holder(&self, physical: u32) -> Option<u32> {
        self.map.iter().position(|&mapped| mapped == physical).map(|block| block as u32)
    }

    /// Static wear levelling: if the spread of erases in the plane of `recent` is too large, the mapped block with the
    /// fewest erases moves into a worn one.
    fn level_wear(&mut self, io: &mut Io, recent: u32) -> Flash<()> {
        if self.settings.wear_leveling != WearLeveling::Static {
            return Ok(());
        }
        let plane = self.geometry.plane_of_block(recent);
        let in_plane = |physical: u32| physical != NO_BLOCK && self.geometry.plane_of_block(physical) == plane;
        let mapped = (0..self.map.len() as u32).filter(|&block| in_plane(self.map[block as usize]));
        let Some(coldest) = mapped.min_by_key(|&block| io.nand().erases(self.map[block as usize])) else {
            return Ok(());
        };
        let free = &mut self.free[plane as usize];
        let Some(target) = free.most_worn(|block| io.nand().erases(block)) else { return Ok(()) };
        let old = self.map[coldest as usize];
        if io.nand().erases(target) < io.nand().erases(old) + self.settings.wear_threshold {
            return Ok(());
        }
        free.remove(target);
        let done = io.gate();
        self.counters.wear_moves += 1;
        if self.copy_into(io, coldest, None, target, done)? {
            self.map[coldest as usize] = target;
            return self.supersede(io, coldest, old, done);
        }
        self.retire(io, target);
        Ok(())
    }

    fn invalidate(&mut self, block: u32, page: u32) {
        let index = self.index(block, page);
        self.valid_count[block as usize] -= u32::from(std::mem::replace(&mut self.valid[index], false));
    }

    /// Erases the physical block of logical block `block`, if no page is valid.
    fn erase_if_empty(&mut self, io: &mut Io, block: u32, after: Gate) -> Flash<()> {
        if self.valid_count[block as usize] > 0 || self.map[block as usize] == NO_BLOCK {
            return Ok(());
        }
        let physical = std::mem::replace(&mut self.map[block as usize], NO_BLOCK);
        self.supersede(io, block, physical, after)?;
        self.level_wear(io, physical)
    }
}

impl MapsPages for Block {
    fn write_page(
        &mut self,
        io: &mut Io,
        page: u32,
        contents: &[Data],
        cause: Cause,
        after: Gate,
        signal: Gate,
    ) -> Flash<()> {
        let per_block = self.geometry.pages_per_block;
        // A file system writes the pages of a block in order: a moved block for each written block.
        if page.is_multiple_of(per_block) && io.nand().is_rebuilding() {
            self.background(io)?;
        }
        self.bring(contents, after);
        let (block, first) = (page / per_block, page % per_block);
        self.store(io, PageRun { block, first, count: 1, cause, signal, frees: 0 })
    }

    fn locate(&self, page: u32) -> Option<u32> {
        self.page(page / self.geometry.pages_per_block, page % self.geometry.pages_per_block)
    }

    fn trim_block(&mut self, io: &mut Io, block: u32, after: Gate) -> Flash<()> {
        (0..self.geometry.pages_per_block).for_each(|page| self.invalidate(block, page));
        let first = block * self.geometry.pages_per_block;
        self.partial.retain(|page, _| !(first..first + self.geometry.pages_per_block).contains(page));
        self.erase_if_empty(io, block, after)
    }

    fn written(&self, io: &Io, block: u32) -> u32 {
        match self.map[block as usize] {
            NO_BLOCK => 0,
            physical => io.nand().next_page(physical),
        }
    }
}

impl Ftl for Block {
    palimpsest_ftl_api::keeps_state!();

    fn unit_subpages(&self) -> u32 {
        self.geometry.subpages_per_page
    }

    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        if io.nand().is_rebuilding() {
            self.background(io)?;
        }
        let (width, per_block) = (self.geometry.subpages_per_page, self.geometry.pages_per_block);
        let (first, end) = (extent.sector / self.sectors_per_page, extent.end().div_ceil(self.sectors_per_page));
        let (mut page, end) = (first as u32, end as u32);
        let mut touched = pages(extent, self.sectors_per_page);
        while page < end {
            let count = (end - page).min(per_block - page % per_block);
            self.contents.clear();
            self.contents.resize((count * width) as usize, Data::ZERO);
            self.arrived.clear();
            for (logical, begin, sectors) in touched.by_ref().take(count as usize) {
                let from = ((logical - page) * width) as usize;
                let mut after = Gate::NONE;
                if u64::from(sectors) < self.sectors_per_page
                    && let Some(ppn) = self.locate(logical)
                {
                    after = io.gate();
                    let (all, policy) = (first_subpages(width), self.settings.read);
                    io.read(Read { policy, signal: after, ..Read::new(ppn, all, Cause::Rmw) })?;
                    for subpage in 0..width {
                        self.contents[from + subpage as usize] = io.load_subpage(ppn * width + subpage);
                    }
                }
                overlay(io, logical, begin, sectors, &mut self.contents[from..from + width as usize]);
                self.arrived.push(after);
            }
            let signal = io.request();
            let (block, first) = (page / per_block, page % per_block);
            self.store(io, PageRun { block, first, count, cause: Cause::Host, signal, frees: 0 })?;
            page += count;
        }
        Ok(())
    }

    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        let width = self.geometry.subpages_per_page;
        let per_subpage = self.sectors_per_page as u32 / width;
        for (page, first, sectors) in pages(extent, self.sectors_per_page) {
            let (begin, end) = (first / per_subpage, (first + sectors).div_ceil(per_subpage));
            let location = self.locate(page);
            match location {
                Some(ppn) => {
                    let (wanted, words) = (first_subpages(end - begin) << begin, io.nand().words_of(first, sectors));
                    let (policy, signal) = (self.settings.read, io.request());
                    io.read(Read { words, policy, signal, ..Read::new(ppn, wanted, Cause::Host) })?;
                }
                None => io.count_unwritten(end - begin),
            }
            if io.host.has_contents() {
                for subpage in begin..end {
                    let data = location.map_or(Data::ZERO, |ppn| io.load_subpage(ppn * width + subpage));
                    io.deliver(page * width + subpage, data);
                }
            }
        }
        Ok(())
    }

    fn trim(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        let per_block = self.geometry.pages_per_block;
        for (page, _, _) in pages(extent, self.sectors_per_page) {
            self.invalidate(page / per_block, page % per_block);
            self.erase_if_empty(io, page / per_block, Gate::NONE)?;
        }
        Ok(())
    }

    fn flush(&mut self, _io: &mut Io) -> Flash<()> {
        Ok(())
    }

    fn background(&mut self, io: &mut Io) -> Flash<bool> {
        if !io.nand().is_rebuilding() {
            return Ok(false);
        }
        let (blocks, per_block) = (self.map.len() as u32, self.geometry.pages_per_block);
        let mut rebuild = std::mem::take(&mut self.rebuild);
        let next = rebuild.next(io, blocks, |block, pages| {
            pages.extend((0..per_block).filter_map(|page| self.page(block, page)));
        });
        self.rebuild = rebuild;
        next.map_or(Ok(false), |block| self.relocate(io, self.map[block as usize]))
    }

    fn relocate(&mut self, io: &mut Io, physical: u32) -> Flash<bool> {
        let plane = self.geometry.plane_of_block(physical) as usize;
        let Some(block) = self.holder(physical) else { return Ok(false) };
        // A partial block is copied, too: the next page is then programmed in the copy.
        if self.free[plane].is_empty() || self.is_lost(physical) {
            return Ok(false);
        }
        let none = PageRun { cause: Cause::Gc, ..PageRun::merged(block, 0, 0) };
        self.copy(io, none)?;
        Ok(true)
    }

    fn recover(&mut self, io: &mut Io) -> Flash<()> {
        self.recover_blocks(io)
    }

    fn check(&mut self, io: &Io) -> Result<(), String> {
        self.check_blocks(io)
    }

    fn figures(&self) -> LayerFigures {
        let counters = &self.counters;
        let bytes = map_bytes(self.map.len() as u64);
        LayerFigures {
            mapping: Mapping { tables: vec![("block_map", bytes)], peak_bytes: bytes },
            merges: counters.copies,
            merge_moved_subpages: counters.copied_pages * u64::from(self.geometry.subpages_per_page),
            retired_blocks: counters.retired,
            own: vec![
                ("erased_blocks", Figure::Count(counters.erased)),
                ("wear_moves", Figure::Count(counters.wear_moves)),
                ("blocks_off_channel", Figure::Count(counters.away)),
            ],
            ..LayerFigures::default()
        }
    }

    fn count_valid(&self, valid: &mut [u32]) -> bool {
        for (&block, pages) in self.map.iter().zip(&self.valid_count).filter(|(block, _)| **block != NO_BLOCK) {
            valid[block as usize] += pages * self.geometry.subpages_per_page;
        }
        true
    }
}
