//! The registry of layers: the translation layers, the file systems above some, the layers that a program adds, and
//! those that a program finds by name, such as classes in Python.

use palimpsest_flash::units::parse::Parsed;
use palimpsest_ftl_api::Entry;
use std::sync::{OnceLock, RwLock};

static ADDED: OnceLock<&'static [Entry]> = OnceLock::new();

/// Layers outside the registry, which a program finds by name.
pub struct Outside {
    /// The form of their names, for messages.
    pub form: &'static str,
    /// The layer that a text names, under its canonical name; `None` if the text has another form. The keys of these
    /// layers must be in tables without other keys.
    pub read: fn(&str) -> Option<Parsed<&'static Entry>>,
}

/// The layers outside the registry, set once.
pub static OUTSIDE: OnceLock<Outside> = OnceLock::new();

/// The layers found outside the registry.
static FOUND: RwLock<Vec<&'static Entry>> = RwLock::new(Vec::new());

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

/// The layer called `name`, among those found outside the registry too.
pub fn find_layer(name: &str) -> Option<&'static Entry> {
    layers().chain(found()).find(|entry| entry.name == name)
}

/// The layers outside the registry found so far.
pub(crate) fn found() -> Vec<&'static Entry> {
    FOUND.read().expect("no reader panics").clone()
}

/// Lets [`find_layer`] find `entry` from now on, if `fits` accepts the layer beside those found before.
pub(crate) fn enter<E>(entry: &'static Entry, fits: impl FnOnce(&[&'static Entry]) -> Result<(), E>) -> Result<(), E> {
    let mut found = FOUND.write().expect("no writer panics");
    if !found.iter().any(|known| known.name == entry.name) {
        fits(&found)?;
        found.push(entry);
    }
    Ok(())
}
