//! Space of the store: files are lists of extents, and a deleted file leaves holes for later ones. A new file takes the
//! free extents with the lowest addresses. Or it takes the free extents after the last allocation, and continues at the
//! lowest address after the end, as ext4 does for large files (`s_mb_last_group` in fs/ext4/mballoc.c); the store then
//! writes to all of its space. Ignored: groups of blocks, preallocation, and metadata of the file system.

use crate::objects::commands::{Commands, Place};
use crate::request::{RequestKind, SECTOR_BYTES};
use palimpsest_flash::error::{Error, Result};
use std::collections::BTreeSet;

/// Bytes of an extent.
pub const EXTENT_BYTES: u64 = 64 << 10;
const EXTENT_SECTORS: u64 = EXTENT_BYTES / SECTOR_BYTES;
/// Extents of a command, at most: 1 MiB.
const COMMAND_EXTENTS: u32 = (1 << 20) / EXTENT_BYTES as u32;

/// The free extents that a new file takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// From the lowest address on.
    First,
    /// From the end of the last allocation on.
    Next,
}

/// The extents of the store.
pub struct Space {
    fit: Fit,
    free: BTreeSet<u32>,
    /// The extent from which the next file takes free ones.
    from: u32,
}

impl Space {
    /// Free space of `bytes`.
    pub fn new(bytes: u64, fit: Fit) -> Self {
        Space { fit, free: (0..(bytes / EXTENT_BYTES) as u32).collect(), from: 0 }
    }

    /// The extents of a new file of `bytes`.
    ///
    /// # Errors
    /// [`Error::Input`] if the store is full.
    pub fn take(&mut self, bytes: u64) -> Result<Vec<u32>> {
        let needed = bytes.div_ceil(EXTENT_BYTES).max(1) as usize;
        let taken: Vec<u32> =
            self.free.range(self.from..).chain(self.free.range(..self.from)).take(needed).copied().collect();
        if taken.len() < needed {
            let what = "the store is full, because a compaction writes new files before it deletes old ones; expected \
                        less data in the space, or smaller files";
            return Err(Error::input("data", what));
        }
        taken.iter().for_each(|extent| _ = self.free.remove(extent));
        if self.fit == Fit::Next {
            self.from = taken[needed - 1] + 1;
        }
        Ok(taken)
    }

    /// Frees the extents of a deleted file.
    pub fn give(&mut self, extents: &[u32]) {
        self.free.extend(extents);
    }
}

/// Adds commands of `kind` on all of `extents`, neighbours together.
pub fn whole(extents: &[u32], place: Place, kind: RequestKind, out: &mut Commands) {
    let joins = |one: &u32, next: &u32| one + 1 == *next;
    for run in extents.chunk_by(joins) {
        for part in run.chunks(COMMAND_EXTENTS as usize) {
            out.push(place, kind, u64::from(part[0]) * EXTENT_SECTORS, part.len() as u64 * EXTENT_SECTORS);
        }
    }
}

/// Adds a command of `kind` on the `bytes` from `offset` on of a file with `extents`; these are in one extent.
pub fn part(extents: &[u32], (offset, bytes): (u64, u64), place: Place, kind: RequestKind, out: &mut Commands) {
    let extent = u64::from(extents[(offset / EXTENT_BYTES) as usize]);
    let sector = extent * EXTENT_SECTORS + offset % EXTENT_BYTES / SECTOR_BYTES;
    out.push(place, kind, sector, bytes / SECTOR_BYTES);
}
