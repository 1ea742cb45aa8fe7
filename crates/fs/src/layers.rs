//! The registry of file systems above layers, and the device that each gives its file system.
//!
//! `codesign` stands on the block map, which keeps two blocks of each plane for copies after failures; all other blocks are
//! the file system's. `fs-page` is the same file system above the page map, without hints: the map goes round its channels
//! itself (`fs.scheme` has no say), and half of the spare blocks stay with it for its own collection.
//!
//! The others stand on layers that map subpages. The page of the file system is a subpage then, so that a small write is one
//! subpage at the next address, which the layer packs with its neighbours in its own way: `mga` programs the page again,
//! `subpage` and `spftl` fill their buffer, `llh` and `hotcold` that of a bank. Channels are the layer's: the file system sees
//! one, with blocks of as many pages as a block has subpages. As above the page map half of
//! the spare blocks stay with it, and at the least those that it wants free when its collection stops.

use super::device::Shape;
use super::replay::Replay;
use super::store::{Mapped, Paged, Store};
use super::{FileSystem, Thresholds};
use palimpsest_flash::geometry::Geometry;
use palimpsest_ftl::layers::block::Block;
use palimpsest_ftl::layers::page::Page;
use palimpsest_ftl::layers::pages::BuildUnits;
use palimpsest_ftl::layers::{hotcold, llh, mga, spread, subpage};
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::settings::FtlSettings;
use palimpsest_ftl_api::{Blueprint, Durability, Entry};

/// File systems above layers.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "codesign",
        about: "file system that updates out of place and chooses channels (fs.scheme), above the block map",
        read: None,
        buffered: false,
        durable: Durability::Flushed,
        apart: Entry::NONE_APART,
        build: |io, blueprint| Box::new(Replay::new(io, blueprint, Below::Blocks)),
    },
    Entry {
        name: "fs-page",
        about: "the same file system above the page map, which chooses channels in turn",
        read: None,
        buffered: false,
        durable: Durability::Flushed,
        apart: Entry::NONE_APART,
        build: |io, blueprint| Box::new(Replay::new(io, blueprint, Below::Pages)),
    },
    Entry {
        name: "fs-subpage",
        about: "the same file system, its pages subpages, above the fine-grained map",
        durable: Durability::Flushed,
        build: |io, blueprint| Box::new(Replay::new(io, blueprint, Below::Units(subpage::UNITS))),
        ..subpage::ENTRY
    },
    Entry {
        name: "fs-spftl",
        about: "the same above spftl, which senses wanted words only",
        durable: Durability::Flushed,
        build: |io, blueprint| Box::new(Replay::new(io, blueprint, Below::Units(subpage::UNITS))),
        ..spread::SPFTL
    },
    Entry {
        name: "fs-mga",
        about: "the same above mga, which programs pages again",
        durable: Durability::Flushed,
        build: |io, blueprint| Box::new(Replay::new(io, blueprint, Below::Units(mga::UNITS))),
        ..mga::ENTRY
    },
    Entry {
        name: "fs-llh",
        about: "the same above llh, which can be told hot files from cold ones (ftl.classifier = hint)",
        durable: Durability::Flushed,
        build: |io, blueprint| Box::new(Replay::new(io, blueprint, Below::Units(llh::UNITS))),
        ..llh::ENTRY
    },
    Entry {
        name: "fs-hotcold",
        about: "the same above hotcold: fs-llh without reuse",
        durable: Durability::Flushed,
        build: |io, blueprint| Box::new(Replay::new(io, blueprint, Below::Units(hotcold::UNITS))),
        ..hotcold::ENTRY
    },
];

/// What the layer below maps.
#[derive(Clone, Copy)]
pub(super) enum Below {
    /// Blocks, in the channel that the address names.
    Blocks,
    /// Pages.
    Pages,
    /// Subpages.
    Units(BuildUnits),
}

/// Whether `name` is a file system, whose writes are durable only after a flush.
pub fn is_file_system(name: &str) -> bool {
    ENTRIES.iter().any(|entry| entry.name == name)
}

/// The layer that does the work of `name`: the one below a file system, else `name` itself.
pub fn layer_of(name: &str) -> &str {
    match name {
        "codesign" => "block",
        name if is_file_system(name) => name.strip_prefix("fs-").unwrap_or(name),
        name => name,
    }
}

/// Blocks of each plane that the block map keeps: for a copy after a failure, and for one that a power cut interrupts.
const KEPT_BLOCKS: u32 = 2;

