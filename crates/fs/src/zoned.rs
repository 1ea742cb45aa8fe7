//! Zones as the blocks of the file system (`fs-zns`): the layer below is a zoned drive, with the commands of a host.
//!
//! A block is a zone, with as many pages as the zone has capacity. The file system writes a zone at the write pointer,
//! moves the valid pages of a zone elsewhere before the reset, and never overwrites: so the drive refuses no command,
//! and copies no data. A channel is every zone on the dies of that channel. Each channel has at most one zone of files
//! and one of metadata open on each of its planes, or fewer, so that checkpoints and these stay within `zns.max_active`
//! ([`Shape::most_updating`]); with fewer active zones than channels, several channels count as one. Open zones need no
//! care, because the drive closes the one written least recently.
//!
//! After a power cut the write pointers tell which pages of a zone are written. A zone that was written in part and
//! that the file system does not continue is finished, if the drive limits active zones. Ignored: zone reports as
//! commands, and Zone Append, which the file system needs not: one request at a time has the zone.

use super::device::{LEAST_ACTIVE, Shape};
use super::layers::KEPT_BLOCKS;
use super::store::{Sectors, Store, extent, forget, read_inner};
use palimpsest_flash::command::{Lifetime, ZoneAction};
use palimpsest_flash::geometry::{Extent, Geometry, RequestKind};
use palimpsest_flash::nand::Flash;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_ftl::layers::zns::{Zns, ZnsSettings, ZonePages};
use palimpsest_ftl_api::plan::inner::Inner;
use palimpsest_ftl_api::plan::{Cause, FileSystemIo, Gate, Io};
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::{Blueprint, Ftl, Unfit, refuse_if};

/// Refuses limits that leave no zone for files.
pub(super) fn check(settings: &Settings) -> Result<(), Unfit> {
    let most = ZnsSettings::new(settings).max_active;
    refuse_if!(most > 0 && most < LEAST_ACTIVE => "zns.max_active", "ftl.name";
        "the file system writes a zone of files, one of metadata and two of checkpoints; expected {LEAST_ACTIVE} or \
         more, or 0");
    Ok(())
}

/// The device of a file system on the zones of a drive of `geometry`: all blocks but those that failed ones need.
pub(super) fn shape(geometry: &Geometry, settings: &Settings) -> Shape {
    let (zone, most) = (ZonePages::new(settings, geometry), ZnsSettings::new(settings).max_active);
    let fits = |channels: &u32| most == 0 || *channels <= most.saturating_sub(LEAST_ACTIVE - 1);
    let mut divisors = (1..=geometry.channels).rev().filter(|channels| geometry.channels.is_multiple_of(*channels));
    let channels = divisors.find(fits).unwrap_or(1);
    let lanes = geometry.planes() / channels;
    Shape {
        channels,
        lanes,
        blocks_per_channel: lanes * (geometry.blocks_per_plane.saturating_sub(KEPT_BLOCKS) / zone.blocks as u32),
        pages_per_block: zone.capacity as u32,
        subpages_per_page: geometry.subpages_per_page,
        page_bytes: geometry.page_bytes(),
        most_active: most,
    }
}

/// Subpages of all zones, from the first to the end of the last.
pub(super) fn subpages(geometry: &Geometry, settings: &Settings) -> u64 {
    let shape = shape(geometry, settings);
    u64::from(shape.blocks()) * ZonePages::new(settings, geometry).size * u64::from(shape.subpages_per_page)
}

/// The zoned drive below the file system.
pub(super) struct Zoned {
    layer: Zns,
    shape: Shape,
    /// Pages from the start of a zone to the start of the next.
    size: u32,
    /// Pages of an erase block.
    per_block: u32,
}

palimpsest_flash::state!(Zoned { layer } built { shape, size, per_block });

impl Zoned {
    pub fn new(io: &Io, blueprint: &Blueprint, shape: Shape) -> Self {
        let size = ZonePages::new(&blueprint.settings, io.geometry()).size as u32;
        let blueprint = Blueprint { logical_pages: shape.blocks() * size, ..blueprint.clone() };
        let per_block = io.geometry().pages_per_block;
        Zoned { layer: Zns::below_files(io, &blueprint), shape, size, per_block }
    }

