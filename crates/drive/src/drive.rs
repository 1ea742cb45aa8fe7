//! The drive as a value. Requests are in flight together; the caller decides how the clock proceeds.
//!
//! Ignored: the clock of the caller, which must never fall behind the drive's.

use palimpsest_lab::command::Command;
use palimpsest_lab::config::Resolved;
use palimpsest_lab::error::{Error, Result};
use palimpsest_lab::geometry::{Geometry, RequestKind};
use palimpsest_lab::metrics::summary::Summary;
use palimpsest_lab::nand::data::Payload;
use palimpsest_lab::run::served::flight::{Done, Submitted};
use palimpsest_lab::run::served::live::Pages;
use palimpsest_lab::run::served::{Failure, Reply, Served};
use palimpsest_lab::run::{Options, Progress};
use palimpsest_lab::sim::engine::present::Present;
use palimpsest_lab::units::{Nanos, SECTOR_BYTES};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Latest time: simulated time has 56 bits.
const LATEST: Nanos = 1 << 55;

/// The number of a request: 0 for the first, then one more for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// The result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// The request succeeded.
    Done,
    /// The data is uncorrectable, and lost until the next write.
    Unreadable,
    /// The power failed. The drive has recovered and accepts requests; each subpage of a write is old or new.
    PowerLost,
    /// The drive is worn out and can only be read.
    WornOut,
}

/// A completed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The request.
    pub ticket: Ticket,
    /// Time of the completion.
    pub at: Nanos,
    /// The result.
    pub status: Status,
    /// The data of a read, if cells store bytes; empty otherwise.
    pub bytes: Vec<u8>,
}

/// An arrival or a completion, for [`Drive::watch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The request.
    pub ticket: Ticket,
    /// Time of the arrival or completion.
    pub at: Nanos,
    /// True for a completion.
    pub is_completion: bool,
    /// Data bytes programmed so far, planned programs included; without preconditioning.
    pub programmed_bytes: u64,
}

/// The function that [`Drive::watch`] calls.
type Watcher = Box<dyn FnMut(Moment) + Send>;

/// A simulated drive.
pub struct Drive {
    served: Served<'static>,
    stores_bytes: bool,
    closed_loop: bool,
    /// Times of scheduled power cuts; `None` for a drive without.
    cuts: Option<Vec<Nanos>>,
    submitted: u64,
    /// Tickets of the requests in flight, by number.
    tickets: Vec<Option<Ticket>>,
    completed: VecDeque<Completion>,
    watcher: Option<Watcher>,
    /// The error with which each later call fails.
    failed: Option<Error>,
    /// True while a call works: a call that finds it true follows a panic.
    works: bool,
}

impl Drive {
    pub(crate) fn new(
        resolved: &Resolved,
        options: &Options,
        closed_loop: bool,
        state: Option<&[u8]>,
    ) -> Result<Drive> {
        // A closure without captured values occupies no memory.
        let watcher = Box::leak(Box::new(|_: Progress| ControlFlow::Continue(())));
        let mut served = match state {
            None => Served::with_any_payload(resolved, options, None, watcher)?,
            Some(state) => Served::restored(resolved, options, state, watcher)?,
        };
        served.begin_flights();
        Ok(Drive {
            served,
            stores_bytes: options.payload == Payload::Bytes,
            closed_loop,
            cuts: resolved.drive.loses_power().then(Vec::new),
            submitted: 0,
            tickets: Vec::new(),
            completed: VecDeque::new(),
            watcher: None,
            failed: None,
            works: false,
        })
    }

    /// Bytes of the drive.
    pub fn bytes(&self) -> u64 {
        self.served.bytes()
    }

    /// Bytes of a unit of the layer's map: the best size of writes and trims.
    pub fn unit_bytes(&self) -> u64 {
        self.served.unit_bytes()
    }

    /// Time of the drive, in nanoseconds from the end of preconditioning. The clock of a worn-out drive stops.
    pub fn now(&self) -> Nanos {
        self.served.now()
    }

    /// Requests that have not completed.
    pub fn in_flight(&self) -> u32 {
        self.served.in_flight()
    }

    /// Submits `command` at time `at`, after all events before `at`. A write of a drive that stores bytes writes zeros.
    ///
    /// # Errors
    /// [`Error::Input`]: `at` is before [`Self::now`], or the command is beyond the drive. Other errors are those of
    /// the drive: each later call fails with the same error. So does each call after a panic.
    pub fn submit(&mut self, command: Command, at: Nanos) -> Result<Ticket> {
        let zeros = match command.kind {
            RequestKind::Write if self.stores_bytes => command.extent.sectors as usize * SECTOR_BYTES as usize,
            _ => 0,
        };
        self.submit_checked(command, vec![0; zeros], at)
    }

