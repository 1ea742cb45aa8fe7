//! Collection in steps (`ftl.gc_pace = paced`): the moves of a victim spread over the host writes that the freed space
//! will serve.
//!
//! A victim of b pages, v of them valid, is chosen when the plane has [`Pace::start`] free pages. Each host write to
//! the plane moves r / h pages, with r moves left and h pages that the host may still write, b - v at first. So the
//! victim is empty in time, and the plane has between start - b and start free pages at any time. If a victim gains
//! little, the moves spread over a sixteenth of a block, and free space shrinks by as much. In the background each step
//! moves a page in each plane.
//!
//! If moved data goes to the planes of a die in turn (`frontiers`), each plane paces the victim by host writes to that
//! plane. Free space of a plane shrinks by the moves from all planes: by as much on average. Steps are the last class
//! of the scheduler (`Io::set_step`) if moved data has separate blocks; else programs of the host would wait behind
//! them.
//!
//! Static wear levelling makes a block a victim like others. Such a victim gains nothing: the moves spread over a
//! quarter of a block, and the next victims compensate, each over at least half of the gain.
//!
//! With `ftl.gc_burst` the moves of so many host pages a plane are made at once, in all planes, and their programs go
//! before the host's. So the host waits once the write buffer is full: firmware that collects in units of many pages.
//!
//! If space is short all the same (after a failed block, for example), the rest of the victim is moved at once.
//!
//! A program may add policies to [`OUTSIDE`], such as those in Python, which spread the moves of a victim over fewer
//! host pages.

use super::Log;
use super::outside::{Added, notation};
use crate::log::map::Map;
use palimpsest_flash::nand::Flash;
use palimpsest_flash::state::State;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::keys::ValueType;
use palimpsest_ftl_api::plan::{Gate, Io};

/// Why layers with a collection of their own do not read `ftl.gc_pace`.
pub(crate) const WHOLE_BLOCKS: &str = "collection moves whole blocks at once";
/// Why block maps do not read `ftl.gc_pace`.
pub(crate) const MERGES: &str = "this layer merges whole blocks at once instead of collecting";

/// The kind of `ftl.gc_pace`.
pub(super) const KIND: ValueType = ValueType::Notation(notation!(OUTSIDE, WORDS));

/// Collection of whole blocks at once.
pub(super) const BLOCK: &str = "block";
const WORDS: &[&str] = &[BLOCK, "paced"];

/// A victim whose moves are to be spread.
pub struct Chosen {
    /// The plane.
    pub plane: u32,
    /// Time of the drive; 0 in counted runs.
    pub now: Nanos,
    /// Pages that the valid units of the victim fill.
    pub moves: u32,
    /// Pages of a block.
    pub pages: u32,
    /// Free pages of the plane.
    pub free: u32,
    /// Operations that wait or run at the die of the plane.
    pub load: u32,
    /// The host pages over which the built-in pace spreads the moves.
    pub most: u32,
}

/// A pace outside of this file.
pub trait Spread: Send + State {
    /// The host pages, at most [`Chosen::most`], over which the moves spread; 0: all at once.
    fn spread(&mut self, chosen: &Chosen) -> u32;
}

palimpsest_flash::state_of_box!(dyn Spread);

/// Paces outside of this file.
pub static OUTSIDE: Added<dyn Spread> = Added::new("ftl.gc_pace");

/// The moves of a victim spread over at least this share of a block, if that many pages are free.
const LEAST: i64 = 16;
/// The same for a block moved to level wear.
const LEAST_OF_LEVELLING: i64 = 4;

/// A victim that is being emptied.
#[derive(Clone, Copy, Default)]
struct Progress {
    victim: u32,
    /// Units before this one have moved.
    next: u32,
    /// Closes when all copies so far are safe.
    safe: Gate,
    /// Free pages left to the plane when the victim is empty and not yet erased.
    kept: i64,
}

palimpsest_flash::state!(Progress { victim, next, safe, kept });

