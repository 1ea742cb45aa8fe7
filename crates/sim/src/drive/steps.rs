//! What happens next in a drive, and which completions the host gets.

use super::power::explain;
use super::{Directives, Drive, InFlight, Verifier};
use crate::controller::Controller;
use crate::events::END_OF_TIME;
use crate::observe::Observer;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};

/// Behind all that happens.
const NEVER: Nanos = Nanos::MAX;

/// When the next things happen without the host's doing; [`NEVER`]: no such thing does.
pub struct Upcoming {
    /// In the engine.
    event: Nanos,
    /// In the layer.
    deadline: Nanos,
    /// In the controller.
    arrives: Nanos,
    /// The first of them, from now on.
    first: Nanos,
}

impl Upcoming {
    /// When the first of them happens, if any does.
    #[inline]
    pub fn time(&self) -> Option<Nanos> {
        (self.first < NEVER).then_some(self.first)
    }
}

impl Drive {
    /// When something happens next without the host's doing.
    #[inline]
    pub fn next_time(&self) -> Option<Nanos> {
        self.upcoming().time()
    }

    /// What happens next without the host's doing.
    #[inline]
    pub fn upcoming(&self) -> Upcoming {
        let event = self.engine.next_time().unwrap_or(NEVER);
        let deadline = self.ftl.deadline().unwrap_or(NEVER);
        let arrives = self.controller.as_ref().map_or(NEVER, Controller::next_time);
        Upcoming { event, deadline, arrives, first: event.min(deadline.max(self.engine.now())).min(arrives) }
    }

    /// Lets the next thing happen.
    ///
    /// # Errors
    /// What flash or `verifier` say.
    #[inline]
    pub fn step(&mut self, observer: &mut dyn Observer, verifier: &mut dyn Verifier) -> Result<()> {
        self.run(self.upcoming(), 0, observer, verifier)
    }

    /// Lets `next` happen, which is upcoming, and what comes behind it before `until`, until a request has ended or flash has nothing to do.
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
        let (outstanding, cuts, rebuilding) = (self.outstanding, self.power_cuts, self.io.nand.is_rebuilding());
        loop {
            self.let_happen(&next, until, verifier)?;
            self.harvest(observer, verifier)?;
            let noticed = self.outstanding != outstanding || self.engine.outstanding() == 0;
            if noticed || (self.power_cuts, self.io.nand.is_rebuilding()) != (cuts, rebuilding) {
                return Ok(());
            }
            next = self.upcoming();
            if next.first >= until {
                return Ok(());
            }
        }
    }

    /// Lets what comes first of `next` happen, and what the engine does behind that before `until`, as long as none of it leaves the drive.
    #[inline]
    fn let_happen(&mut self, next: &Upcoming, until: Nanos, verifier: &mut dyn Verifier) -> Result<()> {
        let &Upcoming { event, deadline, arrives, .. } = next;
        if arrives < event.min(deadline) {
            return self.let_in(arrives, verifier);
        }
        if deadline < event {
            self.engine.advance_to(deadline.max(self.engine.now()));
            self.io.present.now = self.engine.now();
            self.ftl.timer(&mut self.io).map_err(explain)?;
            self.close_call();
            self.settle();
            return Ok(());
        }
        // They wait for events of the same moment.
        let own = deadline.min(arrives).min(END_OF_TIME - 1) + 1;
        self.engine.run(&mut self.io, until.min(own), !self.waiting.is_empty());
        if self.engine.power_fails() {
            self.lose_power(verifier)?;
        }
        if self.engine.now() == END_OF_TIME {
            return Err(Error::DriveFailed("834 days of simulated time are over; the engine counts no further".into()));
        }
        Ok(())
    }

    /// One step of the patrol.
    ///
    /// # Errors
    /// What flash says.
    pub fn patrol(&mut self) -> Result<()> {
        self.io.present.now = self.engine.now();
        self.patrol_once().map_err(explain)?;
        self.close_call();
        self.settle();
        Ok(())
    }

    /// Reports what has completed, and lets waiting writes in.
    ///
    /// # Errors
    /// What flash or `verifier` say.
    #[inline]
    pub fn harvest(&mut self, observer: &mut dyn Observer, verifier: &mut dyn Verifier) -> Result<()> {
        if self.waiting.is_empty() && self.engine.is_quiet() {
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
                let InFlight { command, arrival, warmup, change, held, .. } = self.in_flight[id as usize];
                if held > 0 {
                    self.buffer_used -= u64::from(held);
                    self.free.push(id);
                    continue;
                }
                let now = self.engine.now();
                self.check_completion(id);
                if self.cut_ahead {
                    self.futile = 0;
                    self.note_durable(command, change, verifier);
                }
                let Directives { owner, queue } = command.directives;
                if let Some(finished) = &mut self.finished {
                    finished.push(queue);
                }
                self.free.push(id);
                if let Some(carried) = &mut self.carried {
                    carried.completed.push(id);
                }
                self.outstanding -= 1;
                let bytes = u64::from(command.extent.sectors) * SECTOR_BYTES;
                self.record_completion(id);
                if !warmup {
                    observer.request_completed(command.kind, bytes, now - arrival, now);
                    if self.reports_owners {
                        observer.owner_completed(owner, command.kind, now - arrival);
                    }
                }
            }
            while let Some(took) = self.engine.take_collection() {
                observer.collection_ended(took);
            }
            self.buffer_used -= self.engine.take_buffer_freed();
            self.verified()?;
            if !self.admit(verifier)? {
                return Ok(());
            }
        }
    }

    /// Verifies what request `id` must wait for, at the moment when the drive is done with it; the host's own time hides nothing.
    #[inline]
    fn check_completion(&mut self, id: u32) {
        let now = self.engine.now();
        if let (Some(causality), Some(ledger)) = (&mut self.engine.causality, &self.io.ledger) {
            causality.completed(id, ledger, now);
        }
    }
}
