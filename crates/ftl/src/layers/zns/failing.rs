//! Zones that can no longer be written or read (Read Only and Offline of the NVMe Zoned Namespace Command Set).
//!
//! - A zone whose failed block has no free block to be copied to is read only. Acknowledged data that is in no block
//!   stays in a protected buffer. With another buffer the drive's life ends there, because such data has no place.
//! - If free blocks are fewer than the blocks that zones still need, empty zones are offline, the last ones first; if
//!   no zone is empty, zones that need a further block are read only.
//! - A zone with data on a failed die is offline, unless parity restores the data. A zone without data there takes
//!   another block.
//!
//! A tail that requests wait for is programmed before. Ignored: that a controller may move data of a failing zone to
//! keep the zone.

use super::{Tail, Zns};
use crate::layers::pages::MapsPages;
use palimpsest_flash::nand::{Flash, Halt};
use palimpsest_ftl_api::plan::{Cause, Gate, Io, Read};
use palimpsest_ftl_api::zones::{ZoneError, ZoneState};

impl Zns {
    /// False if `done` ended because no block is left for `zone`, which is read only then.
    pub(super) fn or_read_only(&mut self, io: &mut Io, zone: u32, done: Flash<()>) -> Flash<bool> {
        match done {
            Err(Halt::NoSpace) if self.protected && self.block.take_shortage() => {
                self.mark(io, zone, ZoneState::ReadOnly)?;
                Ok(false)
            }
            done => done.map(|()| true),
        }
    }

    /// The outcome `moved` of a move of a block, whose data stays in place if no block is left.
    pub(super) fn or_unmoved(&mut self, io: &mut Io, moved: Flash<bool>) -> Flash<bool> {
        let moved = match moved {
            Err(Halt::NoSpace) if self.block.take_shortage() => false,
            moved => moved?,
        };
        self.note_failures(io)?;
        Ok(moved)
    }

    /// Makes `zone` read only or offline, and before programs a tail that requests wait for.
    fn give_up(&mut self, io: &mut Io, zone: u32, state: ZoneState) -> Flash<()> {
        let waits = |tail: &Tail| tail.held > 0 && (!self.protected || !tail.done.is_none());
        if self.tails.get(&zone).is_some_and(waits) {
            self.program_tail(io, zone, Cause::Host)?;
        }
        self.mark(io, zone, state)
    }

    /// Makes `zone` read only or offline. Its data in the write buffer stays readable, in other memory of the drive.
    fn mark(&mut self, io: &mut Io, zone: u32, state: ZoneState) -> Flash<()> {
        self.zones.lose(zone, state);
        let Some(tail) = self.tails.get_mut(&zone) else { return Ok(()) };
        io.present.buffer_freed += std::mem::take(&mut tail.held);
        let done = std::mem::replace(&mut tail.done, Gate::NONE);
        if io.is_open(done) {
            self.end_waiting(io, done)?;
        }
        Ok(())
    }

    /// Signals `done`, which only an operation can: the read of a page.
    fn end_waiting(&self, io: &mut Io, done: Gate) -> Flash<()> {
        let pages = self.zones.len() * self.shape.blocks * io.geometry().pages_per_block;
        match (0..pages).find_map(|page| self.block.locate(page)) {
            Some(ppn) => io.read(Read { policy: self.read, signal: done, ..Read::new(ppn, 1, Cause::Merge) }),
            None => Ok(()),
        }
    }

    /// Ends the present request with the state of `zone`, which has failed.
    pub(super) fn refuse(&mut self, io: &mut Io, zone: u32) {
        let error = match self.zones.zone(zone).state {
            ZoneState::Offline => ZoneError::ZoneIsOffline,
            _ => ZoneError::ZoneIsReadOnly,
        };
        io.present.refused = self.zones.fail::<()>(error).err();
    }

    /// Forgets the data of a failed write to `zone`, which had `begun` sectors before.
    pub(super) fn rewind(&mut self, io: &mut Io, zone: u32, begun: u64) {
        self.zones.rewind(zone, begun);
        let (page, filled) = self.at_pointer(io, zone);
        let Some(mut tail) = self.tails.remove(&zone) else { return };
        let kept = if tail.page == page { filled } else { 0 };
        tail.contents.drain(kept as usize..).for_each(|data| io.unpin(data));
        if kept > 0 {
            self.tails.insert(zone, tail);
        }
    }

    /// Compares the zones with the blocks, if blocks or dies have failed.
    #[inline]
    pub(super) fn note_failures(&mut self, io: &mut Io) -> Flash<()> {
        if self.block.failures(io) == self.failures {
            return Ok(());
        }
        let compared = self.compare(io);
        self.failures = self.block.failures(io);
        match compared {
            // The present request is served. The next write finds no block, and ends the drive's life.
            Err(Halt::NoSpace) => Ok(()),
            compared => compared,
        }
    }

    #[cold]
    fn compare(&mut self, io: &mut Io) -> Flash<()> {
        self.block.note_dead_dies(io);
        if self.room == 0 {
            // The file system takes no failed zones: its drive ends with the last spare block.
            return Ok(());
        }
        let blocks = self.shape.blocks;
        for zone in 0..self.zones.len() {
            if self.zones.zone(zone).state != ZoneState::Offline && self.block.loses(io.nand(), zone, blocks) {
                self.give_up(io, zone, ZoneState::Offline)?;
            }
        }
        let needs = |zone: u32, of: &Self| match of.zones.zone(zone).state {
            state if state.is_failed() || state == ZoneState::Full => 0,
            _ => of.block.blocks_to_take(zone, blocks),
        };
        while (0..self.zones.len()).map(|zone| needs(zone, self)).sum::<usize>() > self.block.free_blocks() {
            let last = |state: fn(ZoneState) -> bool| {
                let mut zones = (0..self.zones.len()).rev();
                zones.find(|&zone| state(self.zones.zone(zone).state) && needs(zone, self) > 0)
            };
            match (last(|state| state == ZoneState::Empty), last(ZoneState::is_active)) {
                (Some(empty), _) => self.give_up(io, empty, ZoneState::Offline)?,
                (None, Some(active)) => self.give_up(io, active, ZoneState::ReadOnly)?,
                (None, None) => break,
            }
        }
        Ok(())
    }
}
