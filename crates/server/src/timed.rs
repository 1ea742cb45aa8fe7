//! The drive with a clock: requests of all connections are in flight together, and one thread advances them.
//!
//! A request arrives at the drive's time when the bytes have been read. Requests must cover whole sectors, as the
//! handshake says. Zeroes of whole units are unmapped if the power cannot fail, else written piece after piece; a flush
//! follows trims and zeroes that must be durable. [`clock`](crate::clock) describes the clock.

use crate::clock::{Clock, Depth, Wall};
use crate::drive::Witness;
use crate::outbox::Outbox;
use crate::patience::{Budget, Share};
use crate::request::{Asked, PowerLost, Refusal, Request};
use palimpsest_lab::command::Command;
use palimpsest_lab::error::Error;
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::run::Outcome;
use palimpsest_lab::run::served::flight::{Done, Submitted};
use palimpsest_lab::run::served::{Failure, Reply, Served};
use palimpsest_lab::units::SECTOR_BYTES;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The thread spins this long before an event because waking takes tens of microseconds.
const SPIN: Duration = Duration::from_micros(60);

/// Bytes of zeroes written at a time.
const ZEROES: u64 = 256 << 10;

/// The remaining steps of a request.
enum Then {
    Nothing,
    Flush,
    Zeroes {
        from: u64,
        to: u64,
        durable: bool,
    },
    /// Writes the bytes of the read.
    Copy {
        command: Command,
    },
    /// Writes the second half of the bytes, if the read returned the first half.
    Swap {
        command: Command,
        bytes: Vec<u8>,
    },
}

struct Pending {
    client: Arc<Client>,
    asked: Asked,
    then: Then,
    owed: u64,
    share: Option<Share>,
}

/// Makes the reply to a request in the form of the client's protocol; a read has its bytes.
pub type Form = dyn Fn(&Asked, Result<Option<Vec<u8>>, Refusal>) -> Vec<u8> + Send + Sync;

/// A connection.
pub struct Client {
    pub queue: u32,
    pub outbox: Arc<Outbox>,
    pub form: Box<Form>,
    /// Power cuts before the client connected.
    pub since: u64,
}

struct State<'a> {
    served: Served<'a>,
    pending: Vec<Option<Pending>>,
    failed: Option<Error>,
    worn_out: bool,
    ending: bool,
    wall: Option<Wall>,
    depth: Depth,
    arrivals: u64,
    steps: Box<Steps>,
}

/// Requests between two steps.
#[derive(Default)]
struct Steps {
    /// Completed requests whose number may be in use again.
    completed: VecDeque<(Done, Pending)>,
    /// An error that refuses all requests in flight.
    failure: Option<Failure>,
    /// The ranges of swaps that have not written yet, and the requests that wait for them with their bytes.
    swapping: Vec<Extent>,
    delayed: Vec<(Pending, Vec<u8>)>,
}

/// A drive with a clock for many connections.
pub struct Timed<'a> {
    state: Mutex<State<'a>>,
    arrived: Condvar,
    power_cuts: AtomicU64,
}

impl<'a> Timed<'a> {
    /// `served`, with `clock` from now on.
    pub fn new(mut served: Served<'a>, clock: Clock) -> Self {
        served.begin_flights();
        let wall = match clock {
            Clock::Paced(scale) => Some(Wall::new(served.now(), scale)),
            Clock::None | Clock::Virtual => None,
        };
        let state = State {
            served,
            pending: Vec::new(),
            failed: None,
            worn_out: false,
            ending: false,
            wall,
            depth: Depth::default(),
            arrivals: 0,
            steps: Box::default(),
        };
        Timed { state: Mutex::new(state), arrived: Condvar::new(), power_cuts: AtomicU64::new(0) }
    }

    /// Number of power cuts so far.
    pub fn power_cuts(&self) -> u64 {
        self.power_cuts.load(Ordering::SeqCst)
    }

    /// Whether a thread panicked while using the drive.
    pub fn is_broken(&self) -> bool {
        self.state.is_poisoned()
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().expect("no request has panicked")
    }

