//! The co-designed file system on a served drive: on the host's side, its pages are requests to the drive.
//!
//! Above `block` the file system chooses the channel of each page, as in simulation; above other layers, which choose
//! themselves, it has one channel. Records and collection of the file system are writes of the host, and schemes see no
//! queues, because requests come one by one. A barrier is a flush. A power cut mounts the file system again, as of its
//! last commit. Ignored: uncorrectable contents, beyond an error; if the file system moves such a page, it ends.

use super::{Failure, Outcome, Served};
use crate::config::Resolved;
use palimpsest_flash::command::Command;
use palimpsest_flash::error::{Error, Result};
use palimpsest_flash::geometry::{Extent, RequestKind};
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Halt};
use palimpsest_flash::units::SECTOR_BYTES;
use palimpsest_fs::device::{Device, Purpose, Shape};
use palimpsest_fs::schemes;
use palimpsest_fs::{Done, Fault, FileSystem, Thresholds};

/// The layer above which the file system chooses channels.
const CHOOSES_CHANNELS: &str = "block";

/// Least bytes of a page above other layers.
const LEAST_PAGE: u64 = 4096;

/// Percent of free space at which collection starts, and that collection gains; less on a small drive.
const START: u64 = 5;
const GAIN: u64 = 10;

/// A served drive as the device of a file system.
pub struct Disk<'a> {
    served: Served<'a>,
    shape: Shape,
    /// Distance between the first blocks of two channels.
    stride: u32,
    /// Pages of each block since its trim.
    written: Vec<u32>,
    trims: Vec<u64>,
    /// Pages in memory during an operation of the file system.
    held: Vec<Vec<u8>>,
    /// The failure of the drive.
    failure: Option<Failure>,
}

fn shape(resolved: &Resolved, unit: u64) -> (Shape, u32) {
    let (geometry, pages) = (&resolved.drive.geometry, resolved.drive.logical_pages() as u32);
    if resolved.drive.ftl.name == CHOOSES_CHANNELS {
        let stride = pages.div_ceil(geometry.pages_per_block).div_ceil(geometry.channels);
        let whole = pages / geometry.pages_per_block;
        let lanes = geometry.planes() / geometry.channels;
        let least = whole.saturating_sub((geometry.channels - 1) * stride);
        let shape = Shape {
            channels: geometry.channels,
            lanes,
            blocks_per_channel: least,
            pages_per_block: geometry.pages_per_block,
            subpages_per_page: 1,
            page_bytes: geometry.page_bytes(),
            most_active: 0,
        };
        return (shape, stride);
    }
    let page_bytes = unit.max(LEAST_PAGE) as u32;
    let block_bytes = u64::from(geometry.pages_per_block) * u64::from(geometry.page_bytes());
    let pages_per_block = (block_bytes / u64::from(page_bytes)).clamp(8, 1024) as u32;
    let blocks = resolved.drive.logical_bytes() / u64::from(page_bytes) / u64::from(pages_per_block);
    let blocks_per_channel = blocks as u32;
    let (channels, lanes, subpages_per_page, most_active) = (1, 1, 1, 0);
    let shape =
        Shape { channels, lanes, blocks_per_channel, pages_per_block, subpages_per_page, page_bytes, most_active };
    (shape, blocks_per_channel)
}

impl<'a> Disk<'a> {
    fn new(served: Served<'a>) -> Self {
        let (shape, stride) = shape(&served.resolved, served.unit_bytes());
        let (written, trims) = (vec![0; shape.blocks() as usize], vec![0; shape.channels as usize]);
        Disk { served, shape, stride, written, trims, held: Vec::new(), failure: None }
    }

    /// The sectors of `pages` pages from `page` on, which must be in one block.
    fn extent(&self, page: u32, pages: u32) -> Extent {
        let (block, at) = (page / self.shape.pages_per_block, page % self.shape.pages_per_block);
        let (channel, index) = (block / self.shape.blocks_per_channel, block % self.shape.blocks_per_channel);
        let first = u64::from(channel * self.stride + index) * u64::from(self.shape.pages_per_block) + u64::from(at);
        let per_page = u64::from(self.shape.page_bytes) / SECTOR_BYTES;
        Extent { sector: first * per_page, sectors: pages * per_page as u32 }
    }

    fn halt(&mut self, failure: Failure) -> Halt {
        let lost = failure == Failure::PowerLost;
        self.failure = Some(failure);
        if lost { Halt::PowerCut } else { Halt::Ended("the drive failed") }
    }

    fn put(&mut self, page: u32, mut bytes: Vec<u8>) -> Flash<()> {
        let (block, at) = ((page / self.shape.pages_per_block) as usize, page % self.shape.pages_per_block);
        // An interrupted write may have been done.
        self.written[block] = self.written[block].max(at + 1);
        let extent = self.extent(page, 1);
        self.served.write(Command::new(RequestKind::Write, extent), &mut bytes, 0).map_err(|failure| self.halt(failure))
    }

