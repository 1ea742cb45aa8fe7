//! Values of keys: how each kind is read from TOML or from a command line, and how it is written back.

use super::blocks::{format_blocks, parse_blocks};
use palimpsest_flash::units::parse::{
    Parsed, format_bytes, format_energy, format_rate, format_ratio, format_time, parse_bytes, parse_energy, parse_rate,
    parse_ratio, parse_time, ratio_from_number, shown,
};
use palimpsest_flash::units::{self, Nanos, Picojoules};
use palimpsest_ftl_api::settings::{BlockCount, HotBelow, ThresholdPu, VictimPolicy};

/// No time of a device is longer than this: a day, in nanoseconds.
const LONGEST: Nanos = 86_400_000_000_000;
/// No operation takes more energy than this: a joule, in picojoules.
const LARGEST: Picojoules = 1_000_000_000_000;
/// Candidates of `d-choices` without a number (the d at which Van Houdt 2013 finds little left to gain).
const CHOICES: u32 = 10;

/// What the values of a key are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A name: letters, digits, `-`, `_` and `.`.
    Name,
    /// Name or path of a part; empty for none.
    PartName,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// `greedy`, `fifo`, `d-choices`, `d-choices:K` or `cost-benefit`.
    Victim,
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
    /// A list of times.
    Times,
    /// A size in bytes.
    Bytes {
        /// The least.
        min: u64,
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
    /// A size in bytes, or `zipf:A`.
    Boundary,
    /// `OP/N`, or a number of blocks.
    Threshold,
}

/// The value of a key.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Value {
    Text(String),
    Count(u64),
    Flag(bool),
    Time(Nanos),
    Times(Vec<Nanos>),
    Bytes(u64),
    Rate(units::Rate),
    Ratio(f64),
    Ratios(Vec<f64>),
    Energy(Picojoules),
    Energies(Vec<Picojoules>),
    Blocks(BlockCount),
    Factor(f64),
}

/// What stands in a TOML file or behind `--set key=`.
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
    /// The value of a TOML item.
    pub fn from_toml(value: &toml_edit::Value) -> Raw {
        match value {
            toml_edit::Value::String(text) => Raw::Text(text.value().clone()),
            toml_edit::Value::Integer(number) => Raw::Whole(*number.value()),
            toml_edit::Value::Float(number) => Raw::Float(*number.value()),
            toml_edit::Value::Boolean(flag) => Raw::Flag(*flag.value()),
            toml_edit::Value::Datetime(_) => Raw::Other("a date"),
            toml_edit::Value::Array(array) => Raw::List(array.iter().map(Raw::from_toml).collect()),
            toml_edit::Value::InlineTable(_) => Raw::Other("a table"),
        }
    }

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

impl Kind {
    /// The value that `text` behind `--set key=` means: a TOML value, or a bare string.
    ///
    /// # Errors
    /// As [`Kind::read`].
    pub fn read_bare(self, text: &str) -> Parsed<Value> {
        let raw = match (self, text.trim().parse::<toml_edit::Value>()) {
            (_, Ok(value @ (toml_edit::Value::String(_) | toml_edit::Value::Array(_)))) => Raw::from_toml(&value),
            (Kind::Name | Kind::PartName | Kind::Choice(_) | Kind::Victim | Kind::Boundary | Kind::Threshold, _)
            | (_, Err(_)) => Raw::Text(text.trim().into()),
            (_, Ok(value)) => Raw::from_toml(&value),
        };
        self.read(&raw)
    }

    /// The value that `raw` means.
    ///
    /// # Errors
    /// One line on what is wrong (type, unit, range) and what was expected.
    pub fn read(self, raw: &Raw) -> Parsed<Value> {
        match (self, raw) {
            (Kind::Name, Raw::Text(text)) if is_name(text) => Ok(Value::Text(text.clone())),
            (Kind::PartName, Raw::Text(text)) if !text.chars().any(char::is_control) => Ok(Value::Text(text.clone())),
            (Kind::Choice(words), Raw::Text(text)) if words.contains(&text.as_str()) => Ok(Value::Text(text.clone())),
            (Kind::Victim, Raw::Text(text)) => victim(text).map(|policy| Value::Text(format_victim(policy))),
            (Kind::Boundary, Raw::Text(text)) => boundary(text).map(|below| Value::Text(format_boundary(below))),
            (Kind::Threshold, Raw::Text(text)) => threshold(text).map(|start| Value::Text(format_threshold(start))),
            (Kind::Count { min, max }, Raw::Whole(number)) => within(*number, min, max).map(Value::Count),
            (Kind::Flag, Raw::Flag(flag)) => Ok(Value::Flag(*flag)),
            (Kind::Time, Raw::Text(text)) => time(text).map(Value::Time),
            (Kind::Times, Raw::List(list)) => list.iter().map(time_in_list).collect::<Parsed<_>>().map(Value::Times),
            (Kind::Bytes { min, max }, Raw::Text(text)) => bytes(text, min, max).map(Value::Bytes),
            (Kind::Rate, Raw::Text(text)) => parse_rate(text).map(Value::Rate),
            (Kind::Ratio { max }, Raw::Text(text)) => parse_ratio(text).and_then(|ratio| at_most(ratio, max)),
            (Kind::Ratio { max }, Raw::Float(number)) => {
                ratio_from_number(*number).and_then(|ratio| at_most(ratio, max))
            }
            (Kind::Ratio { .. }, Raw::Whole(number)) => ratio_from_number(*number as f64).map(Value::Ratio),
            (Kind::Ratios, Raw::List(list)) => list.iter().map(ratio_in_list).collect::<Parsed<_>>().map(Value::Ratios),
            (Kind::Energy, Raw::Text(text)) => energy(text).map(Value::Energy),
            (Kind::Energies, Raw::List(list)) => {
                list.iter().map(energy_in_list).collect::<Parsed<_>>().map(Value::Energies)
            }
            (Kind::Blocks, Raw::Text(text)) => parse_blocks(text).map(Value::Blocks),
            (Kind::Blocks, Raw::Float(number)) => {
                ratio_from_number(*number).map(|share| Value::Blocks(BlockCount::Share(share)))
            }
            (Kind::Factor, Raw::Float(number)) => factor(*number),
            (Kind::Factor, Raw::Whole(number)) => factor(*number as f64),
            (Kind::Choice(words), Raw::Text(text)) => {
                let near = super::schema::near(text, words.iter().copied());
                Err(format!("\"{}\" is not known; {}{near}", shown(text), self.expected()))
            }
            _ => Err(format!("{} is not possible here; {}", raw.describe(), self.expected())),
        }
    }

