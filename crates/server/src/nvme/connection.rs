//! A connected queue: receives commands and data, and serves them in batches.
//!
//! All whole commands that arrived together are served together, and answered in one write. The controller asks for the
//! data of a write that is not in the capsule by one R2T for all of it; the data is received into memory that becomes
//! memory of the drive. One write may always wait for data; more of them share a budget of all hosts, and commands
//! beyond it wait for their R2T. A malformed PDU is answered with a C2HTermReq and ends the connection.

use super::admin::{self, Context, Outcome};
use super::connect::disconnects;
use super::entry::{Command, FABRICS, Place};
use super::fused::{Failed, Pairs, Whole};
use super::io::{self, Plan};
use super::pdu::{self, Broken, Next, Pdu, broken};
use super::queue::{Completions, Queue};
use super::status::{self, Status};
use crate::input::{Input, Large};
use crate::patience::Share;
use crate::request::{Asked, PowerLost, Request};
use crate::wire::{Fault, Stream};
use std::collections::VecDeque;
use std::io as std_io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of requests served together: read data is still in the caches when sent.
const TOGETHER: u64 = 160 << 10;

/// Memory of received writes that is kept for the next ones.
const SPARE: usize = 4;

/// The drive and the replies of a connection.
pub trait Port {
    /// Serves `asked`, whose bytes are in `input`; `input` must be given back unchanged.
    ///
    /// # Errors
    /// [`PowerLost`]: the connection must end.
    fn serve(&mut self, asked: &[Asked], input: &mut Vec<u8>, out: &mut Completions) -> Result<(), PowerLost>;

    /// As [`Self::serve`], for one write of whole sectors that was received apart.
    ///
    /// # Errors
    /// As [`Self::serve`].
    fn serve_large(&mut self, asked: &Asked, large: &mut Large, out: &mut Completions) -> Result<(), PowerLost> {
        let (mut bytes, begin) = large.slab.lend();
        let mut asked = *asked;
        asked.request.iter_mut().filter_map(Request::bytes_at).for_each(|at| *at += begin);
        let served = self.serve(&[asked], &mut bytes, out);
        large.slab.take_back(bytes);
        served
    }

    /// Sends the answers, and forgets them.
    ///
    /// # Errors
    /// Errors of the connection.
    fn send(&mut self, out: &mut Completions) -> std_io::Result<()>;
}

/// A command whose data the host sends.
struct Transfer {
    command: Command,
    plan: Plan,
    large: Large,
    got: usize,
    /// Whether a data digest was wrong.
    is_damaged: bool,
    _share: Option<Share>,
}

/// A connected queue.
pub struct Connection<'c, S, P> {
    pub stream: &'c mut S,
    pub port: P,
    pub queue: Arc<Queue>,
    pub context: Context<'c>,
    /// Time limit of data that the controller asked for.
    pub timeout: Duration,
    input: Input,
    out: Completions,
    batch: Vec<Asked>,
    batch_bytes: u64,
    /// Transfers, by tag.
    transfers: Vec<Option<Transfer>>,
    /// Commands that wait for their R2T.
    waiting: VecDeque<(Command, Plan)>,
    pairs: Pairs,
    spare: Vec<Large>,
    /// Whether the last PDU brought data, so that more data probably follows.
    had_data: bool,
}

/// Why a connection ends, beside faults.
enum Stop {
    /// The host leaves.
    Left,
    Broken(Broken),
    Fault(Fault),
}

impl From<Broken> for Stop {
    fn from(broken: Broken) -> Self {
        Stop::Broken(broken)
    }
}

impl From<std_io::Error> for Stop {
    fn from(error: std_io::Error) -> Self {
        Stop::Fault(Fault::Io(error))
    }
}

impl From<PowerLost> for Stop {
    fn from(PowerLost: PowerLost) -> Self {
        Stop::Fault(Fault::PowerLost)
    }
}

