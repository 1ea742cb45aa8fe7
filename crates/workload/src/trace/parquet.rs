//! Parquet with the columns of the [CSV format](super::columns): `time_ns`, `op`, `offset_bytes`, `size_bytes`, and
//! optionally `file` and `stream`.
//!
//! Columns are in any order, numbers of 32 or 64 bits; other columns are ignored. Rows are read in batches of
//! [`BATCH_ROWS`], page by page, so that memory does not grow with the file. A file must have random access, so no pipe
//! and no compression of the whole. Rows count from 1 in messages.
//!
//! As in CSV, `stream` overrides `file`, whose hash is the stream otherwise.

mod write;

use std::io::{Read, Seek, SeekFrom};

use bytes::Bytes;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};

use super::columns::{NAMES, REQUIRED, directed, operation, record_of, stream_of};
use super::fields::{Fault, Parse};
use super::input::Part;
use super::line_format::{Holds, Parsed};
use super::line_source::Clock;
use super::{Format, ReadSeek, TraceOptions};
use crate::request::{Arrivals, FileNames, NO_FILE, Request, Source};
use crate::volume_names::{VolumeName, VolumeNames};
use palimpsest_flash::error::{Error, Result};

pub(super) use write::create;

/// The first bytes of a Parquet file.
pub const MAGIC: &[u8] = b"PAR1";

/// Rows decoded at a time.
const BATCH_ROWS: usize = 8192;

/// The format.
pub const FORMAT: Format = Format {
    name: "parquet",
    aliases: &[],
    about: "Parquet with the columns time_ns, op, offset_bytes, size_bytes [, file, stream, fua, placement]",
    is_text: false,
    recognise: |_| super::votes::Vote { lines: 0, first_line: 0 },
    contest: |_| None,
    reads: |_, _| None,
    open: |opened| {
        let what = "a Parquet file needs random access; expected a file rather than a pipe, not compressed as a whole";
        Err(Error::input(opened.lines.name(), what))
    },
    holds: Holds { zones: true, ..Holds::ALL },
    create: Some(create),
};

/// True if a file is Parquet by the first bytes, and the user named no other format.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read, [`Error::Input`] if the user named Parquet and the file is not.
pub fn is_meant(input: &mut dyn ReadSeek, name: &str, options: &TraceOptions) -> Result<bool> {
    let mut magic = Vec::new();
    let failed = |failure: std::io::Error| Error::Io { place: name.to_string(), what: failure.to_string() };
    input.seek(SeekFrom::Start(0)).map_err(failed)?;
    input.take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(failed)?;
    let forced = options.format.as_deref();
    if forced == Some(FORMAT.name) && magic != MAGIC {
        return Err(Error::input(name, "the file does not begin as Parquet does; expected an intact Parquet file"));
    }
    Ok(magic == MAGIC && forced.is_none_or(|format| format == FORMAT.name))
}

/// Opens a trace.
///
/// # Errors
/// [`Error::Input`] when the file is damaged or lacks a column.
pub fn open(mut input: Box<dyn ReadSeek>, name: &str, options: &TraceOptions) -> Result<Box<dyn Source>> {
    let damaged = |error: ParquetError| damaged(name, &error);
    let bytes = input.seek(SeekFrom::End(0)).map_err(|failure| damaged(failure.into()))?;
    let chunks = Chunks { whole: Part::new(input), bytes };
    let reader = guarded(|| SerializedFileReader::new(chunks)).map_err(damaged)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let position =
        |name: &str| (0..schema.num_columns()).find(|&at| schema.column(at).path().string().eq_ignore_ascii_case(name));
    let columns = NAMES.map(position);
    if let Some(missing) = (0..REQUIRED).find(|&role| columns[role].is_none()) {
        let found: Vec<String> =
            (0..schema.num_columns().min(16)).map(|at| schema.column(at).path().string()).collect();
        let what = format!(
            "there is no column {}; expected {} and {}, found {}",
            NAMES[missing],
            NAMES[..3].join(", "),
            NAMES[3],
            found.join(", ")
        );
        return Err(Error::input(name, what));
    }
    Ok(Box::new(ParquetSource {
        name: name.to_string(),
        reader,
        columns,
        group: 0,
        readers: None,
        batch: Batch::default(),
        at: 0,
        row: 0,
        clock: Clock::default(),
        requests: 0,
        skip_bad: options.skip_bad,
        skipped: 0,
        names: options.file_names.then(FileNames::default),
        streams: VolumeNames::default(),
    }))
}

