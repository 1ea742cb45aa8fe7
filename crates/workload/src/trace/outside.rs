//! Formats that a program adds, such as those of plug-ins: the program turns the bytes of a trace into the records of
//! this file. A user names such a format; none is recognised by content.
//!
//! A record has 32 bytes, the least significant byte of a number first: time in ns (8), first byte (8), bytes (8), kind
//! (4; 0 read, 1 write, 2 trim, 3 flush), stream (4). Ignored: names of files, directives, and traces in these formats
//! as output.

use super::fields::{Fault, Parse};
use super::line_format::Parsed;
use super::records::{RecordFormat, little};
use crate::request::RequestKind;
use std::io::Read;
use std::sync::{PoisonError, RwLock};

/// Bytes of a record.
pub const BYTES: usize = 32;

const KINDS: [RequestKind; 4] = [RequestKind::Read, RequestKind::Write, RequestKind::Trim, RequestKind::Flush];

/// The records of a trace, whose bytes after decompression are the argument. An error of reading ends the trace.
pub type Records = fn(name: &'static str, trace: Box<dyn Read + Send>) -> Box<dyn Read + Send>;

/// A format of the program.
#[derive(Clone, Copy)]
pub struct Outside {
    /// Name.
    pub name: &'static str,
    /// One line for listings.
    pub about: &'static str,
    /// Reads a trace.
    pub records: Records,
}

static ADDED: RwLock<Vec<Outside>> = RwLock::new(Vec::new());

/// The added formats, in the order of [`add`].
pub fn added() -> Vec<Outside> {
    ADDED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The added format called `name`.
pub fn named(name: &str) -> Option<Outside> {
    added().into_iter().find(|format| format.name == name)
}

/// Adds a format for the rest of the process.
///
/// # Errors
/// A format has this name already.
pub fn add(format: Outside) -> Result<(), String> {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    if super::Format::named(format.name).is_some() || added.iter().any(|other| other.name == format.name) {
        return Err(format!("there is a trace format called {} already; expected another name", format.name));
    }
    added.push(format);
    Ok(())
}

/// Parses records.
#[derive(Default)]
pub(super) struct Given(pub &'static str);

impl RecordFormat for Given {
    const NAME: &'static str = "a format of a plug-in";
    const ABOUT: &'static str = "a format of a plug-in";
    const TIME_GRAIN: u64 = 1;

    fn name(&self) -> &'static str {
        self.0
    }

    fn recognise(_head: &[u8]) -> u64 {
        0
    }

    fn size(&self) -> usize {
        BYTES
    }

    fn parse(&mut self, record: &[u8]) -> Parse<Parsed> {
        let bytes = little(record);
        let (time, stream) = (bytes.u64(0), bytes.u32(28));
        match KINDS.get(bytes.u32(24) as usize) {
            Some(RequestKind::Flush) => Ok(Parsed::flush(time, stream)),
            Some(&kind) => Parsed::of_bytes(time, kind, bytes.u64(8), bytes.u64(16), stream.into()),
            None => Err(Fault::new(format!("kind: expected 0 to 3, found {}", bytes.u32(24)))),
        }
    }
}

#[cfg(test)]
mod tests;
