//! Flash translation layers.
pub mod settings;
