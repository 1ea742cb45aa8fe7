//! Tables as Parquet files, compressed with zstd, in one row group: the series of a result.
//!
//! Numbers and texts, each perhaps null. Ignored: columns of lists, which `palimpsest.files` leaves to polars.

use crate::InputError;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// The values of a column that are not null, and for each row 1 if it has a value.
enum Values {
    Words(Vec<i32>, Vec<i16>),
    Numbers(Vec<i64>, Vec<i16>),
    Floats(Vec<f64>, Vec<i16>),
    Texts(Vec<ByteArray>, Vec<i16>),
}

impl Values {
    /// The type in a schema, and the values of a list.
    fn of(kind: &str, values: &Bound<'_, PyAny>) -> PyResult<(&'static str, Values)> {
        // The schema declares unsigned numbers, so bits are copied.
        let signed = |number: u64| number as i64;
        Ok(match kind {
            "u32" => ("int32 %s (INTEGER(32, false))", filled(values, |number: u32| number as i32, Values::Words)?),
            "u64" => ("int64 %s (INTEGER(64, false))", filled(values, signed, Values::Numbers)?),
            "i64" => ("int64 %s", filled(values, |number: i64| number, Values::Numbers)?),
            "f64" => ("double %s", filled(values, |number: f64| number, Values::Floats)?),
            "text" => {
                ("binary %s (UTF8)", filled(values, |text: String| ByteArray::from(text.as_str()), Values::Texts)?)
            }
            _ => return Err(InputError::new_err(format!("{kind}: expected u32, u64, i64, f64 or text"))),
        })
    }

    fn write<W: std::io::Write + Send>(self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<(), ParquetError> {
        match self {
            Values::Words(values, present) => column::<Int32Type, W>(group, &values, &present),
            Values::Numbers(values, present) => column::<Int64Type, W>(group, &values, &present),
            Values::Floats(values, present) => column::<DoubleType, W>(group, &values, &present),
            Values::Texts(values, present) => column::<ByteArrayType, W>(group, &values, &present),
        }
    }
}

fn filled<'py, T, V>(
    values: &Bound<'py, PyAny>,
    convert: impl Fn(T) -> V,
    make: impl Fn(Vec<V>, Vec<i16>) -> Values,
) -> PyResult<Values>
where
    T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
{
    let (mut found, mut present) = (Vec::new(), Vec::new());
    for value in values.try_iter()? {
        let value = value?;
        let is_present = !value.is_none();
        present.push(i16::from(is_present));
        if is_present {
            found.push(convert(value.extract::<T>().map_err(Into::into)?));
        }
    }
    Ok(make(found, present))
}

fn column<T: DataType, W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    present: &[i16],
) -> Result<(), ParquetError> {
    let mut writer = group.next_column()?.expect("the schema has this column");
    writer.typed::<T>().write_batch(values, Some(present), None)?;
    writer.close()
}

/// The bytes of a Parquet file with columns of equal length: name, type (`u32`, `u64`, `i64`, `f64` or `text`), values.
#[pyfunction]
pub fn parquet_table<'py>(
    py: Python<'py>,
    columns: Vec<(String, String, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (mut schema, mut all) = (String::from("message table {\n"), Vec::new());
    for (name, kind, values) in columns {
        let (form, values) = Values::of(&kind, &values)?;
        schema += &format!("optional {};\n", form.replace("%s", &name));
        all.push(values);
    }
    let written = py.detach(|| write(&(schema + "}"), all));
    written.map(|bytes| PyBytes::new(py, &bytes)).map_err(|error| InputError::new_err(error.to_string()))
}

fn write(schema: &str, columns: Vec<Values>) -> Result<Vec<u8>, ParquetError> {
    let compression = Compression::ZSTD(ZstdLevel::default());
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(parse_message_type(schema)?), properties)?;
    let mut group = writer.next_row_group()?;
    for values in columns {
        values.write(&mut group)?;
    }
    group.close()?;
    writer.into_inner()
}