    /// "expected ...", for messages.
    pub fn expected(self) -> String {
        match self {
            Kind::Name => "expected a name of letters, digits, '-', '_' and '.'".into(),
            Kind::PartName => "expected the name of a part, or the path of a part file".into(),
            Kind::Choice(words) => format!("expected one of {}", words.join(", ")),
            Kind::Victim => "expected one of greedy, fifo, d-choices, d-choices:K, cost-benefit".into(),
            Kind::Count { min, max } => format!("expected a whole number from {min} to {max}"),
            Kind::Flag => "expected true or false".into(),
            Kind::Time => "expected a time such as \"35us\"".into(),
            Kind::Times => "expected a list of times such as [\"35us\", \"45us\"]".into(),
            Kind::Bytes { .. } => "expected a number of bytes such as \"16KiB\"".into(),
            Kind::Rate => "expected a rate such as \"1.2GB/s\", or \"unlimited\"".into(),
            Kind::Ratio { .. } => "expected a percentage such as \"28%\", or a number below 1 such as 0.28".into(),
            Kind::Ratios => "expected a list of percentages such as [\"20%\", \"40%\"]".into(),
            Kind::Energy => "expected an energy such as \"50.37uJ\"".into(),
            Kind::Energies => "expected a list of energies such as [\"3uJ\", \"4uJ\"]".into(),
            Kind::Blocks => {
                "expected blocks such as \"2 blocks\", or a share of a plane's blocks such as \"20%\"".into()
            }
            Kind::Factor => "expected a number from 1e-6 to 1e9".into(),
            Kind::Boundary => "expected a number of bytes such as \"1GiB\", or \"zipf:0.95\"".into(),
            Kind::Threshold => "expected \"OP/2\", \"OP/4\" or blocks such as \"20 blocks\"".into(),
        }
    }
}

impl Value {
    /// The value as TOML that reads back to it; all quantities as strings with units.
    pub fn to_toml(&self) -> String {
        match self {
            Value::Count(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::Factor(number) => number.to_string(),
            Value::Times(times) => list_to_toml(times, |&time| format_time(time)),
            Value::Energies(energies) => list_to_toml(energies, |&energy| format_energy(energy)),
            Value::Ratios(ratios) => list_to_toml(ratios, |&ratio| format_ratio(ratio)),
            _ => toml_edit::Value::from(self.to_text()).to_string(),
        }
    }

    /// The value as JSON: counts, flags and factors bare, all quantities as strings with units.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Count(number) => (*number).into(),
            Value::Flag(flag) => (*flag).into(),
            Value::Factor(number) => (*number).into(),
            Value::Times(times) => times.iter().map(|&time| format_time(time)).collect(),
            Value::Energies(energies) => energies.iter().map(|&energy| format_energy(energy)).collect(),
            Value::Ratios(ratios) => ratios.iter().map(|&ratio| format_ratio(ratio)).collect(),
            _ => self.to_text().into(),
        }
    }

    /// The value as a user would write it, for messages.
    pub fn to_text(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Time(time) => format_time(*time),
            Value::Bytes(bytes) => format_bytes(*bytes),
            Value::Rate(rate) => format_rate(*rate),
            Value::Ratio(ratio) => format_ratio(*ratio),
            Value::Energy(energy) => format_energy(*energy),
            Value::Blocks(count) => format_blocks(*count),
            Value::Count(_)
            | Value::Flag(_)
            | Value::Factor(_)
            | Value::Times(_)
            | Value::Energies(_)
            | Value::Ratios(_) => self.to_toml(),
        }
    }
}