struct ParquetSource {
    name: String,
    reader: SerializedFileReader<Chunks>,
    /// Columns by the order of [`NAMES`].
    columns: [Option<usize>; NAMES.len()],
    /// The next row group.
    group: usize,
    readers: Option<[Option<ColumnReader>; NAMES.len()]>,
    batch: Batch,
    /// Rows of the batch already read.
    at: usize,
    row: u64,
    clock: Clock,
    requests: u64,
    skip_bad: bool,
    skipped: u64,
    names: Option<FileNames>,
    streams: VolumeNames,
}

/// Values of some rows; none for nulls and missing columns.
#[derive(Default)]
struct Batch {
    rows: usize,
    numbers: [Vec<Option<u64>>; NAMES.len()],
    texts: [Vec<Option<ByteArray>>; NAMES.len()],
}

impl Source for ParquetSource {
    fn next_request(&mut self) -> Result<Option<Request>> {
        loop {
            if self.at == self.batch.rows && !self.next_batch()? {
                break;
            }
            let read = self.record().and_then(|record| self.clock.check(record));
            self.at += 1;
            self.row += 1;
            match read {
                Ok(request) => {
                    self.requests += 1;
                    return Ok(Some(request));
                }
                Err(_) if self.skip_bad => self.skipped += 1,
                Err(fault) => return Err(Error::input(self.place(), fault.what)),
            }
        }
        if self.requests == 0 {
            return Err(Error::input(&self.name, "the file holds no request; expected at least one row"));
        }
        Ok(None)
    }

    fn place(&self) -> String {
        format!("{}:{}", self.name, self.row.max(1))
    }

    fn line(&self) -> Option<u64> {
        Some(self.row)
    }

    fn arrivals(&self) -> Arrivals {
        Arrivals::Open
    }

    fn expected_requests(&self) -> Option<u64> {
        let rows = u64::try_from(self.reader.metadata().file_metadata().num_rows()).ok()?;
        (self.skipped == 0).then_some(rows)
    }

    fn format(&self) -> Option<&'static str> {
        Some(FORMAT.name)
    }

    fn file_names(&self) -> Option<&FileNames> {
        self.names.as_ref()
    }

    fn volume_names(&self) -> &[VolumeName] {
        self.streams.all()
    }

    fn skipped_lines(&self) -> u64 {
        self.skipped
    }
}

impl ParquetSource {
    /// Decodes more rows; false after the last.
    fn next_batch(&mut self) -> Result<bool> {
        loop {
            if self.readers.is_none() {
                if self.group == self.reader.num_row_groups() {
                    self.batch.rows = 0;
                    self.at = 0;
                    return Ok(false);
                }
                self.readers = Some(self.open_group().map_err(|error| damaged(&self.name, &error))?);
                self.group += 1;
            }
            let readers = self.readers.as_mut().expect("just opened");
            let filled = self.batch.fill(readers);
            filled.map_err(|what| Error::input(format!("{}:{}", self.name, self.row + 1), what))?;
            self.at = 0;
            if self.batch.rows > 0 {
                return Ok(true);
            }
            self.readers = None;
        }
    }

    fn open_group(&self) -> std::result::Result<[Option<ColumnReader>; NAMES.len()], ParquetError> {
        let group = self.reader.get_row_group(self.group)?;
        let mut readers = [const { None }; NAMES.len()];
        for (reader, column) in readers.iter_mut().zip(self.columns) {
            let Some(column) = column else { continue };
            let chunk = group.metadata().column(column);
            let places =
                [chunk.data_page_offset(), chunk.dictionary_page_offset().unwrap_or(0), chunk.compressed_size()];
            if places.iter().any(|&place| place < 0) {
                return Err(ParquetError::General("a column is before the start of the file".into()));
            }
            *reader = Some(guarded(|| group.get_column_reader(column))?);
        }
        Ok(readers)
    }

