//! The answers of one queue: response capsules and data, at once or from the thread of a drive with a clock.
//!
//! A command may consist of several requests to the drive, or compare data: a [`Held`] command has one completion, with
//! the first failure.

use super::controller::Controller;
use super::entry::completion;
use super::pdu::{self, Terms};
use super::status::{self, Status};
use super::zones;
use crate::request::{Answers, Asked, Directive, Outgoing, Refusal, Request};
use palimpsest_lab::nand::data::buffers::slabs::Loan;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Mark in a cookie: the command is in [`Queue::held`].
const HELD: u64 = 1 << 16;

/// Place in a cookie: log2 of the bytes of a block, if the command completes with the block of a Zone Append.
const BLOCK: u32 = 24;

impl Asked {
    /// The same command, which completes with its block of `block_bytes` bytes if it is a Zone Append.
    #[must_use]
    pub fn in_blocks(mut self, block_bytes: u32) -> Asked {
        if matches!(self.request, Ok(Request::Directed { directive: Directive::Append, .. })) {
            self.cookie |= u64::from(block_bytes.trailing_zeros()) << BLOCK;
        }
        self
    }
}

/// The result of a command that succeeds.
fn result_of(asked: &Asked) -> u64 {
    match (asked.cookie >> BLOCK, asked.request) {
        (0, _) => 0,
        (log2, Ok(Request::Directed { offset, .. })) => offset >> log2,
        _ => 0,
    }
}
/// Mark in a cookie: the request is a pair of fused commands, the first of which has its identifier in the high half.
const PAIR: u64 = 1 << 17;

/// A command with one completion for several requests, or with data to compare.
pub struct Held {
    /// Requests without an answer.
    pub left: u32,
    pub status: Status,
    /// The data that a read must return.
    pub expected: Option<Vec<u8>>,
    /// The result of success.
    pub result: u64,
}

/// The state of a queue that its connection and the drive's thread share.
pub struct Queue {
    pub terms: Terms,
    pub controller: Arc<Controller>,
    /// Number of the queue; 0 is the admin queue.
    pub number: u16,
    /// Entries of the queue.
    pub size: u16,
    /// Whether the host ignores the queue's head, so that data may complete a command.
    pub no_flow_control: bool,
    /// Received commands, modulo the size.
    received: AtomicU32,
    /// Commands without a completion.
    in_flight: AtomicU32,
    held: Mutex<BTreeMap<u16, Held>>,
}

impl Queue {
    pub fn new(terms: Terms, controller: Arc<Controller>, number: u16, size: u16, no_flow_control: bool) -> Self {
        let (received, in_flight, held) = (AtomicU32::new(0), AtomicU32::new(0), Mutex::default());
        Queue { terms, controller, number, size, no_flow_control, received, in_flight, held }
    }

    /// Counts a received command; returns whether the queue has room for it.
    pub fn receive(&self) -> bool {
        let next = (self.received.load(Ordering::Relaxed) + 1) % u32::from(self.size.max(1));
        self.received.store(next, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed) < u32::from(self.size)
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<u16, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request of a command that consists of `request` only.
    pub fn ask(&self, id: u16, request: Request) -> Asked {
        Asked { cookie: u64::from(id), request: Ok(request), is_read: matches!(request, Request::Read { .. }) }
    }

    /// Requests of a command that completes with the last of them.
    pub fn ask_all(&self, id: u16, requests: &[Request], expected: Option<Vec<u8>>, result: u64) -> Vec<Asked> {
        let held = Held { left: requests.len() as u32, status: status::SUCCESS, expected, result };
        self.held().insert(id, held);
        requests.iter().map(|&request| Asked { cookie: u64::from(id) | HELD, ..self.ask(id, request) }).collect()
    }

    /// The request of the fused commands `first` and `second`.
    pub fn ask_pair(&self, first: u16, second: u16, request: Request) -> Asked {
        Asked { cookie: u64::from(second) | PAIR | u64::from(first) << 32, ..self.ask(second, request) }
    }

    /// Appends the completions of a pair of fused commands.
    fn answer_pair(&self, into: &mut Vec<u8>, asked: &Asked, answer: Result<(), Refusal>) {
        let (first, second) = match answer {
            Ok(()) => (status::SUCCESS, status::SUCCESS),
            // The data was equal, but could not be written.
            Err(Refusal::WornOut) => (status::SUCCESS, status::WRITE_PROTECTED),
            Err(why) => (status_of(why), status::FUSED_FAILED),
        };
        self.complete(into, (asked.cookie >> 32) as u16, first, 0);
        self.complete(into, asked.cookie as u16, second, 0);
    }

    /// Appends the completion of a command.
    pub fn complete(&self, into: &mut Vec<u8>, id: u16, status: Status, result: u64) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        if status != status::SUCCESS {
            self.controller.note_error(self.number, id, status);
        }
        let head = match self.no_flow_control {
            true => u16::MAX,
            false => self.received.load(Ordering::Relaxed) as u16,
        };
        pdu::append_response(into, &self.terms, &completion(id, status, result, head));
    }

