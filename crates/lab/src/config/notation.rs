//! Values in the notations of files and results: TOML in, TOML and JSON out.

use palimpsest_flash::units::parse::Parsed;
use palimpsest_ftl_api::keys::{Raw, Value, ValueType};

/// The raw value of a TOML item.
pub fn raw(value: &toml_edit::Value) -> Raw {
    match value {
        toml_edit::Value::String(text) => Raw::Text(text.value().clone()),
        toml_edit::Value::Integer(number) => Raw::Whole(*number.value()),
        toml_edit::Value::Float(number) => Raw::Float(*number.value()),
        toml_edit::Value::Boolean(flag) => Raw::Flag(*flag.value()),
        toml_edit::Value::Datetime(_) => Raw::Other("a date"),
        toml_edit::Value::Array(array) => Raw::List(array.iter().map(raw).collect()),
        toml_edit::Value::InlineTable(_) => Raw::Other("a table"),
    }
}

/// The value of `text` after `--set key=`: a TOML value, or a bare string.
///
/// # Errors
/// As [`ValueType::read`].
pub fn read_bare(value_type: ValueType, text: &str) -> Parsed<Value> {
    let text = text.trim();
    // Bare words, which are most values, need no TOML parser.
    if value_type.is_text() && !text.starts_with(['"', '\'', '[']) {
        return value_type.read(&Raw::Text(text.into()));
    }
    let raw = match text.parse::<toml_edit::Value>() {
        Ok(value @ (toml_edit::Value::String(_) | toml_edit::Value::Array(_))) => raw(&value),
        Ok(value) if !value_type.is_text() => raw(&value),
        _ => Raw::Text(text.into()),
    };
    value_type.read(&raw)
}

/// The TOML of a value, which reads back as the same value; quantities are strings with units.
pub fn to_toml(value: &Value) -> String {
    match value {
        Value::Count(_)
        | Value::Flag(_)
        | Value::Factor(_)
        | Value::Times(_)
        | Value::Energies(_)
        | Value::Ratios(_) => value.to_text(),
        _ => toml_edit::Value::from(value.to_text()).to_string(),
    }
}

/// The value as JSON: counts, flags and factors bare, all quantities as strings with units.
pub fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Count(number) => (*number).into(),
        Value::Flag(flag) => (*flag).into(),
        Value::Factor(number) => (*number).into(),
        Value::Times(_) | Value::Energies(_) | Value::Ratios(_) => value.items().into(),
        _ => value.to_text().into(),
    }
}
