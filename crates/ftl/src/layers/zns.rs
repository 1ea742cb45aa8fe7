//! `zns`: zones above the block map (NVMe Zoned Namespace Command Set Specification 1.1).
//!
//! A zone is one or several erase blocks, each on all planes of `zns.zone_dies` dies, whose pages take turns: the
//! blocks are superblocks of [`super::block`], and consecutive zones are on the groups of dies in turn. The host writes
//! at the write pointer only, so a page is programmed once, in order, and nothing is ever collected. A reset erases the
//! blocks; it is answered at once, and later writes to the zone follow the erases. A finish programs the rest of the
//! zone with zeros. The states, limits and errors are those of [`palimpsest_ftl_api::zones`].
//!
//! The last page of a zone waits in the write buffer until it is full. A protected buffer keeps the page; else a flush
//! or a timeout programs it as it is, and the write that continues the page copies its erase block, as does the repair
//! of a failed block. After a power cut the write pointer follows the last programmed subpage, and open zones are
//! closed.
//!
//! Ignored: random write areas, reset and finish recommended, and dies whose planes belong to different zones.

mod below_files;

use super::block::{self, Block, ZoneShape};
use super::pages::MapsPages;
use crate::extent::pages;
pub use below_files::BELOW_FILES;
use palimpsest_flash::command::ZoneAction;
use palimpsest_flash::geometry::{Extent, Geometry, RequestKind};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, first_subpages};
use palimpsest_flash::rng::Rng;
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_ftl_api::keys::keys_of;
use palimpsest_ftl_api::plan::port::{Piece, pieces};
use palimpsest_ftl_api::plan::select::ReadPolicy;
use palimpsest_ftl_api::plan::{Cause, Gate, Io, Read};
use palimpsest_ftl_api::settings::Settings;
use palimpsest_ftl_api::zones::{ZoneError, ZoneFigures, ZoneState, Zones};
use palimpsest_ftl_api::{Blueprint, Entry, Ftl, LayerFigures, Model, Proposal, Unfit, keys, refuse_if};
use std::collections::BTreeMap;

keys! {
    /// The zones of the drive.
    #[derive(Debug, Clone)]
    pub struct ZnsSettings;

    /// The keys of `zns`.
    group pub KEYS {
        /// dies that a zone is on, whose planes take turns from page to page; 0: all dies. With parity (ftl.rain) a
        /// zone is on the dies of a stripe
        pub dies: u32 = "zns.zone_dies", Count { min: 0, max: 65_535 }, "0", needs["ftl.rain = 0"];
        /// bytes of a zone that can be written, rounded up to erase blocks on its dies for the space it takes; 0: one
        /// erase block on each plane of its dies
        pub capacity: u64 = "zns.zone_capacity", Bytes { min: 0, max: 1 << 50 }, "0B";
        /// bytes from the start of a zone to the start of the next; 0: the capacity
        pub size: u64 = "zns.zone_size", Bytes { min: 0, max: 1 << 50 }, "0B";
        /// most open zones (Maximum Open Resources); 0: no limit
        pub max_open: u32 = "zns.max_open", Count { min: 0, max: 1 << 20 }, "14";
        /// most active zones, open or closed (Maximum Active Resources); 0: no limit
        pub max_active: u32 = "zns.max_active", Count { min: 0, max: 1 << 20 }, "14";
    }
}

pub const ENTRY: Entry = Entry {
    name: "zns",
    about: "zones that the host writes in order and resets (Zoned Namespaces)",
    keys: || [(block::ENTRY.keys)(), keys_of(&[KEYS])].concat(),
    fixes: fixed,
    hides: &["ftl.superblocks", "ftl.superblock_planes", "ftl.superblock_dies", "ftl.allocation"],
    zoned: true,
    gathers: true,
    exported: |settings, geometry, pages| ZonePages::new(settings, geometry).exported(pages),
    check,
    model: Model { needs: &["zns.zone_dies=1"], varies, ..Model::ANY },
    build: |io, blueprint| Box::new(Zns::new(io, blueprint)),
    ..block::ENTRY
};

