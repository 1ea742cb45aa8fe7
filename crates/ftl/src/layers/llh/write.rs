//! Programs: a buffer goes to the next page of the stream, as a first or as a second write.
//!
//! Padding counts unused capacity of a page, including the redundancy of a second write.

use super::bank::NO_FRONTIER;
use super::buffers::HOLE;
use super::{COLD, HOT, IN_BUFFER, Llh, MOVED, UNMAPPED};
use crate::log::Append;
use crate::log::blocks::NO_BLOCK;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Halt, Outcome, PADDING};
use palimpsest_ftl_api::plan::{Cause, CodedIo, Gate, Io, Program};

impl Llh {
    /// Adds a unit that the host wrote.
    #[inline]
    pub(super) fn append(&mut self, io: &mut Io, stream: u32, what: Append) -> Flash<()> {
        // If power cuts lose buffers, a hole would be acknowledged before the replacement is durable.
        let absorbs = self.settings.policy.absorb || !self.protected;
        if absorbs && self.replace_in_buffer(io, what) {
            return Ok(());
        }
        let mut bank = self.bank_of(what.unit);
        loop {
            let buffer = Self::buffer_of(bank, stream);
            // A power cut may have left the buffer full.
            if self.buffers[buffer].slots.len() as u32 >= self.capacity(io, bank, stream) {
                self.drain(io, bank, stream, false, false)?;
            }
            if self.buffers[buffer].slots.is_empty() {
                self.ensure_page(io, bank, stream)?;
            }
            // The die of the bank may have failed.
            let now = self.bank_of(what.unit);
            if now == bank {
                break;
            }
            bank = now;
        }
        let buffer = Self::buffer_of(bank, stream);
        // Cleaning may have moved the previous copy into a buffer.
        if absorbs && self.replace_in_buffer(io, what) {
            return Ok(());
        }
        io.present.buffer_taken += what.holds;
        self.counters.host_units[stream as usize] += 1;
        let previous = match self.map[what.unit as usize] {
            entry if entry != UNMAPPED && entry >= IN_BUFFER => self.vacate(io, what.unit, entry),
            previous => previous,
        };
        self.push(io, stream, what, previous);
        if self.buffers[buffer].slots.len() as u32 >= self.capacity(io, bank, stream) {
            self.drain(io, bank, stream, false, false)?;
        }
        if self.failed.is_empty() { Ok(()) } else { self.evacuate_failed(io) }
    }

    /// Programs the buffer `kind` of `bank` in full pages, or, with `all`, to the last unit. With `collecting`, a page
    /// must be found without cleaning. If the die fails, the other banks program the units.
    pub(super) fn drain(&mut self, io: &mut Io, bank: u32, kind: u32, all: bool, collecting: bool) -> Flash<()> {
        let (buffer, stream, mut all) = (Self::buffer_of(bank, kind), kind.min(COLD), all);
        while !self.buffers[buffer].slots.is_empty() {
            if !collecting {
                self.ensure_page(io, bank, stream)?;
            } else if self.frontier(bank, COLD).block == NO_BLOCK {
                self.page_for_cleaning(io, bank)?;
            }
            let (held, room) = (self.buffers[buffer].slots.len() as u32, self.capacity(io, bank, stream));
            // Cleaning for the page may have programmed the slots.
            if held == 0 || (held < room && !all) {
                break;
            }
            // Units of one buffer share gates, so they must be programmed together, and again together after a failed
            // program.
            all |= held > room;
            all |= !self.program_page(io, bank, kind, held.min(room) as usize)?;
        }
        if self.is_lost(bank) {
            self.drain_others(io, kind)?;
        }
        if self.emptying.is_empty() { Ok(()) } else { self.erase_emptied(io) }
    }

