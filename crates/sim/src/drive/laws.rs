//! The check of a drive's times: the layer's promises, the operations it planned, and completions. Ignored: contents,
//! which a verifier checks.

use super::Drive;
use crate::causality::Causality;
use palimpsest_flash::command::ZoneAction;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_ftl_api::Guarantee;
use palimpsest_ftl_api::plan::ledger::{Ledger, Mutation};

/// The guarantee of a layer.
pub(super) struct Laws {
    pub(super) guarantee: Guarantee,
}

impl Laws {
    pub(super) fn new(guarantee: Guarantee) -> Self {
        Laws { guarantee }
    }
}

impl Drive {
    /// Verifies the times of this drive against the guarantee of its layer, if the run models contents. Tests of the
    /// check pass a `mutation` of plans.
    pub fn verify_times(&mut self, mutation: Option<Mutation>) {
        if self.io.host.has_contents() {
            self.io.ledger = Some(Box::new(Ledger::new(&self.io.nand, mutation)));
        }
    }

    /// Plans for the engine from now on, and verifies times if requested.
    pub(super) fn plan_in_time(&mut self) {
        self.io.plan.timed = true;
        if let Some(ledger) = &mut self.io.ledger {
            let next = self.engine.next_order();
            ledger.restart(next);
            let sectors = self.ftl.zones().map_or(0, |zones| u64::from(zones.len()) * zones.size);
            let inner = self.ftl.inner_subpages().unwrap_or(0);
            let addresses = (sectors * SECTOR_BYTES / self.units.subpage_bytes).max(inner.into());
            let mut causality = Causality::new(&self.io.nand, next, self.laws.guarantee, addresses);
            causality.flushed = self.buffer.flushed();
            self.engine.causality = Some(Box::new(causality));
        }
    }

    /// Ends a call of the layer and passes its operations to the check.
    #[inline]
    pub(super) fn close_call(&mut self) {
        if let (Some(ledger), Some(causality)) = (&mut self.io.ledger, &mut self.engine.causality) {
            let now = self.io.present.now;
            ledger.close(now, self.io.host.delivered(), causality.is_buffered());
            if self.io.present.directives.zone == ZoneAction::Finish {
                let call = ledger.call();
                call.promise.stored.extend_from_slice(&call.stored);
            }
            causality.accept(ledger, now);
        }
    }

    /// Registers the planned request `id` with the check.
    pub(super) fn pledge(&mut self, id: u32, kind: RequestKind, is_forced: bool) {
        let (Some(causality), Some(ledger)) = (&mut self.engine.causality, &mut self.io.ledger) else { return };
        let promise = &ledger.call().promise;
        match kind {
            RequestKind::Read => causality.read(id, promise),
            // The records of a file system name other addresses than those of the host.
            RequestKind::Write if is_forced && self.surface.is_files() => causality.flush(id),
            // The buffer holds a part of a unit before the rest is read. Flushes and read-back verify the data.
            RequestKind::Write if self.buffer.acknowledges && !is_forced => {}
            RequestKind::Write => causality.write(id, promise, is_forced),
            RequestKind::Flush => causality.flush(id),
            // A finished zone stays full after a power cut.
            RequestKind::Trim if self.io.present.directives.zone == ZoneAction::Finish => {
                causality.write(id, promise, true);
            }
            RequestKind::Trim => {}
        }
        ledger.call().promise.clear();
    }

    /// Verifies request `id` when the drive completes it, because the host's own time would hide an early completion.
    #[inline]
    pub(super) fn check_completion(&mut self, id: u32) {
        let now = self.engine.now();
        if let (Some(causality), Some(ledger)) = (&mut self.engine.causality, &self.io.ledger) {
            causality.completed(id, ledger, now);
        }
    }

    /// Reports broken laws of time.
    ///
    /// # Errors
    /// [`Error::Rule`] with the first broken law.
    #[inline]
    pub(super) fn verified(&mut self) -> Result<()> {
        match self.engine.causality.as_mut().and_then(|causality| causality.violation()) {
            Some(what) => Err(Error::Rule(what)),
            None => Ok(()),
        }
    }
}
