//! The resolved values of a drive's keys, from which layers and policies take their own.

use crate::keys::blocks::BlockCount;
use crate::keys::value::Value;
use crate::keys::{Fallback, Key};
use palimpsest_flash::units::{Nanos, Picojoules, Rate};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All values, by key.
///
/// The getters panic where a key does not exist or has another kind: a bug of the caller, not a mistake of the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Name of the translation layer (`ftl.name`).
    pub name: String,
    values: Arc<BTreeMap<&'static str, Value>>,
}

macro_rules! getter {
    ($name:ident, $variant:ident, $type:ty, $doc:literal) => {
        #[doc = $doc]
        pub fn $name(&self, key: &str) -> $type {
            match self.value(key) {
                Value::$variant(value) => value.clone(),
                other => panic!("{key} has the value {other:?}"),
            }
        }
    };
}

impl Settings {
    /// The values `values` for the layer `name`.
    pub fn new(name: &str, values: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        Settings { name: name.into(), values: Arc::new(values.into_iter().collect()) }
    }

    /// The defaults of `keys` for the layer `name`, for tests of a layer by itself. Each must have one.
    pub fn of_defaults<'a>(name: &str, keys: impl IntoIterator<Item = &'a Key>) -> Self
    where
        'static: 'a,
    {
        let default = |key: &Key| match key.default {
            Fallback::Text(text) => {
                (key.name, key.value_type.read_text(text).expect("a default is a value of its kind"))
            }
            _ => panic!("{} has no default", key.name),
        };
        Self::new(name, keys.into_iter().map(default))
    }

    /// The same with `key` at `value`.
    #[must_use]
    pub fn with(&self, key: &'static str, value: Value) -> Self {
        let mut values = (*self.values).clone();
        values.insert(key, value);
        Settings { name: self.name.clone(), values: Arc::new(values) }
    }

    /// The same for the layer `name`.
    #[must_use]
    pub fn for_layer(&self, name: &str) -> Self {
        Settings { name: name.into(), values: Arc::clone(&self.values) }
    }

    /// The same without the keys of `tables`, which are unknown then.
    #[must_use]
    pub fn without(&self, tables: &[&str]) -> Self {
        let of_table = |key: &str| tables.contains(&key.split_once('.').map_or(key, |(table, _)| table));
        let values = self.values.iter().filter(|(key, _)| !of_table(key)).map(|(&key, value)| (key, value.clone()));
        Settings { name: self.name.clone(), values: Arc::new(values.collect()) }
    }

    /// The value of `key`.
    pub fn value(&self, key: &str) -> &Value {
        self.values.get(key).unwrap_or_else(|| panic!("{key} is not in the schema"))
    }

    getter!(text, Text, String, "The text of `key`.");
    getter!(count, Count, u64, "The whole number of `key`.");
    getter!(flag, Flag, bool, "The flag of `key`.");
    getter!(time, Time, Nanos, "The time of `key`, in nanoseconds.");
    getter!(age, Age, Nanos, "The age of `key`, in nanoseconds.");
    getter!(times, Times, Vec<Nanos>, "The times of `key`, in nanoseconds.");
    getter!(bytes, Bytes, u64, "The size of `key`, in bytes.");
    getter!(rate, Rate, Rate, "The rate of `key`.");
    getter!(ratio, Ratio, f64, "The ratio of `key`.");
    getter!(ratios, Ratios, Vec<f64>, "The ratios of `key`.");
    getter!(energy, Energy, Picojoules, "The energy of `key`, in picojoules.");
    getter!(energies, Energies, Vec<Picojoules>, "The energies of `key`, in picojoules.");
    getter!(blocks, Blocks, BlockCount, "The number of blocks of `key`.");
    getter!(factor, Factor, f64, "The factor of `key`.");

    /// The share of `key`; `None` where it has its word.
    pub fn share_or_word(&self, key: &str) -> Option<f64> {
        match self.value(key) {
            Value::Text(_) => None,
            _ => Some(self.ratio(key)),
        }
    }

    /// A count whose range the schema keeps within 32 bits.
    pub fn small(&self, key: &str) -> u32 {
        u32::try_from(self.count(key)).expect("the schema keeps this count within 32 bits")
    }

    /// A size whose range the schema keeps within 32 bits.
    pub fn small_bytes(&self, key: &str) -> u32 {
        u32::try_from(self.bytes(key)).expect("the schema keeps this size within 32 bits")
    }

    /// The meaning of the word of `key` in `meanings`.
    pub fn choice<T: Copy>(&self, key: &str, meanings: &[(&str, T)]) -> T {
        let word = self.text(key);
        let found = meanings.iter().find(|(known, _)| *known == word);
        found.unwrap_or_else(|| panic!("{key} has the word {word}, which has no meaning")).1
    }
}
