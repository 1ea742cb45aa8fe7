//! Placement: the stream is the placement handle of the command, as for a drive with Flexible Data Placement (NVMe Base
//! Specification 2.1) whose reclaim unit handles are the streams of the host.
//!
//! Handle 0, the default, is stream 0; handles beyond the last stream share that stream. Ignored: reclaim groups, and
//! the limits and events of reclaim units.

use super::{Classifier, Classify};
use palimpsest_flash::command::Directives;
use palimpsest_flash::geometry::Extent;

pub(super) const CLASSIFIER: Classifier = Classifier {
    name: "placement",
    about: "the placement handle of a write is the stream",
    keys: &[],
    reads_addresses: false,
    reads_lifetimes: false,
    reads_identifiers: true,
    build: |_, _, _| Box::new(Placement),
};

pub(super) struct Placement;

palimpsest_flash::state!(Placement {});

impl Classify for Placement {
    fn stream_of(&mut self, _extent: Extent, directives: Directives) -> u32 {
        directives.placement.into()
    }
}