/// Progress of collection in steps; by default none.
#[derive(Default)]
pub(super) struct Pace {
    /// One entry per plane; none if whole blocks are cleaned.
    planes: Vec<Option<Progress>>,
    /// Free pages of a plane at which a victim is chosen.
    pub start: u32,
    /// Free pages of a plane up to which the background collects.
    stop: u32,
    /// Host pages of a plane between bursts; 0: no bursts.
    burst: u32,
    /// Host pages of all planes since the last burst.
    since: u32,
    /// A pace outside of this file.
    outside: Option<Box<dyn Spread>>,
}

palimpsest_flash::state!(Pace { planes, since } parts { outside } built { start, stop, burst });

impl Pace {
    /// Collection of `planes` at `start` free pages of a plane, in the background up to `stop`, in bursts after `burst`
    /// host pages if not 0. `streams` write to blocks of `block` pages at once, and `spare` pages of a plane hold no
    /// data on a full drive. Static wear levelling counts as a stream.
    ///
    /// Beside the block that the victim returns, each stream but the last may hold one that others cannot use. With one
    /// stream, one block must remain for units of a failed block. The move of a full block takes one more. Between
    /// bursts the host takes pages without a move. On a drive with little spare space, these take at most half of the
    /// remaining spare pages.
    pub fn new(planes: u32, block: u32, streams: u32, spare: u32, (start, stop): (u32, u32), burst: u32) -> Self {
        let beside = (streams - 1).max(1) * block + burst;
        let start = start + beside.min(spare.saturating_sub(start) / 2);
        Pace { planes: vec![None; planes as usize], start, stop: start.max(stop), burst, since: 0, outside: None }
    }

    /// The same pace, with moves that the pace called `name` spreads, if outside of this file.
    pub fn by(self, name: &str) -> Self {
        Pace { outside: OUTSIDE.build(name), ..self }
    }

    /// True if collection is in steps.
    #[inline]
    pub fn is_used(&self) -> bool {
        !self.planes.is_empty()
    }

    /// The victim of `plane`.
    #[inline]
    pub fn victim(&self, plane: u32) -> Option<u32> {
        (*self.planes.get(plane as usize)?).map(|progress| progress.victim)
    }

    /// After a power cut: forgets all victims.
    pub fn forget(&mut self) {
        self.planes.fill(None);
    }
}

impl<M: Map> Log<M> {
    /// Performs the moves that go with a host page written to `plane`: in bursts none until a burst is due in all
    /// planes, or `plane` has no page to spare.
    #[cold]
    pub(super) fn pace(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        let Pace { burst, since, .. } = self.collector.pace;
        if burst == 0 {
            return self.pace_by(io, plane, 1);
        }
        self.collector.pace.since = since + 1;
        if self.collector.pace.since < burst.saturating_mul(self.frontiers.planes()) {
            let is_short = self.collector.pace.victim(plane).is_some() && self.host_pages(plane) <= 0;
            return if is_short { self.pace_by(io, plane, 1) } else { Ok(()) };
        }
        self.collector.pace.since = 0;
        for plane in 0..self.frontiers.planes() {
            let due = self.frontiers.free_pages[plane as usize] <= self.collector.start;
            if due && !self.frontiers.rotation.passes_by(plane) {
                self.pace_by(io, plane, burst)?;
            }
        }
        Ok(())
    }

    /// Performs the moves that go with `written` host pages in `plane`.
    fn pace_by(&mut self, io: &mut Io, plane: u32, written: u32) -> Flash<()> {
        for _ in 0..2 * self.frontiers.blocks.closed(plane).len() + 2 {
            if !self.begin(io, plane)? {
                return Ok(());
            }
            let (rest, pages) = (self.rest(plane), self.host_pages(plane));
            let shares = u32::try_from(pages).unwrap_or(0).div_ceil(written);
            let most = if shares > 0 { rest.div_ceil(shares) } else { u32::MAX };
            self.advance(io, plane, most, pages > 0 || self.collector.pace.burst > 0)?;
            if pages > 0 && !self.is_emptying(plane) {
                // The next victim, if due; the host has no claim to the pages for the moves.
                return self.begin(io, plane).map(drop);
            }
        }
        Ok(())
    }

