//! A file system as a layer: requests of a workload become operations on files.
//!
//! A workload addresses sectors of a disk; a file system has files. A request that names a file (the stream of a trace)
//! writes to the file of that name: on the first write of the file to a page of the disk, that page becomes the next
//! page of the file, and stays so. A page of the disk belongs to the last file that wrote the page, as if the file
//! before had been deleted or truncated. A request without a name goes to the file that has the page, else to the file
//! of its range: files of `fs.file_size`, one after the other (`fs.files = "addresses"` treats all requests so). Reads
//! go to the file that has the page. A flush is a sync; a commit follows `fs.commit_interval` after the first change,
//! and at the latest after 65536 pages.
//!
//! [`super::layers`] lists the layers. The unit of addresses is the page of the file system: a flash page or, above
//! layers that map subpages, a subpage. Timers and background collection of the layer run below the file system.

mod recovery;
mod streams;

use super::device::NO_PAGE;
use super::imbalance::{Imbalance, POINTS};
use super::layers::{self, Below, MappedUnit};
use super::link::{Attached, Link};
use super::store::Store;
use super::{Counters, Fault, FileSystem, Status, Thresholds, inode, schemes};
use crate::schemes::depth::DepthPages;
use crate::settings::{Discard, FileSystemSettings, Files};
use palimpsest_flash::command::Lifetime;
use palimpsest_flash::geometry::{Extent, Geometry};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Halt};
use palimpsest_flash::prefetch::prefetch;
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_ftl::extent::{overlay, pages};
use palimpsest_ftl::log::streams::reads_lifetimes;
use palimpsest_ftl_api::plan::inner::Inner;
use palimpsest_ftl_api::plan::{Cause, FileSystemIo, Gate, Io};
use palimpsest_ftl_api::{Blueprint, Figure, Ftl, LayerFigures, State};
use std::collections::BTreeMap;

/// Most pages written between two commits.
const COMMIT_PAGES: u64 = 1 << 16;
/// The owner of a page of the disk that belongs to no file.
const NO_OWNER: (u32, u32) = (NO_PAGE, 0);
/// The owner of a page of the disk whose file a mount could not read.
const LOST_OWNER: (u32, u32) = (NO_PAGE, 1);

/// The file system as a layer.
pub(super) struct Replay {
    settings: FileSystemSettings,
    geometry: Geometry,
    store: Box<dyn Store>,
    link: Link,
    thresholds: Thresholds,
    /// The remark on thresholds out of reach.
    remark: Option<String>,
    discards: bool,
    hints: bool,
    mounted: Option<FileSystem>,
    /// Counters of earlier mounts.
    before: Counters,
    /// File, and page in the file, of each page of the disk: state of the replay, not of the file system.
    owners: Vec<(u32, u32)>,
    /// For each change of an owner: the number of the last commit then, the page of the disk, the previous owner.
    undo: Vec<(u64, u32, (u32, u32))>,
    /// The file that each stream writes to, and the number of files that the stream filled before.
    files: BTreeMap<u64, (u32, u32)>,
    /// Pages of each file whose page of the disk moved to another file: the file reuses them first. Lost at a power
    /// cut.
    holes: BTreeMap<u32, Vec<u32>>,
    /// The stream of each file, by inode; [`NO_STREAM`] for other inodes.
    streams: Vec<u64>,
    sectors_per_page: u64,
    /// Pages of the file of a range.
    range: u32,
    dirty_since: Option<Nanos>,
    committed_at: u64,
    /// Pages of the disk lost with metadata; `None` if no read is uncorrectable.
    lost_pages: Option<u64>,
}

palimpsest_flash::state!(Replay {
    store, link, before, owners, undo, files, holes, streams, dirty_since, committed_at, lost_pages
} parts { mounted } built { settings, geometry, thresholds, remark, discards, hints, sectors_per_page, range });

/// A written page of a read.
#[derive(Clone, Copy)]
struct Wanted {
    page: u32,
    logical: u32,
    first: u32,
    sectors: u32,
}

/// A page of a request.
#[derive(Clone, Copy)]
struct Target {
    page: u32,
    ino: u32,
    index: u32,
    first: u32,
    sectors: u32,
}

/// Streams from here on are ranges of the disk.
const RANGES: u64 = 1 << 32;
const NO_STREAM: u64 = u64::MAX;

