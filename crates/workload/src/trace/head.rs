//! The start of a trace and the vote of a line format on it.

use super::line_format::{LineFormat, Parsed};

/// Bytes of a file that recognition reads.
pub const HEAD_BYTES: usize = 64 << 10;

/// The first bytes of a file, decompressed.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// At most [`HEAD_BYTES`] bytes.
    pub bytes: &'a [u8],
    /// Whether this is all of the file.
    pub whole: bool,
}

impl<'a> Head<'a> {
    /// The complete lines with their numbers; the last one counts when the file ends there.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &'a [u8])> {
        let complete = match self.bytes.iter().rposition(|&byte| byte == b'\n') {
            _ if self.whole => self.bytes,
            Some(end) => &self.bytes[..end],
            None => &[],
        };
        let numbered = complete.split(|&byte| byte == b'\n').zip(1..);
        numbered.map(|(line, number)| (number, line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

/// How much of the head of a file a format parses.
#[derive(Debug, Clone, Copy, Default)]
pub struct Vote {
    /// Lines that it parses as its own.
    pub lines: u64,
    /// The first of them.
    pub first_line: u64,
}

/// The vote of the line format `F`.
pub fn vote<F: LineFormat>(head: &Head<'_>) -> Vote {
    let mut format = F::default();
    format.prepare(head);
    let mut vote = Vote::default();
    for (number, line) in head.lines() {
        if F::could_be(line) && matches!(format.parse(line), Ok(Parsed::Record(_) | Parsed::Header)) {
            vote.lines += 1;
            vote.first_line = if vote.lines == 1 { number } else { vote.first_line };
        }
    }
    vote
}