    /// Finds a page for moved units; after a power cut, if necessary in the block of hot data.
    fn page_for_cleaning(&mut self, io: &mut Io, bank: u32) -> Flash<()> {
        if self.blocks.free_count(bank) > 0 {
            return self.open_clean(io, bank, COLD, false);
        }
        match self.use_waiting(io, bank) {
            Err(Halt::NoSpace) => self.take_hot_block(io, bank),
            done => done,
        }
    }

    /// Programs the first `count` slots of the buffer `kind` into the next page of the stream. If flash refuses or the
    /// program fails, the slots stay; false for a failed program.
    fn program_page(&mut self, io: &mut Io, bank: u32, kind: u32, count: usize) -> Flash<bool> {
        let (buffer, stream) = (Self::buffer_of(bank, kind), kind.min(COLD));
        let frontier = *self.frontier(bank, stream);
        let ppn = frontier.block * self.pages_per_block + frontier.page;
        let coded = frontier.kept && self.coder.first < self.subpages && !io.nand().is_high(frontier.page);
        let (units, held) = self.fill_image(buffer, count, if coded { self.subpages - self.coder.first } else { 0 });
        if frontier.again {
            if !self.encode(io, ppn) {
                self.divert(io, bank, kind, count)?;
                return Ok(true);
            }
        } else {
            let kept = frontier.kept && !io.nand().is_high(frontier.page);
            self.prepare(io, ppn, kept, coded);
        }
        let (ready, done) = self.gates_of(io, buffer, frontier.arrived);
        // Units that could not be encoded join the moved ones.
        let cause = if kind == MOVED && held == 0 { Cause::Gc } else { Cause::Host };
        let program = Program {
            padding: self.subpages - units,
            frees: held,
            from_host: self.buffers[buffer].from_host,
            after: ready,
            signal: done,
            spare: &self.coder.spare,
            ..Program::new(ppn, &self.logical, &self.image, cause)
        };
        let outcome = match frontier.again {
            true => io.reprogram(program, self.settings.wom_encode_time)?,
            false => io.program(program)?,
        };
        if outcome == Outcome::Failed {
            self.drop_frontier(io, bank, stream);
            return Ok(false);
        }
        self.counters.padded_pages += u64::from(units < self.capacity(io, bank, stream));
        if frontier.again {
            self.transitions.reused_low += 1;
            self.transitions.second_units += u64::from(units);
            self.banks[bank as usize].frontiers[stream as usize].rewritten += 1;
        }
        self.settle(io, ppn, buffer, count, if coded { self.subpages - self.coder.first } else { 0 });
        self.remove_slots(io, buffer, count);
        self.seek(io, bank, stream, frontier.step + 1)?;
        Ok(true)
    }

    /// Copies the first `count` slots of `buffer` into the image, from subpage `first` on, without holes. Returns the
    /// number of units, and the subpages held in the host's write buffer.
    fn fill_image(&mut self, buffer: usize, count: usize, first: u32) -> (u32, u32) {
        self.logical.fill(PADDING);
        self.image.fill(Data::ZERO);
        let (mut units, mut held) = (0, 0);
        for slot in &self.buffers[buffer].slots[..count] {
            held += slot.holds;
            if slot.unit != HOLE {
                self.logical[(first + units) as usize] = slot.unit;
                self.image[(first + units) as usize] = slot.data;
                units += 1;
            }
        }
        (units, held)
    }

    /// The gates that a program of `buffer` must follow and signal; `arrived`: the content to overwrite is in memory.
    ///
    /// The program must not follow later reads for the buffer, which might come after the program in a block.
    fn gates_of(&mut self, io: &mut Io, buffer: usize, arrived: Gate) -> (Gate, Gate) {
        let page = &mut self.buffers[buffer];
        let mut ready = page.ready.filter(|&ready| io.is_open(ready)).unwrap_or(Gate::NONE);
        if !ready.is_none() {
            let later = io.gate();
            io.link(ready, later);
            page.ready = Some(later);
        }
        if io.is_open(arrived) {
            let both = io.gate();
            io.link(arrived, both);
            io.link(ready, both);
            ready = both;
        }
        (ready, page.done.unwrap_or(Gate::NONE))
    }

