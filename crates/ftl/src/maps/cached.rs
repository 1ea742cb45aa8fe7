//! A map of pages stored in flash: entries are in translation pages, which are units of the same log, and some are
//! cached in DRAM (Gupta, Kim and Urgaonkar, DFTL, ASPLOS 2009, Sec. 3).
//!
//! The cached mapping table (CMT) orders entries as a segmented LRU. A missing entry is read from a translation page,
//! which the global translation directory (GTD), in DRAM, locates. Before the read, the CMT makes room: if the evicted
//! entry is dirty, the translation page is read, and programmed with all dirty entries of that page (batch update).
//! Pages that cleaning moves change entries, too: missing ones join the CMT beyond the size, are evicted first, and so
//! are written in batches after the collection (lazy copying). The simulator stores the whole map. Runs with contents
//! also store the bytes of translation pages in flash, and compare at each read; without contents nothing could read
//! these bytes, because a power cut needs contents.
//!
//! Where the paper is silent: an entry takes 8 bytes of the CMT, 4 of a translation page and of the GTD. The protected
//! segment is half. The update of a victim ends before the read of the missing entry begins. After a power cut,
//! out-of-band areas locate pages, and entries that differ from flash are in the CMT: never more than before, except
//! for restored trims. A checkpoint has the GTD and those entries; the others are in the translation pages. If restored
//! trims, or pages that cleaning moved, exceed the CMT, the checkpoint is incomplete, and recovery scans everything.
//! Ignored: the time of the out-of-band search, as for every layer.

use super::bytes::map_bytes;
use super::segments::Segments;
use crate::log::map::{Map, UNMAPPED, entries_in};
use crate::log::{Append, Log};
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::data::{Data, Payload};
use palimpsest_flash::nand::{Flash, Halt, Nand, SubpageMask, first_subpages};
use palimpsest_flash::prefetch::prefetch;
use palimpsest_ftl_api::plan::{Cause, CodedIo, Gate, Io, Read};
use palimpsest_ftl_api::{Figure, LayerFigures, Mapping};

/// Bytes of an entry in a translation page, and in the GTD.
pub const ENTRY_BYTES: u32 = 4;
/// Bytes of an entry of the CMT.
pub const CACHED_BYTES: u64 = map_bytes(1);

#[derive(Default)]
struct Counters {
    hits: u64,
    misses: u64,
    evictions: u64,
    /// Translation pages read, programmed with new entries, and programmed in total.
    reads: u64,
    updates: u64,
    programs: u64,
    /// Entries that updates wrote.
    written: u64,
}

palimpsest_flash::state!(Counters { hits, misses, evictions, reads, updates, programs, written });

/// Entries of all pages of the host, followed by entries of the translation pages: the GTD.
pub struct CachedMap {
    entries: Vec<u32>,
    /// Pages of the host.
    pages: u32,
    subpages: u32,
    /// Entries of a subpage of a translation page.
    per_subpage: u32,
    /// Translation pages in each block of `per_block` pages.
    own_in: Vec<u32>,
    per_block: u32,
    cache: Segments,
    /// Capacity of the CMT in entries.
    room: u32,
    /// The largest size of the CMT so far.
    peak: u32,
    counters: Counters,
    /// After a power cut: pages that neither a checkpoint nor later writes locate; else empty.
    unknown: Vec<bool>,
    /// True if flash stores the bytes of translation pages.
    stores: bool,
}

palimpsest_flash::state!(CachedMap { entries, own_in, cache, peak, counters } built {
    pages, subpages, per_subpage, per_block, room, unknown, stores
});

impl CachedMap {
    /// A map of `pages` unwritten pages; the CMT has room for `room` >= 1 entries.
    pub fn new(io: &Io, pages: u32, room: u32) -> Self {
        let (subpages, per_subpage) = (io.geometry().subpages_per_page, io.geometry().subpage_bytes / ENTRY_BYTES);
        let own = pages.div_ceil(subpages * per_subpage);
        CachedMap {
            entries: vec![UNMAPPED; (pages + own) as usize],
            pages,
            subpages,
            per_subpage,
            own_in: vec![0; io.geometry().blocks() as usize],
            per_block: io.geometry().pages_per_block,
            cache: Segments::new(pages, room),
            room,
            peak: 0,
            counters: Counters::default(),
            unknown: Vec::new(),
            stores: io.nand().payload() != Payload::None,
        }
    }

