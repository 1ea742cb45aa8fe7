//! `mga`: mapping granularity adaptive (Feng et al., "Mapping Granularity Adaptive FTL Based on Flash Page
//! Re-programming").
//!
//! Whole pages are mapped as pages. Smaller writes go by subpages into the free subpages of programmed pages ([`map`],
//! Sec. III-A; [`pages`], III-B and III-C). The page of a piece depends on the number of free pages ([`write`], III-D),
//! and a frequently read logical page may be spread over few pages only ([`merge`], III-E). Cleaning gathers a victim's
//! subpages by logical page ([`collect`]). Nothing is buffered: a program acknowledges a write. Where the paper is
//! silent, docs/systems.md, "mga", decides, and each file lists further decisions.
//!
//! A write that covers a logical page is a page write; the ragged ends of a longer request are written by subpages. A
//! piece of a subpage is a read-modify-write of that subpage. A write that touches every subpage of a logical page
//! counts as whole.
//!
//! Beyond the paper, which leaves re-programming MLC to future work: with `ftl.low_pages_first`, small writes fill low
//! pages, and high pages follow ([`rounds`]). Otherwise no page is programmed twice in low-low-high order.
//!
//! Ignored: `ftl.classifier`, and the third of `ftl.streams` (with two or three, moved data has separate blocks; in two
//! rounds it never does).

pub mod admission;
mod cache;
mod collect;
mod failed;
pub mod limits;
mod map;
mod merge;
mod pages;
mod read_counts;
mod recover;
mod rounds;
pub mod settings;
mod space;
#[cfg(test)]
mod tests;
mod write;

use super::gather::Gather;
use super::pages::{BuildSubpageLayer, MapsSubpages};
use crate::extent;
use crate::log::blocks::Blocks;
use crate::log::frontiers::Frontiers;
use crate::log::pace::WHOLE_BLOCKS;
use crate::log::settings::{
    CACHE, COLLECTION, FIXED_CACHE, GATHER, LEVELING, PLACEMENT, READ, STATIC_LEVELING, STREAMS, keys_of,
};
use crate::log::victim::{self, Victim};
use admission::{Admit, Threshold};
use collect::Collector;
use limits::{EVERY, Limits, Merged};
use map::{Map, Target, UNMAPPED};
use pages::PageStates;
use palimpsest_flash::geometry::{Extent, unit_of};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, first_subpages};
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_ftl_api::plan::{Cause, Io};
use palimpsest_ftl_api::{Blueprint, ClassifyAhead, Entry, Figure, Ftl, LayerFigures, Programs};
use settings::MgaSettings;
use write::Image;

pub const ENTRY: Entry = Entry {
    name: "mga",
    about: "two-level map: small writes fill the free subpages of programmed pages",
    programs: Programs::Subpages,
    keys: || {
        keys_of(&[
            COLLECTION,
            STREAMS,
            PLACEMENT,
            LEVELING,
            STATIC_LEVELING,
            READ,
            GATHER,
            CACHE,
            FIXED_CACHE,
            settings::KEYS,
        ])
    },
    outlives_dies: true,
    superblocks: true,
    reasons: &[("ftl.gc_pace", WHOLE_BLOCKS)],
    check: settings::check,
    model: settings::MODEL,
    build: |io, blueprint| Box::new(Mga::new(io, blueprint)),
    ..Entry::PLAIN
};

pub const UNITS: BuildSubpageLayer = |io, blueprint| Box::new(Mga::new(io, blueprint));

/// Subpages of one physical page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Group {
    ppn: u32,
    subpages: u64,
}

#[derive(Debug, Clone, Default)]
struct Counters {
    page_writes: u64,
    exclusive_writes: u64,
    shared_writes: u64,
    merges: u64,
    merge_moved: u64,
    collections: u64,
    erased: u64,
    gc_moved: u64,
    wear_moves: u64,
    retired: u64,
}