    /// Maps the first `count` slots of `buffer` to `ppn`, from subpage `first` on.
    fn settle(&mut self, io: &mut Io, ppn: u32, buffer: usize, count: usize, first: u32) {
        let mut psn = ppn * self.subpages + first;
        for index in 0..count {
            let slot = self.buffers[buffer].slots[index];
            if slot.unit == HOLE {
                continue;
            }
            io.unpin(slot.data);
            if slot.previous != UNMAPPED {
                self.invalidate(slot.previous);
            }
            self.validate(psn);
            if slot.shadow {
                let (newer, place) = self.slot_of(slot.unit, self.map[slot.unit as usize]);
                self.buffers[newer].slots[place].previous = psn;
            } else {
                self.map[slot.unit as usize] = psn;
                if buffer != Self::buffer_of(self.bank_of(slot.unit), MOVED) {
                    self.drop_shadow(io, slot.unit);
                }
            }
            psn += 1;
        }
    }

    /// Handles the first `count` slots of a buffer that cannot be encoded over the next page. Hot units go to the block
    /// of cold data, as a first write, and the next data may retry the page. Other units wait for the next page, a high
    /// one.
    #[cold]
    fn divert(&mut self, io: &mut Io, bank: u32, kind: u32, count: usize) -> Flash<()> {
        self.transitions.wom_failures += 1;
        let stream = kind.min(COLD);
        let step = self.frontier(bank, stream).step;
        if kind != HOT || !self.settings.wom_retry {
            self.seek(io, bank, stream, step + 1)?;
        }
        if kind != HOT {
            return Ok(());
        }
        self.ensure_page(io, bank, COLD)?;
        if self.is_lost(bank) {
            return Ok(());
        }
        // Cleaning for the page may have made these slots holes, at most.
        self.divert_to_moved(io, bank, count);
        // Together with units in that buffer this may take two pages. Host data among them must not take cleaning's
        // last clean block.
        self.drain(io, bank, MOVED, false, false)
    }

    /// Drops the block that `stream` writes to after a failed program; the units are moved later.
    #[cold]
    fn drop_frontier(&mut self, io: &mut Io, bank: u32, stream: u32) {
        if self.lose_die_of(io, self.frontier(bank, stream).block) {
            return;
        }
        let frontier = &mut self.banks[bank as usize].frontiers[stream as usize];
        let block = std::mem::replace(frontier, NO_FRONTIER).block;
        self.blocks.abandon(block);
        self.counters.retired += 1;
        self.disturbed = true;
        self.failed.push(block);
    }

    /// Programs every buffer with a request waiting since `before` or earlier; the programs signal `signal`.
    pub(super) fn flush_buffers(&mut self, io: &mut Io, before: u64, signal: Gate) -> Flash<()> {
        for buffer in 0..self.buffers.len() {
            if self.since[buffer] > before || self.buffers[buffer].slots.is_empty() {
                continue;
            }
            if !signal.is_none() {
                let done = *self.buffers[buffer].done.get_or_insert_with(|| io.gate());
                io.link(done, signal);
            }
            let (bank, kind) = (buffer as u32 / super::BUFFERS_PER_BANK, buffer as u32 % super::BUFFERS_PER_BANK);
            self.drain(io, bank, kind, true, false)?;
            self.evacuate_failed(io)?;
        }
        self.find_oldest();
        Ok(())
    }

    #[inline]
    pub(super) fn invalidate(&mut self, physical: u32) {
        let (block, unit) = self.per_block.split(physical);
        self.blocks.invalidate(block, unit);
    }

    #[inline]
    pub(super) fn validate(&mut self, physical: u32) {
        let (block, unit) = self.per_block.split(physical);
        self.blocks.validate(block, unit);
    }
}
