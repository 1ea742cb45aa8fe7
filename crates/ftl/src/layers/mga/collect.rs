//! Cleaning: garbage collection, wear levelling, and evacuation of failing blocks.
//!
//! A victim's valid subpages are gathered by logical page. Logical pages that are mapped whole, or are whole in the
//! victim, move as a page. The rest moves by the current allocation. Under EA, subpages go to the page that their
//! logical page owns, or to a fresh one. Under SA, subpages fill fresh pages completely in one program each; left-over
//! subpages go to the last opened page with room, or a fresh one. Source: docs/systems.md, "mga", GC.
//!
//! Decided here: EA applies only while it takes no more pages than the victim's occupied pages. Otherwise each
//! remaining subpage would occupy a full page and cleaning would reclaim nothing. If a left-over partial page would
//! consume the last gain, the left-over stays, and the victim waits for the next one to complete that page. So cleaning
//! always gains. The host leaves a block's worth of fully free pages in every plane, because one victim may take as
//! many.
//!
//! Victims are chosen by invalid subpages. If no block has any, they are chosen by valid ones, and free subpages are
//! lost.

use super::Mga;
use super::map::{Target, UNMAPPED};
use super::settings::MgaSettings;
use super::space::HOST;
use super::write::Job;
use crate::log::blocks::BlockState;
use crate::log::portions::{InPortions, Portions};
use crate::log::settings::WearLeveling;
use crate::log::victim::Candidates;
use palimpsest_flash::nand::{Flash, Halt, Outcome};
use palimpsest_ftl_api::plan::{Cause, Erase, Gate, Io, Read};

/// Collections between two checks of static wear levelling.
const WEAR_CHECK_EVERY: u32 = 8;

/// A victim that waits for the last subpages to fill a page.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Waiting {
    block: u32,
    /// Closes when all data moved out is programmed.
    safe: Gate,
}

palimpsest_flash::state!(Waiting { block, safe });

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moved {
    lsn: u32,
    psn: u32,
}

pub(super) struct Collector {
    /// Fully free pages that cleaning leaves if possible: a failed program spoils one, and a power cut one per die of a
    /// superblock.
    pub slack: u32,
    gc_start: u32,
    gc_stop: u32,
    gc_idle_stop: u32,
    portions: Portions,
    pub pages_per_block: u32,
    pub blocks_per_plane: u32,
    wear_checks: u32,
    /// One entry per plane.
    waiting: Vec<Option<Waiting>>,
    /// Pages of the victim that are mapped whole.
    whole: Vec<u32>,
    /// Subpages of logical pages that are whole in the victim.
    gathered: Vec<Moved>,
    scattered: Vec<Moved>,
    /// Per page number of a block: the last page read, and the gate that closes when the data has arrived.
    arrivals: Vec<(u32, Gate)>,
    /// Closes when all data moved so far is programmed.
    pub safe: Gate,
    pages_taken: u32,
    /// True if the waiting victim has been erased.
    completed: bool,
}

palimpsest_flash::state!(Collector { wear_checks, waiting, arrivals, safe, pages_taken, completed, portions } built {
    slack, gc_start, gc_stop, gc_idle_stop, pages_per_block, blocks_per_plane, whole, gathered, scattered
});

impl Collector {
    pub fn new(io: &Io, settings: &MgaSettings) -> Self {
        let geometry = io.geometry();
        let pages = |count: palimpsest_ftl_api::keys::blocks::BlockCount| {
            count.pages_of(geometry.blocks_per_plane, geometry.pages_per_block)
        };
        Collector {
            slack: io.nand().pages_torn(),
            gc_start: pages(settings.log.gc_start),
            gc_stop: pages(settings.log.gc_stop),
            gc_idle_stop: pages(settings.log.gc_idle_stop),
            portions: Portions::new(geometry),
            pages_per_block: geometry.pages_per_block,
            blocks_per_plane: geometry.blocks_per_plane,
            wear_checks: 0,
            waiting: vec![None; geometry.planes() as usize],
            whole: Vec::new(),
            gathered: Vec::new(),
            scattered: Vec::new(),
            arrivals: Vec::new(),
            safe: Gate::NONE,
            pages_taken: 0,
            completed: false,
        }
    }