    /// Bytes of a checkpoint of a map of `pages` pages: the GTD, and `room` entries of the CMT that may differ from
    /// flash.
    pub fn checkpoint_bytes(geometry: &Geometry, pages: u64, room: u64) -> u64 {
        let own = pages.div_ceil((geometry.page_bytes() / ENTRY_BYTES).into());
        u64::from(ENTRY_BYTES) * (own + 2 * room.min(pages))
    }

    /// Translation page of `unit`, and the subpage with the entry.
    #[inline]
    fn home(&self, unit: u32) -> (u32, u32) {
        let subpage = unit / self.per_subpage;
        (self.pages + subpage / self.subpages, subpage % self.subpages)
    }

    /// The entry of `unit` in flash.
    fn in_flash(&self, nand: &Nand, unit: u32) -> u32 {
        let (page, subpage) = self.home(unit);
        let ppn = self.entries[page as usize];
        if ppn == UNMAPPED {
            return UNMAPPED;
        }
        let bytes = nand.own(ppn * self.subpages + subpage).unwrap_or_default();
        let at = (unit % self.per_subpage * ENTRY_BYTES) as usize;
        let entry = bytes.get(at..at + ENTRY_BYTES as usize).and_then(|entry| entry.try_into().ok());
        entry.map_or(UNMAPPED, u32::from_le_bytes)
    }

    /// The units whose entries translation page `page` holds.
    fn units_of(&self, page: u32) -> std::ops::Range<u32> {
        let per_page = self.subpages * self.per_subpage;
        let first = (page - self.pages) * per_page;
        first..(first + per_page).min(self.pages)
    }

    /// Fills `bytes` with the content of translation page `page`, if flash stores these bytes.
    fn fill(&self, page: u32, bytes: &mut Vec<u8>) {
        if !self.stores {
            return;
        }
        let units = self.units_of(page);
        let entries = &self.entries[units.start as usize..units.end as usize];
        bytes.resize(size_of_val(entries), 0);
        for (kept, entry) in bytes.as_chunks_mut().0.iter_mut().zip(entries) {
            *kept = entry.to_le_bytes();
        }
    }

    /// Marks every entry of translation page `page` clean, once flash has stored them.
    fn updated(&mut self, page: u32) {
        self.counters.updates += 1;
        self.counters.written += u64::from(self.cache.clean(self.units_of(page)));
    }

    /// Sets the place of `unit`; returns the place before.
    #[inline]
    fn set(&mut self, unit: u32, entry: u32) -> u32 {
        let before = std::mem::replace(&mut self.entries[unit as usize], entry);
        if self.is_own(unit) {
            let block_of = |place: u32| (place / self.per_block) as usize;
            if before != UNMAPPED {
                self.own_in[block_of(before)] -= 1;
            }
            if entry != UNMAPPED {
                self.own_in[block_of(entry)] += 1;
            }
        }
        before
    }

    fn note_peak(&mut self) {
        self.peak = self.peak.max(self.cache.len());
    }
}

impl Log<CachedMap> {
    /// Reads the subpages `wanted` of translation page `page` after `after`, if the page exists. The gate closes when
    /// they have arrived.
    fn read_entries(&mut self, io: &mut Io, page: u32, wanted: SubpageMask, after: Gate) -> Flash<Gate> {
        let ppn = self.map.locate(page);
        if ppn == UNMAPPED {
            return Ok(after);
        }
        let signal = io.gate();
        io.read(Read { policy: self.read_policy(), after, signal, ..Read::new(ppn, wanted, Cause::Metadata) })?;
        self.map.counters.reads += 1;
        Ok(signal)
    }

