//! Observers of a run: the watcher every few thousand requests, the snapshots of all blocks, the series over time, the
//! curve of write amplification, and the evidence that ends a run. One comparison a request covers all, so that a run
//! without snapshots costs no more. Observers never change the drive.

use super::super::until::Until;
use super::super::{Fidelity, Phase, Progress, Watcher};
use super::Session;
use crate::metrics::curve::Curve;
use crate::metrics::snapshots::Snapshots;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::Nanos;
use std::ops::ControlFlow;

/// The watcher is called after this many requests.
const WATCH_EVERY: u64 = 4096;

/// The observers of a run, and its progress.
pub(in crate::run) struct Watch<'a> {
    watcher: Watcher<'a>,
    phase: Phase,
    done: u64,
    expected: u64,
    /// The value of `done` at which the watcher, a snapshot or a point of the curve is due.
    due_at: u64,
    pub(in crate::run) snapshots: Option<Snapshots>,
    pub(in crate::run) curve: Option<Curve>,
    /// The evidence that ends the run, and the requests at the next look at it.
    pub(in crate::run) until: Option<Until>,
    next_look: u64,
    /// True if the watcher ended the run.
    pub(in crate::run) interrupted: bool,
    /// True if the evidence ended the run.
    known: bool,
}

impl<'a> Watch<'a> {
    pub(super) fn new(watcher: Watcher<'a>) -> Self {
        Watch {
            watcher,
            phase: Phase::Precondition,
            done: 0,
            expected: 0,
            due_at: 0,
            snapshots: None,
            curve: None,
            until: None,
            next_look: u64::MAX,
            interrupted: false,
            known: false,
        }
    }

    /// The watcher, for another session.
    pub(in crate::run) fn into_watcher(self) -> Watcher<'a> {
        self.watcher
    }

    /// Ends the run with this evidence.
    pub(in crate::run) fn end_at(&mut self, until: Option<Until>) {
        self.next_look = until.as_ref().map_or(u64::MAX, Until::first);
        self.until = until;
    }

    /// True if the run has no further requests.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.interrupted || self.known
    }

    fn schedule(&mut self) {
        let watcher = (self.done / WATCH_EVERY + 1) * WATCH_EVERY;
        let snapshots = self.snapshots.as_ref().map_or(u64::MAX, |snapshots| snapshots.next());
        let curve = self.curve.as_ref().map_or(u64::MAX, Curve::next);
        self.due_at =
            if self.phase == Phase::Run { watcher.min(snapshots).min(curve).min(self.next_look) } else { watcher };
    }

    /// Calls the watcher at the simulated time.
    fn report_progress(&mut self, simulated: Nanos) -> Result<()> {
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
}

impl Session<'_> {
    /// Begins a phase of `expected` requests.
    pub(in crate::run) fn expect(&mut self, phase: Phase, expected: u64) -> Result<()> {
        let watch = &mut self.watch;
        (watch.phase, watch.done, watch.expected) = (phase, 0, expected);
        if phase == Phase::Run {
            watch.snapshots.iter_mut().for_each(|snapshots| snapshots.expect(expected));
            let is_counted = self.options.fidelity == Fidelity::Count;
            watch.curve = (self.options.series || is_counted).then(|| Curve::new(expected));
            self.take_snapshot();
            self.add_point();
        }
        self.schedule_and_report()
    }

    fn schedule_and_report(&mut self) -> Result<()> {
        self.watch.schedule();
        self.watch.report_progress(self.drive.engine.now())
    }

    /// Counts a completed request, and runs the observers that are due.
    #[inline]
    pub(in crate::run) fn watch_one(&mut self) -> Result<()> {
        self.watch.done += 1;
        if self.watch.done < self.watch.due_at { Ok(()) } else { self.run_due() }
    }

    /// Counts `requests` requests of preconditioning.
    pub(in crate::run) fn watch_many(&mut self, requests: u64) -> Result<()> {
        self.watch.done += requests;
        if self.watch.done < self.watch.due_at { Ok(()) } else { self.schedule_and_report() }
    }

    #[cold]
    fn run_due(&mut self) -> Result<()> {
        let Watch { phase, done, .. } = self.watch;
        if phase == Phase::Run && self.watch.snapshots.as_ref().is_some_and(|snapshots| snapshots.next() <= done) {
            self.take_snapshot();
        }
        if phase == Phase::Run && self.watch.curve.as_ref().is_some_and(|curve| curve.next() <= done) {
            self.add_point();
        }
        if phase == Phase::Run {
            self.look(done);
        }
        let reports = done.is_multiple_of(WATCH_EVERY);
        let reported = if reports { self.watch.report_progress(self.drive.engine.now()) } else { Ok(()) };
        self.watch.schedule();
        reported
    }

    /// Ends the run if its figures are known as well as asked, or the simulated time is over.
    fn look(&mut self, done: u64) {
        let Some(until) = &self.watch.until else { return };
        let is_late = until.is_late(self.drive.engine.now() - self.baseline.time);
        let is_due = done >= self.watch.next_look;
        self.watch.known |= is_late;
        if !is_due {
            return;
        }
        self.watch.next_look = Until::next(done);
        let steady = self.steady();
        self.watch.known |= self.watch.until.as_mut().is_some_and(|until| until.look(&steady));
    }

    /// Takes a snapshot of every block, if the run has snapshots.
    pub(super) fn take_snapshot(&mut self) {
        let totals = self.planned();
        if let Some(snapshots) = &mut self.watch.snapshots {
            let time = self.drive.engine.now() - self.baseline.time;
            snapshots.take(self.watch.done, time, totals, &self.drive.io.nand, &*self.drive.ftl);
        }
    }

    /// Adds a point to the curve of write amplification, if the run has one.
    pub(super) fn add_point(&mut self) {
        let totals = self.planned();
        if let Some(curve) = &mut self.watch.curve {
            curve.add(self.watch.done, totals);
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
