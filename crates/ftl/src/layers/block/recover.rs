//! After a power cut: the block map from what is on flash; and the checks of the layer against flash.

use super::{Block, PageRun};
use crate::log::blocks::NO_BLOCK;
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::part::ReadCommand;
use palimpsest_flash::nand::{Flash, Nand, first_subpages};
use palimpsest_ftl_api::plan::{Cause, Gate, Io, Read};

/// A physical block with pages of a logical block.
struct Copy {
    physical: u32,
    /// Number of the program that wrote its first readable page.
    since: u64,
    bad: bool,
}

impl Block {
    /// The logical page in `ppn`, if it can be read.
    fn logical_page(&self, nand: &Nand, ppn: u32) -> Option<u32> {
        let width = self.geometry.subpages_per_page;
        let logical = nand.logical(ppn * width);
        let page = logical / width;
        let most = self.valid.len() as u32;
        (logical.is_multiple_of(width)
            && page < most
            && nand.probe_read(ppn, first_subpages(width), ReadCommand::PAGE).is_ok())
        .then_some(page)
    }

    pub(super) fn recover_blocks(&mut self, io: &mut Io) -> Flash<()> {
        assert_ne!(io.nand().payload(), Payload::None, "recovery needs the numbers that a payload keeps");
        self.map.fill(NO_BLOCK);
        self.valid.fill(false);
        self.valid_count.fill(0);
        self.free.iter_mut().for_each(Vec::clear);
        let mut copies: Vec<Vec<Copy>> = Vec::new();
        copies.resize_with(self.map.len(), Vec::new);
        let mut empty = Vec::new();
        for physical in 0..self.geometry.blocks() {
            match self.identify(io.nand(), physical) {
                Some((block, since)) => {
                    copies[block as usize].push(Copy { physical, since, bad: io.nand().is_bad(physical) });
                }
                None if !io.nand().is_bad(physical) => empty.push(physical),
                None => {}
            }
        }
        // The oldest good block rules; a copy that was not finished goes first, as room may be needed.
        for copies in &mut copies {
            copies.sort_by_key(|copy| copy.since);
            let ruling = copies.iter().find(|copy| !copy.bad).map(|copy| copy.physical);
            empty.extend(copies.iter().filter(|copy| !copy.bad && Some(copy.physical) != ruling).map(|c| c.physical));
            copies.retain(|copy| copy.bad || Some(copy.physical) == ruling);
        }
        for physical in empty {
            if io.nand().next_page(physical) > 0 || io.nand().is_torn(physical) {
                self.release(io, physical, Gate::NONE)?;
            } else {
                self.free[self.geometry.plane_of_block(physical) as usize].push(physical);
            }
        }
        for (block, copies) in copies.into_iter().enumerate() {
            self.adopt(io, block as u32, &copies)?;
        }
        Ok(())
    }

    /// The logical block that `physical` belongs to, and since which program.
    fn identify(&self, nand: &Nand, physical: u32) -> Option<(u32, u64)> {
        if nand.is_torn(physical) {
            return None;
        }
        let per_block = self.geometry.pages_per_block;
        (physical * per_block..(physical + 1) * per_block).find_map(|ppn| {
            let page = self.logical_page(nand, ppn)?;
            Some((page / per_block, nand.sequence(ppn * self.geometry.subpages_per_page)))
        })
    }

    /// Maps `block` to the good one of `copies`; where failed blocks hold pages that are newer, all of them are brought together
    /// in a block of their own.
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
        }
        self.valid_count[block as usize] = newest.iter().flatten().count() as u32;
        if let Some(ruling) = ruling
            && newest.iter().flatten().all(|ppn| ppn / per_block == ruling)
        {
            self.map[block as usize] = ruling;
            return Ok(());
        }
        let last = newest.iter().rposition(Option::is_some).unwrap_or(first);
        self.gather(io, &newest[first..=last])?;
        loop {
            let target = self.take(io, block)?;
            if self.gathered_into(io, block, first as u32, &newest, target)? {
                self.map[block as usize] = target;
                break;
            }
            self.counters.retired += 1;
        }
        match ruling {
            Some(ruling) => self.release(io, ruling, Gate::NONE),
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

    /// Programs what [`Self::gather`] read into `target`; false where a program failed.
    fn gathered_into(
        &mut self,
        io: &mut Io,
        block: u32,
        first: u32,
        newest: &[Option<u32>],
        target: u32,
    ) -> Flash<bool> {
        let count = (self.arrived.len()) as u32;
        let piece = PageRun { block, first, count, cause: Cause::Merge, signal: Gate::NONE };
        for page in first..first + count {
            if newest[page as usize].is_none() {
                continue;
            }
            if self.fills_gaps {
                for gap in io.nand().next_page(target)..page {
                    if !self.program_padding(io, target, gap)? {
                        return Ok(false);
                    }
                }
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
            for &block in free {
                users[block as usize] += 1;
                let misplaced = self.geometry.plane_of_block(block) != plane as u32;
                if misplaced || nand.next_page(block) > 0 || nand.is_bad(block) || nand.is_torn(block) {
                    return Err(format!("block {block} is free in plane {plane} but cannot be used"));
                }
            }
        }
        match (0..users.len()).find(|&block| users[block] != u32::from(!nand.is_bad(block as u32))) {
            Some(block) => Err(format!("block {block} has {} uses", users[block])),
            None => Ok(()),
        }
    }
}
