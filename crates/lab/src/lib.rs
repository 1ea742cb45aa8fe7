//! The laboratory: from a configuration and a workload to a result. No input or output, no wall clock.
//!
//! The crates below, lowest first: flash; ftl-api and workload; wom; ftl and sim; layer; fs. Their modules are
//! re-exported, so that programs and tests need this crate only.

pub mod config;
pub mod metrics;
pub mod run;

pub use palimpsest_layer::*;
pub use palimpsest_sim::{self as sim, observe};

/// The host: workloads, file systems, and the shadow of the host's data.
pub mod host {
    pub use crate::layers::{find_layer, layers};
    pub use palimpsest_fs as fs;
    pub use palimpsest_sim::shadow;
    pub use palimpsest_workload::*;
}

pub mod layers;

/// Compiles and runs the code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/write-an-ftl.md")]
pub struct Guide;
