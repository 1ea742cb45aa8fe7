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
//! closed. Random write areas are in [`window`], zones without a spare block or with a failed die in [`failing`].
//!
//! Ignored: reset and finish recommended, and dies whose planes belong to different zones.

mod below_files;
mod failing;
mod settings;
mod window;

use super::block::{self, Block, ZoneShape};
use super::pages::MapsPages;
use crate::extent::pages;
pub use below_files::BELOW_FILES;
use palimpsest_flash::command::ZoneAction;
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Halt, first_subpages};
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_ftl_api::keys::keys_of;
use palimpsest_ftl_api::plan::port::pieces;
use palimpsest_ftl_api::plan::select::ReadPolicy;
use palimpsest_ftl_api::plan::{Cause, Gate, Io, Read};
use palimpsest_ftl_api::zones::{Area, ZoneError, ZoneFigures, ZoneState, Zones};
use palimpsest_ftl_api::{Blueprint, Entry, Ftl, LayerFigures, Model};
use settings::KEYS;
pub use settings::{ZnsSettings, ZonePages};
use std::collections::BTreeMap;
use window::Window;

pub const ENTRY: Entry = Entry {
    name: "zns",
    about: "zones that the host writes in order and resets (Zoned Namespaces)",
    keys: || [(block::ENTRY.keys)(), keys_of(&[KEYS])].concat(),
    fixes: settings::fixed,
    hides: &["ftl.superblocks", "ftl.superblock_planes", "ftl.superblock_dies", "ftl.allocation"],
    joined_by: ("zns.zone_dies", "1"),
    reasons: &[("ftl.gc_pace", "the host resets zones, and nothing is collected")],
    zoned: true,
    gathers: true,
    keeps_pages: true,
    kept_buffer: settings::kept_buffer,
    exported: |settings, geometry, pages| ZonePages::new(settings, geometry).exported(pages),
    check: settings::check,
    model: Model { needs: &["zns.zone_dies=1"], varies: settings::varies, ..Model::ANY },
    build: |io, blueprint| Box::new(Zns::new(io, blueprint)),
    ..block::ENTRY
};

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

/// No number of failures, so that the next comparison finds another.
const NEVER: (u64, usize) = (u64::MAX, 0);

/// The layer.
pub struct Zns {
    zones: Zones,
    block: Block,
    /// The page at the write pointer of each zone where it is partly in memory.
    tails: BTreeMap<u32, Tail>,
    /// The data in the random write areas of zones.
    windows: BTreeMap<u32, Window>,
    padded_pages: u64,
    /// [`Block::failures`] when the zones were last compared with the blocks.
    failures: (u64, usize),
    shape: ZoneShape,
    capacity_pages: u32,
    width: u32,
    /// Subpages of the write buffer that a page written whole takes; 0 below a file system.
    room: u32,
    per_subpage: u32,
    read: ReadPolicy,
    protected: bool,
    timeout: Nanos,
    /// Contents of the page to program, and of the subpages to add to a tail.
    contents: Vec<Data>,
    added: Vec<Data>,
}

palimpsest_flash::state!(Zns { zones, block, tails, windows, padded_pages, failures } built {
    shape, capacity_pages, width, room, per_subpage, read, protected, timeout, contents, added
});

