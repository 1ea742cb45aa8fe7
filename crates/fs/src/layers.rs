//! The registry of file systems above layers, and the device that each layer is to its file system.
//!
//! `fs-zns` is above zones ([`zoned`]): its blocks are zones.
//!
//! `codesign` is above the block map, which keeps two blocks of each plane for copies after failures; the file system
//! has all other blocks. With superblocks or parity, a channel of the file system is a group of dies, and the scheme
//! chooses among groups. `fs-page` is the same file system above the page map, without hints: the map chooses channels
//! in turn (`fs.scheme` has no effect), and keeps half of the spare blocks for its own collection.
//!
//! The others are above layers that map subpages. Their page is a subpage, so that a small write is one subpage at the
//! next address, which the layer packs with its neighbours: `mga` by partial programs, `subpage`, `spftl` and `fdp` in
//! their merge buffer, `llh` and `hotcold` in the buffer of a bank. The layer chooses channels: the file system sees
//! one, with blocks of as many pages as a block of the part has subpages. The layer keeps half of the spare blocks, and
//! at least the blocks that must be free for its collection to stop.
//!
//! `layers` and `replay` use each other: the registry builds a `Replay`, and a `Replay` computes the dimensions of its
//! device here, as the check of the configuration does.

use super::device::Shape;
use super::replay::Replay;
use super::settings::{
    DISCARD, Discard, FileSystemSettings, KEYS, TURN, keys_with_schemes, varies, varies_with_discards,
};
use super::store::{Mapped, Paged, Store};
use super::zoned::{self, Zoned};
use super::{FileSystem, Thresholds};
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::part::Part;
use palimpsest_ftl::layers::block::{self, Block};
use palimpsest_ftl::layers::page::{self, Page};
use palimpsest_ftl::layers::pages::BuildSubpageLayer;
use palimpsest_ftl::layers::{fdp, hotcold, llh, mga, spread, subpage, zns};
use palimpsest_ftl_api::keys::blocks::BlockCount;
use palimpsest_ftl_api::keys::{Key, keys_of};
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::plan::select::ReadPolicy;
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Blueprint, Entry, Model, Proposal, Unfit, refuse_if};

/// A file system called `$name` above the layer `$below`, whose keys and needs it inherits.
macro_rules! file_system {
    ($name:literal, $below:path, $unit:expr, $keys:expr, $hides:expr, $varies:expr; $about:literal) => {
        Entry {
            name: $name,
            about: $about,
            keys: $keys,
            below: Some(&$below),
            hides: $hides,
            check: |proposal| check(proposal, Below { entry: &$below, unit: $unit }),
            model: Model { varies: $varies, ..MODEL },
            tables: |_, geometry, _| 4 * geometry.subpages(),
            build: |io, blueprint| Box::new(Replay::new(io, blueprint, Below { entry: &$below, unit: $unit })),
            ..$below
        }
    };
}

/// Below `fs-page` all writes are of one stream.
const CLASSIFIERS: &[&str] = &["ftl.classifier", "ftl.hot_below"];
/// A file system does not rewrite an address that waits in a buffer.
const ABSORBED: &[&str] = &["ftl.absorb"];

/// Keys that reclaim units fix.
const HANDLES: &[&str] = fdp::SUBPAGE.hides;

const PACKED: fn() -> Vec<&'static Key> = || keys_of(&[KEYS, DISCARD]);

