//! Recovery after a power cut: the map and the states of blocks from flash, and checks of the layer against flash.
//!
//! Every subpage carries a logical number and the number of the program in the out-of-band area. The newest readable
//! copy of a unit wins. Programmed pages show the progress of a block: blocks with low pages alone wait for reuse,
//! others continue pair by pair. Buffers are restored if protected, and lost if programs acknowledge writes.

use super::bank::{Frontier, NO_FRONTIER, Round, UseState};
use super::buffers::{Buffer, HOLE, NOT_WAITING};
use super::{BUFFERS_PER_BANK, COLD, HOT, IN_BUFFER, Llh, MOVED, SLOTS, UNMAPPED};
use crate::log::blocks::{BlockState, Blocks, NO_BLOCK};
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::part::ProgramOrder;
use palimpsest_flash::nand::{Flash, Outcome, TORN};
use palimpsest_ftl_api::plan::{Cause, Erase, Io, PairedIo, ParityIo, RecoveryIo};

/// A block that was written up to position `step` of the round.
struct Begun {
    block: u32,
    round: Round,
    step: u32,
}

impl Llh {
    /// Rebuilds everything from flash. Blocks whose erase was interrupted are erased again.
    pub(super) fn rebuild(&mut self, io: &mut Io) -> Flash<()> {
        assert_ne!(io.nand().payload(), Payload::None, "recovery needs the numbers that a payload keeps");
        io.recover_stripes()?;
        let (geometry, units) = (*io.geometry(), self.map.len());
        self.disturbed = true;
        self.failed.clear();
        self.emptying.clear();
        self.map = io.newest_places();
        self.map.resize(units, UNMAPPED);
        self.blocks = Blocks::new(&geometry, geometry.subpages_per_block(), |_| false);
        for bank in &mut self.banks {
            bank.frontiers = [NO_FRONTIER; 2];
            bank.waiting.iter_mut().for_each(Vec::clear);
        }
        let dead = |&bank: &u32| io.nand().is_dead(bank * geometry.blocks_per_plane);
        let dead: Vec<u32> = (0..geometry.planes()).filter(dead).collect();
        if !dead.is_empty() {
            self.note_lost(&dead);
        }
        // Must precede every flash operation, because the power may be cut again.
        self.restore_buffers(io);
        for bank in dead {
            (0..BUFFERS_PER_BANK).for_each(|kind| self.scatter(io, bank, kind));
        }
        let mut begun = Vec::new();
        for block in 0..geometry.blocks() {
            self.adopt(io, block, &mut begun)?;
        }
        io.keep_copies(|ppn| {
            let (block, page) = (ppn / self.pages_per_block, ppn % self.pages_per_block);
            self.blocks.valid_bits(block, page * self.subpages, self.subpages) != 0
        });
        let full = |begun: &Begun| begun.step >= geometry.pages_per_block;
        self.blocks
            .close_in_order(io.nand(), begun.iter().filter(|begun| full(begun)).map(|begun| begun.block).collect());
        begun.retain(|begun| !full(begun));
        self.resume(io, begun)?;
        self.find_oldest();
        self.evacuate_failed(io)
    }

    fn restore_buffers(&mut self, io: &mut Io) {
        for buffer in 0..self.buffers.len() {
            let (old, kind) = (std::mem::take(&mut self.buffers[buffer]), buffer as u32 % BUFFERS_PER_BANK);
            if !self.protected {
                old.slots.iter().filter(|slot| slot.unit != HOLE).for_each(|slot| io.unpin(slot.data));
                self.since[buffer] = NOT_WAITING;
                continue;
            }
            let mut restored = Buffer::default();
            for mut slot in old.slots {
                if slot.unit != HOLE {
                    let entry = IN_BUFFER + kind * SLOTS + restored.slots.len() as u32;
                    slot.previous = std::mem::replace(&mut self.map[slot.unit as usize], entry);
                }
                restored.slots.push(slot);
            }
            self.buffers[buffer] = restored;
        }
    }

