//! Moves the valid units of a block, page by page, into open pages or whole pages.

use super::append::Place;
use super::{Append, Log};
use crate::log::map::{Map, UNMAPPED};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, SubpageMask, count, first_subpages};
use palimpsest_ftl_api::plan::{Cause, Gate, Io, Read, SliceIo};

impl<M: Map> Log<M> {
    /// Moves every valid unit of `victim`. The returned gate closes when all copies are safe.
    pub(super) fn move_valid(&mut self, io: &mut Io, victim: u32) -> Flash<Gate> {
        let moves = self.frontiers.blocks.valid_count(victim) > 0;
        let safe = if moves && !self.open.protected { io.gate() } else { Gate::NONE };
        self.move_units(io, victim, 0, u32::MAX, safe)?;
        Ok(safe)
    }

    /// Moves the pages with valid units of `victim`, from unit `next` on, until `most` units have moved: a slice of
    /// pages at once if possible ([`Self::copy_slice`]). The gate `safe` closes when the copies are safe. Returns the
    /// unit to continue from.
    pub(super) fn move_units(&mut self, io: &mut Io, victim: u32, mut next: u32, most: u32, safe: Gate) -> Flash<u32> {
        if self.gathers(io, victim) {
            return self.gather_units(io, victim, next, most);
        }
        let plane = io.geometry().plane_of_block(victim);
        let per_page = self.shape.units_per_page;
        let mut left = most;
        // Units stay valid in place until their copies are programmed, so the loop steps page by page.
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
            let copied = self.copy_slice(io, victim, (word * 64, valid), left, safe);
            if copied != 0 {
                next = word * 64 + copied.ilog2() + 1;
                left -= count(copied);
                continue;
            }
            let unit = word * 64 + valid.trailing_zeros();
            let page = if per_page == 1 { unit } else { unit / per_page };
            // The units of a page may span two words, so read the bitmap itself.
            let units = self.frontiers.blocks.valid_bits(victim, page * per_page, per_page);
            self.move_page(io, plane, victim * self.shape.pages_per_block + page, units, safe)?;
            next = (page + 1) * per_page;
            left = left.saturating_sub(count(units));
        }
        Ok(if left > 0 { self.shape.units_per_block } else { next })
    }

    /// Prefetches map entries for moves or a check that reached word `word` of the valid units of `victim`: of the next
    /// word, and of the first.
    #[inline]
    pub(super) fn prefetch_word(&self, io: &Io, victim: u32, word: u32) {
        let words = self.shape.units_per_block.div_ceil(64);
        for word in if word == 0 { 0..2 } else { word + 1..word + 2 } {
            if word < words {
                self.prefetch_moves(io, victim, word, self.frontiers.blocks.valid_word(victim, word));
            }
        }
    }

    /// Prefetches the map entries of these units, which are scattered over the map.
    #[inline]
    fn prefetch_moves(&self, io: &Io, victim: u32, word: u32, mut bits: u64) {
        let first = victim * self.shape.units_per_block + word * 64;
        while bits != 0 {
            let physical = first + bits.trailing_zeros();
            bits &= bits - 1;
            self.map.prefetch(self.shape.per_unit.divide(io.nand().logical(physical * self.shape.unit_subpages)));
        }
    }

    /// As [`Self::move_page`], for a single page.
    #[cold]
    #[inline(never)]
    pub(super) fn move_alone(&mut self, io: &mut Io, plane: u32, ppn: u32, units: u64, safe: Gate) -> Flash<()> {
        self.move_page(io, plane, ppn, units, safe)
    }

    /// Moves the units `units` (as bits) of page `ppn`.
    #[inline(always)]
    fn move_page(&mut self, io: &mut Io, plane: u32, ppn: u32, units: u64, safe: Gate) -> Flash<()> {
        let (per_page, width) = (self.shape.units_per_page, self.shape.unit_subpages);
        let (mut absent, mut stream): (SubpageMask, u32) = (0, self.frontiers.moved_stream(io.nand().split(ppn).0));
        let unit_at = |log: &Self, io: &Io, physical: u32| {
            log.shape.unit_at(io.nand(), physical).expect("a valid unit holds something")
        };
        let mut alone = 0;
        if per_page == 1 {
            let unit = unit_at(self, io, ppn);
            alone = unit;
            absent = self.map.outside(unit).into();
            if self.map.is_own(unit) {
                stream = self.frontiers.own_stream();
            }
        }
        let wanted = if width == 1 { units } else { first_subpages(width * per_page) & !absent };
        let arrived = io.gate();
        io.read_here(Read { policy: self.read, signal: arrived, ..Read::new(ppn, wanted, Cause::Gc) })?;
        let arrived = if absent == 0 { arrived } else { io.all_of(&[arrived, self.map.settled()]) };
        self.count_moved(io.nand().split(ppn).0, count(units));
        let mut rest = units;
        while rest != 0 {
            let index = rest.trailing_zeros();
            rest &= rest - 1;
            let physical = ppn * per_page + index;
            let first = physical * width;
            let unit = if per_page == 1 { alone } else { unit_at(self, io, physical) };
            let mut what = Append { unit, data: Data::ZERO, cause: Cause::Gc, after: arrived, signal: safe, holds: 0 };
            if width > 1 {
                self.image.unit.clear();
                self.image.unit.extend((first..first + width).map(|psn| io.load_subpage(psn)));
                // Absent subpages must read as zeros if their newest content is trimmed and a power cut restores this
                // page.
                (0..width)
                    .filter(|&index| absent >> index & 1 == 1)
                    .for_each(|index| self.image.unit[index as usize] = Data::ZERO);
            } else {
                what.data = io.load_subpage(first);
            }
            if per_page == 1 {
                self.move_unit(io, what, Place { plane, stream, previous: physical, absent })?;
            } else {
                self.move_into_open_page(io, plane, what, physical)?;
            }
        }
        Ok(())
    }

    /// Moves a unit that fills a page, with the layer's bytes in the page.
    #[inline]
    fn move_unit(&mut self, io: &mut Io, what: Append, place: Place) -> Flash<()> {
        if !io.nand().has_own() {
            return self.program_unit(io, what, place);
        }
        io.nand().own_of(place.previous, &mut self.image.own);
        let moved = self.program_unit(io, what, place);
        self.image.own.clear();
        moved
    }

    /// Adds a moved unit to the open page of moved data, unless an open page holds newer content. With protected open
    /// pages the stale copy is dropped; otherwise the newer content moves instead.
    fn move_into_open_page(&mut self, io: &mut Io, plane: u32, what: Append, physical: u32) -> Flash<()> {
        let (block, unit) = self.shape.per_block.split(physical);
        if !self.frontiers.blocks.is_valid(block, unit) {
            // The program of an open page during this move made the copy obsolete.
            return Ok(());
        }
        let page = self.open.moved_page(plane, self.frontiers.moved_stream(block));
        let entry = self.map.locate(what.unit);
        let newer = entry != physical;
        if newer && self.open.protected {
            self.open.slot_mut(entry).previous = UNMAPPED;
            self.invalidate(physical);
            return Ok(());
        }
        if newer && self.open.slot_of(entry).0 == page {
            self.open.attach(io, page, what);
            return Ok(());
        }
        self.map.place(what.unit, self.open.next_entry(page));
        // With protected open pages, the copy in memory replaces this copy.
        let previous = if self.open.protected { UNMAPPED } else { physical };
        if newer {
            self.open.move_newer(io, page, entry, what, previous);
        } else {
            self.open.push(io, page, what, previous);
        }
        if previous == UNMAPPED {
            self.invalidate(physical);
        }
        if self.open.is_full(page) {
            self.program_open(io, plane, page)?;
        }
        Ok(())
    }
}
