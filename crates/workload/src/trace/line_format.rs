//! The interface of a line-oriented trace format, for reading and for writing.

use std::fmt;

use super::MAX_REQUEST_BYTES;
use super::fields::{Fault, Parse};
use super::head::Head;
use crate::request::{Arrivals, Command, Extent, FileNames, Request, RequestKind, SECTOR_BYTES};
use crate::volume_names::VolumeName;
use palimpsest_flash::command::ZoneAction;
use palimpsest_flash::units::Nanos;

/// First sector beyond every valid address: 2^63 bytes.
const SECTOR_LIMIT: u64 = (1 << 63) / SECTOR_BYTES;

/// A format whose records are lines. Parsing must not panic on any bytes, and must take time linear in the length.
pub trait LineFormat: Default + Send + 'static {
    /// Name in listings and options.
    const NAME: &'static str;
    /// Other names.
    const ALIASES: &'static [&'static str] = &[];
    /// One line for listings.
    const ABOUT: &'static str;

    /// Contents of records.
    const HOLDS: Holds;
    /// The `--columns` of the format with bytes in place of the sectors of addresses and sizes; `None` if the format
    /// has bytes, or the kernel counted the sectors.
    const IN_BYTES: Option<&'static str> = None;
    /// The `--columns` of the format with sectors in place of the bytes; `None` if the format has sectors, or its
    /// records name the unit.
    const IN_SECTORS: Option<&'static str> = None;
    /// Streams are volumes: disks or devices with addresses of their own.
    const HAS_VOLUMES: bool = false;
    /// Lines before the first record.
    const HEADER: &'static str = "";

    /// True if the streams of this trace are volumes.
    fn has_volumes(&self) -> bool {
        Self::HAS_VOLUMES
    }

    /// The streams so far that have names.
    fn volume_names(&self) -> &[VolumeName] {
        &[]
    }

    /// Reads the start of the file for properties of the whole trace.
    fn prepare(&mut self, _head: &Head<'_>) {}

    /// Keeps names of files from now on, if names cost memory.
    fn keep_names(&mut self) {}

    /// The names of the files of the records so far.
    fn names(&self) -> Option<&FileNames> {
        None
    }

    /// The loop of the trace; valid after [`prepare`](Self::prepare).
    fn arrivals(&self) -> Arrivals {
        Arrivals::Open
    }

    /// Notes for the user; valid after [`prepare`](Self::prepare).
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Reads a line, which is never empty and has no line end.
    fn parse(&mut self, line: &[u8]) -> Parse<Parsed>;

    /// False for lines that parse but belong to another format.
    fn could_be(_line: &[u8]) -> bool {
        true
    }

    /// Other formats read the same lines as other requests; a [`Contest`](super::votes::Contest) decides.
    const IS_CONTESTED: bool = false;

    /// True if a malformed line before the first request belongs to a header.
    fn is_header(&self, _line: &[u8]) -> bool {
        false
    }

    /// Prints a request within [`HOLDS`](Self::HOLDS) and the name of the file, without the last line end.
    fn print(&mut self, request: &Request, file: Option<&str>, out: &mut String) -> fmt::Result;
}

/// Contents of the records of a format; other properties of requests are lost in writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holds {
    /// Nanoseconds; times are multiples.
    pub time_grain: Nanos,
    /// Sectors; sizes are multiples.
    pub size_grain: u32,
    /// Kinds of requests.
    pub kinds: &'static [RequestKind],
    /// Records have the number of a device or stream.
    pub streams: bool,
    /// Writes may be marked as FUA.
    pub fua: bool,
    /// Records may be commands on zones.
    pub zones: bool,
    /// File names of records.
    pub names: Names,
}

/// File names in a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// None.
    None,
    /// Names without blanks.
    WithoutBlanks,
    /// Names of one line, of requests other than flushes.
    NotOfFlushes,
    /// Names of one line.
    Any,
}

impl Holds {
    /// All fields of a request, without directives.
    pub const ALL: Holds = Holds {
        time_grain: 1,
        size_grain: 1,
        kinds: &[RequestKind::Read, RequestKind::Write, RequestKind::Trim, RequestKind::Flush],
        streams: true,
        fua: false,
        zones: false,
        names: Names::Any,
    };

    /// The same, without names.
    pub const BARE: Holds = Holds { names: Names::None, ..Holds::ALL };

    /// Reads and writes without names.
    pub const PLAIN: Holds = Holds { kinds: &[RequestKind::Read, RequestKind::Write], ..Holds::BARE };
}