    /// Forgets waiting victims.
    pub fn clear(&mut self) {
        self.waiting.fill(None);
    }
}

impl InPortions for Mga {
    fn portions(&mut self) -> &mut Portions {
        &mut self.collector.portions
    }

    fn copied(&self) -> u64 {
        self.counters.gc_moved
    }

    fn closed_blocks(&self, plane: u32) -> usize {
        self.blocks().closed(plane).len()
    }

    fn collect_one(&mut self, io: &mut Io, plane: u32) -> Flash<bool> {
        self.collect(io, plane, false)
    }
}

impl Mga {
    /// A plane where the host can program a fresh page for `lpn` now. Cleans if necessary. If small writes need low
    /// pages, `whole` matters, because cleaning packs whole pages into high ones.
    pub(super) fn plane_with_space(&mut self, io: &mut Io, lpn: u32, whole: bool) -> Flash<u32> {
        let first = self.frontiers().first_plane(io, HOST, lpn);
        for step in 0..self.pages.space.planes() {
            let plane = self.pages.space.frontiers.rotation.then(first, step);
            if self.ensure_space(io, plane)? {
                if !whole && !self.pages.space.has_low(plane) {
                    self.collect_one(io, plane)?;
                }
                self.frontiers().rotation.used(plane);
                return Ok(plane);
            }
        }
        Err(Halt::NoSpace)
    }

    #[inline]
    fn ensure_space(&mut self, io: &mut Io, plane: u32) -> Flash<bool> {
        if self.passes_by(plane) {
            return Ok(false);
        }
        if self.pages.space.frontiers.fixed.is_used() && self.cache_takes(io, plane)? {
            return Ok(true);
        }
        if self.free_pages(plane) <= self.collector.gc_start || self.collector.portions.is_unfinished(plane) {
            self.collect_until(io, plane)?;
        }
        if self.has_space(plane) { Ok(true) } else { self.make_space(io, plane) }
    }

    /// True if a page of `plane` can be taken and cleaning keeps enough pages even if a program fails.
    #[inline]
    pub(super) fn has_space(&self, plane: u32) -> bool {
        self.free_pages(plane) > self.collector.pages_per_block + self.collector.slack
    }

    #[cold]
    fn make_space(&mut self, io: &mut Io, plane: u32) -> Flash<bool> {
        let reserve = self.collector.pages_per_block;
        let mut budget = 2 * self.blocks().closed(plane).len() + 4;
        while self.free_pages(plane) <= reserve + self.collector.slack && budget > 0 && self.collect(io, plane, true)? {
            budget -= 1;
        }
        if self.free_pages(plane) <= reserve {
            self.finish_waiting(io, plane)?;
        }
        if self.free_pages(plane) <= reserve && self.erase_begun(io, plane)? {
            // The free pages may be room for victims.
            return self.make_space(io, plane);
        }
        Ok(self.free_pages(plane) > reserve)
    }

    /// Erases begun blocks of `plane` without valid data, whose programs power cuts spoiled. False if there is none.
    fn erase_begun(&mut self, io: &mut Io, plane: u32) -> Flash<bool> {
        let of_plane = plane * self.collector.blocks_per_plane..(plane + 1) * self.collector.blocks_per_plane;
        let is_empty = |block: &u32| {
            let begun = self.blocks().state(*block) == BlockState::Open;
            begun && self.pages.space.programmed(io.nand(), *block) > 0 && self.pages.valid_in_block(*block) == 0
        };
        let empty: Vec<u32> = of_plane.filter(is_empty).collect();
        for &block in &empty {
            self.pages.close_block(block);
            self.pages.space.drop_block(plane, block);
            self.erase(io, block, Gate::NONE)?;
        }
        Ok(!empty.is_empty())
    }

    /// Collects until `plane` has more fully free pages than the stop threshold, or no victim gains.
    fn collect_until(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        self.collect_while(io, plane, |mga| mga.free_pages(plane) <= mga.collector.gc_stop)
    }

