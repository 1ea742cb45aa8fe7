//! Slices of whole erased pages: copies for collection, and programs that fill a drive.
//!
//! The result must equal [`Nand::read`] and [`Nand::program`] of each page, except for the history of operations, which
//! records only the last page of each block, and no reads. Ignored: faults, rollback, bytes and side tables.

use super::data::Payload;
use super::history::RecordKind;
use super::part::{ProgramOrder, ReadCommand};
use super::{Flash, Nand, SubpageMask};

/// Pages of a block to program in order, from `page` on.
#[derive(Clone, Copy)]
pub struct Row {
    pub block: u32,
    pub page: u32,
    /// True if the cells of the block hold one bit each.
    pub single: bool,
}

impl Nand {
    /// Whether pages may be copied and programmed in slices: no power cut is scheduled, nothing fails or wears out, and
    /// pages have no parity, code or bytes.
    pub fn takes_slices(&self) -> bool {
        self.failures.faults.is_none()
            && self.failures.errors.is_none()
            && !self.has_parity()
            && self.records.undo.is_none()
            && self.part.code.is_none()
            && self.schedule.power_cut_at == u64::MAX
            && self.payload.kind() != Payload::Bytes
    }

    /// Whether `page` of `block`, which is `ppn`, is erased and the next, in a block that may be programmed in any
    /// order.
    #[inline(always)]
    pub(super) fn is_next(&self, (block, page): (u32, u32), ppn: u32) -> bool {
        let state = &self.blocks[block as usize];
        let next = page == state.next_page && !(state.gaps || state.bad || state.torn);
        let ordered = !matches!(self.part.order, ProgramOrder::LowLowHigh | ProgramOrder::LowHighLow);
        next && ordered && !self.part.paired() && self.programs[ppn as usize] == 0
    }

    /// Reads the subpages `wanted` of page `ppn` by sensing the whole page, in a run with slices.
    ///
    /// # Errors
    /// [`super::Halt::Refused`] if a wanted subpage holds no data.
    #[inline]
    pub fn read_for_copy(&mut self, ppn: u32, wanted: SubpageMask) -> Flash<()> {
        debug_assert!(self.takes_slices());
        self.schedule.operations += 1;
        let (block, page) = self.split(ppn);
        if let Err(rule) = self.probe_read_of((block, page), ppn, wanted, ReadCommand::PAGE) {
            return Err(self.refuse(rule, block, page));
        }
        self.counters.reads += 1;
        self.counters.read_energy += self.part.read_energy(self.page_of_die(page), ReadCommand::PAGE);
        Ok(())
    }

    /// Whether pages of `block` from `page`, the next, may be programmed in order.
    pub fn takes_rows(&self, block: u32, page: u32) -> bool {
        let state = &self.blocks[block as usize];
        !self.part.paired() && !state.bad && !state.torn && !state.kept && state.next_page == page
    }

    /// Whether pages up to page `last` of a block may be copied to the pages of another block from `to` on.
    #[inline]
    pub fn takes_copies(&self, last: u32, to: u32) -> bool {
        let ((victim, last), (block, page)) = (self.split(last), self.split(to));
        let state = &self.blocks[victim as usize];
        let plain = self.part.pages_per_program == 1 && !self.has_own() && !state.gaps;
        plain && last < state.next_page && self.takes_rows(block, page)
    }

