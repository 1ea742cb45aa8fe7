//! Moves of many units at once, with the state and plan that single moves leave.
//!
//! Pages of one unit are copied from block to block, up to 64 at once. In counted runs, units smaller than a page
//! gather in the open page of moved data. The order of reads and programs is the order of single moves, so a drive
//! without space ends in the same state. Ignored: units that move with bytes of the layer or without some subpages,
//! which move one by one.

use super::Log;
use super::open_pages::{HOLE, OpenPage, Slot};
use crate::log::map::{Map, UNMAPPED};
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::part::ReadMode;
use palimpsest_flash::nand::{Flash, Outcome, count, first_subpages};
use palimpsest_ftl_api::plan::{Cause, Copies, Gate, Io, Program, SliceIo};

impl<M: Map> Log<M> {
    /// True if units of `victim` may gather ([`Self::gather_units`]): the open page for them holds only moved units,
    /// and no erase waits.
    #[inline]
    pub(super) fn gathers(&self, io: &Io, victim: u32) -> bool {
        let small = self.shape.units_per_page > 1 && self.shape.unit_subpages == 1 && M::TAKES_RUNS;
        let protected = small && self.open.protected && self.collector.emptying.is_empty();
        let reads_pages = self.read.mode != ReadMode::Spread && io.nand().part().pages_per_program == 1;
        if !protected || !reads_pages || !io.only_counts() {
            return false;
        }
        let page = self.open.page(self.moved_page_of(io, victim));
        page.slots.is_empty() || page.has_only_copies()
    }

    /// Copies pages of one unit each, at most `most` of the valid units `valid` (bits, from unit `from` of `victim`
    /// on), to the open block. Returns the copied units, as bits; 0: the first must move alone, for example into the
    /// last page of the open block, which closes the block.
    #[inline(never)]
    pub(super) fn copy_slice(
        &mut self,
        io: &mut Io,
        victim: u32,
        (from, valid): (u32, u64),
        most: u32,
        safe: Gate,
    ) -> u64 {
        if !M::MOVES_RUNS || self.shape.units_per_page > 1 || self.read.mode == ReadMode::Spread {
            return 0;
        }
        // Units of the map move to blocks of their own.
        if self.map.own_in(victim) > 0 {
            return 0;
        }
        let stream = self.frontiers.moved_stream(victim);
        if self.frontiers.fixed.is_used() && stream + 1 != self.frontiers.data_streams() {
            return 0;
        }
        let plane = victim / self.shape.blocks_per_plane;
        let Some((block, page)) = self.frontiers.frontier(plane, stream) else { return 0 };
        let most = most.min(self.frontiers.pages_left(plane, stream).saturating_sub(1));
        let (first, to) = (victim * self.shape.pages_per_block + from, block * self.shape.pages_per_block + page);
        let pages = io.copies_at_once(first, lowest(valid, most), to);
        if pages == 0 {
            return 0;
        }
        self.place_copies(io, first, pages, to);
        let single = self.frontiers.single.holds(block);
        io.copy(Copies { from: first, pages, to, single, safe });
        let copies = count(pages);
        self.count_moved(victim, copies);
        self.frontiers.take_pages(plane, stream, copies);
        self.frontiers.blocks.validate_range(block, page, copies);
        self.frontiers.blocks.invalidate_bits(victim, from, pages);
        pages
    }

    /// Maps the units of `pages` (bits, counted from page `from` on) to the pages from `to` on.
    #[inline]
    fn place_copies(&mut self, io: &Io, from: u32, pages: u64, to: u32) {
        let (mut units, mut found, mut rest) = ([0; 64], 0, pages);
        while rest != 0 {
            let logical = io.nand().logical((from + rest.trailing_zeros()) * self.shape.unit_subpages);
            rest &= rest - 1;
            units[found] = self.shape.per_unit.divide(logical);
            found += 1;
        }
        for (&unit, entry) in units[..found].iter().zip(to..) {
            self.map.place(unit, entry);
        }
    }

    /// As [`Self::move_units`], for units smaller than a page: they gather in an open page.
    #[inline(never)]
    pub(super) fn gather_units(&mut self, io: &mut Io, victim: u32, next: u32, most: u32) -> Flash<u32> {
        let page = self.moved_page_of(io, victim);
        let done = self.gather_valid(io, victim, next, most, page);
        // Only units that remain in the open page need an entry there.
        let first = self.open.next_entry(page) - self.open.filled(page);
        for (slot, entry) in self.open.page(page).slots.iter().zip(first..) {
            self.map.place(slot.unit, entry);
        }
        done
    }

