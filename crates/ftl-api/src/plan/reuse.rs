//! Second writes: low pages that are programmed again with a write-once-memory code, and reads of pages that must be decoded.

use super::select::ReadPolicy;
use super::{Cause, Gate, Io, PageImage};
use palimpsest_flash::nand::{Flash, Outcome, first_subpages};

impl Io {
    /// Reads all of page `ppn`, which must be decoded, to hand `subpages` of what it stores to the host or to the layer.
    /// Gates as for [`Self::read`].
    ///
    /// # Errors
    /// See [`palimpsest_flash::nand::Nand::read`].
    pub fn read_coded(&mut self, ppn: u32, subpages: u32, cause: Cause, after: Gate, signal: Gate) -> Flash<()> {
        let all = first_subpages(self.geometry().subpages_per_page);
        self.read(ppn, all, 0, ReadPolicy::PAGE, cause, after, signal)?;
        let part = self.nand.part();
        self.counters.wanted[self.counted_as(cause) as usize] -=
            u64::from(part.page_bytes - subpages * part.subpage_bytes);
        if self.timed {
            let link_bytes = subpages.next_multiple_of(self.transfer_subpages) * part.subpage_bytes;
            self.plan.last_mut().expect("an operation was pushed").link_bytes = link_bytes;
        }
        Ok(())
    }

    /// Programs low page `ppn` again, with `page` encoded so that cells go from 1 to 0 only; `spare` are the bytes of its
    /// spare area that the code uses, where contents are bytes. Subpages of `page` that store no data are its padding; the
    /// whole page crosses the bus.
    ///
    /// # Errors
    /// See [`palimpsest_flash::nand::Nand::reprogram`].
    pub fn reprogram(
        &mut self,
        ppn: u32,
        page: &PageImage<'_>,
        spare: &[u8],
        cause: Cause,
        after: Gate,
        signal: Gate,
    ) -> Flash<Outcome> {
        let outcome = self.nand.reprogram(ppn, page.written, page.logical, page.data, spare)?;
        let subpages = page.written.count_ones() - page.padding;
        self.counters.second_bytes += u64::from(subpages * self.nand.part().subpage_bytes);
        self.programmed(ppn, page, outcome, cause, after, signal);
        Ok(outcome)
    }
}
