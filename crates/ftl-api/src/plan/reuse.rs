//! Second writes: low pages that are programmed again with a write-once-memory code, and reads of pages that must be decoded.

use super::flash::Sensed;
use super::select::ReadPolicy;
use super::{Io, Program, Read};
use palimpsest_flash::nand::part::ReadCommand;
use palimpsest_flash::nand::{Flash, Outcome, first_subpages};

impl Io {
    /// Reads all of a page that must be decoded, and transfers the wanted subpages to the host or to the layer; by
    /// the command for whole pages.
    ///
    /// # Errors
    /// See [`palimpsest_flash::nand::Nand::read`].
    pub fn read_coded(&mut self, read: Read) -> Flash<()> {
        let (all, wanted) = (first_subpages(self.geometry().subpages_per_page), read.subpages.count_ones());
        let part = self.nand.part();
        let (whole, asked) = (part.page_bytes, wanted * part.subpage_bytes);
        let bytes = Sensed { sensed: whole, moved: whole, wanted: asked, subpages: wanted };
        self.sense(Read { subpages: all, words: 0, policy: ReadPolicy::PAGE, ..read }, ReadCommand::PAGE, bytes)
    }

    /// Programs a low page again, its data encoded so that cells go from 1 to 0 only, those of its spare area that
    /// the code uses too. Subpages that store no data are padding; the whole page crosses the bus.
    ///
    /// # Errors
    /// See [`palimpsest_flash::nand::Nand::reprogram`].
    pub fn reprogram(&mut self, program: Program<'_>) -> Flash<Outcome> {
        let Program { ppn, written, logical, data, spare, padding, .. } = program;
        let outcome = self.nand.reprogram(ppn, written, logical, data, spare)?;
        let subpages = written.count_ones() - padding;
        self.counters.second_bytes += u64::from(subpages * self.nand.part().subpage_bytes);
        self.programmed(&program, outcome, self.nand.programs(ppn) > 1);
        Ok(outcome)
    }
}
