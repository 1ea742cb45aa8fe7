//! Recognition: the votes of line formats for the start of a trace, and contests between formats. Ignored: formats that
//! are no lines.

use super::head::Head;
use super::line_format::{LineFormat, Parsed};
use crate::request::Request;
use std::collections::HashSet;

/// The lines of the head of a file that a format parses.
#[derive(Debug, Clone, Copy, Default)]
pub struct Vote {
    /// Lines that the format accepts.
    pub lines: u64,
    /// The first such line.
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

/// The part of a line up to a fault.
pub struct Reading {
    /// Columns before the fault, or one less.
    pub columns: usize,
    /// The fault.
    pub fault: String,
    /// The line is a record but for this column, or for columns at the end.
    pub is_near: bool,
}

/// Values of single columns, and ends of lines, by which a line with one fault becomes a record.
const VALUES: [&[u8]; 8] = [b"0", b"1", b"8", b"R", b"Read", b"read", b"0.5", b"+"];
const ENDS: [&[u8]; 6] = [b",8", b",8,8", b",0", b" 0", b" 8", b" 8 0"];

/// The part of `line` that the line format `F` reads; `None` if `F` accepts the line. The fault lies near the end of
/// the shortest prefix with the same message, quotes apart, because only columns up to the fault cause the message.
pub fn reads<F: LineFormat>(head: &Head<'_>, line: &[u8]) -> Option<Reading> {
    const LONGEST: usize = 512;
    let fault_of = |part: &[u8]| {
        let mut format = F::default();
        format.prepare(head);
        format.parse(part).err().map(|fault| fault.what)
    };
    let line = &line[..line.len().min(LONGEST)];
    let is_record = |line: &[u8]| fault_of(line).is_none();
    let kind_of = |fault: &str| fault.split('"').next().map(str::to_owned);
    let fault = fault_of(line)?;
    let kind = kind_of(&fault);
    let is_separator = |byte: u8| matches!(byte, b',' | b';' | b' ' | b'\t');
    let mut columns = 0;
    let mut begin = 0;
    for end in 1..=line.len() {
        let ends = end == line.len() || (is_separator(line[end]) && !is_separator(line[end - 1]));
        if ends && fault_of(&line[..end]).and_then(|fault| kind_of(&fault)) == kind {
            let repaired = |value: &&[u8]| is_record(&[&line[..begin], value, &line[end..]].concat());
            let ended = |more: &&[u8]| is_record(&[line, more].concat());
            let is_near = VALUES.iter().any(repaired) || ENDS.iter().any(ended);
            return Some(Reading { columns, fault, is_near });
        }
        if ends {
            columns += 1;
        }
        if end < line.len() && is_separator(line[end]) {
            begin = end + 1;
        }
    }
    None
}

/// Distinguishes formats that read the same lines as other requests: with the right unit of sizes more requests begin
/// where another has ended, because requests are often sequential.
#[derive(Debug, Clone, Copy)]
pub struct Contest {
    /// Requests that begin where another of the same device has ended.
    pub followers: u64,
    /// The first request, for messages.
    pub first: Request,
}

impl Contest {
    /// Fewer followers decide nothing.
    const LEAST: u64 = 8;

    /// True if this reading is right and the other is wrong.
    pub fn wins(&self, other: &Contest) -> bool {
        self.followers >= Self::LEAST && 2 * self.followers >= 3 * other.followers.max(1)
    }
}

/// The contest of the line format `F`; `None` if `F` is not contested or reads no request.
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
            contest.followers += u64::from(ends.contains(&(record.owner(), record.extent.sector)));
            ends.insert((record.owner(), record.extent.end()));
        }
    }
    found
}
