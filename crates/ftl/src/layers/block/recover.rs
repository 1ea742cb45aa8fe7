//! Recovery after a power cut: the block map from flash; and checks of the layer against flash.

use super::{Block, PageRun};
use crate::free::FreeBlocks;
use crate::log::blocks::NO_BLOCK;
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::part::ReadCommand;
use palimpsest_flash::nand::{Flash, Nand, TORN, first_subpages};
use palimpsest_ftl_api::plan::{Cause, Gate, Io, ParityIo, Read};

/// A physical block with pages of a logical block.
struct Copy {
    physical: u32,
    /// Number of the program of the first readable page.
    since: u64,
    bad: bool,
}

/// True if `physical` can be neither programmed nor erased: the data is still there, or lost with the die.
fn has_failed(nand: &Nand, physical: u32) -> bool {
    nand.is_bad(physical) || nand.is_dead(physical)
}

impl Block {
    /// The logical page in `ppn`, if readable.
    fn logical_page(&self, nand: &Nand, ppn: u32) -> Option<u32> {
        let width = self.geometry.subpages_per_page;
        let logical = nand.logical(ppn * width);
        let page = logical / width;
        let most = self.valid.len() as u32;
        let page = self.page_of(page).filter(|&page| page < most && logical.is_multiple_of(width))?;
        let sensed = first_subpages(nand.part().sensed_subpages());
        nand.probe_read(ppn, sensed, ReadCommand::PAGE).is_ok().then_some(page)
    }

    pub(super) fn recover_blocks(&mut self, io: &mut Io) -> Flash<()> {
        assert_ne!(io.nand().payload(), Payload::None, "recovery needs the numbers that a payload keeps");
        io.recover_stripes()?;
        self.rebuild = Default::default();
        self.map.fill(NO_BLOCK);
        self.valid.fill(false);
        self.valid_count.fill(0);
        self.partial.clear();
        self.free.iter_mut().for_each(FreeBlocks::clear);
        self.erased.fill(Gate::NONE);
        let mut copies: Vec<Vec<Copy>> = Vec::new();
        copies.resize_with(self.map.len(), Vec::new);
        let mut empty = Vec::new();
        for physical in 0..self.geometry.blocks() {
            let dead = io.nand().is_dead(physical);
            self.dead[self.geometry.plane_of_block(physical) as usize] |= dead;
            match self.identify(io.nand(), physical) {
                Some((block, copy)) => {
                    copies[block as usize].push(copy);
                    // Pages that the power cut skipped stay skipped.
                    io.leave_out(physical)?;
                }
                None if !dead && !io.nand().is_bad(physical) => empty.push(physical),
                None => {}
            }
        }
        let mut unfinished = Vec::new();
        for copies in &mut copies {
            copies.sort_by_key(|copy| copy.since);
            empty.extend(self.leave_two(io.nand(), copies));
            if let [older, newer] = copies.iter().filter(|copy| !copy.bad).collect::<Vec<_>>()[..] {
                unfinished.push((older.physical, newer.physical));
            }
        }
        for physical in empty {
            if io.nand().next_page(physical) > 0 || io.nand().is_torn(physical) {
                self.release(io, physical, Gate::NONE, Gate::NONE)?;
            } else {
                self.free[self.geometry.plane_of_block(physical) as usize].push(physical);
            }
        }
        for (older, newer) in unfinished {
            self.finish(io, older, newer)?;
        }
        // A finished copy is now the mapped one, unless the copy failed meanwhile. An erased block may serve another
        // logical block from here on.
        for copies in &mut copies {
            copies.retain(|copy| io.nand().next_page(copy.physical) > 0);
            copies.iter_mut().for_each(|copy| copy.bad = has_failed(io.nand(), copy.physical));
        }
        for (block, copies) in (0..).zip(&copies) {
            self.adopt(io, block, copies)?;
        }
        Ok(())
    }

