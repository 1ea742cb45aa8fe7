//! Files of a zip archive, stored or deflated; their checksums are compared at their ends.
//!
//! Ignored, and refused: encryption, other methods of compression, archives in several parts.

use std::fmt::Display;
use std::io::{self, BufReader, Read};

use ::zip::result::ZipError;
use ::zip::{CompressionMethod, ZipArchive};

use super::{Bytes, Exactly, MOST_FILES, Part, damaged};

/// Most bytes that are read for the directory, because the library stores it in memory.
const MOST_DIRECTORY_BYTES: u64 = 1 << 28;

/// An archive and its files, without its directories.
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
    let limited = Part { left: MOST_DIRECTORY_BYTES, ..whole.clone() };
    let archive = ZipArchive::new(BufReader::new(limited)).map_err(cut)?;
    if archive.len() > MOST_FILES {
        return Err(damaged(format!("it has more than {MOST_FILES} files")));
    }
    let names = archive.file_names_raw().map(|name| String::from_utf8_lossy(name).into_owned());
    let (indices, names) = names.enumerate().filter(|(_, name)| !name.ends_with('/')).unzip();
    Ok(Files { archive, names, indices })
}

/// The bytes of the file at a position of `names`.
pub fn reader(whole: Part, mut files: Files, position: usize) -> io::Result<Bytes> {
    let (name, index) = (&files.names[position], files.indices[position]);
    let refused = |what: &dyn Display| damaged(format!("{name} {what}"));
    let entry = files.archive.by_index_data(index)?;
    let (method, left, checksum) = (entry.compression(), entry.size(), entry.crc32());
    if entry.encrypted() {
        return Err(refused(&"is encrypted"));
    }
    if let CompressionMethod::Unsupported(method) = method {
        return Err(refused(&format_args!("is compressed by method {method}, neither stored nor deflated")));
    }
    let file = files.archive.by_index(index).map_err(|failure| refused(&format_args!("cannot be read: {failure}")))?;
    let at = file.data_start().ok_or_else(|| refused(&"has no data"))?;
    let stored = BufReader::with_capacity(1 << 18, Part { at, ..whole }).take(file.compressed_size());
    let reader: Bytes = match method {
        CompressionMethod::Stored => Box::new(stored),
        _ => Box::new(flate2::bufread::DeflateDecoder::new(stored)),
    };
    Ok(Box::new(Checked { reader: flate2::CrcReader::new(Exactly { reader, left }), checksum }))
}

/// Compares the checksum at the end.
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
