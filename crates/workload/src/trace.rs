//! Trace files as workloads: the registry of formats, their recognition, and the entry point [`open_trace`]; and as
//! [`output`].
//!
//! A format is recognised by content, never by name: every format of [`FORMATS`] parses the first 64 KiB after
//! decompression, and the format that parses most lines as records wins. The earlier of the list wins ties, but if two
//! formats read the same lines as other requests, a [`Contest`] decides, or the file is refused. Each format is one
//! file below `trace/` and one line of [`FORMATS`].
//!
//! For every format:
//! - Plain and compressed data, distinguished by the first bytes, and traces in a zip or tar [`archive`] are streamed
//!   in constant memory. A line has at most 64 KiB. A byte-order mark, carriage returns and blank lines are legal.
//! - Arrival times count from the first request. Real traces are out of order (logs at completion, per-CPU buffers,
//!   coarse clocks): requests are sorted by time within a window ([`in_order`](crate::in_order)), and
//!   [`Source::disorder`] counts them; a request that is earlier by more than a minute is an error.
//! - Byte extents are widened to whole 512-byte sectors. Devices, disks and volumes of one file begin at address 0
//!   each, and are distinguished by [`Request::owner`](crate::request::Request::owner);
//!   [`Replay`](crate::replay::Replay) lays them out.
//! - Empty requests, reads and writes beyond [`MAX_REQUEST_BYTES`] and addresses beyond 2^63 bytes are errors.
//! - Names of files are read on request only ([`TraceOptions::file_names`]); only then memory grows, with their number.
//! - Records of binary formats ([`records`]) count as lines in messages.
//! - A last line without line end is read like any other: a cut number at the end is not detected.
//!
//! Ignored everywhere: response times, process names, content hashes.

mod alibaba;
pub mod archive;
mod biosnoop;
mod blkparse;
mod blkreplay;
mod blktrace;
mod bpftrace;
mod columns;
mod dchoices;
mod disksim;
mod etw;
pub(crate) mod fields;
mod fiu;
mod ftrace;
mod head;
pub(crate) mod input;
mod iolog;
mod line_format;
mod line_source;
mod lines;
mod mapped;
mod mqsim;
mod msr;
pub(crate) mod oracle_general;
mod order;
pub mod output;
pub mod outside;
#[cfg(not(target_arch = "wasm32"))]
mod parquet;
pub(crate) mod records;
mod spc;
mod tencent;
mod votes;
mod vscsi;
#[cfg(target_arch = "wasm32")]
mod zstd;

use std::io::{Read, Seek, SeekFrom};

use crate::request::{SECTOR_BYTES, Source};
use head::Head;
use line_format::LineFormat;
use lines::LineReader;
use order::InOrder;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::units::{GIB, Nanos};
use votes::{Contest, Reading, Vote};

/// Largest valid read or write; a trim may have up to 2^32 - 1 sectors.
pub const MAX_REQUEST_BYTES: u64 = GIB;

/// Every trace format; earlier ones win ties of recognition.
pub const FORMATS: &[Format] = &[
    Format::of_lines::<columns::Columns>(),
    Format::of_lines::<etw::Etw>(),
    Format::of_lines::<iolog::Iolog>(),
    Format::of_lines::<iolog::Iolog<true>>(),
    Format::of_lines::<msr::Msr>(),
    Format::of_lines::<alibaba::Alibaba>(),
    Format::of_lines::<spc::Spc>(),
    Format::of_lines::<tencent::Tencent>(),
    Format::of_lines::<blkreplay::Blkreplay>(),
    Format::of_lines::<blkparse::Blkparse>(),
    Format::of_lines::<ftrace::Ftrace>(),
    Format::of_lines::<biosnoop::Biosnoop>(),
    Format::of_lines::<bpftrace::Bpftrace>(),
    Format::of_lines::<fiu::Fiu>(),
    Format::of_lines::<mqsim::MqSim>(),
    Format::of_lines::<dchoices::Dchoices>(),
    Format::of_lines::<disksim::DiskSim>(),
    #[cfg(not(target_arch = "wasm32"))]
    parquet::FORMAT,
    Format::of_records::<blktrace::Blktrace>(),
    Format::of_records::<vscsi::Vscsi>(),
    Format::of_records::<oracle_general::OracleGeneral>(),
];

