//! What the host side can be told.

use crate::units::{Nanos, Rate};

/// When a buffered write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Acknowledge {
    /// When its data stands in the (power-protected) buffer.
    Buffer,
    /// When its data is programmed.
    Program,
}

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

#[cfg(test)]
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

/// Settings of the host and of the drive's write buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct HostSettings {
    /// Arrival times of an open loop are divided by this.
    pub speedup: f64,
    /// Whether addresses beyond the drive are folded into it (modulo its size) instead of being refused.
    pub fold: bool,
    /// Transfer rate between host and drive; unlimited when 0.
    pub link_rate: Rate,
    /// Queue depth that overrides what the workload asks for; 0 leaves it to the workload.
    pub iodepth: u32,
    /// Bytes of the write buffer of buffered translation layers.
    pub buffer_bytes: u64,
    /// When a buffered write is acknowledged.
    pub acknowledge: Acknowledge,
    /// A partly filled page of the buffer is padded and programmed when its oldest subpage has waited this long.
    pub buffer_timeout: Nanos,
}
