//! Numbers and records of the NBD protocol, and reading them: the "fixed newstyle" handshake, simple and structured
//! replies.
//!
//! Source: the specification, `doc/proto.md` of NetworkBlockDevice/nbd, whose names the constants have. All numbers are
//! big-endian.

use std::fmt;
use std::io::{self, Read, Write};
use std::time::Instant;

/// A connection to a client.
pub trait Stream: Read + Write {
    /// The last message is answered; the next may come at any time.
    fn await_message(&mut self) {}

    /// As [`Self::await_message`]; the next message must begin before `until`.
    fn await_until(&mut self, _until: Option<Instant>) {
        self.await_message();
    }

    /// The client keeps the place while idle.
    fn stay(&mut self) {}

    /// A message has begun. May wait for `bytes` of memory.
    fn hold(&mut self, _bytes: u64) {}
}

/// First word of the handshake.
pub const INIT_MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Second word of the handshake, and first of every option.
pub const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
pub const REPLY_MAGIC: u32 = 0x6744_6698;
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

pub const FIXED_NEWSTYLE: u16 = 1;
/// No padding after the reply to [`OPT_EXPORT_NAME`].
pub const NO_ZEROES: u16 = 2;

/// Choose an export and begin, without an error reply.
pub const OPT_EXPORT_NAME: u32 = 1;
pub const OPT_ABORT: u32 = 2;
pub const OPT_LIST: u32 = 3;
pub const OPT_INFO: u32 = 6;
/// Describe an export and begin.
pub const OPT_GO: u32 = 7;

pub const OPT_STRUCTURED_REPLY: u32 = 8;

pub const REP_ACK: u32 = 1;
pub const REP_SERVER: u32 = 2;
pub const REP_INFO: u32 = 3;
/// The option is not known.
pub const REP_ERR_UNSUP: u32 = 1 << 31 | 1;
/// The option's data is malformed.
pub const REP_ERR_INVALID: u32 = 1 << 31 | 3;
/// There is no such export.
pub const REP_ERR_UNKNOWN: u32 = 1 << 31 | 6;

/// Size and flags.
pub const INFO_EXPORT: u16 = 0;
pub const INFO_BLOCK_SIZE: u16 = 3;

/// Has flags, flush, FUA, trim, write zeroes; connections share one cache, so a flush on one holds for all.
pub const TRANSMISSION_FLAGS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 8;
/// With structured replies: a read is never answered in fragments.
pub const DONT_FRAGMENT: u16 = 1 << 7;

pub const CMD_READ: u16 = 0;
pub const CMD_WRITE: u16 = 1;
pub const CMD_DISC: u16 = 2;
pub const CMD_FLUSH: u16 = 3;
pub const CMD_TRIM: u16 = 4;
pub const CMD_WRITE_ZEROES: u16 = 6;
/// Durable before the reply.
pub const CMD_FLAG_FUA: u16 = 1;
/// Zeroes are written, not unmapped.
pub const CMD_FLAG_NO_HOLE: u16 = 1 << 1;
/// A read is answered in one piece.
pub const CMD_FLAG_DF: u16 = 1 << 2;

/// The last chunk of a reply.
pub const CHUNK_DONE: u16 = 1;
/// Data, and the offset.
pub const CHUNK_DATA: u16 = 1;
pub const CHUNK_ERROR: u16 = 1 << 15 | 1;

pub const EIO: u32 = 5;
pub const EINVAL: u32 = 22;
pub const ENOSPC: u32 = 28;
/// The server is ending.
pub const ESHUTDOWN: u32 = 108;

/// Longest read or write.
pub const MAX_BYTES: u32 = 32 << 20;
/// Longest data of an option: several times the longest name that the protocol allows.
pub const MAX_OPTION_BYTES: u32 = 64 << 10;

/// Why a connection ended early.
#[derive(Debug)]
pub enum Fault {
    /// The client broke the protocol: how, and what was expected.
    Protocol(String),
    /// The power of the drive failed.
    PowerLost,
    Io(io::Error),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Protocol(what) => f.write_str(what),
            Fault::PowerLost => f.write_str("the power failed during a request"),
            Fault::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                f.write_str("the client closed the connection in the middle of a message")
            }
            Fault::Io(error) => write!(f, "{error}"),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::Io(error)
    }
}

/// Fills an array; `None` if the client closed the connection between two messages.
pub fn read_array_or_end<const N: usize>(stream: &mut impl Read) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    let first = loop {
        match stream.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
            other => break other?,
        }
    };
    if first == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut bytes[first..])?;
    Ok(Some(bytes))
}

/// Reads `length` bytes. Memory grows with the received bytes, not with the announced length.
pub fn read_bytes(stream: &mut impl Read, length: u32) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(u64::from(length)).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

/// Reads numbers from the front of a record.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.bytes(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.bytes(4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from(self.u32()?) << 32 | u64::from(self.u32()?))
    }
}
