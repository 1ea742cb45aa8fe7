//! Any text with a request a line, by columns that the user names: `time=1:us,op=3,offset=5:sectors,size=4,volume=2`.
//!
//! Columns count from 1. The first line with digits determines the separator: commas, tabs, semicolons or blanks. Units
//! of a time are `s`, `ms`, `us` or `ns` (the default), with decimals; units of an offset or size `bytes` (the
//! default), `sectors` (512 bytes), `KiB` or `pages` (4 KiB). The operation is a word (read, write, trim, flush, or
//! their first letters); with `op=3:read=1` the value 1 is a read and any other a write, with `op=3:write=W` the
//! reverse. Without `time` the trace is a closed loop of depth 1; without `op` all requests are writes. The first line
//! is a heading if no field begins with a digit and the operation is no word; a note names the heading. Ignored:
//! quotes, files.

use std::fmt;

use super::columns::kind_of_word;
use super::fields::{Fault, Fields, Parse, decimal, number, quoted};
use super::head::Head;
use super::line_format::{Holds, LineFormat, Parsed};
use crate::request::{Arrivals, Request, RequestKind, SECTOR_BYTES};
use palimpsest_flash::error::{Error, Result};

const MOST_COLUMNS: usize = 64;
const ROLES: [&str; 5] = ["time", "op", "offset", "size", "volume"];
const EXPECTED: &str = "expected columns such as time=1:us,op=3,offset=5:sectors,size=4,volume=2";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Operation {
    /// By words.
    #[default]
    Word,
    /// This value is the kind, any other value the opposite kind.
    Is(RequestKind, Vec<u8>),
}

/// Roles and units of columns, which count from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapped {
    time: Option<(usize, u32)>,
    operation: Option<(usize, Operation)>,
    offset: (usize, u64),
    size: (usize, u64),
    volume: Option<usize>,
    last: usize,
    separator: Option<u8>,
    heading: Option<Heading>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Heading {
    line: Vec<u8>,
    number: u64,
    is_read: bool,
}

impl Mapped {
    /// Reads the notation above.
    ///
    /// # Errors
    /// [`Error::Input`] with the expected notation.
    pub fn parse(text: &str) -> Result<Mapped> {
        let wrong = |what: String| Error::input(format!("--columns {text}"), format!("{what}; {EXPECTED}"));
        let mut mapped = Mapped::default();
        let (mut offset, mut size) = (None, None);
        for part in text.split(',').map(str::trim) {
            let (role, place) = part.split_once('=').ok_or_else(|| wrong(format!("{part:?} has no column")))?;
            let (column, unit) = place.split_once(':').map_or((place, None), |(column, unit)| (column, Some(unit)));
            let column = match column.parse() {
                Ok(column @ 1..=MOST_COLUMNS) => column - 1,
                _ => return Err(wrong(format!("{column:?} is no number of a column from 1 to {MOST_COLUMNS}"))),
            };
            mapped.last = mapped.last.max(column);
            let no_unit = || wrong(format!("{role} has no unit {:?}", unit.unwrap_or_default()));
            let is_second = match ROLES.iter().position(|known| *known == role) {
                Some(0) => {
                    let units = [("s", 9), ("ms", 6), ("us", 3), ("ns", 0)];
                    let found = units.iter().find(|each| each.0 == unit.unwrap_or("ns")).ok_or_else(no_unit)?;
                    mapped.time.replace((column, found.1)).is_some()
                }
                Some(1) => {
                    let operation = match unit.map(|unit| unit.split_once('=').unwrap_or((unit, ""))) {
                        None => Operation::Word,
                        Some(("read", value)) if !value.is_empty() => Operation::Is(RequestKind::Read, value.into()),
                        Some(("write", value)) if !value.is_empty() => Operation::Is(RequestKind::Write, value.into()),
                        Some(_) => return Err(no_unit()),
                    };
                    mapped.operation.replace((column, operation)).is_some()
                }
                Some(at @ (2 | 3)) => {
                    let units = [("bytes", 1), ("sectors", SECTOR_BYTES), ("KiB", 1 << 10), ("pages", 4 << 10)];
                    let found = units.iter().find(|each| each.0 == unit.unwrap_or("bytes")).ok_or_else(no_unit)?;
                    let slot = if at == 2 { &mut offset } else { &mut size };
                    slot.replace((column, found.1)).is_some()
                }
                Some(_) if unit.is_none() => mapped.volume.replace(column).is_some(),
                Some(_) => return Err(no_unit()),
                None => return Err(wrong(format!("there is no {role:?}, but {}", ROLES.join(", ")))),
            };
            if is_second {
                return Err(wrong(format!("{role} is given twice")));
            }
        }
        mapped.offset = offset.ok_or_else(|| wrong("offset is missing".into()))?;
        mapped.size = size.ok_or_else(|| wrong("size is missing".into()))?;
        Ok(mapped)
    }

