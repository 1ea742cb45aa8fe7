//! Records of trims in an image: eight bytes for each logical subpage, the number of a flash operation above a checksum
//! of 16 bits.
//!
//! A record is never split, because a page of the page cache holds whole records and the end of a process leaves whole
//! pages. Ignored: the trimmed data.

use super::layout::{Layout, TRIM_BYTES};
use super::{Image, Medium, broken};
use crate::nand::Flash;
use std::io;

/// Most bytes of one read.
const BYTES: u64 = 1 << 16;

fn record(lsn: u32, operation: u64) -> u64 {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&lsn.to_le_bytes());
    bytes[4..].copy_from_slice(&operation.to_le_bytes());
    operation << 16 | u64::from(crc32fast::hash(&bytes) & 0xffff)
}

/// Passes each record among the first `logical` in `medium` to `each`: its logical subpage and operation, `None` if the
/// checksum differs.
///
/// # Errors
/// Errors of the operating system.
pub fn read_trims(
    medium: &dyn Medium,
    layout: &Layout,
    logical: u64,
    mut each: impl FnMut(u32, Option<u64>),
) -> io::Result<()> {
    let (begin, end) = (layout.trims_at, layout.trims_at + logical * TRIM_BYTES);
    let mut at = begin;
    while let Some(data) = medium.next_data(at)?.filter(|&data| data < end) {
        at = data / TRIM_BYTES * TRIM_BYTES;
        let mut bytes = vec![0; BYTES.min(end - at) as usize];
        medium.read(at, &mut bytes)?;
        for (lsn, found) in ((at - begin) / TRIM_BYTES..).zip(bytes.as_chunks::<8>().0) {
            let (lsn, found) = (lsn as u32, u64::from_le_bytes(*found));
            if found != 0 {
                each(lsn, Some(found >> 16).filter(|&operation| record(lsn, operation) == found));
            }
        }
        at += bytes.len() as u64;
    }
    Ok(())
}

impl Image {
    /// Writes the records `operations` of the logical subpages from `first` on.
    pub(in crate::nand) fn write_trims(&self, first: u32, operations: &[u64]) -> Flash<()> {
        let bytes: Vec<u8> = (first..).zip(operations).flat_map(|(lsn, &at)| record(lsn, at).to_le_bytes()).collect();
        self.medium.write(self.layout.trims_at + u64::from(first) * TRIM_BYTES, &bytes).map_err(broken)
    }
}
