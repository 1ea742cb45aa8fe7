//! Fast path for moving units if no operation can fail ([`Io::takes_whole_pages`]). The state afterwards equals the
//! state after `moves`.
//!
//! Pages of one unit are copied from block to block, up to 64 at once, timed or not. In runs that only count, units
//! smaller than a page gather in the open page of moved data; if that page holds any other unit, `moves` applies. The
//! order of reads and programs is the order of `moves`, so a drive without space ends in the same state.

use super::Log;
use super::open_pages::{HOLE, OpenPage, Slot};
use crate::log::map::{Map, UNMAPPED};
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::part::ReadMode;
use palimpsest_flash::nand::{Flash, count, first_subpages};
use palimpsest_ftl_api::plan::{Cause, Copies, Gate, Io, WholePage};

impl<M: Map> Log<M> {
    /// True if [`Self::copy_units`] of `victim` is equivalent to [`Self::move_units`].
    #[inline]
    pub(super) fn takes_copies(&self, io: &Io, victim: u32) -> bool {
        let copies = self.read.mode != ReadMode::Spread && self.takes_whole_pages(io);
        copies && (self.shape.units_per_page == 1 || (io.only_counts() && self.gathers(io, victim)))
    }

    /// True if the open page for units of `victim` holds only moved units, and no erase waits.
    #[inline]
    fn gathers(&self, io: &Io, victim: u32) -> bool {
        let protected = self.open.protected && self.collector.emptying.is_empty();
        let page = self.open.page(self.moved_page_of(io, victim));
        protected && self.shape.unit_subpages == 1 && (page.slots.is_empty() || page.has_only_copies())
    }

    /// As [`Self::move_units`].
    pub(super) fn copy_units(&mut self, io: &mut Io, victim: u32, next: u32, most: u32, safe: Gate) -> Flash<u32> {
        match self.shape.units_per_page {
            1 => self.copy_pages(io, victim, next, most, safe),
            _ => self.gather_units(io, victim, next, most),
        }
    }

