//! Whole pages that the host fills with consecutive subpages, in counted runs: what a write and [`Io::program`] of each leave.

use super::{Cause, Io};
use palimpsest_flash::nand::Flash;

impl Io {
    /// Whether pages can be programmed by [`Self::program_run`].
    pub fn takes_runs(&self) -> bool {
        !self.plan.timed
            && self.ledger.is_none()
            && self.undo.is_none()
            && self.guard.is_none()
            && self.rain.is_none()
            && !self.host.is_inner()
            && self.nand.takes_runs()
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