    /// Cleans one block in the plane with the fewest free pages. False if that plane is above the stop threshold, or no
    /// block is worth cleaning.
    pub(super) fn collect_in_background(&mut self, io: &mut Io) -> Flash<bool> {
        let planes = (0..self.pages.space.planes()).filter(|&plane| !self.passes_by(plane));
        let Some(plane) = planes.min_by_key(|&plane| self.free_pages(plane)) else { return Ok(false) };
        let short = self.free_pages(plane) <= self.collector.gc_idle_stop;
        let done = (short && self.collect_one(io, plane)?) || self.fold_in_background(io)?;
        self.evacuate_failed(io)?;
        Ok(done)
    }

    /// Cleans one block of `plane`. False if no block is worth cleaning; with `must`, any gain is enough.
    pub(super) fn collect(&mut self, io: &mut Io, plane: u32, must: bool) -> Flash<bool> {
        // The die may have failed since the plane was chosen.
        if self.passes_by(plane) {
            return Ok(false);
        }
        if let Some(Waiting { block, safe }) = self.collector.waiting[plane as usize]
            && self.pages.valid_in_block(block) == 0
        {
            // The host has overwritten the waiting subpages.
            self.collector.waiting[plane as usize] = None;
            self.erase(io, block, safe)?;
            return Ok(true);
        }
        let Some(victim) = self.choose_victim(io, plane, must) else { return Ok(false) };
        self.counters.collections += 1;
        self.clean(io, victim)?;
        if self.settings.log.wear_leveling == WearLeveling::Static && !self.passes_by(plane) {
            self.level_wear(io, plane)?;
        }
        Ok(true)
    }

    /// The victim of the policy if the subpages fit elsewhere, else the block that needs the least room.
    fn choose_victim(&mut self, io: &Io, plane: u32, must: bool) -> Option<u32> {
        let erases = |block: u32| io.nand().erases(block);
        let candidates = Candidates { blocks: &mut self.pages.space.frontiers.blocks, plane, erases: &erases };
        match self.victim.choose(candidates, &mut self.rng) {
            Some(victim) if self.fits(plane, victim, self.collector.slack) => return Some(victim),
            None if !must => return None,
            _ => {}
        }
        let closed = self.blocks().closed(plane).iter().copied();
        let victim = closed.min_by_key(|&block| (self.pages.valid_in_block(block), self.blocks().closed_at(block)))?;
        let gains = self.pages.valid_in_block(victim) < self.blocks().units_per_block();
        (gains && self.fits(plane, victim, 0)).then_some(victim)
    }

    /// True if cleaning `victim` leaves `slack` fully free pages. A left-over partial page needs one page in any case,
    /// for the next victim to complete.
    pub(super) fn fits(&self, plane: u32, victim: u32, slack: u32) -> bool {
        let (free, valid) = (self.free_pages(plane), self.pages.valid_in_block(victim));
        let kept = self.kept_beside(victim);
        let (held, back) = match self.collector.waiting[plane as usize] {
            Some(Waiting { block, .. }) => (self.pages.valid_in_block(block), self.collector.pages_per_block),
            None => (0, 0),
        };
        let (pages, rest) = ((held + valid) / self.subpages, (held + valid) % self.subpages);
        valid == 0 || (free > slack && pages + u32::from(rest > 0) + slack + kept <= free + back)
    }

    /// As [`palimpsest_ftl_api::Ftl::relocate`].
    pub(super) fn relocate_block(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        let plane = block / self.collector.blocks_per_plane;
        let closed = self.blocks().state(block) == BlockState::Closed
            || self.pages.space.frontiers.fixed.is_closed(plane, block);
        if !closed || self.passes_by(plane) || !self.fits(plane, block, self.collector.slack) {
            return Ok(false);
        }
        self.clean(io, block)?;
        self.evacuate_failed(io)?;
        Ok(true)
    }

