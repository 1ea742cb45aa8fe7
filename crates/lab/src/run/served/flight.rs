//! Concurrent requests of a server at timed fidelity. Each request arrives at the drive's time of its submission, and
//! is answered when the drive completes it. The server decides how the drive's clock proceeds; the clock stops between
//! events.
//!
//! A power cut, or the end of the drive's life, refuses all requests in flight. Ignored: priorities of queues.

use super::{Failure, Reply, Served};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_ftl_api::plan::port::Incoming;
use palimpsest_sim::drive::{Command, Completed};
use std::collections::VecDeque;

/// A request that has completed.
#[derive(Debug)]
pub struct Done {
    /// Number of the request.
    pub flight: u32,
    /// Bytes of a read; empty for others.
    pub reply: Reply<Vec<u8>>,
    /// First sector; of a Zone Append that the drive chose.
    pub sector: u64,
    /// Time of completion, by the drive's clock.
    pub at: Nanos,
}

/// The outcome of a submission.
#[derive(Debug)]
pub enum Submitted {
    /// The request is in flight, with this number.
    InFlight(u32),
    /// The drive is worn out, and the read was served without time: its bytes.
    Read(Reply<Vec<u8>>),
}

/// Requests in flight, by number.
#[derive(Default)]
pub(super) struct Flights {
    commands: Vec<Option<Command>>,
    done: VecDeque<Done>,
}

impl Flights {
    fn begin(&mut self, flight: u32, command: Command) {
        if self.commands.len() <= flight as usize {
            self.commands.resize(flight as usize + 1, None);
        }
        self.commands[flight as usize] = Some(command);
    }
}

