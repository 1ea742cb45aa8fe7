//! `oracleGeneral`, the binary format of libCacheSim for traces of caches: records of 24 bytes, the least significant
//! byte of a number first: time in s (4), object (8), object size in bytes (4), number of the object's next access (8;
//! -1 or 2^63 - 1: none).
//!
//! Objects have no addresses. Assumed: objects follow each other in order of first access, each at a multiple of 4 KiB;
//! an object that grows moves to the end. So objects of similar age are neighbours, as in a cache that fills a drive in
//! order, and objects never overlap. The format has no operation: all requests are reads of whole objects, so the drive
//! must be preconditioned.
//!
//! Ignored: the next access. Memory grows with the number of distinct objects, unlike for other formats. The format has
//! no magic number: a file is recognised if, in all records of the head, times do not go back, sizes are valid and the
//! next access lies ahead.

use std::collections::HashMap;

use super::MAX_REQUEST_BYTES;
use super::fields::{Fault, Parse};
use super::line_format::Parsed;
use super::records::{RecordFormat, little};
use crate::request::{RequestKind, SECTOR_BYTES};

const BYTES: usize = 24;
/// Objects begin at multiples of this.
const PAGE_SECTORS: u64 = 8;
/// Accesses of the longest trace that is recognised.
const MOST_ACCESSES: u64 = 1 << 48;

/// Gives objects addresses.
#[derive(Default)]
pub struct OracleGeneral {
    /// First sector and allocated sectors of each object. Never iterated, because hash order must not affect a result.
    places: HashMap<u64, (u64, u64)>,
    end: u64,
}

impl RecordFormat for OracleGeneral {
    const NAME: &'static str = "oraclegeneral";
    const ALIASES: &'static [&'static str] = &["oracleGeneral"];
    const ABOUT: &'static str = "binary oracleGeneral of libCacheSim: objects with size and time in s; all are reads";
    const TIME_GRAIN: u64 = 1_000_000_000;

    fn recognise(head: &[u8]) -> u64 {
        let (mut latest, mut count) = (0, 0);
        for record in head.chunks_exact(BYTES) {
            let (bytes, size, next) = (little(record), little(record).u32(12), little(record).u64(16));
            let is_ahead = next == u64::MAX || next == i64::MAX as u64 || (count..MOST_ACCESSES).contains(&next);
            if bytes.u32(0) < latest || size == 0 || u64::from(size) > MAX_REQUEST_BYTES || !is_ahead {
                return 0;
            }
            latest = bytes.u32(0);
            count += 1;
        }
        count
    }

    fn size(&self) -> usize {
        BYTES
    }

    fn parse(&mut self, record: &[u8]) -> Parse<Parsed> {
        let bytes = little(record);
        let (time, object, size) = (u64::from(bytes.u32(0)) * 1_000_000_000, bytes.u64(4), u64::from(bytes.u32(12)));
        if size == 0 || size > MAX_REQUEST_BYTES {
            let expected = format!("1 to {MAX_REQUEST_BYTES} bytes");
            return Err(Fault::column("size", &expected, size.to_string().as_bytes()));
        }
        let sectors = size.div_ceil(SECTOR_BYTES);
        let room = sectors.next_multiple_of(PAGE_SECTORS);
        let end = &mut self.end;
        let mut allocate = || {
            let place = (*end, room);
            *end += room;
            place
        };
        let place = self.places.entry(object).or_insert_with(&mut allocate);
        if place.1 < sectors {
            *place = allocate();
        }
        Parsed::of_sectors(time, RequestKind::Read, place.0, sectors, 0)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A record: time in s, object, bytes, next access.
    pub fn record((time, object, size, next): (u32, u64, u32, i64)) -> Vec<u8> {
        let mut bytes = time.to_le_bytes().to_vec();
        bytes.extend(object.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        bytes
    }

    #[test]
    fn objects_lie_in_the_order_in_which_they_come() {
        let mut format = OracleGeneral::default();
        let mut place = |object, size| match format.parse(&record((1, object, size, -1))) {
            Ok(Parsed::Record(record)) => (record.extent.sector, record.extent.sectors),
            other => panic!("{other:?}"),
        };
        assert_eq!((place(77, 5000), place(3, 100), place(77, 5000)), ((0, 10), (16, 1), (0, 10)));
        // The larger object fits the allocated sectors, the next larger one does not.
        assert_eq!((place(77, 8192), place(77, 8193), place(3, 1)), ((0, 16), (24, 17), (16, 1)));
        let fault = format.parse(&record((1, 9, 0, -1))).unwrap_err();
        assert!(fault.what.contains("size: expected 1 to 1073741824 bytes, found \"0\""), "{}", fault.what);
    }

    #[test]
    fn recognised_by_times_sizes_and_next_accesses() {
        let head = |records: &[(u32, u64, u32, i64)]| {
            OracleGeneral::recognise(&records.iter().flat_map(|&each| record(each)).collect::<Vec<u8>>())
        };
        assert_eq!(head(&[(5, 1, 10, 2), (5, 2, 10, -1), (6, 1, 10, i64::MAX)]), 3);
        assert_eq!(head(&[(5, 1, 10, 2), (4, 2, 10, -1)]), 0);
        assert_eq!(head(&[(5, 1, 10, 2), (5, 2, 10, 0)]), 0);
        assert_eq!(head(&[(5, 1, 0, 2)]), 0);
        assert_eq!(OracleGeneral::recognise(b"1,h,0,Write,0,512,1\n2,h,0,Write,0,512,1\n"), 0);
    }
}