    /// Makes `block` clean, retired or waiting, or adds the block to `begun`.
    fn adopt(&mut self, io: &mut Io, block: u32, begun: &mut Vec<Begun>) -> Flash<()> {
        if io.nand().is_dead(block) {
            if self.adopt_dead(io, block) {
                begun.push(Begun { block, round: Round::Whole, step: self.pages_per_block });
            }
            return Ok(());
        }
        let torn = io.nand().is_torn(block) && !io.nand().is_bad(block);
        if torn && io.erase(Erase::new(block, Cause::Gc))? == Outcome::Failed {
            self.counters.retired += 1;
        }
        let (bad, used) = (io.nand().is_bad(block), io.nand().next_page(block));
        self.use_states[block as usize] = UseState::Clean;
        if used == 0 && !bad {
            return Ok(());
        }
        self.blocks.open_this(block);
        self.mark_valid(io, block);
        if bad {
            self.blocks.abandon(block);
            self.failed.push(block);
            return Ok(());
        }
        let (first, nand) = (block * self.pages_per_block, io.nand());
        let programs = |page: u32| nand.programs(first + page);
        let pages = |high: bool| (0..self.pages_per_block).filter(move |&page| nand.is_high(page) == high);
        let highs = pages(true).filter(|&page| programs(page) > 0).count();
        let reused = pages(false).any(|page| programs(page) > 1);
        let left_out = nand.left_out(block);
        let in_order = (0..used).all(|page| programs(page) > 0 || left_out.contains(&page));
        let low_left = pages(false).find(|&page| programs(page) == 0);
        self.use_states[block as usize] = if reused { UseState::Reused } else { UseState::Used };
        if in_order && !reused {
            // Blocks of two pairs look the same after a round of low pages and in the standard order.
            begun.push(Begun { block, round: Round::Whole, step: nand.written_up_to(block) });
        } else if let (0, Some(low)) = (highs, low_left) {
            self.use_states[block as usize] = UseState::Clean;
            begun.push(Begun { block, round: Round::Low, step: used.min(low) });
        } else if highs == 0 {
            self.wait_again(block);
        } else {
            let round = if nand.part().order == ProgramOrder::LowLowHigh { Round::Again } else { Round::High };
            begun.push(Begun { block, round, step: self.first_pair_left(io, block) });
        }
        Ok(())
    }

    /// Position, in the order by pairs, of the low page whose high page is programmed next; the number of pages if no
    /// high page is left.
    fn first_pair_left(&self, io: &Io, block: u32) -> u32 {
        let (first, nand) = (block * self.pages_per_block, io.nand());
        let left = |&step: &u32| {
            let page = self.page_at(io, Round::High, step);
            nand.is_high(page) && nand.programs(first + page) == 0
        };
        (0..self.pages_per_block).find(left).map_or(self.pages_per_block, |step| step - nand.dies_in_turn())
    }

    pub(super) fn mark_valid(&mut self, io: &Io, block: u32) {
        let per_block = self.blocks.units_per_block();
        for index in 0..per_block {
            let psn = block * per_block + index;
            let unit = io.nand().logical(psn);
            if unit >= TORN {
                continue;
            }
            let entry = self.map[unit as usize];
            let on_flash = if entry == UNMAPPED || entry < IN_BUFFER {
                entry
            } else {
                let (buffer, slot) = self.slot_of(unit, entry);
                self.buffers[buffer].slots[slot].previous
            };
            if on_flash == psn {
                self.blocks.validate(block, index);
            }
        }
    }

    /// Makes frontiers of blocks with pages left. Blocks in the standard order come first, the emptiest first, for cold
    /// and moved data; the others serve hot data.
    fn resume(&mut self, io: &mut Io, mut begun: Vec<Begun>) -> Flash<()> {
        begun.sort_by_key(|begun| (begun.round != Round::Whole, begun.step, begun.block));
        for Begun { block, round, step } in begun {
            let bank = self.bank_of_block(block);
            let order = if round == Round::Whole { [COLD, HOT] } else { [HOT, COLD] };
            let vacant = order.into_iter().find(|&stream| self.frontier(bank, stream).block == NO_BLOCK);
            match (vacant, round) {
                (Some(COLD) | None, Round::Low) => self.wait_again(block),
                (None, Round::Whole) if self.has_low_pages_alone(io, block) => self.wait_again(block),
                (Some(stream), _) => {
                    // Blocks for cold data store whole pages.
                    let round = if stream == COLD && round == Round::Again { Round::High } else { round };
                    let kept = round == Round::Low;
                    let frontier = Frontier { block, round, step, kept, ..NO_FRONTIER };
                    self.banks[bank as usize].frontiers[stream as usize] = frontier;
                    self.seek(io, bank, stream, step)?;
                }
                (None, _) => self.blocks.close(block),
            }
        }
        Ok(())
    }

