//! Keys of the configuration as data: name, kind, default and meaning. A structure declares keys
//! ([`macro@crate::keys`]) beside the code that reads them; the laboratory gathers the lists into one schema.

pub mod blocks;
pub mod declare;
pub mod readers;
pub mod settings;
pub mod value;

pub use declare::{FromValue, Notated, is};
pub use readers::{Feature, Need, Reader};
pub use value::{Notation, Raw, Value, ValueType};

/// The value of a key that is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// This text, in the key's own notation.
    Text(&'static str),
    /// The value of this other key.
    Same(&'static str),
    /// None: the key must be set.
    Required,
}

/// A condition on the values of one key, beyond their kind.
#[derive(Debug)]
pub struct Rule {
    /// Whether a value meets the rule.
    pub holds: fn(&Value) -> bool,
    /// The message for a value that breaks the rule: the reason, or the expected values.
    pub expected: &'static str,
}

/// The size of a drive in proportion to which an absolute number is chosen. Shares of it need none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// The capacity.
    Capacity,
    /// The blocks of a plane.
    Plane,
}

/// One key of the configuration.
#[derive(Debug)]
pub struct Key {
    /// Dotted name, table first.
    pub name: &'static str,
    /// The kind of the values: unit and range.
    pub value_type: ValueType,
    /// The value if nothing sets the key.
    pub default: Fallback,
    /// The meaning, in one line.
    pub doc: &'static str,
    /// The readers. If empty: the layers that list the key, or, if no layer does, the drive, the engine or the host.
    pub readers: &'static [Reader],
    /// Conditions on other keys, without which no reader reads the key; see [`Need`].
    pub needs: &'static [&'static str],
    /// Rules that every value must meet.
    pub rules: &'static [Rule],
    /// The size of the drive with which a scaled drive scales the value; empty: none. Numbers of blocks scale with
    /// their plane.
    pub growth: &'static [Growth],
}

impl Key {
    /// A key without readers, conditions and rules of its own.
    pub const fn new(name: &'static str, value_type: ValueType, default: Fallback, doc: &'static str) -> Key {
        let growth = if matches!(value_type, ValueType::Blocks) { &[Growth::Plane] as &[Growth] } else { &[] };
        Key { name, value_type, default, doc, readers: &[], needs: &[], rules: &[], growth }
    }

    /// The key with these readers.
    #[must_use]
    pub const fn read_by(self, readers: &'static [Reader]) -> Key {
        Key { readers, ..self }
    }

    /// The key with conditions for reading.
    #[must_use]
    pub const fn needs(self, needs: &'static [&'static str]) -> Key {
        Key { needs, ..self }
    }

    /// The key with conditions on its values.
    #[must_use]
    pub const fn rules(self, rules: &'static [Rule]) -> Key {
        Key { rules, ..self }
    }

    /// The key with a value that a scaled drive scales.
    #[must_use]
    pub const fn grows_with(self, growth: &'static [Growth]) -> Key {
        Key { growth, ..self }
    }

    /// The table and the name within the table.
    pub fn split(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').expect("a key has a table and a name")
    }
}

/// The keys of `groups`, for the `keys` of a layer's entry.
pub fn keys_of(groups: &[&'static [Key]]) -> Vec<&'static Key> {
    groups.iter().copied().flatten().collect()
}

/// A share of something: a ratio up to 1.
pub const SHARE: ValueType = ValueType::Ratio { max: 1.0 };

/// Most characters of a message for a mistake of the user, besides long names and values of the user.
pub const LONGEST_MESSAGE: usize = 200;

/// The first of `forms`, the longest one first, that fits in a message; else the last.
pub fn fitting(forms: impl Iterator<Item = String>) -> String {
    let mut last = String::new();
    for form in forms {
        last = form;
        if last.chars().count() <= LONGEST_MESSAGE {
            break;
        }
    }
    last
}

/// Up to `most` of `names`, and the number of the others: `page, dftl, block or 16 more`.
pub fn few<T: AsRef<str>>(names: &[T], most: usize, conjunction: &str) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} {conjunction} {more} more", shown.join(", ")),
    }
}

/// The end of the refusal of `name`: names that look like it, and the command that prints all names of `kind`.
pub fn expected_name<'a>(name: &str, names: impl Iterator<Item = &'a str>, kind: &str) -> String {
    let near = near(name, names);
    let near = if near.is_empty() { ";" } else { &near };
    format!("{near} expected one that `palimpsest list {kind}` prints")
}

/// Up to three of `names` that look like `name`, best first, as "; did you mean ...?", or nothing.
pub fn near<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    // Comparison is quadratic, and a longer name is no typing error.
    if name.len() > 100 {
        return String::new();
    }
    // Names that differ in case alone are alike.
    let lower = name.to_lowercase();
    let name = lower.as_str();
    let bare = |text: &'a str| text.split_once('.').map_or(text, |(_, rest)| rest);
    // Swapped or wrong letters of a short name.
    let slip = |known: &str| if strsim::damerau_levenshtein(name, known) == 1 { 0.9 } else { 0.0 };
    let alike = |known: &'a str| strsim::jaro_winkler(name, known).max(strsim::jaro_winkler(name, bare(known)) - 0.01);
    let score = |known: &'a str| alike(known).max(slip(known));
    let mut scored: Vec<(f64, &str)> =
        names.map(|known| (score(known), known)).filter(|(score, _)| *score > 0.85).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let best = scored.first().map_or(0.0, |(score, _)| *score);
    let names: Vec<&str> =
        scored.iter().filter(|(score, _)| best - score < 0.04).take(3).map(|(_, known)| *known).collect();
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) }
}
