//! Recovery after a power cut: both tables and all states from flash, and checks of the layer against flash.
//!
//! Every subpage carries a logical number and the number of the program in the out-of-band area. The newest readable
//! copy of a logical subpage wins. Read counts and owned pages are lost. A page with a torn subpage is not programmed
//! again before the erase.

use super::Mga;
use super::map::{Target, UNMAPPED};
use crate::log::blocks::BlockState;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::{Flash, Outcome, PADDING, TORN, UNWRITTEN};
use palimpsest_ftl_api::plan::{Cause, Erase, Io, PairedIo, ParityIo, RecoveryIo};

impl Mga {
    /// Rebuilds everything from flash. Blocks whose erase was interrupted are erased again.
    pub(super) fn rebuild(&mut self, io: &mut Io) -> Flash<()> {
        assert_ne!(io.nand().payload(), Payload::None, "recovery needs the numbers that a payload keeps");
        io.recover_stripes()?;
        self.disturbed = true;
        self.failed.clear();
        self.collector.clear();
        self.map.clear();
        self.pages.forget(io);
        self.map_newest(io);
        let mut written = Vec::new();
        for block in 0..io.geometry().blocks() {
            self.adopt(io, block, &mut written)?;
        }
        io.keep_copies(|ppn| self.pages.valid(ppn) != 0);
        let nand = io.nand();
        let (cached, written): (Vec<u32>, Vec<u32>) =
            written.into_iter().partition(|&block| self.pages.space.frontiers.fixed.holds(block));
        let (mut begun, full): (Vec<u32>, Vec<u32>) =
            written.into_iter().partition(|&block| self.pages.space.has_pages(nand, block));
        self.frontiers().blocks.close_in_order(nand, full);
        self.frontiers().resume_cached(nand, cached);
        // The emptiest first, because they have most pages left.
        begun.sort_by_key(|&block| (nand.next_page(block), block));
        begun.into_iter().for_each(|block| self.pages.space.resume(nand, block));
        self.evacuate_failed(io)
    }

    /// Maps every logical subpage to the newest copy.
    fn map_newest(&mut self, io: &Io) {
        let (mut newest, n) = (io.newest_places(), self.subpages);
        newest.resize((self.map.logical_pages() * n) as usize, UNMAPPED);
        for (lpn, places) in newest.chunks(n as usize).enumerate() {
            let lpn = lpn as u32;
            if places.iter().all(|&psn| psn == UNMAPPED) {
                continue;
            }
            if n == 1 {
                self.map.set_full(lpn, places[0]);
                continue;
            }
            let entry = self.map.make_partial(lpn);
            for (index, &psn) in places.iter().enumerate() {
                self.map.set_place(entry, index as u32, psn);
            }
            self.map.settle(entry);
        }
    }

    /// Frees or retires `block`, or adds the block to `written`.
    fn adopt(&mut self, io: &mut Io, block: u32, written: &mut Vec<u32>) -> Flash<()> {
        let plane = io.geometry().plane_of_block(block);
        let first = block * io.geometry().pages_per_block;
        if io.nand().is_dead(block) {
            if self.frontiers().adopt_dead(io.nand(), block) {
                (first..first + io.nand().next_page(block)).for_each(|ppn| self.restore_page(io, ppn, true));
                written.push(block);
            }
            return Ok(());
        }
        let torn = io.nand().is_torn(block) && !io.nand().is_bad(block);
        if torn && io.erase(Erase::new(block, Cause::Gc))? == Outcome::Failed {
            self.counters.retired += 1;
        }
        let (bad, used) = (io.nand().is_bad(block), io.nand().next_page(block));
        if !self.frontiers().adopt(io.nand(), block) {
            return Ok(());
        }
        (first..first + used).for_each(|ppn| self.restore_page(io, ppn, bad));
        if bad {
            self.pages.space.drop_block(plane, block);
            self.failed.push(block);
        } else {
            written.push(block);
        }
        Ok(())
    }