palimpsest_flash::state!(Counters {
    page_writes,
    exclusive_writes,
    shared_writes,
    merges,
    merge_moved,
    collections,
    erased,
    gc_moved,
    wear_moves,
    retired
});

struct Mga {
    settings: MgaSettings,
    subpages: u32,
    all: u64,
    sectors_per_subpage: u32,
    sectors_per_page: u64,
    map: Map,
    pages: PageStates,
    /// Exclusive allocation while more pages than this are fully free.
    threshold: u32,
    /// Chooses the threshold of each request, if outside of this crate.
    admission: Option<Box<dyn Admit>>,
    limits: Limits,
    /// Pages of the drive.
    pages_in_all: u32,
    victim: Box<dyn Victim>,
    rng: Rng,
    collector: Collector,
    /// Blocks with a failed program, to be evacuated.
    failed: Vec<u32>,
    image: Image,
    groups: Vec<Group>,
    reads: Gather,
    requests: u64,
    counters: Counters,
    /// True if a failed program or a power cut changed pages outside the counted transitions.
    disturbed: bool,
}

palimpsest_flash::state!(Mga {
    map, pages, threshold, limits, victim, rng, collector, failed, requests, counters, disturbed
} parts { admission } built {
    settings, subpages, all, sectors_per_subpage, sectors_per_page, pages_in_all, image, groups, reads
});

impl Mga {
    fn new(io: &Io, blueprint: &Blueprint) -> Self {
        let (geometry, settings) = (*io.geometry(), MgaSettings::new(&blueprint.settings));
        let pages_in_all = geometry.pages() as u32;
        let share = if let Threshold::Share(share) = settings.allocation_threshold { share } else { 0.0 };
        Mga {
            subpages: geometry.subpages_per_page,
            all: first_subpages(geometry.subpages_per_page),
            sectors_per_subpage: geometry.subpage_bytes / SECTOR_BYTES as u32,
            sectors_per_page: u64::from(geometry.page_bytes()) / SECTOR_BYTES,
            map: Map::new(blueprint.logical_pages, geometry.subpages_per_page, settings.counts_reads_of_pages),
            pages: PageStates::new(io, &settings, blueprint.logical_pages),
            threshold: (f64::from(pages_in_all) * share) as u32,
            admission: admission::OUTSIDE.build_from(&blueprint.settings),
            limits: Limits::new(&blueprint.settings, geometry.subpages_per_page),
            pages_in_all,
            victim: victim::new(&settings.log.victim),
            rng: Rng::new(blueprint.seed, 0x71c7),
            collector: Collector::new(io, &settings),
            failed: Vec::new(),
            image: Image::new(geometry.subpages_per_page),
            groups: Vec::new(),
            reads: Gather::default(),
            requests: 0,
            counters: Counters::default(),
            disturbed: false,
            settings,
        }
    }

    #[inline]
    fn frontiers(&mut self) -> &mut Frontiers {
        &mut self.pages.space.frontiers
    }

    #[inline]
    fn blocks(&self) -> &Blocks {
        self.pages.space.blocks()
    }

    /// Fully free pages of `plane`.
    #[inline]
    fn free_pages(&self, plane: u32) -> u32 {
        self.pages.space.free(plane)
    }

    /// True if writes skip `plane`, because the die has failed.
    #[inline]
    fn passes_by(&self, plane: u32) -> bool {
        self.pages.space.frontiers.rotation.passes_by(plane)
    }

    /// The subpages that `sectors` sectors from `first` on touch: first and end.
    #[inline]
    fn touched(&self, first: u32, sectors: u32) -> (u32, u32) {
        (first / self.sectors_per_subpage, (first + sectors).div_ceil(self.sectors_per_subpage))
    }

    /// True if exclusive allocation places small writes now: more pages are fully free than the threshold.
    #[inline]
    fn exclusive(&self) -> bool {
        self.pages.space.total() > self.threshold
    }

