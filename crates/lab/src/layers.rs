//! The registry of layers: the translation layers, the file systems above some, and the layers that a program adds.

use palimpsest_ftl_api::Entry;
use std::sync::OnceLock;

static ADDED: OnceLock<&'static [Entry]> = OnceLock::new();

/// Adds layers to the registry of the process: once, and before the first configuration is read.
///
/// # Panics
/// A name is taken, or layers were added before. Both are bugs of the program.
pub fn add(entries: &'static [Entry]) {
    for (index, entry) in entries.iter().enumerate() {
        let taken = built_in().chain(&entries[..index]).any(|other| other.name == entry.name);
        assert!(!taken, "a layer called {} is in the registry already", entry.name);
    }
    assert!(ADDED.set(entries).is_ok(), "layers are added once");
}

fn built_in() -> impl Iterator<Item = &'static Entry> {
    palimpsest_ftl::REGISTRY.iter().chain(palimpsest_fs::layers::ENTRIES)
}

/// Every layer.
pub fn layers() -> impl Iterator<Item = &'static Entry> {
    built_in().chain(ADDED.get().copied().unwrap_or_default())
}

/// Whether the layer called `name` comes from this program's sources, not from another crate.
pub fn is_built_in(name: &str) -> bool {
    built_in().any(|entry| entry.name == name)
}

/// The layer called `name`.
pub fn find_layer(name: &str) -> Option<&'static Entry> {
    layers().find(|entry| entry.name == name)
}
