//! Second writes: low pages are programmed again with a write-once-memory code, and coded pages are read. Word lines
//! are programmed as later generations of a code of cells.
//!
//! Ignored: the codes themselves, which layers apply; here they cost time and transfers.

use super::flash::Sensed;
use super::ledger::Over;
use super::select::ReadPolicy;
use super::{Io, Program, Read};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::part::ReadCommand;
use palimpsest_flash::nand::{Flash, Outcome, Own, first_subpages};
use palimpsest_flash::units::Nanos;

/// The side of an [`Io`] for layers that program pages again with codes, or store bytes of their own.
pub trait CodedIo {
    /// Reads a whole coded page by the command for whole pages, decodes it in `decode`, and transfers the wanted
    /// subpages to the host or the layer.
    ///
    /// # Errors
    /// See [`palimpsest_flash::nand::Nand::read`].
    fn read_coded(&mut self, read: Read, decode: Nanos) -> Flash<()>;

    /// Programs a low page again. The layer encodes the data, in `encode`, so that cells change only from 1 to 0, cells
    /// of the spare area that the code uses included. Subpages without data must count as padding; the whole page
    /// crosses the bus. The program destroys the page's old data as an erase would, so it follows the programs that
    /// replace that data, and the barrier.
    ///
    /// # Errors
    /// See [`palimpsest_flash::nand::Nand::reprogram`].
    fn reprogram(&mut self, program: Program<'_>, encode: Nanos) -> Flash<Outcome>;

    /// As [`Io::load_subpage`], for a page that [`Self::reprogram`] programs next, whose program is checked against
    /// the last read.
    fn load_cells(&mut self, psn: u32) -> Data;

    /// Stores bytes computed from `from`. The bytes are available when all of `from` is, and count as
    /// another form of the first content.
    fn keep_derived(&mut self, bytes: &[u8], from: &[Data]) -> Data;

    /// The bytes of `data`; `None` for zeros.
    fn bytes_of(&self, data: Data) -> Option<&[u8]>;

    /// The layer's own bytes in physical subpage `psn`, after [`Io::read`]; empty if none were programmed.
    fn own(&self, psn: u32) -> &[u8];

    /// Declares that the layer located logical subpages `first` to `end` by its own bytes in physical subpage `psn`.
    /// Host reads of them must then follow the read of `psn`.
    fn found(&mut self, first: u32, end: u32, psn: u32);
}

impl CodedIo for Io {
    fn read_coded(&mut self, read: Read, decode: Nanos) -> Flash<()> {
        let (all, wanted) = (first_subpages(self.geometry().subpages_per_page), read.subpages.count_ones());
        // Decoding needs the whole page, but only the wanted subpages count as memory reads.
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

    fn reprogram(&mut self, program: Program<'_>, encode: Nanos) -> Flash<Outcome> {
        let program = if self.guard.is_some() { self.copy_mates(program)? } else { program };
        let Program { ppn, written, logical, data, spare, padding, .. } = program;
        let over = if self.nand.programs(ppn) > 0 { Over::Data } else { Over::Erased };
        if over == Over::Data {
            // The replacing program may be in the same block, and still under way when the transfer begins.
            self.before_loss(ppn..ppn + 1, None, program.after, program.cause);
        }
        self.time_program(ppn, written);
        let outcome = self.nand.reprogram(ppn, written, logical, data, spare)?;
        let subpages = written.count_ones() - padding;
        self.counters.second_bytes += u64::from(subpages * self.nand.part().subpage_bytes);
        self.plan.codec = encode as u32;
        self.programmed(&program, outcome, over);
        self.plan.codec = 0;
        if self.guard.is_some() && outcome == Outcome::Failed {
            self.rescue_mates(ppn);
        }
        Ok(outcome)
    }

    fn load_cells(&mut self, psn: u32) -> Data {
        self.nand.load(psn)
    }

    fn keep_derived(&mut self, bytes: &[u8], from: &[Data]) -> Data {
        let lost = from.contains(&Data::LOST);
        let data = if lost { Data::LOST } else { self.nand.buffers().keep(bytes) };
        match &mut self.ledger {
            Some(ledger) => ledger.derived(data, from),
            None => data,
        }
    }

    fn bytes_of(&self, data: Data) -> Option<&[u8]> {
        self.nand.buffered(data)
    }

    #[inline]
    fn own(&self, psn: u32) -> &[u8] {
        self.nand.own(psn).unwrap_or_default()
    }

    #[inline]
    fn found(&mut self, first: u32, end: u32, psn: u32) {
        if let Some(ledger) = &mut self.ledger {
            (first..end).for_each(|lsn| ledger.found(lsn, psn));
        }
    }
}

impl Io {
    /// Programs a word line as a generation of the code of its cells. The first program of a pass destroys data of
    /// earlier passes as an erase would, so it follows the programs that replace that data, and the barrier. The pass
    /// over a superblock begins on one die, and the programs on the other dies follow. A block with one bit a cell has
    /// one generation.
    pub(super) fn program_generation(&mut self, program: &Program<'_>, own: Own<'_>) -> Flash<Outcome> {
        let (block, page) = self.nand.split(program.ppn);
        let begins = program.generation > self.nand.pass(block);
        let turned = if self.rain.is_some() { self.in_turn(*program, page == 0) } else { *program };
        let program = &turned;
        if begins {
            self.before_loss(self.pages_of(block), Some(block), program.after, program.cause);
        }
        let Program { ppn, generation, logical, data, .. } = *program;
        if self.nand.pass(block) == 0 && self.nand.next_page(block) == 0 {
            self.nand.note_single(ppn, program.single);
        }
        assert_eq!(program.single, self.nand.is_single(block), "all word lines of a block store as many bits a cell");
        self.time_program(ppn, program.written);
        let outcome = self.nand.program_generation(ppn, generation, logical, data, own)?;
        self.programmed(program, outcome, if begins { Over::Pass } else { Over::Erased });
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cause, FileSystemIo, Gate, operations};
    use super::*;
    use palimpsest_flash::geometry::Geometry;
    use palimpsest_flash::nand::Nand;
    use palimpsest_flash::nand::data::{Data, Payload};
    use palimpsest_flash::nand::part::samples::slc;
    use palimpsest_flash::nand::part::{CellKind, Part, ProgramOrder};

