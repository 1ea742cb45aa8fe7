//! The host side: what a workload is, where its requests come from, and the host's own view of its data.
//!
//! A workload is a [`Source`](request::Source) of requests: a recorded [`trace`] or a generator described in
//! [fio's language](fio). Nothing here knows the drive behind it, and nothing opens files.

pub mod file_names;
pub mod fio;
pub mod fuzzing;
pub mod request;
pub mod settings;
pub mod trace;
