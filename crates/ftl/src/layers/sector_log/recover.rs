//! Recovery after a power cut: the log's map from flash, and checks of the layer against itself and against flash.
//!
//! The newest program of a subpage wins, in the log or in the data region. If a data page moved while the log held
//! newer content of some subpages, the moved page has padding there
//! ([`crate::maps::shared::SharedMap::set_outside`]), and the log wins.

use super::log::{CLOSED, Frontier, SubpageLog};
use super::{SectorLog, bits};
use crate::log::Location;
use crate::log::blocks::{BlockState, Blocks, NO_BLOCK};
use crate::log::map::Map;
use palimpsest_flash::nand::{Flash, Outcome, TORN};
use palimpsest_ftl_api::plan::{Cause, CheckpointIo, Erase, Io, ParityIo, RecoveryIo};

impl SectorLog {
    pub(super) fn recover_all(&mut self, io: &mut Io) -> Flash<()> {
        io.recover_stripes()?;
        // A checkpoint has the places of subpages, but not the map of the data region.
        io.drop_tables();
        let survivors = self.data.recover_map(io);
        self.log.find_newest(io);
        for page in 0..self.log.index.len() as u32 {
            let held = self.log.held(page);
            self.data.map.set_outside(page, held);
            if held == self.all {
                self.data.map.unmap(page);
            }
        }
        let failed = self.log.adopt_blocks(io)?;
        self.data.recover_blocks(io, survivors)?;
        for block in failed {
            self.retire(io, block)?;
        }
        Ok(())
    }

    /// Checks everything. Slow: for tests and the end of a run.
    pub(super) fn check_all(&mut self, io: &Io) -> Result<(), String> {
        self.data.check(io)?;
        self.log.check(io)?;
        for page in 0..self.log.index.len() as u32 {
            let (held, outside) = (self.log.held(page), self.data.map.outside(page));
            if held != outside {
                return Err(format!("the log holds subpages {held:#b} of page {page}, not {outside:#b}"));
            }
            if held == self.all && self.data.locate(page) != Location::Unmapped {
                return Err(format!("page {page} is valid, though the log holds all of it"));
            }
        }
        Ok(())
    }
}

impl SubpageLog {
    /// Maps every subpage whose newest copy is in the log.
    fn find_newest(&mut self, io: &Io) {
        self.index.fill(u32::MAX);
        self.entries.clear();
        self.free_entries.clear();
        self.held = 0;
        for (logical, psn) in (0..).zip(io.newest_places()) {
            if psn != u32::MAX && self.owned[self.per_block.divide(psn) as usize] {
                let (page, subpage) = self.split(logical);
                self.map(page, subpage, psn);
            }
        }
    }

    /// Rebuilds the states of the blocks. Returns the failed ones, as victims.
    fn adopt_blocks(&mut self, io: &mut Io) -> Flash<Vec<u32>> {
        let geometry = *io.geometry();
        self.blocks = Blocks::new(&geometry, geometry.subpages_per_block(), |block| !self.owned[block as usize]);
        self.frontiers.fill(CLOSED);
        (self.opened, self.free_blocks, self.usable, self.lost) = (0, 0, 0, 0);
        let (mut written, mut failed) = (Vec::new(), Vec::new());
        for block in 0..geometry.blocks() {
            if !self.owned[block as usize] {
                continue;
            }
            if io.nand().is_dead(block) {
                self.adopt_dead(io, block, &mut written);
                continue;
            }
            self.usable += 1;
            if io.nand().is_torn(block) && !io.nand().is_bad(block) {
                // A failed erase makes the block bad.
                let _: Outcome = io.erase(Erase::new(block, Cause::Merge))?;
            }
            if io.nand().is_bad(block) {
                self.blocks.open_this(block);
                self.blocks.abandon(block);
                failed.push(block);
            } else if io.nand().next_page(block) == 0 {
                self.free_blocks += 1;
            } else {
                self.blocks.open_this(block);
                written.push(block);
            }
        }
        self.mark_valid();
        written.sort_by_key(|&block| io.nand().sequence(block * geometry.subpages_per_block()));
        self.resume(io, &written);
        Ok(failed)
    }

    /// Adopts `block` of a failed die.
    fn adopt_dead(&mut self, io: &Io, block: u32, written: &mut Vec<u32>) {
        self.rotation.pass_by(io.geometry().plane_of_block(block));
        self.blocks.open_this(block);
        if io.nand().next_page(block) == 0 || io.nand().is_torn(block) {
            self.blocks.abandon(block);
            self.blocks.retire(block);
        } else {
            self.lost += 1;
            written.push(block);
        }
    }

