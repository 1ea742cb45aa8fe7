//! Slices of whole pages: copies for collection, and programs that fill a new drive. A slice has the effects of a read
//! or program for each page.
//!
//! Ignored: runs in which an operation may fail or be rolled back, which must read and program page by page.

use super::flash::wanted_bytes;
use super::ledger::Over;
use super::operations::{Operation, OperationKind};
use super::{Cause, Gate, Io, Program, Read, under_way};
use palimpsest_flash::nand::part::ReadMode;
use palimpsest_flash::nand::{Flash, Outcome, Row, SubpageMask, count, first_subpages};
use palimpsest_flash::units::Nanos;

/// Copies of whole pages: those of `pages` (bits, from page `from` on) to the pages from `to` on. Each page is read
/// before the program.
#[derive(Clone, Copy)]
pub struct Copies {
    /// The page of bit 0.
    pub from: u32,
    /// Bits of the pages.
    pub pages: u64,
    /// Destination of the first page.
    pub to: u32,
    /// True if the destination block holds one bit a cell.
    pub single: bool,
    /// Closes when all copies are programmed.
    pub safe: Gate,
}

/// The side of an [`Io`] for logs, which program and copy many pages at a time.
pub trait SliceIo {
    /// True if operations only count: none is timed or rolled back, and none can fail.
    fn only_counts(&self) -> bool;

    /// True if pages may be copied and programmed in slices: operations may be timed and verified, but none is rolled
    /// back, and none can fail.
    fn takes_slices(&self) -> bool;

    /// True if [`Self::program_rows`] may be called.
    fn takes_rows(&self) -> bool;

    /// Reads `subpages` of page `ppn` by `mode` for collection; the array senses the whole page. Only for runs where
    /// [`Self::only_counts`].
    ///
    /// # Errors
    /// As [`Io::read`].
    fn read_for_copy(&mut self, ppn: u32, subpages: SubpageMask, mode: ReadMode) -> Flash<()>;

    /// The pages of `pages` (bits, from page `from` on) that [`Self::copy`] may copy to the pages from `to` on. Pages
    /// that must be read from memory, and later ones, are left out.
    fn copies_at_once(&self, from: u32, pages: u64, to: u32) -> u64;

    /// Copies whole pages for collection, which [`Self::copies_at_once`] allowed.
    fn copy(&mut self, copies: Copies);

    /// Programs `rounds` pages of each of `rows` in turn, with the logical subpages from `first` on, as one host write
    /// a page would.
    fn program_rows(&mut self, rows: &[Row], rounds: u32, first: u32);

    /// As [`Io::read`], inlined into the caller that reads most.
    ///
    /// # Errors
    /// As [`Io::read`].
    fn read_here(&mut self, read: Read) -> Flash<()>;

    /// As [`Io::program`], inlined into the caller that programs most.
    ///
    /// # Errors
    /// As [`Io::program`].
    fn program_here(&mut self, program: Program<'_>) -> Flash<Outcome>;
}

impl SliceIo for Io {
    #[inline]
    fn only_counts(&self) -> bool {
        !self.plan.timed && self.takes_slices()
    }

    #[inline]
    fn takes_slices(&self) -> bool {
        let mutates = self.is_checked() && self.ledger.as_ref().is_some_and(|ledger| ledger.mutates());
        let observed = mutates || self.undo.is_some() || self.guard.is_some();
        !observed && self.nand.takes_slices()
    }

    fn takes_rows(&self) -> bool {
        self.only_counts() && !self.host.is_inner()
    }

