//! Files of a zip archive, stored or deflated. The reader of a file compares the checksum at the end.
//!
//! Ignored, and refused: encryption, other methods of compression, archives in several parts.

use std::fmt::Display;
use std::io::{self, BufReader, Read};

use ::zip::result::ZipError;
use ::zip::{CompressionMethod, ZipArchive};

use super::{Bytes, Exactly, MOST_FILES, damaged};
use crate::trace::input::Part;

/// Most bytes that are read for the directory, because the library stores all of that in memory.
const MOST_DIRECTORY_BYTES: u64 = 1 << 28;

/// An archive and the files inside, without directories.
pub struct Files {
    archive: ZipArchive<BufReader<Part>>,
    /// Names of the files.
    pub names: Vec<String>,
    indices: Vec<usize>,
}

/// Reads the directory at the end of the archive.
pub fn files(whole: &Part) -> io::Result<Files> {
    let cut = |failure: ZipError| match failure {
        ZipError::Io(failure) => failure,
        failure => damaged(format!("{failure}; was it cut while downloading?")),
    };
    let archive = ZipArchive::new(BufReader::new(whole.limited(MOST_DIRECTORY_BYTES))).map_err(cut)?;
    if archive.len() > MOST_FILES {
        return Err(damaged(format!("it has more than {MOST_FILES} files")));
    }
    let names = archive.file_names_raw().map(|name| String::from_utf8_lossy(name).into_owned());
    let (indices, names) = names.enumerate().filter(|(_, name)| !name.ends_with('/')).unzip();
    Ok(Files { archive, names, indices })
}

/// The bytes of the file at a position of `names`.
pub fn reader(whole: &Part, mut files: Files, position: usize) -> io::Result<Bytes> {
    let (name, index) = (&files.names[position], files.indices[position]);
    let refused = |what: &dyn Display| damaged(format!("{name} {what}"));
    let entry = files.archive.by_index_data(index)?;
    let (method, left, checksum) = (entry.compression(), entry.size(), entry.crc32());
    if entry.encrypted() {
        return Err(refused(&"is encrypted"));
    }
    if !matches!(method, CompressionMethod::Stored | CompressionMethod::Deflated) {
        return Err(refused(&format_args!(
            "is neither stored nor deflated, but compressed by another method ({method})"
        )));
    }
    let file = files.archive.by_index(index).map_err(|failure| refused(&format_args!("cannot be read: {failure}")))?;
    let at = file.data_start().ok_or_else(|| refused(&"has no data"))?;
    let stored = BufReader::with_capacity(1 << 18, whole.from(at)).take(file.compressed_size());
    let reader: Bytes = match method {
        CompressionMethod::Stored => Box::new(stored),
        _ => Box::new(flate2::bufread::DeflateDecoder::new(stored)),
    };
    Ok(Box::new(Checked { reader: flate2::CrcReader::new(Exactly { reader, left }), checksum }))
}

struct Checked {
    reader: flate2::CrcReader<Exactly>,
    checksum: u32,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        if read == 0 && !buffer.is_empty() && self.reader.crc().sum() != self.checksum {
            return Err(damaged("the checksum of a file in it is wrong"));
        }
        Ok(read)
    }
}
