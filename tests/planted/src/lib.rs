//! The layer `ring` of `examples/ring`, and copies of it with one fault each: what `palimpsest check` must find.

use palimpsest_lab::ftl::Entry;

include!(concat!(env!("OUT_DIR"), "/planted.rs"));

/// The layer without a fault, then the layers with one.
pub fn layers() -> (&'static Entry, &'static [Entry]) {
    (&LAYERS[0], &LAYERS[1..])
}

/// Adds the layers to the registry of the process, once.
pub fn add() {
    static ADDED: std::sync::Once = std::sync::Once::new();
    ADDED.call_once(|| palimpsest_lab::layers::add(LAYERS, "planted faults").expect("new names"));
}