    /// The zone of `block`. Consecutive zones are on all planes in turn, and a lane of a channel is a plane.
    fn zone(&self, block: u32) -> u32 {
        let Shape { channels, blocks_per_channel, .. } = self.shape;
        let (channel, index) = (block / blocks_per_channel, block % blocks_per_channel);
        index * channels + channel
    }

    /// The page of the drive for `page`.
    fn address(&self, page: u32) -> u32 {
        let per_zone = self.shape.pages_per_block;
        self.zone(page / per_zone) * self.size + page % per_zone
    }

    /// Pages of `block` before its write pointer.
    fn pointer(&self, block: u32) -> u32 {
        let zones = self.layer.zones().expect("a zoned drive");
        let per_page = u64::from(self.shape.page_bytes) / SECTOR_BYTES;
        zones.zone(self.zone(block)).written.div_ceil(per_page) as u32
    }

    /// Sends a command, which the drive must not refuse.
    fn command(&mut self, io: &mut Io, kind: RequestKind, extent: Extent, action: ZoneAction) -> Flash<()> {
        io.present.directives.zone = action;
        let admitted = self.layer.admit(io, kind, extent);
        let extent = admitted.unwrap_or_else(|error| panic!("{kind:?} of zone sector {}: {error:?}", extent.sector));
        match (kind, action) {
            (RequestKind::Write, _) => self.layer.write(io, extent),
            (_, ZoneAction::Finish) => self.layer.finish(io, extent),
            _ => self.layer.trim(io, extent),
        }
    }
}

impl Store for Zoned {
    fn layer(&mut self) -> &mut dyn Ftl {
        &mut self.layer
    }

    fn seen(&self) -> &dyn Ftl {
        &self.layer
    }

    fn write(&mut self, io: &mut Io, page: u32, contents: &[Data], inner: Inner) -> Flash<()> {
        let (address, width) = (self.address(page), self.shape.subpages_per_page);
        let extent = extent(self.shape, address, 1);
        io.serve_inner_write(inner, address * width, contents, |io| {
            self.command(io, RequestKind::Write, extent, ZoneAction::None)
        })
    }

    fn read(&mut self, io: &mut Io, page: u32, sectors: Sectors, contents: &mut Vec<Data>, inner: Inner) -> Flash<()> {
        let (shape, address, layer) = (self.shape, self.address(page), &mut self.layer);
        read_inner(shape, io, (address, sectors), contents, inner, |io, extent| layer.read(io, extent))
    }

    fn holds(&self, page: u32) -> bool {
        let per_zone = self.shape.pages_per_block;
        page % per_zone < self.pointer(page / per_zone)
    }

    fn locate(&self, page: u32) -> Option<u32> {
        self.layer.locate(self.address(page), self.per_block)
    }

    fn written(&self, _io: &Io, block: u32) -> u32 {
        self.pointer(block)
    }

    /// Resets the zone.
    fn trim_block(&mut self, io: &mut Io, block: u32, inner: Inner) -> Flash<()> {
        let first = self.zone(block) * self.size;
        forget(self.shape, io, first, self.size);
        let extent = extent(self.shape, first, self.size);
        io.serve_inner(inner, |io| self.command(io, RequestKind::Trim, extent, ZoneAction::None))
    }

    fn discard(&mut self, _io: &mut Io, _page: u32, _pages: u32) -> Flash<()> {
        unreachable!("zones are reset as a whole")
    }

    fn finish(&mut self, io: &mut Io, block: u32) -> Flash<()> {
        let extent = extent(self.shape, self.zone(block) * self.size, self.size);
        let (cause, lifetime) = (Cause::Merge, Lifetime::Metadata);
        let inner = Inner { cause, after: Gate::NONE, signal: Gate::NONE, lifetime };
        io.serve_inner(inner, |io| self.command(io, RequestKind::Trim, extent, ZoneAction::Finish))
    }

    fn subpages(&self) -> u32 {
        self.shape.blocks() * self.size * self.shape.subpages_per_page
    }

    fn takes_runs(&self) -> bool {
        false
    }

    fn make_durable(&mut self, _io: &mut Io, _inner: Inner) -> Flash<()> {
        Ok(())
    }
}
