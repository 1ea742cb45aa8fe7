//! `hybrid`: fairness among the channels that `read-busy` prefers, with dynamic depth. Co-design paper, Sec. IV.

use super::{Scheme, SchemeEntry, View, depth};

pub(super) const ENTRY: SchemeEntry = SchemeEntry {
    name: "hybrid",
    about: "fairness, read-busy and depth together",
    keys: &[],
    build: || Box::new(Hybrid),
};

struct Hybrid;

impl Scheme for Hybrid {
    fn groups_pages(&self, pages: u32) -> bool {
        depth::is_large(pages)
    }

    fn choose(&self, view: &View<'_>) -> u32 {
        match view.is_whole_rounds() {
            true => view.lowest(|channel| view.busy(channel)),
            false => view.lowest(|channel| (view.busy(channel), view.held(channel))),
        }
    }
}
