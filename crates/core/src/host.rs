//! The host side: requests, workloads, traces.

pub mod request;
pub mod settings;
