//! Programs of whole erased pages with consecutive logical numbers: what filling a drive does, without the branches that it never takes.
//!
//! [`Nand::program_run`] leaves what [`Nand::program`] would, where nothing can fail, be taken back, or be kept elsewhere
//! ([`Nand::takes_runs`]).

use super::data::Payload;
use super::history::RecordKind;
use super::{Flash, Nand};

impl Nand {
    /// Whether pages can be programmed so: no power cut is to come, nothing fails or wears out, cells have no code and hold no bytes.
    pub fn takes_runs(&self) -> bool {
        self.faults.is_none()
            && self.errors.is_none()
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
        self.count_program(ppn, self.all_subpages, false);
        Ok(())
    }
}
