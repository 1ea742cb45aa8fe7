//! Who looks at a run while it goes on: the watcher every few thousand requests, and the snapshots of all blocks. Both wait for
//! one number of requests, so that a run that nobody takes pictures of pays for neither.

use super::super::{Phase, Progress};
use super::Session;
use palimpsest_flash::error::{Error, Result};
use std::ops::ControlFlow;

/// The watcher is called after this many requests.
const WATCH_EVERY: u64 = 4096;

impl Session<'_> {
    /// Begins a phase of `expected` requests.
    pub(in crate::run) fn expect(&mut self, phase: Phase, expected: u64) -> Result<()> {
        (self.phase, self.done, self.expected) = (phase, 0, expected);
        if phase == Phase::Run
            && let Some(snapshots) = &mut self.snapshots
        {
            snapshots.expect(expected);
        }
        if phase == Phase::Run {
            self.take_snapshot();
        }
        self.look_later();
        self.tell()
    }

    /// A request is done, as far as the host is concerned.
    #[inline]
    pub(in crate::run) fn watch(&mut self) -> Result<()> {
        self.done += 1;
        if self.done < self.look_at { Ok(()) } else { self.look() }
    }

    #[cold]
    fn look(&mut self) -> Result<()> {
        if self.phase == Phase::Run && self.snapshots.as_ref().is_some_and(|snapshots| snapshots.next() <= self.done) {
            self.take_snapshot();
        }
        let told = if self.done.is_multiple_of(WATCH_EVERY) { self.tell() } else { Ok(()) };
        self.look_later();
        told
    }

    fn look_later(&mut self) {
        let watcher = (self.done / WATCH_EVERY + 1) * WATCH_EVERY;
        let snapshots = self.snapshots.as_ref().map_or(u64::MAX, |snapshots| snapshots.next());
        self.look_at = if self.phase == Phase::Run { watcher.min(snapshots) } else { watcher };
    }

    /// Notes the state of every block, if anybody asked for it.
    pub(super) fn take_snapshot(&mut self) {
        let totals = self.totals();
        if let Some(snapshots) = &mut self.snapshots {
            let time = self.device.engine.now() - self.baseline.time;
            snapshots.take(self.done, time, totals, &self.device.io.nand, &*self.device.ftl);
        }
    }

    fn tell(&mut self) -> Result<()> {
        let simulated = self.device.engine.now();
        let progress = Progress { phase: self.phase, done: self.done, expected: self.expected, simulated };
        match (self.watcher)(progress) {
            ControlFlow::Continue(()) => Ok(()),
            // What was measured so far is kept: no more requests are taken, and the rest ends in order.
            ControlFlow::Break(()) if self.phase == Phase::Run => {
                self.interrupted = true;
                Ok(())
            }
            ControlFlow::Break(()) => Err(Error::Interrupted),
        }
    }
}