/// Sizes of a zone in pages.
pub struct ZonePages {
    /// Pages that can be written.
    pub capacity: u64,
    /// Pages from the start of a zone to the start of the next.
    pub size: u64,
    /// Erase blocks.
    pub blocks: u64,
    per_block: u64,
}

impl ZonePages {
    /// The sizes that the settings give.
    pub fn new(settings: &Settings, geometry: &Geometry) -> Self {
        let ZnsSettings { capacity, size, .. } = ZnsSettings::new(settings);
        let (per_block, page) = (u64::from(geometry.pages_per_block), u64::from(geometry.page_bytes()));
        let capacity = if capacity == 0 { per_block } else { (capacity / page).max(1) };
        let size = if size == 0 { capacity } else { size / page }.max(capacity);
        ZonePages { capacity, size, blocks: capacity.div_ceil(per_block), per_block }
    }

    /// Pages of all whole zones of a drive with room for `pages` pages of data.
    fn exported(&self, pages: u64) -> u64 {
        pages / (self.blocks * self.per_block) * self.size
    }
}

/// Superblocks of all planes of the dies of a zone, if these are several planes.
fn fixed(settings: &Settings) -> Vec<(&'static str, String)> {
    let dies = ZnsSettings::new(settings).dies;
    let planes: u32 = settings.get("ssd.planes_per_die");
    let collected = settings.get::<u32>("ftl.rain") == 0 && (dies != 1 || planes > 1);
    let fixed = [
        ("ftl.superblocks", if collected { "collected" } else { "allocated" }.into()),
        ("ftl.superblock_planes", "all".into()),
        ("ftl.superblock_dies", if collected { dies } else { 0 }.to_string()),
        ("ftl.allocation", "round-robin".into()),
    ];
    fixed.into()
}

fn check(proposal: &Proposal<'_>) -> Result<(), Unfit> {
    check_zones(proposal)?;
    let Proposal { settings, geometry, logical_pages, .. } = proposal;
    let (page, buffer) = (u64::from(geometry.page_bytes()), settings.get::<u64>("buffer.size"));
    let (most, zones) =
        (ZnsSettings::new(settings).max_active, logical_pages / ZonePages::new(settings, geometry).size);
    let most = if most == 0 { zones } else { zones.min(most.into()) };
    refuse_if!(buffer < (most + 1) * page => "buffer.size", "zns.max_active", "part.page_size";
        "each active zone may have a page in the write buffer, beside the write that is served; expected {} bytes or \
         more, or fewer active zones", (most + 1) * page);
    Ok(())
}

/// Refuses zones that do not fit the drive or each other.
fn check_zones(proposal: &Proposal<'_>) -> Result<(), Unfit> {
    let Proposal { settings, geometry, logical_pages, .. } = proposal;
    let ZnsSettings { dies, capacity, size, max_open, max_active } = ZnsSettings::new(settings);
    let of = ["ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip"].map(|key| settings.get::<u32>(key));
    let of: u32 = of.iter().product();
    refuse_if!(dies > 0 && !of.is_multiple_of(dies)
        => "zns.zone_dies", "ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip";
        "the drive has {of} dies; expected a number that divides it, or 0");
    let page = u64::from(geometry.page_bytes());
    refuse_if!(!capacity.is_multiple_of(page) => "zns.zone_capacity", "part.page_size";
        "expected whole pages of {page} bytes");
    refuse_if!(!size.is_multiple_of(page) => "zns.zone_size", "part.page_size"; "expected whole pages of {page} bytes");
    let zone = ZonePages::new(settings, geometry);
    refuse_if!(size > 0 && size < zone.capacity * page => "zns.zone_size", "zns.zone_capacity";
        "a zone has {} bytes that can be written; expected no smaller size, or 0", zone.capacity * page);
    refuse_if!(max_active > 0 && (max_open > max_active || max_open == 0) => "zns.max_open", "zns.max_active";
        "an open zone is active; expected no more open than active zones");
    refuse_if!(*logical_pages == 0 => "zns.zone_capacity", "ssd.blocks_per_plane", "ssd.over_provisioning";
        "a zone has {} erase blocks on its dies, and the drive has not that many beside its spare blocks; expected \
         smaller zones, or more blocks", zone.blocks);
    let subpages = logical_pages * u64::from(geometry.subpages_per_page);
    refuse_if!(subpages >= (1 << 32) - (1 << 18) || zone.size > 1 << 31 => "zns.zone_size", "zns.zone_capacity";
        "that makes {subpages} subpages of addresses, more than can be simulated; expected less between two zones");
    Ok(())
}

