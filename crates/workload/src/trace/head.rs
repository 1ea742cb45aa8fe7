//! The start of a trace, by which formats recognise it. Ignored: the rest of the file.

/// Bytes of a file that recognition reads.
pub const HEAD_BYTES: usize = 64 << 10;

/// The first bytes of a file, decompressed.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// At most [`HEAD_BYTES`] bytes.
    pub bytes: &'a [u8],
    /// This is the whole file.
    pub whole: bool,
}

impl<'a> Head<'a> {
    /// The complete lines with their numbers; the last line counts if the file ends there.
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
