//! Cleaning: garbage collection, wear levelling, and moving data away from failing blocks.
//!
//! Cleaning a plane writes into the same plane. It needs somewhere to write before it can erase, so the host never gets the
//! last free block of a plane. With one stream, moved units go to the frontier that the host writes to: the model of the
//! closed forms (Desnoyers 2014).

use super::{Append, Frontier, UnitLog};
use crate::ftl::io::{Cause, Gate, Io};
use crate::ftl::settings::WearLeveling;
use crate::nand::data::Data;
use crate::nand::{Flash, Outcome};
use crate::parts::blocks::{BlockState, NO_BLOCK};

/// Free blocks of a plane that only cleaning may take.
const RESERVE: u32 = 1;
/// Static wear levelling looks at a plane after this many collections.
const WEAR_CHECK_EVERY: u32 = 8;

impl UnitLog {
    /// Makes sure that `stream` can write a page in `plane`. False where even cleaning finds no space.
    #[inline]
    pub(super) fn ensure_space(&mut self, io: &mut Io, plane: u32, stream: u32) -> Flash<bool> {
        if self.free_pages[plane as usize] <= self.gc_start {
            self.collect_until(io, plane)?;
        }
        let index = self.frontier(plane, stream);
        if self.frontiers[index].block != NO_BLOCK || self.blocks.free_count(plane) > RESERVE {
            return Ok(true);
        }
        self.make_space(io, plane, index)
    }

