//! The transmission phase: requests and replies.
//!
//! A client may send many requests before it reads a reply: all that have come whole are served together, in order, and
//! answered in one write. Large reads and writes are served while another thread receives the next: finding out the
//! fingerprints takes as long as receiving or sending the bytes. A message that is larger than what a connection keeps is
//! served alone, with memory that all clients share. A refused request has no effect and the connection continues; a
//! malformed message ends it. A power cut of the drive is answered with an error, and ends it: a client that connects again
//! knows that what it had not flushed may be lost. Ignored: fragments of a read.

use crate::handshake::Export;
use crate::input::{HEADER, Input, KEPT, LARGE, Large};
use crate::wire::{self, Fault, Fields, Stream};
use palimpsest_lab::nand::data::buffers::slabs::Loan;
use std::io::{self, IoSlice, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of messages that are served together, so that what is read from the drive is still in the caches when it is sent.
const TOGETHER: usize = 160 << 10;

/// A request to the drive, in bytes at any alignment, within its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// The bytes of a range.
    Read {
        /// First byte.
        offset: u64,
        /// Length, at least one.
        length: u32,
    },
    /// New bytes for a range.
    Write {
        /// First byte.
        offset: u64,
        /// Length, at least one.
        length: u32,
        /// Where the bytes begin in what the client has sent.
        at: usize,
        /// Whether the write must be durable before the reply.
        durable: bool,
    },
    /// Zeroes for a range.
    Zero {
        /// First byte.
        offset: u64,
        /// Length, at least one.
        length: u32,
        /// Whether the range may be unmapped.
        unmap: bool,
        /// Whether the zeroes must be durable before the reply.
        durable: bool,
    },
    /// Unmap a range.
    Trim {
        /// First byte.
        offset: u64,
        /// Length, at least one.
        length: u32,
        /// Whether all that was written before must be durable before the reply.
        durable: bool,
    },
    /// Make everything durable.
    Flush,
}

/// A message of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The client's name of it.
    pub cookie: u64,
    /// Its request, or the error that it is refused with.
    pub request: Result<Request, u32>,
    /// Whether it is a read, refused or not: its reply has another form.
    pub is_read: bool,
}

/// The power of the drive failed since the client connected: the connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerLost;

/// What serves requests.
pub trait Target {
    /// Serves `asked` in order, and puts the answer of each into `replies`. Bytes of writes are in `input`, which is given back as it
    /// was.
    ///
    /// # Errors
    /// [`PowerLost`]; all have an answer nevertheless.
    fn serve(&mut self, asked: &[Asked], input: &mut Vec<u8>, replies: &mut Replies) -> Result<(), PowerLost>;

    /// As [`Self::serve`], for one write of whole sectors that was received apart.
    ///
    /// # Errors
    /// As [`Self::serve`].
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

    /// Whether replies may have memory of the drive.
    fn lends(&self) -> bool {
        false
    }

    /// Sends the replies that there are, and forgets them.
    ///
    /// # Errors
    /// Those of the connection.
    fn send(&mut self, stream: &mut dyn io::Write, replies: &mut Replies) -> io::Result<()> {
        let sent = replies.write_to(stream);
        replies.clear();
        sent
    }
}

/// Replies in the form that was agreed with the client.
#[derive(Default)]
pub struct Replies {
    bytes: Vec<u8>,
    structured: bool,
    /// Whether there may be loans.
    pub lends: bool,
    /// Memory of the drive, each behind so many of the bytes.
    loans: Vec<(usize, Loan)>,
    /// Those of one read.
    found: Vec<Loan>,
}

impl Replies {
    /// None yet.
    pub fn new(structured: bool) -> Self {
        Replies { structured, ..Replies::default() }
    }

    /// Takes the replies so far: what goes to the client.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// The cookie of the simple reply that is all of `bytes`, and the bytes of its read, or its error.
    pub fn parse(bytes: &[u8]) -> (u64, Result<&[u8], u32>) {
        let mut fields = Fields(bytes);
        let mut head = || (fields.u32(), fields.u32(), fields.u64());
        let (_, Some(error), Some(cookie)) = head() else { return (0, Err(wire::EIO)) };
        (cookie, if error == 0 { Ok(fields.0) } else { Err(error) })
    }

