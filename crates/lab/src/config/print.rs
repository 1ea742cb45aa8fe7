//! A resolved configuration as TOML (for `show`, and saved with every result) and as JSON (in reports).

use super::Resolved;
use super::notation::{to_json, to_toml};
use std::fmt::Write;

impl Resolved {
    /// Every key with its value, meaning and source, grouped in tables.
    ///
    /// The text resolves to the same drive without any other file: with `complete = true` no part is loaded.
    pub fn to_toml(&self) -> String {
        let mut text = format!("name = {}\ncomplete = true\n", toml_edit::Value::from(self.drive.name.as_str()));
        let settings: Vec<String> =
            self.keys.iter().map(|key| format!("{} = {}", key.key.split().1, to_toml(&key.value))).collect();
        let mut table = "";
        for (key, setting) in self.keys.iter().zip(&settings) {
            if key.key.split().0 != table {
                table = key.key.split().0;
                write!(text, "\n[{table}]\n").expect("writing to a string");
            }
            // Long lists of times do not widen the column.
            let width = settings.iter().map(String::len).filter(|length| *length <= 36).max().unwrap_or(0);
            writeln!(text, "{setting:width$}  # {} [{}]", key.key.doc, key.source).expect("writing to a string");
        }
        text
    }

    /// The values as one object of objects: counts, flags and factors bare, quantities as strings with units.
    pub fn to_json(&self) -> serde_json::Value {
        let mut tables = serde_json::Map::new();
        tables.insert("name".into(), self.drive.name.clone().into());
        for key in &self.keys {
            let (table, name) = key.key.split();
            let table = tables.entry(table).or_insert_with(|| serde_json::Map::new().into());
            table.as_object_mut().expect("no table is called name").insert(name.into(), to_json(&key.value));
        }
        tables.into()
    }
}
