//! The simulator core of Palimpsest.
pub mod config;
pub mod error;
pub mod ftl;
pub mod geometry;
pub mod host;
pub mod nand;
pub mod rng;
pub mod sim;
pub mod units;
