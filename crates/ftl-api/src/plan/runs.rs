//! Fast path for reads and programs of whole pages in runs where no operation can fail: the same effects as
//! [`Io::read`] and [`Io::program`] per page, without cases that such runs exclude. Programs and copies may be timed;
//! all others only count. Programs of consecutive host subpages also have the effects of the host writes.
//!
//! Ignored: verification, rollback, faults, parity and copies of word lines, which exclude the fast path.

use super::flash::wanted_bytes;
use super::operations::{Operation, OperationKind};
use super::{Cause, Gate, Io, under_way};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::part::ReadMode;
use palimpsest_flash::nand::{Flash, SubpageMask, count, first_subpages};
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

/// A program of a whole erased page; see [`super::Program`].
#[derive(Clone, Copy)]
pub struct WholePage<'a> {
    /// The page.
    pub ppn: u32,
    /// Logical numbers, one per subpage.
    pub logical: &'a [u32],
    /// Contents, one per subpage.
    pub data: &'a [Data],
    pub cause: Cause,
    pub after: Gate,
    pub signal: Gate,
    /// Subpages of the write buffer that the end of the program frees.
    pub frees: u32,
    /// True if the block holds one bit a cell.
    pub single: bool,
}

impl<'a> WholePage<'a> {
    /// A program of `logical` and `data` with all bits of a cell, without gates.
    #[inline]
    pub fn new(ppn: u32, logical: &'a [u32], data: &'a [Data], cause: Cause) -> Self {
        WholePage { ppn, logical, data, cause, after: Gate::NONE, signal: Gate::NONE, frees: 0, single: false }
    }
}

impl Io {
    /// True if operations only count: none is timed, verified or rolled back, and none can fail.
    #[inline]
    pub fn only_counts(&self) -> bool {
        !self.plan.timed && self.takes_whole_pages()
    }

    /// True if [`Self::program_whole`] and [`Self::copy_run`] may be called: operations may be timed, but none is
    /// verified or rolled back, and none can fail.
    #[inline]
    pub fn takes_whole_pages(&self) -> bool {
        self.in_runs
            && self.ledger.is_none()
            && self.undo.is_none()
            && self.guard.is_none()
            && self.rain.is_none()
            && self.nand.takes_runs()
    }

    /// True if [`Self::program_run`] may be called.
    pub fn takes_runs(&self) -> bool {
        self.only_counts() && !self.host.is_inner()
    }

    /// Reads `subpages` of page `ppn` by `mode` for collection; the array senses the whole page. Only for runs where
    /// [`Self::only_counts`].
    ///
    /// # Errors
    /// As [`Self::read`].
    #[inline]
    pub fn read_for_copy(&mut self, ppn: u32, subpages: SubpageMask, mode: ReadMode) -> Flash<()> {
        self.nand.sense_whole(ppn, subpages)?;
        let part = self.nand.part();
        let whole = part.sensed_bytes();
        let wanted = wanted_bytes(part, subpages, 0).min(whole);
        let moved = if mode == ReadMode::Page { whole } else { wanted };
        let counters = &mut self.counters;
        counters.reads[Cause::Gc as usize] += 1;
        counters.bus_bytes += u64::from(moved);
        counters.sensed[Cause::Gc as usize] += u64::from(whole);
        counters.wanted[Cause::Gc as usize] += u64::from(wanted);
        Ok(())
    }

    /// The pages of `pages` (bits, from page `from` on) before the first that must be read from memory.
    #[inline]
    pub fn in_flash(&self, from: u32, pages: u64) -> u64 {
        let mut rest = if self.plan.timed { pages } else { 0 };
        while rest != 0 {
            if self.plan.under_way.holds(from + rest.trailing_zeros()) {
                return pages ^ rest;
            }
            rest &= rest - 1;
        }
        pages
    }

    /// Copies whole pages for collection. No page may be one that is read from memory ([`Self::in_flash`]). See
    /// [`palimpsest_flash::nand::Nand::copy_run`].
    #[inline]
    pub fn copy_run(&mut self, copies: Copies) {
        let Copies { from, pages, to, single, .. } = copies;
        if self.plan.timed {
            self.plan_copies(copies);
        }
        self.nand.note_single(to, single);
        self.nand.copy_run(from, pages, to);
        let copies = u64::from(count(pages));
        let bytes = copies * u64::from(self.nand.geometry().page_bytes());
        let counters = &mut self.counters;
        counters.reads[Cause::Gc as usize] += copies;
        counters.sensed[Cause::Gc as usize] += bytes;
        counters.wanted[Cause::Gc as usize] += bytes;
        counters.programs[Cause::Gc as usize] += copies;
        counters.data_bytes += bytes;
        counters.bus_bytes += 2 * bytes;
    }

