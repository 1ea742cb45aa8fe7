//! Lines of a stream, without a copy or an allocation a line, in constant memory.

use std::io::{ErrorKind, Read};
use std::ops::Range;

use super::head::{HEAD_BYTES, Head};
use super::input::{Decompressed, describe};
use palimpsest_flash::error::{Error, Result};

/// Longest line that is read, in bytes.
pub const MAX_LINE_BYTES: usize = 64 << 10;

const BUFFER_BYTES: usize = 256 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The outcome of [`LineReader::advance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A line.
    Line {
        /// The file ended before a newline.
        unterminated: bool,
    },
    /// A skipped line of more than [`MAX_LINE_BYTES`].
    TooLong,
    /// The end of the file.
    End,
}

/// Reads lines through one fixed buffer.
pub struct LineReader {
    input: Decompressed,
    name: String,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are not yet returned as lines.
    unread: Range<usize>,
    /// End of the unread bytes without a newline so far.
    searched: usize,
    line: Range<usize>,
    number: u64,
    discarding: bool,
    ended: bool,
    /// A byte-order mark was skipped.
    had_mark: bool,
    /// The error that stopped reading, returned after the lines before.
    failure: Option<Error>,
}

impl LineReader {
    /// A reader at the start of the trace `input`, called `name` in messages.
    pub fn new(input: Decompressed, name: &str) -> Self {
        LineReader {
            input,
            name: name.to_string(),
            buffer: vec![0; BUFFER_BYTES],
            unread: 0..0,
            searched: 0,
            line: 0..0,
            number: 0,
            discarding: false,
            ended: false,
            had_mark: false,
            failure: None,
        }
    }

    /// Reads the first bytes without consuming them; only before the first [`advance`](Self::advance).
    pub fn read_head(&mut self) -> Head<'_> {
        while !self.ended && self.unread.len() < HEAD_BYTES + BYTE_ORDER_MARK.len() {
            self.fill();
        }
        if self.buffer[self.unread.clone()].starts_with(BYTE_ORDER_MARK) {
            self.unread.start += BYTE_ORDER_MARK.len();
            self.searched = self.unread.start;
            self.had_mark = true;
        }
        let bytes = &self.buffer[self.unread.clone()];
        let whole = self.ended && self.failure.is_none() && bytes.len() <= HEAD_BYTES;
        Head { bytes: &bytes[..bytes.len().min(HEAD_BYTES)], whole: whole || bytes.is_empty() }
    }

    /// Restores a skipped byte-order mark, because binary data have none; must precede all reading.
    pub fn restore_mark(&mut self) {
        if std::mem::take(&mut self.had_mark) {
            self.unread.start -= BYTE_ORDER_MARK.len();
        }
    }

    /// The next `bytes` bytes, fewer if the file ends there, `None` at the end. They are a record, which is numbered
    /// like a line.
    ///
    /// # Errors
    /// When the stream is corrupt or unreadable.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Result<Option<&[u8]>> {
        self.line = self.have(bytes)?;
        self.number += u64::from(!self.line.is_empty());
        Ok((!self.line.is_empty()).then(|| &self.buffer[self.line.clone()]))
    }

    /// Skips `bytes` bytes of the same record; returns the number of bytes that the file had.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_more(&mut self, bytes: usize) -> Result<usize> {
        self.have(bytes).map(|found| found.len())
    }

    /// Reads the next `bytes` bytes; returns their place in the buffer.
    #[inline]
    fn have(&mut self, bytes: usize) -> Result<Range<usize>> {
        debug_assert!(bytes <= MAX_LINE_BYTES, "the buffer has room for them");
        while self.unread.len() < bytes && !self.ended {
            self.searched = self.unread.start;
            self.fill();
        }
        if self.unread.len() < bytes
            && let Some(failure) = self.failure.take()
        {
            self.number += 1;
            return Err(self.placed(failure));
        }
        let found = self.unread.start..self.unread.start + self.unread.len().min(bytes);
        self.unread.start = found.end;
        self.searched = found.end;
        Ok(found)
    }

    /// The error that stopped reading early, else `other`.
    pub fn failure_or(&mut self, other: Error) -> Error {
        self.failure.take().unwrap_or(other)
    }

    /// Advances to the next line, then in [`line`](Self::line).
    ///
    /// # Errors
    /// When the stream is corrupt or unreadable; the place is the incomplete line.
    #[inline]
    pub fn advance(&mut self) -> Result<Step> {
        loop {
            if let Some(offset) = find_newline(&self.buffer[self.searched..self.unread.end]) {
                let line = self.unread.start..self.searched + offset;
                self.unread.start = line.end + 1;
                self.searched = line.end + 1;
                if std::mem::take(&mut self.discarding) {
                    continue;
                }
                self.number += 1;
                if line.len() > MAX_LINE_BYTES {
                    return Ok(Step::TooLong);
                }
                self.line = line;
                return Ok(Step::Line { unterminated: false });
            }
            if let Some(step) = self.refill()? {
                return Ok(step);
            }
        }
    }

    /// The line last reached, without the line end.
    #[inline]
    pub fn line(&self) -> &[u8] {
        let line = &self.buffer[self.line.clone()];
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Number of the line last reached; 0 before the first.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// `FILE:LINE` of the line last reached.
    pub fn place(&self) -> String {
        format!("{}:{}", self.name, self.number.max(1))
    }

    /// The file's name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads more bytes when the buffer holds no whole line; a step at the end of the line or the file.
    #[cold]
    fn refill(&mut self) -> Result<Option<Step>> {
        if self.discarding {
            self.unread.start = self.unread.end;
        } else if self.unread.len() > MAX_LINE_BYTES {
            self.discarding = true;
            self.unread.start = self.unread.end;
            self.searched = self.unread.end;
            self.number += 1;
            return Ok(Some(Step::TooLong));
        }
        self.searched = self.unread.end;
        if !self.ended {
            self.fill();
            return Ok(None);
        }
        if let Some(failure) = self.failure.take() {
            self.number += 1;
            self.unread.start = self.unread.end;
            return Err(self.placed(failure));
        }
        if self.unread.is_empty() {
            return Ok(Some(Step::End));
        }
        self.line = self.unread.clone();
        self.unread.start = self.unread.end;
        self.number += 1;
        Ok(Some(Step::Line { unterminated: true }))
    }

    fn placed(&self, failure: Error) -> Error {
        match failure {
            Error::Input { what, .. } => Error::input(self.place(), what),
            other => other,
        }
    }

    fn fill(&mut self) {
        if self.unread.start > 0 {
            let start = self.unread.start;
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.end - start;
            self.searched -= start;
        }
        match self.input.reader.read(&mut self.buffer[self.unread.end..]) {
            Ok(0) => self.ended = true,
            Ok(bytes) => self.unread.end += bytes,
            Err(failure) if failure.kind() == ErrorKind::Interrupted => {}
            Err(failure) => {
                self.ended = true;
                self.failure = Some(describe(&failure, &self.name, self.input.compression));
            }
        }
    }
}

/// Position of the first newline, eight bytes at a time (the zero-byte test of Knuth, TAOCP 4A, 7.1.3).
#[inline]
fn find_newline(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let words = bytes.chunks_exact(8);
    let tail = bytes.len() - words.remainder().len();
    for (index, word) in words.enumerate() {
        let word: [u8; 8] = word.try_into().expect("chunks of eight bytes");
        let difference = u64::from_le_bytes(word) ^ (ONES * u64::from(b'\n'));
        let zeros = difference.wrapping_sub(ONES) & !difference & HIGHS;
        if zeros != 0 {
            return Some(index * 8 + zeros.trailing_zeros() as usize / 8);
        }
    }
    bytes[tail..].iter().position(|&byte| byte == b'\n').map(|offset| tail + offset)
}

#[cfg(test)]
mod tests;