    fn fields<'a>(&self, line: &'a [u8]) -> Fields<'a> {
        match self.separator {
            Some(separator) => Fields::separated(line, separator),
            None => Fields::blank(line),
        }
    }

    /// True if no field of `line` begins like a number, and the operation is no word of an operation.
    fn is_of_words(&self, line: &[u8]) -> bool {
        let mut fields = self.fields(line);
        let are_words = std::iter::from_fn(|| fields.text("").ok()).all(|field| !begins_as_number(field));
        let is_word = |at| !self.column(line, at, "op").is_ok_and(|op| kind_of_word(op).is_ok());
        are_words && !matches!(self.operation, Some((at, Operation::Word)) if !is_word(at))
    }

    /// The column `at` of `line`.
    fn column<'a>(&self, line: &'a [u8], at: usize, name: &str) -> Parse<&'a [u8]> {
        let mut fields = self.fields(line);
        for _ in 0..at {
            fields.text(name)?;
        }
        fields.text(name).map(<[u8]>::trim_ascii)
    }
}

fn begins_as_number(field: &[u8]) -> bool {
    let digits = field.trim_ascii_start();
    digits.strip_prefix(b"-").unwrap_or(digits).first().is_some_and(u8::is_ascii_digit)
}

impl LineFormat for Mapped {
    const NAME: &'static str = "columns";
    const ABOUT: &'static str = "text with the columns of --columns";
    const HOLDS: Holds = Holds::PLAIN;

    fn has_volumes(&self) -> bool {
        self.volume.is_some()
    }

    fn prepare(&mut self, head: &Head<'_>) {
        let digits = |line: &&[u8]| line.iter().any(u8::is_ascii_digit);
        let first = head.lines().map(|(_, line)| line).find(digits).unwrap_or_default();
        self.separator = [b',', b'\t', b';'].into_iter().find(|separator| first.contains(separator));
        let first = head.lines().find(|(_, line)| !line.trim_ascii().is_empty());
        self.heading = first.filter(|(_, line)| self.is_of_words(line)).map(|(number, line)| Heading {
            line: line.to_vec(),
            number,
            is_read: false,
        });
    }

    fn notes(&self) -> Vec<String> {
        let note = |heading: &Heading| {
            format!("line {} is a heading, and no request: {}", heading.number, quoted(&heading.line))
        };
        self.heading.iter().map(note).collect()
    }

    fn arrivals(&self) -> Arrivals {
        if self.time.is_some() { Arrivals::Open } else { Arrivals::Closed { depth: 1 } }
    }

    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        if let Some(heading) = &mut self.heading
            && !heading.is_read
            && heading.line == line
        {
            heading.is_read = true;
            return Ok(Parsed::Header);
        }
        let bytes = |(at, unit): (usize, u64), name: &str| {
            let value = number(self.column(line, at, name)?, name)?;
            value
                .checked_mul(unit)
                .ok_or_else(|| Fault::column(name, "less than 2^64 bytes", value.to_string().as_bytes()))
        };
        let time = match self.time {
            Some((at, digits)) => decimal(self.column(line, at, "time")?, "time", digits)?,
            None => 0,
        };
        let kind = match &self.operation {
            None => RequestKind::Write,
            Some((at, Operation::Word)) => kind_of_word(self.column(line, *at, "op")?)?,
            Some((at, Operation::Is(kind, value))) => match (self.column(line, *at, "op")? == value, kind) {
                (true, kind) => *kind,
                (false, RequestKind::Read) => RequestKind::Write,
                (false, _) => RequestKind::Read,
            },
        };
        let volume = match self.volume {
            Some(at) => number(self.column(line, at, "volume")?, "volume")?,
            None => 0,
        };
        if kind == RequestKind::Flush {
            return Ok(Parsed::flush(time, u32::try_from(volume).unwrap_or(u32::MAX)));
        }
        Parsed::of_bytes(time, kind, bytes(self.offset, "offset")?, bytes(self.size, "size")?, volume)
    }

    fn print(&mut self, _request: &Request, _file: Option<&str>, _out: &mut String) -> fmt::Result {
        // Columns name no format of a file, so no trace is written.
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests;