impl Replay {
    pub fn new(io: &Io, blueprint: &Blueprint, below: Below) -> Self {
        let geometry = *io.geometry();
        let mut settings = FileSystemSettings::new(&blueprint.settings);
        if !below.unit.has_channels() {
            // The layer chooses the channels: `rr` writes the pages one by one.
            settings.scheme = "rr".into();
        }
        let shape = layers::shape(&geometry, io.nand().part(), &blueprint.settings, below, blueprint.logical_pages);
        let offered = layers::offered(shape, &geometry, u64::from(blueprint.logical_pages));
        let most_pages = inode::most_pages(shape.page_bytes / 4);
        let joined = if below.unit.has_channels() { geometry.channels / shape.channels } else { 1 };
        let (thresholds, remark) = layers::thresholds(shape, offered, &settings);
        Replay {
            thresholds,
            remark,
            discards: match settings.discard {
                Discard::Auto => matches!(below.unit, MappedUnit::Subpage(_)),
                Discard::Blocks => false,
                Discard::Pages => true,
            },
            hints: reads_lifetimes(&blueprint.settings),
            link: Link::new(shape, joined, io.nand().part(), settings.dispatch_overhead),
            store: layers::store(io, blueprint, below, shape),
            mounted: None,
            before: Counters::default(),
            owners: vec![NO_OWNER; offered as usize],
            undo: Vec::new(),
            files: BTreeMap::new(),
            holes: BTreeMap::new(),
            streams: Vec::new(),
            sectors_per_page: u64::from(shape.page_bytes) / SECTOR_BYTES,
            range: (settings.file_bytes / u64::from(shape.page_bytes)).clamp(1, u64::from(most_pages)) as u32,
            dirty_since: None,
            committed_at: 0,
            lost_pages: io.nand().reads_fail().then_some(0),
            geometry,
            settings,
        }
    }

    /// Sets page trims, hints and the log in a new or mounted file system.
    fn prepare(&self, mut filesystem: FileSystem) -> FileSystem {
        if self.discards {
            filesystem.enable_page_trims();
        }
        filesystem.set_rules(self.settings.rules);
        if self.settings.turn_by_address {
            filesystem.turn_by_address();
        }
        if !self.settings.log {
            filesystem.disable_log();
        }
        if self.hints {
            filesystem.enable_hints();
        }
        filesystem
    }

