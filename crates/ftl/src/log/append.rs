//! Writes: units join open pages, and full pages are programmed at a frontier.

use super::open_pages::{HOLE, OpenPage, Slot};
use super::{Append, Log};
use crate::log::map::{IN_OPEN_PAGE, Map, UNMAPPED};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Halt, Outcome, PADDING, SubpageMask};
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Gate, Io, Program, SliceIo};

/// Target of a unit that fills a page.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub plane: u32,
    pub stream: u32,
    /// Present physical unit of the unit.
    pub previous: u32,
    /// Subpages of the unit to leave out.
    pub absent: SubpageMask,
}

impl<M: Map> Log<M> {
    /// Appends a unit of one subpage to the open page of `stream`, and programs the page once full.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    #[inline]
    pub fn append(&mut self, io: &mut Io, stream: u32, what: Append) -> Flash<()> {
        if self.shape.units_per_page > 1 {
            return self.append_to_open_page(io, stream, what);
        }
        let plane = self.plane_with_space(io, stream, what.unit)?;
        self.count_written(stream, 1);
        io.present.buffer_taken += what.holds;
        let previous = self.map.locate(what.unit);
        self.program_unit(io, what, Place { plane, stream, previous, absent: 0 })?;
        self.evacuate_failed(io)
    }

    fn append_to_open_page(&mut self, io: &mut Io, stream: u32, what: Append) -> Flash<()> {
        if self.open.absorbs && self.replace_open(io, what) {
            return Ok(());
        }
        let group = self.frontiers.rotation.group(self.shape.per_address.divide(what.unit));
        let open = self.open.host_page(stream, group);
        let mut plane = 0;
        if self.open.filled(open) + 1 == self.shape.units_per_page {
            plane = self.plane_with_space(io, stream, what.unit)?;
            // Cleaning may have moved the previous copy into an open page, or programmed the open page.
            if self.open.absorbs && self.replace_open(io, what) {
                return Ok(());
            }
        }
        io.present.buffer_taken += what.holds;
        self.count_host(stream, 1);
        self.count_written(stream, 1);
        let mut previous = self.map.place(what.unit, self.open.next_entry(open));
        if previous != UNMAPPED && previous >= IN_OPEN_PAGE {
            previous = self.open.forget(io, previous);
        }
        self.open.push(io, open, what, previous);
        if self.open.is_full(open) {
            self.program_open(io, plane, open)?;
        }
        self.evacuate_failed(io)
    }

