//! Archives with a trace inside: zip, and tar, plain or compressed.
//!
//! A trace in an archive is named `ARCHIVE/NAME`. `/NAME` may be left out if the archive has one trace; directories,
//! links, hidden files and files that macOS adds (`__MACOSX`) do not count. The trace may itself be compressed. An
//! archive must be a file, not a pipe, because the list of files is complete only at the end. Ignored: archives in
//! archives, several traces played as one.

mod tar;
#[cfg(not(target_arch = "wasm32"))]
mod zip;

use std::io::{self, Read};

use super::ReadSeek;
use super::input::{self, Part};
use palimpsest_flash::error::{Error, Result};

const SHOWN: usize = 8;

const MOST_FILES: usize = 1 << 20;

type Bytes = Box<dyn Read + Send>;

/// The content of a file that may be an archive.
pub enum Found {
    /// The file itself, which is no archive.
    Plain(Box<dyn ReadSeek>),
    /// A trace in an archive.
    Member {
        /// Bytes of the trace.
        reader: Box<dyn Read + Send>,
        /// Name in messages: archive, `/`, file.
        name: String,
    },
}

/// Opens the trace called `member` of the archive `input`, or the only trace; returns an `input` that is no archive.
///
/// # Errors
/// [`Error::Input`] if the archive is damaged, has no such trace, or has several traces and none is named;
/// [`Error::Io`] if reading fails.
pub fn open(input: Box<dyn ReadSeek>, name: &str, member: Option<&str>) -> Result<Found> {
    let whole = Part::new(input);
    let failed = |failure: io::Error| input::describe(&failure, name, "archive");
    let found = |reader, member: &str| Ok(Found::Member { reader, name: format!("{name}/{member}") });
    let mut start = Vec::new();
    whole.clone().take(4).read_to_end(&mut start).map_err(failed)?;
    #[cfg(not(target_arch = "wasm32"))]
    if matches!(start[..], [b'P', b'K', 3, 4] | [b'P', b'K', 5, 6]) {
        let files = zip::files(&whole).map_err(failed)?;
        let position = chosen(&files.names, name, member)?;
        let member = files.names[position].clone();
        return found(zip::reader(&whole, files, position).map_err(failed)?, &member);
    }
    // A damaged file is for the reader of plain traces to describe.
    if !decompressed(&whole, name).is_ok_and(tar::is_one) {
        if let Some(member) = member {
            let what = format!("this is neither a zip nor a tar archive; expected an archive with the file {member}");
            return Err(Error::input(name, what));
        }
        return Ok(Found::Plain(whole.into_inner()));
    }
    // Names in the archive up to the wanted name, and a reader of that file.
    let find = |wanted: Option<&str>| -> Result<(Vec<String>, Option<Bytes>)> {
        let mut names = Vec::new();
        let is_wanted = |name: &str| {
            names.push(name.to_string());
            Some(name) == wanted
        };
        let reader = tar::find(decompressed(&whole, name)?, is_wanted).map_err(failed)?;
        Ok((names, reader))
    };
    let only = match member {
        Some(_) => None,
        None => {
            let (names, _) = find(None)?;
            Some(names[chosen(&names, name, None)?].clone())
        }
    };
    let wanted = member.or(only.as_deref()).expect("a name is given or chosen");
    match find(Some(wanted))? {
        (_, Some(reader)) => found(reader, wanted),
        (names, None) => {
            chosen(&names, name, member)?;
            Err(Error::input(name, "the archive changed while it was read"))
        }
    }
}

/// Archive and name of a path like `ARCHIVE/NAME`, where the first part that `is_file` is the archive.
pub fn split(path: &str, is_file: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let ends = path.char_indices().filter(|(at, letter)| *letter == '/' && *at > 0).map(|(at, _)| at);
    let parts = ends.map(|at| (&path[..at], &path[at + 1..]));
    parts.filter(|(_, member)| !member.is_empty()).find(|(archive, _)| is_file(archive))
}

/// The position of `member`, or of the only trace.
fn chosen(names: &[impl AsRef<str>], archive: &str, member: Option<&str>) -> Result<usize> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
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

fn decompressed(whole: &Part, name: &str) -> Result<Bytes> {
    Ok(input::decompress(Box::new(io::BufReader::with_capacity(1 << 18, whole.clone())), name)?.reader)
}

fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

/// The next `left` bytes of a reader, which must not end before.
struct Exactly {
    reader: Bytes,
    left: u64,
}

impl Read for Exactly {
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

#[cfg(test)]
mod tests;
