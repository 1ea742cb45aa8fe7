//! Ranges of files: holes, reserved room, and seeking data and holes.

use super::attributes::modified;
use crate::attach::file::{KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE};
use palimpsest_lab::host::fs::device::Device;
use palimpsest_lab::host::fs::{Done, Fault, FileSystem};
use std::ops::Range;

/// Does `fallocate` with `mode`.
///
/// # Errors
/// [`Fault::Unsupported`] for an unknown mode, and errors of the file system.
pub fn allocate(
    filesystem: &mut FileSystem,
    device: &mut dyn Device,
    ino: u32,
    range: Range<u64>,
    mode: i32,
) -> Done<()> {
    let grows = mode & KEEP_SIZE == 0;
    match mode & !KEEP_SIZE {
        PUNCH_HOLE => punch(filesystem, device, ino, range)?,
        0 => reserve(filesystem, device, ino, range, grows)?,
        // The range becomes a hole with reserved room.
        ZERO_RANGE => {
            punch(filesystem, device, ino, range.clone())?;
            reserve(filesystem, device, ino, range, grows)?;
        }
        _ => return Err(Fault::Unsupported),
    }
    filesystem.set_words(device, ino, &modified())
}

/// Makes a range a hole; the size stays.
fn punch(filesystem: &mut FileSystem, device: &mut dyn Device, ino: u32, range: Range<u64>) -> Done<()> {
    let width = u64::from(filesystem.shape().page_bytes);
    let size = filesystem.stat(ino)?.1;
    let (mut at, end) = (range.start, range.end.min(size));
    while at < end {
        let until = end.min((at / width + 1) * width);
        let page = (at / width) as u32;
        // The rest of the last page of a file is zero.
        let is_whole = at.is_multiple_of(width) && (until.is_multiple_of(width) || until == size);
        if is_whole {
            filesystem.punch(device, ino, page)?;
        } else if filesystem.locate(ino, page)?.is_some() {
            filesystem.write(device, ino, at, &vec![0; (until - at) as usize])?;
        }
        at = until;
    }
    Ok(())
}

/// Reserves room for a range, which reads as zeroes until written; `grows` extends the file to the end of the range.
fn reserve(filesystem: &mut FileSystem, device: &mut dyn Device, ino: u32, range: Range<u64>, grows: bool) -> Done<()> {
    let width = u64::from(filesystem.shape().page_bytes);
    let page = |page: u64| u32::try_from(page).map_err(|_| Fault::TooLarge);
    filesystem.reserve_pages(device, ino, page(range.start / width)?..page(range.end.div_ceil(width))?)?;
    if grows { filesystem.extend(ino, range.end) } else { Ok(()) }
}

/// The first offset of `ino` from `from` on in data (SEEK_DATA) or in a hole; the end of a file is a hole.
pub fn seek(filesystem: &FileSystem, ino: u32, from: u64, whence: i32) -> Done<Option<u64>> {
    let (size, width) = (filesystem.stat(ino)?.1, u64::from(filesystem.shape().page_bytes));
    if from >= size {
        return Ok(None);
    }
    let page = (from / width) as u32;
    let at = |page: u32| from.max(u64::from(page) * width);
    match whence {
        libc::SEEK_DATA => Ok(filesystem.next_page(ino, page)?.map(at).filter(|&at| at < size)),
        _ => Ok(Some(at(filesystem.next_hole(ino, page)?).min(size))),
    }
}