    /// Does `act` with the file system and its device.
    fn with<T>(
        &mut self,
        io: &mut Io,
        act: impl FnOnce(&mut FileSystem, &mut Attached<'_>) -> Result<T, Fault>,
    ) -> Flash<T> {
        let mut device = Attached { io, store: &mut *self.store, link: &mut self.link };
        if self.mounted.is_none() {
            let scheme = schemes::new(&self.settings.scheme).expect("the configuration checked the name");
            let fresh = FileSystem::format(&mut device, self.thresholds, scheme).map_err(halt)?;
            self.mounted = Some(self.prepare(fresh));
        }
        let filesystem = self.mounted.as_mut().expect("a mounted file system");
        let mut device = Attached { io, store: &mut *self.store, link: &mut self.link };
        device.submit_refused()?;
        let done = act(filesystem, &mut device).map_err(halt);
        if let Ok(_) | Err(Halt::NoSpace | Halt::Ended(_)) = done {
            device.submit()?;
        }
        done
    }

    /// The file and page of each page of `extent` after a write.
    fn targets(&mut self, io: &mut Io, extent: Extent) -> Flash<Vec<Target>> {
        let named = self.settings.files == Files::Names && io.directives().owner != 0;
        let mut targets = Vec::new();
        let mut more = 0;
        for (page, first, sectors) in pages(extent, self.sectors_per_page) {
            let owner = self.owners[page as usize];
            let keeps_owner = match self.stream_of(owner.0) {
                NO_STREAM => false,
                stream => !named || stream == u64::from(io.directives().owner),
            };
            let (ino, index) = if keeps_owner {
                owner
            } else if named {
                let (ino, next) = self.file_of(io, u64::from(io.directives().owner), more)?;
                match self.holes.get_mut(&ino).and_then(Vec::pop) {
                    Some(hole) => (ino, hole),
                    None => {
                        more += 1;
                        (ino, next + more - 1)
                    }
                }
            } else {
                let (ino, _) = self.file_of(io, RANGES + u64::from(page / self.range), 0)?;
                (ino, page % self.range)
            };
            targets.push(Target { page, ino, index, first, sectors });
        }
        Ok(targets)
    }

    /// The page of the device to which the pointer of page `page` of the disk leads.
    fn pointer(&self, page: u32) -> Option<u32> {
        let (ino, index) = self.owners[page as usize];
        if ino == NO_PAGE { None } else { self.mounted.as_ref()?.locate(ino, index).ok()? }
    }

    /// The page of the device that holds page `page` of the disk.
    fn locate(&self, page: u32) -> Option<u32> {
        self.pointer(page).filter(|&logical| self.store.holds(logical))
    }

    /// Appends the contents of the page of `target` after this write to `contents`; returns the gate of the read.
    fn merge(&mut self, io: &mut Io, target: &Target, contents: &mut Vec<Data>) -> Flash<Gate> {
        let width = self.link.shape.subpages_per_page;
        let from = contents.len();
        let mut arrived = Gate::NONE;
        if u64::from(target.sectors) < self.sectors_per_page
            && let Some(logical) = self.locate(target.page)
        {
            let after = self.link.exchange_permission(io, self.link.shape.channel(logical));
            let signal = io.gate();
            let inner = Inner { cause: Cause::Rmw, after, signal, lifetime: Lifetime::Unknown };
            self.store.read(io, logical, 0..self.sectors_per_page as u32, contents, inner)?;
            arrived = io.used(signal);
        }
        let rest = if self.owners[target.page as usize] == LOST_OWNER { Data::LOST } else { Data::ZERO };
        contents.resize(from + width as usize, rest);
        overlay(io, target.page, target.first, target.sectors, &mut contents[from..]);
        Ok(arrived)
    }

    /// Reads pages of the disk that are consecutive on the device, for the host.
    fn read_run(&mut self, io: &mut Io, run: &[Wanted]) -> Flash<()> {
        let (Some(begin), width) = (run.first(), self.link.shape.subpages_per_page) else { return Ok(()) };
        let per_subpage = self.sectors_per_page as u32 / width;
        let channel = self.link.shape.channel(begin.logical);
        let permission = self.link.exchange_permission(io, channel);
        let after = io.all_of(&[io.arrival(), permission]);
        // Reads for the host, or ahead of the host.
        let cause = io.cause_of_command();
        let inner = Inner { cause, after, signal: io.request(), lifetime: Lifetime::Unknown };
        let sectors = begin.first..begin.first + run.iter().map(|wanted| wanted.sectors).sum::<u32>();
        let mut contents = Vec::new();
        self.store.read(io, begin.logical, sectors, &mut contents, inner)?;
        if let Some(filesystem) = &mut self.mounted {
            filesystem.note_read(channel, run.len() as u32);
        }
        let subpages = run.iter().flat_map(|wanted| {
            let (begin, end) = (wanted.first / per_subpage, (wanted.first + wanted.sectors).div_ceil(per_subpage));
            (begin..end).map(|subpage| wanted.page * width + subpage)
        });
        for (lsn, data) in subpages.zip(contents) {
            io.deliver(lsn, data);
        }
        Ok(())
    }

    /// Writes the pages of `targets`, all of one file.
    fn write_file(&mut self, io: &mut Io, targets: &[Target]) -> Flash<()> {
        let (count, channels) = (targets.len(), self.link.shape.channels as usize);
        let deep = self.mounted.as_ref().is_some_and(|filesystem| filesystem.groups_pages(count as u32));
        if deep && self.settings.depth_pages == DepthPages::Apart {
            // The pages of each channel, one channel after the other.
            self.link.sends_together = true;
            let apart = (0..channels).flat_map(|channel| targets.iter().skip(channel).step_by(channels));
            return self.write_in_order(io, &apart.copied().collect::<Vec<_>>());
        }
        self.link.sends_together = deep;
        self.write_in_order(io, targets)
    }

    /// Writes the pages of `targets`, all of one file, in this order.
    fn write_in_order(&mut self, io: &mut Io, targets: &[Target]) -> Flash<()> {
        let mut contents = Vec::new();
        self.link.arrived.clear();
        for target in targets {
            let arrived = self.merge(io, target, &mut contents)?;
            self.link.arrived.push_back(arrived);
        }
        let ino = targets[0].ino;
        let indexes: Vec<u32> = targets.iter().map(|target| target.index).collect();
        let addresses: Vec<u32> = targets.iter().map(|target| target.page).collect();
        let last = indexes.iter().max().map_or(0, |&last| u64::from(last) + 1);
        let bytes = last * u64::from(self.link.shape.page_bytes);
        let sequence = self.with(io, |filesystem, device| {
            filesystem.write_pages(device, ino, &indexes, Some(&addresses), &contents)?;
            filesystem.extend(ino, bytes)?;
            Ok(filesystem.sequence())
        })?;
        for target in targets {
            let now = (target.ino, target.index);
            let before = std::mem::replace(&mut self.owners[target.page as usize], now);
            if before == now {
                continue;
            }
            self.undo.push((sequence, target.page, before));
            if before.0 != NO_PAGE {
                // The old page must stay until the new one is durable.
                self.with(io, |filesystem, device| filesystem.punch(device, before.0, before.1))?;
                if self.stream_of(before.0) < RANGES {
                    self.holes.entry(before.0).or_default().push(before.1);
                }
            }
        }
        Ok(())
    }

    /// Commits if due, and drops undo records of committed changes, unless a power cut may take the commit back.
    fn end_request(&mut self, io: &mut Io) -> Flash<()> {
        let Some(filesystem) = &self.mounted else { return Ok(()) };
        if filesystem.counters().data_pages >= self.committed_at + COMMIT_PAGES {
            self.with(io, |filesystem, device| filesystem.sync(device))?;
        }
        let Some(filesystem) = &self.mounted else { return Ok(()) };
        let sequence = filesystem.sequence();
        if io.undo.is_none() && self.undo.first().is_some_and(|change| change.0 < sequence) {
            self.undo.retain(|change| change.0 >= sequence);
        }
        if filesystem.is_dirty() {
            self.dirty_since.get_or_insert(io.now());
        } else {
            self.dirty_since = None;
            self.committed_at = filesystem.counters().data_pages;
        }
        Ok(())
    }

    fn commit_at(&self) -> Option<Nanos> {
        self.dirty_since.map(|since| since + self.settings.commit_interval)
    }

    fn sync(&mut self, io: &mut Io) -> Flash<()> {
        self.link.begin();
        if self.mounted.is_some() {
            self.with(io, |filesystem, device| filesystem.sync(device))?;
        }
        self.link.wait_for_all(io);
        self.end_request(io)
    }

    /// Number of the logical pages `pages` in each channel of the drive, as placed by the layer below.
    fn per_channel(&self, pages: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut channels = vec![0; self.geometry.channels as usize];
        for ppn in pages.filter_map(|page| self.store.locate(page)) {
            let plane = self.geometry.plane_of_block(ppn / self.geometry.pages_per_block);
            let channel = self.geometry.channel_of_die(self.geometry.die_of_plane(plane));
            channels[channel as usize] += 1;
        }
        channels
    }
}

/// The halt of the drive for a fault of the file system. The replay makes all names: a missing or wrong one is a bug.
fn halt(fault: Fault) -> Halt {
    match fault {
        Fault::Halt(halt) => halt,
        Fault::Full => Halt::Ended(
            "the file system is full: metadata of so many files leave no room for the logical space of the drive \
             (expected more ssd.over_provisioning)",
        ),
        other => panic!("the file system of the run: {other:?}"),
    }
}

impl Ftl for Replay {
    fn state(&self) -> Option<&dyn State> {
        Some(self)
    }

