//! CSV with named columns: `time_ns`, `op`, `offset_bytes` and `size_bytes` in any order, optionally `file`, `stream`,
//! and for writes `fua` (0 or 1) and `placement` (an identifier; empty: none).
//!
//! The first line names the columns, in letters of either case, and separates them by commas, tabs or semicolons, as do
//! all other lines. Other columns are ignored, and a note names them. Operations are read, write, trim
//! (or discard), flush and update (of the reclaim unit handle that `placement` names), or their first letters, of
//! either case; a flush and an update need no offset and size. An operation may also be a command on the zone at the
//! offset: append, open, open-zrwa, commit (up to the end of the extent), close, finish, offline; a trim of a zone
//! resets it. Fields may be in double quotes (no line ends within). The stream is the number in the column `stream`,
//! else a 32-bit hash of the file name, because a table of names would grow with the trace.

use std::fmt::{self, Write};

use super::fields::{Fault, Parse, number, quoted};
use super::head::Head;
use super::line_format::{Holds, LineFormat, Parsed};
use crate::request::{FileNames, NO_FILE, Request, RequestKind};
use crate::volume_names::{VolumeName, VolumeNames};
use palimpsest_flash::command::{ZONE_ACTIONS, ZoneAction};
use palimpsest_flash::keys::few;
use palimpsest_flash::units::Nanos;
use palimpsest_flash::units::parse::shown;

/// The known columns.
pub const NAMES: [&str; 8] = ["time_ns", "op", "offset_bytes", "size_bytes", "file", "stream", "fua", "placement"];
/// Number of required columns, the first of [`NAMES`].
pub const REQUIRED: usize = 4;
/// Bytes between columns.
pub const SEPARATORS: [u8; 3] = *b",\t;";
/// Most columns; further ones are ignored.
const MOST_COLUMNS: usize = 64;
/// Most columns that a note names.
const MOST_NAMED: usize = 8;

/// Reads and prints lines.
#[derive(Default)]
pub struct Columns {
    /// The place in [`NAMES`] of each column; empty before the header.
    roles: Vec<Option<usize>>,
    separator: u8,
    names: Option<FileNames>,
    streams: VolumeNames,
    /// Columns of the heading that are not read.
    others: Vec<String>,
}

impl LineFormat for Columns {
    const NAME: &'static str = "csv";
    const ABOUT: &'static str =
        "CSV with a header line naming time_ns, op, offset_bytes, size_bytes [, file, stream, fua, placement]";

    const HOLDS: Holds = Holds { zones: true, ..Holds::ALL };
    const HEADER: &'static str = "time_ns,op,offset_bytes,size_bytes,file,stream\n";

    fn prepare(&mut self, head: &Head<'_>) {
        let heading = head.lines().next().map_or(&b""[..], |(_, line)| line);
        let (found, separator) = roles(heading).unwrap_or_default();
        let columns = String::from_utf8_lossy(heading);
        let named = columns.split(char::from(separator)).zip(found).filter(|(_, role)| role.is_none());
        self.others = named.map(|(name, _)| shown(name.trim())).filter(|name| !name.is_empty()).collect();
    }

    fn notes(&self) -> Vec<String> {
        let (are, columns) = if self.others.len() == 1 { ("is", "column") } else { ("are", "columns") };
        let note = format!("the {columns} {} of the trace {are} not read", few(&self.others, MOST_NAMED, "and"));
        Vec::from_iter((!self.others.is_empty()).then_some(note))
    }

    fn keep_names(&mut self) {
        self.names = Some(FileNames::default());
    }

    fn names(&self) -> Option<&FileNames> {
        self.names.as_ref()
    }

    fn volume_names(&self) -> &[VolumeName] {
        self.streams.all()
    }

    fn parse(&mut self, line: &[u8]) -> Parse<Parsed> {
        if self.roles.is_empty() {
            (self.roles, self.separator) = roles(line)?;
            return Ok(Parsed::Header);
        }
        let mut values: [Option<&[u8]>; NAMES.len()] = [None; NAMES.len()];
        let mut rest = Some(line);
        for role in &self.roles {
            let Some(text) = rest else { break };
            let (field, after) = split_field(text, self.separator)?;
            rest = after;
            if let Some(role) = role {
                values[*role] = Some(field);
            }
        }
        if rest.is_some_and(|more| !more.is_empty()) && self.roles.len() < MOST_COLUMNS {
            let what =
                format!("expected the {} columns of the heading, found more in {}", self.roles.len(), quoted(line));
            return Err(Fault::new(what));
        }
        let value = |role: usize| {
            values[role].ok_or_else(|| Fault::new(format!("the line ends before column {}", NAMES[role])))
        };
        let time = number(value(0)?, NAMES[0])?;
        let (kind, updates, action) = operation(value(1)?)?;
        let given = |role: usize| {
            values[role].filter(|text| !text.is_empty()).map(|text| number(text, NAMES[role])).transpose()
        };
        let stream = stream_of(given(5)?, values[4].filter(|file| !file.is_empty()), &mut self.streams)?;
        let extent = || Ok((number(value(2)?, NAMES[2])?, number(value(3)?, NAMES[3])?));
        let parsed = directed(record_of(time, kind, extent, stream)?, updates, given(6)?, given(7)?)?;
        Ok(parsed.of_file(self.file(values[4])).on_zone(action))
    }

