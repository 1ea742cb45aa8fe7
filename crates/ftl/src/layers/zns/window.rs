//! Random write areas (Zone Random Write Area, TP4076): data behind the write pointer, in the protected write buffer.
//!
//! The areas of `zns.zrwa_zones` zones are set aside in the buffer, whether zones use them or not. Overwrites replace
//! data there and program nothing. A commit, by command or by a write behind the area, moves data to the write pointer
//! as an ordinary write; logical blocks never written are zeros. A reset drops the area, a finish commits it. A power
//! cut loses nothing: the zone is closed with its area.
//!
//! Ignored: the time to move data within the buffer.

use super::Zns;
use palimpsest_flash::geometry::Extent;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Halt};
use palimpsest_ftl_api::plan::port::pieces;
use palimpsest_ftl_api::plan::{Gate, Io};
use std::collections::VecDeque;

/// A logical block of an area.
#[derive(Default)]
struct Slot {
    written: bool,
    data: Data,
}

palimpsest_flash::state!(Slot { written, data });

/// The area of a zone, from the write pointer on.
#[derive(Default)]
pub(super) struct Window {
    slots: VecDeque<Slot>,
}

palimpsest_flash::state!(Window { slots });

impl Window {
    /// Logical blocks up to the last written one.
    pub fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The data of the logical block at `place`, if written.
    pub fn get(&self, place: u32) -> Option<Data> {
        self.slots.get(place as usize).filter(|slot| slot.written).map(|slot| slot.data)
    }
}

impl Zns {
    /// Writes `extent` into the area of `zone`, and commits as much as makes room.
    pub(super) fn write_area(&mut self, io: &mut Io, zone: u32, extent: Extent) -> Flash<()> {
        let start = u64::from(zone) * self.zones.size;
        let pointer = (self.zones.pointer(zone) / u64::from(self.per_subpage)) as u32;
        let window = self.windows.entry(zone).or_default();
        for piece in pieces(extent, self.per_subpage) {
            let place = (piece.lsn - pointer) as usize;
            let data = io.written(piece, Data::ZERO);
            io.pin(data);
            if window.slots.len() <= place {
                window.slots.resize_with(place + 1, Slot::default);
            }
            let old = std::mem::replace(&mut window.slots[place], Slot { written: true, data });
            if old.written {
                io.unpin(old.data);
                self.zones.counts.overwritten_blocks += 1;
            }
        }
        self.make_room(io, zone, extent.end() - start)
    }

    /// Commits as much of the area of `zone` as a write up to the sector `end` of the zone demands.
    fn make_room(&mut self, io: &mut Io, zone: u32, end: u64) -> Flash<()> {
        let sectors = self.zones.implicit_commit(zone, end);
        if sectors > 0 {
            self.zones.counts.implicit_commits += 1;
            // If no block is left, the data stays in the area.
            self.commit(io, zone, (sectors / u64::from(self.per_subpage)) as u32, Gate::NONE)?;
        }
        Ok(())
    }

    /// Commits the area of `zone` up to the sector `end` of the drive. False if no block is left.
    pub(super) fn commit_to(&mut self, io: &mut Io, zone: u32, end: u64) -> Flash<bool> {
        let sectors = end - self.zones.pointer(zone);
        self.commit(io, zone, (sectors / u64::from(self.per_subpage)) as u32, Gate::NONE)
    }

    /// Writes the first `subpages` of the area of `zone` at the write pointer; their programs signal `signal`. False if
    /// no block is left; the rest stays in the area.
    pub(super) fn commit(&mut self, io: &mut Io, zone: u32, subpages: u32, signal: Gate) -> Flash<bool> {
        for _ in 0..subpages {
            let slot = self.windows.entry(zone).or_default().slots.pop_front().unwrap_or_default();
            if !slot.written {
                io.pin(slot.data);
            }
            let done = self.append(io, zone, (&[slot.data], 0), signal);
            if !matches!(done, Ok(true) | Err(Halt::PowerCut)) {
                self.windows.entry(zone).or_default().slots.push_front(Slot { written: true, ..slot });
            }
            if !done? {
                return Ok(false);
            }
        }
        if !self.zones.zone(zone).random {
            self.windows.remove(&zone);
        }
        Ok(true)
    }

    /// Drops the area of `zone`.
    pub(super) fn drop_window(&mut self, io: &mut Io, zone: u32) {
        let window = self.windows.remove(&zone).unwrap_or_default();
        window.slots.iter().filter(|slot| slot.written).for_each(|slot| io.unpin(slot.data));
    }

    /// Completes a commit that a power cut interrupted.
    pub(super) fn recover_window(&mut self, io: &mut Io, zone: u32) -> Flash<()> {
        let held = self.windows.get(&zone).map_or(0, Window::len);
        if held == 0 {
            self.windows.remove(&zone);
            return Ok(());
        }
        let end = self.zones.zone(zone).written + u64::from(held * self.per_subpage);
        self.make_room(io, zone, end)
    }

    /// Checks the areas against the zones.
    pub(super) fn check_windows(&self) -> Result<(), String> {
        for (&number, window) in &self.windows {
            let (zone, held) = (self.zones.zone(number), u64::from(window.len() * self.per_subpage));
            let fits = held <= self.zones.area.size && zone.written + held <= self.zones.capacity;
            if !zone.state.is_failed() && (!zone.random || !fits) {
                return Err(format!("zone {number}, {zone:?}, has {held} sectors in its random write area"));
            }
        }
        Ok(())
    }
}
