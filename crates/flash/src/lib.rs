//! Flash and what everything is built from: units, geometry, random numbers, errors, and the NAND with its rules.
//!
//! The lowest crate. It knows no translation layer, no queue, no workload and no file system, does no I/O and has no clock.

pub mod error;
pub mod geometry;
pub mod nand;
pub mod prefetch;
pub mod rng;
pub mod units;