    /// Evicts entries, after `after`, until the CMT holds `most`. Entries that join meanwhile stay, and dirty entries
    /// stay if flash has no space for them, so that a full drive can still be read. The gate closes when flash has
    /// stored the evicted entries.
    fn evict(&mut self, io: &mut Io, most: u32, mut after: Gate) -> Flash<Gate> {
        for _ in most..self.map.cache.len() {
            let Some(unit) = self.map.cache.oldest().filter(|_| self.map.cache.len() > most) else { break };
            if self.map.cache.is_dirty(unit) {
                match self.update(io, self.map.home(unit).0, after) {
                    Ok(done) => after = done,
                    // Interrupted moves left every unit mapped to a valid place.
                    Err(Halt::NoSpace) => break,
                    Err(halt) => return Err(halt),
                }
            }
            // Cleaning may have moved the page meanwhile.
            if !self.map.cache.is_dirty(unit) {
                self.map.cache.remove(unit);
                self.map.counters.evictions += 1;
            }
        }
        Ok(after)
    }

    /// Programs translation page `page` anew, with all entries. The gate closes when that is done.
    fn update(&mut self, io: &mut Io, page: u32, after: Gate) -> Flash<Gate> {
        let after = self.read_entries(io, page, first_subpages(self.map.subpages), after)?;
        let signal = io.gate();
        let what = Append { unit: page, data: Data::ZERO, cause: Cause::Metadata, after, signal, holds: 0 };
        self.append_own(io, what, |map, bytes| map.fill(page, bytes), |map| map.updated(page))?;
        Ok(signal)
    }
}

impl Map for CachedMap {
    const IN_LOG: bool = true;
    const MOVES_RUNS: bool = true;

    #[inline]
    fn units(&self) -> u32 {
        self.entries.len() as u32
    }

    #[inline]
    fn locate(&self, unit: u32) -> u32 {
        self.entries[unit as usize]
    }

    #[inline]
    fn place(&mut self, unit: u32, entry: u32) -> u32 {
        let before = self.set(unit, entry);
        if self.is_own(unit) {
            self.counters.programs += 1;
        } else if before != entry {
            self.cache.dirty(unit);
            self.note_peak();
        }
        before
    }

    fn restore(&mut self, unit: u32, entry: u32) {
        self.set(unit, entry);
        self.unknown.get_mut(unit as usize).into_iter().for_each(|unknown| *unknown = false);
    }

    fn clear(&mut self) {
        self.entries.fill(UNMAPPED);
        self.own_in.fill(0);
        self.cache.clear();
        self.unknown.clear();
    }

    /// The GTD, and each page whose entry differs from flash, with the entry.
    fn save_places(&self, bytes: &mut Vec<u8>, place: impl Fn(u32) -> u32) {
        (self.pages..self.units()).for_each(|page| bytes.extend(place(page).to_le_bytes()));
        for unit in (0..self.pages).filter(|&unit| self.cache.is_dirty(unit)) {
            bytes.extend([unit, place(unit)].into_iter().flat_map(u32::to_le_bytes));
        }
    }

    fn restore_places(&mut self, bytes: &[u8], is_void: impl Fn(u32) -> bool) {
        self.unknown.resize(self.entries.len(), true);
        let mut saved = entries_in(bytes);
        let known = |entry: u32| if entry == UNMAPPED || is_void(entry) { UNMAPPED } else { entry };
        for page in self.pages..self.units() {
            self.set(page, saved.next().map_or(UNMAPPED, known));
        }
        while let (Some(unit), Some(entry)) = (saved.next(), saved.next()) {
            self.restore(unit, known(entry));
        }
    }

    fn restored(&mut self, nand: &Nand, is_void: impl Fn(u32) -> bool) -> bool {
        let unknown = std::mem::take(&mut self.unknown);
        for unit in (0..self.pages).filter(|&unit| unknown.get(unit as usize) == Some(&true)) {
            let entry = self.in_flash(nand, unit);
            if entry == UNMAPPED {
                continue;
            }
            let named_since = !unknown[self.home(unit).0 as usize];
            if is_void(entry) && !named_since {
                continue;
            }
            // A translation page may precede a page that it names, which the power cut rolled back.
            let is_there = nand.programs(entry) > 0 && nand.logical(entry * self.subpages) == unit * self.subpages;
            if is_void(entry) || !is_there {
                return false;
            }
            self.entries[unit as usize] = entry;
        }
        for unit in 0..self.pages {
            if self.in_flash(nand, unit) != self.entries[unit as usize] {
                self.cache.dirty(unit);
            }
        }
        self.note_peak();
        true
    }