    /// The record of the next row of the batch.
    fn record(&mut self) -> Parse<Request> {
        let (batch, at) = (&self.batch, self.at);
        let given = |role: usize| batch.numbers[role].get(at).copied().flatten();
        let number = |role: usize| {
            given(role)
                .ok_or_else(|| Fault::new(format!("column {}: expected a number that is not negative", NAMES[role])))
        };
        let text = |role: usize| batch.texts[role].get(at).and_then(|text| text.as_ref()).map(ByteArray::data);
        let op = text(1).ok_or_else(|| Fault::new("column op: expected read, write, trim or flush, found nothing"))?;
        let (time, (kind, updates, action)) = (number(0)?, operation(op)?);
        let file = text(4).filter(|file| !file.is_empty());
        let stream = stream_of(given(5), file, &mut self.streams)?;
        let parsed = record_of(time, kind, || Ok((number(2)?, number(3)?)), stream)?;
        let parsed = directed(parsed, updates, given(6), given(7))?;
        let Parsed::Record(record) = parsed.on_zone(action) else { unreachable!("a record was made") };
        let file = match (&mut self.names, file) {
            (Some(names), Some(file)) => names.number(file),
            _ => NO_FILE,
        };
        Ok(Request { file, ..record })
    }
}

impl Batch {
    /// Decodes the next rows of each column.
    fn fill(&mut self, readers: &mut [Option<ColumnReader>; NAMES.len()]) -> std::result::Result<(), String> {
        let mut rows = None;
        for (role, reader) in readers.iter_mut().enumerate() {
            let Some(reader) = reader else { continue };
            let is_text = role == 1 || role == 4;
            let read = match reader {
                ColumnReader::Int32ColumnReader(reader) if !is_text => {
                    decode(reader, &mut self.numbers[role], |value| u64::try_from(value).ok())
                }
                ColumnReader::Int64ColumnReader(reader) if !is_text => {
                    decode(reader, &mut self.numbers[role], |value| u64::try_from(value).ok())
                }
                ColumnReader::ByteArrayColumnReader(reader) if is_text => {
                    decode::<ByteArrayType, _>(reader, &mut self.texts[role], Some)
                }
                _ => {
                    let kind = if is_text { "text" } else { "whole numbers of 32 or 64 bits" };
                    return Err(format!("column {}: expected {kind}, found another type", NAMES[role]));
                }
            };
            let read = read.map_err(|error| damage(&error))?;
            if *rows.get_or_insert(read) != read {
                return Err(damage(&"columns differ in length"));
            }
        }
        self.rows = rows.unwrap_or(0);
        Ok(())
    }
}

/// Decodes up to [`BATCH_ROWS`] values of a column, nulls among them; returns their number.
fn decode<T: DataType, V>(
    reader: &mut ColumnReaderImpl<T>,
    into: &mut Vec<Option<V>>,
    convert: impl Fn(T::T) -> Option<V>,
) -> std::result::Result<usize, ParquetError> {
    into.clear();
    while into.len() < BATCH_ROWS {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let wanted = BATCH_ROWS - into.len();
        let (records, count, _) = guarded(|| reader.read_records(wanted, Some(&mut levels), None, &mut values))?;
        if records == 0 {
            break;
        }
        let mut values = values.into_iter();
        if count == records {
            into.extend(values.map(&convert));
        } else {
            // One level is a value, none a null; lists have more, and are no column of a trace.
            into.extend(levels.iter().map(|&level| if level > 0 { values.next().and_then(&convert) } else { None }));
        }
    }
    Ok(into.len())
}

/// Turns panics into errors, because the library asserts properties of metadata that a damaged file may lack.
fn guarded<T>(work: impl FnOnce() -> std::result::Result<T, ParquetError>) -> std::result::Result<T, ParquetError> {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    done.unwrap_or_else(|_| Err(ParquetError::General("its metadata is contradictory".into())))
}

fn damaged(name: &str, error: &ParquetError) -> Error {
    Error::input(name, damage(error))
}

fn damage(error: &dyn std::fmt::Display) -> String {
    format!("the file is damaged ({}); expected an intact Parquet file", error.to_string().replace('\n', " "))
}

/// Random access to a file, for the Parquet library.
struct Chunks {
    whole: Part,
    bytes: u64,
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Chunks {
    type T = std::io::BufReader<Part>;

    fn get_read(&self, start: u64) -> std::result::Result<Self::T, ParquetError> {
        const BUFFER_BYTES: usize = 1 << 13;
        Ok(std::io::BufReader::with_capacity(BUFFER_BYTES, self.whole.from(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> std::result::Result<Bytes, ParquetError> {
        // Lengths in a damaged file may be wrong.
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} of {}", self.bytes)));
        }
        let mut bytes = vec![0; length];
        self.whole.from(start).read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests;