    /// Adds a read, and the program that follows it, to the plan for each page of [`Self::copy_run`].
    #[inline(never)]
    fn plan_copies(&mut self, copies: Copies) {
        let Copies { from, mut pages, to, single, safe } = copies;
        let (part, geometry, plan) = (self.nand.part(), self.nand.geometry(), &mut self.plan);
        let ((victim, first), (block, next)) = (self.nand.place(from), self.nand.place(to));
        let (bytes, senses_single) = (part.sensed_bytes(), self.nand.is_single(victim));
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
        let begin = plan.operations.len();
        plan.copies.push(begin..begin + 2 * count(pages) as usize);
        plan.gates.expect_many(safe, count(pages));
        for number in 0..count(pages) {
            let page = first + pages.trailing_zeros();
            pages &= pages - 1;
            let array: Nanos = if senses_single { part.t_read_slc } else { part.sensing_time(page, 0) };
            let arrived = plan.gates.open();
            plan.gates.expect(arrived);
            let read = Operation { page: page as u16, array: array as u32, signal: arrived, ..of_read };
            plan.operations.push(read);
            let under_way = match plan.reads_memory {
                true => plan.under_way.add(to + number, written, arrived, 0),
                false => under_way::NONE,
            };
            let program = Operation { page: (next + number) as u16, after: arrived, under_way, ..of_program };
            plan.operations.push(program);
        }
    }

    /// Programs a whole page, which must be erased. Only for runs where [`Self::takes_whole_pages`].
    ///
    /// # Errors
    /// As [`Self::program`].
    #[inline(always)]
    pub fn program_whole(&mut self, page: WholePage<'_>) -> Flash<()> {
        self.nand.note_single(page.ppn, page.single);
        self.nand.program_whole(page.ppn, page.logical, page.data)?;
        let (cause, bytes) = (self.counted_as(page.cause), self.nand.geometry().page_bytes());
        let counters = &mut self.counters;
        counters.programs[cause as usize] += 1;
        counters.data_bytes += u64::from(bytes);
        counters.bus_bytes += u64::from(bytes);
        if self.plan.timed {
            self.plan_whole(&page, cause, bytes);
        }
        Ok(())
    }

    #[inline(always)]
    fn plan_whole(&mut self, page: &WholePage<'_>, cause: Cause, bytes: u32) {
        let &WholePage { ppn, logical, after, signal, frees, single, .. } = page;
        let (part, (block, number)) = (self.nand.part(), self.nand.place(ppn));
        let array = if single { part.t_program_slc } else { part.programming_time(number) };
        let mut operation = Operation {
            page: number as u16,
            block,
            bytes,
            array: array as u32,
            after,
            signal,
            frees,
            from_host: self.is_from_host(page.cause),
            ..self.plan.operation(OperationKind::Program, cause)
        };
        let written = first_subpages(logical.len() as u32);
        self.note_stored(&mut operation, page.cause, (ppn, written, after), logical.iter().copied());
        self.push(signal, operation);
    }

    /// Programs the erased page `ppn` with the logical subpages from `first` on, as one host write would. `single`: one
    /// bit a cell.
    ///
    /// # Errors
    /// See [`palimpsest_flash::nand::Nand::program_run`].
    #[inline]
    pub fn program_run(&mut self, ppn: u32, first: u32, single: bool) -> Flash<()> {
        let cause = self.counted_as(Cause::Host);
        self.nand.note_single(ppn, single);
        let (host, number) = (&self.host, self.host.writes() + 1);
        self.nand.program_run(ppn, first, |lsn| host.tag_of(lsn, number))?;
        let bytes = u64::from(self.nand.geometry().page_bytes());
        self.host.skip_writes(1);
        self.counters.programs[cause as usize] += 1;
        self.counters.data_bytes += bytes;
        self.counters.bus_bytes += bytes;
        Ok(())
    }

    /// Programs `rounds` pages of each of `frontiers` (block and page) in turn, as [`Self::program_run`] would.
    pub fn program_rounds(&mut self, frontiers: &[(u32, u32)], rounds: u32, first: u32) {
        let cause = self.counted_as(Cause::Host);
        let (host, next) = (&self.host, self.host.writes() + 1);
        let width = self.nand.geometry().subpages_per_page;
        self.nand
            .program_rounds(frontiers, rounds, first, |lsn| host.tag_of(lsn, next + u64::from((lsn - first) / width)));
        let pages = rounds * frontiers.len() as u32;
        let bytes = u64::from(pages) * u64::from(self.nand.geometry().page_bytes());
        self.host.skip_writes(pages);
        self.counters.programs[cause as usize] += u64::from(pages);
        self.counters.data_bytes += bytes;
        self.counters.bus_bytes += bytes;
    }
}
