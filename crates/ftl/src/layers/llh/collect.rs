//! Cleaning: greedy garbage collection in each bank, wear levelling, and evacuation of failing blocks.
//!
//! Victims are used and reused blocks; moved units are cold. Cleaning writes before an erase frees space, so the host
//! never gets the last clean block of a bank. Each victim moves the bank's threshold of partially-used blocks.

use super::bank::{RESERVE, UseState};
use super::buffers::{HOLE, Slot};
use super::threshold::{Cleaned, ThresholdRule};
use super::{COLD, HOT, Llh, MOVED, UNMAPPED};
use crate::log::Append;
use crate::log::blocks::BlockState;
use crate::log::portions::{InPortions, Portions};
use crate::log::settings::WearLeveling;
use crate::log::victim::Candidates;
use palimpsest_flash::nand::part::ProgramOrder;
use palimpsest_flash::nand::{Flash, Outcome};
use palimpsest_ftl_api::plan::{Cause, CodedIo, Erase, Gate, Io, Read};

/// Collections between two checks of static wear levelling.
const WEAR_CHECK_EVERY: u32 = 8;

impl InPortions for Llh {
    fn portions(&mut self) -> &mut Portions {
        &mut self.portions
    }

    fn copied(&self) -> u64 {
        self.counters.moved_units
    }

    fn closed_blocks(&self, bank: u32) -> usize {
        self.blocks.closed(bank).len()
    }

    fn collect_one(&mut self, io: &mut Io, bank: u32) -> Flash<bool> {
        let Some(victim) = self.choose(io, bank) else { return Ok(false) };
        self.clean_victim(io, bank, victim)?;
        Ok(true)
    }
}

impl Llh {
    /// Collects until `bank` has more clean blocks than the stop threshold, or no victim gains.
    pub(super) fn collect_until(&mut self, io: &mut Io, bank: u32) -> Flash<()> {
        self.collect_while(io, bank, |llh| llh.blocks.free_count(bank) <= llh.gc_stop)
    }

    /// Cleans until `bank` has `wanted` clean blocks, however little each gains. Stops if no victim gains.
    #[cold]
    pub(super) fn make_space(&mut self, io: &mut Io, bank: u32, wanted: u32) -> Flash<()> {
        let closed = self.blocks.closed(bank).len();
        for attempt in 0..2 * closed + 2 {
            if self.blocks.free_count(bank) >= wanted || self.is_lost(bank) {
                return Ok(());
            }
            // The choice of the policy may gain little; in the end only space counts.
            let victim = if attempt <= closed { self.choose(io, bank) } else { self.fewest_valid(io, bank) };
            let Some(victim) = victim.or_else(|| self.close_waiting(io, bank)) else { break };
            self.clean_victim(io, bank, victim)?;
        }
        if self.emptying.iter().any(|&(block, _)| !io.nand().is_dead(block)) {
            self.drain(io, bank, MOVED, true, true)?;
        }
        Ok(())
    }

    /// On an ideal part, waiting blocks have no page left: they may be cleaned when no other block gains.
    fn close_waiting(&mut self, io: &Io, bank: u32) -> Option<u32> {
        if io.nand().part().order != ProgramOrder::LowHighLow {
            return None;
        }
        for stream in [HOT, COLD] {
            for block in std::mem::take(&mut self.banks[bank as usize].waiting[stream as usize]) {
                self.blocks.close(block);
            }
        }
        self.fewest_valid(io, bank)
    }

    /// Cleans one block in the background, in the bank with the fewest clean blocks. False if nothing was cleaned.
    pub(super) fn collect_in_background(&mut self, io: &mut Io) -> Flash<bool> {
        let fewest = self.working().min_by_key(|&bank| self.blocks.free_count(bank));
        let Some(bank) = fewest else { return Ok(false) };
        let done = self.blocks.free_count(bank) <= self.gc_idle_stop && self.collect_one(io, bank)?;
        self.evacuate_failed(io)?;
        Ok(done)
    }