    /// The replies so far, as they go to the client.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets the replies so far, and keeps their memory, but for what was lent.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.loans.clear();
    }

    /// Writes all that goes to the client.
    fn write_to(&self, stream: &mut dyn Write) -> io::Result<()> {
        if self.loans.is_empty() {
            return stream.write_all(&self.bytes);
        }
        let (mut pieces, mut from) = (Vec::with_capacity(2 * self.loans.len() + 1), 0);
        for (at, loan) in &self.loans {
            pieces.extend([IoSlice::new(&self.bytes[from..*at]), IoSlice::new(loan)]);
            from = *at;
        }
        pieces.push(IoSlice::new(&self.bytes[from..]));
        let mut rest = &mut pieces[..];
        // Empty pieces at the front, too, are none.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match stream.write_vectored(rest) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                written => IoSlice::advance_slices(&mut rest, written?),
            }
        }
        Ok(())
    }

    fn simple(&mut self, cookie: u64, error: u32) {
        self.bytes.extend(wire::REPLY_MAGIC.to_be_bytes());
        self.bytes.extend(error.to_be_bytes());
        self.bytes.extend(cookie.to_be_bytes());
    }

    fn chunk(&mut self, cookie: u64, kind: u16, length: u32) {
        self.bytes.extend(wire::CHUNK_MAGIC.to_be_bytes());
        self.bytes.extend(wire::CHUNK_DONE.to_be_bytes());
        self.bytes.extend(kind.to_be_bytes());
        self.bytes.extend(cookie.to_be_bytes());
        self.bytes.extend(length.to_be_bytes());
    }

    /// What is no read is done.
    pub fn done(&mut self, asked: &Asked) {
        self.simple(asked.cookie, 0);
    }

    /// A request is refused with `error`.
    pub fn refuse(&mut self, asked: &Asked, error: u32) {
        if !(self.structured && asked.is_read) {
            return self.simple(asked.cookie, error);
        }
        self.chunk(asked.cookie, wire::CHUNK_ERROR, 6);
        self.bytes.extend(error.to_be_bytes());
        self.bytes.extend(0u16.to_be_bytes());
    }

    /// A read of `length` bytes from `offset` on is answered with what `fill` appends.
    ///
    /// # Errors
    /// That of `fill`; there is no answer yet then.
    pub fn read<E>(
        &mut self,
        asked: &Asked,
        offset: u64,
        length: u32,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.read_lent(asked, offset, length, |bytes, _| fill(bytes))
    }

    /// As [`Self::read`], where `fill` may leave loans instead of bytes.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_lent<E>(
        &mut self,
        asked: &Asked,
        offset: u64,
        length: u32,
        fill: impl FnOnce(&mut Vec<u8>, &mut Vec<Loan>) -> Result<(), E>,
    ) -> Result<(), E> {
        let begin = self.bytes.len();
        if self.structured {
            self.chunk(asked.cookie, wire::CHUNK_DATA, length + 8);
            self.bytes.extend(offset.to_be_bytes());
        } else {
            self.simple(asked.cookie, 0);
        }
        let data = self.bytes.len();
        let filled = fill(&mut self.bytes, &mut self.found);
        match filled {
            Ok(()) => {
                let lent: usize = self.found.iter().map(|loan| loan.len()).sum();
                let bytes = self.bytes.len() - data + lent;
                assert_eq!(bytes, length as usize, "a read has the bytes that were asked for");
                self.loans.extend(self.found.drain(..).map(|loan| (data, loan)));
            }
            Err(_) => self.bytes.truncate(begin),
        }
        filled
    }
}

/// What is next in the input.
enum Next {
    /// A message of so many bytes, whole.
    Message(Asked, usize),
    /// A message of which a part has come; it has so many bytes, or its header. Of a write in order: the write.
    Part(usize, Option<Asked>),
    /// A write that is too long, and the bytes that come with it.
    TooLong(Asked, u64),
    /// The client disconnects.
    End,
}

/// What comes from a client, for the thread whose turn it is to receive.
struct Incoming<'t, S> {
    stream: &'t mut S,
    input: Input,
    export: &'t Export,
    /// The last was a large write, which was received apart.
    was_large: bool,
    /// Requests in order so far.
    served: u64,
    /// The connection has ended.
    ended: Option<Result<(), Fault>>,
}

