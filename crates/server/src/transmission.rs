//! The transmission phase: requests and replies.
//!
//! A client may send many requests before reading a reply: all whole requests are served together, in order, and
//! answered in one write. One thread serves large reads and writes while another receives the next request, because
//! computing fingerprints takes as long as the transfer. A message larger than the memory of a connection is served
//! alone, with memory that all clients share. A refused request has no effect and the connection continues; a malformed
//! message ends it. A power cut is answered with an error and ends the connection: a client that reconnects knows that
//! unflushed writes may be lost. Ignored: fragments of a read.

use crate::handshake::Export;
use crate::input::{HEADER, Input, KEPT, LARGE, Large};
use crate::request::{Answers, Asked, Outgoing, PowerLost, Refusal, Request};
use crate::wire::{self, Fault, Fields, Stream};
use palimpsest_lab::nand::data::buffers::slabs::Loan;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of messages served together: read data is still in the caches when sent.
const TOGETHER: usize = 160 << 10;

/// A server of requests.
pub trait Target {
    /// Serves `asked` in order, and puts an answer to each into `replies`. `input` holds the bytes of writes, and must
    /// be given back unchanged.
    ///
    /// # Errors
    /// [`PowerLost`]; every request has an answer nevertheless.
    fn serve(&mut self, asked: &[Asked], input: &mut Vec<u8>, replies: &mut Replies) -> Result<(), PowerLost>;

    /// As [`Self::serve`], for one write of whole sectors that was received apart.
    fn serve_large(&mut self, asked: &Asked, large: &mut Large, replies: &mut Replies) -> Result<(), PowerLost> {
        let (mut bytes, begin) = large.slab.lend();
        let mut asked = *asked;
        if let Ok(Request::Write { at, .. }) = &mut asked.request {
            *at += begin;
        }
        let served = self.serve(&[asked], &mut bytes, replies);
        large.slab.take_back(bytes);
        served
    }

    /// Whether replies may lend memory of the drive.
    fn lends(&self) -> bool {
        false
    }

    /// Sends the replies, and forgets them.
    fn send(&mut self, stream: &mut dyn io::Write, replies: &mut Replies) -> io::Result<()> {
        let sent = replies.out.write_to(stream);
        replies.clear();
        sent
    }
}

/// Replies in the form agreed with the client.
#[derive(Default)]
pub struct Replies {
    out: Outgoing,
    structured: bool,
    /// Whether replies may lend memory of the drive.
    pub lends: bool,
    /// Loans of the current read.
    found: Vec<Loan>,
}

impl Replies {
    pub fn new(structured: bool) -> Self {
        Replies { structured, ..Replies::default() }
    }

    /// Takes the bytes of the replies.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out.bytes)
    }

    /// The cookie of the simple reply in `bytes`, with the data of a read or the error.
    pub fn parse(bytes: &[u8]) -> (u64, Result<&[u8], u32>) {
        let mut fields = Fields(bytes);
        let mut head = || (fields.u32(), fields.u32(), fields.u64());
        let (_, Some(error), Some(cookie)) = head() else { return (0, Err(wire::EIO)) };
        (cookie, if error == 0 { Ok(fields.0) } else { Err(error) })
    }

    /// The bytes of the replies.
    pub fn bytes(&self) -> &[u8] {
        &self.out.bytes
    }

    /// Forgets the replies and their loans, and keeps the memory.
    pub fn clear(&mut self) {
        self.out.clear();
    }

    fn simple(&mut self, cookie: u64, error: u32) {
        let bytes = &mut self.out.bytes;
        bytes.extend(wire::REPLY_MAGIC.to_be_bytes());
        bytes.extend(error.to_be_bytes());
        bytes.extend(cookie.to_be_bytes());
    }

    fn chunk(&mut self, cookie: u64, kind: u16, length: u32) {
        let bytes = &mut self.out.bytes;
        bytes.extend(wire::CHUNK_MAGIC.to_be_bytes());
        bytes.extend(wire::CHUNK_DONE.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend(cookie.to_be_bytes());
        bytes.extend(length.to_be_bytes());
    }

    /// The answer to `asked`: `answer` has the bytes of a read.
    pub fn of(structured: bool, asked: &Asked, answer: Result<Option<Vec<u8>>, Refusal>) -> Vec<u8> {
        let mut replies = Replies::new(structured);
        match (asked.request, answer) {
            (_, Err(why)) => replies.refuse(asked, why),
            (Ok(Request::Read { offset, length }), Ok(Some(bytes))) => {
                let fill = |into: &mut Vec<u8>, _: &mut Vec<Loan>| {
                    into.extend_from_slice(&bytes);
                    Ok::<(), ()>(())
                };
                replies.read(asked, offset, length, fill).expect("the bytes are there");
            }
            _ => replies.done(asked),
        }
        replies.take()
    }
}

