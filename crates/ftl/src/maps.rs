//! Maps: where each unit of a log is. A log moves units and says where they are; how that is kept is the map's business.
//!
//! [`full`] keeps every entry in DRAM, [`shared`] also knows what stands elsewhere than in the log, [`cached`] keeps its entries
//! in flash, as pages of the same log, and some of them in DRAM.

pub mod bytes;
pub mod cached;
pub mod full;
mod segments;
pub mod shared;
