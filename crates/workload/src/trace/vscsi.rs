//! Binary traces of VMware's vscsiStats, version 1 and 2, as libCacheSim and the CloudPhysics traces (Waldspurger et
//! al., "Efficient MRC Construction with SHARDS", FAST 2015) have them: SCSI commands of a virtual disk.
//!
//! Numbers have their least significant byte first. Version 1 has 32 bytes: serial number (4), length in bytes (4),
//! segments (4), SCSI command (2), version (2), block of 512 bytes (8), time in us (8). Version 2 has 40: command (2),
//! version (2), serial number (4), length (4), segments (4), block (8), time in us (8), response time in us (8). The
//! high byte of the version field is the version; the low byte is ignored.
//!
//! READ and WRITE of 6, 10, 12 and 16 bytes are requests, SYNCHRONIZE CACHE is a flush; all other commands are skipped
//! (also WRITE SAME and UNMAP, whose extents are not in the record), and so are transfers of no bytes. A file has one
//! disk. Ignored: response times, segments, serial numbers.

use super::fields::{Fault, Parse, nanos};
use super::line_format::Parsed;
use super::records::{Bytes, RecordFormat, little};
use crate::request::{RequestKind, SECTOR_BYTES};

/// Offsets of fields in a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    version: u8,
    size: usize,
    command_at: usize,
    version_at: usize,
    length_at: usize,
}

const V1: Layout = Layout { version: 1, size: 32, command_at: 12, version_at: 14, length_at: 4 };
const V2: Layout = Layout { version: 2, size: 40, command_at: 0, version_at: 2, length_at: 8 };
/// Offsets in both versions.
const BLOCK_AT: usize = 16;
const TIME_AT: usize = 24;

impl Layout {
    fn is_version(self, record: &[u8]) -> bool {
        little(record).u16(self.version_at) >> 8 == u16::from(self.version)
    }

    /// The number of whole records at the start of a file; 0 unless all have this version.
    fn records(self, head: &[u8]) -> u64 {
        let records = head.chunks_exact(self.size);
        let count = records.len() as u64;
        // An address below 2^63 bytes excludes most other files.
        let mut own = records.map(|record| self.is_version(record) && little(record).u64(BLOCK_AT) >> 54 == 0);
        if own.all(|own| own) { count } else { 0 }
    }
}

/// Reads version 1 or 2.
pub struct Vscsi(Layout);

impl Default for Vscsi {
    fn default() -> Self {
        Vscsi(V2)
    }
}

impl RecordFormat for Vscsi {
    const NAME: &'static str = "vscsi";
    const ABOUT: &'static str = "binary vscsiStats, version 1 or 2: SCSI commands with block, length and time in us";
    const TIME_GRAIN: u64 = 1000;

    fn recognise(head: &[u8]) -> u64 {
        V2.records(head).max(V1.records(head))
    }

    fn prepare(&mut self, head: &[u8]) {
        self.0 = if V1.records(head) > V2.records(head) { V1 } else { V2 };
    }

    fn size(&self) -> usize {
        self.0.size
    }

    fn parse(&mut self, record: &[u8]) -> Parse<Parsed> {
        let (layout, bytes): (Layout, Bytes<'_>) = (self.0, little(record));
        if !layout.is_version(record) {
            let found = bytes.u16(layout.version_at) >> 8;
            return Err(Fault::new(format!("version: expected {}, found {found}", layout.version)));
        }
        let time = nanos(bytes.u64(TIME_AT), 1000, "time")?;
        let kind = match bytes.u16(layout.command_at) {
            0x08 | 0x28 | 0xa8 | 0x88 => RequestKind::Read,
            0x0a | 0x2a | 0xaa | 0x8a => RequestKind::Write,
            0x35 | 0x91 => return Ok(Parsed::flush(time, 0)),
            _ => return Ok(Parsed::Skip),
        };
        match u64::from(bytes.u32(layout.length_at)) {
            0 => Ok(Parsed::Skip),
            length => {
                let sectors = length.div_ceil(SECTOR_BYTES);
                Parsed::of_sectors(time, kind, bytes.u64(BLOCK_AT), sectors, 0)
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
