//! The transmission phase: requests and simple replies, one after the other.
//!
//! A client may send many requests before it reads a reply; they are served, and answered, in order. A refused request has no
//! effect and the connection continues; a malformed message ends it. A power cut of the drive is answered with an error, and ends it:
//! a client that connects again knows that what it had not flushed may be lost.

use crate::handshake::Export;
use crate::wire::{self, Fault, Fields, Stream};
use std::io::{self, Read, Write};

/// A request to the drive, in bytes at any alignment, within its size.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        /// The bytes, at least one.
        bytes: Vec<u8>,
        /// Whether the write must be durable before the reply.
        durable: bool,
    },
    /// Unmap a range.
    Trim {
        /// First byte.
        offset: u64,
        /// Length, at least one.
        length: u32,
    },
    /// Make everything durable.
    Flush,
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The drive failed.
    Failed,
    /// The power of the drive failed since the client connected.
    PowerLost,
    /// The server is ending.
    Ending,
}

/// Serves one request: the bytes of a read, nothing for any other.
pub type Serve<'a> = &'a mut dyn FnMut(Request) -> Result<Vec<u8>, Refusal>;

/// Serves requests until the client disconnects; returns their number.
///
/// # Errors
/// [`Fault`]: the connection must be closed.
pub fn transmit(stream: &mut impl Stream, export: &Export, serve: Serve<'_>) -> Result<u64, Fault> {
    let mut served = 0;
    loop {
        stream.await_message();
        let Some(header) = wire::read_array_or_end::<28>(stream)? else { break };
        let header = Header::read(&header)?;
        if header.command == wire::CMD_DISC {
            break;
        }
        let mut power_lost = false;
        let outcome = take(stream, &header, export)?.and_then(|request| {
            serve(request).map_err(|refusal| {
                power_lost = refusal == Refusal::PowerLost;
                if refusal == Refusal::Ending { wire::ESHUTDOWN } else { wire::EIO }
            })
        });
        served += u64::from(outcome.is_ok());
        reply(stream, header.cookie, outcome)?;
        if power_lost {
            return Err(Fault::PowerLost);
        }
    }
    Ok(served)
}

struct Header {
    flags: u16,
    command: u16,
    cookie: u64,
    offset: u64,
    length: u32,
}

impl Header {
    fn read(bytes: &[u8; 28]) -> Result<Header, Fault> {
        let mut fields = Fields(bytes);
        if fields.u32() != Some(wire::REQUEST_MAGIC) {
            return Err(Fault::Protocol("a request does not begin with the magic number of requests".into()));
        }
        let mut all = || {
            Some(Header {
                flags: fields.u16()?,
                command: fields.u16()?,
                cookie: fields.u64()?,
                offset: fields.u64()?,
                length: fields.u32()?,
            })
        };
        Ok(all().expect("a header has 28 bytes"))
    }
}

/// Reads a request from the stream, its bytes included; the inner error is the reply to a refused one.
fn take(stream: &mut impl Stream, header: &Header, export: &Export) -> Result<Result<Request, u32>, Fault> {
    let &Header { flags, command, offset, length, .. } = header;
    let mut bytes = Vec::new();
    if command == wire::CMD_WRITE {
        if length > wire::MAX_BYTES {
            return skip(stream, length).map(|()| Err(wire::EINVAL));
        }
        stream.hold(u64::from(length));
        bytes = wire::read_bytes(stream, length)?;
    }
    let beyond = offset.checked_add(u64::from(length)).is_none_or(|end| end > export.bytes);
    let durable = flags & wire::CMD_FLAG_FUA != 0;
    Ok(match command {
        _ if flags & !wire::CMD_FLAG_FUA != 0 => Err(wire::EINVAL),
        wire::CMD_FLUSH => Ok(Request::Flush),
        _ if length == 0 => Err(wire::EINVAL),
        wire::CMD_READ if beyond || length > wire::MAX_BYTES => Err(wire::EINVAL),
        wire::CMD_READ => {
            // The bytes of the drive, and the reply.
            stream.hold(2 * u64::from(length));
            Ok(Request::Read { offset, length })
        }
        wire::CMD_WRITE if beyond => Err(wire::ENOSPC),
        wire::CMD_WRITE => Ok(Request::Write { offset, bytes, durable }),
        wire::CMD_TRIM if beyond => Err(wire::EINVAL),
        wire::CMD_TRIM => Ok(Request::Trim { offset, length }),
        _ => Err(wire::EINVAL),
    })
}

/// Drops the bytes of a write that is too long.
fn skip(stream: &mut impl Read, length: u32) -> Result<(), Fault> {
    let skipped = io::copy(&mut stream.take(u64::from(length)), &mut io::sink())?;
    if skipped < u64::from(length) { Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) } else { Ok(()) }
}

fn reply(stream: &mut impl Write, cookie: u64, outcome: Result<Vec<u8>, u32>) -> Result<(), Fault> {
    let (error, bytes) = outcome.map_or_else(|error| (error, Vec::new()), |bytes| (0, bytes));
    let mut message = Vec::with_capacity(16 + bytes.len());
    message.extend(wire::REPLY_MAGIC.to_be_bytes());
    message.extend(error.to_be_bytes());
    message.extend(cookie.to_be_bytes());
    message.extend(bytes);
    Ok(stream.write_all(&message)?)
}
