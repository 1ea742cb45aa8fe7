//! Operations on the file of an attached drive, as requests to the drive. The size of the file is the size of the
//! drive, and never changes.
//!
//! Writes beyond the end fail, reads stop there. A hole becomes zeroes that may be unmapped, because holes of files
//! read as zeroes; a loop device punches one for each discard. A range zeroed otherwise is written. Ignored: times,
//! owners and sparse files.

use crate::request::Request;
use std::ops::Range;

/// Bytes that one request zeroes: requests count them in 32 bits.
const PIECE: u64 = 1 << 30;

pub const KEEP_SIZE: i32 = 0x01;
pub const PUNCH_HOLE: i32 = 0x02;
pub const ZERO_RANGE: i32 = 0x10;

/// The read of `size` bytes at `offset` up to the end; `None` if nothing is left.
///
/// # Errors
/// `EINVAL` for a negative offset.
pub fn read(bytes: u64, offset: i64, size: u32) -> Result<Option<Request>, i32> {
    let offset = u64::try_from(offset).map_err(|_| libc::EINVAL)?;
    let length = u64::from(size).min(bytes.saturating_sub(offset)) as u32;
    Ok((length > 0).then_some(Request::Read { offset, length }))
}

/// The write of the bytes at `data` in memory to `offset`, for a file opened with `flags`; `None` for no bytes.
///
/// # Errors
/// `EINVAL` for a negative offset, `ENOSPC` beyond the end.
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
/// `EINVAL` for no range, `ENOSPC` beyond the end, `EOPNOTSUPP` for modes that move data.
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

/// Checks a new size.
///
/// # Errors
/// `EPERM` for any other than the present one.
pub fn resize(bytes: u64, size: Option<u64>) -> Result<(), i32> {
    if size.is_none_or(|size| size == bytes) { Ok(()) } else { Err(libc::EPERM) }
}

#[cfg(test)]
mod tests;
