//! I/O logs of fio (<https://fio.readthedocs.io>, "Trace file format"), versions 2 and 3: the output of `write_iolog`.
//!
//! The first line has the version. Version 2: `file action [offset bytes]`; version 3: `microseconds file action
//! [offset bytes]`. Actions on files (add, open, close, unlink) are skipped; sync and datasync are flushes. In version
//! 2 `wait` sets the time; a log without a `wait` near the start has no times and is replayed in a closed loop of depth
//! 1, fio's default. `iolog` reads waits as fio's manual (HOWTO) has them: microseconds from the previous `wait`.
//! `iolog-program` reads them as fio's program (`read_iolog_get` in iolog.c) does: milliseconds from the start of the
//! run, without effect if past. Times of version 3 are microseconds from the start in both.
//!
//! File names contain no blanks. As in CSV a hash of the file name is the stream; files share one address space.
//!
//! Differences from fio: files need not be added before use; waits below 100 us count.

use std::borrow::Cow;
use std::fmt::{self, Write};

use super::fields::{Fault, Fields, Parse, nanos};
use super::head::Head;
use super::line_format::{Holds, LineFormat, Names, Parsed};
use crate::request::{Arrivals, FileNames, Request, RequestKind};
use crate::volume_names::{VolumeName, VolumeNames};
use palimpsest_flash::units::Nanos;

const NANOS_PER_MICRO: u64 = 1000;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// Reads a log, with waits as fio's program or its manual, and prints one.
#[derive(Default)]
pub struct Iolog<const AS_PROGRAM: bool = false> {
    version: Version,
    now: Nanos,
    has_no_times: bool,
    has_waits: bool,
    files: FileNames,
    streams: VolumeNames,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Version {
    #[default]
    Unknown,
    Two,
    Three,
}

impl<const AS_PROGRAM: bool> LineFormat for Iolog<AS_PROGRAM> {
    const NAME: &'static str = if AS_PROGRAM { "iolog-program" } else { "iolog" };
    const ALIASES: &'static [&'static str] = if AS_PROGRAM { &[] } else { &["fio"] };
    const ABOUT: &'static str = if AS_PROGRAM {
        "as iolog, but waits of version 2 are milliseconds from the start, as in fio's program, not in its manual"
    } else {
        "fio iolog, version 2 or 3: a line `fio version N iolog`, then [microseconds] file action offset bytes"
    };
    const HOLDS: Holds =
        Holds { time_grain: NANOS_PER_MICRO, streams: false, names: Names::WithoutBlanks, ..Holds::BARE };
    const HEADER: &'static str = "fio version 3 iolog\n";

    fn prepare(&mut self, head: &Head<'_>) {
        let is_wait = |line: &[u8]| line.split(|&byte| byte == b' ').nth(1) == Some(b"wait");
        let mut lines = head.lines().map(|(_, line)| line);
        let is_second = lines.next().is_some_and(|line| line.trim_ascii() == b"fio version 2 iolog");
        self.has_waits = is_second && lines.any(is_wait);
        self.has_no_times = is_second && !self.has_waits;
    }

    fn could_be(_line: &[u8]) -> bool {
        !AS_PROGRAM
    }

    fn notes(&self) -> Vec<String> {
        let note = if AS_PROGRAM {
            "waits are milliseconds from the start, as in fio's program; --from iolog reads them as its manual does"
        } else {
            "waits are microseconds from the wait before, as in fio's manual; --from iolog-program reads them as \
             fio's program does, in milliseconds from the start"
        };
        self.has_waits.then(|| note.into()).into_iter().collect()
    }

    fn arrivals(&self) -> Arrivals {
        if self.has_no_times { Arrivals::Closed { depth: 1 } } else { Arrivals::Open }
    }

    fn names(&self) -> Option<&FileNames> {
        Some(&self.files)
    }

    fn volume_names(&self) -> &[VolumeName] {
        self.streams.all()
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        match self.version {
            Version::Unknown => self.read_version(line),
            Version::Two => self.action(self.now, Fields::blank(line)),
            Version::Three => {
                let mut fields = Fields::blank(line);
                let micros = fields.number("time")?;
                self.action(nanos(micros, NANOS_PER_MICRO, "time")?, fields)
            }
        }
    }

    fn print(&mut self, request: &Request, file: Option<&str>, out: &mut String) -> fmt::Result {
        let micros = request.arrival / NANOS_PER_MICRO;
        let file = file.map_or_else(|| format!("stream-{}", request.owner()).into(), Cow::Borrowed);
        let known = self.files.len();
        self.files.number(file.as_bytes());
        if self.files.len() > known {
            write!(out, "{micros} {file} add\n{micros} {file} open\n")?;
        }
        let action = match request.kind {
            RequestKind::Read => "read",
            RequestKind::Write => "write",
            RequestKind::Trim => "trim",
            RequestKind::Flush => "sync",
        };
        let (offset, bytes) = request.in_bytes();
        write!(out, "{micros} {file} {action} {offset} {bytes}")
    }
}

impl<const AS_PROGRAM: bool> Iolog<AS_PROGRAM> {
    fn read_version(&mut self, line: &[u8]) -> Parse<Parsed> {
        self.version = match line.trim_ascii() {
            b"fio version 2 iolog" => Version::Two,
            b"fio version 3 iolog" => Version::Three,
            other => return Err(Fault::column("version", "`fio version 2 iolog` or `fio version 3 iolog`", other)),
        };
        Ok(Parsed::Header)
    }

    #[inline]
    fn action(&mut self, time: Nanos, mut fields: Fields<'_>) -> Parse<Parsed> {
        let file = fields.text("file")?;
        let action = fields.text("action")?;
        let kind = match action {
            b"read" => RequestKind::Read,
            b"write" => RequestKind::Write,
            b"trim" => RequestKind::Trim,
            b"sync" | b"datasync" => RequestKind::Flush,
            b"add" | b"open" | b"close" | b"unlink" => return Ok(Parsed::Skip),
            b"wait" if self.version == Version::Two => {
                let wait = fields.number("wait")?;
                let now = if AS_PROGRAM {
                    Some(nanos(wait, NANOS_PER_MILLI, "time")?.max(self.now))
                } else {
                    nanos(wait, NANOS_PER_MICRO, "time")?.checked_add(self.now)
                };
                self.now = now.ok_or_else(|| Fault::new("the waits add up to 2^64 ns or more; expected less"))?;
                return Ok(Parsed::Skip);
            }
            other => return Err(Fault::column("action", "read, write, trim, sync, add, open or close", other)),
        };
        let parsed = if kind == RequestKind::Flush {
            Parsed::flush(time, 0)
        } else {
            Parsed::of_bytes(time, kind, fields.number("offset")?, fields.number("bytes")?, 0)?
        };
        Ok(parsed.of_file(self.files.number(file)).of_stream(self.streams.stream(file)))
    }
}

#[cfg(test)]
mod tests;
