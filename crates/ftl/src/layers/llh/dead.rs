//! Banks of a failed die: writes stop at the first program that fails there or when a block there is to be cleaned.
//!
//! Units of such a bank go to the other banks. A draw seeded with the unit names the bank, so a unit changes its bank
//! only when the die of that bank fails. Data of the die stays mapped, takes no space elsewhere, and is lost until the
//! host writes again.

use super::bank::NO_FRONTIER;
use super::buffers::{HOLE, NOT_WAITING};
use super::{BUFFERS_PER_BANK, IN_BUFFER, Llh, SLOTS};
use crate::log::blocks::{BlockState, NO_BLOCK};
use palimpsest_flash::nand::{Flash, Halt};
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::plan::Io;

/// Draws of a bank before a search.
const DRAWS: u32 = 64;

impl Llh {
    /// The bank that `unit` is written to.
    #[inline]
    pub(super) fn bank_of(&self, unit: u32) -> u32 {
        let (turn, home) = self.banks_by.split(unit);
        if self.lost.is_empty() { home } else { self.bank_instead(turn, home) }
    }

    #[cold]
    fn bank_instead(&self, turn: u32, home: u32) -> u32 {
        if !self.is_lost(home) {
            return home;
        }
        let (mut rng, banks) = (Rng::new(turn.into(), home.into()), self.banks_count());
        let drawn = (0..DRAWS).map(|_| rng.below(banks.into()) as u32);
        drawn.chain(0..banks).find(|&bank| !self.is_lost(bank)).unwrap_or(home)
    }

    /// True if the die of `bank` has failed, and writes there have stopped.
    #[inline]
    pub(super) fn is_lost(&self, bank: u32) -> bool {
        self.lost.get(bank as usize).is_some_and(|&lost| lost)
    }

    /// The banks on working dies.
    pub(super) fn working(&self) -> impl Iterator<Item = u32> {
        (0..self.banks_count()).filter(|&bank| !self.is_lost(bank))
    }

    /// Ends the drive if no bank is left.
    pub(super) fn any_works(&self) -> Flash<()> {
        self.working().next().map_or(Err(Halt::NoSpace), |_| Ok(()))
    }

    /// Returns true if the die of `block` has failed, and stops writes to the banks of the die.
    pub(super) fn lose_die_of(&mut self, io: &mut Io, block: u32) -> bool {
        let Some(banks) = io.nand().planes_lost_with(block) else { return false };
        let banks: Vec<u32> = banks.filter(|&bank| !self.is_lost(bank)).collect();
        self.note_lost(&banks);
        for bank in banks {
            self.lose_bank(io, bank);
        }
        true
    }

    pub(super) fn note_lost(&mut self, banks: &[u32]) {
        self.lost.resize(self.banks.len(), false);
        banks.iter().for_each(|&bank| self.lost[bank as usize] = true);
        self.disturbed = true;
    }

    /// Closes the open blocks of `bank`, retires the clean ones, and gives the buffered units to other banks.
    fn lose_bank(&mut self, io: &mut Io, bank: u32) {
        let own = &mut self.banks[bank as usize];
        let frontiers = std::mem::replace(&mut own.frontiers, [NO_FRONTIER; 2]).map(|frontier| frontier.block);
        let waiting = std::mem::take(&mut own.waiting);
        for block in frontiers.into_iter().filter(|&block| block != NO_BLOCK).chain(waiting.into_iter().flatten()) {
            self.blocks.close(block);
        }
        for block in self.blocks.free_of(bank).in_order() {
            self.blocks.open_this(block);
            self.blocks.retire(block);
            self.counters.retired += 1;
        }
        for kind in 0..BUFFERS_PER_BANK {
            self.scatter(io, bank, kind);
        }
    }

    /// Moves the slots of the buffer `kind` of `bank` to the banks that the units are written to now.
    pub(super) fn scatter(&mut self, io: &mut Io, bank: u32, kind: u32) {
        let from = Self::buffer_of(bank, kind);
        let page = std::mem::take(&mut self.buffers[from]);
        let since = std::mem::replace(&mut self.since[from], NOT_WAITING);
        let mut joined = Vec::new();
        for slot in page.slots {
            let to = Self::buffer_of(self.bank_of(if slot.unit == HOLE { bank } else { slot.unit }), kind);
            if slot.unit != HOLE && !slot.shadow {
                self.map[slot.unit as usize] = IN_BUFFER + kind * SLOTS + self.buffers[to].slots.len() as u32;
            }
            self.buffers[to].slots.push(slot);
            if !joined.contains(&to) {
                joined.push(to);
            }
        }
        for to in joined {
            self.join(io, to, (page.ready, page.done, page.from_host), since);
        }
    }

    /// After the die of a bank failed: programs the buffers `kind` of the others, which the units went to.
    #[cold]
    pub(super) fn drain_others(&mut self, io: &mut Io, kind: u32) -> Flash<()> {
        self.any_works()?;
        for bank in 0..self.banks_count() {
            if !self.is_lost(bank) && !self.buffers[Self::buffer_of(bank, kind)].slots.is_empty() {
                self.drain(io, bank, kind, true, false)?;
            }
        }
        Ok(())
    }

    /// After a power cut: adopts `block` of a failed die. True if the block stores anything.
    pub(super) fn adopt_dead(&mut self, io: &Io, block: u32) -> bool {
        debug_assert_eq!(self.blocks.state(block), BlockState::Free);
        self.blocks.open_this(block);
        if io.nand().next_page(block) == 0 || io.nand().is_torn(block) {
            self.blocks.retire(block);
            return false;
        }
        self.mark_valid(io, block);
        true
    }
}
