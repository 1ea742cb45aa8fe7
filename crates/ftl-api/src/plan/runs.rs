//! Reads and programs of whole pages where none can fail: what [`Io::read`] and [`Io::program`] of each leave, without what such runs do not
//! have. Programs and copies of pages may be timed; all others are of runs that only count. Of pages that the host fills with consecutive
//! subpages what its writes leave, too.

use super::flash::wanted_bytes;
use super::operations::{Operation, OperationKind};
use super::{Cause, Gate, Io, under_way};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::part::ReadMode;
use palimpsest_flash::nand::{Flash, SubpageMask, count, first_subpages};
use palimpsest_flash::units::Nanos;

/// Whole pages that are copied: those of `pages` (bits, counted from page `from` on) to the pages from `to` on, each read before it is
/// programmed.
#[derive(Clone, Copy)]
pub struct Copies {
    /// The page that the bits count from.
    pub from: u32,
    /// Bits of the pages.
    pub pages: u64,
    /// Where the first of them goes.
    pub to: u32,
    /// Whether they go to a block with one bit a cell.
    pub single: bool,
    /// Closes when all are safe.
    pub safe: Gate,
}

/// A program of a whole page that is erased; see [`super::Program`].
#[derive(Clone, Copy)]
pub struct WholePage<'a> {
    /// The page.
    pub ppn: u32,
    /// Logical numbers, one a subpage.
    pub logical: &'a [u32],
    /// Contents, one a subpage.
    pub data: &'a [Data],
    pub cause: Cause,
    pub after: Gate,
    pub signal: Gate,
    /// Subpages of the write buffer that are free when it has ended.
    pub frees: u32,
    /// Whether it stores one bit a cell.
    pub single: bool,
}

impl<'a> WholePage<'a> {
    /// A program of `logical` and `data` with all bits of a cell, with nothing before or behind it.
    #[inline]
    pub fn new(ppn: u32, logical: &'a [u32], data: &'a [Data], cause: Cause) -> Self {
        WholePage { ppn, logical, data, cause, after: Gate::NONE, signal: Gate::NONE, frees: 0, single: false }
    }
}

impl Io {
    /// Whether operations only count: none is timed, checked or taken back, and none can fail.
    #[inline]
    pub fn only_counts(&self) -> bool {
        !self.plan.timed && self.takes_whole_pages()
    }

    /// Whether pages can be programmed by [`Self::program_whole`] and copied by [`Self::copy_run`]: operations may be timed, but none is
    /// checked or taken back, and none can fail.
    #[inline]
    pub fn takes_whole_pages(&self) -> bool {
        self.in_runs
            && self.ledger.is_none()
            && self.undo.is_none()
            && self.guard.is_none()
            && self.rain.is_none()
            && self.nand.takes_runs()
    }

    /// Whether pages can be programmed by [`Self::program_run`].
    pub fn takes_runs(&self) -> bool {
        self.only_counts() && !self.host.is_inner()
    }

    /// Reads `subpages` of page `ppn` by `mode`, of which the array senses all, for cleaning, in a run that only counts.
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

    /// Of `pages` (bits, counted from page `from` on) those before the first that is read from memory.
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

    /// Copies whole pages for cleaning, none of which is read from memory ([`Self::in_flash`]). See
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

    /// Puts the operations of [`Self::copy_run`] into the plan: of each page a read, and the program that follows it.
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

    /// Programs all of a page, which is erased and no other senses.
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

    /// Puts the operation of [`Self::program_whole`] into the plan.
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

    /// Programs page `ppn`, which is erased, with the logical subpages from `first` on, as one write of the host brings
    /// them; `single`: with one bit a cell.
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
