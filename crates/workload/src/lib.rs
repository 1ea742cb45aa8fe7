//! The host side: workloads and the sources of their requests.
//!
//! A workload is a [`Source`](request::Source) of requests: a recorded [`trace`] or a generator described in [fio's
//! language](fio). This crate uses no drive, and opens no files.

pub mod batches;
pub mod described;
pub mod file_names;
pub mod fio;
pub mod fuzzing;
pub mod in_order;
pub mod lsm;
pub mod namespaces;
pub mod object_figures;
pub mod objects;
pub mod replay;
pub mod request;
pub mod settings;
pub mod trace;
pub mod volume_names;
