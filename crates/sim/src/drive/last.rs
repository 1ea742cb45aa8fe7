//! The end of a drive's life in time: the drive plans nothing more, and finishes the flash operations that it has
//! planned. The plan of the request that found no space counts, too, as far as it came.
//!
//! Ignored: reads after the end, which take no time.

use super::{Drive, Verifier};
use crate::observe::Observer;
use palimpsest_flash::error::Result;
use palimpsest_flash::units::Nanos;

impl Drive {
    /// Stops to plan: requests that wait have no answer, and no power cut comes. The laws of time do not hold for a
    /// plan that a halt ended.
    pub fn stop_planning(&mut self) {
        self.engine.causality = None;
        self.io.ledger.iter_mut().for_each(|ledger| ledger.pause());
        self.engine.drop_power_cut();
        self.ahead = None;
        self.buffer.waiting.clear();
        self.settle();
    }

    /// Processes the next event of flash, and later events before `until`. Answers requests only if `answers`.
    ///
    /// # Errors
    /// Errors of `verifier`.
    pub fn finish_some(
        &mut self,
        until: Nanos,
        answers: bool,
        observer: &mut dyn Observer,
        verifier: &mut dyn Verifier,
    ) -> Result<()> {
        self.engine.run(&mut self.io, until, false);
        if answers {
            return self.harvest(observer, verifier);
        }
        while self.engine.take_completed().is_some() {}
        while let Some(took) = self.engine.take_collection() {
            observer.collection_ended(took);
        }
        self.engine.take_buffer_freed();
        Ok(())
    }

    /// Drops all requests that have no answer.
    pub fn drop_requests(&mut self) {
        self.flight.clear();
        self.buffer.waiting.clear();
        self.controller.clear();
        self.drop_carried();
    }
}
