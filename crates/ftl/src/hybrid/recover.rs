//! Recovery after a power cut: the role of each block, from out-of-band logical numbers and program sequence; and
//! checks against flash.
//!
//! The newest copy of a page is valid. Data blocks, and log blocks that became one, hold pages only in place. A logical
//! block has at most a data block and one exclusive log block. A third good block exists only while a merge copies. The
//! youngest of three is then the copy. The sources of the copy are whole, because they are erased after the last
//! program of the copy. Blocks of a failed die have no role; the newest copy may be there, and then stays.

use super::{BlockMap, Hybrid, LogBlocks, UNMAPPED};
use crate::free::FreeBlocks;
use crate::log::blocks::NO_BLOCK;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::{Flash, Nand};
use palimpsest_ftl_api::plan::{Gate, Io, ParityIo};
use std::collections::BTreeMap;

/// A good block with readable pages.
struct Found {
    /// Number of the first program.
    since: u64,
    physical: u32,
    /// The logical block of the first page.
    owner: u32,
    /// True if each page is in place.
    in_place: bool,
}

impl BlockMap {
    /// The logical page in `ppn`, if readable.
    fn logical_page(&self, nand: &Nand, ppn: u32) -> Option<u32> {
        let page = nand.logical(ppn * self.shape.subpages_per_page) / self.shape.subpages_per_page;
        ((page as usize) < self.pages.len()).then_some(page)
    }

    fn sequence(&self, nand: &Nand, ppn: u32) -> u64 {
        nand.sequence(ppn * self.shape.subpages_per_page)
    }

    /// The pages of the physical block `block` with data, void or not, because void pages also distinguish data blocks
    /// from log blocks. Pairs of logical and physical page.
    fn readable(&self, nand: &Nand, block: u32) -> impl Iterator<Item = (u32, u32)> {
        let width = self.shape.subpages_per_page;
        let held = self.physical_pages(block).map(move |ppn| (nand.logical_before_trims(ppn * width) / width, ppn));
        held.filter(|&(page, _)| (page as usize) < self.pages.len())
    }

    /// The role of the good block `physical`, if a page is readable.
    fn identify(&self, nand: &Nand, physical: u32) -> Option<Found> {
        let (page, ppn) = self.readable(nand, physical).next()?;
        let in_place = !nand.is_single(physical)
            && self.readable(nand, physical).all(|(page, ppn)| self.split(page).1 == self.split(ppn).1);
        Some(Found { since: self.sequence(nand, ppn), physical, owner: self.split(page).0, in_place })
    }

    /// Forgets everything, and identifies the good blocks, oldest first. Blocks without a readable page are free.
    fn find_blocks(&mut self, io: &mut Io) -> Flash<Vec<Found>> {
        self.data.fill(NO_BLOCK);
        self.pages.fill(UNMAPPED);
        self.programmed.fill(Gate::NONE);
        self.erased.fill(Gate::NONE);
        self.begun.fill((NO_BLOCK, Gate::NONE));
        self.cached.forget();
        self.free.iter_mut().for_each(FreeBlocks::clear);
        for block in (0..self.shape.blocks()).filter(|&block| io.nand().is_dead(block)) {
            self.lose_plane(self.shape.plane_of_block(block) as usize);
        }
        let mut found = Vec::new();
        for physical in 0..self.shape.blocks() {
            let nand = io.nand();
            if nand.is_bad(physical) || self.is_lost(physical) {
                continue;
            } else if let Some(block) = self.identify(nand, physical) {
                found.push(block);
                self.find_single(io, physical);
                // Pages that the power cut skipped stay skipped.
                io.leave_out(physical)?;
            } else if nand.is_torn(physical) || nand.next_page(physical) > 0 {
                self.release(io, physical)?;
            } else {
                self.set_free(physical);
            }
        }
        found.sort_by_key(|found| found.since);
        Ok(found)
    }

    /// Maps each page to the newest copy, in bad blocks too.
    fn find_pages(&mut self, nand: &Nand) {
        for block in 0..self.shape.blocks() {
            for ppn in self.physical_pages(block) {
                let Some(page) = self.logical_page(nand, ppn) else { continue };
                if self.locate(page).is_none_or(|newest| self.sequence(nand, ppn) > self.sequence(nand, newest)) {
                    self.pages[page as usize] = ppn;
                }
            }
        }
    }

    fn holds_valid(&self, io: &Io, block: u32) -> bool {
        !self.is_lost(block) && self.physical_pages(block).any(|ppn| self.valid_in(io, ppn).is_some())
    }
}

