//! Quantities as text, read and written: `"35us"`, `"16KiB"`, `"1.2GB/s"`, `"28%"`, `"50.37uJ"`, `"90d"`.
//!
//! A quantity is a decimal number and a unit, with or without blanks between them. Decimals become integers without
//! floating point: `"0.1us"` is exactly 100 ns, and a time that is not a whole number of nanoseconds is refused. Units
//! are case-sensitive:
//! - bytes are binary (`B`, `KiB`, `MiB`, `GiB`, `TiB`), so `"4k"` and `"16MB"` are refused, with the likely unit;
//! - capacities of drives may also be decimal (`"30.72TB"`);
//! - rates are bytes a second, decimal (`kB/s`, `MB/s`, `GB/s`, as in data sheets) or binary (`MiB/s`); bits a second
//!   are refused, because the number of pins is unknown;
//! - a ratio is a percentage or a bare number below 1; a bare 1 or more is refused, because both may be meant.
//!
//! Signs and exponents are refused except in bare ratios. The error of every `parse_*` is one line with the mistake and
//! the expected text. Every `format_*` gives the shortest text that parses back to the same value.

use super::{Nanos, Picojoules, Rate};

/// A value, or one line with the mistake in its text and the expected text.
pub type Parsed<T> = std::result::Result<T, String>;

/// A dimension: its units and its words for messages.
struct Dimension {
    /// "a time", for messages.
    what: &'static str,
    /// A well-formed example.
    example: &'static str,
    /// Name of the base unit, in the plural.
    base: &'static str,
    /// Units that are printed, smallest first, with their size in base units.
    units: &'static [(&'static str, u64)],
    /// Units that are only read.
    aliases: &'static [(&'static str, u64)],
    /// Units that are refused, with the likely ones.
    meant: &'static [(&'static str, &'static str)],
}

const TIME: Dimension = Dimension {
    what: "a time",
    example: "35us",
    base: "nanoseconds",
    units: &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)],
    aliases: &[("\u{b5}s", 1_000), ("\u{3bc}s", 1_000)],
    meant: &[("nsec", "ns"), ("usec", "us"), ("msec", "ms"), ("sec", "s"), ("u", "us"), ("m", "ms"), ("n", "ns")],
};

const HOUR: u64 = 3_600_000_000_000;
const DAY: u64 = 24 * HOUR;

const AGE: Dimension = Dimension {
    what: "an age",
    example: "90d",
    units: &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("h", HOUR), ("d", DAY)],
    meant: &[
        ("m", "ms"),
        ("min", "s"),
        ("day", "d"),
        ("days", "d"),
        ("hours", "h"),
        ("w", "d"),
        ("y", "d"),
        ("years", "d"),
    ],
    ..TIME
};

const BYTES: Dimension = Dimension {
    what: "a number of bytes",
    example: "16KiB",
    base: "bytes",
    units: &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)],
    aliases: &[],
    meant: &[
        ("k", "KiB"),
        ("kb", "KiB"),
        ("m", "MiB"),
        ("mb", "MiB"),
        ("g", "GiB"),
        ("gb", "GiB"),
        ("t", "TiB"),
        ("tb", "TiB"),
    ],
};

/// Drives are sold in decimal units.
const CAPACITY: Dimension = Dimension {
    what: "a capacity",
    example: "30.72TB",
    units: &[
        ("B", 1),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
    ],
    ..BYTES
};

const RATE: Dimension = Dimension {
    what: "a rate",
    example: "1.2GB/s",
    base: "bytes a second",
    units: &[("B/s", 1), ("kB/s", 1_000), ("MB/s", 1_000_000), ("GB/s", 1_000_000_000)],
    aliases: &[("KiB/s", 1 << 10), ("MiB/s", 1 << 20), ("GiB/s", 1 << 30)],
    meant: &[("kbps", "kB/s"), ("mbps", "MB/s"), ("gbps", "GB/s"), ("mb", "MB/s"), ("gb", "GB/s"), ("mt/s", "MB/s")],
};

const ENERGY: Dimension = Dimension {
    what: "an energy",
    example: "50.37uJ",
    base: "picojoules",
    units: &[("pJ", 1), ("nJ", 1_000), ("uJ", 1_000_000), ("mJ", 1_000_000_000), ("J", 1_000_000_000_000)],
    aliases: &[("\u{b5}J", 1_000_000), ("\u{3bc}J", 1_000_000)],
    meant: &[("u", "uJ"), ("n", "nJ"), ("p", "pJ")],
};

/// A time such as `"35us"`, in nanoseconds. Units: ns, us (µs), ms, s.
///
/// # Errors
/// No number, no unit or another, or not a whole number of nanoseconds.
pub fn parse_time(text: &str) -> Parsed<Nanos> {
    TIME.parse(text)
}

