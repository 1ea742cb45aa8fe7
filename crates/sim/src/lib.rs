//! When flash operations happen: a discrete-event engine with the queues and resources of a drive.
//!
//! Models channel buses, dies with their planes and cache registers, multi-plane commands, program and erase suspend, and
//! the scheduling of each die's queue. Operations arrive as plans of a translation layer that has already changed the
//! cells; the engine only computes when each of them ends. The controller has times of its own before and after flash.
//! Ignored: that its DRAM is shared.

pub mod causality;
mod controller;
pub mod die_failures;
pub mod drive;
pub mod engine;
pub mod events;
pub mod fingerprint;
pub mod observe;
pub mod power_cuts;
pub mod settings;
pub mod shadow;
pub mod timeline;