    /// Keeps at most two good blocks of `copies`, which are of one logical block, oldest first: the newer is a copy,
    /// maybe unfinished. Returns the others, which hold no needed data: a copy with a torn page, or without a page that
    /// its die had not begun, is unfinished and holds nothing else.
    fn leave_two(&self, nand: &Nand, copies: &mut Vec<Copy>) -> Vec<u32> {
        let good = copies.iter().filter(|copy| !copy.bad).map(|copy| copy.physical);
        let (mut kept, mut left) = (Vec::<u32>::new(), Vec::new());
        for physical in good {
            if kept.first().is_some_and(|&older| self.has_torn(nand, physical) || self.lacks(nand, older, physical)) {
                left.push(physical);
            } else {
                left.extend(kept.drain(kept.len().min(1)..));
                kept.push(physical);
            }
        }
        copies.retain(|copy| copy.bad || kept.contains(&copy.physical));
        left
    }

    fn has_torn(&self, nand: &Nand, physical: u32) -> bool {
        let (per_block, width) = (self.geometry.pages_per_block, self.geometry.subpages_per_page);
        let psns = physical * per_block * width..(physical * per_block + nand.next_page(physical)) * width;
        psns.into_iter().any(|psn| nand.logical(psn) == TORN)
    }

    /// True if dies of the superblock `newer`, a copy, were behind: a later page is programmed, but not one that
    /// `older` holds.
    fn lacks(&self, nand: &Nand, older: u32, newer: u32) -> bool {
        let per_block = self.geometry.pages_per_block;
        let mut skipped = (0..nand.next_page(newer)).filter(|page| nand.programs(newer * per_block + page) == 0);
        nand.has_stripes() && skipped.any(|page| self.logical_page(nand, older * per_block + page).is_some())
    }

    /// Completes the interrupted copy of `older` into `newer`, and erases `older`. If a program fails, `newer` is bad.
    fn finish(&mut self, io: &mut Io, older: u32, newer: u32) -> Flash<()> {
        let per_block = self.geometry.pages_per_block;
        for place in io.nand().next_page(newer)..per_block {
            let source = older * per_block + place;
            let Some(page) = self.logical_page(io.nand(), source) else { continue };
            self.gather(io, &[Some(source)])?;
            self.note_filled(io.nand(), page, source);
            let piece = PageRun::merged(page / per_block, place, 1);
            if !self.program_new(io, piece, newer, place, Gate::NONE)? {
                return Ok(());
            }
        }
        self.release(io, older, Gate::NONE, Gate::NONE)
    }

    /// The logical block of `physical`, if a page is readable.
    fn identify(&self, nand: &Nand, physical: u32) -> Option<(u32, Copy)> {
        if nand.is_torn(physical) {
            return None;
        }
        let per_block = self.geometry.pages_per_block;
        (physical * per_block..(physical + 1) * per_block).find_map(|ppn| {
            let page = self.logical_page(nand, ppn)?;
            let since = nand.sequence(ppn * self.geometry.subpages_per_page);
            Some((page / per_block, Copy { physical, since, bad: has_failed(nand, physical) }))
        })
    }

    /// Maps `block` to the good block of `copies`. If failed blocks hold newer pages, all pages are gathered in a new
    /// block. If a block of a failed die holds all pages, the mapping stays: lost data takes no other block.
    fn adopt(&mut self, io: &mut Io, block: u32, copies: &[Copy]) -> Flash<()> {
        let (per_block, width) = (self.geometry.pages_per_block, self.geometry.subpages_per_page);
        let ruling = copies.iter().find(|copy| !copy.bad).map(|copy| copy.physical);
        let mut newest = vec![None; per_block as usize];
        for copy in copies {
            for page in 0..per_block {
                let ppn = copy.physical * per_block + page;
                let newer = |best: u32| io.nand().sequence(ppn * width) > io.nand().sequence(best * width);
                if self.logical_page(io.nand(), ppn) == Some(block * per_block + page)
                    && newest[page as usize].is_none_or(newer)
                {
                    newest[page as usize] = Some(ppn);
                }
            }
        }
        let Some(first) = newest.iter().position(Option::is_some) else { return Ok(()) };
        for (page, ppn) in newest.iter().enumerate() {
            let index = self.index(block, page as u32);
            self.valid[index] = ppn.is_some();
            ppn.iter().for_each(|&ppn| self.note_filled(io.nand(), index as u32, ppn));
        }
        self.valid_count[block as usize] = newest.iter().flatten().count() as u32;
        let mut holders = newest.iter().flatten().map(|ppn| ppn / per_block);
        if let Some(holder) = holders.next()
            && (ruling == Some(holder) || self.is_lost(holder) || self.zones.is_some() && self.free_blocks() == 0)
            && holders.all(|other| other == holder)
        {
            self.map[block as usize] = holder;
            return match ruling.filter(|&ruling| ruling != holder) {
                Some(older) => self.release(io, older, Gate::NONE, Gate::NONE),
                None => Ok(()),
            };
        }
        let last = newest.iter().rposition(Option::is_some).unwrap_or(first);
        self.gather(io, &newest[first..=last])?;
        loop {
            let target = self.take(io, block)?;
            if self.gathered_into(io, block, first as u32, &newest, target)? {
                self.map[block as usize] = target;
                break;
            }
            self.retire(io, target);
        }
        match ruling {
            Some(ruling) => self.release(io, ruling, Gate::NONE, Gate::NONE),
            None => Ok(()),
        }
    }

