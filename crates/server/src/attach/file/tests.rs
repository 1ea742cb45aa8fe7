//! Tests of `file`.

use super::*;

const MIB: u64 = 1 << 20;

#[test]
fn reads_stop_at_the_end() {
    assert_eq!(read(MIB, 4096, 512), Ok(Some(Request::Read { offset: 4096, length: 512 })));
    assert_eq!(read(MIB, MIB as i64 - 100, 512), Ok(Some(Request::Read { offset: MIB - 100, length: 100 })));
    assert_eq!(read(MIB, MIB as i64, 512), Ok(None));
    assert_eq!(read(MIB, i64::MAX, u32::MAX), Ok(None));
    assert_eq!(read(MIB, -1, 1), Err(libc::EINVAL));
}

#[test]
fn writes_are_within_and_durable_as_the_file_was_opened() {
    let written = |offset, length, flags| write(MIB, offset, 0..length, flags);
    let request = |durable| Ok(Some(Request::Write { offset: 512, length: 4096, at: 0, durable }));
    assert_eq!(written(512, 4096, libc::O_WRONLY | libc::O_NONBLOCK), request(false));
    assert_eq!(written(512, 4096, libc::O_RDWR | libc::O_DSYNC), request(true));
    assert_eq!(written(512, 4096, libc::O_RDWR | libc::O_SYNC), request(true));
    assert_eq!(written(MIB as i64 - 1, 2, 0), Err(libc::ENOSPC));
    assert_eq!(written(i64::MAX, usize::MAX, 0), Err(libc::ENOSPC));
    assert_eq!(written(-512, 512, 0), Err(libc::EINVAL));
    assert_eq!(written(0, 0, 0), Ok(None));
}

#[test]
fn holes_are_zeroes_that_may_be_unmapped() {
    let hole = |bytes, offset, length| allocate(bytes, offset, length, PUNCH_HOLE | KEEP_SIZE);
    let zero = |offset, length, unmap| Request::Zero { offset, length, unmap, durable: false };
    assert_eq!(hole(MIB, 100, 5000), Ok(vec![zero(100, 5000, true)]));
    assert_eq!(hole(MIB, MIB as i64 - 10, 5000), Ok(vec![zero(MIB - 10, 10, true)]), "a hole beyond the end is one");
    assert_eq!(hole(MIB, 2 * MIB as i64, 5000), Ok(vec![]));
    let large = hole(5 * PIECE, PIECE as i64 / 2, 4 * PIECE as i64).unwrap();
    let lengths: u64 = large
        .iter()
        .map(|request| match *request {
            Request::Zero { offset, length, .. } if offset % PIECE == PIECE / 2 => u64::from(length),
            _ => 0,
        })
        .sum();
    assert_eq!((large.len(), lengths), (4, 4 * PIECE));
    assert_eq!(allocate(MIB, 0, 4096, ZERO_RANGE), Ok(vec![zero(0, 4096, false)]));
    assert_eq!(allocate(MIB, 0, MIB as i64 + 1, ZERO_RANGE | KEEP_SIZE), Err(libc::ENOSPC));
}

#[test]
fn all_of_it_is_there_and_stays() {
    assert_eq!(allocate(MIB, 0, MIB as i64, 0), Ok(vec![]));
    assert_eq!(allocate(MIB, 1, MIB as i64, KEEP_SIZE), Err(libc::ENOSPC));
    for (offset, length) in [(0, 0), (-1, 10), (0, -1), (i64::MAX, i64::MAX)] {
        assert!(matches!(allocate(MIB, offset, length, 0), Err(libc::EINVAL | libc::ENOSPC)), "{offset} {length}");
    }
    // Collapse, insert, unshare; a hole that would change the size.
    for mode in [0x08, 0x20, 0x40, PUNCH_HOLE, -1] {
        assert_eq!(allocate(MIB, 0, 4096, mode), Err(libc::EOPNOTSUPP), "{mode:#x}");
    }
    assert_eq!((resize(MIB, None), resize(MIB, Some(MIB))), (Ok(()), Ok(())));
    assert_eq!((resize(MIB, Some(0)), resize(MIB, Some(MIB + 1))), (Err(libc::EPERM), Err(libc::EPERM)));
}
