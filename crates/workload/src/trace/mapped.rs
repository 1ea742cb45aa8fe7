//! Any text with a request a line, by columns that the user names: `time=1:us,op=3,offset=5:sectors,size=4,volume=2`.
//!
//! Columns count from 1. The separator is given (`separator=blanks`), or that of commas, tabs, semicolons and blanks by
//! which most lines of the head are requests. Units of a time are `s`, `ms`, `us`, `100ns` or `ns` (the default), with
//! decimals; units of an offset or size `bytes` (the default), `sectors` (512 bytes), `KiB` or `pages` (4 KiB). The
//! operation is a word (read, write, trim, flush, or their first letters) or the kernel's letters (`WS`, `RA`, `FF`);
//! with `op=3:read=1` the value 1 is a read and any other a write, with `op=3:write=W` the reverse, and with
//! `op=3:read=0|2:write=1|3` no other value is legal. A volume is a number, or else a name, of which it is the hash.
//! Without `time` the trace is a closed loop of depth 1; without `op` all requests are writes. The first line is a
//! heading if no field begins with a digit and the operation is no word; a note names the heading. Fields may be in
//! double quotes, without a separator within. Ignored: files.

use std::fmt;

use super::blkparse::kind_of_letters;
use super::columns::kind_of_word;
use super::fields::{Fault, Fields, Parse, decimal, number, quoted};
use super::head::Head;
use super::line_format::{Holds, LineFormat, Parsed};
use crate::request::{Arrivals, Request, RequestKind, SECTOR_BYTES};
use crate::volume_names::{VolumeName, VolumeNames};
use palimpsest_flash::error::{Error, Result};

const MOST_COLUMNS: usize = 64;
const ROLES: [&str; 6] = ["time", "op", "offset", "size", "volume", "separator"];
const SEPARATORS: [(&str, Option<u8>); 4] =
    [("comma", Some(b',')), ("tab", Some(b'\t')), ("semicolon", Some(b';')), ("blanks", None)];
const KINDS: [(&str, RequestKind); 4] = [
    ("read", RequestKind::Read),
    ("write", RequestKind::Write),
    ("trim", RequestKind::Trim),
    ("flush", RequestKind::Flush),
];
const EXPECTED: &str = "expected columns such as time=1:us,op=3,offset=5:sectors,size=4,volume=2";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Operation {
    /// By words.
    #[default]
    Word,
    /// By values, and the kind of any other value.
    Codes(Vec<(Vec<u8>, RequestKind)>, Option<RequestKind>),
}

/// Roles and units of columns, which count from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapped {
    time: Option<(usize, u32)>,
    operation: Option<(usize, Operation)>,
    offset: (usize, u64),
    size: (usize, u64),
    volume: Option<usize>,
    volumes: VolumeNames,
    /// Place in [`SEPARATORS`].
    separator: usize,
    is_separator_given: bool,
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
            if role == ROLES[5] {
                let names = SEPARATORS.map(|(name, _)| name);
                let found = names.iter().position(|name| *name == place);
                mapped.separator =
                    found.ok_or_else(|| wrong(format!("there is no separator {place:?}, but {}", names.join(", "))))?;
                mapped.is_separator_given = true;
                continue;
            }
            let (column, unit) = place.split_once(':').map_or((place, None), |(column, unit)| (column, Some(unit)));
            let column = match column.parse() {
                Ok(column @ 1..=MOST_COLUMNS) => column - 1,
                _ => return Err(wrong(format!("{column:?} is no number of a column from 1 to {MOST_COLUMNS}"))),
            };
            let no_unit = || wrong(format!("{role} has no unit {:?}", unit.unwrap_or_default()));
            let is_second = match ROLES.iter().position(|known| *known == role) {
                Some(0) => {
                    let units = [("s", 9), ("ms", 6), ("us", 3), ("100ns", 2), ("ns", 0)];
                    let found = units.iter().find(|each| each.0 == unit.unwrap_or("ns")).ok_or_else(no_unit)?;
                    mapped.time.replace((column, found.1)).is_some()
                }
                Some(1) => {
                    let operation = unit.map_or(Some(Operation::Word), codes).ok_or_else(no_unit)?;
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
        match SEPARATORS[self.separator].1 {
            Some(separator) => Fields::separated(line, separator),
            None => Fields::blank(line),
        }
    }

    /// True if no field of `line` begins like a number, and the operation is no word of an operation.
    fn is_of_words(&self, line: &[u8]) -> bool {
        let mut fields = self.fields(line);
        let are_words = std::iter::from_fn(|| fields.text("").ok()).all(|field| !begins_as_number(field));
        let is_word = |at| !self.column(line, at, "op").is_ok_and(|op| kind_of(op).is_ok());
        are_words && !matches!(self.operation, Some((at, Operation::Word)) if !is_word(at))
    }

    /// The column `at` of `line`.
    fn column<'a>(&self, line: &'a [u8], at: usize, name: &str) -> Parse<&'a [u8]> {
        let mut fields = self.fields(line);
        let short = |found: usize| {
            let (place, separator) = (at + 1, SEPARATORS[self.separator].0);
            let plural = if found == 1 { "" } else { "s" };
            Fault::new(format!(
                "column {name} is column {place}, but the line has {found} column{plural}, separated by {separator} \
                 (separator=... chooses another)"
            ))
        };
        for found in 0..at {
            fields.text(name).map_err(|_| short(found))?;
        }
        fields.text(name).map(unquoted).map_err(|_| short(at))
    }
}