    /// Shows a drive to `look`, except a broken one.
    pub fn look(&self, look: &mut dyn FnMut(&Served<'_>)) {
        if let Ok(state) = self.state.lock() {
            look(&state.served);
        }
    }

    /// [`Served::note_controller`], except for a broken drive; the next write reports errors of the image.
    pub fn note_controller(&self, powered_s: u64, error_entries: u64) {
        if let Ok(mut state) = self.state.lock() {
            let _ = state.served.note_controller(powered_s, error_entries);
        }
    }

    /// Refuses every later request.
    pub fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).ending = true;
        self.arrived.notify_all();
    }

    /// The result of the drive, with a note on late completions.
    ///
    /// # Errors
    /// The first error of the drive, and errors of [`Served::finish`].
    pub fn finish(self) -> palimpsest_lab::error::Result<Outcome> {
        let State { served, failed, wall, .. } = self.state.into_inner().expect("no request has panicked");
        let mut outcome = failed.map_or_else(|| served.finish(), Err)?;
        outcome.summary.notes.extend(wall.and_then(|wall| wall.report()));
        Ok(outcome)
    }

    /// Submits `asked` for a client; replies go to the outbox of the client.
    ///
    /// # Errors
    /// [`PowerLost`] since the client connected.
    pub fn serve(
        &self,
        client: &Arc<Client>,
        asked: &[Asked],
        input: &[u8],
        budget: &Arc<Budget>,
        witness: &dyn Witness,
    ) -> Result<(), PowerLost> {
        let mut lost = Ok(());
        for asked in asked {
            let owed = match asked.request {
                Ok(Request::Read { length, .. } | Request::Write { length, .. } | Request::Directed { length, .. }) => {
                    u64::from(length) + 64
                }
                _ => 64,
            };
            client.outbox.owe(owed);
            let share = Some(budget.take(owed));
            let mut state = self.lock();
            let pending = Pending { client: Arc::clone(client), asked: *asked, then: Then::Nothing, owed, share };
            if let Some(wall) = &state.wall {
                let time = wall.drive_time(Instant::now());
                let passed = state.served.pass_to(time);
                self.answer_completed(&mut state, passed, witness);
            }
            if client.since < self.power_cuts() {
                pending.refuse(Refusal::PowerLost);
                lost = Err(PowerLost);
            } else {
                state.begin(pending, input);
                self.answer_completed(&mut state, Ok(()), witness);
            }
        }
        self.arrived.notify_one();
        lost
    }

    /// Advances requests until the end; runs on a separate thread.
    pub fn run(&self, witness: &dyn Witness) {
        let mut state = self.lock();
        while !state.ending {
            state = if state.wall.is_some() { self.pace(state, witness) } else { self.hurry(state, witness) };
        }
        state.refuse_all(Refusal::Ending);
    }

    /// One turn of a paced clock.
    fn pace<'s>(&'s self, mut state: MutexGuard<'s, State<'a>>, witness: &dyn Witness) -> MutexGuard<'s, State<'a>> {
        if state.served.in_flight() == 0 {
            return self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let Some(next) = state.served.next_time() else {
            let stepped = state.served.step();
            self.answer_completed(&mut state, stepped, witness);
            return state;
        };
        let due = state.wall.as_ref().expect("a paced drive has a wall clock").due(next);
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let stepped = state.served.step();
            self.answer_completed(&mut state, stepped, witness);
            return state;
        }
        if left > SPIN {
            let waited = self.arrived.wait_timeout(state, left - SPIN);
            return waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        self.lock()
    }

    /// One turn of a virtual clock.
    fn hurry<'s>(&'s self, mut state: MutexGuard<'s, State<'a>>, witness: &dyn Witness) -> MutexGuard<'s, State<'a>> {
        let in_flight = state.served.in_flight();
        if in_flight == 0 {
            return self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(patience) = state.depth.wait(in_flight) {
            let (before, begin) = (state.arrivals, Instant::now());
            state = self.arrived.wait_timeout(state, patience).unwrap_or_else(PoisonError::into_inner).0;
            if state.arrivals == before && begin.elapsed() >= patience {
                state.depth.nothing_came();
            }
            return state;
        }
        let mut stepped = Ok(());
        while stepped.is_ok() && state.served.in_flight() == in_flight {
            stepped = state.served.step();
        }
        self.answer_completed(&mut state, stepped, witness);
        drop(state);
        // A thread that brings a request gets the lock before the next turn.
        std::thread::yield_now();
        self.lock()
    }

    /// Answers completed requests, and starts their next steps; then refuses all requests in flight after a failure.
    fn answer_completed(&self, state: &mut State<'a>, happened: Reply<()>, witness: &dyn Witness) {
        witness.proceeded(&state.served);
        // A failed submission comes before any step.
        state.steps.failure = state.steps.failure.take().or(happened.err());
        state.collect();
        while let Some((done, pending)) = state.steps.completed.pop_front() {
            state.done(done, pending);
            state.collect();
        }
        let refusal = match state.steps.failure.take() {
            None | Some(Failure::Unreadable | Failure::Zone(_)) => return,
            Some(Failure::PowerLost) => {
                self.power_cuts.fetch_add(1, Ordering::SeqCst);
                witness.power_lost();
                Refusal::PowerLost
            }
            Some(Failure::WornOut(why)) => {
                if std::mem::replace(&mut state.worn_out, true) {
                    return;
                }
                witness.failed(&Error::WornOut(why));
                Refusal::WornOut
            }
            Some(Failure::Drive(error)) => {
                witness.failed(&error);
                state.failed.get_or_insert(error);
                Refusal::Failed
            }
        };
        state.refuse_all(refusal);
    }
}

