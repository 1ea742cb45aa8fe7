//! The write buffer of a drive, which acknowledges writes of every layer alike.
//!
//! A write is acknowledged when its data is in the buffer, and occupies room until its programs end. The layer plans as
//! if programs acknowledged the write: programs signal a gate of the write, for which flushes wait, in place of the
//! request's gate. Layers that gather writes in open pages count their room themselves, and signal no gate if the
//! buffer is protected. Ignored: that a controller may delay programs so that later writes replace the data; only open
//! pages do.

use super::{Drive, InFlight};
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_ftl_api::plan::Gate;

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

/// Acknowledged writes that are not yet programmed.
pub(super) struct WriteBack {
    buffer: Buffer,
    unprogrammed: Vec<Gate>,
    look_at: usize,
}

impl WriteBack {
    pub(super) fn logical(&self) -> u32 {
        self.buffer.logical
    }
}

impl Drive {
    /// Passes writes through `buffer` from now on.
    pub fn set_buffer(&mut self, buffer: Buffer) {
        let Buffer { gathers, acknowledges, .. } = buffer;
        self.acknowledges = acknowledges;
        self.buffer = (gathers || acknowledges).then_some(buffer.subpages);
        let waits = acknowledges && !(gathers && self.guarantee.protected);
        self.write_back = waits.then(|| WriteBack { buffer, unprogrammed: Vec::new(), look_at: MANY });
    }

    /// The gate that the programs of request `id` must signal in place of the request's gate, if any.
    #[inline]
    pub(super) fn own_gate(&mut self, id: u32) -> Option<Gate> {
        let InFlight { command, .. } = self.in_flight[id as usize];
        if self.write_back.is_none() || command.kind != RequestKind::Write {
            return None;
        }
        let own = self.io.plan.gates.open();
        if self.write_back.as_ref().is_some_and(|back| !back.buffer.gathers) {
            let subpages = self.subpages_of(command.extent);
            let entry = InFlight { held: subpages as u32, ..self.in_flight[id as usize] };
            let holder = self.enter_flight(entry);
            self.buffer_used += subpages;
            self.engine.watch(&mut self.io, own, holder);
        } else {
            self.io.plan.gates.expect(own);
        }
        let (gates, back) = (&self.io.plan.gates, self.write_back.as_mut().expect("it was there"));
        if back.unprogrammed.len() >= back.look_at {
            back.unprogrammed.retain(|&gate| gates.is_open(gate));
            back.look_at = MANY.max(2 * back.unprogrammed.len());
        }
        back.unprogrammed.push(own);
        Some(own)
    }

    /// Makes `flush` wait for all writes before.
    pub(super) fn await_writes(&mut self, flush: Gate) {
        let Some(back) = &mut self.write_back else { return };
        // The gates stay, because the next flush must wait for them too.
        back.unprogrammed.retain(|&gate| self.io.plan.gates.is_open(gate));
        back.look_at = MANY.max(2 * back.unprogrammed.len());
        for &gate in &back.unprogrammed {
            self.io.link(gate, flush);
        }
    }

    /// Subpages that `extent` occupies in the buffer.
    #[inline]
    pub(super) fn subpages_of(&self, extent: Extent) -> u64 {
        (u64::from(extent.sectors) * SECTOR_BYTES).div_ceil(self.subpage_bytes)
    }

    /// Empties the buffer after a power cut: hold-up energy has programmed the data, or the data is lost.
    pub(super) fn forget_writes(&mut self) {
        let Some(back) = &mut self.write_back else { return };
        back.unprogrammed.clear();
        self.buffer_used = 0;
        for (id, entry) in (0..).zip(&mut self.in_flight) {
            if entry.held > 0 && !self.free.contains(&id) {
                entry.held = 0;
                self.free.push(id);
            }
        }
    }
}
