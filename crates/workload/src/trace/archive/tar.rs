//! Files of a tar archive, one after the other: POSIX ustar and pax, and GNU's long names and sizes.
//!
//! Ignored: directories, links, devices, sparse files, the unmarked archives of before 1988.

use std::io::{self, Read};

use super::{MOST_FILES, MOST_NAME_BYTES, damaged, fill};

const BLOCK: usize = 512;

/// Whether these are the bytes of a tar archive.
pub fn is_one(reader: Option<Box<dyn Read + Send>>) -> Option<bool> {
    let mut block = [0; BLOCK];
    let length = fill(&mut reader?, &mut block).ok()?;
    Some(length == BLOCK && &block[257..262] == b"ustar" && is_header(&block))
}

/// The sum of its bytes, those of the sum itself taken as blanks.
fn is_header(block: &[u8; BLOCK]) -> bool {
    let blank = |(at, byte): (usize, &u8)| if (148..156).contains(&at) { u64::from(b' ') } else { u64::from(*byte) };
    number(&block[148..156]) == Some(block.iter().enumerate().map(blank).sum())
}

/// A number in octal digits, or, beyond those, in binary.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let value = |value: u64, byte: &u8| (value >> 55 == 0).then_some(value << 8 | u64::from(*byte));
        return field[1..].iter().try_fold(u64::from(field[0] & 0x7f), value);
    }
    let text = field.split(|byte| *byte == 0).next().unwrap_or_default().trim_ascii();
    let digits = std::str::from_utf8(text).ok()?;
    if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 8).ok() }
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// A reader of the file last reached.
pub struct Entries {
    reader: Box<dyn Read + Send>,
    /// Bytes of the present file that are left, and of the padding after it.
    left: u64,
    padding: u64,
    files: usize,
}

impl Entries {
    /// Before the first file.
    pub fn new(reader: Box<dyn Read + Send>) -> Entries {
        Entries { reader, left: 0, padding: 0, files: 0 }
    }

    /// Goes on to the next file; its name, or none after the last.
    pub fn advance(&mut self) -> io::Result<Option<String>> {
        let (mut name, mut size) = (None, None);
        loop {
            self.skip()?;
            let mut block = [0; BLOCK];
            let length = fill(&mut self.reader, &mut block)?;
            if length == 0 || block.iter().all(|byte| *byte == 0) {
                return Ok(None);
            }
            if length < BLOCK {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let given = number(&block[124..136]).filter(|_| is_header(&block));
            let given = given.ok_or_else(|| damaged("the head of a file in it is wrong"))?;
            let kind = block[156];
            self.begin(if matches!(kind, b'x' | b'g' | b'L' | b'K') { given } else { size.take().unwrap_or(given) })?;
            match kind {
                b'x' => {
                    for (key, value) in pax(&self.small()?) {
                        if key.as_bytes() == b"path" {
                            name = Some(value);
                        } else if key.as_bytes() == b"size" {
                            size = value.parse().ok();
                        }
                    }
                }
                b'L' => name = Some(text(&self.small()?)),
                b'0' | 0 | b'7' => {
                    self.files += 1;
                    if self.files > MOST_FILES {
                        return Err(damaged(format!("it has more than {MOST_FILES} files")));
                    }
                    let prefix = if block[257..263] == *b"ustar\0" { text(&block[345..500]) } else { String::new() };
                    let own = text(&block[..100]);
                    let full = if prefix.is_empty() { own } else { format!("{prefix}/{own}") };
                    return Ok(Some(name.unwrap_or(full)));
                }
                _ => name = None,
            }
        }
    }

    fn begin(&mut self, size: u64) -> io::Result<()> {
        if size >> 62 != 0 {
            return Err(damaged(format!("a file in it has {size} bytes")));
        }
        (self.left, self.padding) = (size, size.next_multiple_of(BLOCK as u64) - size);
        Ok(())
    }

    /// Passes over what is left of the present file.
    fn skip(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.left) + std::mem::take(&mut self.padding);
        let passed = io::copy(&mut self.reader.by_ref().take(bytes), &mut io::sink())?;
        if passed < bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// The content of a small file.
    fn small(&mut self) -> io::Result<Vec<u8>> {
        if self.left > MOST_NAME_BYTES as u64 {
            return Err(damaged(format!("a name in it has {} bytes", self.left)));
        }
        let mut bytes = Vec::new();
        self.by_ref().read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Read for Entries {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            // A reader of xz data takes a read of no bytes for the end of a block.
            return Ok(0);
        }
        let read = self.reader.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }
}

/// Keys and values of a pax header: `length key=value\n`.
pub(super) fn pax(bytes: &[u8]) -> Vec<(String, String)> {
    let (mut rest, mut found) = (bytes, Vec::new());
    while let Some(blank) = rest.iter().position(|byte| *byte == b' ') {
        let length = std::str::from_utf8(&rest[..blank]).ok().and_then(|digits| digits.parse::<usize>().ok());
        let Some(record) = length.and_then(|length| rest.get(blank + 1..length)) else { break };
        let record = String::from_utf8_lossy(record);
        if let Some((key, value)) = record.trim_end_matches('\n').split_once('=') {
            found.push((key.to_string(), value.to_string()));
        }
        rest = &rest[length.unwrap_or(rest.len())..];
    }
    found
}
