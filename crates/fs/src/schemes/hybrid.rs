//! `hybrid`: fairness among the channels that are free, as `read-busy` has it, with dynamic depth. Co-design paper, Sec. IV.

use super::{Entry, Scheme, View, depth};

pub(super) const ENTRY: Entry =
    Entry { name: "hybrid", about: "fairness, read-busy and depth together", keys: &[], build: || Box::new(Hybrid) };

struct Hybrid;

impl Scheme for Hybrid {
    fn goes_deep(&self, pages: u32) -> bool {
        depth::is_large(pages)
    }

    fn choose(&self, view: &View<'_>) -> u32 {
        match view.is_whole_rounds() {
            true => view.lowest(|channel| view.busy(channel)),
            false => view.lowest(|channel| (view.busy(channel), view.held(channel))),
        }
    }
}
