//! Everything that can stand between a host's requests and flash: the translation layers, and the file systems above some.

use palimpsest_ftl_api::Entry;

/// Every one of them.
pub fn layers() -> impl Iterator<Item = &'static Entry> {
    palimpsest_ftl::REGISTRY.iter().chain(palimpsest_fs::layers::ENTRIES)
}

/// The one called `name`.
pub fn find_layer(name: &str) -> Option<&'static Entry> {
    layers().find(|entry| entry.name == name)
}