impl Served<'_> {
    /// Allows concurrent requests from now on.
    pub fn begin_flights(&mut self) {
        self.session.drive.carry();
        self.begin_reads();
    }

    fn begin_reads(&mut self) {
        let bytes = self.session.options.payload == Payload::Bytes;
        self.session.verifier.begin_reads(bytes);
    }

    /// Time of the drive.
    pub fn now(&self) -> Nanos {
        self.session.drive.engine.now()
    }

    /// Time of the next event without a request; `None` also if the buffer must be flushed, which [`Self::step`] does.
    pub fn next_time(&self) -> Option<Nanos> {
        self.session.drive.next_time()
    }

    /// True at the end of the drive's life: its clock stops, and reads take no time.
    pub fn is_worn_out(&self) -> bool {
        self.session.worn_out.is_some()
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> u32 {
        if self.is_worn_out() { 0 } else { self.session.drive.outstanding() }
    }

    /// Submits `command` now, with its directives and the bytes of a write.
    ///
    /// # Errors
    /// [`Failure`]: this request is refused. [`Failure::PowerLost`], and the first [`Failure::WornOut`], refuse all
    /// requests in flight.
    pub fn submit(&mut self, mut command: Command, bytes: Vec<u8>) -> Reply<Submitted> {
        self.session.classify(&[self.now()], std::slice::from_mut(&mut command));
        let Command { kind, extent, .. } = command;
        assert!(kind == RequestKind::Flush || extent.sectors > 0, "a request covers a sector");
        assert!(extent.end() * SECTOR_BYTES <= self.bytes(), "a request is in the drive");
        self.note(command);
        let session = &mut self.session;
        if let Some(why) = &session.worn_out {
            if kind != RequestKind::Read {
                return Err(Failure::WornOut(why.clone()));
            }
            return Ok(Submitted::Read(self.read_worn_out(command)?));
        }
        let incoming = Incoming { sector: extent.sector, bytes, ..Incoming::default() };
        session.drive.bring((kind == RequestKind::Write).then_some(incoming));
        let now = session.drive.engine.now();
        let submitted = session.drive.submit(command, now, &mut session.verifier);
        let flight = session.drive.carried().map_or(0, |carried| carried.submitted);
        self.flights.begin(flight, command);
        self.harvested(submitted)?;
        Ok(Submitted::InFlight(flight))
    }

    /// Records the arrival of the next request, for the load over the drive's lifetime.
    pub fn arrived(&mut self, at: Nanos) {
        self.session.tally.arrived(at);
    }

    /// Schedules a power cut at `time`, on a drive with power cuts (`faults.power_cuts`).
    pub fn cut_power_at(&mut self, time: Nanos) {
        self.session.drive.engine.cut_power_at(time);
    }

    /// Processes the next event.
    ///
    /// # Errors
    /// [`Failure`]: all requests in flight are refused.
    pub fn step(&mut self) -> Reply<()> {
        self.step_before(0)
    }

    /// Processes the next event, and later events before `until`, until a request completes.
    fn step_before(&mut self, until: Nanos) -> Reply<()> {
        let cuts = self.session.drive.power.cuts;
        let advanced = self.session.advance_to(until);
        if self.session.drive.power.cuts > cuts {
            self.flights.commands.clear();
            self.begin_reads();
            advanced?;
            return Err(Failure::PowerLost);
        }
        self.harvested(advanced)
    }

    /// Advances the clock to `time` and processes the events before; an idle drive collects in the background.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn pass_to(&mut self, time: Nanos) -> Reply<()> {
        if self.session.worn_out.is_some() {
            return Ok(());
        }
        while self.next_time().is_some_and(|next| next <= time) {
            self.step()?;
        }
        let idled = self.session.idle_until(time);
        self.harvested(idled)?;
        if self.now() < time {
            self.session.pass_to(time);
        }
        Ok(())
    }

    /// Processes the events before `until`, and at `until` if it is `included`, up to the first completed request.
    /// Without one, advances the clock to `until`; an idle drive collects in the background. If no event is left and
    /// `until` is the end of time, flushes the write buffer.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn advance(&mut self, until: Nanos, included: bool) -> Reply<()> {
        if self.session.worn_out.is_some() {
            return Ok(());
        }
        let (end, last) = (until.saturating_add(u64::from(included)), until == Nanos::MAX);
        while self.flights.done.is_empty() {
            match self.next_time() {
                Some(next) if next < end => self.step_before(end)?,
                None if last && self.in_flight() > 0 => self.step()?,
                _ if last => return Ok(()),
                _ => {
                    let idled = self.session.idle_until(until);
                    self.harvested(idled)?;
                    if self.next_time().is_none_or(|next| next >= end) {
                        self.session.pass_to(until.max(self.now()));
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes and returns the first completed request.
    pub fn pop_done(&mut self) -> Option<Done> {
        self.flights.done.pop_front()
    }

    /// Waits for all requests in flight.
    pub(super) fn land(&mut self) -> Result<()> {
        while self.session.drive.carried().is_some() && self.in_flight() > 0 {
            match self.step() {
                Err(Failure::Drive(error)) => return Err(error),
                _ => self.flights.done.clear(),
            }
        }
        Ok(())
    }

    /// Collects completed requests, or the failure of all.
    fn harvested(&mut self, done: Result<()>) -> Reply<()> {
        let session = &mut self.session;
        let done = done.and_then(|()| session.drive.harvest(&mut session.recorder, &mut session.verifier));
        let carried = session.drive.carried().expect("requests carry");
        let (mut completed, planned) = (std::mem::take(&mut carried.completed), carried.planned);
        let at = session.drive.engine.now();
        session.drive.reports.refused.clear();
        for Completed { flight, refused, sector } in completed.drain(..) {
            let command = self.flights.commands[flight as usize].take().expect("it was in flight");
            let session = &mut self.session;
            let (bytes, failed) = session.verifier.take_read(flight);
            if let Some(error) = refused {
                self.flights.done.push_back(Done { flight, reply: Err(Failure::Zone(error)), sector, at });
                continue;
            }
            session.tally(command);
            if self.kept {
                self.note_in_image(command)?;
            }
            self.session.watch_one()?;
            let reply = if failed { Err(Failure::Unreadable) } else { Ok(bytes) };
            self.flights.done.push_back(Done { flight, reply, sector, at });
        }
        self.session.drive.carried().expect("requests carry").completed = completed;
        match done {
            Err(Error::WornOut(why)) => {
                let command = self.flights.commands.get(planned as usize).copied().flatten();
                self.flights.commands.clear();
                let ended = self.end_life(command.unwrap_or(Command::FLUSH), why);
                self.begin_reads();
                Err(ended)
            }
            done => Ok(done?),
        }
    }

    /// Serves a read of a worn-out drive, without time.
    fn read_worn_out(&mut self, command: Command) -> Result<Reply<Vec<u8>>> {
        let session = &mut self.session;
        session.drive.count(command, &mut session.verifier)?;
        session.verifier.keep_read(0);
        let (bytes, failed) = session.verifier.take_read(0);
        if let Some(error) = self.take_refused() {
            return Ok(Err(Failure::Zone(error)));
        }
        let session = &mut self.session;
        session.tally(command);
        session.watch_one()?;
        Ok(if failed { Err(Failure::Unreadable) } else { Ok(bytes) })
    }
}

#[cfg(test)]
mod tests;