    #[inline]
    fn read_for_copy(&mut self, ppn: u32, subpages: SubpageMask, mode: ReadMode) -> Flash<()> {
        self.nand.read_for_copy(ppn, subpages)?;
        let part = self.nand.part();
        let whole = part.sensed_bytes();
        let wanted = wanted_bytes(part, subpages, 0).min(whole);
        let counters = &mut self.counters;
        counters.reads[Cause::Gc as usize] += 1;
        counters.bus_bytes += u64::from(if mode == ReadMode::Page { whole } else { wanted });
        counters.sensed[Cause::Gc as usize] += u64::from(whole);
        counters.wanted[Cause::Gc as usize] += u64::from(wanted);
        Ok(())
    }

    #[inline]
    fn copies_at_once(&self, from: u32, pages: u64, to: u32) -> u64 {
        let erased = self.erasing(to).is_none();
        if pages == 0 || !erased || !self.takes_slices() || !self.nand.takes_copies(from + pages.ilog2(), to) {
            return 0;
        }
        let mut rest = if self.plan.timed { pages } else { 0 };
        while rest != 0 {
            if self.plan.under_way.holds(from + rest.trailing_zeros()) {
                return pages ^ rest;
            }
            rest &= rest - 1;
        }
        pages
    }

    #[inline]
    fn copy(&mut self, copies: Copies) {
        let Copies { from, pages, to, single, .. } = copies;
        if self.plan.timed {
            self.plan_copies(copies);
        }
        self.nand.note_single(to, single);
        self.nand.copy(from, pages, to);
        let copies = u64::from(count(pages));
        let bytes = copies * u64::from(self.nand.geometry().page_bytes());
        let counters = &mut self.counters;
        counters.reads[Cause::Gc as usize] += copies;
        counters.sensed[Cause::Gc as usize] += bytes;
        counters.wanted[Cause::Gc as usize] += bytes;
        counters.programs[Cause::Gc as usize] += copies;
        counters.data_bytes += bytes;
        counters.bus_bytes += 2 * bytes;
        if self.owners.is_some() {
            self.own_copies(to, copies as u32);
        }
    }

    fn program_rows(&mut self, rows: &[Row], rounds: u32, first: u32) {
        let cause = self.counted_as(Cause::Host);
        let (host, next) = (&self.host, self.host.writes() + 1);
        let width = self.nand.geometry().subpages_per_page;
        let tag = |lsn| host.tag_of(lsn, next + u64::from((lsn - first) / width));
        self.nand.program_rows(rows, rounds, first, tag);
        let pages = rounds * rows.len() as u32;
        let bytes = u64::from(pages) * u64::from(self.nand.geometry().page_bytes());
        self.host.skip_writes(pages);
        self.counters.programs[cause as usize] += u64::from(pages);
        self.counters.data_bytes += bytes;
        self.counters.bus_bytes += bytes;
    }

    #[inline(always)]
    fn read_here(&mut self, read: Read) -> Flash<()> {
        if self.plan.under_way.holds(read.ppn) { self.read_rest(read) } else { self.read_flash(read) }
    }

    #[inline(always)]
    fn program_here(&mut self, program: Program<'_>) -> Flash<Outcome> {
        if !self.takes_next(&program) {
            // The copy keeps the fields of other programs in registers.
            return self.program_specially(&{ program });
        }
        let Program { ppn, logical, signal, frees, .. } = program;
        let after = self.behind_erases(ppn, program.after);
        self.nand.note_single(ppn, program.single);
        self.nand.program_next(ppn, logical, program.data);
        let (cause, part) = (self.counted_as(program.cause), self.nand.part());
        let (bytes, moved) = (self.nand.geometry().page_bytes(), program.transferred * part.subpage_bytes);
        let counters = &mut self.counters;
        counters.programs[cause as usize] += 1;
        counters.data_bytes += u64::from(bytes);
        counters.bus_bytes += u64::from(moved);
        if let Some(owners) = &mut self.owners {
            owners.programmed(cause, program.written, logical);
        }
        if self.plan.timed {
            let (block, page) = self.nand.place(ppn);
            let array = if program.single { part.t_program_slc } else { part.programming_time(page) };
            let mut operation = Operation {
                page: page as u16,
                block,
                bytes: moved,
                array: array as u32,
                after,
                signal,
                frees,
                ..self.plan.operation(OperationKind::Program, cause)
            };
            if self.is_checked() {
                return Ok(self.push_next_checked(&{ operation }, &{ program }));
            }
            let stored = (ppn, program.written, after);
            let arrives = self.arrives(&program);
            self.note_stored(&mut operation, program.cause, stored, logical.iter().copied(), arrives);
            self.push(signal, operation);
        }
        Ok(Outcome::Done)
    }
}

impl Io {
    /// Adds the program `operation` of the next page of a block to a plan whose times are verified.
    fn push_next_checked(&mut self, operation: &Operation, program: &Program<'_>) -> Outcome {
        let program = Program { after: operation.after, ..*program };
        self.push_noted_program(operation, &program, Outcome::Done, Over::Erased);
        Outcome::Done
    }

