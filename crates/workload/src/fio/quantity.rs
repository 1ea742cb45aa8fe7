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
    /// In bytes of a `whole`; a part of it is rounded down to a multiple of `grain`.
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
    let units = [(1 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")];
    let unit = units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or(bytes.to_string(), |(unit, name)| format!("{}{name}", bytes / unit))
}

/// Bytes: a number with an optional unit of powers of 1024.
pub fn size(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit: u64 = match text[split..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "ki" | "kib" => KIB,
        "m" | "mb" | "mi" | "mib" => MIB,
        "g" | "gb" | "gi" | "gib" => GIB,
        "t" | "tb" | "ti" | "tib" => 1 << 40,
        _ => return None,
    };
    scaled(&text[..split], u128::from(unit))
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

/// fio's `kb_base`: what its units mean.
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

    /// `text` with every number that has a unit replaced by its plain value, rounded down to a multiple of `grain`; what is none is
    /// left as it is.
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

/// Nanoseconds: a number of seconds, or with one of fio's units (`d`, `h`, `m`, `s`, `ms`, `us`) or `ns`.
pub fn duration(text: &str) -> Option<Nanos> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit: u64 = match text[split..].to_ascii_lowercase().as_str() {
        "d" => 86_400_000_000_000,
        "h" => 3_600_000_000_000,
        "m" => 60_000_000_000,
        "" | "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1000,
        "ns" => 1,
        _ => return None,
    };
    scaled(&text[..split], u128::from(unit))
}

/// Nanoseconds with the largest unit that leaves a whole number.
pub fn duration_text(nanos: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    let unit = units.iter().find(|(unit, _)| nanos.is_multiple_of(*unit));
    unit.map_or(format!("{nanos}ns"), |(unit, name)| format!("{}{name}", nanos / unit))
}

/// A count: `250000`, `100k`, `1.5M` (powers of 1000) or `1e6`.
pub fn count(text: &str) -> Option<u64> {
    if let Some((mantissa, exponent)) = text.split_once(['e', 'E']) {
        let exponent: u32 = exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?;
        return scaled(mantissa, 10u128.checked_pow(exponent).filter(|&scale| scale <= 1 << 64)?);
    }
    let units =
        [('k', 1_000), ('K', 1_000), ('m', 1_000_000), ('M', 1_000_000), ('g', 1_000_000_000), ('G', 1_000_000_000)];
    match units.iter().find(|(unit, _)| text.ends_with(*unit)) {
        Some((_, scale)) => scaled(&text[..text.len() - 1], *scale),
        None => scaled(text, 1),
    }
}

/// A decimal number times `scale`, when that is a whole number below 2^64.
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
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        for text in ["4k", "4K", "4kb", "4KiB", "4ki", "4096", "4096b"] {
            assert_eq!(size(text), Some(4096), "{text}");
        }
        assert_eq!(size("1.5g"), Some(3 << 29));
        for text in ["", "k", "4x", "-4k", "4 k", "1e3", "99999999999999999999", "20000000000g", "0.3b", "٣"] {
            assert_eq!(size(text), None, "{text}");
        }
        assert_eq!((size_text(3 << 20), size_text(1000)), ("3MiB".to_string(), "1000".to_string()));
    }

    /// What fio 3.33 prints as block size for `bs=4k`, `bs=4KiB` with each `kb_base`.
    #[test]
    fn units_of_fio() {
        for (text, swapped, standard) in [
            ("4k", "4096", "4000"),
            ("4KiB", "4000", "4096"),
            ("1m,2mib", "1048576,2000000", "1000000,2097152"),
            ("4k/50:1.5Mb/50", "4096/50:1572864/50", "4000/50:1500000/50"),
            ("50%", "50%", "50%"),
            ("1e6", "1e6", "1e6"),
            ("17x", "17x", "17x"),
            ("512", "512", "512"),
        ] {
            assert_eq!(
                (Units::Swapped.without(text, 1).as_str(), Units::Standard.without(text, 1).as_str()),
                (swapped, standard)
            );
        }
    }

    #[test]
    fn counts_are_powers_of_1000() {
        assert_eq!(
            (count("1e6"), count("100k"), count("2.5M"), count("7")),
            (Some(1_000_000), Some(100_000), Some(2_500_000), Some(7))
        );
        for text in ["", "e", "1e", "1e99", "1e-3", "0.5", "-1", "1e4294967296"] {
            assert_eq!(count(text), None, "{text}");
        }
    }

    #[test]
    fn parts_of_a_drive() {
        assert_eq!(amount("12.5%"), Some(Amount::Millionths(125_000)));
        assert_eq!(amount("101%"), None);
        assert_eq!(repeated_amount("200%").map(|amount| amount.bytes_of(GIB, 4096)), Some(2 * GIB));
        assert_eq!(Amount::Millionths(125_000).bytes_of(GIB, 4096), GIB / 8);
        assert_eq!(Amount::Millionths(1_000_000).bytes_of(GIB, 4096), GIB);
        let third = Amount::Millionths(333_333);
        assert_eq!((third.bytes_of(3 << 20, 16384), third.bytes_up_to(3 << 20, 16384)), (63 << 14, 64 << 14));
        assert_eq!((third.bytes_of(3 << 20, 1), Amount::Bytes(7).bytes_up_to(GIB, 4096)), (1_048_574, 7));
        assert_eq!(
            (Amount::Millionths(125_000).to_string(), Amount::Bytes(GIB).to_string()),
            ("12.5%".into(), "1GiB".into())
        );
    }
}
