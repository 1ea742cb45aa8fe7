//! What operations on the file of an attached drive are to the drive: a disk has one size, and a file of it no more.
//!
//! No write passes the end, reads stop there. A hole is zeroes that may be unmapped, as whoever reads a hole of a file reads zeroes; a
//! loop device sends one for each discard. A range that is zeroed otherwise is written. Ignored: times, owners, and sparse files: all of
//! the drive is there.

use crate::transmission::Request;
use std::ops::Range;

/// Bytes that one request zeroes: requests count them in 32 bits.
const PIECE: u64 = 1 << 30;

/// The size stays.
pub const KEEP_SIZE: i32 = 0x01;
/// The range becomes a hole.
pub const PUNCH_HOLE: i32 = 0x02;
/// The range becomes zeroes.
pub const ZERO_RANGE: i32 = 0x10;

/// The read of `size` bytes at `offset`, less what is behind the end; `None` if all of it is.
///
/// # Errors
/// `EINVAL` for a negative offset.
pub fn read(bytes: u64, offset: i64, size: u32) -> Result<Option<Request>, i32> {
    let offset = u64::try_from(offset).map_err(|_| libc::EINVAL)?;
    let length = u64::from(size).min(bytes.saturating_sub(offset)) as u32;
    Ok((length > 0).then_some(Request::Read { offset, length }))
}

/// The write of what is at `data` in memory, at `offset`, with the `flags` that the file was opened with; `None` if it
/// is empty.
///
/// # Errors
/// `EINVAL` for a negative offset, `ENOSPC` for a write beyond the end.
pub fn write(bytes: u64, offset: i64, data: Range<usize>, flags: i32) -> Result<Option<Request>, i32> {
    let offset = u64::try_from(offset).map_err(|_| libc::EINVAL)?;
    let end = offset.checked_add(data.len() as u64).filter(|&end| end <= bytes);
    end.ok_or(libc::ENOSPC)?;
    let length = u32::try_from(data.len()).map_err(|_| libc::EINVAL)?;
    // O_SYNC includes the bit of O_DSYNC.
    let durable = flags & libc::O_DSYNC != 0;
    Ok((length > 0).then_some(Request::Write { offset, length, at: data.start, durable }))
}

/// The requests of `fallocate`.
///
/// # Errors
/// `EINVAL` for no range, `ENOSPC` for room beyond the end, `EOPNOTSUPP` for what would move data.
pub fn allocate(bytes: u64, offset: i64, length: i64, mode: i32) -> Result<Vec<Request>, i32> {
    let (Ok(offset), Ok(length)) = (u64::try_from(offset), u64::try_from(length)) else { return Err(libc::EINVAL) };
    let end = offset.checked_add(length).filter(|_| length > 0).ok_or(libc::EINVAL)?;
    let beyond = if end > bytes { Err(libc::ENOSPC) } else { Ok(()) };
    let unmap = match mode {
        0 | KEEP_SIZE => return beyond.map(|()| Vec::new()),
        mode if mode == PUNCH_HOLE | KEEP_SIZE => true,
        mode if mode & !KEEP_SIZE == ZERO_RANGE => {
            beyond?;
            false
        }
        _ => return Err(libc::EOPNOTSUPP),
    };
    let pieces = (offset..end.min(bytes)).step_by(PIECE as usize);
    let piece = |from: u64| {
        let length = PIECE.min(end.min(bytes) - from) as u32;
        Request::Zero { offset: from, length, unmap, durable: false }
    };
    Ok(pieces.map(piece).collect())
}

/// A new size.
///
/// # Errors
/// `EPERM` for any but the one that there is.
pub fn resize(bytes: u64, size: Option<u64>) -> Result<(), i32> {
    if size.is_none_or(|size| size == bytes) { Ok(()) } else { Err(libc::EPERM) }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(
            hole(MIB, MIB as i64 - 10, 5000),
            Ok(vec![zero(MIB - 10, 10, true)]),
            "a hole beyond the end is one"
        );
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
}
