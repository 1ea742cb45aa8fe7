//! Reclaim unit handles (NVMe Flexible Data Placement, NVM Express Base Specification 2.1, 3.2.4): the log's counts
//! for each handle. A block of the log is a reclaim unit, and a stream is a handle.
//!
//! A unit belongs to the handle whose data opened it. The unit that collects moved data of initially isolated handles
//! belongs to the controller. With several reclaim groups each group of dies has streams of its own, one a handle. Host
//! data goes to another group only if the own group has no room. Ignored: the time limit of units, and namespaces.

use super::Log;
use super::blocks::BlockState;
use super::identifiers::Identifiers;
use super::map::Map;
use palimpsest_flash::nand::Flash;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Gate, Io};
use palimpsest_ftl_api::{HandleFigures, PlacementEvents, PlacementFigures};

/// Counts since the drive was new, in units of the map.
pub(super) struct Handles {
    names: Identifiers,
    /// Streams of the host.
    count: u32,
    /// Planes and dies: planes of a die are this many apart.
    planes: u32,
    dies: u32,
    /// The plane of each reclaim group that opens the next unit.
    next_plane: Vec<u32>,
    /// Pages written to other groups, by handle.
    spilled: Vec<u64>,
    /// Written by the host, by handle.
    written: Vec<u64>,
    /// Moved out of reclaim units, by the handle that they belong to; the controller's are last.
    moved: Vec<u64>,
    /// Units of the drive that each handle may have; empty: as many as it fills.
    quotas: Vec<f64>,
    /// Events that the log sees.
    pub events: PlacementEvents,
}

palimpsest_flash::state!(Handles { next_plane, spilled, written, moved, events } built {
    names, count, planes, dies, quotas
});

impl Handles {
    #[inline]
    fn group_of(&self, plane: u32) -> u32 {
        plane % self.dies * self.names.groups / self.dies
    }

    #[inline]
    fn is_outside(&self, plane: u32, stream: u32) -> bool {
        self.names.groups > 1 && stream < self.count && self.group_of(plane) != stream / self.names.handles
    }

    #[inline]
    fn used(&mut self, plane: u32, stream: u32) {
        if self.names.groups == 1 || stream >= self.count {
            return;
        }
        if self.is_outside(plane, stream) {
            self.spilled[stream as usize] += 1;
        } else {
            self.next_plane[(stream / self.names.handles) as usize] = (plane + 1) % self.planes;
        }
    }
}

impl<M: Map> Log<M> {
    /// The same log, new, whose first streams are the handles of `names` with these `shares` of a plane's blocks, or
    /// none.
    #[must_use]
    pub fn with_handles(mut self, names: Identifiers, shares: &[f64], dies: u32) -> Self {
        // A drive that a power cut left without a free unit mixes handles before it refuses to write.
        self.frontiers = self.frontiers.lend_all();
        self.frontiers.track_streams(self.frontiers.planes() * self.shape.blocks_per_plane);
        let quotas = shares.iter().map(|share| share * f64::from(self.shape.blocks_per_plane)).collect::<Vec<_>>();
        let count = names.streams();
        self.handles = Some(Handles {
            names,
            count,
            planes: self.frontiers.planes(),
            dies,
            next_plane: vec![0; names.groups as usize],
            spilled: vec![0; count as usize],
            written: vec![0; count as usize],
            moved: vec![0; count as usize + 1],
            quotas: quotas.repeat(names.groups as usize),
            events: PlacementEvents::default(),
        });
        self
    }

    /// True with several reclaim groups.
    #[inline]
    pub(super) fn has_groups(&self) -> bool {
        self.handles.as_ref().is_some_and(|handles| handles.names.groups > 1)
    }

    /// True if `stream` is a handle of a reclaim group without `plane`.
    #[inline]
    pub(super) fn is_of_other_group(&self, plane: u32, stream: u32) -> bool {
        self.handles.as_ref().is_some_and(|handles| handles.is_outside(plane, stream))
    }