impl Answers for Replies {
    fn done(&mut self, asked: &Asked) {
        self.simple(asked.cookie, 0);
    }

    fn refuse(&mut self, asked: &Asked, why: Refusal) {
        let error = why.errno();
        if !(self.structured && asked.is_read) {
            return self.simple(asked.cookie, error);
        }
        self.chunk(asked.cookie, wire::CHUNK_ERROR, 6);
        self.out.bytes.extend(error.to_be_bytes());
        self.out.bytes.extend(0u16.to_be_bytes());
    }

    fn lends(&self) -> bool {
        self.lends
    }

    fn read<E>(
        &mut self,
        asked: &Asked,
        offset: u64,
        length: u32,
        fill: impl FnOnce(&mut Vec<u8>, &mut Vec<Loan>) -> Result<(), E>,
    ) -> Result<(), E> {
        let begin = self.out.bytes.len();
        if self.structured {
            self.chunk(asked.cookie, wire::CHUNK_DATA, length + 8);
            self.out.bytes.extend(offset.to_be_bytes());
        } else {
            self.simple(asked.cookie, 0);
        }
        let data = self.out.bytes.len();
        let filled = fill(&mut self.out.bytes, &mut self.found);
        match filled {
            Ok(()) => {
                let lent: usize = self.found.iter().map(|loan| loan.len()).sum();
                let bytes = self.out.bytes.len() - data + lent;
                assert_eq!(bytes, length as usize, "a read has the bytes that were asked for");
                self.out.lend(self.found.drain(..));
            }
            Err(_) => self.out.bytes.truncate(begin),
        }
        filled
    }
}

enum Next {
    /// A whole message, and the number of bytes.
    Message(Asked, usize),
    /// A part of a message of so many bytes, or of a header; with the write, if valid.
    Part(usize, Option<Asked>),
    /// A write that is too long, and the number of bytes.
    TooLong(Asked, u64),
    End,
}

/// The incoming bytes of a client, for the thread that may receive.
struct Incoming<'t, S> {
    stream: &'t mut S,
    input: Input,
    export: &'t Export,
    /// Whether the last message was a large write that was received apart.
    was_large: bool,
    /// Valid requests so far.
    served: u64,
    ended: Option<Result<(), Fault>>,
}

enum Came {
    /// Messages to serve together.
    Batch,
    /// A large write to serve alone while another thread receives.
    Large(Asked),
    /// Large reads to serve while another thread receives.
    Reads,
    Part,
    /// A refused message, whose bytes are dropped.
    Refused(Asked),
    End,
}

impl<S: Stream> Incoming<'_, S> {
    /// Waits for the next messages: a `batch`, or one write whose bytes are in `large`.
    fn receive(&mut self, batch: &mut Vec<Asked>, large: &mut Large) -> Result<Came, Fault> {
        batch.clear();
        let next = collect(&mut self.input, self.export, batch)?;
        if !batch.is_empty() {
            self.was_large = false;
            self.served += batch.iter().filter(|asked| asked.request.is_ok()).count() as u64;
            if are_large_reads(batch) {
                self.stream.await_message();
                return Ok(Came::Reads);
            }
            return Ok(Came::Batch);
        }
        let (stream, input) = (&mut *self.stream, &mut self.input);
        match next {
            Next::End => Ok(Came::End),
            Next::TooLong(asked, bytes) => {
                stream.hold(0);
                input.skip(stream, HEADER as u64 + bytes)?;
                Ok(Came::Refused(asked))
            }
            Next::Part(
                _,
                Some(Asked { request: Ok(Request::Write { offset, length, durable, .. }), cookie, is_read }),
            ) if Large::takes(offset, length) => {
                stream.hold(0);
                large.receive(stream, input, length as usize)?;
                (self.was_large, self.served) = (true, self.served + 1);
                stream.await_message();
                let request = Ok(Request::Write { offset, length, at: 0, durable });
                Ok(Came::Large(Asked { request, cookie, is_read }))
            }
            Next::Part(needed, _) => {
                // Another large write may follow.
                let alone = self.was_large && needed == HEADER;
                if input.end > input.begin {
                    stream.hold(if needed > KEPT { needed as u64 } else { 0 });
                    // A begun message must be received whole.
                    while input.end - input.begin < needed {
                        input.fill(stream, needed, alone)?;
                    }
                } else if !input.fill(stream, needed, alone)? {
                    return Ok(Came::End);
                }
                Ok(Came::Part)
            }
            Next::Message(..) => unreachable!("messages are in the batch"),
        }
    }
}

