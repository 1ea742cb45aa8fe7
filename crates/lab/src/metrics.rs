//! Measurements: they observe, and never change a result.

pub mod basis;
pub mod curve;
pub mod endurance;
pub mod fdp;
pub mod histogram;
pub mod jobs;
pub mod life;
pub mod lifetime;
pub mod operations;
pub mod profile;
pub mod recorder;
pub mod snapshots;
pub mod steady;
pub mod summary;
mod tail;
pub mod tenants;
pub mod volumes;
pub mod why;
pub mod zns;
