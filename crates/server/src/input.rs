//! Memory for the bytes of a client: messages together, and the bytes of large writes apart, because the thread that
//! serves a large write needs its own.
//!
//! A large write is received up to its end, with the header of the next message and no more. So no bytes move in
//! memory, and the next large write is received in the same way.

use crate::wire::Stream;
use palimpsest_lab::nand::data::buffers::slabs::Slab;
use palimpsest_lab::sim::fingerprint::fingerprints;
use palimpsest_lab::units::SECTOR_BYTES;
use std::io::{self, IoSliceMut};
use std::ops::RangeInclusive;

/// Bytes that a connection keeps for requests, and as many for replies.
pub const KEPT: usize = 512 << 10;

/// Bytes of the header of a request.
pub const HEADER: usize = 28;

/// Bytes of large requests, which one thread serves while another receives. Smaller writes are not received apart
/// because one read brings many of them.
pub const LARGE: RangeInclusive<u32> = 32 << 10..=256 << 10;

/// Received bytes of a client that are not served yet.
#[derive(Default)]
pub struct Input {
    /// Memory of messages.
    pub bytes: Vec<u8>,
    /// Begin of the bytes to serve.
    pub begin: usize,
    /// End of the bytes to serve.
    pub end: usize,
}

impl Input {
    /// Moves the bytes to serve to the front.
    fn compact(&mut self) {
        self.bytes.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
    }

    /// Reads up to a whole message of `needed` bytes and, unless `alone`, beyond it; returns false at the end of the
    /// connection.
    ///
    /// # Errors
    /// Errors of the connection, and an end within a message.
    pub fn fill(&mut self, stream: &mut impl Stream, needed: usize, alone: bool) -> io::Result<bool> {
        self.compact();
        if self.end == self.bytes.len() || self.bytes.len() < KEPT {
            // Memory grows with the received bytes, not with the announced length.
            self.bytes.resize(needed.min(2 * self.bytes.len()).max(KEPT), 0);
        }
        let to = if alone { needed } else { self.bytes.len() };
        loop {
            match stream.read(&mut self.bytes[self.end..to]) {
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

    /// Drops the next `bytes` of the client.
    pub fn skip(&mut self, stream: &mut impl Stream, bytes: u64) -> io::Result<()> {
        let here = bytes.min((self.end - self.begin) as u64);
        self.begin += here as usize;
        let rest = bytes - here;
        let skipped = io::copy(&mut io::Read::take(&mut *stream, rest), &mut io::sink())?;
        if skipped < rest { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Frees the memory of a large message.
    pub fn shrink(&mut self) {
        self.compact();
        if self.bytes.len() > KEPT && self.end <= KEPT {
            self.bytes.truncate(KEPT);
            self.bytes.shrink_to_fit();
        }
    }
}

/// The bytes of a large write, and the fingerprints of its sectors.
#[derive(Default)]
pub struct Large {
    /// Memory that begins with the bytes. After a write of the same length the memory holds nothing else, and becomes
    /// memory of the drive.
    pub slab: Slab,
    pub fingerprints: Vec<u32>,
    length: usize,
}

impl Large {
    /// Memory for a write of `length` bytes; `before`, after a write of the same length, is used again.
    pub fn of(length: usize, before: Option<Large>) -> Self {
        let before = before.filter(|before| before.length == length && before.slab.len() == length);
        before.unwrap_or_else(|| Large { slab: Slab::new(length), fingerprints: Vec::new(), length })
    }

    /// Whether a write of `length` bytes from `offset` on is received apart, and such a read is sent from memory of the
    /// drive.
    pub fn takes(offset: u64, length: u32) -> bool {
        LARGE.contains(&length) && (offset | u64::from(length)).is_multiple_of(SECTOR_BYTES)
    }

    /// Receives the `length` bytes of the write whose header is next in `input`. Afterwards `input` holds at most the
    /// header of the next message.
    ///
    /// # Errors
    /// Errors of the connection, and an end within the message.
    pub fn receive(&mut self, stream: &mut impl Stream, input: &mut Input, length: usize) -> io::Result<()> {
        let before = std::mem::replace(&mut self.length, length);
        if self.slab.len() < length || (self.slab.len() > length && before == length) {
            self.slab = Slab::new(length);
        }
        let here = &input.bytes[input.begin + HEADER..input.end];
        let mut got = here.len();
        self.slab[..got].copy_from_slice(here);
        (input.begin, input.end) = (0, 0);
        while got < length {
            let mut places =
                [IoSliceMut::new(&mut self.slab[got..length]), IoSliceMut::new(&mut input.bytes[..HEADER])];
            match stream.read_vectored(&mut places) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => got += read?,
            }
        }
        input.end = got - length;
        Ok(())
    }

    /// Computes the fingerprints.
    pub fn seal(&mut self) {
        let Large { slab, fingerprints: found, length } = self;
        found.clear();
        found.reserve(*length / SECTOR_BYTES as usize);
        fingerprints(&slab[..*length], |sector| found.push(sector));
    }
}