/// The shared part of a connection.
struct Shared<'t, S, W> {
    incoming: Mutex<Incoming<'t, S>>,
    writer: Mutex<W>,
    structured: bool,
    hang_up: &'t (dyn Fn() + Sync),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Stream, W: Write> Shared<'_, S, W> {
    /// Receives and serves, in turn with other threads, until the connection ends. Calls `large_begins` before
    /// serving a large request.
    fn work(&self, target: &mut dyn Target, large_begins: &mut dyn FnMut()) {
        let (mut replies, mut batch, mut large) = (Replies::new(self.structured), Vec::new(), Large::default());
        replies.lends = target.lends();
        loop {
            let mut incoming = lock(&self.incoming);
            if incoming.ended.is_some() {
                return;
            }
            let done = match incoming.receive(&mut batch, &mut large) {
                Err(fault) => Err(fault),
                Ok(Came::Part) => continue,
                Ok(Came::End) => {
                    incoming.ended = Some(Ok(()));
                    return;
                }
                Ok(Came::Refused(asked)) => {
                    replies.refuse(&asked, Refusal::Malformed(wire::EINVAL));
                    let sent = self.finish(target, &mut replies, Ok(()));
                    incoming.stream.await_message();
                    sent
                }
                Ok(Came::Batch) => self.serve(&mut incoming, &batch, target, &mut replies),
                Ok(apart @ (Came::Large(_) | Came::Reads)) => {
                    drop(incoming);
                    large_begins();
                    let lost = match apart {
                        Came::Large(asked) => target.serve_large(&asked, &mut large, &mut replies),
                        _ => target.serve(&batch, &mut Vec::new(), &mut replies),
                    };
                    let served = self.finish(target, &mut replies, lost);
                    if served.is_ok() {
                        continue;
                    }
                    // Wakes the thread that waits for the next message.
                    (self.hang_up)();
                    incoming = lock(&self.incoming);
                    served
                }
            };
            if let Err(fault) = done {
                incoming.ended.get_or_insert(Err(fault));
                return;
            }
        }
    }

    /// Serves `batch` and sends the replies while no other thread receives.
    fn serve(
        &self,
        incoming: &mut Incoming<'_, S>,
        batch: &[Asked],
        target: &mut dyn Target,
        replies: &mut Replies,
    ) -> Result<(), Fault> {
        let large = batch.iter().map(kept_bytes).max().filter(|&bytes| bytes > KEPT);
        if let Some(Asked { request: Ok(Request::Read { .. }), .. }) = batch.first()
            && let Some(bytes) = large
        {
            incoming.stream.hold(bytes as u64);
        }
        let lost = target.serve(batch, &mut incoming.input.bytes, replies);
        let finished = self.finish(target, replies, lost);
        if large.is_some() {
            replies.out.bytes.shrink_to(KEPT);
            incoming.input.shrink();
        }
        finished?;
        incoming.stream.await_message();
        Ok(())
    }

    /// Sends the replies of served requests; `lost` says whether the power failed.
    fn finish(&self, target: &mut dyn Target, replies: &mut Replies, lost: Result<(), PowerLost>) -> Result<(), Fault> {
        target.send(&mut *lock(&self.writer), replies)?;
        lost.map_err(|PowerLost| Fault::PowerLost)
    }
}

/// Serves requests until the client disconnects; returns the number of valid ones. One of up to `threads` threads
/// receives while others serve large requests, each by one of `targets`. Replies go to `writer`; `hang_up` ends the
/// connection.
///
/// # Errors
/// [`Fault`]: the connection must be closed.
pub fn transmit<T: Target>(
    (stream, writer): (&mut (impl Stream + Send), impl Write + Send),
    (export, structured): (&Export, bool),
    targets: &(impl Fn() -> T + Sync),
    threads: usize,
    hang_up: &(dyn Fn() + Sync),
) -> Result<u64, Fault> {
    stream.await_message();
    let incoming = Incoming { stream, input: Input::default(), export, was_large: false, served: 0, ended: None };
    let shared = Shared { incoming: Mutex::new(incoming), writer: Mutex::new(writer), structured, hang_up };
    std::thread::scope(|scope| {
        let (mut left, shared) = (threads - 1, &shared);
        shared.work(&mut targets(), &mut || {
            for _ in 0..std::mem::take(&mut left) {
                // Without a second thread this one serves all requests.
                let begun = move || shared.work(&mut targets(), &mut || {});
                let _ = std::thread::Builder::new().spawn_scoped(scope, begun);
            }
        });
    });
    let Incoming { served, ended, .. } = shared.incoming.into_inner().unwrap_or_else(PoisonError::into_inner);
    ended.unwrap_or(Ok(())).map(|()| served)
}

