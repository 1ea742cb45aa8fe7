//! Columns of a line and the numbers in them, as bytes, without allocation; and their faults.

use palimpsest_flash::units::Nanos;

/// Why a line is not a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The mistake and the expected text, in one line without the place.
    pub what: String,
}

impl Fault {
    /// A fault described by `what`.
    #[cold]
    pub fn new(what: impl Into<String>) -> Self {
        Fault { what: what.into() }
    }

    /// The column `column` holds `found` instead of `expected`.
    #[cold]
    pub fn column(column: &str, expected: &str, found: &[u8]) -> Self {
        Fault { what: format!("column {column}: expected {expected}, found {}", quoted(found)) }
    }
}

/// Result of reading a line or a part of a line.
pub type Parse<T> = Result<T, Fault>;

/// The fault of a line by which a tracer says that it lost events; else `other`.
#[cold]
pub fn lost_or(line: &[u8], other: &str) -> Fault {
    Fault::new(if is_of_loss(line) {
        "the kernel lost events here; expected a whole trace, or --skip-bad"
    } else {
        other
    })
}

/// True for lines such as `CPU:2 [LOST 9 EVENTS]`, `Lost 9 events` and `Possibly lost 9 samples`.
pub fn is_of_loss(line: &[u8]) -> bool {
    line.windows(5).any(|word| word.eq_ignore_ascii_case(b"lost "))
}

/// `bytes` for a message: escaped and shortened.
#[cold]
pub fn quoted(bytes: &[u8]) -> String {
    const SHOWN: usize = 32;
    let cut = if bytes.len() > SHOWN { "..." } else { "" };
    format!("\"{}{cut}\"", bytes[..bytes.len().min(SHOWN)].escape_ascii())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separator {
    Byte(u8),
    /// Any run of spaces and tabs.
    Blanks,
}

/// The columns of one line, from the left.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
    separator: Separator,
    finished: bool,
}

impl<'a> Fields<'a> {
    /// Columns between single bytes `separator`.
    #[inline]
    pub fn separated(line: &'a [u8], separator: u8) -> Self {
        Fields { rest: line, separator: Separator::Byte(separator), finished: false }
    }

    /// Columns between runs of spaces and tabs.
    #[inline]
    pub fn blank(line: &'a [u8]) -> Self {
        let rest = line.trim_ascii_start();
        Fields { rest, separator: Separator::Blanks, finished: rest.is_empty() }
    }

    /// The next column, called `column` in messages.
    #[inline]
    pub fn text(&mut self, column: &str) -> Parse<&'a [u8]> {
        if self.finished {
            return Err(Fault::new(format!("the line ends before column {column}")));
        }
        let end = match self.separator {
            Separator::Byte(separator) => self.rest.iter().position(|&byte| byte == separator),
            Separator::Blanks => self.rest.iter().position(|&byte| is_blank(byte)),
        };
        let Some(end) = end else {
            self.finished = true;
            return Ok(self.rest);
        };
        let field = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        if self.separator == Separator::Blanks {
            self.rest = skip_blanks(self.rest);
            self.finished = self.rest.is_empty();
        }
        Ok(field)
    }

    /// The next column as a whole number.
    #[inline]
    pub fn number(&mut self, column: &str) -> Parse<u64> {
        let field = self.text(column)?;
        number(field, column)
    }

    /// The next column as a decimal number, in units of the `digits`-th decimal; further decimals are dropped.
    #[inline]
    pub fn decimal(&mut self, column: &str, digits: u32) -> Parse<u64> {
        let field = self.text(column)?;
        decimal(field, column, digits)
    }

    /// Requires that no column follows.
    #[inline]
    pub fn end(&self, columns: &str) -> Parse<()> {
        if self.finished {
            return Ok(());
        }
        Err(Fault::new(format!("expected {columns}, found more: {}", quoted(self.rest))))
    }
}

#[inline]
fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

#[inline]
fn skip_blanks(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().take_while(|&&byte| is_blank(byte)).count();
    &bytes[blanks..]
}

/// `field` as a whole number; blanks around the number are legal.
#[inline]
pub fn number(field: &[u8], column: &str) -> Parse<u64> {
    if let Some(value) = digits(field) { Ok(value) } else { number_with_care(field, column) }
}

/// The number of 1 to 19 digits, because more may overflow.
#[inline]
fn digits(field: &[u8]) -> Option<u64> {
    if field.is_empty() || field.len() > 19 {
        return None;
    }
    let mut value = 0u64;
    for &byte in field {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

#[cold]
fn number_with_care(field: &[u8], column: &str) -> Parse<u64> {
    let trimmed = field.trim_ascii();
    if trimmed.is_empty() {
        return Err(Fault::new(format!("column {column} is empty; expected a whole number")));
    }
    if trimmed[0] == b'-' {
        return Err(Fault::column(column, "a number that is not negative", trimmed));
    }
    if !trimmed.iter().all(u8::is_ascii_digit) {
        return Err(Fault::column(column, "a whole number", trimmed));
    }
    let grown = trimmed.iter().try_fold(0u64, |value, byte| value.checked_mul(10)?.checked_add(u64::from(byte - b'0')));
    grown.ok_or_else(|| Fault::column(column, "a number below 2^64", trimmed))
}

/// `field` as a decimal number in units of the `scale`-th decimal.
#[inline]
pub fn decimal(field: &[u8], column: &str, scale: u32) -> Parse<u64> {
    let field = field.trim_ascii();
    if field.starts_with(b"-") {
        return Err(Fault::column(column, "a number that is not negative", field));
    }
    let Some(point) = field.iter().position(|&byte| byte == b'.') else {
        return scaled(number(field, column)?, 0, field, column, scale);
    };
    let (whole, decimals) = (&field[..point], &field[point + 1..]);
    if whole.is_empty() || !decimals.iter().all(u8::is_ascii_digit) {
        return Err(Fault::column(column, "a decimal number", field));
    }
    let kept = &decimals[..decimals.len().min(scale as usize)];
    let fraction = kept.iter().fold(0, |value, byte| value * 10 + u64::from(byte - b'0'));
    let fraction = fraction * 10u64.pow(scale - kept.len() as u32);
    scaled(number(whole, column)?, fraction, field, column, scale)
}

/// A time of `value` units of so many nanoseconds.
#[inline]
pub fn nanos(value: u64, unit: Nanos, column: &str) -> Parse<Nanos> {
    let time = value.checked_mul(unit);
    time.ok_or_else(|| Fault::column(column, "a time below 2^64 ns", value.to_string().as_bytes()))
}

#[inline]
fn scaled(whole: u64, fraction: u64, field: &[u8], column: &str, scale: u32) -> Parse<u64> {
    let value = whole.checked_mul(10u64.pow(scale)).and_then(|value| value.checked_add(fraction));
    value.ok_or_else(|| Fault::column(column, "a time below 2^64 ns", field))
}

#[cfg(test)]
mod tests;