    /// Counts the `pages` pages from page `to` on for the owners of their data.
    fn own_copies(&mut self, to: u32, pages: u32) {
        let Io { nand, owners: Some(owners), .. } = self else { return };
        let width = nand.geometry().subpages_per_page as usize;
        nand.logical_of_pages(to, pages).chunks_exact(width).for_each(|page| owners.programmed_page(page));
    }

    /// Adds a read, and the program that follows it, to the plan for each page of [`Self::copy`].
    #[inline(never)]
    fn plan_copies(&mut self, copies: Copies) {
        let Copies { from, mut pages, to, single, safe } = copies;
        let (nand, plan, ledger) = (&self.nand, &mut self.plan, &mut self.ledger);
        let (part, geometry, turns) = (nand.part(), nand.geometry(), nand.has_stripes());
        let ((victim, first), (block, next)) = (nand.place(from), nand.place(to));
        let (bytes, senses_single) = (part.sensed_bytes(), nand.is_single(nand.block_of(from)));
        let array = if single { part.t_program_slc } else { part.t_program } as u32;
        let (mut of_read, mut of_program) = (
            Operation { block: victim, bytes, ..plan.operation(OperationKind::Read, Cause::Gc) },
            Operation { block, bytes, array, signal: safe, ..plan.operation(OperationKind::Program, Cause::Gc) },
        );
        if let Some(metered) = &mut plan.metered {
            (of_read.energy, of_program.energy) = (part.e_read as i64, part.e_program as i64);
            *metered = metered.wrapping_add(u64::from(count(pages)).wrapping_mul(part.e_read + part.e_program));
        }
        let written = first_subpages(geometry.subpages_per_page);
        if !turns {
            let begin = plan.operations.len();
            plan.copies.push(begin..begin + 2 * count(pages) as usize);
        }
        plan.gates.expect_many(safe, count(pages));
        for number in 0..count(pages) {
            let place = pages.trailing_zeros();
            pages &= pages - 1;
            let (mut page, mut page_to) = (first + place, next + number);
            if turns {
                // Consecutive pages of a superblock are on different dies.
                (of_read.block, page) = nand.place(from + place);
                (of_program.block, page_to) = nand.place(to + number);
            }
            let array: Nanos = if senses_single { part.t_read_slc } else { part.sensing_time(page, 0) };
            let arrived = plan.gates.open();
            plan.gates.expect(arrived);
            let read = Operation { page: page as u16, array: array as u32, signal: arrived, ..of_read };
            plan.operations.push(read);
            let under_way = match plan.reads_memory {
                true => plan.under_way.add(to + number, written, arrived, 0),
                false => under_way::NONE,
            };
            let program = Operation { page: page_to as u16, after: arrived, under_way, ..of_program };
            plan.operations.push(program);
            if let Some(ledger) = ledger {
                let flash = nand.operations() + 1 + 2 * u64::from(number);
                ledger.copy(nand, &read, &program, [from + place, to + number], flash);
            }
        }
    }
}