    fn mark_valid(&mut self) {
        for page in 0..self.index.len() as u32 {
            for subpage in bits(self.held(page)) {
                let (ppn, index) = self.split(self.place(page, subpage));
                let (block, page_in_block) = (ppn / self.pages_per_block, ppn % self.pages_per_block);
                self.blocks.validate(block, page_in_block * self.subpages + index);
            }
        }
    }

    /// Resumes the newest blocks with pages left; their last programmed page takes no more. Closes all others.
    fn resume(&mut self, io: &Io, written: &[u32]) {
        let most = self.most_opened();
        for &block in written.iter().rev() {
            let (plane, next_page) = (io.geometry().plane_of_block(block) as usize, io.nand().next_page(block));
            let vacant =
                !self.rotation.passes_by(plane as u32) && self.frontiers[plane].block == NO_BLOCK && self.opened < most;
            if vacant && next_page < self.pages_per_block {
                self.frontiers[plane] = Frontier { block, next_page, free: 0 };
                self.opened += 1;
            }
        }
        for &block in written {
            let plane = io.geometry().plane_of_block(block) as usize;
            if self.frontiers[plane].block != block {
                self.blocks.close(block);
            }
        }
    }

    fn check(&mut self, io: &Io) -> Result<(), String> {
        self.blocks.check()?;
        let (mut held, mut entries) = (0u64, 0);
        for page in 0..self.index.len() as u32 {
            entries += usize::from(self.index[page as usize] != u32::MAX);
            if self.index[page as usize] != u32::MAX && self.held(page) == 0 {
                return Err(format!("page {page} has an entry of the log that holds nothing"));
            }
            for subpage in bits(self.held(page)) {
                held += 1;
                let (psn, lsn) = (self.place(page, subpage), page * self.subpages + subpage);
                let block = psn / self.blocks.units_per_block();
                let found = io.nand().logical(psn);
                if found != lsn || !self.owned[block as usize] {
                    return Err(format!("subpage {lsn} is mapped to {psn} of the log, which holds {found}"));
                }
                if !self.blocks.is_valid(block, psn % self.blocks.units_per_block()) {
                    return Err(format!("subpage {lsn} is at {psn} of the log, which is not valid"));
                }
            }
        }
        let valid: u64 = (0..io.geometry().blocks()).map(|block| u64::from(self.blocks.valid_count(block))).sum();
        if held != valid || held != self.held {
            return Err(format!("the log holds {held} subpages, counts {} and has {valid} valid", self.held));
        }
        let all = self.entries.len() / (self.subpages as usize + 1);
        if entries + self.free_entries.len() != all {
            return Err(format!("{entries} entries are used, {} free, of {all}", self.free_entries.len()));
        }
        self.check_blocks(io)
    }

    fn check_blocks(&self, io: &Io) -> Result<(), String> {
        let in_state = |wanted: BlockState| {
            let blocks = (0..io.geometry().blocks()).filter(|&block| self.owned[block as usize]);
            blocks.filter(|&block| self.blocks.state(block) == wanted).count() as u32
        };
        let counts = [self.free_blocks, self.opened, self.retired()];
        let found = [BlockState::Free, BlockState::Open, BlockState::Retired].map(in_state);
        let planes = (0..io.geometry().planes()).filter(|&plane| self.rotation.passes_by(plane));
        let lost: u32 = planes.map(|plane| self.blocks.closed(plane).len() as u32).sum();
        if lost != self.lost {
            return Err(format!("the log counts {} closed blocks of failed dies, but has {lost}", self.lost));
        }
        if counts != found {
            return Err(format!("the log counts {counts:?} free, open and retired blocks, but has {found:?}"));
        }
        for frontier in self.frontiers.iter().filter(|frontier| frontier.block != NO_BLOCK) {
            let Frontier { block, next_page, free } = *frontier;
            let next = io.nand().next_page(block);
            let last = (block * self.pages_per_block + next_page).wrapping_sub(1);
            let taken = (0..self.subpages)
                .find(|&index| free >> index & 1 == 1 && io.nand().logical(last * self.subpages + index) < TORN);
            if next != next_page || taken.is_some() {
                return Err(format!("block {block} of the log is at page {next}, not {next_page}; {taken:?} is taken"));
            }
        }
        Ok(())
    }
}