    /// Regression: a cut found a second write begun before the newer copy was programmed. A commit of a file system was
    /// then not durable, although its page before was destroyed.
    #[test]
    fn a_second_write_follows_the_replacement_and_the_barrier() {
        let geometry = Geometry {
            channels: 1,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 2,
            blocks_per_plane: 1,
            pages_per_block: 8,
            subpages_per_page: 1,
            subpage_bytes: 4096,
        };
        let part = Part { page_bytes: 4096, cell: CellKind::Mlc, order: ProgramOrder::LowLowHigh, nop: 2, ..slc() };
        let mut io = Io::new(Nand::new(geometry, part, Payload::Tag, None), true);
        let data = [Data::new(1)];
        for (ppn, lsn) in [(0, 7), (1, 8), (8, 7)] {
            let _ = io.program(Program::new(ppn, &[lsn], &data, Cause::Host)).expect("an erased page");
        }
        let barrier = io.gate();
        io.barrier(barrier);
        for (ppn, lsn) in [(0, 9), (1, 9)] {
            let _ = io.reprogram(Program::new(ppn, &[lsn], &data, Cause::Host), 0).expect("a low page");
        }
        // Operation 2 replaces the data of page 0; no operation replaces the data of page 1. The first programs of both
        // have not ended either.
        let followed =
            [(3, 2), (3, 0), (4, 1)].map(|(number, program)| (number, operations::Program::Planned(program)));
        assert_eq!(io.plan.follows, followed);
        let after: Vec<Gate> = io.plan.operations.iter().map(|operation| operation.after).collect();
        assert_eq!(after, [Gate::NONE, Gate::NONE, Gate::NONE, barrier, barrier]);
    }
}
