//! Archives with a trace inside: zip, and tar, plain or compressed.
//!
//! A trace in an archive is called `ARCHIVE/NAME`. Where the name is left out, the archive has one trace: directories, links, hidden files
//! and what macOS adds (`__MACOSX`) do not count. The trace may be compressed itself. An archive is read from a file, not from a pipe: which
//! traces there are is known only at the end. Ignored: archives in archives, several traces played as one.

mod tar;
mod zip;

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use super::{ReadSeek, input};
use palimpsest_flash::error::{Error, Result};

/// Names that a message shows.
const SHOWN: usize = 8;

/// Most files of an archive, and bytes of one of their names.
const MOST_FILES: usize = 1 << 20;
const MOST_NAME_BYTES: usize = 1 << 16;

/// What a file turned out to be.
pub enum Found {
    /// No archive: the file as it came.
    Plain(Box<dyn ReadSeek>),
    /// A trace in an archive.
    Member {
        /// Its bytes.
        reader: Box<dyn Read + Send>,
        /// Its name in messages, the archive's before it.
        name: String,
    },
}

/// Opens the trace called `member` of the archive `input`, or its only one; what is no archive comes back.
///
/// # Errors
/// [`Error::Input`] where the archive is damaged, has no such trace, or several and none is named; [`Error::Io`] when reading fails.
pub fn open(input: Box<dyn ReadSeek>, name: &str, member: Option<&str>) -> Result<Found> {
    let whole = Part { input: Arc::new(Mutex::new(input)), at: 0 };
    let failed = |failure: io::Error| input::describe(&failure, name, "archive");
    let mut start = [0; 4];
    let length = fill(&mut whole.clone(), &mut start).map_err(failed)?;
    let is_zip = [b"PK\x03\x04", b"PK\x05\x06"].iter().any(|magic| start[..length] == magic[..]);
    if is_zip {
        let files = zip::files(&whole).map_err(failed)?;
        let names: Vec<&str> = files.iter().map(|file| &file.name[..]).collect();
        let chosen = chosen(&names, name, member)?;
        let reader = zip::reader(whole, &files[chosen]).map_err(failed)?;
        return Ok(Found::Member { reader, name: format!("{name}/{}", files[chosen].name) });
    }
    // A damaged file is for the reader of plain traces to describe.
    if !tar::is_one(decompressed(&whole, name).ok()).unwrap_or(false) {
        if let Some(member) = member {
            let what = format!("this is neither a zip nor a tar archive; expected one, for the {member} in it");
            return Err(Error::input(name, what));
        }
        let input = Arc::into_inner(whole.input).expect("no other reader is left");
        return Ok(Found::Plain(input.into_inner().unwrap_or_else(PoisonError::into_inner)));
    }
    let wanted = match member {
        Some(member) => member.to_string(),
        None => {
            let mut names = Vec::new();
            let mut entries = tar::Entries::new(decompressed(&whole, name)?);
            while let Some(entry) = entries.advance().map_err(failed)? {
                names.push(entry);
            }
            let names: Vec<&str> = names.iter().map(|name| &name[..]).collect();
            names[chosen(&names, name, None)?].to_string()
        }
    };
    let mut names = Vec::new();
    let mut entries = tar::Entries::new(decompressed(&whole, name)?);
    while let Some(entry) = entries.advance().map_err(failed)? {
        if entry == wanted {
            return Ok(Found::Member { reader: Box::new(entries), name: format!("{name}/{wanted}") });
        }
        names.push(entry);
    }
    let names: Vec<&str> = names.iter().map(|name| &name[..]).collect();
    Err(chosen(&names, name, member)
        .err()
        .unwrap_or_else(|| Error::input(name, "the archive changed while it was read")))
}

/// The archive in front of a name of a file in it, and that name, of a path like `ARCHIVE/NAME`; `is_file` looks whether a path is one.
pub fn split(path: &str, is_file: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let ends = path.char_indices().filter(|(at, letter)| *letter == '/' && *at > 0).map(|(at, _)| at);
    let parts = ends.map(|at| (&path[..at], &path[at + 1..]));
    parts.filter(|(_, member)| !member.is_empty()).find(|(archive, _)| is_file(archive))
}

/// The position of the file that is meant.
fn chosen(names: &[&str], archive: &str, member: Option<&str>) -> Result<usize> {
    let is_trace = |name: &str| {
        name.split('/').all(|part| !part.starts_with('.') || part == ".") && !name.starts_with("__MACOSX/")
    };
    let traces: Vec<usize> = (0..names.len()).filter(|&at| is_trace(names[at])).collect();
    let listed = || {
        let shown: Vec<&str> = traces.iter().take(SHOWN).map(|&at| names[at]).collect();
        let more = traces.len().saturating_sub(SHOWN);
        format!("{}{}", shown.join(", "), if more > 0 { format!(" and {more} more") } else { String::new() })
    };
    let what = match (member, &traces[..]) {
        (Some(member), _) => match names.iter().position(|name| *name == member) {
            Some(found) => return Ok(found),
            None => format!("there is no file {member} in the archive; expected one of {}", listed()),
        },
        (None, [only]) => return Ok(*only),
        (None, []) => "there is no file in the archive; expected a trace".into(),
        (None, [first, ..]) => {
            let (count, first) = (traces.len(), names[*first]);
            format!(
                "the archive has {count} files: {}; expected the name of one after its own, such as {archive}/{first}",
                listed()
            )
        }
    };
    Err(Error::input(archive, what))
}

fn decompressed(whole: &Part, name: &str) -> Result<Box<dyn Read + Send>> {
    Ok(input::decompress(Box::new(io::BufReader::with_capacity(1 << 18, whole.clone())), name)?.reader)
}

/// Reads until `buffer` is full or the input ends; returns the bytes read.
fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(failure) if failure.kind() == io::ErrorKind::Interrupted => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(filled)
}

fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// A reader with a position of its own over the one file.
#[derive(Clone)]
struct Part {
    input: Arc<Mutex<Box<dyn ReadSeek>>>,
    at: u64,
}

impl Part {
    fn from(&self, at: u64) -> Part {
        Part { input: Arc::clone(&self.input), at }
    }

    fn length(&self) -> io::Result<u64> {
        self.input.lock().unwrap_or_else(PoisonError::into_inner).seek(SeekFrom::End(0))
    }

    /// The bytes of a range that the file has.
    fn range(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        if at.checked_add(length as u64).is_none_or(|end| self.length().is_ok_and(|length| end > length)) {
            return Err(damaged(format!("it names {length} bytes at {at}, beyond its end")));
        }
        let mut bytes = vec![0; length];
        self.from(at).read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        input.seek(SeekFrom::Start(self.at))?;
        let bytes = input.read(buffer)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