    #[cold]
    fn make_space(&mut self, io: &mut Io, plane: u32, index: usize) -> Flash<bool> {
        for _ in 0..=self.blocks.closed(plane).len() {
            if !self.collect(io, plane)? {
                return Ok(false);
            }
            if self.frontiers[index].block != NO_BLOCK || self.blocks.free_count(plane) > RESERVE {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Collects until `plane` has more free pages than the stop threshold, or nothing more can be gained.
    fn collect_until(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        let mut budget = 2 * self.blocks.closed(plane).len() + 2;
        while self.free_pages[plane as usize] <= self.gc_stop && budget > 0 && self.collect(io, plane)? {
            budget -= 1;
        }
        Ok(())
    }

    /// Cleans one block in the background, in the plane that is shortest of free pages and below the stop threshold by more
    /// than a block. False where none is.
    ///
    /// # Errors
    /// [`crate::nand::Halt`]s of flash.
    pub fn collect_in_background(&mut self, io: &mut Io) -> Flash<bool> {
        let planes = self.free_pages.len() as u32;
        let Some(plane) = (0..planes).min_by_key(|&plane| self.free_pages[plane as usize]) else { return Ok(false) };
        let done = self.free_pages[plane as usize] <= self.gc_stop && self.collect(io, plane)?;
        self.evacuate_failed(io)?;
        Ok(done)
    }

    /// Cleans one block of `plane`. False where no block is worth it.
    fn collect(&mut self, io: &mut Io, plane: u32) -> Flash<bool> {
        let Some(victim) = self.victim.choose(&mut self.blocks, plane, &mut self.rng) else { return Ok(false) };
        self.counters.collections += 1;
        self.clean(io, victim)?;
        if self.settings.wear_leveling == WearLeveling::Static {
            self.level_wear(io, plane)?;
        }
        Ok(true)
    }

    /// Moves the valid units of a closed block away and erases it.
    fn clean(&mut self, io: &mut Io, victim: u32) -> Flash<()> {
        self.blocks.take_victim(victim);
        let moved = self.move_valid(io, victim)?;
        match io.erase(victim, Cause::Gc, moved, Gate::NONE)? {
            Outcome::Done => {
                self.counters.erased += 1;
                self.blocks.release(victim);
                self.free_pages[(victim / io.geometry().blocks_per_plane) as usize] += self.pages_per_block;
            }
            Outcome::Failed => {
                self.counters.retired += 1;
                self.blocks.retire(victim);
            }
        }
        Ok(())
    }

    /// Moves every valid unit of `victim`; returns the gate that closes when all copies are safe.
    fn move_valid(&mut self, io: &mut Io, victim: u32) -> Flash<Gate> {
        let plane = io.geometry().plane_of_block(victim);
        let per_page = self.units_per_page;
        let safe = if self.blocks.valid_count(victim) > 0 && !self.protected { io.gate() } else { Gate::NONE };
        for word in 0..self.blocks.units_per_block().div_ceil(64) {
            let mut bits = self.blocks.valid_word(victim, word);
            while bits != 0 {
                let unit = word * 64 + bits.trailing_zeros();
                let page = unit / per_page;
                // The units of one page may lie across two words: take them together, from the bitmap itself.
                let units = self.blocks.valid_bits(victim, page * per_page, per_page);
                self.move_page(io, plane, victim * self.pages_per_block + page, units, safe)?;
                bits = self.blocks.valid_word(victim, word);
            }
        }
        let open = self.moved_page(plane);
        if !self.protected && !self.open[open as usize].slots.is_empty() {
            self.program_open(io, plane, open)?;
        }
        Ok(safe)
    }

    /// Moves the units `units` (as bits) of page `ppn`.
    #[inline]
    fn move_page(&mut self, io: &mut Io, plane: u32, ppn: u32, units: u64, safe: Gate) -> Flash<()> {
        let (per_page, width, stream) = (self.units_per_page, self.unit_subpages, self.moved_stream());
        let wanted = if width == 1 { units } else { (1 << (width * per_page)) - 1 };
        let arrived = io.gate();
        io.read(ppn, wanted, 0, self.settings.read, Cause::Gc, Gate::NONE, arrived)?;
        self.counters.moved_units += u64::from(units.count_ones());
        let mut rest = units;
        while rest != 0 {
            let index = rest.trailing_zeros();
            rest &= rest - 1;
            let physical = ppn * per_page + index;
            let first = physical * width;
            let unit = io.nand().logical(first) / width;
            let mut what = Append { unit, data: Data::ZERO, cause: Cause::Gc, after: arrived, signal: safe, holds: 0 };
            if width > 1 {
                self.wide.clear();
                self.wide.extend((first..first + width).map(|psn| io.load_subpage(psn)));
            } else {
                what.data = io.load_subpage(first);
            }
            if per_page == 1 {
                self.program_unit(io, plane, stream, what, physical)?;
            } else {
                self.move_into_open_page(io, plane, what, physical)?;
            }
        }
        Ok(())
    }

    /// A moved unit joins the open page of its plane, unless the host has written it anew: then only the older copy that
    /// an open page remembers has to survive, and it moves along as the older copy.
    fn move_into_open_page(&mut self, io: &mut Io, plane: u32, what: Append, physical: u32) -> Flash<()> {
        let per_block = self.blocks.units_per_block();
        if !self.blocks.is_valid(physical / per_block, physical % per_block) {
            // Programming an open page on the way here has made this copy obsolete.
            return Ok(());
        }
        if self.map[what.unit as usize] != physical {
            // The unit stands in an open page already. With protected open pages the older copy is not needed any more.
            let (open, slot) = self.slot_of(self.map[what.unit as usize]);
            if !self.protected {
                // The erase waits for it, as it does for what is moved.
                self.attach(io, open as u32, Append { after: Gate::NONE, ..what });
                self.program_open(io, plane, open as u32)?;
                return Ok(());
            }
            self.open[open].slots[slot].previous = super::UNMAPPED;
            self.invalidate(physical);
            return Ok(());
        }
        let moved = self.moved_page(plane);
        self.push(io, moved, what);
        // The copy in the open page replaces this one.
        let (open, slot) = self.slot_of(self.map[what.unit as usize]);
        self.open[open].slots[slot].previous = super::UNMAPPED;
        self.invalidate(physical);
        if self.open[moved as usize].slots.len() as u32 == self.units_per_page {
            self.program_open(io, plane, moved)?;
        }
        Ok(())
    }

    /// Takes the block that `ppn` lies in, whose program failed, out of use; its units are moved later.
    #[cold]
    pub(super) fn drop_frontier(&mut self, io: &Io, ppn: u32) {
        let block = ppn / self.pages_per_block;
        let plane = io.geometry().plane_of_block(block);
        if self.blocks.state(block) == BlockState::Closed {
            self.blocks.take_victim(block);
        } else {
            self.blocks.abandon(block);
            for stream in 0..self.settings.streams {
                let index = self.frontier(plane, stream);
                if self.frontiers[index].block == block {
                    self.free_pages[plane as usize] -= self.pages_per_block - self.frontiers[index].next_page;
                    self.frontiers[index] = Frontier { block: NO_BLOCK, next_page: 0 };
                }
            }
        }
        self.counters.retired += 1;
        self.failed.push(block);
    }

    /// Moves what is valid in failed blocks, and retires them.
    #[inline]
    pub(super) fn evacuate_failed(&mut self, io: &mut Io) -> Flash<()> {
        while let Some(block) = self.failed.pop() {
            self.move_valid(io, block)?;
            self.blocks.retire(block);
        }
        Ok(())
    }

    /// Moves the least worn closed block of `plane` if the spread of erases exceeds the threshold: what lies there is cold,
    /// and the block will wear faster from now on.
    fn level_wear(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        self.wear_checks += 1;
        if !self.wear_checks.is_multiple_of(WEAR_CHECK_EVERY) || self.blocks.free_count(plane) == 0 {
            return Ok(());
        }
        let closed = self.blocks.closed(plane);
        let least = closed.iter().copied().min_by_key(|&block| (io.nand().erases(block), block));
        let most = closed.iter().map(|&block| io.nand().erases(block)).max();
        let (Some(least), Some(most)) = (least, most) else { return Ok(()) };
        if most - io.nand().erases(least) > self.settings.wear_threshold {
            self.counters.wear_moves += 1;
            self.clean(io, least)?;
        }
        Ok(())
    }
}
