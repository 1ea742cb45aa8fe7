//! Traces of object requests: the registry of formats, their recognition, and the reader. Each format is one file and
//! one line of [`FORMATS`].
//!
//! A file is recognised by content, plain or compressed: the first format whose reader accepts the first line, or the
//! records of the first MiB. A line has at most 4 MiB. Times count from the first request, and
//! requests are sorted by time within a window ([`in_order`](crate::in_order)). Ignored: everything but time,
//! operation, key, size and class.

mod cachelib;
mod columns;
mod mlperf;
mod oracle_general;
mod tokens;

use super::{ObjectRequest, Objects};
use crate::in_order::{Disorder, LONGEST_DISORDER, Window};
use crate::trace::fields::{Fault, Parse, quoted};
use crate::trace::input;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::keys::expected_name;
use palimpsest_flash::units::Nanos;
use std::io::{BufRead, BufReader, Cursor, Read};

/// Every format; earlier ones win.
pub const FORMATS: &[Format] = &[
    Format::of::<cachelib::CacheLib>(),
    Format::of::<mlperf::MlPerf>(),
    Format::of::<tokens::Tokens<512>>(),
    Format::of::<tokens::Tokens<16>>(),
    Format::of::<oracle_general::OracleGeneral>(),
];

const HEAD_BYTES: u64 = 1 << 20;
const MAX_LINE_BYTES: u64 = 4 << 20;

/// A format of object requests.
#[derive(Clone, Copy)]
pub struct Format {
    /// Name.
    pub name: &'static str,
    /// One line for listings.
    pub about: &'static str,
    /// Sizes are numbers of tokens.
    pub has_tokens: bool,
    /// Nanoseconds; times are multiples.
    pub time_grain: Nanos,
    recognise: fn(&[u8]) -> bool,
    open: fn(Opened) -> Box<dyn Objects>,
}

/// How the records of a format are read. Reading must not panic on any bytes.
trait ObjectFormat: Default + Send + 'static {
    const NAME: &'static str;
    const ABOUT: &'static str;
    const TIME_GRAIN: Nanos;
    const HAS_TOKENS: bool = false;
    /// Bytes of a record; `None`: a record is a line.
    const RECORD_BYTES: Option<usize> = None;

    /// True for the head of a file of this format.
    fn recognise(head: &[u8]) -> bool {
        let mut lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        lines.next().is_some_and(|line| Self::default().parse(line, 1, &mut |_| {}).is_ok())
    }

    /// Reads a record, and calls `each` for its requests, with arrivals by the trace's clock; `token_bytes` are the
    /// bytes of a token.
    fn parse(&mut self, record: &[u8], token_bytes: u64, each: &mut dyn FnMut(ObjectRequest)) -> Parse<()>;

    /// False without times; valid after the first request.
    fn has_times(&self) -> bool {
        true
    }
}

impl Format {
    const fn of<F: ObjectFormat>() -> Self {
        Format {
            name: F::NAME,
            about: F::ABOUT,
            has_tokens: F::HAS_TOKENS,
            time_grain: F::TIME_GRAIN,
            recognise: F::recognise,
            open: |opened| Box::new(Reader::<F>::new(opened)),
        }
    }

    /// The format called `name`.
    pub fn named(name: &str) -> Option<&'static Format> {
        FORMATS.iter().find(|format| format.name == name)
    }
}

struct Opened {
    input: Box<dyn Read + Send>,
    compression: &'static str,
    name: String,
    token_bytes: u64,
    skip_bad: bool,
}

/// The requests in the trace `input`, called `name` in messages; `format` as the user named it, if at all.
///
/// # Errors
/// [`Error::Input`] for an unknown format, [`Error::Io`] when reading fails.
pub fn open_objects(
    input: Box<dyn Read + Send>,
    name: &str,
    format: Option<&str>,
    token_bytes: u64,
    skip_bad: bool,
) -> Result<Box<dyn Objects>> {
    let input::Decompressed { mut reader, compression } = input::decompress(input, name)?;
    let mut head = Vec::new();
    reader
        .by_ref()
        .take(HEAD_BYTES)
        .read_to_end(&mut head)
        .map_err(|error| input::describe(&error, name, compression))?;
    if let Some(kind) = input::known_text(&head) {
        return Err(Error::input(name, format!("this is {kind}; expected an object trace")));
    }
    let format = match format {
        Some(format) => Format::named(format).ok_or_else(|| {
            let known = expected_name(format, FORMATS.iter().map(|format| format.name), "objects");
            Error::input(format!("--from {format}"), format!("unknown format of object traces {format:?}{known}"))
        })?,
        None => FORMATS.iter().find(|format| (format.recognise)(&head)).ok_or_else(|| {
            let what = "the file begins like no object trace; expected one in a format of `palimpsest list objects`";
            Error::input(name, what)
        })?,
    };
    let input = Box::new(Cursor::new(head).chain(reader));
    Ok((format.open)(Opened { input, compression, name: name.into(), token_bytes, skip_bad }))
}

