//! Cleaning: garbage collection, wear levelling, and moving data away from failing blocks.
//!
//! Cleaning a plane writes into the same plane. It needs somewhere to write before it can erase, so the host never gets the
//! last free block of a plane. With one stream, moved units go to the frontier that the host writes to: the model of the
//! closed forms (Desnoyers 2014).

use super::{Append, Frontier, HOLE, Slot, UnitLog};
use crate::log::blocks::{BlockState, NO_BLOCK};
use crate::log::settings::WearLeveling;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Outcome, SubpageMask, first_subpages};
use palimpsest_ftl_api::plan::{Cause, Erase, Gate, Io, Read};

/// Free blocks of a plane that only cleaning may take.
const RESERVE: u32 = 1;
/// Pages that stay free when a block is cleaned that need not be: a program that fails or is cut off spoils one.
const SLACK: u32 = 1;
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
        if self.has_space(plane, index) { Ok(true) } else { self.make_space(io, plane, index) }
    }

    /// Whether `stream` may take a page of `plane` and leave cleaning what it needs.
    #[inline]
    fn has_space(&self, plane: u32, index: usize) -> bool {
        let opens = self.frontiers[index].block == NO_BLOCK;
        self.blocks.free_count(plane) >= RESERVE + u32::from(opens)
    }

    #[cold]
    fn make_space(&mut self, io: &mut Io, plane: u32, index: usize) -> Flash<bool> {
        let closed = self.blocks.closed(plane).len();
        for attempt in 0..2 * closed + 2 {
            // What the policy prefers may gain little; in the end only space counts.
            let victim = if attempt <= closed { self.choose(plane) } else { self.fewest_valid(plane) };
            let Some(victim) = victim else { break };
            self.clean_victim(io, plane, victim)?;
            if self.has_space(plane, index) {
                return Ok(true);
            }
        }
        if !self.emptying.is_empty() && !self.open[self.moved_page(plane) as usize].slots.is_empty() {
            self.program_open(io, plane, self.moved_page(plane))?;
        }
        // Cleaning cannot use the blocks of another stream.
        let spare = self.frontiers[index].block != NO_BLOCK && self.settings.streams > 1;
        Ok(spare || self.has_space(plane, index))
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
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    pub fn collect_in_background(&mut self, io: &mut Io) -> Flash<bool> {
        let planes = self.free_pages.len() as u32;
        let Some(plane) = (0..planes).min_by_key(|&plane| self.free_pages[plane as usize]) else { return Ok(false) };
        let done = self.free_pages[plane as usize] <= self.gc_stop && self.collect(io, plane)?;
        self.evacuate_failed(io)?;
        Ok(done)
    }

    /// Cleans one block of `plane`. False where no block is worth it.
    fn collect(&mut self, io: &mut Io, plane: u32) -> Flash<bool> {
        let Some(victim) = self.choose(plane) else { return Ok(false) };
        self.clean_victim(io, plane, victim)?;
        Ok(true)
    }

    /// The victim that the policy chooses, if there is room to move its units; else the block that needs the least room.
    fn choose(&mut self, plane: u32) -> Option<u32> {
        let victim = self.victim.choose(&mut self.blocks, plane, &mut self.rng)?;
        if self.fits(plane, victim, SLACK) { Some(victim) } else { self.fewest_valid(plane) }
    }

    fn fewest_valid(&mut self, plane: u32) -> Option<u32> {
        let victim = self.blocks.fewest_valid(plane)?;
        let gains = self.blocks.valid_count(victim) < self.blocks.units_per_block();
        (gains && self.fits(plane, victim, 0)).then_some(victim)
    }

    /// Whether the units of `victim`, and `slack` pages, fit into what is free in `plane`, and into what the next program frees.
    fn fits(&self, plane: u32, victim: u32, slack: u32) -> bool {
        let frontier = self.frontiers[self.frontier(plane, self.moved_stream())];
        let at_frontier = if frontier.block == NO_BLOCK { 0 } else { self.pages_per_block - frontier.next_page };
        let waiting = self.open[self.moved_page(plane) as usize].slots.len() as u32;
        // What does not fill a page waits for the next victim; if it must not get lost, it may need a page of its own.
        let rest = if slack > 0 && !self.protected { self.units_per_page - 1 } else { 0 };
        let needed = (waiting + self.blocks.valid_count(victim) + rest) / self.units_per_page + slack;
        let free = at_frontier + self.blocks.free_count(plane) * self.pages_per_block;
        let emptying = self.emptying.iter().filter(|(block, _)| block / self.blocks_per_plane == plane).count() as u32;
        needed <= free || (free > 0 && needed <= free + emptying * self.pages_per_block)
    }

    fn clean_victim(&mut self, io: &mut Io, plane: u32, victim: u32) -> Flash<()> {
        self.counters.collections += 1;
        self.clean(io, victim)?;
        if self.settings.wear_leveling == WearLeveling::Static {
            self.level_wear(io, plane)?;
        }
        Ok(())
    }

    /// Moves the valid units of a closed block away and erases it, at once or when the last copy has been programmed.
    fn clean(&mut self, io: &mut Io, victim: u32) -> Flash<()> {
        self.blocks.take_victim(victim);
        let moved = self.move_valid(io, victim)?;
        if self.blocks.valid_count(victim) > 0 {
            self.emptying.push((victim, moved));
            return Ok(());
        }
        self.erase(io, victim, moved)
    }

    /// Erases a victim after the gate `moved`.
    fn erase(&mut self, io: &mut Io, victim: u32, moved: Gate) -> Flash<()> {
        match io.erase(Erase { after: moved, ..Erase::new(victim, Cause::Gc) })? {
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

    /// The open page `page` has been programmed: erases the victims whose last units it held. A victim that trims emptied
    /// waits for the page, too: its gate does.
    #[cold]
    pub(super) fn erase_emptied(&mut self, io: &mut Io, page: u32) -> Flash<()> {
        let mut index = 0;
        while let Some(&(victim, moved)) = self.emptying.get(index) {
            let waited = self.moved_page(victim / self.blocks_per_plane) == page;
            if waited && self.blocks.valid_count(victim) == 0 {
                self.emptying.remove(index);
                self.erase(io, victim, moved)?;
            } else {
                index += 1;
            }
        }
        Ok(())
    }

    /// Moves every valid unit of `victim`; returns the gate that closes when all copies are safe.
    fn move_valid(&mut self, io: &mut Io, victim: u32) -> Flash<Gate> {
        let plane = io.geometry().plane_of_block(victim);
        let per_page = self.units_per_page;
        let safe = if self.blocks.valid_count(victim) > 0 && !self.protected { io.gate() } else { Gate::NONE };
        // Units stay valid where they are until their copies are programmed, so pages are passed one by one.
        let mut next = 0;
        for word in 0..self.blocks.units_per_block().div_ceil(64) {
            self.prefetch_moves(io, victim, word, self.blocks.valid_word(victim, word));
            while next < (word + 1) * 64 {
                let passed = u64::MAX << next.saturating_sub(word * 64);
                let bits = self.blocks.valid_word(victim, word) & passed;
                if bits == 0 {
                    break;
                }
                let page = (word * 64 + bits.trailing_zeros()) / per_page;
                // The units of one page may lie across two words: take them together, from the bitmap itself.
                let units = self.blocks.valid_bits(victim, page * per_page, per_page);
                self.move_page(io, plane, victim * self.pages_per_block + page, units, safe)?;
                next = (page + 1) * per_page;
            }
        }
        Ok(safe)
    }

    /// Asks for the map entries that moving these units will change: they lie all over the map.
    #[inline]
    fn prefetch_moves(&self, io: &Io, victim: u32, word: u32, mut bits: u64) {
        let first = victim * self.blocks.units_per_block() + word * 64;
        while bits != 0 {
            let physical = first + bits.trailing_zeros();
            bits &= bits - 1;
            let unit = io.nand().logical(physical * self.unit_subpages) / self.unit_subpages;
            self.prefetch_entry(unit);
            self.prefetch_elsewhere(unit);
        }
    }

    /// Moves the units `units` (as bits) of page `ppn`.
    #[inline]
    fn move_page(&mut self, io: &mut Io, plane: u32, ppn: u32, units: u64, safe: Gate) -> Flash<()> {
        let (per_page, width, stream) = (self.units_per_page, self.unit_subpages, self.moved_stream());
        let mut absent: SubpageMask = 0;
        if !self.elsewhere.is_empty() {
            let unit = self.unit_at(io.nand(), ppn).expect("a valid unit holds something");
            absent = self.elsewhere(unit).into();
        }
        let wanted = if width == 1 { units } else { first_subpages(width * per_page) & !absent };
        let arrived = io.gate();
        io.read(Read { policy: self.settings.read, signal: arrived, ..Read::new(ppn, wanted, Cause::Gc) })?;
        self.counters.moved_units += u64::from(units.count_ones());
        let mut rest = units;
        while rest != 0 {
            let index = rest.trailing_zeros();
            rest &= rest - 1;
            let physical = ppn * per_page + index;
            let first = physical * width;
            let unit = self.unit_at(io.nand(), physical).expect("a valid unit holds something");
            let mut what = Append { unit, data: Data::ZERO, cause: Cause::Gc, after: arrived, signal: safe, holds: 0 };
            if width > 1 {
                self.wide.clear();
                self.wide.extend((first..first + width).map(|psn| io.load_subpage(psn)));
                // What is absent reads as zeros if its newest content is trimmed and a power cut brings this page back.
                (0..width)
                    .filter(|&index| absent >> index & 1 == 1)
                    .for_each(|index| self.wide[index as usize] = Data::ZERO);
            } else {
                what.data = io.load_subpage(first);
            }
            if per_page == 1 {
                self.program_unit(io, plane, stream, what, physical, absent)?;
            } else {
                self.move_into_open_page(io, plane, what, physical)?;
            }
        }
        Ok(())
    }

    /// A moved unit joins the open page of moved data, unless an open page holds newer content of the host's: with protected
    /// open pages the older copy is not needed any more; without, the newer content moves in its place.
    fn move_into_open_page(&mut self, io: &mut Io, plane: u32, what: Append, physical: u32) -> Flash<()> {
        let per_block = self.blocks.units_per_block();
        if !self.blocks.is_valid(physical / per_block, physical % per_block) {
            // Programming an open page on the way here has made this copy obsolete.
            return Ok(());
        }
        let (page, entry) = (self.moved_page(plane), self.map[what.unit as usize]);
        if entry == physical {
            self.push(io, page, what);
        } else {
            let (from, slot) = self.slot_of(entry);
            if self.protected {
                self.open[from].slots[slot].previous = super::UNMAPPED;
                self.invalidate(physical);
                return Ok(());
            }
            if from == page as usize {
                self.attach(io, page, what);
                return Ok(());
            }
            self.move_newer(io, page, from, slot, what);
        }
        let pushed = self.open[page as usize].slots.last_mut().expect("a slot was pushed");
        if self.protected {
            // The copy in the open page replaces this one.
            pushed.previous = super::UNMAPPED;
            self.invalidate(physical);
        } else {
            pushed.previous = physical;
        }
        if self.open[page as usize].slots.len() as u32 == self.units_per_page {
            self.program_open(io, plane, page)?;
        }
        Ok(())
    }

    /// Moves the content of `slot` of open page `from` into the open page of moved data. Who waits for the page waits for both.
    fn move_newer(&mut self, io: &mut Io, page: u32, from: usize, slot: usize, what: Append) {
        let hole = Slot { unit: HOLE, data: Data::ZERO, previous: super::UNMAPPED };
        let newer = std::mem::replace(&mut self.open[from].slots[slot], hole);
        let mut after = Gate::NONE;
        if io.is_open(self.open[from].ready) {
            // What is read for the other page from now on is none of this page's: it might come behind it in a block.
            after = std::mem::replace(&mut self.open[from].ready, io.gate());
            io.link(after, self.open[from].ready);
        }
        self.push(io, page, Append { data: newer.data, after, ..what });
        io.unpin(newer.data);
        // From now on this page, too, holds what the host waits for.
        let since = self.open[from].since;
        let waits = &mut self.open[page as usize].since;
        *waits = waits.map_or(since, |mine| Some(since.map_or(mine, |theirs| mine.min(theirs))));
        let done = self.open[page as usize].done;
        self.open[from].also.push(done);
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
            if self.blocks.valid_count(block) > 0 {
                let plane = io.geometry().plane_of_block(block);
                self.program_open(io, plane, self.moved_page(plane))?;
            }
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
        if most - io.nand().erases(least) > self.settings.wear_threshold && self.fits(plane, least, SLACK) {
            self.counters.wear_moves += 1;
            self.clean(io, least)?;
        }
        Ok(())
    }
}
