//! The resolved values of a drive's keys; structures of settings read their fields here.

use super::{Fallback, FromValue, Key, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All values, by key.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Name of the translation layer (`ftl.name`).
    pub name: String,
    values: Arc<BTreeMap<&'static str, Value>>,
}

impl Settings {
    /// The values `values` for the layer `name`.
    pub fn new(name: &str, values: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        Settings { name: name.into(), values: Arc::new(values.into_iter().collect()) }
    }

    /// The defaults of `keys` for the layer `name`, for tests of a layer alone. Each key must have a default.
    pub fn of_defaults<'a>(name: &str, keys: impl IntoIterator<Item = &'a Key>) -> Self
    where
        'static: 'a,
    {
        let keys: Vec<&Key> = keys.into_iter().collect();
        let named = |name: &str| keys.iter().find(|key| key.name == name);
        let value = |mut key: &'a Key| loop {
            match key.default {
                Fallback::Text(text) => {
                    break key.value_type.read_text(text).expect("a default is a value of its kind");
                }
                Fallback::Same(other) => key = named(other).unwrap_or_else(|| panic!("{other} is not among the keys")),
                Fallback::Required => panic!("{} has no default", key.name),
            }
        };
        Self::new(name, keys.iter().map(|key| (key.name, value(key))))
    }

    /// A copy with `key` at `value`.
    #[must_use]
    pub fn with(&self, key: &'static str, value: Value) -> Self {
        let mut values = (*self.values).clone();
        values.insert(key, value);
        Settings { name: self.name.clone(), values: Arc::new(values) }
    }

    /// A copy for the layer `name`.
    #[must_use]
    pub fn for_layer(&self, name: &str) -> Self {
        Settings { name: name.into(), values: Arc::clone(&self.values) }
    }

    /// A copy without the keys of `tables`, which are then unknown.
    #[must_use]
    pub fn without(&self, tables: &[&str]) -> Self {
        let of_table = |key: &str| tables.contains(&key.split_once('.').map_or(key, |(table, _)| table));
        let values = self.values.iter().filter(|(key, _)| !of_table(key)).map(|(&key, value)| (key, value.clone()));
        Settings { name: self.name.clone(), values: Arc::new(values.collect()) }
    }

    /// The value of `key`.
    ///
    /// # Panics
    /// There is no such key: a bug of the caller, not a mistake of the user.
    pub fn value(&self, key: &str) -> &Value {
        self.values.get(key).unwrap_or_else(|| panic!("{key} is not in the schema"))
    }

    /// The keys whose values are texts, with the texts.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().filter_map(|(&key, value)| match value {
            Value::Text(text) => Some((key, text.as_str())),
            _ => None,
        })
    }

    /// The setting of `key`.
    ///
    /// # Panics
    /// There is no such key, or the key has other values than `T`: a bug of the caller.
    pub fn get<T: FromValue>(&self, key: &str) -> T {
        let value = self.value(key);
        T::from_value(value).unwrap_or_else(|| panic!("{key} has the value {value:?}"))
    }
}
