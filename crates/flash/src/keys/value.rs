//! Values of keys: how each type is read from a file or an option, and written.

use super::blocks::{BlockCount, format_blocks, parse_blocks};
use super::{FromValue, near};
use crate::units::parse::{
    Parsed, format_age, format_bytes, format_capacity, format_energy, format_rate, format_ratio, format_time,
    parse_age, parse_bytes, parse_capacity, parse_energy, parse_rate, parse_ratio, parse_time, ratio_from_number,
    shown,
};
use crate::units::{self, Nanos, Picojoules};

/// Longest time of a device: a day, in nanoseconds.
const LONGEST: Nanos = 86_400_000_000_000;
/// Longest array operation, in nanoseconds; operations store their time in 32 bits.
pub const LONGEST_OPERATION: Nanos = 2_000_000_000;
/// Oldest data: ten years, in nanoseconds.
const OLDEST: Nanos = 3650 * LONGEST;
/// Largest energy of an operation: a joule, in picojoules.
const LARGEST: Picojoules = 1_000_000_000_000;

/// A notation that a variant defines for the values of a key.
#[derive(Debug)]
pub struct Notation {
    /// Words, for completion and for "did you mean".
    pub words: fn() -> Vec<&'static str>,
    /// The canonical text of a value.
    pub read: fn(&str) -> Parsed<String>,
    /// The expected values, as "one of ...", for messages.
    pub expected: fn() -> String,
}

