//! From the bytes of a file to the bytes of a trace: gzip, zstd, xz and bzip2, recognised by magic numbers.
//!
//! Failures of the operating system and of compressed data both reach the reader as `io::Error`. Below the decompressor
//! [`SystemFailure`] wraps system failures, so that [`describe`] can distinguish them.

use std::fmt;
use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use super::ReadSeek;
#[cfg(target_arch = "wasm32")]
use super::zstd;
use palimpsest_flash::error::{Error, Result};

/// Memory for the dictionary of xz data: `xz -9` needs 65 MiB, and a damaged header may ask for 4 GiB.
const XZ_MEMORY_KIB: u32 = 256 << 10;

/// The reader of a trace, and the compression for messages about corrupt data.
pub struct Decompressed {
    /// Decompressed bytes.
    pub reader: Box<dyn Read + Send>,
    /// `"gzip"`, `"zstd"`, `"xz"`, `"bzip2"` or `"plain"`.
    pub compression: &'static str,
}

/// Chooses the decompressor by the first bytes of `input`.
pub fn decompress(input: Box<dyn Read + Send>, name: &str) -> Result<Decompressed> {
    let mut input = SystemReader { input };
    let mut magic = Vec::with_capacity(4);
    // A four-byte read may return fewer than four bytes.
    input.by_ref().take(4).read_to_end(&mut magic).map_err(|failure| describe(&failure, name, "plain"))?;
    let compression = match magic[..] {
        [0x1f, 0x8b, ..] => "gzip",
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => "zstd",
        [0xfd, b'7', b'z', b'X'] => "xz",
        [b'B', b'Z', b'h', b'1'..=b'9'] => "bzip2",
        _ => "plain",
    };
    let whole = Cursor::new(magic).chain(input);
    let reader: Box<dyn Read + Send> = match compression {
        "gzip" => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        "zstd" => {
            Box::new(zstd::stream::read::Decoder::new(whole).map_err(|failure| describe(&failure, name, compression))?)
        }
        "xz" => Box::new(lzma_rust2::XzReader::new_mem_limit(whole, true, XZ_MEMORY_KIB)),
        "bzip2" => Box::new(bzip2::read::MultiBzDecoder::new(whole)),
        _ => Box::new(whole),
    };
    Ok(Decompressed { reader, compression })
}

/// The error for a failed read of the trace at `place`.
pub fn describe(failure: &io::Error, place: &str, compression: &str) -> Error {
    if let Some(SystemFailure(cause)) = failure.get_ref().and_then(|inner| inner.downcast_ref()) {
        return match cause.kind() {
            ErrorKind::IsADirectory => Error::input(place, "this is a directory; expected a trace file"),
            _ => Error::Io { place: place.to_string(), what: cause.to_string() },
        };
    }
    let what = match failure.kind() {
        ErrorKind::UnexpectedEof => {
            format!("the {compression} data end early; expected a whole file (was it cut while downloading?)")
        }
        ErrorKind::OutOfMemory => {
            let most = XZ_MEMORY_KIB >> 10;
            format!(
                "the {compression} data need a dictionary of more than {most} MiB; expected a smaller one (xz -9 has \
                 64 MiB)"
            )
        }
        _ => format!("the {compression} data are corrupt ({failure}); expected an intact file"),
    };
    Error::input(place, what)
}

/// A well-known text that is no trace, by the first bytes.
pub fn known_text(bytes: &[u8]) -> Option<&'static str> {
    let text = bytes.trim_ascii_start();
    let begins = |start: &[u8]| text.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start));
    if begins(b"version https://git-lfs") {
        return Some("a pointer of Git LFS, not the file itself (git lfs pull fetches it)");
    }
    if begins(b"/annex/objects/") || begins(b"../.git/annex/") || begins(b".git/annex/") {
        return Some("a pointer of git-annex, not the file itself (git annex get fetches it)");
    }
    let is_page = [&b"<!doctype html"[..], b"<html", b"<head", b"<?xml"].into_iter().any(begins);
    is_page.then_some("a page of HTML or XML, not a trace (a link to a page, or an error of the server?)")
}

/// A well-known type of file that is no trace, by the first bytes.
pub fn known_binary(bytes: &[u8]) -> Option<&'static str> {
    let magics: [(&[u8], &str); 5] = [
        (b"PK\x03\x04", "a zip archive, which needs random access (give it as a file, not as a pipe)"),
        (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive (unpack it first)"),
        (
            b"PAR1",
            "a Parquet file, which needs random access (give it as a file, neither piped nor compressed as a whole)",
        ),
        (b"\xff\xfe", "UTF-16 text (convert it to UTF-8 first)"),
        (b"\xfe\xff", "UTF-16 text (convert it to UTF-8 first)"),
    ];
    let known = magics.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|&(_, kind)| kind);
    let is_tar = bytes.get(257..262) == Some(b"ustar");
    known.or(is_tar.then_some("a tar archive, which is read twice (give it as a file, not as a pipe)"))
}

/// A reader with a position of its own over a shared file.
#[derive(Clone)]
pub struct Part {
    input: Arc<Mutex<Box<dyn ReadSeek>>>,
    at: u64,
    /// Bytes that may be read.
    left: u64,
}

impl Part {
    /// A reader at the start of `input`.
    pub fn new(input: Box<dyn ReadSeek>) -> Part {
        Part { input: Arc::new(Mutex::new(input)), at: 0, left: u64::MAX }
    }

    /// A reader of the same file at the byte `at`.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn from(&self, at: u64) -> Part {
        Part { input: Arc::clone(&self.input), at, left: u64::MAX }
    }

    /// A reader of the same file that fails after `left` bytes.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn limited(&self, left: u64) -> Part {
        Part { left, ..self.clone() }
    }

    /// The file. No clone of this reader may be left.
    pub fn into_inner(self) -> Box<dyn ReadSeek> {
        let input = Arc::into_inner(self.input).expect("no other reader is left");
        input.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        input.seek(SeekFrom::Start(self.at))?;
        let bytes = input.read(buffer)? as u64;
        let too_large = || io::Error::new(ErrorKind::InvalidData, "its directory is too large");
        self.left = self.left.checked_sub(bytes).ok_or_else(too_large)?;
        self.at += bytes;
        Ok(bytes as usize)
    }
}

impl Seek for Part {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        // Another reader may have moved the file's own position.
        input.seek(SeekFrom::Start(self.at))?;
        self.at = input.seek(to)?;
        Ok(self.at)
    }
}

struct SystemReader {
    input: Box<dyn Read + Send>,
}

impl Read for SystemReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer).map_err(|cause| match cause.kind() {
            ErrorKind::Interrupted => cause,
            kind => io::Error::new(kind, SystemFailure(cause)),
        })
    }
}

#[derive(Debug)]
struct SystemFailure(io::Error);

impl fmt::Display for SystemFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for SystemFailure {}
