//! Flash translation layers: one file each, and one line each in [`REGISTRY`].

pub mod extent;
pub mod free;
mod gaps;
pub mod hybrid;
pub mod layers;
pub mod log;
pub mod maps;
pub mod rebuild;

use layers::{bast, block, dftl, fast, fdp, hotcold, llh, mga, page, sector_log, spread, subpage, womv, zns};
use palimpsest_ftl_api::Entry;

/// Every layer.
pub const REGISTRY: &[Entry] = &[
    page::ENTRY,
    dftl::ENTRY,
    block::ENTRY,
    subpage::ENTRY,
    fdp::PAGE,
    fdp::SUBPAGE,
    fdp::DFTL,
    spread::PAGE_FGM,
    spread::DMA_FGM,
    spread::SPFTL,
    bast::ENTRY,
    fast::ENTRY,
    sector_log::ENTRY,
    mga::ENTRY,
    hotcold::ENTRY,
    llh::ENTRY,
    womv::ENTRY,
    zns::ENTRY,
];

/// The entry named `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}