    /// The victim of the policy if the valid units fit elsewhere, else the block that needs the least room.
    fn choose(&mut self, io: &Io, bank: u32) -> Option<u32> {
        let erases = |block: u32| io.nand().erases(block);
        let candidates = Candidates { blocks: &mut self.blocks, plane: bank, erases: &erases };
        let victim = self.victim.choose(candidates, &mut self.rng)?;
        if self.fits(io, bank, victim, self.slack) { Some(victim) } else { self.fewest_valid(io, bank) }
    }

    fn fewest_valid(&mut self, io: &Io, bank: u32) -> Option<u32> {
        let victim = self.blocks.fewest_valid(bank)?;
        let gains = self.blocks.valid_count(victim) < self.blocks.units_per_block();
        (gains && self.fits(io, bank, victim, 0)).then_some(victim)
    }

    /// True if the units of `victim` and `slack` pages fit into the clean pages of `bank`, and those that the next
    /// program frees.
    fn fits(&self, io: &Io, bank: u32, victim: u32, slack: u32) -> bool {
        if self.blocks.valid_count(victim) == 0 || self.is_lost(bank) {
            return !self.is_lost(bank);
        }
        let waiting = self.buffers[Self::buffer_of(bank, MOVED)].slots.len() as u32;
        // A partial page waits for the next victim, but may need a page if power cuts lose buffers.
        let rest = if slack > 0 && !self.protected { self.subpages - 1 } else { 0 };
        let needed = (waiting + self.blocks.valid_count(victim) + rest) / self.subpages + slack;
        let clean = self.blocks.free_count(bank) * self.pages_per_block;
        if needed <= clean {
            return true;
        }
        let free = clean + self.pages_left(io, bank);
        // Units in a buffer are not moved again.
        let needed = needed.min(
            (waiting + self.blocks.valid_count(victim) - self.buffered_of(bank, victim) + rest) / self.subpages + slack,
        );
        let emptying = self.emptying.iter().filter(|(block, _)| self.bank_of_block(*block) == bank).count() as u32;
        needed <= free || (free > 0 && needed <= free + emptying * self.pages_per_block)
    }

    /// Units of `victim` with newer content in a buffer: cleaning drops their copies, or has moved them already.
    fn buffered_of(&self, bank: u32, victim: u32) -> u32 {
        let kinds = if self.protected { HOT..=MOVED } else { MOVED..=MOVED };
        let slots = kinds.flat_map(|kind| &self.buffers[Self::buffer_of(bank, kind)].slots);
        let of_victim = |slot: &&Slot| {
            slot.unit != HOLE
                && !slot.shadow
                && slot.previous != UNMAPPED
                && self.per_block.divide(slot.previous) == victim
        };
        slots.filter(of_victim).count() as u32
    }

    fn clean_victim(&mut self, io: &mut Io, bank: u32, victim: u32) -> Flash<()> {
        self.counters.collections += 1;
        let (valid, window) = (self.blocks.valid_count(victim), self.settings.threshold_window as usize);
        let limit = self.threshold_limit(bank);
        let threshold = &mut self.banks[bank as usize].threshold;
        match self.settings.threshold_rule {
            ThresholdRule::Paper => threshold.update(valid, window, limit),
            ThresholdRule::Published => threshold.record(valid, window),
            ThresholdRule::Outside => self.adapt(io, bank, valid, limit),
        }
        self.clean(io, victim)?;
        if self.settings.log.wear_leveling == WearLeveling::Static {
            self.level_wear(io, bank)?;
        }
        Ok(())
    }