/// The device of a file system on a drive of `geometry` that offers `logical_pages`.
pub(super) fn shape(geometry: &Geometry, settings: &FtlSettings, logical_pages: u32) -> Shape {
    let layer = layer_of(&settings.name);
    let planes = geometry.planes();
    let spare = (geometry.pages() as u32 - logical_pages) / geometry.pages_per_block / planes;
    let frontiers = palimpsest_ftl::frontiers(layer, settings.streams);
    let half = spare.div_ceil(2).max(frontiers + 2);
    let kept = match layer {
        "block" => KEPT_BLOCKS,
        "page" => half,
        // Collection must be able to stop while all of the device is written.
        _ => half.max(settings.gc_stop.of(geometry.blocks_per_plane) + frontiers + 1),
    };
    let blocks = geometry.blocks_per_plane.saturating_sub(kept);
    if !matches!(layer, "block" | "page") {
        return Shape {
            channels: 1,
            lanes: 1,
            blocks_per_channel: planes * blocks,
            pages_per_block: geometry.subpages_per_block(),
            subpages_per_page: 1,
            page_bytes: geometry.subpage_bytes,
        };
    }
    let lanes = planes / geometry.channels;
    Shape {
        channels: geometry.channels,
        lanes,
        blocks_per_channel: lanes * blocks,
        pages_per_block: geometry.pages_per_block,
        subpages_per_page: geometry.subpages_per_page,
        page_bytes: geometry.page_bytes(),
    }
}

/// The layer below, for the device `shape`.
pub(super) fn store(io: &Io, blueprint: &Blueprint, below: Below, shape: Shape) -> Box<dyn Store> {
    let geometry = io.geometry();
    let mut inner = Blueprint {
        logical_pages: shape.pages() * shape.subpages_per_page / geometry.subpages_per_page,
        ..blueprint.clone()
    };
    inner.settings.name = layer_of(&blueprint.settings.name).into();
    let read = blueprint.settings.read;
    match below {
        Below::Blocks => Box::new(Paged { layer: Block::new(io, &inner), shape, read }),
        Below::Pages => Box::new(Paged { layer: Page::new(io, &inner), shape, read }),
        Below::Units(build) => {
            let buffered = palimpsest_ftl::find(&inner.settings.name).is_some_and(|entry| entry.buffered);
            let forgets = buffered && blueprint.acknowledge_programs;
            Box::new(Mapped { layer: build(io, &inner), shape, forgets })
        }
    }
}

/// Pages that metadata of `pages` pages of files take at the most, while the files are those of ranges of `file_bytes`.
fn metadata_pages(pages: u64, page_bytes: u32, file_bytes: u64) -> u64 {
    let files = (pages * u64::from(page_bytes)).div_ceil(file_bytes.max(1));
    // Twice: what a commit writes is there before what it replaces goes.
    128 + 2 * (pages / u64::from(page_bytes / 4) + 3 * files + 16)
}

/// Pages of `shape` that a drive of `logical_pages` offers to the host.
pub(super) fn offered(shape: Shape, geometry: &Geometry, logical_pages: u64) -> u64 {
    logical_pages * u64::from(geometry.subpages_per_page / shape.subpages_per_page)
}

/// Pages of `shape` that nothing needs: negative where the drive lacks some.
fn slack(shape: Shape, offered: u64, file_bytes: u64) -> i64 {
    FileSystem::capacity(shape) - (offered + metadata_pages(offered, shape.page_bytes, file_bytes)) as i64
}

/// When a file system that offers `offered` pages collects.
pub(super) fn thresholds(
    shape: Shape,
    offered: u64,
    settings: &palimpsest_ftl_api::file_system::FileSystemSettings,
) -> Thresholds {
    let space = f64::from(shape.pages());
    // What a full drive cannot have free is not waited for.
    let most = slack(shape, offered, settings.file_bytes).max(0) as u64 / 4;
    Thresholds {
        start: ((space * settings.gc_start) as u64).min(most),
        gain: ((space * settings.gc_gain) as u64).min(most),
    }
}

/// What a drive lacks for the file system of `settings`, in pages of flash: 0 where it has room for all that it offers to the
/// host.
pub fn lacks(settings: &FtlSettings, geometry: &Geometry, logical_pages: u64) -> u64 {
    let shape = shape(geometry, settings, logical_pages as u32);
    let slack = slack(shape, offered(shape, geometry, logical_pages), settings.fs.file_bytes);
    let lacks = slack.min(0).unsigned_abs();
    lacks.div_ceil(u64::from(geometry.subpages_per_page / shape.subpages_per_page))
}