    /// The plane to try first for the next page of `stream`: a handle refers to one reclaim unit. If the handle needs
    /// another unit, the plane with the most free pages; if collection must make room, the plane with the best victim.
    /// Among equal planes `in_turn`, or the next of the reclaim group, comes first.
    #[inline]
    pub(super) fn first_plane(&mut self, stream: u32, in_turn: u32) -> u32 {
        let Some(handles) = &self.handles else { return in_turn };
        let mut planes = 0..handles.planes;
        let is_open = |plane: &u32| self.frontiers.is_open(*plane, stream) && !handles.is_outside(*plane, stream);
        planes.find(is_open).unwrap_or_else(|| self.plane_for_unit(stream, in_turn))
    }

    #[cold]
    fn plane_for_unit(&mut self, stream: u32, in_turn: u32) -> u32 {
        let Some(handles) = &self.handles else { return in_turn };
        let (planes, start) = (handles.planes, self.collector.start);
        let is_grouped = handles.names.groups > 1 && stream < handles.count;
        let first = if is_grouped { handles.next_plane[(stream / handles.names.handles) as usize] } else { in_turn };
        let others = (0..planes).map(|step| if first + step < planes { first + step } else { first + step - planes });
        let usable =
            others.filter(|&plane| !handles.is_outside(plane, stream) && !self.frontiers.rotation.passes_by(plane));
        let blocks = &mut self.frontiers.blocks;
        let worth = |&plane: &u32| match self.frontiers.free_pages[plane as usize] {
            free if free > start => (0, u32::MAX - free),
            _ => (1, blocks.fewest_valid(plane).map_or(u32::MAX, |block| blocks.valid_count(block))),
        };
        usable.min_by_key(worth).unwrap_or(first)
    }

    /// Records a page of `stream` in `plane`.
    #[inline]
    pub(super) fn used_plane(&mut self, plane: u32, stream: u32) {
        self.frontiers.rotation.used(plane);
        if let Some(handles) = &mut self.handles {
            handles.used(plane, stream);
        }
    }

