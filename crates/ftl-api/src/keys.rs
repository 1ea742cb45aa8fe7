//! Keys of the configuration as data: name, kind, default and what each means. Whoever uses a key defines it, beside the code
//! that it is for; the laboratory gathers them into one schema.

pub mod blocks;
pub mod readers;
pub mod value;

pub use readers::{Need, Reader};
pub use value::{Notation, Raw, Value, ValueType};

/// What a key has when it is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// This text, in the key's own notation.
    Text(&'static str),
    /// What that key has.
    Same(&'static str),
    /// Nothing: it must be set.
    Required,
}

/// One key of the configuration.
#[derive(Debug)]
pub struct Key {
    /// Dotted name, table first.
    pub name: &'static str,
    /// What its values are.
    pub value_type: ValueType,
    /// What it has when it is not set.
    pub default: Fallback,
    /// One line on what it means.
    pub doc: &'static str,
    /// Its readers, each of which suffices. If empty: the layers that list it in [`crate::Entry::keys`]; for a key
    /// that no layer lists, the drive, the engine or the host.
    pub readers: &'static [Reader],
    /// Conditions without which no reader reads it; see [`Need`].
    pub needs: &'static [&'static str],
}

impl Key {
    /// A key that has `default`, in its own notation, when it is not set.
    pub const fn new(name: &'static str, value_type: ValueType, default: &'static str, doc: &'static str) -> Key {
        Key { name, value_type, default: Fallback::Text(default), doc, readers: &[], needs: &[] }
    }

    /// A key that must be set.
    pub const fn required(name: &'static str, value_type: ValueType, doc: &'static str) -> Key {
        Key { name, value_type, default: Fallback::Required, doc, readers: &[], needs: &[] }
    }

    /// A key that has what `other` has when it is not set.
    pub const fn same(name: &'static str, value_type: ValueType, other: &'static str, doc: &'static str) -> Key {
        Key { name, value_type, default: Fallback::Same(other), doc, readers: &[], needs: &[] }
    }

    /// The key with these readers.
    #[must_use]
    pub const fn read_by(self, readers: &'static [Reader]) -> Key {
        Key { readers, ..self }
    }

    /// The key with conditions without which nothing reads it.
    #[must_use]
    pub const fn needs(self, needs: &'static [&'static str]) -> Key {
        Key { needs, ..self }
    }

    /// The table that the key is in, and its name there.
    pub fn split(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').expect("a key has a table and a name")
    }
}

/// A share of something: a ratio up to 1.
pub const SHARE: ValueType = ValueType::Ratio { max: 1.0 };

/// Up to three of `names` that look like `name`, best first, as "; did you mean ...?", or nothing.
pub fn near<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    // Comparing is quadratic; longer names are not mistyped ones.
    if name.len() > 100 {
        return String::new();
    }
    // What differs in case alone is meant.
    let lower = name.to_lowercase();
    let name = lower.as_str();
    let bare = |text: &'a str| text.split_once('.').map_or(text, |(_, rest)| rest);
    let score = |known: &'a str| strsim::jaro_winkler(name, known).max(strsim::jaro_winkler(name, bare(known)) - 0.01);
    let mut scored: Vec<(f64, &str)> =
        names.map(|known| (score(known), known)).filter(|(score, _)| *score > 0.85).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let best = scored.first().map_or(0.0, |(score, _)| *score);
    let names: Vec<&str> =
        scored.iter().filter(|(score, _)| best - score < 0.04).take(3).map(|(_, known)| *known).collect();
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) }
}
