//! The start of a trace and the vote of a line format on it.

use std::collections::HashSet;

use super::line_format::{LineFormat, Parsed, Record};

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

/// How far a format reads a line that is none of its own.
pub struct Reading {
    /// Columns before the one that is wrong, or one less.
    pub columns: usize,
    /// What is wrong.
    pub fault: String,
}

/// How far the line format `F` reads `line`: what is wrong depends on the columns up to that which is wrong, so it is near the
/// end of the shortest start of the line in which the same is wrong, whatever the message quotes. `None` where nothing is.
pub fn reads<F: LineFormat>(head: &Head<'_>, line: &[u8]) -> Option<Reading> {
    const LONGEST: usize = 512;
    let fault_of = |part: &[u8]| {
        let mut format = F::default();
        format.prepare(head);
        format.parse(part).err().map(|fault| fault.what)
    };
    let line = &line[..line.len().min(LONGEST)];
    let kind_of = |fault: &str| fault.split('"').next().map(str::to_owned);
    let fault = fault_of(line)?;
    let kind = kind_of(&fault);
    let is_separator = |byte: u8| matches!(byte, b',' | b';' | b' ' | b'\t');
    let mut columns = 0;
    for end in 1..=line.len() {
        let ends = end == line.len() || (is_separator(line[end]) && !is_separator(line[end - 1]));
        if ends && fault_of(&line[..end]).and_then(|fault| kind_of(&fault)) == kind {
            return Some(Reading { columns, fault });
        }
        columns += usize::from(ends);
    }
    None
}

/// What tells formats apart that read the same lines as other requests: requests follow each other, so that with the right unit
/// of sizes more of them begin where another has ended.
#[derive(Debug, Clone, Copy)]
pub struct Contest {
    /// Requests that begin where another of the same device has ended.
    pub followers: u64,
    /// The first request, for messages.
    pub first: Record,
}

impl Contest {
    /// Fewer followers decide nothing.
    const LEAST: u64 = 8;

    /// Whether this reading is the right one beside another.
    pub fn wins(&self, other: &Contest) -> bool {
        self.followers >= Self::LEAST && 2 * self.followers >= 3 * other.followers.max(1)
    }
}

/// The reading of the head by the line format `F`, where others may read it otherwise; `None` without a request.
pub fn contest<F: LineFormat>(head: &Head<'_>) -> Option<Contest> {
    if !F::IS_CONTESTED {
        return None;
    }
    let mut format = F::default();
    format.prepare(head);
    let mut ends = HashSet::new();
    let mut found: Option<Contest> = None;
    for (_, line) in head.lines() {
        if let Ok(Parsed::Record(record)) = format.parse(line) {
            let contest = found.get_or_insert(Contest { followers: 0, first: record });
            contest.followers += u64::from(ends.contains(&(record.stream, record.sector)));
            ends.insert((record.stream, record.sector + u64::from(record.sectors)));
        }
    }
    found
}