fn list_to_toml<T>(items: &[T], format: impl Fn(&T) -> String) -> String {
    let items: Vec<String> = items.iter().map(|item| format!("\"{}\"", format(item))).collect();
    format!("[{}]", items.join(", "))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 100
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// The victim policy that `text` names.
///
/// # Errors
/// None of the known ones, or no positive number behind `d-choices:`.
pub fn victim(text: &str) -> Parsed<VictimPolicy> {
    let choices = text.strip_prefix("d-choices:").map(str::parse::<u32>);
    match (text, choices) {
        ("greedy", _) => Ok(VictimPolicy::Greedy),
        ("fifo", _) => Ok(VictimPolicy::Fifo),
        ("cost-benefit", _) => Ok(VictimPolicy::CostBenefit),
        ("d-choices", _) => Ok(VictimPolicy::DChoices { choices: CHOICES }),
        (_, Some(Ok(choices))) if choices > 0 => Ok(VictimPolicy::DChoices { choices }),
        (_, Some(_)) => Err(format!("\"{}\": expected d-choices:K with a whole number K from 1", shown(text))),
        _ => {
            let near = super::schema::near(text, ["greedy", "fifo", "d-choices", "cost-benefit"].into_iter());
            Err(format!("\"{}\" is not known; {}{near}", shown(text), Kind::Victim.expected()))
        }
    }
}

fn format_victim(policy: VictimPolicy) -> String {
    match policy {
        VictimPolicy::Greedy => "greedy".into(),
        VictimPolicy::Fifo => "fifo".into(),
        VictimPolicy::CostBenefit => "cost-benefit".into(),
        VictimPolicy::DChoices { choices } => format!("d-choices:{choices}"),
    }
}

/// The boundary of hot addresses that `text` gives.
///
/// # Errors
/// Neither a number of bytes, nor `zipf:` with an exponent from 0 to 10.
pub fn boundary(text: &str) -> Parsed<HotBelow> {
    let Some(exponent) = text.strip_prefix("zipf:") else {
        return parse_bytes(text)
            .map(HotBelow::Bytes)
            .map_err(|_| format!("\"{}\" is no boundary; {}", shown(text), Kind::Boundary.expected()));
    };
    match exponent.parse::<f64>() {
        Ok(exponent) if (0.0..=10.0).contains(&exponent) => Ok(HotBelow::Zipf(exponent)),
        _ => Err(format!("\"{}\": expected zipf:A with an exponent A from 0 to 10", shown(text))),
    }
}

fn format_boundary(below: HotBelow) -> String {
    match below {
        HotBelow::Bytes(bytes) => format_bytes(bytes),
        HotBelow::Zipf(exponent) => format!("zipf:{exponent}"),
    }
}

/// The initial threshold of partially-used blocks that `text` gives.
///
/// # Errors
/// Neither `OP/N` with N from 1, nor a number of blocks.
pub fn threshold(text: &str) -> Parsed<ThresholdPu> {
    let expected = || format!("\"{}\" is no threshold; {}", shown(text), Kind::Threshold.expected());
    match text.strip_prefix("OP/") {
        Some(parts) => match parts.parse() {
            Ok(parts) if parts > 0 => Ok(ThresholdPu::SpareOver(parts)),
            _ => Err(expected()),
        },
        None => match parse_blocks(text) {
            Ok(BlockCount::Blocks(blocks)) => Ok(ThresholdPu::Blocks(blocks)),
            _ => Err(expected()),
        },
    }
}

fn format_threshold(start: ThresholdPu) -> String {
    match start {
        ThresholdPu::SpareOver(parts) => format!("OP/{parts}"),
        ThresholdPu::Blocks(blocks) => format_blocks(BlockCount::Blocks(blocks)),
    }
}

fn within(number: i64, min: u64, max: u64) -> Parsed<u64> {
    let inside = u64::try_from(number).ok().filter(|number| (min..=max).contains(number));
    inside.ok_or_else(|| format!("{number} is out of range; {}", Kind::Count { min, max }.expected()))
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

fn time_in_list(raw: &Raw) -> Parsed<Nanos> {
    match raw {
        Raw::Text(text) => time(text),
        _ => Err(format!("{} in the list is not possible; {}", raw.describe(), Kind::Time.expected())),
    }
}

fn ratio_in_list(raw: &Raw) -> Parsed<f64> {
    match (Kind::Ratio { max: 1.0 }).read(raw)? {
        Value::Ratio(ratio) => Ok(ratio),
        other => unreachable!("a ratio was read as {other:?}"),
    }
}

fn energy_in_list(raw: &Raw) -> Parsed<Picojoules> {
    match raw {
        Raw::Text(text) => energy(text),
        _ => Err(format!("{} in the list is not possible; {}", raw.describe(), Kind::Energy.expected())),
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

fn factor(number: f64) -> Parsed<Value> {
    if (1e-6..=1e9).contains(&number) {
        return Ok(Value::Factor(number));
    }
    Err(format!("{number:?} is out of range; {}", Kind::Factor.expected()))
}
