//! The host side: requests, workloads, traces, and the host's own view of its data.

pub mod request;
pub mod settings;
pub mod shadow;