/// What has come.
enum Came {
    /// Messages, to be served together.
    Batch,
    /// A large write, with its bytes: to be served alone, while another receives.
    Large(Asked),
    /// Reads, to be served together, while another receives.
    Reads,
    /// A part of a message.
    Part,
    /// A refused message, whose bytes are gone.
    Refused(Asked),
    /// The client has disconnected.
    End,
}

impl<S: Stream> Incoming<'_, S> {
    /// Waits for the next messages: those in `batch`, or one whose bytes are in `large`.
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
                // What comes after a large write may be another.
                let alone = self.was_large && needed == HEADER;
                if input.end > input.begin {
                    stream.hold(if needed > KEPT { needed as u64 } else { 0 });
                    // Of a message that has begun, all is awaited.
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

/// A connection, as its threads share it.
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
    /// Sends the replies that there are.
    fn send(&self, target: &mut dyn Target, replies: &mut Replies) -> io::Result<()> {
        target.send(&mut *lock(&self.writer), replies)
    }

    /// Receives and serves, in turn with others, until the connection ends. `large_begins` is called when something is
    /// served while another may receive.
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
                    replies.refuse(&asked, wire::EINVAL);
                    let sent = self.send(target, &mut replies);
                    incoming.stream.await_message();
                    sent.map_err(Fault::Io)
                }
                Ok(Came::Batch) => self.serve(&mut incoming, &batch, target, &mut replies),
                Ok(apart @ (Came::Large(_) | Came::Reads)) => {
                    drop(incoming);
                    large_begins();
                    let served = match apart {
                        Came::Large(asked) => self.serve_large(&asked, &mut large, target, &mut replies),
                        _ => self.serve_reads(&batch, target, &mut replies),
                    };
                    if served.is_ok() {
                        continue;
                    }
                    // Who waits for the next message waits no longer.
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

    /// Serves `batch`, and sends the replies. No other receives meanwhile.
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
        self.send(target, replies)?;
        if large.is_some() {
            replies.bytes.shrink_to(KEPT);
            incoming.input.shrink();
        }
        lost.map_err(|PowerLost| Fault::PowerLost)?;
        incoming.stream.await_message();
        Ok(())
    }

    /// Serves `reads`, and sends the replies, while another may receive.
    fn serve_reads(&self, reads: &[Asked], target: &mut dyn Target, replies: &mut Replies) -> Result<(), Fault> {
        let lost = target.serve(reads, &mut Vec::new(), replies);
        self.send(target, replies)?;
        lost.map_err(|PowerLost| Fault::PowerLost)
    }

    fn serve_large(
        &self,
        asked: &Asked,
        large: &mut Large,
        target: &mut dyn Target,
        replies: &mut Replies,
    ) -> Result<(), Fault> {
        let lost = target.serve_large(asked, large, replies);
        self.send(target, replies)?;
        lost.map_err(|PowerLost| Fault::PowerLost)
    }
}

/// Serves requests until the client disconnects; returns how many were in order. One of up to `threads` threads receives, while others
/// serve large requests, each by its own of `targets`. Replies go to `writer`; `hang_up` ends the connection.
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
                // Where there is none to be had, this one does it all.
                let begun = move || shared.work(&mut targets(), &mut || {});
                let _ = std::thread::Builder::new().spawn_scoped(scope, begun);
            }
        });
    });
    let Incoming { served, ended, .. } = shared.incoming.into_inner().unwrap_or_else(PoisonError::into_inner);
    ended.unwrap_or(Ok(())).map(|()| served)
}

/// Whether all of `batch` are reads, and the largest is large, but no larger than what is kept for replies.
fn are_large_reads(batch: &[Asked]) -> bool {
    let bytes = |asked: &Asked| match asked.request {
        Ok(Request::Read { length, .. }) => Some(length),
        _ => None,
    };
    let most = batch.iter().map(bytes).try_fold(0, |most, bytes| Some(bytes?.max(most)));
    most.is_some_and(|most| LARGE.contains(&most))
}

/// Bytes that a message needs here, for itself or for its reply.
fn kept_bytes(asked: &Asked) -> usize {
    match asked.request {
        Ok(Request::Read { length, .. } | Request::Write { length, .. }) => length as usize + HEADER,
        _ => HEADER,
    }
}

/// Takes whole messages from the input into `batch`, as many as are served together; a large one only for itself. Returns what is next.
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

/// The next message of the input; it stays there.
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
