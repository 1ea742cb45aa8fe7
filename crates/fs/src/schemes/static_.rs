//! `static`: the page's address on the disk names its channel for good, page n on channel n mod 8: round robin as in Fig. 1 of
//! the co-design paper, whose requests have the byte offset at which they start on the disk, and as in the static allocations
//! that it cites (Sec. II-B).

use super::{Scheme, SchemeEntry, View};

pub(super) const ENTRY: SchemeEntry = SchemeEntry {
    name: "static",
    about: "the channel that the page's address on the disk names: page n on channel n mod 8",
    keys: &[],
    build: || Box::new(Static),
};

struct Static;

impl Scheme for Static {
    fn turns_by_address(&self) -> bool {
        true
    }

    fn choose(&self, view: &View<'_>) -> u32 {
        view.turn
    }
}