/// The shortest text of a time.
pub fn format_time(time: Nanos) -> String {
    TIME.format(time)
}

/// An age of data such as `"90d"`, in nanoseconds. Units: as for times, and h, d.
///
/// # Errors
/// No number, no unit or another, or not a whole number of nanoseconds.
pub fn parse_age(text: &str) -> Parsed<Nanos> {
    AGE.parse(text)
}

/// The text of an age: whole days or hours, or a time.
pub fn format_age(age: Nanos) -> String {
    match (age / HOUR, age % HOUR) {
        (1.., 0) if age.is_multiple_of(DAY) => format!("{}d", age / DAY),
        (hours @ 1.., 0) => format!("{hours}h"),
        _ => format_time(age),
    }
}

/// A size such as `"16KiB"`, in bytes. Units: B, KiB, MiB, GiB, TiB.
///
/// # Errors
/// No number, no unit or another (`"16MB"`, `"4k"`), or not a whole number of bytes.
pub fn parse_bytes(text: &str) -> Parsed<u64> {
    BYTES.parse(text)
}

/// A capacity of a drive such as `"30.72TB"`, in bytes. Units: as for sizes, and MB, GB, TB.
///
/// # Errors
/// No number, no unit or another, or not a whole number of bytes.
pub fn parse_capacity(text: &str) -> Parsed<u64> {
    CAPACITY.parse(text)
}

/// The shortest text of a capacity.
pub fn format_capacity(bytes: u64) -> String {
    CAPACITY.format(bytes)
}

/// The shortest text of a size.
pub fn format_bytes(bytes: u64) -> String {
    BYTES.format(bytes)
}

/// A rate such as `"1.2GB/s"`, or `"unlimited"`. Units: B/s, kB/s, MB/s, GB/s (decimal), KiB/s, MiB/s, GiB/s.
///
/// # Errors
/// No number, no unit or another (bits a second, say), not a whole number of bytes a second, or zero.
pub fn parse_rate(text: &str) -> Parsed<Rate> {
    if text.trim() == "unlimited" {
        return Ok(Rate(0));
    }
    let unit = split(text.trim()).1;
    if unit.ends_with("b/s") || unit.ends_with("bit/s") {
        return Err(format!(
            "\"{}\" counts bits; {}: 0.8 Gb/s a pin on 8 pins is \"800MB/s\"",
            shown(text),
            RATE.expected()
        ));
    }
    match RATE.parse(text)? {
        0 => Err(format!("\"{}\" moves nothing; {} or \"unlimited\"", shown(text), RATE.expected())),
        rate => Ok(Rate(rate)),
    }
}

/// The shortest text of a rate.
pub fn format_rate(rate: Rate) -> String {
    if rate.0 == 0 { "unlimited".into() } else { RATE.format(rate.0) }
}

/// An energy such as `"50.37uJ"`, in picojoules. Units: pJ, nJ, uJ (µJ), mJ, J.
///
/// # Errors
/// No number, no unit or another, or not a whole number of picojoules.
pub fn parse_energy(text: &str) -> Parsed<Picojoules> {
    ENERGY.parse(text)
}

/// The shortest text of an energy.
pub fn format_energy(energy: Picojoules) -> String {
    ENERGY.format(energy)
}

/// A ratio such as `"28%"` or `"0.28"`; the value is the double nearest to the decimal.
///
/// # Errors
/// No number, another unit, a negative number, or a bare number of 1 or more.
pub fn parse_ratio(text: &str) -> Parsed<f64> {
    let expected = "expected a percentage such as \"28%\", or a number below 1 such as 0.28";
    let text = text.trim();
    if let Some(percent) = text.strip_suffix('%') {
        let percent = percent.trim_end();
        let ratio = decimal(percent).and_then(|_| format!("{percent}e-2").parse::<f64>().ok());
        return ratio.ok_or_else(|| format!("\"{}\" is not a ratio; {expected}", shown(text)));
    }
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || b".eE-+".contains(&byte));
    let number = if plain { text.parse::<f64>().ok() } else { None };
    number.ok_or_else(|| format!("\"{}\" is not a ratio; {expected}", shown(text))).and_then(ratio_from_number)
}

/// A bare number as a ratio.
///
/// # Errors
/// Below 0, or 1 and more, which may mean a percentage.
pub fn ratio_from_number(number: f64) -> Parsed<f64> {
    if (0.0..1.0).contains(&number) {
        // The sum turns -0 into 0.
        return Ok(number + 0.0);
    }
    Err(if (1.0..=1000.0).contains(&number) {
        format!("{number:?} may be a ratio or a percentage; expected \"{number}%\", or a number below 1")
    } else {
        format!(
            "{number:?} is not a ratio; expected a percentage such as \"28%\", or a number from 0 to 1 such as 0.28"
        )
    })
}