    /// As [`Self::copy_units`], for units of a whole page.
    fn copy_pages(&mut self, io: &mut Io, victim: u32, mut next: u32, most: u32, safe: Gate) -> Flash<u32> {
        let plane = io.geometry().plane_of_block(victim);
        let stream = self.frontiers.moved_stream(victim);
        let first = victim * self.shape.pages_per_block;
        let to_log = !self.frontiers.fixed.is_used() || stream + 1 == self.frontiers.data_streams();
        let mut left = most;
        while left > 0 && next < self.shape.units_per_block {
            // One word at a time. The last page of the open block is excluded, because it closes the block.
            let takes = |&(block, page): &(u32, u32)| to_log && io.nand().takes_rounds(block, page);
            let run = self.frontiers.frontier(plane, stream).filter(takes);
            let room = self.frontiers.pages_left(plane, stream).saturating_sub(1);
            let most = left.min(if run.is_some() { room } else { 0 });
            let valid = self.frontiers.blocks.valid_word(victim, next / 64) & u64::MAX << (next % 64);
            let Some(last) = valid.checked_ilog2() else {
                next = (next / 64 + 1) * 64;
                continue;
            };
            let word = next / 64 * 64;
            if next == word {
                self.prefetch_word(io, victim, word / 64);
            }
            let written = io.nand().is_written(victim, word + last);
            let pages = if written { io.in_flash(first + word, lowest(valid, most)) } else { 0 };
            let (Some((block, page)), true) = (run, pages > 0) else {
                next = word + valid.trailing_zeros();
                self.copy_page(io, plane, first + next, safe)?;
                (next, left) = (next + 1, left - 1);
                continue;
            };
            let to = block * self.shape.pages_per_block + page;
            self.place_copies(io, first + word, pages, to);
            let single = self.frontiers.single.holds(block);
            io.copy_run(Copies { from: first + word, pages, to, single, safe });
            let copies = count(pages);
            self.counters.moved_units += u64::from(copies);
            self.frontiers.take_pages(plane, stream, copies);
            self.frontiers.blocks.validate_range(block, page, copies);
            self.frontiers.blocks.invalidate_bits(victim, word, pages);
            (next, left) = (word + pages.ilog2() + 1, left - copies);
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

    /// Copies page `ppn`, which is one unit.
    fn copy_page(&mut self, io: &mut Io, plane: u32, ppn: u32, safe: Gate) -> Flash<()> {
        if !io.only_counts() {
            return self.move_alone(io, plane, ppn, 1, safe);
        }
        let width = self.shape.unit_subpages;
        io.read_for_copy(ppn, first_subpages(width), self.read.mode)?;
        self.counters.moved_units += 1;
        let unit = self.shape.unit_at(io.nand(), ppn).expect("a valid unit holds something");
        for index in 0..width {
            self.image.logical[index as usize] = unit * width + index;
            self.image.data[index as usize] = io.load_subpage(ppn * width + index);
        }
        let stream = self.frontiers.moved_stream(ppn / self.shape.pages_per_block);
        let to = self.frontiers.take_page(io, plane, stream)?;
        let single = self.frontiers.single.holds(to / self.shape.pages_per_block);
        let (logical, data) = (&self.image.logical, &self.image.data);
        io.program_whole(WholePage { single, ..WholePage::new(to, logical, data, Cause::Gc) })?;
        self.map.place(unit, to);
        self.invalidate(ppn);
        self.validate(to);
        Ok(())
    }

    /// As [`Self::copy_units`], for units smaller than a page: they gather in an open page.
    fn gather_units(&mut self, io: &mut Io, victim: u32, next: u32, most: u32) -> Flash<u32> {
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
            self.counters.moved_units += u64::from(count(units));
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
        io.program_whole(WholePage { single, ..WholePage::new(to, logical, data, Cause::Gc) })?;
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
mod tests {
    use super::*;
    use crate::log::Append;
    use crate::log::settings::{LogSettings, keys};
    use crate::maps::full::FullMap;
    use palimpsest_flash::geometry::Geometry;
    use palimpsest_flash::nand::part::samples::slc;
    use palimpsest_flash::nand::part::{CellKind, Part, ProgramOrder};
    use palimpsest_flash::nand::{Halt, Nand};
    use palimpsest_flash::rng::Rng;
    use palimpsest_flash::state::State;
    use palimpsest_ftl_api::keys::Value;
    use palimpsest_ftl_api::plan::operations::{Operation, Program};
    use palimpsest_ftl_api::plan::under_way;
    use palimpsest_ftl_api::settings::Settings;
    use std::collections::VecDeque;

    #[derive(Clone)]
    struct Case {
        geometry: Geometry,
        part: Part,
        settings: Settings,
        unit_subpages: u32,
        payload: Payload,
        protected: bool,
        /// Number of plans under way at once; none if the run only counts.
        plans: Option<usize>,
        seed: u64,
    }

    fn draw(seed: u64) -> Case {
        let mut rng = Rng::new(seed, 7);
        let mut one_of = |count: u64| rng.below(count) as usize;
        let subpages_per_page = [1, 2, 4, 8][one_of(4)];
        let pages_per_block = [8, 12, 66, 130][one_of(4)];
        let geometry = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: [1, 2][one_of(2)],
            blocks_per_plane: 28,
            pages_per_block,
            subpages_per_page,
            subpage_bytes: 4096,
        };
        let cell = [CellKind::Slc, CellKind::Tlc, CellKind::Mlc][one_of(3)];
        let page_bytes = subpages_per_page * 4096;
        let word_bytes = [1024, page_bytes][one_of(2)];
        let order = [ProgramOrder::Strict, ProgramOrder::Ascending][one_of(2)];
        let part = Part { cell, page_bytes, pages_per_block, word_bytes, order, ..slc() };
        let mut settings = Settings::of_defaults("subpage", keys());
        for (key, values) in [
            ("ftl.gc_pace", &["paced", "block"][..]),
            ("ftl.moved_to", &["plane", "die"]),
            ("ftl.wear_leveling", &["none", "static"]),
        ] {
            settings = settings.with(key, Value::Text(values[one_of(2)].into()));
        }
        settings = settings.with("ftl.streams", Value::Count([1, 2][one_of(2)]));
        Case {
            geometry,
            part,
            settings,
            unit_subpages: [1, subpages_per_page][one_of(2)],
            payload: [Payload::None, Payload::Tag][one_of(2)],
            protected: one_of(4) > 0,
            plans: None,
            seed,
        }
    }

    /// A minimal engine: takes plans, and ends the oldest if more than `most` are under way.
    struct Plans {
        most: usize,
        running: VecDeque<Vec<Operation>>,
        links: Vec<(Gate, Gate)>,
        planned: Planned,
    }

    #[derive(Default, PartialEq)]
    struct Planned {
        operations: Vec<Operation>,
        links: Vec<(Gate, Gate)>,
        follows: Vec<(u32, Program)>,
    }

    impl Plans {
        fn take(&mut self, io: &mut Io) {
            self.planned.links.extend_from_slice(&io.plan.links);
            self.planned.follows.extend_from_slice(&io.plan.follows);
            self.links.append(&mut io.plan.links);
            io.plan.delays.drain(..).collect::<Vec<_>>().iter().for_each(|&(gate, _)| self.signal(io, gate));
            let taken = std::mem::take(&mut io.plan.operations);
            for (operation, number) in taken.iter().zip(self.planned.operations.len() as u32..) {
                io.plan.replacing.run(operation.stored, number);
            }
            io.plan.clear();
            self.planned.operations.extend_from_slice(&taken);
            self.running.push_back(taken);
            while self.running.len() > self.most
                && let Some(oldest) = self.running.pop_front()
            {
                for operation in oldest {
                    if operation.under_way != under_way::NONE {
                        io.plan.under_way.remove(operation.under_way);
                    }
                    io.plan.replacing.remove(operation.stored);
                    self.signal(io, operation.signal);
                }
            }
        }

        /// Ends one operation that `gate` waits for.
        fn signal(&mut self, io: &mut Io, gate: Gate) {
            if gate.is_none() {
                return;
            }
            let slot = &mut io.plan.gates.slots[gate.slot() as usize];
            slot.remaining -= 1;
            if slot.remaining == 0 {
                io.plan.gates.close(gate);
                let (closed, open) = self.links.iter().partition::<Vec<_>, _>(|link| link.0 == gate);
                self.links = open;
                closed.into_iter().for_each(|(_, later)| self.signal(io, later));
            }
        }
    }

    /// The state after random writes, trims and flushes, the plans, and whether pages were copied.
    fn state(case: &Case, in_runs: bool) -> (Vec<u8>, Planned, bool) {
        let Case { geometry, part, settings, unit_subpages, payload, protected, plans, seed } = case;
        let mut io = Io::new(Nand::new(*geometry, part.clone(), *payload, None), plans.is_some());
        io.in_runs = in_runs;
        (io.plan.reads_memory, io.plan.protected) = (seed % 5 > 0, *protected);
        if seed % 3 > 0 {
            io.meter();
        }
        let most = plans.unwrap_or_default();
        let mut plans = Plans { most, running: VecDeque::new(), links: Vec::new(), planned: Planned::default() };
        let units = geometry.subpages() as u32 / unit_subpages * 21 / 28;
        let mut log_settings = LogSettings::new(settings);
        log_settings.read.mode = [ReadMode::Page, ReadMode::Dma][(seed % 2) as usize];
        let map = FullMap::new(units);
        let mut log = Log::new(&io, &log_settings, map, *unit_subpages, *protected, *seed);
        let mut rng = Rng::new(*seed, 8);
        for write in 0..4 * units {
            let unit = if write < units { write } else { rng.below(units.into()) as u32 };
            let contents: Vec<Data> = (0..*unit_subpages).map(|_| Data::new(rng.next_u64())).collect();
            let (cause, after, signal) = (Cause::Host, Gate::NONE, Gate::NONE);
            let what = Append { unit, data: contents[0], cause, after, signal, holds: 1 };
            let done = match (unit_subpages, rng.below(40)) {
                (_, 0) => {
                    log.trim(&mut io, unit);
                    Ok(())
                }
                (_, 1) => log.flush(&mut io, u64::MAX, Gate::NONE),
                (1, _) => log.append(&mut io, 0, what),
                _ => log.append_page(&mut io, 0, what, &contents),
            };
            match done {
                Err(Halt::NoSpace) => break,
                done => done.unwrap_or_else(|halt| panic!("seed {seed}: {halt:?}")),
            }
            plans.take(&mut io);
        }
        log.check(&io).unwrap_or_else(|what| panic!("seed {seed}, in runs: {in_runs}: {what}"));
        let mut bytes = Vec::new();
        io.save(&mut bytes);
        log.save(&mut bytes);
        (bytes, plans.planned, log.takes_copies(&io, 0) && log.counters.moved_units > 0)
    }

    /// Asserts that copies leave the state of moves. True if `case` copies.
    fn compare(case: &Case) -> bool {
        let ((with, planned, copies), (without, as_moves, moves)) = (state(case, true), state(case, false));
        assert!(with == without, "seed {}: the states differ", case.seed);
        for (number, (copy, moved)) in planned.operations.iter().zip(&as_moves.operations).enumerate() {
            assert_eq!(copy, moved, "seed {}: operation {number}", case.seed);
        }
        assert!(planned == as_moves, "seed {}: how many were planned, or what they follow, differs", case.seed);
        assert!(!moves, "seed {}: no copies were to be made", case.seed);
        copies
    }

    #[test]
    fn copies_leave_what_moves_leave() {
        let copied = (0..150).map(draw).filter(compare).count();
        assert!(copied > 75, "{copied} drives had copies");
    }

    #[test]
    fn copies_are_planned_as_moves_are() {
        let mut copied = 0;
        for seed in 150..300 {
            let mut case = draw(seed);
            case.geometry.blocks_per_plane = 14;
            case.plans = Some([0, 3, 30, 200][(seed % 4) as usize]);
            copied += u32::from(compare(&case));
        }
        assert!(copied > 40, "{copied} drives had copies");
    }
}