    fn print(&mut self, request: &Request, file: Option<&str>, out: &mut String) -> fmt::Result {
        let op = word(request);
        let (offset, bytes) = request.in_bytes();
        write!(out, "{},{op},{offset},{bytes},", request.arrival)?;
        match file {
            Some(file) if file.contains(['"', ',']) => write!(out, "\"{}\"", file.replace('"', "\"\""))?,
            Some(file) => out.write_str(file)?,
            None => {}
        }
        write!(out, ",{}", request.owner())
    }
}

impl Columns {
    fn file(&mut self, name: Option<&[u8]>) -> u32 {
        match (&mut self.names, name) {
            (Some(names), Some(name)) if name.contains(&b'"') => {
                let single = String::from_utf8_lossy(name).replace("\"\"", "\"");
                names.number(single.as_bytes())
            }
            (Some(names), Some(name)) => names.number(name),
            _ => NO_FILE,
        }
    }
}

/// The roles of the columns, and the separator by which the header names the required ones.
fn roles(header: &[u8]) -> Parse<(Vec<Option<usize>>, u8)> {
    let read = |separator: u8| Ok((roles_between(header, separator)?, separator));
    let [commas, others @ ..] = SEPARATORS.map(read);
    commas.or_else(|fault| others.into_iter().find_map(Parse::ok).ok_or(fault))
}

fn roles_between(header: &[u8], separator: u8) -> Parse<Vec<Option<usize>>> {
    let mut roles = Vec::new();
    let mut rest = Some(header);
    for _ in 0..MOST_COLUMNS {
        let Some(text) = rest else { break };
        let (field, after) = split_field(text, separator)?;
        let field = field.trim_ascii();
        roles.push(NAMES.iter().position(|name| field.eq_ignore_ascii_case(name.as_bytes())));
        rest = after;
    }
    if let Some(twice) = (0..NAMES.len()).find(|role| roles.iter().filter(|each| **each == Some(*role)).count() > 1) {
        return Err(Fault::new(format!("expected each column once, found {} twice", NAMES[twice])));
    }
    match (0..REQUIRED).find(|role| !roles.contains(&Some(*role))) {
        Some(missing) => {
            let what = format!("expected a header line naming {}, found {}", NAMES[missing], quoted(header));
            Err(Fault::new(what))
        }
        None => Ok(roles),
    }
}

/// A message with the missing or repeated columns, if `line` names most required columns, perhaps by names such as
/// `time` or `offset`.
pub fn nearly_a_heading(line: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(line).ok()?;
    let separator = SEPARATORS.map(char::from).into_iter().max_by_key(|&separator| text.matches(separator).count())?;
    let fields: Vec<String> =
        text.split(separator).map(|field| field.trim().trim_matches('"').trim().to_ascii_lowercase()).collect();
    let means = |role: usize, field: &String| NAMES[role] == field || NAMES[role].split('_').next() == Some(field);
    let places: Vec<(usize, usize)> = (0..REQUIRED)
        .filter_map(|role| fields.iter().position(|field| means(role, field)).map(|place| (role, place)))
        .collect();
    let lacking: Vec<&str> =
        NAMES[..REQUIRED].iter().filter(|name| !fields.iter().any(|field| field == *name)).copied().collect();
    if lacking.is_empty() {
        let twice = NAMES.iter().find(|name| fields.iter().filter(|field| field == *name).count() > 1)?;
        return Some(format!("the heading of a csv trace names {twice} twice; expected each column once"));
    }
    if places.len() < 3 {
        return None;
    }
    let roles: Vec<String> = places
        .iter()
        .map(|&(role, place)| format!("{}={}", NAMES[role].split('_').next().unwrap_or_default(), place + 1))
        .collect();
    Some(format!(
        "the heading of a csv trace names no {}; expected the columns {}, or --columns {}",
        lacking.join(" and no "),
        NAMES[..REQUIRED].join(", "),
        roles.join(",")
    ))
}

/// The first field of `text`, without quotes, and the text after the separator.
#[inline]
fn split_field(text: &[u8], separator: u8) -> Parse<(&[u8], Option<&[u8]>)> {
    if let [b'"', inner @ ..] = text {
        return split_quoted(inner, separator);
    }
    match text.iter().position(|&byte| byte == separator) {
        Some(end) => Ok((&text[..end], Some(&text[end + 1..]))),
        None => Ok((text, None)),
    }
}