/// `KIND=VALUE[|VALUE]`, parted by colons; of a single read or write, any other value is the other of the two.
fn codes(text: &str) -> Option<Operation> {
    let mut codes = Vec::new();
    for part in text.split(':') {
        let (kind, values) = part.split_once('=')?;
        let (_, kind) = KINDS.iter().find(|(name, _)| *name == kind)?;
        codes.extend(values.split('|').map(|value| (value.as_bytes().to_vec(), *kind)));
    }
    let other = match (text.contains(':'), codes[0].1) {
        (false, RequestKind::Read) => Some(RequestKind::Write),
        (false, RequestKind::Write) => Some(RequestKind::Read),
        _ => None,
    };
    codes.iter().all(|(value, _)| !value.is_empty()).then_some(Operation::Codes(codes, other))
}

/// The kind of a word, or of the kernel's letters.
fn kind_of(op: &[u8]) -> Parse<RequestKind> {
    kind_of_word(op).or_else(|fault| kind_of_letters(op, 1).ok().flatten().ok_or(fault))
}

/// `field` without blanks around it, and without double quotes.
fn unquoted(field: &[u8]) -> &[u8] {
    match field.trim_ascii() {
        [b'"', inner @ .., b'"'] => inner,
        other => other,
    }
}

fn begins_as_number(field: &[u8]) -> bool {
    let digits = unquoted(field);
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
        if !self.is_separator_given {
            let requests = |separator: usize| {
                let mut by = Mapped { separator, ..self.clone() };
                head.lines().filter(|(_, line)| by.parse(line).is_ok()).count()
            };
            // Of equals, the first that any line contains.
            let contained = |separator: usize| {
                head.lines().any(|(_, line)| SEPARATORS[separator].1.is_none_or(|byte| line.contains(&byte)))
            };
            let best = (0..SEPARATORS.len()).max_by_key(|&each| (requests(each), contained(each), usize::MAX - each));
            self.separator = best.unwrap_or_default();
        }
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

    fn volume_names(&self) -> &[VolumeName] {
        self.volumes.all()
    }

    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        if let Some(heading) = &mut self.heading
            && !heading.is_read
            && heading.line == line
        {
            heading.is_read = true;
            return Ok(Parsed::Header);
        }
        let volume = match self.volume {
            Some(at) => {
                let volume = self.column(line, at, "volume")?;
                match number(volume, "volume") {
                    Ok(number) => number,
                    Err(_) => u64::from(self.volumes.stream(volume)),
                }
            }
            None => 0,
        };
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
            Some((at, Operation::Word)) => kind_of(self.column(line, *at, "op")?)?,
            Some((at, Operation::Codes(codes, other))) => {
                let value = self.column(line, *at, "op")?;
                let code = codes.iter().find(|(code, _)| code == value);
                let unknown = || Fault::column("op", "a value that --columns names", value);
                code.map(|(_, kind)| *kind).or(*other).ok_or_else(unknown)?
            }
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
