//! The host side: what a workload is, where its requests come from, and the host's own view of its data.
//!
//! A workload is a [`Source`](request::Source) of requests: a recorded [`trace`] or a generator described in
//! [fio's language](fio). Nothing here knows the drive behind it, and nothing opens files.

pub mod file_names;
pub mod fio;
pub mod fs;
pub mod fuzzing;
pub mod request;
pub mod settings;
pub mod shadow;
pub mod trace;

use crate::ftl::{self, Entry};

/// Everything that can stand between a host's requests and flash: the layers, and the file systems above some of them.
pub fn layers() -> impl Iterator<Item = &'static Entry> {
    ftl::REGISTRY.iter().chain(fs::layers::ENTRIES)
}

/// The one called `name`.
pub fn find_layer(name: &str) -> Option<&'static Entry> {
    layers().find(|entry| entry.name == name)
}
