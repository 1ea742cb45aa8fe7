//! Parquet as output: row groups of [`GROUP_ROWS`], compressed with zstd.

use std::io;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::request::Request;
use crate::trace::columns::word;
use crate::trace::output::{Compressed, Sink};

/// Rows of a row group, buffered and written together.
const GROUP_ROWS: usize = 1 << 17;

const SCHEMA: &str = "message trace {
    required int64 time_ns (INTEGER(64, false));
    required binary op (UTF8);
    required int64 offset_bytes (INTEGER(64, false));
    required int64 size_bytes (INTEGER(64, false));
    optional binary file (UTF8);
    required int32 stream (INTEGER(32, false));
}";

struct ParquetSink {
    writer: SerializedFileWriter<Compressed>,
    times: Vec<i64>,
    ops: Vec<ByteArray>,
    offsets: Vec<i64>,
    sizes: Vec<i64>,
    /// The names, and for each row 1 if the row has a name.
    files: Vec<ByteArray>,
    has_file: Vec<i16>,
    streams: Vec<i32>,
}

/// Begins a trace.
pub fn create(output: Compressed) -> io::Result<Box<dyn Sink>> {
    let schema = Arc::new(parse_message_type(SCHEMA).map_err(failed)?);
    let compression = Compression::ZSTD(ZstdLevel::default());
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let writer = SerializedFileWriter::new(output, schema, properties).map_err(failed)?;
    Ok(Box::new(ParquetSink {
        writer,
        times: Vec::new(),
        ops: Vec::new(),
        offsets: Vec::new(),
        sizes: Vec::new(),
        files: Vec::new(),
        has_file: Vec::new(),
        streams: Vec::new(),
    }))
}

impl Sink for ParquetSink {
    fn put(&mut self, request: &Request, file: Option<&str>) -> io::Result<()> {
        // The schema declares unsigned numbers, so bits are copied.
        self.times.push(request.arrival as i64);
        let (offset, bytes) = request.in_bytes();
        self.offsets.push(offset as i64);
        self.sizes.push(bytes as i64);
        self.streams.push(request.owner() as i32);
        self.ops.push(ByteArray::from(word(request)));
        self.has_file.push(i16::from(file.is_some()));
        self.files.extend(file.map(ByteArray::from));
        if self.times.len() == GROUP_ROWS { self.write_group().map_err(failed) } else { Ok(()) }
    }

    fn close(mut self: Box<Self>) -> io::Result<()> {
        if !self.times.is_empty() {
            self.write_group().map_err(failed)?;
        }
        self.writer.into_inner().map_err(failed)?.finish()
    }
}

impl ParquetSink {
    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        column::<Int64Type>(&mut group, &mut self.times, None)?;
        column::<ByteArrayType>(&mut group, &mut self.ops, None)?;
        column::<Int64Type>(&mut group, &mut self.offsets, None)?;
        column::<Int64Type>(&mut group, &mut self.sizes, None)?;
        column::<ByteArrayType>(&mut group, &mut self.files, Some(&mut self.has_file))?;
        column::<Int32Type>(&mut group, &mut self.streams, None)?;
        group.close()?;
        Ok(())
    }
}

/// Writes the next column of a group and clears the values.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Compressed>,
    values: &mut Vec<T::T>,
    levels: Option<&mut Vec<i16>>,
) -> Result<(), ParquetError> {
    let mut writer = group.next_column()?.expect("the schema has this column");
    writer.typed::<T>().write_batch(values, levels.as_ref().map(|levels| levels.as_slice()), None)?;
    writer.close()?;
    values.clear();
    if let Some(levels) = levels {
        levels.clear();
    }
    Ok(())
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(cause) => *cause,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    }
}
