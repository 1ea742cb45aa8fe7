//! Observers of a run: the watcher every few thousand requests, the snapshots of all blocks, the series over time, and
//! the curve of write amplification. One comparison a request covers all, so that a run without snapshots costs no
//! more. Observers never change the drive.

use super::super::{Phase, Progress};
use super::Session;
use crate::metrics::curve::Curve;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::Nanos;
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
            self.curve = self.options.series.then(|| Curve::new(expected));
            self.take_snapshot();
            self.add_point();
        }
        self.schedule();
        self.report_progress()
    }

    /// Counts a completed request, and runs the observers that are due.
    #[inline]
    pub(in crate::run) fn watch(&mut self) -> Result<()> {
        self.done += 1;
        if self.done < self.watch_at { Ok(()) } else { self.run_due() }
    }

    /// Counts `requests` requests of preconditioning.
    pub(in crate::run) fn watch_many(&mut self, requests: u64) -> Result<()> {
        self.done += requests;
        if self.done < self.watch_at {
            return Ok(());
        }
        self.schedule();
        self.report_progress()
    }

    #[cold]
    fn run_due(&mut self) -> Result<()> {
        if self.phase == Phase::Run && self.snapshots.as_ref().is_some_and(|snapshots| snapshots.next() <= self.done) {
            self.take_snapshot();
        }
        if self.phase == Phase::Run && self.curve.as_ref().is_some_and(|curve| curve.next() <= self.done) {
            self.add_point();
        }
        let reported = if self.done.is_multiple_of(WATCH_EVERY) { self.report_progress() } else { Ok(()) };
        self.schedule();
        reported
    }

    fn schedule(&mut self) {
        let watcher = (self.done / WATCH_EVERY + 1) * WATCH_EVERY;
        let snapshots = self.snapshots.as_ref().map_or(u64::MAX, |snapshots| snapshots.next());
        let curve = self.curve.as_ref().map_or(u64::MAX, Curve::next);
        self.watch_at = if self.phase == Phase::Run { watcher.min(snapshots).min(curve) } else { watcher };
    }

    /// Takes a snapshot of every block, if the run has snapshots.
    pub(super) fn take_snapshot(&mut self) {
        let totals = self.planned();
        if let Some(snapshots) = &mut self.snapshots {
            let time = self.drive.engine.now() - self.baseline.time;
            snapshots.take(self.done, time, totals, &self.drive.io.nand, &*self.drive.ftl);
        }
    }

    /// Adds a point to the curve of write amplification, if the run has one.
    pub(super) fn add_point(&mut self) {
        let totals = self.planned();
        if let Some(curve) = &mut self.curve {
            curve.add(self.done, totals);
        }
    }

    fn report_progress(&mut self) -> Result<()> {
        let simulated = self.drive.engine.now();
        let progress = Progress { phase: self.phase, done: self.done, expected: self.expected, simulated };
        match (self.watcher)(progress) {
            ControlFlow::Continue(()) => Ok(()),
            // The figures so far are the result: no new requests, and outstanding requests complete.
            ControlFlow::Break(()) if self.phase == Phase::Run => {
                self.interrupted = true;
                Ok(())
            }
            ControlFlow::Break(()) => Err(Error::Interrupted),
        }
    }

    /// Advances the clock to `time`; there must be no event before.
    pub(in crate::run) fn pass_to(&mut self, time: Nanos) {
        self.sample_before(time);
        self.drive.engine.advance_to(time);
    }

    /// Records the worst planned read in the present window.
    pub(super) fn note_worst_read(&mut self) {
        if let Some(worst) = self.drive.io.nand.take_worst_read() {
            self.recorder.note_worst_read(self.drive.engine.now(), worst);
        }
    }

    /// Ends windows of the series before the next event at `time`.
    #[inline]
    pub(super) fn sample_before(&mut self, time: Nanos) {
        if time >= self.recorder.next_sample() {
            self.note_worst_read();
            let (totals, engine) = (self.totals(), &self.drive.engine);
            self.recorder.meter(time, |at| engine.energy_at(at));
            self.recorder.sample(self.drive.engine.now(), time, totals);
        }
    }
}
