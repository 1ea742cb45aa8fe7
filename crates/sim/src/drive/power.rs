//! The drive when the power fails.
//!
//! What has not been programmed is lost, unless it is in a protected buffer; the layer recovers, everything is read back for the
//! verifier, and the host repeats the requests that it has no answer to, unless it is told to drop them. The host and its link
//! are not cut. Ignored: the time that recovery takes.

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

    /// The power failed in a counted run and is back: the layer rebuilds its tables. `command` was in flight.
    #[cold]
    pub(super) fn power_cycle(&mut self, command: Command, verifier: &mut dyn Verifier) -> Result<()> {
        self.io.nand.set_power_cut_at(None);
        self.io.host.take_delivered();
        self.ftl.recover(&mut self.io).map_err(explain)?;
        self.power_cuts += 1;
        if self.io.has_contents() {
            verifier.power_failed(&mut self.io, command);
            self.io.buffers().end_request();
            self.read_back(verifier)?;
        }
        Ok(())
    }

    /// The power fails and is back: the layer recovers, and requests in flight are dropped, or repeated in their order.
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
        self.forget_writes();
        self.io.host.take_delivered();
        let mut planned: Vec<u32> = (0..self.in_flight.len() as u32)
            .filter(|id| !self.free.contains(id) && !self.waiting.contains(id))
            .filter(|&id| self.controller.as_ref().is_none_or(|controller| !controller.holds(id)))
            .collect();
        planned.sort_unstable_by_key(|&id| self.in_flight[id as usize].planned);
        let written = planned.iter().map(|&id| &self.in_flight[id as usize]);
        let unanswered = written.filter(|entry| entry.command.kind == RequestKind::Write).map(|entry| entry.change);
        verifier.power_lost(&unanswered.collect::<Vec<_>>());
        (self.io.plan.timed, self.engine.causality) = (false, None);
        if let Some(ledger) = &mut self.io.ledger {
            ledger.pause();
        }
        self.ftl.recover(&mut self.io).map_err(explain)?;
        self.io.buffers().end_request();
        self.read_back(verifier)?;
        self.power_cuts += 1;
        self.plan_in_time();
        if self.drops_requests {
            self.outstanding = 0;
            self.waiting.clear();
            self.set_controller(self.times);
            self.free = (0..self.in_flight.len() as u32).collect();
            return Ok(());
        }
        planned.into_iter().try_for_each(|id| self.plan(id, verifier))
    }

    /// Reads the logical subpages of [`Self::read_back_after_cut`] back, without time. That is the verifier's doing, so it is not
    /// counted, except where a layer programs or erases to serve reads: these change the drive.
    fn read_back(&mut self, verifier: &mut dyn Verifier) -> Result<()> {
        let Some(all) = self.read_back_after_cut else { return Ok(()) };
        let (io, nand) = (self.io.counters.clone(), self.io.nand.counters().clone());
        let sectors = self.subpage_bytes / SECTOR_BYTES;
        for first in (0..all).step_by(READ_BACK as usize) {
            let count = READ_BACK.min(all - first);
            let extent = Extent { sector: first * sectors, sectors: (count * sectors) as u32 };
            self.count(Command { kind: RequestKind::Read, extent }, verifier)?;
        }
        let now = self.io.nand.counters();
        if (now.programs, now.erases) == (nand.programs, nand.erases) {
            self.io.counters = io;
            self.io.nand.set_counters(nand);
        }
        Ok(())
    }
}