/// One trace format.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Name.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// One line for listings.
    pub about: &'static str,
    /// Records are lines of text.
    pub is_text: bool,
    recognise: fn(&Head<'_>) -> Vote,
    contest: fn(&Head<'_>) -> Option<Contest>,
    reads: fn(&Head<'_>, &[u8]) -> Option<Reading>,
    open: fn(Opened) -> Result<Box<dyn Source>>,
    holds: line_format::Holds,
    /// `None` if traces are only read.
    create: Option<Create>,
}

type Create = fn(output::Compressed) -> std::io::Result<Box<dyn output::Sink>>;

impl Format {
    const fn of_lines<F: LineFormat>() -> Format {
        Format {
            name: F::NAME,
            aliases: F::ALIASES,
            about: F::ABOUT,
            is_text: true,
            recognise: votes::vote::<F>,
            contest: votes::contest::<F>,
            reads: votes::reads::<F>,
            open: line_source::open::<F>,
            holds: F::HOLDS,
            create: Some(output::LineSink::<F>::create),
        }
    }

    /// The format called `name`.
    pub fn named(name: &str) -> Option<&'static Format> {
        let is_named = |format: &&Format| format.name == name || format.aliases.contains(&name);
        FORMATS.iter().find(is_named)
    }

    /// Nanoseconds; the times of records are multiples.
    pub fn time_grain(&self) -> Nanos {
        self.holds.time_grain
    }

    /// The format of files with this ending.
    fn of_ending(ending: &str) -> Option<&'static Format> {
        match ending {
            "load" => Format::named("blkreplay"),
            _ => Format::named(ending),
        }
    }

    /// Contents of records, and the constructor of a sink; `None` if traces are only read.
    fn output(&self) -> Option<(line_format::Holds, Create)> {
        Some((self.holds, self.create?))
    }
}

/// How to read a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// Read the file as this format, without recognition.
    pub format: Option<String>,
    /// Read the file as text with these columns: see [`mapped`].
    pub columns: Option<String>,
    /// Count and skip malformed lines instead of stopping at the first. Corrupt compressed data always stops.
    pub skip_bad: bool,
    /// The trace of an archive with several: see [`archive`].
    pub member: Option<String>,
    /// Keep the names of files ([`Source::file_names`]), which costs a table of them.
    pub file_names: bool,
}

struct Opened {
    lines: LineReader,
    skip_bad: bool,
    file_names: bool,
    /// The first line of the recognised format; `None` if the user named the format.
    recognised_from: Option<u64>,
}

/// A workload that reads the trace `input`, called `name` in messages. The caller opens the file.
///
/// # Errors
/// [`Error::Input`] when the file is empty, corrupt, of no known format, or `options` names an unknown format;
/// [`Error::Io`] when reading fails. Errors of single lines come from the source itself.
pub fn open_trace(input: Box<dyn Read + Send>, name: &str, options: &TraceOptions) -> Result<Box<dyn Source>> {
    if options.columns.is_some() && options.format.is_some() {
        return Err(Error::input(
            "--columns",
            "--from is given too, which names a format; expected only one of the two",
        ));
    }
    if let Some(format) = options.format.as_deref().and_then(outside::named) {
        let input::Decompressed { reader, compression } = input::decompress(input, name)?;
        let reader = (format.records)(format.name, reader);
        let lines = LineReader::new(input::Decompressed { reader, compression }, name);
        let opened = Opened { lines, skip_bad: options.skip_bad, file_names: false, recognised_from: None };
        return records::open(opened, outside::Given(format.name)).map(InOrder::of);
    }
    let forced = options.format.as_deref().map(|format| find_named("--from", format)).transpose()?;
    let mapped = options.columns.as_deref().map(mapped::Mapped::parse).transpose()?;
    let mut lines = LineReader::new(input::decompress(input, name)?, name);
    let head = lines.read_head();
    if head.bytes.is_empty() && head.whole {
        return Err(
            lines.failure_or(Error::input(name, "the file is empty; expected a trace with at least one request"))
        );
    }
    if let Some(kind) = input::known_text(head.bytes) {
        return Err(Error::input(name, format!("this is {kind}; expected a trace")));
    }
    if let Some(mapped) = mapped {
        let opened = Opened { lines, skip_bad: options.skip_bad, file_names: false, recognised_from: None };
        return Ok(InOrder::of(line_source::open_as(opened, mapped)));
    }
    let (format, recognised_from) = match forced {
        Some(format) => (format, None),
        None => match recognise(&head) {
            Some((format, vote)) => (decided(format, vote, &head, name)?, Some(vote.first_line)),
            None => {
                let unknown = unknown_format(&head, name);
                return Err(lines.failure_or(unknown));
            }
        },
    };
    let opened = Opened { lines, skip_bad: options.skip_bad, file_names: options.file_names, recognised_from };
    (format.open)(opened).map(InOrder::of)
}