/// Zones of one die and of several, of one erase block and of several, and with addresses that hold nothing.
fn varies(rng: &mut Rng, drawn: &[String]) -> Vec<String> {
    let number = |key: &str| {
        let value = drawn.iter().find_map(|setting| setting.strip_prefix(key)?.strip_prefix('='));
        value.and_then(|value| value.trim_end_matches('B').parse::<u64>().ok())
    };
    let page = number("part.page_size").unwrap_or(4096) * number("part.pages_per_program").unwrap_or(1);
    let pages = number("part.pages_per_block").unwrap_or(4);
    let active = 1 + rng.below(5);
    let mut varied = vec![
        format!("zns.zone_dies={}", rng.below(2)),
        format!("zns.max_active={active}"),
        format!("zns.max_open={}", 1 + rng.below(active)),
        format!("buffer.size={}B", page * (active + 1 + rng.below(4))),
    ];
    if rng.below(3) == 0 {
        let capacity = page * (pages - 1 + rng.below(pages + 2));
        varied.push(format!("zns.zone_capacity={capacity}B"));
        varied.push(format!("zns.zone_size={}B", capacity + page * rng.below(3)));
    }
    varied
}

/// The page at the write pointer of a zone, which is not full yet.
#[derive(Default)]
struct Tail {
    /// Page of the block map.
    page: u32,
    contents: Vec<Data>,
    /// Subpages held in the write buffer.
    held: u32,
    /// Closes when the contents read from flash have arrived.
    ready: Gate,
    /// Closes when the page is programmed.
    done: Gate,
    /// Arrival of the oldest subpage.
    since: Nanos,
}

palimpsest_flash::state!(Tail { page, contents, held, ready, done, since });

/// The layer.
pub struct Zns {
    zones: Zones,
    block: Block,
    /// The page at the write pointer of each zone where it is partly in memory.
    tails: BTreeMap<u32, Tail>,
    padded_pages: u64,
    shape: ZoneShape,
    capacity_pages: u32,
    width: u32,
    /// Subpages of the write buffer that a page written whole takes.
    room: u32,
    per_subpage: u32,
    read: ReadPolicy,
    protected: bool,
    timeout: Nanos,
    /// Contents of the page to program.
    contents: Vec<Data>,
}

palimpsest_flash::state!(Zns { zones, block, tails, padded_pages } built {
    shape, capacity_pages, width, room, per_subpage, read, protected, timeout, contents
});