    #[inline]
    fn begin_request(&mut self, io: &Io) {
        let every = self.settings.read_count_aging;
        if self.limits.change() && self.requests.is_multiple_of(EVERY) {
            self.limits.update(&Merged {
                subpages: self.subpages,
                now: io.present.now,
                free: self.free_share(),
                merges: self.counters.merges,
                moved: self.counters.merge_moved,
            });
        }
        if every > 0 || self.limits.change() {
            self.requests += 1;
            if every > 0 && self.requests.is_multiple_of(every) {
                self.map.read_counts.age();
            }
        }
        self.admit(io.present.directives.class);
    }

    /// Lists the wanted subpages of a host read of `lpn`.
    fn want(&mut self, io: &Io, lpn: u32, first: u32, sectors: u32) {
        let (begin, end) = self.touched(first, sectors);
        let target = self.map.look_up(lpn);
        self.map.read_counts.add(lpn, if let Target::Partial(entry) = target { entry } else { UNMAPPED });
        match target {
            Target::Unmapped => {}
            Target::Full(ppn) => {
                let words = io.nand().words_of(first, sectors);
                self.reads.add(ppn, first_subpages(end - begin) << begin, words);
            }
            Target::Partial(entry) => {
                for index in begin..end {
                    let psn = self.map.places(entry)[index as usize];
                    if psn == UNMAPPED {
                        continue;
                    }
                    let from = first.max(index * self.sectors_per_subpage);
                    let to = (first + sectors).min((index + 1) * self.sectors_per_subpage);
                    let (ppn, subpage) = (psn / self.subpages, psn % self.subpages);
                    let within = subpage * self.sectors_per_subpage + from - index * self.sectors_per_subpage;
                    let words = io.nand().words_of(within, to - from);
                    self.reads.add(ppn, 1 << subpage, words);
                }
            }
        }
    }

    fn deliver(&self, io: &mut Io, lpn: u32, first: u32, sectors: u32) {
        let (begin, end) = self.touched(first, sectors);
        let mut unwritten = 0;
        for index in begin..end {
            let psn = self.map.place(lpn, index);
            unwritten += u32::from(psn == UNMAPPED);
            if io.host.has_contents() {
                let data = if psn == UNMAPPED { Data::ZERO } else { io.load_subpage(psn) };
                io.deliver(lpn * self.subpages + index, data);
            }
        }
        io.count_unwritten(unwritten);
    }
}

/// Adds subpages to the group of the same page, or as a new group. Groups are few: of one logical page or one image.
#[inline]
fn add_to_groups(groups: &mut Vec<Group>, more: Group) {
    match groups.iter_mut().rev().find(|group| group.ppn == more.ppn) {
        Some(group) => group.subpages |= more.subpages,
        None => groups.push(more),
    }
}

impl MapsSubpages for Mga {
    fn holds(&self, unit: u32) -> bool {
        self.map.place(unit / self.subpages, unit % self.subpages) != UNMAPPED
    }
}

impl Ftl for Mga {
    palimpsest_ftl_api::keeps_state!();

    fn unit_subpages(&self) -> u32 {
        1
    }

    fn classifier_ahead(&mut self) -> Option<&mut dyn ClassifyAhead> {
        if self.admission.is_some() { Some(self) } else { None }
    }

    #[inline]
    fn expect(&self, extent: Extent, soon: bool) {
        let lpn = unit_of(extent.sector, self.sectors_per_page as u32) as u32;
        if !soon {
            return self.map.prefetch(lpn);
        }
        if lpn < self.map.logical_pages()
            && let Target::Full(ppn) = self.map.look_up(lpn)
        {
            self.pages.prefetch(ppn);
        } else {
            self.map.prefetch_entry(lpn);
        }
    }