/// A file with random access.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// As [`open_trace`], for a file rather than a pipe, because Parquet and archives need random access.
///
/// # Errors
/// As [`open_trace`].
pub fn open_trace_file(
    #[allow(unused_mut, reason = "Parquet is left out of WebAssembly")] mut input: Box<dyn ReadSeek>,
    name: &str,
    options: &TraceOptions,
) -> Result<Box<dyn Source>> {
    #[cfg(not(target_arch = "wasm32"))]
    if options.columns.is_none() && parquet::is_meant(input.as_mut(), name, options)? {
        return parquet::open(input, name, options).map(InOrder::of);
    }
    match archive::open(input, name, options.member.as_deref())? {
        archive::Found::Member { reader, name } => open_trace(reader, &name, options),
        archive::Found::Plain(mut input) => {
            let start = input.seek(SeekFrom::Start(0));
            start.map_err(|failure| Error::Io { place: name.to_string(), what: failure.to_string() })?;
            open_trace(Box::new(input), name, options)
        }
    }
}

/// The format that the user named with `option`.
fn find_named(option: &str, name: &str) -> Result<&'static Format> {
    Format::named(name).ok_or_else(|| {
        let added = outside::added();
        let names = FORMATS.iter().map(|format| format.name).chain(added.iter().map(|format| format.name));
        let expected = palimpsest_flash::keys::expected_name(name, names, "traces");
        let what = format!("unknown trace format {name:?}{expected}");
        Error::input(format!("{option} {name}"), what)
    })
}

fn recognise(head: &Head<'_>) -> Option<(&'static Format, Vote)> {
    let mut best: Option<(&Format, Vote)> = None;
    for format in FORMATS {
        let vote = (format.recognise)(head);
        if vote.lines > best.map_or(0, |(_, best)| best.lines) {
            best = Some((format, vote));
        }
    }
    best
}

/// The winner of a [`Contest`] between `format` and formats that read the same lines as other requests.
fn decided(format: &'static Format, vote: Vote, head: &Head<'_>, name: &str) -> Result<&'static Format> {
    let Some(own) = (format.contest)(head) else {
        return Ok(format);
    };
    let as_many = |other: &&Format| other.name != format.name && (other.recognise)(head).lines == vote.lines;
    let readings: Vec<(&'static Format, Contest)> = FORMATS
        .iter()
        .filter(as_many)
        .filter_map(|other| Some((other, (other.contest)(head)?)))
        .chain([(format, own)])
        .collect();
    let wins = |contest: &Contest, named: &str| {
        readings.iter().all(|(other, reading)| other.name == named || contest.wins(reading))
    };
    if let Some((format, _)) = readings.iter().find(|(format, contest)| wins(contest, format.name)) {
        return Ok(format);
    }
    let shown: Vec<String> = readings
        .iter()
        .map(|(format, contest)| {
            let bytes = u64::from(contest.first.extent.sectors) * SECTOR_BYTES;
            format!("{} (the first request has {bytes} bytes)", format.name)
        })
        .collect();
    let names: Vec<&str> = readings.iter().map(|(format, _)| format.name).collect();
    let what = format!(
        "the file can be read as {}, and the requests do not decide; expected --from {}",
        shown.join(" or as "),
        names.join(" or --from ")
    );
    Err(Error::input(name, what))
}

fn unknown_format(head: &Head<'_>, name: &str) -> Error {
    let found = match input::known_binary(head.bytes) {
        Some(kind) => format!("this is {kind}"),
        None if head.bytes.contains(&0) => "this is a binary file of unknown format".to_string(),
        None => match meant_for_csv(head).or_else(|| nearest(head)) {
            Some((number, what)) => return Error::input(format!("{name}:{number}"), what),
            None => "no line near the start of the file reads as a request in any known format".to_string(),
        },
    };
    let packed = "plain or compressed by gzip, zstd, xz or bzip2";
    Error::input(name, format!("{found}; expected a trace, {packed}, {OF_A_FORMAT}"))
}