    /// Moves the valid subpages of a closed block away, and erases the block unless the block must wait.
    pub(super) fn clean(&mut self, io: &mut Io, victim: u32) -> Flash<()> {
        let plane = victim / self.collector.blocks_per_plane;
        self.pages.space.drop_block(plane, victim);
        self.pages.close_block(victim);
        let waiting = self.collector.waiting[plane as usize].take();
        self.collector.pages_taken = 0;
        self.collector.safe = Gate::NONE;
        let finish = self.pages.space.frontiers.fixed.holds(victim);
        self.move_valid(io, plane, Some(victim), waiting, finish)?;
        let safe = self.collector.safe;
        if let Some(Waiting { block, safe: earlier }) = waiting
            && !self.collector.completed
        {
            self.erase_after(io, block, earlier, safe)?;
        }
        if self.pages.valid_in_block(victim) > 0 {
            self.collector.waiting[plane as usize] = Some(Waiting { block: victim, safe });
            return Ok(());
        }
        self.erase(io, victim, safe)
    }

    /// Moves the rest of the waiting victim of `plane`, even into a partial page, and erases the victim. Does nothing
    /// without room.
    fn finish_waiting(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        let Some(waiting) = self.collector.waiting[plane as usize] else { return Ok(()) };
        let held = self.pages.valid_in_block(waiting.block);
        if held > 0
            && self.free_pages(plane) == 0
            && self.room_for_moved(UNMAPPED, held as usize, plane, false).is_none()
        {
            return Ok(());
        }
        self.collector.waiting[plane as usize] = None;
        self.collector.safe = Gate::NONE;
        self.move_valid(io, plane, None, Some(waiting), true)?;
        self.erase_after(io, waiting.block, waiting.safe, self.collector.safe)
    }

    fn erase_after(&mut self, io: &mut Io, block: u32, earlier: Gate, later: Gate) -> Flash<()> {
        io.link(earlier, later);
        self.erase(io, block, if later.is_none() { earlier } else { later })
    }

    /// Erases a victim after the gate `safe`.
    fn erase(&mut self, io: &mut Io, block: u32, safe: Gate) -> Flash<()> {
        let programmed = self.pages.space.programmed(io.nand(), block);
        match self.frontiers().erase(io, Erase { after: safe, ..Erase::new(block, Cause::Gc) })? {
            Outcome::Done => {
                self.counters.erased += 1;
                self.pages.erased(programmed);
            }
            Outcome::Failed => {
                self.disturbed = true;
                self.counters.retired += 1;
            }
        }
        Ok(())
    }

    /// Moves the valid subpages of `victim` and of a waiting block. Unless it must `finish`, a left-over partial page
    /// of the victim may stay.
    pub(super) fn move_valid(
        &mut self,
        io: &mut Io,
        plane: u32,
        victim: Option<u32>,
        waiting: Option<Waiting>,
        finish: bool,
    ) -> Flash<()> {
        self.collector.whole.clear();
        self.collector.gathered.clear();
        self.collector.scattered.clear();
        self.collector.completed = false;
        self.collector.arrivals.clear();
        self.collector.arrivals.resize(self.collector.pages_per_block as usize, (UNMAPPED, Gate::NONE));
        if let Some(Waiting { block, .. }) = waiting {
            for ppn in self.pages_of(block) {
                self.list_valid(io, ppn);
            }
        }
        let held = self.collector.scattered.len();
        let occupied = victim.map_or(0, |victim| self.list_victim(io, victim, held));
        let mut done = 0;
        if let Some(waiting) = waiting
            && victim.is_some()
        {
            done = self.complete_page(io, plane, waiting)?;
        }
        self.move_whole_pages(io, plane)?;
        let kept = victim.map_or(0, |victim| self.kept_beside(victim));
        if waiting.is_none() && done == 0 && (!finish || kept > 0) && self.exclusive_fits(plane, occupied, kept) {
            return self.move_exclusively(io, plane);
        }
        let n = self.subpages as usize;
        while self.collector.scattered.len() - done >= n {
            self.move_scattered(io, plane, done, n, None, UNMAPPED)?;
            done += n;
        }
        let rest = self.collector.scattered.len() - done;
        if rest == 0 {
            return Ok(());
        }
        let room = self.room_for_moved(UNMAPPED, rest, plane, false);
        let still_waiting = waiting.is_some() && !self.collector.completed;
        let back = (1 + u32::from(still_waiting)) * self.collector.pages_per_block;
        if room.is_some() || finish || back > self.collector.pages_taken + 1 {
            self.move_scattered(io, plane, done, rest, room, UNMAPPED)?;
        }
        Ok(())
    }