    fn state_mut(&mut self) -> Option<&mut dyn State> {
        if self.mounted.is_none() {
            let scheme = schemes::new(&self.settings.scheme).expect("the configuration checked the name");
            self.mounted = Some(self.prepare(FileSystem::new(self.link.shape, self.thresholds, scheme)));
        }
        Some(self)
    }

    fn unit_subpages(&self) -> u32 {
        self.link.shape.subpages_per_page
    }

    fn inner_subpages(&self) -> Option<u32> {
        Some(self.store.subpages())
    }

    /// The file is that of the page before `first`; its pages follow in the order of addresses of the disk.
    fn file_end(&self, first: u32, end: u32) -> u32 {
        let width = self.link.shape.subpages_per_page;
        let file = |page: u32| self.owners.get(page as usize).map(|&(ino, _)| ino);
        let present = file((first - 1) / width);
        let other = (first / width..end.div_ceil(width)).find(|&page| file(page) != present);
        other.map_or(end, |page| page * width)
    }

    /// Of the first page of `extent`: the file, then the pointer.
    fn expect(&self, extent: Extent, soon: bool) {
        let page = (extent.sector / self.sectors_per_page) as usize;
        match (soon, &self.mounted, self.owners.get(page)) {
            (false, ..) => prefetch(&self.owners, page),
            (true, Some(filesystem), Some(&(ino, index))) => filesystem.prefetch_pointer(ino, index),
            _ => {}
        }
    }

    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.link.begin();
        if self.link.has_refused() {
            self.with(io, |_, _| Ok(()))?;
        }
        let targets = self.targets(io, extent)?;
        let mut rest = targets.as_slice();
        while let Some(first) = rest.first() {
            // Usually all pages are of one file. Others keep their order.
            let of_one = |target: &&Target| target.ino == first.ino;
            if rest.iter().all(|target| target.ino == first.ino) {
                self.write_file(io, rest)?;
                break;
            }
            let count = rest.iter().take_while(of_one).count();
            let (now, later) = rest.split_at(count);
            self.write_file(io, now)?;
            rest = later;
        }
        self.link.end_group(io);
        self.end_request(io)
    }

