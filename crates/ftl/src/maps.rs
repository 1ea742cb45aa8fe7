//! Maps: where each unit of a log is. A log moves units and says where they are; how that is kept is up to the map.
//!
//! [`full`] keeps every entry in DRAM; [`shared`] adds which subpages are outside the log; [`cached`] keeps its entries in
//! flash, as pages of the same log, and some of them in DRAM.

pub mod bytes;
pub mod cached;
pub mod full;
mod segments;
pub mod shared;
