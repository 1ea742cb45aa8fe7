//! After a power cut: the map and the blocks from what is on flash.
//!
//! Every subpage carries its logical number and the number of its program in its out-of-band area; the newest readable
//! copy of a unit wins, unless the journal of trims voids it. Open pages come back where the buffer is protected, and
//! are lost where writes are acknowledged by programs.

use super::Log;
use super::blocks::sort_by_last_write;
use super::open_pages::{HOLE, OpenPage};
use crate::log::map::{IN_OPEN_PAGE, Map, UNMAPPED};
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::{Flash, Outcome};
use palimpsest_ftl_api::plan::checkpoint::Tables;
use palimpsest_ftl_api::plan::{Cause, Erase, Io};

/// Blocks that hold something.
#[derive(Default)]
struct Found {
    /// Written to their end.
    written: Vec<u32>,
    /// With pages left.
    begun: Vec<u32>,
    /// Of the fixed share of the fast cache.
    cached: Vec<u32>,
}

/// Open pages that survived a power cut.
pub struct Survivors(Vec<OpenPage>);

impl<M: Map> Log<M> {
    /// Rebuilds everything from flash. Blocks whose erase was cut off are erased again.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    pub fn recover(&mut self, io: &mut Io) -> Flash<()> {
        io.recover_stripes()?;
        self.rebuild = Default::default();
        let survivors = self.recover_map(io);
        if !self.is_found {
            for block in 0..io.geometry().blocks() {
                io.scan(block);
            }
            io.drop_tables();
            self.recover_map(io);
        }
        self.recover_blocks(io, survivors)
    }

    /// The first half of [`Self::recover`]: the map, and the open pages that survived. Nothing on flash changes yet, so a
    /// layer may set now which subpages are outside the log.
    pub fn recover_map(&mut self, io: &Io) -> Survivors {
        assert_ne!(io.nand().payload(), Payload::None, "recovery needs the numbers that a payload keeps");
        let survivors = self.open.take_all();
        self.collector.failed.clear();
        self.collector.emptying.clear();
        self.collector.pace.forget();
        self.image.own.clear();
        self.passes.forget();
        self.map.clear();
        self.frontiers.forget(io);
        let tables = io.tables();
        let per_block = self.shape.per_block;
        let width = self.shape.unit_subpages;
        // A checkpoint may name what was trimmed since.
        let is_void = |entry: u32| {
            let erased = tables.as_ref().is_some_and(|tables| tables.is_void(per_block.divide(entry)));
            erased || io.nand().is_trimmed(entry * width)
        };
        if let Some(tables) = &tables {
            self.map.restore_places(tables.bytes, is_void);
        }
        for block in 0..io.geometry().blocks() {
            if !self.frontiers.is_reserved(block) {
                self.find_newest(io, block, tables.as_ref());
            }
        }
        self.is_found = self.map.restored(io.nand(), is_void);
        Survivors(survivors)
    }

    /// The second half of [`Self::recover`]: blocks whose erase was cut off are erased, failed ones are evacuated.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    pub fn recover_blocks(&mut self, io: &mut Io, Survivors(survivors): Survivors) -> Flash<()> {
        if self.open.protected {
            // Before anything can fail: the power may be cut again.
            self.restore_open_pages(survivors);
        }
        let mut found = Found::default();
        for block in 0..io.geometry().blocks() {
            if !self.frontiers.is_reserved(block) {
                self.adopt(io, block, &mut found)?;
            }
        }
        if io.tables().is_some() {
            self.mark_mapped();
        }
        io.keep_copies(|ppn| self.holds_valid(ppn));
        self.frontiers.blocks.close_in_order(io.nand(), found.written);
        sort_by_last_write(io.nand(), &mut found.cached);
        for block in found.cached {
            let (plane, next_page) = (io.geometry().plane_of_block(block), io.nand().next_page(block));
            // What is on a die that has failed is written no more.
            let next_page = if io.nand().is_dead(block) { u32::MAX } else { next_page };
            self.frontiers.fixed.resume(plane, block, next_page);
        }
        self.resume_frontiers(io, found.begun)?;
        for page in 0..self.open.len() {
            if self.open.is_full(page) {
                self.program_restored(io, page)?;
            }
        }
        self.evacuate_failed(io)
    }

    /// Blocks that were not written to their end are frontiers again: the emptiest ones, that of moved data first.
    fn resume_frontiers(&mut self, io: &mut Io, mut begun: Vec<u32>) -> Flash<()> {
        begun.sort_by_key(|&block| io.nand().next_page(block) - io.nand().left_out(block).len() as u32);
        let (data, own) = (self.frontiers.data_streams(), self.frontiers.own_stream());
        for block in begun {
            let plane = io.geometry().plane_of_block(block);
            let written = (io.nand().next_page(block), io.nand().left_out(block));
            let units = block * self.shape.units_per_block..(block + 1) * self.shape.units_per_block;
            let is_own = |unit: u32| M::IN_LOG && self.map.is_own(unit);
            let of_map = units.filter_map(|unit| self.shape.unit_at(io.nand(), unit)).next().is_some_and(is_own);
            let streams = if of_map { own..own + 1 } else { 0..data };
            let first = self.frontiers.moved_stream(block);
            let streams = (!of_map).then_some(first).into_iter().chain(streams);
            if !self.frontiers.resume(plane, block, written, streams) {
                io.leave_out(block)?;
            }
        }
        Ok(())
    }

    /// Programs an open page whose program was cut off, where that takes no free block if possible.
    fn program_restored(&mut self, io: &mut Io, page: u32) -> Flash<()> {
        let (home, data) = (self.open.stream_of(page), self.frontiers.data_streams());
        let cleaning = self.frontiers.cleaning_stream();
        let places = (0..io.geometry().planes()).flat_map(|plane| (0..data).map(move |stream| (plane, stream)));
        let best = places.max_by_key(|&(plane, stream)| {
            let begun = self.frontiers.is_open(plane, stream);
            // Cleaning needs its own frontier the most; a block that must be opened becomes its frontier.
            let preferred = begun == (Some(stream) != cleaning);
            (begun, self.frontiers.blocks.free_count(plane), begun && stream == home, preferred, u32::MAX - plane)
        });
        let (plane, stream) = best.unwrap_or((0, home));
        self.program_open_at(io, plane, stream, page)
    }

    /// Appends the tables that a checkpoint has: where units are on flash.
    pub fn save_tables(&self, bytes: &mut Vec<u8>) {
        self.map.save_places(bytes, |unit| self.on_flash(unit));
    }

    /// Lets the map point to the units of `block` that are newer than those it points to; all of it is newer than `tables`.
    fn find_newest(&mut self, io: &Io, block: u32, tables: Option<&Tables<'_>>) {
        let nand = io.nand();
        if nand.is_torn(block) {
            return;
        }
        let (per_block, width) = (self.shape.units_per_block, self.shape.unit_subpages);
        let (since, known) = tables.map_or((0, 0), |tables| (tables.since(block), tables.operations));
        for physical in block * per_block + since * self.shape.units_per_page..(block + 1) * per_block {
            if nand.sequence(physical * width) <= known {
                continue;
            }
            let Some(unit) = self.shape.unit_at(nand, physical) else { continue };
            let entry = self.map.locate(unit);
            if entry == UNMAPPED || nand.sequence(physical * width) > nand.sequence(entry * width) {
                self.map.restore(unit, physical);
            }
        }
    }

    /// Decides what becomes of `block`: free, to be retired, or one of `found`.
    fn adopt(&mut self, io: &mut Io, block: u32, found: &mut Found) -> Flash<()> {
        if io.nand().is_dead(block) {
            let cached = self.frontiers.fixed.holds(block);
            self.adopt_dead(io, block, if cached { &mut found.cached } else { &mut found.written });
            return Ok(());
        }
        let plane = io.geometry().plane_of_block(block);
        let bad = io.nand().is_bad(block);
        if !bad && io.nand().is_torn(block) && io.erase(Erase::new(block, Cause::Gc))? == Outcome::Failed {
            return self.adopt(io, block, found);
        }
        let used = io.nand().next_page(block);
        if self.frontiers.fixed.holds(block) {
            self.adopt_cached(io, plane, block, found);
            return Ok(());
        }
        if used == 0 && !bad {
            self.frontiers.found_free(plane);
            return Ok(());
        }
        self.frontiers.blocks.open_this(block);
        if io.tables().is_none() {
            self.mark_valid(io, block);
        }
        if bad {
            self.frontiers.blocks.abandon(block);
            self.collector.failed.push(block);
            return Ok(());
        }
        if io.nand().is_single(block) {
            self.frontiers.single.found(plane, block);
        }
        self.find_mark(io.nand(), plane, block);
        // A program that was cut off looks like a mark; where it took all of the block, that has the next pass or none.
        let has_pages = used < self.frontiers.single.pages_of(block) || !io.nand().left_out(block).is_empty();
        if self.frontiers.is_marked(block) && used == 1 && has_pages {
            self.frontiers.blocks.abandon(block);
            self.frontiers.release(plane, block);
        } else if has_pages {
            found.begun.push(block);
        } else if self.may_have_pass(io.nand(), block) {
            self.frontiers.set_marked(plane, block, false);
            self.frontiers.blocks.abandon(block);
            self.frontiers.release(plane, block);
        } else {
            found.written.push(block);
        }
        Ok(())
    }

    /// As [`Self::adopt`], of a block of the fixed share of the fast cache, which was free until now.
    fn adopt_cached(&mut self, io: &Io, plane: u32, block: u32, found: &mut Found) {
        let bad = io.nand().is_bad(block);
        if io.nand().next_page(block) == 0 && !bad {
            return;
        }
        self.frontiers.fixed.drop_block(plane, block);
        if io.tables().is_none() {
            self.mark_valid(io, block);
        }
        if bad { self.collector.failed.push(block) } else { found.cached.push(block) }
    }

    pub(super) fn mark_valid(&mut self, io: &Io, block: u32) {
        for unit in 0..self.shape.units_per_block {
            let physical = block * self.shape.units_per_block + unit;
            let Some(logical) = self.shape.unit_at(io.nand(), physical) else { continue };
            if self.on_flash(logical) == physical {
                self.frontiers.blocks.validate(block, unit);
            }
        }
    }

    /// Whether page `ppn` holds a valid unit.
    fn holds_valid(&self, ppn: u32) -> bool {
        let (block, page) = (ppn / self.shape.pages_per_block, ppn % self.shape.pages_per_block);
        let units = self.shape.units_per_page;
        self.frontiers.is_reserved(block) || self.frontiers.blocks.valid_bits(block, page * units, units) != 0
    }

    /// All that the map points to is valid.
    fn mark_mapped(&mut self) {
        for unit in 0..self.map.units() {
            let physical = self.on_flash(unit);
            if physical != UNMAPPED {
                self.validate(physical);
            }
        }
    }

    /// The valid physical unit of `unit`, or [`UNMAPPED`].
    #[inline]
    pub(super) fn on_flash(&self, unit: u32) -> u32 {
        match self.map.locate(unit) {
            entry if entry != UNMAPPED && entry >= IN_OPEN_PAGE => self.open.slot(entry).previous,
            entry => entry,
        }
    }

    fn restore_open_pages(&mut self, survivors: Vec<OpenPage>) {
        for (page, mut survivor) in (0..).zip(survivors) {
            for (index, slot) in (0..).zip(&mut survivor.slots) {
                if slot.unit != HOLE {
                    let previous = self.map.place(slot.unit, self.open.next_entry(page) + index);
                    // The open page survives the next cut, too: a block that was free for another pass stays so.
                    slot.previous = if self.passes.most > 1 { UNMAPPED } else { previous };
                }
            }
            self.open.restore(page, survivor);
        }
        self.open.find_oldest();
    }
}

