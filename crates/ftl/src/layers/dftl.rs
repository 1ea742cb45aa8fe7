//! `dftl`: the page map of `page`, stored in flash and cached on demand.
//!
//! Gupta, Kim and Urgaonkar, "DFTL: a flash translation layer employing demand-based selective caching of page-level
//! address mappings", ASPLOS 2009. Host writes, merges and collection equal [`super::page`]. [`crate::maps::cached`]
//! describes caching, eviction and updates, and the decisions where the paper is silent. Each page of a request is
//! translated separately (the paper's Algorithm 1): a request of several pages may read a translation page once for
//! each. A request waits for all translations. Translation pages are in separate blocks, also after cleaning, and are
//! cleaned like all others.
//!
//! Trims translate, too, and complete after their translations. Moves of translation pages count as collection, all
//! other operations of the map as metadata. Ignored: batching of lookups, and prefetching, which later papers add.

use super::page::Page;
use crate::log::settings::{CACHE, FIXED_CACHE, keys_of, keys_of_log};
use crate::maps::cached::{CACHED_BYTES, CachedMap, ENTRY_BYTES};
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::rng::Rng;
use palimpsest_ftl_api::keys;
use palimpsest_ftl_api::keys::Growth;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Blueprint, Entry, Model};

pub const ENTRY: Entry = Entry {
    name: "dftl",
    about: "page map in flash: its entries are cached in DRAM on demand",
    keys: || [keys_of_log(), keys_of(&[CACHE, FIXED_CACHE, KEYS])].concat(),
    word_lines: true,
    outlives_dies: true,
    takes_parity: true,
    superblocks: true,
    tables: |settings, geometry, subpages| {
        let pages = subpages / u64::from(geometry.subpages_per_page);
        CachedMap::checkpoint_bytes(geometry, pages, DftlSettings::new(settings).room)
    },
    reserved: map_blocks,
    model: Model { varies: |rng, _| vec![room(rng)], ..Model::ANY },
    build: |io, blueprint| Box::new(layer(io, blueprint)),
    ..Entry::PLAIN
};

keys! {
    struct DftlSettings;

    group KEYS {
        /// DRAM for the cached mapping table, 8 bytes an entry
        room: u64 = "ftl.cmt", Bytes { min: CACHED_BYTES, max: 1 << 34 } => |bytes: u64| bytes / CACHED_BYTES, "64KiB",
            grows_with[Growth::Capacity];
    }
}

/// The layer on erased flash.
pub(super) fn layer(io: &Io, blueprint: &Blueprint) -> Page<CachedMap> {
    let room = DftlSettings::new(&blueprint.settings).room as u32;
    Page::over(io, blueprint, CachedMap::new(io, blueprint.logical_pages, room))
}

/// Blocks of a plane for translation pages: full ones, and the open one.
fn map_blocks(_: &Settings, geometry: &Geometry) -> u32 {
    let pages = geometry.pages().div_ceil((geometry.page_bytes() / ENTRY_BYTES).into());
    pages.div_ceil(u64::from(geometry.pages_per_block) * u64::from(geometry.planes())) as u32 + 1
}

/// From a single entry to the whole map of a small drive.
fn room(rng: &mut Rng) -> String {
    format!("ftl.cmt={}B", CACHED_BYTES * [1, 2, 5, 40, 4000][rng.below(5) as usize])
}

#[cfg(test)]
mod tests;