    fn restore_page(&mut self, io: &Io, ppn: u32, bad: bool) {
        let n = self.subpages;
        let (mut valid, mut free, mut torn) = (0u64, 0u64, false);
        for subpage in 0..n {
            match io.nand().logical(ppn * n + subpage) {
                UNWRITTEN => free |= 1 << subpage,
                TORN => torn = true,
                PADDING => {}
                lsn if self.map.place(lsn / n, lsn % n) == ppn * n + subpage => valid |= 1 << subpage,
                _ => {}
            }
        }
        if bad || torn || !self.may_fill(io, ppn) {
            free = 0;
        }
        self.pages.restore(ppn, valid, free);
    }

    /// True if the rules allow another program of a programmed page.
    pub(super) fn may_fill(&self, io: &Io, ppn: u32) -> bool {
        let (rules, nand) = (self.pages.rules, io.nand());
        let (block, page) = nand.split(ppn);
        let open = match rules.strict {
            true => page + 1 == nand.next_page(block),
            false => !self.pages.is_high(ppn) && self.pages.partner(ppn).is_none_or(|high| nand.programs(high) == 0),
        };
        (1..rules.nop).contains(&nand.programs(ppn)) && open
    }

    /// Checks every table against itself and against flash.
    pub(super) fn check_all(&mut self, io: &Io) -> Result<(), String> {
        self.map.check()?;
        self.pages.check()?;
        self.check_mapped(io)?;
        self.check_free(io)?;
        if self
            .blocks_in_between()
            .any(|block| !matches!(self.blocks().state(block), BlockState::Victim | BlockState::Aside))
        {
            return Err("a block waits to be erased or retired that is no victim".into());
        }
        if !self.disturbed {
            let nand = io.nand();
            self.pages.check_transitions(|ppn| nand.programs(ppn) > 0 && !nand.is_kept(nand.split(ppn).0))?;
        }
        Ok(())
    }

    /// Checks that every mapped subpage is valid and agrees with the map, and that no other subpage is valid.
    fn check_mapped(&self, io: &Io) -> Result<(), String> {
        let n = self.subpages;
        let mut mapped = 0u64;
        for lpn in 0..self.map.logical_pages() {
            if self.map.look_up(lpn) == Target::Unmapped {
                continue;
            }
            for index in 0..n {
                let psn = self.map.place(lpn, index);
                if psn == UNMAPPED {
                    continue;
                }
                mapped += 1;
                if self.pages.valid(psn / n) >> (psn % n) & 1 == 0 {
                    return Err(format!(
                        "subpage {index} of logical page {lpn} is mapped to {psn}, which is not valid"
                    ));
                }
                let found = io.nand().logical(psn);
                if found != lpn * n + index {
                    return Err(format!(
                        "subpage {index} of logical page {lpn} is mapped to {psn}, which holds {found}"
                    ));
                }
            }
        }
        let valid: u64 = (0..io.geometry().blocks()).map(|block| u64::from(self.pages.valid_in_block(block))).sum();
        if valid != mapped {
            return Err(format!("{mapped} subpages are mapped but {valid} are valid"));
        }
        Ok(())
    }

    /// Checks that flash accepts programs of free subpages.
    fn check_free(&self, io: &Io) -> Result<(), String> {
        for ppn in 0..io.geometry().pages() as u32 {
            let free = self.pages.free(ppn);
            if free == 0 {
                continue;
            }
            if io.nand().programs(ppn) == 0 {
                return Err(format!("page {ppn} was never programmed but lists free subpages"));
            }
            let n = self.subpages;
            if (ppn * n..(ppn + 1) * n).any(|psn| io.nand().logical(psn) == TORN) {
                return Err(format!("page {ppn} lists free subpages beside a torn one"));
            }
            if let Err(rule) = io.nand().probe_program(ppn, free, false) {
                return Err(format!("page {ppn} has free subpages {free:#b}, but: {rule}"));
            }
        }
        Ok(())
    }
}
