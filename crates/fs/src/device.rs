//! The device of a file system: pages written once and in order, trims of blocks, and the channel in the address.
//!
//! Logical page addresses count page by page, block by block, channel by channel: the high bits name the channel, and
//! consecutive blocks of a channel are on its chips, dies and planes in turn (its lanes).

use palimpsest_flash::command::Lifetime;
use palimpsest_flash::nand::Flash;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::units::Nanos;

pub const NO_PAGE: u32 = u32::MAX;

/// Blocks that are written in part at a time: two of checkpoints, one of other metadata, one of files.
pub const LEAST_ACTIVE: u32 = 4;

/// The dimensions of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shape {
    pub channels: u32,
    /// Planes of a channel, which hold its blocks in turn.
    pub lanes: u32,
    /// Logical blocks of a channel, at least two.
    pub blocks_per_channel: u32,
    pub pages_per_block: u32,
    /// Subpages of a page: entries of the contents of a page.
    pub subpages_per_page: u32,
    /// Bytes of a page, at least 512.
    pub page_bytes: u32,
    /// Most blocks that may be written in part at a time: active zones, at least [`LEAST_ACTIVE`]; 0: no limit.
    pub most_active: u32,
}

impl Shape {
    pub fn blocks(&self) -> u32 {
        self.channels * self.blocks_per_channel
    }

    pub fn pages(&self) -> u32 {
        self.blocks() * self.pages_per_block
    }

    pub fn channel_of_block(&self, block: u32) -> u32 {
        block / self.blocks_per_channel
    }

    pub fn channel(&self, page: u32) -> u32 {
        self.channel_of_block(page / self.pages_per_block)
    }

    /// Most updating blocks of a channel, and most blocks of metadata that are written in part at a time.
    pub fn most_updating(&self) -> (u32, u32) {
        if self.most_active == 0 {
            return (self.lanes, self.channels);
        }
        let beside = self.most_active - (LEAST_ACTIVE - 2);
        let updating = ((beside - 1) / self.channels).min(self.lanes);
        (updating, (beside - updating * self.channels).min(self.channels))
    }

    /// The lane of `block`, counted over all channels.
    pub fn lane(&self, block: u32) -> u32 {
        self.channel_of_block(block) * self.lanes + block % self.blocks_per_channel % self.lanes
    }
}

/// The purpose of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Data,
    /// Inodes, pointers, directories, checkpoints.
    Metadata,
}

/// The operations that wait or run in a channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Whether reads of the host are under way.
    pub reading: bool,
    /// Pages to read or program.
    pub outstanding: u32,
    /// Time until all operations end.
    pub queued: Nanos,
}

/// A device. All errors are errors of flash; after one the file system must be mounted again.
pub trait Device {
    fn shape(&self) -> Shape;

    /// Writes `page`. Neither `page` nor a later page of the block may have been written since the trim of the block.
    fn write(&mut self, page: u32, contents: &[Data], purpose: Purpose) -> Flash<()>;

    /// Reads `page` into `contents`, an entry a subpage; false if never written, or if a power cut interrupted
    /// the write.
    fn read(&mut self, page: u32, purpose: Purpose, contents: &mut Vec<Data>) -> Flash<bool>;

    /// Copies page `from` to page `to`, as garbage collection does.
    fn copy(&mut self, from: u32, to: u32) -> Flash<()>;

    /// Makes later writes and trims wait until all earlier writes are durable.
    fn barrier(&mut self) -> Flash<()>;

    /// Unmaps `pages` pages from `page` on. They are not written again before the trim of their block; after a mount,
    /// which has no record of them, pages after the last mapped one may be. A power cut may undo a discard. Called only
    /// after [`super::FileSystem::enable_page_trims`].
    fn discard(&mut self, _page: u32, _pages: u32) -> Flash<()> {
        Ok(())
    }

    /// Sets the hint of later writes of file pages.
    fn set_hint(&mut self, _hint: Lifetime) {}

    /// Unmaps the pages of `block`, which may be written again from the first on. A power cut may undo a trim.
    fn trim(&mut self, block: u32) -> Flash<()>;

    /// Declares that no page of `block`, which is written in part, will be written before its trim. Called only if
    /// [`Shape::most_active`] limits such blocks.
    fn finish(&mut self, _block: u32) -> Flash<()> {
        Ok(())
    }

    /// Pages of `block`, from the first on, that may have been written since its trim.
    fn written(&self, block: u32) -> u32;

    /// Contents for any page, if contents are never read.
    fn anything(&self) -> Option<Vec<Data>> {
        None
    }

    /// Contents for a page that holds `bytes`.
    fn hold(&mut self, bytes: &[u8]) -> Vec<Data>;

    /// The bytes of the contents of a page; `None` if [`Self::hold`] did not make them.
    fn bytes(&self, contents: &[Data]) -> Option<Vec<u8>>;

    /// The operations that wait or run in `channel`.
    fn load(&self, _channel: u32) -> Load {
        Load::default()
    }

    /// Times that the write and the read of a page add to the queue of a channel.
    fn page_times(&self) -> (Nanos, Nanos) {
        (0, 0)
    }

    /// Erases of `channel` so far.
    fn wear(&self, channel: u32) -> u64;
}