    fn pages_of(&self, block: u32) -> std::ops::Range<u32> {
        block * self.collector.pages_per_block..(block + 1) * self.collector.pages_per_block
    }

    /// Adds the valid subpages of `ppn` to the scattered ones.
    fn list_valid(&mut self, io: &Io, ppn: u32) {
        let mut rest = self.pages.valid(ppn);
        while rest != 0 {
            let psn = ppn * self.subpages + rest.trailing_zeros();
            rest &= rest - 1;
            let lsn = io.nand().logical(psn);
            self.map.prefetch(lsn / self.subpages);
            self.collector.scattered.push(Moved { lsn, psn });
        }
    }

    /// Lists the valid subpages of `victim`: whole pages, logical pages that are whole in the victim, and the rest by
    /// logical page. Returns the number of occupied pages.
    fn list_victim(&mut self, io: &Io, victim: u32, held: usize) -> u32 {
        let n = self.subpages;
        let mut occupied = 0;
        for ppn in self.pages_of(victim) {
            let valid = self.pages.valid(ppn);
            occupied += u32::from(valid != 0);
            if valid == self.all && self.map.look_up(io.nand().logical(ppn * n) / n) == Target::Full(ppn) {
                self.collector.whole.push(ppn);
            } else if valid != 0 {
                self.list_valid(io, ppn);
            }
        }
        let Collector { scattered, gathered, .. } = &mut self.collector;
        scattered[held..].sort_unstable();
        let (mut from, mut to) = (held, held);
        while from < scattered.len() {
            let lpn = scattered[from].lsn / n;
            let count = scattered[from..].iter().take_while(|moved| moved.lsn / n == lpn).count();
            if count == n as usize {
                gathered.extend_from_slice(&scattered[from..from + count]);
            } else {
                scattered.copy_within(from..from + count, to);
                to += count;
            }
            from += count;
        }
        scattered.truncate(to);
        occupied
    }

    /// Fills a page with the waiting victim's subpages and the first scattered ones of the new victim, and erases the
    /// former. Returns the number of scattered subpages taken.
    fn complete_page(&mut self, io: &mut Io, plane: u32, waiting: Waiting) -> Flash<usize> {
        let n = self.subpages as usize;
        let Collector { scattered, gathered, whole, .. } = &mut self.collector;
        if scattered.len() < n {
            // Too few subpages, so a whole page is split.
            if gathered.len() >= n {
                scattered.extend(gathered.drain(gathered.len() - n..));
            } else if let Some(ppn) = whole.pop() {
                self.list_valid(io, ppn);
            } else {
                return Ok(0);
            }
        }
        self.move_scattered(io, plane, 0, n, None, UNMAPPED)?;
        // Later programs may go to the erased block, so the erase must not wait for them.
        let safe = self.collector.safe;
        self.collector.safe = io.gate();
        io.link(safe, self.collector.safe);
        self.collector.completed = true;
        self.erase_after(io, waiting.block, waiting.safe, safe)?;
        Ok(n)
    }

    fn move_whole_pages(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        for index in 0..self.collector.whole.len() {
            let ppn = self.collector.whole[index];
            let arrived = io.gate();
            io.read(Read { policy: self.settings.log.read, signal: arrived, ..Read::new(ppn, self.all, Cause::Gc) })?;
            self.image.parts.clear();
            let first = ppn * self.subpages;
            let lsn = io.nand().logical(first);
            for subpage in 0..self.subpages {
                let data = io.load_subpage(first + subpage);
                self.image.add(lsn + subpage, data);
            }
            self.program_moved(io, plane, None, UNMAPPED, arrived)?;
        }
        let n = self.subpages as usize;
        // These follow the order of scattered subpages; any page serves as the source.
        for first in (0..self.collector.gathered.len()).step_by(n) {
            self.image.parts.clear();
            let arrived = io.gate();
            for index in first..first + n {
                let moved = self.collector.gathered[index];
                self.fetch(io, moved, arrived)?;
            }
            self.program_moved(io, plane, None, UNMAPPED, arrived)?;
        }
        Ok(())
    }