    #[inline]
    fn prefetch(&self, unit: u32) {
        prefetch(&self.entries, unit as usize);
        self.cache.prefetch(unit);
    }

    #[inline]
    fn is_own(&self, unit: u32) -> bool {
        unit >= self.pages
    }

    fn first_of(&self, unit: u32) -> u32 {
        self.units_of(unit).start
    }

    #[inline]
    fn own_in(&self, block: u32) -> u32 {
        self.own_in[block as usize]
    }

    fn fetch(log: &mut Log<Self>, io: &mut Io, unit: u32) -> Flash<Gate> {
        if let Some(ready) = log.map.cache.hit(unit) {
            log.map.counters.hits += 1;
            return Ok(ready);
        }
        log.map.counters.misses += 1;
        let after = log.evict(io, log.map.room - 1, io.arrival())?;
        if log.map.cache.hit(unit).is_some() {
            // Cleaning moved the page, so the entry is cached.
            return Ok(after);
        }
        let (page, subpage) = log.map.home(unit);
        let ready = log.read_entries(io, page, 1 << subpage, after)?;
        if log.map.stores {
            let (found, known) = (log.map.in_flash(io.nand(), unit), log.map.locate(unit));
            assert_eq!(found, known, "translation page {page} holds the entry of page {unit}");
        }
        let (entries, width) = (log.map.locate(page), log.map.subpages);
        if entries != UNMAPPED {
            io.found(unit * width, (unit + 1) * width, entries * width + subpage);
        }
        log.map.cache.insert(unit, ready);
        log.map.note_peak();
        Ok(ready)
    }

    #[inline]
    fn settle(log: &mut Log<Self>, io: &mut Io) -> Flash<()> {
        if log.map.cache.len() <= log.map.room {
            return Ok(());
        }
        log.evict(io, log.map.room, Gate::NONE).map(drop)
    }

    fn check(&self, nand: &Nand) -> Result<(), String> {
        self.cache.check()?;
        let mut own_in = vec![0; self.own_in.len()];
        let places = self.entries[self.pages as usize..].iter().filter(|&&place| place != UNMAPPED);
        places.for_each(|place| own_in[(place / self.per_block) as usize] += 1);
        if own_in != self.own_in {
            return Err(format!("blocks have {own_in:?} translation pages, and count {:?}", self.own_in));
        }
        for unit in (0..self.pages).filter(|&unit| self.stores && !self.cache.is_dirty(unit)) {
            let (found, known) = (self.in_flash(nand, unit), self.entries[unit as usize]);
            if found != known {
                let page = self.home(unit).0 - self.pages;
                return Err(format!("translation page {page} says that page {unit} is at {found}, not {known}"));
            }
        }
        Ok(())
    }

    fn describe(&self, figures: &mut LayerFigures) {
        let gtd = (u64::from(self.units()) - u64::from(self.pages)) * u64::from(ENTRY_BYTES);
        let cmt = |entries: u32| map_bytes(entries.into());
        let tables = vec![("cmt", cmt(self.cache.len())), ("gtd", gtd)];
        figures.mapping = Mapping { tables, peak_bytes: cmt(self.peak) + gtd };
        let counters = &self.counters;
        figures.own.extend([
            ("map_hits", Figure::Count(counters.hits)),
            ("map_misses", Figure::Count(counters.misses)),
            ("map_hit_share", Figure::ShareOfCount(counters.hits, counters.hits + counters.misses)),
            ("map_evictions", Figure::Count(counters.evictions)),
            ("map_page_reads", Figure::Count(counters.reads)),
            ("map_page_updates", Figure::Count(counters.updates)),
            ("map_entries_written", Figure::Count(counters.written)),
            ("map_pages_moved", Figure::Count(counters.programs - counters.updates)),
        ]);
    }
}