    /// Copies the pages `pages` (bits, counted from page `from`) to the pages from `to` on, each read before its
    /// program. The caller must have checked [`Self::takes_copies`].
    #[inline]
    pub fn copy(&mut self, from: u32, pages: u64, to: u32) {
        debug_assert!(self.takes_slices());
        let (width, count) = (self.geometry.subpages_per_page as usize, pages.count_ones());
        let (block, page) = self.split(to);
        let (mut rest, mut cell) = (pages, to as usize * width);
        while rest != 0 {
            let source = (from + rest.trailing_zeros()) as usize * width;
            rest &= rest - 1;
            for index in 0..width {
                self.logical[cell + index] = self.logical[source + index];
            }
            cell += width;
        }
        if self.payload.kind() != Payload::None {
            self.copy_payload(from, pages, to);
        }
        let programs = &mut self.programs[to as usize..][..count as usize];
        debug_assert!(programs.iter().all(|&programs| programs == 0), "no page behind the next is programmed");
        programs.fill(1);
        self.blocks[block as usize].next_page = page + count;
        self.records.history.note(RecordKind::Program, block, page + count - 1, self.widths.all_subpages);
        let count = u64::from(count);
        self.schedule.operations += 2 * count;
        self.counters.reads += count;
        self.counters.read_energy += count * self.part.e_read;
        self.counters.programs += count;
        self.counters.program_energy += count * self.part.e_program;
    }

    /// [`Self::copy`] for contents of cells.
    fn copy_payload(&mut self, from: u32, mut pages: u64, to: u32) {
        let width = self.geometry.subpages_per_page;
        let (mut operation, mut cell) = (self.schedule.operations, to * width);
        while pages != 0 {
            let source = (from + pages.trailing_zeros()) * width;
            pages &= pages - 1;
            operation += 2;
            for index in 0..width {
                let data = self.payload.load(source + index);
                self.payload.store((cell + index) as usize, 1, &[data], operation);
            }
            cell += width;
        }
    }

    /// Programs `rounds` pages of each of `rows` in turn, with the logical numbers from `first` on and their
    /// fingerprints by `tag`. The caller must have checked [`Self::takes_rows`] of each, or program single pages in the
    /// order of the part.
    pub fn program_rows(&mut self, rows: &[Row], rounds: u32, first: u32, tag: impl Fn(u32) -> u64) {
        debug_assert!(self.takes_slices());
        let (width, turns) = (self.geometry.subpages_per_page, rows.len() as u32);
        for (turn, &Row { block, page, single }) in (0..).zip(rows) {
            debug_assert!(self.takes_rows(block, page) || self.part.paired() && rounds == 1);
            let begin = self.first_page(block) + page as usize;
            self.programs[begin..begin + rounds as usize].fill(1);
            let cells = &mut self.logical[begin * width as usize..(begin + rounds as usize) * width as usize];
            fill_pages(cells, width, first + turn * width, turns * width);
            let state = &mut self.blocks[block as usize];
            state.gaps |= page > state.next_page;
            (state.next_page, state.single) = (state.next_page.max(page + rounds), single);
            self.records.history.note(RecordKind::Program, block, page + rounds - 1, self.widths.all_subpages);
        }
        if self.payload.kind() != Payload::None {
            for (at, round) in (0..rounds).flat_map(|round| (0..turns).map(move |turn| (turn, round))) {
                let Row { block, page, .. } = rows[at as usize];
                let cell = (self.first_page(block) + (page + round) as usize) * width as usize;
                let page = round * turns + at;
                let operation = self.schedule.operations + u64::from(page) + 1;
                self.payload.store_run(cell, width as usize, first + page * width, operation, &tag);
            }
        }
        let programs = u64::from(rounds * turns);
        self.schedule.operations += programs;
        if self.part.paired() {
            return rows.iter().for_each(|row| self.count_paired(row));
        }
        self.counters.programs += programs;
        self.counters.program_energy += programs * self.part.e_program;
    }

    /// Counts the program of the first page of a row, whose energy depends on the pages before.
    fn count_paired(&mut self, &Row { block, page, .. }: &Row) {
        self.note_pair(block, page, false);
        self.count_program((block, page), self.widths.all_subpages, false);
    }
}

/// Fills pages of `width` cells with consecutive numbers, the first page from `first` on, each further page `apart`
/// more.
#[inline]
fn fill_pages(cells: &mut [u32], width: u32, first: u32, apart: u32) {
    let mut number = first;
    for page in cells.chunks_exact_mut(width as usize) {
        for (cell, logical) in page.iter_mut().zip(number..) {
            *cell = logical;
        }
        number = number.wrapping_add(apart);
    }
}