impl<'c, S: Stream, P: Port> Connection<'c, S, P> {
    /// A connection whose unserved bytes are in `input`, and unsent answers in `response`.
    pub fn new(
        (stream, port, input): (&'c mut S, P, Input),
        (queue, response): (Arc<Queue>, Vec<u8>),
        context: Context<'c>,
        timeout: Duration,
        lends: bool,
    ) -> Self {
        let mut out = Completions::new(Arc::clone(&queue), lends);
        out.out.bytes = response;
        let (batch, transfers, waiting, spare) = (Vec::new(), Vec::new(), VecDeque::new(), Vec::new());
        let (batch_bytes, had_data) = (0, false);
        Connection {
            stream,
            port,
            queue,
            context,
            timeout,
            input,
            out,
            batch,
            batch_bytes,
            transfers,
            waiting,
            pairs: Pairs::default(),
            spare,
            had_data,
        }
    }

    /// Serves the queue until the host leaves.
    ///
    /// # Errors
    /// [`Fault`]: the connection must be closed.
    pub fn run(&mut self) -> Result<(), Fault> {
        let stop = loop {
            if let Err(stop) = self.turn() {
                break stop;
            }
        };
        match stop {
            Stop::Left => Ok(()),
            Stop::Fault(fault) => Err(fault),
            Stop::Broken(broken) => {
                let served = self.serve_batch();
                self.out.out.bytes.extend(pdu::terminate(&broken));
                let sent = self.port.send(&mut self.out);
                match (served, sent) {
                    (Err(Stop::Fault(fault)), _) => Err(fault),
                    (_, Err(error)) => Err(error.into()),
                    _ => Err(Fault::Protocol(broken.what)),
                }
            }
        }
    }

    fn is_admin(&self) -> bool {
        self.queue.number == 0
    }

    /// Handles the next PDU, or waits for more bytes.
    fn turn(&mut self) -> Result<(), Stop> {
        match pdu::next(&self.input.bytes[self.input.begin..self.input.end], &self.queue.terms)? {
            Next::Needs(needed) => self.wait(needed),
            Next::Pdu(pdu) => {
                self.had_data = pdu.kind == pdu::H2C_DATA;
                match pdu.kind {
                    pdu::COMMAND => self.receive_command(&pdu),
                    pdu::H2C_DATA => self.receive_data(&pdu),
                    pdu::H2C_TERM => Err(Stop::Left),
                    _ => Err(broken(pdu::WRONG_SEQUENCE, 0, self.header(&pdu), "a second ICReq").into()),
                }
            }
        }
    }

    fn header(&self, pdu: &Pdu) -> &[u8] {
        &self.input.bytes[self.input.begin..][pdu.header.clone()]
    }

    /// Serves and answers all that has arrived, and waits until `needed` bytes of the next PDU are there.
    fn wait(&mut self, needed: usize) -> Result<(), Stop> {
        self.serve_batch()?;
        if !self.out.out.is_empty() {
            self.port.send(&mut self.out)?;
        }
        // The bytes of data must not be received into the memory of messages.
        let alone = self.had_data && self.transfers.iter().any(Option::is_some);
        let needed = if alone { pdu::SHORT.max(needed) } else { needed };
        let is_begun = self.input.end > self.input.begin;
        if is_begun {
            self.stream.hold(0);
        } else {
            self.stream.await_until(self.deadline());
        }
        loop {
            let filled = self.input.fill(self.stream, needed, alone);
            let is_late = !is_begun && filled.as_ref().is_err_and(|error| error.kind() == std_io::ErrorKind::TimedOut);
            if is_late && self.transfers.iter().all(Option::is_none) {
                let what = "no keep-alive command came in time";
                return Err(Stop::Fault(Fault::Protocol(what.into())));
            }
            if !filled? {
                return Err(Stop::Left);
            }
            if !is_begun || self.input.end - self.input.begin >= needed {
                return Ok(());
            }
        }
    }

    /// When the next PDU must begin.
    fn deadline(&self) -> Option<Instant> {
        let keep_alive = if self.is_admin() { self.queue.controller.keep_alive_deadline() } else { None };
        let asks = self.transfers.iter().any(Option::is_some);
        let data = asks.then(|| Instant::now() + self.timeout);
        keep_alive.into_iter().chain(data).min()
    }

    fn serve_batch(&mut self) -> Result<(), Stop> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let served = self.port.serve(&self.batch, &mut self.input.bytes, &mut self.out);
        self.batch.clear();
        self.batch_bytes = 0;
        if served.is_err() {
            self.port.send(&mut self.out)?;
        }
        Ok(served?)
    }

