//! Zones that can no longer be written or read (NVMe Zoned Namespace Command Set Specification 1.1: Read Only, Offline).
//!
//! - A zone whose failed block has no free block to be copied to is read only. Acknowledged data that is in no block
//!   stays in a protected buffer. With another buffer the drive's life ends there, because such data has no place.
//! - If free blocks are fewer than the blocks that zones still need, empty zones are offline, the last ones first; if no
//!   zone is empty, zones that need a further block are read only.
//! - A zone with data on a failed die is offline, unless parity restores the data. An open zone that has only its next
//!   pages there is read only.
//!
//! Ignored: that a controller may move data of a failing zone to keep the zone.

use super::Zns;
use palimpsest_flash::nand::{Flash, Halt};
use palimpsest_ftl_api::plan::{Gate, Io};
use palimpsest_ftl_api::zones::{ZoneError, ZoneState};

impl Zns {
    /// False if `done` ended because no block is left for `zone`, which is read only then.
    pub(super) fn or_read_only(&mut self, io: &mut Io, zone: u32, done: Flash<()>) -> Flash<bool> {
        match done {
            Err(Halt::NoSpace) if self.protected => {
                self.lose(io, zone, ZoneState::ReadOnly);
                Ok(false)
            }
            done => done.map(|()| true),
        }
    }

    /// The outcome `moved` of a move of a block, whose data stays in place if no block is left.
    pub(super) fn or_unmoved(&mut self, io: &mut Io, moved: Flash<bool>) -> Flash<bool> {
        let moved = match moved {
            Err(Halt::NoSpace) => false,
            moved => moved?,
        };
        self.note_failures(io);
        Ok(moved)
    }

    /// Makes `zone` read only or offline. Its data in the write buffer stays readable, in other memory of the drive.
    fn lose(&mut self, io: &mut Io, zone: u32, state: ZoneState) {
        if let Some(tail) = self.tails.get_mut(&zone) {
            io.present.buffer_freed += std::mem::take(&mut tail.held);
            io.used(std::mem::replace(&mut tail.done, Gate::NONE));
        }
        self.zones.lose(zone, state);
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
    pub(super) fn note_failures(&mut self, io: &mut Io) {
        let failures = self.block.failures(io);
        if failures != self.failures {
            self.compare(io);
            self.failures = self.block.failures(io);
        }
    }

    #[cold]
    fn compare(&mut self, io: &mut Io) {
        self.block.note_dead_dies(io);
        let blocks = self.shape.blocks;
        for zone in 0..self.zones.len() {
            let (is_dead, loses) = self.block.is_dead(io.nand(), zone, blocks);
            match self.zones.zone(zone).state {
                state if !is_dead || state == ZoneState::Offline => {}
                _ if loses => self.lose(io, zone, ZoneState::Offline),
                state if state.is_active() => self.lose(io, zone, ZoneState::ReadOnly),
                _ => {}
            }
        }
        let needs = |zone: &u32, of: &Self| match of.zones.zone(*zone).state {
            state if state.is_failed() || state == ZoneState::Full => 0,
            _ => of.block.blocks_to_take(*zone, blocks),
        };
        let mut needed: usize = (0..self.zones.len()).map(|zone| needs(&zone, self)).sum();
        while needed > self.block.free_blocks() {
            let last = |state: fn(ZoneState) -> bool| {
                let mut zones = (0..self.zones.len()).rev();
                zones.find(|zone| state(self.zones.zone(*zone).state) && needs(zone, self) > 0)
            };
            let (zone, state) = match (last(|state| state == ZoneState::Empty), last(ZoneState::is_active)) {
                (Some(empty), _) => (empty, ZoneState::Offline),
                (None, Some(active)) => (active, ZoneState::ReadOnly),
                (None, None) => return,
            };
            needed -= needs(&zone, self);
            self.lose(io, zone, state);
        }
    }
}