    /// Lets the handle of `stream` refer to an empty unit: programs the open page, and closes a partly written unit. If
    /// no unit is free, the handle keeps the unit, because collection needs the pages.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    pub fn update_handle(&mut self, io: &mut Io, stream: u32) -> Flash<()> {
        self.flush(io, Nanos::MAX, io.request())?;
        let mut left = 0;
        for plane in 0..self.frontiers.planes() {
            if !self.frontiers.is_open(plane, stream) || self.frontiers.rotation.passes_by(plane) {
                continue;
            }
            // Moves of a victim may count on the pages that are left.
            self.finish(io, plane)?;
            self.flush(io, Nanos::MAX, Gate::NONE)?;
            if self.frontiers.blocks.free_count(plane) > 0 {
                left += u64::from(self.frontiers.close_early(io, plane, stream));
            }
        }
        if let Some(handles) = &mut self.handles {
            handles.events.unit_not_fully_written += left;
        }
        Ok(())
    }

    /// Counts `units` units that the host writes to `stream`.
    #[inline]
    pub(super) fn count_written(&mut self, stream: u32, units: u32) {
        if let Some(handles) = &mut self.handles
            && let Some(written) = handles.written.get_mut(stream as usize)
        {
            *written += u64::from(units);
        }
    }

    /// Counts `units` units moved out of `block`.
    #[inline]
    pub(super) fn count_moved(&mut self, block: u32, units: u32) {
        self.counters.moved_units += u64::from(units);
        if let Some(handles) = &mut self.handles {
            let owner = self.frontiers.stream_of(block).min(handles.count);
            handles.moved[owner as usize] += u64::from(units);
        }
    }

    /// Counts a reclaim unit whose valid data moves: the event "media reallocated".
    #[inline]
    pub(super) fn note_reallocated(&mut self, victim: u32) {
        if let Some(handles) = &mut self.handles {
            handles.events.media_reallocated += u64::from(self.frontiers.blocks.valid_count(victim) > 0);
        }
    }

    /// `victim`, the best block of `plane`. Or if handles have shares, the closed block with the fewest valid units of
    /// the handle that exceeds its share the most; blocks of the map have no share.
    #[inline]
    pub(super) fn victim_by_share(&self, plane: u32, victim: u32) -> u32 {
        match &self.handles {
            Some(handles) if !handles.quotas.is_empty() && self.frontiers.stream_of(victim) < handles.count => {
                self.exceeding(handles, plane).unwrap_or(victim)
            }
            _ => victim,
        }
    }

    #[cold]
    fn exceeding(&self, handles: &Handles, plane: u32) -> Option<u32> {
        let (blocks, first) = (&self.frontiers.blocks, plane * self.shape.blocks_per_plane);
        let mut used = vec![0u32; self.frontiers.data_streams() as usize + 1];
        let in_use = |&block: &u32| !matches!(blocks.state(block), BlockState::Free | BlockState::Retired);
        for block in (first..first + self.shape.blocks_per_plane).filter(in_use) {
            used[self.frontiers.stream_of(block) as usize] += 1;
        }
        let excess = |handle: u32| f64::from(used[handle as usize]) / handles.quotas[handle as usize];
        let gains = |&&block: &&u32| {
            self.frontiers.stream_of(block) < handles.count && blocks.valid_count(block) < self.shape.units_per_block
        };
        let closed = blocks.closed(plane).iter().filter(gains);
        closed.copied().min_by(|&one, &other| {
            let [of_one, of_other] = [one, other].map(|block| self.frontiers.stream_of(block));
            let least = |block: u32| (blocks.valid_count(block), blocks.closed_at(block));
            excess(of_other).total_cmp(&excess(of_one)).then(of_one.cmp(&of_other)).then(least(one).cmp(&least(other)))
        })
    }

    /// Counts a reset, after which handles refer to other units than before and `left` units are not full.
    pub(super) fn note_reset(&mut self, left: u64) {
        if let Some(Handles { events, .. }) = &mut self.handles {
            events.unit_not_fully_written += left;
            events.reset_modified_handles += u64::from(left > 0);
        }
    }

    /// The stream whose frontier `block`, partly written, becomes after a power cut.
    pub(super) fn home_of(&self, block: u32) -> u32 {
        match &self.handles {
            Some(_) => self.frontiers.stream_of(block),
            None => self.frontiers.moved_stream(block),
        }
    }

    /// The events that the log sees, if streams are handles.
    pub fn placement_events(&self) -> Option<PlacementEvents> {
        Some(self.handles.as_ref()?.events)
    }

    /// The figures of the handles, if streams are handles.
    pub(super) fn placement(&self) -> Option<PlacementFigures> {
        let handles = self.handles.as_ref()?;
        let subpages = u64::from(self.shape.unit_subpages);
        let page = u64::from(self.shape.units_per_page) * subpages;
        let mut all: Vec<HandleFigures> = (0..=handles.count as usize)
            .map(|handle| HandleFigures {
                written_subpages: handles.written.get(handle).map_or(0, |units| units * subpages),
                moved_subpages: handles.moved[handle] * subpages,
                spilled_subpages: handles.spilled.get(handle).map_or(0, |pages| pages * page),
                ..HandleFigures::default()
            })
            .collect();
        let blocks = &self.frontiers.blocks;
        for block in 0..self.frontiers.planes() * self.shape.blocks_per_plane {
            if matches!(blocks.state(block), BlockState::Open | BlockState::Closed | BlockState::Victim) {
                let owner = &mut all[self.frontiers.stream_of(block).min(handles.count) as usize];
                owner.units += 1;
                owner.valid_subpages += u64::from(blocks.valid_count(block)) * subpages;
            }
        }
        for plane in 0..self.frontiers.planes() {
            let streams = 0..self.frontiers.data_streams().min(handles.count + 1);
            streams.for_each(|stream| {
                let pages = self.frontiers.pages_left(plane, stream);
                let units = u64::from(pages * self.shape.units_per_page);
                all[stream as usize].left_subpages += units * subpages;
            });
        }
        let unit_subpages = u64::from(self.shape.units_per_block) * subpages;
        // A handle always refers to a unit. Without an open block the unit is one that the next write opens.
        for handle in all.iter_mut().take(handles.count as usize).filter(|handle| handle.left_subpages == 0) {
            handle.left_subpages = unit_subpages;
        }
        Some(PlacementFigures { handles: all, groups: handles.names.groups, unit_subpages, events: handles.events })
    }
}
