//! Files of a zip archive, by its directory at the end (APPNOTE.TXT 6.3.10, PKWARE): stored or deflated, with 64-bit sizes where needed.
//!
//! The checksum of a file is compared at its end. Ignored, and refused: encryption, other methods of compression, archives in several parts.

use std::io::{self, Read};

use super::{MOST_FILES, Part, damaged};

const END: &[u8] = b"PK\x05\x06";
const END_BYTES: usize = 22;
const END64_LOCATOR: &[u8] = b"PK\x06\x07";
const END64: &[u8] = b"PK\x06\x06";
const ENTRY: &[u8] = b"PK\x01\x02";
const ENTRY_BYTES: usize = 46;
const LOCAL: &[u8] = b"PK\x03\x04";
const LOCAL_BYTES: usize = 30;
/// The longest comment after the end.
const COMMENT_BYTES: u64 = 1 << 16;
/// The largest directory that is read.
const DIRECTORY_BYTES: u64 = 1 << 28;

/// A file of the archive.
pub struct File {
    /// Its name.
    pub name: String,
    method: u16,
    is_encrypted: bool,
    checksum: u32,
    stored_bytes: u64,
    bytes: u64,
    at: u64,
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// The files of the archive, without its directories.
pub fn files(whole: &Part) -> io::Result<Vec<File>> {
    let (at, length) = directory(whole)?;
    if length > DIRECTORY_BYTES {
        return Err(damaged(format!("its directory has {length} bytes")));
    }
    let directory = whole.range(at, length as usize)?;
    let (mut rest, mut files) = (&directory[..], Vec::new());
    while rest.len() >= ENTRY_BYTES && rest.starts_with(ENTRY) && files.len() < MOST_FILES {
        let [name, extra, comment] = [28, 30, 32].map(|at| number(rest, at, 2) as usize);
        let end = ENTRY_BYTES + name + extra;
        let (Some(text), Some(extra), Some(next)) =
            (rest.get(ENTRY_BYTES..ENTRY_BYTES + name), rest.get(ENTRY_BYTES + name..end), rest.get(end + comment..))
        else {
            return Err(damaged("an entry of its directory is cut"));
        };
        let mut sizes = [(24, 4), (20, 4), (42, 4)].map(|(at, size)| number(rest, at, size));
        take_64_bits(extra, &mut sizes);
        let [bytes, stored_bytes, at] = sizes;
        let name = String::from_utf8_lossy(text).into_owned();
        if !name.ends_with('/') {
            let (flags, method, checksum) =
                (number(rest, 8, 2), number(rest, 10, 2) as u16, number(rest, 16, 4) as u32);
            files.push(File { name, method, is_encrypted: flags & 1 != 0, checksum, stored_bytes, bytes, at });
        }
        rest = next;
    }
    if rest.is_empty() { Ok(files) } else { Err(damaged("its directory has something that is no entry")) }
}

/// Sizes and offset that do not fit 32 bits are in a field of their own, in this order.
fn take_64_bits(mut extra: &[u8], sizes: &mut [u64; 3]) {
    while extra.len() >= 4 {
        let (id, length) = (number(extra, 0, 2), number(extra, 2, 2) as usize);
        let Some(mut body) = extra.get(4..4 + length) else { return };
        if id == 1 {
            for size in sizes.iter_mut().filter(|size| **size == u64::from(u32::MAX)) {
                let Some(wide) = body.get(..8) else { return };
                *size = number(wide, 0, 8);
                body = &body[8..];
            }
        }
        extra = &extra[4 + length..];
    }
}

/// Where the directory is, and its length.
fn directory(whole: &Part) -> io::Result<(u64, u64)> {
    let length = whole.length()?;
    let tail_at = length.saturating_sub(COMMENT_BYTES + END_BYTES as u64);
    let tail = whole.range(tail_at, (length - tail_at) as usize)?;
    let is_end = |at: &usize| tail[*at..].starts_with(END);
    let last = tail.len().checked_sub(END_BYTES).and_then(|last| (0..=last).rev().find(is_end));
    let end = last.ok_or_else(|| damaged("it has no directory at its end; was it cut while downloading?"))?;
    let found = (number(&tail[end..], 16, 4), number(&tail[end..], 12, 4));
    let locator = (tail_at + end as u64).checked_sub(20).map(|at| whole.range(at, 20)).transpose()?;
    match locator.filter(|locator| locator.starts_with(END64_LOCATOR)) {
        Some(locator) => {
            let record = whole.range(number(&locator, 8, 8), 56)?;
            if !record.starts_with(END64) {
                return Err(damaged("its 64-bit directory is not where it says"));
            }
            Ok((number(&record, 48, 8), number(&record, 40, 8)))
        }
        None => Ok(found),
    }
}

/// The bytes of a file.
pub fn reader(whole: Part, file: &File) -> io::Result<Box<dyn Read + Send>> {
    if file.is_encrypted {
        return Err(damaged(format!("{} is encrypted", file.name)));
    }
    let local = whole.range(file.at, LOCAL_BYTES)?;
    if !local.starts_with(LOCAL) {
        return Err(damaged(format!("{} is not where the directory says", file.name)));
    }
    let start = file.at + (LOCAL_BYTES as u64) + number(&local, 26, 2) + number(&local, 28, 2);
    let stored = io::BufReader::with_capacity(1 << 18, whole.from(start)).take(file.stored_bytes);
    let reader: Box<dyn Read + Send> = match file.method {
        0 => Box::new(stored),
        8 => Box::new(flate2::bufread::DeflateDecoder::new(stored)),
        method => {
            return Err(damaged(format!(
                "{} is compressed by method {method}, neither stored nor deflated",
                file.name
            )));
        }
    };
    Ok(Box::new(Checked { reader, sum: flate2::Crc::new(), checksum: file.checksum, bytes: file.bytes, seen: 0 }))
}

/// Compares length and checksum at the end.
struct Checked {
    reader: Box<dyn Read + Send>,
    sum: flate2::Crc,
    checksum: u32,
    bytes: u64,
    seen: u64,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.sum.update(&buffer[..read]);
        self.seen += read as u64;
        if read == 0 && !buffer.is_empty() {
            if self.seen < self.bytes {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if self.seen > self.bytes || self.sum.sum() != self.checksum {
                return Err(damaged("the checksum of a file in it is wrong"));
            }
        }
        Ok(read)
    }
}