    /// Finds blocks with content other than zeros: any of their pages may be written. A block of zeros equals a trimmed
    /// block, if the file system has no data there.
    fn look_for_pages(&mut self) -> Result<()> {
        for block in 0..self.shape.blocks() {
            let first = block * self.shape.pages_per_block;
            let mut written = 0;
            for page in first..first + self.shape.pages_per_block {
                let holds = self.get(page).map(|bytes| bytes.iter().any(|&byte| byte != 0));
                let failure = self.failure.take();
                match (holds, failure) {
                    (Ok(false), _) => continue,
                    (_, Some(Failure::Drive(error))) => return Err(error),
                    _ => written = self.shape.pages_per_block,
                }
                break;
            }
            self.written[block as usize] = written;
        }
        Ok(())
    }

    fn get(&mut self, page: u32) -> Flash<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.shape.page_bytes as usize);
        let extent = self.extent(page, 1);
        self.served.read(extent, &mut bytes).map_err(|failure| self.halt(failure))?;
        Ok(bytes)
    }
}

impl Device for Disk<'_> {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn write(&mut self, page: u32, contents: &[Data], _purpose: Purpose) -> Flash<()> {
        let bytes = std::mem::take(&mut self.held[contents[0].value as usize]);
        assert_eq!(bytes.len(), self.shape.page_bytes as usize, "contents are written once");
        self.put(page, bytes)
    }

    fn read(&mut self, page: u32, _purpose: Purpose, contents: &mut Vec<Data>) -> Flash<bool> {
        let block = (page / self.shape.pages_per_block) as usize;
        if page % self.shape.pages_per_block >= self.written[block] {
            return Ok(false);
        }
        let bytes = self.get(page)?;
        contents.clear();
        contents.push(Data::new(self.held.len() as u64));
        self.held.push(bytes);
        Ok(true)
    }

    fn copy(&mut self, from: u32, to: u32) -> Flash<()> {
        let bytes = self.get(from)?;
        self.put(to, bytes)
    }

    fn barrier(&mut self) -> Flash<()> {
        self.served.flush().map_err(|failure| self.halt(failure))
    }

    fn discard(&mut self, page: u32, pages: u32) -> Flash<()> {
        let extent = self.extent(page, pages);
        self.served.trim(extent).map_err(|failure| self.halt(failure))
    }

    fn trim(&mut self, block: u32) -> Flash<()> {
        let pages = self.shape.pages_per_block;
        let extent = self.extent(block * pages, pages);
        self.served.trim(extent).map_err(|failure| self.halt(failure))?;
        self.written[block as usize] = 0;
        self.trims[self.shape.channel_of_block(block) as usize] += 1;
        Ok(())
    }

    fn written(&self, block: u32) -> u32 {
        self.written[block as usize]
    }

    fn hold(&mut self, bytes: &[u8]) -> Vec<Data> {
        self.held.push(bytes.to_vec());
        vec![Data::new(self.held.len() as u64 - 1)]
    }

    fn bytes(&self, contents: &[Data]) -> Option<Vec<u8>> {
        Some(self.held[contents[0].value as usize].clone())
    }

    fn wear(&self, channel: u32) -> u64 {
        self.trims[channel as usize]
    }
}

/// The reason why an operation on a volume failed.
#[derive(Debug)]
pub enum Trouble {
    /// The file system refused the operation.
    Refused(Fault),
    /// The power failed; the file system was mounted again, as of its last commit.
    PowerLost,
    /// The operation needs lost contents.
    Unreadable,
    /// The drive failed, now or before.
    Drive,
}

/// A file system on a served drive.
pub struct Volume<'a> {
    filesystem: FileSystem,
    disk: Disk<'a>,
    scheme: String,
    thresholds: Thresholds,
    losses: u64,
    /// The first error that ended the drive.
    ended: Option<Error>,
    worn_out: bool,
}

