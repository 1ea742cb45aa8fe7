//! The registry of layers: the translation layers, the file systems above some, the layers that a program adds, and
//! those that a program finds by name, such as classes in Python.

use palimpsest_flash::units::parse::Parsed;
use palimpsest_ftl_api::Entry;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard};

/// Layers of other crates.
struct Added {
    /// Each with the name of the crate or distribution.
    entries: Vec<(&'static Entry, String)>,
    /// True once the keys are gathered: a later layer would have none.
    is_closed: bool,
}

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

/// The owner of the layer of the registry called `name`: palimpsest, or the crate or distribution that added the layer.
pub fn owner_of(name: &str) -> Option<String> {
    let built_in = is_built_in(name).then(|| "palimpsest".to_owned());
    built_in.or_else(|| added().entries.iter().find(|(entry, _)| entry.name == name).map(|(_, owner)| owner.clone()))
}

/// The layer called `name`, among those found outside the registry too.
pub fn find_layer(name: &str) -> Option<&'static Entry> {
    let of_name = |entry: &&'static Entry| entry.name == name;
    let added = || added().entries.iter().map(|(entry, _)| *entry).find(of_name);
    built_in().find(of_name).or_else(added).or_else(|| found().into_iter().find(of_name))
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
