//! Fills a new drive in order, in counted runs: programs slices of whole pages of units that were never written,
//! instead of unit by unit.
//!
//! Planes and blocks are the same as for writes of single units; checks that never apply are skipped. If all planes
//! take turns, whole rounds are one slice. The first and last page of each block are a slice of one, because they open
//! and close the block, and so is each page of a part with paired pages. Fills stop where a write would do more, such
//! as clean a plane; writes must do the rest.

use super::Log;
use crate::log::map::Map;
use palimpsest_flash::nand::{Flash, Row};
use palimpsest_ftl_api::plan::{Io, SliceIo};

impl<M: Map> Log<M> {
    /// Writes whole pages of the `units` units from `first` on to `stream`, as a write of each page would. Returns the
    /// number of units written: 0 if a write would do more than fill pages in turn.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    pub fn fill(&mut self, io: &mut Io, stream: u32, first: u32, units: u32) -> Flash<u32> {
        let (per_page, width) = (self.shape.units_per_page, self.shape.unit_subpages);
        let waits = self.open.oldest.is_some() || !self.collector.failed.is_empty() || self.passes.most > 1;
        let waits = waits || self.frontiers.fixed.folds();
        if !M::TAKES_RUNS || waits || !io.takes_rows() {
            return Ok(0);
        }
        let mut done = 0;
        while units - done >= per_page {
            let unit = first + done;
            let rounds = self.fill_rounds(io, stream, unit, units - done);
            if rounds > 0 {
                done += rounds;
                continue;
            }
            let last = unit + per_page - 1;
            let (page, ends) = (self.shape.per_page.divide(unit), self.shape.per_page.divide(last));
            let group = self.frontiers.rotation.group(page);
            let together = page == ends || self.frontiers.rotation.groups() == 1;
            if !together || self.is_filling(stream, group) {
                break;
            }
            let in_turn = self.frontiers.first_plane(io, stream, ends);
            let plane = self.first_plane(stream, in_turn);
            let short = self.frontiers.free_pages[plane as usize] <= self.collector.start;
            let cached = stream + 1 < self.frontiers.data_streams() && self.frontiers.fixed.has_page(plane);
            if !cached && (short || self.has_empty_cached(plane) || !self.may_take(plane, stream)) {
                break;
            }
            self.frontiers.rotation.used(plane);
            let ppn = self.frontiers.take_page(io, plane, stream)?;
            let (block, page) = io.nand().split(ppn);
            let row = Row { block, page, single: self.frontiers.single.holds(block) };
            io.program_rows(&[row], 1, unit * width);
            self.map.place_run(unit, per_page, ppn * per_page);
            self.frontiers.blocks.validate_range(block, page * per_page, per_page);
            done += per_page;
        }
        self.count_written(stream, done);
        Ok(done)
    }

    /// Programs rounds over all planes, as many as the open blocks of `stream` have pages minus one, of the `units`
    /// units from `first` on. Returns the number of units written.
    fn fill_rounds(&mut self, io: &mut Io, stream: u32, first: u32, units: u32) -> u32 {
        let (per_page, planes) = (self.shape.units_per_page, self.frontiers.planes());
        let (mut rounds, mut rows) = (units / per_page / planes, Vec::new());
        if rounds == 0 || !self.frontiers.rotation.takes_turns() || self.is_filling(stream, 0) {
            return 0;
        }
        let turn = self.frontiers.first_plane(io, stream, 0);
        for plane in (turn..planes).chain(0..turn) {
            let Some((block, page)) = self.frontiers.frontier(plane, stream) else { return 0 };
            if self.frontiers.fixed.has_page(plane) || self.has_empty_cached(plane) {
                return 0;
            }
            let above = self.frontiers.free_pages[plane as usize].saturating_sub(self.collector.start);
            rounds = rounds.min(self.frontiers.pages_left(plane, stream) - 1).min(above);
            if rounds == 0 || !self.may_take(plane, stream) || !io.nand().takes_rows(block, page) {
                return 0;
            }
            rows.push(Row { block, page, single: self.frontiers.single.holds(block) });
        }
        let width = self.shape.unit_subpages;
        io.program_rows(&rows, rounds, first * width);
        let (ppb, mut unit) = (self.shape.pages_per_block, first);
        for round in 0..rounds {
            for &Row { block, page, .. } in &rows {
                self.map.place_run(unit, per_page, (block * ppb + page + round) * per_page);
                unit += per_page;
            }
        }
        for (plane, Row { block, page, .. }) in (turn..planes).chain(0..turn).zip(rows) {
            self.frontiers.blocks.validate_range(block, page * per_page, rounds * per_page);
            self.frontiers.take_pages(plane, stream, rounds);
        }
        unit - first
    }

    /// True if the open page of `stream` and `group` has units.
    #[inline]
    fn is_filling(&self, stream: u32, group: u32) -> bool {
        self.shape.units_per_page > 1 && self.open.filled(self.open.host_page(stream, group)) > 0
    }
}
