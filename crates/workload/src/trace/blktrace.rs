//! Binary output of blktrace(8): records of the Linux kernel (include/uapi/linux/blktrace_api.h), in the order of bytes of the machine that
//! wrote them.
//!
//! Version 7, `struct blk_io_trace`, 48 bytes: magic 0x656174 and version (4), sequence (4), time in ns (8), sector (8), bytes (4),
//! action (4), process (4), device (4), processor (4), error (2), bytes that follow (2), and these. An action has what happened in its low
//! 16 bits (bit 8: the bytes that follow name a control group), and above them bits of what it is about: read, write, flush, notification,
//! discard and others.
//!
//! Version 8, `struct blk_io_trace2` (Linux 6.19 and later, where blktrace asks for it), 64 bytes: the same up to the bytes, then
//! process (4), action (8), device (4), processor (4), error (2), bytes that follow (2), 12 of padding, and those. Its action has bits for
//! commands of zones and for writing zeroes above the 32 of version 7. All records of a file have the version of the first.
//!
//! As in [`blkparse`](super::blkparse), one action is chosen for the whole file: issue to the device if the head has any, else queueing, else
//! completion; a write without data that is a flush is one, and the device number (major << 20 | minor) is the stream. blktrace writes a file a
//! processor: `blkparse -i sda -d all.bin` merges them, and a file of one has the requests of that processor only.
//!
//! Ignored: processes, errors, merges, remaps; commands of zones that have no bytes. Appends to zones are writes where they were issued to,
//! the start of the zone, unless completions are read. Writing zeroes is a write here, as in version 7.

use super::blkparse::note_of_action;
use super::fields::{Fault, Parse};
use super::line_format::{Parsed, Record};
use super::records::{Bytes, RecordFormat};
use crate::request::{RequestKind, SECTOR_BYTES};

const MAGIC: u32 = 0x0065_6174;

/// Where the two versions differ.
#[derive(Debug, PartialEq)]
struct Layout {
    version: u32,
    bytes: usize,
    /// Whether the action has 8 bytes, else 4.
    is_wide: bool,
    action: usize,
    device: usize,
    more: usize,
}

const LAYOUTS: [Layout; 2] = [
    Layout { version: 7, bytes: 48, is_wide: false, action: 28, device: 36, more: 46 },
    Layout { version: 8, bytes: 64, is_wide: true, action: 32, device: 40, more: 50 },
];

/// Issue, queue and completion, as the low half of an action.
const ACTIONS_BY_PREFERENCE: [u64; 3] = [7, 1, 8];
/// The low half without its bit for control groups.
const WHAT_HAPPENED: u64 = 0xfeff;

/// Bits above it.
const WRITE: u64 = 1 << 17;
const FLUSH: u64 = 1 << 18;
const PASSTHROUGH: u64 = 1 << 25;
const NOTIFICATION: u64 = 1 << 26;
const DISCARD: u64 = 1 << 29;
const DRIVER_DATA: u64 = 1 << 30;

/// Reads the events of one action.
pub struct Blktrace {
    is_big_endian: bool,
    layout: &'static Layout,
    action: u64,
}

impl Default for Blktrace {
    fn default() -> Self {
        Blktrace { is_big_endian: false, layout: &LAYOUTS[0], action: ACTIONS_BY_PREFERENCE[0] }
    }
}

impl Blktrace {
    fn bytes<'a>(&self, record: &'a [u8]) -> Bytes<'a> {
        Bytes { record, is_big_endian: self.is_big_endian }
    }

    fn action_of(&self, record: &[u8]) -> u64 {
        let (bytes, at) = (self.bytes(record), self.layout.action);
        if self.layout.is_wide { bytes.u64(at) } else { u64::from(bytes.u32(at)) }
    }

    /// Fixed parts of the whole records at the start of a file, up to the first that is none.
    fn records<'a>(&self, mut head: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let format = Blktrace { is_big_endian: self.is_big_endian, layout: self.layout, action: self.action };
        std::iter::from_fn(move || {
            let record = head.get(..format.layout.bytes)?;
            let size = record.len() + format.more(record).ok()?;
            head = head.get(size..).unwrap_or_default();
            Some(record)
        })
    }
}

impl RecordFormat for Blktrace {
    const NAME: &'static str = "blktrace";
    const ABOUT: &'static str =
        "binary blktrace, version 7 or 8: the file of one processor, or those merged by blkparse -d";
    const TIME_GRAIN: u64 = 1;
    const HAS_VOLUMES: bool = true;