    /// Reads the pages `newest` into the scratch.
    fn gather(&mut self, io: &mut Io, newest: &[Option<u32>]) -> Flash<()> {
        let width = self.geometry.subpages_per_page;
        self.contents.clear();
        self.arrived.clear();
        for &ppn in newest {
            if let Some(ppn) = ppn {
                let policy = self.settings.read;
                io.read(Read { policy, ..Read::new(ppn, first_subpages(width), Cause::Merge) })?;
            }
            for subpage in 0..width {
                self.contents.push(ppn.map_or(Data::ZERO, |ppn| io.load_subpage(ppn * width + subpage)));
            }
            self.arrived.push(Gate::NONE);
        }
        Ok(())
    }

    /// Programs the pages read by [`Self::gather`] into `target`. False if a program failed.
    fn gathered_into(
        &mut self,
        io: &mut Io,
        block: u32,
        first: u32,
        newest: &[Option<u32>],
        target: u32,
    ) -> Flash<bool> {
        let count = (self.arrived.len()) as u32;
        let piece = PageRun::merged(block, first, count);
        for page in first..first + count {
            if newest[page as usize].is_none() {
                continue;
            }
            if !self.program_new(io, piece, target, page, Gate::NONE)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks the layer against flash. Slow.
    pub(super) fn check_blocks(&self, io: &Io) -> Result<(), String> {
        let (per_block, nand) = (self.geometry.pages_per_block, io.nand());
        let mut users = vec![0u32; self.geometry.blocks() as usize];
        for (block, &physical) in self.map.iter().enumerate() {
            let valid = (0..per_block).filter(|&page| self.valid[self.index(block as u32, page)]);
            if valid.clone().count() as u32 != self.valid_count[block] {
                return Err(format!("logical block {block} counts {} valid pages", self.valid_count[block]));
            }
            if physical == NO_BLOCK {
                if self.valid_count[block] > 0 {
                    return Err(format!("logical block {block} has valid pages but no block"));
                }
                continue;
            }
            users[physical as usize] += 1;
            for page in valid {
                let found = self.logical_page(nand, physical * per_block + page);
                if found != Some(block as u32 * per_block + page) {
                    return Err(format!("page {page} of logical block {block} holds {found:?}"));
                }
            }
        }
        for (plane, free) in self.free.iter().enumerate() {
            for block in free.iter() {
                users[block as usize] += 1;
                let misplaced = self.geometry.plane_of_block(block) != plane as u32;
                if misplaced || nand.next_page(block) > 0 || nand.is_bad(block) || nand.is_torn(block) {
                    return Err(format!("block {block} is free in plane {plane} but cannot be used"));
                }
            }
        }
        let expected = |block: u32| match self.is_lost(block) || self.zones.is_some() && nand.is_bad(block) {
            // Still mapped, or unused.
            true => 0..=1,
            false => u32::from(!nand.is_bad(block))..=u32::from(!nand.is_bad(block)),
        };
        match (0..users.len()).find(|&block| !expected(block as u32).contains(&users[block])) {
            Some(block) => Err(format!("block {block} has {} uses", users[block])),
            None => Ok(()),
        }
    }
}
