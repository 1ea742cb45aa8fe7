//! A resolved configuration as TOML (for `show`, and saved with every result) and as JSON (in reports).

use super::Resolved;
use super::notation::{to_json, to_toml};
use std::fmt::Write;

impl Resolved {
    /// Every key with its value, what it means and where it was set, grouped in tables.
    ///
    /// The text resolves to the same drive without any other file: it says `complete = true`, so no part is loaded.
    pub fn to_toml(&self) -> String {
        let mut text = format!("name = {}\ncomplete = true\n", toml_edit::Value::from(self.drive.name.as_str()));
        let settings: Vec<String> =
            self.entries.iter().map(|entry| format!("{} = {}", entry.key.split().1, to_toml(&entry.value))).collect();
        let mut table = "";
        for (entry, setting) in self.entries.iter().zip(&settings) {
            if entry.key.split().0 != table {
                table = entry.key.split().0;
                write!(text, "\n[{table}]\n").expect("writing to a string");
            }
            // Long lists of times would push every comment of their table to the right.
            let width = settings.iter().map(String::len).filter(|length| *length <= 36).max().unwrap_or(0);
            writeln!(text, "{setting:width$}  # {} [{}]", entry.key.doc, entry.source).expect("writing to a string");
        }
        text
    }

    /// The values as one object of objects: counts, flags and factors bare, quantities as strings with units.
    pub fn to_json(&self) -> serde_json::Value {
        let mut tables = serde_json::Map::new();
        tables.insert("name".into(), self.drive.name.clone().into());
        for entry in &self.entries {
            let (table, name) = entry.key.split();
            let table = tables.entry(table).or_insert_with(|| serde_json::Map::new().into());
            table.as_object_mut().expect("no table is called name").insert(name.into(), to_json(&entry.value));
        }
        tables.into()
    }
}