/// The number of the first line, and a message with missing columns, if the line is nearly a heading of `csv`.
fn meant_for_csv(head: &Head<'_>) -> Option<(u64, String)> {
    let (number, line) = head.lines().find(|(_, line)| !line.trim_ascii().is_empty())?;
    Some((number, columns::nearly_a_heading(line)?))
}

/// The number of the first line with a digit, and a message: the format that reads the line with other separators; or
/// the fault by the format to which the line is near, with most columns before the fault; or the columns found.
fn nearest(head: &Head<'_>) -> Option<(u64, String)> {
    let (number, line) = head.lines().find(|(_, line)| line.iter().any(u8::is_ascii_digit))?;
    let shown = fields::quoted(line);
    if let Some(what) = other_separator(line) {
        let what = format!("{shown} is no request in a known format; {what}; expected these, or --columns");
        return Some((number, what));
    }
    // The first format among equals.
    let best = FORMATS.iter().filter_map(|format| Some((format, (format.reads)(head, line)?))).rev();
    let near = best.filter(|(_, reading)| reading.is_near && reading.columns >= LEAST_COLUMNS);
    let what = match near.max_by_key(|(_, reading)| reading.columns) {
        Some((format, reading)) => {
            let fault = reading.fault.trim_end_matches(&format!(", found {shown}"));
            format!("{shown} is no request in a known format; as {}, the nearest, {fault}", format.name)
        }
        None => format!(
            "{shown} is no request in any known format: {} (any columns: --columns time=1:us,op=2,offset=3,size=4)",
            columns_of(line)
        ),
    };
    Some((number, format!("{what}; expected a trace {OF_A_FORMAT}")))
}

/// The separator by which `line` has most columns.
fn separator_of(line: &[u8]) -> (&'static str, u8) {
    let count = |byte: u8| line.iter().filter(|&&other| other == byte).count();
    let separators = [("blanks", b' '), ("tabs", b'\t'), ("semicolons", b';'), ("commas", b',')];
    separators.into_iter().max_by_key(|&(_, byte)| count(byte)).expect("there are four")
}

/// A message if a format reads `line` with other separators.
fn other_separator(line: &[u8]) -> Option<String> {
    let (found, byte) = separator_of(line);
    let expected = [("commas", b','), ("blanks", b' '), ("semicolons", b';')].into_iter().filter(|each| each.1 != byte);
    let reads = |format: &&Format, line: &[u8]| (format.recognise)(&Head { bytes: line, whole: true }).lines > 0;
    for (name, separator) in expected {
        let changed: Vec<u8> = line.iter().map(|&other| if other == byte { separator } else { other }).collect();
        let formats = names_of(|format| format.is_text && reads(&format, &changed));
        if !formats.is_empty() {
            return Some(format!("with {name} instead of {found} the line is a request in the format {formats}"));
        }
    }
    None
}

/// The number of columns of `line` and their kinds, for a message.
fn columns_of(line: &[u8]) -> String {
    const MOST: usize = 8;
    let (name, separator) = separator_of(line);
    let fields = line.split(|&byte| byte == separator).map(<[u8]>::trim_ascii);
    let fields: Vec<&[u8]> = fields.filter(|field| separator != b' ' || !field.is_empty()).collect();
    let kind = |field: &&[u8]| match field {
        [] => "nothing",
        _ if field.iter().all(u8::is_ascii_digit) => "number",
        _ if fields::decimal(field, "", 9).is_ok() => "decimal",
        _ => "text",
    };
    let kinds: Vec<&str> = fields.iter().take(MOST).map(kind).collect();
    let more = if fields.len() > MOST { ", ..." } else { "" };
    match fields.len() {
        1 => "there is one column".into(),
        count => format!("{count} columns between {name} ({}{more})", kinds.join(", ")),
    }
}

const OF_A_FORMAT: &str = "in a format of `palimpsest list traces`";

const LEAST_COLUMNS: usize = 2;

fn names_of(is_meant: impl Fn(&Format) -> bool) -> String {
    let names: Vec<&str> = FORMATS.iter().filter(|format| is_meant(format)).map(|format| format.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod binary_tests;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod tests;