struct Reader<F> {
    input: BufReader<Box<dyn Read + Send>>,
    opened: (&'static str, String, u64, bool),
    format: F,
    record: Vec<u8>,
    number: u64,
    /// Requests with the numbers of their records.
    waiting: Window<(u64, ObjectRequest)>,
    /// The latest time so far; `None` before the first request.
    latest: Option<Nanos>,
    /// The outcome of reading after the requests that wait.
    end: Option<Result<()>>,
    /// The record of the last request.
    returned: u64,
    skipped: u64,
}

impl<F: ObjectFormat> Reader<F> {
    fn new(Opened { input, compression, name, token_bytes, skip_bad }: Opened) -> Self {
        Reader {
            input: BufReader::new(input),
            opened: (compression, name, token_bytes, skip_bad),
            format: F::default(),
            record: Vec::new(),
            number: 0,
            waiting: Window::default(),
            latest: None,
            end: None,
            returned: 0,
            skipped: 0,
        }
    }

    /// Reads the next record; false at the end.
    fn read(&mut self) -> std::io::Result<bool> {
        self.record.clear();
        let most = F::RECORD_BYTES.map_or(MAX_LINE_BYTES + 1, |bytes| bytes as u64);
        let mut input = self.input.by_ref().take(most);
        match F::RECORD_BYTES {
            Some(_) => input.read_to_end(&mut self.record)?,
            None => input.read_until(b'\n', &mut self.record)?,
        };
        self.number += 1;
        Ok(!self.record.is_empty())
    }

    /// The requests of the record, in `waiting`.
    fn parse(&mut self) -> Parse<()> {
        let mut record = &self.record[..];
        match F::RECORD_BYTES {
            Some(bytes) if record.len() < bytes => {
                return Err(Fault::new(format!("the file ends {} bytes into a record of {bytes}", record.len())));
            }
            Some(_) => {}
            None if record.len() as u64 > MAX_LINE_BYTES => {
                return Err(Fault::new(format!("the line is longer than {MAX_LINE_BYTES} bytes")));
            }
            None => {
                record = record.strip_prefix(b"\xef\xbb\xbf").filter(|_| self.number == 1).unwrap_or(record);
                record = record.trim_ascii();
                if record.is_empty() {
                    return Ok(());
                }
            }
        }
        let mut requests = Vec::new();
        self.format.parse(record, self.opened.2, &mut |request| requests.push(request))?;
        let mut latest = self.latest;
        for request in &requests {
            let back = latest.unwrap_or(0).saturating_sub(request.arrival);
            if back > LONGEST_DISORDER {
                return Err(Fault::new(format!("time goes back by {} s", back as f64 / 1e9)));
            }
            latest = latest.max(Some(request.arrival));
        }
        self.latest = latest;
        for request in requests {
            self.waiting.add(request.arrival, (self.number, request));
        }
        Ok(())
    }

    /// Reads and parses the next record; false at the end.
    fn advance(&mut self) -> Result<bool> {
        let more = self.read().map_err(|error| input::describe(&error, &self.place_of(self.number), self.opened.0))?;
        if !more {
            if self.latest.is_none() {
                let what = format!("the file holds no request; expected {}", F::ABOUT);
                return Err(Error::input(self.opened.1.clone(), what));
            }
            return Ok(false);
        }
        let Err(fault) = self.parse() else { return Ok(true) };
        if !self.opened.3 {
            let shown = if F::RECORD_BYTES.is_some() { String::new() } else { format!(" in {}", quoted(&self.record)) };
            let what = format!("{}{shown}; the file is read as {}", fault.what, F::NAME);
            return Err(Error::input(self.place_of(self.number), what));
        }
        self.skipped += 1;
        if self.record.len() as u64 > MAX_LINE_BYTES && !self.record.ends_with(b"\n") {
            let rest = self.skip_line();
            rest.map_err(|error| input::describe(&error, &self.place_of(self.number), self.opened.0))?;
        }
        Ok(true)
    }
}

impl<F: ObjectFormat> Objects for Reader<F> {
    fn next_object(&mut self) -> Result<Option<ObjectRequest>> {
        loop {
            if let Some((arrival, (number, request))) = self.waiting.next(self.end.is_some()) {
                self.returned = number;
                return Ok(Some(ObjectRequest { arrival, ..request }));
            }
            if let Some(end) = self.end.take() {
                self.returned = self.number;
                return end.map(|()| None);
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => self.end = Some(Ok(())),
                Err(error) => self.end = Some(Err(error)),
            }
        }
    }

    fn place(&self) -> String {
        self.place_of(self.returned)
    }

    fn format(&self) -> Option<&'static Format> {
        Format::named(F::NAME)
    }

    fn has_times(&self) -> bool {
        self.format.has_times()
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn disorder(&self) -> Disorder {
        self.waiting.disorder()
    }
}

impl<F> Reader<F> {
    fn place_of(&self, record: u64) -> String {
        format!("{}:{}", self.opened.1, record.max(1))
    }

    /// Skips the rest of a line that is too long.
    fn skip_line(&mut self) -> std::io::Result<()> {
        loop {
            let bytes = self.input.fill_buf()?;
            let (length, end) = (bytes.len(), bytes.iter().position(|&byte| byte == b'\n'));
            self.input.consume(end.map_or(length, |at| at + 1));
            if end.is_some() || length == 0 {
                return Ok(());
            }
        }
    }
}