/// The kind of the values of a key: notation, unit and range, both ends included.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub enum ValueType {
    /// Name or path of a part; empty for none.
    PartName,
    /// A word among these. If the first word is `off`, `false` means `off` and `true` the second word.
    Choice(&'static [&'static str]),
    /// A name in a registry.
    Names(fn() -> Vec<&'static str>),
    /// A notation that a variant defines.
    Notation(&'static Notation),
    /// A bare whole number.
    Count { min: u64, max: u64 },
    /// `true` or `false`.
    Flag,
    /// A time, at most a day.
    Time,
    /// An age of data, at most ten years.
    Age,
    /// A list of times.
    Times,
    /// A size in bytes.
    Bytes { min: u64, max: u64 },
    /// The capacity of a drive in bytes.
    Capacity { max: u64 },
    /// A transfer rate.
    Rate,
    /// A ratio.
    Ratio { max: f64 },
    /// A share up to 1, or this word.
    ShareOr(&'static str),
    /// A share up to 1, or a notation, whose `expected` follows the words for a share.
    ShareOrNotation(&'static Notation),
    /// A list of ratios up to 1.
    Ratios,
    /// An energy, at most a joule.
    Energy,
    /// A list of energies.
    Energies,
    /// Blocks, or a share of the blocks of a plane.
    Blocks,
    /// A bare positive number from 1e-6 to 1e9.
    Factor,
}

/// The value of a key.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    Text(String),
    Count(u64),
    Flag(bool),
    Time(Nanos),
    Age(Nanos),
    Times(Vec<Nanos>),
    Bytes(u64),
    Capacity(u64),
    Rate(units::Rate),
    Ratio(f64),
    Ratios(Vec<f64>),
    Energy(Picojoules),
    Energies(Vec<Picojoules>),
    Blocks(BlockCount),
    Factor(f64),
}

/// A value in a TOML file or after `--set key=`.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Raw {
    Text(String),
    Whole(i64),
    Float(f64),
    Flag(bool),
    List(Vec<Raw>),
    Other(&'static str),
}

impl Raw {
    fn describe(&self) -> String {
        match self {
            Raw::Text(text) => format!("the text \"{}\"", shown(text)),
            Raw::Whole(number) => format!("the bare number {number}"),
            Raw::Float(number) => format!("the bare number {number:?}"),
            Raw::Flag(flag) => format!("{flag}"),
            Raw::List(_) => "a list".into(),
            Raw::Other(what) => (*what).into(),
        }
    }
}

impl ValueType {
    /// Whether the values are words, so that a bare text needs no quotes.
    pub fn is_text(self) -> bool {
        matches!(self, ValueType::PartName | ValueType::Choice(_) | ValueType::Names(_) | ValueType::Notation(_))
    }

    /// The value of a plain text: a number, `true`, `[]` or a text of the kind's own.
    ///
    /// # Errors
    /// As [`ValueType::read`].
    pub fn read_text(self, text: &str) -> Parsed<Value> {
        let raw = match (self.is_text(), text) {
            (true, _) => Raw::Text(text.into()),
            (false, "true") => Raw::Flag(true),
            (false, "false") => Raw::Flag(false),
            (false, "[]") => Raw::List(Vec::new()),
            (false, _) => match (text.parse(), text.parse()) {
                (Ok(whole), _) => Raw::Whole(whole),
                (_, Ok(float)) => Raw::Float(float),
                _ => Raw::Text(text.into()),
            },
        };
        self.read(&raw)
    }

    /// The possible words; empty for quantities.
    pub fn words(self) -> Vec<&'static str> {
        match self {
            ValueType::Choice(words) => words.into(),
            ValueType::Names(names) => names(),
            ValueType::Notation(notation) => (notation.words)(),
            ValueType::Flag => vec!["true", "false"],
            ValueType::ShareOr(word) => vec![word],
            _ => Vec::new(),
        }
    }

    /// The value of `raw`.
    ///
    /// # Errors
    /// One line with the mistake (type, unit, range) and the expected values.
    pub fn read(self, raw: &Raw) -> Parsed<Value> {
        match (self, raw) {
            (ValueType::PartName, Raw::Text(text)) if !text.chars().any(char::is_control) => {
                Ok(Value::Text(text.clone()))
            }
            (ValueType::Choice(_) | ValueType::Names(_), Raw::Text(text)) if self.words().contains(&text.as_str()) => {
                Ok(Value::Text(text.clone()))
            }
            (ValueType::Choice(words @ ["off", ..]), Raw::Flag(flag)) => {
                Ok(Value::Text(words[usize::from(*flag)].into()))
            }
            (ValueType::Choice(["off", ..]), Raw::Text(text)) if text == "true" || text == "false" => {
                self.read(&Raw::Flag(text == "true"))
            }
            (ValueType::Notation(notation), Raw::Text(text)) => (notation.read)(text).map(Value::Text),
            (ValueType::Count { min, max }, Raw::Whole(number)) => within(*number, min, max).map(Value::Count),
            (ValueType::Flag, Raw::Flag(flag)) => Ok(Value::Flag(*flag)),
            (ValueType::Time, Raw::Text(text)) => time(text).map(Value::Time),
            (ValueType::Age, Raw::Text(text)) => age(text).map(Value::Age),
            (ValueType::Times, Raw::List(list)) => items(list, ValueType::Time).map(Value::Times),
            (ValueType::Bytes { min, max }, Raw::Text(text)) => bytes(text, min, max).map(Value::Bytes),
            (ValueType::Capacity { max }, Raw::Text(text)) => capacity(text, max).map(Value::Capacity),
            (ValueType::Rate, Raw::Text(text)) => parse_rate(text).map(Value::Rate),
            (ValueType::Ratio { max }, Raw::Text(text)) => parse_ratio(text).and_then(|ratio| at_most(ratio, max)),
            (ValueType::Ratio { max }, Raw::Float(number)) => {
                ratio_from_number(*number).and_then(|ratio| at_most(ratio, max))
            }
            (ValueType::Ratio { .. }, Raw::Whole(number)) => ratio_from_number(*number as f64).map(Value::Ratio),
            (ValueType::ShareOr(word), Raw::Text(text)) if text == word => Ok(Value::Text(text.clone())),
            (ValueType::ShareOr(word), _) => {
                ValueType::Ratio { max: 1.0 }.read(raw).map_err(|what| format!("{what}, or {word}"))
            }
            (ValueType::ShareOrNotation(notation), Raw::Text(text)) if parse_ratio(text).is_err() => {
                (notation.read)(text).map(Value::Text)
            }
            (ValueType::ShareOrNotation(_), _) => ValueType::Ratio { max: 1.0 }.read(raw),
            (ValueType::Ratios, Raw::List(list)) => items(list, ValueType::Ratio { max: 1.0 }).map(Value::Ratios),
            (ValueType::Energy, Raw::Text(text)) => energy(text).map(Value::Energy),
            (ValueType::Energies, Raw::List(list)) => items(list, ValueType::Energy).map(Value::Energies),
            (ValueType::Blocks, Raw::Text(text)) => parse_blocks(text).map(Value::Blocks),
            (ValueType::Blocks, Raw::Float(number)) => {
                ratio_from_number(*number).map(|share| Value::Blocks(BlockCount::Share(share)))
            }
            (ValueType::Factor, Raw::Float(number)) => factor(*number),
            (ValueType::Factor, Raw::Whole(number)) => factor(*number as f64),
            (ValueType::Choice(_) | ValueType::Names(_), Raw::Text(text)) => {
                let near = near(text, self.words().into_iter());
                Err(format!("\"{}\" is not known; {}{near}", shown(text), self.expected()))
            }
            _ => Err(format!("{} is not possible here; {}", raw.describe(), self.expected())),
        }
    }

    /// "expected ...", for messages.
    pub fn expected(self) -> String {
        match self {
            ValueType::PartName => "expected the name of a part, or the path of a part file".into(),
            ValueType::Choice(_) | ValueType::Names(_) => format!("expected one of {}", self.words().join(", ")),
            ValueType::Notation(notation) => format!("expected {}", (notation.expected)()),
            ValueType::Count { min, max } => format!("expected a whole number from {min} to {max}"),
            ValueType::Flag => "expected true or false".into(),
            ValueType::Time => "expected a time such as \"35us\"".into(),
            ValueType::Age => "expected an age such as \"90d\"".into(),
            ValueType::Times => "expected a list of times such as [\"35us\", \"45us\"]".into(),
            ValueType::Bytes { .. } => "expected a number of bytes such as \"16KiB\"".into(),
            ValueType::Capacity { .. } => "expected a capacity such as \"30.72TB\" or \"64GiB\"".into(),
            ValueType::Rate => "expected a rate such as \"1.2GB/s\", or \"unlimited\"".into(),
            ValueType::Ratio { .. } => "expected a percentage such as \"28%\", or a number below 1 such as 0.28".into(),
            ValueType::ShareOr(word) => format!("expected {word}, or a percentage such as \"28%\""),
            ValueType::ShareOrNotation(notation) => {
                format!("expected a percentage such as \"28%\"{}", (notation.expected)())
            }
            ValueType::Ratios => "expected a list of percentages such as [\"20%\", \"40%\"]".into(),
            ValueType::Energy => "expected an energy such as \"50.37uJ\"".into(),
            ValueType::Energies => "expected a list of energies such as [\"3uJ\", \"4uJ\"]".into(),
            ValueType::Blocks => {
                "expected blocks such as \"2 blocks\", or a share of a plane's blocks such as \"20%\"".into()
            }
            ValueType::Factor => "expected a number from 1e-6 to 1e9".into(),
        }
    }
}

impl Value {
    /// The value as a user writes it: counts, flags and factors bare, lists in brackets, quantities with units.
    pub fn to_text(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Count(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::Factor(number) => number.to_string(),
            Value::Time(time) => format_time(*time),
            Value::Age(age) => format_age(*age),
            Value::Bytes(bytes) => format_bytes(*bytes),
            Value::Capacity(bytes) => format_capacity(*bytes),
            Value::Rate(rate) => format_rate(*rate),
            Value::Ratio(ratio) => format_ratio(*ratio),
            Value::Energy(energy) => format_energy(*energy),
            Value::Blocks(count) => format_blocks(*count),
            Value::Times(_) | Value::Energies(_) | Value::Ratios(_) => {
                let items: Vec<String> = self.items().iter().map(|item| format!("\"{item}\"")).collect();
                format!("[{}]", items.join(", "))
            }
        }
    }

    /// The texts of the items of a list; empty for other values.
    pub fn items(&self) -> Vec<String> {
        match self {
            Value::Times(times) => times.iter().map(|&time| format_time(time)).collect(),
            Value::Energies(energies) => energies.iter().map(|&energy| format_energy(energy)).collect(),
            Value::Ratios(ratios) => ratios.iter().map(|&ratio| format_ratio(ratio)).collect(),
            _ => Vec::new(),
        }
    }
}

/// `value`, if in range.
fn ranged<T: Copy>(value: T, fits: bool, text: impl Fn(T) -> String, expected: impl FnOnce() -> String) -> Parsed<T> {
    if fits { Ok(value) } else { Err(format!("{} is out of range; {}", text(value), expected())) }
}

fn within(number: i64, min: u64, max: u64) -> Parsed<u64> {
    let fits = u64::try_from(number).is_ok_and(|number| (min..=max).contains(&number));
    let expected = || ValueType::Count { min, max }.expected();
    ranged(number, fits, |number| number.to_string(), expected).map(|number| number as u64)
}

fn at_most(ratio: f64, max: f64) -> Parsed<Value> {
    let text = |ratio| shown(&format_ratio(ratio));
    ranged(ratio, ratio <= max, text, || format!("expected at most {}", format_ratio(max))).map(Value::Ratio)
}

fn time(text: &str) -> Parsed<Nanos> {
    let time = parse_time(text)?;
    ranged(time, time <= LONGEST, format_time, || format!("expected at most {}", format_time(LONGEST)))
}

fn age(text: &str) -> Parsed<Nanos> {
    let age = parse_age(text)?;
    ranged(age, age <= OLDEST, format_age, || "expected at most 3650d".into())
}

fn energy(text: &str) -> Parsed<Picojoules> {
    let energy = parse_energy(text)?;
    ranged(energy, energy <= LARGEST, format_energy, || "expected at most 1J".into())
}

fn bytes(text: &str, min: u64, max: u64) -> Parsed<u64> {
    let bytes = parse_bytes(text)?;
    let expected = || format!("expected from {} to {}", format_bytes(min), format_bytes(max));
    ranged(bytes, (min..=max).contains(&bytes), format_bytes, expected)
}

fn capacity(text: &str, max: u64) -> Parsed<u64> {
    let bytes = parse_capacity(text)?;
    ranged(bytes, bytes <= max, format_capacity, || format!("expected at most {}", format_capacity(max)))
}

fn factor(number: f64) -> Parsed<Value> {
    let fits = (1e-6..=1e9).contains(&number);
    ranged(number, fits, |number| format!("{number:?}"), || ValueType::Factor.expected()).map(Value::Factor)
}

/// The items of a list, each of the kind `item`.
fn items<T: FromValue>(list: &[Raw], item: ValueType) -> Parsed<Vec<T>> {
    let read = |raw: &Raw| match (item, raw) {
        (ValueType::Ratio { .. }, _) | (_, Raw::Text(_)) => item.read(raw),
        _ => Err(format!("{} in the list is not possible; {}", raw.describe(), item.expected())),
    };
    let typed = |value| T::from_value(&value).expect("a list has items of its kind");
    list.iter().map(|raw| read(raw).map(typed)).collect()
}
