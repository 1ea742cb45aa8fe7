//! Requests to a served drive and their answers, for every protocol.
//!
//! A protocol parses messages into [`Asked`] requests. The drive serves them and calls the protocol's [`Answers`],
//! which append the protocol's replies to an [`Outgoing`] buffer.

use crate::wire;
use palimpsest_lab::command::{Command, Directives, ZoneAction};
use palimpsest_lab::ftl::zones::ZoneError;
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::data::buffers::slabs::Loan;
use std::io::{self, IoSlice, Write};

/// A request to the drive: bytes at any alignment, within the size of the drive, `length` at least one. The reply to a
/// `durable` request comes when the change is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Reads a range.
    Read { offset: u64, length: u32 },
    /// Writes the bytes that begin at `at` in the received memory.
    Write { offset: u64, length: u32, at: usize, durable: bool },
    /// A write with a directive.
    Directed { offset: u64, length: u32, at: usize, durable: bool, directive: Directive },
    /// Zeroes a range, which `unmap` allows to unmap.
    Zero { offset: u64, length: u32, unmap: bool, durable: bool },
    /// Unmaps a range.
    Trim { offset: u64, length: u32, durable: bool },
    /// Copies `length` bytes from `from` on to `offset`; both ranges cover whole sectors.
    Copy { from: u64, offset: u64, length: u32, durable: bool },
    /// Writes the `length` bytes that begin at `at + length` in the received memory, if the range holds the `length`
    /// bytes that begin at `at`. No other request changes the range meanwhile.
    Swap { offset: u64, length: u32, at: usize, durable: bool },
    /// Makes all writes durable.
    Flush,
    /// An action on the zone at a sector, or on a reclaim unit handle.
    Manage { sector: u64, sectors: u32, action: Management },
}

/// A directive of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directive {
    /// Zone Append: the drive chooses the place, at the write pointer of the zone.
    Append,
    /// The data goes to the reclaim unit handle of this placement identifier.
    Place(u16),
}

/// A command without data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Management {
    /// The action on a zone; [`ZoneAction::None`] resets it.
    Zone(ZoneAction),
    /// The reclaim unit handle of this placement identifier leaves its unit.
    Update(u16),
}

impl Management {
    /// The command of the drive, for the zone of `extent`.
    pub fn command(self, extent: Extent) -> Command {
        match self {
            Management::Zone(action) => Command::new(RequestKind::Trim, extent).on_zone(action),
            Management::Update(identifier) => Command::update(identifier),
        }
    }
}

impl Request {
    /// The request without a directive of a write, and the directives.
    #[inline]
    pub fn split(self) -> (Request, Directives) {
        let Request::Directed { offset, length, at, durable, directive } = self else {
            return (self, Directives::NONE);
        };
        let directives = match directive {
            Directive::Append => Directives { zone: ZoneAction::Append, ..Directives::NONE },
            Directive::Place(placement) => Directives { placement, placed: true, ..Directives::NONE },
        };
        (Request::Write { offset, length, at, durable }, directives)
    }

    /// The place of a write's bytes in the received memory.
    pub fn bytes_at(&mut self) -> Option<&mut usize> {
        match self {
            Request::Write { at, .. } | Request::Directed { at, .. } | Request::Swap { at, .. } => Some(at),
            _ => None,
        }
    }
}

/// A message of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The client's name of the message.
    pub cookie: u64,
    /// The request, or the protocol's error of a refused one.
    pub request: Result<Request, u32>,
    /// Whether the message is a read, refused or not: the form of the reply differs.
    pub is_read: bool,
}

impl Asked {
    /// The same message after the drive has served it at `place`, which is the offset of a Zone Append.
    #[inline]
    #[must_use]
    pub fn placed(mut self, place: u64) -> Asked {
        if let Ok(Request::Directed { offset, directive: Directive::Append, .. }) = &mut self.request {
            *offset = place;
        }
        self
    }
}

/// The power failed since the client connected: the connection must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerLost;

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The protocol refused the message, with this error.
    Malformed(u32),
    /// The range must cover whole sectors.
    Unaligned,
    /// The data is uncorrectable.
    Unreadable,
    /// The range of a [`Request::Swap`] holds other bytes.
    Differs,
    /// The drive is worn out.
    WornOut,
    /// The zone refuses the request, with this status.
    Zone(ZoneError),
    Failed,
    PowerLost,
    Ending,
}

impl Refusal {
    /// The error number of NBD and of files.
    pub fn errno(self) -> u32 {
        match self {
            Refusal::Malformed(error) => error,
            Refusal::Unaligned => wire::EINVAL,
            Refusal::Ending => wire::ESHUTDOWN,
            Refusal::Unreadable
            | Refusal::Differs
            | Refusal::WornOut
            | Refusal::Zone(_)
            | Refusal::Failed
            | Refusal::PowerLost => wire::EIO,
        }
    }
}

/// Answers in the form of a protocol.
pub trait Answers {
    /// Answers a request without data.
    fn done(&mut self, asked: &Asked);

    /// Refuses a request.
    fn refuse(&mut self, asked: &Asked, why: Refusal);

    /// Whether answers may lend memory of the drive.
    fn lends(&self) -> bool;

    /// Answers a read of `length` bytes from `offset` on with the bytes that `fill` appends, or the memory that `fill`
    /// lends instead.
    ///
    /// # Errors
    /// The error of `fill`; the read has no answer then.
    fn read<E>(
        &mut self,
        asked: &Asked,
        offset: u64,
        length: u32,
        fill: impl FnOnce(&mut Vec<u8>, &mut Vec<Loan>) -> Result<(), E>,
    ) -> Result<(), E>;
}

/// Bytes to send, parts of which may be lent memory of the drive.
#[derive(Default)]
pub struct Outgoing {
    pub bytes: Vec<u8>,
    /// Lent memory, each with a place in `bytes`.
    loans: Vec<(usize, Loan)>,
}

impl Outgoing {
    /// Sends `loans` after the present bytes, in order.
    pub fn lend(&mut self, loans: impl IntoIterator<Item = Loan>) {
        let at = self.bytes.len();
        self.loans.extend(loans.into_iter().map(|loan| (at, loan)));
    }

    /// Forgets all bytes and loans, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.loans.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Writes all bytes, lent ones included.
    pub fn write_to(&self, stream: &mut dyn Write) -> io::Result<()> {
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
        // Skips empty pieces at the front.
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
}