/// The shortest percentage that parses back to `ratio`, which must be finite and not negative.
pub fn format_ratio(ratio: f64) -> String {
    let text = format!("{ratio:e}");
    let (digits, exponent) = text.split_once('e').expect("a float in scientific notation has an exponent");
    let digits = digits.replace('.', "");
    let point = exponent.parse::<i32>().expect("the exponent of a float is a number") + 3;
    let count = digits.len() as i32;
    if ratio == 0.0 {
        "0%".into()
    } else if point <= 0 {
        format!("0.{}{digits}%", "0".repeat(point.unsigned_abs() as usize))
    } else if point >= count {
        format!("{digits}{}%", "0".repeat((point - count) as usize))
    } else {
        format!("{}.{}%", &digits[..point as usize], &digits[point as usize..])
    }
}

impl Dimension {
    fn parse(&self, text: &str) -> Parsed<u64> {
        let (number, unit) = split(text.trim());
        let Some((mantissa, places)) = decimal(number) else {
            return Err(format!("\"{}\" is not {}; {}", shown(text), self.what, self.expected()));
        };
        let known = self.units.iter().chain(self.aliases).find(|(name, _)| *name == unit);
        let Some(&(_, size)) = known else { return Err(self.wrong_unit(text, unit)) };
        let scale = 10u128.pow(places);
        let total = mantissa.checked_mul(u128::from(size));
        let whole = total.and_then(|total| u64::try_from(total / scale).ok());
        match (whole, total.is_some_and(|total| total % scale == 0)) {
            (Some(amount), true) => Ok(amount),
            (Some(_), false) => Err(format!("\"{}\" is not a whole number of {}", shown(text), self.base)),
            (None, _) => Err(format!("\"{}\" is too large: at most {} {}", shown(text), u64::MAX, self.base)),
        }
    }

    fn wrong_unit(&self, text: &str, unit: &str) -> String {
        if unit.is_empty() {
            return format!("\"{}\" has no unit; {}", shown(text), self.expected());
        }
        let lower = unit.to_lowercase();
        let same =
            self.units.iter().chain(self.aliases).map(|(name, _)| *name).find(|name| name.to_lowercase() == lower);
        let meant = self.meant.iter().find(|(wrong, _)| *wrong == lower).map(|(_, right)| *right);
        // Decimal units of bytes come first: "MB" is not a misspelt "MiB" but another size.
        let guess = meant.or(same).map_or(String::new(), |name| format!("did you mean {name}? "));
        format!("\"{}\": {} is not a unit of {}; {guess}{}", shown(text), shown(unit), self.base, self.expected())
    }

    fn expected(&self) -> String {
        let units: Vec<&str> = self.units.iter().map(|(name, _)| *name).collect();
        format!("expected {} such as \"{}\" (units: {})", self.what, self.example, units.join(", "))
    }

    fn format(&self, amount: u64) -> String {
        let texts = self.units.iter().map(|&(name, size)| format!("{}{name}", quotient(amount, size)));
        // Among texts of one length, "100ns" reads better than "0.1us", and "50.37uJ" better than "50370nJ".
        texts.rev().min_by_key(|text| (text.len(), text.starts_with("0."))).expect("every dimension has a unit")
    }
}

/// `amount / size` as an exact decimal; `size` has no prime factors but 2 and 5.
fn quotient(amount: u64, size: u64) -> String {
    let mut text = (amount / size).to_string();
    let mut rest = u128::from(amount % size);
    if rest > 0 {
        text.push('.');
    }
    while rest > 0 {
        rest *= 10;
        text.push_str(&(rest / u128::from(size)).to_string());
        rest %= u128::from(size);
    }
    text
}

/// The leading number of a text, and the rest.
pub fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// A plain decimal as `mantissa / 10^places`; `None` if it is malformed or has more than 30 digits.
fn decimal(text: &str) -> Option<(u128, u32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let all = format!("{}{fraction}", whole.trim_start_matches('0'));
    let mantissa = if all.is_empty() { 0 } else { all.parse().ok()? };
    if all.len() > 30 || fraction.len() > 30 {
        return None;
    }
    Some((mantissa, fraction.len() as u32))
}

/// `text` shortened and escaped for one line of a message.
pub fn shown(text: &str) -> String {
    let mut line: String = text.trim().chars().take(60).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.trim().chars().count() > 60 {
        line.push_str("...");
    }
    line
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