    /// Adds `block` to the blocks that wait for reuse of their low pages; the threshold decides when.
    fn wait_again(&mut self, block: u32) {
        self.use_states[block as usize] = UseState::PartiallyUsed;
        let bank = self.bank_of_block(block) as usize;
        self.banks[bank].waiting[HOT as usize].push(block);
    }

    /// True if no high page of `block` was programmed.
    fn has_low_pages_alone(&self, io: &Io, block: u32) -> bool {
        let (first, nand) = (block * self.pages_per_block, io.nand());
        let mut pages = 0..self.pages_per_block;
        pages.all(|page| !nand.is_high(page) || nand.programs(first + page) == 0)
    }

    /// Checks every table against itself and against flash.
    pub(super) fn check_all(&mut self, io: &Io) -> Result<(), String> {
        self.blocks.check()?;
        self.check_mapped(io)?;
        self.check_life(io)
    }

    /// Checks that every mapped unit is valid and agrees with the map, and that no other unit is valid.
    fn check_mapped(&self, io: &Io) -> Result<(), String> {
        let mut copies = 0u64;
        for unit in 0..self.map.len() as u32 {
            let psn = match self.map[unit as usize] {
                entry if entry != UNMAPPED && entry >= IN_BUFFER => {
                    let (buffer, slot) = self.slot_of(unit, entry);
                    let slot = self.buffers[buffer].slots[slot];
                    if slot.unit != unit || slot.shadow {
                        return Err(format!("unit {unit} is mapped to a buffer that holds {}", slot.unit));
                    }
                    slot.previous
                }
                entry => entry,
            };
            if psn == UNMAPPED {
                continue;
            }
            copies += 1;
            let (block, index) = self.per_block.split(psn);
            if !self.blocks.is_valid(block, index) {
                return Err(format!("unit {unit} is mapped to {psn}, which is not valid"));
            }
            let found = io.nand().logical(psn);
            if found != unit {
                return Err(format!("unit {unit} is mapped to {psn}, which holds {found}"));
            }
            let bank = self.bank_of_block(block);
            if bank != self.bank_of(unit) && !self.is_lost(bank) {
                return Err(format!("unit {unit} is in block {block}, which is not of its bank"));
            }
        }
        let valid: u64 = (0..io.geometry().blocks()).map(|block| u64::from(self.blocks.valid_count(block))).sum();
        if valid != copies {
            return Err(format!("{copies} units are mapped to flash but {valid} are valid"));
        }
        Ok(())
    }

    /// Checks blocks against their states and the transitions so far.
    fn check_life(&self, io: &Io) -> Result<(), String> {
        let mut counts = [0u64; 3];
        for (block, &use_state) in (0..).zip(&self.use_states) {
            let state = self.blocks.state(block);
            let waits =
                self.banks[self.bank_of_block(block) as usize].waiting.iter().flatten().any(|&one| one == block);
            if waits && state != BlockState::Open || state == BlockState::Free && use_state != UseState::Clean {
                return Err(format!("block {block} is {use_state:?} and {state:?}, which cannot be"));
            }
            let again =
                (0..self.pages_per_block).any(|page| io.nand().programs(block * self.pages_per_block + page) > 1);
            let writes = self.banks[self.bank_of_block(block) as usize].frontiers.iter().any(|one| one.block == block);
            if !self.disturbed && !writes && again != (use_state == UseState::Reused) {
                return Err(format!("block {block} is {use_state:?}, but its low pages on flash disagree"));
            }
            match use_state {
                UseState::PartiallyUsed => counts[0] += 1,
                UseState::Used => counts[1] += 1,
                UseState::Reused => counts[2] += 1,
                UseState::Clean => {}
            }
        }
        let moves = &self.transitions;
        let expected = [
            moves.clean_partially_used.wrapping_sub(moves.partially_used_reused + moves.partially_used_used),
            (moves.clean_used + moves.partially_used_used).wrapping_sub(moves.used_clean + moves.used_reused),
            (moves.partially_used_reused + moves.used_reused).wrapping_sub(moves.reused_clean),
        ];
        if !self.disturbed && counts != expected {
            return Err(format!(
                "{counts:?} blocks are partially used, used and reused; transitions make it {expected:?}"
            ));
        }
        let moved = &self.buffers[Self::buffer_of(0, MOVED)];
        if self.protected && moved.slots.iter().any(|slot| slot.shadow) {
            return Err("a protected buffer holds a stale copy".into());
        }
        Ok(())
    }
}
