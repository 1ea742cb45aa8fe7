//! Sizes, counts and shares in fio's notation.

use std::fmt;

use palimpsest_flash::units::{GIB, KIB, MIB, Nanos};

/// Bytes, or a part of the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Millionths of the drive, or of another whole.
    Millionths(u32),
}

impl Amount {
    /// In bytes of a `whole`; a part is rounded down to a multiple of `grain`.
    pub fn bytes_of(self, whole: u64, grain: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::Millionths(_) => self.exact(whole) / grain * grain,
        }
    }

    /// As [`bytes_of`](Self::bytes_of), with a part rounded up.
    pub fn bytes_up_to(self, whole: u64, grain: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::Millionths(_) => self.exact(whole).div_ceil(grain).saturating_mul(grain),
        }
    }

    fn exact(self, whole: u64) -> u64 {
        match self {
            Amount::Bytes(bytes) => bytes,
            Amount::Millionths(part) => (u128::from(whole) * u128::from(part) / 1_000_000) as u64,
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Amount::Bytes(bytes) => f.write_str(&size_text(bytes)),
            Amount::Millionths(part) => {
                let decimals = format!("{}.{:04}", part / 10_000, part % 10_000);
                write!(f, "{}%", decimals.trim_end_matches('0').trim_end_matches('.'))
            }
        }
    }
}

