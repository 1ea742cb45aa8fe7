//! What a file system can be told.

use palimpsest_flash::units::Nanos;

/// Which file a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Files {
    /// The one that the workload names; where it names none, that of the range of addresses.
    Names,
    /// That of the range of addresses, whatever the workload says.
    Addresses,
}

/// Which pages of a large write a channel gets together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DepthPages {
    /// Consecutive ones.
    Consecutive,
    /// On n channels every n-th, so that neighbours lie on different channels.
    Apart,
}

/// What a file system tells the layer below of what it no longer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Discard {
    /// Pages where the layer maps subpages, blocks else.
    Auto,
    /// Blocks, when all of their pages are free.
    Blocks,
    /// Pages too, after the commit that freed them.
    Pages,
}

/// Settings of a file system above a layer.
#[derive(Debug, Clone, PartialEq)]
pub struct FileSystemSettings {
    /// Name of the channel allocation scheme.
    pub scheme: String,
    /// Which pages schemes with dynamic depth put on one channel.
    pub depth_pages: DepthPages,
    /// Hand-over of the FTL's memory, for each command group.
    pub dispatch_overhead: Nanos,
    /// Which file a request belongs to.
    pub files: Files,
    /// Bytes of the files of ranges of addresses.
    pub file_bytes: u64,
    /// Collection starts when less than this share of the space is free.
    pub gc_start: f64,
    /// It stops when this share more is free.
    pub gc_gain: f64,
    /// How long after a change a commit makes it durable, if nobody asks for that before.
    pub commit_interval: Nanos,
    /// What the layer hears of what is free.
    pub discard: Discard,
}

impl Default for FileSystemSettings {
    /// The schema's defaults.
    fn default() -> Self {
        FileSystemSettings {
            scheme: "rr".into(),
            depth_pages: DepthPages::Consecutive,
            dispatch_overhead: 3000,
            files: Files::Names,
            file_bytes: 64 << 20,
            gc_start: 0.05,
            gc_gain: 0.1,
            commit_interval: 5_000_000_000,
            discard: Discard::Auto,
        }
    }
}
