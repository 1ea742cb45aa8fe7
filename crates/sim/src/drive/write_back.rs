//! The write buffer of a drive, which acknowledges writes of every layer alike.
//!
//! A write is acknowledged when its data is in the buffer, and occupies room until its programs end. The layer plans as
//! if programs acknowledged the write: programs signal a gate of the write, for which flushes wait, in place of the
//! request's gate. Layers that gather writes in open pages count their room themselves, and signal no gate if the
//! buffer is protected. A write with FUA is acknowledged when programmed, and programs the open pages at once. Ignored:
//! that a controller may delay programs so that later writes replace the data; only open pages do. That a write with
//! FUA could leave the open pages of other data open.

use super::Drive;
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::nand::Flash;
use palimpsest_ftl_api::plan::{Gate, Io};
use std::collections::VecDeque;

/// Number of gates above which closed ones are dropped.
const MANY: usize = 1024;

/// A write buffer.
#[derive(Debug, Clone, Copy)]
pub struct Buffer {
    /// Room in subpages.
    pub subpages: u64,
    /// True if the layer's open pages are in the buffer; the layer then counts their room.
    pub gathers: bool,
    /// True if a write is acknowledged once it is in the buffer.
    pub acknowledges: bool,
    /// Logical subpages of the drive.
    pub logical: u32,
}

/// Room of the write buffer, and the writes that wait for room or for their programs.
#[derive(Default)]
pub(super) struct WriteBuffer {
    /// Room in subpages; `None` without a buffer.
    size: Option<u64>,
    used: u64,
    /// Writes that wait for room, in order.
    pub(super) waiting: VecDeque<u32>,
    /// True if the buffer acknowledges writes.
    pub(super) acknowledges: bool,
    write_back: Option<WriteBack>,
}

/// Acknowledged writes that are not yet programmed.
struct WriteBack {
    buffer: Buffer,
    unprogrammed: Vec<Gate>,
    look_at: usize,
}

impl WriteBack {
    /// Drops closed gates.
    fn shrink(&mut self, io: &Io) {
        self.unprogrammed.retain(|&gate| io.plan.gates.is_open(gate));
        self.look_at = MANY.max(2 * self.unprogrammed.len());
    }
}

impl WriteBuffer {
    /// An empty buffer before a layer whose open pages survive a power cut if `protected`.
    fn new(buffer: Buffer, protected: bool) -> Self {
        let Buffer { gathers, acknowledges, .. } = buffer;
        let waits = acknowledges && !(gathers && protected);
        WriteBuffer {
            size: (gathers || acknowledges).then_some(buffer.subpages),
            acknowledges,
            write_back: waits.then(|| WriteBack { buffer, unprogrammed: Vec::new(), look_at: MANY }),
            ..WriteBuffer::default()
        }
    }

    /// True if there is a buffer.
    #[inline]
    pub(super) fn exists(&self) -> bool {
        self.size.is_some()
    }

    /// True if a trim drops data from the buffer: data that a protected buffer acknowledged, or whose write then ends
    /// without a program.
    pub(super) fn trims_drop_data(&self) -> bool {
        self.exists() && self.write_back.is_none()
    }

    /// Logical subpages whose acknowledged data only flushes make durable.
    pub(super) fn flushed(&self) -> u32 {
        self.write_back.as_ref().map_or(u32::MAX, |back| back.buffer.logical)
    }

    /// True if `subpages` subpages fit. An empty buffer has room for any write.
    #[inline]
    pub(super) fn fits(&self, subpages: u64) -> bool {
        self.size.is_none_or(|size| self.used + subpages <= size || self.used == 0)
    }

    /// Subpages in use, and room for all; 0 without a buffer.
    fn level(&self) -> (u64, u64) {
        (self.used, self.size.unwrap_or(0))
    }

    /// Occupies room.
    #[inline]
    pub(super) fn take(&mut self, subpages: u64) {
        self.used += subpages;
    }

    /// Frees room.
    #[inline]
    pub(super) fn release(&mut self, subpages: u64) {
        self.used -= subpages;
    }

