//! Flash translation layers: one file each, and one line each in [`REGISTRY`].

pub mod layers;
pub mod log;

use layers::{block, hotcold, llh, mga, page, sector_log, spread, subpage};
use palimpsest_ftl_api::Entry;

/// Every layer.
pub const REGISTRY: &[Entry] = &[
    page::ENTRY,
    block::ENTRY,
    subpage::ENTRY,
    spread::PAGE_FGM,
    spread::DMA_FGM,
    spread::SPFTL,
    sector_log::ENTRY,
    mga::ENTRY,
    hotcold::ENTRY,
    llh::ENTRY,
];

/// Layers that always keep hot data apart from cold and moved data, whatever `ftl.streams` says.
pub const HOT_AND_COLD: &[&str] = &[hotcold::ENTRY.name, llh::ENTRY.name];

/// Blocks of a plane that the layer `name` writes to at once, with `streams` streams.
pub fn frontiers(name: &str, streams: u32) -> u32 {
    if HOT_AND_COLD.contains(&name) { 2 } else { streams }
}

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}
