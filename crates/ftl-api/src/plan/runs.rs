//! Reads and programs of whole pages in runs that only count: what [`Io::read`] and [`Io::program`] of each leave, without what such runs
//! do not have. Of pages that the host fills with consecutive subpages what its writes leave, too.

use super::flash::wanted_bytes;
use super::{Cause, Io};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::part::ReadMode;
use palimpsest_flash::nand::{Flash, SubpageMask, count};

impl Io {
    /// Whether operations only count: none is timed, checked or taken back, and none can fail.
    #[inline]
    pub fn only_counts(&self) -> bool {
        self.in_runs
            && !self.plan.timed
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

    /// Copies whole pages for cleaning, in a run that only counts: those of `pages` (bits, counted from page `from` on) to the pages from `to`
    /// on; `single`: with one bit a cell. See [`palimpsest_flash::nand::Nand::copy_run`].
    #[inline]
    pub fn copy_run(&mut self, from: u32, pages: u64, to: u32, single: bool) {
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

    /// Programs page `ppn`, which is erased, for cleaning, in a run that only counts: `logical` and `data` have one entry a subpage; `single`:
    /// with one bit a cell.
    ///
    /// # Errors
    /// As [`Self::program`].
    #[inline]
    pub fn program_for_copy(&mut self, ppn: u32, logical: &[u32], data: &[Data], single: bool) -> Flash<()> {
        self.nand.note_single(ppn, single);
        self.nand.program_whole(ppn, logical, data)?;
        let bytes = u64::from(self.nand.geometry().page_bytes());
        let counters = &mut self.counters;
        counters.programs[Cause::Gc as usize] += 1;
        counters.data_bytes += bytes;
        counters.bus_bytes += bytes;
        Ok(())
    }

    /// Programs page `ppn`, which is erased, with the logical subpages from `first` on, as writes of the host of `width` subpages each bring
    /// them; `single`: with one bit a cell.
    ///
    /// # Errors
    /// See [`palimpsest_flash::nand::Nand::program_run`].
    #[inline]
    pub fn program_run(&mut self, ppn: u32, first: u32, width: u32, single: bool) -> Flash<()> {
        let cause = self.counted_as(Cause::Host);
        self.nand.note_single(ppn, single);
        let (host, next) = (&self.host, self.host.writes() + 1);
        self.nand.program_run(ppn, first, |lsn| host.tag_of(lsn, next + u64::from((lsn - first) / width)))?;
        let geometry = self.nand.geometry();
        let (subpages, bytes) = (geometry.subpages_per_page, u64::from(geometry.page_bytes()));
        self.host.skip_writes(subpages / width);
        self.counters.programs[cause as usize] += 1;
        self.counters.data_bytes += bytes;
        self.counters.bus_bytes += bytes;
        Ok(())
    }

    /// Programs `rounds` pages of each of `frontiers` (block and page) in turn, as [`Self::program_run`] would.
    pub fn program_rounds(&mut self, frontiers: &[(u32, u32)], rounds: u32, first: u32, width: u32) {
        let cause = self.counted_as(Cause::Host);
        let (host, next) = (&self.host, self.host.writes() + 1);
        self.nand
            .program_rounds(frontiers, rounds, first, |lsn| host.tag_of(lsn, next + u64::from((lsn - first) / width)));
        let geometry = self.nand.geometry();
        let pages = rounds * frontiers.len() as u32;
        let (subpages, bytes) = (geometry.subpages_per_page, u64::from(pages) * u64::from(geometry.page_bytes()));
        self.host.skip_writes(pages * subpages / width);
        self.counters.programs[cause as usize] += u64::from(pages);
        self.counters.data_bytes += bytes;
        self.counters.bus_bytes += bytes;
    }
}