    /// [`Self::submit`] of a write with its bytes.
    ///
    /// # Errors
    /// As [`Self::submit`]; [`Error::Input`] unless the command is a write of as many bytes, and cells store bytes.
    pub fn submit_bytes(&mut self, command: Command, bytes: Vec<u8>, at: Nanos) -> Result<Ticket> {
        let expected = u64::from(command.extent.sectors) * SECTOR_BYTES;
        if command.kind != RequestKind::Write || bytes.len() as u64 != expected || !self.stores_bytes {
            let what = format!("{} bytes; expected a write of as many, on a drive that stores bytes", bytes.len());
            return Err(Error::input("submit_bytes", what));
        }
        self.submit_checked(command, bytes, at)
    }

    /// The result of `work`, unless an earlier call failed or panicked.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.expect_sound()?;
        self.works = true;
        let done = work(self);
        self.works = false;
        done
    }

    fn expect_sound(&self) -> Result<()> {
        if self.works {
            return Err(Error::Rule("the simulator panicked in an earlier call; expected a new drive".into()));
        }
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn submit_checked(&mut self, command: Command, bytes: Vec<u8>, at: Nanos) -> Result<Ticket> {
        self.guarded(|drive| drive.submit_sound(command, bytes, at))
    }

    fn submit_sound(&mut self, command: Command, bytes: Vec<u8>, at: Nanos) -> Result<Ticket> {
        let (now, end) = (self.now(), command.extent.end() * SECTOR_BYTES);
        // A drive that ends finishes its operations, and so passes arrivals of later requests, which get the reason.
        if (at < now && !self.served.is_worn_out()) || at > LATEST {
            let what = format!("arrival at {at} ns; expected from {now} ns, the time of the drive, to {LATEST} ns");
            return Err(Error::input("submit", what));
        }
        if end > self.bytes() {
            let what = format!("the request ends at byte {end}; expected at most {}", self.bytes());
            return Err(Error::input("submit", what));
        }
        while self.now() < at && !self.served.is_worn_out() {
            let passed = self.served.advance(at, false);
            self.collect(passed)?;
        }
        if !self.closed_loop {
            self.served.arrived(at);
        }
        let ticket = Ticket(self.submitted);
        self.submitted += 1;
        self.report(ticket, at, false);
        match self.served.submit(command, bytes) {
            Ok(Submitted::InFlight(flight)) => {
                if self.tickets.len() <= flight as usize {
                    self.tickets.resize(flight as usize + 1, None);
                }
                self.tickets[flight as usize] = Some(ticket);
                self.collect(Ok(()))?;
            }
            Ok(Submitted::Read(reply)) => self.complete(ticket, at, reply),
            Err(failure) => {
                self.complete(ticket, at, Err(failure.clone()));
                self.collect(Err(failure))?;
            }
        }
        Ok(ticket)
    }

    /// Time of the next event; `None` if nothing will happen until the next request. Never before [`Self::now`].
    pub fn next_time(&self) -> Option<Nanos> {
        let next = self.served.next_time().filter(|_| !self.served.is_worn_out());
        match next {
            // Writes that wait for others in the buffer complete when the buffer is flushed, which may be now.
            None if self.in_flight() > 0 || !self.completed.is_empty() => Some(self.now()),
            next => next,
        }
    }

    /// Processes the events up to time `until`, and stops early when a request has completed. Otherwise the clock is at
    /// `until` afterwards, except for [`Nanos::MAX`], for which it is at the last event.
    ///
    /// # Errors
    /// Errors of the drive, with which each later call fails: a broken rule of flash, a read of wrong data.
    pub fn advance(&mut self, until: Nanos) -> Result<()> {
        self.guarded(|drive| {
            if !drive.completed.is_empty() || until < drive.now() {
                return Ok(());
            }
            let is_stuck = drive.served.next_time().is_none() && drive.in_flight() > 0;
            let passed = if is_stuck { drive.served.step() } else { drive.served.advance(until, true) };
            drive.collect(passed)
        })
    }

    /// Removes and returns the requests that have completed, in order of time. Others stay.
    pub fn completed(&mut self) -> impl Iterator<Item = Completion> {
        std::iter::from_fn(|| self.completed.pop_front())
    }

    /// Schedules a power cut at time `at`. The power returns at once, and the drive recovers, which takes time.
    /// Requests in flight complete with [`Status::PowerLost`].
    ///
    /// # Errors
    /// [`Error::Input`]: the drive was built without `Builder::power_cuts`, or `at` is before [`Self::now`].
    pub fn power_cut(&mut self, at: Nanos) -> Result<()> {
        self.expect_sound()?;
        let now = self.now();
        let Some(cuts) = &mut self.cuts else {
            return Err(Error::input("power_cut", "the power of this drive never fails; expected Builder::power_cuts"));
        };
        if at < now || at > LATEST {
            let what = format!("a power cut at {at} ns; expected from {now} ns, the time of the drive, to {LATEST} ns");
            return Err(Error::input("power_cut", what));
        }
        cuts.push(at);
        self.served.cut_power_at(at);
        Ok(())
    }

    /// Programs all buffered data, waits for all operations, which takes time, and returns the state, from which
    /// `Builder::state` makes drives that continue as this one. The bytes are valid for one build of the simulator
    /// and the same settings, except for times of the part and for keys of `host`, `controller` and `sim`.
    ///
    /// # Errors
    /// [`Error::Input`]: requests are in flight, the drive is worn out, has parity, stores bytes or may lose power, or
    /// the layer has no state. Each later call fails with any other error.
    pub fn save(&mut self) -> Result<Vec<u8>> {
        self.guarded(|drive| {
            let saved = drive.served.save();
            drive.failed = saved.as_ref().err().filter(|error| !matches!(error, Error::Input { .. })).cloned();
            saved
        })
    }

    /// Calls `watcher` at each arrival and completion, before the call that processes the event returns. So a policy of
    /// the program knows the load while the drive asks the policy.
    pub fn watch(&mut self, watcher: impl FnMut(Moment) + Send + 'static) {
        self.watcher = Some(Box::new(watcher));
    }

    /// The present state of flash, for pictures.
    pub fn pages(&self) -> Pages {
        self.served.pages()
    }

    /// The flash operations that have not ended, in the order of planning.
    pub fn operations(&self) -> Vec<Present> {
        self.served.operations()
    }

    /// Shape of the drive.
    pub fn geometry(&self) -> &Geometry {
        self.served.geometry()
    }

    /// The present figures, without requests in flight.
    pub fn figures(&self) -> Summary {
        self.served.figures()
    }

    /// Waits for all operations, checks every conservation law, and returns the figures of the whole life.
    ///
    /// # Errors
    /// [`Error::Rule`] with the broken law; errors of the drive.
    pub fn finish(self) -> Result<Summary> {
        self.expect_sound()?;
        Ok(self.served.finish()?.summary)
    }

    /// Moves completed requests to the queue; a failure completes all requests in flight.
    fn collect(&mut self, happened: Reply<()>) -> Result<()> {
        while let Some(Done { flight, reply, at, .. }) = self.served.pop_done() {
            if let Some(ticket) = self.tickets[flight as usize].take() {
                self.complete(ticket, at, reply);
            }
        }
        let Err(failure) = happened else { return Ok(()) };
        if let Failure::Drive(error) = failure {
            self.failed = Some(error.clone());
            return Err(error);
        }
        if !matches!(failure, Failure::Unreadable | Failure::Zone(_)) {
            let (at, mut lost) = (self.now(), Vec::from_iter(self.tickets.iter_mut().filter_map(Option::take)));
            lost.sort_unstable();
            lost.into_iter().for_each(|ticket| self.complete(ticket, at, Err(failure.clone())));
        }
        if failure == Failure::PowerLost {
            self.schedule_again();
        }
        Ok(())
    }

    /// Schedules the later power cuts again, because a cut clears all events.
    fn schedule_again(&mut self) {
        let (now, Some(cuts)) = (self.now(), &mut self.cuts) else { return };
        cuts.retain(|&at| at > now);
        cuts.iter().for_each(|&at| self.served.cut_power_at(at));
    }

    fn report(&mut self, ticket: Ticket, at: Nanos, is_completion: bool) {
        let Some(watcher) = &mut self.watcher else { return };
        watcher(Moment { ticket, at, is_completion, programmed_bytes: self.served.programmed_bytes() });
    }

    fn complete(&mut self, ticket: Ticket, at: Nanos, reply: Reply<Vec<u8>>) {
        self.report(ticket, at, true);
        let (status, bytes) = match reply {
            Ok(bytes) => (Status::Done, bytes),
            Err(Failure::Unreadable) => (Status::Unreadable, Vec::new()),
            Err(Failure::PowerLost) => (Status::PowerLost, Vec::new()),
            Err(Failure::WornOut(_) | Failure::Zone(_) | Failure::Drive(_)) => (Status::WornOut, Vec::new()),
        };
        self.completed.push_back(Completion { ticket, at, status, bytes });
    }
}
