//! The description of a store of records: `lsm=90%,data=70%,record=1KiB`.

use super::files::Fit;
use crate::described::{self, Key, SHARE, TIMES, positive, put, share, times, word};
use crate::fio::quantity::{Amount, amount, size};
use palimpsest_flash::error::{Error, Result};

/// A store and its requests.
#[derive(Debug, Clone)]
pub struct LsmSpec {
    /// Space on the drive.
    pub space: Option<Amount>,
    /// Bytes of the records in the space.
    pub data: f64,
    /// Bytes of a record.
    pub record: u64,
    /// Bytes of a table in memory.
    pub memtable: u64,
    /// Files of level 0 that start a compaction.
    pub l0: u64,
    /// Bytes of level 1, and the growth from level to level.
    pub base: u64,
    pub ratio: u64,
    /// Bytes of a file.
    pub file: u64,
    /// Bytes of a write to the write-ahead log; 0: no log.
    pub wal: u64,
    /// The free space that a new file takes.
    pub fit: Fit,
    /// Deleted files are trimmed.
    pub trims: bool,
    /// Share of gets.
    pub reads: f64,
    /// Exponent of the popularity of records; 0: equal.
    pub zipf: f64,
    placed: bool,
    handles: Vec<u16>,
    /// Bytes written before the run, in multiples of the drive.
    pub warm: f64,
    /// Requests for records.
    pub requests: u64,
    /// Commands in flight.
    pub depth: u32,
}

/// Every key, with the expected values and the meaning.
pub const KEYS: &[Key<LsmSpec>] = &[
    ("lsm", "a size or a percentage of the drive, such as 90%", "space of the store", |spec, text| {
        put(&mut spec.space, amount(text).map(Some))
    }),
    (
        "data",
        SHARE,
        "share of the records in the space; files that wait for a compaction need the rest",
        |spec, text| put(&mut spec.data, share(text).filter(|&share| share > 0.0)),
    ),
    ("record", "16 bytes to 64KiB", "bytes of a record", |spec, text| {
        put(&mut spec.record, size(text).filter(|bytes| (16..=65536).contains(bytes)))
    }),
    ("memtable", BYTES, "bytes of puts that a table in memory holds", |spec, text| {
        put(&mut spec.memtable, bytes(text))
    }),
    ("l0", "1 to 64", "files of level 0 that start a compaction", |spec, text| {
        put(&mut spec.l0, positive(text).filter(|&files| files <= 64))
    }),
    ("base", BYTES, "bytes of level 1", |spec, text| put(&mut spec.base, bytes(text))),
    ("ratio", "2 to 100", "growth from level to level", |spec, text| {
        put(&mut spec.ratio, positive(text).filter(|ratio| (2..=100).contains(ratio)))
    }),
    ("file", BYTES, "bytes of a file of level 1 and more", |spec, text| put(&mut spec.file, bytes(text))),
    (
        "wal",
        "0, or a multiple of 4KiB up to 1MiB",
        "bytes of a write to the write-ahead log; 0: no log",
        |spec, text| put(&mut spec.wal, size(text).filter(|bytes| bytes.is_multiple_of(4096) && *bytes <= 1 << 20)),
    ),
    ("fit", "first or next", "a new file takes the lowest free space, or free space after the last allocation", {
        |spec, text| put(&mut spec.fit, word(text, &[("next", Fit::Next), ("first", Fit::First)]))
    }),
    ("trim", "on or off", "whether deleted files are trimmed", |spec, text| put(&mut spec.trims, word(text, SWITCH))),
    ("reads", SHARE, "share of gets in the requests; the rest are puts", |spec, text| {
        put(&mut spec.reads, share(text))
    }),
    ("zipf", "0 to 10", "exponent of the popularity of records; 0: all equal", |spec, text| {
        put(&mut spec.zipf, text.parse().ok().filter(|theta| (0.0..=10.0).contains(theta)))
    }),
    ("placement", "on or off", "whether writes name placement handles", |spec, text| {
        put(&mut spec.placed, word(text, SWITCH))
    }),
    (
        "handles",
        "numbers such as 1:2:3",
        "placement handles of the log, of level 0 and so on; the last also of deeper levels",
        { |spec, text| put(&mut spec.handles, described::handles(text)) },
    ),
    ("warm", TIMES, "writes before the run, in multiples of the drive, after a load of all records", |spec, text| {
        put(&mut spec.warm, times(text))
    }),
    ("n", "a number from 1 such as 1e6", "requests for records", |spec, text| put(&mut spec.requests, positive(text))),
    ("iodepth", "1 to 65536", "commands in flight", |spec, text| put(&mut spec.depth, described::depth(text))),
];

const BYTES: &str = "a multiple of 4KiB from 64KiB up to 16GiB";
const SWITCH: &[(&str, bool)] = &[("on", true), ("off", false)];

fn bytes(text: &str) -> Option<u64> {
    size(text).filter(|bytes| bytes.is_multiple_of(4096) && (65536..=16 << 30).contains(bytes))
}

impl LsmSpec {
    /// Whether `text` describes a store of records: its first key is `lsm`.
    pub fn is_meant(text: &str) -> bool {
        text.trim_start().starts_with("lsm=")
    }

    /// Reads a description; a key that is given again replaces the earlier value.
    ///
    /// # Errors
    /// [`Error::Input`] for an unknown key, a wrong value, or a key without effect.
    pub fn parse(text: &str) -> Result<Self> {
        let mut spec = LsmSpec::default();
        let given = described::set(&mut spec, text, KEYS, ("stores of records", "records"), |_, _| None)?;
        if !spec.placed && given.contains(&"handles") {
            return Err(Error::input("handles", "writes name no handles; expected placement=on"));
        }
        if spec.space.is_none() {
            return Err(Error::input("lsm", "the space of the store is missing; expected lsm=90%"));
        }
        if spec.memtable < spec.record {
            return Err(Error::input("memtable", "expected more than a record"));
        }
        if spec.file < spec.record {
            return Err(Error::input("file", "expected more than a record"));
        }
        Ok(spec)
    }

    /// The handle of the log (part 0) or of level `part - 1`.
    pub fn handle(&self, part: usize) -> Option<u16> {
        self.placed.then(|| self.handles[part.min(self.handles.len() - 1)])
    }
}

impl Default for LsmSpec {
    fn default() -> Self {
        LsmSpec {
            space: None,
            data: 0.7,
            record: 1024,
            memtable: 64 << 20,
            l0: 4,
            base: 256 << 20,
            ratio: 10,
            file: 64 << 20,
            wal: 64 << 10,
            fit: Fit::First,
            trims: false,
            reads: 0.5,
            zipf: 0.99,
            placed: true,
            handles: (1..=6).collect(),
            warm: 2.0,
            requests: 1_000_000,
            depth: 32,
        }
    }
}
