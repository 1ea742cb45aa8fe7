//! Collection: when to clean, and which blocks; and wear levelling.
//!
//! Cleaning writes before an erase frees space, so the host never gets the last free block of a plane. Moved units stay
//! in the plane, or in the die with `ftl.moved_to = die`. This file cleans whole blocks; `pace` cleans in steps. With
//! one stream, moved units go to the frontier of the host: the model of the closed forms (Desnoyers 2014). If open
//! pages are not protected, a victim is erased once the last of the units has been programmed elsewhere.

use super::Log;
use super::blocks::BlockState;
use super::open_pages::{HOLE, Slot};
use super::pace::{self, Pace};
use super::portions::{InPortions, Portions};
use super::settings::{LogSettings, WearLeveling};
use super::victim::{self, Candidates, Victim};
use crate::log::map::Map;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::{Flash, Halt, Outcome};
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::keys::blocks::BlockCount;
use palimpsest_ftl_api::plan::{Cause, Erase, Gate, Io};
use std::ops::Range;

/// Collections between two checks of static wear levelling.
const WEAR_CHECK_EVERY: u32 = 8;

/// Policy and state of collection.
pub(super) struct Collector {
    policy: Box<dyn Victim>,
    rng: Rng,
    /// Pages to leave free when cleaning is optional: a failed program spoils one, and a power cut spoils one per die
    /// of a superblock.
    pub slack: u32,
    /// Collection starts at this number of free pages of a plane, and stops above `stop`.
    pub start: u32,
    stop: u32,
    /// While the host is idle, collection stops above this number of free pages.
    idle_stop: u32,
    /// Planes whose collection continues with the next write.
    portions: Portions,
    /// Present if collection counts free blocks, when a stream needs another block: true if the stream opens a block
    /// before cleaning makes up for the block.
    pub opens_before: Option<bool>,
    /// Free blocks of a plane at which collection starts then, and above which it stops.
    limits: (u32, u32),
    leveling: WearLeveling,
    wear_threshold: u32,
    wear_checks: u32,
    /// Blocks with a failed program, to be evacuated.
    pub failed: Vec<u32>,
    /// Victims whose last units wait in open pages, and the gates that close when those are programmed.
    pub emptying: Vec<(u32, Gate)>,
    /// Collection in steps.
    pub pace: Pace,
}

palimpsest_flash::state!(Collector { policy, rng, wear_checks, failed, emptying, pace, portions } built {
    slack, start, stop, idle_stop, opens_before, limits, leveling, wear_threshold
});

impl Collector {
    /// `rest`: pages that may be programmed for moved units that fill none. `streams` streams write to a plane at once.
    /// `spare`: pages of a plane without data on a full drive. Cleaning leaves `slack` pages.
    pub fn new(
        settings: &LogSettings,
        geometry: &Geometry,
        rest: u32,
        streams: u32,
        spare: u32,
        slack: u32,
        seed: u64,
    ) -> Self {
        let policy = victim::new(&settings.victim);
        let block = geometry.pages_per_block;
        // A victim without an invalid unit needs a block, and the pages that cleaning keeps free.
        let least = if policy.may_choose_full() { block + rest + slack } else { 0 };
        let pages_of = |blocks: BlockCount| blocks.pages_of(geometry.blocks_per_plane, block).max(least);
        let (start, stop) = (pages_of(settings.gc_start), pages_of(settings.gc_stop));
        let idle_stop = pages_of(settings.gc_idle_stop);
        let pace = if settings.gc_pace == pace::BLOCK {
            Pace::default()
        } else {
            let levels = settings.wear_leveling == WearLeveling::Static;
            let streams = streams + u32::from(levels);
            Pace::new(geometry.planes(), block, streams, spare, (start, idle_stop), settings.gc_burst)
                .by(&settings.gc_pace)
        };
        Collector {
            policy,
            rng: Rng::new(seed, 0x71c7),
            slack,
            start: if pace.is_used() { pace.start } else { start },
            stop,
            idle_stop,
            portions: Portions::new(geometry),
            opens_before: None,
            limits: (settings.gc_start.of(geometry.blocks_per_plane), settings.gc_stop.of(geometry.blocks_per_plane)),
            leveling: settings.wear_leveling,
            wear_threshold: settings.wear_threshold,
            wear_checks: 0,
            failed: Vec::new(),
            emptying: Vec::new(),
            pace,
        }
    }
}

