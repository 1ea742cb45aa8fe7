//! The conditions of a run that decide whether its figures compare with those of another run: space, buffer, units of
//! collection, open blocks, and how busy the drive was. `palimpsest.fair` (Python) reads them. Ignored: conditions that
//! the result states elsewhere, such as the promise for a write.

use serde::Serialize;

/// Conditions of a run. `spare_blocks`, `reserved_blocks` and `open_blocks` are blocks of each plane when the drive is
/// full; with superblocks, superblocks of each set of dies. `open_blocks` contains a block for collection.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Basis {
    pub physical_bytes: u64,
    pub logical_bytes: u64,
    /// Bytes that collection, or the host of zones, erases together.
    pub unit_bytes: u64,
    /// `block`, `superblock`, `reclaim unit` or `zone`.
    pub unit: &'static str,
    pub spare_blocks: u64,
    /// Blocks among the spare ones that the layer or the controller reserves.
    pub reserved_blocks: u64,
    /// Null if the host opens zones.
    pub open_blocks: Option<u64>,
    pub buffer_bytes: u64,
    /// Null at count fidelity.
    pub busy: Option<Busy>,
    /// Whether requests arrive at times of their own, not upon an answer.
    pub is_open: bool,
    /// Whether a write since preconditioning named the placement identifier or the expected lifetime by which the layer
    /// places data. Null if the layer reads neither.
    pub named: Option<bool>,
}

/// Shares of the measured time in which buses and dies were busy.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Busy {
    pub channels: Share,
    pub dies: Share,
}

/// The mean of several parts of the drive, and the busiest part.
#[derive(Debug, Clone, Copy, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Share {
    pub mean: f64,
    pub max: f64,
}

impl Share {
    /// Of one share for each part.
    pub fn of(parts: &[f64]) -> Share {
        let max = parts.iter().copied().fold(0.0, f64::max);
        Share { mean: parts.iter().sum::<f64>() / parts.len().max(1) as f64, max }
    }
}