/// As [`split_field`] after an opening quote. A doubled quote within stays doubled; only names may contain one.
fn split_quoted(inner: &[u8], separator: u8) -> Parse<(&[u8], Option<&[u8]>)> {
    let mut at = 0;
    while let Some(offset) = inner[at..].iter().position(|&byte| byte == b'"') {
        let quote = at + offset;
        match inner.get(quote + 1) {
            None => return Ok((&inner[..quote], None)),
            Some(&byte) if byte == separator => return Ok((&inner[..quote], Some(&inner[quote + 2..]))),
            Some(b'"') => at = quote + 2,
            Some(_) => break,
        }
    }
    Err(Fault::new(format!("expected a closing quote before a separator or the end of the line in {}", quoted(inner))))
}

const WORDS: [(&str, RequestKind); 5] = [
    ("read", RequestKind::Read),
    ("write", RequestKind::Write),
    ("trim", RequestKind::Trim),
    ("discard", RequestKind::Trim),
    ("flush", RequestKind::Flush),
];

/// The word of the action of `request` on a zone, else of its kind.
pub fn word(request: &Request) -> &'static str {
    let (action, kind) = (request.directives.zone, request.kind);
    let of_zone = ZONE_ACTIONS.iter().find(|(_, other)| *other == action).map(|(word, _)| *word);
    of_zone.unwrap_or_else(|| WORDS.iter().find(|(_, other)| *other == kind).expect("every kind has a word").0)
}

/// The kind of a word or of the word's first letter.
#[inline]
pub fn kind_of_word(text: &[u8]) -> Parse<RequestKind> {
    let is_meant = |word: &[u8]| text.eq_ignore_ascii_case(word) || text.eq_ignore_ascii_case(&word[..1]);
    match WORDS.iter().find(|(word, _)| is_meant(word.as_bytes())) {
        Some(&(_, kind)) => Ok(kind),
        None => Err(Fault::column("op", "read, write, trim or flush", text)),
    }
}

/// The kind of a word, true for an update of a reclaim unit handle, which is a flush, and the action on a zone if the
/// word names one.
#[inline]
pub fn operation(text: &[u8]) -> Parse<(RequestKind, bool, ZoneAction)> {
    if text.eq_ignore_ascii_case(b"update") || text.eq_ignore_ascii_case(b"u") {
        return Ok((RequestKind::Flush, true, ZoneAction::None));
    }
    kind_of_word(text).map(|kind| (kind, false, ZoneAction::None)).or_else(|fault| {
        let action = ZONE_ACTIONS.iter().find(|(word, _)| text.eq_ignore_ascii_case(word.as_bytes()));
        match action.ok_or(fault)?.1 {
            ZoneAction::Append => Ok((RequestKind::Write, false, ZoneAction::Append)),
            action => Ok((RequestKind::Trim, false, action)),
        }
    })
}

/// The given stream, else the stream of the file, else 0.
pub fn stream_of(given: Option<u64>, file: Option<&[u8]>, streams: &mut VolumeNames) -> Parse<u32> {
    match given {
        Some(stream) => u32::try_from(stream).map_err(|_| Fault::new("column stream: expected a number below 2^32")),
        None => Ok(file.map_or(0, |file| streams.stream(file))),
    }
}

/// A record whose extent is read only if `kind` has one: offset and size in bytes.
#[inline]
pub fn record_of(
    time: Nanos,
    kind: RequestKind,
    extent: impl FnOnce() -> Parse<(u64, u64)>,
    stream: u32,
) -> Parse<Parsed> {
    if kind == RequestKind::Flush {
        return Ok(Parsed::flush(time, stream));
    }
    let (offset, bytes) = extent()?;
    Parsed::of_bytes(time, kind, offset, bytes, u64::from(stream))
}

/// The record of a write, or of an update of a handle, with the values of the columns `fua` and `placement`.
pub fn directed(mut parsed: Parsed, updates: bool, fua: Option<u64>, placement: Option<u64>) -> Parse<Parsed> {
    let wrong =
        |column: &str, expected: &str, found: u64| Err(Fault::column(column, expected, found.to_string().as_bytes()));
    if let Parsed::Record(record) = &mut parsed
        && (record.kind == RequestKind::Write || updates)
    {
        let directives = &mut record.command.directives;
        directives.fua = match fua.unwrap_or(0) {
            0 => false,
            1 if !updates => true,
            1 => return wrong(NAMES[6], "0 for an update", 1),
            other => return wrong(NAMES[6], "0 or 1", other),
        };
        directives.placement = match u16::try_from(placement.unwrap_or(0)) {
            Ok(handle) => handle,
            Err(_) => return wrong(NAMES[7], "a handle below 65536", placement.unwrap_or(0)),
        };
        (directives.placed, directives.updates) = (placement.is_some(), updates);
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests;
