//! What the file system needs of a device: pages that are written once and in order, TRIM of blocks, and the channel in the
//! address.
//!
//! Logical page addresses count page by page, block by block, channel by channel: the high bits name the channel, and
//! consecutive blocks of a channel are on its chips, dies and planes in turn (its lanes).

use palimpsest_flash::nand::Flash;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::inner::Hint;

/// No page.
pub const NO_PAGE: u32 = u32::MAX;

/// The dimensions of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Channels.
    pub channels: u32,
    /// Planes of a channel, which hold its blocks in turn.
    pub lanes: u32,
    /// Logical blocks of a channel, at least two.
    pub blocks_per_channel: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Subpages of a page: entries of a page's contents.
    pub subpages_per_page: u32,
    /// Bytes of a page, at least 512.
    pub page_bytes: u32,
}

impl Shape {
    /// Blocks of the device.
    pub fn blocks(&self) -> u32 {
        self.channels * self.blocks_per_channel
    }

    /// Pages of the device.
    pub fn pages(&self) -> u32 {
        self.blocks() * self.pages_per_block
    }

    /// The channel that the address of `block` names.
    pub fn channel_of_block(&self, block: u32) -> u32 {
        block / self.blocks_per_channel
    }

    /// The channel that the address `page` names.
    pub fn channel(&self, page: u32) -> u32 {
        self.channel_of_block(page / self.pages_per_block)
    }

    /// The lane of `block`, counted over all channels.
    pub fn lane(&self, block: u32) -> u32 {
        self.channel_of_block(block) * self.lanes + block % self.blocks_per_channel % self.lanes
    }
}

/// What a page of the file system is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Contents of files.
    Data,
    /// Inodes, pointers, directories, checkpoints.
    Metadata,
}

/// A device. Errors of all methods are those of flash; after one the file system must be mounted again.
pub trait Device {
    /// Its shape.
    fn shape(&self) -> Shape;

    /// Writes `page`. Since the trim of its block neither it nor a later page of the block was written.
    fn write(&mut self, page: u32, contents: &[Data], purpose: Purpose) -> Flash<()>;

    /// Reads `page` into `contents`, an entry a subpage. False where it was never written, or a power cut interrupted its write.
    fn read(&mut self, page: u32, purpose: Purpose, contents: &mut Vec<Data>) -> Flash<bool>;

    /// Writes the contents of page `from` to page `to`, as garbage collection does.
    fn copy(&mut self, from: u32, to: u32) -> Flash<()>;

    /// Later writes and trims wait until all earlier writes are durable.
    fn barrier(&mut self) -> Flash<()>;

    /// Unmaps `pages` pages from `page` on. They are not written again before the trim of their block; after a mount, which has no
    /// record of them, those after the last mapped page may be. A power cut may undo it. Called only after
    /// [`super::FileSystem::enable_page_trims`].
    fn discard(&mut self, _page: u32, _pages: u32) -> Flash<()> {
        Ok(())
    }

    /// Sets the hint of the file pages that are written from now on.
    fn set_hint(&mut self, _hint: Hint) {}

    /// Unmaps the pages of `block`, which may be written again from the first on. A power cut may undo it.
    fn trim(&mut self, block: u32) -> Flash<()>;

    /// Pages of `block`, from the first on, that may have been written since its trim.
    fn written(&self, block: u32) -> u32;

    /// Contents for any page, where contents are never read.
    fn anything(&self) -> Option<Vec<Data>> {
        None
    }

    /// Contents for a page that holds `bytes`.
    fn hold(&mut self, bytes: &[u8]) -> Vec<Data>;

    /// The bytes of a page's contents; `None` where [`Self::hold`] did not make them.
    fn bytes(&self, contents: &[Data]) -> Option<Vec<u8>>;

    /// Whether reads of the host are under way in `channel`.
    fn reading(&self, channel: u32) -> bool;

    /// Pages that `channel` has to read or program.
    fn outstanding(&self, _channel: u32) -> u32 {
        0
    }

    /// Time until all queued and running operations of `channel` end.
    fn queued(&self, _channel: u32) -> Nanos {
        0
    }

    /// Time that the write of a page adds to that, and its read.
    fn page_times(&self) -> (Nanos, Nanos) {
        (0, 0)
    }

    /// Erases of `channel` so far.
    fn wear(&self, channel: u32) -> u64;
}