/// File systems above layers.
pub const ENTRIES: &[Entry] = &[
    file_system!("codesign", block::ENTRY, MappedUnit::Block, keys_with_schemes, &[], varies;
        "file system that updates out of place and chooses channels (fs.scheme), above the block map"),
    Entry {
        tables: |settings, geometry, _| 4 * zoned::subpages(geometry, settings),
        ..file_system!("fs-zns", zns::BELOW_FILES, MappedUnit::Zone, keys_with_schemes, zns::ENTRY.hides, varies;
            "the same file system on zones, which it writes in order and resets")
    },
    file_system!("fs-page", page::ENTRY, MappedUnit::Page, || keys_of(&[TURN, KEYS, DISCARD]), CLASSIFIERS,
        varies_with_discards;
        "the same file system above the page map, which chooses channels in turn"),
    file_system!("fs-subpage", subpage::ENTRY, MappedUnit::Subpage(subpage::UNITS), PACKED, &[], varies_with_discards;
        "the same file system, its pages subpages, above the fine-grained map"),
    file_system!("fs-fdp", fdp::SUBPAGE, MappedUnit::Subpage(fdp::UNITS), PACKED, HANDLES, varies_with_discards;
        "the same above fdp-subpage, with handles by identifier, owner or lifetime (ftl.classifier)"),
    file_system!("fs-spftl", spread::SPFTL, MappedUnit::Subpage(subpage::UNITS), PACKED, &[], varies_with_discards;
        "the same above spftl, which senses only the wanted words"),
    file_system!("fs-mga", mga::ENTRY, MappedUnit::Subpage(mga::UNITS), PACKED, &[], varies_with_discards;
        "the same above mga, which programs pages again"),
    file_system!("fs-llh", llh::ENTRY, MappedUnit::Subpage(llh::UNITS), PACKED, ABSORBED, varies_with_discards;
        "the same above llh, with lifetime hints (ftl.classifier = hint)"),
    file_system!("fs-hotcold", hotcold::ENTRY, MappedUnit::Subpage(hotcold::UNITS), PACKED, ABSORBED,
        varies_with_discards; "the same above hotcold: fs-llh without reuse"),
];

/// Drives with room for metadata.
const MODEL: Model = Model { needs: &["ssd.over_provisioning=200%"], varies, blocks: 80, ..Model::ANY };

/// The layer below a file system.
#[derive(Clone, Copy)]
pub(super) struct Below {
    entry: &'static Entry,
    /// The unit that the layer maps.
    pub unit: MappedUnit,
}

/// The unit that a layer maps.
#[derive(Clone, Copy)]
pub(super) enum MappedUnit {
    /// A block, in the channel of its address.
    Block,
    /// A zone, on the dies that its number names.
    Zone,
    Page,
    Subpage(BuildSubpageLayer),
}

impl MappedUnit {
    /// Whether the file system chooses channels.
    pub fn has_channels(self) -> bool {
        matches!(self, MappedUnit::Block | MappedUnit::Zone)
    }
}

/// A file system needs room beside the logical space of the drive: for metadata, and for collection.
fn check(proposal: &Proposal<'_>, below: Below) -> Result<(), Unfit> {
    let Proposal { settings, part, geometry, logical_pages } = *proposal;
    let own = FileSystemSettings::new(settings);
    refuse_if!(own.discard == Discard::Pages && below.unit.has_channels() => "fs.discard", "ftl.name"
        => ["fs.discard" = "block"], ["fs.discard" = "auto"]; "a block map unmaps whole blocks only");
    refuse_if!(geometry.page_bytes() < 512 => "ftl.name", "part.page_size";
        "a file system needs pages of 512 bytes at the least");
    if matches!(below.unit, MappedUnit::Zone) {
        zoned::check(settings)?;
    }
    let shape = shape(geometry, part, settings, below, logical_pages as u32);
    let slack = slack(shape, offered(shape, geometry, logical_pages), own.file_bytes);
    let lacks = slack.unsigned_abs().div_ceil(u64::from(geometry.subpages_per_page / shape.subpages_per_page));
    refuse_if!(slack < 0 => "ssd.over_provisioning", "ssd.blocks_per_plane"
        => ["ssd.over_provisioning" = "15%"], ["ssd.over_provisioning" = "28%"], ["ssd.over_provisioning" = "40%"],
        ["ssd.over_provisioning" = "60%"], ["ssd.over_provisioning" = "100%"], ["ssd.over_provisioning" = "200%"];
        "the file system of {} needs {lacks} more spare pages for metadata and for collection; expected more \
         over-provisioning, or more blocks", settings.name);
    Ok(())
}

/// Blocks of each plane that the block map or the zoned drive keeps: one for a copy after a failure, one for a copy
/// that a power cut interrupts.
pub(super) const KEPT_BLOCKS: u32 = 2;