impl Zns {
    /// The layer on erased flash.
    pub fn new(io: &Io, blueprint: &Blueprint) -> Self {
        let geometry = io.geometry();
        let zone = ZonePages::new(&blueprint.settings, geometry);
        let ZnsSettings { max_open, max_active, .. } = ZnsSettings::new(&blueprint.settings);
        let shape = ZoneShape { blocks: zone.blocks as u32, pages: zone.size as u32 };
        let count = blueprint.logical_pages / shape.pages;
        let per_subpage = geometry.subpage_bytes / SECTOR_BYTES as u32;
        let per_page = u64::from(geometry.page_bytes()) / SECTOR_BYTES;
        let (size, capacity) = (zone.size * per_page, zone.capacity * per_page);
        Zns {
            zones: Zones::new(count, size, capacity, per_subpage.into(), (max_open, max_active)),
            block: Block::of_zones(io, blueprint, count, shape),
            tails: BTreeMap::new(),
            padded_pages: 0,
            shape,
            capacity_pages: zone.capacity as u32,
            width: geometry.subpages_per_page,
            room: geometry.subpages_per_page,
            per_subpage,
            read: ReadPolicy::new(&blueprint.settings),
            protected: blueprint.protected,
            timeout: blueprint.buffer_timeout,
            contents: Vec::new(),
        }
    }

    fn sectors_per_page(&self) -> u64 {
        u64::from(self.width * self.per_subpage)
    }

    /// The page of the block map for `page` of the host; `None` beyond the capacity of its zone.
    fn inner(&self, page: u32, per_block: u32) -> Option<u32> {
        let (zone, place) = (page / self.shape.pages, page % self.shape.pages);
        (place < self.capacity_pages).then(|| zone * self.shape.blocks * per_block + place)
    }

    /// The page of the block map at the write pointer of `zone`, and the subpages there that are written.
    fn at_pointer(&self, io: &Io, zone: u32) -> (u32, u32) {
        let subpages = (self.zones.zone(zone).written / u64::from(self.per_subpage)) as u32;
        let first = zone * self.shape.blocks * io.geometry().pages_per_block;
        (first + subpages / self.width, subpages % self.width)
    }

    /// Programs the page of `self.contents` at the write pointer of `zone`.
    fn program(&mut self, io: &mut Io, zone: u32, cause: Cause, gates: (Gate, Gate, u32)) -> Flash<()> {
        let (page, _) = self.at_pointer(io, zone);
        let filled = self.contents.len() as u32;
        self.contents.resize(self.width as usize, Data::ZERO);
        self.block.write_part(io, (page, filled), &self.contents, cause, gates)
    }

    /// Programs the tail of `zone`. If flash halts, the tail stays.
    fn program_tail(&mut self, io: &mut Io, zone: u32, cause: Cause) -> Flash<()> {
        let Some(tail) = self.tails.remove(&zone) else { return Ok(()) };
        self.contents.clear();
        self.contents.extend_from_slice(&tail.contents);
        if let Err(halt) = self.program(io, zone, cause, (tail.ready, tail.done, tail.held)) {
            self.tails.insert(zone, tail);
            return Err(halt);
        }
        tail.contents.iter().for_each(|&data| io.unpin(data));
        Ok(())
    }

    /// Brings the subpages before the write pointer of `zone` into a tail, if its page was programmed in part.
    fn reopen(&mut self, io: &mut Io, zone: u32) -> Flash<()> {
        let (page, filled) = self.at_pointer(io, zone);
        if filled == 0 || self.tails.contains_key(&zone) {
            return Ok(());
        }
        let mut tail = Tail { page, since: io.now(), ..Tail::default() };
        if let Some(ppn) = self.block.locate(page) {
            tail.ready = io.gate();
            let (subpages, policy) = (first_subpages(self.width), self.read);
            io.read(Read { policy, signal: tail.ready, ..Read::new(ppn, subpages, Cause::Rmw) })?;
            tail.contents.extend((0..filled).map(|subpage| io.load_subpage(ppn * self.width + subpage)));
        }
        tail.contents.resize(filled as usize, Data::ZERO);
        tail.contents.iter().for_each(|&data| io.pin(data));
        self.tails.insert(zone, tail);
        Ok(())
    }