    fn recognise(head: &[u8]) -> u64 {
        let mut format = Blktrace::default();
        format.prepare(head);
        // The mark of the first record says enough: what is wrong later has a place.
        format.records(head).count() as u64
    }

    fn prepare(&mut self, head: &[u8]) {
        self.is_big_endian = head.starts_with(&MAGIC.to_be_bytes()[1..]);
        if let Some(mark) = head.get(..4) {
            let version = self.bytes(mark).u32(0) & 0xff;
            self.layout = LAYOUTS.iter().find(|layout| layout.version == version).unwrap_or(&LAYOUTS[0]);
        }
        let seen = |action: &&u64| {
            self.records(head).any(|record| {
                let found = self.action_of(record);
                found & NOTIFICATION == 0 && found & WHAT_HAPPENED == **action
            })
        };
        self.action = ACTIONS_BY_PREFERENCE.iter().find(seen).copied().unwrap_or(ACTIONS_BY_PREFERENCE[0]);
    }

    fn notes(&self) -> Vec<String> {
        let letter = ACTIONS_BY_PREFERENCE.iter().zip(b"DQC").find(|(action, _)| **action == self.action);
        letter.map(|(_, &letter)| note_of_action(letter)).into_iter().collect()
    }

    fn size(&self) -> usize {
        self.layout.bytes
    }

    fn more(&self, record: &[u8]) -> Parse<usize> {
        let mark = self.bytes(record).u32(0);
        if mark >> 8 != MAGIC {
            return Err(Fault::new(format!("magic number: expected {MAGIC:#08x}, found {:#08x}", mark >> 8)));
        }
        let found = mark & 0xff;
        if found != self.layout.version {
            let what = if LAYOUTS.iter().any(|layout| layout.version == found) {
                format!("version: expected {}, as before, found {found}", self.layout.version)
            } else {
                format!(
                    "version: expected 7 or 8, found {found}; `blkparse -i FILE -o TEXT` makes text of it, which is read"
                )
            };
            return Err(Fault::new(what));
        }
        Ok(usize::from(self.bytes(record).u16(self.layout.more)))
    }

