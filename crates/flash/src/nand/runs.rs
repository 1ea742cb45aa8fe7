//! The fast path of flash: reads and programs of whole erased pages without faults, rollback or side tables
//! ([`Nand::takes_runs`]), for filling and cleaning a drive.
//!
//! The result must equal [`Nand::read`] and [`Nand::program`], except for the history of operations: rounds record only
//! the last page of each block, and no reads. Ignored: configurations that need the general path.

use super::data::{Data, Payload};
use super::history::RecordKind;
use super::part::{ProgramOrder, ReadCommand};
use super::{Flash, Nand, SubpageMask};

impl Nand {
    /// Whether the fast path may be used: no power cut is scheduled, nothing fails or wears out, and pages have no
    /// parity, code or bytes.
    pub fn takes_runs(&self) -> bool {
        self.faults.is_none()
            && self.errors.is_none()
            && self.stripes.is_none()
            && self.undo.is_none()
            && self.part.code.is_none()
            && self.power_cut_at == u64::MAX
            && self.payload.kind() != Payload::Bytes
            && self.payload.image.is_none()
    }

    /// Programs all of the erased page `ppn` with the logical numbers from `first` on and their fingerprints by `tag`.
    ///
    /// # Errors
    /// [`super::Halt::Refused`] with the broken rule.
    #[inline]
    pub fn program_run(&mut self, ppn: u32, first: u32, tag: impl Fn(u32) -> u64) -> Flash<()> {
        let place = self.begin_whole(ppn)?;
        let width = self.geometry.subpages_per_page as usize;
        let begin = ppn as usize * width;
        for (cell, logical) in self.logical[begin..begin + width].iter_mut().zip(first..) {
            *cell = logical;
        }
        self.payload.store_run(begin, width, first, self.operations, tag);
        self.end_whole(place, ppn);
        Ok(())
    }

    /// Programs all of the erased page `ppn` with `logical` and `data`, one entry a subpage.
    ///
    /// # Errors
    /// As [`Self::program_run`].
    #[inline(always)]
    pub fn program_whole(&mut self, ppn: u32, logical: &[u32], data: &[Data]) -> Flash<()> {
        let (block, page) = self.split(ppn);
        if self.payload.kind() != Payload::None || !self.is_next((block, page), ppn) {
            return self.program_any_whole(ppn, logical, data);
        }
        debug_assert!(self.takes_runs());
        self.operations += 1;
        self.history.note(RecordKind::Program, block, page, self.all_subpages);
        self.program_next((block, page), ppn, logical);
        Ok(())
    }

    /// [`Self::program_whole`] of a page that may not be the next, or with contents.
    #[inline(never)]
    fn program_any_whole(&mut self, ppn: u32, logical: &[u32], data: &[Data]) -> Flash<()> {
        let place = self.begin_whole(ppn)?;
        let begin = ppn as usize * logical.len();
        self.logical[begin..begin + logical.len()].copy_from_slice(logical);
        self.payload.store(begin, self.all_subpages, data, self.operations);
        self.end_whole(place, ppn);
        Ok(())
    }

    /// Begins a program of all of page `ppn`; returns its block and page.
    #[inline]
    fn begin_whole(&mut self, ppn: u32) -> Flash<(u32, u32)> {
        debug_assert!(self.takes_runs() && self.programs[ppn as usize] == 0);
        self.operations += 1;
        let (block, page) = self.split(ppn);
        self.history.note(RecordKind::Program, block, page, self.all_subpages);
        if !self.is_next((block, page), ppn)
            && let Err(rule) = self.probe_program(ppn, self.all_subpages, false)
        {
            return Err(self.refuse(rule, block, page));
        }
        Ok((block, page))
    }

    #[inline]
    fn end_whole(&mut self, (block, page): (u32, u32), ppn: u32) {
        self.programs[ppn as usize] = 1;
        let state = &mut self.blocks[block as usize];
        state.gaps |= page > state.next_page;
        state.next_page = state.next_page.max(page + 1);
        if self.part.paired() {
            self.note_pair(block, page, false);
        }
        self.count_program((block, page), self.all_subpages, false);
    }

