//! The drive when the power fails in a timed run.
//!
//! What has not been programmed is lost, unless it is in a protected buffer; the layer recovers, and the host repeats the requests
//! that it has no answer to. The host and its link are not cut. Ignored: the time that recovery takes.

use super::{Drive, explain};
use crate::drive::{Command, Verifier};
use palimpsest_flash::error::Result;
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_ftl_api::Durability;

/// Subpages of one read of [`Drive::read_back`].
const READ_BACK: u64 = 64;

impl Drive {
    /// A power cut that is to come: from now on operations are timed, and it comes while its operation runs.
    pub(super) fn time_power_cut(&mut self, cut: u64) {
        let next = self.io.nand.operations() + 1;
        self.io.keep_undo();
        self.engine.cut_power_in(cut.max(next), &self.io);
        self.cut_ahead = true;
    }

    /// A request completes: `change`, and what came before it, is durable as far as the layer says so. A flush need not wait for
    /// writes that it overtakes.
    #[cold]
    #[inline(never)]
    pub(super) fn note_durable(&self, command: Command, change: u64, verifier: &mut dyn Verifier) {
        let by_flush = self.guarantee.durable == Durability::Flushed;
        match command.kind {
            RequestKind::Write if !by_flush => verifier.durable(Some(command.extent), change),
            RequestKind::Flush if by_flush => verifier.durable(None, change),
            _ => {}
        }
    }

    /// The power fails and is back: the layer recovers, and requests in flight are repeated, in their order.
    ///
    /// # Errors
    /// What flash or `verifier` say.
    #[cold]
    pub(super) fn lose_power(&mut self, verifier: &mut dyn Verifier) -> Result<()> {
        self.engine.power_off(&mut self.io);
        let freed = self.engine.take_buffer_freed();
        self.buffer_used = if self.guarantee.protected { self.buffer_used - freed } else { 0 };
        self.cut_ahead = false;
        self.arriving.clear();
        self.io.host.take_delivered();
        verifier.power_lost();
        (self.io.plan.timed, self.engine.causality) = (false, None);
        if let Some(ledger) = &mut self.io.ledger {
            ledger.pause();
        }
        self.ftl.recover(&mut self.io).map_err(explain)?;
        self.io.buffers().end_request();
        if let Some(subpages) = self.read_back_after_cut {
            self.read_back(subpages, verifier)?;
        }
        self.power_cuts += 1;
        self.plan_in_time();
        let mut planned: Vec<u32> = (0..self.in_flight.len() as u32)
            .filter(|id| !self.free.contains(id) && !self.waiting.contains(id))
            .collect();
        planned.sort_unstable_by_key(|&id| self.in_flight[id as usize].planned);
        planned.into_iter().try_for_each(|id| self.plan(id, verifier))
    }

    /// Reads logical subpages 0 to `all` back, without time.
    fn read_back(&mut self, all: u64, verifier: &mut dyn Verifier) -> Result<()> {
        let sectors = self.subpage_bytes / SECTOR_BYTES;
        for first in (0..all).step_by(READ_BACK as usize) {
            let count = READ_BACK.min(all - first);
            let extent = Extent { sector: first * sectors, sectors: (count * sectors) as u32 };
            self.count(Command { kind: RequestKind::Read, extent }, verifier)?;
        }
        Ok(())
    }
}
