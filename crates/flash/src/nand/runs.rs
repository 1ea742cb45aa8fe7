//! Programs of whole erased pages with consecutive logical numbers: what filling a drive does, without the branches that it never takes.
//!
//! [`Nand::program_run`] and [`Nand::program_rounds`] leave what [`Nand::program`] would, where nothing can fail, be taken back, or be kept
//! elsewhere ([`Nand::takes_runs`]). Of rounds the history keeps the last page of each block only.

use super::data::Payload;
use super::history::RecordKind;
use super::{Flash, Nand};

impl Nand {
    /// Whether pages can be programmed so: no power cut is to come, nothing fails or wears out, pages have no parity, cells no code and no bytes.
    pub fn takes_runs(&self) -> bool {
        self.faults.is_none()
            && self.errors.is_none()
            && self.stripes.is_none()
            && self.undo.is_none()
            && self.part.code.is_none()
            && self.power_cut_at == u64::MAX
            && self.payload.kind() != Payload::Bytes
    }

    /// Programs all of page `ppn`, which is erased, with the logical numbers from `first` on; `tag` gives the fingerprint of each.
    ///
    /// # Errors
    /// [`super::Halt::Refused`] with the rule that this breaks.
    #[inline]
    pub fn program_run(&mut self, ppn: u32, first: u32, tag: impl Fn(u32) -> u64) -> Flash<()> {
        debug_assert!(self.takes_runs() && self.programs[ppn as usize] == 0);
        self.operations += 1;
        let (block, page) = self.split(ppn);
        self.history.note(RecordKind::Program, block, page, self.all_subpages);
        if let Err(rule) = self.probe_program(ppn, self.all_subpages, false) {
            return Err(self.refuse(rule, block, page));
        }
        let width = self.geometry.subpages_per_page as usize;
        let begin = ppn as usize * width;
        for (cell, logical) in self.logical[begin..begin + width].iter_mut().zip(first..) {
            *cell = logical;
        }
        self.payload.store_run(begin, width, first, self.operations, tag);
        self.programs[ppn as usize] = 1;
        let state = &mut self.blocks[block as usize];
        state.gaps |= page > state.next_page;
        state.next_page = state.next_page.max(page + 1);
        if self.part.paired() {
            self.note_pair(block, page, false);
        }
        self.count_program((block, page), self.all_subpages, false);
        Ok(())
    }

    /// Whether pages of `block` from `page` on, which is the next, may be programmed in order.
    pub fn takes_rounds(&self, block: u32, page: u32) -> bool {
        let state = &self.blocks[block as usize];
        !self.part.paired() && !state.bad && !state.torn && !state.kept && state.next_page == page
    }

    /// Programs `rounds` pages of each of `frontiers` (block and page), in turn: all of them, with the logical numbers from `first` on.
    /// Each takes them ([`Self::takes_rounds`]).
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

/// Fills pages of `width` cells with consecutive numbers, those of the first from `first` on, of each other `apart` more.
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
