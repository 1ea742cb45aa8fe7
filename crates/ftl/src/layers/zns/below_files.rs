//! Zones below a file system, which writes whole pages only: none waits in the write buffer, and programs acknowledge
//! writes. The drive exports the pages of the file system, and the host sees no zones.

use super::{ENTRY, Zns, check_zones};
use crate::layers::pages::MapsPages;
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::{Blueprint, Entry, Model};

/// The zones of a file system.
pub const BELOW_FILES: Entry = Entry {
    zoned: false,
    gathers: false,
    exported: Entry::PLAIN.exported,
    check: check_zones,
    model: Model { varies, ..ENTRY.model },
    ..ENTRY
};

/// As zones of a host, with the limits that a file system needs.
fn varies(rng: &mut Rng, drawn: &[String]) -> Vec<String> {
    let mut varied = super::varies(rng, drawn);
    varied.retain(|set| !set.starts_with("zns.max_") && !set.starts_with("buffer."));
    let active = [0, 4, 5, 4 + rng.below(12)][rng.below(4) as usize];
    varied.push(format!("zns.max_active={active}"));
    varied.push(format!("zns.max_open={}", 1 + rng.below(active.max(1))));
    varied
}

impl Zns {
    /// The layer on erased flash.
    pub fn below_files(io: &Io, blueprint: &Blueprint) -> Self {
        Zns { room: 0, ..Zns::new(io, &Blueprint { protected: false, ..blueprint.clone() }) }
    }

    /// The physical page of `page`, as a host of zones numbers pages; a block has `per_block` pages.
    pub fn locate(&self, page: u32, per_block: u32) -> Option<u32> {
        self.inner(page, per_block).and_then(|inner| self.block.locate(inner))
    }
}