    #[inline]
    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.begin_request(io);
        for (lpn, first, sectors) in extent::pages(extent, self.sectors_per_page) {
            self.write_logical_page(io, lpn, first, sectors)?;
        }
        Ok(())
    }

    #[inline]
    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.begin_request(io);
        self.reads.clear();
        // An uncorrectable read loses the data, so reads must precede the delivery.
        let fails = io.nand().reads_fail();
        for (lpn, first, sectors) in extent::pages(extent, self.sectors_per_page) {
            self.want(io, lpn, first, sectors);
            if !fails {
                self.deliver(io, lpn, first, sectors);
            }
        }
        let request = io.request();
        self.reads.read(io, self.settings.log.read, Cause::Host, request)?;
        if fails {
            let pages = extent::pages(extent, self.sectors_per_page);
            pages.for_each(|(lpn, first, sectors)| self.deliver(io, lpn, first, sectors));
        }
        if self.settings.merge_on_read {
            for (lpn, _, _) in extent::pages(extent, self.sectors_per_page) {
                self.merge_after_read(io, lpn)?;
            }
        }
        Ok(())
    }

    fn trim(&mut self, _io: &mut Io, extent: Extent) -> Flash<()> {
        for (lpn, first, sectors) in extent::pages(extent, self.sectors_per_page) {
            let (begin, end) = self.touched(first, sectors);
            self.unmap(lpn, first_subpages(end - begin) << begin);
        }
        Ok(())
    }

    fn flush(&mut self, _io: &mut Io) -> Flash<()> {
        Ok(())
    }

    fn background(&mut self, io: &mut Io) -> Flash<bool> {
        self.collect_in_background(io)
    }

    fn relocate(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        self.relocate_block(io, block)
    }

    fn recover(&mut self, io: &mut Io) -> Flash<()> {
        self.rebuild(io)
    }

    fn check(&mut self, io: &Io) -> Result<(), String> {
        self.check_all(io)
    }

    fn figures(&self) -> LayerFigures {
        let (counters, transitions) = (&self.counters, &self.pages.transitions);
        let counts = [
            ("transition_ff_pv", transitions.ff_pv),
            ("transition_ff_fv", transitions.ff_fv),
            ("transition_pv_fv", transitions.pv_fv),
            ("transition_pv_fi", transitions.pv_fi),
            ("transition_fv_pv", transitions.fv_pv),
            ("transition_fv_fi", transitions.fv_fi),
            ("transition_fi_ff", transitions.fi_ff),
            ("page_writes", counters.page_writes),
            ("small_writes_exclusive", counters.exclusive_writes),
            ("small_writes_shared", counters.shared_writes),
            ("lost_free_subpages", self.pages.lost),
            ("wear_moves", counters.wear_moves),
        ];
        let levels = [
            ("fully_free_pages", u64::from(self.pages.space.total())),
            ("partially_used_blocks", u64::from(self.pages.space.partially_used())),
            ("spmt_entries", u64::from(self.map.entries_used())),
            ("spmt_entries_peak", u64::from(self.map.most_entries())),
            ("spmt_bytes_peak", u64::from(self.map.most_entries()) * self.map.entry_bytes()),
        ];
        let small = counters.exclusive_writes + counters.shared_writes;
        let shares = [
            ("exclusive_share", Figure::ShareOfCount(counters.exclusive_writes, small)),
            ("shared_share", Figure::ShareOfCount(counters.shared_writes, small)),
        ];
        let fixed = &self.pages.space.frontiers.fixed;
        let folded = fixed.is_used().then(|| ("folded_blocks", fixed.folded()));
        let counts = counts.into_iter().chain(folded).map(|(name, count)| (name, Figure::Count(count)));
        let levels = levels.into_iter().map(|(name, level)| (name, Figure::Level(level)));
        LayerFigures {
            mapping: self.map.mapping(),
            gc_runs: counters.collections,
            gc_erased: counters.erased,
            gc_moved_subpages: counters.gc_moved,
            merges: counters.merges,
            merge_moved_subpages: counters.merge_moved,
            retired_blocks: counters.retired,
            own: counts.chain(levels).chain(shares).collect(),
            ..LayerFigures::default()
        }
    }

    fn count_valid(&self, valid: &mut [u32]) -> bool {
        for (block, sum) in (0..).zip(valid) {
            *sum += self.pages.valid_in_block(block);
        }
        true
    }
}