    /// As [`Self::gather_units`], without map entries of the units that remain in the open page `page`.
    fn gather_valid(&mut self, io: &mut Io, victim: u32, mut next: u32, most: u32, page: u32) -> Flash<u32> {
        let (plane, per_page) = (io.geometry().plane_of_block(victim), self.shape.units_per_page);
        let mut left = most;
        while left > 0 && next < self.shape.units_per_block {
            let word = next / 64;
            if next < word * 64 + per_page {
                self.prefetch_word(io, victim, word);
            }
            let valid = self.frontiers.blocks.valid_word(victim, word) & u64::MAX << (next % 64);
            if valid == 0 {
                next = (word + 1) * 64;
                continue;
            }
            let from = self.shape.per_page.divide(word * 64 + valid.trailing_zeros());
            // The units of a page may span two words.
            let units = self.frontiers.blocks.valid_bits(victim, from * per_page, per_page);
            let ppn = victim * self.shape.pages_per_block + from;
            io.read_for_copy(ppn, units, self.read.mode)?;
            self.count_moved(victim, count(units));
            self.frontiers.blocks.invalidate_bits(victim, from * per_page, units);
            let (done, rest) = self.gather(io, plane, page, ppn, units);
            self.frontiers.blocks.validate_bits(victim, from * per_page, rest);
            done?;
            left = left.saturating_sub(count(units));
            next = (from + 1) * per_page;
        }
        Ok(if left > 0 { self.shape.units_per_block } else { next })
    }

    /// Moves the units `rest` (as bits) of page `ppn` into the open page `page` of `plane`. Skips units with newer
    /// content in an open page. If no space is left to program the page, returns the remaining units.
    #[inline]
    fn gather(&mut self, io: &mut Io, plane: u32, page: u32, ppn: u32, mut rest: u64) -> (Flash<()>, u64) {
        let (per_page, stores) = (self.shape.units_per_page, io.nand().payload() != Payload::None);
        while rest != 0 {
            let index = rest.trailing_zeros();
            rest &= rest - 1;
            let (physical, unit) = (ppn * per_page + index, io.nand().logical_of(ppn)[index as usize]);
            let entry = self.map.locate(unit);
            if entry != physical {
                self.open.slot_mut(entry).previous = UNMAPPED;
                continue;
            }
            let data = if stores { io.load_subpage(physical) } else { Data::ZERO };
            let open = self.open.page_mut(page);
            open.gather(Slot { unit, data, previous: UNMAPPED, ..Slot::default() });
            if open.slots.len() as u32 == per_page
                && let Err(halt) = self.program_gathered(io, plane, page)
            {
                return (Err(halt), rest);
            }
        }
        (Ok(()), 0)
    }

    /// Programs the full open page `page` in `plane`.
    fn program_gathered(&mut self, io: &mut Io, plane: u32, page: u32) -> Flash<()> {
        let to = self.frontiers.take_page(io, plane, self.open.stream_of(page))?;
        let (open, first) = (self.open.page_mut(page), to * self.shape.units_per_page);
        let cells = self.image.logical.iter_mut().zip(&mut self.image.data);
        for ((slot, (logical, data)), entry) in open.slots.iter().zip(cells).zip(first..) {
            (*logical, *data) = (slot.unit, slot.data);
            self.map.place(slot.unit, entry);
        }
        open.empty();
        let single = self.frontiers.single.holds(to / self.shape.pages_per_block);
        let (logical, data) = (&self.image.logical, &self.image.data);
        let done = io.program_here(Program { single, ..Program::new(to, logical, data, Cause::Gc) })?;
        debug_assert_eq!(done, Outcome::Done, "a counted copy does not fail");
        let (block, unit) = self.shape.per_block.split(first);
        self.frontiers.blocks.validate_bits(block, unit, first_subpages(self.shape.units_per_page));
        Ok(())
    }

    /// The open page for units moved out of `victim`.
    #[inline]
    fn moved_page_of(&self, io: &Io, victim: u32) -> u32 {
        self.open.moved_page(io.geometry().plane_of_block(victim), self.frontiers.moved_stream(victim))
    }
}

impl OpenPage {
    /// Adds a moved unit without gates.
    #[inline]
    fn gather(&mut self, slot: Slot) {
        if self.slots.is_empty() {
            self.cause = Cause::Gc;
        }
        self.slots.push(slot);
    }

    /// True if the page holds only units that cleaning moved, without other copies.
    #[inline]
    fn has_only_copies(&self) -> bool {
        let waits = self.since.is_some() || self.from_host || self.held > 0 || !self.also.is_empty();
        let copies = self.slots.iter().all(|slot| slot.unit != HOLE && slot.previous == UNMAPPED);
        self.cause == Cause::Gc && !waits && copies
    }

    /// Resets the page; the allocation stays.
    #[inline]
    fn empty(&mut self) {
        self.slots.clear();
        self.cause = Cause::Host;
    }
}

/// The lowest `most` set bits of `bits`.
#[inline]
fn lowest(bits: u64, most: u32) -> u64 {
    let (mut taken, mut rest) = (0, bits);
    if most >= bits.count_ones() {
        return bits;
    }
    for _ in 0..most {
        taken |= rest & rest.wrapping_neg();
        rest &= rest - 1;
    }
    taken
}

#[cfg(test)]
mod tests;