/// The whole sectors within a range of bytes.
fn within(offset: u64, length: u32) -> Extent {
    let (first, end) = (offset.div_ceil(SECTOR_BYTES), (offset + u64::from(length)) / SECTOR_BYTES);
    Extent { sector: first, sectors: end.saturating_sub(first) as u32 }
}

/// The sectors that a request changes, and the place of its bytes in the received memory.
fn changes(request: Request) -> Option<(Extent, Range<usize>)> {
    match request {
        Request::Write { offset, length, at, .. } | Request::Directed { offset, length, at, .. } => {
            Some((within(offset, length), at..at + length as usize))
        }
        Request::Swap { offset, length, at, .. } => Some((within(offset, length), at..at + 2 * length as usize)),
        Request::Zero { offset, length, .. }
        | Request::Trim { offset, length, .. }
        | Request::Copy { offset, length, .. } => Some((within(offset, length), 0..0)),
        Request::Read { .. } | Request::Flush | Request::Manage { .. } => None,
    }
}

/// Whether a request covers whole sectors.
fn is_whole(request: Request) -> bool {
    match request {
        Request::Read { offset, length }
        | Request::Write { offset, length, .. }
        | Request::Directed { offset, length, .. }
        | Request::Zero { offset, length, .. }
        | Request::Copy { offset, length, .. }
        | Request::Swap { offset, length, .. } => {
            offset.is_multiple_of(SECTOR_BYTES) && u64::from(length).is_multiple_of(SECTOR_BYTES)
        }
        Request::Trim { .. } | Request::Flush | Request::Manage { .. } => true,
    }
}

