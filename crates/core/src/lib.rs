//! The simulator core of Palimpsest.
pub mod error;
pub mod ftl;
pub mod geometry;
pub mod host;
pub mod metrics;
pub mod nand;
pub mod observe;
pub mod parts;
pub mod rng;
pub mod sim;
pub mod units;