    /// Lets a rule outside of this crate choose the threshold of `bank`, whose victim has `valid` valid units.
    #[cold]
    fn adapt(&mut self, io: &Io, bank: u32, valid: u32, most: u32) {
        let threshold = self.banks[bank as usize].threshold.now;
        let victim = Cleaned {
            bank,
            now: io.present.now,
            valid,
            units: self.blocks.units_per_block(),
            threshold,
            most: most.max(threshold),
            waiting: self.waiting_blocks(bank),
            clean: self.blocks.free_count(bank),
        };
        let chosen = self.rule.as_mut().and_then(|rule| rule.adapt(&victim));
        let threshold = &mut self.banks[bank as usize].threshold;
        chosen.into_iter().for_each(|chosen| threshold.set(chosen.min(victim.most)));
    }

    /// As [`palimpsest_ftl_api::Ftl::relocate`].
    pub(super) fn relocate_block(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        let bank = self.bank_of_block(block);
        if self.blocks.state(block) != BlockState::Closed || !self.fits(io, bank, block, self.slack) {
            return Ok(false);
        }
        self.clean(io, block)?;
        self.evacuate_failed(io)?;
        Ok(true)
    }

    /// Moves the valid units of a closed block away and erases the block, at once or after the last copy is programmed.
    fn clean(&mut self, io: &mut Io, victim: u32) -> Flash<()> {
        self.blocks.take_victim(victim);
        let moved = self.move_valid(io, victim)?;
        if self.blocks.valid_count(victim) > 0 {
            self.emptying.push((victim, moved));
            return Ok(());
        }
        self.erase(io, victim, moved)
    }

    /// Erases a victim after the gate `moved`, or retires the victim of a failed die.
    fn erase(&mut self, io: &mut Io, victim: u32, moved: Gate) -> Flash<()> {
        if self.is_lost(self.bank_of_block(victim)) {
            self.blocks.retire(victim);
            self.counters.retired += 1;
            return Ok(());
        }
        match io.erase(Erase { after: moved, ..Erase::new(victim, Cause::Gc) })? {
            Outcome::Done => {
                self.counters.erased += 1;
                match std::mem::replace(&mut self.use_states[victim as usize], UseState::Clean) {
                    UseState::Reused => self.transitions.reused_clean += 1,
                    _ => self.transitions.used_clean += 1,
                }
                self.blocks.release(victim);
            }
            Outcome::Failed => {
                self.counters.retired += 1;
                self.disturbed = true;
                self.blocks.retire(victim);
            }
        }
        Ok(())
    }

    /// Erases the victims whose last units have been programmed elsewhere.
    #[cold]
    pub(super) fn erase_emptied(&mut self, io: &mut Io) -> Flash<()> {
        let mut index = 0;
        while let Some(&(victim, moved)) = self.emptying.get(index) {
            let page = Self::buffer_of(self.bank_of_block(victim), MOVED);
            // A victim that trims emptied waits for the buffer, too, because the gate does.
            if self.blocks.valid_count(victim) == 0 && self.buffers[page].slots.is_empty() {
                self.emptying.remove(index);
                self.erase(io, victim, moved)?;
            } else {
                index += 1;
            }
        }
        Ok(())
    }

    /// Moves every valid unit of `victim`. The returned gate closes when all copies are safe.
    fn move_valid(&mut self, io: &mut Io, victim: u32) -> Flash<Gate> {
        let safe = if self.blocks.valid_count(victim) > 0 && !self.protected { io.gate() } else { Gate::NONE };
        for page in 0..self.pages_per_block {
            // Data of a failed die is lost.
            if self.lose_die_of(io, victim) {
                break;
            }
            let units = self.blocks.valid_bits(victim, page * self.subpages, self.subpages);
            if units != 0 {
                self.move_page(io, victim * self.pages_per_block + page, units, safe)?;
            }
        }
        Ok(safe)
    }

