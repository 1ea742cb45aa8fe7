//! Microsoft Production Server traces (Kavalanekar et al., "Characterization of Storage Workload Traces from Production
//! Windows Servers", IISWC 2008), as SNIA IOTTA distributes them: the text output of Windows' tracer for disk events.
//!
//! A header between `BeginHeader` and `EndHeader` names the columns of each event; lines follow such as `DiskRead,
//! 8612, name.exe (3984), 11844, 0xffffe288b23f1b20, 0x018f0b8000, 0x00001000, 283, 0, ..., "C:\$Mft"`: the time in
//! microseconds, offset and size as hexadecimal bytes, the disk, and last the name of the file. Without a header, the
//! columns of the published traces apply. A file name may contain commas; a process name must not.
//!
//! `DiskRead`, `DiskWrite` and `DiskFlush` are requests; all other events (`DiskReadInit`, `FileIoRead` and so on) are
//! skipped. As in CSV a hash of the file name is the stream, 0 without a name. Disks share one address space; their
//! numbers are dropped.
//!
//! Windows logs an event when a request completes. The arrival is `ElapsedTime` earlier, by 60 s at most. The published
//! conversions of these traces have the times of completion, which join requests that were issued apart.

use std::fmt::{self, Write};

use super::fields::{Fault, Parse, nanos, number, quoted};
use super::line_format::{Holds, LineFormat, Names, Parsed};
use crate::in_order::LONGEST_DISORDER;
use crate::request::{FileNames, NO_FILE, Request, RequestKind};
use crate::volume_names::{VolumeName, VolumeNames};
use palimpsest_flash::units::Nanos;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    time: usize,
    offset: usize,
    size: usize,
    elapsed: usize,
    disk: usize,
    /// Beyond the last column if events have no name.
    name: usize,
}

const READ_OR_WRITE: Layout = Layout { time: 1, offset: 5, size: 6, elapsed: 7, disk: 8, name: 14 };
const FLUSH: Layout = Layout { time: 1, offset: usize::MAX, size: usize::MAX, elapsed: 5, disk: 6, name: usize::MAX };

/// Added to all times, because the requests that complete first were issued before time 0.
const BEFORE: Nanos = LONGEST_DISORDER;

/// Reads events by the columns of the header.
pub struct Etw {
    in_header: bool,
    read: Layout,
    write: Layout,
    flush: Layout,
    names: Option<FileNames>,
    streams: VolumeNames,
}

impl Default for Etw {
    fn default() -> Self {
        Etw {
            in_header: false,
            read: READ_OR_WRITE,
            write: READ_OR_WRITE,
            flush: FLUSH,
            names: None,
            streams: VolumeNames::default(),
        }
    }
}

impl LineFormat for Etw {
    const NAME: &'static str = "etw";
    const ALIASES: &'static [&'static str] = &["msps"];
    const ABOUT: &'static str =
        "Microsoft Production Server: DiskRead|DiskWrite, microseconds, ..., 0x offset, 0x size, ..., disk, ..., file";
    const HOLDS: Holds = Holds {
        time_grain: 1000,
        kinds: &[RequestKind::Read, RequestKind::Write, RequestKind::Flush],
        streams: false,
        names: Names::NotOfFlushes,
        ..Holds::BARE
    };
    const HEADER: &'static str = "\
BeginHeader
              DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,   ByteOffset,     IOSize, \
ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,         FileObject, FileName
             DiskWrite,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,   ByteOffset,     IOSize, \
ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,         FileObject, FileName
             DiskFlush,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,                           \
ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri
EndHeader
";

    fn keep_names(&mut self) {
        self.names = Some(FileNames::default());
    }

    fn names(&self) -> Option<&FileNames> {
        self.names.as_ref()
    }

    fn volume_names(&self) -> &[VolumeName] {
        self.streams.all()
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        let line = line.trim_ascii();
        let event = line.split(|&byte| byte == b',').next().unwrap_or_default().trim_ascii_end();
        let kind = match event {
            b"BeginHeader" | b"EndHeader" => {
                self.in_header = event == b"BeginHeader";
                return Ok(Parsed::Header);
            }
            b"DiskRead" => RequestKind::Read,
            b"DiskWrite" => RequestKind::Write,
            b"DiskFlush" => RequestKind::Flush,
            _ => return other_event(line, self.in_header),
        };
        let layout = match kind {
            RequestKind::Read => &mut self.read,
            RequestKind::Write => &mut self.write,
            _ => &mut self.flush,
        };
        if self.in_header {
            *layout = layout_of(line, kind)?;
            return Ok(Parsed::Header);
        }
        let (parsed, name) = record(line, kind, *layout)?;
        let file = self.names.as_mut().map_or(NO_FILE, |names| names.number(name));
        let stream = if name.is_empty() { 0 } else { self.streams.stream(name) };
        Ok(parsed.of_file(file).of_stream(stream))
    }

    fn is_header(&self, line: &[u8]) -> bool {
        line.trim_ascii_start().starts_with(b"OS Version")
    }

    fn print(&mut self, request: &Request, file: Option<&str>, out: &mut String) -> fmt::Result {
        let (micros, file) = (request.arrival / 1000, file.unwrap_or_default());
        let event = match request.kind {
            RequestKind::Read => "DiskRead",
            RequestKind::Flush => {
                return write!(
                    out,
                    "             DiskFlush, {micros:>10},   palimpsest (   0),          0, 0x0000000000000000, \
                     {0:>36}, {0:>8}, 0x000000, {0:>11}, Normal",
                    0
                );
            }
            _ => "DiskWrite",
        };
        let (offset, bytes) = request.in_bytes();
        write!(
            out,
            "{event:>22}, {micros:>10},   palimpsest (   0),          0, 0x0000000000000000, {offset:#012x}, \
             {bytes:#010x}, {0:>11}, {0:>8}, 0x000000, {0:>11}, Normal, Original, 0x0000000000000000, \"{file}\"",
            0
        )
    }
}

