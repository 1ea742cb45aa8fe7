//! The two-level map: a page map of all logical pages, and a subpage map of partially written ones.
//!
//! The PMT has one entry per logical page: the physical page with all subpages in place (FP), or the index of an SPMT
//! entry (PP). An SPMT entry has the place of each subpage and the PPN count. The first write smaller than a page
//! creates the entry, which is freed once one physical page holds all subpages in place, or none is mapped. Source: MGA
//! paper, Sec. III-A and Fig. 3. Read counts are in [`super::read_counts`].
//!
//! Counted as DRAM: 8 bytes an address as in `page`, so 8 bytes a PMT entry, including the 4 bits of a read count. An
//! SPMT entry has an address per subpage and three bytes: PPN count, read count (if stored there), and the subpages in
//! the owned page.

use super::read_counts::ReadCounts;
use palimpsest_flash::prefetch::prefetch;
use palimpsest_ftl_api::Mapping;

/// Never written, or trimmed. Also no page.
pub(super) const UNMAPPED: u32 = u32::MAX;
const ADDRESS_BYTES: u64 = 8;
/// PPN count, read count and owned page of an SPMT entry.
const EXTRA_BYTES: u64 = 3;

/// The PMT entry of a logical page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// No subpage was written.
    Unmapped,
    /// FP: this physical page holds all subpages in place.
    Full(u32),
    /// PP: this SPMT entry has the places.
    Partial(u32),
}

/// The fields of an SPMT entry beside the addresses.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SpmtEntry {
    /// The logical page; [`UNMAPPED`] in a free entry.
    pub lpn: u32,
    /// The physical page owned under exclusive allocation, if this logical page still is the owner.
    pub own: u32,
    /// PPN count: physical pages with subpages of the logical page.
    pub pages: u8,
}

palimpsest_flash::state!(SpmtEntry { lpn, own, pages });

pub(super) struct Map {
    subpages: u32,
    /// Bit of a PMT entry that marks PP. None if a page has one subpage, because there are no partial writes then.
    partial: u32,
    pmt: Vec<u32>,
    entries: Vec<SpmtEntry>,
    /// `subpages` addresses per entry: physical subpages.
    places: Vec<u32>,
    free: Vec<u32>,
    most_entries: u32,
    /// Reads of the logical pages.
    pub read_counts: ReadCounts,
}

palimpsest_flash::state!(Map { pmt, entries, places, free, most_entries, read_counts } built { subpages, partial });