    /// Moves the units `units` (as bits) of page `ppn`.
    fn move_page(&mut self, io: &mut Io, ppn: u32, units: u64, safe: Gate) -> Flash<()> {
        let arrived = io.gate();
        let read = Read { policy: self.settings.log.read, signal: arrived, ..Read::new(ppn, units, Cause::Gc) };
        if self.is_coded(io, ppn) {
            io.read_coded(read, self.settings.wom_decode_time)?
        } else {
            io.read(read)?
        }
        self.counters.moved_units += u64::from(units.count_ones());
        let mut rest = units;
        while rest != 0 {
            let psn = ppn * self.subpages + rest.trailing_zeros();
            rest &= rest - 1;
            let what = Append {
                unit: io.nand().logical(psn),
                data: self.content(io, psn),
                cause: Cause::Gc,
                after: arrived,
                signal: safe,
                holds: 0,
            };
            self.move_unit(io, what, psn)?;
        }
        Ok(())
    }

    /// Adds a moved unit to the buffer of moved data. If a buffer holds newer content, the stale copy is dropped with
    /// protected buffers; otherwise the copy moves as a shadow.
    fn move_unit(&mut self, io: &mut Io, what: Append, psn: u32) -> Flash<()> {
        let (block, index) = self.per_block.split(psn);
        // A power cut may have left the buffer full. One more unit would require two pages at once.
        self.drain_full(io, what.unit, block)?;
        let buffer = Self::buffer_of(self.bank_of(what.unit), MOVED);
        if !self.blocks.is_valid(block, index) {
            // The program of a buffer during this move made the copy obsolete.
            return Ok(());
        }
        let entry = self.map[what.unit as usize];
        if entry == psn {
            let previous = if self.protected { UNMAPPED } else { psn };
            self.push(io, MOVED, what, previous);
            if self.protected {
                self.invalidate(psn);
            }
        } else {
            let (newer, slot) = self.slot_of(what.unit, entry);
            if self.protected {
                self.buffers[newer].slots[slot].previous = UNMAPPED;
                self.invalidate(psn);
                return Ok(());
            }
            if newer == buffer {
                self.attach(io, buffer, what);
                return Ok(());
            }
            self.push_shadow(io, what, psn);
        }
        self.drain_full(io, what.unit, block)
    }

    /// Programs the buffer of moved data that takes `unit` if full. Other banks than the bank of `victim` may clean for
    /// a page.
    fn drain_full(&mut self, io: &mut Io, unit: u32, victim: u32) -> Flash<()> {
        let bank = self.bank_of(unit);
        match (self.buffers[Self::buffer_of(bank, MOVED)].slots.len() as u32) < self.subpages {
            true => Ok(()),
            false => self.drain(io, bank, MOVED, false, bank == self.bank_of_block(victim)),
        }
    }

    /// Moves valid units out of failed blocks, and retires the blocks, on a failed die once the host has written all
    /// units again.
    pub(super) fn evacuate_failed(&mut self, io: &mut Io) -> Flash<()> {
        while let Some(block) = self.failed.pop() {
            self.move_valid(io, block)?;
            let bank = self.bank_of_block(block);
            if self.blocks.valid_count(block) > 0 && !self.is_lost(bank) {
                self.drain(io, bank, MOVED, true, true)?;
            }
            match self.blocks.valid_count(block) {
                0 => self.blocks.retire(block),
                _ => self.emptying.push((block, Gate::NONE)),
            }
        }
        Ok(())
    }

    /// Moves the least worn closed block of `bank` if the spread of erases exceeds the threshold. The data there is
    /// cold, so the freed block wears faster afterwards.
    fn level_wear(&mut self, io: &mut Io, bank: u32) -> Flash<()> {
        self.wear_checks += 1;
        if !self.wear_checks.is_multiple_of(WEAR_CHECK_EVERY) || self.blocks.free_count(bank) < RESERVE {
            return Ok(());
        }
        let least = self.blocks.least_worn(bank, self.settings.log.wear_threshold, |block| io.nand().erases(block));
        if let Some(least) = least.filter(|&least| self.fits(io, bank, least, self.slack)) {
            self.counters.wear_moves += 1;
            self.clean(io, least)?;
        }
        Ok(())
    }
}
