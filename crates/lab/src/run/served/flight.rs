//! Concurrent requests of a server at timed fidelity. Each request arrives at the drive's time of its submission, and
//! is answered when the drive completes it. The server decides how the drive's clock proceeds; the clock stops between
//! events.
//!
//! A power cut, or the end of the drive's life, refuses all requests in flight. Ignored: priorities of queues.

use super::{Failure, Reply, Served};
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_ftl_api::plan::port::Incoming;
use palimpsest_sim::drive::Command;
use std::collections::VecDeque;

/// A request that has completed.
#[derive(Debug)]
pub struct Done {
    /// Number of the request.
    pub flight: u32,
    /// Bytes of a read; empty for others.
    pub reply: Reply<Vec<u8>>,
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
        self.session.verifier.begin_reads();
    }

    /// Time of the drive.
    pub fn now(&self) -> Nanos {
        self.session.drive.engine.now()
    }

    /// Time of the next event without a request; `None` also if the buffer must be flushed, which [`Self::step`] does.
    pub fn next_time(&self) -> Option<Nanos> {
        self.session.drive.next_time()
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> u32 {
        if self.session.worn_out.is_some() { 0 } else { self.session.drive.outstanding() }
    }

    /// Submits `command` now, with the bytes of a write.
    ///
    /// # Errors
    /// [`Failure`]: this request is refused. [`Failure::PowerLost`], and the first [`Failure::WornOut`], refuse all
    /// requests in flight.
    pub fn submit(&mut self, command: Command, bytes: Vec<u8>) -> Reply<Submitted> {
        let command = command.of(self.owner);
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

    /// Processes the next event.
    ///
    /// # Errors
    /// [`Failure`]: all requests in flight are refused.
    pub fn step(&mut self) -> Reply<()> {
        let cuts = self.session.drive.power.cuts;
        let advanced = self.session.advance();
        if self.session.drive.power.cuts > cuts {
            self.flights.commands.clear();
            self.session.verifier.begin_reads();
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
        let (completed, planned) = (std::mem::take(&mut carried.completed), carried.planned);
        let at = session.drive.engine.now();
        for flight in completed {
            let command = self.flights.commands[flight as usize].take().expect("it was in flight");
            let (bytes, failed) = session.verifier.take_read(flight);
            session.tally(command);
            if self.kept {
                session.note_in_image(command)?;
            }
            session.watch_one()?;
            let reply = if failed { Err(Failure::Unreadable) } else { Ok(bytes) };
            self.flights.done.push_back(Done { flight, reply, at });
        }
        match done {
            Err(Error::WornOut(why)) => {
                let command = self.flights.commands.get(planned as usize).copied().flatten();
                self.flights.commands.clear();
                let nothing = Command::FLUSH;
                Err(self.end_life(command.unwrap_or(nothing), why))
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
        session.tally(command);
        session.watch_one()?;
        Ok(if failed { Err(Failure::Unreadable) } else { Ok(bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Resolved};
    use crate::run::precondition::Precondition;
    use crate::run::{Fidelity, Options, Warmup, run};
    use palimpsest_flash::geometry::Extent;
    use palimpsest_flash::nand::data::Payload;
    use palimpsest_flash::rng::Rng;
    use palimpsest_workload::request::{Arrivals, Request, Source};
    use std::ops::ControlFlow;

    fn drive(more: &[&str]) -> Resolved {
        let set = [
            "ssd.channels=2",
            "ssd.planes_per_die=1",
            "ssd.chips_per_channel=1",
            "ssd.blocks_per_plane=32",
            "part.pages_per_block=8",
            "ssd.over_provisioning=60%",
            "buffer.size=64KiB",
            "ftl.gc_start=2 blocks",
            "ftl.gc_stop=3 blocks",
        ];
        let set: Vec<String> = set.iter().chain(more).map(|&text| text.into()).collect();
        config::resolve("mga-8k", Some("page"), &set, &|_| unreachable!()).unwrap()
    }

    fn options(workload: &str) -> Options {
        Options {
            workload: workload.into(),
            precondition: Precondition::None,
            requests: None,
            warmup: Warmup::Requests(0),
            fidelity: Fidelity::Timed,
            payload: Payload::Bytes,
            seed: 1,
            series: false,
            operations: None,
        }
    }

    fn requests(resolved: &Resolved, count: u64) -> Vec<Command> {
        let (mut rng, sectors) = (Rng::new(5, 0), resolved.drive.logical_bytes() / SECTOR_BYTES / 8);
        let kinds = [RequestKind::Write, RequestKind::Write, RequestKind::Read, RequestKind::Read, RequestKind::Trim];
        let request = |number: u64| match number % 97 {
            96 => Command::FLUSH,
            _ => {
                let extent = Extent { sector: rng.below(sectors - 4) * 8, sectors: 8 * (1 + rng.below(4)) as u32 };
                Command::new(kinds[rng.below(5) as usize], extent)
            }
        };
        (0..count).map(request).collect()
    }

    struct Listed(std::vec::IntoIter<Command>, u32);

    impl Source for Listed {
        fn next_request(&mut self) -> Result<Option<Request>> {
            let next = self.0.next();
            Ok(next.map(|command| Request::new(0, command)))
        }

        fn place(&self) -> String {
            "here".into()
        }

        fn arrivals(&self) -> Arrivals {
            Arrivals::Closed { depth: self.1 }
        }
    }

    /// A program with `depth` requests in flight must get the times of a run with that depth.
    #[test]
    fn requests_in_flight_take_the_time_of_a_run() {
        for depth in [1, 4, 16, 32] {
            let resolved = drive(&[]);
            let wanted = requests(&resolved, 2000);
            let mut go_on = |_| ControlFlow::Continue(());
            let mut source = Listed(wanted.clone().into_iter(), depth);
            let expected = run(&resolved, &mut source, &options("here"), &mut go_on).unwrap().summary;
            let options = options("served");
            let mut served = Served::new(&resolved, &options, &mut go_on).unwrap();
            served.begin_flights();
            let mut wanted = wanted.into_iter().peekable();
            while served.in_flight() > 0 || wanted.peek().is_some() {
                while served.in_flight() < depth {
                    let Some(command) = wanted.next() else { break };
                    let bytes = command.extent.sectors as usize * SECTOR_BYTES as usize;
                    let is_write = command.kind == RequestKind::Write;
                    served.submit(command, if is_write { vec![7; bytes] } else { Vec::new() }).unwrap();
                }
                if served.in_flight() == depth || (wanted.peek().is_none() && served.in_flight() > 0) {
                    served.step().unwrap();
                }
                while let Some(done) = served.pop_done() {
                    assert!(done.reply.is_ok());
                }
            }
            let found = served.finish().unwrap().summary;
            let of = |summary: &crate::metrics::summary::Summary| {
                let latency = serde_json::to_string(&summary.latency_ns).unwrap();
                (latency, summary.simulated_ns, serde_json::to_string(&summary.flash).unwrap())
            };
            assert_eq!(of(&found), of(&expected), "{depth} in flight");
            assert!(found.gc.runs > 0, "garbage was collected");
        }
    }

    /// Writes wait for space in the buffer while others arrive: each must keep its own bytes.
    #[test]
    fn the_bytes_of_a_write_travel_with_it() {
        let resolved = drive(&[]);
        let (options, mut go_on) = (options("served"), |_: crate::run::Progress| ControlFlow::Continue(()));
        let mut served = Served::new(&resolved, &options, &mut go_on).unwrap();
        served.begin_flights();
        let (mut rng, units) = (Rng::new(3, 0), 64);
        let (mut holds, mut reading) = (vec![0u8; units as usize], Vec::new());
        for number in 0..4000u64 {
            let unit = rng.below(units);
            let extent = Extent { sector: unit * 32, sectors: 32 };
            if rng.below(3) > 0 {
                holds[unit as usize] = number as u8;
                let write = Command::new(RequestKind::Write, extent);
                served.submit(write, vec![number as u8; 32 * SECTOR_BYTES as usize]).unwrap();
            } else if served.in_flight() == 0 {
                let read = Command::new(RequestKind::Read, extent);
                let Submitted::InFlight(flight) = served.submit(read, Vec::new()).unwrap() else { panic!() };
                reading.push((flight, holds[unit as usize]));
            }
            if number % 40 == 0 || !reading.is_empty() {
                while served.in_flight() > 0 {
                    served.step().unwrap();
                }
            }
            while let Some(done) = served.pop_done() {
                let bytes = done.reply.unwrap();
                if let Some(at) = reading.iter().position(|&(flight, _)| flight == done.flight && !bytes.is_empty()) {
                    let (_, byte) = reading.swap_remove(at);
                    assert!(bytes == [byte; 32 * SECTOR_BYTES as usize], "request {number}");
                }
            }
        }
        served.finish().unwrap();
    }

    #[test]
    fn a_power_cut_refuses_what_is_in_flight() {
        let resolved = drive(&["faults.power_cut_at=300"]);
        let (options, mut go_on) = (options("served"), |_: crate::run::Progress| ControlFlow::Continue(()));
        let mut served = Served::new(&resolved, &options, &mut go_on).unwrap();
        served.begin_flights();
        let mut cuts = 0;
        for number in 0..3000u64 {
            let extent = Extent { sector: number * 37 % 200 * 8, sectors: 8 };
            let bytes = vec![number as u8; 8 * SECTOR_BYTES as usize];
            let mut done = served.submit(Command::new(RequestKind::Write, extent), bytes).map(|_| ());
            while done.is_ok() && served.in_flight() > 8 {
                done = served.step();
            }
            while served.pop_done().is_some() {}
            match done {
                Ok(()) => {}
                Err(Failure::PowerLost) => {
                    cuts += 1;
                    assert_eq!(served.in_flight(), 0);
                }
                Err(failure) => panic!("{failure:?}"),
            }
        }
        assert_eq!(cuts, 1);
        while served.in_flight() > 0 {
            served.step().unwrap();
        }
        served.finish().unwrap();
    }
}
