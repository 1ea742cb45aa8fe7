//! The simulator core of Palimpsest: solid-state drives that write a flash page more than once.
//!
//! It does no I/O and knows no wall clock. Modules stand lowest first; each may use those before it (a test enforces it):
//! [`error`], [`prefetch`], [`rng`], [`units`], [`geometry`], [`observe`], [`nand`], [`plan`], [`wom`], [`parts`], [`ftl`], [`sim`], [`host`],
//! [`metrics`], [`config`], [`run`].

pub mod config;
pub mod error;
pub mod ftl;
pub mod geometry;
pub mod host;
pub mod metrics;
pub mod nand;
pub mod observe;
pub mod parts;
pub mod plan;
pub mod prefetch;
pub mod rng;
pub mod run;
pub mod sim;
pub mod units;
pub mod wom;

/// The code of the guide is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/write-an-ftl.md")]
pub struct Guide;
