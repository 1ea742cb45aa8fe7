//! Values of keys: how each type is read from a file or an option, and written back.

use super::blocks::{BlockCount, format_blocks, parse_blocks};
use super::near;
use palimpsest_flash::units::parse::{
    Parsed, format_age, format_bytes, format_capacity, format_energy, format_rate, format_ratio, format_time,
    parse_age, parse_bytes, parse_capacity, parse_energy, parse_rate, parse_ratio, parse_time, ratio_from_number,
    shown,
};
use palimpsest_flash::units::{self, Nanos, Picojoules};

/// No time of a device is longer than this: a day, in nanoseconds.
const LONGEST: Nanos = 86_400_000_000_000;
/// No data is older than this: ten years.
const OLDEST: Nanos = 3650 * LONGEST;
/// No operation takes more energy than this: a joule, in picojoules.
const LARGEST: Picojoules = 1_000_000_000_000;

/// A notation that a variant defines for values of its own.
#[derive(Debug)]
pub struct Notation {
    /// Its words, for completion and for "did you mean".
    pub words: fn() -> Vec<&'static str>,
    /// The canonical text of a value.
    pub read: fn(&str) -> Parsed<String>,
    /// "one of ...", for messages.
    pub expected: fn() -> String,
}

/// The type of the values of a key.
#[derive(Debug, Clone, Copy)]
pub enum ValueType {
    /// A name: letters, digits, `-`, `_` and `.`.
    Name,
    /// Name or path of a part; empty for none.
    PartName,
    /// One of these words. Where the first is `off`, `false` is that and `true` the one after it.
    Choice(&'static [&'static str]),
    /// A notation of its own, such as the names of a registry.
    Notation(&'static Notation),
    /// A bare whole number.
    Count {
        /// The least.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// `true` or `false`.
    Flag,
    /// A time, at most a day.
    Time,
    /// An age of data, at most ten years.
    Age,
    /// A list of times.
    Times,
    /// A size in bytes.
    Bytes {
        /// The least.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// The capacity of a drive in bytes.
    Capacity {
        /// The largest.
        max: u64,
    },
    /// A transfer rate.
    Rate,
    /// A ratio.
    Ratio {
        /// The largest.
        max: f64,
    },
    /// A share up to 1, or this word.
    ShareOr(&'static str),
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
    /// Whether its values are words, so that a bare text is taken as it is.
    pub fn is_text(self) -> bool {
        matches!(self, ValueType::Name | ValueType::PartName | ValueType::Choice(_) | ValueType::Notation(_))
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

    /// The words that it may be; none where it takes quantities.
    pub fn words(self) -> Vec<&'static str> {
        match self {
            ValueType::Choice(words) => words.into(),
            ValueType::Notation(notation) => (notation.words)(),
            ValueType::Flag => vec!["true", "false"],
            ValueType::ShareOr(word) => vec![word],
            _ => Vec::new(),
        }
    }

    /// The value that `raw` means.
    ///
    /// # Errors
    /// One line on what is wrong (type, unit, range) and what was expected.
    pub fn read(self, raw: &Raw) -> Parsed<Value> {
        match (self, raw) {
            (ValueType::Name, Raw::Text(text)) if is_name(text) => Ok(Value::Text(text.clone())),
            (ValueType::PartName, Raw::Text(text)) if !text.chars().any(char::is_control) => {
                Ok(Value::Text(text.clone()))
            }
            (ValueType::Choice(words), Raw::Text(text)) if words.contains(&text.as_str()) => {
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
            (ValueType::Times, Raw::List(list)) => {
                list.iter().map(time_in_list).collect::<Parsed<_>>().map(Value::Times)
            }
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
            (ValueType::Ratios, Raw::List(list)) => {
                list.iter().map(ratio_in_list).collect::<Parsed<_>>().map(Value::Ratios)
            }
            (ValueType::Energy, Raw::Text(text)) => energy(text).map(Value::Energy),
            (ValueType::Energies, Raw::List(list)) => {
                list.iter().map(energy_in_list).collect::<Parsed<_>>().map(Value::Energies)
            }
            (ValueType::Blocks, Raw::Text(text)) => parse_blocks(text).map(Value::Blocks),
            (ValueType::Blocks, Raw::Float(number)) => {
                ratio_from_number(*number).map(|share| Value::Blocks(BlockCount::Share(share)))
            }
            (ValueType::Factor, Raw::Float(number)) => factor(*number),
            (ValueType::Factor, Raw::Whole(number)) => factor(*number as f64),
            (ValueType::Choice(words), Raw::Text(text)) => {
                let near = near(text, words.iter().copied());
                Err(format!("\"{}\" is not known; {}{near}", shown(text), self.expected()))
            }
            _ => Err(format!("{} is not possible here; {}", raw.describe(), self.expected())),
        }
    }

    /// "expected ...", for messages.
    pub fn expected(self) -> String {
        match self {
            ValueType::Name => "expected a name of letters, digits, '-', '_' and '.'".into(),
            ValueType::PartName => "expected the name of a part, or the path of a part file".into(),
            ValueType::Choice(words) => format!("expected one of {}", words.join(", ")),
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
    /// The value as a user would write it: counts, flags and factors bare, lists in brackets, quantities with units.
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

    /// The texts of a list's items; none where it is no list.
    pub fn items(&self) -> Vec<String> {
        match self {
            Value::Times(times) => times.iter().map(|&time| format_time(time)).collect(),
            Value::Energies(energies) => energies.iter().map(|&energy| format_energy(energy)).collect(),
            Value::Ratios(ratios) => ratios.iter().map(|&ratio| format_ratio(ratio)).collect(),
            _ => Vec::new(),
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 100
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn within(number: i64, min: u64, max: u64) -> Parsed<u64> {
    let inside = u64::try_from(number).ok().filter(|number| (min..=max).contains(number));
    inside.ok_or_else(|| format!("{number} is out of range; {}", ValueType::Count { min, max }.expected()))
}

fn at_most(ratio: f64, max: f64) -> Parsed<Value> {
    if ratio <= max {
        return Ok(Value::Ratio(ratio));
    }
    Err(format!("{} is out of range; expected at most {}", shown(&format_ratio(ratio)), format_ratio(max)))
}

fn time(text: &str) -> Parsed<Nanos> {
    let time = parse_time(text)?;
    if time <= LONGEST {
        Ok(time)
    } else {
        Err(format!("{} is out of range; expected at most a day", format_time(time)))
    }
}

fn age(text: &str) -> Parsed<Nanos> {
    let age = parse_age(text)?;
    if age <= OLDEST { Ok(age) } else { Err(format!("{} is out of range; expected at most 3650d", format_age(age))) }
}

fn time_in_list(raw: &Raw) -> Parsed<Nanos> {
    match raw {
        Raw::Text(text) => time(text),
        _ => Err(format!("{} in the list is not possible; {}", raw.describe(), ValueType::Time.expected())),
    }
}

fn ratio_in_list(raw: &Raw) -> Parsed<f64> {
    match (ValueType::Ratio { max: 1.0 }).read(raw)? {
        Value::Ratio(ratio) => Ok(ratio),
        other => unreachable!("a ratio was read as {other:?}"),
    }
}

fn energy_in_list(raw: &Raw) -> Parsed<Picojoules> {
    match raw {
        Raw::Text(text) => energy(text),
        _ => Err(format!("{} in the list is not possible; {}", raw.describe(), ValueType::Energy.expected())),
    }
}

fn energy(text: &str) -> Parsed<Picojoules> {
    let energy = parse_energy(text)?;
    if energy <= LARGEST {
        Ok(energy)
    } else {
        Err(format!("{} is out of range; expected at most 1J", format_energy(energy)))
    }
}

fn bytes(text: &str, min: u64, max: u64) -> Parsed<u64> {
    let bytes = parse_bytes(text)?;
    if (min..=max).contains(&bytes) {
        return Ok(bytes);
    }
    let (bytes, min, max) = (format_bytes(bytes), format_bytes(min), format_bytes(max));
    Err(format!("{bytes} is out of range; expected from {min} to {max}"))
}

fn capacity(text: &str, max: u64) -> Parsed<u64> {
    let bytes = parse_capacity(text)?;
    if bytes <= max {
        return Ok(bytes);
    }
    Err(format!("{} is out of range; expected at most {}", format_capacity(bytes), format_capacity(max)))
}

fn factor(number: f64) -> Parsed<Value> {
    if (1e-6..=1e9).contains(&number) {
        return Ok(Value::Factor(number));
    }
    Err(format!("{number:?} is out of range; {}", ValueType::Factor.expected()))
}