    /// Writes `piece`, a whole subpage at the write pointer of `zone`, into the tail, and programs a full page.
    fn gather(&mut self, io: &mut Io, zone: u32, piece: Piece) -> Flash<()> {
        let data = io.written(piece, Data::ZERO);
        io.pin(data);
        io.present.buffer_taken += 1;
        let (signal, since) = (io.program_signal(self.protected), io.now());
        let (page, _) = self.at_pointer(io, zone);
        let tail = self.tails.entry(zone).or_insert_with(|| Tail { page, since, ..Tail::default() });
        tail.contents.push(data);
        tail.held += 1;
        if !signal.is_none() {
            if tail.done.is_none() {
                tail.done = io.gate();
            }
            io.link(tail.done, signal);
        }
        let full = tail.contents.len() as u32 == self.width;
        if full {
            self.program_tail(io, zone, Cause::Host)?;
        }
        let written = self.zones.zone(zone).written + u64::from(self.per_subpage);
        self.zones.advance(zone, written);
        Ok(())
    }

    /// Programs all tails that wait since `before` or earlier.
    fn program_tails(&mut self, io: &mut Io, before: Nanos, signal: Gate) -> Flash<()> {
        let waiting = self.tails.iter().filter(|(_, tail)| tail.held > 0 && tail.since <= before);
        for zone in waiting.map(|(&zone, _)| zone).collect::<Vec<_>>() {
            let Some(tail) = self.tails.get_mut(&zone) else { continue };
            if !signal.is_none() {
                if tail.done.is_none() {
                    tail.done = io.gate();
                }
                io.link(tail.done, signal);
            }
            self.program_tail(io, zone, Cause::Host)?;
        }
        Ok(())
    }

    /// Drops the tail of `zone`. A tail that requests wait for is programmed, which ends their waiting.
    fn drop_tail(&mut self, io: &mut Io, zone: u32) -> Flash<()> {
        if self.tails.get(&zone).is_some_and(|tail| !tail.done.is_none()) {
            return self.program_tail(io, zone, Cause::Host);
        }
        if let Some(tail) = self.tails.remove(&zone) {
            tail.contents.iter().for_each(|&data| io.unpin(data));
            io.present.buffer_freed += tail.held;
        }
        Ok(())
    }

    /// Subpages up to the last one that flash holds of `zone`.
    fn found(&self, io: &Io, zone: u32) -> u32 {
        let first = zone * self.shape.blocks * io.geometry().pages_per_block;
        let last = (0..self.capacity_pages).rev().find(|page| self.block.locate(first + page).is_some());
        last.map_or(0, |page| page * self.width + self.block.filled(first + page))
    }
}

impl Ftl for Zns {
    palimpsest_ftl_api::keeps_state!();

    fn unit_subpages(&self) -> u32 {
        1
    }

    fn trim_subpages(&self) -> u32 {
        self.shape.pages * self.width
    }

    fn zones(&self) -> Option<&Zones> {
        Some(&self.zones)
    }

    fn admit(&mut self, io: &Io, kind: RequestKind, extent: Extent) -> Result<Extent, ZoneError> {
        let action = io.directives().zone;
        let (first, end) = (self.zones.zone_of(extent.sector), extent.end().div_ceil(self.zones.size) as u32);
        let admitted = match kind {
            RequestKind::Write => {
                let sector = self.zones.admit_write(extent.sector, extent.sectors.into(), action == ZoneAction::Append);
                sector.map(|sector| Extent { sector, ..extent })
            }
            RequestKind::Trim => {
                (first..end).try_for_each(|zone| self.zones.admit_action(zone, action)).map(|()| extent)
            }
            RequestKind::Read if (first..end).any(|zone| self.zones.zone(zone).state == ZoneState::Offline) => {
                Err(ZoneError::ZoneIsOffline)
            }
            RequestKind::Read | RequestKind::Flush => Ok(extent),
        };
        admitted.or_else(|error| self.zones.fail(error))
    }

