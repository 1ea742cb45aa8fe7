//! The least space with which a drive survives a power cut, for every layer.

use palimpsest_check::drives::{build, build_with_spare, needed, plain, with};
pub use palimpsest_check::room::*;
use palimpsest_lab::ftl::REGISTRY;

/// Once wrong: blocks for a map or for logs counted as spare.
#[test]
fn the_smallest_drive_of_each_layer_is_tight() {
    for layer in REGISTRY {
        let settings = needed(layer, &plain(1, 24, 16, layer.least_subpages()));
        let large = build(layer.name, &with(&settings, &["ssd.over_provisioning=100%"])).expect("a large drive").drive;
        let frontiers = u64::from(layer.frontiers(&large.ftl));
        let least = build_with_spare(layer.name, &settings, 24, frontiers + 1).expect("the smallest drive");
        assert!(is_tight(&least), "{}", layer.name);
        let more = build_with_spare(layer.name, &settings, 24, frontiers + 3).expect("a drive");
        assert!(!is_tight(&more), "{}", layer.name);
    }
}
