//! Space of the store: files are lists of extents. A new file takes the free extents with the lowest addresses, so that
//! a deleted file leaves holes for later ones.

use crate::objects::commands::{Commands, Place};
use crate::request::{RequestKind, SECTOR_BYTES};
use palimpsest_flash::error::{Error, Result};
use std::collections::BTreeSet;

/// Bytes of an extent.
pub const EXTENT_BYTES: u64 = 64 << 10;
const EXTENT_SECTORS: u64 = EXTENT_BYTES / SECTOR_BYTES;
/// Extents of a command, at most: 1 MiB.
const COMMAND_EXTENTS: u32 = (1 << 20) / EXTENT_BYTES as u32;

/// The extents of the store.
pub struct Space {
    free: BTreeSet<u32>,
}

impl Space {
    /// Free space of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Space { free: (0..(bytes / EXTENT_BYTES) as u32).collect() }
    }

    /// The extents of a new file of `bytes`.
    ///
    /// # Errors
    /// [`Error::Input`] if the store is full.
    pub fn take(&mut self, bytes: u64) -> Result<Vec<u32>> {
        let needed = bytes.div_ceil(EXTENT_BYTES).max(1) as usize;
        let taken: Vec<u32> = self.free.iter().take(needed).copied().collect();
        if taken.len() < needed {
            let what = "the store is full, because a compaction writes new files before it deletes old ones; expected \
                        less data in the space, or smaller files";
            return Err(Error::input("data", what));
        }
        taken.iter().for_each(|extent| _ = self.free.remove(extent));
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
