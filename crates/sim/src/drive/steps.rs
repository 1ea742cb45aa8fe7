//! The next event of a drive, and the completions reported to the host.
//!
//! Ignored: events of the host, whose times the session compares itself.

use super::carried::Completed;
use super::flight::InFlight;
use super::power::explain;
use super::{Drive, Refused, Verifier};
use crate::events::END_OF_TIME;
use crate::observe::Observer;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::Nanos;

/// A time after all events.
const NEVER: Nanos = Nanos::MAX;

/// Times of the next events of each part of a drive; [`NEVER`] for none.
pub struct Upcoming {
    /// Next event of the engine.
    event: Nanos,
    /// Deadline of the layer.
    deadline: Nanos,
    /// Next event of the controller.
    arrives: Nanos,
    /// The earliest of them, not before the present.
    first: Nanos,
}

impl Upcoming {
    /// Time of the earliest event, if any.
    #[inline]
    pub fn time(&self) -> Option<Nanos> {
        (self.first < NEVER).then_some(self.first)
    }
}

impl Drive {
    /// Time of the next event within the drive.
    #[inline]
    pub fn next_time(&self) -> Option<Nanos> {
        self.upcoming().time()
    }

    /// The next events within the drive.
    #[inline]
    pub fn upcoming(&self) -> Upcoming {
        let event = self.engine.next_time().unwrap_or(NEVER);
        let deadline = self.ftl.deadline().unwrap_or(NEVER);
        let arrives = self.controller.next_time();
        Upcoming { event, deadline, arrives, first: event.min(deadline.max(self.engine.now())).min(arrives) }
    }

    /// Processes the next event.
    ///
    /// # Errors
    /// Errors of flash or `verifier`.
    #[inline]
    pub fn step(&mut self, observer: &mut dyn Observer, verifier: &mut dyn Verifier) -> Result<()> {
        self.run(self.upcoming(), 0, observer, verifier)
    }

    /// Processes `next`, which must be the present [`Self::upcoming`], and later events before `until`. Stops early
    /// when a request completes or flash has no operation left.
    ///
    /// # Errors
    /// As [`Self::step`].
    #[inline]
    pub fn run(
        &mut self,
        mut next: Upcoming,
        until: Nanos,
        observer: &mut dyn Observer,
        verifier: &mut dyn Verifier,
    ) -> Result<()> {
        let (outstanding, cuts, rebuilding) = (self.outstanding(), self.power.cuts, self.io.nand.is_rebuilding());
        loop {
            self.let_happen(&next, until, verifier)?;
            self.harvest(observer, verifier)?;
            let noticed = self.outstanding() != outstanding || self.engine.outstanding() == 0;
            if noticed || (self.power.cuts, self.io.nand.is_rebuilding()) != (cuts, rebuilding) {
                return Ok(());
            }
            next = self.upcoming();
            if next.first >= until {
                return Ok(());
            }
        }
    }

    /// Processes the earliest event of `next`, and later events of the engine before `until`, as long as none is
    /// visible outside the drive.
    #[inline]
    fn let_happen(&mut self, next: &Upcoming, until: Nanos, verifier: &mut dyn Verifier) -> Result<()> {
        let &Upcoming { event, deadline, arrives, .. } = next;
        if arrives < event.min(deadline) {
            return self.let_in(arrives, verifier);
        }
        if deadline < event {
            self.engine.advance_to(deadline.max(self.engine.now()));
            self.io.present.now = self.engine.now();
            let done = self.ftl.timer(&mut self.io).map_err(explain);
            self.check_work("a timeout of buffered data").and(done)?;
            self.close_call();
            self.settle();
            return Ok(());
        }
        // Deadlines and arrivals wait for engine events of the same time.
        let own = deadline.min(arrives).min(END_OF_TIME - 1) + 1;
        self.engine.run(&mut self.io, until.min(own), !self.buffer.waiting.is_empty());
        if self.engine.power_fails() {
            self.lose_power(verifier)?;
        }
        if self.engine.now() == END_OF_TIME {
            return Err(Error::DriveFailed("834 days of simulated time are over; the engine counts no further".into()));
        }
        Ok(())
    }

    /// Performs one step of the patrol.
    ///
    /// # Errors
    /// Errors of flash.
    pub fn patrol(&mut self) -> Result<()> {
        self.io.present.now = self.engine.now();
        self.patrol_once().map_err(explain)?;
        self.close_call();
        self.settle();
        Ok(())
    }

    /// Reports completions, and plans waiting writes for which there is room.
    ///
    /// # Errors
    /// Errors of flash or `verifier`.
    #[inline]
    pub fn harvest(&mut self, observer: &mut dyn Observer, verifier: &mut dyn Verifier) -> Result<()> {
        if self.buffer.waiting.is_empty() && self.engine.is_quiet() {
            return Ok(());
        }
        self.harvest_news(observer, verifier)
    }

    fn harvest_news(&mut self, observer: &mut dyn Observer, verifier: &mut dyn Verifier) -> Result<()> {
        loop {
            while let Some(id) = self.engine.take_ended_in_drive() {
                self.check_completion(id);
            }
            while let Some(id) = self.engine.take_completed() {
                let InFlight { command, arrival, warmup, change, held, refused, .. } = *self.flight.get(id);
                if held > 0 {
                    self.buffer.release(u64::from(held));
                    self.engine.timeline.iter_mut().for_each(|timeline| timeline.freed(id));
                    self.flight.release(id);
                    continue;
                }
                self.check_completion(id);
                if self.power.is_cut_ahead() {
                    self.power.progressed();
                    self.note_durable(command, change, verifier);
                }
                self.reports.finish(command, self.engine.now() - arrival);
                self.flight.complete(id);
                if self.controller.takes_time() {
                    self.controller.release(self.engine.now());
                }
                if let Some(carried) = &mut self.carried {
                    carried.completed.push(Completed { flight: id, refused, sector: command.extent.sector });
                }
                self.record_completion(id, &command, observer);
                if let Some(error) = refused {
                    self.reports.refused.push(Refused { command, error, measured: !warmup });
                } else if !warmup {
                    self.reports.observe(command, arrival, self.engine.now(), observer);
                }
            }
            while let Some(took) = self.engine.take_collection() {
                observer.collection_ended(took);
            }
            self.buffer.release(self.engine.take_buffer_freed());
            self.verified()?;
            if !self.admit(verifier)? {
                return Ok(());
            }
        }
    }
}