impl<L: LogBlocks> Hybrid<L> {
    pub(super) fn recover_blocks(&mut self, io: &mut Io) -> Flash<()> {
        assert_ne!(io.nand().payload(), Payload::None, "recovery needs the numbers that a payload keeps");
        io.recover_stripes()?;
        self.rebuild = Default::default();
        (0..self.map.dead.len()).for_each(|plane| self.logs.clear(plane));
        let (mut owned, mut logs) = (BTreeMap::<u32, Vec<Found>>::new(), Vec::new());
        for found in self.map.find_blocks(io)? {
            match found.in_place || !L::SHARED {
                true => owned.entry(found.owner).or_default().push(found),
                false => logs.push((found.physical, None)),
            }
        }
        for blocks in owned.values_mut() {
            for copy in blocks.drain(blocks.len().min(2)..) {
                self.map.release(io, copy.physical)?;
            }
        }
        self.map.find_pages(io.nand());
        for (owner, blocks) in owned {
            for Found { physical, in_place, .. } in blocks {
                if in_place && !self.map.has_data(owner) && self.map.holds_valid(io, physical) {
                    self.map.data[owner as usize] = physical;
                } else {
                    logs.push((physical, Some(owner)));
                }
            }
        }
        let (logs, obsolete): (Vec<_>, Vec<_>) = logs.into_iter().partition(|log| self.map.holds_valid(io, log.0));
        obsolete.into_iter().try_for_each(|(log, _)| self.map.release(io, log))?;
        for (log, owner) in logs {
            if !self.map.is_lost(log) {
                self.logs.adopt(&mut self.map, io, log, owner)?;
            }
        }
        // Pages in bad blocks move, unless they are lost.
        for block in 0..self.map.data.len() as u32 {
            let all = self.map.pages_of(block);
            let in_bad = |block: u32| io.nand().is_bad(block) && !self.map.is_lost(block);
            if self.map.valid(all).any(|(_, ppn)| in_bad(self.map.split(ppn).0)) {
                self.merge(io, block)?;
            }
        }
        Ok(())
    }

    /// Checks the layer against flash. Slow.
    pub(super) fn check_blocks(&self, io: &Io) -> Result<(), String> {
        let (map, nand, logs) = (&self.map, io.nand(), self.logs.all());
        for (page, ppn) in map.valid(0..map.pages.len() as u32) {
            let ((block, place), (holder, at)) = (map.split(page), map.split(ppn));
            let in_data = map.data[block as usize] == holder && place == at;
            let in_log = logs.iter().any(|&(log, owner)| log == holder && owner.is_none_or(|owner| owner == block));
            if map.logical_page(nand, ppn) != Some(page) || !(in_data || in_log || map.is_lost(holder)) {
                return Err(format!("page {page} is mapped to {ppn}, which is not a copy of it in its blocks"));
            }
        }
        let mut uses = vec![0; map.shape.blocks() as usize];
        let data =
            (0..).zip(&map.data).map(|(block, &data)| (data, map.plane(block))).filter(|&(data, _)| data != NO_BLOCK);
        let cached = map.cached.free.iter().enumerate();
        let free = map
            .free
            .iter()
            .enumerate()
            .chain(cached)
            .flat_map(|(plane, free)| free.iter().map(move |block| (block, plane)));
        let log = logs
            .iter()
            .map(|&(log, owner)| (log, owner.map_or(map.shape.plane_of_block(log) as usize, |owner| map.plane(owner))));
        for (block, plane) in data.chain(free).chain(log) {
            uses[block as usize] += 1;
            if map.shape.plane_of_block(block) as usize != plane || nand.is_torn(block) {
                return Err(format!("block {block} is used in plane {plane}, or torn"));
            }
        }
        if let Some(block) =
            map.free.iter().chain(&map.cached.free).flat_map(FreeBlocks::iter).find(|&block| nand.next_page(block) > 0)
        {
            return Err(format!("block {block} is free but not erased"));
        }
        let expected = |block: u32| u32::from(!nand.is_bad(block) && !map.is_lost(block));
        let wrong = (0..uses.len()).find(|&block| uses[block] != expected(block as u32));
        wrong.map_or(Ok(()), |block| Err(format!("block {block} has {} uses", uses[block])))?;
        let in_plane = |plane| logs.iter().filter(|log| map.shape.plane_of_block(log.0) == plane).count();
        match (0..map.shape.planes()).find(|&plane| in_plane(plane) > self.log_blocks as usize) {
            Some(plane) => Err(format!("plane {plane} has {} log blocks of {}", in_plane(plane), self.log_blocks)),
            None => Ok(()),
        }
    }
}