impl<'a> Volume<'a> {
    /// The file system on `served`, an empty one on a new drive; the scheme `scheme` assigns pages to channels.
    ///
    /// # Errors
    /// [`Error::Input`] for a drive that is too small or holds other data, and for an unknown scheme; errors of the
    /// drive.
    pub fn open(served: Served<'a>, scheme: &str) -> Result<Self> {
        let is_new = served.mounted().is_none_or(|found| found.pages == 0);
        let mut disk = Disk::new(served);
        let named = || {
            let names: Vec<&str> = schemes::SCHEMES.iter().map(|entry| entry.name).collect();
            let wrong = || Error::input(format!("--scheme {scheme}"), format!("expected one of {}", names.join(", ")));
            schemes::new(scheme).ok_or_else(wrong)
        };
        let (shape, capacity) = (disk.shape, FileSystem::capacity(disk.shape));
        if shape.blocks_per_channel < 2 || capacity < 64 {
            let expected =
                "expected a larger drive, or fewer channels: the file system keeps blocks for its collection";
            let what = format!("{} bytes are too few for a file system; {expected}", disk.served.bytes());
            return Err(Error::input("mount", what));
        }
        // Collection stops when no more space can be gained.
        let (pages, spare) = (u64::from(shape.pages()), u64::from(shape.pages()) - capacity as u64);
        let least = |percent: u64, part: u64| (pages * percent / 100).min(spare / part);
        let thresholds = Thresholds { start: least(START, 4), gain: least(GAIN, 4) };
        let opened = if is_new {
            FileSystem::format(&mut disk, thresholds, named()?)
        } else {
            disk.look_for_pages()?;
            FileSystem::mount(&mut disk, thresholds, named()?)
        };
        let mut filesystem = opened.map_err(|fault| match (fault, disk.failure.take()) {
            (_, Some(Failure::Drive(error))) => error,
            (Fault::NotFormatted, None) => Error::input(
                "mount",
                "the drive holds no file system of palimpsest mount; expected one, or a new image",
            ),
            (Fault::Corrupt(what), None) => Error::input("mount", format!("the file system is damaged: {what}")),
            (fault, failure) => Error::input("mount", format!("the drive cannot be used: {fault:?} {failure:?}")),
        })?;
        disk.held.clear();
        if disk.shape.channels == 1 {
            filesystem.enable_page_trims();
        }
        let scheme = scheme.to_owned();
        Ok(Volume { filesystem, disk, scheme, thresholds, losses: 0, ended: None, worn_out: false })
    }

    /// Number of losses of uncommitted changes, by power cuts or uncorrectable reads. After a loss, numbers of inodes
    /// outside the tree of the last commit are invalid.
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// The drive.
    pub fn served(&self) -> &Served<'a> {
        &self.disk.served
    }

    /// Notes seconds of this service; the next write reports errors of the image.
    pub fn note_controller(&mut self, powered_s: u64) {
        let _ = self.disk.served.note_controller(powered_s, 0);
    }

    /// The file system.
    pub fn filesystem(&self) -> &FileSystem {
        &self.filesystem
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        self.disk.shape.page_bytes
    }

    /// The first error that ended the drive.
    pub fn ended(&self) -> Option<&Error> {
        self.ended.as_ref()
    }

    /// Executes an operation.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn with<T>(
        &mut self,
        operation: impl FnOnce(&mut FileSystem, &mut dyn Device) -> Done<T>,
    ) -> std::result::Result<T, Trouble> {
        if self.ended.is_some() || self.worn_out {
            return Err(Trouble::Drive);
        }
        let done = operation(&mut self.filesystem, &mut self.disk);
        self.disk.held.clear();
        let fault = match (done, self.disk.failure.take()) {
            (Ok(done), None) => return Ok(done),
            (Err(fault), None) => return Err(Trouble::Refused(fault)),
            (_, Some(failure)) => failure,
        };
        match fault {
            Failure::Unreadable => {
                // The operation may be half done, but the tree of the last commit is whole.
                self.mount_again()?;
                Err(Trouble::Unreadable)
            }
            Failure::PowerLost => {
                self.mount_again()?;
                Err(Trouble::PowerLost)
            }
            Failure::WornOut(_) | Failure::Zone(_) => {
                self.worn_out = true;
                Err(Trouble::Drive)
            }
            Failure::Drive(error) => {
                self.ended = Some(error);
                Err(Trouble::Drive)
            }
        }
    }

    fn mount_again(&mut self) -> std::result::Result<(), Trouble> {
        self.losses += 1;
        loop {
            let scheme = schemes::new(&self.scheme).expect("it was there at first");
            let mounted = FileSystem::mount(&mut self.disk, self.thresholds, scheme);
            self.disk.held.clear();
            match (mounted, self.disk.failure.take()) {
                (Ok(mut filesystem), None) => {
                    if self.disk.shape.channels == 1 {
                        filesystem.enable_page_trims();
                    }
                    self.filesystem = filesystem;
                    return Ok(());
                }
                (_, Some(Failure::PowerLost)) => {}
                (_, Some(Failure::Drive(error))) => {
                    self.ended = Some(error);
                    return Err(Trouble::Drive);
                }
                (fault, failure) => {
                    let what = format!("the file system cannot be mounted again: {:?} {failure:?}", fault.err());
                    self.ended = Some(Error::WornOut(what));
                    return Err(Trouble::Drive);
                }
            }
        }
    }

    /// Commits, ends the drive, and returns the result.
    ///
    /// # Errors
    /// The first error of the drive, and the errors of [`Served::finish`].
    pub fn finish(mut self) -> Result<Outcome> {
        let _ = self.with(|filesystem, device| filesystem.sync(device));
        if let Some(error) = self.ended {
            return Err(error);
        }
        let counters = self.filesystem.counters();
        let mut outcome = self.disk.served.finish()?;
        outcome.summary.notes.push(format!(
            "the file system wrote {} pages of files and {} of its own ({} commits), and its collection moved {}",
            counters.data_pages, counters.metadata_pages, counters.commits, counters.moved_pages
        ));
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
