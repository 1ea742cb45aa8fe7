//! Settings of the host side.

use palimpsest_flash::units::{Nanos, Rate};

/// The acknowledgement of a buffered write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Acknowledge {
    /// When the data is in the (power-protected) buffer.
    Buffer,
    /// When the data is programmed.
    Program,
    /// When the data is in a buffer that a power cut erases, on any layer.
    Volatile,
}

/// Settings of the host and of the drive's write buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct HostSettings {
    /// Arrival times of an open loop are divided by this.
    pub speedup: f64,
    /// Addresses beyond the drive are folded (modulo the drive's size) instead of refused.
    pub fold: bool,
    /// Bytes of a piece of a compacted trace; 0: addresses as recorded.
    pub piece_bytes: u64,
    /// Transfer rate between host and drive; unlimited when 0.
    pub link_rate: Rate,
    /// Host time of each request; requests overlap.
    pub t_request: Nanos,
    /// Queue depth instead of the workload's; 0: the workload's.
    pub iodepth: u32,
    /// Bytes of the write buffer of buffered translation layers.
    pub buffer_bytes: u64,
    /// The acknowledgement of a buffered write.
    pub acknowledge: Acknowledge,
    /// A flush ends at once, because the buffer is protected.
    pub flush_is_free: bool,
    /// A partly filled page of the buffer is padded and programmed when the oldest subpage has waited this long.
    pub buffer_timeout: Nanos,
}