    fn read(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.link.begin();
        let width = self.link.shape.subpages_per_page;
        let per_subpage = self.sectors_per_page as u32 / width;
        let mut wanted: Vec<Wanted> = Vec::new();
        for (page, first, sectors) in pages(extent, self.sectors_per_page) {
            let (begin, end) = (first / per_subpage, (first + sectors).div_ceil(per_subpage));
            let pointer = self.pointer(page);
            if let Some(contents) = pointer.and_then(|logical| self.link.refused(logical)) {
                (begin..end).for_each(|subpage| io.deliver(page * width + subpage, contents[subpage as usize]));
                continue;
            }
            let Some(logical) = pointer.filter(|&logical| self.store.holds(logical)) else {
                let is_lost = self.owners[page as usize] == LOST_OWNER;
                io.count_unwritten(if is_lost { 0 } else { end - begin });
                let data = if is_lost { Data::LOST } else { Data::ZERO };
                (begin..end).for_each(|subpage| io.deliver(page * width + subpage, data));
                continue;
            };
            wanted.push(Wanted { page, logical, first, sectors });
        }
        let count = wanted.len() as u32;
        let deep = self.mounted.as_ref().is_some_and(|filesystem| filesystem.groups_pages(count));
        if self.store.takes_runs() {
            // Pages between the first and the last of a request are read whole, so neighbours join.
            let joins = |last: &Wanted, next: &Wanted| last.logical + 1 == next.logical && last.page + 1 == next.page;
            wanted.chunk_by(joins).try_for_each(|run| self.read_run(io, run))?;
        } else {
            if deep {
                // The pages of each channel, one channel after the other.
                wanted.sort_by_key(|wanted| self.link.shape.channel(wanted.logical));
                self.link.sends_together = true;
            }
            wanted.chunks(1).try_for_each(|page| self.read_run(io, page))?;
        }
        self.link.end_group(io);
        Ok(())
    }

    fn trim(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.link.begin();
        for (page, _, _) in pages(extent, self.sectors_per_page) {
            let (ino, index) = self.owners[page as usize];
            if ino != NO_PAGE {
                self.with(io, |filesystem, device| filesystem.punch(device, ino, index))?;
            } else {
                self.owners[page as usize] = NO_OWNER;
            }
        }
        self.end_request(io)
    }

    fn flush(&mut self, io: &mut Io) -> Flash<()> {
        self.sync(io)?;
        if io.plan.flush_is_free { Ok(()) } else { self.store.layer().flush(io) }
    }

    fn update_handle(&mut self, io: &mut Io) -> Flash<()> {
        self.store.layer().update_handle(io)
    }

    fn deadline(&self) -> Option<Nanos> {
        let own = self.commit_at();
        self.store.seen().deadline().map_or(own, |layer| Some(own.map_or(layer, |own| own.min(layer))))
    }

