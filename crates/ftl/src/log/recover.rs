//! Recovery after a power cut: rebuilds the map and the states of blocks from flash.
//!
//! Every subpage carries a logical number and the number of the program in the out-of-band area. The newest readable
//! copy of a unit wins, unless the journal of trims voids the copy. Open pages are restored if the buffer is protected,
//! and lost if programs acknowledge writes.

use super::Log;
use super::open_pages::{HOLE, OpenPage};
use crate::log::map::{IN_OPEN_PAGE, Map, UNMAPPED};
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::{Flash, Outcome};
use palimpsest_ftl_api::plan::checkpoint::Tables;
use palimpsest_ftl_api::plan::{Cause, CheckpointIo, Erase, Io, PairedIo, ParityIo, RecoveryIo};

/// Blocks with data.
#[derive(Default)]
struct Found {
    /// Written to the end.
    written: Vec<u32>,
    /// With pages left.
    begun: Vec<u32>,
    /// In the fixed share of the fast cache.
    cached: Vec<u32>,
}

/// Open pages that survived a power cut.
pub struct Survivors(Vec<OpenPage>);

impl<M: Map> Log<M> {
    /// Rebuilds everything from flash. Blocks whose erase was interrupted are erased again.
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

    /// The first half of [`Self::recover`]: the map, and the open pages that survived. Flash is not changed yet, so a
    /// layer may set the subpages outside the log between the halves.
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
        // A checkpoint may name units that were trimmed or erased later.
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

    /// The second half of [`Self::recover`]: erases blocks whose erase was interrupted, and evacuates failed ones.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    pub fn recover_blocks(&mut self, io: &mut Io, Survivors(survivors): Survivors) -> Flash<()> {
        if self.open.protected {
            // Must precede every flash operation, because the power may be cut again.
            self.restore_open_pages(survivors);
        }
        self.mark_mapped();
        let mut found = Found::default();
        for block in 0..io.geometry().blocks() {
            if !self.frontiers.is_reserved(block) {
                self.adopt(io, block, &mut found)?;
            }
        }
        io.keep_copies(|ppn| self.holds_valid(ppn));
        self.frontiers.blocks.close_in_order(io.nand(), found.written);
        self.frontiers.resume_cached(io.nand(), found.cached);
        self.resume_frontiers(io, found.begun)?;
        for page in 0..self.open.len() {
            if self.open.is_full(page) {
                self.program_restored(io, page)?;
            }
        }
        self.evacuate_failed(io)
    }

    /// Makes frontiers of blocks with pages left: the emptiest ones, the frontier of moved data first.
    fn resume_frontiers(&mut self, io: &mut Io, mut begun: Vec<u32>) -> Flash<()> {
        begun.sort_by_key(|&block| io.nand().next_page(block) - io.nand().left_out(block).len() as u32);
        let (data, own) = (self.frontiers.data_streams(), self.frontiers.own_stream());
        let mut left = 0;
        for block in begun {
            let plane = io.geometry().plane_of_block(block);
            let written = (io.nand().next_page(block), io.nand().left_out(block));
            let units = block * self.shape.units_per_block..(block + 1) * self.shape.units_per_block;
            let is_own = |unit: u32| M::IN_LOG && self.map.is_own(unit);
            let of_map = units.filter_map(|unit| self.shape.unit_at(io.nand(), unit)).next().is_some_and(is_own);
            // Units of a handle have data of that handle only.
            let first = self.home_of(block);
            let streams = match &self.handles {
                _ if of_map => own..own + 1,
                Some(_) => first..first + 1,
                None => 0..data,
            };
            let streams = (!of_map).then_some(first).into_iter().chain(streams);
            if !self.frontiers.resume(plane, block, written, streams) {
                left += 1;
                io.leave_out(block)?;
            }
        }
        self.note_reset(left);
        Ok(())
    }

    /// Programs an open page whose program was interrupted, without opening a free block if possible.
    fn program_restored(&mut self, io: &mut Io, page: u32) -> Flash<()> {
        let (home, data) = (self.open.stream_of(page), self.frontiers.data_streams());
        let cleaning = self.frontiers.cleaning_stream();
        let streams = if self.handles.is_some() { home..home + 1 } else { 0..data };
        let places = (0..io.geometry().planes()).flat_map(|plane| streams.clone().map(move |stream| (plane, stream)));
        let best = places.max_by_key(|&(plane, stream)| {
            let begun = self.frontiers.is_open(plane, stream);
            // Cleaning needs a separate frontier most, so a block that must be opened becomes the frontier of cleaning.
            let preferred = begun == (Some(stream) != cleaning);
            let has_room = begun || self.frontiers.blocks.free_count(plane) > 0;
            let is_home = has_room && !self.is_of_other_group(plane, stream);
            (
                is_home,
                begun,
                self.frontiers.blocks.free_count(plane),
                begun && stream == home,
                preferred,
                u32::MAX - plane,
            )
        });
        let (plane, stream) = best.unwrap_or((0, home));
        self.program_open_at(io, plane, stream, page)
    }

    /// Appends the places of units on flash, for a checkpoint.
    pub fn save_tables(&self, bytes: &mut Vec<u8>) {
        self.map.save_places(bytes, |unit| self.on_flash(unit));
    }

    /// Maps units of `block` whose copy is newer than the mapped one. Pages known to `tables` are skipped.
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

    /// Frees or retires `block`, or adds the block to `found`.
    fn adopt(&mut self, io: &mut Io, block: u32, found: &mut Found) -> Flash<()> {
        let of_kind = if self.frontiers.fixed.holds(block) { &mut found.cached } else { &mut found.written };
        if io.nand().is_dead(block) {
            of_kind.extend(self.frontiers.adopt_dead(io.nand(), block).then_some(block));
            return Ok(());
        }
        let plane = io.geometry().plane_of_block(block);
        let bad = io.nand().is_bad(block);
        if !bad && io.nand().is_torn(block) && io.erase(Erase::new(block, Cause::Gc))? == Outcome::Failed {
            return self.adopt(io, block, found);
        }
        if !self.frontiers.adopt(io.nand(), block) {
            return Ok(());
        }
        if bad {
            self.frontiers.drop_block(plane, block);
            self.collector.failed.push(block);
            return Ok(());
        }
        if self.frontiers.fixed.holds(block) {
            found.cached.push(block);
            return Ok(());
        }
        let used = io.nand().next_page(block);
        self.find_mark(io.nand(), plane, block);
        // A page of an interrupted program looks like a mark. If that was the only page, the block gets the next pass
        // or none.
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

    fn holds_valid(&self, ppn: u32) -> bool {
        let (block, page) = (ppn / self.shape.pages_per_block, ppn % self.shape.pages_per_block);
        let units = self.shape.units_per_page;
        self.frontiers.is_reserved(block) || self.frontiers.blocks.valid_bits(block, page * units, units) != 0
    }

    /// Marks every mapped unit valid.
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
                    // Open pages survive the next power cut, too, so a block that was free for another pass stays free.
                    slot.previous = if self.passes.most > 1 { UNMAPPED } else { previous };
                }
            }
            self.open.restore(page, survivor);
        }
        self.open.find_oldest();
    }
}

#[cfg(test)]
mod tests;