    fn finish(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        let zone = self.zones.zone_of(extent.sector);
        self.reopen(io, zone)?;
        let (first, size) = (zone * self.shape.blocks * io.geometry().pages_per_block, self.sectors_per_page());
        let signal = io.request();
        while self.zones.zone(zone).state != ZoneState::Full {
            let (page, filled) = self.at_pointer(io, zone);
            let (mut gates, mut cause) = ((Gate::NONE, signal, 0), Cause::Merge);
            self.contents.clear();
            if let Some(tail) = self.tails.get(&zone).filter(|_| filled > 0) {
                self.contents.extend_from_slice(&tail.contents);
                gates = (tail.ready, if tail.done.is_none() { signal } else { tail.done }, tail.held);
                io.link(tail.done, signal);
                // Programs of the host's data follow the data's arrival.
                cause = if tail.held > 0 { Cause::Host } else { cause };
            }
            self.contents.resize(self.width as usize, Data::ZERO);
            self.program(io, zone, cause, gates)?;
            if let Some(tail) = self.tails.remove(&zone) {
                tail.contents.iter().for_each(|&data| io.unpin(data));
            }
            self.padded_pages += 1;
            self.zones.advance(zone, u64::from(page - first + 1) * size);
        }
        Ok(())
    }

    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        if io.nand().is_rebuilding() {
            self.block.background(io)?;
        }
        let zone = self.zones.zone_of(extent.sector);
        self.reopen(io, zone)?;
        let size = self.sectors_per_page();
        for (page, first, sectors) in pages(extent, size) {
            let part = Extent { sector: u64::from(page) * size + u64::from(first), sectors };
            if u64::from(sectors) < size {
                for piece in pieces(part, self.per_subpage) {
                    self.gather(io, zone, piece)?;
                }
                continue;
            }
            self.contents.clear();
            self.contents.extend(pieces(part, self.per_subpage).map(|piece| io.written(piece, Data::ZERO)));
            io.present.buffer_taken += self.room;
            let (after, signal) = (io.arrival(), io.program_signal(self.protected));
            self.program(io, zone, Cause::Host, (after, signal, self.room))?;
            let written = self.zones.zone(zone).written + size;
            self.zones.advance(zone, written);
        }
        Ok(())
    }

    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        let (width, per_block) = (self.width, io.geometry().pages_per_block);
        for (page, first, sectors) in pages(extent, self.sectors_per_page()) {
            let (begin, end) = (first / self.per_subpage, (first + sectors).div_ceil(self.per_subpage));
            let zone = page / self.shape.pages;
            let inner = self.inner(page, per_block);
            let tail = self.tails.get(&zone).filter(|_| inner == Some(self.at_pointer(io, zone).0));
            // The subpages in memory come first, because a tail holds its page from the start.
            let held = tail.map_or(0, |tail| tail.contents.len() as u32).min(end).max(begin);
            if let Some(tail) = tail.filter(|_| held > begin) {
                io.link(tail.ready, io.request());
                io.count_buffered(held - begin);
            }
            let located = inner.filter(|_| tail.is_none()).and_then(|inner| {
                let filled = self.block.filled(inner).clamp(begin, end);
                Some((self.block.locate(inner)?, filled)).filter(|_| filled > begin)
            });
            let unwritten = match located {
                Some((ppn, filled)) => {
                    let wanted = first_subpages(filled - begin) << begin;
                    let read = sectors.min(filled * self.per_subpage - first);
                    let (words, policy) = (io.nand().words_of(first, read), self.read);
                    let (after, signal) = (io.arrival(), io.request());
                    io.read(Read { words, policy, after, signal, ..Read::new(ppn, wanted, Cause::Host) })?;
                    end - filled
                }
                None => end - held,
            };
            if unwritten > 0 {
                io.count_unwritten(unwritten);
            }
            for subpage in (begin..end).filter(|_| io.host.has_contents()).collect::<Vec<_>>() {
                let data = match (self.tails.get(&zone).filter(|_| subpage < held), located) {
                    (Some(tail), _) => tail.contents[subpage as usize],
                    (None, Some((ppn, filled))) if subpage < filled => io.load_subpage(ppn * width + subpage),
                    _ => Data::ZERO,
                };
                io.deliver(page * width + subpage, data);
            }
        }
        Ok(())
    }

    fn trim(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        for zone in self.zones.zone_of(extent.sector)..extent.end().div_ceil(self.zones.size) as u32 {
            self.drop_tail(io, zone)?;
            for block in zone * self.shape.blocks..(zone + 1) * self.shape.blocks {
                self.block.trim_block(io, block, io.arrival())?;
            }
            self.zones.reset(zone);
        }
        Ok(())
    }

    fn flush(&mut self, io: &mut Io) -> Flash<()> {
        if io.plan.flush_is_free {
            return Ok(());
        }
        self.program_tails(io, Nanos::MAX, io.request())
    }

    fn deadline(&self) -> Option<Nanos> {
        if self.protected || self.timeout == 0 {
            return None;
        }
        self.tails.values().filter(|tail| tail.held > 0).map(|tail| tail.since + self.timeout).min()
    }

    fn timer(&mut self, io: &mut Io) -> Flash<()> {
        self.program_tails(io, io.now().saturating_sub(self.timeout), Gate::NONE)
    }

    fn background(&mut self, io: &mut Io) -> Flash<bool> {
        self.block.background(io)
    }

    fn relocate(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        self.block.relocate(io, block)
    }

    fn recover(&mut self, io: &mut Io) -> Flash<()> {
        if self.protected {
            self.tails.values_mut().for_each(|tail| (tail.ready, tail.done) = (Gate::NONE, Gate::NONE));
        } else {
            self.tails.clear();
        }
        self.block.recover(io)?;
        for zone in 0..self.zones.len() {
            let sectors = |subpages: u32| u64::from(subpages) * u64::from(self.per_subpage);
            let (found, width) = (self.found(io, zone), self.width);
            let first = zone * self.shape.blocks * io.geometry().pages_per_block;
            let Some(tail) = self.tails.get(&zone) else {
                self.zones.found(zone, sectors(found));
                continue;
            };
            let (before, held) = ((tail.page - first) * width, tail.contents.len() as u32);
            if found >= before + held {
                // The copy of its block was finished: only the erase of the old block was interrupted.
                tail.contents.iter().for_each(|&data| io.unpin(data));
                self.tails.remove(&zone);
                self.zones.found(zone, sectors(found));
                continue;
            }
            self.zones.found(zone, sectors(if held == width { before } else { before + held }));
            if held == width {
                self.program_tail(io, zone, Cause::Host)?;
                self.zones.found(zone, u64::from(before + held) * u64::from(self.per_subpage));
            }
        }
        Ok(())
    }

    fn check(&mut self, io: &Io) -> Result<(), String> {
        self.zones.check()?;
        for zone in 0..self.zones.len() {
            let written = (self.zones.zone(zone).written / u64::from(self.per_subpage)) as u32;
            let (found, tail) = (self.found(io, zone), self.tails.get(&zone));
            let held = tail.map_or(written, |tail| written / self.width * self.width + tail.contents.len() as u32);
            if held != written || found > written || tail.is_none() && found != written {
                return Err(format!("zone {zone}: {written} subpages written, {found} found, {held} with the tail"));
            }
        }
        self.block.check(io)
    }

    fn figures(&self) -> LayerFigures {
        let Zones { size, capacity, max_open, max_active, counts, .. } = self.zones;
        LayerFigures {
            zones: Some(ZoneFigures {
                states: self.zones.states(),
                counts,
                size,
                capacity,
                max_open,
                max_active,
                padded_bytes: self.padded_pages * self.sectors_per_page() * SECTOR_BYTES,
            }),
            ..self.block.figures()
        }
    }

    fn count_valid(&self, valid: &mut [u32]) -> bool {
        self.block.count_valid(valid)
    }
}