    /// Appends the data of a command, which succeeds.
    pub fn complete_with(&self, into: &mut Vec<u8>, id: u16, data: &[u8]) {
        self.begin_data(into, id, data.len() as u32);
        into.extend_from_slice(data);
        let digest = if self.terms.data_digest { crc32c::crc32c(data) } else { 0 };
        self.end_data(into, id, digest);
    }

    /// Appends the data of a command, which succeeds with `result`.
    pub fn complete_with_result(&self, into: &mut Vec<u8>, id: u16, data: &[u8], result: u64) {
        pdu::append_data(into, &self.terms, id, data.len() as u32, false);
        into.extend_from_slice(data);
        if self.terms.data_digest {
            into.extend(crc32c::crc32c(data).to_le_bytes());
        }
        self.complete(into, id, status::SUCCESS, result);
    }

    fn begin_data(&self, into: &mut Vec<u8>, id: u16, length: u32) {
        pdu::append_data(into, &self.terms, id, length, self.no_flow_control);
    }

    fn end_data(&self, into: &mut Vec<u8>, id: u16, digest: u32) {
        if self.terms.data_digest {
            into.extend(digest.to_le_bytes());
        }
        match self.no_flow_control {
            true => drop(self.in_flight.fetch_sub(1, Ordering::Relaxed)),
            false => self.complete(into, id, status::SUCCESS, 0),
        }
    }

    /// Counts the answer to a request of a held command; the last one completes the command.
    fn answer_held(&self, into: &mut Vec<u8>, id: u16, status: Status, found: Option<&[u8]>) {
        let mut all = self.held();
        let Some(held) = all.get_mut(&id) else { return };
        let differs = held.expected.as_deref().zip(found).is_some_and(|(expected, found)| expected != found);
        let status = if differs { status::COMPARE_FAILURE } else { status };
        if held.status == status::SUCCESS {
            held.status = status;
        }
        held.left = held.left.saturating_sub(1);
        if held.left == 0 {
            let (status, result) = (held.status, if held.status == status::SUCCESS { held.result } else { 0 });
            all.remove(&id);
            drop(all);
            self.complete(into, id, status, result);
        }
    }

    /// The drive has done `asked`. The admin queue asks for single flushes only to shut the controller down.
    fn note_done(&self, asked: &Asked) {
        if self.number == 0 && asked.cookie & HELD == 0 && matches!(asked.request, Ok(Request::Flush)) {
            self.controller.flushed();
        }
    }

    /// The answer of a drive with a clock.
    pub fn answer(&self, asked: &Asked, answer: Result<Option<Vec<u8>>, Refusal>) -> Vec<u8> {
        let (mut reply, id) = (Vec::new(), asked.cookie as u16);
        let status = answer.as_ref().map_or_else(|&why| status_of(why), |_| status::SUCCESS);
        if answer.is_ok() {
            self.note_done(asked);
        }
        if asked.cookie & PAIR != 0 {
            self.answer_pair(&mut reply, asked, answer.map(drop));
            return reply;
        }
        let bytes = answer.ok().flatten().filter(|_| asked.is_read);
        match (asked.cookie & HELD != 0, bytes) {
            (false, Some(bytes)) => self.complete_with(&mut reply, id, &bytes),
            (false, None) => self.complete(&mut reply, id, status, if status == 0 { result_of(asked) } else { 0 }),
            (true, bytes) => self.answer_held(&mut reply, id, status, bytes.as_deref()),
        }
        reply
    }
}

