//! Flash, and the base of all crates: units, geometry, random numbers, errors, and the NAND with its rules.
//!
//! The lowest crate: no translation layer, queue, workload or file system, no input or output, no clock.

pub mod command;
pub mod error;
pub mod geometry;
pub mod huge_pages;
pub mod keys;
pub mod nand;
pub mod past_caches;
pub mod pieces;
pub mod prefetch;
pub mod rng;
pub mod state;
pub mod units;