/// Whether `batch` holds reads only, and the largest is large but fits the memory for replies.
fn are_large_reads(batch: &[Asked]) -> bool {
    let bytes = |asked: &Asked| match asked.request {
        Ok(Request::Read { length, .. }) => Some(length),
        _ => None,
    };
    let most = batch.iter().map(bytes).try_fold(0, |most, bytes| Some(bytes?.max(most)));
    most.is_some_and(|most| LARGE.contains(&most))
}

/// Bytes of memory for a message, or for a reply.
fn kept_bytes(asked: &Asked) -> usize {
    match asked.request {
        Ok(Request::Read { length, .. } | Request::Write { length, .. }) => length as usize + HEADER,
        _ => HEADER,
    }
}

/// Moves whole messages from the input into `batch`, as many as are served together; a large one stays alone. Returns
/// the next message.
fn collect(input: &mut Input, export: &Export, batch: &mut Vec<Asked>) -> Result<Next, Fault> {
    let mut bytes = 0;
    loop {
        let found = next(input, export)?;
        let Next::Message(asked, length) = found else { return Ok(found) };
        bytes += kept_bytes(&asked);
        if bytes > TOGETHER && !batch.is_empty() {
            return Ok(found);
        }
        input.begin += length;
        batch.push(asked);
    }
}

/// The next message, which stays in the input.
fn next(input: &Input, export: &Export) -> Result<Next, Fault> {
    let here = &input.bytes[input.begin..input.end];
    if here.len() < HEADER {
        return Ok(Next::Part(HEADER, None));
    }
    let mut fields = Fields(&here[..HEADER]);
    if fields.u32() != Some(wire::REQUEST_MAGIC) {
        return Err(Fault::Protocol("a request does not begin with the magic number of requests".into()));
    }
    let mut all = || Some((fields.u16()?, fields.u16()?, fields.u64()?, fields.u64()?, fields.u32()?));
    let (flags, command, cookie, offset, length) = all().expect("a header has 28 bytes");
    let (is_read, mut size) = (command == wire::CMD_READ, HEADER);
    if command == wire::CMD_DISC {
        return Ok(Next::End);
    }
    if command == wire::CMD_WRITE {
        if length > wire::MAX_BYTES {
            let asked = Asked { cookie, request: Err(wire::EINVAL), is_read };
            return Ok(Next::TooLong(asked, u64::from(length)));
        }
        size += length as usize;
    }
    let request = checked(flags, command, offset, length, input.begin + HEADER, export);
    let asked = Asked { cookie, request, is_read };
    if here.len() < size {
        return Ok(Next::Part(size, request.is_ok().then_some(asked)));
    }
    Ok(Next::Message(asked, size))
}

/// The request of a message, or the error of a wrong one.
fn checked(flags: u16, command: u16, offset: u64, length: u32, at: usize, export: &Export) -> Result<Request, u32> {
    let allowed = match command {
        wire::CMD_READ => wire::CMD_FLAG_FUA | wire::CMD_FLAG_DF,
        wire::CMD_WRITE_ZEROES => wire::CMD_FLAG_FUA | wire::CMD_FLAG_NO_HOLE,
        _ => wire::CMD_FLAG_FUA,
    };
    let beyond = offset.checked_add(u64::from(length)).is_none_or(|end| end > export.bytes);
    let durable = flags & wire::CMD_FLAG_FUA != 0;
    match command {
        _ if flags & !allowed != 0 => Err(wire::EINVAL),
        wire::CMD_FLUSH => Ok(Request::Flush),
        _ if length == 0 => Err(wire::EINVAL),
        wire::CMD_READ if beyond || length > wire::MAX_BYTES => Err(wire::EINVAL),
        wire::CMD_READ => Ok(Request::Read { offset, length }),
        wire::CMD_WRITE | wire::CMD_WRITE_ZEROES if beyond => Err(wire::ENOSPC),
        wire::CMD_WRITE => Ok(Request::Write { offset, length, at, durable }),
        wire::CMD_WRITE_ZEROES => {
            Ok(Request::Zero { offset, length, unmap: flags & wire::CMD_FLAG_NO_HOLE == 0, durable })
        }
        wire::CMD_TRIM if beyond => Err(wire::EINVAL),
        wire::CMD_TRIM => Ok(Request::Trim { offset, length, durable }),
        _ => Err(wire::EINVAL),
    }
}