    /// True if `stream` may take a page of `plane` and leave enough for the moves of victims.
    #[inline]
    pub(super) fn may_take(&self, plane: u32, stream: u32) -> bool {
        if self.frontiers.has_space(plane, stream) {
            return self.frontiers.moves_stay() || self.leaves_room(plane, stream);
        }
        let Some(victim) = self.collector.pace.victim(plane) else { return false };
        let opens = !self.frontiers.is_open(plane, stream);
        self.frontiers.blocks.free_count(plane) >= u32::from(opens)
            && self.fits_beside(plane, victim, self.collector.slack, Some((plane, stream)))
    }

    /// True if units moved within the die of `plane` still fit after `stream` has taken a page of `plane`.
    #[cold]
    fn leaves_room(&self, plane: u32, stream: u32) -> bool {
        let mut victims =
            self.frontiers.planes_beside(plane).filter_map(|at| Some((at, self.collector.pace.victim(at)?)));
        victims
            .next()
            .is_none_or(|(at, victim)| self.fits_beside(at, victim, self.collector.slack, Some((plane, stream))))
    }

    /// Moves the rest of the victim of `plane`, and of victims whose units go to the same planes.
    pub(super) fn finish(&mut self, io: &mut Io, plane: u32) -> Flash<()> {
        for plane in self.frontiers.planes_beside(plane) {
            if self.collector.pace.victim(plane).is_some() {
                self.advance(io, plane, u32::MAX, false)?;
            }
        }
        Ok(())
    }

    /// Does one step in each plane with a victim or few free pages. False if none.
    pub(super) fn step_in_background(&mut self, io: &mut Io) -> Flash<bool> {
        let mut done = false;
        for plane in 0..self.frontiers.planes() {
            if self.frontiers.rotation.passes_by(plane) {
                continue;
            }
            let short = self.frontiers.free_pages[plane as usize] <= self.collector.pace.stop;
            if self.collector.pace.victim(plane).is_none() {
                let victim = match if short { self.choose(io, plane) } else { None } {
                    None => self.oldest_single(plane),
                    victim => victim,
                };
                let Some(victim) = victim else { continue };
                self.counters.collections += 1;
                self.take(plane, victim, LEAST);
            }
            self.advance(io, plane, self.shape.units_per_page, true)?;
            done = true;
        }
        done |= self.fold_in_background(io)?;
        Ok(done)
    }

    /// True if `plane` has a victim; chooses one if due.
    fn begin(&mut self, io: &mut Io, plane: u32) -> Flash<bool> {
        if self.collector.pace.victim(plane).is_some() {
            return Ok(true);
        }
        if self.frontiers.free_pages[plane as usize] > self.collector.pace.start {
            return Ok(false);
        }
        let Some(victim) = self.choose(io, plane) else { return Ok(false) };
        self.counters.collections += 1;
        self.take(plane, victim, LEAST);
        self.spread(io, plane, victim);
        Ok(true)
    }

    /// Lets a pace outside of this file spread the moves of `victim` over fewer host pages.
    fn spread(&mut self, io: &Io, plane: u32, victim: u32) {
        let (most, moves) = (self.host_pages(plane).max(0), self.moves_of(victim));
        let free = self.frontiers.free_pages[plane as usize];
        let (load, now) = (io.load(plane % io.geometry().dies()), io.present.now);
        let (pages, moves, most) = (self.shape.pages_per_block, moves as u32, most as u32);
        let Pace { outside: Some(outside), planes, .. } = &mut self.collector.pace else { return };
        let spread = outside.spread(&Chosen { plane, now, moves, pages, free, load, most }).min(most);
        planes[plane as usize].iter_mut().for_each(|progress| progress.kept += i64::from(most - spread));
    }