fn other_event(line: &[u8], in_header: bool) -> Parse<Parsed> {
    if in_header {
        return Ok(Parsed::Header);
    }
    let mut columns = line.split(|&byte| byte == b',');
    let time = columns.nth(1).unwrap_or_default().trim_ascii();
    if columns.next().is_some() && number(time, "TimeStamp").is_ok() {
        return Ok(Parsed::Skip);
    }
    Err(Fault::new("expected an event, its time in microseconds and a process, with commas between them"))
}

fn layout_of(header: &[u8], kind: RequestKind) -> Parse<Layout> {
    let position = |name: &str| {
        let found = header.split(|&byte| byte == b',').position(|column| column.trim_ascii() == name.as_bytes());
        found.ok_or_else(|| Fault::new(format!("the header names no column {name}")))
    };
    let (time, disk) = (position("TimeStamp")?, position("DiskNum")?);
    // Without the column requests arrive when they complete.
    let elapsed = position("ElapsedTime").unwrap_or(usize::MAX);
    if kind == RequestKind::Flush {
        return Ok(Layout { time, elapsed, disk, ..FLUSH });
    }
    // Traces without names have no such column.
    let name = position("FileName").unwrap_or(usize::MAX);
    Ok(Layout { time, offset: position("ByteOffset")?, size: position("IOSize")?, elapsed, disk, name })
}

#[inline]
fn record(line: &[u8], kind: RequestKind, layout: Layout) -> Parse<(Parsed, &[u8])> {
    let (mut time, mut offset, mut size, mut disk, mut name) = (None, None, None, None, &b""[..]);
    let mut elapsed = 0;
    let mut rest = Some(line);
    let mut column = 0;
    while let Some(text) = rest {
        if column == layout.name {
            name = text;
            break;
        }
        let end = text.iter().position(|&byte| byte == b',');
        let field = &text[..end.unwrap_or(text.len())];
        rest = end.map(|end| &text[end + 1..]);
        match column {
            _ if column == layout.time => time = Some(number(field, "TimeStamp")?),
            _ if column == layout.offset => offset = Some(hexadecimal(field, "ByteOffset")?),
            _ if column == layout.size => size = Some(hexadecimal(field, "IOSize")?),
            _ if column == layout.elapsed => elapsed = number(field, "ElapsedTime")?,
            _ if column == layout.disk => disk = Some(number(field, "DiskNum")?),
            _ => {}
        }
        column += 1;
    }
    let there =
        |value: Option<u64>, name: &str| value.ok_or_else(|| Fault::new(format!("the line ends before column {name}")));
    let elapsed = elapsed.saturating_mul(1000).min(BEFORE);
    let Some(time) = nanos(there(time, "TimeStamp")?, 1000, "TimeStamp")?.checked_add(BEFORE - elapsed) else {
        return Err(Fault::new("column TimeStamp: expected a time below 2^64 ns"));
    };
    there(disk, "DiskNum")?;
    if kind == RequestKind::Flush {
        return Ok((Parsed::flush(time, 0), b""));
    }
    let parsed = Parsed::of_bytes(time, kind, there(offset, "ByteOffset")?, there(size, "IOSize")?, 0)?;
    Ok((parsed, unquoted(name)))
}

fn unquoted(name: &[u8]) -> &[u8] {
    let name = name.trim_ascii();
    name.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(name)
}

/// A number as `0x...`, or in decimal.
#[inline]
fn hexadecimal(field: &[u8], column: &str) -> Parse<u64> {
    let field = field.trim_ascii();
    let Some(digits) = field.strip_prefix(b"0x") else { return number(field, column) };
    let value = |value: u64, byte: &u8| match (char::from(*byte).to_digit(16), value >> 60) {
        (Some(digit), 0) => Some(value << 4 | u64::from(digit)),
        _ => None,
    };
    match digits.iter().try_fold(0, value) {
        Some(value) if !digits.is_empty() => Ok(value),
        _ => Err(Fault::new(format!("column {column}: expected 0x and up to 16 digits, found {}", quoted(field)))),
    }
}

#[cfg(test)]
mod tests;
