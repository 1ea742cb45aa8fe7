//! Binary output of blktrace(8): `struct blk_io_trace` of the Linux kernel (include/uapi/linux/blktrace_api.h), version 7, in the order of
//! bytes of the machine that wrote it.
//!
//! 48 bytes: magic 0x656174 and version (4), sequence (4), time in ns (8), sector (8), bytes (4), action (4), process (4), device (4),
//! processor (4), error (2), bytes that follow (2), and these. An action has what happened in its low half, and in its high one bits of
//! what it is about: read, write, flush, notification, discard and others.
//!
//! As in [`blkparse`](super::blkparse), one action is chosen for the whole file: issue to the device if the head has any, else queueing, else
//! completion; a write without data that is a flush is one, and the device number (major << 20 | minor) is the stream. blktrace writes a file a
//! processor: `blkparse -i sda -d all.bin` merges them, and a file of one has the requests of that processor only.
//!
//! Ignored: processes, errors, merges, remaps; version 8 (`blk_io_trace2`), which is refused.

use super::fields::{Fault, Parse};
use super::line_format::{Parsed, Record};
use super::records::{Bytes, RecordFormat};
use crate::request::{RequestKind, SECTOR_BYTES};

const BYTES: usize = 48;
const MAGIC: u32 = 0x0065_6174;
const VERSION: u32 = 7;

/// Issue, queue and completion, as the low half of an action.
const ACTIONS_BY_PREFERENCE: [u32; 3] = [7, 1, 8];

/// Bits of the high half.
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const PASSTHROUGH: u32 = 1 << 25;
const NOTIFICATION: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;
const DRIVER_DATA: u32 = 1 << 30;

/// Reads the events of one action.
pub struct Blktrace {
    is_big_endian: bool,
    action: u32,
}

impl Default for Blktrace {
    fn default() -> Self {
        Blktrace { is_big_endian: false, action: ACTIONS_BY_PREFERENCE[0] }
    }
}

impl Blktrace {
    fn bytes<'a>(&self, record: &'a [u8]) -> Bytes<'a> {
        Bytes { record, is_big_endian: self.is_big_endian }
    }

    /// Fixed parts of the whole records at the start of a file, up to the first that is none.
    fn records<'a>(&self, mut head: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let format = Blktrace { is_big_endian: self.is_big_endian, action: self.action };
        std::iter::from_fn(move || {
            let record = head.get(..BYTES)?;
            let size = BYTES + format.more(record).ok()?;
            head = head.get(size..).unwrap_or_default();
            Some(record)
        })
    }
}

impl RecordFormat for Blktrace {
    const NAME: &'static str = "blktrace";
    const ABOUT: &'static str = "binary blktrace, version 7: the file of one processor, or those merged by blkparse -d";
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
        let seen = |action: &&u32| {
            self.records(head).any(|record| {
                let found = self.bytes(record).u32(28);
                found & NOTIFICATION == 0 && found & 0xffff == **action
            })
        };
        self.action = ACTIONS_BY_PREFERENCE.iter().find(seen).copied().unwrap_or(ACTIONS_BY_PREFERENCE[0]);
    }

    fn size(&self) -> usize {
        BYTES
    }

    fn more(&self, record: &[u8]) -> Parse<usize> {
        let mark = self.bytes(record).u32(0);
        if mark >> 8 != MAGIC {
            return Err(Fault::new(format!("magic number: expected {MAGIC:#08x}, found {:#08x}", mark >> 8)));
        }
        if mark & 0xff != VERSION {
            return Err(Fault::new(format!("version: expected {VERSION}, found {}", mark & 0xff)));
        }
        Ok(usize::from(self.bytes(record).u16(46)))
    }

    fn parse(&mut self, record: &[u8]) -> Parse<Parsed> {
        let bytes = self.bytes(record);
        let action = bytes.u32(28);
        // Commands that are no reads and writes have their own bytes and no sectors.
        if action & (NOTIFICATION | PASSTHROUGH | DRIVER_DATA) != 0 || action & 0xffff != self.action {
            return Ok(Parsed::Skip);
        }
        let (time, sector, size, device) = (bytes.u64(8), bytes.u64(16), u64::from(bytes.u32(24)), bytes.u32(36));
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
    pub fn record(is_big_endian: bool, (time, sector, size, action): (u64, u64, u32, u32), more: &[u8]) -> Vec<u8> {
        let order = |mut bytes: Vec<u8>| {
            if !is_big_endian {
                bytes.reverse();
            }
            bytes
        };
        let mut found = order((MAGIC << 8 | VERSION).to_be_bytes().to_vec());
        found.extend(order(1u32.to_be_bytes().to_vec()));
        found.extend(order(time.to_be_bytes().to_vec()));
        found.extend(order(sector.to_be_bytes().to_vec()));
        for word in [size, action, 99, 8 << 20, 0] {
            found.extend(order(u32::to_be_bytes(word).to_vec()));
        }
        found.extend(order(0u16.to_be_bytes().to_vec()));
        found.extend(order((more.len() as u16).to_be_bytes().to_vec()));
        found.extend(more);
        found
    }

    #[test]
    fn one_action_in_either_order_of_bytes() {
        const QUEUED_READ: u32 = 1 | 1 << 16 | 1 << 20;
        const ISSUED_WRITE: u32 = 7 | WRITE | 1 << 22;
        for is_big_endian in [false, true] {
            let of = |each: (u64, u64, u32, u32), more: &[u8]| record(is_big_endian, each, more);
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
            let mut kind = |action: u32, size: u32| match format.parse(&of((3, 0, size, 7 | action), b"")) {
                Ok(Parsed::Record(record)) => Some(record.kind),
                _ => None,
            };
            assert_eq!(kind(WRITE | DISCARD, 4096), Some(RequestKind::Trim));
            assert_eq!(kind(WRITE | FLUSH, 0), Some(RequestKind::Flush));
            assert_eq!(kind(WRITE | FLUSH, 512), Some(RequestKind::Write));
            assert_eq!((kind(PASSTHROUGH, 36), kind(WRITE, 0)), (None, None));
        }
    }

    #[test]
    fn another_mark_or_version_is_named() {
        let mut bytes = record(false, (1, 64, 4096, 7), b"");
        bytes[0] = 8;
        assert!(Blktrace::default().more(&bytes).unwrap_err().what.contains("version: expected 7, found 8"));
        bytes[1] = 0;
        assert!(Blktrace::default().more(&bytes).unwrap_err().what.contains("magic number"));
        assert_eq!(Blktrace::recognise(&bytes), 0);
    }
}
