//! Tests of the records of blktrace, with records made byte by byte.

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
            (read.arrival, read.kind, read.extent.sector, read.extent.sectors, read.owner()),
            (1, RequestKind::Read, 64, 8, 8 << 20)
        );
        assert_eq!(Blktrace::recognise(&[&name[..], &queued[..], &issued[..]].concat()), 3);
        format.prepare(&[&queued[..], &issued[..]].concat());
        assert_eq!((format.parse(&queued), format.more(&issued)), (Ok(Parsed::Skip), Ok(2)));
        let mut kind = |action: u64, size: u32| match format.parse(&of((3, 0, size, 7 | action), b"")) {
            Ok(Parsed::Record(record)) => {
                assert_eq!(record.directives.fua, action & FUA != 0 && record.kind == RequestKind::Write);
                Some(record.kind)
            }
            _ => None,
        };
        assert_eq!((kind(WRITE | FUA, 512), kind(FUA, 512)), (Some(RequestKind::Write), Some(RequestKind::Read)));
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
