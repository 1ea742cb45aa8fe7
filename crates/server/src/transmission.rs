//! The transmission phase: requests and replies.
//!
//! A client may send many requests before it reads a reply: all that have come whole are served together, in order, and answered in one
//! write. A message that is larger than what a connection keeps is served alone, with memory that all clients share. A refused request
//! has no effect and the connection continues; a malformed message ends it. A power cut of the drive is answered with an error, and
//! ends it: a client that connects again knows that what it had not flushed may be lost. Ignored: fragments of a read.

use crate::handshake::Export;
use crate::wire::{self, Fault, Fields, Stream};
use std::io;

/// Bytes that a connection keeps for requests, and as many for replies.
pub const KEPT: usize = 512 << 10;

/// Bytes of messages that are served together, so that what is read from the drive is still in the caches when it is sent.
const TOGETHER: usize = 160 << 10;

/// Bytes of the header of a request.
const HEADER: usize = 28;

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

    /// Sends the replies that there are, and forgets them.
    ///
    /// # Errors
    /// Those of the connection.
    fn send(&mut self, stream: &mut dyn io::Write, replies: &mut Replies) -> io::Result<()> {
        let sent = stream.write_all(&replies.bytes);
        replies.bytes.clear();
        sent
    }
}

/// Replies in the form that was agreed with the client.
#[derive(Default)]
pub struct Replies {
    bytes: Vec<u8>,
    structured: bool,
}

impl Replies {
    /// None yet.
    pub fn new(structured: bool) -> Self {
        Replies { bytes: Vec::new(), structured }
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

    /// Forgets the replies so far, and keeps their memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
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
        let begin = self.bytes.len();
        if self.structured {
            self.chunk(asked.cookie, wire::CHUNK_DATA, length + 8);
            self.bytes.extend(offset.to_be_bytes());
        } else {
            self.simple(asked.cookie, 0);
        }
        let data = self.bytes.len();
        let filled = fill(&mut self.bytes);
        match filled {
            Ok(()) => assert_eq!(self.bytes.len() - data, length as usize, "a read has the bytes that were asked for"),
            Err(_) => self.bytes.truncate(begin),
        }
        filled
    }
}

/// What a client has sent and was not served yet.
#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Input {
    /// Reads what has come, up to a whole message of `needed` bytes; false at the end.
    fn fill(&mut self, stream: &mut impl Stream, needed: usize) -> io::Result<bool> {
        self.bytes.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.end == self.bytes.len() || self.bytes.len() < KEPT {
            // Memory grows with the bytes received, not with the announced length.
            self.bytes.resize(needed.min(2 * self.bytes.len()).max(KEPT), 0);
        }
        loop {
            match stream.read(&mut self.bytes[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset && self.end == 0 => return Ok(false),
                Ok(0) if self.end > 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    let read = read?;
                    self.end += read;
                    return Ok(read > 0);
                }
            }
        }
    }

    /// Drops the next `bytes` that the client sends.
    fn skip(&mut self, stream: &mut impl Stream, bytes: u64) -> io::Result<()> {
        let here = bytes.min((self.end - self.begin) as u64);
        self.begin += here as usize;
        let rest = bytes - here;
        let skipped = io::copy(&mut io::Read::take(&mut *stream, rest), &mut io::sink())?;
        if skipped < rest { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Gives back what was for a large message.
    fn shrink(&mut self) {
        self.bytes.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.bytes.len() > KEPT && self.end <= KEPT {
            self.bytes.truncate(KEPT);
            self.bytes.shrink_to_fit();
        }
    }
}

/// What is next in the input.
enum Next {
    /// A message of so many bytes, whole.
    Message(Asked, usize),
    /// A message of which a part has come; it has so many bytes, or its header.
    Part(usize),
    /// A write that is too long, and the bytes that come with it.
    TooLong(Asked, u64),
    /// The client disconnects.
    End,
}

/// Serves requests until the client disconnects; returns how many were in order.
///
/// # Errors
/// [`Fault`]: the connection must be closed.
pub fn transmit(
    stream: &mut impl Stream,
    export: &Export,
    structured: bool,
    target: &mut dyn Target,
) -> Result<u64, Fault> {
    let (mut input, mut replies, mut batch) = (Input::default(), Replies::new(structured), Vec::new());
    let mut served = 0;
    stream.await_message();
    loop {
        batch.clear();
        let stopped_at = collect(&mut input, export, &mut batch)?;
        if !batch.is_empty() {
            served += batch.iter().filter(|asked| asked.request.is_ok()).count() as u64;
            let large = batch.iter().map(kept_bytes).max().filter(|&bytes| bytes > KEPT);
            if let Some(Asked { request: Ok(Request::Read { .. }), .. }) = batch.first()
                && let Some(bytes) = large
            {
                stream.hold(bytes as u64);
            }
            let lost = target.serve(&batch, &mut input.bytes, &mut replies);
            target.send(stream, &mut replies)?;
            if large.is_some() {
                replies.bytes.shrink_to(KEPT);
                input.shrink();
            }
            lost.map_err(|PowerLost| Fault::PowerLost)?;
            stream.await_message();
        }
        match stopped_at {
            None => {}
            Some(Next::End) => return Ok(served),
            Some(Next::TooLong(asked, bytes)) => {
                stream.hold(0);
                input.skip(stream, bytes)?;
                replies.refuse(&asked, wire::EINVAL);
                target.send(stream, &mut replies)?;
                stream.await_message();
            }
            Some(Next::Part(needed)) => {
                if input.end > input.begin {
                    let large = if needed > KEPT { needed } else { 0 };
                    stream.hold(large as u64);
                    // Of a message that has begun, all is awaited.
                    while input.end - input.begin < needed {
                        input.fill(stream, needed)?;
                    }
                } else if !input.fill(stream, needed)? {
                    return Ok(served);
                }
            }
            Some(Next::Message(..)) => unreachable!("messages are in the batch"),
        }
    }
}

/// Bytes that a message needs here, for itself or for its reply.
fn kept_bytes(asked: &Asked) -> usize {
    match asked.request {
        Ok(Request::Read { length, .. } | Request::Write { length, .. }) => length as usize + HEADER,
        _ => HEADER,
    }
}

/// Takes whole messages from the input into `batch`, as many as are served together; a large one only for itself. `None` where more may be
/// there.
fn collect(input: &mut Input, export: &Export, batch: &mut Vec<Asked>) -> Result<Option<Next>, Fault> {
    let mut bytes = 0;
    loop {
        match next(input, export)? {
            Next::Message(asked, length) => {
                bytes += kept_bytes(&asked);
                if bytes > TOGETHER && !batch.is_empty() {
                    return Ok(None);
                }
                input.begin += length;
                batch.push(asked);
            }
            other => {
                match other {
                    Next::TooLong(..) => input.begin += HEADER,
                    Next::Message(..) | Next::Part(_) | Next::End => {}
                }
                return Ok(Some(other));
            }
        }
    }
}

/// The next message of the input; it stays there.
fn next(input: &Input, export: &Export) -> Result<Next, Fault> {
    let here = &input.bytes[input.begin..input.end];
    if here.len() < HEADER {
        return Ok(Next::Part(HEADER));
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
        if here.len() < size {
            return Ok(Next::Part(size));
        }
    }
    let request = checked(flags, command, offset, length, input.begin + HEADER, export);
    Ok(Next::Message(Asked { cookie, request, is_read }, size))
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