/// Bytes with the largest unit that leaves a whole number.
pub fn size_text(bytes: u64) -> String {
    if bytes == 0 {
        "0".into()
    } else {
        in_units(bytes, &[(1 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"), (1, "")])
    }
}

/// `value` in the first of the units that leaves a whole number.
fn in_units(value: u64, units: &[(u64, &str)]) -> String {
    let (unit, name) = units.iter().find(|(unit, _)| value.is_multiple_of(*unit)).expect("the last unit is 1");
    format!("{}{name}", value / unit)
}

/// Bytes: a number with an optional unit of powers of 1024.
pub fn size(text: &str) -> Option<u64> {
    with_unit(text, |unit| match unit {
        "" | "b" => Some(1),
        "k" | "kb" | "ki" | "kib" => Some(KIB),
        "m" | "mb" | "mi" | "mib" => Some(MIB),
        "g" | "gb" | "gi" | "gib" => Some(GIB),
        "t" | "tb" | "ti" | "tib" => Some(1 << 40),
        _ => None,
    })
}

/// A number times the value of the unit after it, which `value` gets in lower case.
fn with_unit(text: &str, value: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    scaled(&text[..split], u128::from(value(&text[split..].to_ascii_lowercase())?))
}

/// Bytes or a percentage of the drive up to 100.
pub fn amount(text: &str) -> Option<Amount> {
    amount_up_to(text, 1_000_000)
}

/// Bytes, or a percentage of the drive, also above 100.
pub fn repeated_amount(text: &str) -> Option<Amount> {
    amount_up_to(text, u32::MAX)
}

fn amount_up_to(text: &str, millionths: u32) -> Option<Amount> {
    match text.strip_suffix('%') {
        Some(percent) => {
            let part = u32::try_from(scaled(percent, 10_000)?).ok()?;
            (part <= millionths).then_some(Amount::Millionths(part))
        }
        None => size(text).map(Amount::Bytes),
    }
}

/// The meaning of units, by fio's `kb_base`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    /// 1024, fio's default: `k` is 1024, and `Ki` 1000.
    Swapped,
    /// 1000: `k` is 1000, and `Ki` 1024, as in the SI.
    Standard,
}

impl Units {
    /// The units of a value of `kb_base`.
    pub fn of(text: &str) -> Option<Units> {
        match text {
            "1024" => Some(Units::Swapped),
            "1000" => Some(Units::Standard),
            _ => None,
        }
    }

    /// `text` with a plain value, rounded down to a multiple of `grain`, for every number with a unit; other text
    /// stays.
    pub fn without(self, text: &str, grain: u64) -> String {
        let mut plain = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
            plain.push_str(&rest[..start]);
            let number = &rest[start..];
            let unit = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
            let end = number[unit..].find(|c: char| !c.is_ascii_alphabetic()).map_or(number.len(), |at| unit + at);
            match self.scale(&number[unit..end]).and_then(|scale| scaled(&number[..unit], scale)) {
                Some(value) => plain.push_str(&(value / grain * grain).to_string()),
                None => plain.push_str(&number[..end]),
            }
            rest = &number[end..];
        }
        plain + rest
    }

    /// `text` with the value of the expression in place of the expression, if `text` begins with a parenthesis.
    pub fn evaluated(self, text: &str) -> Option<String> {
        let mut rest = text;
        let value = if text.starts_with('(') { self.product(&mut rest, 0)? } else { return Some(text.into()) };
        u64::try_from(value).ok().map(|value| format!("{value}{rest}"))
    }

    /// A sum, in parentheses below the first level.
    fn sum(self, rest: &mut &str, level: u32) -> Option<i128> {
        let mut sum = self.product(rest, level)?;
        while let Some(tail) = rest.trim_start().strip_prefix(['+', '-']) {
            let sign = if rest.trim_start().starts_with('-') { -1 } else { 1 };
            *rest = tail;
            sum = sum.checked_add(sign * self.product(rest, level)?)?;
        }
        Some(sum)
    }

    fn product(self, rest: &mut &str, level: u32) -> Option<i128> {
        let mut product = self.factor(rest, level)?;
        while let Some(tail) = rest.trim_start().strip_prefix(['*', '/', '%']).filter(|_| level > 0) {
            let operator = rest.trim_start().as_bytes()[0];
            *rest = tail;
            let factor = self.factor(rest, level)?;
            product = match operator {
                b'*' => product.checked_mul(factor)?,
                b'/' => product.checked_div(factor)?,
                _ => product.checked_rem(factor)?,
            };
        }
        Some(product)
    }

    /// A number with a unit, or a sum in parentheses.
    fn factor(self, rest: &mut &str, level: u32) -> Option<i128> {
        let text = rest.trim_start();
        if let Some(inner) = text.strip_prefix('(').filter(|_| level < 16) {
            *rest = inner;
            let sum = self.sum(rest, level + 1)?;
            *rest = rest.trim_start().strip_prefix(')')?;
            return Some(sum);
        }
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(text.len());
        *rest = &text[end..];
        self.without(&text[..end], 1).parse().ok()
    }

    fn scale(self, unit: &str) -> Option<u128> {
        let unit = unit.to_ascii_lowercase();
        let power = "kmgtp".find(unit.chars().next()?)? as u32 + 1;
        let binary = match &unit[1..] {
            "" | "b" => self == Units::Swapped,
            "i" | "ib" => self == Units::Standard,
            _ => return None,
        };
        Some(if binary { 1024u128.pow(power) } else { 1000u128.pow(power) })
    }
}

/// Nanoseconds: a number of seconds, or with a unit of fio (`d`, `h`, `m`, `s`, `ms`, `us`) or `ns`.
pub fn duration(text: &str) -> Option<Nanos> {
    with_unit(text, |unit| match unit {
        "d" => Some(86_400_000_000_000),
        "h" => Some(3_600_000_000_000),
        "m" => Some(60_000_000_000),
        "" | "s" => Some(1_000_000_000),
        "ms" => Some(1_000_000),
        "us" => Some(1000),
        "ns" => Some(1),
        _ => None,
    })
}

/// Nanoseconds with the largest unit that leaves a whole number.
pub fn duration_text(nanos: Nanos) -> String {
    in_units(nanos, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")])
}

/// A count: `250000`, `100k`, `1.5M` (powers of 1000) or `1e6`.
pub fn count(text: &str) -> Option<u64> {
    if let Some((mantissa, exponent)) = text.split_once(['e', 'E']) {
        let exponent: u32 = exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?;
        return scaled(mantissa, 10u128.checked_pow(exponent).filter(|&scale| scale <= 1 << 64)?);
    }
    let units = [(['k', 'K'], 1_000), (['m', 'M'], 1_000_000), (['g', 'G'], 1_000_000_000)];
    match units.iter().find(|(unit, _)| text.ends_with(*unit)) {
        Some((_, scale)) => scaled(&text[..text.len() - 1], *scale),
        None => scaled(text, 1),
    }
}

/// A decimal number times `scale`; `None` unless that is a whole number below 2^64.
fn scaled(text: &str, scale: u128) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 20 || decimals.len() > 12 || !all_digits(whole) || !all_digits(decimals) {
        return None;
    }
    let divisor = 10u128.pow(decimals.len() as u32);
    let digits: u128 = format!("{whole}{decimals}").parse().ok()?;
    let product = digits.checked_mul(scale)?;
    if product % divisor != 0 {
        return None;
    }
    u64::try_from(product / divisor).ok()
}

#[cfg(test)]
mod tests;