    /// Empties the buffer after a power cut. `freed` subpages were free before; a protected buffer keeps the others.
    pub(super) fn lose(&mut self, freed: u64, protected: bool) {
        self.used = if protected && self.write_back.is_none() { self.used - freed } else { 0 };
        self.write_back.iter_mut().for_each(|back| back.unprogrammed.clear());
    }

    /// Frees room that recovery freed, of at most the room in use.
    pub(super) fn recovered(&mut self, freed: u64) {
        self.used = self.used.saturating_sub(freed);
    }

    /// Makes `flush` wait for all writes before.
    pub(super) fn await_writes(&mut self, io: &mut Io, flush: Gate) {
        let Some(back) = &mut self.write_back else { return };
        // The gates stay, because the next flush must wait for them too.
        back.shrink(io);
        back.unprogrammed.iter().for_each(|&gate| io.link(gate, flush));
    }
}

impl Drive {
    /// Passes writes through `buffer` from now on.
    pub fn set_buffer(&mut self, buffer: Buffer) {
        self.buffer = WriteBuffer::new(buffer, self.laws.guarantee.protected);
    }

    /// Subpages of the write buffer in use, and room for all; 0 without a buffer.
    pub fn buffer_level(&self) -> (u64, u64) {
        self.buffer.level()
    }

    /// The gate that the programs of request `id` must signal in place of the request's gate, if any.
    #[inline]
    pub(super) fn own_gate(&mut self, id: u32) -> Option<Gate> {
        let command = self.flight.get(id).command;
        if self.buffer.write_back.is_none() || command.kind != RequestKind::Write {
            return None;
        }
        let own = self.io.plan.gates.open();
        if self.buffer.write_back.as_ref().is_some_and(|back| !back.buffer.gathers) {
            let subpages = self.units.subpages(command.extent);
            let holder = self.flight.hold(id, subpages);
            self.buffer.take(subpages);
            self.engine.watch(&mut self.io, own, holder);
        } else {
            self.io.plan.gates.expect(own);
        }
        let back = self.buffer.write_back.as_mut().expect("it was there");
        if back.unprogrammed.len() >= back.look_at {
            back.shrink(&self.io);
        }
        back.unprogrammed.push(own);
        Some(own)
    }

    /// True if the present request, of `kind`, is a write that must be programmed before the acknowledgement. A
    /// protected buffer whose flushes are free is durable memory.
    #[inline]
    pub(super) fn is_forced(&self, kind: RequestKind) -> bool {
        kind == RequestKind::Write && self.io.present.directives.fua && !self.io.plan.flush_is_free
    }

    /// Plans the programs of the present write, which has FUA, and of all other data in open pages. A file system
    /// commits.
    #[cold]
    pub(super) fn program_at_once(&mut self) -> Flash<()> {
        let is_free = self.io.plan.flush_is_free && !self.surface.is_files();
        if is_free { Ok(()) } else { self.ftl.flush(&mut self.io) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(gathers: bool, protected: bool) -> WriteBuffer {
        WriteBuffer::new(Buffer { subpages: 10, gathers, acknowledges: true, logical: 99 }, protected)
    }

    #[test]
    fn room_is_taken_and_released() {
        let mut buffer = buffer(false, true);
        assert!(buffer.fits(11), "an empty buffer has room for any write");
        buffer.take(7);
        assert_eq!([buffer.fits(3), buffer.fits(4)], [true, false]);
        buffer.release(6);
        assert_eq!([buffer.fits(9), buffer.fits(10)], [true, false]);
        buffer.release(1);
        assert!(buffer.fits(11));
        buffer.take(10);
        assert!(!buffer.fits(1));
        assert!(WriteBuffer::default().fits(u64::MAX), "without a buffer nothing waits for room");
    }

    /// After a cut a protected buffer of open pages keeps all that was not freed; every other buffer is empty.
    #[test]
    fn a_cut_empties_all_but_protected_open_pages() {
        for (gathers, protected, used) in [(true, true, 6), (true, false, 0), (false, true, 0), (false, false, 0)] {
            let mut buffer = buffer(gathers, protected);
            buffer.take(8);
            buffer.lose(2, protected);
            assert_eq!(buffer.used, used, "{gathers} {protected}");
            buffer.recovered(9);
            assert_eq!(buffer.used, 0);
        }
    }
}