    /// Makes the closed block `victim` the victim of `plane`, to level wear.
    pub(super) fn level_in_steps(&mut self, plane: u32, victim: u32) {
        self.take(plane, victim, LEAST_OF_LEVELLING);
    }

    /// Makes the closed block `victim` the victim of `plane`; the moves spread over at least this share of a block.
    fn take(&mut self, plane: u32, victim: u32, share: i64) {
        self.frontiers.blocks.take_victim(victim);
        self.note_reallocated(victim);
        let block = i64::from(self.shape.pages_per_block);
        let moves = self.moves_of(victim);
        let left = i64::from(self.frontiers.free_pages[plane as usize]) - moves;
        let least = (block / share).max((block - moves) / 2).min(left / 4);
        let pages = (left - (i64::from(self.collector.pace.start) - block)).max(least);
        self.collector.pace.planes[plane as usize] =
            Some(Progress { victim, next: 0, safe: Gate::NONE, kept: left - pages });
    }

    /// Pages that the valid units of `victim` fill.
    fn moves_of(&self, victim: u32) -> i64 {
        i64::from(self.frontiers.blocks.valid_count(victim).div_ceil(self.shape.units_per_page))
    }

    /// Units left in the victim of `plane`.
    fn rest(&self, plane: u32) -> u32 {
        self.collector.pace.victim(plane).map_or(0, |victim| self.frontiers.blocks.valid_count(victim))
    }

    /// Pages that the host may write to `plane` until the victim must be empty.
    fn host_pages(&self, plane: u32) -> i64 {
        let Some(progress) = self.collector.pace.planes[plane as usize] else { return 0 };
        i64::from(self.frontiers.free_pages[plane as usize]) - self.moves_of(progress.victim) - progress.kept
    }

    /// True if units of a victim of `plane` wait in an open page.
    fn is_emptying(&self, plane: u32) -> bool {
        let mut emptying = self.collector.emptying.iter();
        emptying
            .any(|&(victim, _)| victim / self.shape.blocks_per_plane == plane && !self.frontiers.fixed.holds(victim))
    }

    /// Moves `most` units of the victim of `plane`, in whole pages, and erases the victim once empty. `step`: the host
    /// does not wait for these moves.
    fn advance(&mut self, io: &mut Io, plane: u32, most: u32, step: bool) -> Flash<()> {
        io.plan.step = step && self.frontiers.cleaning_stream().is_some();
        let done = self.move_some(io, plane, most);
        io.plan.step = false;
        done?;
        if self.collector.pace.victim(plane).is_none() {
            self.level_wear_if_due(io, plane)?;
        }
        Ok(())
    }

    fn move_some(&mut self, io: &mut Io, plane: u32, most: u32) -> Flash<()> {
        let Some(mut progress) = self.collector.pace.planes[plane as usize] else { return Ok(()) };
        let moves = most > 0 && self.frontiers.blocks.valid_count(progress.victim) > 0;
        let safe = if moves && !self.open.protected { io.gate() } else { Gate::NONE };
        let moved = self.move_units(io, progress.victim, progress.next, most, safe);
        let safe = io.used(safe);
        if !safe.is_none() {
            io.link(progress.safe, safe);
            progress.safe = safe;
        }
        progress.next = *moved.as_ref().unwrap_or(&progress.next);
        self.collector.pace.planes[plane as usize] = Some(progress);
        moved?;
        let empty = self.frontiers.blocks.valid_count(progress.victim) == 0;
        if !empty && progress.next < self.shape.units_per_block {
            return Ok(());
        }
        self.collector.pace.planes[plane as usize] = None;
        // Copies of an empty victim may still wait in an open page, because trims empty victims, too.
        let page = self.open.moved_page(plane, self.frontiers.moved_stream(progress.victim));
        if empty && (self.open.protected || self.open.filled(page) == 0) {
            return self.erase(io, progress.victim, progress.safe);
        }
        self.collector.emptying.push((progress.victim, progress.safe));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