    /// Adds a request to the batch; serves and answers the batch if there are enough.
    fn ask(&mut self, asked: &[Asked]) -> Result<(), Stop> {
        for asked in asked {
            self.batch.push(*asked);
            self.batch_bytes += match asked.request {
                Ok(Request::Read { length, .. } | Request::Write { length, .. } | Request::Directed { length, .. }) => {
                    u64::from(length)
                }
                _ => 0,
            };
        }
        if self.batch_bytes >= TOGETHER {
            self.serve_batch()?;
            self.port.send(&mut self.out)?;
        }
        Ok(())
    }

    fn receive_command(&mut self, pdu: &Pdu) -> Result<(), Stop> {
        let command = Command::new(self.header(pdu));
        if !self.queue.receive() {
            let what = "more commands are in flight than the queue has entries";
            return Err(broken(pdu::WRONG_SEQUENCE, 0, self.header(pdu), what).into());
        }
        let (begin, in_capsule) = (self.input.begin + pdu.data.start, pdu.data.len());
        let data = &self.input.bytes[begin..self.input.begin + pdu.data.end];
        let digest = self.input.begin + pdu.data.end;
        let is_damaged = pdu.has_data_digest && crc32c::crc32c(data) != pdu::u32_at(&self.input.bytes, digest);
        self.input.begin += pdu.end;
        if is_damaged {
            self.out.complete(command.id(), status::TRANSIENT_TRANSPORT_ERROR, 0);
            return Ok(());
        }
        if let Some(first) = self.pairs.incomplete(&command) {
            self.out.complete(first, status::FUSED_MISSING, 0);
        }
        let is_fused = command.fusion() != 0 && (self.is_admin() || command.opcode() == FABRICS);
        if let Err(wrong) = if is_fused { Err(status::INVALID_FIELD) } else { command.check_flags() } {
            self.out.complete(command.id(), wrong, 0);
            return Ok(());
        }
        self.plan(&command, begin, in_capsule)
    }

    /// Executes a command with its data.
    fn execute(&mut self, id: u16, outcome: Result<Outcome, Status>) -> Result<(), Stop> {
        match outcome {
            Err(status) => self.out.complete(id, status, 0),
            Ok(Outcome::Done(result)) => self.out.complete(id, status::SUCCESS, result),
            Ok(Outcome::Data(data)) => self.queue.complete_with(&mut self.out.out.bytes, id, &data),
            Ok(Outcome::DataAnd(data, result)) => {
                self.queue.complete_with_result(&mut self.out.out.bytes, id, &data, result);
            }
            Ok(Outcome::Requests(requests, result)) if requests.is_empty() => {
                self.out.complete(id, status::SUCCESS, result);
            }
            Ok(Outcome::Requests(requests, result)) => {
                return self.ask(&self.queue.ask_all(id, &requests, None, result));
            }
            Ok(Outcome::Flushed) => return self.ask(&[self.queue.ask(id, Request::Flush)]),
            Ok(Outcome::Later) => {}
        }
        Ok(())
    }

    /// Completes commands that failed together.
    fn fail(&mut self, failed: Failed) {
        failed.into_iter().for_each(|(id, status)| self.out.complete(id, status, 0));
    }

    /// Begins a command, with `in_capsule` bytes of data from `begin` of the input on.
    fn plan(&mut self, command: &Command, begin: usize, in_capsule: usize) -> Result<(), Stop> {
        let id = command.id();
        if self.is_admin() {
            let plan = Plan::Execute { bytes: admin::data_bytes(command) };
            let is_early = plan.brings() > 0 && !self.queue.controller.is_ready();
            let plan = if is_early { Err(status::SEQUENCE_ERROR) } else { Ok(plan) };
            return self.place(command, plan, begin, in_capsule);
        }
        if command.opcode() == FABRICS {
            if disconnects(command) {
                self.serve_batch()?;
                self.out.complete(id, status::SUCCESS, 0);
                self.port.send(&mut self.out)?;
                return Err(Stop::Left);
            }
            self.out.complete(id, status::INVALID_OPCODE, 0);
            return Ok(());
        }
        let planned = match (self.queue.controller.is_ready(), command.fusion()) {
            (false, _) => Err(status::SEQUENCE_ERROR),
            (true, 0) => io::plan(command, &self.context),
            (true, _) => match self.pairs.add(command, &self.context) {
                Ok(plan) => Ok(plan),
                Err(failed) => {
                    self.fail(failed);
                    return Ok(());
                }
            },
        };
        self.place(command, planned, begin, in_capsule)
    }