#[cfg(test)]
mod tests {
    use crate::log::blocks::Blocks;
    use palimpsest_flash::geometry::Geometry;
    use palimpsest_flash::nand::data::{Data, Payload};
    use palimpsest_flash::nand::part::samples::slc;
    use palimpsest_flash::nand::{Nand, Outcome};
    use palimpsest_ftl_api::plan::{Cause, Io, Program};

    #[test]
    fn blocks_are_as_old_as_their_last_page() {
        let geometry = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: 4,
            pages_per_block: 2,
            subpages_per_page: 1,
            subpage_bytes: 4096,
        };
        let mut io = Io::new(Nand::new(geometry, slc(), Payload::Tag, None), false);
        let mut blocks = Blocks::new(&geometry, 2, |_| false);
        [0, 2, 3].into_iter().for_each(|block| blocks.open_this(block));
        // Block 0 is begun first and ends last.
        for (unit, ppn) in [(0, 0), (1, 4), (2, 5), (3, 6), (4, 7), (5, 1)] {
            let programmed = io.program(Program::new(ppn, &[unit], &[Data::new(7)], Cause::Host));
            assert_eq!(programmed.expect("an erased page"), Outcome::Done);
        }
        blocks.close_in_order(io.nand(), vec![0, 3, 2]);
        assert_eq!(blocks.closed_in_order(0).collect::<Vec<_>>(), [2, 3, 0]);
    }
}
