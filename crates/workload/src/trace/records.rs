//! Binary formats: records of bytes instead of lines. Numbers in messages count records.
//!
//! A record has a fixed part and perhaps more bytes, which are skipped. A file that ends inside a record is an error,
//! unless bad records are skipped. A format is recognised only if every whole record in the head of the file is valid.

use super::fields::{Fault, Parse};
use super::head::Head;
use super::line_format::{Holds, Parsed};
use super::line_source::Clock;
use super::votes::Vote;
use super::{Format, Opened};
use crate::request::{Arrivals, Request, Source};
use crate::volume_names::VolumeName;
use palimpsest_flash::error::{Error, Result};

/// A format whose records are bytes. Parsing must not panic on any bytes.
pub trait RecordFormat: Default + Send + 'static {
    /// Name in listings and options.
    const NAME: &'static str;
    /// Other names.
    const ALIASES: &'static [&'static str] = &[];
    /// One line for listings.
    const ABOUT: &'static str;
    /// Nanoseconds; times are multiples.
    const TIME_GRAIN: u64;
    /// Streams are volumes.
    const HAS_VOLUMES: bool = false;

    /// Name in messages and results.
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// The number of records in the head of a file; 0 for another format.
    fn recognise(head: &[u8]) -> u64;

    /// The streams so far that have names.
    fn volume_names(&self) -> &[VolumeName] {
        &[]
    }

    /// Reads the start of the file for properties of the whole trace, such as the order of bytes.
    fn prepare(&mut self, _head: &[u8]) {}

    /// Notes for the user; valid after [`prepare`](Self::prepare).
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Bytes of the fixed part of a record: the same for the whole trace, at most 4096.
    fn size(&self) -> usize;

    /// Reads the fixed part of a record, [`size`](Self::size) bytes. A fault is a bad record, which may be skipped.
    fn parse(&mut self, record: &[u8]) -> Parse<Parsed>;

    /// Bytes after the fixed part, at most 65,535.
    ///
    /// # Errors
    /// The bytes are no record, so the place of the next record is unknown.
    fn more(&self, _record: &[u8]) -> Parse<usize> {
        Ok(0)
    }
}

impl Format {
    /// A format of records of bytes, which is read and not written.
    pub(super) const fn of_records<F: RecordFormat>() -> Format {
        Format {
            name: F::NAME,
            aliases: F::ALIASES,
            about: F::ABOUT,
            is_text: false,
            recognise: |head: &Head<'_>| Vote { lines: F::recognise(head.bytes), first_line: 1 },
            contest: |_| None,
            reads: |_, _| None,
            open: |opened| open(opened, F::default()),
            holds: Holds { time_grain: F::TIME_GRAIN, ..Holds::PLAIN },
            create: None,
        }
    }
}

/// The requests of `opened`, which `format` parses.
pub(super) fn open<F: RecordFormat>(opened: Opened, format: F) -> Result<Box<dyn Source>> {
    let mut source = RecordSource { opened, format, clock: Clock::default(), requests: 0, skipped: 0 };
    let head = source.opened.lines.read_head();
    source.format.prepare(head.bytes);
    source.opened.lines.restore_mark();
    Ok(Box::new(source))
}

struct RecordSource<F> {
    opened: Opened,
    format: F,
    clock: Clock,
    requests: u64,
    skipped: u64,
}

impl<F: RecordFormat> Source for RecordSource<F> {
    fn next_request(&mut self) -> Result<Option<Request>> {
        loop {
            let size = self.format.size();
            let Some(record) = self.opened.lines.take(size)? else { break };
            if record.len() < size {
                let fault = Fault::new(format!("the file ends {} bytes into a record of {size}", record.len()));
                self.bad_record(&fault, false)?;
                continue;
            }
            let read = self.format.parse(record);
            let more = match self.format.more(record) {
                Ok(more) => more,
                Err(fault) => return Err(self.fault(&fault)),
            };
            if more > 0 && self.opened.lines.take_more(more)? < more {
                let fault = Fault::new(format!("the file ends in the {more} bytes after a record"));
                self.bad_record(&fault, false)?;
                continue;
            }
            let placed = match read {
                Ok(Parsed::Record(record)) => self.clock.check(record),
                Ok(Parsed::Header | Parsed::Skip) => continue,
                Ok(Parsed::End) => break,
                Err(fault) => Err(fault),
            };
            match placed {
                Ok(request) => {
                    self.requests += 1;
                    return Ok(Some(request));
                }
                Err(fault) => self.bad_record(&fault, true)?,
            }
        }
        if self.requests == 0 {
            let what = format!("the file holds no request; expected {}", F::ABOUT);
            return Err(Error::input(self.opened.lines.name(), what));
        }
        Ok(None)
    }

    fn notes(&self) -> Vec<String> {
        self.format.notes()
    }

    fn place(&self) -> String {
        self.opened.lines.place()
    }

    fn line(&self) -> Option<u64> {
        Some(self.opened.lines.number())
    }

    fn arrivals(&self) -> Arrivals {
        Arrivals::Open
    }

    fn format(&self) -> Option<&'static str> {
        Some(self.format.name())
    }

    fn has_volumes(&self) -> bool {
        F::HAS_VOLUMES
    }

    fn volume_names(&self) -> &[VolumeName] {
        self.format.volume_names()
    }

    fn skipped_lines(&self) -> u64 {
        self.skipped
    }
}

impl<F: RecordFormat> RecordSource<F> {
    /// Skips a bad record or fails, by the user's option.
    #[cold]
    fn bad_record(&mut self, fault: &Fault, is_whole: bool) -> Result<()> {
        if !self.opened.skip_bad {
            return Err(match is_whole {
                true => self.fault(fault),
                false => self.fault(&Fault::new(format!("{}, and may have been cut", fault.what))),
            });
        }
        self.skipped += 1;
        Ok(())
    }

    #[cold]
    fn fault(&self, fault: &Fault) -> Error {
        let reading = if self.opened.recognised_from.is_some() { "recognised" } else { "read" };
        let what = format!("record: {}; the file is {reading} as {}, {}", fault.what, self.format.name(), F::ABOUT);
        Error::input(self.place(), what)
    }
}

/// Numbers of fixed sizes at a place in a record.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a> {
    /// The record.
    pub record: &'a [u8],
    /// The most significant byte is first.
    pub is_big_endian: bool,
}

impl Bytes<'_> {
    /// The unsigned number of `size` bytes at `at`, which the record has.
    #[inline]
    fn number(self, at: usize, size: usize) -> u64 {
        let bytes = &self.record[at..at + size];
        let append = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        if self.is_big_endian { bytes.iter().fold(0, append) } else { bytes.iter().rev().fold(0, append) }
    }

    /// Two bytes.
    pub fn u16(self, at: usize) -> u16 {
        self.number(at, 2) as u16
    }

    /// Four bytes.
    pub fn u32(self, at: usize) -> u32 {
        self.number(at, 4) as u32
    }

    /// Eight bytes.
    pub fn u64(self, at: usize) -> u64 {
        self.number(at, 8)
    }
}

/// Numbers of a record with the least significant byte first.
pub fn little(record: &[u8]) -> Bytes<'_> {
    Bytes { record, is_big_endian: false }
}