    /// Finds the data of a planned command, which may be `in_capsule` bytes of data from `begin` of the input on.
    fn place(
        &mut self,
        command: &Command,
        planned: Result<Plan, Status>,
        begin: usize,
        in_capsule: usize,
    ) -> Result<(), Stop> {
        let placed = planned.and_then(|plan| match plan.brings() {
            0 => Ok((plan, Place::Capsule(0))),
            bytes => command.data_from_host(bytes, in_capsule).map(|place| (plan, place)),
        });
        match placed {
            Err(status) if command.fusion() != 0 && self.queue.controller.is_ready() => {
                let failed = self.pairs.fail(command, status);
                self.fail(failed);
            }
            Err(status) => self.out.complete(command.id(), status, 0),
            Ok((plan, Place::Transport)) => {
                self.waiting.push_back((*command, plan));
                self.request_data();
            }
            Ok((plan, Place::Capsule(at))) => return self.begin(command, plan, begin + at),
        }
        Ok(())
    }

    /// Asks the drive for a command whose data begins at `at` of the input.
    fn begin(&mut self, command: &Command, plan: Plan, at: usize) -> Result<(), Stop> {
        let id = command.id();
        let data = &self.input.bytes[at..at + plan.brings() as usize];
        if command.fusion() != 0 {
            let added = self.pairs.add_data(command, data, &self.context);
            return self.swap(added);
        }
        plan.note_begin(self.context.subsystem);
        match plan {
            Plan::Ask(request) => self.ask(&[self.queue.ask(id, request)]),
            Plan::Write { offset, length, durable, directive } => {
                self.ask(&[self.asked(id, io::write(offset, length, at, durable, directive))])
            }
            Plan::Verify(read) => self.ask(&self.queue.ask_all(id, &[read], None, 0)),
            Plan::Compare { offset, length } => {
                self.ask(&self.queue.ask_all(id, &[Request::Read { offset, length }], Some(data.to_vec()), 0))
            }
            Plan::Execute { .. } => {
                let outcome = self.executed(command, data);
                self.execute(id, outcome)
            }
        }
    }

    /// A write, which completes with its block if it is a Zone Append.
    fn asked(&self, id: u16, write: Request) -> Asked {
        self.queue.ask(id, write).in_blocks(self.context.facts.block_bytes)
    }

    fn executed(&self, command: &Command, data: &[u8]) -> Result<Outcome, Status> {
        match self.is_admin() {
            true => admin::execute(command, data, &self.context),
            false => io::execute(command, data, &self.context),
        }
    }

    /// Serves a pair of fused commands whose data is whole.
    fn swap(&mut self, added: Result<Option<Whole>, Failed>) -> Result<(), Stop> {
        let Whole { ids, offset, length, durable, mut data } = match added {
            Ok(Some(whole)) => whole,
            Ok(None) => return Ok(()),
            Err(failed) => {
                self.fail(failed);
                return Ok(());
            }
        };
        self.serve_batch()?;
        let asked = self.queue.ask_pair(ids.0, ids.1, Request::Swap { offset, length, at: 0, durable });
        let served = self.port.serve(&[asked], &mut data, &mut self.out);
        if served.is_err() {
            self.port.send(&mut self.out)?;
        }
        Ok(served?)
    }

    /// Asks the host for data of waiting commands, as far as there is memory.
    fn request_data(&mut self) {
        while let Some(&(command, plan)) = self.waiting.front() {
            let (id, length) = (command.id(), plan.brings());
            let is_first = self.transfers.iter().all(Option::is_none);
            let share = self.context.subsystem.transfers.try_take(length.into());
            if share.is_none() && !is_first {
                return;
            }
            self.waiting.pop_front();
            let tag = self.transfers.iter().position(Option::is_none).unwrap_or(self.transfers.len());
            if tag == self.transfers.len() {
                self.transfers.push(None);
            }
            let large = Large::of(length as usize, self.spare.pop());
            let (got, is_damaged) = (0, false);
            self.transfers[tag] = Some(Transfer { command, plan, large, got, is_damaged, _share: share });
            self.had_data = true;
            pdu::append_r2t(&mut self.out.out.bytes, &self.queue.terms, id, tag as u16, length);
        }
    }