impl Zns {
    /// The layer on erased flash.
    pub fn new(io: &Io, blueprint: &Blueprint) -> Self {
        let geometry = io.geometry();
        let zone = ZonePages::new(&blueprint.settings, geometry);
        let ZnsSettings { max_open, max_active, area, granularity, areas, .. } = ZnsSettings::new(&blueprint.settings);
        let shape = ZoneShape { blocks: zone.blocks as u32, pages: zone.size as u32 };
        let count = blueprint.logical_pages / shape.pages;
        let per_subpage = geometry.subpage_bytes / SECTOR_BYTES as u32;
        let per_page = u64::from(geometry.page_bytes()) / SECTOR_BYTES;
        let (size, capacity) = (zone.size * per_page, zone.capacity * per_page);
        let mut zones = Zones::new(count, size, capacity, per_subpage.into(), (max_open, max_active));
        if area > 0 {
            let granularity = if granularity == 0 { per_page } else { granularity / SECTOR_BYTES };
            zones.area = Area { size: area / SECTOR_BYTES, granularity, zones: areas };
        }
        Zns {
            zones,
            block: Block::of_zones(io, blueprint, count, shape),
            tails: BTreeMap::new(),
            windows: BTreeMap::new(),
            padded_pages: 0,
            failures: NEVER,
            shape,
            capacity_pages: zone.capacity as u32,
            width: geometry.subpages_per_page,
            room: geometry.subpages_per_page,
            per_subpage,
            read: ReadPolicy::new(&blueprint.settings),
            protected: blueprint.protected,
            timeout: blueprint.buffer_timeout,
            contents: Vec::new(),
            added: Vec::new(),
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

    /// Programs the tail of `zone`. False if no block is left; then, and if flash halts, the tail stays.
    fn program_tail(&mut self, io: &mut Io, zone: u32, cause: Cause) -> Flash<bool> {
        let Some(tail) = self.tails.remove(&zone) else { return Ok(true) };
        self.contents.clear();
        self.contents.extend_from_slice(&tail.contents);
        let done = self.program(io, zone, cause, (tail.ready, tail.done, tail.held));
        if done.is_ok() {
            tail.contents.iter().for_each(|&data| io.unpin(data));
            return Ok(true);
        }
        self.tails.insert(zone, tail);
        self.or_read_only(io, zone, done)
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

    /// Writes `part`, whole subpages of one page, at the write pointer of `zone`. False if no block is left.
    fn gather(&mut self, io: &mut Io, zone: u32, part: Extent) -> Flash<bool> {
        let mut added = std::mem::take(&mut self.added);
        added.extend(pieces(part, self.per_subpage).map(|piece| io.written(piece, Data::ZERO)));
        added.iter().for_each(|&data| io.pin(data));
        let held = added.len() as u32;
        io.present.buffer_taken += held;
        let signal = io.program_signal(self.protected);
        let done = self.append(io, zone, (&added, held), signal)?;
        if !done {
            added.iter().for_each(|&data| io.unpin(data));
        }
        added.clear();
        self.added = added;
        Ok(done)
    }

    /// Adds `added`, pinned, to the tail of `zone`, and programs a full page, which frees `held` more subpages of the
    /// write buffer. False if no block is left: the zone is as before, and its tail holds no room.
    fn append(&mut self, io: &mut Io, zone: u32, (added, held): (&[Data], u32), signal: Gate) -> Flash<bool> {
        let since = io.now();
        let (page, _) = self.at_pointer(io, zone);
        let tail = self.tails.entry(zone).or_insert_with(|| Tail { page, since, ..Tail::default() });
        tail.contents.extend_from_slice(added);
        tail.held += held;
        if !signal.is_none() {
            if tail.done.is_none() {
                tail.done = io.gate();
            }
            io.link(tail.done, signal);
        }
        let full = tail.contents.len() as u32 == self.width;
        let done = if full { self.program_tail(io, zone, Cause::Host) } else { Ok(true) };
        // After a power cut the recovery finds the full tail.
        if !matches!(done, Ok(true) | Err(Halt::PowerCut)) {
            let tail = self.tails.get_mut(&zone).expect("it stays");
            tail.contents.truncate(self.width as usize - added.len());
        }
        if !done? {
            return Ok(false);
        }
        let written = self.zones.zone(zone).written + added.len() as u64 * u64::from(self.per_subpage);
        self.zones.advance(zone, written);
        Ok(true)
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
        if self.tails.get(&zone).is_some_and(|tail| !tail.done.is_none()) && self.program_tail(io, zone, Cause::Host)? {
            return Ok(());
        }
        if self.zones.zone(zone).state.is_failed() {
            return Ok(());
        }
        if let Some(tail) = self.tails.remove(&zone) {
            tail.contents.iter().for_each(|&data| io.unpin(data));
            io.present.buffer_freed += tail.held;
        }
        Ok(())
    }

    /// Writes `extent` at the write pointer of `zone`. False if no block is left.
    fn write_in_order(&mut self, io: &mut Io, zone: u32, extent: Extent) -> Flash<bool> {
        self.reopen(io, zone)?;
        let size = self.sectors_per_page();
        for (page, first, sectors) in pages(extent, size) {
            let part = Extent { sector: u64::from(page) * size + u64::from(first), sectors };
            if u64::from(sectors) < size {
                if !self.gather(io, zone, part)? {
                    return Ok(false);
                }
                continue;
            }
            self.contents.clear();
            self.contents.extend(pieces(part, self.per_subpage).map(|piece| io.written(piece, Data::ZERO)));
            io.present.buffer_taken += self.room;
            let (after, signal) = (io.arrival(), io.program_signal(self.protected));
            let done = self.program(io, zone, Cause::Host, (after, signal, self.room));
            if !self.or_read_only(io, zone, done)? {
                io.present.buffer_freed += self.room;
                return Ok(false);
            }
            let written = self.zones.zone(zone).written + size;
            self.zones.advance(zone, written);
        }
        Ok(true)
    }

    /// Programs zeros up to the capacity of `zone`. False if no block is left.
    fn finish_zone(&mut self, io: &mut Io, zone: u32) -> Flash<bool> {
        self.reopen(io, zone)?;
        let (signal, held) = (io.request(), self.windows.get(&zone).map_or(0, Window::len));
        if !self.commit(io, zone, held, signal)? {
            return Ok(false);
        }
        let (first, size) = (zone * self.shape.blocks * io.geometry().pages_per_block, self.sectors_per_page());
        while self.zones.zone(zone).state != ZoneState::Full {
            let (page, filled) = self.at_pointer(io, zone);
            let (mut gates, mut cause) = ((Gate::NONE, signal, 0), Cause::Merge);
            self.contents.clear();
            if let Some(tail) = self.tails.get(&zone).filter(|_| filled > 0) {
                self.contents.extend_from_slice(&tail.contents);
                gates = (tail.ready, if tail.done.is_none() { signal } else { tail.done }, tail.held);
                io.link(tail.done, signal);
                // Programs of the host's data follow the data's arrival.
                cause = if tail.held > 0 || self.zones.area.size > 0 { Cause::Host } else { cause };
            }
            self.contents.resize(self.width as usize, Data::ZERO);
            let done = self.program(io, zone, cause, gates);
            if !self.or_read_only(io, zone, done)? {
                return Ok(false);
            }
            if let Some(tail) = self.tails.remove(&zone) {
                tail.contents.iter().for_each(|&data| io.unpin(data));
            }
            self.padded_pages += 1;
            self.zones.advance(zone, u64::from(page - first + 1) * size);
        }
        self.windows.remove(&zone);
        Ok(true)
    }

    /// After a power cut, finds the write pointer of `zone`, whose blocks are recovered.
    fn recover_zone(&mut self, io: &mut Io, zone: u32) -> Flash<()> {
        let sectors = |subpages: u32| u64::from(subpages) * u64::from(self.per_subpage);
        let (found, width) = (self.found(io, zone), self.width);
        let first = zone * self.shape.blocks * io.geometry().pages_per_block;
        let tail = self.tails.get(&zone).map(|tail| ((tail.page - first) * width, tail.contents.len() as u32));
        if self.zones.zone(zone).state.is_failed() {
            // A refused write may have programmed more.
            let most = sectors(tail.map_or(found, |(before, held)| found.max(before + held)));
            self.zones.found(zone, most.min(self.zones.zone(zone).written));
            return Ok(());
        }
        let Some((before, held)) = tail else {
            self.zones.found(zone, sectors(found));
            return self.recover_window(io, zone);
        };
        if found >= before + held {
            // The copy of its block was finished: only the erase of the old block was interrupted.
            let tail = self.tails.remove(&zone).unwrap_or_default();
            tail.contents.iter().for_each(|&data| io.unpin(data));
            self.zones.found(zone, sectors(found));
            return self.recover_window(io, zone);
        }
        let full = sectors(before + held);
        self.zones.found(zone, if held == width { sectors(before) } else { full });
        if held == width && self.program_tail(io, zone, Cause::Host)? {
            self.zones.found(zone, full);
        }
        self.recover_window(io, zone)
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

    fn zones_mut(&mut self) -> Option<&mut Zones> {
        Some(&mut self.zones)
    }

    fn admit(&mut self, io: &Io, kind: RequestKind, extent: Extent) -> Result<Extent, ZoneError> {
        let action = io.directives().zone;
        let (first, end) = (self.zones.zone_of(extent.sector), extent.end().div_ceil(self.zones.size) as u32);
        let admitted = match kind {
            RequestKind::Write => {
                let sector = self.zones.admit_write(extent.sector, extent.sectors.into(), action == ZoneAction::Append);
                sector.map(|sector| Extent { sector, ..extent })
            }
            RequestKind::Trim if action == ZoneAction::Commit => {
                let written = extent.end() - u64::from(first) * self.zones.size;
                self.zones.admit_commit(first, written).map(|()| extent)
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
        let ended = match io.directives().zone {
            ZoneAction::Commit => self.commit_to(io, zone, extent.end()),
            _ => self.finish_zone(io, zone),
        };
        if !ended? {
            self.refuse(io, zone);
        }
        self.note_failures(io)
    }

    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        if io.nand().is_rebuilding() {
            self.block.background(io)?;
        }
        let zone = self.zones.zone_of(extent.sector);
        if self.zones.zone(zone).random {
            self.write_area(io, zone, extent)?;
        } else {
            let begun = self.zones.zone(zone).written;
            if !self.write_in_order(io, zone, extent)? {
                self.rewind(io, zone, begun);
                self.refuse(io, zone);
            }
        }
        self.note_failures(io)
    }

    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        let (width, per_block) = (self.width, io.geometry().pages_per_block);
        for (page, first, sectors) in pages(extent, self.sectors_per_page()) {
            let (begin, end) = (first / self.per_subpage, (first + sectors).div_ceil(self.per_subpage));
            let (zone, place) = (page / self.shape.pages, page % self.shape.pages * width);
            let pointer = (self.zones.zone(zone).written / u64::from(self.per_subpage)) as u32;
            // Subpages before the write pointer are in memory, if a tail holds the page, or on flash.
            let written = pointer.saturating_sub(place).clamp(begin, end);
            let inner = self.inner(page, per_block).filter(|_| written > begin);
            let tail = self.tails.get(&zone).filter(|tail| inner == Some(tail.page));
            if let Some(tail) = tail {
                io.link(tail.ready, io.request());
                io.count_buffered(written - begin);
            }
            let located = inner.filter(|_| tail.is_none()).and_then(|inner| self.block.locate(inner));
            if let Some(ppn) = located {
                let wanted = first_subpages(written - begin) << begin;
                let read = sectors.min(written * self.per_subpage - first);
                let (words, policy) = (io.nand().words_of(first, read), self.read);
                let (after, signal) = (io.arrival(), io.request());
                io.read(Read { words, policy, after, signal, ..Read::new(ppn, wanted, Cause::Host) })?;
            }
            let window = self.windows.get(&zone).filter(|_| written < end);
            let in_area = |subpage: u32| window?.get((place + subpage).checked_sub(pointer)?);
            let buffered = (written..end).filter(|&subpage| in_area(subpage).is_some()).count() as u32;
            if buffered > 0 {
                io.count_buffered(buffered);
            }
            if end - written > buffered {
                io.count_unwritten(end - written - buffered);
            }
            if !io.host.has_contents() {
                continue;
            }
            let data = |io: &mut Io, subpage: u32| match (tail, located) {
                (Some(tail), _) if subpage < written => tail.contents[subpage as usize],
                (None, Some(ppn)) if subpage < written => io.load_subpage(ppn * width + subpage),
                _ => in_area(subpage).unwrap_or(Data::ZERO),
            };
            for subpage in begin..end {
                let data = data(io, subpage);
                io.deliver(page * width + subpage, data);
            }
        }
        self.note_failures(io)
    }

    fn trim(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        for zone in self.zones.zone_of(extent.sector)..extent.end().div_ceil(self.zones.size) as u32 {
            self.drop_tail(io, zone)?;
            if self.zones.zone(zone).state.is_failed() {
                self.refuse(io, zone);
                continue;
            }
            self.drop_window(io, zone);
            for block in zone * self.shape.blocks..(zone + 1) * self.shape.blocks {
                self.block.trim_block(io, block, io.arrival())?;
            }
            self.zones.reset(zone);
        }
        self.note_failures(io)
    }

    fn flush(&mut self, io: &mut Io) -> Flash<()> {
        if io.plan.flush_is_free {
            return Ok(());
        }
        self.program_tails(io, Nanos::MAX, io.request())?;
        self.note_failures(io)
    }

    fn deadline(&self) -> Option<Nanos> {
        if self.protected || self.timeout == 0 {
            return None;
        }
        self.tails.values().filter(|tail| tail.held > 0).map(|tail| tail.since + self.timeout).min()
    }

    fn timer(&mut self, io: &mut Io) -> Flash<()> {
        self.program_tails(io, io.now().saturating_sub(self.timeout), Gate::NONE)?;
        self.note_failures(io)
    }

    fn background(&mut self, io: &mut Io) -> Flash<bool> {
        let moved = self.block.background(io);
        self.or_unmoved(io, moved)
    }

    fn relocate(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        let moved = self.block.relocate(io, block);
        self.or_unmoved(io, moved)
    }

    fn recover(&mut self, io: &mut Io) -> Flash<()> {
        if self.protected {
            self.tails.values_mut().for_each(|tail| (tail.ready, tail.done) = (Gate::NONE, Gate::NONE));
        } else {
            self.tails.clear();
        }
        self.block.recover(io)?;
        for zone in 0..self.zones.len() {
            self.recover_zone(io, zone)?;
        }
        self.block.take_shortage();
        self.failures = NEVER;
        self.note_failures(io)
    }

    fn check(&mut self, io: &Io) -> Result<(), String> {
        self.zones.check()?;
        self.check_windows()?;
        // The write pointer of a zone that can no longer be written means nothing.
        for zone in (0..self.zones.len()).filter(|&zone| !self.zones.zone(zone).state.is_failed()) {
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
        let Zones { size, capacity, block, max_open, max_active, counts, area, .. } = self.zones;
        LayerFigures {
            zones: Some(ZoneFigures {
                states: self.zones.states(),
                counts,
                size,
                capacity,
                block,
                max_open,
                max_active,
                padded_bytes: self.padded_pages * self.sectors_per_page() * SECTOR_BYTES,
                area,
                areas: self.zones.random(),
                changed: self.zones.changed().clone(),
            }),
            ..self.block.figures()
        }
    }

    fn count_valid(&self, valid: &mut [u32]) -> bool {
        self.block.count_valid(valid)
    }
}