    /// Appends a unit of several subpages with the content `contents`.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn append_page(&mut self, io: &mut Io, stream: u32, what: Append, contents: &[Data]) -> Flash<()> {
        let plane = self.plane_with_space(io, stream, what.unit)?;
        self.count_written(stream, 1);
        self.image.unit.clear();
        self.image.unit.extend_from_slice(contents);
        let previous = self.map.locate(what.unit);
        self.program_unit(io, what, Place { plane, stream, previous, absent: 0 })?;
        self.evacuate_failed(io)
    }

    /// Appends a page of the map to the map's blocks. `content` assembles the bytes after all cleaning, because
    /// cleaning moves units. `programmed` runs once flash has stored them.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn append_own(
        &mut self,
        io: &mut Io,
        what: Append,
        content: impl FnOnce(&M, &mut Vec<u8>),
        programmed: impl FnOnce(&mut M),
    ) -> Flash<()> {
        let stream = self.frontiers.own_stream();
        let address = if self.frontiers.rotation.has_sets() { self.map.first_of(what.unit) } else { what.unit };
        let plane = self.plane_with_space(io, stream, address)?;
        self.image.unit.clear();
        self.image.unit.resize(self.shape.unit_subpages as usize, Data::ZERO);
        content(&self.map, &mut self.image.own);
        let previous = self.map.locate(what.unit);
        let done = self.program_unit(io, what, Place { plane, stream, previous, absent: 0 });
        self.image.own.clear();
        done?;
        programmed(&mut self.map);
        self.evacuate_failed(io)
    }

    /// A plane where `stream` can write a page now. Cleans for space if necessary.
    fn plane_with_space(&mut self, io: &mut Io, stream: u32, unit: u32) -> Flash<u32> {
        if io.nand().is_rebuilding() {
            self.rebuild(io)?;
        }
        let in_turn = self.frontiers.first_plane(io, stream, self.shape.per_address.divide(unit));
        let first = self.first_plane(stream, in_turn);
        loop {
            // Planes of the reclaim group of a handle come first.
            for is_other in [false, true] {
                for step in 0..self.frontiers.planes() {
                    let plane = self.frontiers.rotation.then(first, step);
                    if self.is_of_other_group(plane, stream) == is_other && self.ensure_space(io, plane, stream)? {
                        self.used_plane(plane, stream);
                        return Ok(plane);
                    }
                }
                if !self.has_groups() {
                    break;
                }
            }
            // No plane has room to clean in.
            if !self.clean_into_any(io, 0..self.frontiers.planes())? {
                return Err(Halt::NoSpace);
            }
        }
    }

    /// Replaces the content of a unit in an open page. False if no open page holds the unit.
    fn replace_open(&mut self, io: &mut Io, what: Append) -> bool {
        let entry = self.map.locate(what.unit);
        if entry == UNMAPPED || entry < IN_OPEN_PAGE {
            return false;
        }
        self.open.replace(io, entry, what);
        true
    }

    /// Pads and programs every open page that the host or an erase has waited for since `before` or earlier. `signal`
    /// waits for the programs.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn flush(&mut self, io: &mut Io, before: Nanos, signal: Gate) -> Flash<()> {
        for open in 0..self.open.len() {
            if self.open.page(open).since.is_none_or(|since| since > before) {
                continue;
            }
            let plane = match self.open.plane_of(open) {
                None => {
                    // All units of the page name the same plane or channel.
                    let slots = &self.open.page(open).slots;
                    let unit = slots.iter().map(|slot| slot.unit).find(|&unit| unit != HOLE).unwrap_or(0);
                    self.plane_with_space(io, self.open.stream_of(open), unit)?
                }
                Some(plane) => {
                    // A page of moved units must not start another cleaning if space is left, because that would leave
                    // another partial page, and so on.
                    let stream = self.open.stream_of(open);
                    if !self.may_take(plane, stream) {
                        self.ensure_space(io, plane, stream)?;
                    }
                    plane
                }
            };
            let page = self.open.page_mut(open);
            if page.since.is_none() {
                continue;
            }
            page.signal(io, signal);
            self.program_open(io, plane, open)?;
            self.evacuate_failed(io)?;
        }
        Ok(())
    }

    /// Programs the open page `page` in `plane`, padded if partial.
    pub(super) fn program_open(&mut self, io: &mut Io, plane: u32, page: u32) -> Flash<()> {
        self.program_open_at(io, plane, self.open.stream_of(page), page)
    }

    /// Programs the open page `index` at the frontier of `stream` in `plane`. If flash refuses, the page stays open.
    pub(super) fn program_open_at(&mut self, io: &mut Io, plane: u32, stream: u32, index: u32) -> Flash<()> {
        let mut page = self.open.take(index);
        if let Err(halt) = self.program_slots(io, plane, stream, &page) {
            self.open.put_back(index, page);
            return Err(halt);
        }
        if page.since.is_some() && page.since == self.open.oldest {
            self.open.find_oldest();
        }
        // Reuse the allocation.
        page.slots.clear();
        self.open.page_mut(index).slots = page.slots;
        self.erase_emptied(io, index)
    }

    fn program_slots(&mut self, io: &mut Io, plane: u32, stream: u32, page: &OpenPage) -> Flash<()> {
        let (count, per_page) = (page.slots.len() as u32, self.shape.units_per_page);
        self.counters.padded_pages += u64::from(count < per_page);
        for &other in &page.also {
            io.link(other, page.done);
        }
        let holes = page.slots.iter().filter(|slot| slot.unit == HOLE).count() as u32;
        for index in 0..per_page as usize {
            let (logical, data) = match page.slots.get(index) {
                Some(slot) if slot.unit != HOLE => (slot.unit, slot.data),
                _ => (PADDING, Data::ZERO),
            };
            self.image.logical[index] = logical;
            self.image.data[index] = data;
        }
        loop {
            let ppn = self.frontiers.take_page(io, plane, stream)?;
            let (generation, after) = self.pass_of(io, ppn, page.ready);
            let program = Program {
                generation,
                single: self.frontiers.single.holds(ppn / self.shape.pages_per_block),
                padding: per_page - count + holes,
                frees: page.held,
                from_host: page.from_host,
                after,
                signal: page.done,
                ..Program::new(ppn, &self.image.logical, &self.image.data, page.cause)
            };
            match io.program(program)? {
                Outcome::Done => {
                    self.settle_slots(io, ppn, &page.slots);
                    return Ok(());
                }
                Outcome::Failed => self.drop_frontier(io, ppn),
            }
        }
    }

    /// Maps the units of `slots` to `ppn`.
    fn settle_slots(&mut self, io: &mut Io, ppn: u32, slots: &[Slot]) {
        let (first, mut valid) = (ppn * self.shape.units_per_page, 0u64);
        for (index, slot) in slots.iter().enumerate() {
            io.unpin(slot.data);
            if slot.unit == HOLE {
                continue;
            }
            if slot.previous != UNMAPPED {
                self.invalidate(slot.previous);
            }
            self.map.place(slot.unit, first + index as u32);
            valid |= 1 << index;
        }
        let (block, unit) = self.shape.per_block.split(first);
        self.frontiers.blocks.validate_bits(block, unit, valid);
    }

    /// Programs a unit that fills a page.
    #[inline]
    pub(super) fn program_unit(&mut self, io: &mut Io, what: Append, place: Place) -> Flash<()> {
        let Place { plane, stream, previous, absent } = place;
        let (width, image) = (self.shape.unit_subpages, &mut self.image);
        if width > 1 {
            image.logical.iter_mut().zip(what.unit * width..).for_each(|(cell, lsn)| *cell = lsn);
        }
        let (mut padding, mut number) = (0, [what.unit]);
        if absent != 0 {
            (padding, number) = (absent.count_ones(), [PADDING]);
            let lacks = |index: &u32| absent >> index & 1 == 1;
            (0..width).filter(lacks).for_each(|index| image.logical[index as usize] = PADDING);
        }
        loop {
            let ppn = self.frontiers.take_page(io, plane, stream)?;
            let (generation, after) = self.pass_of(io, ppn, what.after);
            let (logical, data) = match width {
                1 => (&number[..], &[what.data][..]),
                _ => (&self.image.logical[..], &self.image.unit[..]),
            };
            let program = Program {
                generation,
                single: self.frontiers.single.holds(io.nand().split(ppn).0),
                padding,
                frees: what.holds,
                own: &self.image.own,
                after,
                signal: what.signal,
                ..Program::new(ppn, logical, data, what.cause)
            };
            match io.program_here(program)? {
                Outcome::Done => {
                    self.map.place(what.unit, ppn);
                    self.map.programmed(what.unit, absent as u32);
                    if previous != UNMAPPED {
                        self.invalidate(previous);
                    }
                    self.validate(ppn);
                    return Ok(());
                }
                Outcome::Failed => self.drop_frontier(io, ppn),
            }
        }
    }
}