impl Map {
    /// A map of `logical_pages` pages of `subpages` subpages, all unmapped. Reads are counted for all logical pages, or
    /// for pages with an SPMT entry.
    pub fn new(logical_pages: u32, subpages: u32, counts_reads_of_pages: bool) -> Self {
        Map {
            subpages,
            partial: if subpages == 1 { 0 } else { 1 << 31 },
            pmt: vec![UNMAPPED; logical_pages as usize],
            entries: Vec::new(),
            places: Vec::new(),
            free: Vec::new(),
            most_entries: 0,
            read_counts: ReadCounts::new(logical_pages, counts_reads_of_pages),
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.pmt.fill(UNMAPPED);
        self.entries.clear();
        self.places.clear();
        self.free.clear();
        self.read_counts.clear();
    }

    pub fn logical_pages(&self) -> u32 {
        self.pmt.len() as u32
    }

    /// The PMT entry of `lpn`.
    #[inline]
    pub fn look_up(&self, lpn: u32) -> Target {
        match self.pmt[lpn as usize] {
            UNMAPPED => Target::Unmapped,
            entry if entry & self.partial != 0 => Target::Partial(entry & !self.partial),
            ppn => Target::Full(ppn),
        }
    }

    /// The physical subpage of subpage `index` of `lpn`, or [`UNMAPPED`].
    #[inline]
    pub fn place(&self, lpn: u32, index: u32) -> u32 {
        match self.look_up(lpn) {
            Target::Unmapped => UNMAPPED,
            Target::Full(ppn) => ppn * self.subpages + index,
            Target::Partial(entry) => self.places(entry)[index as usize],
        }
    }

    /// The addresses of an SPMT entry.
    #[inline]
    pub fn places(&self, entry: u32) -> &[u32] {
        &self.places[(entry * self.subpages) as usize..][..self.subpages as usize]
    }

    /// An SPMT entry.
    #[inline]
    pub fn entry(&self, entry: u32) -> &SpmtEntry {
        &self.entries[entry as usize]
    }

    /// Makes `lpn` the owner of `ppn`, if `lpn` has an SPMT entry.
    #[inline]
    pub fn set_own(&mut self, lpn: u32, ppn: u32) {
        if let Target::Partial(entry) = self.look_up(lpn) {
            self.entries[entry as usize].own = ppn;
        }
    }

    /// Maps `lpn` to `ppn`, which must hold all subpages in place.
    #[inline]
    pub fn set_full(&mut self, lpn: u32, ppn: u32) {
        self.set_pmt(lpn, ppn);
    }

    /// Unmaps `lpn`.
    pub fn unmap(&mut self, lpn: u32) {
        self.set_pmt(lpn, UNMAPPED);
    }

    #[inline]
    fn set_pmt(&mut self, lpn: u32, value: u32) {
        if let Target::Partial(entry) = self.look_up(lpn) {
            self.entries[entry as usize].lpn = UNMAPPED;
            self.free.push(entry);
        }
        self.pmt[lpn as usize] = value;
    }

    /// The SPMT entry of `lpn`, created if necessary. [`Self::settle`] must follow changes of the entry.
    #[inline]
    pub fn make_partial(&mut self, lpn: u32) -> u32 {
        let target = self.look_up(lpn);
        if let Target::Partial(entry) = target {
            return entry;
        }
        debug_assert!(self.subpages > 1);
        let fresh = SpmtEntry { lpn, own: UNMAPPED, pages: 0 };
        let entry = match self.free.pop() {
            Some(entry) => {
                self.entries[entry as usize] = fresh;
                entry
            }
            None => {
                self.entries.push(fresh);
                self.places.resize(self.entries.len() * self.subpages as usize, UNMAPPED);
                self.entries.len() as u32 - 1
            }
        };
        self.read_counts.begin_entry(entry);
        self.most_entries = self.most_entries.max(self.entries_used());
        let first = (entry * self.subpages) as usize;
        for index in 0..self.subpages {
            self.places[first + index as usize] = match target {
                Target::Full(ppn) => ppn * self.subpages + index,
                _ => UNMAPPED,
            };
        }
        self.pmt[lpn as usize] = entry | self.partial;
        entry
    }

    /// Sets the place of subpage `index` of an entry to `psn`.
    #[inline]
    pub fn set_place(&mut self, entry: u32, index: u32, psn: u32) {
        self.places[(entry * self.subpages + index) as usize] = psn;
    }

    /// Counts the pages of a changed entry, and frees the entry if no longer necessary.
    #[inline]
    pub fn settle(&mut self, entry: u32) {
        let lpn = self.entries[entry as usize].lpn;
        let places = self.places(entry);
        let first = places[0];
        if first != UNMAPPED && first.is_multiple_of(self.subpages) {
            if places.iter().enumerate().all(|(index, &psn)| psn == first + index as u32) {
                return self.set_pmt(lpn, first / self.subpages);
            }
        } else if places.iter().all(|&psn| psn == UNMAPPED) {
            return self.set_pmt(lpn, UNMAPPED);
        }
        self.entries[entry as usize].pages = self.count_pages(entry);
    }

    /// Number of physical pages with subpages of an entry.
    pub fn count_pages(&self, entry: u32) -> u8 {
        let places = self.places(entry);
        let first_in_its_page = |&(index, &psn): &(usize, &u32)| {
            psn != UNMAPPED
                && !places[..index]
                    .iter()
                    .any(|&other| other != UNMAPPED && other / self.subpages == psn / self.subpages)
        };
        places.iter().enumerate().filter(first_in_its_page).count() as u8
    }

    /// Prefetches the PMT entry of `lpn`.
    #[inline]
    pub fn prefetch(&self, lpn: u32) {
        prefetch(&self.pmt, lpn as usize);
    }

    /// Prefetches the SPMT entry that the PMT names for `lpn`.
    #[inline]
    pub fn prefetch_entry(&self, lpn: u32) {
        if let Some(&value) = self.pmt.get(lpn as usize)
            && value != UNMAPPED
            && value & self.partial != 0
        {
            let entry = value & !self.partial;
            prefetch(&self.entries, entry as usize);
            prefetch(&self.places, (entry * self.subpages) as usize);
        }
    }

    /// SPMT entries in use.
    #[inline]
    pub fn entries_used(&self) -> u32 {
        (self.entries.len() - self.free.len()) as u32
    }

    /// The most SPMT entries in use at once.
    pub fn most_entries(&self) -> u32 {
        self.most_entries
    }

    /// Bytes of an SPMT entry.
    pub fn entry_bytes(&self) -> u64 {
        u64::from(self.subpages) * ADDRESS_BYTES + EXTRA_BYTES
    }

    /// DRAM that the tables take.
    pub fn mapping(&self) -> Mapping {
        let pmt = self.pmt.len() as u64 * ADDRESS_BYTES;
        let spmt = |entries: u32| u64::from(entries) * self.entry_bytes();
        Mapping {
            tables: vec![("pmt", pmt), ("spmt", spmt(self.entries_used()))],
            peak_bytes: pmt + spmt(self.most_entries),
        }
    }

    /// Checks the tables against each other.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self) -> Result<(), String> {
        let mut used = 0;
        for lpn in 0..self.logical_pages() {
            let Target::Partial(entry) = self.look_up(lpn) else { continue };
            used += 1;
            let state = self.entry(entry);
            if state.lpn != lpn {
                return Err(format!("logical page {lpn} has SPMT entry {entry}, which is that of {}", state.lpn));
            }
            let count = self.count_pages(entry);
            if count != state.pages || count == 0 {
                return Err(format!("logical page {lpn} is in {count} pages but counts {}", state.pages));
            }
            let places = self.places(entry);
            if places[0].is_multiple_of(self.subpages)
                && places.iter().enumerate().all(|(index, &psn)| psn == places[0].wrapping_add(index as u32))
            {
                return Err(format!("logical page {lpn} is complete in one page but has an SPMT entry"));
            }
        }
        if used != self.entries_used() {
            return Err(format!("{used} logical pages have SPMT entries, and {} are in use", self.entries_used()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
