//! Checks of operations without executing them: the rules of command, block and page. Ignored: faults.

use super::part::ReadCommand;
use super::rules::{self, Rule};
use super::{Nand, SubpageMask, TORN, UNWRITTEN};

impl Nand {
    /// Checks a read of the subpages `wanted` of `ppn` with `command`.
    #[inline]
    pub fn probe_read(&self, ppn: u32, wanted: SubpageMask, command: ReadCommand) -> Result<(), Rule> {
        self.probe_read_of(self.split(ppn), ppn, wanted, command)
    }

    /// [`Self::probe_read`] with the block and page of `ppn` given.
    #[inline]
    pub(super) fn probe_read_of(
        &self,
        (block, page): (u32, u32),
        ppn: u32,
        wanted: SubpageMask,
        command: ReadCommand,
    ) -> Result<(), Rule> {
        rules::check_read(&self.part, command)?;
        if self.part.pages_per_program > 1 {
            rules::check_sensed(&self.part, wanted)?;
        }
        let state = &self.blocks[block as usize];
        // Without gaps all pages below `next_page` are written.
        if !state.gaps && page < state.next_page { Ok(()) } else { self.probe_cells(ppn, wanted) }
    }

    fn probe_cells(&self, ppn: u32, wanted: SubpageMask) -> Result<(), Rule> {
        if self.programs[ppn as usize] == 0 {
            return Err(Rule::ReadUnwritten);
        }
        let first = ppn * self.geometry.subpages_per_page;
        let mut rest = wanted;
        while rest != 0 {
            match self.logical[(first + rest.trailing_zeros()) as usize] {
                UNWRITTEN => return Err(Rule::ReadUnwritten),
                TORN => return Err(Rule::ReadTorn),
                _ => rest &= rest - 1,
            }
        }
        Ok(())
    }

    /// Checks a program of the subpages `written` of `ppn`; `reuse`: cells with data are programmed again with a
    /// write-once-memory code.
    #[inline]
    pub fn probe_program(&self, ppn: u32, written: SubpageMask, reuse: bool) -> Result<(), Rule> {
        self.probe_page(self.split(ppn), ppn, written, reuse)
    }

    /// [`Self::probe_program`] with the block and page of `ppn` given.
    #[inline(always)]
    pub(super) fn probe_page(
        &self,
        (block, page): (u32, u32),
        ppn: u32,
        written: SubpageMask,
        reuse: bool,
    ) -> Result<(), Rule> {
        let state = &self.blocks[block as usize];
        let behind = state.gaps && page < state.next_page && self.is_left_out(block, page);
        let view = rules::PageView {
            part: &self.part,
            bad: state.bad,
            torn: state.torn,
            page,
            // In a superblock, a die that lags behind the others continues in its own order.
            next_page: if behind { page } else { state.next_page },
            programs: &self.programs[self.first_page(block)..][..self.geometry.pages_per_block as usize],
            dies: self.dies_in_turn(),
            reached: self.reached_on_die(block, page),
        };
        rules::check_program(&view)?;
        if self.part.pages_per_program > 1 && written != self.widths.all_subpages {
            return Err(Rule::PartOfWordLine);
        }
        if view.programs[page as usize] > 0 && !reuse {
            self.check_free(ppn, written)?;
        }
        Ok(())
    }

    /// Whether a program may still change page `ppn` before an erase of its block; `over`: also over data.
    pub fn may_change(&self, ppn: u32, over: bool) -> bool {
        let first = ppn * self.geometry.subpages_per_page;
        let is_free = |&index: &u32| self.logical[(first + index) as usize] == UNWRITTEN;
        let free = (0..self.geometry.subpages_per_page).filter(is_free).fold(0, |mask, index| mask | 1 << index);
        self.programs(ppn) == 0
            || free != 0 && self.probe_program(ppn, free, false).is_ok()
            || over && self.probe_program(ppn, self.widths.all_subpages, true).is_ok()
    }

    #[inline(never)]
    fn check_free(&self, ppn: u32, written: SubpageMask) -> Result<(), Rule> {
        let first = ppn * self.geometry.subpages_per_page;
        let mut rest = written;
        while rest != 0 {
            if self.logical[(first + rest.trailing_zeros()) as usize] != UNWRITTEN {
                return Err(Rule::OneToZero);
            }
            rest &= rest - 1;
        }
        Ok(())
    }
}