/// The status of a refusal.
fn status_of(why: Refusal) -> Status {
    match why {
        Refusal::Unreadable => status::UNRECOVERED_READ,
        Refusal::Differs => status::COMPARE_FAILURE,
        Refusal::WornOut => status::WRITE_PROTECTED,
        Refusal::Ending => status::ABORTED_BY_DELETION,
        Refusal::Failed | Refusal::PowerLost => status::INTERNAL_ERROR,
        Refusal::Malformed(_) | Refusal::Unaligned => status::INVALID_FIELD,
        Refusal::Zone(error) => zones::status_of(error),
    }
}

/// Answers of a queue to send.
pub struct Completions {
    pub out: Outgoing,
    pub queue: Arc<Queue>,
    pub lends: bool,
    /// Loans of the current read.
    found: Vec<Loan>,
    /// Bytes of a read that the host does not get.
    unsent: Vec<u8>,
}

impl Completions {
    pub fn new(queue: Arc<Queue>, lends: bool) -> Self {
        Completions { out: Outgoing::default(), queue, lends, found: Vec::new(), unsent: Vec::new() }
    }

    /// Appends the completion of a command.
    pub fn complete(&mut self, id: u16, status: Status, result: u64) {
        self.queue.complete(&mut self.out.bytes, id, status, result);
    }
}

impl Answers for Completions {
    fn done(&mut self, asked: &Asked) {
        let (queue, id) = (&self.queue, asked.cookie as u16);
        queue.note_done(asked);
        match asked.cookie & (HELD | PAIR) {
            0 => queue.complete(&mut self.out.bytes, id, status::SUCCESS, result_of(asked)),
            PAIR => queue.answer_pair(&mut self.out.bytes, asked, Ok(())),
            _ => queue.answer_held(&mut self.out.bytes, id, status::SUCCESS, None),
        }
    }

    fn refuse(&mut self, asked: &Asked, why: Refusal) {
        let (queue, id) = (&self.queue, asked.cookie as u16);
        match asked.cookie & (HELD | PAIR) {
            0 => queue.complete(&mut self.out.bytes, id, status_of(why), 0),
            PAIR => queue.answer_pair(&mut self.out.bytes, asked, Err(why)),
            _ => queue.answer_held(&mut self.out.bytes, id, status_of(why), None),
        }
    }

    fn lends(&self) -> bool {
        self.lends
    }

    fn read<E>(
        &mut self,
        asked: &Asked,
        _offset: u64,
        length: u32,
        fill: impl FnOnce(&mut Vec<u8>, &mut Vec<Loan>) -> Result<(), E>,
    ) -> Result<(), E> {
        let id = asked.cookie as u16;
        if asked.cookie & HELD != 0 {
            self.unsent.clear();
            fill(&mut self.unsent, &mut self.found)?;
            self.found.drain(..).for_each(|loan| self.unsent.extend_from_slice(&loan));
            self.queue.answer_held(&mut self.out.bytes, id, status::SUCCESS, Some(&self.unsent));
            self.unsent.shrink_to(1 << 16);
            return Ok(());
        }
        let (queue, bytes) = (Arc::clone(&self.queue), &mut self.out.bytes);
        let begin = bytes.len();
        queue.begin_data(bytes, id, length);
        let data = bytes.len();
        if let Err(error) = fill(bytes, &mut self.found) {
            bytes.truncate(begin);
            return Err(error);
        }
        let lent: usize = self.found.iter().map(|loan| loan.len()).sum();
        assert_eq!(bytes.len() - data + lent, length as usize, "a read has the bytes that were asked for");
        let mut digest = 0;
        if queue.terms.data_digest {
            digest = crc32c::crc32c(&bytes[data..]);
            digest = self.found.iter().fold(digest, |digest, loan| crc32c::crc32c_append(digest, loan));
        }
        self.out.lend(self.found.drain(..));
        queue.end_data(&mut self.out.bytes, id, digest);
        Ok(())
    }
}