    /// Receives data that the controller asked for.
    fn receive_data(&mut self, pdu: &Pdu) -> Result<(), Stop> {
        let header = self.header(pdu).to_vec();
        let (command, tag) = (pdu::u16_at(&header, 8), usize::from(pdu::u16_at(&header, 10)));
        let (offset, length) = (pdu::u32_at(&header, 12) as usize, pdu::u32_at(&header, 16) as usize);
        let wrong = |field, what: &str| Err(broken(pdu::WRONG_FIELD, field, &header, what).into());
        let Some(transfer) = self.transfers.get_mut(tag).and_then(Option::as_mut) else {
            return wrong(10, "data for a tag that no R2T has");
        };
        let wanted = transfer.plan.brings() as usize;
        if command != transfer.command.id() {
            return wrong(8, "data for another command than the R2T's");
        }
        if offset != transfer.got || length > wanted - transfer.got {
            return Err(broken(pdu::OUT_OF_RANGE, 12, &header, "data out of order, or beyond the R2T").into());
        }
        if length != pdu.data.len() || pdu.is_last != (offset + length == wanted) {
            return wrong(16, "a length of data that does not fit its PDU, or its last PDU");
        }
        self.stream.hold(0);
        self.input.begin += pdu.data.start;
        let into = &mut transfer.large.slab[offset..offset + length];
        receive(self.stream, &mut self.input, into)?;
        if pdu.has_data_digest {
            let mut digest = [0; 4];
            receive(self.stream, &mut self.input, &mut digest)?;
            transfer.is_damaged |= crc32c::crc32c(into) != u32::from_le_bytes(digest);
        }
        transfer.got += length;
        match transfer.got == wanted {
            true => self.finish(tag),
            false => Ok(()),
        }
    }

    /// Serves a command whose data is complete.
    fn finish(&mut self, tag: usize) -> Result<(), Stop> {
        let Some(mut transfer) = self.transfers[tag].take() else { return Ok(()) };
        let (command, id) = (transfer.command, transfer.command.id());
        let is_fused = command.fusion() != 0;
        // The namespace may have changed while the data came.
        let planned = match self.is_admin() || is_fused {
            true => Ok(transfer.plan),
            false => io::plan(&command, &self.context),
        };
        let refusal = match planned {
            _ if transfer.is_damaged => Some(status::TRANSIENT_TRANSPORT_ERROR),
            Ok(plan) if plan == transfer.plan => None,
            Ok(_) => Some(status::NAMESPACE_NOT_READY),
            Err(status) => Some(status),
        };
        let data = &transfer.large.slab[..transfer.plan.brings() as usize];
        if let Some(status) = refusal {
            let failed = if is_fused { self.pairs.fail(&command, status) } else { vec![(id, status)] };
            self.fail(failed);
        } else if is_fused {
            let added = self.pairs.add_data(&command, data, &self.context);
            self.swap(added)?;
        } else if let Plan::Write { offset, length, durable, directive } = transfer.plan {
            transfer.plan.note_begin(self.context.subsystem);
            let asked = self.asked(id, io::write(offset, length, 0, durable, directive));
            let served = self.port.serve_large(&asked, &mut transfer.large, &mut self.out);
            if served.is_err() {
                self.port.send(&mut self.out)?;
            }
            served?;
        } else if let Plan::Compare { offset, length } = transfer.plan {
            self.ask(&self.queue.ask_all(id, &[Request::Read { offset, length }], Some(data.to_vec()), 0))?;
        } else {
            let outcome = self.executed(&command, data);
            self.execute(id, outcome)?;
        }
        if self.spare.len() < SPARE {
            self.spare.push(transfer.large);
        }
        self.request_data();
        Ok(())
    }
}

/// Fills `into` with the next bytes of the host.
fn receive(stream: &mut impl Stream, input: &mut Input, into: &mut [u8]) -> Result<(), Stop> {
    let here = (input.end - input.begin).min(into.len());
    into[..here].copy_from_slice(&input.bytes[input.begin..input.begin + here]);
    input.begin += here;
    Ok(stream.read_exact(&mut into[here..])?)
}
