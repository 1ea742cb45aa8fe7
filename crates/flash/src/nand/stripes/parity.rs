//! Parity pages of superblocks: which page of a stripe has the parity, when the parity can be programmed, reads that
//! rebuild a page, and the parity's program and erase. Ignored: the parity's content, which the controller knows.

use super::super::data::Data;
use super::super::part::ReadCommand;
use super::super::{Flash, Halt, Nand, PADDING, SubpageMask, TORN, UNWRITTEN};

impl Nand {
    /// The data pages and the parity page of the stripe of page `ppn`; `None` without parity.
    pub fn stripe_of(&self, ppn: u32) -> Option<(std::ops::Range<u32>, u32)> {
        let stripes = self.stripes.as_ref().filter(|stripes| stripes.parity)?;
        let stripe = stripes.split(ppn).0;
        Some((stripe * stripes.data..(stripe + 1) * stripes.data, stripes.pages + stripe))
    }

    /// Whether the parity page `parity` can never be programmed.
    pub fn is_bare(&self, parity: u32) -> bool {
        self.stripes.as_ref().is_some_and(|stripes| stripes.is_bare(parity - stripes.pages))
    }

    /// Parity pages of the layer's block `block`.
    pub fn parity_of(&self, block: u32) -> std::ops::Range<u32> {
        let Some(stripes) = self.stripes.as_ref().filter(|stripes| stripes.parity) else { return 0..0 };
        let pages = stripes.physical.pages_per_block;
        stripes.pages + block * pages..stripes.pages + (block + 1) * pages
    }

    /// Whether page `ppn` is programmed completely.
    pub fn is_whole(&self, ppn: u32) -> bool {
        !self.is_torn(self.block_of(ppn))
            && self.programs(ppn) > 0
            && self.logical_of(ppn).iter().all(|&logical| logical != TORN && logical != UNWRITTEN)
    }

    /// The completely programmed data pages of the stripe of `parity`, as bits.
    pub fn whole_of(&self, parity: u32) -> u64 {
        let pages = self.stripe_of(parity).map_or(0..0, |(pages, _)| pages);
        pages.enumerate().filter(|&(_, ppn)| self.is_whole(ppn)).fold(0, |all, (place, _)| all | 1 << place)
    }

    /// Whether the parity page `parity` matches the present pages of its stripe: a power cut may have rolled back or
    /// torn a page in the parity, and another program may have followed.
    pub fn holds_parity(&self, parity: u32) -> bool {
        let Some(stripes) = &self.stripes else { return false };
        let (width, (pages, _)) = (self.geometry.subpages_per_page, self.stripe_of(parity).unwrap_or_default());
        let made = self.sequence(parity * width);
        self.is_whole(parity)
            && stripes.covers[(parity - stripes.pages) as usize] == self.whole_of(parity)
            && pages.filter(|&ppn| self.is_whole(ppn)).all(|ppn| self.sequence(ppn * width) <= made)
    }

    /// Whether the parity page `ppn` can still be programmed: the page and all later pages of its die's block must be
    /// erased.
    pub fn takes_parity(&self, ppn: u32) -> bool {
        let block = self.block_of(ppn);
        let state = &self.blocks[block as usize];
        let Some(stripes) = &self.stripes else { return false };
        if state.bad || state.torn || self.programs(ppn) > 0 || stripes.is_bare(ppn - stripes.pages) {
            return false;
        }
        // Pages from the next one on are erased, and so is the parity of their stripes.
        let (on, page) = stripes.place(ppn);
        let (first, parity) = (block * self.geometry.pages_per_block, self.parity_of(block).start);
        debug_assert!(
            (first + state.next_page..first + self.geometry.pages_per_block).all(|ppn| self.programs(ppn) == 0)
        );
        let later = (first + (page + 1) * stripes.data..first + state.next_page)
            .chain(ppn + 1..parity + state.next_page.div_ceil(stripes.data));
        later.filter(|&later| self.programs(later) > 0).all(|later| stripes.place(later).0 != on)
    }

    /// Reads the subpages `wanted` of page `ppn`, data or parity, to rebuild another page of its stripe. Returns
    /// whether a retry was needed.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_member(&mut self, ppn: u32, wanted: SubpageMask) -> Flash<bool> {
        if self.stripes.as_ref().is_none_or(|stripes| ppn < stripes.pages) {
            return self.read(ppn, wanted, ReadCommand::PAGE);
        }
        let cut = self.begin();
        if cut {
            return Err(Halt::PowerCut);
        }
        let undo = self.records.undo.is_some().then(|| self.save(self.block_of(ppn), 0..0, 0));
        self.counters.reads += 1;
        self.counters.read_energy += self.part.e_read;
        if let Some(undo) = undo {
            self.log_undo(undo);
        }
        Ok(false)
    }

    /// Programs the parity page `ppn` with `data`, the parity of the pages `covers` of its stripe, as bits.
    ///
    /// # Errors
    /// [`Halt::PowerCut`].
    pub fn program_parity(&mut self, ppn: u32, data: &[Data], covers: u64) -> Flash<()> {
        assert!(self.takes_parity(ppn), "a page of parity is programmed in its turn");
        let cut = self.begin();
        let block = self.block_of(ppn);
        let undo = self.records.undo.is_some().then(|| self.save(block, ppn..ppn + 1, self.widths.all_subpages));
        let width = self.geometry.subpages_per_page as usize;
        let first = ppn as usize * width;
        self.programs[ppn as usize] = 1;
        self.logical[first..first + width].fill(if cut { TORN } else { PADDING });
        if cut {
            return Err(Halt::PowerCut);
        }
        self.payload.store(first, self.widths.all_subpages, data, self.schedule.operations);
        if let Some(stripes) = &mut self.stripes {
            let stripe = (ppn - stripes.pages) as usize;
            stripes.covers[stripe] = covers;
        }
        self.counters.programs += 1;
        self.counters.program_energy += self.part.e_program;
        if let Some(undo) = undo {
            self.log_undo(undo);
        }
        Ok(())
    }

    /// Erases the parity of the superblock `block`, with its first block; `reused`: low pages were programmed again.
    pub(in crate::nand) fn erase_parity(&mut self, block: u32, reused: bool) {
        let (pages, operation) = (self.parity_of(block), self.schedule.operations);
        let width = self.geometry.subpages_per_page as usize;
        self.programs[pages.start as usize..pages.end as usize].fill(0);
        self.payload.erase(pages.start as usize * width, pages.len() * width);
        if let Some(stripes) = &mut self.stripes {
            (stripes.erasing, stripes.reused) = (operation, reused);
        }
    }
}