    /// True under exclusive allocation if moving the scattered subpages takes no more pages than they occupy now.
    fn exclusive_fits(&self, plane: u32, occupied: u32, kept: u32) -> bool {
        if !self.exclusive() {
            return false;
        }
        let mut pages = self.collector.pages_taken;
        let mut runs =
            self.collector.scattered.chunk_by(|one, other| one.lsn / self.subpages == other.lsn / self.subpages);
        let fresh = runs.by_ref().filter(|run| {
            let lpn = run[0].lsn / self.subpages;
            self.room_for_moved(lpn, run.len(), plane, true).is_none()
        });
        pages += fresh.count() as u32;
        let needed = pages - self.collector.pages_taken;
        let least = needed + self.collector.slack + kept;
        pages <= occupied && pages < self.collector.pages_per_block && least < self.free_pages(plane)
    }

    fn move_exclusively(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        let mut first = 0;
        while first < self.collector.scattered.len() {
            let lpn = self.collector.scattered[first].lsn / self.subpages;
            let same = |moved: &&Moved| moved.lsn / self.subpages == lpn;
            let count = self.collector.scattered[first..].iter().take_while(same).count();
            let page = self.room_for_moved(lpn, count, plane, true);
            self.move_scattered(io, plane, first, count, page, lpn)?;
            first += count;
        }
        Ok(())
    }

    /// Moves `count` scattered subpages from number `first` on into `page`, or a fresh one.
    fn move_scattered(
        &mut self,
        io: &mut Io,
        plane: u32,
        first: usize,
        count: usize,
        page: Option<u32>,
        owner: u32,
    ) -> Flash<()> {
        self.image.parts.clear();
        let arrived = io.gate();
        for index in first..first + count {
            let moved = self.collector.scattered[index];
            self.fetch(io, moved, arrived)?;
        }
        self.program_moved(io, plane, page, owner, arrived)
    }

    /// Adds a subpage to the image; `arrived` waits for the read. Each page is read once.
    #[inline]
    fn fetch(&mut self, io: &mut Io, Moved { lsn, psn }: Moved, arrived: Gate) -> Flash<()> {
        let ppn = psn / self.subpages;
        let page = &mut self.collector.arrivals[(ppn % self.collector.pages_per_block) as usize];
        let (read, earlier) = *page;
        if read != ppn {
            *page = (ppn, arrived);
            let (policy, valid) = (self.settings.log.read, self.pages.valid(ppn));
            io.read(Read { policy, signal: arrived, ..Read::new(ppn, valid, Cause::Gc) })?;
        } else if earlier != arrived {
            io.link(earlier, arrived);
        }
        let data = io.load_subpage(psn);
        self.image.add(lsn, data);
        Ok(())
    }

    fn program_moved(&mut self, io: &mut Io, plane: u32, page: Option<u32>, owner: u32, after: Gate) -> Flash<()> {
        if self.collector.safe.is_none() {
            self.collector.safe = io.gate();
        }
        self.collector.pages_taken += u32::from(page.is_none());
        self.counters.gc_moved += self.image.parts.len() as u64;
        let (stream, signal) = (self.pages.space.moved(), self.collector.safe);
        self.program(io, Job { page, plane, stream, owner, cause: Cause::Gc, from_host: false, after, signal })
    }

    /// Moves the least worn closed block of `plane` if the spread of erases exceeds the threshold. The data there is
    /// cold, so the freed block wears faster afterwards.
    fn level_wear(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        self.collector.wear_checks += 1;
        if !self.collector.wear_checks.is_multiple_of(WEAR_CHECK_EVERY) {
            return Ok(());
        }
        let room = self.free_pages(plane) > 2 * self.collector.pages_per_block;
        let (space, threshold) = (&self.pages.space, self.settings.log.wear_threshold);
        if let Some(least) = space.frontiers.least_worn(io.nand(), plane, threshold).filter(|_| room) {
            self.counters.wear_moves += 1;
            self.clean(io, least)?;
        }
        Ok(())
    }

    /// Blocks that wait for their last subpages, or to be evacuated.
    pub(super) fn blocks_in_between(&self) -> impl Iterator<Item = u32> {
        let waiting = self.collector.waiting.iter().flatten().map(|waiting| waiting.block);
        waiting.chain(self.failed.iter().copied())
    }
}
