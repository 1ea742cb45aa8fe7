//! The simulation of time: a discrete-event engine with the queues and resources of a drive.
//!
//! Models channel buses, dies with planes and cache registers, multi-plane commands, program and erase suspend, and the
//! scheduling of each die's queue. A translation layer has changed the cells already when the engine accepts a plan;
//! the engine only computes when each operation ends. The controller adds latency before and after flash. Ignored:
//! contention for the controller's DRAM.

pub mod causality;
mod controller;
pub mod drive;
pub mod engine;
pub mod events;
pub mod faults;
pub mod fingerprint;
pub mod observe;
pub mod queues;
mod ring;
pub mod settings;
pub mod shadow;
pub mod timeline;
