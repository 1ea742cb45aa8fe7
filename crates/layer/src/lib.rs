//! The interface of layers, and the code that layers share: a crate with layers needs this crate only.
//!
//! The modules of flash, ftl-api, wom and ftl are re-exported. [`plugin!`] makes a library of layers that the installed
//! program loads.

pub mod plugin;

pub use palimpsest_flash::{command, error, geometry, nand, prefetch, rng, state, units};
pub use palimpsest_ftl::log;
pub use palimpsest_ftl_api::plan;
pub use palimpsest_wom as wom;

/// Translation layers.
pub mod ftl {
    pub use palimpsest_ftl::layers::*;
    pub use palimpsest_ftl::*;
    pub use palimpsest_ftl_api::*;
}