    fn parse(&mut self, record: &[u8]) -> Parse<Parsed> {
        let bytes = self.bytes(record);
        let action = self.action_of(record);
        // Commands that are no reads and writes have their own bytes and no sectors.
        if action & (NOTIFICATION | PASSTHROUGH | DRIVER_DATA) != 0 || action & WHAT_HAPPENED != self.action {
            return Ok(Parsed::Skip);
        }
        let (time, sector, size, device) =
            (bytes.u64(8), bytes.u64(16), u64::from(bytes.u32(24)), bytes.u32(self.layout.device));
        let kind = match action {
            _ if size == 0 && action & FLUSH != 0 => return Ok(Record::flush(time, device)),
            _ if size == 0 => return Ok(Parsed::Skip),
            _ if action & DISCARD != 0 => RequestKind::Trim,
            _ if action & WRITE != 0 => RequestKind::Write,
            _ => RequestKind::Read,
        };
        Record::of_sectors(time, kind, sector, size.div_ceil(SECTOR_BYTES), u64::from(device))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A record: time in ns, sector, bytes, action, then bytes that follow.
    pub fn record(is_big_endian: bool, (time, sector, size, action): (u64, u64, u32, u64), more: &[u8]) -> Vec<u8> {
        record_of(7, is_big_endian, (time, sector, size, action), more)
    }

    /// The same of a version.
    pub fn record_of(
        version: u32,
        is_big_endian: bool,
        (time, sector, size, action): (u64, u64, u32, u64),
        more: &[u8],
    ) -> Vec<u8> {
        let order = |mut bytes: Vec<u8>| {
            if !is_big_endian {
                bytes.reverse();
            }
            bytes
        };
        let mut found = order((MAGIC << 8 | version).to_be_bytes().to_vec());
        found.extend(order(1u32.to_be_bytes().to_vec()));
        found.extend(order(time.to_be_bytes().to_vec()));
        found.extend(order(sector.to_be_bytes().to_vec()));
        let word = |word: u32| order(word.to_be_bytes().to_vec());
        found.extend(word(size));
        found.extend(if version == 8 {
            [word(99), order(action.to_be_bytes().to_vec())].concat()
        } else {
            [word(u32::try_from(action).unwrap()), word(99)].concat()
        });
        found.extend([word(8 << 20), word(0)].concat());
        found.extend(order(0u16.to_be_bytes().to_vec()));
        found.extend(order((more.len() as u16).to_be_bytes().to_vec()));
        found.extend(vec![0xee; if version == 8 { 12 } else { 0 }]);
        found.extend(more);
        found
    }

    #[test]
    fn one_action_in_either_order_of_bytes() {
        const QUEUED_READ: u64 = 1 | 1 << 16 | 1 << 20;
        const ISSUED_WRITE: u64 = 7 | WRITE | 1 << 22;
        for (version, is_big_endian) in [(7, false), (7, true), (8, false), (8, true)] {
            let of = |each: (u64, u64, u32, u64), more: &[u8]| record_of(version, is_big_endian, each, more);
            let name = of((0, 0, 0, NOTIFICATION), b"kworker");
            let queued = of((1, 64, 4096, QUEUED_READ), b"");
            let issued = of((2, 64, 4096, ISSUED_WRITE), b"xy");
            let mut format = Blktrace::default();
            format.prepare(&[&name[..], &queued[..]].concat());
            assert_eq!((format.is_big_endian, format.action), (is_big_endian, 1));
            assert_eq!(format.parse(&name), Ok(Parsed::Skip));
            let Ok(Parsed::Record(read)) = format.parse(&queued) else { panic!() };
            assert_eq!(
                (read.time, read.kind, read.sector, read.sectors, read.stream),
                (1, RequestKind::Read, 64, 8, 8 << 20)
            );
            assert_eq!(Blktrace::recognise(&[&name[..], &queued[..], &issued[..]].concat()), 3);
            format.prepare(&[&queued[..], &issued[..]].concat());
            assert_eq!((format.parse(&queued), format.more(&issued)), (Ok(Parsed::Skip), Ok(2)));
            let mut kind = |action: u64, size: u32| match format.parse(&of((3, 0, size, 7 | action), b"")) {
                Ok(Parsed::Record(record)) => Some(record.kind),
                _ => None,
            };
            assert_eq!(kind(WRITE | DISCARD, 4096), Some(RequestKind::Trim));
            assert_eq!(kind(WRITE | FLUSH, 0), Some(RequestKind::Flush));
            assert_eq!(kind(WRITE | FLUSH, 512), Some(RequestKind::Write));
            assert_eq!((kind(PASSTHROUGH, 36), kind(WRITE, 0)), (None, None));
            // In a control group, whose number follows.
            assert_eq!(kind(WRITE | 1 << 8, 4096), Some(RequestKind::Write));
            if version == 8 {
                const APPEND: u64 = 1 << 32;
                const RESET: u64 = 1 << 33;
                assert_eq!(kind(WRITE | APPEND, 4096), Some(RequestKind::Write));
                assert_eq!(kind(WRITE | RESET, 0), None);
            }
        }
    }

    #[test]
    fn the_wide_record_is_laid_out_as_the_kernel_has_it() {
        // offsetof of each field of struct blk_io_trace2, sizeof 64.
        let bytes = record_of(8, false, (0x0102, 0x0304, 0x0506, 7 | 1 << 32), b"abc");
        assert_eq!(bytes.len(), 64 + 3);
        assert_eq!(&bytes[..4], [8, 0x74, 0x61, 0x65]);
        for (at, low) in
            [(4, 1), (8, 2), (16, 4), (24, 6), (28, 99), (32, 7), (36, 1), (42, 0x80), (44, 0), (48, 0), (50, 3)]
        {
            assert_eq!(bytes[at], low, "at {at}");
        }
        let mut format = Blktrace::default();
        format.prepare(&bytes);
        assert_eq!((format.layout, format.size(), format.more(&bytes)), (&LAYOUTS[1], 64, Ok(3)));
        assert_eq!(format.notes(), [note_of_action(b'D')]);
    }

    #[test]
    fn another_mark_or_version_is_named() {
        let mut bytes = record(false, (1, 64, 4096, 7), b"");
        bytes[0] = 8;
        assert!(Blktrace::default().more(&bytes).unwrap_err().what.contains("version: expected 7, as before, found 8"));
        bytes[0] = 9;
        let what = Blktrace::default().more(&bytes).unwrap_err().what;
        assert!(what.contains("version: expected 7 or 8, found 9; `blkparse -i FILE"), "{what}");
        bytes[1] = 0;
        assert!(Blktrace::default().more(&bytes).unwrap_err().what.contains("magic number"));
        assert_eq!(Blktrace::recognise(&bytes), 0);
    }
}
