//! Tables as Parquet files, compressed with zstd, in one row group: the series of a result.
//!
//! Numbers and texts, each perhaps null. Ignored: columns of lists, which `palimpsest.files` leaves to polars.

use crate::InputError;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// Level of zstd, which polars uses too, and most rows of a page.
const LEVEL: i32 = 3;
const MOST_ROWS: usize = 1 << 20;

/// A group of rows of a file in memory.
type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

/// The line of a column in a schema.
fn declared(name: &str, kind: &str) -> PyResult<String> {
    Ok(match kind {
        "u32" => format!("optional int32 {name} (INTEGER(32, false));"),
        "u64" => format!("optional int64 {name} (INTEGER(64, false));"),
        "i64" => format!("optional int64 {name};"),
        "f64" => format!("optional double {name};"),
        "text" => format!("optional binary {name} (UTF8);"),
        _ => return Err(InputError::new_err(format!("{kind}: expected u32, u64, i64, f64 or text"))),
    })
}

/// Writes a list as the next column, declared with `kind`.
fn write(group: &mut Group<'_>, kind: &str, values: &Bound<'_, PyAny>) -> PyResult<()> {
    match kind {
        // The schema declares unsigned numbers, so bits are copied.
        "u32" => column::<Int32Type, u32>(group, values, |number| number as i32),
        "u64" => column::<Int64Type, u64>(group, values, |number| number as i64),
        "i64" => column::<Int64Type, i64>(group, values, |number| number),
        "f64" => column::<DoubleType, f64>(group, values, |number| number),
        _ => column::<ByteArrayType, String>(group, values, |text| ByteArray::from(text.as_str())),
    }
}

fn column<'py, T: DataType, V>(
    group: &mut Group<'_>,
    values: &Bound<'py, PyAny>,
    convert: impl Fn(V) -> T::T,
) -> PyResult<()>
where
    V: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
{
    let (mut found, mut present) = (Vec::new(), Vec::new());
    for value in values.try_iter()? {
        let value = value?;
        present.push(i16::from(!value.is_none()));
        if !value.is_none() {
            found.push(convert(value.extract::<V>().map_err(Into::into)?));
        }
    }
    let mut writer = group.next_column().map_err(wrong)?.expect("the schema has this column");
    writer.typed::<T>().write_batch(&found, Some(&present), None).map_err(wrong)?;
    writer.close().map_err(wrong)
}

/// The bytes of a Parquet file with columns of equal length: name, type (`u32`, `u64`, `i64`, `f64` or `text`), values.
#[pyfunction]
pub fn parquet_table<'py>(
    py: Python<'py>,
    columns: Vec<(String, String, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let lines = columns.iter().map(|(name, kind, _)| declared(name, kind)).collect::<PyResult<Vec<_>>>()?;
    let schema = parse_message_type(&format!("message table {{ {} }}", lines.concat())).map_err(wrong)?;
    // Pages are compressed apart, so few large ones take less space. Whole numbers are stored as differences, because
    // many columns are sequences or repetitions.
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL).map_err(wrong)?))
        .set_data_page_row_count_limit(MOST_ROWS)
        .set_write_batch_size(MOST_ROWS);
    for (name, ..) in columns.iter().filter(|(_, kind, _)| !matches!(kind.as_str(), "f64" | "text")) {
        let column = ColumnPath::from(name.as_str());
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    let properties = properties.build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties)).map_err(wrong)?;
    let mut group = writer.next_row_group().map_err(wrong)?;
    for (_, kind, values) in &columns {
        write(&mut group, kind, values)?;
    }
    group.close().map_err(wrong)?;
    Ok(PyBytes::new(py, &writer.into_inner().map_err(wrong)?))
}

fn wrong(error: ParquetError) -> PyErr {
    InputError::new_err(error.to_string())
}