impl<M: Map> InPortions for Log<M> {
    fn portions(&mut self) -> &mut Portions {
        &mut self.collector.portions
    }

    fn copied(&self) -> u64 {
        self.counters.moved_units * u64::from(self.shape.unit_subpages)
    }

    fn closed_blocks(&self, plane: u32) -> usize {
        self.frontiers.blocks.closed(plane).len()
    }

    fn collect_one(&mut self, io: &mut Io, plane: u32) -> Flash<bool> {
        let Some(victim) = self.choose(io, plane) else { return Ok(false) };
        self.clean_victim(io, plane, victim)?;
        Ok(true)
    }
}

impl<M: Map> Log<M> {
    /// Ensures that `stream` can write a page in `plane`. False if even cleaning finds no space.
    #[inline(always)]
    pub(super) fn ensure_space(&mut self, io: &mut Io, plane: u32, stream: u32) -> Flash<bool> {
        if self.frontiers.fixed.is_used()
            && stream + 1 < self.frontiers.data_streams()
            && self.cache_takes(io, plane, stream)?
        {
            return Ok(true);
        }
        if let Some(opens_before) = self.collector.opens_before {
            if !self.frontiers.is_open(plane, stream) && !self.frontiers.rotation.passes_by(plane) {
                self.clean_by_blocks(io, plane, stream, opens_before)?;
            }
        } else if self.frontiers.free_pages[plane as usize] <= self.collector.start
            || self.collector.portions.is_unfinished(plane)
        {
            if self.frontiers.rotation.passes_by(plane) {
                return Ok(false);
            }
            if self.collector.pace.is_used() { self.pace(io, plane)? } else { self.collect_until(io, plane)? }
        }
        if self.may_take(plane, stream) { Ok(true) } else { self.make_space(io, plane, stream) }
    }

    /// Collects if few blocks are free; if it `opens_before`, opens a block of `plane` for `stream` first, unless
    /// cleaning needs the block.
    #[cold]
    fn clean_by_blocks(&mut self, io: &mut Io, plane: u32, stream: u32, opens_before: bool) -> Flash<()> {
        let (start, stop) = self.collector.limits;
        let may_clean =
            !opens_before || (self.frontiers.has_space(plane, stream) && self.frontiers.open_block(io, plane, stream));
        let due = self.frontiers.blocks.free_count(plane) <= start || self.collector.portions.is_unfinished(plane);
        if may_clean && due {
            self.collect_while(io, plane, |log| log.frontiers.blocks.free_count(plane) <= stop)?;
        }
        Ok(())
    }

    #[cold]
    fn make_space(&mut self, io: &mut Io, plane: u32, stream: u32) -> Flash<bool> {
        self.finish(io, plane)?;
        if self.frontiers.has_space(plane, stream) {
            return Ok(true);
        }
        if self.clean_for(io, plane, stream)? {
            return Ok(true);
        }
        let (mut waits, mut programmed) = (false, false);
        for moved in self.open.moved_pages(plane) {
            if !self.collector.emptying.is_empty() && self.open.filled(moved) > 0 {
                match self.program_open(io, plane, moved) {
                    // The page stays in memory and the victim unerased: another class, or another plane, may have
                    // space.
                    Err(Halt::NoSpace) => waits = true,
                    done => {
                        done?;
                        programmed = true;
                    }
                }
            }
        }
        if waits && !programmed {
            return Ok(false);
        }
        if self.frontiers.has_block_of_its_own(plane, stream) || self.frontiers.has_space(plane, stream) {
            return Ok(true);
        }
        // The erased victims are room for victims of another class.
        self.clean_for(io, plane, stream)
    }

