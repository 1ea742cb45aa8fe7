//! Binary output of blktrace(8): records of the Linux kernel (include/uapi/linux/blktrace_api.h), in the order of bytes
//! of the machine that wrote them.
//!
//! Version 7, `struct blk_io_trace`, 48 bytes: magic 0x656174 and version (4), sequence (4), time in ns (8), sector
//! (8), bytes (4), action (4), process (4), device (4), processor (4), error (2), bytes that follow (2), and these. The
//! low 16 bits of an action are the event (bit 8: the bytes that follow name a control group), the bits above are the
//! kind: read, write, flush, notification, discard and others.
//!
//! Version 8, `struct blk_io_trace2` (Linux 6.19 and later, where blktrace asks for it), 64 bytes: the same up to the
//! bytes, then process (4), action (8), device (4), processor (4), error (2), bytes that follow (2), 12 of padding, and
//! these. Above the 32 bits of version 7 the action has bits for commands of zones and for writing zeroes. All records
//! of a file must have the same version.
//!
//! As in [`blkparse`](super::blkparse), one action is chosen for the whole file: issue to the device if the head has
//! any, else queueing, else completion. A write without data that is marked as a flush is a flush, and the device
//! number (major << 20 | minor) is the stream. blktrace writes a file for each processor, with the requests of that
//! processor only: `blkparse -i sda -d all.bin` merges the files.
//!
//! Ignored: processes, errors, merges, remaps; commands of zones that have no bytes. An append to a zone is a write at
//! the start of the zone, as issued, unless completions are read. Writing zeroes is a write, as in version 7.

use super::blkparse::note_of_action;
use super::fields::{Fault, Parse};
use super::line_format::Parsed;
use super::records::{Bytes, RecordFormat};
use crate::request::{RequestKind, SECTOR_BYTES};
use crate::volume_names::{VolumeName, VolumeNames};

const MAGIC: u32 = 0x0065_6174;

#[derive(Debug, PartialEq)]
struct Layout {
    version: u32,
    bytes: usize,
    /// The action has 8 bytes, else 4.
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
/// The event: the low half of an action without the bit for control groups.
const EVENT: u64 = 0xfeff;

/// Bits above the event.
const WRITE: u64 = 1 << 17;
const FLUSH: u64 = 1 << 18;
const PASSTHROUGH: u64 = 1 << 25;
const NOTIFICATION: u64 = 1 << 26;
const DISCARD: u64 = 1 << 29;
const DRIVER_DATA: u64 = 1 << 30;
const FUA: u64 = 1 << 31;

/// Reads the events of one action.
pub struct Blktrace {
    is_big_endian: bool,
    layout: &'static Layout,
    action: u64,
    devices: VolumeNames,
}

impl Default for Blktrace {
    fn default() -> Self {
        Blktrace {
            is_big_endian: false,
            layout: &LAYOUTS[0],
            action: ACTIONS_BY_PREFERENCE[0],
            devices: VolumeNames::default(),
        }
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

    /// Fixed parts of the whole records at the start of a file.
    fn records<'a>(&self, mut head: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let format = Blktrace { is_big_endian: self.is_big_endian, layout: self.layout, ..Blktrace::default() };
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
        // The mark of the first record is enough, because the run reports later mistakes with their place.
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
                found & NOTIFICATION == 0 && found & EVENT == **action
            })
        };
        self.action = ACTIONS_BY_PREFERENCE.iter().find(seen).copied().unwrap_or(ACTIONS_BY_PREFERENCE[0]);
    }

    fn notes(&self) -> Vec<String> {
        let letter = ACTIONS_BY_PREFERENCE.iter().zip(b"DQC").find(|(action, _)| **action == self.action);
        letter.map(|(_, &letter)| note_of_action(letter)).into_iter().collect()
    }

    fn volume_names(&self) -> &[VolumeName] {
        self.devices.all()
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
                    "version: expected 7 or 8, found {found}; `blkparse -i FILE -o TEXT` makes text of it, which is \
                     read"
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
        if action & (NOTIFICATION | PASSTHROUGH | DRIVER_DATA) != 0 || action & EVENT != self.action {
            return Ok(Parsed::Skip);
        }
        let (time, sector, size, device) =
            (bytes.u64(8), bytes.u64(16), u64::from(bytes.u32(24)), bytes.u32(self.layout.device));
        self.devices.device(device);
        let kind = match action {
            _ if size == 0 && action & FLUSH != 0 => return Ok(Parsed::flush(time, device)),
            _ if size == 0 => return Ok(Parsed::Skip),
            _ if action & DISCARD != 0 => RequestKind::Trim,
            _ if action & WRITE != 0 => RequestKind::Write,
            _ => RequestKind::Read,
        };
        let parsed = Parsed::of_sectors(time, kind, sector, size.div_ceil(SECTOR_BYTES), u64::from(device))?;
        Ok(parsed.with_fua(action & FUA != 0))
    }
}

#[cfg(test)]
pub(super) mod tests;
