//! The registry of layers: the translation layers, the file systems above some, and the layers that a program adds.

use palimpsest_ftl_api::Entry;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// Layers of other crates.
struct Added {
    /// Each with the name of the crate or distribution.
    entries: Vec<(&'static Entry, String)>,
    /// True once the keys are gathered: a later layer would have none.
    is_closed: bool,
}

static ADDED: RwLock<Added> = RwLock::new(Added { entries: Vec::new(), is_closed: false });

fn added() -> RwLockReadGuard<'static, Added> {
    ADDED.read().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the layers of `owner` to the registry of the process, before the first configuration is read. The caller must
/// check their keys ([`crate::config::schema::check_new`]).
///
/// # Errors
/// A name is taken, or a configuration was read before.
pub fn add(entries: &'static [Entry], owner: &str) -> Result<(), String> {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    if added.is_closed {
        return Err("a configuration was read before; expected the layers of a plug-in first".into());
    }
    for (index, entry) in entries.iter().enumerate() {
        let built_in = built_in().map(|other| (other.name, "palimpsest"));
        let added = added.entries.iter().map(|(other, owner)| (other.name, owner.as_str()));
        let mut others = built_in.chain(added).chain(entries[..index].iter().map(|other| (other.name, owner)));
        if let Some((name, owner)) = others.find(|(name, _)| *name == entry.name) {
            return Err(format!("{owner} has a layer called {name} already; expected another name"));
        }
    }
    added.entries.extend(entries.iter().map(|entry| (entry, owner.to_owned())));
    Ok(())
}

/// Refuses layers from now on.
pub(crate) fn close() {
    ADDED.write().unwrap_or_else(PoisonError::into_inner).is_closed = true;
}

fn built_in() -> impl Iterator<Item = &'static Entry> {
    palimpsest_ftl::REGISTRY.iter().chain(palimpsest_fs::layers::ENTRIES)
}

/// Every layer.
pub fn layers() -> impl Iterator<Item = &'static Entry> {
    built_in().chain(added().entries.iter().map(|(entry, _)| *entry).collect::<Vec<_>>())
}

/// Whether the layer called `name` comes from this program's sources, not from another crate.
pub fn is_built_in(name: &str) -> bool {
    built_in().any(|entry| entry.name == name)
}

/// The layer called `name`.
pub fn find_layer(name: &str) -> Option<&'static Entry> {
    layers().find(|entry| entry.name == name)
}
