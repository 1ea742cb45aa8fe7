//! Maps of a log's units to physical units. The log moves units and records their places; each map chooses the storage.
//!
//! [`full`] holds every entry in DRAM. [`shared`] adds the subpages that a layer stores outside the log. [`cached`]
//! stores entries in flash, as pages of the same log, and caches some in DRAM.

pub mod bytes;
pub mod cached;
pub mod full;
mod segments;
pub mod shared;
