//! What the file system asks of a device: pages that are written once in order, TRIM of blocks, and the channel in the
//! address.
//!
//! A logical page address counts the pages of block after block, blocks channel by channel: its high part names the channel,
//! and consecutive blocks of a channel lie on its chips, dies and planes in turn (its lanes).

use palimpsest_flash::nand::Flash;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::inner::Life;

/// No page.
pub const NO_PAGE: u32 = u32::MAX;

/// How many of each a device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Channels.
    pub channels: u32,
    /// Planes of a channel, over which its blocks go in turn.
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

/// Why the file system touches a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Contents of files.
    Data,
    /// Its own records: inodes, pointers, directories, checkpoints.
    Metadata,
}

/// A device. Errors of all methods are those of flash; after one the file system must be mounted again.
pub trait Device {
    /// Its shape.
    fn shape(&self) -> Shape;

    /// Writes `page`, which was not written since the trim of its block, and no later page of the block was.
    fn write(&mut self, page: u32, contents: &[Data], purpose: Purpose) -> Flash<()>;

    /// Reads `page` into `contents`, an entry a subpage. False where it was never written, or its write was cut off.
    fn read(&mut self, page: u32, purpose: Purpose, contents: &mut Vec<Data>) -> Flash<bool>;

    /// Writes the contents of page `from` to page `to`, as garbage collection does.
    fn copy(&mut self, from: u32, to: u32) -> Flash<()>;

    /// What is written next, and then trimmed, waits until all that was written so far is durable.
    fn barrier(&mut self) -> Flash<()>;

    /// Forgets `pages` pages from `page` on, which are not written again before their block is trimmed; after a mount, which
    /// cannot know of them, those behind the last that is left may be. May be undone by a power cut. Only where the file system
    /// was told to ([`super::FileSystem::discards_pages`]).
    fn discard(&mut self, _page: u32, _pages: u32) -> Flash<()> {
        Ok(())
    }

    /// How long the pages of files that are written from now on will live.
    fn will_live(&mut self, _life: Life) {}

    /// Forgets the pages of `block`, which may be written again from the first on. May be undone by a power cut.
    fn trim(&mut self, block: u32) -> Flash<()>;

    /// How many pages of `block`, from the first on, may have been written since its trim.
    fn written(&self, block: u32) -> u32;

    /// Contents of a page, whatever it holds, where nobody will ever look at them.
    fn anything(&self) -> Option<Vec<Data>> {
        None
    }

    /// Contents for a page that holds `bytes`.
    fn hold(&mut self, bytes: &[u8]) -> Vec<Data>;

    /// The bytes of a page's contents; `None` where they are not bytes that somebody held.
    fn bytes(&self, contents: &[Data]) -> Option<Vec<u8>>;

    /// Whether reads of the host are under way in `channel`.
    fn reading(&self, channel: u32) -> bool;

    /// Time that what waits or runs in `channel` will take from now on, reads included.
    fn queued(&self, _channel: u32) -> Nanos {
        0
    }

    /// What a page adds to that when it is written, and when it is read.
    fn page_times(&self) -> (Nanos, Nanos) {
        (0, 0)
    }

    /// Erases of `channel` so far.
    fn wear(&self, channel: u32) -> u64;
}
