//! Second writes: low pages that are programmed again with a write-once-memory code, and reads of pages that must be decoded; and
//! word lines that are programmed as later generations of a code of cells.

use super::flash::Sensed;
use super::ledger::Over;
use super::select::ReadPolicy;
use super::{Io, Program, Read};
use palimpsest_flash::nand::part::ReadCommand;
use palimpsest_flash::nand::{Flash, Outcome, Own, first_subpages};
use palimpsest_flash::units::Nanos;

impl Io {
    /// Reads all of a page that must be decoded, which takes `decode`, and transfers the wanted subpages to the host or to the
    /// layer; by the command for whole pages.
    ///
    /// # Errors
    /// See [`palimpsest_flash::nand::Nand::read`].
    pub fn read_coded(&mut self, read: Read, decode: Nanos) -> Flash<()> {
        let (all, wanted) = (first_subpages(self.geometry().subpages_per_page), read.subpages.count_ones());
        // Decoding takes the whole page, of which the wanted subpages count.
        let hits = self.counters.memory_reads[self.counted_as(read.cause) as usize];
        if self.read_from_memory(&Read { subpages: all, ..read }) == 0 {
            self.counters.memory_reads[self.counted_as(read.cause) as usize] = hits + u64::from(wanted);
            return Ok(());
        }
        let part = self.nand.part();
        let (whole, asked) = (part.page_bytes, wanted * part.subpage_bytes);
        let bytes = Sensed { sensed: whole, moved: whole, wanted: asked, subpages: wanted };
        self.plan.codec = decode as u32;
        let read =
            self.sense(Read { subpages: all, words: 0, policy: ReadPolicy::PAGE, ..read }, ReadCommand::PAGE, bytes);
        self.plan.codec = 0;
        read
    }

    /// Programs a low page again, its data encoded, which takes `encode`, so that cells go from 1 to 0 only, those of its spare area
    /// that the code uses too. Subpages that store no data are padding; the whole page crosses the bus.
    ///
    /// # Errors
    /// See [`palimpsest_flash::nand::Nand::reprogram`].
    pub fn reprogram(&mut self, program: Program<'_>, encode: Nanos) -> Flash<Outcome> {
        let program = if self.guard.is_some() { self.copy_mates(program)? } else { program };
        let Program { ppn, written, logical, data, spare, padding, .. } = program;
        let outcome = self.nand.reprogram(ppn, written, logical, data, spare)?;
        let subpages = written.count_ones() - padding;
        self.counters.second_bytes += u64::from(subpages * self.nand.part().subpage_bytes);
        let over = if self.nand.programs(ppn) > 1 { Over::Data } else { Over::Erased };
        self.plan.codec = encode as u32;
        self.programmed(&program, outcome, over);
        self.plan.codec = 0;
        if self.guard.is_some() && outcome == Outcome::Failed {
            self.rescue_mates(ppn);
        }
        Ok(outcome)
    }

    /// Programs a word line as a generation of the code of its cells. The first program of a pass does to the block what an erase
    /// does: what the passes before stored counts no more, so it follows what replaces that, and the barrier.
    pub(super) fn program_generation(&mut self, program: &Program<'_>, own: Own<'_>) -> Flash<Outcome> {
        let block = self.nand.split(program.ppn).0;
        let begins = program.generation > self.nand.pass(block);
        if begins {
            if let Some(ledger) = &mut self.ledger {
                ledger.before_erase(&self.nand, block);
            }
            if self.plan.timed && !self.plan.protected {
                self.plan.follow_replacing(&self.nand, block, program.after);
            }
        }
        let Program { ppn, generation, logical, data, .. } = *program;
        let outcome = self.nand.program_generation(ppn, generation, logical, data, own)?;
        self.programmed(program, outcome, if begins { Over::Pass } else { Over::Erased });
        Ok(outcome)
    }
}