    fn timer(&mut self, io: &mut Io) -> Flash<()> {
        if self.store.seen().deadline().is_some_and(|deadline| deadline <= io.now()) {
            self.store.layer().timer(io)?;
        }
        if self.commit_at().is_some_and(|deadline| deadline <= io.now()) {
            self.sync(io)?;
        }
        Ok(())
    }

    fn background(&mut self, io: &mut Io) -> Flash<bool> {
        self.store.layer().background(io)
    }

    fn relocate(&mut self, io: &mut Io, block: u32) -> Flash<bool> {
        self.store.layer().relocate(io, block)
    }

    fn save_tables(&self, io: &Io, bytes: &mut Vec<u8>) {
        self.store.seen().save_tables(io, bytes);
    }

    fn recover(&mut self, io: &mut Io) -> Flash<()> {
        self.store.layer().recover(io)?;
        self.mount(io)
    }

    fn check(&mut self, io: &Io) -> Result<(), String> {
        self.store.layer().check(io)?;
        match &self.mounted {
            Some(filesystem) => filesystem.check(|block| self.store.written(io, block)),
            None => Ok(()),
        }
    }

    fn figures(&self) -> LayerFigures {
        let mut figures = self.store.seen().figures();
        let Some(filesystem) = &self.mounted else { return figures };
        figures.remarks.extend(self.remark.clone());
        let counters = filesystem.counters().after(self.before);
        let imbalance = Imbalance::of(filesystem.files().map(|pages| self.per_channel(pages)));
        figures.gc_runs += counters.collected;
        figures.gc_erased += counters.trimmed;
        figures.gc_moved_subpages += counters.moved_pages * u64::from(self.link.shape.subpages_per_page);
        let free = (0..self.link.shape.channels).map(|channel| filesystem.free_in(channel));
        let wear = self.link.wear.iter().copied();
        figures.own.extend([
            ("fs_channel_free_least", Figure::Level(free.clone().min().unwrap_or(0))),
            ("fs_channel_free_most", Figure::Level(free.max().unwrap_or(0))),
            ("fs_channel_trims_least", Figure::Level(wear.clone().min().unwrap_or(0))),
            ("fs_channel_trims_most", Figure::Level(wear.max().unwrap_or(0))),
            ("fs_metadata_pages", Figure::Count(counters.metadata_pages)),
            ("fs_commits", Figure::Count(counters.commits)),
            ("fs_logged_commits", Figure::Count(counters.logged)),
            ("fs_moved_pages", Figure::Count(counters.moved_pages)),
            ("fs_trimmed_blocks", Figure::Count(counters.trimmed)),
            ("fs_command_groups", Figure::Count(self.link.groups)),
            ("fs_page_state_bytes", Figure::Level(filesystem.status_bytes())),
            ("imbalance_files", Figure::Level(imbalance.files)),
            ("imbalance_uneven", Figure::ShareOfLevel(imbalance.uneven(), imbalance.files)),
            ("imbalance_above_1", Figure::ShareOfLevel(imbalance.above_one(), imbalance.files)),
        ]);
        if let Some(pages) = self.lost_pages {
            figures.own.push(("fs_lost_records", Figure::Count(counters.unreadable)));
            figures.own.push(("fs_lost_pages", Figure::Count(pages)));
        }
        let points = POINTS.iter().zip(imbalance.at_most);
        figures.own.extend(points.map(|(&(_, name), files)| (name, Figure::ShareOfLevel(files, imbalance.files))));
        figures
    }

    /// Pages that are valid for the file system, if the layer gives their place; for the layer, pages not yet trimmed
    /// count, too.
    fn count_valid(&self, valid: &mut [u32]) -> bool {
        let Some(filesystem) = self.mounted.as_ref().filter(|_| !self.store.takes_runs()) else {
            return self.store.seen().count_valid(valid);
        };
        let (shape, per_block) = (&self.link.shape, self.geometry.pages_per_block);
        let pages = (0..shape.pages()).filter(|&page| filesystem.status(page) == Status::Valid);
        for ppn in pages.filter_map(|page| self.store.locate(page)) {
            valid[(ppn / per_block) as usize] += shape.subpages_per_page;
        }
        true
    }
}
