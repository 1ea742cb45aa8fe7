//! Settings of the host side.

use palimpsest_flash::units::{Nanos, Rate};

/// When a buffered write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Acknowledge {
    /// When its data is in the (power-protected) buffer.
    Buffer,
    /// When its data is programmed.
    Program,
    /// When its data is in a buffer that loses it with the power, on any layer.
    Volatile,
}

/// Settings of the host and of the drive's write buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct HostSettings {
    /// Arrival times of an open loop are divided by this.
    pub speedup: f64,
    /// Whether addresses beyond the drive are folded into it (modulo its size) instead of being refused.
    pub fold: bool,
    /// Bytes of the pieces of its address space to which a trace is compacted; 0: addresses as they are.
    pub piece_bytes: u64,
    /// Transfer rate between host and drive; unlimited when 0.
    pub link_rate: Rate,
    /// Time in the host of each request, beside that of others.
    pub t_request: Nanos,
    /// Queue depth that overrides that of the workload; 0: that of the workload.
    pub iodepth: u32,
    /// Bytes of the write buffer of buffered translation layers.
    pub buffer_bytes: u64,
    /// When a buffered write is acknowledged.
    pub acknowledge: Acknowledge,
    /// Whether a flush ends at once, since the buffer is protected.
    pub flush_is_free: bool,
    /// A partly filled page of the buffer is padded and programmed when its oldest subpage has waited this long.
    pub buffer_timeout: Nanos,
}