/// The device of a file system on a drive of `geometry` that offers `logical_pages`.
pub(super) fn shape(geometry: &Geometry, part: &Part, settings: &Settings, below: Below, logical_pages: u32) -> Shape {
    let planes = geometry.planes();
    let spare = (geometry.pages() as u32 - logical_pages) / geometry.pages_per_block / planes;
    let frontiers = below.entry.frontiers(settings);
    let half = spare.div_ceil(2).max(frontiers + 2);
    let kept = match below.unit {
        MappedUnit::Zone => return zoned::shape(geometry, settings),
        MappedUnit::Block => KEPT_BLOCKS,
        MappedUnit::Page => half,
        // Collection must be able to stop while all pages of the device are written.
        MappedUnit::Subpage(_) => {
            let stop = ["ftl.gc_stop", "ftl.gc_idle_stop"]
                .map(|key| settings.get::<BlockCount>(key).of(geometry.blocks_per_plane));
            half.max(stop[0].max(stop[1]) + frontiers + 1)
        }
    };
    let blocks = geometry.blocks_per_plane.saturating_sub(kept);
    if matches!(below.unit, MappedUnit::Subpage(_)) {
        // Space for collection is a number of blocks, which superblocks would multiply.
        let members = geometry.pages_per_block / part.pages_per_block;
        return Shape {
            channels: 1,
            lanes: 1,
            blocks_per_channel: planes * blocks * members,
            pages_per_block: geometry.subpages_per_block() / members,
            subpages_per_page: 1,
            page_bytes: geometry.subpage_bytes,
            most_active: 0,
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
        most_active: 0,
    }
}

/// The layer below, as the device of `shape`.
pub(super) fn store(io: &Io, blueprint: &Blueprint, below: Below, shape: Shape) -> Box<dyn Store> {
    let geometry = io.geometry();
    let inner = Blueprint {
        logical_pages: shape.pages() * shape.subpages_per_page / geometry.subpages_per_page,
        settings: blueprint.settings.for_layer(below.entry.name),
        ..blueprint.clone()
    };
    let read = ReadPolicy::new(&inner.settings);
    match below.unit {
        MappedUnit::Zone => Box::new(Zoned::new(io, &inner, shape)),
        MappedUnit::Block => Box::new(Paged { layer: Block::new(io, &inner), shape, read }),
        MappedUnit::Page => Box::new(Paged { layer: Page::new(io, &inner), shape, read }),
        MappedUnit::Subpage(build) => {
            let volatile = below.entry.gathers && !blueprint.protected;
            Box::new(Mapped { layer: build(io, &inner), shape, volatile })
        }
    }
}

/// An upper bound of the metadata pages of `pages` file pages, in files of ranges of `file_bytes`.
fn metadata_pages(pages: u64, page_bytes: u32, file_bytes: u64) -> u64 {
    let files = (pages * u64::from(page_bytes)).div_ceil(file_bytes.max(1));
    // Twice: a commit writes all copies before it invalidates the previous ones.
    128 + 2 * (pages / u64::from(page_bytes / 4) + 3 * files + 16)
}

/// Pages of `shape` that a drive of `logical_pages` offers to the host.
pub(super) fn offered(shape: Shape, geometry: &Geometry, logical_pages: u64) -> u64 {
    logical_pages * u64::from(geometry.subpages_per_page / shape.subpages_per_page)
}

/// Pages of `shape` beyond the needed ones; negative if the drive lacks some.
fn slack(shape: Shape, offered: u64, file_bytes: u64) -> i64 {
    FileSystem::capacity(shape) - (offered + metadata_pages(offered, shape.page_bytes, file_bytes)) as i64
}

/// The collection thresholds of a file system that offers `offered` pages, and the remark on thresholds that a full
/// drive could not reach.
pub(super) fn thresholds(shape: Shape, offered: u64, settings: &FileSystemSettings) -> (Thresholds, Option<String>) {
    let space = f64::from(shape.pages());
    let pages = |share: f64| (space * share) as u64;
    let asked = Thresholds { start: pages(settings.gc_start), gain: pages(settings.gc_gain) };
    let spare = slack(shape, offered, settings.file_bytes).max(0) as u64;
    let reached = asked.reachable(shape, spare);
    let percent = |pages: u64| format!("{:.2} %", 100.0 * pages as f64 / space);
    let remark = format!(
        "a full drive cannot have the space free that fs.gc_start and fs.gc_gain want: collection starts below {} free \
         and stops when {} more is free",
        percent(reached.start),
        percent(reached.gain)
    );
    (reached, (reached != asked).then_some(remark))
}
