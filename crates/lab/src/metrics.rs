//! Measurements. They observe; they never change a result.

pub mod histogram;
pub mod lifetime;
pub mod operations;
pub mod profile;
pub mod recorder;
pub mod report;
pub mod snapshots;
mod tail;
