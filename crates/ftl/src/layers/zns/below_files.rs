//! Zones below a file system, which writes whole pages only: none waits in the write buffer, and programs acknowledge
//! writes. The drive exports the pages of the file system, and the host sees no zones.

use super::{ENTRY, Zns, ZnsSettings, settings};
use crate::layers::pages::MapsPages;
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::{Blueprint, Entry, Model, Proposal, Unfit, refuse_if};

/// The zones of a file system.
pub const BELOW_FILES: Entry = Entry {
    zoned: false,
    gathers: false,
    keeps_pages: false,
    kept_buffer: Entry::PLAIN.kept_buffer,
    exported: Entry::PLAIN.exported,
    check,
    model: Model { varies, ..ENTRY.model },
    ..ENTRY
};

fn check(proposal: &Proposal<'_>) -> Result<(), Unfit> {
    refuse_if!(ZnsSettings::new(proposal.settings).area > 0 => "zns.zrwa" => ["zns.zrwa" = "0B"];
        "the file system writes at write pointers only");
    settings::check_zones(proposal)
}

/// As zones of a host, with the limits that a file system needs.
fn varies(rng: &mut Rng, drawn: &[String]) -> Vec<String> {
    let mut varied = settings::varies(rng, drawn);
    varied.retain(|set| !["zns.max_", "zns.zrwa", "buffer."].iter().any(|key| set.starts_with(key)));
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