    /// Cleans blocks of `plane` until `stream` has space. False if that fails.
    fn clean_for(&mut self, io: &mut Io, plane: u32, stream: u32) -> Flash<bool> {
        let closed = self.frontiers.blocks.closed(plane).len();
        for attempt in 0..2 * closed + 2 {
            // The choice of the policy may gain little; in the end only space counts.
            let victim = if attempt <= closed { self.choose(io, plane) } else { self.fewest_valid(plane) };
            match victim {
                Some(victim) => self.clean_victim(io, plane, victim)?,
                // A power cut left the free pages of the plane to the stream, which would take the last room to clean.
                None if self.frontiers.cleaning_may_borrow(plane, stream) && self.collector.emptying.is_empty() => {
                    if !self.clean_into_any(io, plane..plane + 1)? {
                        break;
                    }
                }
                None => break,
            }
            if self.frontiers.has_space(plane, stream) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Cleans the block of `planes` that gains the most and fits into the free pages of these, of all streams that lend
    /// pages. False if no block fits. Power cuts may have spoiled the free pages of one plane while another has some
    /// left.
    #[cold]
    pub(super) fn clean_into_any(&mut self, io: &mut Io, planes: Range<u32>) -> Flash<bool> {
        let (per_page, per_block) = (self.shape.units_per_page, self.shape.pages_per_block);
        let gains = |log: &Self, plane: u32, block: u32| {
            let stream = log.frontiers.moved_stream(block);
            let free_of = |at| log.frontiers.pages_for(at, stream) + log.frontiers.blocks.free_count(at) * per_block;
            let free = planes.clone().map(|at| free_of(at) - log.frontiers.lost_in_free(at)).sum::<u32>();
            let waiting = log.open.filled(log.open.moved_page(plane, stream));
            let pages = (waiting + log.frontiers.blocks.valid_count(block)).div_ceil(per_page);
            pages < log.frontiers.single.pages_of(block) && pages <= free && log.map.own_in(block) == 0
        };
        let usable = planes.clone().filter(|&plane| !self.frontiers.rotation.passes_by(plane));
        let closed = usable.flat_map(|plane| {
            let blocks = self.frontiers.blocks.closed(plane).iter();
            blocks.map(move |&block| (plane, block))
        });
        let victim = closed
            .filter(|&(plane, block)| gains(self, plane, block))
            .min_by_key(|&(_, block)| (self.frontiers.blocks.valid_count(block), block));
        let Some((plane, victim)) = victim else { return Ok(false) };
        self.clean_victim(io, plane, victim)?;
        Ok(true)
    }

    /// Collects until `plane` has more free pages than the stop threshold, or no victim gains.
    fn collect_until(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        self.collect_while(io, plane, |log| log.frontiers.free_pages[plane as usize] <= log.collector.stop)
    }

    /// Cleans one block of the plane with the fewest free pages, if at or below the threshold of idle time. Else folds
    /// a block of the fast cache, or moves a page of a failed die. With collection in steps, does one step in each such
    /// plane. False if nothing was done.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    pub fn collect_in_background(&mut self, io: &mut Io) -> Flash<bool> {
        if self.collector.pace.is_used() {
            let done = self.step_in_background(io)? || (io.nand().is_rebuilding() && self.rebuild(io)?);
            self.evacuate_failed(io)?;
            return Ok(done);
        }
        let free_pages = &self.frontiers.free_pages;
        let planes = (0..self.frontiers.planes()).filter(|&plane| !self.frontiers.rotation.passes_by(plane));
        let shortest = planes.min_by_key(|&plane| free_pages[plane as usize]);
        let Some(plane) = shortest else { return Ok(false) };
        let done = free_pages[plane as usize] <= self.collector.idle_stop && self.collect_one(io, plane)?;
        let done = done
            || self.fold_oldest(io)?
            || self.fold_in_background(io)?
            || (io.nand().is_rebuilding() && self.rebuild(io)?);
        self.evacuate_failed(io)?;
        Ok(done)
    }

    /// Folds the first closed block of the fast cache in the plane with the most. False if none fits.
    fn fold_oldest(&mut self, io: &mut Io) -> Flash<bool> {
        let plane = self.frontiers.single.fullest();
        let Some(oldest) = self.oldest_single(plane) else { return Ok(false) };
        self.clean_victim(io, plane, oldest)?;
        Ok(true)
    }

    /// The first closed block of the fast cache in `plane`, if the valid units fit elsewhere.
    pub(super) fn oldest_single(&self, plane: u32) -> Option<u32> {
        self.frontiers.oldest_single(plane).filter(|&oldest| self.fits(plane, oldest, self.collector.slack))
    }

    /// The victim of the policy if the valid units fit elsewhere, else the block that needs the least room.
    pub(super) fn choose(&mut self, io: &Io, plane: u32) -> Option<u32> {
        let Collector { policy, rng, .. } = &mut self.collector;
        let erases = |block: u32| io.nand().erases(block);
        let candidates = Candidates { blocks: &mut self.frontiers.blocks, plane, erases: &erases };
        let best = policy.choose(candidates, rng)?;
        let victim = self.victim_by_share(plane, best);
        if self.fits(plane, victim, self.collector.slack) { Some(victim) } else { self.fewest_valid(plane) }
    }

    /// The block with the fewest valid units, if cleaning gains space and the units fit elsewhere.
    fn fewest_valid(&mut self, plane: u32) -> Option<u32> {
        let fewest = self.frontiers.blocks.fewest_valid(plane)?;
        let blocks = &self.frontiers.blocks;
        let may_clean =
            |&block: &u32| blocks.valid_count(block) < self.shape.units_per_block && self.fits(plane, block, 0);
        if may_clean(&fewest) {
            return Some(fewest);
        }
        // Units of the map, and of each class if moved data keeps a class, have separate frontiers: other victims may
        // fit although this one does not.
        let differ = M::IN_LOG || self.frontiers.keeps_class;
        let others = blocks.closed(plane).iter().copied().filter(|block| differ && may_clean(block));
        others.min_by_key(|&block| (blocks.valid_count(block), blocks.closed_at(block)))
    }

    /// True if the units of `victim` and `slack` pages fit into the free pages of `plane`, and those that the next
    /// program frees.
    pub(super) fn fits(&self, plane: u32, victim: u32, slack: u32) -> bool {
        self.fits_beside(plane, victim, slack, None)
    }

    /// As [`Self::fits`], after the stream `taker` has taken a page of a plane. If moved data goes to the planes of a
    /// die in turn, the remaining units of their victims must fit, too.
    pub(super) fn fits_beside(&self, plane: u32, victim: u32, slack: u32, taker: Option<(u32, u32)>) -> bool {
        let (frontiers, per_page, per_block) = (&self.frontiers, self.shape.units_per_page, self.shape.pages_per_block);
        if frontiers.rotation.passes_by(plane) {
            return false;
        }
        let opens = |plane: u32| taker.is_some_and(|(home, stream)| home == plane && !frontiers.is_open(plane, stream));
        // Pages left to a stream. A block that the taker opens counts for the taker alone, less the page taken.
        let left_of = |plane: u32, stream: u32| {
            let (own, block) = (taker == Some((plane, stream)), u32::from(opens(plane)) * per_block);
            frontiers.pages_left(plane, stream) + if own { block } else { 0 } - u32::from(own)
        };
        let free_of = |plane: u32| frontiers.blocks.free_count(plane).saturating_sub(u32::from(opens(plane)));
        let mut valid = frontiers.blocks.valid_count(victim);
        let mut free_blocks = free_of(plane);
        let own = self.map.own_in(victim);
        if own > 0 {
            let left = left_of(plane, frontiers.own_stream());
            let takes = (own + slack).saturating_sub(left).div_ceil(per_block);
            if takes > free_blocks || own == valid {
                return takes <= free_blocks;
            }
            (valid, free_blocks) = (valid - own, free_blocks - takes);
        }
        let stream = frontiers.moved_stream(victim);
        // Data may use the last pages of the map's block, too.
        let lent = if M::IN_LOG && free_blocks == 0 { left_of(plane, frontiers.own_stream()) } else { 0 };
        let waiting = self.open.filled(self.open.moved_page(plane, stream)) - self.waiting_of(plane, victim);
        // A partial page waits for the next victim, but may need a page if power cuts lose open pages.
        let rest = if slack > 0 && !self.open.protected { per_page - 1 } else { 0 };
        let mut needed = (waiting + valid + rest) / per_page + slack;
        let mut free =
            (left_of(plane, stream) + lent + free_blocks * per_block).saturating_sub(frontiers.lost_in_free(plane));
        for other in frontiers.planes_beside(plane).filter(|&other| other != plane) {
            let victim = self.collector.pace.victim(other);
            needed += victim.map_or(0, |victim| frontiers.blocks.valid_count(victim).div_ceil(per_page) + slack);
            free += (left_of(other, stream) + free_of(other) * per_block).saturating_sub(frontiers.lost_in_free(other));
        }
        // Blocks of the fixed share of the fast cache never return to the log.
        let beside = |block: u32| {
            let of_plane = block / self.shape.blocks_per_plane == plane && !frontiers.fixed.holds(block);
            of_plane && frontiers.moved_stream(block) == stream
        };
        let emptying = self.collector.emptying.iter().filter(|(block, _)| beside(*block)).count() as u32;
        needed <= free || (free > 0 && needed <= free + emptying * per_block)
    }

    /// Units of `victim` that wait in an open page of moved data, and stay valid in `victim` until the page is
    /// programmed.
    fn waiting_of(&self, plane: u32, victim: u32) -> u32 {
        if self.open.protected || self.collector.pace.victim(plane) != Some(victim) {
            return 0;
        }
        let page = self.open.moved_page(plane, self.frontiers.moved_stream(victim));
        let of_victim = |slot: &&Slot| slot.unit != HOLE && self.shape.per_block.split(slot.previous).0 == victim;
        self.open.page(page).slots.iter().filter(of_victim).count() as u32
    }

    /// Moves the valid units of `block`, if the block is closed and the units fit: see
    /// [`palimpsest_ftl_api::Ftl::relocate`].
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    pub fn relocate(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        let plane = io.geometry().plane_of_block(block);
        if self.frontiers.fixed.holds(block) {
            return self.fold_this(io, plane, block);
        }
        let closed = self.frontiers.blocks.state(block) == BlockState::Closed;
        if !closed || !self.fits(plane, block, self.collector.slack) {
            return Ok(false);
        }
        self.clean(io, block)?;
        self.evacuate_failed(io)?;
        Ok(true)
    }

    fn clean_victim(&mut self, io: &mut Io, plane: u32, victim: u32) -> Flash<()> {
        self.counters.collections += 1;
        self.clean(io, victim)?;
        self.level_wear_if_due(io, plane)
    }

    /// Levels wear, if static, after a victim of `plane` was cleaned.
    pub(super) fn level_wear_if_due(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        if self.collector.leveling == WearLeveling::Static { self.level_wear(io, plane) } else { Ok(()) }
    }

    /// Moves the valid units of a closed block away and erases the block, at once or after the last copy is programmed.
    pub(super) fn clean(&mut self, io: &mut Io, victim: u32) -> Flash<()> {
        self.frontiers.blocks.take_victim(victim);
        self.note_reallocated(victim);
        let moved = self.move_valid(io, victim)?;
        if self.frontiers.blocks.valid_count(victim) > 0 {
            self.collector.emptying.push((victim, moved));
            return Ok(());
        }
        self.erase(io, victim, moved)
    }

    /// Erases a victim after the gate `moved`, or frees the victim for another pass.
    pub(super) fn erase(&mut self, io: &mut Io, victim: u32, moved: Gate) -> Flash<()> {
        let moved = self.behind_rebuild(io, victim, moved);
        match self.free_unerased(io, victim, moved)? {
            Some((after, signal)) => self.erase_now(io, victim, after, signal),
            None => Ok(()),
        }
    }

    /// Erases a victim after the gate `after`; `signal` waits for the erase.
    pub(super) fn erase_now(&mut self, io: &mut Io, victim: u32, after: Gate, signal: Gate) -> Flash<()> {
        match self.frontiers.erase(io, Erase { after, signal, ..Erase::new(victim, Cause::Gc) })? {
            Outcome::Done => self.counters.erased += 1,
            Outcome::Failed => self.counters.retired += 1,
        }
        Ok(())
    }

    /// After the program of open page `page`: erases the victims whose last units were there. A victim that trims
    /// emptied waits for the page, too, because the gate does.
    #[inline]
    pub(super) fn erase_emptied(&mut self, io: &mut Io, page: u32) -> Flash<()> {
        let mut index = 0;
        while let Some(&(victim, moved)) = self.collector.emptying.get(index) {
            let plane = victim / self.shape.blocks_per_plane;
            let waited = self.open.moved_page(plane, self.frontiers.moved_stream(victim)) == page;
            if waited && self.frontiers.blocks.valid_count(victim) == 0 {
                self.collector.emptying.remove(index);
                self.erase(io, victim, moved)?;
            } else {
                index += 1;
            }
        }
        Ok(())
    }

    /// Drops the block of `ppn` after a failed program; the units are moved later.
    #[cold]
    pub(super) fn drop_frontier(&mut self, io: &Io, ppn: u32) {
        let block = ppn / self.shape.pages_per_block;
        if self.lose_die_of(io, block) {
            return;
        }
        self.frontiers.drop_block(io.geometry().plane_of_block(block), block);
        self.counters.retired += 1;
        self.collector.failed.push(block);
    }

    /// Moves valid units out of failed blocks, and retires the blocks.
    #[inline]
    pub(super) fn evacuate_failed(&mut self, io: &mut Io) -> Flash<()> {
        if self.collector.failed.is_empty() { Ok(()) } else { self.evacuate(io) }
    }

    #[cold]
    #[inline(never)]
    fn evacuate(&mut self, io: &mut Io) -> Flash<()> {
        while let Some(block) = self.collector.failed.pop() {
            self.move_valid(io, block)?;
            if self.frontiers.blocks.valid_count(block) > 0 {
                let plane = io.geometry().plane_of_block(block);
                self.program_open(io, plane, self.open.moved_page(plane, self.frontiers.moved_stream(block)))?;
            }
            self.frontiers.retire(block / self.shape.blocks_per_plane, block);
        }
        Ok(())
    }

    /// Moves the least worn closed block of `plane` if the spread of erases exceeds the threshold. The data there is
    /// cold, so the freed block wears faster afterwards.
    fn level_wear(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        self.collector.wear_checks += 1;
        let due = self.collector.wear_checks.is_multiple_of(WEAR_CHECK_EVERY);
        let idle = self.collector.pace.victim(plane).is_none();
        if !due || !idle || self.frontiers.blocks.free_count(plane) == 0 {
            return Ok(());
        }
        let least = self.frontiers.least_worn(io.nand(), plane, self.collector.wear_threshold);
        if let Some(least) = least.filter(|&least| self.fits(plane, least, self.collector.slack)) {
            self.counters.wear_moves += 1;
            if self.collector.pace.is_used() {
                self.level_in_steps(plane, least);
            } else {
                self.clean(io, least)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