impl State<'_> {
    /// Begins or refuses a request.
    fn begin(&mut self, mut pending: Pending, input: &[u8]) {
        let request = match pending.asked.request {
            Err(error) => return pending.refuse(Refusal::Malformed(error)),
            Ok(_) if self.failed.is_some() => return pending.refuse(Refusal::Failed),
            Ok(_) if self.ending => return pending.refuse(Refusal::Ending),
            Ok(request) if !is_whole(request) => return pending.refuse(Refusal::Unaligned),
            Ok(request) => request,
        };
        if let Some((_, bytes)) = changes(request).filter(|(extent, _)| self.is_swapping(*extent)) {
            let bytes = input[bytes].to_vec();
            if let Some(at) = pending.asked.request.as_mut().ok().and_then(Request::bytes_at) {
                *at = 0;
            }
            return self.steps.delayed.push((pending, bytes));
        }
        let flush = |durable| if durable { Then::Flush } else { Then::Nothing };
        let (request, directives) = request.split();
        match request {
            Request::Read { offset, length } => {
                self.submit(pending, Command::new(RequestKind::Read, within(offset, length)), Vec::new());
            }
            Request::Write { offset, length, at, durable } => {
                let bytes = input[at..at + length as usize].to_vec();
                let write = Command::new(RequestKind::Write, within(offset, length)).with(directives);
                self.submit(pending, write.with_fua(durable), bytes);
            }
            Request::Flush => {
                pending.then = Then::Flush;
                self.go_on(pending);
            }
            Request::Manage { sector, sectors, action } => {
                self.submit(pending, action.command(Extent { sector, sectors }), Vec::new());
            }
            Request::Directed { .. } => unreachable!("the directive was split off"),
            Request::Copy { from, offset, length, durable } => {
                let write = Command::new(RequestKind::Write, within(offset, length)).with_fua(durable);
                pending.then = Then::Copy { command: write };
                self.submit(pending, Command::new(RequestKind::Read, within(from, length)), Vec::new());
            }
            Request::Swap { offset, length, at, durable } => {
                let extent = within(offset, length);
                let bytes = input[at..at + 2 * length as usize].to_vec();
                let command = Command::new(RequestKind::Write, extent).with_fua(durable);
                pending.then = Then::Swap { command, bytes };
                self.steps.swapping.push(extent);
                self.submit(pending, Command::new(RequestKind::Read, extent), Vec::new());
            }
            Request::Trim { offset, length, durable } => {
                pending.then = flush(durable);
                match within(offset, length) {
                    Extent { sectors: 0, .. } => self.go_on(pending),
                    extent => self.submit(pending, Command::new(RequestKind::Trim, extent), Vec::new()),
                }
            }
            Request::Zero { offset, length, unmap, durable } => {
                let unit = self.served.unit_bytes();
                let units = offset.is_multiple_of(unit) && u64::from(length).is_multiple_of(unit);
                if unmap && units && !self.served.may_lose_power() {
                    pending.then = flush(durable);
                    self.submit(pending, Command::new(RequestKind::Trim, within(offset, length)), Vec::new());
                } else {
                    pending.then = Then::Zeroes { from: offset, to: offset + u64::from(length), durable };
                    self.go_on(pending);
                }
            }
        }
    }

    /// Begins the next step of a request, or answers the request.
    fn go_on(&mut self, mut pending: Pending) {
        match std::mem::replace(&mut pending.then, Then::Nothing) {
            Then::Nothing | Then::Copy { .. } | Then::Swap { .. } => pending.answer(None),
            Then::Flush => self.submit(pending, Command::FLUSH, Vec::new()),
            Then::Zeroes { from, to, durable } => {
                // Zeroes in a zone are one request, which the zone refuses or not.
                let end = if self.served.zones().is_some() { to } else { to.min(from + ZEROES) };
                pending.then = match (end < to, durable) {
                    (true, _) => Then::Zeroes { from: end, to, durable },
                    (false, true) => Then::Flush,
                    (false, false) => Then::Nothing,
                };
                let sectors = ((end - from) / SECTOR_BYTES) as u32;
                let extent = Extent { sector: from / SECTOR_BYTES, sectors };
                self.submit(pending, Command::new(RequestKind::Write, extent), vec![0; (end - from) as usize]);
            }
        }
    }

    /// Whether a swap of a part of `extent` has not written yet.
    fn is_swapping(&self, extent: Extent) -> bool {
        self.steps.swapping.iter().any(|swap| swap.sector < extent.end() && extent.sector < swap.end())
    }

    /// Ends the exclusive part of a swap of `extent`, and begins the requests that waited for it.
    fn swapped(&mut self, extent: Extent) {
        if let Some(at) = self.steps.swapping.iter().position(|swap| *swap == extent) {
            self.steps.swapping.swap_remove(at);
        }
        for (pending, bytes) in std::mem::take(&mut self.steps.delayed) {
            self.begin(pending, &bytes);
        }
    }

    /// Goes on after the read of a copy or swap with `then`.
    fn after_read(&mut self, pending: Pending, then: Then, found: Vec<u8>) {
        match then {
            Then::Copy { command } => self.submit(pending, command, found),
            Then::Swap { command, mut bytes } => {
                let new = bytes.split_off(bytes.len() / 2);
                match found == bytes {
                    true => self.submit(pending, command, new),
                    false => pending.refuse(Refusal::Differs),
                }
                self.swapped(command.extent);
            }
            Then::Nothing | Then::Flush | Then::Zeroes { .. } => unreachable!("the request reads first"),
        }
    }

    /// Takes completed requests out of `pending`. Must be called before a request is submitted, because the drive may
    /// give the number of a completed request to the next one.
    fn collect(&mut self) {
        while let Some(done) = self.served.pop_done() {
            let pending = self.pending[done.flight as usize].take().expect("it was in flight");
            self.steps.completed.push_back((done, pending));
        }
    }

    fn submit(&mut self, mut pending: Pending, command: Command, bytes: Vec<u8>) {
        self.collect();
        self.arrivals += 1;
        match self.served.submit(command.of(pending.client.queue), bytes) {
            Ok(Submitted::InFlight(flight)) => {
                if self.pending.len() <= flight as usize {
                    self.pending.resize_with(flight as usize + 1, || None);
                }
                self.pending[flight as usize] = Some(pending);
                self.depth.arrived(self.served.in_flight());
            }
            Ok(Submitted::Read(Ok(bytes))) => match std::mem::replace(&mut pending.then, Then::Nothing) {
                Then::Nothing => pending.answer(Some(bytes)),
                then => self.after_read(pending, then, bytes),
            },
            Ok(Submitted::Read(Err(failure))) => self.refuse(pending, &failure),
            Err(failure) => {
                self.refuse(pending, &failure);
                self.steps.failure.get_or_insert(failure);
            }
        }
    }

    /// A request, or a step of one, has completed.
    fn done(&mut self, Done { reply, sector, at, .. }: Done, mut pending: Pending) {
        self.depth.completed(self.served.in_flight());
        pending.asked = pending.asked.placed(sector * SECTOR_BYTES);
        match (reply, std::mem::replace(&mut pending.then, Then::Nothing)) {
            (Err(failure), then) => {
                pending.then = then;
                self.refuse(pending, &failure);
            }
            (Ok(bytes), Then::Nothing) => {
                if let Some(wall) = &mut self.wall {
                    wall.answered(at, Instant::now());
                }
                pending.answer(Some(bytes));
            }
            // After a power cut a next step must not run, or the request would be answered as if there was none.
            (Ok(_), _) if self.steps.failure.is_some() => pending.refuse(Refusal::Failed),
            (Ok(bytes), then @ (Then::Copy { .. } | Then::Swap { .. })) => self.after_read(pending, then, bytes),
            (Ok(_), then) => {
                pending.then = then;
                self.go_on(pending);
            }
        }
    }

    /// Refuses a request after `failure`.
    fn refuse(&mut self, mut pending: Pending, failure: &Failure) {
        let then = std::mem::replace(&mut pending.then, Then::Nothing);
        pending.refuse(refusal(failure));
        if let Then::Swap { command, .. } = then {
            self.swapped(command.extent);
        }
    }

    fn refuse_all(&mut self, why: Refusal) {
        self.steps.swapping.clear();
        self.steps.delayed.drain(..).for_each(|(pending, _)| pending.refuse(why));
        self.pending.drain(..).flatten().for_each(|pending| pending.refuse(why));
    }
}

fn refusal(failure: &Failure) -> Refusal {
    match failure {
        Failure::Unreadable => Refusal::Unreadable,
        Failure::Zone(status) => Refusal::Zone(*status),
        Failure::WornOut(_) => Refusal::WornOut,
        Failure::PowerLost => Refusal::PowerLost,
        Failure::Drive(_) => Refusal::Failed,
    }
}

impl Pending {
    fn answer(self, bytes: Option<Vec<u8>>) {
        self.reply(Ok(bytes));
    }

    fn refuse(self, why: Refusal) {
        self.reply(Err(why));
    }

    fn reply(self, answer: Result<Option<Vec<u8>>, Refusal>) {
        let reply = (self.client.form)(&self.asked, answer);
        self.client.outbox.deliver(reply, self.owed, self.share);
    }
}
