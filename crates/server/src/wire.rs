//! Numbers and records of the NBD protocol, and reading them: the "fixed newstyle" handshake, simple and structured replies.
//!
//! Source: the specification, `doc/proto.md` of NetworkBlockDevice/nbd. All numbers are big-endian.

use std::fmt;
use std::io::{self, Read, Write};

/// A connection to a client.
pub trait Stream: Read + Write {
    /// A message is complete and answered; the next may come at any time.
    fn await_message(&mut self) {}

    /// A message has begun. It needs `bytes` of memory, which the connection may have to wait for.
    fn hold(&mut self, _bytes: u64) {}
}

/// First word of the handshake.
pub const INIT_MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Second word of the handshake, and first of every option.
pub const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// First word of a reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// First word of a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// First word of a simple reply.
pub const REPLY_MAGIC: u32 = 0x6744_6698;
/// First word of a chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Handshake flag: fixed newstyle negotiation.
pub const FIXED_NEWSTYLE: u16 = 1;
/// Handshake flag: no padding after the reply to [`OPT_EXPORT_NAME`].
pub const NO_ZEROES: u16 = 2;

/// Choose an export and begin, without an error reply.
pub const OPT_EXPORT_NAME: u32 = 1;
/// End the connection.
pub const OPT_ABORT: u32 = 2;
/// List the exports.
pub const OPT_LIST: u32 = 3;
/// Describe an export.
pub const OPT_INFO: u32 = 6;
/// Describe an export and begin.
pub const OPT_GO: u32 = 7;

/// Answer reads with structured replies.
pub const OPT_STRUCTURED_REPLY: u32 = 8;

/// Done.
pub const REP_ACK: u32 = 1;
/// One export of a list.
pub const REP_SERVER: u32 = 2;
/// One fact about an export.
pub const REP_INFO: u32 = 3;
/// The option is not known.
pub const REP_ERR_UNSUP: u32 = 1 << 31 | 1;
/// The option's data is malformed.
pub const REP_ERR_INVALID: u32 = 1 << 31 | 3;
/// There is no such export.
pub const REP_ERR_UNKNOWN: u32 = 1 << 31 | 6;

/// Fact: size and flags.
pub const INFO_EXPORT: u16 = 0;
/// Fact: block sizes.
pub const INFO_BLOCK_SIZE: u16 = 3;

/// Transmission flags: has flags, flush, FUA, trim, write zeroes; connections share one cache, so a flush on one holds for all.
pub const TRANSMISSION_FLAGS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 8;
/// Transmission flag where replies are structured: a read is never answered in fragments.
pub const DONT_FRAGMENT: u16 = 1 << 7;

/// Read bytes.
pub const CMD_READ: u16 = 0;
/// Write bytes.
pub const CMD_WRITE: u16 = 1;
/// Disconnect.
pub const CMD_DISC: u16 = 2;
/// Make all writes durable.
pub const CMD_FLUSH: u16 = 3;
/// Unmap bytes.
pub const CMD_TRIM: u16 = 4;
/// Write zeroes.
pub const CMD_WRITE_ZEROES: u16 = 6;
/// Command flag: durable before the reply.
pub const CMD_FLAG_FUA: u16 = 1;
/// Command flag: zeroes are written, not unmapped.
pub const CMD_FLAG_NO_HOLE: u16 = 1 << 1;
/// Command flag: a read is answered in one piece.
pub const CMD_FLAG_DF: u16 = 1 << 2;

/// Flag of a chunk: it is the last of its reply.
pub const CHUNK_DONE: u16 = 1;
/// Chunk: data, and where it begins.
pub const CHUNK_DATA: u16 = 1;
/// Chunk: an error.
pub const CHUNK_ERROR: u16 = 1 << 15 | 1;

/// The drive failed.
pub const EIO: u32 = 5;
/// The request is wrong.
pub const EINVAL: u32 = 22;
/// A write beyond the end.
pub const ENOSPC: u32 = 28;
/// The server is ending.
pub const ESHUTDOWN: u32 = 108;

/// Longest read or write that is served.
pub const MAX_BYTES: u32 = 32 << 20;
/// Longest data of an option that is read: several times the longest name that the protocol allows.
pub const MAX_OPTION_BYTES: u32 = 64 << 10;

/// Why a connection ended early.
#[derive(Debug)]
pub enum Fault {
    /// The client broke the protocol: how, and what was expected.
    Protocol(String),
    /// The power of the drive failed.
    PowerLost,
    /// The connection failed.
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

/// Fills an array.
pub fn read_array<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Fills an array, or returns `None` where the client closed the connection between two messages.
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

/// Reads `length` bytes. Memory grows with the bytes received, not with the announced length.
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

    /// The next number of 16 bits.
    pub fn u16(&mut self) -> Option<u16> {
        self.bytes(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// The next number of 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.bytes(4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// The next number of 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from(self.u32()?) << 32 | u64::from(self.u32()?))
    }
}
