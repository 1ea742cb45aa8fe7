//! Tests of the module `line_format`.

use super::*;

fn extent(offset: u64, bytes: u64) -> Option<(u64, u32)> {
    match Parsed::of_bytes(0, RequestKind::Read, offset, bytes, 0) {
        Ok(Parsed::Record(record)) => Some((record.extent.sector, record.extent.sectors)),
        _ => None,
    }
}

#[test]
fn bytes_widen_to_the_sectors_they_touch() {
    assert_eq!(extent(0, 1), Some((0, 1)));
    assert_eq!(extent(511, 2), Some((0, 2)));
    assert_eq!(extent(1024, 512), Some((2, 1)));
    assert_eq!(extent(0, 0), None);
    assert_eq!(extent(0, MAX_REQUEST_BYTES + 1), None);
    assert_eq!(extent(u64::MAX, 1), None);
    assert_eq!(extent((1 << 63) - 512, 512), Some((SECTOR_LIMIT - 1, 1)));
    assert_eq!(extent((1 << 63) - 512, 513), None);
}

#[test]
fn sectors_are_bounded() {
    let read = |sector, sectors, stream| Parsed::of_sectors(0, RequestKind::Read, sector, sectors, stream).is_ok();
    assert!(read(0, 1, 0) && read(SECTOR_LIMIT - 1, 1, u64::from(u32::MAX)));
    assert!(!read(0, 0, 0) && !read(SECTOR_LIMIT, 1, 0) && !read(0, u64::MAX, 0) && !read(u64::MAX, 1, 0));
    assert!(!read(0, 1, 1 << 32));
}