    /// Whether `page` of `block`, which is `ppn`, is erased and the next, in a block that may be programmed in any
    /// order.
    #[inline]
    pub(super) fn is_next(&self, (block, page): (u32, u32), ppn: u32) -> bool {
        let state = &self.blocks[block as usize];
        let next = page == state.next_page && !(state.gaps || state.bad || state.torn);
        let ordered = !matches!(self.part.order, ProgramOrder::LowLowHigh | ProgramOrder::LowHighLow);
        next && ordered && !self.part.paired() && self.programs[ppn as usize] == 0
    }

    /// Reads the subpages `wanted` of page `ppn` by sensing the whole page.
    ///
    /// # Errors
    /// [`super::Halt::Refused`] if a wanted subpage holds no data.
    #[inline]
    pub fn sense_whole(&mut self, ppn: u32, wanted: SubpageMask) -> Flash<()> {
        debug_assert!(self.takes_runs());
        self.operations += 1;
        let (block, page) = self.split(ppn);
        if let Err(rule) = self.probe_read_of((block, page), ppn, wanted, ReadCommand::PAGE) {
            return Err(self.refuse(rule, block, page));
        }
        self.counters.reads += 1;
        self.counters.read_energy += self.part.read_energy(page, ReadCommand::PAGE);
        Ok(())
    }

    /// Whether pages of `block` from `page`, the next, may be programmed in order.
    pub fn takes_rounds(&self, block: u32, page: u32) -> bool {
        let state = &self.blocks[block as usize];
        !self.part.paired() && !state.bad && !state.torn && !state.kept && state.next_page == page
    }

    /// Whether all pages of `block` up to `page` can be read completely.
    #[inline]
    pub fn is_written(&self, block: u32, page: u32) -> bool {
        let state = &self.blocks[block as usize];
        !state.gaps && page < state.next_page
    }

    /// Copies the pages `pages` (bits, counted from page `from`) to the pages from `to` on, each read before its
    /// program. The caller must have checked [`Self::is_written`] and [`Self::takes_rounds`].
    #[inline]
    pub fn copy_run(&mut self, from: u32, pages: u64, to: u32) {
        debug_assert!(self.takes_runs());
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
        self.history.note(RecordKind::Program, block, page + count - 1, self.all_subpages);
        let count = u64::from(count);
        self.operations += 2 * count;
        self.counters.reads += count;
        self.counters.read_energy += count * self.part.e_read;
        self.counters.programs += count;
        self.counters.program_energy += count * self.part.e_program;
    }

    /// [`Self::copy_run`] for contents of cells.
    fn copy_payload(&mut self, from: u32, mut pages: u64, to: u32) {
        let width = self.geometry.subpages_per_page;
        let (mut operation, mut cell) = (self.operations, to * width);
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

    /// Programs `rounds` pages of each of `frontiers` (block and page), in turn, with the logical numbers from `first`
    /// on. The caller must have checked [`Self::takes_rounds`] of each.
    pub fn program_rounds(&mut self, frontiers: &[(u32, u32)], rounds: u32, first: u32, tag: impl Fn(u32) -> u64) {
        let (width, turns) = (self.geometry.subpages_per_page, frontiers.len() as u32);
        for (turn, &(block, page)) in (0..).zip(frontiers) {
            let begin = self.first_page(block) + page as usize;
            let programs = &mut self.programs[begin..begin + rounds as usize];
            debug_assert!(programs.iter().all(|&programs| programs == 0), "no page behind the next is programmed");
            programs.fill(1);
            let cells = &mut self.logical[begin * width as usize..(begin + rounds as usize) * width as usize];
            fill_pages(cells, width, first + turn * width, turns * width);
            self.blocks[block as usize].next_page = page + rounds;
            self.history.note(RecordKind::Program, block, page + rounds - 1, self.all_subpages);
        }
        if self.payload.kind() != Payload::None {
            for (at, round) in (0..rounds).flat_map(|round| (0..turns).map(move |turn| (turn, round))) {
                let (block, page) = frontiers[at as usize];
                let cell = (self.first_page(block) + (page + round) as usize) * width as usize;
                let page = round * turns + at;
                let operation = self.operations + u64::from(page) + 1;
                self.payload.store_run(cell, width as usize, first + page * width, operation, &tag);
            }
        }
        let programs = u64::from(rounds * turns);
        self.operations += programs;
        self.counters.programs += programs;
        self.counters.program_energy += programs * self.part.e_program;
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
