//! A write buffer that loses what it holds when the power fails: a write, on any layer, is acknowledged when its data is in the
//! controller, and a flush waits for the programs of all writes before it.
//!
//! The layer plans as one that acknowledges programs; what its programs signal is not the request's gate but one of the write's own, which
//! flushes wait for. Where the layer counts no buffer of its own, a write takes room until its own gate closes. Ignored: that a real
//! controller may hold data back to let rewrites replace it; here only open pages do that.

use super::{Drive, InFlight};
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_ftl_api::plan::Gate;

/// The gates of writes are looked through when there are more than this.
const MANY: usize = 1024;

/// Writes that are acknowledged and not yet programmed.
pub(super) struct WriteBack {
    /// Whether the drive counts the room that a write takes.
    counts: bool,
    /// Logical subpages of the drive.
    logical: u32,
    unprogrammed: Vec<Gate>,
    look_at: usize,
}

impl WriteBack {
    /// Logical subpages of the drive.
    pub(super) fn logical(&self) -> u32 {
        self.logical
    }
}

impl Drive {
    /// From now on writes to the `logical` subpages are acknowledged when they are in the controller, and lost with the power. The buffer
    /// has `subpages`; `counts`: the layer does not say how much of it is used.
    pub fn buffer_volatile(&mut self, subpages: u64, counts: bool, logical: u64) {
        self.buffer = Some(subpages);
        self.write_back = Some(WriteBack { counts, logical: logical as u32, unprogrammed: Vec::new(), look_at: MANY });
    }

    /// The gate that the programs of request `id` signal, if not that of the request.
    #[inline]
    pub(super) fn own_gate(&mut self, id: u32) -> Option<Gate> {
        let InFlight { command, .. } = self.in_flight[id as usize];
        if self.write_back.is_none() || command.kind != RequestKind::Write {
            return None;
        }
        let own = self.io.plan.gates.open();
        if self.write_back.as_ref().is_some_and(|back| back.counts) {
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

    /// The flush that was served waits for all writes before it.
    pub(super) fn await_writes(&mut self, flush: Gate) {
        let Some(back) = &mut self.write_back else { return };
        // They stay: the next flush waits for them, too.
        back.unprogrammed.retain(|&gate| self.io.plan.gates.is_open(gate));
        back.look_at = MANY.max(2 * back.unprogrammed.len());
        for &gate in &back.unprogrammed {
            self.io.link(gate, flush);
        }
    }

    /// Subpages that `extent` takes in the buffer.
    #[inline]
    pub(super) fn subpages_of(&self, extent: Extent) -> u64 {
        (u64::from(extent.sectors) * SECTOR_BYTES).div_ceil(self.subpage_bytes)
    }

    /// The power failed: nothing is held any more.
    pub(super) fn forget_writes(&mut self) {
        let Some(back) = &mut self.write_back else { return };
        back.unprogrammed.clear();
        for (id, entry) in (0..).zip(&mut self.in_flight) {
            if entry.held > 0 && !self.free.contains(&id) {
                entry.held = 0;
                self.free.push(id);
            }
        }
    }
}