/// Prints a time as seconds with nine decimals.
pub struct Seconds(pub Nanos);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// Prints a time as milliseconds with six decimals.
pub struct Millis(pub Nanos);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// blktrace's letter of a kind.
pub fn letter(kind: RequestKind) -> char {
    match kind {
        RequestKind::Read => 'R',
        RequestKind::Write => 'W',
        RequestKind::Trim => 'D',
        RequestKind::Flush => 'F',
    }
}

/// The content of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// A request, by the trace's own clock.
    Record(Request),
    /// The names of the columns.
    Header,
    /// Neither a request nor a mistake.
    Skip,
    /// The end of the requests, before a summary.
    End,
}

impl Parsed {
    /// Sets the file of a record.
    #[inline]
    pub fn of_file(self, file: u32) -> Parsed {
        match self {
            Parsed::Record(record) => Parsed::Record(Request { file, ..record }),
            other => other,
        }
    }

    /// Sets the owner of a record: device, disk, volume, file or stream.
    #[inline]
    pub fn of_stream(self, stream: u32) -> Parsed {
        match self {
            Parsed::Record(record) => Parsed::Record(Request { command: record.command.of(stream), ..record }),
            other => other,
        }
    }

    /// Makes a write with `fua` wait for its program.
    #[inline]
    pub fn with_fua(self, fua: bool) -> Parsed {
        match self {
            Parsed::Record(record) if record.kind == RequestKind::Write => {
                Parsed::Record(Request { command: record.command.with_fua(fua), ..record })
            }
            other => other,
        }
    }

    /// Sets the action of a record on its zone.
    #[inline]
    pub fn on_zone(self, action: ZoneAction) -> Parsed {
        match self {
            Parsed::Record(record) => Parsed::Record(Request { command: record.command.on_zone(action), ..record }),
            other => other,
        }
    }

    /// A flush.
    pub fn flush(time: Nanos, stream: u32) -> Parsed {
        Parsed::Record(Request::new(time, Command::FLUSH.of(stream)))
    }

    /// A request for whole sectors.
    #[inline]
    pub fn of_sectors(time: Nanos, kind: RequestKind, sector: u64, sectors: u64, stream: u64) -> Parse<Parsed> {
        if sectors == 0 || sectors > most_sectors(kind) {
            return Err(wrong_size(sectors, "sectors", most_sectors(kind)));
        }
        if sector > SECTOR_LIMIT - sectors {
            return Err(Fault::new(format!("address: expected less than 2^63 bytes, found sector {sector}")));
        }
        let Ok(stream) = u32::try_from(stream) else {
            return Err(Fault::new(format!("device or stream: expected a number below 2^32, found {stream}")));
        };
        let extent = Extent { sector, sectors: sectors as u32 };
        Ok(Parsed::Record(Request::new(time, Command::new(kind, extent).of(stream))))
    }

    /// A request for bytes, widened to whole sectors.
    #[inline]
    pub fn of_bytes(time: Nanos, kind: RequestKind, offset: u64, bytes: u64, stream: u64) -> Parse<Parsed> {
        let most = most_sectors(kind);
        if bytes == 0 || bytes > most * SECTOR_BYTES {
            return Err(wrong_size(bytes, "bytes", most * SECTOR_BYTES));
        }
        if offset > (1 << 63) - bytes {
            return Err(Fault::new(format!("address: expected less than 2^63 bytes, found byte {offset}")));
        }
        let sector = offset / SECTOR_BYTES;
        let sectors = (offset + bytes).div_ceil(SECTOR_BYTES) - sector;
        // Widening to whole sectors may exceed the limit by one.
        Parsed::of_sectors(time, kind, sector, sectors.min(most), stream)
    }
}

#[inline]
fn most_sectors(kind: RequestKind) -> u64 {
    match kind {
        RequestKind::Trim => u64::from(u32::MAX),
        _ => MAX_REQUEST_BYTES / SECTOR_BYTES,
    }
}

#[cold]
fn wrong_size(found: u64, unit: &str, most: u64) -> Fault {
    Fault::new(format!("size: expected 1 to {most} {unit}, found {found}"))
}

/// The kind that traces write as 1 for read and 0 for write.
#[inline]
pub fn kind_of_read_flag(flag: u64, column: &str) -> Parse<RequestKind> {
    match flag {
        0 => Ok(RequestKind::Write),
        1 => Ok(RequestKind::Read),
        _ => Err(Fault::column(column, "0 (write) or 1 (read)", flag.to_string().as_bytes())),
    }
}

/// The kind that traces write as one letter, of either case.
#[inline]
pub fn kind_of_letter(text: &[u8], column: &str) -> Parse<RequestKind> {
    match text.trim_ascii() {
        b"R" | b"r" => Ok(RequestKind::Read),
        b"W" | b"w" => Ok(RequestKind::Write),
        other => Err(Fault::column(column, "R or W", other)),
    }
}

#[cfg(test)]
mod tests;
